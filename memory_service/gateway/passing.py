"""Every other path of a provider: its requests and answers go through untouched, streams included.

A client has one base URL. What of it is no conversation (embeddings, files, batches, stored responses, tokens of an
input) goes to the provider that the client speaks to, with the same method, query, headers and bytes.

Rules: a path below `messages`, or a call with Anthropic's version header, is Anthropic's; any other is OpenAI's. In a
body of JSON, and in `models/NAME/MODEL`, the name of an upstream before a model is read and left out. A key for one
workspace is good for paths that neither list nor hold what somebody else has stored with the key of this server.

Invariants: a path of this server's own is never passed on; nothing is kept and nothing added.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from memory_service.errors import Forbidden, InvalidRequest, MemoryServiceError, retry_headers
from memory_service.gateway.base import Dialect
from memory_service.gateway.chat import ChatCompletions
from memory_service.gateway.exchange import Exchange, GatewayRuntime
from memory_service.gateway.messages import AnthropicMessages
from memory_service.gateway.transit import PassedAnswer, json_answer
from memory_service.service import needs

if TYPE_CHECKING:
    from memory_service.gateway.upstreams import CallProtocol

_VERSION = "/v1/"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# Paths, by their beginnings, that answer from what the request brings alone.
_STATELESS = (
    "audio/", "completions", "embeddings", "images/", "messages/count_tokens", "models", "moderations", "rerank",
    "responses/input_tokens",
)  # fmt: skip


class PassedRoute(Route):
    """The route of all paths below `/v1` that begin with no word of this server's own.

    Args:
        runtime: What the calls of the server share.
        own: The first words of this server's own paths.
    """

    def __init__(self, runtime: GatewayRuntime, own: frozenset[str]) -> None:
        super().__init__(
            "/v1/{provider_path:path}", _endpoint(runtime), methods=list(_METHODS), include_in_schema=False
        )
        self._own = own

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See starlette."""
        return super().matches(scope) if provider_path(scope, self._own) else (Match.NONE, {})


def provider_path(scope: Scope, own: frozenset[str]) -> str:
    """The path of a request below `/v1`, if it is a provider's; empty for one of this server's own."""
    path = scope.get("path", "")
    below = path.removeprefix(_VERSION) if scope["type"] == "http" and path.startswith(_VERSION) else ""
    return "" if below.partition("/")[0] in own else below


def dialect_of(path: str, scope: Scope) -> Dialect:
    """The dialect of a path, in whose shape errors of ours are told."""
    names = {name for name, _ in scope.get("headers", ())}
    is_theirs = path.partition("/")[0] == "messages" or b"anthropic-version" in names
    return AnthropicMessages() if is_theirs else ChatCompletions()


def _endpoint(runtime: GatewayRuntime) -> Callable[[Request], Awaitable[Response]]:
    @needs("gateway")
    async def pass_on(request: Request) -> Response:
        path = request.path_params["provider_path"]
        dialect = dialect_of(path, request.scope)
        try:
            return await _pass_on(runtime, dialect, path, request)
        except MemoryServiceError as error:
            message = runtime.place_of(request).error_message(error)
            return json_answer(dialect.error(error.status, error.code, message), error.status, retry_headers(error))

    return pass_on


async def _pass_on(runtime: GatewayRuntime, dialect: Dialect, path: str, request: Request) -> Response:
    if not request.state.grant.is_for_all and not path.startswith(_STATELESS):
        raise Forbidden(
            "The key is for one workspace, and this path holds what everybody has stored with the provider's key of "
            "this server. Use a key for '*'."
        )
    if any(word in (".", "..") for word in path.split("/")):
        raise InvalidRequest("The path of the request leaves its place. Leave the dots out.")
    content = await request.body()
    protocol: CallProtocol = "messages" if dialect.protocol == "messages" else "chat"
    # As it was sent: a name may hold a slash with a percent sign.
    raw = request.scope.get("raw_path", b"").decode("latin-1").removeprefix(_VERSION)
    sent_text, content, named_text = _without_upstream(runtime, raw, content, request.headers.get("content-type", ""))
    target = runtime.relay.upstreams.passing(protocol, named_text, sent_text)
    exchange = Exchange(
        runtime=runtime, dialect=dialect, request=request, body={}, workspace="", session_id=None, mode="off",
        target=target,
    )  # fmt: skip
    return PassedAnswer(exchange, await exchange.relay(content), None)


def _without_upstream(runtime: GatewayRuntime, path: str, content: bytes, kind: str) -> tuple[str, bytes, str]:
    """Path and body without the name of an upstream before the model, and that name; empty if there is none."""
    names = runtime.relay.upstreams.by_name
    for name in names:
        for begin in (f"models/{name}{slash}" for slash in ("/", "%2F", "%2f")):
            if path.startswith(begin):
                return f"models/{path.removeprefix(begin)}", content, name
    if "json" not in kind or not any(f'"{name}/'.encode() in content for name in names):
        return path, content, ""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return path, content, ""
    given_model = body.get("model") if isinstance(body, dict) else None
    name, slash, rest = given_model.partition("/") if isinstance(given_model, str) else ("", "", "")
    if not slash or name not in names:
        return path, content, ""
    return path, json.dumps({**body, "model": rest}).encode(), name

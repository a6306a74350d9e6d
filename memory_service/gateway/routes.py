"""Routes of the gateway: OpenAI's and Anthropic's own paths, with the shapes that their clients send and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import unquote

import anyio
from fastapi import APIRouter, Header, Request, params
from fastapi.responses import Response

from memory_service.errors import InvalidRequest, MemoryServiceError, UpstreamFailed, retry_headers
from memory_service.gateway.base import Dialect, JsonObject
from memory_service.gateway.chat import ChatCompletions
from memory_service.gateway.exchange import Exchange, GatewayRuntime, Mode
from memory_service.gateway.messages import AnthropicMessages
from memory_service.gateway.responses import OpenAIResponses
from memory_service.gateway.transit import beginning_of, json_answer
from memory_service.service import CallOverview, needs

_LISTING_SECONDS = 10.0
# Deeper than any body of a client. Python's own limit is 1,000 calls, of which each level may take several.
_MOST_DEPTH = 150
_NO_DATE = "1970-01-01T00:00:00Z"
_Answerer = TypeVar("_Answerer", bound=Callable[..., Any])
_MODES = ("on", "read-only", "off")

NamedWorkspace = Annotated[
    str | None,
    Header(alias="X-Memory-Workspace", description="Whose memory; else the project's, else `default`."),
]
NamedSession = Annotated[
    str | None, Header(alias="X-Memory-Session", description="Which session; else the one that the messages belong to.")
]
ModeHeader = Annotated[
    str | None,
    Header(alias="X-Memory-Mode", description="`on`; `read-only` recalls and keeps nothing; `off` sends on as it is."),
]
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "As the provider itself takes it.",
        "content": {"application/json": {"schema": {"type": "object", "additionalProperties": True}}},
    }
}


def _post(router: APIRouter, path: str, summary: str) -> Callable[[_Answerer], _Answerer]:
    """Decorator of a function that answers a call of a client."""
    add = router.post(path, summary=summary, response_class=Response, openapi_extra=_BODY)
    return lambda answerer: add(needs("gateway")(answerer))


def gateway_router(
    runtime: GatewayRuntime, *, dependencies: Sequence[params.Depends], error_responses: dict[int | str, dict[str, Any]]
) -> APIRouter:
    """The routes, for calls that share a runtime; dependencies and documented errors hold for each of them."""
    router = APIRouter(prefix="/v1", tags=["gateway"], dependencies=dependencies, responses=error_responses)
    ours = runtime.service.settings.gateway.provider_compaction == "ours"

    @_post(router, "/chat/completions", "Chat completions")
    async def chat_completions(
        request: Request, workspace: NamedWorkspace = None, session: NamedSession = None, mode: ModeHeader = None
    ) -> Response:
        """OpenAI's chat completions, sent on to an upstream with the session and the memories of a workspace.

        Every parameter goes through as it came, `stream` and tools too. Headers of the answer say what was added.
        """
        return await _answer(runtime, ChatCompletions(), request, workspace, session, mode)

    @_post(router, "/responses", "Responses")
    async def responses(
        request: Request, workspace: NamedWorkspace = None, session: NamedSession = None, mode: ModeHeader = None
    ) -> Response:
        """OpenAI's Responses, sent on to an upstream with the session and the memories of a workspace.

        Every parameter goes through as it came, `stream` and tools too, but for those that tell the conversation.
        Headers of the answer say what was added.
        """
        return await _answer(runtime, OpenAIResponses(), request, workspace, session, mode)

    @_post(router, "/responses/compact", "Compacted response")
    async def compact_response(
        request: Request, workspace: NamedWorkspace = None, session: NamedSession = None, mode: ModeHeader = None
    ) -> Response:
        """A conversation of OpenAI's Responses, compacted here: the user's messages and one compaction item.

        The item refers to the session. In the input of a later call it stands for all that was said before it.
        """
        return await _answer(runtime, OpenAIResponses(compacts=True), request, workspace, session, mode, "/compact")

    @_post(router, "/messages", "Messages")
    async def messages(
        request: Request, workspace: NamedWorkspace = None, session: NamedSession = None, mode: ModeHeader = None
    ) -> Response:
        """Anthropic's messages, sent on to an upstream with the session and the memories of a workspace.

        Every parameter goes through as it came, `stream` and tools too. Headers of the answer say what was added.
        """
        return await _answer(runtime, AnthropicMessages(ours=ours), request, workspace, session, mode)

    @_post(router, "/messages/count_tokens", "Tokens of messages")
    async def count_tokens(request: Request) -> Response:
        """Anthropic's count of tokens for messages as they are sent here, without what memory would change."""
        return await _answer(runtime, AnthropicMessages(), request, None, None, "off", "/count_tokens")

    @router.get("/models", summary="Models", response_class=Response)
    @needs("gateway")
    async def models(request: Request) -> Response:
        """The models of all upstreams, in a shape that OpenAI's and Anthropic's clients read."""
        return json_answer(await _listed_models(runtime, request.headers), 200, {})

    return router


async def _answer(
    runtime: GatewayRuntime,
    dialect: Dialect,
    request: Request,
    workspace: str | None,
    session: str | None,
    mode: str | None,
    path: str = "",
) -> Response:
    try:
        runtime.check_body(request.headers)
        body = _body(await request.body())
        overview = dialect.overview(body)
        exchange = Exchange(
            runtime=runtime,
            dialect=dialect,
            request=request,
            body=body,
            workspace=runtime.workspace_of(request, lambda: folder_of(request.headers, overview)),
            session_id=session or None,
            mode="off" if mode is None and not session and overview.is_auxiliary else _mode(mode),
            target=runtime.relay.upstreams.target(dialect.protocol, _model(body), path),
        )
        return await exchange.response()
    except MemoryServiceError as error:
        message = runtime.place_of(request).error_message(error)
        return json_answer(dialect.error(error.status, error.code, message), error.status, retry_headers(error))


def folder_of(headers: Mapping[str, str], overview: CallOverview) -> str:
    """The folder that a call's host works in, by its headers or by what it tells the model; empty if it says none."""
    if header := headers.get("x-memory-folder"):
        return unquote(header)
    try:
        # Codex names the repositories of a turn so.
        workspaces = json.loads(headers.get("x-codex-turn-metadata") or "{}").get("workspaces")
    except (ValueError, AttributeError, RecursionError):
        workspaces = None
    first = next(iter(workspaces), "") if isinstance(workspaces, dict | list) else ""
    return overview.folder or (first if isinstance(first, str) else "")


def _mode(given_text: str | None) -> Mode:
    mode = given_text or "on"
    if mode not in _MODES:
        raise InvalidRequest(f"The header X-Memory-Mode cannot be used. Send {', '.join(_MODES)}.")
    return cast(Mode, mode)


def _model(body: JsonObject) -> str:
    model = body.get("model")
    if model is not None and not isinstance(model, str):
        raise InvalidRequest("The field model is no text. Send the name of a model.")
    return model or ""


def _body(content: bytes) -> JsonObject:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidRequest("The body is no JSON. Send a JSON object.") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The body is no JSON object. Send one.")
    if _is_deep(body, content):
        raise InvalidRequest(f"The body is nested more than {_MOST_DEPTH} deep. Send one that is flatter.")
    return body


def _is_deep(body: JsonObject, content: bytes) -> bool:
    """True if a body is nested deeper than what works on it can follow."""
    if content.count(b"[") + content.count(b"{") <= _MOST_DEPTH:
        return False
    level: list[Any] = [body]
    for _ in range(_MOST_DEPTH):
        inner = (each_value.values() if isinstance(each_value, dict) else each_value for each_value in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return True


# The list of models


async def _listed_models(runtime: GatewayRuntime, headers: Mapping[str, str]) -> dict[str, Any]:
    """The models of all upstreams; with several of these, each with the name of its own before it.

    An upstream that does not tell stands in `degraded`.
    """
    upstreams = runtime.relay.upstreams
    fields = dict[str, list[dict[str, Any]]]()
    degraded = list[str]()

    async def ask(name: str) -> None:
        try:
            fields[name] = await _asked_models(runtime, name, headers)
        except UpstreamFailed as error:
            degraded.append(f"{name}: {error}")

    async with anyio.create_task_group() as group:
        for name in upstreams.by_name:
            if upstreams.is_listed(name):
                group.start_soon(ask, name)
    models = [
        _shown_model(each_fields, f"{name}/" if upstreams.several else "")
        for name in upstreams.by_name
        for each_fields in fields.get(name, [])
    ]
    own = runtime.service.settings.llm_model
    if not models and own:
        models = [_shown_model({"id": own}, "")]
    ids = [model["id"] for model in models]
    return {
        "object": "list",
        "data": models,
        "has_more": False,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "degraded": degraded,
    }


async def _asked_models(runtime: GatewayRuntime, name: str, headers: Mapping[str, str]) -> list[dict[str, Any]]:
    with anyio.move_on_after(_LISTING_SECONDS):
        answer = await runtime.relay.get(runtime.relay.upstreams.listing(name), headers)
        try:
            content = (await beginning_of(answer)).content
        finally:
            await answer.close()
        try:
            models = json.loads(content).get("data")
        except (ValueError, AttributeError, RecursionError):
            models = None
        if answer.status < 400 and isinstance(models, list):
            return [model for model in models if isinstance(model, dict) and isinstance(model.get("id"), str)]
        raise UpstreamFailed(f"It answered {answer.status} and no list of models.")
    raise UpstreamFailed("It did not list its models in time.")


def _shown_model(fields: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """A model as both OpenAI's and Anthropic's clients read it."""
    name = f"{prefix}{fields['id']}"
    shown_fields = {"object": "model", "created": 0, "owned_by": "memory-service"}
    shown_fields |= {"type": "model", "display_name": name, "created_at": _NO_DATE}
    return {**shown_fields, **fields, "id": name}

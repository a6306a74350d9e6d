"""The way to an upstream and back: requests that go on as they came, answers whose pieces go on as they come.

Invariants: nothing is collected before it is sent on, and nothing inflated but an error that has to be masked; a caller
that goes away ends the request to the upstream; what an upstream does wrong is an `UpstreamFailed` that says what and
names no key; a key of this server goes to no caller. httpx takes a fifth of a second to import: its first use does.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_service.errors import InvalidRequest, UpstreamFailed
from memory_service.gateway.masking import KeyMask
from memory_service.gateway.observer import plain_text, readable_encoding
from memory_service.gateway.translation import UpstreamAnswer, end_translating
from memory_service.gateway.upstreams import LITELLM, Target, Upstreams

if TYPE_CHECKING:
    import httpx

_CONNECT_SECONDS = 10.0
_WRITE_SECONDS = 60.0
_MOST_ERROR_BYTES = 200_000
_IDLE_CONNECTIONS = 32
# Of a request: what is between the caller and this server alone.
_NOT_SENT = frozenset({
    "host", "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "upgrade",
    "transfer-encoding", "content-length", "content-type", "accept-encoding", "cookie", "origin", "referer", "expect",
    "forwarded", "via", "x-real-ip",
})  # fmt: skip
_NOT_SENT_BEGINNINGS = ("x-memory-", "x-forwarded-", "sec-")
_KEYS = frozenset({"authorization", "x-api-key", "api-key"})
# Of an answer: what tells the caller something.
_GIVEN_BACK = frozenset({
    "retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "request-id", "warning", "content-disposition",
    "location", "etag", "last-modified",
})  # fmt: skip
_GIVEN_BACK_BEGINNINGS = ("x-ratelimit-", "ratelimit", "anthropic-", "openai-", "x-codex-", "x-envoy-", "llm_provider-")


# Of an answer: what its bytes are.
_ENTITY = frozenset({"content-type", "content-encoding", "content-length"})
_EVENTS = "text/event-stream"
_JSON = "application/json"


class ConnectionCut(Exception):
    """The upstream broke an answer off in the middle; the relay breaks its own off, and nobody else hears of it."""


class Relay:
    """The way of the gateway to all upstreams.

    Attributes:
        upstreams: Where calls go.
    """

    def __init__(self, upstreams: Upstreams) -> None:
        self.upstreams = upstreams
        self._client: httpx.AsyncClient | None = None

    async def send(
        self, target: Target, body: Mapping[str, object], headers: Mapping[str, str], query: str, *, plain: bool = False
    ) -> UpstreamAnswer:
        """Send a request on.

        Args:
            target: Where to.
            body: What to send.
            headers: Those of the caller.
            query: Its query string.
            plain: Whether the answer must not be compressed.

        Raises:
            InvalidRequest: It cannot be sent on.
            UpstreamFailed: The upstream cannot be reached, or does not answer in time.
        """
        if target.protocol == LITELLM:
            return await self._translate(target, body)
        # What may name a key has to be read whole.
        encoding = "identity" if plain or self._mask else readable_encoding(headers.get("accept-encoding", ""))
        request = self._request(
            "POST",
            f"{target.url}{f'?{query}' if query else ''}",
            {**_sent_headers(headers, target), "content-type": _JSON, "accept-encoding": encoding},
            _content_of(body),
        )
        return await self._answer(request, target, stream=body.get("stream") is True)

    async def get(self, target: Target, headers: Mapping[str, str]) -> UpstreamAnswer:
        """Ask an upstream for something; see `send`."""
        sent_fields = {**_sent_headers(headers, target), "accept-encoding": "identity"}
        return await self._answer(self._request("GET", target.url, sent_fields), target)

    async def send_bytes(
        self, target: Target, method: str, content: bytes, headers: Mapping[str, str], query: str
    ) -> UpstreamAnswer:
        """Send a request on byte for byte; see `send`."""
        encoding = "identity" if self._mask else readable_encoding(headers.get("accept-encoding", ""))
        sent_fields = {**_sent_headers(headers, target), "accept-encoding": encoding}
        if kind := headers.get("content-type"):
            sent_fields["content-type"] = kind
        url = f"{target.url}{f'?{query}' if query else ''}"
        return await self._answer(self._request(method, url, sent_fields, content), target)

    async def close(self) -> None:
        """Give back all connections."""
        if self._client is not None:
            await self._client.aclose()
        await end_translating()

    async def _translate(self, target: Target, body: Mapping[str, object]) -> UpstreamAnswer:
        return self._mask_answer(await self.upstreams.translate(target, body))

    def _request(self, method: str, url: str, headers: Mapping[str, str], content: bytes = b"") -> httpx.Request:
        import httpx

        # A header may be any bytes, which this server has read as Latin-1.
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        try:
            return self._http().build_request(method, url, content=content, headers=raw)
        except httpx.InvalidURL:
            raise InvalidRequest("The query of the request cannot be sent on. Leave it out.") from None

    async def _answer(self, request: httpx.Request, target: Target, *, stream: bool = False) -> UpstreamAnswer:
        import httpx

        try:
            response = await self._http().send(request, stream=True)
        except httpx.HTTPError as error:
            raise _failure(f"The upstream {target.upstream} at {request.url.host}", error) from error
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers.raw}
        kind = headers.get("content-type", "").lower()
        return self._mask_answer(
            UpstreamAnswer(
                status=response.status_code,
                headers=headers,
                entity={name: value for name, value in headers.items() if name in _ENTITY},
                # What was asked for as a stream, and does not say that it is something else, may have no end.
                is_stream=kind.startswith(_EVENTS) or (stream and _JSON not in kind and response.status_code < 400),
                pieces=_pieces(response),
                close=response.aclose,
            )
        )

    def _mask_answer(self, answer: UpstreamAnswer) -> UpstreamAnswer:
        """An answer as a caller may have it: without the keys of this server."""
        headers, mask, has_failed = _given_back(answer.headers), self._mask, answer.status >= 400
        if not mask:
            return replace(answer, headers=headers)
        # What is masked may be shorter. Errors in an encoding that was not asked for are read before.
        gone_keys = {"content-length", "content-encoding"} if has_failed else {"content-length"}
        encoding = answer.entity.get("content-encoding", "") if has_failed else ""
        pieces = _inflated_error(answer.pieces, encoding) if encoding else answer.pieces
        return replace(
            answer,
            headers={name: mask.text(value) for name, value in headers.items()},
            entity={name: value for name, value in answer.entity.items() if name not in gone_keys},
            pieces=mask.lines(pieces)
            if answer.is_stream and not has_failed
            else mask.body(pieces, has_failed=has_failed),
        )

    @property
    def _mask(self) -> KeyMask:
        return KeyMask(self.upstreams.secrets())

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            seconds = self.upstreams.timeout_seconds
            timeout = httpx.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds), write=_WRITE_SECONDS, pool=None)
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=_IDLE_CONNECTIONS)
            self._client = httpx.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False)
        return self._client


def _sent_headers(headers: Mapping[str, str], target: Target) -> dict[str, str]:
    """The caller's headers as they go on: without what is for this server, with the key of the upstream."""
    keys = frozenset() if target.takes_callers_key else _KEYS
    sent_fields = {
        name: value
        for name, value in headers.items()
        if name not in _NOT_SENT and name not in keys and not name.startswith(_NOT_SENT_BEGINNINGS)
    }
    return {**sent_fields, **target.headers}


def _given_back(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in headers.items() if name in _GIVEN_BACK or name.startswith(_GIVEN_BACK_BEGINNINGS)
    }


def _content_of(body: Mapping[str, object]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Half a surrogate pair can be named in JSON, but not encoded.
        return json.dumps(body).encode()


async def _inflated_error(pieces: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """An error that came compressed, as it reads; nothing of one that cannot be read."""
    content = bytearray()
    async for piece in pieces:
        if len(content) <= _MOST_ERROR_BYTES:
            content += piece
    yield plain_text(bytes(content), encoding).encode()


async def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    import httpx

    try:
        async for piece in response.aiter_raw():
            yield piece
    except httpx.TimeoutException as error:
        raise _failure("the upstream", error) from error
    except httpx.HTTPError as error:
        raise ConnectionCut(str(_failure("the upstream", error))) from error


def _failure(text: str, error: httpx.HTTPError) -> UpstreamFailed:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return UpstreamFailed(f"{text} did not answer in time. Try again.", kind="timeout", transient=True)
    if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol):
        return UpstreamFailed(
            f"{text} cannot be reached. Check its address in gateway.upstreams or llm_api_base.", kind="unavailable",
            transient=True,
        )  # fmt: skip
    return UpstreamFailed(f"{text} broke the connection. Try again.", kind="unavailable", transient=True)

"""One call of a client from its arrival to the end of its answer.

```
parse -> prompt of the conversation -> upstream -> the answer, as it comes -> what was said is kept
              ^                           |
              +--- refused as too long ---+
```
Invariants: what the model said is in the session before the caller has the end of it; of an answer that was broken
off, what was said is kept and marked, and the request to the upstream ends with it; a call that memory cannot work on
goes through as it came, and a header says why.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar
from urllib.parse import quote

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from memory_service.errors import CallCancelled, InvalidReference, InvalidRequest, MemoryServiceError, UpstreamFailed
from memory_service.gateway.base import Dialect, EventSplitter, GivenAnswer, JsonObject
from memory_service.gateway.relay import Relay
from memory_service.service import MemoryService
from memory_service.service.conversations import ConversationCall, ConversationPrompt
from memory_service.service.upstreams import Target, UpstreamAnswer

Made = TypeVar("Made")
Mode = Literal["on", "read-only", "off"]
_Work = Callable[[], object]

_log = logging.getLogger("memory_service.gateway")
# A header's line is read whole; proxies refuse long ones.
_HEADER_CHARS = 1_000
# All that is visible in ASCII but the sign of the encoding itself.
_PLAIN = "".join(chr(code) for code in range(32, 127) if chr(code) != "%")
# A stream that says nothing for longer goes on as it comes.
_MOST_HELD_BYTES = 4_000_000
_CLIENT_GONE = "the client went away"
_UPSTREAM_GONE = "the upstream broke off"


class _Refusal(NamedTuple):
    """Error of an upstream in the place of an answer, and its status."""

    text: str
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRuntime:
    """Parts that the calls of one server share.

    Attributes:
        admit: Makes a prompt in a thread, once it is the call's turn; gives up a call whose client has gone.
        work: Runs what waits for a model, in a thread of its own.
        finish: Does the last part of a call in a thread; it refuses none.
        cancelled: Whether the server ends.
        workspace_of: The workspace of a request, by its headers and what its key allows.
        on_prompt: Hears the tokens of each prompt of a session, and how many of them begin it as the last one.
    """

    service: MemoryService
    relay: Relay
    admit: Callable[[_Work, Receive], Awaitable[object]]
    work: Callable[[_Work], Awaitable[object]]
    finish: Callable[[_Work], Awaitable[object]]
    cancelled: Callable[[], bool]
    workspace_of: Callable[[Headers, str], str]
    on_prompt: Callable[[int, int], None]


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One call.

    Attributes:
        mode: Whether memory is used and kept, used alone, or left out.
    """

    runtime: GatewayRuntime
    dialect: Dialect
    request: Request
    body: JsonObject
    workspace: str
    session_id: str | None
    mode: Mode
    target: Target
    call: ConversationCall | None = None
    prompt: ConversationPrompt | None = None
    degraded: list[str] = field(default_factory=list)

    async def response(self) -> Response:
        """The answer to the caller.

        Raises:
            MemoryServiceError: There is none.
        """
        await self._prepare()
        if self.prompt is not None and self.prompt.commanded:
            return await self._commanded(self.prompt.commanded)
        if self.call is not None and self.call.compacts and self.prompt is not None:
            return self._compacted(self.prompt)
        answer = await self._gone_aside(self._asked)
        try:
            if answer.is_stream:
                return RelayedStream(self, answer)
            return await self._gone_aside(lambda: self._whole(answer))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await answer.close()
            raise

    # Before

    async def _prepare(self) -> None:
        """Make the prompt; where memory cannot work on the call, there is none, and the call goes as it came."""
        if self.mode != "on" and self.dialect.reference(self.body):
            raise InvalidReference(
                f"A compaction item of this server stands for a session, which X-Memory-Mode: {self.mode} does not go "
                "on with. Leave the header out, or send the conversation without the item."
            )
        if self.mode == "off":
            return
        try:
            self.call = self.dialect.call(self.body, self.session_id, self.target.model)
        except InvalidRequest as error:
            self.degraded.append(f"session: {error}")
            return
        call, service, cancelled = self.call, self.runtime.service, self.runtime.cancelled
        if self.mode == "read-only":
            await self._read(call)
        elif call.compacts:
            await self._compact(call)
        elif call.messages or call.follows or call.reference:
            self.prompt = await self._admitted(
                lambda: service.conversation_prompt(self.workspace, call, cancelled=cancelled)
            )

    async def _read(self, call: ConversationCall) -> None:
        """Make the prompt without a session."""
        if call.compacts:
            self.degraded.append("compaction: X-Memory-Mode is read-only, so the provider was asked for it.")
        else:
            self.prompt = await self._admitted(lambda: self.runtime.service.recalled_prompt(self.workspace, call))

    async def _compact(self, call: ConversationCall) -> None:
        """Make the compaction that is all the call asks for; where memory cannot, the provider may."""
        service, cancelled = self.runtime.service, self.runtime.cancelled
        try:
            self.prompt = await self._worked(
                lambda: service.compact_conversation(self.workspace, call, cancelled=cancelled)
            )
        except InvalidRequest as error:
            self.degraded.append(f"session: {error}")

    def sent_body(self) -> JsonObject:
        """The body as it goes on."""
        body, prompt = self.body, self.prompt
        if prompt is not None and (prompt.session_id or prompt.receipt_id):
            body = self.dialect.with_messages(body, prompt.messages, whole=bool(prompt.session_id))
        return {**body, "model": self.target.model} if self.target.model else body

    async def _asked(self) -> UpstreamAnswer:
        """The upstream's answer; a prompt that it refuses as too long is made smaller, as often as that helps."""
        while True:
            answer = await self._send()
            if self.prompt is None or self.call is None:
                return answer
            try:
                answer, refusal = await self._looked_at(answer)
                again = await self._recovered(self.prompt, self.call, refusal) if refusal else None
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await answer.close()
                raise
            if again is None:
                if self.prompt.tokens is not None:
                    self.runtime.on_prompt(self.prompt.tokens.total, self.prompt.cached_prefix_tokens)
                return answer
            await answer.close()
            self.prompt = again

    async def _looked_at(self, answer: UpstreamAnswer) -> tuple[UpstreamAnswer, _Refusal | None]:
        """The answer, and the error in it, if it has one before anything was said."""
        if answer.status >= 400:
            content = await answer.whole()
            await answer.close()
            refused = replace(answer, is_stream=False, pieces=_pieces([content]))
            return refused, _Refusal(content.decode("utf-8", "replace"), answer.status)
        if not answer.is_stream:
            return answer, None
        held, failure = await self._opening(answer.pieces)
        # The status of the stream is that of its beginning: the error has none.
        return replace(answer, pieces=_pieces(held, answer.pieces)), _Refusal(failure, 400) if failure else None

    async def _opening(self, pieces: AsyncIterator[bytes]) -> tuple[list[bytes], str]:
        """A stream up to the first event that says something, and the error that it is; empty if it is none."""
        reader, splitter, held = self.dialect.reader(), EventSplitter(), list[bytes]()
        async for piece in pieces:
            held.append(piece)
            for event in splitter.feed(piece):
                reader.read(event)
                if event.json().get("type") not in self.dialect.opening_events:
                    return held, reader.failure
            if sum(map(len, held)) > _MOST_HELD_BYTES:
                break
        return held, ""

    async def _send(self) -> UpstreamAnswer:
        request = self.request
        return await self.runtime.relay.send(self.target, self.sent_body(), request.headers, request.url.query)

    async def _recovered(
        self, prompt: ConversationPrompt, call: ConversationCall, refusal: _Refusal
    ) -> ConversationPrompt | None:
        if not prompt.session_id:
            return None
        service, cancelled = self.runtime.service, self.runtime.cancelled
        text, status = refusal
        return await self._worked(
            lambda: service.recovered_prompt(self.workspace, prompt, call, text, status, cancelled=cancelled)
        )

    # After

    async def _whole(self, answer: UpstreamAnswer) -> Response:
        """An answer in one piece, sent on byte for byte."""
        content = await answer.whole()
        await answer.close()
        parsed = _object(content)
        if parsed is None and answer.status < 400:
            raise UpstreamFailed(
                f"The upstream {self.target.upstream} answered what is no JSON. Check its address, or try again."
            )
        if parsed is None:
            parsed = self.dialect.error(
                answer.status, "upstream_failed",
                f"The upstream {self.target.upstream} answered {answer.status} and no JSON. Check its address.",
            )  # fmt: skip
            content = json.dumps(parsed).encode()
        if answer.status < 400:
            await self.keep(self.dialect.answer(parsed))
            if self.prompt is not None and self.prompt.reference:
                content = json.dumps(self.dialect.with_compaction(parsed, self.prompt.reference)).encode()
        headers = {**answer.headers, **self.headers()}
        return Response(content, answer.status, headers, "application/json")

    async def keep(self, said: GivenAnswer, cut: str = "") -> None:
        """Keep what the model said; what keeps it from that is in the log of the server."""
        prompt = self.prompt
        if prompt is None or not prompt.session_id or not said.messages:
            return
        service = self.runtime.service

        def append() -> None:
            service.conversations(self.workspace).answered(
                prompt, said.messages, usage=said.report(), finish_reason=said.finish_reason or None,
                model=self.target.model or None, cut=cut,
            )  # fmt: skip

        with anyio.CancelScope(shield=True):
            try:
                await self.runtime.finish(append)
            except MemoryServiceError as error:
                self.degraded.append(f"session: {error}")
                _log.warning("an answer was not kept: %s", error)

    def _compacted(self, prompt: ConversationPrompt) -> Response:
        """The answer to a call that asked for a compaction alone."""
        if self.body.get("stream"):
            events = self.dialect.compacted_events(prompt, self.body)
            return Response(events, 200, self.headers(), media_type="text/event-stream")
        return JSONResponse(self.dialect.compacted(prompt, self.body), 200, self.headers())

    async def _commanded(self, text: str) -> Response:
        """The service's own answer to a command of the user's, which no model has to give."""
        await self.keep(GivenAnswer(messages=({"role": "assistant", "content": text},)))
        if self.body.get("stream"):
            return Response(
                self.dialect.spoken_events(text, self.body), 200, self.headers(), media_type="text/event-stream"
            )
        return JSONResponse(self.dialect.spoken(text, self.body), 200, self.headers())

    def headers(self) -> dict[str, str]:
        """Headers that say what memory did."""
        told = {"X-Memory-Workspace": self.workspace}
        degraded = list(self.degraded)
        if self.prompt is not None:
            prompt = self.prompt
            tokens, receipt = prompt.tokens, prompt.compaction
            told |= {
                "X-Memory-Session": prompt.session_id,
                "X-Memory-Branch-Of": prompt.branch_of,
                "X-Memory-Receipt": prompt.receipt_id,
                "X-Memory-Compaction": (receipt.compaction_id or "") if receipt is not None else "",
            }
            if tokens is not None:
                parts = ("system", "memory", "summary", "tail", "total", "window")
                told["X-Memory-Tokens"] = "; ".join(f"{part}={getattr(tokens, part)}" for part in parts)
            degraded += prompt.degraded
        if degraded:
            told["X-Memory-Degraded"] = _line(" | ".join(degraded))
        return {name: value for name, value in told.items() if value}

    # Waiting

    async def _admitted(self, act: Callable[[], Made]) -> Made:
        return await self.runtime.admit(act, self.request.receive)  # type: ignore[return-value]  # what `act` gives

    async def _worked(self, act: Callable[[], Made]) -> Made:
        return await self.runtime.work(act)  # type: ignore[return-value]  # the same

    async def _gone_aside(self, act: Callable[[], Awaitable[Made]]) -> Made:
        """Do something that ends when the caller goes away."""
        done, failed = list[Made](), list[MemoryServiceError]()
        async with anyio.create_task_group() as group:
            group.start_soon(_until_gone, self.request.receive, group.cancel_scope)
            try:
                done.append(await act())
            except MemoryServiceError as error:
                failed.append(error)
            group.cancel_scope.cancel()
        if failed:
            raise failed[0]
        if not done:
            raise CallCancelled("The caller went away.")
        return done[0]


class RelayedStream(Response):
    """A stream of an upstream, sent on piece by piece while it is read along."""

    def __init__(self, exchange: Exchange, answer: UpstreamAnswer) -> None:
        super().__init__(None, answer.status, {**answer.headers, **exchange.headers()}, "text/event-stream")
        del self.headers["content-length"]
        self.headers.setdefault("Cache-Control", "no-store")
        self.headers["X-Accel-Buffering"] = "no"
        self._exchange = exchange
        self._answer = answer
        self._reader = exchange.dialect.reader()
        self._events = EventSplitter()
        self._is_kept = False
        reference = exchange.prompt.reference if exchange.prompt is not None else ""
        self._rewritten = exchange.dialect.with_compaction_event(reference) if reference else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        cut = _CLIENT_GONE
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope)
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                cut = await self._relay(send) or cut
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._answer.close()
                await self._keep(cut)

    async def _relay(self, send: Send) -> str:
        """Send the pieces on; gives why the upstream ended too early, empty if it did not."""
        try:
            async for piece in self._answer.pieces:
                events = list(self._events.feed(piece))
                for event in events:
                    self._reader.read(event)
                if self._reader.ended:
                    await self._keep("")
                if self._rewritten is not None:
                    piece = "".join(map(self._rewritten, events)).encode()
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except UpstreamFailed as error:
            await self._keep(_UPSTREAM_GONE)
            await self._say(send, str(error))
            return _UPSTREAM_GONE
        if not self._reader.ended and not self._reader.failure:
            await self._keep(_UPSTREAM_GONE)
            await self._say(send, "The upstream ended its answer before it was whole. Try again.")
        return _UPSTREAM_GONE

    async def _say(self, send: Send, message: str) -> None:
        text = self._exchange.dialect.error_event(message)
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

    async def _keep(self, cut: str) -> None:
        """Keep what was said, once."""
        if not self._is_kept:
            self._is_kept = True
            await self._exchange.keep(self._reader.answer(whole=not cut), cut)


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _pieces(held: Sequence[bytes], rest: AsyncIterator[bytes] | None = None) -> AsyncIterator[bytes]:
    for piece in held:
        yield piece
    if rest is not None:
        async for piece in rest:
            yield piece


def _object(content: bytes) -> JsonObject | None:
    try:
        value = json.loads(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _line(text: str) -> str:
    """A text as the value of a header: UTF-8, percent-encoded where it is not ASCII.

    Source: RFC 8187, 3.2.1; `urllib.parse.unquote` gives the text back.
    """
    told = " ".join(text.split())
    shown = told if len(told) <= _HEADER_CHARS else f"{told[:_HEADER_CHARS]} …"
    return quote(shown, safe=_PLAIN)

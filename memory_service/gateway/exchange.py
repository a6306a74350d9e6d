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

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar
from urllib.parse import quote

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from memory_service.errors import CallCancelled, InvalidReference, InvalidRequest, MemoryServiceError
from memory_service.gateway.base import Dialect, GivenAnswer, JsonObject
from memory_service.gateway.observer import ReadAlong, plain_text, read_whole
from memory_service.gateway.relay import Relay
from memory_service.gateway.transit import PassedAnswer, beginning_of, json_answer, until_gone
from memory_service.gateway.translation import UpstreamAnswer
from memory_service.gateway.upstreams import Target
from memory_service.home import SearchedPlace
from memory_service.service import Unreadable

if TYPE_CHECKING:
    from memory_service.service import ConversationCall, ConversationPrompt, MemoryService

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
        workspace_of: The workspace of a request, by its headers, what its key allows, and the folder that it tells of.
        check_body: Refuses a request whose headers say that its body is no JSON.
        place_of: Where a request is answered from, as far as who asks may know.
        on_prompt: Hears the tokens of each prompt of a session, and how many of them begin it as the last one.
        on_missed: Hears what memory could not do for a call, each "part: reason".
    """

    service: MemoryService
    relay: Relay
    admit: Callable[[_Work, Receive], Awaitable[object]]
    work: Callable[[_Work], Awaitable[object]]
    finish: Callable[[_Work], Awaitable[object]]
    cancelled: Callable[[], bool]
    workspace_of: Callable[[Request, Callable[[], str]], str]
    check_body: Callable[[Headers], None]
    place_of: Callable[[Request], SearchedPlace]
    on_prompt: Callable[[int, int], None]
    on_missed: Callable[[Iterable[str]], None]


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
    _reading: ReadAlong | None = None

    async def response(self) -> Response:
        """The answer to the caller.

        Raises:
            MemoryServiceError: There is none.
        """
        await self._prepare()
        if self.prompt is not None and self.prompt.command_reply:
            return await self._command_response(self.prompt.command_reply)
        if self.call is not None and self.call.compacts and self.prompt is not None:
            return self._compaction_response(self.prompt)
        answer = await self._cancel_on_disconnect(self._ask_upstream)
        try:
            if answer.is_stream:
                return PassedAnswer(self, answer, self._reading)
            return await self._cancel_on_disconnect(lambda: self._plain_response(answer))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await answer.close()
            raise

    # Before

    async def _prepare(self) -> None:
        """Make the prompt; where memory cannot work on the call, there is none, and the call goes as it came."""
        try:
            await self._make_prompt()
            if self.prompt is not None:
                self._note(self.prompt.degraded)
        except MemoryServiceError:
            raise
        except Exception as error:  # whatever defect memory has, the caller's model can be asked
            _log.exception("defect while a prompt was made")
            self.call = self.prompt = None
            self.miss(f"session: memory met a defect ({type(error).__name__})")

    async def _make_prompt(self) -> None:
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
            self.miss(f"session: {error}")
            return
        call, service, cancelled = self.call, self.runtime.service, self.runtime.cancelled
        if self.mode == "read-only":
            await self._read(call)
        elif call.compacts:
            await self._compact(call)
        elif call.messages or call.follows or call.reference:
            self.prompt = await self._admit(
                lambda: service.conversation_prompt(self.workspace, call, cancelled=cancelled)
            )

    async def _read(self, call: ConversationCall) -> None:
        """Make the prompt without a session."""
        if call.compacts:
            self.miss("compaction: X-Memory-Mode is read-only, so the provider was asked for it.")
        else:
            self.prompt = await self._admit(lambda: self.runtime.service.recalled_prompt(self.workspace, call))

    async def _compact(self, call: ConversationCall) -> None:
        """Make the compaction that is all the call asks for; where memory cannot, the provider may."""
        service, cancelled = self.runtime.service, self.runtime.cancelled
        try:
            self.prompt = await self._work(
                lambda: service.compact_conversation(self.workspace, call, cancelled=cancelled)
            )
        except InvalidRequest as error:
            self.miss(f"session: {error}")

    def miss(self, *reasons: str) -> None:
        """Tell what memory could not do for the call, each "part: reason": to the caller if that is still possible."""
        self.degraded += reasons
        self._note(reasons)

    def _note(self, reasons: Sequence[str]) -> None:
        if not reasons:
            return
        self.runtime.on_missed(reasons)
        # Once for each conversation; what every prompt of a workspace lacks, such as vectors, is told by `doctor`.
        for reason in self.runtime.service.missed_calls.note(self.workspace, self._conversation(), reasons):
            _log.warning("memory of a call is degraded (%s): %s", self.dialect.protocol, reason)

    def _conversation(self) -> str:
        """The conversation of the call, as far as it is known: its session, or a digest of how it begins."""
        if self.prompt is not None and self.prompt.session_id:
            return self.prompt.session_id
        overview = self.dialect.overview(self.body)
        beginning = json.dumps([self.session_id, overview.system, overview.texts[:2]])
        return f"call-{hashlib.blake2b(beginning.encode(), digest_size=6).hexdigest()}"

    def sent_body(self) -> JsonObject:
        """The body as it goes on."""
        body, prompt = self.body, self.prompt
        if prompt is not None and (prompt.session_id or prompt.receipt_id):
            body = self.dialect.with_messages(body, prompt.messages, whole=bool(prompt.session_id))
        return {**body, "model": self.target.model} if self.target.model else body

    async def _ask_upstream(self) -> UpstreamAnswer:
        """The upstream's answer; a prompt that it refuses as too long is made smaller, as often as that helps."""
        while True:
            answer = await self._send()
            if self.prompt is None or self.call is None:
                return answer
            try:
                answer, refusal = await self._split_error(answer)
                again = await self._recover(self.prompt, self.call, refusal) if refusal else None
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

    async def _split_error(self, answer: UpstreamAnswer) -> tuple[UpstreamAnswer, _Refusal | None]:
        """The answer, and the error in it, if it has one before anything was said."""
        self._reading = None
        if answer.status >= 400:
            beginning = await beginning_of(answer)
            text = plain_text(beginning.content, answer.entity.get("content-encoding", ""))
            return replace(beginning.and_rest(answer), is_stream=False), _Refusal(text, answer.status)
        if not answer.is_stream or self.prompt is None:
            return answer, None
        encoding, reference = answer.entity.get("content-encoding", ""), self.prompt.reference
        opening = ReadAlong(self.dialect, encoding)

        def has_begun(piece: bytes) -> bool:
            opening.feed(piece)
            return opening.has_begun or bool(opening.fault)

        beginning = await beginning_of(answer, has_begun, _MOST_HELD_BYTES)
        if opening.fault:
            self.miss(f"answer: {opening.fault}")
        else:
            self._reading = ReadAlong(self.dialect, encoding, reference)
        # The status of the stream is that of its beginning: the error has none.
        refusal = _Refusal(opening.failure, 400) if opening.failed_first else None
        return beginning.and_rest(answer), refusal

    async def _send(self) -> UpstreamAnswer:
        request = self.request
        # What has to tell of a compaction is changed on its way.
        plain = bool(self.prompt and self.prompt.reference)
        return await self.runtime.relay.send(
            self.target, self.sent_body(), request.headers, request.url.query, plain=plain
        )

    async def relay(self, content: bytes) -> UpstreamAnswer:
        """The upstream's answer to the request as it came, with these bytes as its body."""
        return await self._cancel_on_disconnect(
            lambda: self.runtime.relay.send_bytes(self.target, self.request.method, content, self.request.headers,
                                              self.request.url.query)
        )  # fmt: skip

    async def _recover(
        self, prompt: ConversationPrompt, call: ConversationCall, refusal: _Refusal
    ) -> ConversationPrompt | None:
        if not prompt.session_id:
            return None
        service, cancelled = self.runtime.service, self.runtime.cancelled
        text, status = refusal
        return await self._work(
            lambda: service.recovered_prompt(self.workspace, prompt, call, text, status, cancelled=cancelled)
        )

    # After

    async def _plain_response(self, answer: UpstreamAnswer) -> Response:
        """An answer in one piece, sent on byte for byte."""
        beginning = await beginning_of(answer)
        if not beginning.is_whole:
            if self.prompt is not None and answer.status < 400:
                self.miss(
                    "answer: it was broken off"
                    if beginning.connection_cut
                    else f"answer: it is longer than {len(beginning.content):,} bytes"
                )
            return PassedAnswer(self, beginning.and_rest(answer), None)
        await answer.close()
        content = beginning.content
        if self.prompt is not None and answer.status < 400:
            content = await self._kept_whole(self.prompt, content, answer.entity.get("content-encoding", ""))
        entity = {name: value for name, value in answer.entity.items() if name != "content-length"}
        return Response(content, answer.status, {**entity, **answer.headers, **self.headers()})

    async def _kept_whole(self, prompt: ConversationPrompt, content: bytes, encoding: str) -> bytes:
        """Keep what the model said in an answer; gives the bytes that go on."""
        try:
            parsed_object, answer = read_whole(self.dialect, content, encoding)
        except Unreadable as error:
            self.miss(f"answer: {error}")
            return content
        await self.keep(answer)
        if not prompt.reference or encoding:
            return content
        return json.dumps(self.dialect.with_compaction(parsed_object, prompt.reference)).encode()

    async def keep(self, answer: GivenAnswer, cut_text: str = "") -> None:
        """Keep what the model said; what keeps it from that is in the log of the server."""
        prompt = self.prompt
        if prompt is None or not prompt.session_id or not answer.messages:
            return
        service = self.runtime.service

        def append() -> None:
            service.conversations(self.workspace).append_answer(
                prompt, answer.messages, usage=answer.report(), finish_reason=answer.finish_reason or None,
                model=self.target.model or None, cut_text=cut_text,
            )  # fmt: skip

        with anyio.CancelScope(shield=True):
            try:
                await self.runtime.finish(append)
            except MemoryServiceError as error:
                self.miss(f"session: {error}")
            except Exception as error:  # whatever defect there is, the caller has the answer
                _log.exception("defect while an answer was kept")
                self.miss(f"session: the answer was not kept ({type(error).__name__})")

    def _compaction_response(self, prompt: ConversationPrompt) -> Response:
        """The answer to a call that asked for a compaction alone."""
        if self.body.get("stream"):
            events = self.dialect.compacted_events(prompt, self.body)
            return Response(events, 200, self.headers(), media_type="text/event-stream")
        return json_answer(self.dialect.compaction_answer(prompt, self.body), 200, self.headers())

    async def _command_response(self, text: str) -> Response:
        """The service's own answer to a command of the user's, which no model has to give."""
        await self.keep(GivenAnswer(messages=({"role": "assistant", "content": text},)))
        if self.body.get("stream"):
            return Response(
                self.dialect.spoken_events(text, self.body), 200, self.headers(), media_type="text/event-stream"
            )
        return json_answer(self.dialect.text_answer(text, self.body), 200, self.headers())

    def headers(self) -> dict[str, str]:
        """Headers that say what memory did."""
        fields = {"X-Memory-Workspace": self.workspace}
        degraded = list(self.degraded)
        if self.prompt is not None:
            prompt = self.prompt
            tokens, receipt = prompt.tokens, prompt.compaction
            fields |= {
                "X-Memory-Session": prompt.session_id,
                "X-Memory-Branch-Of": prompt.branch_of,
                "X-Memory-Receipt": prompt.receipt_id,
                "X-Memory-Compaction": (receipt.compaction_id or "") if receipt is not None else "",
            }
            if tokens is not None:
                parts = ("system", "memory", "summary", "tail", "total", "window")
                fields["X-Memory-Tokens"] = "; ".join(f"{part}={getattr(tokens, part)}" for part in parts)
            degraded += prompt.degraded
        if degraded:
            fields["X-Memory-Degraded"] = _line(self.runtime.place_of(self.request).hide_home(" | ".join(degraded)))
        return {name: value for name, value in fields.items() if value}

    # Waiting

    async def _admit(self, act: Callable[[], Made]) -> Made:
        return await self.runtime.admit(act, self.request.receive)  # type: ignore[return-value]  # what `act` gives

    async def _work(self, act: Callable[[], Made]) -> Made:
        return await self.runtime.work(act)  # type: ignore[return-value]  # the same

    async def _cancel_on_disconnect(self, act: Callable[[], Awaitable[Made]]) -> Made:
        """Do something that ends when the caller goes away."""
        done_items, errors = list[Made](), list[MemoryServiceError]()
        async with anyio.create_task_group() as group:
            group.start_soon(until_gone, self.request.receive, group.cancel_scope)
            try:
                done_items.append(await act())
            except MemoryServiceError as error:
                errors.append(error)
            group.cancel_scope.cancel()
        if errors:
            raise errors[0]
        if not done_items:
            raise CallCancelled("The caller went away.")
        return done_items[0]


def _line(text: str) -> str:
    """A text as the value of a header: UTF-8, percent-encoded where it is not ASCII.

    Source: RFC 8187, 3.2.1; `urllib.parse.unquote` gives the text back.
    """
    told_text = " ".join(text.split())
    shown_text = told_text if len(told_text) <= _HEADER_CHARS else f"{told_text[:_HEADER_CHARS]} …"
    return quote(shown_text, safe=_PLAIN, errors="replace")

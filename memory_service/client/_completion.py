"""One turn of a session as steps: append, fit, call the model, recover, append.

```
append the user's message -> fit the prompt (-> the agent's flush) -> call -> append the answer -> Reply
                                                                  ^     |
             compact, cut, wait, as the server says ------- retry-+-----+-- give up: the provider's own exception
```
Invariants: no I/O of its own; both clients play the same steps; the provider's exception leaves as it came, with a
note why nothing helped; an answer that came is returned, whatever happens to the memory; retries end.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel

from memory_service.client._chunks import OpenStream
from memory_service.client._messages import ModelAnswer, Reply, WireMessage, prompt_tokens, read_answer
from memory_service.client._refusals import refusal_of
from memory_service.client._session_wire import SessionCalls, Wanted
from memory_service.client._wire import Call
from memory_service.errors import Conflict, Incompressible, InvalidRequest, MemoryServiceError, UpstreamFailed
from memory_service.messages.shapes import CUT
from memory_service.schemas.compaction import CompactionReceipt, Flush, Recovery, SessionContext
from memory_service.schemas.messages import AppendedMessages, Wire

_T = TypeVar("_T")
_A = TypeVar("_A", bound=BaseModel)

DEFAULT_MAX_RETRIES = 8
DEFAULT_MAX_WAIT_SECONDS = 60.0
# Where the provider names no time.
_BACKOFF_SECONDS = (1.0, 2.0, 4.0, 8.0)
# A prompt that leaves less than this of the window, and an answer of nothing: it was cut in silence.
_FULL_SHARE = 0.99
_FULL = "context_length_exceeded: the prompt filled the context window and left no room for an answer"
# How much of a failure's text stands in `degraded`.
_REASON_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Step: send this call to the server; its answer is the outcome."""

    call: Call[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Step: call the model; its return value is the outcome, or the stream that it returns.

    Attributes:
        streaming: True if the model returns a stream: the outcome is a `OpenStream` that has begun to say something.
        whole: True if that is read to its end: the outcome is a `ModelAnswer`.
    """

    call: Callable[..., object]
    messages: list[WireMessage]
    named: Mapping[str, object]
    streaming: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Step: wait for so long."""

    seconds: float


Step: TypeAlias = Send | Ask | Wait
Steps: TypeAlias = Generator[Step, Any, _T]


def call_model(ask: Ask) -> object:
    """Return value of the model of a blocking program.

    Raises:
        InvalidRequest: It is awaitable.
    """
    answer = ask.call(ask.messages, **ask.named)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise InvalidRequest("The call is asynchronous. Use AsyncMemoryClient, or a call that returns its answer.")
    return answer


async def async_call_model(ask: Ask) -> object:
    """Return value of the model of an async program; a blocking one is called in a thread."""
    call = ask.call
    if inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__):
        answer = call(ask.messages, **ask.named)
    else:
        answer = await asyncio.to_thread(call, ask.messages, **ask.named)
    # A lambda around an async call gives its coroutine.
    return await answer if inspect.isawaitable(answer) else answer


def send(call: Call[_A]) -> Steps[_A]:
    """Send a call; gives its answer."""
    answer: _A = yield Send(call=call)
    return answer


def beginning(calls: SessionCalls, wanted: Wanted) -> Steps[None]:
    """Make sure that a session exists, with the wanted settings."""
    try:
        yield from send(calls.create(wanted))
    except Conflict:
        if wanted.fields() and not wanted.is_met((yield from send(calls.status()))):
            yield from send(calls.update(wanted.fields()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Options of a turn.

    Attributes:
        call: The model: takes messages, gives an answer.
        user: The user's words, as messages; None if they were appended before.
        prompt: Options of the prompt, by the names of `PromptOptions`, `format` too.
        wire: Shape of the messages.
        larger_model: Name and callable of a model that continues where the session's window is too small.
        streaming: True if the model returns streams.
    """

    call: Callable[..., object]
    user: object
    prompt: Mapping[str, object]
    wire: Wire = "openai"
    max_retries: int = DEFAULT_MAX_RETRIES
    max_wait_seconds: float = DEFAULT_MAX_WAIT_SECONDS
    larger_model: tuple[str, Callable[..., object]] | None = None
    streaming: bool = False


def completing(calls: SessionCalls, turn: Turn) -> Steps[Reply]:
    """Play a turn."""
    return (yield from PlayedTurn(calls=calls, turn=turn).run())


@dataclass(slots=True, kw_only=True)
class PlayedTurn:
    """A turn as it is played: whole by `run`, or up to the first words of a stream by `opening`, and then by `ending`.

    Attributes:
        context: The prompt that was made first.
        stream: The stream, once the model has begun to say something; None for a command, which no model answers.
    """

    calls: SessionCalls
    turn: Turn
    attempts: int = 0
    retries: int = 0
    waits: int = 0
    forced: bool = False
    window_tokens: int = 0
    flush: Flush | None = None
    compactions: list[CompactionReceipt] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    context: SessionContext | None = None
    stream: OpenStream | None = None

    def run(self) -> Steps[Reply]:
        """Play it to its end."""
        context = yield from self._prepare()
        if context.command is not None:
            return self._command_reply(context)
        return (yield from self._make_reply((yield from self._first_answer(self._ask(context)))))

    def opening(self) -> Steps[None]:
        """Play it up to the first words of the stream."""
        context = yield from self._prepare()
        if context.command is None:
            self.stream = yield from self._first_stream(self._ask(context))

    def ending(self, cut: str = "") -> Steps[Reply]:
        """Append what the stream has said.

        Args:
            cut: Why it was broken off; empty if it was not.
        """
        assert self.context is not None
        if self.stream is None:
            return self._command_reply(self.context)
        answer = self.stream.growing.answer(whole=not cut)
        if not cut and self.window_tokens and prompt_tokens(answer.usage) > self.window_tokens:
            self.degraded.append("prompt: the provider cut it in silence, as its usage says; the answer had begun.")
        return (yield from self._make_reply(answer, cut))

    def _prepare(self) -> Steps[SessionContext]:
        """The prompt, once the user's words are appended and the agent was asked for memories."""
        user = self.turn.user
        if user is not None:
            fields = {"role": "user", "content": user} if isinstance(user, str) else user
            yield from send(self.calls.append(fields, None, None))
        context = yield from self._context()
        self.context = context
        self._note(context)
        if context.flush is not None and context.flush.prompt is not None:
            yield from self._flush_by_agent(context.flush)
        return context

    def _make_reply(self, answer: ModelAnswer, cut_text: str = "") -> Steps[Reply]:
        """The reply, once its answer is appended."""
        messages = yield from self._append_answer(answer, cut_text)
        return Reply(
            message=answer.message,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            context=self.context,
            attempts=self.attempts,
            compactions=tuple(self.compactions),
            flush=self.flush,
            appended=messages,
            cut=cut_text,
            degraded=tuple(self.degraded),
        )

    def _context(self) -> Steps[SessionContext]:
        """The prompt; that of the larger model, if the session's own window cannot take it."""
        try:
            return (yield from send(self.calls.context(**self.turn.prompt)))
        except MemoryServiceError as error:
            if not (yield from self._is_too_small(error)):
                raise
            return (yield from self._with_larger(_reason(error)))

    def _is_too_small(self, error: MemoryServiceError) -> Steps[bool]:
        """True if a prompt was refused for the window, and there is a larger model."""
        if self.turn.larger_model is None or error.status != 422:
            return False
        if isinstance(error, Incompressible):
            return True
        return (yield from send(self.calls.status())).context_window.problem == "refuse"

    def _with_larger(self, reason: str) -> Steps[SessionContext]:
        """The prompt, once the session uses the larger model; it stays with it."""
        assert self.turn.larger_model is not None
        name, call = self.turn.larger_model
        self.turn = replace(self.turn, call=call, larger_model=None)
        self.degraded.append(f"model: the session goes on with {name}. {reason}")
        # A window that was set for the other model does not hold for this one.
        yield from send(self.calls.update({"model": name, "context_window": None}))
        return (yield from send(self.calls.context(**self.turn.prompt)))

    def _command_reply(self, context: SessionContext) -> Reply:
        """Reply to a command; no model is called for it, and nothing is appended."""
        return Reply(
            message={"role": "assistant", "content": _compaction_note(context)},
            finish_reason="command",
            context=context,
            attempts=0,
            compactions=tuple(self.compactions),
            flush=self.flush,
            degraded=tuple(self.degraded),
        )

    def _first_answer(self, ask: Ask) -> Steps[ModelAnswer]:
        """The first answer worth keeping."""
        while True:
            self.attempts += 1
            try:
                value = yield ask
            except Exception as error:
                ask = yield from self._recover(error)
                continue
            try:
                answer = read_answer(value)
            except MemoryServiceError as error:
                if error.status != 502:
                    raise
                # The report of an error, where an answer should be.
                ask = yield from self._recover(error)
                continue
            again = yield from self._retry_if_cut(answer)
            if again is None:
                return answer
            ask = again

    def _first_stream(self, ask: Ask) -> Steps[OpenStream]:
        """The first stream that says something worth keeping."""
        while True:
            self.attempts += 1
            try:
                stream: OpenStream = yield ask
            except Exception as error:
                ask = yield from self._recover(error)
                continue
            # As long as nothing was said, the model can be asked again.
            again = (
                (yield from self._retry_if_cut(stream.growing.answer()))
                if stream.over and not stream.growing.said
                else None
            )
            if again is None:
                return stream
            ask = again

    def _recover(self, error: Exception) -> Steps[Ask]:
        """Messages to send after a failure; raises the failure itself when nothing helps."""
        if self.retries >= self.turn.max_retries:
            raise _with_note(error, f"Given up after {self.retries} retries; see max_retries.")
        self.retries += 1
        try:
            recovery = yield from send(self.calls.overflow(error, None, None, **self.turn.prompt))
        except MemoryServiceError as failure:
            raise _with_note(error, f"Not tried again: the recovery failed. {failure}") from failure
        if recovery.action == "give_up":
            if recovery.kind != "token_overflow" or self.turn.larger_model is None:
                raise _with_note(error, recovery.reason)
            context = yield from self._with_larger(recovery.reason)
            self._note(context)
            return self._ask(context)
        seconds = refusal_of(error).retry_after_seconds
        pause = self._pause(recovery, recovery.retry_after_seconds if seconds is None else seconds)
        if pause > self.turn.max_wait_seconds:
            raise _with_note(
                error,
                f"Not tried again: the provider asks to wait {pause:g} seconds, and max_wait_seconds is "
                f"{self.turn.max_wait_seconds:g}.",
            )
        if pause > 0:
            yield Wait(seconds=pause)
        self._note(recovery)
        return self._ask(recovery)

    def _pause(self, recovery: Recovery, asked_value: float | None) -> float:
        if recovery.remedy != "wait":
            return asked_value or 0.0
        backoff = _BACKOFF_SECONDS[min(self.waits, len(_BACKOFF_SECONDS) - 1)]
        self.waits += 1
        return min(backoff, self.turn.max_wait_seconds) if asked_value is None else asked_value

    def _retry_if_cut(self, answer: ModelAnswer) -> Steps[Ask | None]:
        """Messages to send instead, if the prompt or the end of the answer was cut; None to keep the answer."""
        counted_prompt_tokens = prompt_tokens(answer.usage)
        full = answer.is_cut and answer.empty and counted_prompt_tokens >= _FULL_SHARE * self.window_tokens
        if self.retries >= self.turn.max_retries or not self.window_tokens:
            return None
        try:
            if counted_prompt_tokens > self.window_tokens or full:
                return (yield from self._silently_cut(answer, full=counted_prompt_tokens <= self.window_tokens))
            if answer.is_cut and not self.forced:
                return (yield from self._compact_once())
        except MemoryServiceError as error:
            self.degraded.append(f"recovery: {_reason(error)}")
        return None

    def _silently_cut(self, answer: ModelAnswer, *, full: bool) -> Steps[Ask | None]:
        self.retries += 1
        text = _FULL if full else ""
        recovery = yield from send(self.calls.overflow(text, answer.usage, None, **self.turn.prompt))
        if recovery.action == "give_up":
            self.degraded.append(f"prompt: the provider cut it in silence. {recovery.reason}")
            return None
        self._note(recovery)
        return self._ask(recovery)

    def _compact_once(self) -> Steps[Ask | None]:
        """Compact once where an answer was cut, as the preset `turns` wants."""
        self.forced = True
        if (yield from send(self.calls.status())).preset != "turns":
            return None
        receipt = yield from send(self.calls.compact(trigger="overflow", force=True))
        if not receipt.applied:
            self.degraded.append(f"answer: it was cut, and compacting did not help. {receipt.reason}")
            return None
        self.retries += 1
        self.compactions.append(receipt)
        context = yield from send(self.calls.context(**self.turn.prompt))
        self._note(context)
        return self._ask(context)

    def _flush_by_agent(self, flush: Flush) -> Steps[None]:
        """Let the agent find the memories; a failure does not stop the turn, the next context asks again."""
        prompt = str(self.turn.prompt["system_prompt"])
        system = "\n\n".join(part for part in (prompt, flush.system_prompt) if part)
        question: WireMessage = {"role": "user", "content": flush.prompt}
        try:
            view = yield from send(self.calls.messages("model", self.turn.wire))
            opening: list[WireMessage] = [{"role": "system", "content": system}] if _in_list(self.turn) else []
            fields = {} if _in_list(self.turn) else {"system": system}
            messages = [*opening, *view.messages, question]
            ask = Ask(call=self.turn.call, messages=messages, named=fields, streaming=self.turn.streaming, whole=True)
            answer = read_answer((yield ask))
            if not answer.text.strip():
                self.degraded.append("flush: the agent answered nothing; it is asked again next time.")
                return
            self.flush = yield from send(self.calls.flush(answer.text))
            self.degraded += self.flush.degraded
        except Exception as error:
            self.degraded.append(f"flush: {_reason(error)}")

    def _append_answer(self, answer: ModelAnswer, text: str) -> Steps[AppendedMessages | None]:
        if answer.empty:
            said_text = (
                f"it was broken off before the model said anything ({text})" if text else "the model said nothing"
            )
            self.degraded.append(f"answer: {said_text}; nothing was appended.")
            return None
        try:
            message = {**answer.message, CUT: text} if text else answer.message
            messages = yield from send(self.calls.append(message, answer.usage, None))
        except MemoryServiceError as error:
            self.degraded.append(f"answer: it was not appended. {_reason(error)}")
            return None
        self.degraded += messages.degraded
        return messages

    def _ask(self, value: SessionContext | Recovery) -> Ask:
        named_fields = {} if _in_list(self.turn) else {"system": value.system or ""}
        return Ask(call=self.turn.call, messages=value.messages, named=named_fields, streaming=self.turn.streaming)

    def _note(self, value: SessionContext | Recovery) -> None:
        if value.tokens is not None:
            self.window_tokens = value.tokens.window
        if value.compaction is not None and value.compaction.applied:
            self.compactions.append(value.compaction)
        if isinstance(value, SessionContext) and value.flush is not None and value.flush.prompt is None:
            self.flush = value.flush
        self.degraded += [missing for missing in value.degraded if missing not in self.degraded]


def _compaction_note(context: SessionContext) -> str:
    receipt = context.compaction
    if receipt is None:
        return " ".join(("Nothing was compacted.", *context.degraded))
    if not receipt.applied:
        return f"Nothing was compacted: {receipt.reason}"
    return f"Compacted: {receipt.tokens_before:,} -> {receipt.tokens_after:,} tokens."


def _in_list(turn: Turn) -> bool:
    """True if the system prompt is one of the messages; Anthropic's stands beside them."""
    return turn.wire != "anthropic"


def _with_note(error: Exception, reason: str) -> Exception:
    error.add_note(f"memory-service: {reason}")
    return error


def broken_off(error: Exception, reply: Reply) -> UpstreamFailed:
    """The error of a stream that failed in the middle, and where its beginning is."""
    where = (
        "What was said before is in the session, marked as broken off: go on with further words of the user."
        if reply.appended is not None
        else "Nothing of it is in the session: complete again without `user`."
    )
    return UpstreamFailed(f"The model's stream broke off: {_reason(error)} {where}", transient=True)


def _reason(error: Exception) -> str:
    text = refusal_of(error).text
    return text if len(text) <= _REASON_CHARS else f"{text[: _REASON_CHARS - 1]}…"

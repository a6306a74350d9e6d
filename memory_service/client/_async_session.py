"""`AsyncSession`, one conversation over HTTP, for async programs.

Invariants: a call is repeated only where that does nothing twice; every failure leaves as an error of
`memory_service.errors`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any, Literal, TypeVar, Unpack, overload

from memory_service import schemas
from memory_service.client import _completion, _session_wire
from memory_service.client._async_connection import AsyncConnection
from memory_service.client._async_stream import AsyncModelStream, AsyncReplyStream
from memory_service.client._completion import Ask, PlayedTurn, Send, Step, Steps, Turn
from memory_service.client._messages import Reply
from memory_service.client._session_wire import SessionCalls, Wanted
from memory_service.schemas.sessions import TRIM_KEEP_LAST

_T = TypeVar("_T")


class AsyncSession:
    """One conversation: everything ever said, and the view of it that fits the model.

    Made by `AsyncMemoryClient.session`, which sends nothing: the first thing that is said begins it on the server.

    ```python
    session = memory.session("support-42", model="gpt-4o")
    await session.append({"role": "user", "content": "When do we deploy?"})
    prompt = (await session.context(system_prompt="You are …")).messages

    async def call(messages):
        return await litellm.acompletion("gpt-4o", messages, tools=TOOLS)

    reply = await session.complete(call, user="And on holidays?")
    while reply.tool_calls:
        await session.append([result_of(each) for each in reply.tool_calls])
        reply = await session.complete(call)
    print(reply.text)
    ```

    Methods raise errors of `memory_service.errors`, as those of the client do. Use within one event loop.

    Attributes:
        session_id: Its id.
    """

    def __init__(self, connection: AsyncConnection, workspace: str, session_id: str, wanted: Wanted) -> None:
        self.session_id = session_id
        self._connection = connection
        self._calls = SessionCalls(workspace, session_id)
        self._wanted = wanted
        self._begun = False

    async def append(
        self,
        messages: object,
        usage: object = None,
        *,
        finish_reason: str | None = None,
        idempotency_key: str | None = None,
        after_seq: int | None = None,
    ) -> schemas.AppendedMessages:
        """Append what was said; it is on the disk when this returns. A request that is sent again appends once.

        Args:
            messages: A message or a list of them, in OpenAI's or Anthropic's shape; objects of their packages too.
            usage: What the provider counted for the answer among them, as it came.
            finish_reason: The provider's word for why that answer ended; `length` makes the preset `turns` compact.
            idempotency_key: Names what is said, so that saying it again appends nothing again; made unless given.
            after_seq: Number of the last message of the prompt that these answer (`last_seq` of a conversation), for
                an answer that comes late: what the log has behind it already is not appended again, and where it went
                on otherwise meanwhile, they go on in a branch.
        """
        call = self._calls.append(messages, usage, idempotency_key, finish_reason, after_seq)
        if self._wanted:
            await self._begin()
        return await self._connection.send(call)

    async def context(
        self,
        query: str | None = None,
        system_prompt: str = "",
        memory_budget_tokens: int = 2000,
        *,
        max_tokens: int | None = None,
        auto: bool = True,
        tools: Collection[object] | None = None,
        recall: schemas.RecallMode = "auto",
        order: schemas.Order | None = None,
        min_relevance: float | None = None,
        format: schemas.Wire = "openai",
    ) -> schemas.SessionContext:
        """The messages to send to the model: complete, valid for its provider, and within the window.

        Args:
            query: What to recall memories for; else the last message of the user decides.
            system_prompt: Stands before everything.
            memory_budget_tokens: Most tokens of the memories with their wrapper.
            max_tokens: The longest prompt wanted; else what the window leaves beside the answer.
            auto: Flush and compact first if that is due.
            tools: Schemas of the agent's tools; they are counted, and not sent back.
            recall: Whether memories are searched.
            order: `memory_first` puts memories before what was said in sessions; None is as the preset has it.
            min_relevance: Memories less relevant than this stay out; None is the setting `recall.min_relevance`.
            format: The shape of the messages.

        Raises:
            Incompressible: It cannot be made to fit; the message names the part.
        """
        prompt = _session_wire.prompt_options(
            query, system_prompt, memory_budget_tokens, max_tokens, tools, recall, order, min_relevance, format
        )
        call = self._calls.context(**prompt, auto=auto)
        await self._begin()
        return await self._connection.send(call)

    async def conversation(
        self,
        messages: object,
        query: str | None = None,
        system_prompt: str = "",
        memory_budget_tokens: int = 2000,
        *,
        model: str | None = None,
        max_tokens: int | None = None,
        auto: bool = True,
        tools: Collection[object] | None = None,
        recall: schemas.RecallMode = "auto",
        order: schemas.Order | None = None,
        min_relevance: float | None = None,
        format: schemas.Wire = "openai",
    ) -> schemas.ConversationContext:
        """The messages to send to the model, for a conversation that the caller keeps and gives whole.

        What the session does not have yet is appended. Messages that differ from what was said go on in a branch of
        the session, whose id the answer has.

        Args:
            messages: All that was said so far, without the system prompt.
            query: See `context`, as for the others.
            system_prompt: Stands before everything.
            memory_budget_tokens: Most tokens of the memories with their wrapper.
            model: The model that the session is with, if this begins it.
            max_tokens: The longest prompt wanted.
            auto: Flush and compact first if that is due.
            tools: Schemas of the agent's tools.
            recall: Whether memories are searched.
            order: `memory_first` puts memories before what was said in sessions.
            min_relevance: Memories less relevant than this stay out; None is the setting `recall.min_relevance`.
            format: The shape of the messages, of those that are given too.

        Raises:
            InvalidRequest: A message is in no shape that is known.
            Incompressible: It cannot be made to fit.
        """
        prompt = _session_wire.prompt_options(
            query, system_prompt, memory_budget_tokens, max_tokens, tools, recall, order, min_relevance, format
        )
        call = self._calls.conversation(messages, **prompt, model=model, auto=auto)
        if self._wanted:
            await self._begin()
        return await self._connection.send(call)

    @overload
    async def complete(
        self,
        call: Callable[..., object],
        user: object = None,
        *,
        system_prompt: str = "",
        query: str | None = None,
        tools: Collection[object] | None = None,
        memory_budget_tokens: int = 2000,
        max_tokens: int | None = None,
        recall: schemas.RecallMode = "auto",
        order: schemas.Order | None = None,
        min_relevance: float | None = None,
        format: schemas.Wire = "openai",
        max_retries: int = _completion.DEFAULT_MAX_RETRIES,
        max_wait_seconds: float = _completion.DEFAULT_MAX_WAIT_SECONDS,
        larger_model: tuple[str, Callable[..., object]] | None = None,
        stream: Literal[False] = False,
    ) -> Reply: ...

    @overload
    async def complete(
        self,
        call: Callable[..., object],
        user: object = None,
        *,
        system_prompt: str = "",
        query: str | None = None,
        tools: Collection[object] | None = None,
        memory_budget_tokens: int = 2000,
        max_tokens: int | None = None,
        recall: schemas.RecallMode = "auto",
        order: schemas.Order | None = None,
        min_relevance: float | None = None,
        format: schemas.Wire = "openai",
        max_retries: int = _completion.DEFAULT_MAX_RETRIES,
        max_wait_seconds: float = _completion.DEFAULT_MAX_WAIT_SECONDS,
        larger_model: tuple[str, Callable[..., object]] | None = None,
        stream: Literal[True],
    ) -> AsyncReplyStream: ...

    async def complete(
        self,
        call: Callable[..., object],
        user: object = None,
        *,
        system_prompt: str = "",
        query: str | None = None,
        tools: Collection[object] | None = None,
        memory_budget_tokens: int = 2000,
        max_tokens: int | None = None,
        recall: schemas.RecallMode = "auto",
        order: schemas.Order | None = None,
        min_relevance: float | None = None,
        format: schemas.Wire = "openai",
        max_retries: int = _completion.DEFAULT_MAX_RETRIES,
        max_wait_seconds: float = _completion.DEFAULT_MAX_WAIT_SECONDS,
        larger_model: tuple[str, Callable[..., object]] | None = None,
        stream: bool = False,
    ) -> Reply | AsyncReplyStream:
        """Play a turn: append what the user says, fit the prompt, call the model, append its answer.

        If the call raises, the server says what its error means: the prompt is compacted or cut, or the time waited
        that the provider asks for, and the model called again. If the prompt cannot be helped, the provider's own
        exception is raised, with a note why; what the user said is in the session then, so complete again without
        `user`. An agent that is asked for memories is called once more, before the turn.

        Args:
            call: Your model: takes the list of messages; gives a text, a message, or what openai, litellm or
                anthropic give without streaming. With the format `anthropic` it takes `system` as well.
            user: What the user says, as a text or as messages; None to go on, as after results of tools.
            system_prompt: Stands before everything.
            query: What to recall memories for; else the last message of the user decides.
            tools: Schemas of the tools that the call offers, to be counted.
            memory_budget_tokens: Most tokens of the memories with their wrapper.
            max_tokens: The longest prompt wanted.
            recall: Whether memories are searched.
            order: `memory_first` puts memories before what was said in sessions; None is as the preset has it.
            min_relevance: Memories less relevant than this stay out; None is the setting `recall.min_relevance`.
            format: The shape of the messages.
            max_retries: How often the model is called again at most.
            max_wait_seconds: The longest wait that a provider may ask for.
            larger_model: The name of a model with a larger window and the call for it: where the session's own window
                cannot take the prompt, the session goes on with that model, and stays with it.
            stream: True if the call returns a stream of its provider's package, or of texts: its chunks are given as
                they come, from the first in which something is said. The model is not called again after that.
        """
        prompt = _session_wire.prompt_options(
            query, system_prompt, memory_budget_tokens, max_tokens, tools, recall, order, min_relevance, format
        )
        turn = Turn(
            call=call,
            user=user,
            prompt=prompt,
            wire=format,
            max_retries=max_retries,
            max_wait_seconds=max_wait_seconds,
            larger_model=larger_model,
            streaming=stream,
        )
        return await self._complete(turn)

    async def _complete(self, turn: Turn) -> Reply | AsyncReplyStream:
        if self._wanted or turn.user is None:
            await self._begin()
        if turn.streaming:
            streamed_turn = PlayedTurn(calls=self._calls, turn=turn)
            await self._play(streamed_turn.opening())
            return AsyncReplyStream(streamed_turn, self._play)
        return await self._play(_completion.completing(self._calls, turn))

    async def messages(self, view: schemas.ViewName = "model", *, format: schemas.Wire = "openai") -> schemas.Messages:
        """The messages that the model sees; or, with `log`, all messages of the log, with their numbers."""
        return await self._connection.send(self._calls.messages(view, format))

    async def message(self, seq: int) -> dict[str, Any]:
        """One message of the log, as it was said."""
        return (await self._connection.send(self._calls.message(seq))).root

    async def erase(self, seq: int) -> schemas.ErasedMessages:
        """Erase one message, from log and index, with the compactions whose summaries were made of it."""
        return await self._connection.send(self._calls.erase(seq))

    async def search(self, query: str, limit: int = 10) -> schemas.FoundMessages:
        """Messages about something, by words alone, whether the view still shows them or not."""
        return await self._connection.send(self._calls.search(query, limit))

    async def compact(
        self,
        mode: schemas.CompactionMode = "apply",
        *,
        preset: str | None = None,
        instructions: str | None = None,
        target_tokens: int | None = None,
        force: bool = False,
        trigger: schemas.Trigger = "manual",
        identifier_policy: schemas.IdentifierPolicy | None = None,
        overrides: Mapping[str, Any] | None = None,
        model: str | None = None,
    ) -> schemas.CompactionReceipt:
        """Let a summary stand for the old messages of the view; the log keeps every one of them.

        Args:
            mode: `plan` says what would go, `preview` writes the summary too, `apply` does it.
            preset: How to compact, by name; else as the session's settings have it.
            instructions: What the summary should look at.
            target_tokens: What the view should come to.
            force: Compact although there is room.
            trigger: Why.
            identifier_policy: What the summary does with ids and paths.
            overrides: Numbers of the preset for this compaction alone, by name.
            model: Who writes the summary; else as the session's settings have it.
        """
        return await self._connection.send(
            self._calls.compact(
                mode=mode,
                preset=preset,
                instructions=instructions,
                target_tokens=target_tokens,
                force=force,
                trigger=trigger,
                identifier_policy=identifier_policy,
                overrides=overrides,
                model=model,
            )
        )

    async def plan(
        self, *, preset: str | None = None, target_tokens: int | None = None, force: bool = False
    ) -> schemas.CompactionReceipt:
        """The plan of a compaction, without a model; changes nothing."""
        return await self.compact("plan", preset=preset, target_tokens=target_tokens, force=force)

    async def preview(
        self,
        *,
        preset: str | None = None,
        instructions: str | None = None,
        target_tokens: int | None = None,
        force: bool = False,
    ) -> schemas.CompactionReceipt:
        """A compaction with its summary and the view behind it; changes nothing."""
        return await self.compact(
            "preview", preset=preset, instructions=instructions, target_tokens=target_tokens, force=force
        )

    async def compactions(self) -> list[schemas.CompactionReceipt]:
        """All compactions, newest first, undone ones too."""
        return (await self._connection.send(self._calls.compactions())).compactions

    async def prompts(self) -> list[schemas.PromptMeasure]:
        """The sizes of the last prompts, part by part, the oldest first."""
        return (await self._connection.send(self._calls.prompts())).prompts

    async def undo(self, compaction_id: str | None = None) -> schemas.CompactionReceipt:
        """Back to the exact view before a compaction; the newest that counts unless one is named.

        Raises:
            NotFound: There is none.
        """
        if compaction_id is None:
            compaction_id = _session_wire.newest_active(await self._connection.send(self._calls.compactions()))
        return await self._connection.send(self._calls.undo(compaction_id))

    async def flush(self, reply: str | None = None) -> schemas.Flush:
        """Write down the memories of what was said since the last flush; `reply` is the agent's, if it was asked."""
        return await self._connection.send(self._calls.flush(reply))

    async def flush_prompt(self) -> schemas.FlushPrompt:
        """The prompt for an agent that finds the memories itself."""
        return await self._connection.send(self._calls.flush_prompt())

    async def pin(self, text: str | None = None, seq: int | None = None) -> schemas.Pin:
        """Keep a text, or a message by its number, word for word in every view."""
        call = self._calls.pin(text, seq)
        if self._wanted:
            await self._begin()
        return await self._connection.send(call)

    async def pins(self) -> list[schemas.Pin]:
        """All pins, oldest first."""
        return (await self._connection.send(self._calls.pins())).pins

    async def unpin(self, pin_id: str) -> schemas.RemovedPin:
        """Keep something no longer."""
        return await self._connection.send(self._calls.unpin(pin_id))

    async def overflow(
        self, error: BaseException | str, usage: object = None, *, status: int | None = None, **prompt: object
    ) -> schemas.Recovery:
        """The remedy for a prompt that its provider refused: see `action`, and send its `messages` on `retry`.

        Args:
            error: The exception, or the text of it; "" with `usage` if the prompt was cut in silence.
            usage: What the provider counted.
            status: The HTTP status, if the error does not know it.
            prompt: How the new prompt is made, by the names of `context`; else as the last one was.
        """
        return await self._connection.send(self._calls.overflow(error, usage, status, **prompt))

    async def events(self, after: int | None = None) -> AsyncIterator[schemas.SessionEvent]:
        """Events of the session, as they happen, until you stop; a broken connection is made again.

        Args:
            after: The last event that was heard; 0 begins with the oldest that is kept; else those to come.

        Raises:
            ConnectionFailed: The server was not reached several times in a row.
        """
        async for event in self._connection.events(self._calls.events, after):
            yield event

    async def wait_idle(self, timeout_seconds: float = 25.0) -> bool:
        """Wait until no compaction runs and none is to be tried again; False if that takes longer."""
        return (await self._connection.send(self._calls.wait_idle(timeout_seconds))).idle

    async def pending(self, call_ids: Collection[str]) -> schemas.AwaitedCalls:
        """Note that calls of tools run for long: until their results come, they are not taken for lost."""
        return await self._connection.send(self._calls.pending(call_ids))

    async def branch(self, seq: int, *, session_id: str | None = None, title: str = "") -> schemas.Session:
        """Begin a session that has all of this one up to a message; the same again gives the same branch.

        Args:
            seq: The number of the last message that both have.
            session_id: The id of the branch; else made from its title or the number.
            title: Its name for people.
        """
        return await self._connection.send(self._calls.branch(seq, session_id, title))

    async def trim(self, keep_last: int = TRIM_KEEP_LAST) -> schemas.Trimmed:
        """Move all but the last lines of the log into a file beside it."""
        return await self._connection.send(self._calls.trim(keep_last))

    async def restore(self) -> schemas.Restored:
        """Take the last trim back."""
        return await self._connection.send(self._calls.restore())

    async def status(self) -> schemas.Session:
        """Its size and pressure, its window and where that is from, what was compacted, flushed and pinned."""
        return await self._connection.send(self._calls.status())

    async def update(self, **changes: Unpack[schemas.SessionChanges]) -> schemas.Session:
        """Set its model, window or settings anew.

        Args:
            changes: `model`, `context_window`, `settings`; what is not named stays, None leaves it to the server again.
        """
        session = await self._connection.send(self._calls.update(changes))
        self._wanted = self._wanted.with_changes(changes)
        return session

    async def delete(self) -> schemas.ErasedSession:
        """Erase it, from disk and index; memories that were flushed stay."""
        session = await self._connection.send(self._calls.delete())
        self._begun = False
        return session

    async def _begin(self) -> None:
        if not self._begun:
            await self._play(_completion.beginning(self._calls, self._wanted))
            self._begun = True

    async def _play(self, steps: Steps[_T]) -> _T:
        try:
            step = next(steps)
            while True:
                try:
                    outcome = await self._take(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(outcome)
        except StopIteration as iteration:
            done_value: _T = iteration.value
            return done_value
        finally:
            steps.close()

    async def _take(self, step: Step) -> object:
        if isinstance(step, Send):
            return await self._connection.send(step.call)
        if isinstance(step, Ask):
            return await self._call_model(step)
        await asyncio.sleep(step.seconds)
        return None

    async def _call_model(self, ask: Ask) -> object:
        value = await _completion.async_call_model(ask)
        if not ask.streaming:
            return value
        stream = AsyncModelStream(value)
        await stream.begin(whole=ask.whole)
        return stream.growing.answer() if ask.whole else stream

"""The session half of `MemoryService`: one method per use case of a session, named as in the client.

Invariants: each takes the name of a workspace and the id of a session first; requests and answers are the values of
`memory_service.schemas`, so that an answer here is what the HTTP API sends; what cannot be written makes no workspace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Unpack

from memory_service.errors import InvalidRequest, NotFound
from memory_service.llm.base import not_cancelled
from memory_service.messages.sizes import TRIM_KEEP_LAST, Usage, tools_tokens
from memory_service.schemas import compaction as made
from memory_service.schemas import sessions as said
from memory_service.service import answers
from memory_service.service.compactions import CompactionCall
from memory_service.service.contexts import ContextCall
from memory_service.service.options import check_new
from memory_service.service.overflows import OverflowCall
from memory_service.service.sessions import check_messages
from memory_service.service.short_term import ShortTermMemory
from memory_service.sessions.folder import check_session_id

if TYPE_CHECKING:
    from memory_service.config import Settings
    from memory_service.events import Subscription

_NEW_SESSION = said.NewSession()
_COMPACTION = made.CompactRequest()
_CONTEXT = made.SessionContextRequest()
_OF_THE_ERROR = frozenset({"error", "status", "usage", "format"})


class SessionUseCases(ABC):
    """The use cases of sessions."""

    settings: Settings

    @abstractmethod
    def sessions(self, workspace: str, *, make: bool = False) -> ShortTermMemory:
        """The parts that work on the sessions of a workspace; see `MemoryService.sessions`."""

    # The session itself

    def create_session(self, workspace: str, request: said.NewSession = _NEW_SESSION) -> said.Session:
        """Begin a session; without an id it gets one. To append to a session begins it as well.

        Raises:
            InvalidName: The id is not one of a session.
            InvalidRequest: A setting is unknown or cannot be used, or the window is too small.
            Conflict: There is a session of that id.
        """
        settings, model, window = request.settings or {}, request.model, request.context_window

        def check() -> None:
            check_new(self.settings, settings, model=model, context_window=window)

        store = self._made_sessions(workspace, request.session_id, check).store
        return answers.session(store.create(request.session_id, model=model, context_window=window, settings=settings))

    def list_sessions(self, workspace: str) -> said.Sessions:
        """All sessions of a workspace, the last active first."""
        return answers.sessions(self.sessions(workspace).store.listed())

    def session_status(self, workspace: str, session_id: str) -> said.Session:
        """A session as it stands: size, pressure, window, what was compacted, flushed and pinned.

        Raises:
            NotFound: There is no such session.
        """
        return answers.session(self.sessions(workspace).store.summary(session_id))

    def update_session(self, workspace: str, session_id: str, **changes: Unpack[said.SessionChanges]) -> said.Session:
        """Change what is set for a session: what is not named stays, None sets nothing of its own any more."""
        return answers.session(self.sessions(workspace).store.update(session_id, changes))

    def delete_session(self, workspace: str, session_id: str) -> said.ErasedSession:
        """Erase a session, from the disk and from the index, and look for it. Memories that were flushed stay."""
        return answers.session_erased(self.sessions(workspace).store.delete(session_id))

    def trim(self, workspace: str, session_id: str, keep_last: int = TRIM_KEEP_LAST) -> said.Trimmed:
        """Move all but the last lines out of the log, into a file beside it; `restore` takes that back."""
        return said.Trimmed(backup=self.sessions(workspace).store.trim(session_id, keep_last))

    def restore(self, workspace: str, session_id: str) -> said.Restored:
        """Take the last trim of a session back; what was appended since stays."""
        self.sessions(workspace).store.restore(session_id)
        return said.Restored(session_id=session_id)

    # Messages

    def append(
        self,
        workspace: str,
        session_id: str,
        messages: Sequence[object],
        *,
        usage: said.UsageReport | None = None,
        finish_reason: str | None = None,
        model: str | None = None,
        key: str | None = None,
    ) -> said.AppendedMessages:
        """Append messages, and what the provider counted for the call that they come from; begins the session.

        Args:
            workspace: Name of the workspace.
            session_id: The session.
            messages: In OpenAI's or Anthropic's shape; kept byte for byte.
            usage: What the provider counted.
            finish_reason: The provider's word for why the answer among them ended.
            model: The model that the session is with, if this begins it.
            key: Idempotency key: the same key again appends nothing again.

        Raises:
            Conflict: The key belongs to other messages.
            InvalidRequest: There are none, or one is in neither shape.
            StorageFailed: The disk did not take them; nothing was appended.
        """
        sessions = self._made_sessions(workspace, session_id, lambda: check_messages(messages))
        counted = _usage_of(usage, model, finish_reason)
        appended = sessions.append(session_id, messages, usage=counted, model=model, key=key)
        unknown = usage is not None and _usage_of(usage) is None
        missing = ["usage: none of its numbers is known; nothing was counted."] if unknown else []
        return answers.appended(appended, missing)

    def messages(
        self,
        workspace: str,
        session_id: str,
        view: said.ViewName = "model",
        *,
        format: said.Wire = "openai",
        since_seq: int = 0,
        limit: int | None = None,
    ) -> said.Messages:
        """What the model sees, valid for a provider; or everything ever said, with the number of each message.

        Args:
            workspace: Name of the workspace.
            session_id: The session.
            view: `model` or `log`.
            format: The shape of the model's view; the log is as it was given.
            since_seq: Of the log: only messages behind this number.
            limit: Of the log: the most messages; None for all.
        """
        store = self.sessions(workspace).store
        if view == "model":
            return answers.messages(store.model_view(session_id, wire=format), format)
        return answers.messages(store.log_view(session_id, since_seq=since_seq, limit=limit), "openai", numbered=True)

    def logged_messages(
        self, workspace: str, session_id: str, *, since_seq: int = 0, limit: int | None = None
    ) -> tuple[Iterator[tuple[int, str]], Sequence[str]]:
        """Number and JSON of all logged messages one by one, to keep memory flat; and the degraded parts."""
        return self.sessions(workspace).store.said(session_id, since_seq=since_seq, limit=limit)

    def message(self, workspace: str, session_id: str, seq: int) -> str:
        """The JSON of one logged message, byte for byte as it was given."""
        return self.sessions(workspace).store.message(session_id, seq)

    def medium(self, workspace: str, session_id: str, seq: int, number: int) -> tuple[bytes, str]:
        """A medium of a logged message (counted from 1) and its MIME type."""
        return self.sessions(workspace).store.medium(session_id, seq, number)

    def session_search(self, workspace: str, session_id: str, query: str, limit: int = 10) -> said.FoundMessages:
        """Search the messages of a session by words, whether its view still shows them or not."""
        return answers.found_messages(self.sessions(workspace).search(session_id, query, limit=limit))

    def pending(self, workspace: str, session_id: str, call_ids: Sequence[str]) -> said.AwaitedCalls:
        """Note that tool calls run for long, so that they are not taken for dead."""
        self.sessions(workspace).store.await_results(session_id, call_ids)
        return said.AwaitedCalls(call_ids=list(call_ids))

    # Pins

    def pin(self, workspace: str, session_id: str, text: str | None = None, *, seq: int | None = None) -> said.Pin:
        """Keep a text, or a message by its number, word for word in every view; a text begins the session.

        Raises:
            InvalidRequest: Not exactly one of them is given, or there is too much.
            NotFound: There is no message of that number.
        """

        def check() -> None:
            if text is None or seq is not None or not text.strip():
                raise InvalidRequest(
                    "A pin is of a text or of a message. Send text, or the seq of a message that is there."
                )

        sessions = self._made_sessions(workspace, session_id, check)
        return answers.pin(sessions.store.pin(session_id, text=text, seq=seq))

    def pins(self, workspace: str, session_id: str) -> said.Pins:
        """All pins of a session, oldest first."""
        return answers.pins(self.sessions(workspace).store.pins(session_id))

    def unpin(self, workspace: str, session_id: str, pin_id: str) -> said.RemovedPin:
        """Keep a pin no longer."""
        self.sessions(workspace).store.unpin(session_id, pin_id)
        return said.RemovedPin(pin_id=pin_id)

    # Prompts

    def session_context(
        self,
        workspace: str,
        session_id: str,
        request: made.SessionContextRequest = _CONTEXT,
        *,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> made.SessionContext:
        """The messages to send to the model, in the shape of `request.format`; flushes and compacts first if due.

        Raises:
            NotFound: There is no such session.
            InvalidRequest: The window is too small, or a number cannot be used.
            Incompressible: The prompt cannot be made to fit.
        """
        sessions = self.sessions(workspace)
        context = sessions.context(session_id, _context_call(request), cancelled=cancelled)
        sent = sessions.sent(session_id, context.prompt.messages, request.format)
        return answers.session_context(context, sent, request.format, fusion=self.settings.ranking.fusion)

    def overflow(
        self,
        workspace: str,
        session_id: str,
        request: made.OverflowRequest,
        *,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> made.Recovery:
        """The next step after a provider refused a prompt, decided and taken: what to send instead, or to give up."""
        sessions = self.sessions(workspace)
        told = request.model_fields_set - _OF_THE_ERROR
        call = OverflowCall(
            error=request.error,
            status=request.status,
            usage=_usage_of(request.usage),
            context=_context_call(request) if told else None,
        )
        done = sessions.recover(session_id, call, cancelled=cancelled)
        return answers.recovery(done, sessions.sent(session_id, done.messages, request.format), request.format)

    # Compactions and flushes

    def compact(
        self,
        workspace: str,
        session_id: str,
        request: made.CompactRequest = _COMPACTION,
        *,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> made.CompactionReceipt:
        """Plan, preview or apply a compaction.

        Raises:
            NotFound: There is no such session.
            Incompressible: What cannot be compacted is larger than the window.
            UpstreamFailed: The model failed and nothing may stand in for it; nothing was changed.
            Conflict: Another process compacted or undid meanwhile; nothing was changed.
        """
        call = CompactionCall(request=request)
        return self.sessions(workspace).compactions.compact(session_id, call, cancelled=cancelled)

    def compactions(self, workspace: str, session_id: str) -> made.Compactions:
        """The receipts of all compactions of a session, newest first, undone ones too."""
        return made.Compactions(compactions=self.sessions(workspace).compactions.past(session_id))

    def compaction(self, workspace: str, session_id: str, compaction_id: str) -> made.CompactionReceipt:
        """The receipt of a compaction."""
        return self.sessions(workspace).compactions.receipt(session_id, compaction_id)

    def undo(self, workspace: str, session_id: str, compaction_id: str | None = None) -> made.CompactionReceipt:
        """Back to the exact view before a compaction, the newest unless named; what was said since stays.

        Raises:
            NotFound: There is no such compaction, or none that counts.
            Conflict: It does not count any more.
        """
        compactions = self.sessions(workspace).compactions
        return compactions.undo(session_id, compaction_id or compactions.newest_active(session_id))

    def flush(
        self,
        workspace: str,
        session_id: str,
        reply: str | None = None,
        *,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> made.Flush:
        """Write down what the messages since the last flush leave behind.

        Args:
            workspace: Name of the workspace.
            session_id: The session.
            reply: What the agent answered to the flush prompt; None lets the service find the memories.
            cancelled: Asked while a model works.
        """
        return self.sessions(workspace).flushes.flush(session_id, reply=reply, cancelled=cancelled)

    def flush_prompt(self, workspace: str, session_id: str) -> made.FlushPrompt:
        """Flush prompt for an agent that finds the memories itself."""
        return self.sessions(workspace).flush_prompt(session_id)

    # Events

    def session_events(self, workspace: str, session_id: str, after: int | None = None) -> Subscription:
        """Subscription to the events of a session, from now on or after a given event; to be closed at the end."""
        return self.sessions(workspace).events(session_id, after_id=after)

    def wait_idle(self, workspace: str, session_id: str, timeout_seconds: float | None = None) -> bool:
        """Wait until no compaction runs and none is to be tried again; tells whether that is so."""
        return self.sessions(workspace).wait_idle(session_id, timeout_seconds=timeout_seconds)

    def _made_sessions(self, workspace: str, session_id: str | None, check: Callable[[], object]) -> ShortTermMemory:
        """The sessions of a workspace, which is made if what is to be written there passes `check`."""
        try:
            return self.sessions(workspace)
        except NotFound:
            if session_id is not None:
                check_session_id(session_id)
            check()
            return self.sessions(workspace, make=True)


def _usage_of(
    report: said.UsageReport | None, model: str | None = None, finish_reason: str | None = None
) -> Usage | None:
    """What a provider counted, whatever its names for it; None if it counted nothing and told nothing.

    Source: OpenAI API reference, "Chat completions", `usage`: `prompt_tokens` hold the cached ones, and so do the
    `input_tokens` of "Responses", which come with `input_tokens_details`. Anthropic API, "Messages": `input_tokens`
    do not hold those that were read from or written to the cache. litellm sends `prompt_tokens` that hold both.
    """
    if report is None or (report.prompt_tokens is None and report.input_tokens is None):
        return Usage(input_tokens=0, model=model, finish_reason=finish_reason) if finish_reason else None
    details = report.prompt_tokens_details or report.input_tokens_details
    told = (details.cached_tokens if details else None) or report.cache_read_input_tokens
    read = told or report.cache_read_tokens or 0
    write = report.cache_creation_input_tokens or report.cache_write_tokens or 0
    whole = report.prompt_tokens if report.prompt_tokens is not None else report.input_tokens or 0
    cached = read + write if report.prompt_tokens is not None else read if report.input_tokens_details else 0
    output = report.completion_tokens if report.completion_tokens is not None else report.output_tokens
    return Usage(
        input_tokens=max(whole - cached, 0),
        output_tokens=output or 0,
        cache_read_tokens=read,
        cache_write_tokens=write,
        model=model,
        finish_reason=finish_reason,
    )


def _context_call(request: made.PromptOptions) -> ContextCall:
    return ContextCall(
        query=request.query,
        system_prompt=request.system_prompt,
        memory_budget_tokens=request.memory_budget_tokens,
        max_tokens=request.max_tokens,
        auto=request.auto if isinstance(request, made.SessionContextRequest) else True,
        tools_tokens=tools_tokens(request.tools),
        recall=request.recall,
        sources=tuple(request.sources),
        order=request.order,
    )

"""The session half of `MemoryService`: one method per use case of a session, named as in the client.

Invariants: each takes the name of a workspace and the id of a session first; requests and answers are the values of
`memory_service.schemas`, so that an answer here is what the HTTP API sends; what cannot be written makes no workspace.
The code of sessions is loaded with the first of them: a search does without.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Unpack

from indexer.common import THROTTLE
from memory_service import schemas
from memory_service.errors import InvalidRequest
from memory_service.llm.base import not_cancelled
from memory_service.llm.token_anchor import usage_of
from memory_service.runtime import search_answers
from memory_service.schemas import compaction as made
from memory_service.schemas.sessions import TRIM_KEEP_LAST

if TYPE_CHECKING:
    from memory_service.config import Settings
    from memory_service.runtime.display import ShownMessage
    from memory_service.runtime.events import Subscription
    from memory_service.runtime.session_details import SessionDetails
    from memory_service.service.short_term import WorkspaceSessions

_NEW_SESSION = schemas.NewSession()
_COMPACTION = made.CompactRequest()
_CONTEXT = made.SessionContextRequest()


class SessionUseCases(ABC):
    """The use cases of sessions."""

    settings: Settings

    @abstractmethod
    def sessions(self, workspace: str, *, make: bool = False) -> WorkspaceSessions:
        """The parts that work on the sessions of a workspace; see `MemoryService.sessions`."""

    @abstractmethod
    def has_workspace(self, workspace: str) -> bool:
        """True if somebody has written to a workspace."""

    # The session itself

    def create_session(self, workspace: str, request: schemas.NewSession = _NEW_SESSION) -> schemas.Session:
        """Begin a session; without an id it gets one. To append to a session begins it as well.

        Raises:
            InvalidName: The id is not one of a session.
            InvalidRequest: A setting is unknown or cannot be used, or the window is too small.
            Conflict: There is a session of that id.
        """
        from memory_service.runtime.session_options import check_new

        settings, model, window = request.settings or {}, request.model, request.context_window

        def check() -> None:
            check_new(self.settings, settings, model=model, context_window=window)

        store = self._made_sessions(workspace, request.session_id, check).store
        return store.create(
            request.session_id, model=model, context_window=window, settings=settings, title=request.title
        )

    def branch(self, workspace: str, session_id: str, request: schemas.NewBranch) -> schemas.Session:
        """Begin a session with all that another one has up to a message; the same again gives the same branch.

        Raises:
            InvalidName: The id is not one of a session.
            NotFound: There is no such session, or it has no such message.
            Conflict: There is another session with the id of the branch.
        """
        store = self.sessions(workspace).store
        return store.branch(session_id, request.seq, branch_id=request.session_id, title=request.title)

    def list_sessions(self, workspace: str) -> schemas.Sessions:
        """All sessions of a workspace, the last active first."""
        sessions = self.sessions(workspace).store.list_sessions()
        names = [session.session_id for session in sessions if session.last_seq is None and session.size_bytes]
        why = "does not end with a record of this service. Read it to see why."
        return schemas.Sessions(sessions=sessions, degraded=[f"log: {name} {why}" for name in names])

    def session_status(self, workspace: str, session_id: str) -> schemas.Session:
        """A session as it stands: size, pressure, window, what was compacted, flushed and pinned.

        Raises:
            NotFound: There is no such session.
        """
        return self.sessions(workspace).store.summary(session_id)

    def session_details(self, workspace: str, session_id: str) -> SessionDetails:
        """Numbers of a session beside its status, for people."""
        from memory_service.runtime.session_details import details_of

        return details_of(self.sessions(workspace).snapshot(session_id))

    def shown_messages(
        self, workspace: str, session_id: str, view: schemas.ViewName = "model", within: range | None = None
    ) -> list[ShownMessage]:
        """The messages of a session as a person reads them, with what was done to each; all, or a range of numbers."""
        from memory_service.runtime.display import shown_log, shown_view

        snapshot = self.sessions(workspace).snapshot(session_id)
        return shown_log(snapshot, within) if view == "log" else shown_view(snapshot, within)

    def unread_log(self, workspace: str, session_id: str) -> int:
        """The last number of a log of which so much is not read yet that it takes a while; 0 for any other."""
        return self.sessions(workspace).session(session_id).unread_log()

    def log_part(self, workspace: str, session_id: str, within: range) -> list[ShownMessage]:
        """The messages of a log with numbers in a range, as a person reads them, without a look at the rest."""
        from memory_service.runtime.display import shown_part

        return shown_part(self.sessions(workspace).session(session_id).log_part(within))

    def update_session(
        self, workspace: str, session_id: str, **changes: Unpack[schemas.SessionChanges]
    ) -> schemas.Session:
        """Change what is set for a session: what is not named stays, None sets nothing of its own any more."""
        return self.sessions(workspace).store.update(session_id, changes)

    def delete_session(self, workspace: str, session_id: str) -> schemas.ErasedSession:
        """Erase a session, from the disk and from the index, and look for it. Memories that were flushed stay."""
        return self.sessions(workspace).store.delete(session_id)

    def erase_messages(self, workspace: str, session_id: str, seqs: Sequence[int]) -> schemas.ErasedMessages:
        """Erase messages, from the log and from the index, with the compactions that were made of them.

        Raises:
            NotFound: There is no such session, or it has none of these messages.
        """
        return self.sessions(workspace).store.erase(session_id, seqs)

    def trim(self, workspace: str, session_id: str, keep_last: int = TRIM_KEEP_LAST) -> schemas.Trimmed:
        """Move all but the last lines out of the log, into a file beside it; `restore` takes that back."""
        return schemas.Trimmed(backup=self.sessions(workspace).store.trim(session_id, keep_last))

    def restore(self, workspace: str, session_id: str) -> schemas.Restored:
        """Take the last trim of a session back; what was appended since stays."""
        self.sessions(workspace).store.restore(session_id)
        return schemas.Restored(session_id=session_id)

    # Messages

    @THROTTLE.foreground()
    def append(
        self,
        workspace: str,
        session_id: str,
        messages: Sequence[object],
        *,
        usage: schemas.UsageReport | None = None,
        finish_reason: str | None = None,
        model: str | None = None,
        key: str | None = None,
    ) -> schemas.AppendedMessages:
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
        from memory_service.runtime.sent_messages import check_messages

        sessions = self._made_sessions(workspace, session_id, lambda: check_messages(messages))
        counted_usage = usage_of(usage, model, finish_reason)
        appended_messages = sessions.append(session_id, messages, usage=counted_usage, model=model, key=key)
        if usage is None or usage_of(usage) is not None:
            return appended_messages
        missing = "usage: none of its numbers is known; nothing was counted."
        return appended_messages.model_copy(update={"degraded": [*appended_messages.degraded, missing]})

    @THROTTLE.foreground()
    def messages(
        self,
        workspace: str,
        session_id: str,
        view: schemas.ViewName = "model",
        *,
        format: schemas.Wire = "openai",
        since_seq: int = 0,
        limit: int | None = None,
    ) -> schemas.Messages:
        """The messages the model sees, valid for a provider; or everything ever said, with the number of each message.

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
            return store.model_view(session_id, wire=format)
        return store.log_view(session_id, since_seq=since_seq, limit=limit)

    def logged_messages(
        self, workspace: str, session_id: str, *, since_seq: int = 0, limit: int | None = None
    ) -> tuple[Iterator[tuple[int, str]], Sequence[str]]:
        """Number and JSON of all logged messages one by one, to keep memory flat; and the degraded parts."""
        return self.sessions(workspace).store.iter_messages(session_id, since_seq=since_seq, limit=limit)

    def message(self, workspace: str, session_id: str, seq: int) -> str:
        """The JSON of one logged message, byte for byte as it was given."""
        return self.sessions(workspace).store.message(session_id, seq)

    def medium(self, workspace: str, session_id: str, seq: int, number: int) -> tuple[bytes, str]:
        """A medium of a logged message (counted from 1) and its MIME type."""
        return self.sessions(workspace).store.medium(session_id, seq, number)

    @THROTTLE.foreground()
    def session_search(self, workspace: str, session_id: str, query: str, limit: int = 10) -> schemas.FoundMessages:
        """Search the messages of a session by words, whether its view still shows them or not."""
        return self.sessions(workspace).search(session_id, query, limit=limit)

    def pending(self, workspace: str, session_id: str, call_ids: Sequence[str]) -> schemas.AwaitedCalls:
        """Note that tool calls run for long, so that they are not taken for dead."""
        self.sessions(workspace).store.await_results(session_id, call_ids)
        return schemas.AwaitedCalls(call_ids=list(call_ids))

    # Pins

    def pin(self, workspace: str, session_id: str, text: str | None = None, *, seq: int | None = None) -> schemas.Pin:
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
        return sessions.store.pin(session_id, text=text, seq=seq)

    def pins(self, workspace: str, session_id: str) -> schemas.Pins:
        """All pins of a session, oldest first."""
        return schemas.Pins(pins=self.sessions(workspace).store.pins(session_id))

    def unpin(self, workspace: str, session_id: str, pin_id: str) -> schemas.RemovedPin:
        """Keep a pin no longer."""
        self.sessions(workspace).store.unpin(session_id, pin_id)
        return schemas.RemovedPin(pin_id=pin_id)

    # Prompts

    @THROTTLE.foreground()
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
        context = sessions.context(session_id, request, cancelled=cancelled)
        messages = sessions.to_wire(session_id, context.prompt.messages, request.format)
        fusion = self.settings.ranking.fusion
        return made.SessionContext(
            messages=messages.messages,
            system=messages.system,
            tokens=context.prompt.tokens,
            receipt=search_answers.receipt(context.receipt, fusion=fusion) if context.receipt else None,
            cached_prefix_tokens=context.cached_prefix_tokens,
            recall=context.recall,
            compaction=context.compaction,
            flush=context.flush,
            command=context.command,
            degraded=[*context.degraded],
        )

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
        step = sessions.recover(session_id, request, cancelled=cancelled)
        messages = sessions.to_wire(session_id, step.messages, request.format)
        return made.Recovery(
            action=step.action,
            messages=messages.messages,
            system=messages.system,
            reason=step.reason,
            kind=step.kind,
            remedy=step.remedy,
            retry_after_seconds=step.retry_after_seconds,
            learned_window=step.learned_window,
            tokens=step.context.prompt.tokens if step.context else None,
            compaction=step.compaction,
            degraded=[*step.degraded],
        )

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
        from memory_service.runtime.base import CompactionCall

        call = CompactionCall(request=request)
        return self.sessions(workspace).compactions.compact(session_id, call, cancelled=cancelled)

    def compactions(self, workspace: str, session_id: str) -> made.Compactions:
        """The receipts of all compactions of a session, newest first, undone ones too."""
        return made.Compactions(compactions=self.sessions(workspace).compactions.past(session_id))

    def prompts(self, workspace: str, session_id: str) -> made.PromptMeasures:
        """The sizes of the last prompts of a session, the oldest first.

        Raises:
            NotFound: There is no such session.
        """
        parts = self.sessions(workspace)
        parts.snapshot(session_id)
        return made.PromptMeasures(prompts=list(parts.contexts.measures(session_id)))

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

    def _made_sessions(self, workspace: str, session_id: str | None, check: Callable[[], object]) -> WorkspaceSessions:
        """The sessions of a workspace, which is made if what is to be written there passes `check`."""
        if self.has_workspace(workspace):
            return self.sessions(workspace)
        if session_id is not None:
            from memory_service.home import check_session_id

            check_session_id(session_id)
        check()
        return self.sessions(workspace, make=True)

"""Owns the calls of one session, its events, and what a session shall be like when it begins. No I/O.

Invariants: those of `memory_service.client._wire`; whatever changes something carries an idempotency key, so that it
can be sent again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import RootModel, ValidationError

from memory_service import compaction_schemas as work
from memory_service import schemas
from memory_service import session_schemas as shapes
from memory_service.client._events import EventLines
from memory_service.client._messages import messages_of, plain, usage_report
from memory_service.client._provider import refusal_of
from memory_service.client._wire import Call, Routes, checked, listed, new_key, segment, workspace_root
from memory_service.errors import ConnectionFailed, InvalidRequest, MemoryServiceError, NotFound, ServerFailed

# A model may write a summary meanwhile, in several calls.
WORK_SECONDS = 600.0
# The server breaks its silence every 15 seconds.
_SILENCE_SECONDS = 45.0
_GRACE_SECONDS = 10.0
_MOST_FAILURES = 5
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0


class RawMessage(RootModel[dict[str, Any]]):
    """A message as it is kept."""


class SessionEvent(schemas.Answer):
    """Something that happened to a session.

    Attributes:
        id: Its number; listening can go on behind it.
        at: When.
        kind: `compaction_start`, `compaction_end`, `flush`, `prune`, `overflow`, `undo`, or `dropped` for events that
            were not kept until they could be sent.
        fields: Numbers, ids and short reasons.
    """

    id: int
    at: dt.datetime
    kind: str
    session_id: str
    fields: dict[str, str | int | float | bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a session shall be like; what is None is left to the server, or as it is."""

    model: str | None = None
    context_window: int | None = None
    settings: Mapping[str, Any] | None = None

    def __bool__(self) -> bool:
        return bool(self.fields())

    def fields(self) -> shapes.SessionChanges:
        """What is given."""
        given = shapes.SessionChanges()
        if self.model is not None:
            given["model"] = self.model
        if self.context_window is not None:
            given["context_window"] = self.context_window
        if self.settings is not None:
            given["settings"] = dict(self.settings)
        return given

    def changed(self, changes: shapes.SessionChanges) -> Wanted:
        """This after changes."""
        return replace(self, **changes)

    def is_met(self, session: shapes.Session) -> bool:
        """Whether a session is like this."""
        own = {
            "model": session.model,
            "context_window": session.context_window.considered.get("session"),
            "settings": session.settings,
        }
        return all(own[name] == value for name, value in self.fields().items())


class SessionCalls(Routes):
    """Makes the calls for one session.

    Args:
        workspace: Name of its workspace.
        session_id: Its id.
    """

    def __init__(self, workspace: str, session_id: str) -> None:
        root = f"{workspace_root(workspace)}/sessions"
        self._all = Routes(root)
        self._session_id = session_id
        super().__init__(f"{root}/{segment(session_id)}")

    def create(self, wanted: Wanted) -> Call[shapes.Session]:
        """The call that begins it."""
        body = checked(shapes.NewSession, session_id=self._session_id, **wanted.fields())
        return self._all._post("", shapes.Session, body, new_key())

    def status(self) -> Call[shapes.Session]:
        """The call for how it stands."""
        return self._get("", shapes.Session)

    def update(self, changes: shapes.SessionChanges) -> Call[shapes.Session]:
        """The call that changes it; the same values twice are the same."""
        body = checked(shapes.SessionChange, **changes)
        return Call(method="PATCH", path=self._root, answer=shapes.Session, body=body, safe=True)

    def delete(self) -> Call[shapes.ErasedSession]:
        """The call that erases it."""
        return self._delete("", shapes.ErasedSession)

    def append(
        self, said: object, usage: object, key: str | None, finish_reason: str | None = None
    ) -> Call[shapes.AppendedMessages]:
        """The call that appends; with its key it can be sent again."""
        report = usage_report(usage)
        if usage is not None and report is None:
            raise InvalidRequest("The usage is in no shape that is known. Give the provider's own, or None.")
        told: dict[str, object] = {} if report is None else {"usage": report.model_dump(exclude_none=True)}
        told |= {} if finish_reason is None else {"finish_reason": finish_reason}
        body = checked(shapes.NewMessages, messages=messages_of(said), **told)
        return self._post("/messages", shapes.AppendedMessages, body, key or new_key())

    def messages(self, view: shapes.ViewName, wire: shapes.Wire) -> Call[shapes.Messages]:
        """The call for its messages."""
        return self._get("/messages", shapes.Messages, {"view": view, "format": wire})

    def message(self, seq: int) -> Call[RawMessage]:
        """The call for one message."""
        return self._get(f"/messages/{segment(str(seq))}", RawMessage)

    def context(self, **options: object) -> Call[work.SessionContext]:
        """The call for a prompt."""
        body = checked(work.SessionContextRequest, **options)
        return self._post("/context", work.SessionContext, body, new_key(), WORK_SECONDS)

    def overflow(
        self, error: BaseException | str, usage: object = None, status: int | None = None, **options: object
    ) -> Call[work.Recovery]:
        """The call for what to do about a refused prompt."""
        refusal, report = refusal_of(error), usage_report(usage)
        told = {} if report is None else {"usage": report.model_dump(exclude_none=True)}
        known = refusal.status if status is None else status
        body = checked(work.OverflowRequest, error=refusal.text, status=known, **told, **options)
        return self._post("/overflow", work.Recovery, body, new_key(), WORK_SECONDS)

    def compact(self, **options: object) -> Call[work.CompactionReceipt]:
        """The call for a compaction, or for what one would do."""
        body = checked(work.CompactRequest, **options)
        return self._post("/compact", work.CompactionReceipt, body, new_key(), WORK_SECONDS)

    def compactions(self) -> Call[work.Compactions]:
        """The call for all compactions."""
        return self._get("/compactions", work.Compactions)

    def undo(self, compaction_id: str) -> Call[work.CompactionReceipt]:
        """The call that takes a compaction back."""
        path = f"/compactions/{segment(compaction_id)}/undo"
        return self._post(path, work.CompactionReceipt, schemas.Request(), new_key(), WORK_SECONDS)

    def flush(self, reply: str | None) -> Call[work.Flush]:
        """The call for a flush."""
        body = checked(work.FlushRequest, reply=reply)
        return self._post("/flush", work.Flush, body, new_key(), WORK_SECONDS)

    def flush_prompt(self) -> Call[work.FlushPrompt]:
        """The call for what an agent is asked."""
        return self._get("/flush-prompt", work.FlushPrompt)

    def pin(self, text: str | None, seq: int | None) -> Call[shapes.Pin]:
        """The call for a pin."""
        return self._post("/pins", shapes.Pin, checked(shapes.NewPin, text=text, seq=seq), new_key())

    def pins(self) -> Call[shapes.Pins]:
        """The call for all pins."""
        return self._get("/pins", shapes.Pins)

    def unpin(self, pin_id: str) -> Call[shapes.RemovedPin]:
        """The call that removes a pin."""
        return self._delete(f"/pins/{segment(pin_id)}", shapes.RemovedPin)

    def search(self, query: str, limit: int) -> Call[shapes.FoundMessages]:
        """The call for a search of its log."""
        return self._get("/search", shapes.FoundMessages, {"q": _sendable(query), "limit": limit})

    def pending(self, call_ids: Collection[str]) -> Call[shapes.AwaitedCalls]:
        """The call that notes calls of tools as running."""
        body = checked(shapes.PendingCalls, call_ids=listed("call_ids", call_ids))
        return self._post("/pending", shapes.AwaitedCalls, body, new_key())

    def trim(self, keep_last: int) -> Call[shapes.Trimmed]:
        """The call that shortens the log."""
        return self._post("/trim", shapes.Trimmed, checked(shapes.Trim, keep_last=keep_last), new_key())

    def restore(self) -> Call[shapes.Restored]:
        """The call that takes a trim back."""
        return self._post("/restore", shapes.Restored, schemas.Request(), new_key())

    def wait_idle(self, timeout_seconds: float) -> Call[shapes.Idle]:
        """The call that waits until it is at rest."""
        return self._get("/idle", shapes.Idle, {"timeout_seconds": timeout_seconds}, timeout_seconds + _GRACE_SECONDS)

    def events(self, after: str) -> Call[SessionEvent]:
        """The call for its events, to be read as a stream."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        return Call(
            method="GET",
            path=f"{self._root}/events",
            answer=SessionEvent,
            headers=headers,
            least_seconds=_SILENCE_SECONDS,
        )


def prompt_options(
    query: str | None,
    system_prompt: str,
    memory_budget_tokens: int,
    max_tokens: int | None,
    tools: Collection[object] | None,
    recall: work.RecallMode,
    order: schemas.Order | None,
    wire: shapes.Wire,
) -> dict[str, object]:
    """How a prompt is made, by the names of the API."""
    return {
        "query": query,
        "system_prompt": system_prompt,
        "memory_budget_tokens": memory_budget_tokens,
        "max_tokens": max_tokens,
        "tools": [plain(tool) for tool in tools or ()],
        "recall": recall,
        "order": order,
        "format": wire,
    }


def sessions_call(workspace: str) -> Call[shapes.Sessions]:
    """The call for all sessions of a workspace."""
    return Call(method="GET", path=f"{workspace_root(workspace)}/sessions", answer=shapes.Sessions, safe=True)


def compact_messages_call(
    messages: object, *, pins: Collection[str], tools: Collection[object], **options: object
) -> Call[work.CompactedMessages]:
    """The call that compacts messages without a session; it keeps nothing, so it can be sent again."""
    body = checked(
        work.StatelessRequest,
        messages=messages_of(messages),
        pins=listed("pins", pins),
        tools=[plain(tool) for tool in tools],
        **options,
    )
    return Call(
        method="POST",
        path="/v1/compact",
        answer=work.CompactedMessages,
        body=body,
        safe=True,
        least_seconds=WORK_SECONDS,
    )


def newest_active(found: work.Compactions) -> str:
    """The compaction that an undo without an id means.

    Raises:
        NotFound: There is none.
    """
    ids = (each.compaction_id for each in found.compactions if each.active and each.compaction_id)
    if (newest := next(ids, None)) is None:
        raise NotFound("The session has no compaction that counts, so there is nothing to undo. See compactions().")
    return newest


class Listening:
    """Where somebody is in the events of a session, over all connections that it takes.

    Args:
        after: The last event that was heard; 0 for all that are kept, None for those to come.

    Attributes:
        last_id: What to send as `Last-Event-ID`; "" for events to come.
    """

    def __init__(self, after: int | None) -> None:
        self.last_id = "" if after is None else str(after)
        self._failures = 0
        self._pause_seconds = _PAUSE_SECONDS
        self._reader = EventLines()

    def connected(self) -> None:
        """A stream begins."""
        self._reader = EventLines()

    def heard(self, line: str) -> SessionEvent | None:
        """The event that is complete with a line."""
        self._failures = 0
        sent = self._reader.feed(line)
        if self._reader.retry_ms is not None:
            self._pause_seconds = min(self._reader.retry_ms / 1000, _LONGEST_PAUSE_SECONDS)
        self.last_id = self._reader.last_id or self.last_id
        if sent is None:
            return None
        try:
            return SessionEvent.model_validate(sent.content)
        except ValidationError:
            raise ServerFailed(
                "An event of the stream is none of memory-service's. Check that client and server are of one version."
            ) from None

    def failed(self, error: MemoryServiceError) -> None:
        """Take note that a connection failed, or was refused.

        Raises:
            MemoryServiceError: This error, if it will not pass, or has come too often in a row.
        """
        self._failures += 1
        if not (isinstance(error, ConnectionFailed) or error.status == 503) or self._failures > _MOST_FAILURES:
            raise error

    def pause_seconds(self) -> float:
        """How long to wait before the next connection."""
        return self._pause_seconds


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")

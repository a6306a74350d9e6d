"""Calls of one session, and the wanted settings of a new session. No I/O.

Invariants: those of `memory_service.client._wire`; whatever changes something carries an idempotency key, so that it
can be sent again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

from pydantic import RootModel

from memory_service import schemas
from memory_service.client._messages import plain, usage_report, wire_messages
from memory_service.client._refusals import refusal_of
from memory_service.client._wire import Call, Routes, list_of_texts, new_key, segment, workspace_root
from memory_service.errors import InvalidRequest, NotFound
from memory_service.home import id_of_title

# A model may write a summary meanwhile, in several calls.
WORK_SECONDS = 600.0
_GRACE_SECONDS = 10.0


class RawMessage(RootModel[dict[str, Any]]):
    """A message as it is stored."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Wanted settings of a session; None leaves a setting to the server, or as it is.

    Attributes:
        title: Its name for people, if it is begun with these.
    """

    given: schemas.SessionChanges
    title: str = ""

    def __bool__(self) -> bool:
        return bool(self.fields() or self.title)

    def fields(self) -> schemas.SessionChanges:
        """Fields that are given."""
        return cast(schemas.SessionChanges, {name: value for name, value in self.given.items() if value is not None})

    def with_changes(self, changes: schemas.SessionChanges) -> Wanted:
        """Settings after changes."""
        return Wanted(self.given | changes, self.title)

    def is_met(self, session: schemas.Session) -> bool:
        """True if a session has these settings."""
        own = {
            "model": session.model,
            "context_window": session.context_window.considered.get("session"),
            "settings": session.settings,
        }
        return all(own[name] == value for name, value in self.fields().items())


def id_of(session_id: str | None, title: str) -> str:
    """The id of a session: the given one, else that which is made from its title.

    Raises:
        InvalidRequest: There is neither.
    """
    if session_id is None and not title.strip():
        raise InvalidRequest("A session needs an id or a title. Give one of them.")
    return id_of_title(title) if session_id is None else session_id


class SessionCalls(Routes):
    """Calls of one session.

    Args:
        workspace: Name of its workspace.
        session_id: Its id.
    """

    def __init__(self, workspace: str, session_id: str) -> None:
        root = f"{workspace_root(workspace)}/sessions"
        self._all = Routes(root)
        self._session_id = session_id
        super().__init__(f"{root}/{segment(session_id)}")

    def create(self, wanted: Wanted) -> Call[schemas.Session]:
        """The call that begins it."""
        named_fields = {"session_id": self._session_id, "title": wanted.title}
        body = schemas.make_request(schemas.NewSession, **named_fields, **wanted.fields())
        return self._all._post("", schemas.Session, body, new_key())

    def status(self) -> Call[schemas.Session]:
        """The call for its status."""
        return self._get("", schemas.Session)

    def update(self, changes: schemas.SessionChanges) -> Call[schemas.Session]:
        """The call that changes it; the same values twice are the same."""
        body = schemas.make_request(schemas.SessionChange, **changes)
        return Call(method="PATCH", path=self._root, answer=schemas.Session, body=body, safe=True)

    def delete(self) -> Call[schemas.ErasedSession]:
        """The call that erases it."""
        return self._delete("", schemas.ErasedSession)

    def erase(self, seq: int) -> Call[schemas.ErasedMessages]:
        """The call that erases a message."""
        return self._delete(f"/messages/{seq}", schemas.ErasedMessages)

    def append(
        self,
        said: object,
        usage: object,
        key: str | None,
        finish_reason: str | None = None,
        after_seq: int | None = None,
    ) -> Call[schemas.AppendedMessages]:
        """The call that appends; with its key it can be sent again."""
        report = usage_report(usage)
        if usage is not None and report is None:
            raise InvalidRequest("The usage is in no shape that is known. Give the provider's own, or None.")
        fields: dict[str, object] = {} if report is None else {"usage": report.model_dump(exclude_none=True)}
        fields |= {} if finish_reason is None else {"finish_reason": finish_reason}
        fields |= {} if after_seq is None else {"after_seq": after_seq}
        body = schemas.make_request(schemas.NewMessages, messages=wire_messages(said), **fields)
        return self._post("/messages", schemas.AppendedMessages, body, key or new_key())

    def messages(self, view: schemas.ViewName, wire: schemas.Wire) -> Call[schemas.Messages]:
        """The call for its messages."""
        return self._get("/messages", schemas.Messages, {"view": view, "format": wire})

    def message(self, seq: int) -> Call[RawMessage]:
        """The call for one message."""
        return self._get(f"/messages/{segment(str(seq))}", RawMessage)

    def context(self, **options: object) -> Call[schemas.SessionContext]:
        """The call for a prompt."""
        body = schemas.make_request(schemas.SessionContextRequest, **options)
        return self._post("/context", schemas.SessionContext, body, new_key(), WORK_SECONDS)

    def conversation(self, said: object, **options: object) -> Call[schemas.ConversationContext]:
        """The call for the prompt of a conversation that the caller keeps."""
        body = schemas.make_request(schemas.ConversationRequest, messages=wire_messages(said), **options)
        return self._post("/conversation", schemas.ConversationContext, body, new_key(), WORK_SECONDS)

    def overflow(
        self, error: BaseException | str, usage: object = None, status: int | None = None, **options: object
    ) -> Call[schemas.Recovery]:
        """The call for the remedy of a refused prompt."""
        refusal, report = refusal_of(error), usage_report(usage)
        dicts = {} if report is None else {"usage": report.model_dump(exclude_none=True)}
        known_status = refusal.status if status is None else status
        body = schemas.make_request(
            schemas.OverflowRequest, error=refusal.text, status=known_status, **dicts, **options
        )
        return self._post("/overflow", schemas.Recovery, body, new_key(), WORK_SECONDS)

    def compact(self, **options: object) -> Call[schemas.CompactionReceipt]:
        """The call for a compaction, or for its plan."""
        body = schemas.make_request(schemas.CompactRequest, **options)
        return self._post("/compact", schemas.CompactionReceipt, body, new_key(), WORK_SECONDS)

    def compactions(self) -> Call[schemas.Compactions]:
        """The call for all compactions."""
        return self._get("/compactions", schemas.Compactions)

    def prompts(self) -> Call[schemas.PromptMeasures]:
        """The call for the sizes of the last prompts."""
        return self._get("/prompts", schemas.PromptMeasures)

    def undo(self, compaction_id: str) -> Call[schemas.CompactionReceipt]:
        """The call that takes a compaction back."""
        path = f"/compactions/{segment(compaction_id)}/undo"
        return self._post(path, schemas.CompactionReceipt, schemas.Request(), new_key(), WORK_SECONDS)

    def flush(self, reply: str | None) -> Call[schemas.Flush]:
        """The call for a flush."""
        body = schemas.make_request(schemas.FlushRequest, reply=reply)
        return self._post("/flush", schemas.Flush, body, new_key(), WORK_SECONDS)

    def flush_prompt(self) -> Call[schemas.FlushPrompt]:
        """The call for the flush prompt of an agent."""
        return self._get("/flush-prompt", schemas.FlushPrompt)

    def pin(self, text: str | None, seq: int | None) -> Call[schemas.Pin]:
        """The call for a pin."""
        return self._post("/pins", schemas.Pin, schemas.make_request(schemas.NewPin, text=text, seq=seq), new_key())

    def pins(self) -> Call[schemas.Pins]:
        """The call for all pins."""
        return self._get("/pins", schemas.Pins)

    def unpin(self, pin_id: str) -> Call[schemas.RemovedPin]:
        """The call that removes a pin."""
        return self._delete(f"/pins/{segment(pin_id)}", schemas.RemovedPin)

    def search(self, query: str, limit: int) -> Call[schemas.FoundMessages]:
        """The call for a search of its log."""
        return self._get("/search", schemas.FoundMessages, {"q": _sendable(query), "limit": limit})

    def pending(self, call_ids: Collection[str]) -> Call[schemas.AwaitedCalls]:
        """The call that notes calls of tools as running."""
        body = schemas.make_request(schemas.PendingCalls, call_ids=list_of_texts("call_ids", call_ids))
        return self._post("/pending", schemas.AwaitedCalls, body, new_key())

    def branch(self, seq: int, session_id: str | None, title: str) -> Call[schemas.Session]:
        """The call that begins a branch."""
        body = schemas.make_request(schemas.NewBranch, seq=seq, session_id=session_id, title=title)
        return self._post("/branches", schemas.Session, body, new_key())

    def trim(self, keep_last: int) -> Call[schemas.Trimmed]:
        """The call that shortens the log."""
        return self._post("/trim", schemas.Trimmed, schemas.make_request(schemas.Trim, keep_last=keep_last), new_key())

    def restore(self) -> Call[schemas.Restored]:
        """The call that takes a trim back."""
        return self._post("/restore", schemas.Restored, schemas.Request(), new_key())

    def wait_idle(self, timeout_seconds: float) -> Call[schemas.Idle]:
        """The call that waits until it is at rest."""
        return self._get("/idle", schemas.Idle, {"timeout_seconds": timeout_seconds}, timeout_seconds + _GRACE_SECONDS)


def prompt_options(
    query: str | None,
    system_prompt: str,
    memory_budget_tokens: int,
    max_tokens: int | None,
    tools: Collection[object] | None,
    recall: schemas.RecallMode,
    order: schemas.Order | None,
    min_relevance: float | None,
    wire: schemas.Wire,
) -> dict[str, object]:
    """Options of a prompt, by the names of the API."""
    return {
        "query": query,
        "system_prompt": system_prompt,
        "memory_budget_tokens": memory_budget_tokens,
        "max_tokens": max_tokens,
        "tools": [plain(tool) for tool in tools or ()],
        "recall": recall,
        "order": order,
        "min_relevance": min_relevance,
        "format": wire,
    }


def sessions_call(workspace: str) -> Call[schemas.Sessions]:
    """The call for all sessions of a workspace."""
    return Call(method="GET", path=f"{workspace_root(workspace)}/sessions", answer=schemas.Sessions, safe=True)


def compact_messages_call(
    messages: object, *, pins: Collection[str], tools: Collection[object], **options: object
) -> Call[schemas.CompactedMessages]:
    """The call that compacts messages without a session; it keeps nothing, so it can be sent again."""
    body = schemas.make_request(
        schemas.StatelessRequest,
        messages=wire_messages(messages),
        pins=list_of_texts("pins", pins),
        tools=[plain(tool) for tool in tools],
        **options,
    )
    return Call(
        method="POST",
        path="/v1/compact",
        answer=schemas.CompactedMessages,
        body=body,
        safe=True,
        least_seconds=WORK_SECONDS,
    )


def newest_active(found: schemas.Compactions) -> str:
    """The compaction that an undo without an id takes back.

    Raises:
        NotFound: There is none.
    """
    ids = (receipt.compaction_id for receipt in found.compactions if receipt.active and receipt.compaction_id)
    if (newest := next(ids, None)) is None:
        raise NotFound("The session has no compaction that counts, so there is nothing to undo. See compactions().")
    return newest


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")

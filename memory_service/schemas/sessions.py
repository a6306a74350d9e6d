"""The shapes on the wire of a session: the session itself, its settings, events and log.

Invariants: those of `memory_service.schemas`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from pydantic import Field

from memory_service.schemas.base import (
    MAX_TOKENS,
    SESSION_ID,
    Answer,
    Degraded,
    ModelName,
    Pressure,
    Proof,
    Request,
    SessionName,
)

ViewName = Literal["model", "log"]
WindowSource = Literal["session", "learned", "settings", "model", "preset", "default"]

EventField: TypeAlias = "str | int | float | bool | None"

# Lines of a log that a trim leaves. Source: seed 000, 1.2.
TRIM_KEEP_LAST = 100

MAX_TITLE_CHARS = 200

LogBytes = Annotated[int, Field(description="Size of the log on disk, in bytes.")]
SessionSettings = Annotated[
    dict[str, Any] | None,
    Field(
        description="The session's own values for the tables `compaction`, `pruning` and `flush` of the settings.",
        examples=[{"compaction": {"preset": "opencode"}, "flush": {"mode": "agent"}}],
    ),
]
WindowTokens = Annotated[
    int | None,
    Field(ge=1, le=MAX_TOKENS, description="What the model takes, in tokens; wins over every other source."),
]


class _OwnSettings(Request):
    model: ModelName = None
    context_window: WindowTokens = None
    settings: SessionSettings = None


class _OwnName(Request):
    session_id: str | None = Field(
        default=None,
        description="1 to 128 letters, digits, dots, underscores and hyphens; made unless given.",
        examples=["support-42"],
        json_schema_extra={"pattern": SESSION_ID},
    )


class NewSession(_OwnSettings, _OwnName):
    """A session to begin."""

    title: str = Field(
        default="",
        max_length=MAX_TITLE_CHARS,
        description="Name for people, in any script; without `session_id`, the id is made from it.",
        examples=["Support, order 42"],
    )


class NewBranch(_OwnName):
    """A branch of a session: a session of its own that begins as the other one does, up to a message."""

    seq: int = Field(ge=1, le=10**15, description="Number of the last message that both have.", examples=[12])
    title: str = Field(
        default="",
        max_length=MAX_TITLE_CHARS,
        description="Name for people; without `session_id`, the id is made from it, else from `seq`.",
        examples=["With a queue"],
    )


class SessionChange(_OwnSettings):
    """The settings to change in a session; what is left out stays as it is, null sets nothing of its own any more."""


# The fields of `SessionChange` as arguments: what is not named stays as it is, None sets nothing of its own any more.
SessionChanges = TypedDict(  # noqa: UP013  (a class would be a second home of the fields)
    "SessionChanges",
    {"model": str | None, "context_window": int | None, "settings": Mapping[str, Any] | None},
    total=False,
)


class ContextWindow(Answer):
    """The context window of a session, and where it comes from."""

    tokens: int = Field(description="Size of the window in tokens: prompt and answer together.")
    source: WindowSource = Field(description="Who decided it; the names are those of `considered`.")
    considered: dict[WindowSource, int | None] = Field(
        description="What each source says, the first to be asked first; null where it says nothing."
    )
    problem: Literal["", "warn", "refuse"] = Field(description="Whether it is too small for the preset.")
    message: str = Field(description="What is wrong and what to do; empty without a problem.")


class Session(Answer):
    """A session as it stands."""

    session_id: SessionName
    title: str = Field(default="", description="Its name for people; empty where it has none.")
    model: str | None = Field(description="Model of the agent; null where none was named.")
    settings: dict[str, Any] = Field(description="The session's own settings; empty where it has none.")
    messages: int = Field(description="How many were ever said.")
    last_seq: int = Field(description="The number of the last record of the log.")
    tokens: int = Field(description="What the view takes, as its model would count it.")
    pressure: Pressure = Field(description="`soft`: memories should be flushed; `hard`: it has to be compacted.")
    context_window: ContextWindow = Field(description="Size of the model's window, and who decided it.")
    preset: str = Field(description="How it is compacted.")
    numbers: dict[str, bool | int | float | None] = Field(
        description="The numbers of the preset as they hold for this session, overrides included."
    )
    compactions: int = Field(description="How many compactions count now.")
    flushed_to: int = Field(description="The last message that was searched for memories; 0 for none.")
    pins: int = Field(description="Number of pins.")
    size_bytes: LogBytes
    last_activity: str = Field(description="UTC, ISO 8601; empty if nothing was written yet.")
    degraded: Degraded = Field(default=[])


class ListedSession(Answer):
    """A session in a list."""

    session_id: SessionName
    title: str = Field(default="", description="Its name for people; empty where it has none.")
    last_activity: dt.datetime = Field(
        description="Time of the last record of the log, in UTC; else that of the last change of the file."
    )
    last_seq: int | None = Field(description="Number of the last record of the log; null where it cannot be read.")
    size_bytes: LogBytes


class Sessions(Answer):
    """All sessions of a workspace, the last active first."""

    sessions: list[ListedSession] = Field(description="The sessions; an empty list where there are none.")
    degraded: Degraded = Field(default=[])


class ErasedSession(Answer):
    """A session that was erased, from the disk and from the index."""

    session_id: SessionName
    erased: Proof = None
    degraded: Degraded = Field(default=[])


class PendingCalls(Request):
    """Tool calls that run for long."""

    call_ids: list[Annotated[str, Field(min_length=1, max_length=4_096)]] = Field(
        min_length=1,
        max_length=1_000,
        description="Ids of the calls, as in the messages.",
        examples=[["call_8fA3"]],
    )


class AwaitedCalls(Answer):
    """Tool calls whose results are awaited, and not taken for lost."""

    call_ids: list[str] = Field(description="The ids that were given.")
    degraded: Degraded = Field(default=[])


class Trim(Request):
    """How much of a log stays."""

    keep_last: int = Field(
        default=TRIM_KEEP_LAST, ge=0, le=10**9, description="How many lines stay; pins and compactions stay besides."
    )


class Trimmed(Answer):
    """A log that was shortened."""

    backup: str = Field(description="Name of the file beside the log that has it as it was.")
    degraded: Degraded = Field(default=[])


class Restored(Answer):
    """A log that has back what the last trim took."""

    session_id: SessionName
    degraded: Degraded = Field(default=[])


class SessionEvent(Answer):
    """Something that happened to a session.

    Attributes:
        id: Its number in the session; listening can go on behind it. That of a `dropped` event is the number of the
            last one that is missing.
        at: When, with its time zone.
        kind: `compaction_start`, `compaction_end`, `flush`, `prune`, `overflow`, `undo`, or `dropped` for events that
            were not kept until they could be sent.
        fields: Numbers, ids and short reasons. `compaction_end` has `will_retry`; `dropped` has `count`, which is None
            where nobody knows how many there were.
    """

    id: int
    at: dt.datetime
    kind: str
    session_id: str
    fields: dict[str, EventField] = Field(default={})


class Idle(Answer):
    """The state of a session's work: if it is at rest."""

    idle: bool = Field(description="Whether no compaction runs and none is to be tried again.")
    degraded: Degraded = Field(default=[])

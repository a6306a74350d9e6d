"""Records of a session log as values, and text deltas. Knows nothing of files.

Invariants: a record never changes; a message is kept as the JSON text it came as; a compaction names the
messages it stands for by number and never holds them. A summary is kept as a
delta (line numbers of the base text, and new text), and `apply_delta(base, text_delta(base, text)) == text`, always:
summaries of one session share most of their lines, and kept whole, twenty of them would take as much as a fifth of the
messages that they stand for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from memory_service.compaction.record import Compaction, PinRecord
from memory_service.messages.shapes import Json
from memory_service.messages.sizes import Usage

if TYPE_CHECKING:
    from memory_service.schemas.compaction import LedgerEntry

RepairKind = Literal["torn", "damaged", "header", "foreign", "media", "unrepaired"]

LOG_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHeader:
    """Header of a session; the last one of a log counts.

    Attributes:
        log_id: Of the header that a log begins with: tells it from a log that was deleted, under the same name.
        version: That of the format of the log.
        context_window: In tokens; None if it is not known.
        rebuilt: Whether the service wrote it because the first one was lost.
        title: Name for people, in whatever script; empty for none.
    """

    session_id: str
    log_id: str = field(default="", compare=False)
    model: str | None = None
    context_window: int | None = None
    settings: Mapping[str, Json] = field(default_factory=dict)
    version: int = LOG_VERSION
    rebuilt: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """Something in a message that is kept beside the log.

    Attributes:
        mime: As the message names it, or `application/octet-stream`.
        size_bytes: What it takes beside the log.
        handle: How the log gives it back: `log:<seq>#<number>`, counted from 1.
    """

    mime: str
    size_bytes: int
    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """One message.

    Attributes:
        text: Its JSON, an object, exactly as it was given.
        usage: What the provider counted for the call that it answers.
        media: What is kept beside the log; the log fills this in.
    """

    text: str
    usage: Usage | None = None
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """A compaction no longer counts; `compaction` is its number in the log."""

    compaction: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpin:
    """A pin no longer counts."""

    pin_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushRecord:
    """The messages `from_seq` to `to_seq` were searched for memories; `written` is how many were found and new."""

    from_seq: int
    to_seq: int
    method: str = ""
    written: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Tool calls that will be answered late."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The context window, in tokens, that a provider's error told."""

    context_window: int
    model: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimRecord:
    """Older lines were moved out of the log.

    Attributes:
        backup: The name of the file that still has them.
        head: The compaction that counted then.
        ledger: What it has gathered from messages, which could not be found anew without them.
    """

    backup: str
    lines: int
    head: int | None = None
    ledger: tuple[LedgerEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """The messages right before it, in its own batch, came with an idempotency key.

    Attributes:
        key: Its hash.
        messages: How many they are.
        content: The hash of what they say.
    """

    key: str
    messages: int
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedRecord:
    """A record that was erased; its number stays its own. `was` is the kind that it had."""

    was: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A record that a newer version wrote; `text` is its line. Whoever reads it ignores it."""

    kind: str
    text: str


Body = (
    SessionHeader
    | MessageRecord
    | Usage
    | Compaction
    | Undo
    | PinRecord
    | Unpin
    | FlushRecord
    | Pending
    | Learned
    | TrimRecord
    | Keyed
    | ErasedRecord
    | Unknown
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of a log.

    Attributes:
        seq: Its number; the first is 1, and they have no gaps but those that a trim or damage leaves.
        ts: When it was appended: UTC, ISO 8601.
        kind: What `body` is.
        batch_length: How many records were written at once, of which this is the first; 0 or 1 where none is marked. A
            place in a batch is no part of what a record says.
    """

    seq: int
    ts: str
    kind: str
    body: Body
    batch_length: int = field(default=0, compare=False)


def whole_batches(records: Collection[Record]) -> set[int]:
    """The numbers of the records that begin a batch whose last record is there, too.

    A copy of a log that ended within a batch would be taken for a log whose writer was killed.
    """
    times = {record.seq: record.ts for record in records}
    return {
        record.seq
        for record in records
        if record.batch_length > 1 and times.get(record.seq + record.batch_length - 1) == record.ts
    }


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The last record of a log, and which edition of the log that is; 0 for one that is not there."""

    edition: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The numbers that the records of one batch were given."""

    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """Records of a log after those already read.

    Attributes:
        edition: Of the log that this was read from; 0 if there is none.
        is_same: Whether that is the one that was read before: these records follow. Else these are all that it has.
    """

    edition: int
    is_same: bool
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Something that was wrong with a log, and what became of it; `message` holds no text of the log."""

    kind: RepairKind
    message: str


def compact_json(value: object) -> str:
    """The JSON of a value on one line, as short as it gets, that UTF-8 can take.

    Raises:
        ValueError: It is no JSON: NaN, a circle, a key that is no text.
        TypeError: It holds something that JSON does not know.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text

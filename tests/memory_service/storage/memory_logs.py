"""Session logs in memory: the second engine of `memory_service.storage.logs`, as short as the protocol allows."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from memory_service.errors import Conflict, InvalidRequest, NotFound
from memory_service.home import check_session_id
from memory_service.schemas.sessions import ListedSession
from memory_service.sessions.codec import (
    LogLine,
    RecordDraft,
    decode,
    draft_copy,
    draft_record,
    encode,
    first_header,
    record_with_media,
)
from memory_service.sessions.records import (
    Appended,
    Body,
    Followed,
    MessageRecord,
    Record,
    SessionHeader,
    TrimRecord,
)
from memory_service.storage.logs import LogChange, LogStatus, Rewrite, TrimmedRecords


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A log: its edition, its lines, and the lines that each trim found, the last trim at the end."""

    edition: int = 0
    lines: tuple[bytes, ...] = ()
    trims: tuple[tuple[bytes, ...], ...] = ()

    def records(self, *, trimmed: bool = False) -> list[LogLine]:
        earlier = itertools.chain.from_iterable(self.trims if trimmed else ())
        return [decode(line) for line in (*earlier, *self.lines)]

    @property
    def last_seq(self) -> int:
        return decode(self.lines[-1]).record.seq if self.lines else 0


@dataclass(eq=False)
class MemoryLogs:
    """A `LogStore` in memory.

    Attributes:
        now: The present moment, with a time zone.
        before_write: Is called before anything is stored; what it raises, the caller gets.
    """

    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)
    before_write: Callable[[], None] = lambda: None
    rows: dict[str, Rows] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _editions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _logs: dict[str, MemoryLog] = field(default_factory=dict)

    def list(self) -> list[ListedSession]:
        listed = [(session_id, MemoryLog(self, session_id)) for session_id in self.rows]
        return sorted((log.listed() for _, log in listed), key=lambda row: row.last_activity, reverse=True)

    def open(self, session_id: str, *, must_exist: bool = True) -> MemoryLog:
        check_session_id(session_id)
        if must_exist and session_id not in self.rows:
            raise NotFound(f"There is no session {session_id}. List the sessions to see their ids.")
        return self._logs.setdefault(session_id, MemoryLog(self, session_id))

    def begin(self, session_id: str, records: Iterable[Record], trims: Iterable[TrimmedRecords] = ()) -> None:
        drafts = list[RecordDraft]()

        def lines(records: Iterable[Record]) -> tuple[bytes, ...]:
            pairs = [(record, draft_copy(record)) for record in records]
            drafts.extend(draft for _, draft in pairs)
            return tuple(encode(draft, seq=record.seq, ts=record.ts) for record, draft in pairs)

        with self.lock:
            self.open(session_id, must_exist=False).expect(0)
            state = own = lines(records)
            states = list[tuple[bytes, ...]]()
            for trim_seq, gone in trims:
                if not any(decode(line).record.seq == trim_seq for line in state):
                    raise InvalidRequest(f"Record {trim_seq} is none of a trim. Give each trim its own record.")
                before = (line for line in state if decode(line).record.seq < trim_seq)
                earlier = tuple(sorted((*before, *lines(gone)), key=lambda line: decode(line).record.seq))
                state = (*earlier, *(line for line in state if decode(line).record.seq >= trim_seq))
                states.insert(0, earlier)
            self.store(session_id, Rows(lines=own, trims=tuple(states)), drafts)

    def containing(self, mark: bytes) -> Iterator[str]:
        return (row.session_id for row in self.list() if mark in b"".join(self.rows[row.session_id].lines))

    def rewrite(self, session_id: str, change: Rewrite, *, first: Callable[[], None]) -> None:
        with self.lock:
            self.open(session_id)
            rows = self.rows[session_id]
            records = [line.record for line in rows.records()]
            bodies = change(records)
            first()
            lines = [
                encode(draft_record(bodies[record.seq]), seq=record.seq, ts=record.ts) if record.seq in bodies else line
                for record, line in zip(records, rows.lines, strict=True)
            ]
            self.store(session_id, Rows(lines=tuple(lines), trims=rows.trims))

    def delete(self, session_id: str, *, first: Callable[[], None] = lambda: None) -> None:
        with self.lock:
            self.open(session_id)
            first()
            self.store(session_id, None)

    def unit(self) -> AbstractContextManager[None]:
        return nullcontext()

    def has_remains(self, session_id: str) -> bool:
        return session_id in self.rows

    def leftovers(self) -> Sequence[str]:
        return ()

    def sweep(self) -> None:
        """Nothing is ever left."""

    def store(self, session_id: str, rows: Rows | None, drafts: Iterable[RecordDraft] = ()) -> None:
        """Puts rows in the place of others, with another edition unless they have one, in one step with their media."""
        self.before_write()
        contents = [content for draft in drafts if draft.media for content in draft.media.contents]
        if rows is None:
            del self.rows[session_id]
        else:
            self.rows[session_id] = rows if rows.edition else replace(rows, edition=next(self._editions))
        lines = [line for each in self.rows.values() for line in each.records(trimmed=True)]
        named = {part.sha256 for line in lines for part in line.parts}
        every = {**self.blobs, **{hashlib.sha256(content).hexdigest(): content for content in contents}}
        self.blobs = {sha256: content for sha256, content in every.items() if sha256 in named}


class MemoryLog:
    """A `SessionLog` in memory."""

    def __init__(self, logs: MemoryLogs, session_id: str) -> None:
        self._logs = logs
        self._session_id = session_id

    @property
    def _rows(self) -> Rows:
        return self._logs.rows.get(self._session_id, Rows())

    def listed(self) -> ListedSession:
        first, last = self._rows.records()[0].record, self._rows.records()[-1].record
        return ListedSession(
            session_id=self._session_id,
            title=first.body.title if isinstance(first.body, SessionHeader) else "",
            last_activity=dt.datetime.fromisoformat(last.ts),
            last_seq=last.seq,
            size_bytes=self.status().size_bytes,
        )

    def status(self) -> LogStatus:
        return LogStatus(last_seq=self._rows.last_seq, size_bytes=sum(map(len, self._rows.lines)))

    def foreign(self) -> bytes | None:
        return None

    def last_change(self) -> LogChange | None:
        rows = self._rows
        if not rows.lines:
            return None
        at = dt.datetime.fromisoformat(decode(rows.lines[-1]).record.ts)
        return LogChange(int(at.timestamp() * 10**9), b"%d:%d" % (rows.edition, rows.last_seq))

    def tail(self, max_bytes: int | None = None) -> tuple[bytes, bool]:
        raw = b"".join(self._rows.lines)
        return (
            (raw, True) if max_bytes is None or len(raw) <= max_bytes else (raw[-max_bytes:].partition(b"\n")[2], False)
        )

    def follow(self, edition: int = 0, since_seq: int = 0) -> Followed:
        rows = self._rows
        records = self._read(rows, since_seq if rows.edition == edition else 0, media=False)
        return Followed(edition=rows.edition, is_same=rows.edition == edition, records=tuple(records))

    def read(self, since_seq: int = 0, *, media: bool = True) -> Iterator[Record]:
        return self._read(self._rows, since_seq, media=media)

    def _read(self, rows: Rows, since_seq: int, *, media: bool) -> Iterator[Record]:
        content = self._logs.blobs.__getitem__ if media else None
        return iter([record_with_media(line, content) for line in rows.records() if line.record.seq > since_seq])

    def append(
        self,
        bodies: Sequence[Body],
        *,
        expected_last_seq: int | None = None,
        edition: int = 0,
        at: dt.datetime | None = None,
    ) -> Appended:
        if not bodies:
            raise InvalidRequest("There is nothing to append. Send at least one record.")
        drafts = [draft_record(body) for body in bodies]
        with self._logs.lock:
            if edition:
                self._same(edition)
            self.expect(expected_last_seq)
            if not self._rows.lines:
                header = first_header(self._session_id, bodies[0])
                drafts = [draft_record(header), *drafts[isinstance(bodies[0], SessionHeader) :]]
            rows = self._rows
            lines = (*rows.lines, *self._lines(drafts, at))
            self._logs.store(self._session_id, replace(rows, lines=lines), drafts)
            return Appended(first_seq=self._rows.last_seq - len(bodies) + 1, last_seq=self._rows.last_seq)

    def _lines(self, drafts: Sequence[RecordDraft], at: dt.datetime | None = None) -> list[bytes]:
        ts = (at or self._logs.now()).astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
        return [encode(draft, seq=seq, ts=ts) for seq, draft in enumerate(drafts, start=self._rows.last_seq + 1)]

    def expect(self, last_seq: int | None) -> None:
        """Refuses with `Conflict` if the last record is another one; None is any."""
        if last_seq not in (None, self._rows.last_seq):
            raise Conflict(f"The log ends with record {self._rows.last_seq}, not {last_seq}. Read what was added.")

    def _same(self, edition: int) -> None:
        if not self._rows.edition or self._rows.edition != edition:
            raise Conflict("The log was deleted, trimmed or restored meanwhile, so nothing was written.")

    def _line_of_message(self, seq: int) -> LogLine:
        for line in self._rows.records():
            if line.record.seq == seq and isinstance(line.record.body, MessageRecord):
                return line
        raise NotFound(f"The log has no message {seq}. Read the log to see what it has.")

    def message(self, seq: int, *, media: bool = True) -> str:
        body = record_with_media(self._line_of_message(seq), self._logs.blobs.__getitem__ if media else None).body
        assert isinstance(body, MessageRecord)
        return body.text

    def content(self, seq: int, number: int) -> bytes:
        parts = self._line_of_message(seq).parts
        if not 1 <= number <= len(parts):
            raise NotFound(f"Message {seq} has no medium {number}.")
        return self._logs.blobs[parts[number - 1].sha256]

    def outline(self, *, trimmed: bool = False) -> list[tuple[int, str]]:
        return sorted({(line.record.seq, line.record.kind) for line in self._rows.records(trimmed=trimmed)})

    def trims(self) -> Iterator[TrimmedRecords]:
        state = self._rows.records()
        for lines in reversed(self._rows.trims):
            earlier, here = [decode(line) for line in lines], {line.record.seq for line in state}
            last_seq = earlier[-1].record.seq
            gone = [line for line in earlier if line.record.seq not in here]
            yield TrimmedRecords(last_seq + 1, [record_with_media(line, self._logs.blobs.__getitem__) for line in gone])
            state = [*earlier, *(line for line in state if line.record.seq > last_seq)]

    def trim(self, keep: Collection[int], record: TrimRecord, *, expected_last_seq: int, edition: int) -> str:
        with self._logs.lock:
            self._same(edition)
            self.expect(expected_last_seq)
            rows = self._rows
            kept = [line for line in rows.lines if decode(line).record.seq in keep]
            name = f"trim-{len(rows.trims) + 1}"
            made = draft_record(replace(record, backup=name, lines=len(rows.lines) - len(kept)))
            trims = (*rows.trims, rows.lines)
            self._logs.store(self._session_id, Rows(lines=(*kept, *self._lines([made])), trims=trims))
            return name

    def restore_trim(self) -> None:
        with self._logs.lock:
            rows = self._rows
            if not rows.trims:
                raise NotFound("There is no trim to take back. Nothing has to be done.")
            earlier = Rows(lines=rows.trims[-1])
            newer = [line for line in rows.lines if decode(line).record.seq > earlier.last_seq]
            self._logs.store(self._session_id, Rows(lines=(*earlier.lines, *newer), trims=rows.trims[:-1]))

    @contextmanager
    def hold(self, edition: int) -> Iterator[None]:
        with self._logs.lock:
            self._same(edition)
            yield

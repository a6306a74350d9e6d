"""The log of one session as rows: a record a row, media beside it.

Invariants: one statement compares, numbers and stores a batch, and touches no row that another session has; a trim
marks the rows that go, and taking it back takes the mark away; an edition holds which server gave it and since when,
so that a standby which does not know the last records has another one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, LiteralString

from indexer.stores import Transaction
from memory_service.errors import Conflict, InvalidRequest, NotFound, StorageFailed
from memory_service.sessions.codec import (
    LogLine,
    RecordDraft,
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
    Unknown,
)
from memory_service.storage.logs import LogChange, LogStatus, Rewrite, TrimmedRecords
from memory_service.storage.postgres.log_rows import (
    EDITION,
    SIZE,
    SIZE_VALUES,
    RecordRow,
    blob,
    insert_media,
    insert_records,
    last_lines,
    remove_media,
)
from memory_service.storage.postgres.workspace_rows import WorkspaceRows, new_state
from memory_service.storage.revisions import ATTEMPTS, kept_changing

_ROWS_AT_ONCE = 256
_AS_EXPECTED: Final[LiteralString] = (
    "(%(last_seq)s::numeric IS NULL OR last_seq = %(last_seq)s) "
    "AND CASE WHEN %(edition)s = 0 THEN true ELSE " + EDITION + " = %(edition)s END"
)
_APPEND: Final[LiteralString] = (
    """
WITH head AS (
    UPDATE sessions SET
        last_seq = last_seq + %(count)s,
        size_bytes = size_bytes + %(size_bytes)s
            + (SELECT sum(length(n::text)) FROM generate_series(last_seq + 1, last_seq + %(count)s) n),
        revision = %(state)s,
        active_at = %(active_at)s,
        changed_at = greatest(changed_at, clock_timestamp())
    WHERE ws = %(ws)s AND session = %(session)s AND """
    + _AS_EXPECTED
    + """
    RETURNING last_seq - %(count)s AS before
)
INSERT INTO log_records (ws, session, seq, ts, kind, rest, batch)
SELECT %(ws)s, %(session)s, before + place, %(ts)s, kind, rest, CASE place WHEN 1 THEN %(count)s ELSE 0 END
FROM head, unnest(%(kinds)s::text[], %(rests)s::bytea[]) WITH ORDINALITY record(kind, rest, place)
RETURNING seq"""
)
_BEGIN: Final[LiteralString] = """
INSERT INTO sessions (ws, session, begun, edition, revision, last_seq, size_bytes, trims, active_at)
VALUES (
    %(ws)s, %(session)s, %(state)s, %(state)s, %(state)s, %(last_seq)s, %(size_bytes)s, %(trims)s, %(active_at)s
)
ON CONFLICT (ws, session) DO NOTHING"""
_TRIM: Final[LiteralString] = (
    """
UPDATE sessions SET
    last_seq = last_seq + 1,
    edition = %(state)s,
    trims = trims || (last_seq + 1),
    active_at = %(active_at)s,
    changed_at = greatest(changed_at, clock_timestamp())
WHERE ws = %(ws)s AND session = %(session)s AND """
    + _AS_EXPECTED
    + " RETURNING last_seq"
)
# After anything but an append.
_RECOUNT: Final[LiteralString] = (
    "UPDATE sessions SET edition = %(state)s, revision = %(state)s, size_bytes = "
    + SIZE
    + ", changed_at = greatest(changed_at, clock_timestamp()) WHERE ws = %(ws)s AND session = %(session)s"
)
_PAGE: Final[LiteralString] = """
SELECT begun, last_seq, r.seq, r.ts, r.kind, r.rest, r.batch FROM sessions s JOIN log_records r USING (ws, session)
WHERE ws = %(ws)s AND session = %(session)s AND r.seq > %(after)s AND begun = coalesce(%(begun)s, begun)
    AND r.seq <= coalesce(%(upto)s, last_seq)
    AND (r.retired_by IS NULL OR r.retired_by > coalesce(%(upto)s, last_seq))
ORDER BY r.seq LIMIT %(limit)s"""


class PostgresLog:
    """A `SessionLog` in a database; see there.

    Args:
        rows: The rows of its workspace.
        session_id: The session.
        now: The present moment, with a time zone.
    """

    def __init__(self, rows: WorkspaceRows, session_id: str, *, now: Callable[[], dt.datetime]) -> None:
        self._rows = rows
        self._session_id = session_id
        self._now = now
        self._blob = partial(blob, rows)

    def status(self) -> LogStatus:
        """The log as it stands."""
        row = self._row("SELECT last_seq, size_bytes FROM sessions WHERE ws = %s AND session = %s")
        return LogStatus(last_seq=row[0], size_bytes=row[1]) if row else LogStatus(last_seq=0, size_bytes=0)

    def foreign(self) -> bytes | None:
        """None: no other program writes into the tables."""
        return None

    def last_change(self) -> LogChange | None:
        """The last change of the log; None if there is none."""
        row = self._row("SELECT changed_at, edition, revision FROM sessions WHERE ws = %s AND session = %s")
        if row is None:
            return None
        changed_at, edition, revision = row
        since = changed_at - dt.datetime.fromtimestamp(0, dt.UTC)
        return LogChange(since // dt.timedelta(microseconds=1) * 1000, b"%d:%d" % (edition, revision))

    def tail(self, max_bytes: int | None = None) -> tuple[bytes, bool]:
        """The last lines, and whether they are all of the log."""
        lines, size_bytes = list[bytes](), 0
        with self._rows.reading() as transaction:
            for line in last_lines(transaction, self._session_id) if transaction else ():
                size_bytes += len(line)
                if max_bytes is not None and size_bytes > max_bytes:
                    return b"".join(reversed(lines)), False
                lines.append(line)
        return b"".join(reversed(lines)), True

    def follow(self, edition: int = 0, since_seq: int = 0) -> Followed:
        """The records after `since_seq`, as `read` gives them without media; all, if the log is another edition."""
        query: LiteralString = (
            "SELECT s.now, r.seq, r.ts, r.kind, r.rest FROM (SELECT ws, session, " + EDITION + " AS now FROM sessions "
            "WHERE ws = %(ws)s AND session = %(session)s) s JOIN log_records r USING (ws, session) "
            "WHERE retired_by IS NULL AND r.seq > CASE WHEN s.now = %(edition)s THEN %(since_seq)s ELSE 0 END "
            "UNION ALL SELECT " + EDITION + ", NULL, NULL, NULL, NULL FROM sessions "
            "WHERE ws = %(ws)s AND session = %(session)s ORDER BY 2"
        )
        rows = self._rows.read(query, session=self._session_id, edition=edition, since_seq=since_seq)
        now = rows[-1][0] if rows else 0
        lines = (RecordRow.read(*row[1:]).decode() for row in rows[:-1])
        records = tuple(record_with_media(line, None) for line in lines if line is not None)
        return Followed(edition=now, is_same=now == edition, records=records)

    def read(self, since_seq: int = 0, *, media: bool = True) -> Iterator[Record]:
        """The records after `since_seq` that are there now, in order; damaged ones are skipped."""
        values: dict[str, object] = {"session": self._session_id, "begun": None, "upto": None, "limit": _ROWS_AT_ONCE}
        rows: Sequence[tuple[Any, ...]] = [()] * _ROWS_AT_ONCE
        while len(rows) == _ROWS_AT_ONCE:
            rows = self._rows.read(_PAGE, after=since_seq, **values)
            for log_number, upto, *row in rows:
                # A trim that comes meanwhile leaves the rest to be read; a log that was begun anew has none of it.
                values |= {"begun": log_number, "upto": values["upto"] or upto}
                since_seq = row[0]
                if (line := RecordRow.read(*row).decode()) is not None:
                    yield self._record(line, media)

    def _record(self, line: LogLine, media: bool) -> Record:
        """The record of a line, with notes in the place of media that went meanwhile."""
        with suppress(NotFound):
            return record_with_media(line, self._blob if media else None)
        return record_with_media(line, None)

    def message(self, seq: int, *, media: bool = True) -> str:
        """The JSON text of one message, as it was given."""
        line = self._line_of_message(seq)
        try:
            body = record_with_media(line, self._blob if media else None).body
        except NotFound as error:
            raise StorageFailed(
                f"What message {seq} keeps beside the log is gone. Restore it from a backup."
            ) from error
        assert isinstance(body, MessageRecord)
        return body.text

    def content(self, seq: int, number: int) -> bytes:
        """A medium of a message, counted from 1."""
        parts = self._line_of_message(seq).parts
        if not 1 <= number <= len(parts):
            raise NotFound(
                f"Message {seq} has {len(parts)} media, and none with the number {number}. Take one of these."
            )
        return self._blob(parts[number - 1].sha256)

    def _line_of_message(self, seq: int) -> LogLine:
        row = self._row(
            "SELECT seq, ts, kind, rest FROM log_records WHERE ws = %s AND session = %s AND seq = %s "
            "AND kind = 'message' AND retired_by IS NULL",
            seq,
        )
        line = RecordRow.read(*row).decode() if row else None
        if line is None:
            raise NotFound(f"The log of {self._session_id} has no message {seq}. Read the log to see what it has.")
        return line

    def outline(self, *, trimmed: bool = False) -> list[tuple[int, str]]:
        """Number and kind of each record; of those that trims put aside too, if they are wanted."""
        query: LiteralString = (
            "SELECT seq, kind FROM log_records WHERE ws = %s AND session = %s AND (%s OR retired_by IS NULL) "
            "ORDER BY seq"
        )
        return [(seq, kind) for seq, kind in self._rows.read(query, self._session_id, trimmed)]

    def append(
        self,
        bodies: Sequence[Body],
        *,
        expected_last_seq: int | None = None,
        edition: int = 0,
        at: dt.datetime | None = None,
    ) -> Appended:
        """Appends records, all or none of them; an empty log gets a header first."""
        if not bodies:
            raise InvalidRequest("There is nothing to append. Send at least one record.")
        drafts = [draft_record(body) for body in bodies]
        ts, must_exist = _ts(at or self._now()), bool(edition or expected_last_seq)
        for _ in range(ATTEMPTS):
            last_seq = self._append(drafts, ts, expected_last_seq, edition)
            if last_seq is None and not must_exist and not self.status().last_seq:
                header = first_header(self._session_id, bodies[0])
                new = [draft_record(header), *drafts[isinstance(bodies[0], SessionHeader) :]]
                rows = [RecordRow(seq, ts, draft) for seq, draft in enumerate(new, start=1)]
                last_seq = self.begin([rows[0]._replace(batch=len(rows)), *rows[1:]])
            if last_seq is not None:
                return Appended(first_seq=last_seq - len(bodies) + 1, last_seq=last_seq)
            self._refuse(expected_last_seq, edition)
        raise kept_changing(self._session_id)

    def _append(self, drafts: Sequence[RecordDraft], ts: str, last_seq: int | None, edition: int) -> int | None:
        """Appends to a log that is there and as it is expected; None if it is not."""
        if not self._rows.are_there:
            return None
        values = self._values(last_seq=last_seq, edition=edition, ts=ts) | {
            "count": len(drafts),
            # As of a number of no digits.
            "size_bytes": sum(
                len(encode(draft, seq=1, ts=ts, batch=0 if at else len(drafts))) - 1 for at, draft in enumerate(drafts)
            ),
            "ts": ts,
            "kinds": [draft.kind for draft in drafts],
            "rests": [draft.rest.encode() for draft in drafts],
        }
        if not any(draft.media and draft.media.parts for draft in drafts):
            return max((seq for (seq,) in self._rows.write(_APPEND, values)), default=None)
        with self._rows.writing() as transaction:
            rows = transaction.rows(_APPEND, {**values, "ws": transaction.workspace})
            seqs: list[int] = sorted(seq for (seq,) in rows)
            insert_media(transaction, self._session_id, zip(seqs, drafts, strict=False))
        return seqs[-1] if seqs else None

    def begin(
        self, rows: Sequence[RecordRow], trims: Mapping[int, Sequence[RecordRow]] = MappingProxyType({})
    ) -> int | None:
        """Begins the log with records, the last of which has the largest number; None if there is one.

        Args:
            rows: The records.
            trims: Records that trims put aside, by the number of the trim.
        """
        size_bytes = sum(len(row.line) for row in rows)
        with self._rows.writing() as transaction:
            values = self._values(transaction, last_seq=rows[-1].seq, ts=rows[-1].ts) | {
                "size_bytes": size_bytes,
                "trims": sorted(trims),
            }
            if not transaction.execute(_BEGIN, values).rowcount:
                return None
            insert_records(transaction, self._session_id, rows)
            for trim_seq, aside in trims.items():
                insert_records(transaction, self._session_id, aside)
                transaction.execute(
                    "UPDATE log_records SET retired_by = %s WHERE ws = %s AND session = %s AND seq = ANY(%s)",
                    [trim_seq, transaction.workspace, self._session_id, [row.seq for row in aside]],
                )
        return rows[-1].seq

    def trim(self, keep: Collection[int], record: TrimRecord, *, expected_last_seq: int, edition: int) -> str:
        """Marks all records but these, and appends a record of that."""
        ts = _ts(self._now())
        with self._rows.writing() as transaction:
            values = self._values(transaction, last_seq=expected_last_seq, edition=edition, ts=ts)
            row = transaction.row(_TRIM, values)
            if row is not None:
                seq: int = row[0]
                gone_count = transaction.execute(
                    "UPDATE log_records SET retired_by = %s WHERE ws = %s AND session = %s AND retired_by IS NULL "
                    "AND NOT (seq = ANY(%s))",
                    [seq, transaction.workspace, self._session_id, list(keep)],
                ).rowcount
                draft = draft_record(replace(record, backup=trim_name(seq), lines=gone_count))
                insert_records(transaction, self._session_id, [RecordRow(seq, ts, draft)])
                transaction.execute(_RECOUNT, self._values(transaction) | SIZE_VALUES)
                return trim_name(seq)
        self._refuse(expected_last_seq, edition)
        raise kept_changing(self._session_id)

    def restore_trim(self) -> None:
        """Takes the last trim back; what was appended since stays."""
        with self._existing() as transaction:
            values = self._values(transaction)
            row = transaction.row(
                "UPDATE sessions SET trims = trims[:cardinality(trims) - 1] "
                "WHERE ws = %(ws)s AND session = %(session)s AND cardinality(trims) > 0 "
                "RETURNING (SELECT s.trims[cardinality(s.trims)] FROM sessions s "
                "WHERE s.ws = %(ws)s AND s.session = %(session)s)",
                values,
            )
            if row is None:
                raise NotFound(f"The log of {self._session_id} has no trim to take back. Nothing has to be done.")
            transaction.execute(
                "UPDATE log_records SET retired_by = NULL WHERE ws = %(ws)s AND session = %(session)s "
                "AND retired_by = %(trim)s",
                values | {"trim": row[0]},
            )
            transaction.execute(_RECOUNT, self._values(transaction) | SIZE_VALUES)

    def trims(self) -> Iterator[TrimmedRecords]:
        """Records that trims have put aside, the last trim first."""
        for trim_seq in reversed((self._row("SELECT trims FROM sessions WHERE ws = %s AND session = %s") or [[]])[0]):
            rows = self._rows.read(
                "SELECT seq, ts, kind, rest, batch FROM log_records WHERE ws = %s AND session = %s AND retired_by = %s "
                "ORDER BY seq",
                self._session_id,
                trim_seq,
            )
            lines = filter(None, (RecordRow.read(*row).decode() for row in rows))
            yield TrimmedRecords(trim_seq, [self._record(line, True) for line in lines])

    @contextmanager
    def hold(self, edition: int) -> Iterator[None]:
        """Keeps a log from being deleted, trimmed or written to by others; what is stored within goes with it."""
        with self._rows.writing() as transaction:
            values = self._values(transaction, edition=edition)
            locks = "SELECT FROM sessions WHERE ws = %(ws)s AND session = %(session)s AND " + EDITION + " = %(edition)s"
            if transaction.row(locks + " FOR NO KEY UPDATE", values) is None:
                self._refuse(None, edition)
            yield

    def rewrite(self, change: Rewrite, *, first: Callable[[], None]) -> None:
        """Gives records another body; see `LogStore.rewrite`."""
        with self._existing() as transaction:
            rows = transaction.rows(
                "SELECT seq, ts, kind, rest FROM log_records WHERE ws = %s AND session = %s AND retired_by IS NULL "
                "ORDER BY seq",
                [transaction.workspace, self._session_id],
                binary=True,
            )
            bodies = change(_stored_records(RecordRow.read(*row) for row in rows))
            first()
            drafts = {seq: draft_record(body) for seq, body in bodies.items()}
            transaction.execute(
                "UPDATE log_records r SET kind = new.kind, rest = new.rest "
                "FROM unnest(%s::bigint[], %s::text[], %s::bytea[]) new(seq, kind, rest) "
                "WHERE ws = %s AND session = %s AND r.seq = new.seq AND retired_by IS NULL",
                [
                    list(drafts),
                    [draft.kind for draft in drafts.values()],
                    [draft.rest.encode() for draft in drafts.values()],
                    transaction.workspace,
                    self._session_id,
                ],
            )
            remove_media(transaction, self._session_id, list(drafts))
            insert_media(transaction, self._session_id, drafts.items())
            transaction.execute(_RECOUNT, self._values(transaction) | SIZE_VALUES)

    def delete(self, *, first: Callable[[], None]) -> None:
        """Removes the log; see `LogStore.delete`."""
        with self._existing() as transaction:
            first()
            values = [transaction.workspace, self._session_id]
            transaction.execute("DELETE FROM log_records WHERE ws = %s AND session = %s", values)
            remove_media(transaction, self._session_id)
            transaction.execute("DELETE FROM sessions WHERE ws = %s AND session = %s", values)

    @contextmanager
    def _existing(self) -> Iterator[Transaction]:
        """A transaction that nobody else writes to the log in, which must be there."""
        if self._rows.are_there:
            with self._rows.writing() as transaction:
                values = [transaction.workspace, self._session_id]
                locks: LiteralString = "SELECT FROM sessions WHERE ws = %s AND session = %s FOR UPDATE"
                if transaction.row(locks, values) is not None:
                    yield transaction
                    return
        raise NotFound(f"There is no session {self._session_id}. List the sessions to see their ids.")

    def _refuse(self, last_seq: int | None, edition: int) -> None:
        """Refuses with `Conflict` if the log is not as it is expected."""
        query: LiteralString = "SELECT last_seq, " + EDITION + " FROM sessions WHERE ws = %s AND session = %s"
        last, now = self._row(query) or (0, 0)
        if edition and not now:
            raise Conflict(
                f"The session {self._session_id} was deleted meanwhile, so nothing was written. "
                "Begin a new one, if there shall be one."
            )
        if edition not in (0, now):
            raise Conflict(
                f"The log of {self._session_id} was deleted and begun anew, trimmed or restored meanwhile, "
                "so nothing was written. Look at the session again."
            )
        if last_seq not in (None, last):
            raise Conflict(
                f"The log of {self._session_id} ends with record {last}, not {last_seq}. "
                "Read what was added, then try again."
            )

    def _row(self, query: LiteralString, *values: object) -> tuple[Any, ...] | None:
        """The first row of a query whose first two values are the workspace and the session."""
        return next(iter(self._rows.read(query, self._session_id, *values)), None)

    def _values(
        self, transaction: Transaction | None = None, *, last_seq: int | None = None, edition: int = 0, ts: str = ""
    ) -> dict[str, object]:
        """Values that most statements take."""
        return {
            "ws": transaction.workspace if transaction else None,
            "session": self._session_id,
            "state": new_state(),
            "last_seq": last_seq,
            "edition": edition,
            "active_at": _moment(ts) if ts else self._now(),
        }


def trim_name(seq: int) -> str:
    """The name of what a trim puts aside."""
    return f"trim-{seq}"


def _ts(now: dt.datetime) -> str:
    return now.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _moment(ts: str) -> dt.datetime:
    """The time of a record; the present one for a record of another program that says none."""
    with suppress(ValueError):
        at = dt.datetime.fromisoformat(ts)
        return at if at.tzinfo else at.replace(tzinfo=dt.UTC)
    return dt.datetime.now(dt.UTC)


def _stored_records(rows: Iterable[RecordRow]) -> Iterator[Record]:
    """The records of rows, those that cannot be read as `Unknown`."""
    for row in rows:
        line, kind = row.decode(), row.draft.kind
        unreadable = Record(seq=row.seq, ts=row.ts, kind=kind, body=Unknown(kind=kind, text=""))
        yield line.record if line else unreadable

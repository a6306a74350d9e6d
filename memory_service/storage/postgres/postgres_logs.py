"""The session logs of a workspace as rows of a PostgreSQL database.

Invariants: looking creates nothing; a log goes in one transaction with what was made of it.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, LiteralString

from indexer.common import LRU
from indexer.stores import PostgresDatabase
from memory_service.errors import Conflict, InvalidRequest, NotFound
from memory_service.home import check_session_id
from memory_service.schemas.sessions import ListedSession
from memory_service.sessions.codec import draft_copy
from memory_service.sessions.records import Record, SessionHeader, TrimRecord, whole_batches
from memory_service.storage.logs import Rewrite, TrimmedRecords
from memory_service.storage.postgres.log_rows import RecordRow
from memory_service.storage.postgres.postgres_log import PostgresLog, trim_name
from memory_service.storage.postgres.workspace_rows import WorkspaceRows

_CACHED_LOGS = 256
# So many logs are searched by one statement.
_LOGS_AT_ONCE = 16
_LAST_ACTIVE_FIRST: Final[LiteralString] = (
    "SELECT session FROM sessions WHERE ws = %s ORDER BY active_at DESC, session DESC"
)
_CONTAINING: Final[LiteralString] = (
    "SELECT DISTINCT session FROM log_records WHERE ws = %s AND session = ANY(%s) AND retired_by IS NULL "
    "AND position(%s::bytea IN rest) > 0"
)


class PostgresLogs:
    """The `LogStore` of one workspace.

    Args:
        database: The database.
        workspace: Name of the workspace, which the first session makes.
        now: The present moment, with a time zone.
    """

    def __init__(
        self,
        database: PostgresDatabase,
        workspace: str,
        *,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self._rows = WorkspaceRows(database, workspace)
        self._now = now
        self._logs: LRU[str, PostgresLog] = LRU(_CACHED_LOGS)
        self._guard = threading.Lock()

    def list(self) -> list[ListedSession]:
        """All sessions, the last active first."""
        rows = self._rows.read(
            "SELECT s.session, active_at, last_seq, size_bytes, r.seq, r.ts, r.kind, r.rest FROM sessions s "
            "CROSS JOIN LATERAL (SELECT seq, ts, kind, rest FROM log_records r WHERE r.ws = s.ws "
            "AND r.session = s.session AND retired_by IS NULL ORDER BY seq LIMIT 1) r "
            "WHERE s.ws = %s ORDER BY active_at DESC, s.session DESC"
        )
        return [
            ListedSession(
                session_id=session_id,
                title=_title(RecordRow.read(*first)),
                last_activity=active_at.astimezone(dt.UTC),
                last_seq=last_seq,
                size_bytes=size_bytes,
            )
            for session_id, active_at, last_seq, size_bytes, *first in rows
        ]

    def open(self, session_id: str, *, must_exist: bool = True) -> PostgresLog:
        """The log of a session; the same object as before, so that a session of it stays open."""
        check_session_id(session_id)
        with self._guard:
            log = self._logs.get(session_id)
            if log is None:
                log = self._logs[session_id] = PostgresLog(self._rows, session_id, now=self._now)
        if must_exist and not log.status().last_seq:
            raise NotFound(f"There is no session {session_id}. List the sessions to see their ids.")
        return log

    def begin(self, session_id: str, records: Iterable[Record], trims: Iterable[TrimmedRecords] = ()) -> None:
        """Begins a log with records under their numbers and at their times; see `LogStore`."""
        own_records, states = list(records), list(trims)
        seqs = {state.trim_seq for state in states}
        whole = whole_batches([*own_records, *(record for state in states for record in state.records)])
        rows = [_row_of(record, seqs, whole) for record in own_records]
        aside = {trim_seq: [_row_of(record, seqs, whole) for record in taken] for trim_seq, taken in states}
        kinds = {row.seq: row.draft.kind for each in (rows, *aside.values()) for row in each}
        if unknown := [seq for seq in seqs if kinds.get(seq) != "trimmed"]:
            raise InvalidRequest(f"Record {unknown[0]} is none of a trim. Give each trim its own record.")
        if self.open(session_id, must_exist=False).begin(rows, aside) is None:
            raise Conflict(f"There is a session {session_id} already. Choose another id, or go on with it.")

    def containing(self, mark: bytes) -> Iterator[str]:
        """Ids of the sessions one of whose records has some bytes in it, behind its kind, the last active first."""
        names = [name for (name,) in self._rows.read(_LAST_ACTIVE_FIRST)]
        # What is looked for was mostly said lately: whoever takes the first has the others not read.
        for at in range(0, len(names), _LOGS_AT_ONCE):
            yield from self._containing(mark, names[at : at + _LOGS_AT_ONCE])

    def _containing(self, mark: bytes, names: Sequence[str]) -> Sequence[str]:
        there = {name for (name,) in self._rows.read(_CONTAINING, names, mark)}
        return [name for name in names if name in there]

    def rewrite(self, session_id: str, change: Rewrite, *, first: Callable[[], None]) -> None:
        """Gives records another body, and removes the contents that no log names any more."""
        self.open(session_id).rewrite(change, first=first)

    def delete(self, session_id: str, *, first: Callable[[], None] = lambda: None) -> None:
        """Removes a log, what trims put aside of it, and the contents that no other log names."""
        self.open(session_id).delete(first=first)
        self._logs.pop(session_id)

    @contextmanager
    def unit(self) -> Iterator[None]:
        """A transaction, of which all is a part that its thread does in the workspace meanwhile."""
        with self._rows.writing():
            yield

    def has_remains(self, session_id: str) -> bool:
        """True if the log of a session is there; what trims put aside goes with it."""
        return bool(self.open(session_id, must_exist=False).status().last_seq)

    def leftovers(self) -> Sequence[str]:
        """Nothing: what was not committed is not there."""
        return ()

    def sweep(self) -> None:
        """Nothing is left over."""


def _row_of(record: Record, trims: Collection[int], whole: Collection[int]) -> RecordRow:
    """A record of another log as a row; those of trims that can be taken back name what this engine has of them."""
    body = record.body
    if record.seq in trims and isinstance(body, TrimRecord):
        record = replace(record, body=replace(body, backup=trim_name(record.seq)))
    return RecordRow(record.seq, record.ts, draft_copy(record), record.batch_length if record.seq in whole else 0)


def _title(first: RecordRow) -> str:
    """The title in the first record of a log; empty if that is no header."""
    line = first.decode()
    return line.record.body.title if line and isinstance(line.record.body, SessionHeader) else ""

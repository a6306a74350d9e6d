"""What erasing costs in a workspace of a database that has a long history.

`python -m tests.benchmarks.postgres_forget [--receipts 100000] [--sessions 1000] [--versions 10000]` prints for an
entry, a message, a session and a file that are erased, and for a list of receipts:

- `seconds`, `own_cpu`, `database_cpu`: wall time and processor seconds of the service and of the database;
- `trips`: how often the database is waited for;
- `rows`: rows that the database read of the tables of histories, by index or not;
- `expired`: receipts of one day that are deleted when it is over;
- `other_waits`: the longest wait, in seconds, of another workspace that remembers and searches all the time: before
  a memory is forgotten, and meanwhile; `lock_waits`: how often a connection was seen that waits for a lock.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from pydantic import SecretStr

from memory_service.config import Settings
from memory_service.schemas import NewSession
from memory_service.service import MemoryService
from tests.benchmarks.postgres_search import count_trips, database_seconds, write_sample_notes
from tests.postgres import databases

_TABLES = ("records", "document_versions", "documents", "log_records", "sessions", "blob_refs")
_VERSION_BYTES, _MESSAGES = 4_000, 40
# A connection that is idle tells after ten seconds what it has read.
_COUNTED_SECONDS = 11.0
_FILL = """
INSERT INTO records (ws, kind, key, session, stored_at, expires, raw)
SELECT r.ws, 'receipt', convert_to('r' || to_char(day, 'YYYYMMDD') || '-' || left(md5(n::text), 16), 'UTF8'),
       convert_to('talk-' || n % {sessions}, 'UTF8'), day, day + interval '30 days', r.raw
FROM generate_series(1, {receipts}) n, LATERAL (SELECT now() - n % 29 * interval '1 day' AS day) d,
     (SELECT ws, raw FROM records WHERE kind = 'receipt' LIMIT 1) r;
INSERT INTO records (ws, kind, key, session, expires, raw)
SELECT r.ws, r.kind, convert_to('talk-' || n, 'UTF8'), convert_to('talk-' || n, 'UTF8'), 'infinity', r.raw
FROM generate_series(0, {sessions} - 1) n, records r WHERE r.kind = 'prompt' AND r.key = 'talk';
INSERT INTO sessions (ws, session, begun, edition, revision, last_seq, size_bytes, active_at)
SELECT s.ws, 'talk-' || n, begun + n, edition, revision, last_seq, size_bytes, active_at
FROM generate_series(0, {sessions} - 1) n, sessions s WHERE s.session = 'talk';
INSERT INTO log_records (ws, session, seq, ts, kind, rest, batch)
SELECT ws, 'talk-' || n, seq, ts, kind, rest, batch FROM generate_series(0, {sessions} - 1) n, log_records r
WHERE r.session = 'talk';
INSERT INTO document_versions (ws, path, version, replaced_at, content)
SELECT d.ws, d.path, n, now() - n * interval '1 minute',
       convert_to(left((SELECT string_agg(md5(n || d.path || k) || E'\\n', '- ') FROM generate_series(1, 130) k),
                       {version_bytes}), 'UTF8')
FROM generate_series(1, {versions} / 100) n, (SELECT ws, path FROM documents ORDER BY path LIMIT 100) d;
"""


def fill(service: MemoryService, address: str, folder: Path, options: argparse.Namespace) -> None:
    """A workspace with notes, and with the history that was asked for."""
    write_sample_notes(folder, 8_000)
    documents = service.storage.workspace("default").documents
    for file in sorted(folder.rglob("*.md")):
        documents.append(str(file.relative_to(folder)), file.read_bytes(), expected=None)
    talk(service, "default", "talk")
    service.reindex("default")
    with psycopg.connect(address, autocommit=True) as connection:
        text = _FILL.format(
            receipts=options.receipts,
            sessions=options.sessions,
            versions=options.versions,
            version_bytes=_VERSION_BYTES,
        )
        for statement in text.split(";\n"):
            if statement.strip():
                connection.execute(statement.encode())
        service.reindex("default")
        connection.execute("VACUUM ANALYZE")


def talk(service: MemoryService, workspace: str, session_id: str) -> None:
    """A session with messages and a prompt."""
    service.create_session(workspace, NewSession(session_id=session_id))
    messages = [
        {"role": role, "content": f"{session_id}: message {number} about parcels, ferns and invoices. " * 6}
        for number in range(_MESSAGES // 2)
        for role in ("user", "assistant")
    ]
    service.append(workspace, session_id, messages)
    service.session_context(workspace, session_id)


class Elsewhere:
    """Another workspace at work: the longest wait of what it did since it was asked last."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._longest = 0.0
        self._ends = threading.Event()
        service.remember("other", "The other workspace ships ferns.")

    def run(self) -> None:
        """Remember and search until it is ended."""
        number = 0
        while not self._ends.wait(0.01):
            number += 1
            begin = time.perf_counter()
            self._service.remember("other", f"Parcel {number} of the other workspace has left.")
            self._service.search("other", "which parcel has left")
            self._longest = max(self._longest, time.perf_counter() - begin)

    def longest(self) -> float:
        """The longest wait since the last call."""
        longest, self._longest = self._longest, 0.0
        return longest

    def end(self) -> None:
        """End it."""
        self._ends.set()


@contextmanager
def elsewhere(address: str, folder: Path) -> Iterator[Elsewhere]:
    """Another server, at work in another workspace while a block runs."""
    with closing(service_of(address, folder)) as service:
        other = Elsewhere(service)
        thread = threading.Thread(target=other.run)
        thread.start()
        try:
            yield other
        finally:
            other.end()
            thread.join()


def service_of(address: str, folder: Path) -> MemoryService:
    """A service on the database, which searches by words."""
    return MemoryService(Settings(home=folder, database_url=SecretStr(address), embedding_model="none"))


def rows_read(watch: psycopg.Connection[Any]) -> int:
    """Rows of the tables of histories that were read so far."""
    watch.execute("SELECT pg_stat_clear_snapshot()")
    row = watch.execute(
        "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables WHERE relname = ANY(%s)",
        [[*_TABLES]],
    ).fetchone()
    assert row is not None
    return int(row[0])


def measure(work: Callable[[], object], watch: psycopg.Connection[Any]) -> dict[str, float]:
    """Costs of one call."""
    time.sleep(_COUNTED_SECONDS)
    rows, of_database, wall, own = rows_read(watch), database_seconds(watch), time.perf_counter(), time.process_time()
    with count_trips() as trips:
        work()
    wall, own = time.perf_counter() - wall, time.process_time() - own
    of_database = database_seconds(watch) - of_database
    time.sleep(_COUNTED_SECONDS)
    return {
        "seconds": round(wall, 3),
        "own_cpu": round(own, 3),
        "database_cpu": round(of_database, 3),
        "trips": trips[0],
        "rows": rows_read(watch) - rows,
    }


def count_lock_waits(work: Callable[[], object], watch: psycopg.Connection[Any]) -> int:
    """How often a connection is seen that waits for another one's lock while something is done."""
    thread, count = threading.Thread(target=work), 0
    thread.start()
    while thread.is_alive():
        row = watch.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
        count += row[0] if row else 0
        time.sleep(0.002)
    thread.join()
    return count


def main() -> None:
    """Measure, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--receipts", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--versions", type=int, default=10_000)
    options = parser.parse_args()
    with databases() as made, tempfile.TemporaryDirectory() as name:
        address, folder = made.migrated(), Path(name)
        with (
            closing(service_of(address, folder / "home")) as service,
            psycopg.connect(address, autocommit=True) as watch,
        ):
            fill(service, address, folder / "notes", options)
            entry = service.remember("default", "The gate code of the greenhouse is 4711.")
            talk(service, "default", "gone")
            file = service.files("default")[0].path
            work: dict[str, Callable[[], object]] = {
                "nothing": lambda: None,
                "entry": lambda: service.forget("default", entry.memory_id),
                "message": lambda: service.erase_messages("default", "gone", [4]),
                "session": lambda: service.delete_session("default", "gone"),
                "file": lambda: service.delete("default", file),
                "receipts": lambda: service.receipts("default", limit=50),
            }
            for named, call in work.items():
                sys.stdout.write(json.dumps({"erased": named, **measure(call, watch)}) + "\n")
                sys.stdout.flush()
            of_a_day = "kind = 'receipt' AND stored_at::date = now()::date - 9"
            watch.execute(f"UPDATE records SET expires = now() WHERE {of_a_day}".encode())
            watch.execute("VACUUM ANALYZE")
            begin = time.perf_counter()
            count = watch.execute("DELETE FROM records WHERE kind = 'receipt' AND expires <= now()").rowcount
            expiry = {"expired": count, "seconds": round(time.perf_counter() - begin, 3)}
            sys.stdout.write(json.dumps(expiry) + "\n")
            with elsewhere(address, folder / "other") as other:
                time.sleep(2)
                alone = other.longest()
                barn = service.remember("default", "The gate code of the barn is 4712.")
                lock_waits = count_lock_waits(lambda: service.forget("default", barn.memory_id), watch)
                waits = {"other_waits": [round(alone, 3), round(other.longest(), 3)], "lock_waits": lock_waits}
                sys.stdout.write(json.dumps(waits) + "\n")


if __name__ == "__main__":
    main()

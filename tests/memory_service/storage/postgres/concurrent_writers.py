"""Writers of one session, in a process of their own: `python -m … ADDRESS WORKSPACE SESSION NAME WRITERS BATCHES`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from indexer.stores import PostgresDatabase
from memory_service.storage.postgres.postgres_logs import PostgresLogs
from tests.memory_service.storage.log_steps import said

BATCH = 3


def append_batches(logs: PostgresLogs, session_id: str, name: str, batches: int) -> Iterator[tuple[str, int, int]]:
    """Append batches of messages; gives the text that each begins with, and the numbers that it was told."""
    log = logs.open(session_id, must_exist=False)
    for batch in range(batches):
        texts = [f"{name}.{batch}.{number}" for number in range(BATCH)]
        done = log.append([said(text) for text in texts])
        yield texts[0], done.first_seq, done.last_seq


def main(address: str, workspace: str, session_id: str, name: str, writers: str, batches: str) -> None:
    """Prints what was answered, as JSON."""
    database = PostgresDatabase(address)
    logs = PostgresLogs(database, workspace)
    with ThreadPoolExecutor(int(writers)) as pool:
        answers = pool.map(
            lambda writer: list(append_batches(logs, session_id, f"{name}{writer}", int(batches))),
            range(int(writers)),
        )
        sys.stdout.write(json.dumps([answer for part in answers for answer in part]))
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

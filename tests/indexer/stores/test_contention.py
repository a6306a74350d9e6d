"""Several who use one index file at once: they wait for each other, as long as they were told to."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from indexer.errors import StoreLocked
from indexer.stores.sqlite_database import Database


def made(path: Path, **patience: float) -> Database:
    database = Database(path, **patience)
    with database.writing():
        database.run("CREATE TABLE IF NOT EXISTS notes (text TEXT)")
    return database


def test_all_who_cut_the_log_at_once_get_it_done(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    database, reader = made(path), Database(path)
    others = [Database(path) for _ in range(3)]
    with ThreadPoolExecutor(3) as crowd:
        with reader.reading():
            assert reader.value("SELECT count(*) FROM notes") == 0
            with database.writing():
                database.run("INSERT INTO notes VALUES ('new')")
            # The first of them waits for the reader; SQLite itself sends the others away meanwhile.
            cuts = [crowd.submit(other.cut_log) for other in others]
            time.sleep(0.3)
            assert not any(cut.done() for cut in cuts)
        assert [cut.result() for cut in cuts] == [True] * 3


def test_a_writer_waits_for_another_and_no_longer_than_it_may(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    patient, hasty = made(path, busy_seconds=60.0), made(path, busy_seconds=0.2)
    holds, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with made(path).writing():
            holds.set()
            may_end.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert holds.wait(60)
    begun = time.monotonic()
    with pytest.raises(StoreLocked), hasty.writing():
        pass
    assert time.monotonic() - begun >= 0.2
    threading.Timer(0.3, may_end.set).start()
    with patient.writing():
        patient.run("INSERT INTO notes VALUES ('after it')")
    holder.join(60)
    assert hasty.value("SELECT count(*) FROM notes") == 1


def test_a_log_that_a_reader_needs_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    database, reader = made(path, busy_seconds=0.2), Database(path)
    with reader.reading():
        assert reader.value("SELECT count(*) FROM notes") == 0
        with database.writing():
            database.run("INSERT INTO notes VALUES ('new')")
        assert not database.cut_log()
    assert database.cut_log()
    assert (tmp_path / "index.sqlite-wal").stat().st_size == 0

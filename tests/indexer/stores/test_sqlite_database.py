"""Connections to a file that another one takes the place of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.indexer.stores.test_contention import made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


def test_the_log_of_a_former_generation_is_not_written_back(path: Path) -> None:
    former, following = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in (2, 3))
    path.symlink_to(former.name)
    former.touch()
    database = made(path)
    before = former.stat().st_size
    with database.writing():
        database.run("CREATE TABLE large (body)")
        database.run("INSERT INTO large VALUES (zeroblob(100000))")
    path.unlink()
    path.symlink_to(following.name)
    database.drop_stale()
    assert former.stat().st_size == before, "it is about to be deleted, with its log"
    database.close()

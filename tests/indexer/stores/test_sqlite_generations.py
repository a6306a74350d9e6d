"""Names of generations, and who may touch them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from indexer import StoreBusy, StoreError, StoreReadOnly
from indexer.stores.sqlite_database import real_path
from indexer.stores.sqlite_generations import Generations
from tests.indexer.sources.test_scan import reachable
from tests.indexer.workspace import run_unprivileged


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


def touch(path: Path, *names: str) -> None:
    for name in names:
        (path.parent / name).write_bytes(b"x")


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir() if not each.name.startswith("."))


def test_the_first_generation_is_the_file_itself(path: Path) -> None:
    generations = Generations(path)
    assert (generations.current(), generations.partial(), real_path(path)) == (0, None, str(path))
    touch(path, "index.sqlite")
    assert (generations.current(), generations.partial(), real_path(path)) == (1, None, str(path))
    assert generations.following() == path.with_name("index-2.sqlite")


def test_a_later_one_is_a_link_and_numbers_only_grow(path: Path) -> None:
    touch(path, "index.sqlite", "index-2.sqlite", "index-2.sqlite-wal")
    generations = Generations(path)
    assert generations.partial() == path.with_name("index-2.sqlite")
    generations.put_in_use(path.with_name("index-2.sqlite"))
    assert (generations.current(), generations.partial()) == (2, None)
    assert real_path(path) == str(path.with_name("index-2.sqlite"))
    assert os.readlink(path) == "index-2.sqlite", "a copied folder keeps its own"
    assert generations.following().name == "index-3.sqlite"
    touch(path, "index-9.sqlite-wal")
    assert generations.following().name == "index-10.sqlite", "what is left of another one is never taken for its log"


@pytest.mark.usefixtures("without_links")
def test_where_there_are_no_links_a_file_names_the_one_in_use(path: Path) -> None:
    touch(path, "index.sqlite", "index-2.sqlite", "index-2.sqlite-wal", "index-3.sqlite")
    generations = Generations(path)
    generations.put_in_use(path.with_name("index-2.sqlite"))
    assert path.read_text() == "index-2.sqlite\n" and not path.is_symlink()
    assert (generations.current(), generations.partial()) == (2, path.with_name("index-3.sqlite"))
    assert real_path(path) == str(path.with_name("index-2.sqlite"))
    touch(path, "index.sqlite-wal")
    generations.put_in_use(path.with_name("index-3.sqlite"))
    generations.tidy()
    assert names(path) == ["index-3.sqlite", "index.sqlite"] and generations.current() == 3
    path.with_name("index-3.sqlite").unlink()
    assert generations.current() == 0


@pytest.mark.parametrize(
    "content",
    [b"", b"/etc/passwd\n", b"../index-2.sqlite\n", b"index-2.sqlite-wal", b"index-0.sqlite", b"\xff", b"x" * 999],
)
def test_a_file_that_names_anything_else_is_the_index_itself(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert real_path(path) == str(path)


def test_tidying_leaves_the_one_in_use_and_the_partial_one(path: Path) -> None:
    touch(path, "index-2.sqlite", "index-3.sqlite", "index-3.sqlite-shm", "index-3.sqlite.pack", "index-7.sqlite")
    touch(path, "index-1.sqlite", "index-4.sqlite-wal", "index.sqlite-wal", "index.sqlite-shm", "index.sqlite.pack")
    others = ("index-x.sqlite", "index-3.sqlite.bak", "index-03.sqlite", "index-0.sqlite", "notes.md")
    touch(path, *others)
    path.symlink_to("index-3.sqlite")
    path.with_name(".index.sqlite.link").symlink_to("index-7.sqlite")
    Generations(path).tidy()
    kept = ("index-3.sqlite", "index-3.sqlite-shm", "index-3.sqlite.pack", "index-7.sqlite", "index.sqlite")
    assert names(path) == sorted((*kept, *others))
    assert not path.with_name(".index.sqlite.link").is_symlink()


def test_tidying_leaves_the_packings_of_these_alone(path: Path) -> None:
    others = (".index.sqlite.pack.notes", ".index-2.sqlite.bak", ".index-02.sqlite.pack.lock")
    kept = (".index-3.sqlite.pack.lock", ".index-3.sqlite.pack.12.tmp", ".index-7.sqlite.pack.lock")
    touch(path, "index-3.sqlite", "index-7.sqlite", *kept, *others)
    touch(path, ".index.sqlite.pack.lock", ".index.sqlite.pack.12.tmp", ".index-2.sqlite.pack.12.tmp")
    path.symlink_to("index-3.sqlite")
    Generations(path).tidy()
    assert sorted(each.name for each in path.parent.glob(".*")) == sorted((*kept, *others))


@pytest.mark.parametrize(
    "left", ["index.sqlite.pack", ".index.sqlite.pack.lock", ".index-2.sqlite.pack.12.tmp", "index-2.sqlite.pack"]
)
def test_what_others_left_is_known(path: Path, left: str) -> None:
    touch(path, "index-3.sqlite", ".index-3.sqlite.pack.lock", ".index-2.sqlite.bak")
    path.symlink_to("index-3.sqlite")
    assert not Generations(path).has_others()
    touch(path, left)
    assert Generations(path).has_others()
    Generations(path).tidy()
    assert not Generations(path).has_others()


def test_the_one_before_keeps_its_room_until_it_is_let_go_of(path: Path) -> None:
    touch(path, "index.sqlite", "index-2.sqlite", "index-3.sqlite")
    generations, former = Generations(path), path.with_name(".index.sqlite.former")
    for number in (2, 3):
        before = os.stat(path).st_ino
        generations.put_in_use(path.with_name(f"index-{number}.sqlite"))
        generations.tidy(let_go=False)
        assert os.stat(former).st_ino == before
        assert generations.has_others()
        generations.let_go() if number == 2 else generations.tidy()
        assert not former.exists()
    assert not generations.has_others()
    assert names(path) == ["index-3.sqlite", "index.sqlite"]


def test_where_files_have_one_name_the_switch_does_without(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    touch(path, "index.sqlite", "index-2.sqlite")
    Generations(path).put_in_use(path.with_name("index-2.sqlite"))
    assert Generations(path).current() == 2


def test_the_files_of_a_first_generation_are_its_own(path: Path) -> None:
    touch(path, "index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "index.sqlite.pack")
    before = names(path)
    Generations(path).tidy()
    assert names(path) == before


@pytest.mark.parametrize("dangling", [False, True])
def test_without_an_index_all_generations_are_left_over(path: Path, dangling: bool) -> None:
    touch(path, "index-2.sqlite", "index-3.sqlite", "index.sqlite-wal")
    if dangling:
        path.symlink_to("index-5.sqlite")
    Generations(path).tidy()
    assert names(path) == (["index.sqlite"] if dangling else [])


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../index-2.sqlite", "index-2.sqlite-wal", "other.sqlite", "index-0.sqlite", "sub/x"]
)
def test_a_link_to_anything_else_is_refused(path: Path, target: str) -> None:
    path.symlink_to(target)
    with pytest.raises(StoreError, match="Remove the link") as raised:
        real_path(path)
    assert "is a link to a file that was not made for it" in str(raised.value)
    assert str(path) not in str(raised.value)


def test_one_at_a_time(path: Path) -> None:
    generations = Generations(path)
    assert not generations.is_locked()
    with generations.hold_lock():
        assert Generations(path).is_locked()
        with (
            pytest.raises(StoreBusy, match=f"of {path.parent.name}/{path.name} is running"),
            Generations(path).hold_lock(),
        ):
            raise AssertionError
    assert not generations.is_locked()
    with Generations(path).hold_lock():
        pass


def test_a_folder_that_cannot_be_written(path: Path) -> None:
    touch(path, "index.sqlite")
    reachable(path.parent)
    path.parent.chmod(0o555)
    code = """
from pathlib import Path
from filelock import FileLock
from indexer.errors import StoreError
from indexer.stores.sqlite_generations import Generations
drop()
generations = Generations(Path(sys.argv[1]))
def lock():
    with generations.hold_lock():
        pass
for act in (lock, lambda: generations.put_in_use(Path(sys.argv[1]))):
    try:
        act()
    except StoreError as error:
        print(type(error).__name__)
print(generations.is_locked())
"""
    try:
        printed = run_unprivileged(code, path).splitlines()
    finally:
        path.parent.chmod(0o755)
    assert printed == [StoreReadOnly.__name__] * 2 + ["False"]

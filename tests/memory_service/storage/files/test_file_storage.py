"""A home on the disk: names, links, and what looking makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_service.errors import InvalidName, StorageFailed
from memory_service.storage.documents import Listing
from memory_service.storage.files.file_storage import FileStorage


@pytest.mark.parametrize("name", ["default", "a", "0", "a..b", "team-1_x.y", "a" * 64])
def test_a_name_becomes_a_folder_of_the_home(tmp_path: Path, name: str) -> None:
    storage = FileStorage(tmp_path / "home")
    assert storage.workspace(name).scratch == tmp_path / "home" / name
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        ".a",
        "-a",
        "_a",
        "A",
        "a/b",
        "a\\b",
        "a b",
        "a\n",
        "é",
        "a\0",
        "a" * 65,
        "../default",
        "/tmp",
        "٣",
    ],
)
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    storage = FileStorage(tmp_path)
    for look in (storage.contains, storage.make, storage.workspace, storage.contents):
        with pytest.raises(InvalidName, match="no name of a workspace"):
            look(name)
    assert list(tmp_path.iterdir()) == []


def test_only_the_first_write_creates_a_folder(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path / "home")
    assert storage.workspaces() == []
    assert not storage.contains("default")
    assert storage.workspace("default").documents.scan() == Listing(documents={})
    assert not (tmp_path / "home").exists()
    for _ in range(2):
        storage.make("default")
        assert storage.contains("default") and (tmp_path / "home" / "default").is_dir()


def test_names_are_those_of_folders_alone(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    for name in ("zoe", "default", ".git", "Upper"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "zoe")
    assert storage.workspaces() == ["default", "zoe"]


def test_a_secret_is_made_once_by_whoever_is_first(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path / "home")
    assert storage.stored_secret("some.key") is None and not (tmp_path / "home").exists()
    storage.store_secret("some.key", b"of another home")
    storage.store_secret("some.key", b"of a third home")
    assert storage.secret("some.key", 15) == storage.stored_secret("some.key") == b"of another home"
    assert FileStorage(tmp_path / "home").secret("other.key", 8) == storage.stored_secret("other.key")
    assert (tmp_path / "home" / "some.key").stat().st_mode & 0o077 == 0


def test_a_link_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "home" / "file").write_text("")
    storage = FileStorage(tmp_path / "home")
    for name in ("link", "file"):
        assert not storage.contains(name)
        with pytest.raises((InvalidName, StorageFailed)):
            storage.make(name)


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file stands there", "utf-8")
    with pytest.raises((InvalidName, StorageFailed), match=str(home)):
        FileStorage(home).make("default")


def test_a_temporary_workspace_is_on_no_list_and_leaves_nothing(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path / "home")
    storage.make("default")
    before = sorted(tmp_path.rglob("*"))
    with storage.temporary_workspace() as parts:
        assert parts.documents.replace("MEMORY.md", b"- mine\n", expected=None)
        assert storage.workspaces() == ["default"] and parts.documents.read("MEMORY.md").raw == b"- mine\n"
    assert sorted(tmp_path.rglob("*")) == before

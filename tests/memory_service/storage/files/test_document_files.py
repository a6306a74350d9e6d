"""Memory files on the disk: Unicode forms of names, links, and what is no file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memory_service.errors import InvalidName
from memory_service.storage.files.document_files import FileDocuments

COMPOSED, DECOMPOSED = "memory/Café/Müller.md", "memory/Cafe\u0301/Mu\u0308ller.md"
MIXED = "memory/Cafe\u0301/Müller.md"


@pytest.mark.parametrize("on_disk", [COMPOSED, DECOMPOSED, MIXED])
@pytest.mark.parametrize("asked", [COMPOSED, DECOMPOSED, MIXED])
def test_a_stored_path_is_that_of_the_disk_in_any_form(tmp_path: Path, on_disk: str, asked: str) -> None:
    (tmp_path / on_disk).parent.mkdir(parents=True)
    (tmp_path / on_disk).write_text("x")
    assert FileDocuments(tmp_path).spelling(asked) == on_disk


@pytest.mark.parametrize("asked", [COMPOSED, DECOMPOSED, MIXED])
def test_an_exact_path_means_its_own_file(tmp_path: Path, asked: str) -> None:
    for path in (COMPOSED, DECOMPOSED, MIXED):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    assert FileDocuments(tmp_path).spelling(asked) == asked


@pytest.mark.parametrize("asked", [COMPOSED, DECOMPOSED, MIXED])
def test_a_new_path_is_composed_below_the_folders_that_are_there(tmp_path: Path, asked: str) -> None:
    assert FileDocuments(tmp_path).spelling(asked) == COMPOSED
    (tmp_path / MIXED).parent.mkdir(parents=True)
    assert FileDocuments(tmp_path).spelling(asked) == MIXED
    assert [path.name for path in tmp_path.iterdir()] == ["memory"]


def test_a_file_in_the_folder_of_the_other_form_is_seen(tmp_path: Path) -> None:
    (tmp_path / COMPOSED).parent.mkdir(parents=True)
    (tmp_path / MIXED).parent.mkdir()
    (tmp_path / MIXED).write_text("x")
    assert FileDocuments(tmp_path).spelling(COMPOSED) == MIXED


def test_no_link_is_entered_for_a_form(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "cafe\u0301.md").write_text("secret")
    folder = tmp_path / "w"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "dir").symlink_to(outside)
    assert FileDocuments(folder).spelling("memory/dir/café.md") == "memory/dir/café.md"
    with pytest.raises(InvalidName, match="symbolic link"):
        FileDocuments(folder).read("memory/dir/café.md")
    (folder / "memory" / "cafe\u0301.md").symlink_to(outside / "cafe\u0301.md")
    with pytest.raises(InvalidName, match="symbolic link"):
        FileDocuments(folder).read(FileDocuments(folder).spelling("memory/café.md"))


def test_the_longest_name_in_either_form(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    decomposed = "memory/" + "e\u0301🎉" * 36 + ".md"
    assert len(decomposed.encode()) == 7 + 255
    (tmp_path / decomposed).write_text("x")
    composed = decomposed.replace("e\u0301", "é")
    assert FileDocuments(tmp_path).spelling(composed) == FileDocuments(tmp_path).spelling(decomposed) == decomposed
    longest = f"memory/{'é' * 126}.md"
    (tmp_path / longest).write_text("x")
    assert FileDocuments(tmp_path).spelling(longest.replace("é", "e\u0301")) == longest
    with pytest.raises(InvalidName, match="255 bytes"):
        FileDocuments(tmp_path).read(longest.replace("é", "e\u0301"))


def test_links_are_refused_everywhere_on_the_way(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "a.md").write_text("secret")
    folder = tmp_path / "w"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").symlink_to(outside / "a.md")
    (folder / "USER.md").symlink_to(outside / "missing.md")
    (folder / "memory" / "dir").symlink_to(outside)
    (folder / "memory" / "in.md").symlink_to(folder / "memory" / "other.md")
    for path in ("MEMORY.md", "USER.md", "memory/dir/a.md", "memory/dir/sub/new.md", "memory/in.md"):
        with pytest.raises(InvalidName, match="symbolic link"):
            FileDocuments(folder).read(path)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "memory" / "folder.md").mkdir(parents=True)
    (tmp_path / "memory" / "file.md").write_text("")
    os.mkfifo(tmp_path / "memory" / "pipe.md")
    for path in ("memory/folder.md", "memory/file.md/a.md", "memory/pipe.md"):
        with pytest.raises(InvalidName):
            FileDocuments(tmp_path).read(path)

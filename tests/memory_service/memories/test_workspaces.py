from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.errors import InvalidName, NotFound, StorageFailed
from memory_service.memories.workspace_folders import WorkspaceFolders
from memory_service.memories.workspaces import memory_path, resolve, stored_path

ALLOWED = [
    "MEMORY.md",
    "USER.md",
    "memory/2026-11-20.md",
    "memory/projects/shop/notes.MD",
    "memory/备忘.md",
    "memory/a..b.md",
    "memory/10:30 call.md",
    "memory/100%.md",
    f"memory/{'x' * 252}.md",
    "memory/cafe\u0301.md",
    f"memory/{'é' * 126}.md",
    "memory/" + "e\u0301" * 126 + ".md",
]
ATTACKS = [
    "",
    ".",
    "..",
    "/",
    "/etc/passwd",
    "/memory/a.md",
    "//host/memory/a.md",
    "C:/memory/a.md",
    "c:memory.md",
    "memory\\a.md",
    "memory/..\\..\\a.md",
    "\\\\host\\a.md",
    "../MEMORY.md",
    "memory/../MEMORY.md",
    "memory/../../other/MEMORY.md",
    "memory/./a.md",
    "./MEMORY.md",
    "memory//a.md",
    "memory/a.md/",
    "memory/.hidden.md",
    "memory/.git/a.md",
    "memory/...md",
    "memory/%2e%2e/a.md",
    "memory/%2E./a.md",
    "memory%2Fa.md",
    "memory/%5c..%5Ca.md",
    "memory/a%00.md",
    "memory/%252e%252e/a.md",
    "memory/a\0.md",
    "memory/a\n.md",
    "memory/a\x7f.md",
    "memory/a\u2028.md",
    "memory/a\ud800.md",
    f"memory/{'x' * 253}.md",
    f"memory/{'备' * 85}.md",
    "memory/" + "a/" * 260 + "a.md",
]
NOT_MEMORY = [
    "memory",
    "memory/",
    "memory/a.txt",
    "memory/a",
    "notes.md",
    "Memory.md",
    "sessions/a.jsonl",
    "index.sqlite",
]


@pytest.mark.parametrize("path", ALLOWED)
def test_a_memory_path_is_taken_as_it_is(path: str) -> None:
    assert memory_path(path) == path


@pytest.mark.parametrize("path", [*ATTACKS, *NOT_MEMORY])
def test_a_path_that_is_none_is_refused_and_told_what_is_allowed(path: str) -> None:
    with pytest.raises(InvalidName, match=r"Use MEMORY\.md") as caught:
        memory_path(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 350


@given(st.text(st.sampled_from("./\\%2eEfFmory:aMD\0 \u0301"), max_size=24), st.sampled_from(["", "memory/"]))
def test_no_accepted_path_leaves_its_folder(text: str, prefix: str) -> None:
    try:
        path = memory_path(f"{prefix}{text}.md")
    except InvalidName:
        return
    assert os.path.normpath(f"/w/{path}") == f"/w/{path}"


@pytest.mark.parametrize("name", ["default", "a", "0", "a..b", "team-1_x.y", "a" * 64])
def test_a_name_becomes_a_folder_of_the_home(tmp_path: Path, name: str) -> None:
    workspaces = WorkspaceFolders(tmp_path / "home")
    assert workspaces.folder(name) == tmp_path / "home" / name
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
    workspaces = WorkspaceFolders(tmp_path)
    for look in (workspaces.folder, workspaces.existing, workspaces.ensure):
        with pytest.raises(InvalidName, match="no name of a workspace"):
            look(name)
    assert list(tmp_path.iterdir()) == []


def test_only_the_first_write_creates_a_folder(tmp_path: Path) -> None:
    workspaces = WorkspaceFolders(tmp_path / "home")
    assert workspaces.names() == []
    with pytest.raises(NotFound, match="Write a first memory"):
        workspaces.existing("default")
    assert not (tmp_path / "home").exists()
    folder = workspaces.ensure("default")
    assert folder.is_dir()
    assert workspaces.ensure("default") == workspaces.existing("default") == folder


def test_names_are_those_of_folders_alone(tmp_path: Path) -> None:
    workspaces = WorkspaceFolders(tmp_path)
    for name in ("zoe", "default", ".git", "Upper"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "zoe")
    assert workspaces.names() == ["default", "zoe"]


def test_a_link_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "home" / "file").write_text("")
    workspaces = WorkspaceFolders(tmp_path / "home")
    for name in ("link", "file"):
        with pytest.raises(NotFound):
            workspaces.existing(name)
        with pytest.raises((InvalidName, StorageFailed)):
            workspaces.ensure(name)


def test_resolve_gives_the_place_whether_or_not_it_is_there(tmp_path: Path) -> None:
    assert resolve(tmp_path, "memory/new/a.md") == tmp_path / "memory/new/a.md"
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "a.md").write_text("a")
    assert resolve(tmp_path, "memory/a.md") == tmp_path / "memory/a.md"
    assert [path.name for path in tmp_path.iterdir()] == ["memory"]


COMPOSED, DECOMPOSED = "memory/Café/Müller.md", "memory/Cafe\u0301/Mu\u0308ller.md"
MIXED = "memory/Cafe\u0301/Müller.md"


@pytest.mark.parametrize("on_disk", [COMPOSED, DECOMPOSED, MIXED])
@pytest.mark.parametrize("asked", [COMPOSED, DECOMPOSED, MIXED])
def test_a_stored_path_is_that_of_the_disk_in_any_form(tmp_path: Path, on_disk: str, asked: str) -> None:
    (tmp_path / on_disk).parent.mkdir(parents=True)
    (tmp_path / on_disk).write_text("x")
    assert stored_path(tmp_path, asked) == on_disk


@pytest.mark.parametrize("asked", [COMPOSED, DECOMPOSED, MIXED])
def test_an_exact_path_means_its_own_file(tmp_path: Path, asked: str) -> None:
    for path in (COMPOSED, DECOMPOSED, MIXED):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    assert stored_path(tmp_path, asked) == asked


@pytest.mark.parametrize("asked", [COMPOSED, DECOMPOSED, MIXED])
def test_a_new_path_is_composed_below_the_folders_that_are_there(tmp_path: Path, asked: str) -> None:
    assert stored_path(tmp_path, asked) == COMPOSED
    (tmp_path / MIXED).parent.mkdir(parents=True)
    assert stored_path(tmp_path, asked) == MIXED
    assert [path.name for path in tmp_path.iterdir()] == ["memory"]


def test_a_file_in_the_folder_of_the_other_form_is_seen(tmp_path: Path) -> None:
    (tmp_path / COMPOSED).parent.mkdir(parents=True)
    (tmp_path / MIXED).parent.mkdir()
    (tmp_path / MIXED).write_text("x")
    assert stored_path(tmp_path, COMPOSED) == MIXED


def test_no_link_is_entered_for_a_form(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "cafe\u0301.md").write_text("secret")
    folder = tmp_path / "w"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "dir").symlink_to(outside)
    assert stored_path(folder, "memory/dir/café.md") == "memory/dir/café.md"
    with pytest.raises(InvalidName, match="symbolic link"):
        resolve(folder, "memory/dir/café.md")
    (folder / "memory" / "cafe\u0301.md").symlink_to(outside / "cafe\u0301.md")
    with pytest.raises(InvalidName, match="symbolic link"):
        resolve(folder, stored_path(folder, "memory/café.md"))


def test_the_longest_name_in_either_form(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    decomposed = "memory/" + "e\u0301🎉" * 36 + ".md"
    assert len(decomposed.encode()) == 7 + 255
    (tmp_path / decomposed).write_text("x")
    composed = decomposed.replace("e\u0301", "é")
    assert stored_path(tmp_path, composed) == stored_path(tmp_path, decomposed) == decomposed
    longest = f"memory/{'é' * 126}.md"
    (tmp_path / longest).write_text("x")
    assert stored_path(tmp_path, longest.replace("é", "e\u0301")) == longest
    with pytest.raises(InvalidName, match="255 bytes"):
        resolve(tmp_path, longest.replace("é", "e\u0301"))


def test_resolve_refuses_links_everywhere_on_the_way(tmp_path: Path) -> None:
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
            resolve(folder, path)


def test_resolve_refuses_what_is_no_regular_file(tmp_path: Path) -> None:
    (tmp_path / "memory" / "folder.md").mkdir(parents=True)
    (tmp_path / "memory" / "file.md").write_text("")
    os.mkfifo(tmp_path / "memory" / "pipe.md")
    for path in ("memory/folder.md", "memory/file.md/a.md", "memory/pipe.md"):
        with pytest.raises(InvalidName):
            resolve(tmp_path, path)


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file stands there", "utf-8")
    with pytest.raises((InvalidName, StorageFailed), match=str(home)):
        WorkspaceFolders(home).ensure("default")

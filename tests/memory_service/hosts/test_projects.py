"""Which memory the work in a folder belongs to, with repositories that Git itself made."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memory_service.errors import InvalidRequest
from memory_service.home import check_workspace
from memory_service.hosts.projects import project_of
from memory_service.storage.files.disk import sweep
from tests.serving import settings


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, timeout=240)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    return folder


def committed(folder: Path) -> Path:
    (repository(folder) / "a.txt").write_text("a")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def name(folder: Path) -> str:
    project = project_of(str(folder))
    found, elsewhere = project.workspace_in(folder / "no home"), project.workspace_elsewhere
    check_workspace(found)
    check_workspace(elsewhere)
    assert re.fullmatch(r".+-[0-9a-f]{4}", found) and elsewhere.startswith(found)
    return found


def test_a_short_name_that_is_anothers_gets_more_digits(tmp_path: Path) -> None:
    home, project = tmp_path / "home", project_of(str(repository(tmp_path / "shop")))
    short = project.workspace_in(home)
    (home / short).mkdir(parents=True)
    project.mark(home / short)
    assert project.workspace_in(home) == short
    assert (home / short / ".project").read_text("utf-8") == f"{tmp_path / 'shop' / '.git'}\n"
    (home / short / ".project").write_text("/another/shop/.git\n", "utf-8")
    assert project.workspace_in(home) == project.workspace_elsewhere
    project.mark(home / short)
    assert (home / short / ".project").read_text("utf-8") == "/another/shop/.git\n", "it stays whose it is"


def test_a_workspace_with_the_name_that_it_once_got_stays_the_projects(tmp_path: Path) -> None:
    home, project = tmp_path / "home", project_of(str(repository(tmp_path / "shop")))
    (home / project.workspace_elsewhere).mkdir(parents=True)
    assert project.workspace_in(home) == project.workspace_elsewhere


def test_in_a_database_a_short_name_is_that_of_a_project_only_where_its_mark_is(tmp_path: Path) -> None:
    home, project = tmp_path / "home", project_of(str(repository(tmp_path / "shop")))
    in_files, in_database = settings(home), settings(home, database_url="postgresql://localhost/memories")
    short = project.workspace_for(in_files)
    assert short == project.workspace_in(home) != project.workspace_elsewhere
    assert project.workspace_for(in_database) == project.workspace_elsewhere
    (home / short).mkdir(parents=True)
    assert project.workspace_for(in_database) == project.workspace_elsewhere, "it may be another one's"
    project.mark(home / short)
    assert project.workspace_for(in_database) == short


def test_a_workspace_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    home, project = tmp_path / "home", project_of(str(tmp_path))
    project.mark(home / project.workspace_in(home))
    assert not home.exists()


def test_worktrees_and_subfolders_share_a_memory(tmp_path: Path) -> None:
    shop = committed(tmp_path / "shop")
    (tmp_path / "elsewhere").mkdir()
    git(shop, "worktree", "add", "-q", "-b", "feature", str(tmp_path / "elsewhere" / "feature x"))
    (shop / "src" / "deep").mkdir(parents=True)
    assert len({name(shop), name(shop / "src" / "deep"), name(tmp_path / "elsewhere" / "feature x")}) == 1
    assert name(shop / ".git") == name(shop)
    assert name(shop).startswith("shop-")
    assert project_of(str(tmp_path / "elsewhere" / "feature x")).root.name == "feature x"


def test_two_projects_of_one_name_have_two_memories(tmp_path: Path) -> None:
    assert name(repository(tmp_path / "a" / "shop")) != name(repository(tmp_path / "b" / "shop"))
    plain = tmp_path / "c" / "shop"
    plain.mkdir(parents=True)
    assert name(plain) not in (name(tmp_path / "a" / "shop"), name(tmp_path / "b" / "shop"))


def test_a_repository_without_commits_is_a_project(tmp_path: Path) -> None:
    empty = repository(tmp_path / "empty")
    (empty / "src").mkdir()
    assert name(empty / "src") == name(empty)


def test_a_bare_repository_and_its_worktree_share_a_memory(tmp_path: Path) -> None:
    committed(tmp_path / "from")
    git(tmp_path, "clone", "-q", "--bare", str(tmp_path / "from"), "shop.git")
    git(tmp_path / "shop.git", "worktree", "add", "-q", str(tmp_path / "tree"))
    assert name(tmp_path / "shop.git") == name(tmp_path / "tree")
    assert name(tmp_path / "tree").startswith("shop-")


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    committed(tmp_path / "library")
    outer = committed(tmp_path / "outer")
    git(outer, "submodule", "add", "-q", str(tmp_path / "library"), "lib")
    assert name(outer / "lib") not in (name(outer), name(tmp_path / "library"))


@pytest.mark.parametrize("folder", ["my shop", "花店 项目", "é", "---", "x" * 200])
def test_spaces_and_chinese_make_a_name(tmp_path: Path, folder: str) -> None:
    first, second = name(repository(tmp_path / "1" / folder)), name(repository(tmp_path / "2" / folder))
    assert first != second


def test_a_link_to_a_project_leads_to_its_memory(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    (tmp_path / "link").symlink_to(shop)
    assert name(tmp_path / "link") == name(shop)


@pytest.mark.parametrize("pointer", ["", "gitdir: /nowhere", "gitdir: ", "garbage", "gitdir: ../x\0y"])
def test_a_broken_pointer_counts_as_none(tmp_path: Path, pointer: str) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / ".git").write_text(pointer)
    assert project_of(str(tmp_path / "p")).identity == Path(os.path.realpath(tmp_path / "p"))


@pytest.mark.parametrize("folder", ["", "relative", "/no/such/folder/at/all", "/tmp\0x"])
def test_a_folder_that_is_none_is_refused(folder: str) -> None:
    with pytest.raises(InvalidRequest):
        project_of(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_rules_in_a_pipe_are_no_rules(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "CLAUDE.md")
    (tmp_path / "AGENTS.md").write_text("Tests first.", encoding="utf-8")
    assert project_of(str(tmp_path)).rules() == {"AGENTS.md": "Tests first."}


def test_rules_that_say_the_same_stand_once(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Never deploy on Fridays.\n")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    (tmp_path / "CLAUDE.local.md").write_text("周五不部署。")
    rules = project_of(str(tmp_path)).rules()
    assert rules == {"AGENTS.md": "Never deploy on Fridays.", "CLAUDE.local.md": "周五不部署。"}


def test_a_workspace_is_marked_while_the_drafts_in_it_are_swept(tmp_path: Path) -> None:
    folders, stop = [tmp_path / f"w{number}" for number in range(100)], threading.Event()
    for folder in folders:
        folder.mkdir()

    def sweep_all() -> None:
        while not stop.is_set():
            sweep(folders)

    sweeping = threading.Thread(target=sweep_all)
    sweeping.start()
    for folder in folders:
        project_of(str(tmp_path)).mark(folder)
    stop.set()
    sweeping.join()
    assert all((folder / ".project").read_text() == f"{tmp_path}\n" for folder in folders)

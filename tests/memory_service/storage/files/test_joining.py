"""Two homes that become one, on real folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_service.errors import InvalidRequest
from memory_service.storage.files.joining import join, other_homes, plan_join


def write(home: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text, "utf-8")
    return home


def texts(home: Path) -> dict[str, str]:
    return {file.relative_to(home).as_posix(): file.read_text("utf-8") for file in home.rglob("*") if file.is_file()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    files = {
        "default/MEMORY.md": "- ours\n",
        "default/memory/2026-11-20.md": "- 我们的\n",
        "default/sessions/a.jsonl": "one\ntwo\n",
    }
    return write(tmp_path / "home", files)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    files = {
        "default/MEMORY.md": "- theirs\n",
        "default/memory/2026-11-20.md": "- 我们的\n",
        "default/memory/备忘.md": "- 另一个\n",
        "default/sessions/a.jsonl": "one\n",
        "default/sessions/b.jsonl": "b\n",
        "default/sessions/blobs/ab/ab" + "0" * 62: "blob",
        "shop-1f3a/.project": "/src/shop\n",
        "shop-1f3a/MEMORY.md": "- shop\n",
        "default/index.sqlite": "derived",
        "Not a workspace/MEMORY.md": "- no\n",
    }
    return write(tmp_path / "other home", files)


def test_everything_is_there_afterwards_and_nothing_was_replaced(home: Path, other: Path) -> None:
    before, theirs = texts(home), texts(other)
    plan = plan_join(home, other)
    assert texts(home) == before, "a plan does nothing"
    done = join(home, other)
    assert done == plan
    after = texts(home)
    assert before.items() <= after.items() and texts(other) == theirs
    (renamed,) = [file for file in done.files if file.state == "renamed"]
    assert renamed.path == "MEMORY.md" and renamed.target.startswith("memory/MEMORY-")
    assert after[f"default/{renamed.target}"] == "- theirs\n"
    new = sorted(after.keys() - before.keys() - {f"default/{renamed.target}"})
    assert new == [
        "default/memory/备忘.md",
        "default/sessions/b.jsonl",
        "default/sessions/blobs/ab/ab" + "0" * 62,
        "shop-1f3a/.project",
        "shop-1f3a/MEMORY.md",
    ]
    assert (home / "shop-1f3a/MEMORY.md").stat().st_mode & 0o077 == 0
    assert join(home, other).missing == (), "to join again copies nothing"
    assert texts(home) == after


def test_a_log_that_went_on_elsewhere_is_copied_beside_ours(home: Path, other: Path) -> None:
    write(other, {"default/sessions/a.jsonl": "one\ntwo\nthree\n"})
    (file,) = [each for each in join(home, other).missing if each.path == "sessions/a.jsonl"]
    assert file.target.startswith("sessions/a-") and file.target.endswith(".jsonl")
    assert (home / "default/sessions/a.jsonl").read_text() == "one\ntwo\n"


def test_what_is_no_other_home_is_refused(home: Path, tmp_path: Path, other: Path) -> None:
    with pytest.raises(InvalidRequest, match="is this home itself"):
        join(home, home)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidRequest, match="is no home"):
        join(home, tmp_path / "empty")
    write(other, {".format": "2"})
    with pytest.raises(InvalidRequest, match="newer version"):
        join(home, other)


def test_other_homes_are_told_until_they_are_joined(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("MEMORY_SERVICE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert other_homes(home) == []
    write(tmp_path / "data", {"default/MEMORY.md": "- in the folder at hand\n"})
    write(tmp_path / "user/.memory-service", {"default/memory/a.md": "- by default\n", "shop/MEMORY.md": "- s\n"})
    found = other_homes(home)
    assert [Path(each.other).name for each in found] == [".memory-service", "data"]
    assert "has 2 files that" in str(found[0]) and "in default, shop." in str(found[0])
    assert f"memory-service join {found[0].other} --home {home}" in str(found[0])
    for each in found:
        join(home, Path(each.other))
    assert other_homes(home) == []


def test_the_sample_of_a_checkout_is_nobodys_home(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(Path(__file__).parents[4])
    assert Path("data/default/MEMORY.md").is_file()
    assert other_homes(home) == []

from __future__ import annotations

from pathlib import Path

import pytest

from indexer.sources.gitignore import Level, Unreadable, is_ignored, read_rules, rules_above, with_rules_in


def test_inner_rules_come_first(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("!a.md\n")
    outer = (Level(rules=read_rules("*.md\n/x/b.txt\n"), cut=0),)
    levels = with_rules_in(outer, f"{tmp_path}/", {".gitignore"}, "x/")
    assert not is_ignored(levels, "x/", "a.md", is_folder=False)
    assert is_ignored(levels, "x/", "c.md", is_folder=False)
    assert is_ignored(levels, "x/", "b.txt", is_folder=False)
    assert not is_ignored(levels, "x/", "c.txt", is_folder=False)
    assert with_rules_in(outer, f"{tmp_path}/", {"a.md"}, "x/") is outer


def test_a_link_holds_no_rules_and_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("*")
    (tmp_path / ".gitignore").symlink_to(tmp_path / "rules")
    assert with_rules_in((), f"{tmp_path}/", {".gitignore"}, "") == ()
    (tmp_path / ".gitignore").unlink()
    (tmp_path / ".gitignore").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(Unreadable, match="1,048,576"):
        with_rules_in((), f"{tmp_path}/", {".gitignore"}, "")


def test_the_repository_around_ends_where_its_git_folder_is(tmp_path: Path) -> None:
    folder = tmp_path / "repo" / "a" / "b"
    folder.mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("*.md")
    (tmp_path / "repo" / "a" / ".gitignore").write_text("/b/x.md")
    (tmp_path / "repo" / ".git" / "info").mkdir(parents=True)
    (tmp_path / "repo" / ".git" / "info" / "exclude").write_text("y.md")
    levels = tuple(rules_above(str(folder)))
    assert [is_ignored(levels, "", name, is_folder=False) for name in ("x.md", "y.md", "z.md")] == [True, True, False]
    assert len(levels) == 2

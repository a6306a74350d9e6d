from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from indexer.sources.gitignore import read_rules
from tests.growth import at_most_readings

NAMES = ["a", "b", "ab", "a.b", "build", "x y", "a-b", "[", "foo.py", "ba", ".h", "部署"]
ATOMS = [
    "a", "b", "*", "?", "**", "ab", "[ab]", "[!a]", "[^b-z]", "a*", "*b", "*.py", "build", "\\a", "\\*", "[[:alpha:]]",
    "x\\ ", "x y", "[]a]", "?b", "*a", "a*b*", "*a*b", "[a-]", "\\[", ".h", ".*", "\\", "部*", "*署", "[a-b]b",
]  # fmt: skip


def ignored(text: str, path: str) -> bool:
    """Whether a walk from the top down leaves a file out."""
    rules = read_rules(text)
    parts = path.split("/")
    folders = ["".join(f"{part}/" for part in parts[:count]) for count in range(len(parts))]
    *above, last = zip(folders, parts, strict=True)
    return any(rules.verdict(*place, is_folder=True) for place in above) or bool(rules.verdict(*last, is_folder=False))


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("*.log", "a/b.log", True),
        ("*.log\n!keep.log", "a/keep.log", False),
        ("!keep.log\n*.log", "a/keep.log", True),
        ("/build", "build", True),
        ("/build", "a/build", False),
        ("build/", "build", False),
        ("build/", "a/build/x", True),
        ("build/\n!build/x", "build/x", True),
        ("a/*\n!a/*.txt", "a/b.txt", False),
        ("docs/**/x", "docs/x", True),
        ("docs/**/x", "docs/a/b/x", True),
        ("a/**", "a", False),
        ("a/**", "a/b/c", True),
        ("**/x", "a/b/x", True),
        ("# x\n\\#x", "#x", True),
        ("\\!x", "!x", True),
        ("x  ", "x", True),
        ("x\\ ", "x ", True),
        ("x\r\ny\r", "y", True),
        ("\ufeffx", "x", True),
        ("x\\", "x", False),
        ("[x", "[x", False),
        ("/", "x", False),
        ("草稿/", "草稿/一.md", True),
        ("*稿", "草稿", True),
    ],
)
def test_ignored(text: str, path: str, expected: bool) -> None:
    assert ignored(text, path) is expected


def test_no_rule_speaks_of_it() -> None:
    assert read_rules("").verdict("", "x", is_folder=False) is None
    assert read_rules("a\n!b").verdict("", "c", is_folder=True) is None
    assert read_rules("a\n!b").verdict("", "b", is_folder=True) is False


def pattern(rnd: random.Random) -> str:
    parts = [rnd.choice(ATOMS) for _ in range(rnd.choice([1, 1, 1, 2, 2, 3, 4]))]
    return (
        rnd.choice(["", "", "", "!", "/", "!/", "# ", "\\!"]) + "/".join(parts) + rnd.choice(["", "", "/", " ", "\r"])
    )


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: nothing to compare with")
def test_git_says_the_same(tmp_path: Path) -> None:
    rnd = random.Random(4)
    empty = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    for number in range(25):
        root = tmp_path / str(number)
        subprocess.run(["git", "init", "-q", str(root)], check=True, env=empty)
        text = "\n".join(pattern(rnd) for _ in range(rnd.randint(1, 5)))
        (root / ".gitignore").write_bytes(text.encode())
        paths = {"/".join(rnd.choice(NAMES) for _ in range(rnd.randint(1, 4))) for _ in range(40)}
        files = {path for path in paths if not any(other.startswith(path + "/") for other in paths)}
        for path in files:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(b"")
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-o", "-z", "--exclude-standard"],
            check=True, capture_output=True, env=empty,
        ).stdout  # fmt: skip
        shown = {path for path in listed.decode().split("\0") if path and path != ".gitignore"}
        # A question mark or a class stands for one character here, and for one byte there.
        plain = {path for path in files if path.isascii() or not set(text) & set("?[")}
        assert {path for path in plain if not ignored(text, path)} == shown & plain, text


@pytest.mark.parametrize("hostile", ["*a" * 400 + "b", "/" + "**/a/" * 190 + "b", "[" * 900, "a*" * 400 + "/x"])
def test_a_hostile_pattern_takes_no_time(hostile: str) -> None:
    rules = read_rules(hostile)
    with at_most_readings(100):
        for path in ("a" * 255, "a/" * 2_000 + "a", "/".join(["a" * 255] * 16)):
            folder, slash, name = path.rpartition("/")
            rules.verdict(folder + slash, name, is_folder=False)

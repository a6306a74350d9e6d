from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.errors import InvalidName
from memory_service.memories.workspaces import memory_path

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

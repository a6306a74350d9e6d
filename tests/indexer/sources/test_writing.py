from __future__ import annotations

import json
from pathlib import Path

import pytest

from indexer.language.languages import Writing
from indexer.sources.folders import FileSource
from indexer.sources.writing import WritingSample

MOMENT = "2026-11-20T08:00:00.000Z"
ENGLISH, CHINESE = "The meeting of the team is on Tuesday.", "我们的会议在星期二下午举行。"


def read_writing(root: Path, *, sessions: bool = True) -> Writing:
    return WritingSample(FileSource(root, sessions=sessions)).read()


def items(texts: list[str]) -> str:
    return "".join(f"- {text}\n" for text in texts)


def log(*said: tuple[str, str]) -> str:
    return "".join(
        json.dumps(
            {"seq": seq, "ts": MOMENT, "message": {"role": role, "content": text}},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        + "\n"
        for seq, (role, text) in enumerate(said, 1)
    )


def test_memories_count_by_their_passages(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text(items([ENGLISH] * 3), "utf-8")
    (tmp_path / "memory" / "2026-11-20.md").write_text(items([CHINESE]), "utf-8")
    assert dict(read_writing(tmp_path).shares) == {"English": 0.75, "Chinese": 0.25}


def test_a_large_file_counts_for_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text(items([f"{CHINESE} {n}" for n in range(5_000)]), "utf-8")
    for number in range(20):
        (tmp_path / "memory" / f"{number}.md").write_text(items([ENGLISH] * 5), "utf-8")
    assert read_writing(tmp_path).foreign > 0.95


def test_a_large_file_is_looked_at_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text(items([ENGLISH] * 2_000 + [CHINESE] * 4_000), "utf-8")
    assert read_writing(tmp_path).foreign == pytest.approx(0.67, abs=0.15)


@pytest.mark.parametrize("line", ["x" * 90_000, "没有空格" * 30_000, ENGLISH * 3_000])
def test_a_file_of_one_long_line_is_no_fault(tmp_path: Path, line: str) -> None:
    (tmp_path / "MEMORY.md").write_text(line, "utf-8")
    (tmp_path / "USER.md").write_text(items([CHINESE]), "utf-8")
    assert "Chinese" in read_writing(tmp_path).shares


def test_what_changed_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text(items([ENGLISH]), "utf-8")
    assert dict(read_writing(tmp_path).shares) == {"English": 1.0}
    (tmp_path / "MEMORY.md").write_text(items([CHINESE]), "utf-8")
    assert dict(read_writing(tmp_path).shares) == {"Chinese": 1.0}


def test_nothing_is_written_where_there_is_no_folder(tmp_path: Path) -> None:
    assert not read_writing(tmp_path / "none").shares


def test_a_file_that_is_no_text_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text(items([CHINESE]), "utf-8")
    (tmp_path / "USER.md").symlink_to("/etc/hosts")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "binary.md").write_bytes(bytes(range(256)) * 4)
    assert dict(read_writing(tmp_path).shares) == {"Chinese": 1.0}


@pytest.mark.parametrize("sessions", [True, False])
def test_conversations_count_without_what_tools_printed(tmp_path: Path, sessions: bool) -> None:
    (tmp_path / "sessions").mkdir()
    said = log(("user", CHINESE), ("assistant", CHINESE), *[("tool", ENGLISH)] * 9)
    (tmp_path / "sessions" / "one.jsonl").write_text(said, "utf-8")
    assert dict(read_writing(tmp_path, sessions=sessions).shares) == ({"Chinese": 1.0} if sessions else {})

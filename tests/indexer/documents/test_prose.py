from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.documents.formats import split_text
from indexer.documents.markdown import MAX_CHARS, split_lines
from indexer.types import Cue
from tests.growth import at_most_readings


def lines_of(text: str) -> list[tuple[int, int, str]]:
    return [(passage.start_line, passage.end_line, passage.text) for passage in split_text(text, path="@x/a.txt")]


def test_paragraphs_and_items() -> None:
    text = "One\nand on.\n\n  Two, indented\n    by more.\n\n- a\n  on\n- b\n1. c\n* d"
    assert lines_of(text) == [
        (1, 2, "One\nand on."),
        (4, 5, "Two, indented\n  by more."),
        (7, 8, "- a\n  on"),
        (9, 9, "- b"),
        (10, 10, "1. c"),
        (11, 11, "* d"),
    ]


def test_chinese_text() -> None:
    long = "这是一个很长的段落，它没有换行。" * 5
    assert lines_of(f"{long}\n{long}\n\n一、部署\n二、回滚\n3、监控\n") == [
        (1, 1, long),
        (2, 2, long),
        (4, 4, "一、部署"),
        (5, 5, "二、回滚"),
        (6, 6, "3、监控"),
    ]


def test_a_long_paragraph_is_cut_after_a_sentence() -> None:
    text = "服务器在每周二部署！" * 400
    passages = split_text(text, path="a.txt")
    assert len(passages) > 3
    assert all(len(passage.text) <= MAX_CHARS and passage.text.endswith("！") for passage in passages)
    assert "".join(passage.text for passage in passages) == text


@pytest.mark.parametrize("text", ["", "\n \n\t\n", "\ufeff\r\n"])
def test_nothing(text: str) -> None:
    assert lines_of(text) == []


def test_what_memories_have_text_has_too() -> None:
    first, second = split_text("Who deploys?\n\nMaria did, yesterday.", path="@x/2026-11-20.txt")
    assert first.cues is Cue.QUESTION
    assert second.cues == Cue.ANSWER | Cue.TIME


@given(st.text(alphabet="ab \t\n\r-。1.、", max_size=400))
def test_every_line_is_in_one_passage(text: str) -> None:
    covered = [number for start, end, _ in lines_of(text) for number in range(start, end + 1)]
    assert covered == [number for number, line in enumerate(split_lines(text), 1) if line.strip()]


@pytest.mark.parametrize(
    "hostile", ["- " * 125_000, "a" * 250_000, "a\n" * 75_000, " " * 250_000 + "x", "（一" * 75_000]
)
def test_hostile_text_takes_no_time(hostile: str) -> None:
    with at_most_readings(30):
        lines_of(hostile)

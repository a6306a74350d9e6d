from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.compaction.record import _apply_delta, text_delta
from tests.growth import at_most_readings

LINES = st.lists(st.sampled_from(["", "- a", "- b", "- 部署在周二", "## Goal", "\r", "- a "]), max_size=12)


@given(base=LINES.map("\n".join), text=LINES.map("\n".join))
def test_a_delta_gives_the_text_back(base: str, text: str) -> None:
    assert _apply_delta(base, text_delta(base, text)) == text


@given(base=st.text(max_size=40), text=st.text(max_size=40))
def test_whatever_the_texts_are(base: str, text: str) -> None:
    assert _apply_delta(base, text_delta(base, text)) == text


@pytest.mark.parametrize(
    ("base", "text", "parts"),
    [
        ("", "a\nb", ("a\nb",)),
        ("a\nb\nc", "a\nb\nc", ((0, 2),)),
        ("a\nb\nc", "b\nc\nd\na", ((1, 2), "d", (0, 0))),
        ("目标\n- 部署\n- 备份", "目标\n- 备份\n- 回滚", ((0, 0), (2, 2), "- 回滚")),
        ("a\na\na", "a\na", ((0, 0), (0, 0))),
        ("a", "", ("",)),
    ],
)
def test_what_both_have_is_named_by_its_lines(base: str, text: str, parts: tuple[object, ...]) -> None:
    assert text_delta(base, text) == parts


def test_a_text_that_shares_its_lines_takes_little() -> None:
    base = "\n".join(f"- fact {number} 事实" for number in range(500))
    parts = text_delta(base, base + "\n- one more")
    assert parts == ((0, 499), "- one more")


def test_lines_that_the_base_does_not_have_are_left_out() -> None:
    assert _apply_delta("a\nb", ((1, 9), "c")) == "b\nc"


def test_a_quarter_of_a_megabyte_takes_no_time() -> None:
    base, text = "x\n" * 125_000, "y\nx\n" * 62_500
    with at_most_readings(60):
        assert _apply_delta(base, text_delta(base, text)) == text

"""Merges of two versions of a memory file: by entries, by lines, and conflicts where neither will do."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.sync.merging import merge_texts

DAY = "# 2026-11-20\n\n## 14:32\n<!-- memory id=m000000000001 hash=aa -->\n- Deploys go out on Tuesdays.\n"
SECOND = "<!-- memory id=m000000000002 hash=bb -->\n- The lift works again.\n"


def test_one_side_alone_is_taken_byte_for_byte() -> None:
    changed = "\ufeffx\r\n\r\n\r\n  y  \n\n"
    assert merge_texts(DAY, DAY, changed) == merge_texts(DAY, changed, DAY) == merge_texts(DAY, changed, changed)
    assert merge_texts(DAY, DAY, changed) == changed


def test_what_both_append_stands_there_in_sections_of_its_own() -> None:
    theirs = DAY + "\n## 15:10\n" + SECOND
    ours = DAY + "- Fridays are off.\n"
    merged = DAY + "- Fridays are off.\n\n## 15:10\n" + SECOND
    assert merge_texts(DAY, ours, theirs) == merge_texts(DAY, theirs, ours) == merged


def test_the_same_addition_stands_there_once() -> None:
    theirs = DAY + "- Fridays are off.\n- 周五不部署。\n"
    ours = DAY + "- Fridays are off.\n- The lift works.\n"
    assert merge_texts(DAY, ours, theirs) == theirs + "- The lift works.\n"
    assert merge_texts(DAY, DAY + "- Fridays are off.\n", theirs) == theirs


def test_neighbours_are_changed_independently() -> None:
    base = "- one\n- two\n- three\n"
    assert merge_texts(base, "- ONE\n- two\n- three\n", "- one\n- TWO\n- three\n") == "- ONE\n- TWO\n- three\n"
    assert merge_texts(base, "- one\n- two\n- THREE\n", base + "- four\n") == "- one\n- two\n- THREE\n- four\n"
    assert merge_texts(base, "- two\n- three\n", "- one\n- TWO\n- three\n") == "- TWO\n- three\n"


def test_an_entry_is_known_by_its_id_when_its_words_change() -> None:
    theirs = DAY.replace("hash=aa", "hash=cc edited=x").replace("Tuesdays", "Mondays")
    ours = "- A line above.\n" + DAY + "- A line below.\n"
    assert merge_texts(DAY, ours, theirs) == "- A line above.\n" + theirs + "- A line below.\n"


def test_lines_of_one_item_are_merged() -> None:
    base = "- Trip\n  - Hvar\n  - Split\n  - Zadar\n"
    ours, theirs = base.replace("Hvar", "Hvar, by boat"), base.replace("Zadar", "Zadar, by bus")
    assert merge_texts(base, ours, theirs) == "- Trip\n  - Hvar, by boat\n  - Split\n  - Zadar, by bus\n"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("Wednesdays", "Mondays"),
        ("", "Mondays"),
        ("Mondays", ""),
    ],
)
def test_two_changes_of_one_entry_are_a_conflict(ours: str, theirs: str) -> None:
    def version(day: str) -> str:
        return DAY.replace("Tuesdays", day) if day else DAY.partition("<!--")[0]

    assert merge_texts(DAY, version(ours), version(theirs)) is None


def test_a_line_below_an_item_that_is_taken_out_is_a_conflict() -> None:
    base = "- Trip\n  - Hvar\n- Food\n"
    assert merge_texts(base, "- Food\n", "- Trip\n  - Hvar\n  - Split\n- Food\n") is None


def test_what_both_take_out_is_gone() -> None:
    base = "- one\n- two\n- three\n- four\n"
    assert merge_texts(base, "- one\n- four\n", "- one\n- two\n- four\n") == "- one\n- four\n"


def test_an_entry_that_both_moved_is_a_conflict() -> None:
    top, bottom = SECOND + "- x\n- y\n- z\n", "- x\n- y\n- z\n" + SECOND
    base = "- x\n" + SECOND + "- y\n- z\n"
    assert merge_texts(base, top, bottom) is None


def test_ends_of_lines_are_no_changes() -> None:
    base = "- one\n- two\n"
    assert merge_texts(base, "- one\r\n- TWO\r\n", "- zero\n- one\n- two\n") == "- zero\n- one\r\n- TWO\r\n"
    assert merge_texts("- one", "- one\n- two", "- zero\n- one") == "- zero\n- one\n- two"


def test_without_a_base_lines_of_one_version_are_taken_and_different_ones_are_a_conflict() -> None:
    assert merge_texts(None, DAY + "- x\n", "- y\n" + DAY) == "- y\n" + DAY + "- x\n"
    assert merge_texts(None, "- one\n- x\n", "- one\n- y\n") is None


LINES = st.sampled_from([
    "# 2026-11-20", "## 14:32", "", "- a", "- b", "  - c", "  d", "prose", "```", "---", "| a | b |",
    "<!-- memory id=m000000000001 hash=aa -->", "<!-- memory id=m000000000002 -->", "- é", "- 周五",
])  # fmt: skip
FILES = st.lists(LINES, max_size=12)


@st.composite
def versions(draw: st.DrawFn) -> tuple[str, str, str]:
    """A file and two that were made from it, whose new lines stand nowhere else."""
    base = draw(FILES)
    numbers = iter(range(1_000))
    sides = [list(base), list(base)]
    for side in sides:
        for _ in range(draw(st.integers(0, 4))):
            at = draw(st.integers(0, len(side)))
            match draw(st.sampled_from(["insert", "delete", "edit"])):
                case "insert":
                    side[at:at] = draw(
                        st.sampled_from([["- new {}"], ["", "## 15:00", "- new {}"], ["new {}"], ["  x{}"]])
                    )
                case "delete":
                    del side[at : at + draw(st.integers(1, 3))]
                case _:
                    side[at : at + 1] = ["- edit {}"]
            side[:] = [line.format(next(numbers)) if "{}" in line else line for line in side]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return "\n".join(base), "\n".join(sides[0]) + "\n", end.join(sides[1])


def lines_of(text: str) -> Counter[str]:
    return Counter(line for line in text.splitlines() if line.strip())


@given(versions())
def test_no_line_is_lost_and_none_comes_back(texts: tuple[str, str, str]) -> None:
    base, ours, theirs = texts
    merged = merge_texts(base, ours, theirs)
    if merged is None:
        return
    before, one, other, after = map(lines_of, (base, ours, theirs, merged))
    for line in one | other:
        # Of a line that stood there, each side took out so many as it has fewer; of a new one, the most that one wrote.
        least = one[line] + other[line] - before[line] if line in before else max(one[line], other[line])
        assert after[line] >= least, (line, merged)
    for line, count in before.items():
        if line not in one and line not in other:
            assert after[line] <= count, (line, merged)
    assert not after - (before | one | other) - (one + other), merged


@given(versions())
def test_a_merge_goes_on_from_either_side(texts: tuple[str, str, str]) -> None:
    base, ours, theirs = texts
    merged = merge_texts(base, ours, theirs)
    # Whoever has it and sees a side unchanged keeps it.
    if merged is not None:
        assert merge_texts(theirs, merged, theirs) == merged
        assert merge_texts(ours, merged, ours) == merged

"""Text in a terminal: widths, cuts, tables, bars."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.cli.columns import fit_to_cells, pad_text, width
from memory_service.cli.output import bar, one_line, printable, size, table
from tests.growth import at_most_readings


@pytest.mark.parametrize(
    ("text", "cells"),
    [("", 0), ("abc", 3), ("部署", 4), ("ｱ", 1), ("Ａ", 2), ("e\u0301", 1), ("한국", 4), ("かな", 4), ("a\u200db", 2)],
)
def test_a_wide_character_takes_two_cells(text: str, cells: int) -> None:
    assert width(text) == cells


@given(st.text(alphabet=st.sampled_from("ab部署한\u0301é👧 "), max_size=60), st.integers(1, 40))
def test_a_cut_fits_and_is_the_beginning(text: str, cells: int) -> None:
    cut = fit_to_cells(text, cells)
    assert width(cut) <= cells
    if cut != text:
        assert cut.endswith("…") and text.startswith(cut[:-1])
        assert width(text) > cells
        # Not a cell more would have fitted.
        assert width(cut) >= cells - 1


@given(st.text(max_size=200))
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = printable(text)
    bad = {char for char in shown if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")} - {"\n"}
    assert not bad and shown.count("\n") == text.count("\n")
    assert not {*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"} & {*shown}


@given(st.text(alphabet="abc 部署。!"))
def test_plain_text_stays(text: str) -> None:
    assert printable(text) == text


def test_columns_of_a_table_stand_below_each_other() -> None:
    lines = list(table(("ID", "N"), [("部署", "5"), ("abc", "1,000")], right=(1,)))
    assert lines == ["ID        N", "部署      5", "abc   1,000"]


def test_a_bar_shows_use_and_thresholds() -> None:
    assert bar(0, (50, 90), 100, cells=10) == "[.....|...|]"
    assert bar(30, (50, 90), 100, cells=10) == "[###..|...|]"
    assert bar(60, (50, 90), 100, cells=10) == "[#####+...|]"
    assert bar(500, (50, 100), 100, cells=10) == "[#####+###+]"
    assert bar(1, (), 0, cells=4) == "[####]"


def test_sizes_and_padding() -> None:
    assert [size(number) for number in (0, 999, 1000, 1_500_000, 10**13)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.5 MB",
        "10000.0 GB",
    ]
    assert pad_text("部署", 6) == "部署  " and pad_text("部署", 6, right=True) == "  部署"
    assert one_line("a\n  b\tc", 10) == "a b c"


def test_a_megabyte_of_marks_is_cut_at_once() -> None:
    with at_most_readings(200):
        for text in ("\u0301" * 1_000_000, "部" * 1_000_000, "\x1b" * 1_000_000):
            assert width(fit_to_cells(text, 80)) <= 80
            assert width(one_line(text, 80)) <= 80

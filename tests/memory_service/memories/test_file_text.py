"""Bytes of memory files as text."""

from __future__ import annotations

import pytest

from memory_service.memories.file_text import ends_within_character, measure


@pytest.mark.parametrize(
    ("rest", "within"),
    [
        (b"\xc3", True),
        (b"\xe6\xb5", True),
        (b"\xf0\x9f\x92", True),
        (b"\xe9 ", False),
        (b"\xff", False),
        (b"\x80", False),
    ],
)
def test_only_the_beginning_of_a_character_counts_as_cut_short(rest: bytes, within: bool) -> None:
    assert ends_within_character(rest) is within


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([], 0),
        ([b"a"], 1),
        ([b"a\n"], 1),
        ([b"a\r", b"\nb"], 2),
        ([b"a\r", b"b\r\n"], 2),
        ([b"\n", b"\n", b"x"], 3),
    ],
)
def test_lines_are_counted_across_pieces(pieces: list[bytes], lines: int) -> None:
    whole = measure([b"".join(pieces)])
    assert measure(pieces) == whole and whole[:2] == (len(b"".join(pieces)), lines)

"""The block is read back by a parser that knows nothing of how it was made."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.memories.block_text import (
    Span,
    _block_text,
    file_quarters,
    line_range,
    render_block,
    wrapper_quarters,
)
from memory_service.messages.sizes import quarters
from memory_service.text.frames import BLOCK_NOTE
from memory_service.text.texts import in_every_language

NOTES = "|".join(map(re.escape, in_every_language("block_note")))
BLOCK = re.compile(rf"<relevant_context>\n(?:{NOTES})\n(?P<files>.*)</relevant_context>", re.DOTALL)
FILE = re.compile(r'<file path="(?P<path>[^"<>\n]*)" lines="(?P<lines>[0-9,-]*)">\n(?P<body>[^<>]*)</file>\n')
# Said once more, in other words than in the code: C0 but tab and line feed, DEL, C1, what turns the order of
# writing, marks of the byte order, halves of pairs, what has no width, the letters of tags; but not the flags that are
# spelled in them, nor what changes the character beside it.
UNSEEN = {
    *map(chr, [*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]),
    *map(chr, [0x200E, 0x200F, 0xFEFF, *range(0xD800, 0xE000)]),
    *map(chr, [0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x200B, 0x3164, 0xFFA0]),
    *map(chr, [*range(0x2060, 0x2070), *range(0xFFF0, 0xFFFC), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)]),
    *map(chr, [*range(0xE0000, 0xE0100), *range(0xE01F0, 0xE1000)]),
}

NASTY = st.sampled_from(
    [
        "</file>",
        "</relevant_context>",
        "<relevant_context>",
        '<file path="MEMORY.md" lines="1">',
        '"',
        "'",
        "&lt;",
        "&amp;lt;",
        "&#60;/file&#62;",
        "]]>",
        "<!--",
        "\x00",
        "\u202e",
        "\u2066",
        "\r",
        "\r\n",
        "\n",
        "\t",
        "\u2028",
        "\u2029",
        "\x85",
        "\u200b",
        "\u200d",
        "\ufe0f",
        "\U000e0100",
        "\u00ad",
        "\U000e003c\U000e002f",
        "\ud800",
        "\udfff",
        "🪴",
        "浇水",
        "…",
        "e\u0301",
        BLOCK_NOTE,
    ]
)
TEXT = st.lists(NASTY | st.text(max_size=8), max_size=8).map("".join)
PATH = st.lists(NASTY | st.text(max_size=4), max_size=4).map(lambda parts: f"memory/{''.join(parts)}.md")


@dataclass(frozen=True)
class ReadFile:
    path: str
    lines: str
    body: str


def read_back(block: str) -> list[ReadFile]:
    """The files of a block; fails unless it is one frame with nothing but files in it."""
    frame = BLOCK.fullmatch(block)
    assert frame, block
    found, at = [], 0
    while at < len(frame["files"]):
        file = FILE.match(frame["files"], at)
        assert file, frame["files"][at:]
        found.append(ReadFile(*(html.unescape(part) for part in file.groups())))
        at = file.end()
    return found


SELECTORS = {*map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])}
JOINERS = {"\u200c", "\u200d"}


def seen(text: str) -> str:
    shown = [char for char in re.sub("[\r\u2028\u2029]", "\n", text) if char not in UNSEEN]
    return "".join(runs(shown))


def runs(shown: Iterable[str], mark: str = "") -> Iterator[str]:
    """Each character with what changes the one before it: a selector and a joiner, or two joiners; of more, a mark."""
    run: list[str] = []
    for char in [*shown, ""]:
        if char in SELECTORS | JOINERS:
            run.append(char)
            continue
        fit = 1 if len(run) > 1 and {*run[:2]} <= SELECTORS else 2
        yield "".join([*run[:fit], mark if run[fit:] else "", char])
        run = []


def shown_path(path: str) -> str:
    shown = ("\ufffd" if char in UNSEEN or char in "\t\n\u2028\u2029" else char for char in path)
    return "".join(runs(shown, "\ufffd"))


def spans_of(texts: list[str]) -> list[Span]:
    return [Span(ordinal=n, start_line=n + 1, end_line=n + 1, text=_block_text(text)) for n, text in enumerate(texts)]


@given(st.dictionaries(PATH, st.lists(TEXT, min_size=1, max_size=3), max_size=4))
def test_whatever_is_remembered_stays_text_in_its_file(memories: dict[str, list[str]]) -> None:
    block = render_block({path: spans_of(texts) for path, texts in memories.items()})
    files = read_back(block)
    assert block.count("<relevant_context>") == block.count("</relevant_context>") == 1
    assert block.count("<file ") == block.count("</file>") == len(memories)
    expected = {path: "".join(f"{seen(text)}\n" for text in texts) for path, texts in memories.items()}
    assert [(file.path, file.body) for file in files] == [
        (shown_path(path), expected[path]) for path in sorted(expected)
    ]
    assert not set(block) & UNSEEN
    block.encode()


@given(TEXT)
def test_text_comes_back_but_for_what_is_not_seen(text: str) -> None:
    assert html.unescape(_block_text(text)) == seen(text)


@given(st.dictionaries(PATH, st.lists(TEXT, min_size=1, max_size=3), max_size=4))
def test_the_same_spans_give_the_same_block(memories: dict[str, list[str]]) -> None:
    spans = {path: spans_of(texts) for path, texts in memories.items()}
    turned = dict(reversed(spans.items()))
    assert render_block(spans) == render_block(turned)


@given(PATH)
def test_the_sizes_of_the_wrappers_are_those_of_the_block(path: str) -> None:
    assert quarters(render_block({})) == wrapper_quarters()
    one = render_block({path: [Span(ordinal=0, start_line=7, end_line=12, text="x")]})
    assert quarters(one) == wrapper_quarters() + file_quarters(path) + len("7-12") + len("x\n")


def test_evergreen_files_come_first_then_paths() -> None:
    paths = ["memory/2026-11-20.md", "USER.md", "memory/a/b.md", "MEMORY.md", "memory/2026-11-02.md"]
    files = read_back(render_block({path: spans_of(["x"]) for path in paths}))
    assert [file.path for file in files] == [
        "MEMORY.md",
        "USER.md",
        "memory/2026-11-02.md",
        "memory/2026-11-20.md",
        "memory/a/b.md",
    ]


@pytest.mark.parametrize("unseen", ["\u200e", "\u202e", "\n", "\u2028", "\x07", "\ufeff"])
def test_a_name_cannot_pass_for_that_of_another_file(unseen: str) -> None:
    twins = ["memory/a.md", f"memory/a{unseen}.md"]
    files = read_back(render_block({path: spans_of(["x"]) for path in twins}))
    assert sorted(file.path for file in files) == ["memory/a.md", "memory/a\ufffd.md"]


def lines_in(attribute: str) -> list[int]:
    ranges = [[int(line) for line in part.split("-")] for part in attribute.split(",")]
    assert all(len(part) == 1 or (len(part) == 2 and part[0] < part[1]) for part in ranges)
    assert all(after[0] > before[-1] + 1 for before, after in pairwise(ranges)), "ranges that touch are one"
    return [line for part in ranges for line in range(part[0], part[-1] + 1)]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=12))
def test_lines_and_gaps(steps: list[tuple[int, int, int]]) -> None:
    """Each step leaves out some passages and some lines, then takes a passage of some lines."""
    spans, lines = list[Span](), list[int]()
    gaps, ordinal, line = 0, 0, 1
    for left_out, blank, height in steps:
        line += blank + left_out
        gaps += bool(spans) and left_out > 0
        ordinal += left_out
        spans.append(Span(ordinal=ordinal, start_line=line, end_line=line + height - 1, text="x"))
        lines += range(line, line + height)
        ordinal, line = ordinal + 1, line + height
    (file,) = read_back(render_block({"MEMORY.md": spans}))
    assert lines_in(file.lines) == lines
    assert file.body.splitlines().count("…") == gaps
    assert file.body.replace("…\n", "") == "x\n" * len(spans)
    assert not file.body.startswith("…") and not file.body.endswith("…\n")


def test_passages_of_one_line_name_it_once() -> None:
    cells = [Span(ordinal=n, start_line=5, end_line=5, text=f"cell {n}") for n in range(3)]
    (file,) = read_back(render_block({"MEMORY.md": cells}))
    assert (file.lines, file.body) == ("5", "cell 0\ncell 1\ncell 2\n")


@pytest.mark.parametrize(("first", "last", "shown"), [(3, 3, "3"), (3, 4, "3-4"), (9, 120, "9-120")])
def test_line_range(first: int, last: int, shown: str) -> None:
    assert line_range(first, last) == shown

from __future__ import annotations

import datetime as dt
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.documents.markdown import split_markdown
from indexer.types import Cue, Passage
from tests.growth import assert_grows_at_most

PATH = "memory/notes.md"
Shape = list[tuple[int, int, str]]


def split(text: str, path: str = PATH, max_chars: int = 1200) -> list[Passage]:
    return split_markdown(text, path=path, max_chars=max_chars)


def shape(text: str, max_chars: int = 1200) -> Shape:
    return [(p.start_line, p.end_line, p.text) for p in split(text, max_chars=max_chars)]


BLOCKS: dict[str, tuple[str, Shape]] = {
    "empty file": ("", []),
    "blank lines only": ("\n \n\t\n\u3000\n", []),
    "one line, no line end": ("word", [(1, 1, "word")]),
    "BOM": ("\ufeff- a", [(1, 1, "a")]),
    "paragraph": ("\na\n  b  \n\nc\n\n", [(2, 3, "a\nb"), (5, 5, "c")]),
    "CRLF": ("a\r\nb\r\n\r\nc\r\n", [(1, 2, "a\nb"), (4, 4, "c")]),
    "lone CR": ("a\r\rb\r", [(1, 1, "a"), (3, 3, "b")]),
    "other separators end no line": ("a\u2028b\x85c\n\nd", [(1, 1, "a\u2028b\x85c"), (3, 3, "d")]),
    "VT and FF end no line and are dropped": ("a\x0bb\x0cc\nd", [(1, 2, "abc\nd")]),
    "NUL and control characters": ("a\x00b\x1b\n\x00\nc", [(1, 1, "ab"), (3, 3, "c")]),
    "bullets": ("- a\n* b\n+ c", [(1, 1, "a"), (2, 2, "b"), (3, 3, "c")]),
    "numbers": ("1. a\n2) b\n10. c", [(1, 1, "a"), (2, 2, "b"), (3, 3, "c")]),
    "a year is no marker": ("1986. A great season.", [(1, 1, "1986. A great season.")]),
    "a number in an item is text": ("- 2. a", [(1, 1, "2. a")]),
    "no space, no marker": ("-a\n1.b", [(1, 2, "-a\n1.b")]),
    "a number in a paragraph is no list": ("the house is\n14. of them", [(1, 2, "the house is\n14. of them")]),
    "a list may interrupt a paragraph": ("p\n- a\n1. b", [(1, 1, "p"), (2, 2, "a"), (3, 3, "b")]),
    "task boxes": ("- [ ] a\n- [x] b", [(1, 1, "[ ] a"), (2, 2, "[x] b")]),
    "blank items": ("-\n- \n1.\n- a\n*", [(4, 4, "a")]),
    "item that begins on the next line": ("-\n  a", [(1, 2, "a")]),
    "continuation lines": ("- a\n  b\n    c\n- d", [(1, 3, "a\nb\nc"), (4, 4, "d")]),
    "lazy continuation": ("- a\nb\n\nc", [(1, 2, "a\nb"), (4, 4, "c")]),
    "second paragraph of an item": ("- a\n\n  b\n\nc", [(1, 3, "a\nb"), (5, 5, "c")]),
    "nested item": ("- a\n  - b\n    c\n- d", [(1, 1, "a"), (2, 3, "b\nc"), (4, 4, "d")]),
    "nested with mixed markers": ("1. a\n   - b\n     * c\n2. d", [(1, 1, "a"), (3, 3, "c"), (4, 4, "d")]),
    "nested by tab": ("- a\n\t- b\n\t\t- c", [(1, 1, "a"), (3, 3, "c")]),
    "nested too far": ("1. a\n        - b", [(1, 1, "a"), (2, 2, "b")]),
    "nested on one line": ("- - a\n1. - b", [(1, 1, "a"), (2, 2, "b")]),
    "back to the parent": ("- a\n  - b\n\n  c\n", [(1, 1, "a"), (2, 2, "b"), (4, 4, "c")]),
    "rules": ("a\n\n---\n***\n_ _ _\n- - -\nb", [(1, 1, "a"), (7, 7, "b")]),
    "bold is no bullet": ("**a** b\n*c*", [(1, 2, "**a** b\n*c*")]),
    "links as written": ("see [a](http://b/c?d) ![e](f)", [(1, 1, "see [a](http://b/c?d) ![e](f)")]),
    "link definitions": ("[a]: http://b", [(1, 1, "[a]: http://b")]),
    "table": (
        "| a | b |\n|---|:-:|\n| c | d |\n| e | f |\n\ng",
        [(3, 3, "| c | d |"), (4, 4, "| e | f |"), (6, 6, "g")],
    ),
    "table without outer pipes": (
        "p\na | b\n--- | ---\nc | d\ne",
        [(1, 1, "p"), (4, 4, "c | d"), (5, 5, "e")],
    ),
    "rows without separator": ("| a |\n<!-- x -->\n| b |", [(1, 1, "| a |"), (3, 3, "| b |")]),
    "fence": ("a\n```py\nb\n\n  c\n```\nd", [(1, 1, "a"), (2, 6, "b\n\n  c"), (7, 7, "d")]),
    "tilde fence": ("~~~~\n```\n~~~\n~~~~", [(1, 4, "```\n~~~")]),
    "unterminated fence": ("```\na\n\n- b\n\n", [(1, 4, "a\n\n- b")]),
    "empty fence": ("```py\n\n```\na", [(4, 4, "a")]),
    "inline code is no fence": ("```a``` b\nc", [(1, 2, "```a``` b\nc")]),
    "indented fence": ("  ```\n  a\n    b\n  ```", [(1, 4, "a\n  b")]),
    "fence in an item": ("- a\n  ```\n  b\n    c\n\n  d\n  ```\n  e\n- f", [(1, 8, "a\nb\n  c\n\nd\ne"), (9, 9, "f")]),
    "fence as an item": ("- ```\n  a\n  ```\n- b", [(1, 3, "a"), (4, 4, "b")]),
    "fence below an item": ("- a\n```\nb\n```", [(1, 1, "a"), (2, 4, "b")]),
    "a fence ends with its item": ("- a\n  ```\n  b\nc", [(1, 3, "a\nb"), (4, 4, "c")]),
    "indented code": ("    a\n      b\n\n    c\nd", [(1, 4, "a\n  b\n\nc"), (5, 5, "d")]),
    "code by tab": ("\ta\n\t\tb", [(1, 2, "a\n    b")]),
    "indented code in an item": ("- a\n\n      b\n        c", [(1, 4, "a\nb\n  c")]),
    "quote": ("> a\n> b\n>\n> c", [(1, 2, "a\nb"), (4, 4, "c")]),
    "lazy quote": ("> a\nb\n\nc", [(1, 2, "a\nb"), (4, 4, "c")]),
    "nested quotes": ("> a\n>> b\n> c\n\n>d", [(1, 1, "a"), (2, 3, "b\nc"), (5, 5, "d")]),
    "list in a quote": ("> - a\n>   b\n> - c", [(1, 2, "a\nb"), (3, 3, "c")]),
    "quote in an item": ("- a\n  > b\n  > c\n- > d", [(1, 3, "a\nb\nc"), (4, 4, "d")]),
    "quote in an outer item": ("- a\n  - b\n  > c\n  # d\n- e", [(1, 1, "a"), (2, 4, "b\nc\n# d"), (5, 5, "e")]),
    "heading in a quote": ("> ## a\n> b", [(1, 1, "a"), (2, 2, "b")]),
    "fence in a quote": ("> ```\n> a\n>\n>   b\n> ```\nc", [(1, 5, "a\n\n  b"), (6, 6, "c")]),
    "a fence ends with its quote": ("> ```\n> a\nb", [(1, 2, "a"), (3, 3, "b")]),
    "almost a separator": (":a|---|", [(1, 1, ":a|---|")]),
    "item of an empty fence": ("- ```\n\n    \n  ```\n- a", [(5, 5, "a")]),
    "no heading": ("#a\n####### b", [(1, 2, "#a\n####### b")]),
    "heading after a list": ("- a\n# b\nc", [(1, 1, "a"), (3, 3, "c")]),
    "one word": ("x" * 25, [(1, 1, "x" * 25)]),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str) -> None:
    text, expected = BLOCKS[name]
    assert shape(text) == expected


COMMENTS: dict[str, tuple[str, Shape]] = {
    "only comments": ("<!-- a -->\n\n<!--\nb\n-->", []),
    "service entry": ("## 14:32\n<!-- memory id=m1 origin=agent -->\n- a\n", [(3, 3, "a")]),
    "inside a line": ("a <!-- b --> c <!-- d -->", [(1, 1, "a c")]),
    "at a word": ("a<!-- b -->c", [(1, 1, "ac")]),
    "several lines": ("a <!-- b\nc\nd --> e\nf", [(1, 4, "a\ne\nf")]),
    "over blank lines": ("<!-- a\n\n- b\n# c\n```\n-->\nd", [(7, 7, "d")]),
    "several lines, the last one bare": ("a <!-- b\nc\n-->\ne", [(1, 4, "a\ne")]),
    "text after the end": ("<!-- a\n--> b", [(2, 2, "b")]),
    "between lines of an item": ("- a\n  <!-- x -->\n  b", [(1, 3, "a\nb")]),
    "item of a comment": ("- <!-- x -->\n- a", [(2, 2, "a")]),
    "at the edges of a paragraph": ("<!-- x -->\na\n<!-- y -->", [(2, 2, "a")]),
    "shortest": ("<!--> a\n<!---> b\n<!----> c", [(1, 3, "a\nb\nc")]),
    "unterminated": ("<!-- a\n\n- b", [(1, 1, "<!-- a"), (3, 3, "b")]),
    "unterminated above a complete one": (
        "<!-- a\n\n- b\n\n<!-- x -->\n- c",
        [(1, 1, "<!-- a"), (3, 3, "b"), (6, 6, "c")],
    ),
    "unterminated above a longer one": (
        "<!-- a\n\n- b\n<!-- x\n-->\n- c",
        [(1, 1, "<!-- a"), (3, 3, "b"), (6, 6, "c")],
    ),
    "in the middle of a text it reaches over no blank line": (
        "use <!-- here\n\n- b\n\nand --> there",
        [(1, 1, "use <!-- here"), (3, 3, "b"), (5, 5, "and --> there")],
    ),
    "inside a code span": ("use `<!-- a -->` <!-- b -->", [(1, 1, "use `<!-- a -->`")]),
    "a backtick inside a comment": ("<!-- ` --> a <!-- ` -->", [(1, 1, "a")]),
    "inside a fence": ("```\n<!-- a -->\n<!-- b\n```\nc -->", [(1, 4, "<!-- a -->\n<!-- b"), (5, 5, "c -->")]),
    "inside indented code": ("    <!-- a -->\n\nb", [(1, 1, "<!-- a -->"), (3, 3, "b")]),
    "stray end": ("a --> b", [(1, 1, "a --> b")]),
    "heading": ("# a <!-- b --> #\nc", [(2, 2, "c")]),
}


@pytest.mark.parametrize("name", COMMENTS)
def test_comments(name: str) -> None:
    text, expected = COMMENTS[name]
    assert shape(text) == expected


WORDLESS = [
    *(
        "<br>",
        "<br/>\n<hr>",
        "![](a.png)",
        "![scan](a.png)",
        "![[tulips.png]]",
        "![[Movies.base#Director]]",
        "^block-1",
    ),
    *("[![build](a.svg)](https://b.c)", "![scan](data:image/png;base64,iVBORw0KGgo=)", "&nbsp;", "┌──┐\n│  │\n└──┘"),
    *('<img src="a.png" alt="words of nobody">', "<div align='center'>\n</div>", "…", "- ![a](b.png)", "| | |"),
]


@pytest.mark.parametrize("text", WORDLESS)
def test_what_has_no_words_is_no_passage(text: str) -> None:
    passages = split(f"## Deadlock\n{text}\n\nTwo wait for each other.")
    assert [(p.text, p.heading, p.opens_section) for p in passages] == [
        ("Two wait for each other.", ("Deadlock",), True)
    ]


@pytest.mark.parametrize(
    "text", ["![The tulips behind the shed](a.png)", "<john> said", "a <br>", "🎉", "`<br>`", "[x](y)", "7", "汉"]
)
def test_what_has_words_is_a_passage(text: str) -> None:
    assert [p.text for p in split(text)] == [text]


def test_data_of_a_picture_is_not_kept() -> None:
    (passage,) = split("See ![scan](data:image/png;base64," + "iVBORw0KGgo" * 400 + ") of the sink.")
    assert passage.text == "See ![scan](data:image/png;base64,…) of the sink."


GROUPS: dict[str, tuple[str, list[tuple[str, tuple[str, ...], bool]]]] = {
    "label in bold": (
        "# P\n**Mia Berg**\n- Phone: 1\n- Food: nuts\n\n**Bo Lind**\n- Phone: 2",
        [
            ("Phone: 1", ("P", "Mia Berg"), True),
            ("Food: nuts", ("P", "Mia Berg"), False),
            ("Phone: 2", ("P", "Bo Lind"), True),
        ],
    ),
    "label with a colon": (
        "Mia:\n- Phone: 1\n\nBo：\n- Phone: 2\n\nThat is all.",
        [("Phone: 1", ("Mia",), True), ("Phone: 2", ("Bo",), True), ("That is all.", (), True)],
    ),
    "list items": (
        "- Bathroom\n  - Tiles\n    - Price: 52\n- Garage\n  - Tiles\n    - Price: 12\n- Order both.",
        [
            ("Price: 52", ("Bathroom", "Tiles"), True),
            ("Price: 12", ("Garage", "Tiles"), True),
            ("Order both.", (), True),
        ],
    ),
    "numbers": (
        "1. Fridge\n   - Price: 499\n2. Oven\n   - Price: 899",
        [
            ("Price: 499", ("Fridge",), True),
            ("Price: 899", ("Oven",), True),
        ],
    ),
    "a sentence stays a passage": (
        "- Ana lives in Lisbon.\n  - She likes it.\n- Bo does not",
        [
            ("Ana lives in Lisbon.", (), False),
            ("She likes it.", ("Ana lives in Lisbon.",), False),
            ("Bo does not", (), True),
        ],
    ),
    "nothing below it": (
        "**Mia**\n\n**Bo**\n- x\n\nEmpty:",
        [
            ("**Mia**", (), False),
            ("x", ("Bo",), True),
            ("Empty:", ("Bo",), False),
        ],
    ),
    "marks of a label": (
        "- [ ] **Trip to [[Hvar|the island]]**:\n  - Pack.",
        [
            ("Pack.", ("Trip to the island",), True),
        ],
    ),
    "second paragraph": (
        "- Mia\n  - Phone: 1\n\n  Call her.",
        [
            ("Phone: 1", ("Mia",), True),
            ("Call her.", ("Mia",), False),
        ],
    ),
    "a rule in bold": (
        "**Never deploy on Fridays.**\n\nAsk Kim.",
        [
            ("**Never deploy on Fridays.**", (), False),
            ("Ask Kim.", (), False),
        ],
    ),
    "a tag": (
        "- Deploys #ops\n  - On Tuesdays.",
        [("Deploys #ops", (), False), ("On Tuesdays.", ("Deploys #ops",), False)],
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups(name: str) -> None:
    text, expected = GROUPS[name]
    assert headings(text) == expected


def test_rows_have_the_columns_of_their_table() -> None:
    text = "# Birds\n| Bird | Place |\n|---|---|\n| Kite | Lake |\n| Hoopoe | Hill |\n\n| a | b |"
    assert [(p.text, p.columns, p.opens_section) for p in split(text)] == [
        ("| Kite | Lake |", "| Bird | Place |", True),
        ("| Hoopoe | Hill |", "| Bird | Place |", True),
        ("| a | b |", "", False),
    ]


def test_a_header_alone_is_a_passage() -> None:
    assert [(p.text, p.columns) for p in split("| Bird |\n|---|\n\nNone yet.")] == [("| Bird |", ""), ("None yet.", "")]


def headings(text: str, path: str = PATH) -> list[tuple[str, tuple[str, ...], bool]]:
    return [(p.text, p.heading, p.opens_section) for p in split(text, path)]


HEADINGS: dict[str, tuple[str, list[tuple[str, tuple[str, ...], bool]]]] = {
    "none": ("a", [("a", (), False)]),
    "path": (
        "# A\na\n## B ##\nb\n\nc\n# D #\nd",
        [("a", ("A",), True), ("b", ("A", "B"), True), ("c", ("A", "B"), False), ("d", ("D",), True)],
    ),
    "skipped level": ("# A\n### C\nc\n## B\nb", [("c", ("A", "C"), True), ("b", ("A", "B"), True)]),
    "setext": ("A\n===\na\n\nB\n---\nb", [("a", ("A",), True), ("b", ("A", "B"), True)]),
    "setext of two lines": ("A\nB\n===\nc", [("c", ("A B",), True)]),
    "a rule between records": ("A: a\nB: b\n---\nA: c", [("A: a\nB: b", (), False), ("A: c", (), False)]),
    "comment and marks": ("## A <!-- x --> ##\na", [("a", ("A",), True)]),
    "mark in the title": ("# C# #\na", [("a", ("C#",), True)]),
    "without title": ("#\na\n##  ##\nb", [("a", (), False), ("b", (), False)]),
    "without content": ("# A\n## B\n## C\nc\n# D", [("B", ("A",), True), ("c", ("A", "C"), True), ("D", (), False)]),
    "only headings": ("# A\n## B\n### C", [("C", ("A", "B"), True)]),
    "content above a section without": ("# A\na\n## B", [("a", ("A",), True), ("B", ("A",), False)]),
    "only a comment below": ("# A\n<!-- x -->\n", [("A", (), False)]),
    "in a fence": ("```\n# A\n```\nb", [("# A", (), False), ("b", (), False)]),
    "indented": ("   # A\nb", [("b", ("A",), True)]),
    "long text above a rule": ("a " * 150 + "\n---\nb", [(("a " * 150).strip(), (), False), ("b", (), False)]),
    "rule below a list": ("- a\n---\nb", [("a", (), False), ("b", (), False)]),
}


@pytest.mark.parametrize("name", HEADINGS)
def test_headings(name: str) -> None:
    text, expected = HEADINGS[name]
    assert headings(text) == expected


def test_a_heading_without_content_has_the_lines_of_the_heading() -> None:
    assert shape("a\n\n# B\n\nC\nD\n===\n") == [(1, 1, "a"), (3, 3, "B"), (5, 7, "C D")]


FRONT: dict[str, tuple[str, list[tuple[str, tuple[str, ...], dt.date | None]]]] = {
    "yaml": ("---\ndate: 2020-01-02\ntags: [a]\n---\nb", [("b", (), dt.date(2020, 1, 2))]),
    "dots": ("---\ndate: '2020-01-02'\n...\nb", [("b", (), dt.date(2020, 1, 2))]),
    "toml": ("+++\ndate = 2020-01-02\n[x]\ntitle = 'T'\n+++\nb", [("b", ("T",), dt.date(2020, 1, 2))]),
    "nested values": (
        "---\n# c\ntags:\n- x\n  - y\n\nz: |\n  text\n---\nb",
        [("tags: x, y\nz: text", (), None), ("b", (), None)],
    ),
    "title": ("---\ntitle: T\n---\nb\n## C\nd", [("b", ("T",), None), ("d", ("T", "C"), None)]),
    "quoted title": ('---\ntitle: "T: u"\n---\nb', [("b", ("T: u",), None)]),
    "title beside a heading of level 1": (
        "---\ntitle: T\n---\nb\n# C\nd",
        [("b", ("T",), None), ("d", ("T", "C"), None)],
    ),
    "title that stands there twice": (
        "---\ntitle: T\n---\n# t\nb\n## T\nc",
        [("b", ("t",), None), ("c", ("t", "T"), None)],
    ),
    "title beside a bare heading": ("---\ntitle: T\n---\n# C", [("C", ("T",), None)]),
    "title beside code": ("---\ntitle: T\n---\n```\n# c\n```", [("# c", ("T",), None)]),
    "date that is none": ("---\ndate: 2020-13-40\n---\nb", [("b", (), None)]),
    "unterminated": ("---\ndate: 2020-01-02\n\nb", [("date: 2020-01-02", (), None), ("b", (), None)]),
    "two rules are none": (
        "---\nA text.\n\nMore.\n\n---\nb",
        [("A text.", (), None), ("More.", (), None), ("b", (), None)],
    ),
    "not at the start": ("\n---\ndate: 2020-01-02\n\n---\nb", [("date: 2020-01-02", (), None), ("b", (), None)]),
    "empty": ("---\n---\nb", [("b", (), None)]),
    "nothing else": ("---\ntitle: T\n---\n", [("T", ("T",), None)]),
    "properties alone": (
        '---\ncategories:\n  - "[[Movies]]"\ndirector: "[[Ana Ruiz|Ana]]" # c\nrating: 7\nlast: null\n---\n',
        [("categories: Movies\ndirector: Ana\nrating: 7", (), None)],
    ),
    "properties beside a text": (
        "---\ntitle: T\naliases: [B, 'C d']\n---\nb",
        [("aliases: B, C d", ("T",), None), ("b", ("T",), None)],
    ),
    "a day by another name": ("---\ncreated: 2020-01-02T10:00\n---\nb", [("b", (), dt.date(2020, 1, 2))]),
    "a talk between rules": (
        "---\nMia: the key is under the blue pot\nTom: thanks, found it\n---\nMia: see you",
        [("Mia: the key is under the blue pot\nTom: thanks, found it", (), None), ("Mia: see you", (), None)],
    ),
    "a reminder between rules": (
        "---\n\nReminder: the boiler pin is 4471.\n\n---\n",
        [("Reminder: the boiler pin is 4471.", (), None)],
    ),
    "not YAML": ("---\ntitle: a: b\n---\nc", [("title: a: b", (), None), ("c", (), None)]),
    "open brackets": ("---\ntags: [a,\n---\nc", [("tags: [a,", (), None), ("c", (), None)]),
}


@pytest.mark.parametrize("name", FRONT)
def test_front_matter(name: str) -> None:
    text, expected = FRONT[name]
    assert [(p.text, p.heading, p.date) for p in split(text)] == expected


def test_front_matter_counts_as_lines() -> None:
    assert shape("---\r\ntitle: T\r\n---\r\n\r\n- a") == [(5, 5, "a")]


DATES: dict[str, tuple[str, str, dt.date | None]] = {
    "file name": ("memory/2026-11-20.md", "a", dt.date(2026, 11, 20)),
    "first in the name": ("memory/x-2026-11-20-to-2026-11-22.md", "a", dt.date(2026, 11, 20)),
    "not in a folder": ("memory/2026-11-20/notes.md", "a", None),
    "not a date": ("memory/2026-13-40.md", "a", None),
    "part of a number": ("memory/12026-11-201.md", "a", None),
    "heading": ("memory/2026-11-20.md", "# 2024-02-29\na", dt.date(2024, 2, 29)),
    "nearest heading": (PATH, "# 2024-02-29\n## at 2024-03-01, late\na", dt.date(2024, 3, 1)),
    "heading further up": (PATH, "# 2024-02-29\n## 10:00\na", dt.date(2024, 2, 29)),
    "invalid in a heading": ("memory/2026-11-20.md", "# 2023-02-29\na", dt.date(2026, 11, 20)),
    "second in a heading": (PATH, "# 2023-02-29 or 2023-03-01\na", dt.date(2023, 3, 1)),
    "slashes": (PATH, "# 2024/2/9\na", dt.date(2024, 2, 9)),
    "Chinese": (PATH, "# 2026年11月20日 星期五\na", dt.date(2026, 11, 20)),
    "section ended": (PATH, "# 2024-02-29\n# B\na", None),
    "name before front matter": ("2026-11-20.md", "---\ndate: 2020-01-01\n---\na", dt.date(2026, 11, 20)),
    "text does not count": (PATH, "on 2024-02-29", None),
    "own heading does not date it": (PATH, "# 2024-02-29 A", None),
}


@pytest.mark.parametrize("name", DATES)
def test_dates(name: str) -> None:
    path, text, expected = DATES[name]
    assert split(text, path)[-1].date == expected


LABELS: dict[str, tuple[str, list[str | None]]] = {
    "two speakers": ("- Ann: a\n- Bo: b\n- Ann: c\n- Bo: d", ["Ann", "Bo", "Ann", "Bo"]),
    "only once": ("- Ann: a\n- Bo: b", [None, None]),
    "paragraphs have none": ("Ann: a\n\nAnn: b", [None, None]),
    "bold": ("- **Ann:** a\n- **Ann**: b\n- Ann: c", ["Ann"] * 3),
    "Chinese": ("- 小明：你好\n- 小明：再见", ["小明"] * 2),
    "full-width colon": ("- Ann：a\n- Ann : b", ["Ann"] * 2),
    "addresses": ("- http://a\n- http://b\n- https: c\n- https: d", [None] * 4),
    "times": ("- 10:30 a\n- 10:30 b", [None] * 2),
    "notes": ("- Note: a\n- Note: b\n- TODO: c\n- TODO: d\n- 注意：e\n- 注意：f", [None] * 6),
    "sentences": ("- Yes, Ann: a\n- Yes, Ann: b", [None] * 2),
    "too many words": ("- one two three four five: a\n- one two three four five: b", [None] * 2),
    "four words": ("- one two three four: a\n- one two three four: b", ["one two three four"] * 2),
    "too long": ("- " + "a" * 33 + ": a\n- " + "a" * 33 + ": b", [None] * 2),
    "nothing after it": ("- Ann:\n- Ann: b", ["Ann"] * 2),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels(name: str) -> None:
    text, expected = LABELS[name]
    assert [p.label for p in split(text)] == expected


def test_text_keeps_the_label() -> None:
    assert split("- **Ann:** a\n- **Ann:** b")[0].text == "**Ann:** a"


def test_every_part_of_a_long_item_has_its_label_and_only_the_first_opens() -> None:
    passages = split("# A\n- Ann: " + "one two " * 20 + "\n- Ann: b", max_chars=50)
    assert {p.label for p in passages} == {"Ann"}
    assert [p.opens_section for p in passages] == [True] + [False] * (len(passages) - 1)


def test_cues() -> None:
    text = "- Ann: are you free?\n- Bo: yes, tomorrow\n- Ann: good\n# A\n- why?\n## B\n- c"
    assert [p.cues for p in split(text)] == [
        Cue.QUESTION,
        Cue.TIME | Cue.ANSWER,
        Cue.NONE,
        Cue.QUESTION,
        Cue.NONE,  # another section
    ]


CUTS: dict[str, tuple[str, int, Shape]] = {
    "fits": ("abc", 3, [(1, 1, "abc")]),
    "lines first": ("aa\nbb\ncc", 5, [(1, 2, "aa\nbb"), (3, 3, "cc")]),
    "then sentences": ("Aa bb. Cc dd. Ee", 12, [(1, 1, "Aa bb."), (1, 1, "Cc dd. Ee")]),
    "Chinese sentences": ("一二三。四五六！七八", 5, [(1, 1, "一二三。"), (1, 1, "四五六！"), (1, 1, "七八")]),
    "then spaces": ("aaa bbb ccc", 7, [(1, 1, "aaa bbb"), (1, 1, "ccc")]),
    "then anywhere": ("abcdefgh", 3, [(1, 1, "abc"), (1, 1, "def"), (1, 1, "gh")]),
    "a rest is joined to the next line": ("aaa bbb\nc", 5, [(1, 1, "aaa"), (1, 2, "bbb\nc")]),
    "code by lines": ("```\naaa\n\n  bbb\n\nccc\n```", 6, [(1, 2, "aaa"), (4, 4, "  bbb"), (6, 7, "ccc")]),
    "item with a fence": ("- aaaa\n  ```\n  b\n  c\n  ```", 5, [(1, 1, "aaaa"), (3, 5, "b\nc")]),
    "long heading": ("# aaa bbb", 4, [(1, 1, "aaa"), (1, 1, "bbb")]),
}


@pytest.mark.parametrize("name", CUTS)
def test_cutting(name: str) -> None:
    text, max_chars, expected = CUTS[name]
    assert shape(text, max_chars) == expected


def test_max_chars_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least one"):
        split("a", max_chars=0)


# Properties -----------------------------------------------------------------------------------------------

_PIECES = [
    *("- ", "* ", "+ ", "1. ", "2) ", "> ", ">", "# ", "## ", "#", "```", "~~~", "---", "===", "***", "|", "|---|"),
    *(" ", "  ", "    ", "\t", "\n", "\n", "\n\n", "\r\n", "\r", "<!--", "-->", "<!-- x -->", "`", "[ ] ", ". ", ":"),
    *("\x00", "\x0b", "\x0c", "\x1c", "\x1f", "\x85", "\u2028", "\u3000", "\ufeff", "\u200b", "?"),
    *("a", "bc", "Ann: ", "中文。", "🙂", "2026-11-20"),
]  # fmt: skip
wild_text = st.one_of(st.lists(st.sampled_from(_PIECES), max_size=60).map("".join), st.text(max_size=120))


def lines_of(text: str) -> list[str]:
    return re.split("\r\n|\r|\n", text)


@settings(max_examples=120, deadline=None)
@given(wild_text, st.integers(1, 40) | st.just(1200))
def test_passages_are_well_formed_for_any_text(text: str, max_chars: int) -> None:
    passages = split(text, max_chars=max_chars)
    lines = lines_of(text.removeprefix("\ufeff"))
    assert passages == split(text, max_chars=max_chars)
    assert [p.start_line for p in passages] == sorted(p.start_line for p in passages)
    for p in passages:
        assert 1 <= p.start_line <= p.end_line <= len(lines)
        assert p.text.strip()
        assert len(p.text) <= max_chars
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", p.text)
        assert p.text == p.text.rstrip()
        assert lines[p.start_line - 1].strip()
        assert lines[p.end_line - 1].strip()


@settings(max_examples=120, deadline=None)
@given(wild_text)
def test_text_is_found_in_its_lines(text: str) -> None:
    """Character by character and in order; what is skipped are markers, fences, comments, space."""
    lines = lines_of(text.removeprefix("\ufeff"))
    for p in split(text):
        source = iter("".join(lines[p.start_line - 1 : p.end_line]))
        assert all(char in source for char in p.text if not char.isspace())


_INDENTS = ["", "", "", " ", "  ", "   ", "    ", "      ", "\t", "\u3000"]
_MARKERS = [
    "",
    "",
    "",
    "- ",
    "- ",
    "* ",
    "1. ",
    "2) ",
    "> ",
    "> ",
    "> - ",
    "- > ",
    "- - ",
    ">> > ",
    "# ",
    "## ",
    "- [ ] ",
    ":",
]
_TEXTS = [
    *("{}", "{}", "{} {}", "{}: {}", "{}?", "{} | {}", "| {} |", "|{}", "#{}", "`{}`", "**{}**", "{} ##", "{}。{}", ""),
    *("|---|---|", "---|---", "---", "--", "-", "===", "***", "```", "```", "~~~", ">", "-", "|"),
]
_ENDS = ["\n", "\n", "\n", "\n\n", "\r\n", "\r", " \n"]
markdown_lines = st.lists(
    st.tuples(*map(st.sampled_from, (_INDENTS, _MARKERS, _TEXTS, _ENDS))).map("".join), min_size=1, max_size=25
)


@settings(max_examples=250, deadline=None)
@given(markdown_lines)
def test_no_word_is_lost_or_doubled(templates: list[str]) -> None:
    """Each word is in the one passage that has its line, or in a heading."""
    count = itertools.count()
    text = "\n" + re.sub(r"\{\}", lambda _: f"w{next(count)}w", "".join(templates))  # the line end: no front matter
    passages = split(text)
    titles = [title for p in passages for title in (*p.heading, p.columns)]
    for number, line in enumerate(lines_of(text), start=1):
        for word in re.findall(r"w\d+w", line):
            found = [p for p in passages if word in p.text]
            assert len(found) == 1 or (not found and any(word in title for title in titles))
            assert all(p.start_line <= number <= p.end_line for p in found)


_TEMPLATES = [
    "- {}",
    "  - {}",
    "1. {}",
    "{}",
    "  {}",
    "> {}",
    "# {}",
    "## {} ##",
    "| {} | x |",
    "",
    "---",
    "- {} <!-- {c} -->",
]
_HIDDEN = [
    "<!-- {c} -->",
    "- <!-- {c} -->",
    "<!--\n- {c}\n\n# {c}\n-->",
    "<!-- {c}\n``` -->",
    "{} <!-- {c}\n{c} --> {}",
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(_TEMPLATES + _HIDDEN), max_size=25))
def test_comments_hide_themselves_and_nothing_else(templates: list[str]) -> None:
    parts = [
        part.replace("{c}", f"hidden{index}x").replace("{}", f"shown{index}x") for index, part in enumerate(templates)
    ]
    text = "\n" + "\n".join(parts)
    passages = split(text)
    found = "\n".join(p.text + "\n" + "\n".join(p.heading) for p in passages)
    assert "hidden" not in found
    assert set(re.findall(r"shown\d+x", text)) == set(re.findall(r"shown\d+x", found))


ADVERSARIES: dict[str, str] = {
    "one word": "a",
    "spaces": "a" + " " * 63,
    "words": "word ",
    "bullets on a line": "+ ",
    "dashes": "- ",
    "bullets": "- a\n",
    "open comments": "<!--",
    "open comments on lines": "x <!--\n",
    "open comments with backticks": "<!-- ` `` ",
    "comments": "<!-- a -->",
    "comment ends": "-->",
    "hashes": "#",
    "headings": "# a\n",
    "deep headings": "# a\n## b\n### c\n#### d\n",
    "pipes": "|",
    "pipes and dashes": "|-",
    "rows": "|a|\n",
    "separators": "a|b\n-|-\n",
    "backticks": "`",
    "backtick runs": "` `` ``` ",
    "fences": "```\n",
    "tildes": "~~~\n~~~~\n",
    "quotes": "> ",
    "quotes on lines": "> > > > a\n",
    "quoted fences": "> ```\n> a\n",
    "tabs": "\ta\n",
    "blank lines": "\n",
    "carriage returns": "\r",
    "underlines": "a\n=\n==\n",
    "digits": "1",
    "numbers": "1. ",
    "colons": "a:",
    "questions": "?",
    "stops": "a.",
    "Chinese": "中文三天",
    "control characters": "\x00",
    "front matter": "---\na: b\n",
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_time_is_linear(name: str) -> None:
    unit = ADVERSARIES[name]
    repeats = (40_000 if "\n" in unit else 250_000) // len(unit)
    assert_grows_at_most(10, lambda times: split(unit * times), repeats, 4 * repeats)


def test_a_megabyte_in_one_line_is_cut() -> None:
    passages = split("a" * 1_000_000)
    assert sum(len(p.text) for p in passages) == 1_000_000
    assert {(p.start_line, p.end_line) for p in passages} == {(1, 1)}


def test_entries_have_the_origin_of_their_comment_and_other_lines_are_the_users() -> None:
    text = (
        "# 2026-11-20\n\n## 14:32\n<!-- memory id=m1 origin=agent -->\n- One\n  two\n\n  three\n- By hand\n"
        "<!-- memory id=m2 session=s messages=1-2 origin=user key=ab -->\n- Four\n<!-- memory id=m3 -->\n- Five\n\n"
        "<!-- memory id=m4 origin=tool -->\n\n- Six\n<!-- memory id=m5 origin=assistant -->\n\nA paragraph far below.\n"
        "- Seven\n  <!-- memory id=m6 origin=agent -->\n  eight\n"
    )
    found = {
        p.text.split("\n")[0]: (p.role, p.noted, p.written) for p in split_markdown(text, path="memory/2026-11-20.md")
    }
    at = dt.datetime(2026, 11, 20, 14, 32)
    assert found == {
        "One": ("agent", True, at),
        "By hand": ("user", False, at),
        "Four": ("user", True, at),
        "Five": ("agent", True, at),
        "Six": ("tool", True, at),
        "A paragraph far below.": ("user", False, at),
        "Seven": ("user", False, at),
    }

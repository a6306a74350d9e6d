from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.documents.code import MAX_CODE_CHARS, MAX_CODE_LINES, CodeLanguage, split_code
from indexer.documents.markdown import split_lines
from indexer.types import Passage
from tests.growth import at_most_readings

PYTHON = '''"""A store."""

import os


# What is kept.
@dataclass(
    frozen=True,
)
class Store:
    """Keeps things."""

    limit = 3

    def open(self, name):
        """Opens."""
{opening}

    async def close(self):
{closing}


def main() -> None:
    Store().open("x")
'''


def body(count: int, indent: int = 8) -> str:
    return "\n".join(f"{' ' * indent}step_{n} = prepare(self, {n})  # 第{n}步" for n in range(count))


def headings(passages: list[Passage]) -> list[str]:
    return [" > ".join(passage.heading) for passage in passages]


def shown(text: str, passages: list[Passage]) -> None:
    """Every line with something on it is in a passage, and passages are what their lines say."""
    lines = split_lines(text)
    covered = [number for passage in passages for number in range(passage.start_line, passage.end_line + 1)]
    assert {at for at, line in enumerate(lines, 1) if line.strip()} <= set(covered)
    assert covered == sorted(covered)
    for passage in passages:
        assert passage.text.strip()
        assert len(passage.text) <= MAX_CODE_CHARS
        assert passage.end_line - passage.start_line < MAX_CODE_LINES
        own = lines[passage.start_line - 1 : passage.end_line]
        assert own[0].strip() and own[-1].strip()
        flat = "".join("".join(own).split())
        assert "".join(passage.text.split()) in flat


def test_definitions_are_passages_below_the_names_around_them() -> None:
    text = PYTHON.format(opening=body(32), closing=body(32))
    passages = split_code(text, path="@x/store.py", language=CodeLanguage.INDENTED)
    shown(text, passages)
    assert headings(passages) == [
        "",
        "class Store",
        "class Store > def open",
        "class Store > def close",
        "def main",
    ]
    first = passages[1]
    assert (first.start_line, first.opens_section) == (6, True), "comment and decorator belong to the class"
    assert passages[2].text.startswith("def open(self, name):\n    "), "without the indentation of all"
    assert [passage.opens_section for passage in passages] == [False, True, True, True, True]


def test_a_long_definition_is_cut_at_lines_below_its_own_name() -> None:
    text = PYTHON.format(opening=body(200), closing=body(2))
    passages = split_code(text, path="@x/store.py", language=CodeLanguage.INDENTED)
    shown(text, passages)
    parts = [passage for passage in passages if passage.heading == ("class Store", "def open")]
    assert len(parts) > 4
    assert [part.opens_section for part in parts] == [True] + [False] * (len(parts) - 1)
    assert all(len(part.text) > MAX_CODE_CHARS // 2 for part in parts[:-1])


def test_small_definitions_are_put_together() -> None:
    text = "\n\n".join(f"def f{n}():\n    return {n}" for n in range(60))
    passages = split_code(text, path="x.py", language=CodeLanguage.INDENTED)
    shown(text, passages)
    assert 2 <= len(passages) <= 5


def test_braces_decide_where_nothing_is_indented() -> None:
    text = "\n".join(
        [
            "namespace app {",
            "",
            "/** Opens. */",
            "[[nodiscard]]",
            "std::vector<int> Store::open(const std::string& name,",
            "int count)",
            "{",
            *(f"call({n}, \"a {{ brace\", '}}'); // }} {n}" for n in range(40)),
            "}",
            "int last() { return 1; }",
            "}",
        ]
    )
    passages = split_code(text, path="x.cpp", language=CodeLanguage.BRACES)
    shown(text, passages)
    assert headings(passages)[0] == "namespace app"
    assert ("namespace app", "open()") in [passage.heading for passage in passages]
    assert passages[-1].end_line == len(text.split("\n")), "a closing brace alone is no passage"


def test_brackets_that_do_not_add_up_leave_it_to_the_indentation() -> None:
    text = (
        "function a() {\n  const r = /[{]/;\n"
        + "  call();\n" * 60
        + "}\n\nfunction b() {\n"
        + "  call();\n" * 60
        + "}\n"
    )
    passages = split_code(text, path="x.js", language=CodeLanguage.BRACES)
    shown(text, passages)
    assert {passage.heading for passage in passages} == {("function a",), ("function b",)}


def test_keys_and_tables() -> None:
    text = "jobs:\n  build:\n" + "".join(f"    step{n}: run {n}\n" for n in range(70)) + "  test:\n    - x: 1\n"
    found = split_code(text, path="x.yaml", language=CodeLanguage.KEYS)
    shown(text, found)
    assert ("jobs", "build") in [passage.heading for passage in found]
    text = "[project]\nname = 1\n\n# About tools.\n[tool.ruff]\n" + "".join(f"key_{n} = {n}\n" for n in range(70))
    found = split_code(text, path="x.toml", language=CodeLanguage.TABLES)
    shown(text, found)
    assert found[0].heading == ("project",)
    assert (found[1].start_line, found[1].heading) == (4, ("tool.ruff",))


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", " \t\r\n"])
def test_nothing(text: str) -> None:
    assert split_code(text, path="x.py", language=CodeLanguage.INDENTED) == []


def test_line_ends_tabs_and_no_end_at_the_last_line() -> None:
    text = "\ufeff// 说明\r\nfunc 部署() {\r\n\tdo()\r\n}\r\n\r\nvar x = 1"
    (passage,) = split_code(text, path="2026-11-20.go", language=CodeLanguage.BRACES)
    assert (passage.start_line, passage.end_line, passage.date) == (1, 6, dt.date(2026, 11, 20))
    assert passage.text == "// 说明\nfunc 部署() {\n\tdo()\n}\n\nvar x = 1"


def test_a_line_that_is_too_long_is_cut() -> None:
    text = "x = 1\n" + "data = [" + "123, " * 2_000 + "]\ny = 2\n"
    passages = split_code(text, path="x.py", language=CodeLanguage.INDENTED)
    assert sum(passage.start_line == 2 for passage in passages) > 5
    assert all(len(passage.text) <= MAX_CODE_CHARS for passage in passages)
    assert passages[-1].end_line == 3


LINES = st.sampled_from(
    [
        "", "", "  ", "\t", "def f():", "class A:", "}", "{", "# c", "// c", "/*", "*/", "@d", "x = 1", "return '",
        'y = """', "int g(int a) {", "func (s *T) H() {", "impl X for Y {", "key:", "- item", "[table]", ")",
        "end", "x" * 700, "中文" * 90,
    ]
)  # fmt: skip
INDENTS = st.sampled_from(["", "", "  ", "    ", "\t", "        "])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(INDENTS, LINES), max_size=90), st.sampled_from(["\n", "\r\n"]), st.sampled_from(CodeLanguage))
def test_no_line_is_lost_and_none_stands_twice(lines: list[tuple[str, str]], end: str, language: CodeLanguage) -> None:
    text = end.join(indent + line for indent, line in lines)
    shown(text, split_code(text, path="x", language=language))


@pytest.mark.parametrize(
    "hostile",
    ["/*" * 75_000, '"' * 125_000, "(" * 125_000, "`\\" * 75_000, "'" * 100_000, "{\n" * 50_000,
     "class A:\n" * 15_000,
     "".join(" " * n + "class A:\n" for n in range(500)), "a " * 75_000 + "(", "@d\n" * 37_500,
     "const a" + " " * 75_000],
)  # fmt: skip
@pytest.mark.parametrize("language", [CodeLanguage.BRACES, CodeLanguage.INDENTED])
def test_hostile_text_takes_no_time(hostile: str, language: CodeLanguage) -> None:
    with at_most_readings(40):
        split_code(hostile, path="x", language=language)

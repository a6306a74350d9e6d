from __future__ import annotations

import pytest

from indexer.documents.code import BLANK, CodeLanguage, _belongs_below, _continues, _depths, title


@pytest.mark.parametrize(
    ("line", "language", "expected"),
    [
        ("class Store(Base):", CodeLanguage.INDENTED, "class Store"),
        ("    async def open(self):", CodeLanguage.INDENTED, "def open"),
        ("  def self.open!(x)", CodeLanguage.INDENTED, "def self.open!"),
        ("CREATE TABLE IF NOT EXISTS app.users (", CodeLanguage.INDENTED, "table app.users"),
        ("export default class Store {", CodeLanguage.BRACES, "class Store"),
        ("export async function* load(x) {", CodeLanguage.BRACES, "function* load"),
        ("export const load = async (x) => {", CodeLanguage.BRACES, "function load"),
        ("const total = (a + b) * 2;", CodeLanguage.BRACES, ""),
        ("func (s *Store) Open(name string) error {", CodeLanguage.BRACES, "func Open"),
        ("pub(crate) async fn open<'a>(x: &'a str) {", CodeLanguage.BRACES, "fn open"),
        ("impl<T> Keep for Store<T> {", CodeLanguage.BRACES, "impl<T> Keep for Store<T>"),
        ("    public static List<String> open(String name) {", CodeLanguage.BRACES, "open()"),
        ("int Store::open(const char *name,", CodeLanguage.BRACES, "open()"),
        ("  render() {", CodeLanguage.BRACES, "render()"),
        ("  if (x) {", CodeLanguage.BRACES, ""),
        ("  return open(x, {", CodeLanguage.BRACES, ""),
        ("  store.open(x);", CodeLanguage.BRACES, ""),
        ("  open(x);", CodeLanguage.BRACES, ""),
        ("fun 部署(): Unit {", CodeLanguage.BRACES, "fun 部署"),
        ("build:", CodeLanguage.KEYS, "build"),
        ("  - name: x", CodeLanguage.KEYS, ""),
        ("[tool.ruff]  # lint", CodeLanguage.TABLES, "tool.ruff"),
        ("x = [1]", CodeLanguage.TABLES, ""),
    ],
)
def test_title(line: str, language: CodeLanguage, expected: str) -> None:
    assert title([line], 0, language) == expected


def test_a_body_may_open_on_the_next_line() -> None:
    assert title(["int open(int x)", "{"], 0, CodeLanguage.BRACES) == "open()"
    assert title(["open(x);", "{"], 0, CodeLanguage.BRACES) == ""


def test_depths_by_brackets_strings_and_comments_left_out() -> None:
    lines = ["f() { // }", 'x("}", \'}\', "\\"}");', "/* }", "} */", "g(a,", "b)", "", "}"]
    assert _depths(lines, CodeLanguage.BRACES) == [0, 1, 1, 1, 1, 2, BLANK, 1]
    assert _depths(["a {", "  b", "}}"], CodeLanguage.BRACES) == [0, 2, 0], "they do not add up"


def test_depths_by_indentation_and_long_strings() -> None:
    lines = ["def f():", '    x = """', "text", '"""', "\treturn x", "", "y"]
    assert _depths(lines, CodeLanguage.INDENTED) == [0, 4, 5, 5, 4, BLANK, 0]
    assert _depths(['x = """', "y"], CodeLanguage.INDENTED) == [0, 0], "it never ends"
    assert _depths(["a:", "- b:", "    c", "- d"], CodeLanguage.KEYS) == [0, 1, 8, 1]
    assert _depths(["# about", "[t]", "", "x = 1"], CodeLanguage.TABLES) == [0, 0, BLANK, 1]


def test_what_goes_on_and_what_belongs_below() -> None:
    assert all(map(_continues, ["}", ") -> int:", "{", "end", "  end;", "else:", "fi"]))
    assert not any(map(_continues, ["end = 3", "x }", "done_all()", "final"]))
    assert all(map(_belongs_below, ["# x", "  // x", "/** x", " * x", "@x", "#[x]", "[Fact]", "-- x"]))
    assert not any(map(_belongs_below, ["#include <x>", "x = 1", "[1, 2]", "[x] = y"]))

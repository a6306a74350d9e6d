from __future__ import annotations

import pytest

from indexer.documents.code import BLANK, Language, _belongs_below, _continues, _depths, title


@pytest.mark.parametrize(
    ("line", "language", "expected"),
    [
        ("class Store(Base):", Language.INDENTED, "class Store"),
        ("    async def open(self):", Language.INDENTED, "def open"),
        ("  def self.open!(x)", Language.INDENTED, "def self.open!"),
        ("CREATE TABLE IF NOT EXISTS app.users (", Language.INDENTED, "table app.users"),
        ("export default class Store {", Language.BRACES, "class Store"),
        ("export async function* load(x) {", Language.BRACES, "function* load"),
        ("export const load = async (x) => {", Language.BRACES, "function load"),
        ("const total = (a + b) * 2;", Language.BRACES, ""),
        ("func (s *Store) Open(name string) error {", Language.BRACES, "func Open"),
        ("pub(crate) async fn open<'a>(x: &'a str) {", Language.BRACES, "fn open"),
        ("impl<T> Keep for Store<T> {", Language.BRACES, "impl<T> Keep for Store<T>"),
        ("    public static List<String> open(String name) {", Language.BRACES, "open()"),
        ("int Store::open(const char *name,", Language.BRACES, "open()"),
        ("  render() {", Language.BRACES, "render()"),
        ("  if (x) {", Language.BRACES, ""),
        ("  return open(x, {", Language.BRACES, ""),
        ("  store.open(x);", Language.BRACES, ""),
        ("  open(x);", Language.BRACES, ""),
        ("fun 部署(): Unit {", Language.BRACES, "fun 部署"),
        ("build:", Language.KEYS, "build"),
        ("  - name: x", Language.KEYS, ""),
        ("[tool.ruff]  # lint", Language.TABLES, "tool.ruff"),
        ("x = [1]", Language.TABLES, ""),
    ],
)
def test_title(line: str, language: Language, expected: str) -> None:
    assert title([line], 0, language) == expected


def test_a_body_may_open_on_the_next_line() -> None:
    assert title(["int open(int x)", "{"], 0, Language.BRACES) == "open()"
    assert title(["open(x);", "{"], 0, Language.BRACES) == ""


def test_depths_by_brackets_strings_and_comments_left_out() -> None:
    lines = ["f() { // }", 'x("}", \'}\', "\\"}");', "/* }", "} */", "g(a,", "b)", "", "}"]
    assert _depths(lines, Language.BRACES) == [0, 1, 1, 1, 1, 2, BLANK, 1]
    assert _depths(["a {", "  b", "}}"], Language.BRACES) == [0, 2, 0], "they do not add up"


def test_depths_by_indentation_and_long_strings() -> None:
    lines = ["def f():", '    x = """', "text", '"""', "\treturn x", "", "y"]
    assert _depths(lines, Language.INDENTED) == [0, 4, 5, 5, 4, BLANK, 0]
    assert _depths(['x = """', "y"], Language.INDENTED) == [0, 0], "it never ends"
    assert _depths(["a:", "- b:", "    c", "- d"], Language.KEYS) == [0, 1, 8, 1]
    assert _depths(["# about", "[t]", "", "x = 1"], Language.TABLES) == [0, 0, BLANK, 1]


def test_what_goes_on_and_what_belongs_below() -> None:
    assert all(map(_continues, ["}", ") -> int:", "{", "end", "  end;", "else:", "fi"]))
    assert not any(map(_continues, ["end = 3", "x }", "done_all()", "final"]))
    assert all(map(_belongs_below, ["# x", "  // x", "/** x", " * x", "@x", "#[x]", "[Fact]", "-- x"]))
    assert not any(map(_belongs_below, ["#include <x>", "x = 1", "[1, 2]", "[x] = y"]))

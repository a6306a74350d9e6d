"""Owns what the lines of source code say of its structure: how deep each stands, and what it defines.

Invariants: pure; linear in the length of the text, whatever stands in it; a guess, made without a parser: where
brackets do not add up, the indentation decides, and a wrong guess moves a border, never loses a line.
"""

from __future__ import annotations

import re
from enum import Enum

BLANK = -1
# Of a line, this much is looked at.
_HEAD_CHARS = 240
_TITLE_CHARS = 80


class Language(Enum):
    """How blocks are told apart."""

    INDENTED = 0
    BRACES = 1
    KEYS = 2  # YAML
    TABLES = 3  # TOML, INI


_TOKEN = re.compile(
    r"""
    \n | [(\[{] | [)\]}]
    | //[^\n]*+
    | /\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)
    | "(?:[^"\\\n]|\\.)*+"?
    | `(?:[^`\\]|\\.)*+`?
    | '(?:[^'\\\n]|\\[^\n]{1,8}?)' | '(?:[^'\\\n]|\\.){2,200}+'(?![A-Za-z0-9_])
    """,
    re.VERBOSE | re.DOTALL,
)
_TRIPLE = re.compile(r"\"\"\"|'''")
_COMMENT = re.compile(
    r"(?:#(?!include|if|endif|else|elif|define|undef|pragma|import|region)|//|/\*|\*|--|@|;|\[[^\W\d][^=]*\]\s*$)"
)
_CONTINUES = re.compile(
    r"[{})\]]|(?:end|fi|done|esac)(?:[\s;,.)]*$|\s*[#;])|(?:else|elif|elsif|except|finally|catch|rescue)\b"
)
_PYTHON = re.compile(r"(?:async\s+)?(def|class)\s+(\w+)\s*[(:\[]")
_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|unsafe|extern|const|inline"
    r"|virtual|override|sealed|partial|open|data|readonly|declare|pub|pub\([\w:\s]{1,40}\)|local|suspend|fileprivate"
    r"|mutating|implicit|case|tailrec|operator|typedef|constexpr|isolated|indirect)\s+){0,6}+"
)
_KEYWORD = re.compile(
    _MODIFIERS
    + r"(def|defp|defmodule|defmacro|class|function\*?|func|fn|fun|sub|interface|struct|enum|trait|impl|module"
    r"|namespace|protocol|extension|object|record|mod|union|macro|type|actor|service|message|contract)"
    r"\s*(?:<[^<>]{0,80}>)?\s+(?:\([^()]{0,80}\)\s*)?(?:\[[^\]]{0,40}\]\s*)?((?:self\.)?[^\W\d][\w$.:!?']*)"
)
_SQL = re.compile(
    r"create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unique\s+|materialized\s+){0,2}"
    r"(table|view|function|procedure|trigger|index|type|schema)\s+(?:if\s+not\s+exists\s+)?([\w.\"`\[\]]+)",
    re.IGNORECASE,
)
_ARROW = re.compile(
    r"(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+([\w$]+)[^=]{0,80}=\s*(?:async\s*)?"
    r"(?:function\b|\(|[\w$]+\s*=>)"
)
_LAST_NAME = re.compile(r"(~?[^\W\d][\w$]*[!?]?)\s*$")
_FIRST_WORD = re.compile(r"[A-Za-z_]+")
_NO_NAMES = frozenset(
    "if for while switch catch return else do new throw case await yield using lock foreach with assert delete sizeof "
    "guard when match elif synchronized defer go select unless until typeof instanceof in of and or not import from "
    "goto".split()
)
_KEY = re.compile(r"(?:-\s+)?[\"']?([^\W_][^:#\"'{}\[\]]{0,60})[\"']?:\s*(?:[|>&!][^\s]*)?(?:\s+#.*)?$")
_TABLE = re.compile(r"\[{1,2}\s*([^\[\]]{1,100}?)\s*\]{1,2}\s*(?:[#;].*)?$")


def depths(lines: list[str], language: Language) -> list[int]:
    """How deep each line stands, at its beginning; `BLANK` where nothing stands."""
    if language is Language.TABLES:
        return _table_depths(lines)
    if language is Language.BRACES:
        found = _bracket_depths(lines)
        if found is not None:
            return found
    indents = [_indent(line, is_key=language is Language.KEYS) for line in lines]
    return _with_long_strings(lines, indents) if language is Language.INDENTED else indents


def title(lines: list[str], at: int, language: Language) -> str:
    """What a line defines, such as "class Store" or "open()"; empty if nothing."""
    head = lines[at].strip()[:_HEAD_CHARS]
    if language is Language.KEYS:
        match = _KEY.match(head)
        return match[1].strip() if match else ""
    if language is Language.TABLES:
        match = _TABLE.match(head)
        return match[1] if match else ""
    found = _keyword_title(head)
    if not found and language is Language.BRACES:
        found = _call_title(lines, at, head)
    return found[:_TITLE_CHARS]


def continues(line: str) -> bool:
    """Whether a line goes on with the block above it, although it stands no deeper."""
    return _CONTINUES.match(line.lstrip()) is not None


def belongs_below(line: str) -> bool:
    """Whether a line is a comment, a decorator or an attribute, which belongs to what follows."""
    return _COMMENT.match(line.lstrip()) is not None


def _keyword_title(head: str) -> str:
    match = _PYTHON.match(head) or _KEYWORD.match(head)
    if match:
        if match[1] in ("impl", "extension"):
            return re.split(r"[{;]", head, maxsplit=1)[0].strip()
        return f"{match[1]} {match[2].rstrip(':')}"
    if head[:6].lower() == "create" and (sql := _SQL.match(head)):
        return f"{sql[1].lower()} {sql[2]}"
    arrow = _ARROW.match(head)
    return f"function {arrow[1]}" if arrow and ("=>" in head or head.endswith("(") or "function" in head) else ""


def _call_title(lines: list[str], at: int, head: str) -> str:
    """A function of a C-like language, which no keyword announces: its name, its arguments, its body."""
    paren = head.find("(")
    first = _FIRST_WORD.match(head)
    if paren < 1 or (first and first[0] in _NO_NAMES):
        return ""
    before = head[:paren]
    name = _LAST_NAME.search(before)
    if name is None or name[1] in _NO_NAMES or any(char in before[: name.start()] for char in "=.\"'#/;!|+"):
        return ""
    below = lines[at + 1].lstrip()[:1] if at + 1 < len(lines) else ""
    opens = head.endswith("{") or (below == "{" and not head.endswith((";", ",")))
    goes_on = head.count("(") > head.count(")") and bool(before[: name.start()].strip())
    return f"{name[1]}()" if opens or goes_on else ""


def _indent(line: str, *, is_key: bool = False) -> int:
    body = line.lstrip()
    if not body:
        return BLANK
    column = len(line) - len(body)
    if "\t" in line[:column]:
        column = len(line[:column].expandtabs(4))
    # A list may stand as far left as the key above it.
    return 2 * column + body.startswith("- ") if is_key else column


def _with_long_strings(lines: list[str], indents: list[int]) -> list[int]:
    """Lines inside of a string of many lines stand below the one that begins it, wherever they begin."""
    found, inside, mark = list(indents), BLANK, ""
    for at, line in enumerate(lines):
        if inside != BLANK and indents[at] != BLANK:
            found[at] = max(inside + 1, indents[at])
        for match in _TRIPLE.finditer(line):
            if not mark:
                mark, inside = match[0], found[at]
            elif match[0] == mark:
                mark, inside = "", BLANK
    return found if not mark else indents


def _bracket_depths(lines: list[str]) -> list[int] | None:
    """How many brackets are open where each line begins; None if they do not add up."""
    starts, depth = [0], 0
    for token in _TOKEN.finditer("\n".join(lines)):
        text = token[0]
        if text == "\n":
            starts.append(depth)
        elif text in "([{":
            depth += 1
        elif text in ")]}":
            depth -= 1
            if depth < 0:
                return None
        else:
            starts.extend([depth] * text.count("\n"))
    if depth:
        return None
    return [depth if line.strip() else BLANK for line, depth in zip(lines, starts, strict=True)]


def _table_depths(lines: list[str]) -> list[int]:
    """Headers stand above all else, with the comments right above them."""
    found = [BLANK if not line.strip() else 1 for line in lines]
    above = False
    for at in range(len(lines) - 1, -1, -1):
        body = lines[at].strip()
        above = _TABLE.match(body[:_HEAD_CHARS]) is not None or (above and body.startswith(("#", ";")))
        if above:
            found[at] = 0
    return found

"""Edits of a person's JSON, JSON5 and TOML settings in their own text: what is not ours keeps every byte.

Nothing is written back from a parsed value. A value is added behind the last one of its object or list, in the
indentation that stands there, and taken out with the comma that came with it; comments stay where they are.

Invariants: text that is not valid is refused and never edited; what `with_member` and `with_element` made of a text,
`without` makes undone, whatever was added, changed or removed beside it.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias

from indexer.common import lazy_regex
from memory_service.errors import InvalidRequest

KeyPath: TypeAlias = tuple[str, ...]
SettingsDialect: TypeAlias = Literal["json", "json5"]

_BLANK = " \t\n\r\v\f\u00a0\u2028\u2029\ufeff"
_COMMENT = lazy_regex(r"//[^\n\r]*|/\*.*?\*/", re.DOTALL)
_NUMBER = lazy_regex(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_JSON5_NUMBER = lazy_regex(r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_STRING = lazy_regex(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_JSON5_STRING = lazy_regex(r""""(?:[^"\\\n\r]|\\(?:\r\n|.))*"|'(?:[^'\\\n\r]|\\(?:\r\n|.))*'""", re.DOTALL)
_NAME = lazy_regex(r"[^\W\d][\w$]*|\$[\w$]*")
_ESCAPE = lazy_regex(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r": "", "\r\n": ""}
_WORDS = {"true": True, "false": False, "null": None}
_REST_OF_LINE = lazy_regex(r"[ \t]*(?://[^\n\r]*|/\*[^\n\r]*?\*/)")
_TABLE = lazy_regex(r"^[ \t]*\[{1,2}[ \t]*(?P<name>[^\n\]]+?)[ \t]*\]{1,2}[ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)
_PART = lazy_regex(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([\w-]+)")
_LONG_STRING = lazy_regex(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}', re.DOTALL)
_MOST_DEPTH = 200


@dataclass(slots=True)
class Member:
    """A value in its text, with the key before it, if it has one, and the comma behind it."""

    key: str
    start: int
    value_start: int
    end: int = 0
    comma: int = -1
    value: object = None
    members: list[Member] = field(default_factory=list)
    comments: list[tuple[int, int]] = field(default_factory=list)

    def find(self, path: KeyPath) -> Member | None:
        """The value at keys below this one, the elements of a list by their numbers.

        Of a key that stands twice the last counts, as hosts read it.
        """
        member: Member | None = self
        for key in path:
            member = member._below(key) if member else None
        return member

    def _below(self, key: str) -> Member | None:
        if isinstance(self.value, list):
            return self.members[int(key)] if key.isdigit() and int(key) < len(self.members) else None
        return next((member for member in reversed(self.members) if member.key == key), None)


class _Reader:
    """One pass over a text, with the place of everything."""

    def __init__(self, text: str, dialect: SettingsDialect) -> None:
        self._text = text
        self._json5 = dialect == "json5"
        self._at = 0
        self._comments: list[tuple[int, int]] = []

    def document(self) -> Member:
        self._skip()
        root = self._value("", self._at, 0)
        self._skip()
        if self._at < len(self._text):
            raise self._error("There is more behind the end")
        return root

    def _error(self, text: str) -> InvalidRequest:
        return InvalidRequest(f"{text} in line {self._text.count(chr(10), 0, self._at) + 1}")

    def _skip(self) -> list[tuple[int, int]]:
        """Goes over blanks and comments; gives the comments."""
        value = []
        while self._at < len(self._text):
            comment = _COMMENT.match(self._text, self._at)
            if comment:
                value.append(comment.span())
                self._at = comment.end()
            elif self._text[self._at] in _BLANK:
                self._at += 1
            else:
                break
        return value

    def _value(self, key: str, start: int, depth: int) -> Member:
        if depth > _MOST_DEPTH:
            raise self._error("Too many values are inside each other")
        member = Member(key, start, self._at)
        opening = self._text[self._at : self._at + 1]
        if opening in ("{", "["):
            self._container(member, opening == "{", depth)
        else:
            member.value = self._scalar()
        member.end = self._at
        return member

    def _container(self, member: Member, is_keyed: bool, depth: int) -> None:
        closing = "}" if is_keyed else "]"
        self._at += 1
        member.comments += self._skip()
        while self._text[self._at : self._at + 1] != closing:
            if member.members and member.members[-1].comma < 0:
                raise self._error("A comma is missing")
            start = self._at
            value = self._value(self._key() if is_keyed else "", start, depth + 1)
            member.members.append(value)
            member.comments += self._skip()
            if self._text[self._at : self._at + 1] == ",":
                value.comma = self._at
                self._at += 1
                member.comments += self._skip()
        self._at += 1
        values = [each_member.value for each_member in member.members]
        member.value = {each_member.key: each_member.value for each_member in member.members} if is_keyed else values

    def _key(self) -> str:
        name = _NAME.match(self._text, self._at) if self._json5 else None
        key = name[0] if name else self._string()
        self._at = name.end() if name else self._at
        self._skip()
        if self._text[self._at : self._at + 1] != ":":
            raise self._error("A colon is missing")
        self._at += 1
        self._skip()
        return key

    def _string(self) -> str:
        match = (_JSON5_STRING if self._json5 else _STRING).match(self._text, self._at)
        if not match:
            raise self._error("Something other than a string stands where a key has to be, or a string has no end")
        self._at = match.end()
        if self._json5:
            return _ESCAPE.sub(_unescape, match[0][1:-1])
        try:
            return str(json.loads(match[0]))
        except ValueError:
            raise self._error("A string cannot be read") from None

    def _scalar(self) -> object:
        if self._text[self._at : self._at + 1] in ('"', "'"):
            return self._string()
        number = (_JSON5_NUMBER if self._json5 else _NUMBER).match(self._text, self._at)
        word = _NAME.match(self._text, self._at)
        if number:
            self._at = number.end()
            return number[0]
        if word and word[0] in _WORDS:
            self._at = word.end()
            return _WORDS[word[0]]
        raise self._error("A value cannot be read")


def _unescape(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return chr(int(code, 16)) if code else _ESCAPED.get(escape[3], escape[3])


def read(text: str, dialect: SettingsDialect = "json") -> Member:
    """The values of a text with their places. Comments and a comma before an end are allowed in each dialect.

    Returns:
        The outermost value, an object; numbers stand in it as they are written.

    Raises:
        InvalidRequest: It cannot be read, or is no object; the message names the line.
    """
    root = _Reader(text, dialect).document()
    if not isinstance(root.value, dict):
        raise InvalidRequest("The outermost value is no object")
    return root


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A text with a value more, and what it takes to make that undone.

    Attributes:
        text: The text.
        made: Keys of objects and lists that were not there, and stand there for the value alone.
        filled: Keys of an object or list that was empty, with the blanks that stood in it.
        replaced: Keys of a value that gave room, with its text.
    """

    text: str
    made: tuple[KeyPath, ...] = ()
    filled: tuple[tuple[KeyPath, str], ...] = ()
    replaced: tuple[tuple[KeyPath, str], ...] = ()


def set_key(text: str, path: KeyPath, value: object, dialect: SettingsDialect = "json") -> Edit:
    """A text with a value at a path; one that differs gives room to it."""
    root = read(text, dialect)
    present = root.find(path)
    if present is None:
        return _insert(text, root, path, value, containers=len(path))
    if present.value == _as_read(value):
        return Edit(text=text)
    before = text[present.value_start : present.end]
    style = _Style.of(text, root) if _begins_line(text, present.start) else None
    after = _render_json(value, _indentation(text, present.start), style)
    return Edit(
        text=text[: present.value_start] + after + text[present.end :],
        replaced=((path, before),),
    )


def append_item(text: str, path: KeyPath, value: object, dialect: SettingsDialect = "json") -> Edit:
    """A text with a value more in the list at a path."""
    root = read(text, dialect)
    present = root.find(path)
    if present is None:
        return _insert(text, root, path, [value], containers=len(path) + 1)
    if not isinstance(present.value, list):
        raise InvalidRequest(f"A list is needed at {'.'.join(path)}")
    return _append_item(text, present, path, "", value, _Style.of(text, root))


def _as_read(value: object) -> object:
    return read(json.dumps({"": value})).members[0].value


def _insert(text: str, root: Member, path: KeyPath, value: object, *, containers: int) -> Edit:
    """Adds a value and all that has to stand around it."""
    depth = next(n for n in range(len(path) - 1, -1, -1) if root.find(path[:n]) is not None)
    place = root.find(path[:depth])
    if place is None or not isinstance(place.value, dict):
        raise InvalidRequest(f"An object is needed at {'.'.join(path[:depth])}")
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    edit = _append_item(text, place, path[:depth], path[depth], value, _Style.of(text, root))
    paths = tuple(path[:n] for n in range(depth + 1, containers))
    return Edit(text=edit.text, made=paths, filled=edit.filled)


@dataclass(frozen=True, slots=True)
class _Style:
    """The ends of lines and the indentation of a text."""

    newline: str
    unit: str

    @classmethod
    def of(cls, text: str, root: Member) -> _Style:
        newline = "\r\n" if "\r\n" in text else "\n"
        own = (_indentation(text, member.start) for member in root.members if _begins_line(text, member.start))
        return cls(newline, next(own, "") or "  ")


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _indentation(text: str, at: int) -> str:
    """The blanks that the line of a place begins with."""
    line = text[_line_start(text, at) : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, at: int) -> bool:
    start = _line_start(text, at)
    return start > 0 and not text[start:at].strip(" \t")


def _render_json(value: object, indentation: str, style: _Style | None) -> str:
    """A value as JSON: in lines, or in one without a style."""
    if style is None:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=style.unit).split("\n")
    return f"{style.newline}{indentation}".join(lines)


def _append_item(text: str, place: Member, path: KeyPath, key: str, value: object, style: _Style) -> Edit:
    """Adds a value behind the last one of an object or list."""
    name = f"{json.dumps(key, ensure_ascii=False)}: " if key else ""
    outer = _indentation(text, place.start)
    last = place.members[-1] if place.members else None
    if last is None:
        inner = outer + style.unit
        line = f"{style.newline}{inner}{name}{_render_json(value, inner, style)}"
        if place.comments:
            at = place.comments[-1][1]
            return Edit(text=text[:at] + line + text[at:])
        start, end = place.value_start + 1, place.end - 1
        return Edit(text=f"{text[:start]}{line}{style.newline}{outer}{text[end:]}", filled=((path, text[start:end]),))
    if not _begins_line(text, last.start):
        return Edit(text=_behind(text, last, f" {name}{_render_json(value, '', None)}", last.end))
    inner = _indentation(text, last.start)
    line = f"{style.newline}{inner}{name}{_render_json(value, inner, style)}"
    behind = _REST_OF_LINE.match(text, max(last.end, last.comma + 1))
    return Edit(text=_behind(text, last, line, behind.end() if behind else last.end))


def _behind(text: str, last: Member, added_text: str, at: int) -> str:
    """The text with something behind its last value, in the manner of its commas."""
    if last.comma >= 0:
        at = max(at, last.comma + 1)
        return f"{text[:at]}{added_text},{text[at:]}"
    return f"{text[: last.end]},{text[last.end : at]}{added_text}{text[at:]}"


def remove_item(text: str, path: KeyPath, place: int, *, blank: str = "", dialect: SettingsDialect = "json") -> str:
    """A text without one value, and without the comma that it needed.

    Args:
        text: The text.
        path: The object or list that the value is in.
        place: Its number there, from 0.
        blank: What stands between the brackets once they are empty.
        dialect: The dialect.
    """
    container = read(text, dialect).find(path)
    if container is None or place >= len(container.members):
        raise InvalidRequest(f"Nothing stands at {'.'.join(path)}")
    member = container.members[place]
    before = container.members[place - 1] if place else None
    following = container.members[place + 1] if place + 1 < len(container.members) else None
    if before is None and following is None and not container.comments:
        return text[: container.value_start + 1] + blank + text[container.end - 1 :]
    start = max(
        container.value_start + 1,
        before.comma + 1 if before else 0,
        *(end for _, end in container.comments if end <= member.start),
    )
    end = max(member.end, member.comma + 1)
    if before is not None and following is None and member.comma < 0:
        return text[: before.comma] + text[before.comma + 1 : start] + text[end:]
    return text[:start] + text[end:]


def with_table(text: str, name: str, body: str) -> str:
    """A TOML text with a table at its end; `body` is its lines, with LF, from its head on.

    Raises:
        InvalidRequest: It is no TOML, or cannot be with this table.
    """
    _check_toml(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    block = body.strip("\n").replace("\n", newline)
    if text.endswith("\n"):
        added_text = f"{text}{newline}{block}{newline}"
    else:
        added_text = f"{text}{newline * 2}{block}" if text else f"{block}{newline}"
    try:
        tomllib.loads(added_text)
    except tomllib.TOMLDecodeError as error:
        head = name.rpartition(".")[0]
        raise InvalidRequest(
            f"A table [{name}] cannot be added ({error}); it may be that {head} is written in one line"
        ) from None
    return added_text


def table_span(text: str, name: str) -> tuple[int, int] | None:
    """The place of a TOML table with the tables below it; its end is behind the last line that is not blank."""
    _check_toml(text)
    heads = [(match.start(), _table_path(match["name"])) for match in _TABLE.finditer(_mask_strings(text))]
    bounds = [*heads, (len(text), ())]
    own = _table_path(name)
    spans = [(start, end) for (start, value), (end, _) in pairwise(bounds) if value[: len(own)] == own]
    if not spans:
        return None
    start, end = spans[0][0], spans[0][1]
    for following in spans[1:]:
        if following[0] != end:
            break
        end = following[1]
    return start, _last_line_end(text, start, end)


def without_table(text: str, name: str) -> str:
    """A TOML text without a table that `with_table` added."""
    span = table_span(text, name)
    if span is None:
        return text
    before, after = text[: span[0]], text[span[1] :]
    newline = "\r\n" if before.endswith("\r\n") else "\n"
    # At the very end of a text that had no last newline, two came before the table; else one before and one behind it.
    if not after and before.endswith(newline * 2):
        return before[: -2 * len(newline)]
    after = after[len(newline) :] if after.startswith(newline) else after
    return (before[: -len(newline)] if before.endswith(newline * 2) else before) + after


def _check_toml(text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(f"It cannot be read: {error}") from None


def _table_path(name: str) -> KeyPath:
    """The parts of a table's name."""
    return tuple("".join(part) for part in _PART.findall(name))


def _mask_strings(text: str) -> str:
    """The text with its strings of several lines blotted out: a line of theirs is no head of a table."""
    return _LONG_STRING.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)


def _last_line_end(text: str, start: int, end: int) -> int:
    """The end of the last line of a table that says something: blank lines and comments behind it are not its own."""
    lines = text[start:end].splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return start + len("".join(lines).rstrip("\r\n"))

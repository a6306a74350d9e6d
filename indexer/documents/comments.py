"""Owns HTML comments in Markdown: where one begins, where it ends, and what a line says without it.

Invariants: a comment that is never closed is text and hides nothing; one inside a code span is code and
stays; line numbers do not move, for the lines of a comment are emptied, never removed. Pure but for the
list of lines that it is given to edit; these have no control characters other than tabs.
"""

from __future__ import annotations

import re

COVERED = "\x1f"  # a line inside a comment in the middle of a paragraph, which does not end the paragraph
_TOKEN = re.compile(r"`+|<!--(?:-?>)?|-->")


def remove_comments(lines: list[str], at: int) -> str:
    """Takes the comments that begin on a line out of `lines`.

    A comment that spans lines ends at the next `-->` that comes before any other `<!--`: a forgotten end
    must not reach as far as the next complete comment and hide what lies between. One that begins in the
    middle of a text does not reach over a blank line either, as in CommonMark.

    Args:
        lines: The lines of the file; edited in place.
        at: Index of the line.

    Returns:
        The line without comments, as it now stands in `lines`.
    """
    line = lines[at]
    kept, opened = _remove_closed(line)
    if opened is not None and not _close_below(lines, at, inline=bool(line[:opened].strip(" \t>-*+"))):
        kept[-1] += line[opened:]
    lines[at] = _join(kept)
    return lines[at]


def _remove_closed(line: str) -> tuple[list[str], int | None]:
    """Returns what lies between the comments of a line, and where one begins that the line does not close."""
    kept: list[str] = []
    start, opened = 0, None
    tokens = list(_TOKEN.finditer(line))
    partners = _code_spans(tokens)
    index = 0
    while index < len(tokens):
        token = tokens[index]
        mark = token[0]
        if opened is not None:
            if mark == "-->":
                start, opened = token.end(), None
        elif mark[0] == "`":
            index = partners.get(index, index)
        elif mark[0] == "<":
            kept.append(line[start : token.start()])
            start = token.end()
            opened = None if mark[-1] == ">" else token.start()
        index += 1
    if opened is None:
        kept.append(line[start:])
    return kept, opened


def _code_spans(tokens: list[re.Match[str]]) -> dict[int, int]:
    """Maps each run of backticks to the next one of the same length: what would close a code span."""
    following: dict[int, int] = {}
    partners: dict[int, int] = {}
    for index in range(len(tokens) - 1, -1, -1):
        mark = tokens[index][0]
        if mark[0] == "`":
            if len(mark) in following:
                partners[index] = following[len(mark)]
            following[len(mark)] = index
    return partners


def _close_below(lines: list[str], at: int, *, inline: bool) -> bool:
    """Empties the lines below that an open comment covers; False, with nothing changed, if it has no end."""
    for index in range(at + 1, len(lines)):
        line = lines[index]
        end, other = line.find("-->"), line.find("<!--")
        if end >= 0 and not 0 <= other < end:
            empty = COVERED if inline else ""
            lines[at + 1 : index] = [empty] * (index - at - 1)
            lines[index] = line[end + 3 :].rstrip() or empty
            return True
        if other >= 0 or (inline and not line.strip()):
            return False
    return False


def _join(kept: list[str]) -> str:
    """Joins what is left, with one space where a comment stood between two."""
    line = kept[0]
    for part in kept[1:]:
        joined = line.endswith(" ") and part.startswith(" ") and bool(line.strip())
        line += part[1:] if joined else part
    return line

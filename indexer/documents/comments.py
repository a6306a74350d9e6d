"""HTML comments of Markdown: taken out of the lines of a file.

Invariants: the lines of a comment are emptied, never removed, so line numbers stay as they are; one that is never
closed is text and hides nothing; one inside a code span is code.
"""

from __future__ import annotations

import re

from indexer.common import lazy_regex

COVERED = "\x1f"  # a line inside a comment in the middle of a paragraph, which does not end the paragraph
_TOKEN = lazy_regex(r"`+|<!--(?:-?>)?|-->")


def remove_comments(lines: list[str], at: int) -> str:
    """Take the comments that begin on a line out of `lines`; gives the line without them.

    A comment that spans lines ends at the next `-->` that comes before any other `<!--`: a forgotten end must not reach
    as far as the next complete comment and hide what lies between. One that begins in the middle of a text does not
    reach over a blank line either, as in CommonMark.
    """
    line = lines[at]
    kept_texts, opened_count = _remove_closed(line)
    if opened_count is not None and not _close_below(lines, at, inline=bool(line[:opened_count].strip(" \t>-*+"))):
        kept_texts[-1] += line[opened_count:]
    lines[at] = _join(kept_texts)
    return lines[at]


def _remove_closed(line: str) -> tuple[list[str], int | None]:
    """Texts between the comments of a line, and the start of a comment that the line does not close."""
    kept_texts: list[str] = []
    start, opened_count = 0, None
    tokens = list(_TOKEN.finditer(line))
    partners = _code_spans(tokens)
    index = 0
    while index < len(tokens):
        token = tokens[index]
        mark = token[0]
        if opened_count is not None:
            if mark == "-->":
                start, opened_count = token.end(), None
        elif mark[0] == "`":
            index = partners.get(index, index)
        elif mark[0] == "<":
            kept_texts.append(line[start : token.start()])
            start = token.end()
            opened_count = None if mark[-1] == ">" else token.start()
        index += 1
    if opened_count is None:
        kept_texts.append(line[start:])
    return kept_texts, opened_count


def _code_spans(tokens: list[re.Match[str]]) -> dict[int, int]:
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
    for index in range(at + 1, len(lines)):
        line = lines[index]
        end, other_position = line.find("-->"), line.find("<!--")
        if end >= 0 and not 0 <= other_position < end:
            empty = COVERED if inline else ""
            lines[at + 1 : index] = [empty] * (index - at - 1)
            lines[index] = line[end + 3 :].rstrip() or empty
            return True
        if other_position >= 0 or (inline and not line.strip()):
            return False
    return False


def _join(kept_texts: list[str]) -> str:
    """Texts joined, with one space where a comment stood between two."""
    line = kept_texts[0]
    for part in kept_texts[1:]:
        is_joined = line.endswith(" ") and part.startswith(" ") and bool(line.strip())
        line += part[1:] if is_joined else part
    return line

"""Text of a memory block: spans of files in their frame, whose each line is, and marks. Pure.

Invariants: nothing that stands in a memory can close the frame, open a tag, look like another file, like a mark or like
a line of somebody else; the same spans give the same text, files in the order of their paths with evergreen ones first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape

from indexer import Hit, Passage, Role, Statement
from indexer.common import lazy_regex
from indexer.language import breadcrumb, name_title, ornament
from memory_service.messages.sizes import quarters
from memory_service.text.frames import (
    ALSO_TAG,
    BLOCK_NOTE,
    REPEATED,
    REPLACED_TAG,
    UNSEEN,
    attribute_lines,
    escape_frames,
    visible,
)
from memory_service.text.secrets import REDACTED, redact
from memory_service.text.texts import in_every_language, texts_in

GAP = "…\n"
# Characters of the titles above a group of passages, and what stands between two.
_ABOVE_CHARS = 72
_BETWEEN = " › "
# The latest of the days of a text that was written again and again.
_MOST_DAYS = 31
# Line numbers and line ends of a passage.
_LINES_QUARTERS = 12
_OPEN = f"<relevant_context>\n{BLOCK_NOTE}\n"
_OPENINGS = tuple(f"<relevant_context>\n{note}\n" for note in in_every_language("block_note"))
_CLOSE = "</relevant_context>"
_CONTROL = lazy_regex("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_UNSEEN_IN_PATH = lazy_regex(f"[{UNSEEN}\t\n\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A passage as it stands in the block.

    Attributes:
        day: The day it was said, where the path does not tell; empty where it does.
        above: Lines that tell where it stands, such as its titles and the columns of its table; empty for none.
    """

    ordinal: int
    start_line: int
    end_line: int
    text: str
    day: str = ""
    above: str = ""


def _block_text(text: str) -> str:
    """A memory's text as it may stand in the block: markup escaped, unseen characters gone."""
    return escape_frames(escape(visible(_CONTROL.sub("", text.replace("\r", "\n"))), quote=False))


@cache
def wrapper_quarters() -> int:
    """Size of the frame around the files, in quarters of a token."""
    return quarters(_OPEN + _CLOSE)


@lru_cache(maxsize=4096)
def file_quarters(path: str) -> int:
    """Size of the wrapper around one file's passages, but for its line numbers."""
    return quarters(_file(path, ()))


def render_block(spans: Mapping[str, Sequence[Span]]) -> str:
    """The block of passages by path; within a path they are in the order of the file."""
    paths = sorted(spans, key=lambda path: ("/" in path, path))
    return _OPEN + "".join(_file(path, spans[path]) for path in paths) + _CLOSE


def is_block(text: str) -> bool:
    """True if a text is a block, and nothing that anybody said."""
    return text.startswith(_OPENINGS) and text.endswith(_CLOSE)


def in_language(block: str, language: str) -> str:
    """A rendered block with its first line in a language, in no more tokens; an empty one stays empty."""
    note = texts_in(language).block_note
    return f"<relevant_context>\n{note}\n{block.removeprefix(_OPEN)}" if block else block


@lru_cache(maxsize=4_096)
def path_text(path: str) -> str:
    """A path as it may stand in the block."""
    # Marked, not dropped: a name must not turn into that of another file, nor go on in a second line.
    return escape_frames(escape(REPEATED.sub("\ufffd", _UNSEEN_IN_PATH.sub("\ufffd", path))))


def _file(path: str, spans: Sequence[Span]) -> str:
    parts = []
    for before, span in zip((None, *spans), spans, strict=False):
        apart = before is not None and (span.ordinal != before.ordinal + 1 or (before.above and not span.above))
        day = day_line(span.day) if span.day and (before is None or before.day != span.day) else ""
        above = _new_above(before.above if before else "", span.above)
        parts.append(f"{GAP if apart else ''}{day}{above}{span.text}\n")
    return f'<file path="{path_text(path)}" lines="{_lines(spans)}">\n{"".join(parts)}</file>\n'


def _new_above(shown_text: str, above: str) -> str:
    """Those of the lines above a passage that do not stand above the passage before it."""
    known_lines, lines = shown_text.splitlines(), above.splitlines()
    same = 0
    while same < len(lines) and lines[same] in known_lines[same : same + 1]:
        same += 1
    return "".join(f"{line}\n" for line in lines[same:])


def lines_above(passage: Passage, path: str, room: int) -> str:
    """Lines that tell where a passage of a file stands: its titles, the nearest last, and the columns of its table.

    What the path says already is left out, and so is what stands farthest where it is long; and what would leave no
    room for the passage: first the columns, then the titles.

    Args:
        passage: The passage.
        path: Path of its file.
        room: Quarters of a token that there are for both.
    """
    room -= quarters(passage.text) + file_quarters(path) + _LINES_QUARTERS
    choices = dict.fromkeys((passage.columns, ""))
    return next((lines for columns in choices if quarters(lines := _lines_above(passage, columns, path)) <= room), "")


def _lines_above(passage: Passage, columns: str, path: str) -> str:
    titles, room = list[str](), _ABOVE_CHARS
    named_text = name_title(path).casefold()
    for title in reversed(breadcrumb(passage.heading)):
        if title.casefold() == named_text:
            continue
        if titles and len(title) > room:
            break
        titles.append(title)
        room -= len(title) + len(_BETWEEN)
    head = f"# {_BETWEEN.join(reversed(titles))}" if titles else ""
    return "\n".join(filter(None, (head, columns)))


def day_line(day: str) -> str:
    """The line that tells the day of the passages below it."""
    return f"[{day}]\n"


def line_range(first: int, last: int) -> str:
    """Line numbers as the block names them."""
    return f"{first}-{last}" if last > first else str(first)


def _lines(spans: Sequence[Span]) -> str:
    ranges: list[tuple[int, int]] = []
    for span in spans:
        if ranges and span.start_line <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], span.end_line))
        else:
            ranges.append((span.start_line, span.end_line))
    return ",".join(line_range(first, last) for first, last in ranges)


def replaced_mark(hit: Hit, by: Statement) -> str:
    """Mark behind a passage that was replaced since: its day, and where what holds now stands.

    A tag, since no text of a block can have one.
    """
    day = f' date="{hit.passage.date}"' if hit.passage.date else ""
    return f' <{REPLACED_TAG}{day} by="{path_text(f"{by.path}#L{by.start_line}")}"/>'


def days_mark(hit: Hit) -> str:
    """Mark behind a passage that was written on other days too; empty for one day alone."""
    other_strs = [str(day) for day in hit.days if day != hit.passage.date]
    if not other_strs:
        return ""
    rest = f" and {len(other_strs) - _MOST_DAYS} more" if len(other_strs) > _MOST_DAYS else ""
    return f' <{ALSO_TAG} days="{", ".join(other_strs[-_MOST_DAYS:])}{rest}"/>'


# The same passages are offered again and again, most of them in vain.
@lru_cache(maxsize=4_096)
def shown_text(text: str, role: Role, *, secrets: bool, language: str = "en") -> str:
    """Text of a passage as it may stand in the block, with whose it is on each line if it is not the user's."""
    block_text = _block_text(text if secrets else ornament("secrets", REDACTED, redact, text))
    return block_text if role == "user" else attribute_lines(block_text, role, texts_in(language))


def shortfall(value: float, limit: float) -> str:
    """A value and the limit that it is below, with as many digits as tell them apart."""
    digits = next((n for n in (2, 3) if round(value, n) < round(limit, n)), 4)
    return f"{_decimal(value, digits)} < {_decimal(limit, digits)}"


def _decimal(value: float, digits: int) -> str:
    whole = f"{value:.{digits}f}"
    return whole.removeprefix("0") if digits == 2 else whole.rstrip("0").rstrip(".").removeprefix("0") or "0"

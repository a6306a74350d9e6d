"""Breadcrumb of a passage: the titles, labels and list items above it, the columns of its table, the name of its file.

Invariants: pure; what only tells a day or an hour is no part of it, as a passage has its day; it is short, and what
stands nearest to the passage is cut last; the same passage in the same file always has the same one, because an engine
deletes the terms of a passage by computing them again.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import islice

from indexer.common.patterns import lazy_regex
from indexer.language.dates import MONTH_NUMBERS, WEEKDAY_NAMES, clock_spans, day_spans, heading_day
from indexer.language.ornaments import ornament
from indexer.language.tables import ANY
from indexer.types import EVERGREEN, Passage

# Characters of a breadcrumb in a vector; a longer one would say more than the passage itself.
_VECTOR_CHARS = 64
# Of a row of a table the names of the columns may take as much as its cells, and this at least.
_NAMES_CHARS = 160
# Characters of one title among the words of the passages below it.
_TITLE_CHARS = 120
_LETTER = lazy_regex(r"[^\W\d_]")
_LETTER_OR_DIGIT = lazy_regex(r"[^\W_]")
_NAME_WORDS = lazy_regex(r"\w+")
_MARKS = " ,.;:()[]|·–—-"
_WORDS = lazy_regex(rf"[^\W\d_{ANY.days.title_signs}()]{{2,}}")
_OF_A_DAY = frozenset((*MONTH_NUMBERS, *WEEKDAY_NAMES, *ANY.days.title_words))
_HOUR = lazy_regex(r"(?:[01]?[0-9]|2[0-3])[:.][0-5][0-9](?::[0-5][0-9])?(?:\s*[AaPp][Mm])?")
# Words that a name has beside those of its title, and names that say nothing of what is in the file.
_COPY = lazy_regex(r"\.sync-conflict-.*$|\s*\([^()]*conflict[^()]*\)|\s+\(\d{1,3}\)$|\s+-\s+Copy$")
_DATE_PARTS = lazy_regex(r"(?<!\d)(?:\d{4}[-_.]?\d{2}[-_.]?\d{2}|\d{1,2}[-_.]\d{1,2}[-_.]\d{4})(?!\d)")
_SEPARATORS = lazy_regex(r"[_\-\s.]+")
_UNTITLED = frozenset(
    "memory user readme index notes note untitled agents claude soul identity tools heartbeat bootstrap dreams".split()
)
# A name that a machine gave: one of its parts is a letter or holds both letters and digits.
_ID = lazy_regex(r"(?=[\w-]*[-_])(?=(?:[\w-]*[-_])?(?:[A-Za-z]|[A-Za-z]+\d\w*|\d+[A-Za-z]\w*)(?:[-_]|$))[\w-]+")
_ESCAPED_PIPE = "\\|"


def _is_telling(title: str) -> bool:
    """True for a title that says more than a day or an hour."""
    if ornament("days", None, heading_day, title) is None:
        return _HOUR.fullmatch(title.strip()) is None and any(char.isalnum() for char in title)
    words = _WORDS.findall(title.lower())
    return any(word not in _OF_A_DAY for word in words)


@lru_cache(maxsize=1_024)
def name_title(path: str) -> str:
    """Title of a file by its name, without the day in it; empty where the name says nothing."""
    if path.startswith("sessions/") or path in EVERGREEN:
        return ""
    name = path.rpartition("/")[2]
    stem = unicodedata.normalize("NFC", name.rpartition(".")[0] or name)
    words = _SEPARATORS.sub(" ", _DATE_PARTS.sub(" ", _COPY.sub("", stem))).strip()
    if words.lower() in _UNTITLED or _LETTER.search(words) is None or _ID.fullmatch(stem):
        return ""
    return words[:_TITLE_CHARS]


def breadcrumb(heading: tuple[str, ...]) -> tuple[str, ...]:
    """The telling ones among the titles above a passage, outermost first, without the days in them."""
    return _breadcrumb(heading) if heading else heading


@lru_cache(maxsize=4_096)
def _breadcrumb(heading: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_without_day(title)[:_TITLE_CHARS] for title in heading if _is_telling(title))


def _without_day(title: str) -> str:
    """A telling title without the day and the hour in it: "Call with Mia, Friday 20 Nov 2026, 13:56" is a call."""
    if ornament("days", None, heading_day, title) is None:
        return title
    left, at = list[str](), 0
    for start, end in sorted((*day_spans(title), *clock_spans(title))):
        left.append(title[at:start])
        at = max(at, end)
    words = "".join((*left, title[at:])).split()
    texts = (word for word in words if _LETTER_OR_DIGIT.search(word) and word.lower().strip(_MARKS) not in _OF_A_DAY)
    return " ".join(texts).strip(_MARKS) or title


def searched_text(passage: Passage, path: str) -> str:
    """The text that a passage is found by: its own, and where it stands."""
    heading, text = passage.heading, passage.text
    if path.startswith("sessions/"):
        return f"{heading[-1]}\n{text}" if passage.opens_section else text
    above = [*breadcrumb(heading)]
    if passage.opens_section and heading:
        # The first passage below a title is found by its day, too.
        if _is_telling(heading[-1]):
            above.pop()
        above.append(heading[-1])
    if title := name_title(path):
        above.append(title)
    if passage.columns:
        above.append(passage.columns)
    return "\n".join((*above, text)) if above else text


def embedded_text(passage: Passage, path: str) -> str:
    """The text that the vector of a passage is of: its own, behind a short breadcrumb."""
    if path.startswith("sessions/"):
        return passage.text
    text = _with_columns(passage.text, passage.columns) if passage.columns else passage.text
    titles = breadcrumb(passage.heading)
    if not titles:
        title = name_title(path)
        # Names that are made for people have spaces; others are made for machines, and say little.
        titles = (title,) if title and " " in path.rpartition("/")[2] else ()
    if passage.label:
        # Who speaks is in the line itself: a title that names them says no more of it.
        titles = tuple(title for title in titles if not _names(title.casefold(), passage.label.casefold()))
    crumb = _short(titles)
    return f"{crumb}\n{text}" if crumb else text


def _names(title: str, speaker: str) -> bool:
    """True if a title names a speaker: as words of its own, or inside a run of a script without spaces."""
    words = _NAME_WORDS.findall(speaker)
    return speaker in title and (not speaker.isascii() or set(words).issubset(_NAME_WORDS.findall(title)))


@lru_cache(maxsize=4_096)
def _short(titles: tuple[str, ...]) -> str:
    """As many of the titles as fit, the nearest one first, in their order.

    Source: tests/evals/layouts.py, nearest by the vector alone, of 100 questions each about things and people: titles
    on lines of their own 96 and 90, behind commas and a colon 87 and 83, with dashes 92 and 94.
    """
    kept_texts, room = list[str](), _VECTOR_CHARS
    for title in reversed(titles):
        if kept_texts and len(title) > room:
            break
        kept_texts.append(title[:room])
        room -= len(title) + 1
        if room <= 0:
            break
    return "\n".join(reversed(kept_texts))


def _cells_of(row: str) -> list[str]:
    """The cells of a row of a table."""
    body = row.strip().removeprefix("|")
    body = body.removesuffix("|") if not body.endswith(_ESCAPED_PIPE) else body
    return [cell.replace("\0", "|").strip() for cell in body.replace(_ESCAPED_PIPE, "\0").split("|")]


def _with_columns(row: str, columns: str) -> str:
    """A row with the name of its column before each cell, while the names are short beside the cells."""
    names, cells = _cells_of(columns), _cells_of(row)
    room = max(_NAMES_CHARS, len(row))
    parts = list[str]()
    for name, cell in zip(names, cells, strict=False):
        room -= len(name) + 2
        if cell:
            parts.append(f"{name}: {cell}" if name and room >= 0 else cell)
    return "; ".join((*parts, *filter(None, islice(cells, len(names), None))))

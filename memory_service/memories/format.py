"""Memory file format: the entries of a file, found and taken out.

An entry is a top-level list item, alone or right below the comment with its machine fields:
```
## 14:32
<!-- memory id=m0123456789ab session=support-42 messages=12-48 origin=agent at=2026-11-20T13:32:07.412Z hash=… -->
- Deploys go out on Tuesdays after the 10:00 stand-up.
```
Invariants: pure; linear in the length of the text; lines count from 1 and end with LF, CR LF or CR only;
whatever was not asked for stays, byte for byte, but for blank lines around what was taken out; an item that
a person wrote is known by the same id that it would have got from the service.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from indexer import ITEM, entry_hash, fold_entry, is_blank, item_end, read_comment, role_of, starts_entry
from indexer.common import lazy_regex
from memory_service.schemas.roles import WhoseWord

_HEADING = lazy_regex(r"(#{1,6})(?:[ \t\r\n]|$)")
_TIME_HEADING = lazy_regex(r"## [0-9]{1,2}:[0-9]{2}[ \t]*")
_FENCE = lazy_regex(r" {0,3}(`{3,}|~{3,})([^`\r\n]*)[\r\n]*$")
_DATED_NAME = lazy_regex(r"(?:.*/)?([0-9]{4}-[0-9]{2}-[0-9]{2})\.md", re.IGNORECASE | re.DOTALL)
# So many texts of one day got the same id, and another one for that, at most.
_ATTEMPTS = 4
# Places of lines, from 0, the end exclusive.
LineSpan = tuple[int, int]


# Numbers of messages begin with 1.
_SPAN = lazy_regex(r"([1-9][0-9]{0,14})(?:-([1-9][0-9]{0,14}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a memory file.

    Attributes:
        memory_id: From its comment; of an item without one, derived from day and text.
        text_hash: Tells its text from others, see `indexer.documents.entries.entry_hash`.
        first_line: Where it begins, with its comment.
        start_line: First line of its text; of a comment whose text is gone, the comment itself.
        end_line: Last line of its text.
        role: Whose word it is.
        fields: The fields of its comment; empty for what was written by hand.
    """

    memory_id: str
    text_hash: bytes
    first_line: int
    start_line: int
    end_line: int
    role: WhoseWord = "user"
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True for a comment whose text is gone."""
        return bool(self.fields) and self.start_line == self.first_line

    def touches(self, first: int, last: int) -> bool:
        """True if it has one of some lines."""
        return self.first_line <= last and first <= self.end_line


def message_span(fields: Mapping[str, str]) -> tuple[int, int] | None:
    """The first and the last message that an entry was taken from, by its comment; None where that says none."""
    match = _SPAN.fullmatch(fields.get("messages", ""))
    return (int(match[1]), int(match[2] or match[1])) if match else None


def split_lines(text: str) -> list[str]:
    """The lines of a text with their ends."""
    return list(io.StringIO(text, newline=""))


def derive_id(day: dt.date, folded_text: str, attempt: int = 0) -> str:
    """The id of a text on a day; a higher attempt gives another one, for when that is taken."""
    seed = f"{day}\n{folded_text}" + (f"\n\n{attempt}" if attempt else "")
    return "m" + hashlib.blake2b(seed.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()


def day_of(path: str) -> dt.date | None:
    """The day in the name of a file; None if it has none."""
    match = _DATED_NAME.fullmatch(path)
    try:
        return dt.date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def find_entries(text: str, day: dt.date | None) -> list[Entry]:
    """Finds the entries of a file.

    Args:
        text: The whole file.
        day: The file's day; without one, only entries with a comment count.

    Returns:
        The entries in the order of their lines.
    """
    return list(_Reader(split_lines(text), day).entries())


def entry_text(lines: Sequence[str], entry: Entry) -> str:
    """The text of an entry as it was given: without its list marker, its further lines not indented."""
    if entry.is_empty:
        return ""
    body = [line.rstrip("\r\n") for line in lines[entry.start_line - 1 : entry.end_line]]
    marker = ITEM.match(body[0])
    if marker is None:
        return "\n".join(body)
    width = max(2, marker.end())
    other_lines = (line[min(width, len(line) - len(line.lstrip(" "))) :] for line in body[1:])
    return "\n".join([body[0][marker.end() :], *other_lines])


def spans_of(text: str, memory_id: str, day: dt.date | None) -> list[LineSpan]:
    """Where the entries with an id stand, in their order."""
    entries = (entry for entry in find_entries(text, day) if entry.memory_id == memory_id)
    return [(entry.first_line - 1, entry.end_line) for entry in entries]


def spans_within(text: str, first: int, last: int, day: dt.date | None) -> list[LineSpan]:
    """Where some lines stand, and all of the entries that have one of them, in their order, none touching another."""
    total = len(split_lines(text))
    pairs = [(first - 1, min(last, total))] if first <= total else []
    pairs += [(e.first_line - 1, e.end_line) for e in find_entries(text, day) if pairs and e.touches(first, last)]
    spans = list[LineSpan]()
    for start, end in sorted(pairs):
        if spans and start <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], end)
        else:
            spans.append((start, end))
    return spans


def cut_spans(text: str, spans: Sequence[LineSpan]) -> str:
    """A file without some of its lines, and without a time heading that stood above nothing else."""
    lines = split_lines(text)
    for start, end in reversed(spans):
        _cut_lines(lines, start, end)
    return "".join(lines)


def blank_spans(text: str, spans: Sequence[LineSpan]) -> tuple[str, str]:
    """Puts spaces over some lines, for a disk that has no room for the rest of the file beside it.

    Returns:
        The file with the comments and without the words, by which the entry is found again if nothing follows; and
        without both, and without the time heading that stood above nothing else. As many bytes as before, in as many
        lines.
    """
    lines = split_lines(text)
    for start, end in spans:
        for at in range(start, end):
            lines[at] = lines[at] if _read_comment(lines[at]) else _spaces(lines[at])
    wordless = "".join(lines)
    for start, end in spans:
        for at in range(_head(lines, start, end), end):
            lines[at] = _spaces(lines[at])
    return wordless, "".join(lines)


def is_derived(text: str, entry: Entry, days: Iterable[dt.date]) -> bool:
    """True if an entry of a text has the id that its own words give it, on one of some days."""
    words = fold_entry(split_lines(text)[entry.start_line - 1 : entry.end_line])
    return any(derive_id(day, words, attempt) == entry.memory_id for day in days for attempt in range(_ATTEMPTS))


def is_blank_page(text: str, day: dt.date | None) -> bool:
    """True if a dated file says no more than its date."""
    return day is not None and text.removeprefix("\ufeff").strip() in ("", f"# {day}")


class _Reader:
    """Reads the entries of a file, line by line; `at` counts from 0, ends are exclusive."""

    def __init__(self, lines: list[str], day: dt.date | None) -> None:
        self.lines = lines
        self.day = day
        self.unclosed: dict[str, int] = {}  # length of the shortest fence that is known to have no end, by its mark

    def entries(self) -> Iterator[Entry]:
        lines = self.lines
        at = code_end = 0
        while at < len(lines):
            line = lines[at]
            fields = _read_comment(line)
            if fields is not None:
                entry = self._commented_entry(at, fields)
                yield entry
                at = entry.end_line
            elif at >= code_end and line[0] in " -*+0123456789" and ITEM.match(line):
                end = item_end(lines, at)
                if self.day is not None:
                    yield self._handwritten(at, end, self.day)
                at = end
            else:
                # What a person shows as code is no item; a comment with an id is an entry anywhere, to be found again.
                code_end = max(code_end, self._fence_end(at)) if at >= code_end else code_end
                at += 1

    def _commented_entry(self, at: int, fields: dict[str, str]) -> Entry:
        start, end = self._body(at + 1, fields["id"])
        words = fold_entry(self.lines[start:end])
        return Entry(
            memory_id=fields["id"],
            text_hash=entry_hash(words),
            role=role_of(fields, words),
            fields=fields,
            first_line=at + 1,
            start_line=start + 1 if start < end else at + 1,
            end_line=max(end, at + 1),
        )

    def _handwritten(self, at: int, end: int, day: dt.date) -> Entry:
        words = fold_entry(self.lines[at:end])
        return Entry(
            memory_id=derive_id(day, words),
            text_hash=entry_hash(words),
            first_line=at + 1,
            start_line=at + 1,
            end_line=end,
        )

    def _body(self, at: int, memory_id: str) -> tuple[int, int]:
        """The lines of text that belong to a comment above line `at`; none if they are gone."""
        start = at
        while start < len(self.lines) and is_blank(self.lines[start]):
            start += 1
        if start == len(self.lines):
            return at, at
        if start == at:
            return at, self._block_end(at)
        # Formatters put a blank line between a comment and a list. But where a person has deleted the item, what
        # follows is somebody else's: only the text tells.
        if self.day is not None and ITEM.match(self.lines[start]):
            end = item_end(self.lines, start)
            if derive_id(self.day, fold_entry(self.lines[start:end])) == memory_id:
                return start, end
        return at, at

    def _block_end(self, at: int) -> int:
        if ITEM.match(self.lines[at]):
            return item_end(self.lines, at)
        end = self._fence_end(at)
        # What looks like its end may be that of a block in the next entry, where a person left this one open.
        if end > at and not any(read_comment(line) is not None for line in self.lines[at:end]):
            return end
        end = at
        while end < len(self.lines) and not _begins_another(self.lines[end]):
            end += 1
        return end

    def _fence_end(self, at: int) -> int:
        """End of the code block that a line opens; `at` if it opens none, or one that is never closed."""
        fence = _FENCE.match(self.lines[at])
        if fence is None:
            return at
        mark, length = fence[1][0], len(fence[1])
        if length >= self.unclosed.get(mark, length + 1):
            return at
        for index in range(at + 1, len(self.lines)):
            close = _FENCE.match(self.lines[index])
            if close and close[1][0] == mark and len(close[1]) >= length and is_blank(close[2]):
                return index + 1
        self.unclosed[mark] = length
        return at


def _read_comment(line: str) -> dict[str, str] | None:
    """The fields of an entry's comment; None if the line is none."""
    fields = read_comment(line)
    return fields if fields and "id" in fields else None


def _begins_another(line: str) -> bool:
    """True if a line ends the paragraph above it."""
    return is_blank(line) or _HEADING.match(line) is not None or starts_entry(line)


def _cut_lines(lines: list[str], start: int, end: int) -> None:
    """Takes lines out of a file, with the time heading that is left without content, and closes the gap."""
    start = _head(lines, start, end)
    before = _blanks(lines[:start][::-1])
    after = _blanks(lines[end:])
    if end + after == len(lines):
        start, end = start - before, len(lines)
    elif before or start == 0:
        end += after
    del lines[start:end]


def _head(lines: list[str], start: int, end: int) -> int:
    """Line of the time heading that a removal would leave empty; `start` if there is none."""
    head = start - 1
    while head >= 0 and is_blank(lines[head]):
        head -= 1
    is_left = head >= 0 and _TIME_HEADING.fullmatch(lines[head].rstrip("\r\n")) and _ends_section(lines, end)
    return head if is_left else start


def _spaces(line: str) -> str:
    """A line of as many bytes, all of them spaces but its end."""
    words = line.rstrip("\r\n")
    return " " * len(words.encode("utf-8", "surrogateescape")) + line[len(words) :]


def _ends_section(lines: list[str], at: int) -> bool:
    """True if a section of level 2 has nothing more from a line on."""
    rest = next((line for line in lines[at:] if not is_blank(line)), "# ")
    heading = _HEADING.match(rest)
    return heading is not None and len(heading[1]) <= 2


def _blanks(lines: list[str]) -> int:
    """Number of blank lines at the beginning."""
    return next((index for index, line in enumerate(lines) if not is_blank(line)), len(lines))

"""Memory file format: entries parsed, rendered, added to a page and removed.

An entry is a top-level list item, alone or right below the comment with its machine fields:
```
## 14:32
<!-- memory id=m0123456789ab session=support-42 messages=12-48 origin=agent -->
- Deploys go out on Tuesdays after the 10:00 stand-up.
```
Invariants: pure; linear in the length of the text; lines count from 1 and end with LF, CR LF or CR only;
whatever was not asked for stays, byte for byte, but for blank lines around what was taken out; an item that
a person wrote is known by the same id that it would have got from the service.

Invariants of new entries: pure; no text can be taken for a heading, a comment or a second entry of the page, for it
is one list item whose further lines are indented; one text stands once on a page; messages never hold the text.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from indexer.text import lazy_regex
from memory_service.errors import Conflict, InvalidRequest
from memory_service.schemas.memories import MAX_TEXT_CHARS, SESSION_ID
from memory_service.schemas.roles import NotedOrigin

_COMMENT = lazy_regex(r" ?<!--[ \t]*memory((?:[ \t]+[a-z_]+=[^\s<>]+)+)[ \t]*-->[ \t]*")
_ITEM = lazy_regex(r" ?(?:[-*+]|[0-9]{1,3}[.)])[ \t]+(?=[^ \t\r\n])")
_HEADING = lazy_regex(r"(#{1,6})(?:[ \t\r\n]|$)")
_TIME_HEADING = lazy_regex(r"## [0-9]{1,2}:[0-9]{2}[ \t]*")
_FENCE = lazy_regex(r" {0,3}(`{3,}|~{3,})([^`\r\n]*)[\r\n]*$")
_DATED_NAME = lazy_regex(r"(?:.*/)?([0-9]{4}-[0-9]{2}-[0-9]{2})\.md", re.IGNORECASE | re.DOTALL)
# So many texts of one day got the same id, and another one for that, at most.
_ATTEMPTS = 4
_BLANKS = " \t\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a memory file.

    Attributes:
        memory_id: From its comment; of an item without one, derived from day and text.
        text_hash: Tells its text from others, see `_hash_text`.
        key: From its comment: the hash of the idempotency key it was written with.
        first_line: Where it begins, with its comment.
        start_line: First line of its text; of a comment whose text is gone, the comment itself.
        end_line: Last line of its text.
    """

    memory_id: str
    text_hash: bytes
    key: str | None
    first_line: int
    start_line: int
    end_line: int


def split_lines(text: str) -> list[str]:
    """The lines of a text with their ends."""
    return list(io.StringIO(text, newline=""))


def fold(text: str) -> str:
    """A text as it is compared: every run of white space is one space, composed characters are composed."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _hash_text(folded: str) -> bytes:
    """Hash of a folded text, for comparing many."""
    return hashlib.blake2b(folded.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _derive_id(day: dt.date, folded: str, attempt: int = 0) -> str:
    """The id of a text on a day; a higher attempt gives another one, for when that is taken."""
    seed = f"{day}\n{folded}" + (f"\n\n{attempt}" if attempt else "")
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


def remove_entry(text: str, memory_id: str, day: dt.date | None) -> str | None:
    """Takes out every entry with an id, and the time heading that stood above nothing else.

    Returns:
        The rest of the file; None if no entry has this id.
    """
    found = [entry for entry in find_entries(text, day) if entry.memory_id == memory_id]
    lines = split_lines(text)
    for entry in reversed(found):
        _cut(lines, entry.first_line - 1, entry.end_line)
    return "".join(lines) if found else None


def blank_entry(text: str, memory_id: str, day: dt.date | None) -> tuple[str, str] | None:
    """Puts spaces over every entry with an id, for a disk that has no room for the rest of the file beside it.

    Returns:
        The file with the comments and without the words, by which the entry is found again if nothing follows; and
        without both, and without the time heading that stood above nothing else. As many bytes as before, in as many
        lines. None if no entry has this id.
    """
    found = [entry for entry in find_entries(text, day) if entry.memory_id == memory_id]
    lines = split_lines(text)
    for entry in found:
        for at in range(entry.first_line - 1, entry.end_line):
            lines[at] = lines[at] if _read_comment(lines[at]) else _spaces(lines[at])
    wordless = "".join(lines)
    for entry in found:
        for at in range(_head(lines, entry.first_line - 1, entry.end_line), entry.end_line):
            lines[at] = _spaces(lines[at])
    return (wordless, "".join(lines)) if found else None


def is_derived(text: str, entry: Entry, days: Iterable[dt.date]) -> bool:
    """True if an entry of a text has the id that its own words give it, on one of some days."""
    folded = _folded(split_lines(text)[entry.start_line - 1 : entry.end_line])
    return any(_derive_id(day, folded, attempt) == entry.memory_id for day in days for attempt in range(_ATTEMPTS))


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
                entry = self._commented(at, fields)
                yield entry
                at = entry.end_line
            elif at >= code_end and line[0] in " -*+0123456789" and _ITEM.match(line):
                end = self._item_end(at)
                if self.day is not None:
                    yield self._handwritten(at, end, self.day)
                at = end
            else:
                # What a person shows as code is no item; a comment with an id is an entry anywhere, to be found again.
                code_end = max(code_end, self._fence_end(at)) if at >= code_end else code_end
                at += 1

    def _commented(self, at: int, fields: dict[str, str]) -> Entry:
        start, end = self._body(at + 1, fields["id"])
        return Entry(
            memory_id=fields["id"],
            text_hash=_hash_text(self._folded(start, end)),
            key=fields.get("key"),
            first_line=at + 1,
            start_line=start + 1 if start < end else at + 1,
            end_line=max(end, at + 1),
        )

    def _handwritten(self, at: int, end: int, day: dt.date) -> Entry:
        folded = self._folded(at, end)
        memory_id = _derive_id(day, folded)
        return Entry(
            memory_id=memory_id,
            text_hash=_hash_text(folded),
            key=None,
            first_line=at + 1,
            start_line=at + 1,
            end_line=end,
        )

    def _body(self, at: int, memory_id: str) -> tuple[int, int]:
        """The lines of text that belong to a comment above line `at`; none if they are gone."""
        start = at
        while start < len(self.lines) and _is_blank(self.lines[start]):
            start += 1
        if start == len(self.lines):
            return at, at
        if start == at:
            return at, self._block_end(at)
        # Formatters put a blank line between a comment and a list. But where a person has deleted the item, what
        # follows is somebody else's: only the text tells.
        if self.day is not None and _ITEM.match(self.lines[start]):
            end = self._item_end(start)
            if _derive_id(self.day, self._folded(start, end)) == memory_id:
                return start, end
        return at, at

    def _block_end(self, at: int) -> int:
        if _ITEM.match(self.lines[at]):
            return self._item_end(at)
        end = self._fence_end(at)
        # What looks like its end may be that of a block in the next entry, where a person left this one open.
        if end > at and not any(_COMMENT.fullmatch(line.rstrip("\r\n")) for line in self.lines[at:end]):
            return end
        end = at
        while end < len(self.lines) and not _begins_another(self.lines[end]):
            end += 1
        return end

    def _item_end(self, at: int) -> int:
        """End of the list item at a line: below its last indented line."""
        lines = self.lines
        end = at + 1
        for index in range(at + 1, len(lines)):
            line = lines[index]
            if _is_blank(line):
                continue
            if line[0] not in " \t" or (not line.startswith(("  ", "\t", " \t")) and (index > end or _starts(line))):
                break
            end = index + 1
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
            if close and close[1][0] == mark and len(close[1]) >= length and _is_blank(close[2]):
                return index + 1
        self.unclosed[mark] = length
        return at

    def _folded(self, start: int, end: int) -> str:
        return _folded(self.lines[start:end])


def _folded(lines: list[str]) -> str:
    text = "".join(lines)
    marker = _ITEM.match(text)
    return fold(text[marker.end() :] if marker else text)


def _read_comment(line: str) -> dict[str, str] | None:
    """The fields of an entry's comment; None if the line is none."""
    if line[0] not in " <":
        return None
    match = _COMMENT.fullmatch(line.rstrip("\r\n"))
    if match is None:
        return None
    fields = dict(field.split("=", 1) for field in match[1].split())
    return fields if "id" in fields else None


def _is_blank(line: str) -> bool:
    return not line.strip(_BLANKS)


def _starts(line: str) -> bool:
    return _ITEM.match(line) is not None or _read_comment(line) is not None


def _begins_another(line: str) -> bool:
    """True if a line ends the paragraph above it."""
    return _is_blank(line) or _HEADING.match(line) is not None or _starts(line)


def _cut(lines: list[str], start: int, end: int) -> None:
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
    while head >= 0 and _is_blank(lines[head]):
        head -= 1
    is_left = head >= 0 and _TIME_HEADING.fullmatch(lines[head].rstrip("\r\n")) and _ends_section(lines, end)
    return head if is_left else start


def _spaces(line: str) -> str:
    """A line of as many bytes, all of them spaces but its end."""
    words = line.rstrip("\r\n")
    return " " * len(words.encode("utf-8", "surrogateescape")) + line[len(words) :]


def _ends_section(lines: list[str], at: int) -> bool:
    """True if a section of level 2 has nothing more from a line on."""
    rest = next((line for line in lines[at:] if not _is_blank(line)), "# ")
    heading = _HEADING.match(rest)
    return heading is not None and len(heading[1]) <= 2


def _blanks(lines: list[str]) -> int:
    """Number of blank lines at the beginning."""
    return next((index for index, line in enumerate(lines) if not _is_blank(line)), len(lines))


MAX_TAGS = 16
_MAX_TAG_CHARS = 64
_RULE = lazy_regex(r"[-|: \t]+(?:\n|\Z)")
_LINE_BREAK = lazy_regex(r"\r\n?|[\x0b\x0c\x85]")
_DROPPED = lazy_regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_FOREIGN = lazy_regex(r"[\ud800-\udfff]")
_SESSION_ID = lazy_regex(SESSION_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDraft:
    """A checked memory.

    Attributes:
        text: Clean, with its tags.
        folded: The text as it is compared.
        fields: The machine fields that follow the id in the comment.
        date: The day it belongs to; None for today.
        key: Hash of the idempotency key.
    """

    text: str
    folded: str
    fields: str
    date: dt.date | None
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """Text to append to a page for a draft, and the resulting entry."""

    text: str
    entry: Entry


def entry_draft(
    text: str,
    *,
    tags: Collection[str] = (),
    date: dt.date | None = None,
    origin: NotedOrigin | None = None,
    session_id: str | None = None,
    messages: tuple[int, int] | None = None,
    key: str | None = None,
) -> EntryDraft:
    """Checks a memory and brings it into the form in which it is written.

    Args:
        text: What to remember.
        tags: Appended to the text as #tags.
        date: The day it belongs to; today if not given.
        origin: Whose word it is; the agent's if not given.
        session_id: The session that it was taken from.
        messages: First and last message of it.
        key: Idempotency key: the same key again writes nothing again.

    Raises:
        InvalidRequest: It has no text or too much, or a tag or field cannot be used.
    """
    tagged = _tagged(_clean(text), tags)
    hashed = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest() if key else None
    fields = _fields(origin or "agent", session_id, messages, hashed)
    return EntryDraft(text=tagged, folded=fold(tagged), fields=fields, date=date, key=hashed)


class Page:
    """The parsed file of a day: entries by text and by key, and how the next entry begins.

    Attributes:
        day: The day.
        is_new: Whether nothing was written on it yet.
        is_utf8: Whether the file was in UTF-8; other bytes came as lone surrogates.
    """

    def __init__(self, day: dt.date, text: str) -> None:
        lines = split_lines(text)
        self.day = day
        self.is_new = not text
        self.is_utf8 = _FOREIGN.search(text) is None
        self._lines = len(lines)
        self._newline = _line_end(lines[0]) if lines else "\n"
        self._gap = _gap_after(lines[-1]) if lines else 0
        self._ids: set[str] = set()
        self._texts: dict[bytes, Entry] = {}
        self._keys: dict[str, Entry] = {}
        for entry in find_entries(text, day):
            self._index(entry)

    def find(self, draft: EntryDraft) -> Entry | None:
        """The entry with the same text."""
        return self._texts.get(_hash_text(draft.folded))

    def replayed(self, draft: EntryDraft) -> Entry | None:
        """The entry that was written with the same idempotency key.

        Raises:
            Conflict: That one had another text.
        """
        entry = self._keys.get(draft.key or "")
        if entry is None:
            return None
        # A person may have edited the entry meanwhile: its id still tells which text it was written with.
        if entry.text_hash != _hash_text(draft.folded) and entry.memory_id != _derive_id(self.day, draft.folded):
            raise Conflict(
                f"The idempotency key was used for another text, which is the memory {entry.memory_id}. "
                "Use a new key for a new memory."
            )
        return entry

    def plan(self, draft: EntryDraft, clock: str | None) -> Addition:
        """Plan the text to append for a draft that is not on the page yet.

        Args:
            draft: The memory.
            clock: The time for its heading, HH:MM; None if it stands below that of the addition before it.
        """
        head = ["# " + str(self.day), ""] if self.is_new else [""] * self._gap
        title = [f"## {clock}"] if clock is not None else []
        head = head if title else []
        memory_id = self._free_id(draft.folded)
        item = _item_lines(draft.text)
        comment = f"<!-- memory id={memory_id}{draft.fields} -->"
        lines = [*head, *title, comment, *item, ""]
        # Of the gap, the first line end may only complete an unfinished last line.
        first = self._lines + len(head) - (bool(title) and self._gap == 2) + len(title) + 1
        entry = Entry(
            memory_id=memory_id,
            text_hash=_hash_text(draft.folded),
            key=draft.key,
            first_line=first,
            start_line=first + 1,
            end_line=first + len(item),
        )
        return Addition(text=self._newline.join(lines), entry=entry)

    def add(self, addition: Addition) -> None:
        """Takes note of an addition that was written."""
        self.is_new = False
        self._lines = addition.entry.end_line
        self._gap = 1
        self._index(addition.entry)

    def _index(self, entry: Entry) -> None:
        self._ids.add(entry.memory_id)
        self._texts.setdefault(entry.text_hash, entry)
        if entry.key:
            self._keys.setdefault(entry.key, entry)

    def _free_id(self, folded: str) -> str:
        # The id of a text is taken if a person has edited the entry that had it.
        attempt = 0
        while (memory_id := _derive_id(self.day, folded, attempt)) in self._ids:
            attempt += 1
        return memory_id


def _clean(text: str) -> str:
    clean = _DROPPED.sub("", _LINE_BREAK.sub("\n", text)).strip()
    if not clean:
        raise InvalidRequest("The text of the memory is empty. Send at least one visible character.")
    if len(clean) > MAX_TEXT_CHARS:
        raise InvalidRequest(
            f"The text of the memory has {len(clean):,} characters, more than {MAX_TEXT_CHARS:,}. "
            "Split it into several memories."
        )
    # Behind the list marker such a line would be a rule, and what follows no longer part of the item.
    return f"\\{clean}" if _RULE.match(clean) else clean


def _tagged(text: str, tags: Collection[str]) -> str:
    """The text with those tags at its end that it does not have yet."""
    if isinstance(tags, str):
        # A lone string would be taken for its letters.
        raise InvalidRequest(f"The tags are one text, {tags[:80]!a}. Put it into a list.")
    if len(tags) > MAX_TAGS:
        raise InvalidRequest(f"The memory has {len(tags)} tags, more than {MAX_TAGS}. Leave some out.")
    present = set(text.split())
    marks = [mark for mark in dict.fromkeys("#" + _checked_tag(tag) for tag in tags) if mark not in present]
    # A fence with a word behind it ends no code block, and a table row ends with its bar.
    closed = text.rpartition("\n")[2].lstrip().startswith(("```", "~~~", "|"))
    return ("\n" if closed else " ").join([text, " ".join(marks)]) if marks else text


def _checked_tag(tag: str) -> str:
    composed = unicodedata.normalize("NFC", tag)
    inside = all(char.isalnum() or char in "_/-" or unicodedata.category(char)[0] == "M" for char in composed)
    if (
        not inside
        or not composed
        or len(composed) > _MAX_TAG_CHARS
        or not (composed[0].isalnum() or composed[0] == "_")
    ):
        raise InvalidRequest(
            f"{tag[:80]!a} is no tag. Use up to {_MAX_TAG_CHARS} letters, digits, '_', '-' and '/', without '#'."
        )
    return composed


def _fields(origin: str, session_id: str | None, messages: tuple[int, int] | None, key: str | None) -> str:
    if origin not in (origins := get_args(NotedOrigin)):
        raise InvalidRequest(f"The origin {ascii(origin)[:80]} is not known. Use one of {', '.join(origins)}.")
    if session_id is not None and _SESSION_ID.fullmatch(session_id) is None:
        raise InvalidRequest(
            f"{ascii(session_id)[:80]} is no id of a session. "
            "Use 1 to 128 letters, digits, '.', '_' and '-', and begin with a letter or digit."
        )
    if messages is not None and not 0 <= messages[0] <= messages[1]:
        raise InvalidRequest(f"Messages {messages[0]} to {messages[1]} are no range. Give first and last.")
    given = {
        "session": session_id,
        "messages": f"{messages[0]}-{messages[1]}" if messages else None,
        "origin": origin,
        "key": key,
    }
    return "".join(f" {name}={field}" for name, field in given.items() if field)


def _item_lines(text: str) -> list[str]:
    first, *others = text.split("\n")
    return [f"- {first}", *(f"  {line}" if line.strip(" \t") else "" for line in others)]


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :] or "\n"


def _gap_after(last: str) -> int:
    """Number of line ends needed before an entry for one blank line above it."""
    body = last.rstrip("\r\n")
    if body == last:
        return 2
    return 1 if body.strip() else 0

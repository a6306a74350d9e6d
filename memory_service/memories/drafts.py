"""Drafts of entries: a memory checked and rendered, its place on the page of its day, and an entry reworded.

Invariants: pure; no text can be taken for a heading, a comment or a second entry of the page, for it is one list item
whose further lines are indented; one text stands once on a page, unless what was noted since says otherwise; messages
never hold the text. An entry that is reworded keeps its id, its place and where it came from.
"""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import cast, get_args

from indexer import AUTHORITY, ITEM, MAX_TAG_CHARS, entry_hash, fold_words, is_tag, short_hash
from indexer.common import lazy_regex
from indexer.language import facts_of, ornament, restating
from memory_service.errors import Conflict, InvalidRequest
from memory_service.memories.format import Entry, derive_id, entry_text, find_entries, message_span, split_lines
from memory_service.schemas.base import SESSION_ID
from memory_service.schemas.entries import EntryChange
from memory_service.schemas.memories import MAX_TEXT_CHARS
from memory_service.schemas.roles import NotedOrigin

MAX_TAGS = 16
_RULE = lazy_regex(r"[-|: \t]+(?:\n|\Z)")
_LINE_BREAK = lazy_regex(r"\r\n?|[\x0b\x0c\x85]")
_DROPPED = lazy_regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_FOREIGN = lazy_regex(r"[\ud800-\udfff]")
_SESSION_ID = lazy_regex(SESSION_ID)
_LAST_TAG = lazy_regex(r"\s+#([^\s#]{1,80})\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDraft:
    """A checked memory.

    Attributes:
        text: Clean, with its tags.
        folded: The text as it is compared.
        fields: The machine fields that follow the id in the comment, but for the moment.
        date: The day it belongs to; None for today.
    """

    text: str
    folded: str
    fields: Mapping[str, str]
    date: dt.date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """Text to append to a page for a draft, the resulting entry, and the words of that."""

    text: str
    entry: Entry
    said: str


def entry_draft(
    text: str,
    *,
    tags: Collection[str] = (),
    date: dt.date | None = None,
    origin: NotedOrigin | None = None,
    session_id: str | None = None,
    messages: tuple[int, int] | None = None,
) -> EntryDraft:
    """Checks a memory and brings it into the form in which it is written.

    Args:
        text: What to remember.
        tags: Appended to the text as #tags.
        date: The day it belongs to; today if not given.
        origin: Whose word it is; the agent's if not given.
        session_id: The session that it was taken from.
        messages: First and last message of it.

    Raises:
        InvalidRequest: It has no text or too much, or a tag or field cannot be used.
    """
    tagged_text = _with_tags(_clean(text), tags)
    fields = _fields(checked_origin(origin or "agent"), session_id, messages)
    return EntryDraft(text=tagged_text, folded=fold_words(tagged_text), fields=fields, date=date)


class Page:
    """The parsed file of a day: entries by text, and how the next entry begins.

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
        # Entries and what they say, in the order of the page.
        self._said: list[tuple[Entry, str]] = []
        for entry in find_entries(text, day):
            self._index(entry, "\n".join(lines[entry.start_line - 1 : entry.end_line]).lstrip("-* "))

    def find(self, draft: EntryDraft) -> Entry | None:
        """The entry that a draft repeats; None where one behind it says otherwise, so that the text is news again."""
        entry = self.newest(draft)
        if entry is None:
            return None
        since = (
            text
            for other_entry, text in self._said
            if other_entry.first_line > entry.end_line and _came_before(other_entry, draft)
        )
        return (
            None
            if any(ornament("facts", False, _says_otherwise, said_text, draft.text) for said_text in since)
            else entry
        )

    def newest(self, draft: EntryDraft) -> Entry | None:
        """The last entry with the same text."""
        return self._texts.get(entry_hash(draft.folded))

    def plan(self, draft: EntryDraft, clock: str | None, at: dt.datetime | None = None) -> Addition:
        """Plan the text to append for a draft that is not on the page yet.

        Args:
            draft: The memory.
            clock: The time for its heading, HH:MM; None if it stands below that of the addition before it.
            at: The moment of writing; None where it is noted for another day.
        """
        head = ["# " + str(self.day), ""] if self.is_new else [""] * self._gap
        title = [f"## {clock}"] if clock is not None else []
        head = head if title else []
        memory_id = self._free_id(draft.folded)
        item = _item_lines(draft.text)
        moment = {"at": _moment(at)} if at else {}
        fields = {"id": memory_id, **draft.fields, **moment, "hash": short_hash(draft.folded)}
        comment = _comment(fields)
        lines = [*head, *title, comment, *item, ""]
        # Of the gap, the first line end may only complete an unfinished last line.
        first = self._lines + len(head) - (bool(title) and self._gap == 2) + len(title) + 1
        entry = Entry(
            memory_id=memory_id,
            text_hash=entry_hash(draft.folded),
            role=checked_origin(draft.fields["origin"]),
            fields=fields,
            first_line=first,
            start_line=first + 1,
            end_line=first + len(item),
        )
        return Addition(text=self._newline.join(lines), entry=entry, said=draft.text)

    def add(self, addition: Addition) -> None:
        """Takes note of an addition that was written."""
        self.is_new = False
        self._lines = addition.entry.end_line
        self._gap = 1
        self._index(addition.entry, addition.said)

    def _index(self, entry: Entry, text: str) -> None:
        self._ids.add(entry.memory_id)
        self._texts[entry.text_hash] = entry
        self._said.append((entry, text))

    def _free_id(self, folded_text: str) -> str:
        # The id of a text is taken if a person has edited the entry that had it.
        attempt = 0
        while (memory_id := derive_id(self.day, folded_text, attempt)) in self._ids:
            attempt += 1
        return memory_id


def _came_before(entry: Entry, draft: EntryDraft) -> bool:
    """False if an entry was said later, in the same talk, than what is noted now: that is noted once more."""
    if entry.fields.get("session") != draft.fields.get("session"):
        return True
    span, new_span = message_span(entry.fields), message_span(draft.fields)
    return span is None or new_span is None or span[0] < new_span[0]


def _says_otherwise(said_text: str, text: str) -> bool:
    """True if words give another value than a text to something that has one at a time."""
    values = {claim.thing: claim.value for claim in facts_of(text).claims if claim.single}
    pairs = ((claim.thing, claim.value) for claim in facts_of(said_text).claims if claim.single)
    return any(values.get(thing, value) != value for thing, value in pairs) or restating(text, said_text) is not None


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


def checked_tags(tags: Collection[str]) -> tuple[str, ...]:
    """Tags, each once, composed, without `#`.

    Raises:
        InvalidRequest: There are too many, or one is none.
    """
    if isinstance(tags, str):
        # A lone string would be taken for its letters.
        raise InvalidRequest(f"The tags are one text, {tags[:80]!r}. Put it into a list.")
    if len(tags) > MAX_TAGS:
        raise InvalidRequest(f"There are {len(tags)} tags, more than {MAX_TAGS}. Leave some out.")
    return tuple(dict.fromkeys(map(_checked_tag, tags)))


def _with_tags(text: str, tags: Collection[str]) -> str:
    """The text with those tags at its end that it does not have yet."""
    present = set(text.split())
    marks = [f"#{tag}" for tag in checked_tags(tags) if f"#{tag}" not in present]
    # A fence with a word behind it ends no code block, and a table row ends with its bar.
    is_closed = text.rpartition("\n")[2].lstrip().startswith(("```", "~~~", "|"))
    return ("\n" if is_closed else " ").join([text, " ".join(marks)]) if marks else text


def _checked_tag(tag: str) -> str:
    composed_text = unicodedata.normalize("NFC", tag)
    if not is_tag(composed_text):
        raise InvalidRequest(
            f"{tag[:80]!r} is no tag. Use up to {MAX_TAG_CHARS} letters, digits, '_', '-' and '/', without '#'."
        )
    return composed_text


def checked_origin(origin: str) -> NotedOrigin:
    """An origin, if it is one.

    Raises:
        InvalidRequest: It is none.
    """
    if origin not in (origins := get_args(NotedOrigin)):
        raise InvalidRequest(f"The origin {repr(origin)[:80]} is not known. Use one of {', '.join(origins)}.")
    return cast("NotedOrigin", origin)


def _fields(origin: NotedOrigin, session_id: str | None, messages: tuple[int, int] | None) -> dict[str, str]:
    if session_id is not None and _SESSION_ID.fullmatch(session_id) is None:
        raise InvalidRequest(
            f"{repr(session_id)[:80]} is no id of a session. "
            "Use 1 to 128 letters, digits, '.', '_' and '-', and begin with a letter or digit."
        )
    if messages is not None and not 0 <= messages[0] <= messages[1]:
        raise InvalidRequest(f"Messages {messages[0]} to {messages[1]} are no range. Give first and last.")
    given_fields = {
        "session": session_id,
        "messages": f"{messages[0]}-{messages[1]}" if messages else None,
        "origin": origin,
    }
    return {name: field for name, field in given_fields.items() if field}


def _comment(fields: Mapping[str, str]) -> str:
    """The comment above an entry."""
    return f"<!-- memory {' '.join(f'{name}={field}' for name, field in fields.items())} -->"


def _moment(at: dt.datetime) -> str:
    """A moment as it stands in a comment: in UTC, to the millisecond, as in the logs of sessions."""
    return at.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _item_lines(text: str, marker: str = "- ") -> list[str]:
    first, *other_texts = text.split("\n")
    indent = " " * max(2, len(marker))
    return [f"{marker}{first}", *(f"{indent}{line}" if line.strip(" \t") else "" for line in other_texts)]


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :] or "\n"


def _gap_after(last: str) -> int:
    """Number of line ends needed before an entry for one blank line above it."""
    body = last.rstrip("\r\n")
    if body == last:
        return 2
    return 1 if body.strip() else 0


def checked_change(change: EntryChange) -> EntryChange:
    """A change of an entry, with a clean text, tags that can be used, and who makes it.

    Raises:
        InvalidRequest: It changes nothing, or a text, tag or origin cannot be used.
    """
    if change.text is None and change.tags is None:
        raise InvalidRequest("Nothing is to be changed. Give a text, tags or both.")
    return EntryChange(
        text=None if change.text is None else _clean(change.text),
        tags=None if change.tags is None else [*checked_tags(change.tags)],
        origin=change.origin or "user",
    )


def reword_entry(text: str, entry: Entry, change: EntryChange, day: dt.date | None) -> str:
    """A file with an entry changed. What was written by hand gets a comment, so that it keeps its id.

    Args:
        text: The whole file.
        entry: The entry, as it stands in it.
        change: A checked change.
        day: The day of the file.

    Raises:
        Conflict: Its words are of somebody with more authority, or stand there as another entry already.
        InvalidRequest: No text is left.
    """
    lines = split_lines(text)
    before, tags_before = _apart(entry_text(lines, entry))
    words, tags = (before, tags_before) if change.text is None else _apart(change.text)
    tags = tuple(change.tags) if change.tags is not None else tags or tags_before
    is_reworded = fold_words(words) != fold_words(before)
    author = change.origin or "user"
    if is_reworded and AUTHORITY[author] < AUTHORITY[entry.role]:
        raise Conflict(
            f"The memory {entry.memory_id} is the {entry.role}'s word, which no {author} changes. "
            "Remember what is new as a memory of its own."
        )
    new_text = _clean(_with_tags(words, tags))
    folded_text = fold_words(new_text)
    for other_entry in find_entries(text, day):
        if other_entry.text_hash == entry_hash(folded_text) and other_entry.memory_id != entry.memory_id:
            raise Conflict(
                f"The memory {other_entry.memory_id} of the same file says just that. Forget one of the two."
            )
    fields = {"id": entry.memory_id, **entry.fields}
    fields |= {"origin": author if is_reworded else entry.role, "hash": short_hash(folded_text)}
    start = entry.end_line if entry.is_empty else entry.start_line - 1
    marker = ITEM.match(lines[start]) if start < entry.end_line else None
    newline, last = _line_end(lines[0]), lines[entry.end_line - 1]
    # Formatters put a blank line between a comment and a list; and the last line of a file may have no end.
    between = lines[entry.first_line : start] if entry.fields else []
    item = newline.join(_item_lines(new_text, marker[0] if marker else "- ")) + last[len(last.rstrip("\r\n")) :]
    return "".join(
        [*lines[: entry.first_line - 1], _comment(fields) + newline, *between, item, *lines[entry.end_line :]]
    )


def _apart(text: str) -> tuple[str, tuple[str, ...]]:
    """A text without the tags at its end, and these, without their `#`; a text that is only tags keeps them."""
    words, tags = text.rstrip(), list[str]()
    while match := _LAST_TAG.search(words):
        if not is_tag(match[1]) or not words[: match.start()].strip():
            break
        tags.insert(0, match[1])
        words = words[: match.start()]
    return words, tuple(tags)

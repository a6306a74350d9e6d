"""Owns what a new memory becomes: its checked form, and its place on the page of its day.

Invariants: pure; no text can be taken for a heading, a comment or a second entry of the page, for it is one
list item whose further lines are indented; one text stands once on a page; messages never hold the text.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from memory_service.entries import Entry, derive_id, find_entries, fold, hash_text, split_lines
from memory_service.errors import Conflict, InvalidRequest

Origin = Literal["user", "agent", "tool"]
MAX_TEXT_CHARS = 100_000
MAX_TAGS = 16
_MAX_TAG_CHARS = 64
_ORIGINS = ("user", "agent", "tool")
_RULE = re.compile(r"[-|: \t]+(?:\n|\Z)")
_LINE_BREAK = re.compile(r"\r\n?|[\x0b\x0c\x85]")
_DROPPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_FOREIGN = re.compile(r"[\ud800-\udfff]")
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What a caller wants remembered.

    Attributes:
        date: The day it belongs to; today if not given.
        origin: Whose word it is; the agent's if not given.
        messages: First and last message of the session that it was taken from.
        key: Idempotency key: the same key again writes nothing again.
    """

    text: str
    tags: tuple[str, ...] = ()
    date: dt.date | None = None
    origin: Origin | None = None
    session_id: str | None = None
    messages: tuple[int, int] | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A checked memory.

    Attributes:
        text: Clean, with its tags.
        folded: The text as it is compared.
        fields: The machine fields that follow the id in the comment.
        key: Hash of the idempotency key.
    """

    text: str
    folded: str
    fields: str
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """What is to be appended to a page for a draft, and the entry that it will be."""

    text: str
    entry: Entry


def draft(new: NewMemory) -> Draft:
    """Checks a memory and brings it into the form in which it is written.

    Raises:
        InvalidRequest: It has no text or too much, or a tag or field cannot be used.
    """
    text = _tagged(_clean(new.text), new.tags)
    key = hashlib.blake2b(new.key.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest() if new.key else None
    return Draft(text=text, folded=fold(text), fields=_fields(new, key), key=key)


class Page:
    """What the file of a day holds: its entries by text and by key, and how its next entry begins.

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

    def find(self, draft: Draft) -> Entry | None:
        """The entry with the same text."""
        return self._texts.get(hash_text(draft.folded))

    def replayed(self, draft: Draft) -> Entry | None:
        """The entry that was written with the same idempotency key.

        Raises:
            Conflict: That one had another text.
        """
        entry = self._keys.get(draft.key or "")
        if entry is None:
            return None
        # A person may have edited the entry meanwhile: its id still tells which text it was written with.
        if entry.text_hash != hash_text(draft.folded) and entry.memory_id != derive_id(self.day, draft.folded):
            raise Conflict(
                f"The idempotency key was used for another text, which is the memory {entry.memory_id}. "
                "Use a new key for a new memory."
            )
        return entry

    def plan(self, draft: Draft, clock: str | None) -> Addition:
        """What to append for a draft that is not on the page yet.

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
            text_hash=hash_text(draft.folded),
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
        while (memory_id := derive_id(self.day, folded, attempt)) in self._ids:
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


def _tagged(text: str, tags: tuple[str, ...]) -> str:
    """The text with those tags at its end that it does not have yet."""
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


def _fields(new: NewMemory, key: str | None) -> str:
    origin = new.origin or "agent"
    if origin not in _ORIGINS:
        raise InvalidRequest(f"The origin {ascii(origin)[:80]} is not known. Use one of {', '.join(_ORIGINS)}.")
    if new.session_id is not None and _SESSION_ID.fullmatch(new.session_id) is None:
        raise InvalidRequest(
            f"{ascii(new.session_id)[:80]} is no id of a session. "
            "Use 1 to 128 letters, digits, '.', '_' and '-', and begin with a letter or digit."
        )
    if new.messages is not None and not 0 <= new.messages[0] <= new.messages[1]:
        raise InvalidRequest(f"Messages {new.messages[0]} to {new.messages[1]} are no range. Give first and last.")
    given = {
        "session": new.session_id,
        "messages": f"{new.messages[0]}-{new.messages[1]}" if new.messages else None,
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
    """How many line ends an entry needs before it to stand below one blank line."""
    body = last.rstrip("\r\n")
    if body == last:
        return 2
    return 1 if body.strip() else 0

"""Entries of memory files: the comment above one, its lines, whose word it is, when it was written, its tags. Pure.

An entry is a list item or a paragraph right below its comment, `<!-- memory id=… origin=agent at=… hash=… -->`. A
comment inside an item, where the text of a memory may write one, says nothing.

Invariants: an origin that is not known is the agent's; where the comment has the hash of another text than stands there
now, a person has edited the entry, and it is the user's; one without a hash keeps its origin.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from indexer.common.patterns import lazy_regex
from indexer.types import ROLES, Role, fold_tag

_COMMENT = lazy_regex(r" ?<!--[ \t]*memory((?:[ \t]+[a-z_]+=[^\s<>]+)+)[ \t]*-->[ \t]*")
ITEM = lazy_regex(r" ?(?:[-*+]|[0-9]{1,3}[.)])[ \t]+(?=[^ \t\r\n])")
_BLANKS = " \t\r\n"
# So many bytes of a text's hash stand in its comment.
_HASH_BYTES = 6
# The day of a file is that of a time zone, a moment that of another.
_NEAR = dt.timedelta(days=1)
MAX_TAG_CHARS = 64
# A word behind `#`, where a word may begin.
_TAG = lazy_regex(r"(?<![^\s(\[（「【，。、；：！？])#([^\s#]{1,80})")
_CODE_SPAN = lazy_regex(r"`[^`\n]*`")
_FENCE = lazy_regex(r"^[ \t]{0,12}(`{3,}|~{3,}).*?(?:^[ \t]{0,12}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """The comment of an entry, as it counts for its lines.

    Attributes:
        written_moment: The moment at which it was written; None where the comment does not say.
    """

    role: Role
    written_moment: dt.datetime | None
    tags: tuple[str, ...]

    def written_on(self, day: dt.date | None) -> dt.datetime | None:
        """The moment at which it was written, if that is of the day that it stands on: else it was noted for that."""
        if self.written_moment is None or day is None or abs(self.written_moment.date() - day) > _NEAR:
            return None
        return self.written_moment


def noted_lines(lines: Sequence[str]) -> Mapping[int, Noted]:
    """The comment of each line that is of an entry, by its number from 1; other lines were written by hand.

    Args:
        lines: The lines of a file, without their ends, with their comments.
    """
    notes = dict[int, Noted]()
    for number, line in enumerate(lines, start=1):
        if line.startswith(("<!--", " <!--")) and (fields := read_comment(line)) is not None:
            below = _lines_below(lines, number)
            text = lines[below.start - 1 : below.stop - 1]
            note = Noted(
                role=role_of(fields, fold_entry(text)), written_moment=moment_of(fields), tags=tags_of("\n".join(text))
            )
            notes.update((at, note) for at in below)
    return notes


def _lines_below(lines: Sequence[str], at: int) -> range:
    """Numbers of the lines of the entry below a comment; `at` is the place behind the comment."""
    first = at
    while first < len(lines) and not lines[first].strip():
        first += 1
    end = first + 1
    if first < len(lines) and ITEM.match(lines[first]):
        end = item_end(lines, first)
    elif first == at < len(lines) and lines[at][0] not in "#<":
        while end < len(lines) and lines[end].strip() and lines[end][0] not in "#<-*+":
            end += 1
    else:
        # Somebody has deleted the entry; what follows, or the next heading, is not its text.
        return range(0, 0)
    return range(first + 1, end + 1)


def read_comment(line: str) -> dict[str, str] | None:
    """The fields of an entry's comment; None if the line is none."""
    if not line.startswith((" ", "<")):
        return None
    match = _COMMENT.fullmatch(line.rstrip("\r\n"))
    return dict(field.split("=", 1) for field in match[1].split()) if match else None


def is_blank(line: str) -> bool:
    """True if a line has nothing but white space."""
    return not line.strip(_BLANKS)


def starts_entry(line: str) -> bool:
    """True if a line begins a list item, or is the comment of an entry."""
    return ITEM.match(line) is not None or read_comment(line) is not None


def item_end(lines: Sequence[str], at: int) -> int:
    """End of the list item at a line: the place below its last indented line."""
    end = at + 1
    for index in range(at + 1, len(lines)):
        line = lines[index]
        if is_blank(line):
            continue
        if line[0] not in " \t" or (not line.startswith(("  ", "\t", " \t")) and (index > end or starts_entry(line))):
            break
        end = index + 1
    return end


def fold_words(text: str) -> str:
    """A text as it is compared: every run of white space is one space, composed characters are composed."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def fold_entry(lines: Sequence[str]) -> str:
    """The text of an entry's lines as it is compared, without the marker of its list item."""
    # A line that has no end of its own is one all the same.
    text = "\n".join(line.rstrip("\r\n") for line in lines)
    marker = ITEM.match(text)
    return fold_words(text[marker.end() :] if marker else text)


def entry_hash(folded_text: str) -> bytes:
    """Hash of a folded text, for comparing many: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(folded_text.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def short_hash(folded_text: str) -> str:
    """Hash of a folded text as it stands in a comment."""
    return entry_hash(folded_text)[:_HASH_BYTES].hex()


def role_of(fields: Mapping[str, str], folded_text: str) -> Role:
    """Whose word an entry is, by the fields of its comment and the text that stands there now."""
    if fields.get("hash", "") not in ("", short_hash(folded_text)):
        return "user"
    return next((role for role in ROLES if role == fields.get("origin")), "agent")


def moment_of(fields: Mapping[str, str]) -> dt.datetime | None:
    """The moment at which an entry was written, by its comment, in UTC; None where that says none."""
    try:
        moment = dt.datetime.fromisoformat(fields["at"])
    except (KeyError, ValueError):
        return None
    return moment.astimezone(dt.UTC) if moment.tzinfo is not None else None


def tags_of(text: str) -> tuple[str, ...]:
    """The tags of a text, folded, without `#`, each once; what is shown as code has none."""
    if "#" not in text:
        return ()
    plain = _CODE_SPAN.sub(" ", _FENCE.sub(" ", text)) if "`" in text or "~~~" in text else text
    words = (_tag_in(match[1]) for match in _TAG.finditer(plain))
    return tuple(dict.fromkeys(fold_tag(word) for word in words if word))


def _tag_in(word: str) -> str:
    """The tag that a word begins with, without the punctuation behind it; empty if there is none."""
    composed_text = unicodedata.normalize("NFC", word)
    end = next((at for at, char in enumerate(composed_text) if not _may_stand(char)), len(composed_text))
    behind = composed_text[end : end + 1]
    is_over = not behind or unicodedata.category(behind)[0] == "P"
    return composed_text[:end] if is_over and is_tag(composed_text[:end]) else ""


def is_tag(text: str) -> bool:
    """True for what can stand behind `#` as a tag."""
    return (
        0 < len(text) <= MAX_TAG_CHARS
        and (text[0].isalnum() or text[0] == "_")
        and all(_may_stand(char) for char in text)
    )


def _may_stand(char: str) -> bool:
    return char.isalnum() or char in "_/-" or unicodedata.category(char)[0] == "M"

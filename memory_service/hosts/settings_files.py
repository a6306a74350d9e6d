"""Files that hosts read, with ours in them and without: each a change that is planned here and written elsewhere.

Invariants: a file that is a link, read-only, not UTF-8 or not valid is an error and no change; of a person's file
nothing is kept but what had to give room, in a note.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memory_service.errors import InvalidRequest
from memory_service.hosts.settings_text import (
    Edit,
    KeyPath,
    Member,
    SettingsDialect,
    append_item,
    read,
    remove_item,
    set_key,
    table_span,
    with_table,
    without_table,
)
from memory_service.storage.files.disk import (
    Signature,
    check_size,
    open_no_follow,
    read_all,
    signature,
    storage_errors,
    write_fault,
)

NAME = "memory-service"
_PROGRAMS = (f"{NAME} ", f"{NAME}' ", f'{NAME}" ', f"{NAME}.exe ", f"{NAME}.exe' ", f'{NAME}.exe" ')


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEntry:
    """A value of ours in settings: below its own key, or as an element of a list.

    Attributes:
        is_listed: It is an element of the list at `keys`.
        if_there: Only where that list is there already.
    """

    keys: KeyPath
    value: object
    is_listed: bool = False
    if_there: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile:
    """A file that a host reads, and what is ours in it.

    Attributes:
        dialect: How it is written; of a `text` all is ours.
        entries: Values of ours, in JSON.
        text: All of a `text`; a table of TOML; of JSON, what a new file begins with.
    """

    path: Path
    dialect: SettingsDialect | Literal["toml", "text"] = "json"
    entries: tuple[OwnEntry, ...] = ()
    text: str = "{}\n"


@dataclass(slots=True, kw_only=True)
class FileNote:
    """All that is remembered of a file that was written, for the way back.

    Attributes:
        created: The file was not there before.
        digest: Of the content, if all of it is ours.
        keys: Where values of ours stand, and `lists` with elements of ours.
        made: Objects and lists that stand there for ours alone.
        filled: Objects and lists that were empty, with the blanks in them.
        replaced: Values that gave room, as they were written.
    """

    created: bool = False
    digest: str = ""
    keys: list[KeyPath] = field(default_factory=list)
    lists: list[KeyPath] = field(default_factory=list)
    made: list[KeyPath] = field(default_factory=list)
    filled: dict[KeyPath, str] = field(default_factory=dict)
    replaced: dict[KeyPath, str] = field(default_factory=dict)

    def take(self, edit: Edit) -> str:
        """Note what an edit did; gives the text."""
        self.made += [path for path in edit.made if path not in self.made]
        self.filled.update(dict(edit.filled))
        return edit.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file before and after; None where there is none."""

    path: Path
    before: bytes | None
    after: bytes | None
    signature: Signature | None
    note: str = ""

    @property
    def action(self) -> Literal["created", "changed", "deleted", "unchanged"]:
        """The kind of the change."""
        if self.before == self.after:
            return "unchanged"
        return "created" if self.before is None else "deleted" if self.after is None else "changed"

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        old, new = (_lines(raw) for raw in (self.before, self.after))
        name = str(self.path)
        names = (name if self.before is not None else os.devnull, name if self.after is not None else os.devnull)
        lines = difflib.unified_diff(old, new, fromfile=names[0], tofile=names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(raw: bytes | None) -> list[str]:
    return (raw or b"").decode("utf-8", "replace").splitlines(keepends=True)


def connect_file(file: HostFile, note: FileNote | None) -> tuple[Change, FileNote]:
    """The change that puts ours into a file, and its note.

    Raises:
        InvalidRequest: The file is not fit for it: it cannot be read or written, is a link, or somebody else's.
    """
    before, signature = _content(file.path)
    note = deepcopy(note) if note else FileNote(created=before is None)
    text = _decode(file.path, before)
    with _unfit(file.path):
        after = _WITH_OURS[file.dialect](file, text, note)
    return Change(path=file.path, before=before, after=after.encode(), signature=signature), note


def restore_file(file: HostFile, note: FileNote | None) -> Change:
    """The change that takes ours out of a file again.

    Raises:
        InvalidRequest: The file cannot be read or written, or is a link.
    """
    before, signature = _content(file.path)
    if before is None:
        return Change(path=file.path, before=None, after=None, signature=None)
    text = _decode(file.path, before)
    with _unfit(file.path):
        if file.dialect == "text":
            return _text_removed(file, before, signature, note)
        left = _WITHOUT_OURS[file.dialect](file, text or "", note)
    if left == text:
        return Change(path=file.path, before=before, after=before, signature=signature)
    after = None if (note is None or note.created) and _is_bare(file, left) else left.encode()
    return Change(path=file.path, before=before, after=after, signature=signature)


def _is_bare(file: HostFile, text: str) -> bool:
    """True if a file has nothing but what a new one begins with."""
    if file.dialect == "toml":
        return not text.strip()
    if file.dialect == "text":
        return False
    root = read(text, file.dialect)
    return not root.comments and root.value in ({}, read(file.text, file.dialect).value)


def _text_removed(file: HostFile, before: bytes, signature: Signature | None, note: FileNote | None) -> Change:
    own = {_digest(file.text.encode()), note.digest if note else ""}
    if _digest(before) in own:
        return Change(path=file.path, before=before, after=None, signature=signature)
    why = "left there: somebody changed it" if note else "left there: it is not ours"
    return Change(path=file.path, before=before, after=before, signature=signature, note=why)


def _json_with_ours(file: HostFile, text: str | None, note: FileNote) -> str:
    dialect: SettingsDialect = "json5" if file.dialect == "json5" else "json"
    paths = {*note.keys, *note.lists}
    text = file.text if text is None else text
    for entry in file.entries:
        if entry.if_there and not read(text, dialect).find(entry.keys):
            continue
        if entry.is_listed:
            text = _with_listed(text, entry, note, dialect)
            note.lists += [entry.keys] if entry.keys not in paths else []
        else:
            edit = set_key(text, entry.keys, entry.value, dialect)
            # A second connection changes what the first one wrote: only what stood there before it comes back.
            note.replaced.update({} if entry.keys in paths else dict(edit.replaced))
            text = note.take(edit)
            note.keys += [entry.keys] if entry.keys not in paths else []
    return text


def _with_listed(text: str, entry: OwnEntry, note: FileNote, dialect: SettingsDialect) -> str:
    own = _own_parts(text, entry.keys, dialect)
    if not own:
        return note.take(append_item(text, entry.keys, entry.value, dialect))
    value: Any = entry.value
    # A person may have put a hook of theirs into our group: then ours is the one in it.
    part = value["hooks"][0] if len(own[0]) > len(entry.keys) + 1 else value
    return set_key(text, own[0], part, dialect).text


def _own_parts(text: str, keys: KeyPath, dialect: SettingsDialect) -> list[KeyPath]:
    """Where elements of ours stand in a list, the last one first: whole ones, or ours of a group with others."""
    member = read(text, dialect).find(keys)
    parts: list[KeyPath] = []
    for number, element in enumerate(member.members if member and isinstance(member.value, list) else ()):
        place = (*keys, str(number))
        group = element.find(("hooks",))
        inside = [n for n, each_member in enumerate(group.members) if _is_ours(each_member)] if group else []
        if group and len(inside) < len(group.members):
            parts += [(*place, "hooks", str(n)) for n in inside]
        elif inside or _is_ours(element):
            parts.append(place)
    return parts[::-1]


def _is_ours(element: Member) -> bool:
    """True for a command of ours, and for our name."""
    command = element.find(("command",)) if isinstance(element.value, dict) else None
    words = command.value if command else None
    ours = isinstance(words, str) and any(f"{program}hook " in words for program in _PROGRAMS)
    return ours or element.value == NAME


def _json_without_ours(file: HostFile, text: str, note: FileNote | None) -> str:
    dialect: SettingsDialect = "json5" if file.dialect == "json5" else "json"
    before, note = text, note or _guess_note(file, read(text, dialect))
    for keys in dict.fromkeys([*note.lists, *(own_entry.keys for own_entry in file.entries if own_entry.is_listed)]):
        for part in _own_parts(text, keys, dialect):
            text = remove_item(text, part[:-1], int(part[-1]), blank=note.filled.get(keys, ""), dialect=dialect)
    for keys in note.keys:
        text = _without_member(text, keys, note, dialect)
    for keys in sorted(note.made, key=len, reverse=True) if text != before else ():
        member = read(text, dialect).find(keys)
        if member and not member.members and not member.comments:
            text = _without_member(text, keys, note, dialect)
    return text


def _guess_note(file: HostFile, root: Member) -> FileNote:
    """A note of a file that is connected without one, as a copy of somebody else's: what is empty then was ours."""
    paths = [entry.keys for entry in file.entries if not entry.is_listed and NAME in (entry.keys[-1], entry.value)]
    members = {keys: member for keys in paths if (member := root.find(keys))}
    keys = [path for path, member in members.items() if path[-1] == NAME or member.value == NAME]
    places = [*keys, *((*own_entry.keys, "") for own_entry in file.entries if own_entry.is_listed)]
    return FileNote(keys=keys, made=list(dict.fromkeys(place[:n] for place in places for n in range(1, len(place)))))


def _without_member(text: str, keys: KeyPath, note: FileNote, dialect: SettingsDialect) -> str:
    root = read(text, dialect)
    place, member = root.find(keys[:-1]), root.find(keys)
    if place is None or member is None:
        return text
    if keys in note.replaced:
        return text[: member.value_start] + note.replaced[keys] + text[member.end :]
    number = next(n for n, each_member in enumerate(place.members) if each_member is member)
    return remove_item(text, keys[:-1], number, blank=note.filled.get(keys[:-1], ""), dialect=dialect)


def _toml_with_ours(file: HostFile, text: str | None, note: FileNote) -> str:
    name, text = _table_name(file), text or ""
    span = table_span(text, name)
    if span is None:
        return with_table(text, name, file.text)
    block = file.text.strip("\n").replace("\n", "\r\n" if "\r\n" in text else "\n")
    present = text[span[0] : span[1]]
    if present != block and (name,) not in note.keys:
        note.replaced[(name,)] = present
    note.keys = [(name,)]
    return text[: span[0]] + block + text[span[1] :]


def _toml_without_ours(file: HostFile, text: str, note: FileNote | None) -> str:
    name = _table_name(file)
    before = note.replaced.get((name,)) if note else None
    span = table_span(text, name)
    if before is None or span is None:
        return without_table(text, name)
    return text[: span[0]] + before + text[span[1] :]


def _table_name(file: HostFile) -> str:
    return file.text.strip().partition("\n")[0].strip("[]")


def _text_with_ours(file: HostFile, text: str | None, note: FileNote) -> str:
    own = {file.text} if not note.digest else {file.text, text}
    if text is not None and text not in own:
        raise InvalidRequest("It is there already, and is not ours. Move it away")
    if text is not None and note.digest not in ("", _digest(text.encode())):
        raise InvalidRequest("Somebody changed it since it was written. Move it away")
    note.digest = _digest(file.text.encode())
    return file.text


_WITH_OURS = {
    "json": _json_with_ours,
    "json5": _json_with_ours,
    "toml": _toml_with_ours,
    "text": _text_with_ours,
}
_WITHOUT_OURS = {"json": _json_without_ours, "json5": _json_without_ours, "toml": _toml_without_ours}


@contextmanager
def _unfit(path: Path) -> Iterator[None]:
    """Names the file that a text cannot be used of."""
    try:
        yield
    except InvalidRequest as error:
        raise InvalidRequest(f"{path} is left as it is: {error}. Nothing was written.") from None


def _content(path: Path) -> tuple[bytes | None, Signature | None]:
    """The content of a file that may be written; None if there is none."""
    with _unfit(path):
        if path.is_symlink():
            raise InvalidRequest(f"It is a link to {path.readlink()}. Make it a file, or connect by hand")
        if path.exists() and not path.is_file():
            raise InvalidRequest("It is no file. Move it away")
        if fault := write_fault(path.parent):
            raise InvalidRequest(f"Its folder cannot be used, as {fault}. Give yourself the right to write there")
    if not path.exists():
        return None, None
    with storage_errors(str(path)), open_no_follow(path) as descriptor:
        check_size(descriptor, str(path))
        status = os.fstat(descriptor)
        with _unfit(path):
            # Who may do everything is not asked for rights: the bits alone say that it is not to be changed.
            if not status.st_mode & stat.S_IWRITE or not os.access(path, os.W_OK):
                raise InvalidRequest("It is read-only. Make it writable first")
        return read_all(descriptor), signature(status)


def _decode(path: Path, raw: bytes | None) -> str | None:
    with _unfit(path):
        try:
            return None if raw is None else raw.decode()
        except UnicodeDecodeError:
            raise InvalidRequest("It is not UTF-8. Save it as UTF-8") from None


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()

"""Entries of one workspace: found by id, by place and by filters, changed, and taken out of their files.

Invariants: an id is looked for in every file, whatever the index knows; what is read of a file stays as long as the
file has the same revision; who changes or takes out an entry holds the write lock, and a person who saves the file
meanwhile loses nothing; nothing is done where two texts carry one id.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain

from indexer import EXTRA_MARK, Hit, fold_tag, has_tags, is_blank, moment_of, tags_of
from indexer.common import LRU, lazy_regex
from memory_service.errors import (
    Conflict,
    InvalidRequest,
    MemoryServiceError,
    NotFound,
    PreconditionFailed,
    StorageFailed,
)
from memory_service.home import citation
from memory_service.memories.drafts import reword_entry
from memory_service.memories.file_history import FileHistory
from memory_service.memories.format import (
    Entry,
    LineSpan,
    blank_spans,
    cut_spans,
    day_of,
    entry_text,
    find_entries,
    is_blank_page,
    is_derived,
    message_span,
    spans_of,
    spans_within,
    split_lines,
)
from memory_service.schemas.base import Erased
from memory_service.schemas.entries import EntryChange, ForgottenMemory, MemoryEntry, Removal
from memory_service.schemas.roles import WhoseWord
from memory_service.storage.documents import DocumentStore, Listing
from memory_service.storage.revisions import ATTEMPTS, Revision, kept_changing

_MEMORY_ID = lazy_regex(r"[A-Za-z0-9._-]{1,64}")
_PLACE = lazy_regex(r"(.+)#L([0-9]{1,9})")
_COMMENT = lazy_regex(r"<!--(?:.|\n)*?-->")
# A day has some dozens; of a larger file they are read anew each time.
_KEPT_FILES, _KEPT_ENTRIES = 256, 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldEntry:
    """An entry with the file that it stands in, and its text."""

    path: str
    entry: Entry
    text: str

    @property
    def etag(self) -> str:
        """Revision of its text."""
        return self.entry.text_hash.hex()

    def to_memory_entry(self) -> MemoryEntry:
        """The entry as it is told."""
        entry, fields = self.entry, self.entry.fields
        span = message_span(fields)
        return MemoryEntry(
            memory_id=entry.memory_id,
            path=self.path,
            start_line=entry.start_line,
            end_line=entry.end_line,
            citation=citation(self.path, entry.start_line, entry.end_line),
            text=self.text,
            tags=list(tags_of(self.text)),
            date=day_of(self.path),
            role=entry.role,
            origin=entry.role if fields else None,
            session_id=fields.get("session"),
            first_seq=span[0] if span else None,
            last_seq=span[1] if span else None,
            written_at=moment_of(fields),
            etag=self.etag,
        )

    def removal(self) -> Removal:
        """The entry as something that goes."""
        entry = self.entry
        where = citation(self.path, entry.start_line, entry.end_line)
        return Removal(memory_id=entry.memory_id, path=self.path, citation=where, role=entry.role, text=self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Restriction of a list of entries. Empty fields do not restrict.

    Attributes:
        tags: Tags that an entry has, all of them; `ops/deploy` is one of `ops`, too.
        role: Whose word it is.
        session_id: The session that it was taken from.
        since: First day; entries of undated files are left out.
        until: Last day; likewise.
        path: Its file; empty for all.
    """

    tags: tuple[str, ...] = ()
    role: WhoseWord | None = None
    session_id: str | None = None
    since: dt.date | None = None
    until: dt.date | None = None
    path: str = ""

    def reads(self, path: str) -> bool:
        """True if a file may have such entries."""
        if self.path and path != self.path:
            return False
        day = day_of(path)
        if day is None:
            return not (self.since or self.until)
        return not ((self.since and day < self.since) or (self.until and day > self.until))

    def passes(self, held_entry: HeldEntry) -> bool:
        """True if an entry of such a file is one of them."""
        entry = held_entry.entry
        return (
            not entry.is_empty
            and (self.role is None or entry.role == self.role)
            and (self.session_id is None or entry.fields.get("session") == self.session_id)
            and (not self.tags or has_tags(tags_of(held_entry.text), map(fold_tag, self.tags)))
        )


class EntryStore:
    """The entries of one workspace.

    Args:
        documents: The memory files.
        history: Their earlier versions.
        max_bytes: Larger files are not indexed.
    """

    def __init__(self, documents: DocumentStore, history: FileHistory, *, max_bytes: int) -> None:
        self._documents = documents
        self._history = history
        self._max_bytes = max_bytes
        self._kept: LRU[str, tuple[Revision, tuple[HeldEntry, ...]]] = LRU(_KEPT_FILES)

    def of_file(self, path: str) -> Sequence[HeldEntry]:
        """The entries of a memory file, in the order of their lines; none of a file of an extra folder.

        Raises:
            NotFound: There is no such file.
            StorageFailed: It cannot be read.
        """
        if path.startswith(EXTRA_MARK):
            return ()
        known_pair = self._kept.get(path)
        if known_pair is not None and known_pair[0] == self._documents.revision(path):
            return known_pair[1]
        raw, revision = self._documents.read(path)
        entries = _held_entries(path, raw.decode("utf-8", "surrogateescape"))
        if len(entries) <= _KEPT_ENTRIES:
            self._kept[path] = revision, entries
        return entries

    def finder(self) -> Callable[[str, int, int, str], HeldEntry | None]:
        """The entry of a passage, by its path, its first and last line, and its text; each file is looked at once.

        It is None for a passage of none, and where the file says something else by now.
        """

        @cache
        def entries_of(path: str) -> tuple[Sequence[HeldEntry], list[int]]:
            there = self._entries_or_none(path)
            return there, [entry.entry.first_line for entry in there]

        def find(path: str, first: int, last: int, text: str) -> HeldEntry | None:
            there, first_lines = entries_of(path)
            above = bisect_right(first_lines, first)
            held_entry = there[above - 1] if above else None
            return (
                held_entry
                if held_entry is not None and last <= held_entry.entry.end_line and _says(held_entry.text, text)
                else None
            )

        return find

    def with_ids(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Hits, each with the id of its entry if it is of one."""
        entry_of = self.finder()
        for hit in hits:
            lines = hit.passage.start_line, hit.passage.end_line
            entry = entry_of(hit.path, *lines, hit.passage.text) if hit.source == "memory" else None
            yield replace(hit, memory_id=entry.entry.memory_id) if entry else hit

    def _entries_or_none(self, path: str) -> Sequence[HeldEntry]:
        try:
            return self.of_file(path)
        except MemoryServiceError:
            return ()

    def list_entries(self, wanted_filter: EntryFilter, *, limit: int, after: str = "") -> tuple[list[HeldEntry], str]:
        """Some entries, those of the newest day first and there the last one, then those of undated files.

        Args:
            wanted_filter: Which of them.
            limit: The most of them.
            after: Where the list before this one ended.

        Returns:
            The entries, and where the list ends; empty if nothing follows.

        Raises:
            InvalidRequest: No list ends so.
            StorageFailed: A file cannot be read.
        """
        pair = _read_place(after) if after else None
        entries = list[HeldEntry]()
        for path in sorted(
            (path for path in self._documents.scan().documents if wanted_filter.reads(path)), key=_order
        ):
            if pair is not None and _order(path) < _order(pair[0]):
                continue
            below = pair[1] if pair is not None and path == pair[0] else None
            for entry in reversed(self._entries(path)):
                if (below is None or entry.entry.first_line < below) and wanted_filter.passes(entry):
                    if len(entries) == limit:
                        return entries, f"{entries[-1].path}#L{entries[-1].entry.first_line}"
                    entries.append(entry)
        return entries, ""

    def _entries(self, path: str) -> Sequence[HeldEntry]:
        try:
            return self.of_file(path)
        except NotFound:
            return ()

    def get(self, memory_id: str) -> HeldEntry:
        """The entry with an id, the first of several that say the same.

        Raises:
            NotFound: No file has such an entry.
            Conflict: Entries of different texts carry it.
        """
        return self._bearers(memory_id)[0]

    def has(self, memory_id: str, paths: Collection[str]) -> bool:
        """True if one of some files has the comment of an entry."""
        return bool(self._documents.containing(f"memory id={memory_id}".encode(), paths))

    def change(self, memory_id: str, change: EntryChange, *, etag: str | None = None) -> Sequence[HeldEntry]:
        """Changes an entry wherever it stands.

        Returns:
            The entry as it is now; where several files have it, each of them.

        Raises:
            NotFound: No file has such an entry.
            Conflict: Another entry carries its id, or says just that; or its words are of a higher authority.
            PreconditionFailed: Its text is not the one of the etag.
            StorageFailed: A file cannot be read or written.
        """
        self._bearers(memory_id)
        with self._writing():
            bearers = self._bearers(memory_id)
            now = bearers[0].etag
            if etag is not None and etag not in ("*", now):
                raise PreconditionFailed(
                    f"The memory {memory_id} was changed: its etag is {now} now. Read it again, then change that."
                )
            for path in dict.fromkeys(entry.path for entry in bearers):
                self._rewrite(path, lambda text, day: _change_entries(text, memory_id, change, day))
        return self._bearers(memory_id)

    def forget(self, memory_id: str) -> tuple[HeldEntry, ...]:
        """Erases an entry wherever it stands, with its heading if that stood above nothing else.

        Returns:
            The entries that are gone, at least one; a file that was left empty is gone, too.

        Raises:
            NotFound: No file has such an entry.
            Conflict: Another entry carries its id, with another text; nothing was erased.
            StorageFailed: A file cannot be read or written.
        """
        # First without the lock, as its file would be made for nothing.
        self._bearers(memory_id)
        with self._writing():
            bearers = self._bearers(memory_id)
            self._history.erase_removals([entry.removal() for entry in bearers])
            for path in dict.fromkeys(entry.path for entry in bearers):
                self._take_out(path, lambda text, day: spans_of(text, memory_id, day))
        return tuple(bearers)

    def within(self, path: str, first: int, last: int) -> tuple[Removal, ...]:
        """The text of some lines of a file, entries whole, as something that goes.

        Raises:
            NotFound: There is no such file, or it has no such lines.
            StorageFailed: It cannot be read.
        """
        return _removals(path, self._text(path), first, last)

    def forget_lines(self, path: str, first: int, last: int) -> tuple[Removal, ...]:
        """Erases some lines of a file, and whole the entries that have one of them; see `within`.

        Returns:
            What is gone, in the order of the lines.
        """
        self.within(path, first, last)
        with self._writing():
            removals = _removals(path, self._text(path), first, last)
            self._history.erase_removals(removals)
            self._take_out(path, lambda text, day: spans_within(text, first, last, day))
        return removals

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The write lock; whatever others left half-written, which may be what is to go, is gone then."""
        with self._documents.writing():
            self._documents.sweep()
            yield

    def _text(self, path: str) -> str:
        return self._documents.read(path).raw.decode("utf-8", "surrogateescape")

    def _bearers(self, memory_id: str) -> Sequence[HeldEntry]:
        """The entries with an id, at least one."""
        listing = self._documents.scan()
        there, entries = listing.documents, list[HeldEntry]()
        if there and _MEMORY_ID.fullmatch(memory_id):
            containing = self._documents.containing(memory_id.encode(), sorted(there))
            # Of a larger one no entry was ever told of: it is not indexed.
            dated_paths = (
                path
                for path in sorted(there, reverse=True)
                if day_of(path) and there[path].size_bytes <= self._max_bytes
            )
            entries = self._carrying(containing, memory_id) or self._carrying(dated_paths, memory_id)
            self._check_copies(memory_id, entries)
        if not entries:
            check_complete(listing)
            raise NotFound(
                f"There is no memory {repr(memory_id)[1:-1][:80]}. It may have been erased before; search for it."
            )
        return entries

    def _carrying(self, paths: Iterable[str], memory_id: str) -> list[HeldEntry]:
        return [entry for path in paths for entry in self._entries(path) if entry.entry.memory_id == memory_id]

    def _check_copies(self, memory_id: str, bearers: Sequence[HeldEntry]) -> None:
        """Refuses to touch an entry that carries the id of another one: a copied comment above another text.

        An entry whose text was edited is no such: it is alone, or all say the same.

        Raises:
            Conflict: There is one.
        """
        texts = {entry.entry.text_hash for entry in bearers}
        if len(texts) <= 1:
            return
        days = {day for bearer in bearers if (day := day_of(bearer.path))}
        chunks = (
            each_entry.entry.text_hash
            for each_entry in bearers
            if is_derived(self._text(each_entry.path), each_entry.entry, days)
        )
        true = set(chunks) or texts
        if texts - true or len(true) > 1:
            places = ", ".join(f"{entry.path}, line {entry.entry.first_line}" for entry in bearers)
            raise Conflict(
                f"Entries of different texts carry the id {memory_id}: {places}. Nothing was changed. "
                "Take the comment away above the one that shall stay, then try again."
            )

    def _take_out(self, path: str, find: Callable[[str, dt.date | None], list[LineSpan]]) -> None:
        """Remove lines from a file, which goes if nothing is left; on a full disk, spaces take their place."""
        day = day_of(path)
        for _ in range(ATTEMPTS):
            try:
                raw, revision = self._documents.read(path)
            except NotFound:
                return
            text = raw.decode("utf-8", "surrogateescape")
            spans = find(text, day)
            if not spans:
                return
            rest = cut_spans(text, spans)
            if is_blank_page(rest, day):
                is_done = self._documents.remove(path, expected=revision)
            else:
                blanks = partial(_blank_steps, raw, text, spans)
                is_done = self._documents.replace(path, _raw(rest), expected=revision, blanks=blanks, erases=True)
            if is_done:
                return
        raise kept_changing(path)

    def _rewrite(self, path: str, change: Callable[[str, dt.date | None], str]) -> None:
        for _ in range(ATTEMPTS):
            raw, revision = self._documents.read(path)
            text = change(raw.decode("utf-8", "surrogateescape"), day_of(path))
            if self._documents.replace(path, _raw(text), expected=revision):
                return
        raise kept_changing(path)


def forgotten_memory(
    gone: Sequence[Removal], *, erased: Erased | None = None, degraded: Sequence[str] = ()
) -> ForgottenMemory:
    """An erasure as it is told, without the words that are gone."""
    ids, paths = {removal.memory_id for removal in gone}, list(dict.fromkeys(removal.path for removal in gone))
    return ForgottenMemory(
        memory_id=ids.pop() if len(ids) == 1 else None,
        path=paths[0] if paths else "",
        paths=paths,
        removed=[removal.model_copy(update={"text": None}) for removal in gone],
        erased=erased,
        degraded=list(degraded),
    )


def check_complete(listing: Listing) -> None:
    """Raises `StorageFailed` if a folder could not be read."""
    for failure in listing.failures:
        raise StorageFailed(f"The folder {failure.path} was left out: {failure.reason}.")


def _held_entries(path: str, text: str) -> tuple[HeldEntry, ...]:
    lines = split_lines(text)
    return tuple(
        HeldEntry(path=path, entry=entry, text=entry_text(lines, entry)) for entry in find_entries(text, day_of(path))
    )


def _change_entries(text: str, memory_id: str, change: EntryChange, day: dt.date | None) -> str:
    """A file with every entry of an id changed, the last one first: the lines of the others stay where they are."""
    for entry in reversed([each_entry for each_entry in find_entries(text, day) if each_entry.memory_id == memory_id]):
        text = reword_entry(text, entry, change, day)
    return text


def _removals(path: str, text: str, first: int, last: int) -> tuple[Removal, ...]:
    lines = split_lines(text)
    if not 1 <= first <= last:
        raise InvalidRequest(f"Lines {first} to {last} are no range. Lines count from 1.")
    if first > len(lines):
        raise NotFound(f"{path} has {len(lines)} lines, and none with the number {first}. Read it again.")
    return tuple(_pieces(path, lines, _held_entries(path, text), spans_within(text, first, last, day_of(path))))


def _pieces(
    path: str, lines: Sequence[str], held_entries: Iterable[HeldEntry], spans: Sequence[LineSpan]
) -> Iterator[Removal]:
    """Entries and the lines between them, as they stand within some spans."""
    entries = list(held_entries)
    for start, end in spans:
        at = start
        for entry in (each_entry for each_entry in entries if start <= each_entry.entry.first_line - 1 < end):
            yield from _between(path, lines, at, entry.entry.first_line - 1)
            yield entry.removal()
            at = entry.entry.end_line
        yield from _between(path, lines, at, end)


def _between(path: str, lines: Sequence[str], start: int, end: int) -> Iterator[Removal]:
    ats = [at for at in range(start, end) if not is_blank(lines[at])]
    if ats:
        text, where = "".join(lines[ats[0] : ats[-1] + 1]), citation(path, ats[0] + 1, ats[-1] + 1)
        # Whatever no comment is above was written by hand.
        yield Removal(path=path, citation=where, role="user", text=text)


def _order(path: str) -> tuple[int, str]:
    """Order of files in a list of entries: the newest day first, then those without one."""
    day = day_of(path)
    return (-day.toordinal(), path) if day else (1, path)


def _read_place(place: str) -> tuple[str, int]:
    match = _PLACE.fullmatch(place)
    if match is None:
        raise InvalidRequest(f"The cursor {place[:80]!r} is none of a list of entries. Send `next_cursor` as it came.")
    return match[1], int(match[2])


def _says(entry: str, text: str) -> bool:
    """True if an entry has each line of a text of it, whatever blanks and comments stand between its words."""
    if text in entry:
        return True
    words = _squash_blanks(_COMMENT.sub("", entry))
    return all(_squash_blanks(line) in words for line in text.splitlines())


def _squash_blanks(text: str) -> str:
    return " ".join(text.split())


def _blank_steps(raw: bytes, text: str, spans: list[LineSpan]) -> Iterable[bytes]:
    """The contents of a file from as it is to one with spaces in the place of some lines."""
    return chain([raw], map(_raw, blank_spans(text, spans)))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")

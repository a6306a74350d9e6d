"""Daily notes: entries appended to dated files, each text once a day, durable when answered.

Those who wait at the same time are written together, with one wait for the disk.

Invariants: the write lock is held from the look at a page to the entry on it; nobody is answered before the disk has
what he asked for; a remembered page is used only while its file has the same revision; a person may save the file at
any moment, and neither side loses anything that was there when it looked.
"""

from __future__ import annotations

import copy
import datetime as dt
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from indexer.common import LRU
from memory_service.errors import MemoryServiceError, StorageFailed
from memory_service.memories.drafts import Addition, EntryDraft, Page
from memory_service.memories.file_text import ends_within_character, not_utf8, whole_bytes
from memory_service.memories.format import Entry
from memory_service.schemas.entries import StoredMemory
from memory_service.storage.documents import DocumentStore
from memory_service.storage.revisions import ATTEMPTS, Revision, kept_changing

_KEPT_PAGES = 8


@dataclass(eq=False, slots=True)
class _Asked:
    """A memory that somebody waits for, and what became of it."""

    draft: EntryDraft
    outcome: StoredMemory | MemoryServiceError | None = None

    def result(self) -> StoredMemory:
        """The outcome of the append; raises its error in the thread that asked."""
        if isinstance(self.outcome, MemoryServiceError):
            raise copy.copy(self.outcome) from self.outcome
        assert self.outcome is not None
        return self.outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePlan:
    """A plan of an append.

    Attributes:
        day: The day of the memory.
        former_id: The id of the last entry of that day with the same text; empty if there is none.
    """

    day: dt.date
    former_id: str

    @classmethod
    def read(cls, raw: bytes) -> NotePlan:
        """A plan from what `to_bytes` gave."""
        day, _, former_id = raw.decode().partition(" ")
        return cls(day=dt.date.fromisoformat(day), former_id=former_id)

    def to_bytes(self) -> bytes:
        """The plan, to be kept."""
        return f"{self.day} {self.former_id}".encode()


class DailyNotes:
    """The dated files of one workspace, as far as the service writes into them.

    Args:
        documents: The memory files.
        now: The present moment in the time zone of the workspace.
    """

    def __init__(self, documents: DocumentStore, *, now: Callable[[], dt.datetime]) -> None:
        self._documents = documents
        self._now = now
        self._pages: LRU[dt.date, tuple[Revision | None, Page]] = LRU(_KEPT_PAGES)
        self._turn = threading.Condition()
        self._asked: list[_Asked] = []
        self._is_writing = False

    def append(self, draft: EntryDraft) -> StoredMemory:
        """Writes a memory into the file of its day, unless its text stands there already.

        Raises:
            InvalidRequest: The file of the day is not UTF-8.
            InvalidName: The file of the day is a symbolic link.
            Conflict: The idempotency key belongs to another text.
            StorageFailed: The disk did not take it; the file is as it was.
        """
        asked_value = _Asked(draft)
        with self._turn:
            self._asked.append(asked_value)
            self._turn.wait_for(lambda: asked_value.outcome is not None or not self._is_writing)
            self._is_writing = self._is_writing or asked_value.outcome is None
            if asked_value.outcome is not None:
                return asked_value.result()
        # Nobody writes: this one does, for all who wait by then.
        try:
            with self._documents.writing():
                while asked_value.outcome is None:
                    self._write_down(self._next_round())
        finally:
            with self._turn:
                self._is_writing = False
                if asked_value in self._asked:
                    self._asked.remove(asked_value)
                self._turn.notify_all()
        return asked_value.result()

    def _next_round(self) -> list[_Asked]:
        """Requests for the next write: of several with one text the first, as the others need its outcome."""
        texts = set[str]()
        chosen_items, other_items = list[_Asked](), list[_Asked]()
        with self._turn:
            for asked_value in self._asked:
                (other_items if asked_value.draft.folded in texts else chosen_items).append(asked_value)
                texts.add(asked_value.draft.folded)
            self._asked = other_items
        return chosen_items

    def _write_down(self, asked_items: Sequence[_Asked]) -> None:
        """Writes what was asked for, with one wait for the disk for each day; each hears of its own."""
        now = self._now()
        try:
            for day in dict.fromkeys(value.draft.date or now.date() for value in asked_items):
                self._write_day(
                    [each_value for each_value in asked_items if (each_value.draft.date or now.date()) == day], day, now
                )
        finally:
            for each in asked_items:
                each.outcome = each.outcome or StorageFailed("The memory was not written. See the log, then try again.")

    def _write_day(self, asked_items: Sequence[_Asked], day: dt.date, now: dt.datetime) -> None:
        try:
            entries = self._append_drafts([value.draft for value in asked_items], day, now, headings=True)
        except MemoryServiceError as error:
            for each_value in asked_items:
                each_value.outcome = error
        else:
            for each_value, entry in zip(asked_items, entries, strict=True):
                each_value.outcome = entry

    def plan(self, draft: EntryDraft) -> NotePlan:
        """The plan of an append of a memory, as things stand now; changes nothing."""
        day = draft.date or self._now().date()
        entry = self._page(day)[1].newest(draft)
        return NotePlan(day=day, former_id=entry.memory_id if entry else "")

    def find_written(self, draft: EntryDraft, plan: NotePlan) -> StoredMemory | None:
        """The entry that an append after a plan has written, which lasts from now on; None if there is none."""
        with self._documents.writing():
            for _ in range(ATTEMPTS):
                revision, page = self._page(plan.day)
                entry = page.newest(draft)
                if entry is None or entry.memory_id == plan.former_id:
                    return None
                # Who wrote it may have died before the disk had it.
                if (revision := self._documents.append(_path_of(plan.day), b"", expected=revision)) is not None:
                    self._pages[plan.day] = revision, page
                    return _stored_memory(entry, plan.day)
        raise kept_changing(_path_of(plan.day))

    def append_all(self, drafts: Sequence[EntryDraft]) -> list[StoredMemory]:
        """Writes memories of one moment, each into the file of its day, with one heading and one wait for each file.

        Those without a date belong to today. Those whose text stands there already are left out; a `key` does not
        count.

        Raises:
            InvalidRequest: The file of a day is not UTF-8; nothing was written into it.
            StorageFailed: The disk did not take them; the file is as it was, and those of earlier days stay.
        """
        if not drafts:
            return []
        with self._documents.writing():
            now = self._now()
            days = [draft.date or now.date() for draft in drafts]
            memories: dict[int, StoredMemory] = {}
            for day in sorted(set(days)):
                places = [at for at, each_day in enumerate(days) if each_day == day]
                written_memories = self._append_drafts([drafts[at] for at in places], day, now, headings=False)
                memories |= zip(places, written_memories, strict=True)
            return [memories[at] for at in range(len(drafts))]

    def _append_drafts(
        self, drafts: Sequence[EntryDraft], day: dt.date, now: dt.datetime, *, headings: bool
    ) -> list[StoredMemory]:
        """Writes drafts on a page, each below a heading of its own or all below one."""
        path = _path_of(day)
        for _ in range(ATTEMPTS):
            revision, page = self._page(day)
            if not page.is_utf8:
                self._mend(path)
                continue
            known_entries = [page.find(draft) for draft in drafts]
            missing = [draft for draft, entry in zip(drafts, known_entries, strict=True) if entry is None]
            if missing:
                # What is put on the page is more than what is on the disk, until that has it.
                self._pages.pop(day)
            added_text = _put_on(page, missing, now, headings=headings)
            # With nothing to add, too: who wrote them may have died before the disk had them.
            revision = self._documents.append(path, added_text.encode(), expected=revision)
            if revision is not None:
                self._pages[day] = revision, page
                entries = [page.newest(draft) for draft in drafts]
                return [
                    _stored_memory(entry, day, duplicate=before is not None)
                    for entry, before in zip(entries, known_entries, strict=True)
                    if entry is not None
                ]
        raise kept_changing(path)

    def _mend(self, path: str) -> None:
        """Takes half a character off the end of a page: its write was cut short before it was answered.

        Raises:
            InvalidRequest: It is in another encoding.
        """
        raw, revision = self._documents.read(path)
        whole = whole_bytes(raw)
        if not ends_within_character(raw[whole:]):
            raise not_utf8(path, raw)
        self._documents.replace(path, raw[:whole], expected=revision)

    def _page(self, day: dt.date) -> tuple[Revision | None, Page]:
        """The page of a day, with its revision: the one that is remembered, if the file has not changed since."""
        path = _path_of(day)
        revision = self._documents.revision(path)
        page = self._pages.get(day)
        if page is not None and page[0] == revision:
            return page
        if revision is None:
            return None, Page(day, "")
        raw, revision = self._documents.read(path)
        page = self._pages[day] = revision, Page(day, raw.decode("utf-8", "surrogateescape"))
        return page


def _put_on(page: Page, drafts: Sequence[EntryDraft], now: dt.datetime, *, headings: bool) -> str:
    """Puts drafts on a page; gives the text that is to be appended to its file."""
    # What is noted for another day was not said on it.
    at = now if now.date() == page.day else None
    additions = list[Addition]()
    for draft in drafts:
        # The same text twice among them is one entry.
        if page.find(draft) is None:
            additions.append(page.plan(draft, f"{now:%H:%M}" if headings or not additions else None, at))
            page.add(additions[-1])
    return "".join(addition.text for addition in additions)


def _path_of(day: dt.date) -> str:
    return f"memory/{day}.md"


def _stored_memory(entry: Entry, day: dt.date, *, duplicate: bool = False) -> StoredMemory:
    return StoredMemory(
        memory_id=entry.memory_id,
        path=_path_of(day),
        start_line=entry.start_line,
        end_line=entry.end_line,
        duplicate=duplicate,
    )

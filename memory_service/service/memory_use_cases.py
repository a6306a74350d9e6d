"""The half of `MemoryService` that is about memories: entries and files, one method per use case.

Invariants: each takes the name of a workspace first; requests and answers are the values of `memory_service.schemas`;
what cannot be written makes no workspace; what is named by words is erased only where they name one memory.
"""

from __future__ import annotations

import datetime as dt
import json
from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from indexer import EVERGREEN, EXTRA_MARK, SearchFilter, session_path
from indexer.common import THROTTLE
from indexer.language import not_same_line
from memory_service.errors import Conflict, InvalidRequest, NotFound
from memory_service.home import citation
from memory_service.memories.daily_notes import NotePlan
from memory_service.memories.drafts import checked_change, checked_origin, checked_tags, entry_draft
from memory_service.memories.entries import EntryFilter
from memory_service.memories.file_text import check_range, read_range
from memory_service.memories.workspaces import memory_path, stored_path
from memory_service.runtime import search_answers
from memory_service.runtime.index_answers import translate_errors
from memory_service.schemas.base import make_request
from memory_service.schemas.entries import (
    MAX_LISTED,
    ChangedEntry,
    EntryChange,
    ForgottenMemory,
    MemoryEntries,
    MemoryEntry,
    Removal,
    StoredMemory,
)
from memory_service.schemas.memories import (
    ChangedFacts,
    Distinction,
    ErasedFile,
    ErasedVersions,
    FileText,
    FileVersions,
    MemoryFile,
    Origin,
    ReceiptList,
    WrittenFile,
)
from memory_service.schemas.roles import NotedOrigin, WhoseWord

if TYPE_CHECKING:
    from memory_service.config import Settings
    from memory_service.runtime.handles import Handle, Original
    from memory_service.runtime.keyed_answers import Attempt, KeyedAnswers
    from memory_service.service.short_term import WorkspaceSessions
    from memory_service.service.workspace import OpenWorkspaces

# Of what a search finds, so much is looked at for the words of a memory that is to be forgotten, and so much shown
# where none has them.
_LOOKED_AT = 100
_SUGGESTED = 5
_MEMORIES = SearchFilter(sources=("memory",))


class MemoryUseCases(ABC):
    """The use cases of entries and files."""

    keyed_answers: KeyedAnswers
    settings: Settings
    _workspaces: OpenWorkspaces

    @abstractmethod
    def sessions(self, workspace: str, *, make: bool = False) -> WorkspaceSessions:
        """The parts that work on the sessions of a workspace; see `MemoryService.sessions`."""

    def remember(
        self,
        workspace: str,
        text: str,
        *,
        tags: Collection[str] = (),
        date: dt.date | None = None,
        origin: Origin | None = None,
        session_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> StoredMemory:
        """Append an entry to the file of its day; durable and searchable when this returns.

        Args:
            workspace: Its name; made if it is not there.
            text: What to remember.
            tags: Appended to the text as #tags.
            date: The day it belongs to; today unless given.
            origin: Who says so; the agent unless given.
            session_id: The conversation it comes from.
            idempotency_key: Names the request, so that the same again stores nothing again.
        """
        # A memory that cannot be stored makes no workspace.
        draft = entry_draft(text, tags=tags, date=date, origin=origin, session_id=session_id)

        memory = self._workspaces.memory(workspace, make=True)
        if idempotency_key is None:
            return memory.remember(draft)

        written_memory: StoredMemory | None = None

        def store(attempt: Attempt) -> bytes:
            nonlocal written_memory
            plan = NotePlan.read(attempt.plan)
            if attempt.is_resumed:
                written_memory = memory.files.notes.find_written(draft, plan)
            if written_memory is not None:
                # The first attempt may have ended before it was indexed.
                stored_memory = memory.index_entry(written_memory)
            else:
                # An attempt that goes on with one of yesterday is of its day.
                stored_memory = memory.remember(replace(draft, date=plan.day))
            return stored_memory.model_dump_json().encode()

        content = json.dumps([draft.text, str(date), dict(draft.fields)]).encode()
        answer, is_replayed = self.keyed_answers.answer(
            workspace, "remember", idempotency_key, content, store, lambda: memory.files.notes.plan(draft).to_bytes()
        )
        return StoredMemory.model_validate_json(answer).model_copy(
            update={"replayed": is_replayed or written_memory is not None}
        )

    def files(self, workspace: str) -> list[MemoryFile]:
        """All memory files, by path."""
        return self._workspaces.readable(workspace).files.list()

    @THROTTLE.foreground()
    def get(
        self, workspace: str, path: str, start_line: int = 1, lines: int | None = None, *, version: str | None = None
    ) -> FileText:
        """A range of lines of a memory file, of a version of one, or of a file of an extra folder that the index lists.

        Args:
            workspace: Its name.
            path: The file.
            start_line: The first line.
            lines: How many; 2,000 at most.
            version: The id of an earlier version, as `versions` lists it.
        """
        memory = self._workspaces.readable(workspace)
        if version is not None:
            check_range(start_line, lines)
            return memory.files.history.read(stored_path(memory.files.documents, path), version, start_line, lines)
        if path.startswith(EXTRA_MARK):
            with translate_errors():
                path = memory.index.listed_path(path)
            check_range(start_line, lines)
            raw = self._workspaces.storage.workspace(workspace).read_extra(path)
            return read_range(raw, path, start_line=start_line, lines=lines)
        return memory.files.read(stored_path(memory.files.documents, path), start_line=start_line, lines=lines)

    def versions(self, workspace: str, path: str) -> FileVersions:
        """The earlier versions of a memory file, the last replaced first; none where the storage has no history."""
        files = self._workspaces.readable(workspace).files
        return files.history.versions(stored_path(files.documents, path))

    def erase_versions(self, workspace: str, path: str) -> ErasedVersions:
        """Erase the earlier versions of a memory file, which stays as it is."""
        memory = self._workspaces.memory(workspace)
        path = stored_path(memory.files.documents, path)
        if not memory.files.history.versions(path).versions:
            return ErasedVersions(path=path, versions=0)
        with memory.erasures.under_way():
            return ErasedVersions(
                path=path, versions=memory.files.erase_versions(path), pending=memory.erasures.pending()
            )

    def original(self, workspace: str, handle: str, *, session_id: str | None = None) -> Original:
        """The text that a handle stands for; see `memory_service.runtime.handles`.

        Args:
            workspace: Its name.
            handle: A path, with or without lines, or messages such as `log:12`.
            session_id: The session of such messages, where the handle does not name it.
        """
        from memory_service.runtime.handles import original_of_file, original_of_messages, read_handle

        read = read_handle(handle)
        if not read.path:
            return original_of_messages(read, self.sessions(workspace).store, session_id)
        return original_of_file(
            read,
            partial(self.get, workspace),
            self._workspaces.readable(workspace).files.entries.of_file,
        )

    def put(
        self, workspace: str, path: str, text: str, *, if_match: str | None = None, if_none_match: bool = False
    ) -> WrittenFile:
        """Replace a file that is still what the caller saw, or make a new one."""
        checked_memory_path = memory_path(path)
        # A file that has to be there already makes no workspace.
        memory = self._workspaces.memory(workspace, make=if_match is None)
        stored_text = stored_path(memory.files.documents, checked_memory_path)
        return memory.write(stored_text, text, if_match=if_match, if_none_match=if_none_match)

    def delete(self, workspace: str, path: str, *, if_match: str | None = None) -> ErasedFile:
        """Erase a file from disk and index, and look for it; with an etag only if the file still has that."""
        memory = self._workspaces.memory(workspace)
        return memory.delete(stored_path(memory.files.documents, path), if_match=if_match)

    # Entries

    def entries(
        self,
        workspace: str,
        *,
        tags: Collection[str] = (),
        origin: NotedOrigin | None = None,
        session_id: str | None = None,
        since: dt.date | None = None,
        until: dt.date | None = None,
        path: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> MemoryEntries:
        """Entries, those of the newest day first and there the last one; then those of files without a day.

        Args:
            workspace: Its name.
            tags: Only those that have all of these tags.
            origin: Only those that are somebody's word; what was written by hand is the user's.
            session_id: Only those that were taken from a session.
            since: Only those of that day or later.
            until: Only those of that day or earlier.
            path: Only those of one file.
            limit: The most of them.
            cursor: `next_cursor` of the list before this one.
        """
        if not 1 <= limit <= MAX_LISTED:
            raise InvalidRequest(f"A list has 1 to {MAX_LISTED} entries, not {limit}. Ask for more with its cursor.")
        files = self._workspaces.readable(workspace).files
        wanted_filter = EntryFilter(
            tags=checked_tags(tags),
            role=checked_origin(origin) if origin is not None else None,
            session_id=session_id,
            since=since,
            until=until,
            path=stored_path(files.documents, memory_path(path)) if path else "",
        )
        entries, following = files.entries.list_entries(wanted_filter, limit=limit, after=cursor or "")
        return MemoryEntries(entries=[entry.to_memory_entry() for entry in entries], next_cursor=following or None)

    def entry(self, workspace: str, memory: str) -> MemoryEntry:
        """One entry.

        Args:
            workspace: Its name.
            memory: Its id, or where it stands, such as `memory/2026-11-20.md#L12`.
        """
        long_term = self._workspaces.readable(workspace)
        entries = long_term.files.entries
        if (place := _place(memory)) is None:
            return entries.get(memory).to_memory_entry()
        there = [
            entry
            for entry in entries.of_file(stored_path(long_term.files.documents, place.path))
            if not entry.entry.is_empty and entry.entry.touches(place.first or 1, place.last or place.first or 1)
        ]
        if len(there) != 1:
            raise NotFound(
                f"There are {len(there)} memories at {repr(memory)[1:-1][:80]}, not one. Give the id of one."
            )
        return there[0].to_memory_entry()

    def edit(
        self,
        workspace: str,
        memory: str,
        *,
        text: str | None = None,
        tags: Collection[str] | None = None,
        origin: Origin | None = None,
        etag: str | None = None,
    ) -> ChangedEntry:
        """Change an entry; it keeps its id, its day and its place, and its new words are those of who changes it.

        Args:
            workspace: Its name.
            memory: The id of the entry, or where it stands, such as `memory/2026-11-20.md#L12`.
            text: What it says from now on; without tags at its end it keeps those of the entry.
            tags: The tags at its end, instead of those that it has.
            origin: Who changes it; the user unless given.
            etag: Version of the text that is changed; any, unless given.

        Raises:
            NotFound: There is no such entry.
            Conflict: Its words are of a higher authority, or another entry says just that.
            PreconditionFailed: It was changed meanwhile.
        """
        own = None if tags is None else checked_tags(tags)
        change = checked_change(make_request(EntryChange, text=text, tags=own, origin=origin))
        memory_id = memory if _place(memory) is None else self.entry(workspace, memory).memory_id
        memory_entry, left = self._workspaces.memory(workspace).change(memory_id, change, etag=etag)
        return ChangedEntry(**dict(memory_entry), degraded=left)

    def forget(
        self, workspace: str, memory: str | None = None, *, query: str | None = None, dry_run: bool = False
    ) -> ForgottenMemory:
        """Erase an entry, lines, a file or a message from its file and from the index.

        Args:
            workspace: Its name.
            memory: The id of an entry; or where it stands, as a result cites it: lines of a file, a file, or messages
                of a session. An entry goes whole.
            query: Words that stand in one memory alone.
            dry_run: Erase nothing, tell what would go.

        Raises:
            NotFound: There is no such thing.
            Conflict: Another entry carries the same id, or several memories have those words; nothing was erased.
        """
        if (memory is None) == (query is None):
            raise InvalidRequest("What is to be forgotten is named by a memory or by words, one of both. Give that.")
        if memory is None:
            return self._forget_named(workspace, query or "", dry_run=dry_run)
        if (place := _place(memory)) is None:
            if not dry_run:
                return self._workspaces.memory(workspace).forget(memory)
            return _would_go([self._workspaces.readable(workspace).files.entries.get(memory).removal()])
        if place.session_id is not None:
            return self._forget_messages(workspace, place, dry_run=dry_run)
        documents = self._workspaces.readable(workspace).files.documents
        return self._forget_place(workspace, stored_path(documents, place.path), place, dry_run=dry_run)

    def receipts(self, workspace: str, *, session_id: str | None = None, limit: int = 50) -> ReceiptList:
        """The newest receipts, those of a session or of all; the newest first."""
        if not 1 <= limit <= MAX_LISTED:
            raise InvalidRequest(f"A list has 1 to {MAX_LISTED} receipts, not {limit}. Ask for fewer.")
        records = self._workspaces.receipts(workspace).newest(limit, session_id or "")
        fusion = self.settings.ranking.fusion
        return ReceiptList(receipts=[search_answers.receipt(record, fusion=fusion) for record in records])

    def changed_facts(self, workspace: str, *, limit: int = 50) -> ChangedFacts:
        """The facts of the memory files that had several values, the last changed first."""
        with translate_errors():
            facts = self._workspaces.readable(workspace).index.changed_facts(SearchFilter(sources=("memory",)))
        return search_answers.changed_facts(facts[:limit])

    def distinguish(
        self, workspace: str, first: str, second: str, *, idempotency_key: str | None = None
    ) -> StoredMemory:
        """Note that two statements are not about the same thing, so that none replaces the other."""
        request = make_request(Distinction, first=first, second=second)
        text = not_same_line(request.first, request.second)
        return self.remember(workspace, text, origin="user", idempotency_key=idempotency_key)

    def _forget_place(self, workspace: str, path: str, place: Handle, *, dry_run: bool) -> ForgottenMemory:
        first, last = (place.first, place.last) if place.first else (1, _ALL)
        if dry_run:
            return _would_go(self._workspaces.readable(workspace).files.entries.within(path, first, last))
        memory = self._workspaces.memory(workspace)
        if place.first:
            return memory.forget_lines(path, first, last)
        removals = [
            removal.model_copy(update={"text": None}) for removal in memory.files.entries.within(path, first, last)
        ]
        file = memory.delete(path)
        return ForgottenMemory(
            path=path, paths=[path], removed=removals, erased=file.erased, degraded=list(file.degraded)
        )

    def _forget_messages(self, workspace: str, place: Handle, *, dry_run: bool) -> ForgottenMemory:
        if "#L" not in place.words:
            raise InvalidRequest(f"{place.words} is a whole session. Delete the session, or name its messages.")
        store, session_id = self.sessions(workspace).store, place.session_id or ""
        pairs = [
            (seq, text)
            for seq, text in store.iter_messages(session_id, media=False)[0]
            if place.first <= seq <= place.last
        ]
        path = session_path(session_id)
        removals = [
            Removal(path=path, citation=citation(path, seq, seq), role=_role_of(text), text=text if dry_run else None)
            for seq, text in pairs
        ]
        if dry_run and removals:
            return _would_go(removals)
        messages = store.erase(session_id, [seq for seq, _ in pairs] or [place.first])
        return ForgottenMemory(
            path=path, paths=[path], removed=removals, erased=messages.erased, degraded=messages.degraded
        )

    def _forget_named(self, workspace: str, words: str, *, dry_run: bool) -> ForgottenMemory:
        """Erase the one memory that has some words."""
        removals, other_removals = self._candidates(workspace, words)
        if dry_run:
            return _would_go(removals or other_removals[:_SUGGESTED], named_count=len(removals))
        if len(removals) != 1:
            count = len(removals) or "no"
            raise Conflict(
                f"These words stand in {count} memories, and nothing was erased. A dry run shows them, or the nearest; "
                "forget one by its id."
            )
        return self.forget(workspace, removals[0].memory_id or removals[0].citation)

    def _candidates(self, workspace: str, words: str) -> tuple[list[Removal], list[Removal]]:
        """Memories that have some words, and others that a search finds for them."""
        memory = self._workspaces.readable(workspace)
        with translate_errors():
            hits = memory.search(words, limit=_LOOKED_AT, passing=_MEMORIES, snippets=False).hits
        removals = dict[str, Removal]()
        for hit in hits:
            first, last = hit.passage.start_line, hit.passage.end_line
            # A file that was cut since it was indexed has no such lines any more.
            with suppress(NotFound):
                for removal in memory.files.entries.within(hit.path, first, last):
                    removals.setdefault(removal.memory_id or removal.citation, removal)
        text = _fold_text(words)
        named_removals = [
            each_removal for each_removal in removals.values() if text in _fold_text(each_removal.text or "")
        ]
        return named_removals, [
            each_removal for each_removal in removals.values() if each_removal not in named_removals
        ]


# More lines than any file has.
_ALL = 999_999_999


def _place(memory: str) -> Handle | None:
    """Where a memory stands; None for an id."""
    from memory_service.runtime.handles import read_handle

    if "#L" not in memory and "/" not in memory and memory not in EVERGREEN:
        return None
    return read_handle(memory)


def _role_of(message: str) -> WhoseWord:
    role = json.loads(message).get("role")
    return "assistant" if role == "assistant" else "user" if role == "user" else "tool"


def _would_go(removals: Collection[Removal], *, named_count: int | None = None) -> ForgottenMemory:
    """An erasure that is not done, with the words that would go."""
    ids, paths = {removal.memory_id for removal in removals}, list(dict.fromkeys(removal.path for removal in removals))
    return ForgottenMemory(
        memory_id=ids.pop() if len(ids) == 1 else None,
        path=paths[0] if paths else "",
        paths=paths,
        removed=list(removals),
        dry_run=True,
        named=named_count,
    )


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split())

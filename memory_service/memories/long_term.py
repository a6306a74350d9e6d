"""The long-term memory of one workspace: its Markdown files and the index over them, kept together.

Invariants: a write is on disk before the index hears of it, and in the index before it is answered; a
write that the index cannot take is kept and says so; no lock is held while a text is embedded.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, get_args

from indexer import (
    EmbeddingError,
    Index,
    IndexerError,
    Mode,
    SearchFilter,
    SearchResults,
    StoredPassage,
    StoreFull,
    StoreOutdated,
    SyncPlan,
    SyncProgress,
    SyncReport,
    current_first,
    session_path,
)
from indexer.common import LRU, THROTTLE
from memory_service.errors import InvalidRequest
from memory_service.memories import indexing
from memory_service.memories.drafts import EntryDraft
from memory_service.memories.entries import forgotten_memory
from memory_service.memories.erasures import Erasures
from memory_service.memories.indexing import (
    ConcurrencyProbe,
    DeferredRefresh,
    IndexMoves,
    IndexRefresher,
    IndexRenewal,
    MissingVectorHealing,
    WaitingFiles,
    all_waiting,
    interleave_hits,
    sync_files,
    unread_logs,
)
from memory_service.memories.overlap import stated_among
from memory_service.memories.store import MemoryStore
from memory_service.memories.unindexed import OpenLogs, UnindexedMessages
from memory_service.schemas.base import Erased
from memory_service.schemas.entries import EntryChange, ForgottenMemory, MemoryEntry, StoredMemory
from memory_service.schemas.memories import ErasedFile, Order, WrittenFile
from memory_service.text.retelling import retells_any
from memory_service.text.similarity import groups_of

_log = logging.getLogger("memory_service.memories.long_term")
_Write = Callable[[Callable[[], Sequence[StoredMemory]]], Sequence[StoredMemory]]

_LOOK_EVERY_SECONDS = 1.0
_LOOK_SHARE = 0.02  # of the time, at most, may a look for changes take
# Where nobody tells of changes, and where another thread looks, no answer is of an older look without saying so.
_LOOK_AGE_SECONDS = 2.0
_LOOK_PATIENCE_SECONDS = 1.0
_KEPT_SESSIONS = 1_024
_ORDERED = 100  # where memories go first, they are taken out of so many of the best
# A search waits so long for what was just said; a chat's few messages take some milliseconds.
_PATIENCE_SECONDS = 2.0
# The writer of a large file waits so long for its index; clients give up after 30 s.
_WRITE_SECONDS = 10.0
_HEALED_PASSAGES = 64  # get the vector that they lack from a search, the others behind it: .1 s of MiniLM


class LongTermMemory:
    """Long-term memory of one workspace: files and index.

    Args:
        files: The Markdown files.
        index: The index of the same folder.
        erasures: Of all that is kept in the workspace.
        logs: Gives the logs of its sessions, when they are needed.
        rests: Whether only what takes no time is indexed here, and the rest left to another process; see `is_behind`.
    """

    def __init__(
        self, files: MemoryStore, index: Index, erasures: Erasures, logs: OpenLogs, *, rests: bool = False
    ) -> None:
        self.files = files
        self.index = index
        self.erasures = erasures
        self._refresher = IndexRefresher(index)
        self._looking = threading.Lock()
        self._look_again = 0.0
        self._looked_at = -math.inf
        self._behind: tuple[str, ...] = ()
        self._was_filled = False
        self._rests = rests
        self._sessions = DeferredRefresh(self._index_sessions, rests=rests)
        self._just_said = UnindexedMessages(logs, lambda path, first: index.passages_of([path], first=first))
        self._searching = ConcurrencyProbe()
        self._large = DeferredRefresh(
            lambda paths: sync_files(self.index, paths, cancelled=lambda: self._large.is_closed), rests=rests
        )
        self._vectors = DeferredRefresh(lambda _: "; ".join((*self._finish(), *self._healing.heal(None))), rests=rests)
        self._healing = MissingVectorHealing(index, lambda: self._vectors.is_closed, lambda: self._vectors.note(""))
        self._renewal = IndexRenewal(index, rests=rests)
        self._moves = IndexMoves(index, rests=rests)
        self._ready: LRU[str, tuple[int, int]] = LRU(_KEPT_SESSIONS)

    @THROTTLE.foreground()
    def remember(self, draft: EntryDraft) -> StoredMemory:
        """Append an entry and index it; `degraded` says what of that failed after it was on disk."""
        return self.index_entry(self.files.notes.append(draft))

    def index_entry(self, memory: StoredMemory) -> StoredMemory:
        """Index an entry that is in its file; `degraded` says what of that failed."""
        missing = self._refresh([memory.path])
        return memory.model_copy(update={"degraded": missing}) if missing else memory

    def remember_all(
        self, drafts: Sequence[EntryDraft], *, write: _Write = lambda append: append()
    ) -> tuple[list[StoredMemory | None], list[str]]:
        """Append those facts to the files of their days that no memory states yet, and index them.

        Args:
            drafts: The facts.
            write: Calls what stores the new ones, and holds and stores what belongs to that.

        Returns:
            Where each stands, None for one that was known and was not written; and what failed after they were on
            disk, or kept a known fact from being found.
        """
        texts = [draft.text for draft in drafts]
        behind = self._look()
        known_numbers, unread_texts = stated_among(self.index, texts)
        missing = [*behind, *unread_texts]
        fresh = [first for first, *more in groups_of(texts) if known_numbers.isdisjoint((first, *more))]
        fresh = [at for at in fresh if not retells_any(texts[at], texts[:at])]
        entries = write(lambda: self.files.notes.append_all([drafts[at] for at in fresh]))
        if not fresh:
            return [None] * len(drafts), missing
        # Another process may have written the same meanwhile.
        memories = {at: entry for at, entry in zip(fresh, entries, strict=True) if not entry.duplicate}
        paths = list(dict.fromkeys(entry.path for entry in entries))
        return [memories.get(at) for at in range(len(drafts))], [*missing, *self._refresh(paths)]

    @THROTTLE.foreground()
    def write(self, path: str, text: str, *, if_match: str | None, if_none_match: bool) -> WrittenFile:
        """Replace or make a file and index it; `degraded` says what of that failed after it was on disk."""
        if if_match is None or not self.files.loses(path, text):
            etag, left = self._write(path, text, if_match=if_match, if_none_match=if_none_match)
            return WrittenFile(path=path, etag=etag, degraded=left)
        # Whoever takes a line out may mean it to be gone.
        with self._erasing() as left:
            etag, missing = self._write(path, text, if_match=if_match, if_none_match=if_none_match)
            left += [*missing, *self._scrub()]
        return WrittenFile(path=path, etag=etag, degraded=left)

    def _write(self, path: str, text: str, *, if_match: str | None, if_none_match: bool) -> tuple[str, list[str]]:
        etag = self.files.write(path, text, if_match=if_match, if_none_match=if_none_match)
        if len(text) <= indexing.INLINE_BYTES:
            return etag, self._refresh([path])
        # However long it takes, the answer comes in time, and a small memory beside it does not wait.
        self._large.note(path)
        outcome = self._large.drain(_WRITE_SECONDS)
        if outcome is None:
            return etag, [f"index: {path} is being indexed ({len(text):,} characters). Ask again in a moment."]
        return etag, [outcome] if outcome else []

    @THROTTLE.foreground()
    def delete(self, path: str, *, if_match: str | None = None) -> ErasedFile:
        """Erase a file from disk and index, and look for it; `degraded` says what failed after it was gone."""
        with self._erasing() as left:
            before = self._indexed_passages([path])
            self.files.delete(path, if_match=if_match)
            erasure, missing = self._erase_from_index([path], before, lambda: self.files.exists(path))
            left += missing
        return ErasedFile(path=path, erased=erasure, degraded=left)

    @THROTTLE.foreground()
    def forget(self, memory_id: str) -> ForgottenMemory:
        """Erase an entry from all files that hold it and from the index."""
        with self._erasing() as left:
            removals = [entry.removal() for entry in self.files.entries.forget(memory_id)]
            paths = list(dict.fromkeys(removal.path for removal in removals))
            before = self._indexed_passages(paths)
            erasure, missing = self._erase_from_index(paths, before, lambda: self.files.entries.has(memory_id, paths))
            left += missing
        return forgotten_memory(removals, erased=erasure, degraded=left)

    @THROTTLE.foreground()
    def forget_lines(self, path: str, first: int, last: int) -> ForgottenMemory:
        """Erase some lines of a file, and whole the entries that have one of them, from the file and from the index."""
        with self._erasing() as left:
            before = self._indexed_passages([path])
            removals = self.files.entries.forget_lines(path, first, last)
            ids = [removal.memory_id for removal in removals if removal.memory_id]
            erasure, missing = self._erase_from_index(
                [path], before, lambda: any(self.files.entries.has(memory_id, [path]) for memory_id in ids)
            )
            left += missing
        return forgotten_memory(removals, erased=erasure, degraded=left)

    @THROTTLE.foreground()
    def change(self, memory_id: str, change: EntryChange, *, etag: str | None) -> tuple[MemoryEntry, list[str]]:
        """Change an entry, and take what it said out of the index; the entry, and what failed after it was on disk."""
        with self._erasing() as left:
            entries = self.files.entries.change(memory_id, change, etag=etag)
            left += [*self._refresh([entry.path for entry in entries]), *self._scrub()]
        return entries[0].to_memory_entry(), left

    @contextmanager
    def _erasing(self) -> Iterator[list[str]]:
        """Something is erased within the block; gives the list of what could not be done."""
        with self.erasures.under_way() as left:
            yield left
            if left:
                # The next search tries again, and names what still cannot be done.
                self._look_again = 0.0

    @property
    def is_behind(self) -> bool:
        """True if something was left for another process to index."""
        return any(value.pending for value in (self._sessions, self._large, self._vectors, self._renewal))

    def note_session(self, session_id: str) -> None:
        """Take note that a session's log has grown; it is indexed in the background, a moment later."""
        self._sessions.note(session_path(session_id))

    def session_ready(self, session_id: str, *, edition: int, upto_seq: int) -> list[str] | None:
        """Make sure that the messages of an edition of a session are searchable up to a number.

        Returns:
            Why they are not; None if it takes longer than a search waits, which goes on in the background.
        """
        path = session_path(session_id)
        ready_edition, ready_upto = self._ready.get(path) or (0, 0)
        if ready_edition == edition and ready_upto >= upto_seq:
            return []
        # A memory that is written beside it has rounds of its own, and does not wait until this is embedded.
        self._sessions.note(path)
        outcome = self._sessions.drain(_PATIENCE_SECONDS)
        if outcome is None:
            return None
        if not outcome:
            self._ready[path] = edition, upto_seq
        return [outcome] if outcome else []

    def forget_session(
        self, session_id: str, delete: Callable[[], None], in_files: Callable[[], bool]
    ) -> tuple[Erased | None, list[str]]:
        """Erase a session, or messages of it, from disk and index.

        Args:
            session_id: The session.
            delete: Erases its files, or the messages in them.
            in_files: Whether one of these is there.

        Returns:
            What a look for it shows, and what failed after it was gone from disk.
        """
        path = session_path(session_id)
        with self._erasing() as left:
            before = self._indexed_passages([path])
            delete()
            self._ready.pop(path)
            erasure, missing = self._erase_from_index([path], before, in_files)
            left += missing
        return erasure, left

    def search(
        self,
        query: str,
        *,
        limit: int,
        passing: SearchFilter,
        mode: Mode = "hybrid",
        explain: bool = False,
        snippets: bool = True,
        order: Order = "score",
        in_view: str = "",
        history: bool = False,
        spread: bool = False,
    ) -> SearchResults:
        """Search, after a look for files that people have changed, and for what was just said in sessions.

        What was just said in the session `in_view` need not be found. With `spread` several files show.

        Raises:
            InvalidRequest: There is no such order.
        """
        if order not in (orders := get_args(Order)):
            raise InvalidRequest(f"There is no order {order[:80]!r}. Use one of {', '.join(orders)}.")
        rest = {"explain": explain, "snippets": snippets, "history": history, "spread": spread}
        if order == "memory_first":
            most = max(limit, _ORDERED)
            results = self.search(query, limit=most, passing=passing, mode=mode, order="score", in_view=in_view, **rest)
            # The sort is stable: the better ones stay first.
            memories_first = sorted(results.hits, key=lambda hit: hit.source == "sessions")
            return replace(results, hits=current_first(memories_first)[:limit])
        with self._searching.enter() as alone:
            # By its words alone it could not be found by vectors.
            waits = alone or mode == "vector"
            behind = (*self._look(), *self._index_pending_sessions(passing, in_view, waits=waits))
            # Before the index is asked: what is indexed meanwhile is found by one of both.
            said_hits = None
            if indexing.BEING_SAID in behind and mode != "vector" and not self._renewal.is_due():
                waiting = self._sessions.pending - ({session_path(in_view)} if in_view else set())
                rounds = self._sessions.rounds
                said_hits = self._just_said.search(waiting, query, limit=limit, passing=passing, rounds=rounds)
            results = self._search_index(query, limit=limit, mode=mode, filter=passing, **rest)
            self._was_filled = self._was_filled or bool(results.hits)
            if not results.hits and self._was_filled and self.index.is_missing:
                # Deleted since the last look: an empty answer would be a wrong one.
                self._look_again = 0.0
                behind = (indexing.BEING_MADE,) if self._looking.locked() else self._look()
                behind = (*behind, *self._index_pending_sessions(passing, in_view, waits=waits))
                results = self._search_index(query, limit=limit, mode=mode, filter=passing, **rest)
        if said_hits is not None:
            results = replace(results, hits=current_first(interleave_hits(results.hits, said_hits, limit)))
            behind = tuple(indexing.FOUND_BY_WORDS if text == indexing.BEING_SAID else text for text in behind)
        if self.erasures.is_marked:
            still_there = [hit for hit in results.hits if self.still_in_file(hit.source, hit.path, hit.passage.text)]
            results = replace(results, hits=tuple(still_there))
        hits = tuple(self.files.entries.with_ids(results.hits))
        problems = (*results.degraded, *behind, *self._moves.problems, *filter(None, [results.unjudged]))
        return SearchResults(hits=hits, mode=results.mode, degraded=tuple(dict.fromkeys(problems)))

    def _search_index(self, query: str, **asked: Any) -> SearchResults:
        """One search of the index; no hits while one that an older version made is being made anew."""
        try:
            return self.index.search(query, **asked)
        except StoreOutdated:
            if waits := self._renewal.wait_until_readable(_PATIENCE_SECONDS):
                return SearchResults(hits=(), mode="text", degraded=(waits,))
            return self.index.search(query, **asked)

    def sync(
        self,
        paths: Collection[str],
        *,
        full: bool,
        on_progress: Callable[[SyncProgress], None] | None,
        cancelled: Callable[[], bool],
    ) -> SyncReport:
        """Bring the index up to date; see `Index.sync`. One that another model or version made is made anew."""
        self.files.sweep()
        is_unread = self._renewal.is_due()
        if paths and not full:
            self._renewal.renew(cancelled=cancelled)
        try:
            anew = full or (not paths and not is_unread and bool(self.index.rebuild_reason(fetches=True)))
            report = self.index.sync(paths, full=anew, on_progress=on_progress, cancelled=cancelled)
        except (EmbeddingError, StoreFull) as error:
            if full:
                raise
            # Nobody asked for it to be made anew, and there is no model or no room for that: it is kept up to date.
            report = self.index.sync(paths, on_progress=on_progress, cancelled=cancelled)
            part = "vector" if isinstance(error, EmbeddingError) else "index"
            report = replace(report, degraded=tuple(dict.fromkeys((*report.degraded, f"{part}: {error}"))))
        self._look_again = 0.0
        left = self._finish()
        return replace(report, degraded=(*report.degraded, *left)) if left else report

    def bring_up_to_date(self, on_progress: Callable[[SyncProgress], None] | None) -> None:
        """Index all that changed on disk, however long it takes; the next search says what could not be."""
        with self._looking:
            self._renewal.renew(on_progress=on_progress)
            try:
                plan = self.index.plan()
                report = None
                if all_waiting(plan) or plan.unsure:
                    report = self.index.sync(on_progress=on_progress)
                missing = report.degraded if report else self._healing.heal(None)
                behind = (*missing, *unread_logs(report.failed if report else plan.failures))
                if report or self.index.lags() or self.index.beside.others:
                    behind = (*behind, *self._moves.move(on_progress=on_progress))
            except IndexerError as error:
                behind = (f"index: {error}",)
            self._behind = (*behind, *self._finish())
            self._look_again = time.monotonic() + _LOOK_EVERY_SECONDS

    def leave_changes(self) -> None:
        """Index nothing any more; every search says what waits."""
        self._renewal.leave()
        with self._looking:
            try:
                plan = self.index.plan()
                lacking = (indexing.UNEMBEDDED,) if self.index.embed_missing(most=0).left else ()
                self._behind = (*filter(None, [all_waiting(plan)]), *unread_logs(plan.failures), *lacking)
            except IndexerError as error:
                self._behind = (f"index: {error}",)
            self._look_again = math.inf

    def catch_up(self, paths: Collection[str], *, cancelled: Callable[[], bool]) -> float:
        """Index what changed on disk, however much it is.

        Args:
            paths: Files to look at, there or not; all, where there are none.
            cancelled: Asked between files.

        Returns:
            How many seconds it took to see what had changed.
        """
        with self._looking:
            renew, started_time = self._renewal.renew(cancelled=cancelled), time.monotonic()
            try:
                files = self._waiting(self.index.plan(paths, missing_ok=True))
                looked_seconds = time.monotonic() - started_time
                failed_texts = self._index_all(files, cancelled) if files.paths else ()
            except IndexerError as error:
                looked_seconds, failed_texts = time.monotonic() - started_time, renew or (f"index: {error}",)
            if failed_texts or not paths:
                self._behind = (*failed_texts, *self._finish(), *self._healing.heal(None, cancelled))
        if not paths:
            self._moves.note()
        return looked_seconds

    def _index_all(self, files: WaitingFiles, cancelled: Callable[[], bool]) -> tuple[str, ...]:
        if files.is_small:
            # Together with what the service writes itself: of a file that both mean, its texts are embedded once.
            return tuple(self._refresh(files.paths))
        before = self._behind
        self._behind = (f"index: {files.summary} are being indexed. Ask again in a moment.",)
        named_paths = files.paths if len(files.paths) <= indexing.NAMED_PATHS else ()
        try:
            report = self.index.sync(named_paths, missing_ok=True, cancelled=cancelled)
        finally:
            self._behind = before
        return report.degraded

    def close(self) -> None:
        """Give back what the index holds; what still waits is indexed by the next search."""
        for part in (self._sessions, self._large, self._vectors, self._moves, self._renewal, self.index):
            part.close()

    def _refresh(self, paths: Collection[str]) -> list[str]:
        if waits := self._renewal.wait_until_readable(_WRITE_SECONDS):
            return [waits]
        outcome = self._refresher.refresh(paths)
        if not outcome:
            # The model answers, if there is one: whatever else lacks a vector need not wait.
            self._healing.hasten()
            self._moves.note()
        return [outcome] if outcome else []

    def _index_sessions(self, paths: Collection[str]) -> str:
        """Index logs in the background; a long one holds up no write, and ends with the service."""
        if waits := self._renewal.wait_until_readable(_WRITE_SECONDS):
            return waits
        try:
            report = self.index.sync(paths, missing_ok=True, cancelled=lambda: self._sessions.is_closed)
        except IndexerError as error:
            return f"index: {error}"
        logs = unread_logs(report.failed)
        self._moves.note()
        if logs or report.degraded:
            # The next look names what is missing, as every one after it does.
            self._look_again = 0.0
        return "; ".join((*logs, *report.degraded))

    def _index_pending_sessions(self, passing: SearchFilter, in_view: str, *, waits: bool) -> tuple[str, ...]:
        """Have what was just said indexed, if one may wait for it and that takes no time; else say that it waits."""
        if passing.sources and "sessions" not in passing.sources:
            return ()
        but = session_path(in_view) if in_view else ""
        if not waits:
            # Several search at once: a round for each would have all of them wait, and the index change under them.
            return (indexing.BEING_SAID,) if self._sessions.pending - {but} else ()
        outcome = self._sessions.drain(_PATIENCE_SECONDS, but=but)
        return (indexing.BEING_SAID,) if outcome is None else tuple(filter(None, [outcome]))

    def still_in_file(self, source: str, path: str, text: str) -> bool:
        """True if files still have a passage: what is erased may not be gone from the index, or a prompt, yet."""
        if source == "sessions":
            return self._just_said.is_said(path, text if self.erasures.is_marked else "")
        return source != "memory" or self.files.says(path, text)

    def _indexed_passages(self, paths: Collection[str]) -> tuple[StoredPassage, ...] | None:
        """Passages that the index holds of some files; None if it cannot be read."""
        with suppress(IndexerError):  # it says why when it is brought up to date
            return self.index.passages_of(paths)
        return None

    def _erase_from_index(
        self, paths: Collection[str], before: Collection[StoredPassage] | None, in_files: Callable[[], bool]
    ) -> tuple[Erased | None, list[str]]:
        """Take what is gone from files out of the index, and look for it; what a look shows, and what failed."""
        missing, scrub = self._refresh(paths), self._scrub()
        if missing and not scrub:
            # On a full disk, what the log of the index took is room for another try.
            missing, scrub = self._refresh(paths), self._scrub()
        missing, pending = list(dict.fromkeys([*missing, *scrub])), self.erasures.pending()
        try:
            passages = self.index.erased_passages(before, paths) if before is not None else None
        except IndexerError as error:
            return None, [*missing, f"index: {error}"]
        if passages is None:
            return None, missing
        left = (*(["files"] if in_files() else ()), *passages.left)
        if left:
            where = " and ".join(left)
            missing.append(f"index: what was erased is still in {where}. Run `memory-service reindex --full`.")
        checked_places = [place for place in ("files", *passages.checked) if place not in left]
        return Erased(passages=passages.passages, checked=checked_places, pending=pending), missing

    def _scrub(self) -> list[str]:
        """Take what is gone from files out of the prompts and out of the index; what of that failed."""
        left = [*self.erasures.sweep_copies(), *self.erasures.erase_answers()]
        try:
            # Of a rebuild that runs, what it made is looked at when it has ended.
            return left if self.index.scrub() else [*left, indexing.BEING_REBUILT]
        except IndexerError as error:
            return [*left, f"index: {error}"]

    def recover(self) -> None:
        """Remove what killed processes left half-written; end the erasures that they began in the background."""
        self.files.sweep()
        self.erasures.sweep_copies()
        if self.erasures.is_marked:
            self._vectors.note("")

    def _finish(self) -> list[str]:
        return self.erasures.end_broken(self._end_erasures)

    def _end_erasures(self) -> list[str]:
        try:
            if self.index.beside.running:
                return [indexing.BEING_REBUILT]
            self.index.sync(cancelled=lambda: self._vectors.is_closed)
            return self._scrub()
        except IndexerError as error:
            return [f"index: {error}"]

    def _look(self) -> tuple[str, ...]:
        """Index what changed since the last look, if it is little; else, or if another one looks, say so."""
        if (started_time := time.monotonic()) < self._look_again:
            return self._behind
        is_old = started_time - self._looked_at > _LOOK_AGE_SECONDS
        with THROTTLE.waiting():
            has_turn = self._looking.acquire(timeout=_LOOK_PATIENCE_SECONDS if is_old else 0.0)
        if not has_turn:
            return self._behind or ((indexing.BEING_LOOKED,) if is_old else ())
        try:
            if time.monotonic() >= self._look_again:  # else another thread has looked meanwhile
                looked_seconds, behind = self._catch_up()
                self._behind = (*behind, *self._finish(), *self._healing.heal(0 if self._rests else _HEALED_PASSAGES))
                self._looked_at = started_time
                latest = math.inf if self.index.source.folders else started_time + _LOOK_AGE_SECONDS
                pause = max(_LOOK_EVERY_SECONDS, looked_seconds / _LOOK_SHARE)
                self._look_again = min(time.monotonic() + pause, latest)
        finally:
            self._looking.release()
        return self._behind

    def _catch_up(self) -> tuple[float, tuple[str, ...]]:
        """Duration of the check for changes, and the files left for later."""
        started_time = time.thread_time()  # waiting for a database costs nothing
        if waits := self._renewal.wait_until_readable(_PATIENCE_SECONDS):
            return 0.0, (waits,)
        try:
            plan = self.index.plan()
        except IndexerError as error:
            return 0.0, (f"index: {error}",)
        looked_seconds = time.thread_time() - started_time
        files, logs = self._waiting(plan), unread_logs(plan.failures)
        if self._rests and not files.is_tiny:
            self._large.note("")
            return looked_seconds, (f"index: {files.summary} are to be indexed. Ask again in a moment.", *logs)
        if not files.is_small:
            return looked_seconds, (f"index: {files.summary} wait. {indexing.RUN_REINDEX}", *logs)
        return looked_seconds, (*(self._refresh(files.paths) if files.paths else ()), *logs)

    def _waiting(self, plan: SyncPlan) -> WaitingFiles:
        """Part of a plan to index now; session logs are left for later."""
        for path in (file.path for file in (*plan.added, *plan.suspects, *plan.unsure) if file.source == "sessions"):
            self._sessions.note(path)
        return WaitingFiles.of(plan)

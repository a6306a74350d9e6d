"""Sync of a store with the files: planned, carried out, and again for what other processes changed meanwhile.

Files are read, passages compared, new ones embedded, and all of it is stored in small transactions.

Invariants: a file's state is stored together with its passages, so an interrupted run continues where it stopped; what
takes about a second to embed is stored before more is embedded; no transaction is open while a text is embedded; a file
that fails keeps the passages of an earlier run; a change of another process is planned anew, never overwritten.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from indexer.documents.incremental import Growth, Logs, Splitter
from indexer.documents.transcripts import is_known_log
from indexer.embeddings.base import Embedder
from indexer.errors import StoreLocked, SyncCancelled
from indexer.language.breadcrumbs import embedded_text
from indexer.language.facts import facts_of, things_of
from indexer.language.names import greeted_name
from indexer.language.ornaments import ornament
from indexer.language.search_terms import passage_terms
from indexer.language.terms import has_term_rules
from indexer.sources.base import Content, Source, SourceFile
from indexer.stores.base import FileState, FileWrite, IndexStore, NewPassage, StoredPassage, Written, passages_of
from indexer.sync.plan import PassageDiff, SyncPlan, compare, text_hash
from indexer.sync.vectors import BATCH_TEXTS, TextVectors, fill_in
from indexer.types import FileFailure, Fingerprint, Passage, SourceKind, SyncProgress, SyncReport

# Without a model what a transaction itself costs counts, and how long it keeps other writers waiting: 10-20 ms.
# Source: 26,000 passages/s with 256, 29,000 with 1,024, 30,000 with 4,096 (our measurement).
_BATCH_LINES = 1024
_BATCH_CHARS = 256 * 1024
_BATCH_PORTIONS = 200
# So much is read before the first of it is stored, so that the number of passages is known.
_AHEAD_BYTES = 4 * 1024 * 1024
_UNREADABLE = "its reading met a defect, which the log names; each reindex tries it again"
_UNKNOWN_LOG = "it is a session log in a format that is not known here; move it away"

Progress = Callable[[SyncProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Portion:
    """All that changes in a file, or one slice of it for a large file."""

    content: Content
    state: FileState
    diff: PassageDiff
    first: bool = True
    last: bool = True


_UNREAD = PassageDiff(inserted=(), moved=(), removed=())


@dataclass(slots=True, kw_only=True)
class _Tally:
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: list[FileFailure] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRun:
    """Result of one run, and the paths that another process changed during it: plan these again."""

    report: SyncReport
    refused: tuple[str, ...]


class Sync:
    """One run that brings an index up to date. Use once.

    Args:
        source: The files.
        store: The store of the index.
        embedder: Makes the vectors; None stores text alone.
        fingerprint: Expected fingerprint of the index: another process may rebuild it meanwhile.
        max_bytes: Larger files of each kind are refused.
        splitter: Remembers memory files between runs.
        logs: Remembers session logs between runs.
        on_progress: Called once the work is known, and after every batch.
        cancelled: Asked between files and batches.
    """

    def __init__(
        self,
        source: Source,
        store: IndexStore,
        embedder: Embedder | None,
        *,
        fingerprint: Fingerprint,
        max_bytes: Mapping[SourceKind, int],
        splitter: Splitter | None = None,
        logs: Logs | None = None,
        on_progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._source = source
        self._store = store
        self._vectors = TextVectors(store, embedder, fingerprint, self._check_cancelled)
        self._fingerprint = fingerprint
        self._max_bytes = max_bytes
        self._splitter = splitter or Splitter()
        self._logs = logs or Logs()
        self._on_progress = on_progress
        self._cancelled = cancelled
        self._tally = _Tally()
        self._notes: list[FileWrite] = []
        self._batch_texts = BATCH_TEXTS if embedder else _BATCH_LINES
        self._revisions: dict[str, int] = {}
        self._progress = SyncProgress(done=0, total=0, done_bytes=0, total_bytes=0, passages=0, path="")
        self._read_bytes = self._read_passages = 0

    def run(self, plan: SyncPlan, states: dict[str, FileState], paths: Collection[str] = ()) -> SyncRun:
        """Carry out a plan, then embed passages without a vector.

        Args:
            plan: The plan.
            states: The states that it was made from.
            paths: The files and folders that it is about; empty means all.

        Raises:
            SyncCancelled: `cancelled` said so; finished batches stay.
            StoreError: The index cannot be written.
        """
        started_time = time.monotonic()
        work = [*plan.suspects, *plan.unsure, *plan.added]
        total_bytes = sum(file.size_bytes for file in work)
        self._progress = replace(self._progress, total=len(work) + len(plan.removed), total_bytes=total_bytes)
        if self._on_progress and self._progress.total:
            self._on_progress(self._progress)
        self._tally.unchanged = plan.unchanged
        self._tally.failed += plan.failures
        # A renamed file shows as one removed and one added: it leaves its vectors to the new one first.
        early, late = ((), plan.removed) if plan.added else (plan.removed, ())
        self._forget(early, states)
        portions = chain.from_iterable(map(self._slices, _read_ahead(self._portions(work, states))))
        for batch in self._batches(portions):
            self._check_cancelled()
            self._store_batch(batch)
        self._store_notes()
        self._forget(late, states)
        fill_in(
            self._store,
            self._fingerprint,
            self._vectors,
            paths=paths or None,
            before_batch=self._check_cancelled,
            after_batch=self._advance_vectors,
        )
        report = self._report(time.monotonic() - started_time)
        return SyncRun(report=report, refused=tuple(dict.fromkeys(self._tally.refused)))

    def _report(self, seconds: float) -> SyncReport:
        tally = self._tally
        return SyncReport(
            added=tally.added,
            changed=tally.changed,
            removed=tally.removed,
            unchanged=tally.unchanged,
            failed=tuple(sorted(tally.failed, key=lambda failure: failure.path)),
            embedded=self._vectors.embedded,
            reused=self._vectors.reused,
            seconds=seconds,
            degraded=tuple(dict.fromkeys(self._vectors.problems)),
        )

    def _forget(self, paths: Iterable[str], states: dict[str, FileState]) -> None:
        for batch in self._removals(paths, states):
            self._check_cancelled()
            refused_texts = self._write(batch).refused
            self._tally.refused += refused_texts
            self._tally.removed += len(batch) - len(refused_texts)
            for write in batch:
                self._advance(write.path, 0)

    def _removals(self, paths: Iterable[str], states: dict[str, FileState]) -> Iterator[list[FileWrite]]:
        batch, passages = dict[str, list[StoredPassage]](), 0
        for path in paths:
            batch[path] = passages_of(self._store, path)
            passages += len(batch[path])
            if passages >= BATCH_TEXTS or len(batch) >= _BATCH_PORTIONS:
                yield self._removal(batch, states)
                batch, passages = {}, 0
        if batch:
            yield self._removal(batch, states)

    def _removal(self, known_passages: dict[str, list[StoredPassage]], states: dict[str, FileState]) -> list[FileWrite]:
        terms = self._terms_of(chain.from_iterable(known_passages.values()))
        return [
            FileWrite(
                path=path,
                state=None,
                expected_revision=states[path].revision,
                removed=tuple((passage.key, terms[passage.key]) for passage in passages),
            )
            for path, passages in known_passages.items()
        ]

    def _portions(self, files: Sequence[SourceFile], states: dict[str, FileState]) -> Iterator[_Portion]:
        for file in files:
            self._check_cancelled()
            content = self._source.read(file, max_bytes=self._max_bytes[file.source])
            if file.source == "sessions" and not content.failure and not is_known_log(content.raw):
                content = replace(content, failure=_UNKNOWN_LOG)
            diff = ornament("files", _UNREAD, self._diff, content, states.get(file.path))
            if diff is _UNREAD:
                # The others go on. It is not settled, so that each sync tries it again: another version may read it.
                content = replace(content, failure=_UNREADABLE, checked_ns=0)
                diff = self._diff(content, states.get(file.path))
            if diff is None:
                self._read_bytes += file.size_bytes
                self._advance(file.path, file.size_bytes)
                continue
            state = self._state(content, states.get(file.path))
            self._read_bytes += file.size_bytes
            self._read_passages += len(diff.inserted)
            yield _Portion(content=content, state=state, diff=diff)

    def _diff(self, content: Content, before: FileState | None) -> PassageDiff | None:
        """Differences of a file's passages; None if only its state is to be noted, which is done here."""
        path = content.file.path
        if content.failure:
            self._tally.failed.append(FileFailure(path=path, reason=content.failure))
            self._note(self._state(content, before))
            return None
        stored_hash = before.content_hash if before and not before.failure else ""
        if stored_hash == content.content_hash:
            self._tally.unchanged += 1
            self._note(self._state(content, before))
            return None
        if content.file.source == "sessions":
            return self._log_diff(content, before, stored_hash)
        growth = self._splitter.read(content.text, path, content_hash=content.content_hash, stored_hash=stored_hash)
        return self._compare(growth, path, before)

    def _log_diff(self, content: Content, before: FileState | None, stored_hash: str) -> PassageDiff:
        path = content.file.path
        growth = self._logs.read(
            content.raw,
            path,
            content_hash=content.content_hash,
            stored_hash=stored_hash,
            check=self._check_cancelled,
        )
        if not growth.first:
            return self._compare(growth, path, before)
        return PassageDiff(inserted=tuple(enumerate(growth.passages, growth.first)), moved=(), removed=())

    def _compare(self, growth: Growth, path: str, before: FileState | None) -> PassageDiff:
        passages = passages_of(self._store, path, first=growth.first) if before else []
        return compare(growth.passages, passages, path=path, first=growth.first)

    def _state(self, content: Content, before: FileState | None) -> FileState:
        state = FileState(
            *content.file,
            checked_ns=content.checked_ns,
            content_hash=content.content_hash,
            failure=content.failure,
            revision=before.revision if before else 0,
        )
        return settled_state(self._source, state)

    def _note(self, state: FileState) -> None:
        """Add the state of a file with unchanged passages to the next batch of states."""
        self._notes.append(FileWrite(path=state.path, state=state, expected_revision=state.revision))
        if len(self._notes) >= _BATCH_LINES:
            self._store_notes()

    def _store_notes(self) -> None:
        if self._notes:
            notes, self._notes = self._notes, []
            self._tally.refused += self._write(notes).refused

    def _write(self, writes: Sequence[FileWrite]) -> Written:
        return self._store.write(writes, made_with=self._fingerprint)

    def _store_batch(self, portions: Sequence[_Portion]) -> None:
        if self._progress.total_passages != self._all_passages():
            self._advance("", 0, files=0)
        texts = [
            embedded_text(passage, portion.state.path) for portion in portions for _, passage in portion.diff.inserted
        ]
        vectors = self._vectors.of({text_hash(text): text for text in texts})
        terms = self._terms_of(stored_passage for portion in portions for stored_passage in portion.diff.removed)
        written_value = self._write([self._file_write(portion, vectors, terms) for portion in portions])
        self._plan_changed_again([portion for portion in portions if portion.state.path not in written_value.refused])
        for portion in portions:
            path = portion.state.path
            self._revisions[path] = written_value.revision
            if path in written_value.refused:
                self._tally.refused.append(path)
            elif portion.last and portion.state.revision:
                self._tally.changed += 1
            elif portion.last:
                self._tally.added += 1
            if portion.last:
                self._advance(path, portion.content.file.size_bytes, passages=len(portion.diff.inserted))
            else:
                self._advance(path, 0, files=0, passages=len(portion.diff.inserted))

    def _plan_changed_again(self, portions: Iterable[_Portion]) -> None:
        """Have files planned again that were removed, replaced or cut since they were read: they may have been erased.

        Those that were new are removed first, as an erasure that found none of their passages will not look again. It
        has seen those of all others, or its own write is refused and it looks again: what they still have is found
        meanwhile.
        """
        gone = {portion.state.path: portion.state for portion in portions if self._source.is_gone(portion.content.file)}
        self._tally.refused += gone
        new_paths = [path for path, state in gone.items() if not state.revision]
        if not new_paths:
            return
        states = self._store.file_states(new_paths)
        for batch in self._removals(states, states):
            self._write(batch)
        with suppress(StoreLocked):
            self._store.scrub()

    def _file_write(
        self, portion: _Portion, vectors: dict[bytes, bytes], terms: Mapping[int, tuple[str, ...]]
    ) -> FileWrite:
        state = portion.state
        if not portion.last:
            # As if never read, the file is read again by the next run, which finds this slice already there.
            state = state._replace(content_hash="", checked_ns=0)
        return FileWrite(
            path=state.path,
            state=state,
            expected_revision=state.revision if portion.first else self._revisions[state.path],
            inserted=tuple(
                _new_passage(state.path, ordinal, passage, vectors) for ordinal, passage in portion.diff.inserted
            ),
            moved=portion.diff.moved,
            removed=tuple((stored_passage.key, terms[stored_passage.key]) for stored_passage in portion.diff.removed),
            stated=tuple((key, things_in(state.path, passage)) for key, _, passage in portion.diff.moved),
        )

    def _terms_of(self, passages: Iterable[StoredPassage]) -> Mapping[int, tuple[str, ...]]:
        """Terms that passages were stored with, by key; where other rules made them, as all of the index tells."""
        known_passages = [*passages]
        if not known_passages or has_term_rules(self._fingerprint):
            return {passage.key: passage_terms(passage.passage, passage.path) for passage in known_passages}
        values: dict[int, list[str]] = {passage.key: [] for passage in known_passages}
        for posting in self._store.postings(None, among=values):
            for key, times in zip(posting.keys.tolist(), posting.counts.tolist(), strict=True):
                values[key] += [posting.term] * times
        return {key: tuple(terms) for key, terms in values.items()}

    def _advance(self, path: str, size_bytes: int, *, files: int = 1, passages: int = 0) -> None:
        now = self._progress
        self._progress = replace(
            now,
            done=now.done + files,
            done_bytes=now.done_bytes + size_bytes,
            passages=now.passages + passages,
            path=path or now.path,
            total_passages=self._all_passages(),
        )
        if self._on_progress:
            self._on_progress(self._progress)

    def _advance_vectors(self, passages: int) -> None:
        self._read_passages += passages
        self._advance("", 0, files=0, passages=passages)

    def _all_passages(self) -> int:
        """Number of passages to store: of the files that were read, and by their measure of the others."""
        unread_count = self._progress.total_bytes - self._read_bytes
        share = self._read_passages / self._read_bytes if self._read_bytes else 0.0
        return self._read_passages + round(share * unread_count)

    def _check_cancelled(self) -> None:
        if self._cancelled():
            now = self._progress
            raise SyncCancelled(
                f"The reindex was stopped after {now.done} of {now.total} files and {now.passages} passages. "
                "Run it again to go on from there."
            )

    @property
    def _batch_chars(self) -> int:
        """Most characters of a batch: what takes about a second to embed, so that no more than that is lost."""
        return min(_BATCH_CHARS, self._vectors.chars_at_once) if self._vectors.can_embed else _BATCH_CHARS

    def _slices(self, whole: _Portion) -> Iterator[_Portion]:
        inserted_pairs = whole.diff.inserted
        chars = sum(len(passage.text) for _, passage in inserted_pairs)
        size = max(1, min(self._batch_texts, self._batch_chars * len(inserted_pairs) // max(1, chars)))
        starts = range(0, max(1, len(inserted_pairs)), size) if len(inserted_pairs) > 2 * size else (0,)
        size = size if len(starts) > 1 else len(inserted_pairs)
        for number, start in enumerate(starts):
            part = replace(whole.diff, inserted=inserted_pairs[start : start + size])
            if number:
                part = replace(part, moved=(), removed=())
            yield replace(whole, diff=part, first=number == 0, last=number == len(starts) - 1)

    def _batches(self, portions: Iterator[_Portion]) -> Iterator[list[_Portion]]:
        batch: list[_Portion] = []
        texts = chars = 0
        for portion in portions:
            batch.append(portion)
            texts += len(portion.diff.inserted)
            chars += sum(len(passage.text) for _, passage in portion.diff.inserted)
            full = texts >= self._batch_texts or chars >= self._batch_chars or len(batch) >= _BATCH_PORTIONS
            # A file that is not complete ends the batch: its next slice needs the revision of this one.
            if full or not portion.last:
                yield batch
                batch, texts, chars = [], 0, 0
        if batch:
            yield batch


def _read_ahead(portions: Iterator[_Portion]) -> Iterator[_Portion]:
    """The same portions, some of them read before the first is given."""
    waiting, size_bytes = deque[_Portion](), 0
    for portion in portions:
        waiting.append(portion)
        size_bytes += portion.content.file.size_bytes
        while size_bytes > _AHEAD_BYTES:
            size_bytes -= waiting[0].content.file.size_bytes
            yield waiting.popleft()
    yield from waiting


def _new_passage(path: str, ordinal: int, passage: Passage, vectors: dict[bytes, bytes]) -> NewPassage:
    hashed_text_hash = text_hash(embedded_text(passage, path))
    return NewPassage(
        ordinal=ordinal,
        passage=passage,
        text_hash=hashed_text_hash,
        terms=passage_terms(passage, path),
        vector=vectors.get(hashed_text_hash),
        greeted=ornament("greetings", "", greeted_name, passage.text),
        things=things_in(path, passage),
    )


def things_in(path: str, passage: Passage) -> tuple[int, ...]:
    """Things that the facts of a passage are about, as the store keeps them."""

    def read() -> tuple[int, ...]:
        return things_of(facts_of(passage.text, passage.heading, passage.label, path))

    return ornament("facts", (), read)


def settled_state(source: Source, state: FileState) -> FileState:
    """The state as it is stored: without the time of its reading where a later change need not show."""
    return state if source.is_settled(state) else state._replace(checked_ns=0)

"""Syncs of an index with its source: in place, or by a rebuild beside the index in use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from indexer.common import THROTTLE
from indexer.compatibility import IndexCompatibility
from indexer.documents.incremental import Logs, Splitter
from indexer.embeddings.base import Embedder
from indexer.engine.reader_manager import ReaderManagers
from indexer.errors import StoreReplaced, SyncCancelled
from indexer.sources.base import Source
from indexer.stores.base import FileState, IndexStore, Unembedded
from indexer.sync.plan import SyncPlan, SyncPlanner
from indexer.sync.rebuild import Rebuild
from indexer.sync.run import Sync
from indexer.sync.runner import SyncControl, SyncRunner, SyncRuns, refresh_facts
from indexer.sync.vectors import TextVectors, fill_in
from indexer.types import Fingerprint, MissingVectors, SourceKind, SyncProgress, SyncReport

_ROUNDS = 20


class IndexSync:
    """Syncs of one index.

    Args:
        source: The files.
        store: The index.
        compatibility: Its embedder.
        readers: Its data in memory.
        max_bytes: Larger files of each kind are refused.
    """

    def __init__(
        self,
        source: Source,
        store: IndexStore,
        compatibility: IndexCompatibility,
        readers: ReaderManagers,
        *,
        max_bytes: Mapping[SourceKind, int],
    ) -> None:
        self._source = source
        self._store = store
        self._compatibility = compatibility
        self._readers = readers
        self._max_bytes = max_bytes
        self._planner = SyncPlanner(source)
        self._runs = SyncRuns()
        self._splitter = Splitter()
        self._logs = Logs()

    @property
    def progress(self) -> SyncProgress | None:
        """Progress of the largest sync; None if none runs."""
        return self._runs.progress

    def plan(self, paths: Collection[str], *, missing_ok: bool) -> tuple[SyncPlan, dict[str, FileState]]:
        """The plan of a sync, and the states that it was made from."""
        return self._planner.plan(self._store, paths, missing_ok=missing_ok)

    def run(
        self, paths: Collection[str], control: SyncControl, *, full: bool, missing_ok: bool, words_only: bool
    ) -> SyncReport:
        """Bring the index up to date; see `Index.sync`."""
        with self._runs.observe(control) as seen_control:
            if full and self._compatibility.is_filled:
                return self._rebuild(seen_control)
            if not paths and self._compatibility.is_unread:
                anew = self._rebuild(seen_control, words_only=True)
                report = anew if words_only else self._update((), False, missing_ok, seen_control)
                return replace(
                    anew, embedded=report.embedded, reused=anew.reused + report.reused, degraded=report.degraded
                )
            for _ in range(_ROUNDS):
                with suppress(StoreReplaced):
                    return self._update(paths, full, missing_ok, seen_control, words_only=words_only)
            return self._update(paths, full, missing_ok, seen_control, words_only=words_only)

    def _update(
        self, paths: Collection[str], full: bool, missing_ok: bool, control: SyncControl, *, words_only: bool = False
    ) -> SyncReport:
        fingerprint, degraded = self._compatibility.begin(full=full, briefly=bool(paths))
        control = control.giving_way()
        embedder = None if words_only else self._compatibility.embedder(fingerprint)
        runner = self._runner(embedder, fingerprint, control, self._splitter, self._logs)
        with THROTTLE.foreground() if paths else THROTTLE.background():
            report = runner.fill(self._store, () if full else paths, missing_ok=missing_ok, is_shown=True)
            if not paths:
                refresh_facts(self._store, self._source, fingerprint, control)
        return replace(report, degraded=(*report.degraded, *degraded, *(() if paths else self._readers.pack())))

    def embed_missing(self, most: int | None, cancelled: Callable[[], bool]) -> MissingVectors:
        """Give passages that were stored without a vector theirs; see `Index.embed_missing`."""
        with suppress(StoreReplaced):
            return self._fill(most, cancelled)
        return self._fill(most, cancelled)

    def _fill(self, most: int | None, cancelled: Callable[[], bool]) -> MissingVectors:
        fingerprint = self._store.head().fingerprint
        if fingerprint is None or not self._store.passages(Unembedded(1)):
            return MissingVectors()
        problem = self._compatibility.answers()
        if problem:
            return MissingVectors(problems=(f"vector: {problem}",), left=True, away=True)
        fingerprint, _ = self._compatibility.begin(full=False, briefly=True)

        def before_batch() -> None:
            if cancelled():
                raise SyncCancelled(
                    "The embedding of what lacks a vector was stopped. The next run goes on from there."
                )

        vectors = TextVectors(self._store, self._compatibility.embedder(fingerprint), fingerprint, before_batch)
        with THROTTLE.foreground() if most else THROTTLE.background(), suppress(SyncCancelled):
            fill_in(self._store, fingerprint, vectors, most=most, before_batch=before_batch)
        problems = tuple(dict.fromkeys(vectors.problems))
        return MissingVectors(
            embedded=vectors.embedded, problems=problems, left=bool(self._store.passages(Unembedded(1)))
        )

    def _rebuild(self, control: SyncControl, *, words_only: bool = False) -> SyncReport:
        """Make the index anew beside the one in use, and take it into use; its vectors may come later."""
        fingerprint = self._compatibility.learned_or_words() if words_only else self._compatibility.learn_fingerprint()

        def adopt(store: IndexStore) -> None:
            self._readers.make_ready(store, fingerprint.dimensions or None)

        runner = self.rebuild_runner(fingerprint, control.giving_way(), words_only=words_only)
        report, unembedded_texts = Rebuild(self._store, fingerprint, runner, adopt=adopt).run()
        if unembedded_texts and not words_only:
            self._update(unembedded_texts, False, True, SyncControl())
        return report

    def rebuild_runner(self, fingerprint: Fingerprint, control: SyncControl, *, words_only: bool = False) -> SyncRunner:
        """Runner that fills a generation that is made so, without disturbing what is remembered of the files."""
        embedder = None if words_only else self._compatibility.embedder(fingerprint)
        return self._runner(embedder, fingerprint, control, Splitter(), Logs())

    def _runner(
        self, embedder: Embedder | None, fingerprint: Fingerprint, control: SyncControl, splitter: Splitter, logs: Logs
    ) -> SyncRunner:
        """Runner of syncs for a store that was made so."""

        def make_sync(store: IndexStore, embedder: Embedder | None, control: SyncControl) -> Sync:
            return Sync(
                self._source,
                store,
                embedder,
                fingerprint=fingerprint,
                max_bytes=self._max_bytes,
                splitter=splitter,
                logs=logs,
                on_progress=control.on_progress,
                cancelled=control.cancelled,
            )

        return SyncRunner(self._planner, make_sync, embedder, control)

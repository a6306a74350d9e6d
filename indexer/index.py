"""`Index`: a workspace folder, its store and its embedder, held together; syncs in place, or by a rebuild beside it.

Invariants: what a sync has stored is found by every search that begins after it, in every process; the files are the
truth, and nothing here writes to them; no lock is held while a text is embedded.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from indexer.common import THROTTLE
from indexer.compatibility import IndexCompatibility, IndexStatus, rebuild_reason
from indexer.documents.incremental import Logs, Splitter
from indexer.embeddings.base import Embedder
from indexer.embeddings.bundled import LanguageChoice
from indexer.embeddings.reranking import Reranker, Reranking
from indexer.engine.ranking import RankingSettings
from indexer.engine.reader import IndexReader, find_erased
from indexer.engine.reader_manager import PACK_PASSAGES, ReaderManagers
from indexer.engine.relevance import Calibration, bundled_calibration
from indexer.engine.search import Query, check_query
from indexer.errors import SourceMissing, StoreReplaced, SyncCancelled
from indexer.index_search import IndexSearch
from indexer.language.facts import FACT_RULES, UNREAD_FACTS
from indexer.sources.base import Source
from indexer.sources.folders import FileSource
from indexer.sources.writing import WritingSample
from indexer.stores import DEFAULT_STORE, open_store
from indexer.stores.base import BesideState, FileState, IndexStore, StoredPassage, Unembedded, passages_of
from indexer.sync.plan import SyncPlan, SyncPlanner, failures
from indexer.sync.rebuild import Rebuild, partial_state, scrub_others
from indexer.sync.run import Progress, Sync
from indexer.sync.runner import SyncControl, SyncRunner, SyncRuns, not_cancelled, refresh_facts
from indexer.sync.vectors import TextVectors, fill_in
from indexer.types import (
    ErasedPassages,
    Fingerprint,
    MissingVectors,
    Mode,
    SearchFilter,
    SearchResults,
    SourceKind,
    Statement,
    SyncProgress,
    SyncReport,
)


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


DEFAULT_MAX_FILE_BYTES = 8 * 1024 * 1024
DEFAULT_MAX_LOG_BYTES = 64 * 1024 * 1024
_ROUNDS = 20
# So long a status waits for what it can do without.
_STATUS_SECONDS = 0.2


class Index:
    """The memories and the conversations of one workspace, searchable.

    Args:
        source: The files: the workspace folder, or another source of them.
        embedder: Makes vectors; None searches by words alone. Of a choice, the one is taken that fits what the
            workspace is written in. One whose texts are as near each other as those of another model, say as another
            export of it, may have its fingerprint as `calibrated_as`.
        store: Where passages are kept: the name of a store, "sqlite" (the file `<root>/index.sqlite`), or the store
            itself.
        ranking: How results are ordered.
        max_file_bytes: Larger memory files are refused, by name.
        max_log_bytes: Larger session logs are refused, by name.
        pack_passages: Larger indexes are packed: searched by compact codes first.
        today: The day that recency and "yesterday" count from.
        zone: The time zone that the days of session logs are told in; None is the machine's.
        reranker: Has a second look at the best hits; None leaves them as the ranking has them.
        calibration: Tells how relevant hits are; None is the bundled one.

    Attributes:
        source: What it is made of.

    Safe to use from several threads, and beside other processes on the same folder.
    """

    def __init__(
        self,
        source: Source | Path,
        embedder: Embedder | LanguageChoice | None,
        *,
        store: IndexStore | str = DEFAULT_STORE,
        ranking: RankingSettings = RankingSettings(),  # noqa: B008  (frozen)
        max_file_bytes: int = DEFAULT_MAX_FILE_BYTES,
        max_log_bytes: int = DEFAULT_MAX_LOG_BYTES,
        pack_passages: int = PACK_PASSAGES,
        today: Callable[[], dt.date] = dt.date.today,
        zone: dt.tzinfo | None = None,
        reranker: Reranker | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.source = FileSource(source) if isinstance(source, Path) else source
        self._embedder = embedder
        # True if its model is chosen by what is written, so that it may move to another.
        self.is_chosen_for = isinstance(embedder, LanguageChoice)
        self._store = open_store(store, _folder_of(self.source)) if isinstance(store, str) else store
        self._compatibility = IndexCompatibility(self._store, embedder, WritingSample(self.source).read)
        self._today = today
        self._zone = zone
        self._readers = ReaderManagers(self._store, pack_passages=pack_passages)
        self._search = IndexSearch(
            self._store,
            self._compatibility,
            self._readers,
            ranking=ranking,
            reranking=Reranking(reranker) if reranker else None,
            calibration=calibration or bundled_calibration(),
        )
        limits: dict[SourceKind, int] = {
            "memory": max_file_bytes,
            "files": max_file_bytes,
            "sessions": max_log_bytes,
        }
        self._sync = IndexSync(self.source, self._store, self._compatibility, self._readers, max_bytes=limits)

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint that this index would be made with now."""
        return self._compatibility.current

    def listed_path(self, path: str) -> str:
        """The path of a file that this index lists, given in any Unicode form, as its source has it.

        Raises:
            SourceMissing: The index lists none of this name.
        """
        path = self.source.spelling(path)
        state = self._store.file_states([path]).get(path)
        if state is None or state.failure:
            raise SourceMissing(f"The index lists no file {path!r}. Search for it, or run `memory-service reindex`.")
        return path

    @property
    def is_missing(self) -> bool:
        """True if there is no index: none was made yet, or it was deleted."""
        return self._store.head().fingerprint is None

    def is_unread(self) -> bool:
        """True if an older version made it, so that nothing is read of it; a sync of all makes it anew."""
        return self._compatibility.is_unread

    def lags(self) -> bool:
        """True if an older version made it, with other rules: it answers, and is to be made anew."""
        return self._compatibility.lags

    def rebuild_reason(self, *, fetches: bool = False) -> str:
        """Why the index should be made anew, and how; empty where it need not. To tell, a model may be fetched.

        Raises:
            StoreOutdated: A newer version made it, which is not undone by itself.
        """
        if not self.is_unread():
            self._compatibility.require_readable()
        if fetches:
            self._compatibility.identify()
        self._compatibility.choose()
        fingerprint = self._store.head().fingerprint
        return rebuild_reason(fingerprint, self.fingerprint) if fingerprint else ""

    @property
    def embedder(self) -> Embedder | None:
        """The model that questions are embedded with; None for none."""
        return self._compatibility.embedder(self._store.head().fingerprint) or self._compatibility.target_embedder

    def moves(self) -> bool:
        """True if another model is chosen by what is written now; the present one serves until a full sync."""
        self._compatibility.choose()
        return self._compatibility.is_moving(self._store.head().fingerprint)

    def plan(self, paths: Collection[str] = (), *, missing_ok: bool = False) -> SyncPlan:
        """The plan of a sync; see `sync`."""
        self._compatibility.require_readable()
        plan, _ = self._sync.plan(paths, missing_ok=missing_ok)
        return plan

    def sync(
        self,
        paths: Collection[str] = (),
        *,
        full: bool = False,
        missing_ok: bool = False,
        words_only: bool = False,
        on_progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> SyncReport:
        """Bring the index up to date with the files.

        One that an older version made and that cannot be read is made anew if no `paths` are named: by its words, which
        takes a moment, and then in place by its vectors.

        Args:
            paths: Files or folders of the workspace to look at; empty means all.
            full: Index all of it anew, whatever `paths` says, beside the index in use; an interrupted one goes on.
            missing_ok: `paths` may name what is neither on disk nor in the index.
            words_only: Store passages without vectors, which the next sync makes: they are found by words at once.
            on_progress: Told after every file.
            cancelled: Asked between files.

        Returns:
            Counts. Passages of an index that another model made get no vectors, and `degraded` says so.

        Raises:
            SourceMissing: One of `paths` is not there, or the workspace, of which there is an index.
            StoreOutdated: A newer version made the index, or an older one and `paths` are named; and `full` is not set.
            StoreBusy: The index is being rebuilt already, and is to be made anew.
            SyncCancelled: `cancelled` said so; what was written stays.
            StoreError: The index cannot be written.
        """
        try:
            self.source.require()
        except SourceMissing:
            if self.is_missing:
                return SyncReport()
            raise
        control = SyncControl(on_progress=on_progress, cancelled=cancelled)
        return self._sync.run(paths, control, full=full, missing_ok=missing_ok, words_only=words_only)

    def embed_missing(
        self, *, most: int | None = None, cancelled: Callable[[], bool] = not_cancelled
    ) -> MissingVectors:
        """Give passages that were stored without a vector theirs, if the model answers now.

        Args:
            most: Look at no more passages than this, the newest; at all, unless given.
            cancelled: Asked between batches.

        Raises:
            StoreOutdated: Another version made the index.
            StoreError: The index cannot be written.
        """
        return self._sync.embed_missing(most, cancelled) if self._embedder is not None else MissingVectors()

    def search(
        self,
        query: str,
        *,
        limit: int = 6,
        mode: Mode = "hybrid",
        filter: SearchFilter = SearchFilter(),  # noqa: B008  (frozen)
        explain: bool = False,
        snippets: bool = True,
        history: bool = False,
        spread: bool = False,
    ) -> SearchResults:
        """Find the passages that answer a question, best first; what holds now comes before what it has replaced.

        With `history`, hits tell all values that their fact ever had. With `spread`, the best hits of other files come
        before what is left of one that has several.

        Raises:
            QueryInvalid: The question is empty or over-long, or the limit is not positive.
            StoreOutdated: Another version made the index.
            StoreError: The index cannot be read.
        """
        question = Query(
            text=check_query(query, limit),
            limit=limit,
            mode=mode,
            filter=filter,
            today=self._today(),
            zone=self._zone,
            explain=explain,
            snippets=snippets,
            history=history,
            spread=spread,
        )
        return self._search.run(question)

    def changed_facts(self, filter: SearchFilter) -> list[tuple[Statement, ...]]:
        """The facts whose value was replaced, each with all its values, oldest first; the last changed first.

        Raises:
            StoreOutdated: Another version made the index.
            StoreError: The index cannot be read.
        """
        return self._search.changed_facts(filter, self._today(), self._zone)

    def status(self) -> IndexStatus:
        """How the index stands; waits neither for a sync nor for a reader to be loaded.

        Of files it reads nothing, but a sample where the model is chosen by what they are written in.
        """
        choice = self._compatibility.choose()
        head, current = self._store.head(), self.fingerprint
        fingerprint = head.fingerprint
        readable = fingerprint is not None and fingerprint.schema == current.schema
        plan, states = self._sync.plan((), missing_ok=True)
        files = len(plan.added) + len(plan.suspects) + len(plan.unsure) + plan.unchanged
        with self._store.reading():
            counts = self._store.counts() if readable else None
            packed_count, slow = self._readers.packing(counts.passages) if counts else (0, "")
        return IndexStatus(
            counts=counts,
            stored=fingerprint,
            current=current,
            pending=len(plan.added) + len(plan.suspects) + len(plan.removed),
            rebuild=partial_state(self._store, current, files),
            failed=failures(plan, states),
            problem=self._compatibility.problem,
            unjudged=self._search.why_unjudged(current),
            packed=packed_count,
            slow=slow,
            unread=UNREAD_FACTS if counts and counts.passages and head.fact_rules != FACT_RULES else "",
            syncing=self._sync.progress,
            choice=choice,
            moving=self._compatibility.is_moving(fingerprint),
        )

    @contextmanager
    def reader(self) -> Iterator[IndexReader]:
        """A reader of what is stored now, for measuring the index on its own passages.

        Raises:
            StoreError: The index cannot be read.
        """
        with self._store.reading():
            yield self._readers.reader(self._compatibility.dimensions())

    def pack(self) -> tuple[str, ...]:
        """Pack the index if it is large and that is due; what kept it from it."""
        return self._readers.pack()

    def check(self) -> None:
        """Read the whole index for damage.

        Raises:
            StoreCorrupt: It is damaged, or its packed part is.
        """
        self._store.check()
        self._readers.check()

    @property
    def beside(self) -> BesideState:
        """State of what is made beside the index: anew, by this process or another, or left of that."""
        return self._store.beside.state()

    def scrub(self) -> bool:
        """Leave no trace of removed passages in the index's files; False if a rebuild keeps it from being seen to."""
        self._readers.scrub()
        self._store.scrub()
        if self.beside.others:
            self._compatibility.choose()
        fingerprint = self.fingerprint
        return scrub_others(self._store, self._sync.rebuild_runner(fingerprint, SyncControl()), fingerprint)

    def passages_of(self, paths: Collection[str], *, first: int = 0) -> tuple[StoredPassage, ...]:
        """The passages that the index holds of some files, from a position on; from -1, the last one of each alone.

        Raises:
            StoreError: The index cannot be read.
        """
        if self.is_missing:
            return ()
        with self._store.reading():
            return tuple(passage for path in paths for passage in passages_of(self._store, path, first=first))

    def erased_passages(self, before: Collection[StoredPassage], paths: Collection[str]) -> ErasedPassages:
        """Look everywhere in the index for passages that some files held before, and hold no more.

        Raises:
            StoreError: The index cannot be read.
        """
        with self._store.reading():
            after = {passage.key for path in paths for passage in passages_of(self._store, path)}
            return find_erased(self._readers.reader(self._compatibility.dimensions()), tuple(before), after)

    def close(self) -> None:
        """Give back files and memory."""
        self._readers.close()
        self._store.close()


def _folder_of(source: Source) -> Path:
    if not source.folders:
        raise SourceMissing(f"{source.name} lies in no folder of this machine. Give the store of its index itself.")
    return source.folders[0]


def index_activity(index: Index) -> tuple[int, SyncProgress | None]:
    """A number that grows with every write, by any process, and the largest sync of this one; None if none runs."""
    return index._store.head().revision, index._sync.progress

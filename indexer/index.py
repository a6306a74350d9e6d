"""Owns `Index`: a workspace folder, its store and its embedder, held together. It computes nothing itself.

Invariants: what a sync has stored is found by every search that begins after it, in every process; the
files are the truth, and nothing here writes to them; no lock is held while a text is embedded.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from indexer import analysis, markdown, transcripts
from indexer import search as searching
from indexer.corpus import Corpus
from indexer.embeddings.base import Embedder
from indexer.errors import SourceMissing, StoreOutdated
from indexer.logs import Logs
from indexer.matrix import MATRIX_PASSAGES, Matrix, load_matrix
from indexer.plan import SyncPlan, plan_sync
from indexer.ranking import RankingSettings
from indexer.search import View
from indexer.sources import is_memory_path, is_session_path, require_folder, scan_paths, scan_workspace
from indexer.splitter import Splitter
from indexer.stores.base import FileState, IndexStore, StoreCounts
from indexer.stores.sqlite import SqliteStore
from indexer.stores.tables import SCHEMA
from indexer.sync import Progress, Sync
from indexer.types import FileFailure, Fingerprint, Mode, SearchFilter, SearchResults, SyncReport

INDEX_NAME = "index.sqlite"
DEFAULT_MAX_FILE_BYTES = 8 * 1024 * 1024
DEFAULT_MAX_LOG_BYTES = 64 * 1024 * 1024
_ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """How an index stands.

    Attributes:
        stored: What it was made with; None before the first sync.
        current: What a sync would make it with now.
        pending: Files that were added, changed or removed since the last sync.
        failed: Files that could not be indexed.
    """

    counts: StoreCounts | None
    stored: Fingerprint | None
    current: Fingerprint
    pending: int
    failed: tuple[FileFailure, ...]


class Index:
    """The memories and the conversations of one workspace, searchable.

    Args:
        root: The workspace folder.
        embedder: Makes vectors; None searches by words alone.
        store: Where passages are kept; `<root>/index.sqlite` unless given.
        ranking: How results are ordered.
        sessions: Whether session logs are indexed; without, a sync takes out those that are.
        max_file_bytes: Larger memory files are refused, by name.
        max_log_bytes: Larger session logs are refused, by name.
        today: The day that recency and "yesterday" count from.

    Safe to use from several threads, and beside other processes on the same folder.
    """

    def __init__(
        self,
        root: Path,
        embedder: Embedder | None,
        *,
        store: IndexStore | None = None,
        ranking: RankingSettings = RankingSettings(),  # noqa: B008  (frozen)
        sessions: bool = True,
        max_file_bytes: int = DEFAULT_MAX_FILE_BYTES,
        max_log_bytes: int = DEFAULT_MAX_LOG_BYTES,
        today: Callable[[], dt.date] = dt.date.today,
    ) -> None:
        self.root = root
        self._embedder = embedder
        self._store = store or SqliteStore(root / INDEX_NAME)
        self._ranking = ranking
        self._sessions = sessions
        self._max_file_bytes = max_file_bytes
        self._max_log_bytes = max_log_bytes
        self._today = today
        self._splitter = Splitter()
        self._logs = Logs()
        self._loading = threading.Lock()
        self._corpus: Corpus | None = None
        self._matrix: Matrix | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """What this index would be made with now."""
        model = self._embedder
        return Fingerprint(
            model=model.fingerprint if model else "",
            dimensions=model.dimensions if model else 0,
            rules=f"{markdown.RULES}/{transcripts.RULES}/{analysis.RULES}",
            schema=SCHEMA,
        )

    def plan(self, paths: Collection[str] = ()) -> SyncPlan:
        """What a sync would do; see `sync`."""
        plan, _ = self._plan(paths, missing_ok=False)
        return plan

    def sync(
        self,
        paths: Collection[str] = (),
        *,
        full: bool = False,
        missing_ok: bool = False,
        on_progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> SyncReport:
        """Bring the index up to date with the files.

        Args:
            paths: Files or folders of the workspace to look at; empty means all.
            full: Forget everything first and index all of it anew, whatever `paths` says. Needed after a
                change of model.
            missing_ok: Whether `paths` may name what is neither on disk nor in the index.
            on_progress: Told after every file.
            cancelled: Asked between files.

        Raises:
            SourceMissing: The workspace, or one of `paths`, is not there.
            StoreOutdated: Another model or other rules made the index, and `full` is not set.
            SyncCancelled: `cancelled` said so; what was written stays.
            StoreError: The index cannot be written.
        """
        require_folder(self.root)
        self._prepare(full=full)
        total = SyncReport()
        wanted = () if full else tuple(paths)
        for attempt in range(_ROUNDS):
            plan, states = self._plan(wanted, missing_ok=missing_ok or attempt > 0)
            run = Sync(
                self.root,
                self._store,
                self._embedder,
                fingerprint=self.fingerprint,
                max_file_bytes=self._max_file_bytes,
                max_log_bytes=self._max_log_bytes,
                splitter=self._splitter,
                logs=self._logs,
                on_progress=on_progress,
                cancelled=cancelled,
            ).run(plan, states)
            total = _added(total, run.report)
            if not run.refused:
                break
            wanted = run.refused
        return total

    def search(
        self,
        query: str,
        *,
        limit: int = 6,
        mode: Mode = "hybrid",
        kept: SearchFilter = SearchFilter(),  # noqa: B008  (frozen)
        explain: bool = False,
        snippets: bool = True,
    ) -> SearchResults:
        """Find the passages that answer a question, best first.

        Raises:
            QueryInvalid: The question is empty or over-long, or the limit is not positive.
            StoreOutdated: Other passage rules made the index.
            StoreError: The index cannot be read.
        """
        text = searching.check_query(query, limit)
        degraded: list[str] = []
        asked = searching.Query(
            text=text, limit=limit, mode=mode, kept=kept, today=self._today(), explain=explain, snippets=snippets
        )
        with self._store.reading():
            # The view begins with the first query, under the lock: it is never older than what is in memory.
            with self._loading:
                embedder = self._usable_embedder(mode, degraded)
                view = self._view(embedder)
            postings = searching.find_postings(view, text) if mode != "vector" or embedder is None else []
        vector = None
        trust = 1.0
        if embedder is not None and len(view.corpus):
            vector = searching.embed_question(embedder, searching.vector_text(text, postings, view.corpus), degraded)
            trust = searching.trust_in(embedder, text)
        done: Mode = "text" if vector is None and (len(view.corpus) or embedder is None) else mode
        asked = replace(asked, mode=done)
        with self._store.reading():
            if done == "text" and mode == "vector" and embedder is not None:
                postings = searching.find_postings(view, text)
            ranked = searching.rank(view, asked, postings, vector, trust, self._ranking)
            hits = searching.to_hits(view, asked, ranked, self._ranking)
        return SearchResults(hits=hits, mode=done, degraded=tuple(degraded))

    def status(self) -> IndexStatus:
        """How the index stands; reads no file's content."""
        stored = self._store.fingerprint()
        plan, states = self._plan((), missing_ok=True)
        return IndexStatus(
            counts=self._store.counts() if stored else None,
            stored=stored,
            current=self.fingerprint,
            pending=len(plan.added) + len(plan.suspects) + len(plan.removed),
            failed=tuple(
                FileFailure(path=state.path, reason=state.failure) for state in states.values() if state.failure
            ),
        )

    def check(self) -> None:
        """Read the whole index for damage.

        Raises:
            StoreCorrupt: It is damaged.
        """
        self._store.check()

    def scrub(self) -> None:
        """Leave no trace of removed passages in the index's files."""
        self._store.scrub()

    def close(self) -> None:
        """Give back files and memory."""
        self._corpus = self._matrix = None
        self._store.close()

    def _prepare(self, *, full: bool) -> None:
        stored, current = self._store.fingerprint(), self.fingerprint
        if stored is None or full:
            self._store.reset(current)
        elif stored != current:
            raise StoreOutdated(_outdated(stored, current))

    def _usable_embedder(self, mode: Mode, degraded: list[str]) -> Embedder | None:
        """The embedder if the stored vectors are its own; otherwise None, with the reason."""
        stored, current = self._store.fingerprint(), self.fingerprint
        if stored and (stored.rules, stored.schema) != (current.rules, current.schema):
            raise StoreOutdated(_outdated(stored, current))
        if self._embedder is None:
            if mode == "vector":
                degraded.append("vector: no embedding model is configured. Set embedding_model and run a full reindex.")
            return None
        if mode == "text":
            return None
        if stored and (stored.model, stored.dimensions) != (current.model, current.dimensions):
            degraded.append(f"vector: {_outdated(stored, current)}")
            return None
        return self._embedder

    def _view(self, embedder: Embedder | None) -> View:
        """What a search of this moment reads; what is in memory is brought up to date first."""
        corpus = self._corpus = self._store.corpus(self._corpus)
        if embedder is None or len(corpus) > MATRIX_PASSAGES:
            self._matrix = None
        elif self._matrix is None or self._matrix.corpus is not corpus:
            self._matrix = load_matrix(self._store, corpus, embedder.dimensions, self._matrix)
        return View(store=self._store, corpus=corpus, matrix=self._matrix)

    def _plan(self, paths: Collection[str], *, missing_ok: bool) -> tuple[SyncPlan, dict[str, FileState]]:
        """What a sync would do, and the states that were compared; of named files no others are looked at."""
        if paths and all(is_memory_path(path) or (self._sessions and is_session_path(path)) for path in paths):
            scan, states = scan_paths(self.root, paths), self._store.file_states(paths)
        else:
            scan, states = scan_workspace(self.root, sessions=self._sessions), self._store.file_states()
        for path in () if missing_ok else paths:
            if not any(_within(known, [path]) for known in (*scan.files, *states)) and scan.covers(path):
                raise SourceMissing(
                    f"There is no memory file, session log or folder {path!r}. "
                    "Run `memory-service status` to see what there is."
                )
        incomplete = self._store.unembedded_paths() if self._embedder else set()
        plan = plan_sync(scan, states, incomplete=incomplete, wanted=lambda path: not paths or _within(path, paths))
        return plan, states


def _within(path: str, wanted: Collection[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in wanted)


def _outdated(stored: Fingerprint, current: Fingerprint) -> str:
    if stored.model != current.model:
        what = f"made with the model {stored.model or 'none'}, and {current.model or 'none'} is configured"
    else:
        what = "made by another version"
    return f"The index was {what}. Run `memory-service reindex --full` to build it anew; no memory is lost."


def _added(total: SyncReport, report: SyncReport) -> SyncReport:
    # A further round looks again at files that another process changed under the first one's hands.
    return replace(
        report,
        added=total.added + report.added,
        changed=total.changed + report.changed,
        removed=total.removed + report.removed,
        unchanged=total.unchanged + report.unchanged,
        failed=tuple({failure.path: failure for failure in (*total.failed, *report.failed)}.values()),
        embedded=total.embedded + report.embedded,
        reused=total.reused + report.reused,
        seconds=total.seconds + report.seconds,
        degraded=tuple(dict.fromkeys((*total.degraded, *report.degraded))),
    )

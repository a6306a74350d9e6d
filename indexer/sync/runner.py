"""Runs of a sync in turn: again for what other processes changed meanwhile, shown while they run, and cancelled.

Invariants: a run in the background lets others go first; facts read with older rules are read anew, file by file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from indexer.common.throttle import THROTTLE
from indexer.embeddings.base import Embedder
from indexer.errors import SyncCancelled
from indexer.language.facts import FACT_RULES
from indexer.sources.base import Source
from indexer.stores.base import FileWrite, IndexStore, passages_of
from indexer.sync.plan import SyncPlanner
from indexer.sync.run import Progress, Sync, settled_state, things_in
from indexer.types import Fingerprint, SyncProgress, SyncReport

# A file that others change at the same time is planned at most so often.
_ROUNDS = 20


def not_cancelled() -> bool:
    """Not cancelled."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncControl:
    """Progress and cancellation of a run."""

    on_progress: Progress | None = None
    cancelled: Callable[[], bool] = not_cancelled

    def giving_way(self) -> SyncControl:
        """The same, for a run that lets others go first where it is in the background."""

        def is_cancelled() -> bool:
            THROTTLE.yield_to_foreground()
            return self.cancelled()

        return replace(self, cancelled=is_cancelled)


class SyncRuns:
    """Syncs of one index that run now, and how far they are."""

    def __init__(self) -> None:
        self._progress: dict[int, SyncProgress] = {}

    @contextmanager
    def observe(self, control: SyncControl) -> Iterator[SyncControl]:
        """A block in which a sync runs; gives its control, by which its progress is seen."""
        own = threading.get_ident()

        def on_progress(progress: SyncProgress) -> None:
            self._progress[own] = progress
            # The caller hears of what is done, and a status of what there is to do as well.
            if control.on_progress and (progress.done or progress.passages):
                control.on_progress(progress)

        self._progress[own] = SyncProgress(done=0, total=0, done_bytes=0, total_bytes=0, passages=0, path="")
        try:
            yield replace(control, on_progress=on_progress)
        finally:
            self._progress.pop(own, None)

    @property
    def progress(self) -> SyncProgress | None:
        """Progress of the largest sync; None if none runs."""
        return max(tuple(self._progress.values()), key=lambda progress: progress.total, default=None)


def refresh_facts(store: IndexStore, source: Source, made_with: Fingerprint, control: SyncControl) -> None:
    """Read the facts of all stored passages with the rules of today, where they were read with others, or never.

    Args:
        store: The index.
        source: The files that it is made of.
        made_with: Its fingerprint.
        control: Whether to go on, asked before every file.

    Raises:
        StoreReplaced: It was made anew meanwhile.
    """
    if store.head().fact_rules == FACT_RULES:
        return
    texts = tuple(store.file_states())
    while texts:
        left = list[str]()
        for path in texts:
            if control.cancelled():
                raise SyncCancelled("The reading of facts was stopped. The next reindex begins it again.")
            state = store.file_states([path]).get(path)
            if state is not None:
                pairs = tuple((passage.key, things_in(path, passage.passage)) for passage in passages_of(store, path))
                state = settled_state(source, state)
                write = FileWrite(path=path, state=state, expected_revision=state.revision, stated=pairs)
                left += store.write([write], made_with=made_with).refused
        texts = tuple(left)
    store.write([], made_with=made_with, fact_rules=FACT_RULES)


# Makes the run that carries a plan out: for a store, with an embedder or without, under somebody's control.
MakeSync = Callable[[IndexStore, Embedder | None, SyncControl], Sync]


class SyncRunner:
    """Runner that brings stores up to date with the files of one workspace.

    Args:
        planner: Compares a store with the files.
        make_sync: Makes the run that carries a plan out.
        embedder: Makes vectors; None stores text alone.
        control: Progress and cancellation of the runs that are shown; cancels all of them.
    """

    def __init__(
        self, planner: SyncPlanner, make_sync: MakeSync, embedder: Embedder | None, control: SyncControl
    ) -> None:
        self._planner = planner
        self._make_sync = make_sync
        self._embedder = embedder
        self._control = control

    def fill(
        self, store: IndexStore, paths: Collection[str] = (), *, missing_ok: bool = True, is_shown: bool = False
    ) -> SyncReport:
        """Bring a store up to date.

        Args:
            store: The store.
            paths: Files and folders to look at; empty means all.
            missing_ok: Accept `paths` that are neither on disk nor in the store.
            is_shown: Report progress.
        """
        control = self._control if is_shown else replace(self._control, on_progress=None)
        return self._rounds(store, paths, self._embedder, control, missing_ok=missing_ok)

    def fill_texts(self, store: IndexStore, paths: Collection[str]) -> SyncReport:
        """Bring a store up to date without vectors; it cannot be cancelled."""
        return self._rounds(store, paths, None, SyncControl(), missing_ok=True)

    def forget_changed(self, store: IndexStore) -> None:
        """Remove from a store every file that was removed or looks changed."""
        plan, states = self._planner.plan(store, (), missing_ok=True)
        stale = (*plan.removed, *(file.path for file in plan.suspects))
        going = replace(plan, added=(), suspects=(), unsure=(), removed=stale)
        self._make_sync(store, None, SyncControl()).run(going, states)

    def _rounds(
        self,
        store: IndexStore,
        paths: Collection[str],
        embedder: Embedder | None,
        control: SyncControl,
        *,
        missing_ok: bool,
    ) -> SyncReport:
        total = SyncReport()
        wanted_paths = tuple(paths)
        for attempt in range(_ROUNDS):
            planned_value = self._planner.plan(store, wanted_paths, missing_ok=missing_ok or attempt > 0)
            run = self._make_sync(store, embedder, control).run(*planned_value, wanted_paths)
            total = _add_reports(total, run.report)
            if not run.refused:
                break
            wanted_paths = run.refused
        else:
            reason = f"index: others changed {', '.join(run.refused)} again and again meanwhile. Ask again in a moment."
            total = replace(total, degraded=(*total.degraded, reason))
        return total


def _add_reports(total: SyncReport, report: SyncReport) -> SyncReport:
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

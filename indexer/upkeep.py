"""Owns how a store is brought up to date with the files: planned, carried out, and again where others came between.

Invariants: what another process changed meanwhile is planned anew, never written over; nothing here chooses
which store or which model that is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Protocol

from indexer.embeddings.base import Embedder
from indexer.plan import SyncPlan
from indexer.stores.base import FileState, IndexStore
from indexer.sync import Progress, SyncRun
from indexer.traffic import TRAFFIC
from indexer.types import SyncReport

_ROUNDS = 5
Planned = tuple[SyncPlan, dict[str, FileState]]


def never() -> bool:
    """Not cancelled."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """Who follows a run, and may stop it."""

    on_progress: Progress | None = None
    cancelled: Callable[[], bool] = never

    def giving_way(self) -> Following:
        """The same, of a run that lets what people wait for pass."""

        def cancelled() -> bool:
            TRAFFIC.give_way()
            return self.cancelled()

        return replace(self, cancelled=cancelled)


class Planner(Protocol):
    """Compares a store with the files."""

    def __call__(self, store: IndexStore, paths: Collection[str], *, missing_ok: bool) -> Planned:
        """What has to be done, and the states that were compared."""
        ...


class Runner(Protocol):
    """Carries a plan out."""

    def __call__(
        self,
        store: IndexStore,
        planned: Planned,
        paths: Collection[str],
        *,
        embedder: Embedder | None,
        following: Following,
    ) -> SyncRun:
        """What was done; passages of these files, or of all, that lack a vector get one too."""
        ...


class Upkeep:
    """Brings stores up to date with the files of one workspace.

    Args:
        planner: Compares a store with the files.
        runner: Carries a plan out.
        embedder: Makes vectors; None stores text alone.
        following: Who follows the runs that are shown, and may stop them all.
    """

    def __init__(self, planner: Planner, runner: Runner, embedder: Embedder | None, following: Following) -> None:
        self._plan = planner
        self._run = runner
        self._embedder = embedder
        self._following = following

    def fill(
        self, store: IndexStore, paths: Collection[str] = (), *, missing_ok: bool = True, shown: bool = False
    ) -> SyncReport:
        """Bring a store up to date.

        Args:
            store: Where passages go.
            paths: Files and folders to look at; empty means all.
            missing_ok: Whether `paths` may name what is neither on disk nor in the store.
            shown: Whether progress is told.
        """
        following = self._following if shown else replace(self._following, on_progress=None)
        return self._rounds(store, paths, missing_ok=missing_ok, embedder=self._embedder, following=following)

    def fill_texts(self, store: IndexStore, paths: Collection[str]) -> SyncReport:
        """The same, leaving the vectors for later; it cannot be stopped."""
        return self._rounds(store, paths, missing_ok=True, embedder=None, following=Following())

    def forget_changed(self, store: IndexStore) -> None:
        """Take out of a store what is not in the files any more, and every file that looks changed."""
        plan, states = self._plan(store, (), missing_ok=True)
        stale = (*plan.removed, *(file.path for file in plan.suspects))
        going = replace(plan, added=(), suspects=(), unsure=(), removed=stale)
        self._run(store, (going, states), (), embedder=None, following=Following())

    def _rounds(
        self,
        store: IndexStore,
        paths: Collection[str],
        *,
        missing_ok: bool,
        embedder: Embedder | None,
        following: Following,
    ) -> SyncReport:
        total = SyncReport()
        wanted = tuple(paths)
        for attempt in range(_ROUNDS):
            planned = self._plan(store, wanted, missing_ok=missing_ok or attempt > 0)
            run = self._run(store, planned, wanted, embedder=embedder, following=following)
            total = _added(total, run.report)
            if not run.refused:
                break
            wanted = run.refused
        return total


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

"""Properties of the work behind the answers: when it is due, how long it waits, and what stays of it.

Each stands in a function of its own, so that a mutant can ask for it alone.
"""

from __future__ import annotations

import gc
import inspect
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from indexer import SyncProgress, SyncReport
from memory_service.errors import NotFound, TooManyRequests
from memory_service.runtime import background, locks
from memory_service.runtime.background import Operations
from memory_service.runtime.locks import SessionLocks
from tests.memory_service.rooms import Room, S
from tests.memory_service.runtime.test_locks import A, B, occupied, waiting
from tests.memory_service.storage.in_memory_records import new_operations
from tests.waiting import until


def check_a_flush_is_due_where_pressure_says_so(home: Path) -> None:
    """A flush that is on is due at exactly those sizes that the budget does not call ok."""
    with Room(home, context_window=8_000) as room:
        room.talk(2)
        snapshot = room.sessions.snapshot(S)
        budget = snapshot.budget()
        marks = (1, budget.target_tokens, budget.soft_tokens, budget.hard_tokens)
        for tokens in sorted({mark + more for mark in marks for more in (-1, 0, 1)}):
            due = room.sessions.flushes.due(snapshot, tokens, budget)
            assert bool(due) == (budget.pressure(tokens) != "ok"), (tokens, budget)


def check_a_compaction_waits_once_in_all(home: Path) -> None:
    """The wait for a session and the wait for a place behind it have one time limit between them."""
    made, clock, may_leave = SessionLocks(limit=1), [0], threading.Event()

    def passes() -> bool:
        """A second goes by with each look; after six of them the session is free."""
        clock[0] += 1
        if clock[0] == 6:
            may_leave.set()
            until(lambda: not waiting(made, B))
        return False

    def stays() -> None:
        with made.session(B):
            may_leave.wait(60)

    other = threading.Thread(target=stays)
    with pytest.MonkeyPatch.context() as patch, occupied(made, A, compacting=True):
        patch.setattr(locks, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        other.start()
        until(lambda: B in made._sessions)
        with pytest.raises(TooManyRequests), made.compaction(B, timeout_seconds=10, cancelled=passes):
            pass
    other.join()
    assert clock == [10], f"it was refused after {clock[0]} seconds of 10"


def check_the_oldest_that_ended_is_forgotten(home: Path) -> None:
    """Of the operations that have ended the newest are told of; of the others the process keeps not even a switch."""
    switches = list[weakref.ref[Any]]()

    def work(on_progress: Callable[[SyncProgress], None], cancelled: Any) -> SyncReport:
        switches.append(weakref.ref(inspect.getclosurevars(cancelled).nonlocals["operation"].stop))
        return SyncReport()

    made, started = new_operations(), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background, "_KEPT", 3)
        for _ in range(12):
            started.append(made.start("w", work).operation_id)
            until(lambda: not made.running())
    made.close()
    gc.collect()
    assert [name for name in started if _is_told_of(made, name)] == started[-3:]
    assert len(switches) == 12
    assert sum(switch() is not None for switch in switches) <= 3, "what is forgotten is not let go"


def _is_told_of(made: Operations, operation_id: str) -> bool:
    try:
        return made.get("w", operation_id).state == "done"
    except NotFound:
        return False


CHECKS: tuple[Callable[[Path], None], ...] = (
    check_a_flush_is_due_where_pressure_says_so,
    check_a_compaction_waits_once_in_all,
    check_the_oldest_that_ended_is_forgotten,
)

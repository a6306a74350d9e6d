"""Properties of work behind the answers: when it is due, how long it waits, what stays of it, what an index holds.

Each stands in a function of its own, so that a mutant can ask for it alone.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from indexer import Index, SyncProgress, SyncReport
from indexer.engine.segment import Segment
from indexer.engine.segments import open_segment, pack_store
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from memory_service import lanes, operations
from memory_service.errors import TooManyRequests
from memory_service.lanes import Lanes
from memory_service.operations import Operations
from tests.indexer.stores import test_store_contract as stores
from tests.memory_service.shortterm.rooms import Room, S
from tests.memory_service.test_lanes import A, B, occupied, until, waiting


def check_a_flush_is_due_where_pressure_says_so(home: Path) -> None:
    """A flush that is on is due at exactly those sizes that the budget does not call ok."""
    with Room(home, context_window=8_000) as room:
        room.talk(2)
        look = room.sessions.look(S)
        budget = look.budget()
        marks = (1, budget.target_tokens, budget.soft_tokens, budget.hard_tokens)
        for tokens in sorted({mark + more for mark in marks for more in (-1, 0, 1)}):
            due = room.sessions.flushes.due(look, tokens, budget)
            assert bool(due) == (budget.pressure(tokens) != "ok"), (tokens, budget)


def check_a_compaction_waits_once_in_all(home: Path) -> None:
    """The wait for a session and the wait for a place behind it have one time limit between them."""
    made, clock, may_leave = Lanes(limit=1), [0], threading.Event()

    def passes() -> bool:
        """A second goes by with each look; after six of them the session is free."""
        clock[0] += 1
        if clock[0] == 6:
            may_leave.set()
            until(lambda: not waiting(made, B))
        return False

    def stays() -> None:
        with made.session(B):
            may_leave.wait(20)

    other = threading.Thread(target=stays)
    with pytest.MonkeyPatch.context() as patch, occupied(made, A, compacting=True):
        patch.setattr(lanes, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        other.start()
        until(lambda: B in made._sessions)
        with pytest.raises(TooManyRequests), made.compaction(B, timeout_seconds=10, cancelled=passes):
            pass
    other.join()
    assert clock == [10], f"it was refused after {clock[0]} seconds of 10"


def check_nothing_of_a_forgotten_operation_stays(home: Path) -> None:
    """The process keeps the switches of as many operations as it remembers, however many it has run."""
    switches = list[weakref.ref[Any]]()

    def work(on_progress: Callable[[SyncProgress], None], cancelled: Any) -> SyncReport:
        switches.append(weakref.ref(cancelled.__self__))
        return SyncReport()

    made = Operations()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "_KEPT", 3)
        for _ in range(12):
            made.start("w", work)
            until(lambda: not made.running())
    made.close()
    gc.collect()
    assert len(switches) == 12
    assert sum(switch() is not None for switch in switches) <= 3, "what is forgotten is not let go"


def check_a_vector_is_found_wherever_it_stands(home: Path) -> None:
    """A text has its vector if any file has it."""
    store = SqliteStore(home / "index.sqlite")
    store.reset(stores.MADE)
    stores.check_a_vector_is_found_wherever_it_stands(store)
    store.close()


_TALKS = (("Ann", "Bob"), ("Cleo", "Bob"), ("小鱼", "李娜"), ("Ann", "Dora"))


def check_a_scrubbed_pack_is_as_one_made_anew(home: Path) -> None:
    """Whatever file is deleted: the packed part without it says what one says that is made of the store as it is."""
    for gone in range(len(_TALKS)):
        place = home / str(gone)
        (place / "memory").mkdir(parents=True)
        for number, (one, other) in enumerate(_TALKS):
            lines = [f"- {one}: Hey {other}! word{at} of {number}\n- {other}: 好 {at}\n" for at in range(4)]
            (place / "memory" / f"2026-11-0{number + 1}.md").write_text("".join(lines), "utf-8")
        index = Index(place, HashEmbedder(), pack_passages=10)
        index.sync()
        index.pack()
        (place / "memory" / f"2026-11-0{gone + 1}.md").unlink()
        index.sync()
        index.scrub()
        index.close()
        store = SqliteStore(place / "index.sqlite")
        scrubbed = open_segment(place / "index.sqlite.pack", store.generation())
        anew = pack_store(store, place / "anew.pack")
        store.close()
        assert scrubbed is not None and anew is not None
        assert len(scrubbed) == 24
        for name, value in _content(anew).items():
            np.testing.assert_array_equal(_content(scrubbed)[name], value, f"{name}, without {_TALKS[gone]}")


def _content(segment: Segment) -> dict[str, Any]:
    """What a segment says of its rows; not when it was made, nor what its codes were fitted to."""
    rows = np.arange(len(segment))
    ranges = {name: getattr(segment, name) for name in ("pairs", "triples", "windows")}
    words = segment.postings
    return {
        **{name: getattr(segment, name) for name in ("paths", "sources", "files", "starts", "totals", "days", "cues")},
        **{name: getattr(segment, name) for name in ("labels", "greeted", "start_lines", "end_lines")},
        **{f"words.{name}": getattr(words, name) for name in ("terms", "starts", "rows", "repeated", "counts")},
        "words.containing": words.containing,
        "speakers": sorted(segment.speakers),
        "keys": segment.keys(rows),
        # Sections are told apart by their numbers, whatever these are.
        "sections": np.unique(segment.sections, return_inverse=True)[1],
        **{f"{name}.of": reach.of(rows) for name, reach in ranges.items()},
        **{f"{name}.length": reach.length for name, reach in ranges.items()},
    }


CHECKS: tuple[Callable[[Path], None], ...] = (
    check_a_flush_is_due_where_pressure_says_so,
    check_a_compaction_waits_once_in_all,
    check_nothing_of_a_forgotten_operation_stays,
    check_a_scrubbed_pack_is_as_one_made_anew,
)

"""Who works on a session when: order, limits, and no way to stand still."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.errors import CallCancelled, Conflict, InvalidRequest, TooManyRequests
from memory_service.runtime.locks import SessionKey, SessionLocks
from tests.waiting import until

A, B = ("default", "support-42"), ("default", "支持-会话")
KEYS = [A, B, ("other", "support-42")]
WATCHDOG_SECONDS = 120


def run_all(works: Sequence[Callable[[], None]]) -> None:
    """Run each in a thread of its own; fails when they do not end, or when one of them fails."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    end = time.monotonic() + WATCHDOG_SECONDS
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
    assert not any(thread.is_alive() for thread in threads), "the threads wait for each other"
    if failures:
        raise failures[0]


@contextmanager
def occupied(session_locks: SessionLocks, key: SessionKey, *, compacting: bool = False) -> Iterator[None]:
    """Another thread is in a session until the block ends."""
    inside, may_leave = threading.Event(), threading.Event()

    def stay() -> None:
        with session_locks.compaction(key) if compacting else session_locks.session(key):
            inside.set()
            may_leave.wait(WATCHDOG_SECONDS)

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    try:
        assert inside.wait(60)
        yield
    finally:
        may_leave.set()
        thread.join(60)


def enter(lane: AbstractContextManager[None]) -> None:
    with lane:
        pass


def waiting(session_locks: SessionLocks, key: SessionKey) -> int:
    return len(session_locks._sessions[key].waiting)


def test_a_compaction_inside_a_turn_does_not_wait_for_itself() -> None:
    session_locks = SessionLocks(limit=1)
    with (
        session_locks.session(A, timeout_seconds=0),
        session_locks.compaction(A, timeout_seconds=0),
        session_locks.compaction(A, timeout_seconds=0),
        session_locks.session(A, timeout_seconds=0),
    ):
        assert len(session_locks) == 1
    assert len(session_locks) == 0
    with occupied(session_locks, A, compacting=True):
        pass


def test_an_inner_block_that_ends_gives_nothing_away() -> None:
    session_locks = SessionLocks(limit=1)
    with session_locks.compaction(A):
        with session_locks.compaction(A):
            pass
        with pytest.raises(TooManyRequests):
            run_all([lambda: enter(session_locks.compaction(B, timeout_seconds=0))])
        with pytest.raises(TooManyRequests):
            run_all([lambda: enter(session_locks.session(A, timeout_seconds=0))])


def test_a_thread_in_one_session_is_refused_another() -> None:
    session_locks = SessionLocks()
    with session_locks.session(A):
        with pytest.raises(Conflict, match=r"'support-42' asked for session '支持-会话'. Do one after"):
            enter(session_locks.compaction(B))
        with pytest.raises(Conflict):
            enter(session_locks.session(KEYS[2]))
        enter(session_locks.session(A))
    enter(session_locks.compaction(B, timeout_seconds=0))
    assert len(session_locks) == 0


def test_sessions_do_not_hold_each_other_up() -> None:
    session_locks = SessionLocks(limit=1)
    with occupied(session_locks, A, compacting=True):
        enter(session_locks.session(B, timeout_seconds=0))
        enter(session_locks.session(KEYS[2], timeout_seconds=0))


@pytest.mark.parametrize("timeout_seconds", [0, 0.05])
def test_who_waited_in_vain_is_told_and_gone(timeout_seconds: float) -> None:
    session_locks = SessionLocks()
    with occupied(session_locks, B):
        before = time.monotonic()
        with pytest.raises(TooManyRequests, match=r"session '支持-会话' of workspace 'default' within .* Try again"):
            enter(session_locks.session(B, timeout_seconds=timeout_seconds))
        assert time.monotonic() - before >= timeout_seconds
        assert waiting(session_locks, B) == 0
        enter(session_locks.session(A, timeout_seconds=0))
    enter(session_locks.session(B, timeout_seconds=1))
    assert len(session_locks) == 0


def test_who_gets_no_place_for_a_compaction_gives_back_the_session() -> None:
    session_locks = SessionLocks(limit=1)
    with occupied(session_locks, A, compacting=True):
        with pytest.raises(TooManyRequests, match=r"'支持-会话'.*others compact"):
            enter(session_locks.compaction(B, timeout_seconds=0.01))
        run_all([lambda: enter(session_locks.session(B, timeout_seconds=0))])
        with session_locks.session(B), pytest.raises(TooManyRequests):
            enter(session_locks.compaction(B, timeout_seconds=0.01))
    with occupied(session_locks, B, compacting=True):
        pass


def test_a_wait_can_be_cancelled() -> None:
    session_locks, cancelled = SessionLocks(), threading.Event()

    def give_up() -> None:
        with pytest.raises(CallCancelled, match=r"'support-42'.*ask again"):
            enter(session_locks.session(A, cancelled=cancelled.is_set))

    with occupied(session_locks, A):
        thread = threading.Thread(target=give_up)
        thread.start()
        until(lambda: waiting(session_locks, A) == 1)
        cancelled.set()
        thread.join(60)
        assert not thread.is_alive() and waiting(session_locks, A) == 0
    enter(session_locks.session(A, timeout_seconds=0, cancelled=cancelled.is_set))


def test_a_wait_that_breaks_leaves_nothing_behind() -> None:
    session_locks = SessionLocks()

    def broken() -> bool:
        raise ZeroDivisionError

    with occupied(session_locks, A):
        with pytest.raises(ZeroDivisionError):
            enter(session_locks.session(A, cancelled=broken))
        assert waiting(session_locks, A) == 0
    with pytest.raises(ZeroDivisionError), session_locks.compaction(A, timeout_seconds=1):
        broken()
    assert len(session_locks) == 0


@pytest.mark.parametrize("gone", [None, 3])
def test_first_come_first_served(gone: int | None) -> None:
    session_locks, order, threads = SessionLocks(), list[int](), list[threading.Thread]()
    leave = threading.Event()

    def take_turn(number: int) -> None:
        try:
            with session_locks.session(A, cancelled=leave.is_set if number == gone else None):
                order.append(number)
        except CallCancelled:
            pass

    with occupied(session_locks, A):
        for number in range(8):
            threads.append(threading.Thread(target=take_turn, args=(number,)))
            threads[-1].start()
            until(lambda: waiting(session_locks, A) == len(threads))
        leave.set()
        until(lambda: waiting(session_locks, A) == 8 - (gone is not None))
        with pytest.raises(TooManyRequests):
            enter(session_locks.session(A, timeout_seconds=0))
    for thread in threads:
        thread.join(60)
    assert order == [number for number in range(8) if number != gone]


def test_compactions_are_served_in_order_too() -> None:
    session_locks, order, threads = SessionLocks(limit=1), list[str](), list[threading.Thread]()

    def compact(name: str) -> None:
        with session_locks.compaction(("default", name)):
            order.append(name)

    names = ["一", "二", "三", "四"]
    with occupied(session_locks, A, compacting=True):
        for name in names:
            threads.append(threading.Thread(target=compact, args=(name,)))
            threads[-1].start()
            until(lambda: len(session_locks._compactions.waiting) == len(threads))
    for thread in threads:
        thread.join(60)
    assert order == names


def test_the_second_of_two_finds_the_work_done() -> None:
    session_locks, new_messages, compactions = SessionLocks(), [40], list[int]()

    def compact() -> None:
        with session_locks.compaction(A):
            if new_messages[0]:
                time.sleep(0.02)
                compactions.append(new_messages[0])
                new_messages[0] = 0

    run_all([compact] * 6)
    assert compactions == [40]


def test_without_a_place_nothing_could_ever_run() -> None:
    with pytest.raises(InvalidRequest, match=r"is 0. Give 1"):
        SessionLocks(limit=0)


# Any program of nested blocks, run by several threads at once.


@dataclass(frozen=True)
class Block:
    """Enter a session, or compact it; do what is inside; leave."""

    key: SessionKey
    compacting: bool
    timeout_seconds: float
    fails: bool
    inner: tuple[Block, ...] = ()


def blocks(inner: st.SearchStrategy[tuple[Block, ...]]) -> st.SearchStrategy[tuple[Block, ...]]:
    one = st.builds(
        Block, st.sampled_from(KEYS), st.booleans(), st.sampled_from([0, 0.001, 15, 15, 15]), st.booleans(), inner
    )
    return st.lists(one, max_size=3).map(tuple)


PROGRAMS = st.recursive(blocks(st.just(())), blocks, max_leaves=6)


class Failed(Exception):
    """A block that was to fail."""


@dataclass
class World:
    """What happens in a run, seen from outside of the lanes."""

    session_locks: SessionLocks
    limit: int
    guard: threading.Lock = field(default_factory=threading.Lock)
    owner: dict[SessionKey, int] = field(default_factory=dict)
    depth: Counter[SessionKey] = field(default_factory=Counter)
    compacting: Counter[SessionKey] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def run(self, program: Sequence[Block], outer: SessionKey | None = None) -> None:
        for block in program:
            try:
                self._run(block)
                if outer not in (None, block.key):
                    self.faults.append("another session was let in")
            except (TooManyRequests, Failed):
                pass
            except Conflict:
                if outer in (None, block.key):
                    self.faults.append("refused without a reason")

    def _run(self, block: Block) -> None:
        lane = self.session_locks.compaction if block.compacting else self.session_locks.session
        with lane(block.key, timeout_seconds=block.timeout_seconds):
            self._come(block)
            try:
                time.sleep(0)
                self.run(block.inner, block.key)
                if block.fails:
                    raise Failed
            finally:
                self._go(block)

    def _come(self, block: Block) -> None:
        with self.guard:
            me = threading.get_ident()
            if self.owner.setdefault(block.key, me) != me:
                self.faults.append("two in one session")
            self.depth[block.key] += 1
            self.compacting[block.key] += block.compacting
            if sum(count > 0 for count in self.compacting.values()) > self.limit:
                self.faults.append("too many compactions")

    def _go(self, block: Block) -> None:
        with self.guard:
            self.depth[block.key] -= 1
            self.compacting[block.key] -= block.compacting
            if not self.depth[block.key]:
                del self.owner[block.key]


@settings(max_examples=60, deadline=None)
@given(st.lists(PROGRAMS, min_size=2, max_size=6), st.integers(1, 3))
def test_no_program_stands_still_or_meets_another(programs: list[tuple[Block, ...]], limit: int) -> None:
    world = World(SessionLocks(limit), limit)
    run_all([partial(world.run, program) for program in programs])
    assert world.faults == []
    assert len(world.session_locks) == 0
    assert not world.session_locks._session_of and not world.session_locks._compactions.inside


def test_many_turns_under_load() -> None:
    session_locks, counts = SessionLocks(limit=2), Counter[SessionKey]()

    def work() -> None:
        for turn in range(150):
            key = KEYS[turn % 3]
            with session_locks.session(key):
                seen = counts[key]
                with session_locks.compaction(key):
                    time.sleep(0)
                    counts[key] = seen + 1

    run_all([work] * 8)
    assert set(counts.values()) == {400}
    assert len(session_locks) == 0

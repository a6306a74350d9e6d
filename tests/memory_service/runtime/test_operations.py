from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer import StoreFull, SyncCancelled, SyncProgress, SyncReport
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.errors import CallCancelled, NotFound, StorageFailed, TooManyRequests
from memory_service.runtime.background import Operations, _progress_of
from memory_service.runtime.index_answers import reindex_report
from memory_service.runtime.presence import Presence
from memory_service.schemas import Operation
from memory_service.service import MemoryService
from memory_service.storage.files.shared_database import SHARED_FOLDER, DatabaseRecords, SharedDatabase
from tests.memory_service.storage.in_memory_records import MemoryCoordination, new_operations
from tests.serving import settings
from tests.storages import write_documents
from tests.waiting import until

KEPT = 1000
WORKERS = 2
REPORT = SyncReport(added=3)


class Gate:
    """Work that says when it has begun, and ends when it may or must."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, on_progress: Callable[[SyncProgress], None], cancelled: Callable[[], bool]) -> SyncReport:
        progress = SyncProgress(done=1, total=4, done_bytes=100, total_bytes=400, passages=10, path="MEMORY.md")
        on_progress(replace(progress, total_passages=40))
        self.begun.set()
        while not self.may_end.wait(0.005):
            if cancelled():
                raise SyncCancelled("It was stopped. Run it again.")
        return REPORT


@pytest.fixture
def operations() -> Iterator[Operations]:
    made = new_operations()
    yield made
    made.close()


def ended(operations: Operations, operation: Operation, workspace: str = "default") -> Operation:
    until(lambda: operations.get(workspace, operation.operation_id).state not in ("queued", "running"))
    return operations.get(workspace, operation.operation_id)


def busy(operations: Operations) -> list[Gate]:
    """Work for every worker, so that what comes next has to wait."""
    gates = [Gate() for _ in range(WORKERS)]
    for gate in gates:
        operations.start("busy", gate)
    assert all(gate.begun.wait(60) for gate in gates)
    return gates


def test_from_queued_over_running_to_done(operations: Operations) -> None:
    gates, last = busy(operations), Gate()
    queued = operations.start("default", last)
    assert operations.get("default", queued.operation_id).state == "queued"
    assert operations.running() == WORKERS + 1
    gates[0].may_end.set()
    assert last.begun.wait(60)
    running = operations.get("default", queued.operation_id)
    assert (running.state, running.done, running.total, running.report) == ("running", 10, 40, None)
    assert running.rate > 0 and running.eta_seconds is not None
    last.may_end.set()
    done = ended(operations, queued)
    assert (done.state, done.report, done.error, done.eta_seconds) == ("done", reindex_report(REPORT), None, 0.0)


def test_a_running_one_is_cancelled_and_says_how_far_it_came(operations: Operations) -> None:
    gate = Gate()
    started = operations.start("default", gate)
    assert gate.begun.wait(60)
    assert operations.cancel("default", started.operation_id).state == "running"
    cancelled = ended(operations, started)
    assert (cancelled.state, cancelled.error) == ("cancelled", "It was stopped. Run it again.")
    assert (cancelled.done, cancelled.report, cancelled.eta_seconds) == (10, None, None)
    assert operations.cancel("default", started.operation_id) == cancelled, "cancelling twice changes nothing"


def test_a_queued_one_is_cancelled_at_once_and_never_begins(operations: Operations) -> None:
    gates, waiting = busy(operations), Gate()
    queued = operations.start("default", waiting)
    assert operations.cancel("default", queued.operation_id).state == "cancelled"
    for gate in gates:
        gate.may_end.set()
    operations.close()
    assert not waiting.begun.is_set()
    assert operations.get("default", queued.operation_id).state == "cancelled"


def test_one_that_is_done_stays_done(operations: Operations) -> None:
    gate = Gate()
    gate.may_end.set()
    done = ended(operations, operations.start("default", gate))
    assert operations.cancel("default", done.operation_id) == done


def test_one_that_fails_says_why(operations: Operations) -> None:
    def full(*_: object) -> SyncReport:
        raise StoreFull("The disk is full. Free some space.")

    failed = ended(operations, operations.start("default", full))
    assert (failed.state, failed.error) == ("failed", "The disk is full. Free some space.")
    assert failed.report is None


def test_a_defect_fails_without_its_details(operations: Operations) -> None:
    def broken(*_: object) -> SyncReport:
        raise RuntimeError("secret details")

    failed = ended(operations, operations.start("default", broken))
    assert (failed.state, failed.error) == ("failed", "The reindex met a defect (RuntimeError). See the log.")


def test_another_workspace_does_not_see_it(operations: Operations) -> None:
    gate = Gate()
    started = operations.start("default", gate)
    for workspace, operation_id in (("other", started.operation_id), ("default", "op-0"), ("default", "")):
        with pytest.raises(NotFound, match="Start one with"):
            operations.get(workspace, operation_id)
        with pytest.raises(NotFound):
            operations.cancel(workspace, operation_id)
    assert gate.begun.wait(60)
    assert operations.get("default", started.operation_id).state == "running"


def test_the_last_thousand_are_remembered(operations: Operations) -> None:
    def nothing(*_: object) -> SyncReport:
        return REPORT

    started = []
    for _ in range(KEPT + 100):
        started.append(operations.start("default", nothing))
        assert ended(operations, started[-1]).state == "done"
    with pytest.raises(NotFound):
        operations.get("default", started[99].operation_id)
    assert all(operations.get("default", operation.operation_id) for operation in started[100:])


def test_no_operation_is_forgotten_before_it_ends(operations: Operations) -> None:
    gates = busy(operations)
    waiting = [operations.start("default", Gate()) for _ in range(KEPT - WORKERS)]
    with pytest.raises(TooManyRequests, match="Wait for some"):
        operations.start("default", Gate())
    assert operations.running() == KEPT
    operations.cancel("default", waiting[-1].operation_id)
    more = operations.start("default", Gate())
    assert operations.get("default", more.operation_id).state == "queued"
    with pytest.raises(NotFound):
        operations.get("default", waiting[-1].operation_id)
    for gate in gates:
        gate.may_end.set()


def test_closing_stops_what_runs_and_what_waits() -> None:
    operations = new_operations()
    busy(operations)
    queued = operations.start("default", Gate())
    operations.close()
    assert operations.running() == 0
    assert operations.get("default", queued.operation_id).state == "cancelled"


@given(
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 10**6),
    st.floats(0, 10**6, allow_subnormal=False),
)
def test_progress_is_by_bytes(one: int, other: int, passages: int, elapsed_seconds: float) -> None:
    done_bytes, total_bytes = sorted((one, other))
    progress = SyncProgress(
        done=2,
        total=5,
        done_bytes=done_bytes,
        total_bytes=total_bytes,
        passages=passages,
        path="MEMORY.md",
        total_passages=2 * passages,
    )
    now = _progress_of(progress, elapsed_seconds)
    assert (now["done"], now["total"]) == (passages, 2 * passages)
    assert now["rate"] == pytest.approx(passages / elapsed_seconds if elapsed_seconds else 0, abs=0.06)
    if done_bytes == 0 and total_bytes:
        assert now["eta_seconds"] is None
    else:
        assert now["eta_seconds"] is not None and now["eta_seconds"] >= 0
        total_seconds = elapsed_seconds * total_bytes / done_bytes if total_bytes else elapsed_seconds
        assert elapsed_seconds + now["eta_seconds"] == pytest.approx(total_seconds, abs=0.06)


def test_a_real_reindex_in_the_background(tmp_path: Path) -> None:
    write_documents(tmp_path, {f"memory/{number:02}.md": f"- note {number}\n" for number in range(30)})
    with MemoryService(settings(tmp_path), embedder=HashEmbedder()) as service:
        done = ended(service._operations, service.start_reindex("default"))
        assert (done.state, done.done, done.total, done.error) == ("done", 30, 30, None)
        assert done.report is not None and done.report.added == 30
        again = ended(service._operations, service.start_reindex("default", ["memory/01.md"], full=False))
        assert again.report is not None and (again.report.added, again.report.unchanged) == (0, 1)


def test_none_begins_after_the_end() -> None:
    operations = new_operations()
    operations.close()
    with pytest.raises(CallCancelled, match="closed"):
        operations.start("one", lambda on_progress, cancelled: SyncReport())
    assert operations.running() == 0
    operations.close()


def test_none_begins_that_other_processes_cannot_see(tmp_path: Path) -> None:
    database, begun = SharedDatabase(tmp_path), list[str]()
    operations = Operations(partial(DatabaseRecords, database), Presence(MemoryCoordination()))

    def work(on_progress: Callable[[SyncProgress], None], cancelled: Callable[[], bool]) -> SyncReport:
        begun.append("one")
        return REPORT

    # A file in the place of the folder of what is shared.
    (tmp_path / SHARED_FOLDER).touch()
    with pytest.raises(StorageFailed):
        operations.start("default", work)
    assert operations.list("default") == [] and operations.running() == 0
    (tmp_path / SHARED_FOLDER).unlink()
    assert ended(operations, operations.start("default", work)).state == "done"
    assert begun == ["one"]
    operations.close()
    database.close()


class _Waiting(HashEmbedder):
    """A model that waits with its first documents."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `HashEmbedder`."""
        self.begun.set()
        assert self.go.wait(60)
        return super().embed_documents(texts)


def test_a_status_reports_the_sync_that_runs_and_waits_for_none(tmp_path: Path) -> None:
    model = _Waiting()
    write_documents(tmp_path, {f"memory/2026-03-0{day}.md": f"- 部署在周二。Deploy {day}.\n" for day in range(1, 6)})
    with MemoryService(settings(tmp_path), embedder=model) as service:
        try:
            operation = service.start_reindex("default")
            assert model.begun.wait(60)
            found = service.status("default")
            assert (found.syncing, found.sync_total) == (True, 5)
            assert 0 <= (found.sync_done or 0) < 5
        finally:
            model.go.set()
        assert ended(service._operations, operation).state == "done"
        found = service.status("default")
    assert (found.syncing, found.sync_done, found.sync_total, found.files) == (False, None, None, 5)


def test_the_first_status_after_a_kill_does_not_wait_for_the_erasure_that_it_broke_off(tmp_path: Path) -> None:
    with MemoryService(settings(tmp_path), embedder=HashEmbedder()) as service:
        service.remember("default", "部署在周二。Deploys go out on Tuesdays.")
        # As a process leaves it that is killed within `forget`.
        service._workspaces.memory("default").erasures.mark()
    write_documents(tmp_path, {"MEMORY.md": "- 会议在周三。\n"})
    model = _Waiting()
    with MemoryService(settings(tmp_path), embedder=model) as service:
        erasures = service._workspaces.memory("default").erasures
        assert erasures.is_marked
        try:
            assert service.status("default").dirty == 1
            assert model.begun.wait(60)
            assert service.status("default").syncing
        finally:
            model.go.set()
        until(lambda: not erasures.is_marked)
        until(lambda: service.status("default").dirty == 0)

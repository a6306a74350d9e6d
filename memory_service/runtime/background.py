"""Operations that go on behind a call, such as a reindex, each with its progress.

Invariants: an operation goes queued → running → done, failed or cancelled, and never back; a stopped one leaves the
index usable and the next one goes on from there. Operations live as long as the process.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from indexer import IndexerError, SyncCancelled, SyncProgress, SyncReport
from memory_service.errors import CallCancelled, NotFound, TooManyRequests
from memory_service.runtime import answers
from memory_service.schemas.status import Operation, OperationState, ReindexReport

_KEPT = 1000
_WORKERS = 2
Work = Callable[[Callable[[SyncProgress], None], Callable[[], bool]], SyncReport]


@dataclass(slots=True, kw_only=True)
class _Running:
    """An operation of a workspace, and what stops it."""

    workspace: str
    shown: Operation
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def has_ended(self) -> bool:
        return self.shown.state not in ("queued", "running")

    def change(self, **changed: object) -> None:
        self.shown = self.shown.model_copy(update=changed)


def _progress_of(progress: SyncProgress, elapsed_seconds: float) -> dict[str, float | None]:
    """The fields of an operation that tell its progress; the time that is left is judged by the bytes done."""
    share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 1.0
    return {
        "done": progress.passages,
        "total": progress.total_passages,
        "rate": round(progress.passages / elapsed_seconds, 1) if elapsed_seconds else 0.0,
        "eta_seconds": round(elapsed_seconds * (1 - share) / share, 1) if share else None,
    }


class Operations:
    """The background work of one process."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="reindex")
        self._changing = threading.Lock()
        self._operations: OrderedDict[str, _Running] = OrderedDict()
        self._closed = False

    def start(self, workspace: str, work: Work) -> Operation:
        """Queue work; it begins as soon as a worker is free.

        Raises:
            TooManyRequests: A thousand operations have not ended yet.
            CallCancelled: The service is closed, or about to be.
        """
        shown = Operation(
            operation_id=f"op-{secrets.token_hex(8)}", state="queued", done=0, total=0, rate=0.0, eta_seconds=None
        )
        operation = _Running(workspace=workspace, shown=shown)
        with self._changing:
            if self._closed:
                raise CallCancelled("The service is closed, and nothing was begun. Ask again when it runs.")
            self._make_room()
            self._operations[shown.operation_id] = operation
            self._pool.submit(self._run, operation, work)
        return shown

    def _make_room(self) -> None:
        """Forget the oldest operation that has ended, if as many are kept as may be."""
        if len(self._operations) < _KEPT:
            return
        oldest = next((name for name, one in self._operations.items() if one.has_ended), None)
        if oldest is None:
            raise TooManyRequests(f"{_KEPT:,} operations have not ended yet. Wait for some of them, or cancel them.")
        del self._operations[oldest]

    def get(self, workspace: str, operation_id: str) -> Operation:
        """Progress of an operation.

        Raises:
            NotFound: There is none of that id in that workspace.
        """
        return self._found(workspace, operation_id).shown

    def _found(self, workspace: str, operation_id: str) -> _Running:
        operation = self._operations.get(operation_id)
        if operation is None or operation.workspace != workspace:
            raise NotFound(f"There is no operation {operation_id!r}. Start one with POST …/reindex.")
        return operation

    def cancel(self, workspace: str, operation_id: str) -> Operation:
        """Ask an operation to stop; it does so after the batch at hand."""
        operation = self._found(workspace, operation_id)
        with self._changing:
            operation.stop.set()
            if operation.shown.state == "queued":
                operation.change(state="cancelled")
        return operation.shown

    def running(self) -> int:
        """Number of queued or running operations."""
        return sum(not operation.has_ended for operation in list(self._operations.values()))

    def close(self) -> None:
        """Stop everything and wait for it."""
        with self._changing:
            self._closed = True
            for operation in self._operations.values():
                operation.stop.set()
        self._pool.shutdown(wait=True)

    def _run(self, operation: _Running, work: Work) -> None:
        with self._changing:
            # Under the lock: one that was cancelled while it waited must not be seen to run.
            if operation.stop.is_set():
                operation.change(state="cancelled")
                return
            operation.change(state="running")
        started = time.monotonic()

        def on_progress(progress: SyncProgress) -> None:
            operation.change(**_progress_of(progress, time.monotonic() - started))

        try:
            report = work(on_progress, operation.stop.is_set)
        except SyncCancelled as error:
            _end(operation, state="cancelled", error=str(error))
        except IndexerError as error:
            _end(operation, state="failed", error=str(error))
        except BaseException as error:
            _end(operation, state="failed", error=f"The reindex met a defect ({type(error).__name__}). See the log.")
            raise
        else:
            _end(operation, state="done", report=answers.reindex_report(report))


def _end(
    operation: _Running, *, state: OperationState, report: ReindexReport | None = None, error: str | None = None
) -> None:
    operation.change(state=state, report=report, error=error, eta_seconds=0.0 if report else None)

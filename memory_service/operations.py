"""Owns what runs in the background: reindexing, with its progress, its result and a way to stop it.

Invariants: an operation goes queued → running → done, failed or cancelled, and never back; a stopped one
leaves the index usable and the next one goes on from there. Operations live as long as the process.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from indexer import IndexerError, SyncCancelled, SyncProgress, SyncReport
from memory_service.errors import CallCancelled, NotFound, TooManyRequests

_KEPT = 1000
_WORKERS = 2

OperationState = Literal["queued", "running", "done", "failed", "cancelled"]
Work = Callable[[Callable[[SyncProgress], None], Callable[[], bool]], SyncReport]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """How far an operation is.

    Attributes:
        rate: Passages per second so far.
        eta_seconds: Time that is left, judged by the bytes done; None while nothing is known.
    """

    operation_id: str
    workspace: str
    state: OperationState = "queued"
    done: int = 0
    total: int = 0
    rate: float = 0.0
    eta_seconds: float | None = None
    report: SyncReport | None = None
    error: str = ""


def with_progress(operation: Operation, progress: SyncProgress, elapsed_seconds: float) -> Operation:
    """The operation after some progress."""
    share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 1.0
    return replace(
        operation,
        done=progress.done,
        total=progress.total,
        rate=progress.passages / elapsed_seconds if elapsed_seconds else 0.0,
        eta_seconds=elapsed_seconds * (1 - share) / share if share else None,
    )


class Operations:
    """The background work of one process."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="reindex")
        self._changing = threading.Lock()
        self._operations: OrderedDict[str, Operation] = OrderedDict()
        self._stops: dict[str, threading.Event] = {}
        self._closed = False

    def start(self, workspace: str, work: Work) -> Operation:
        """Queue work; it begins as soon as a worker is free.

        Raises:
            TooManyRequests: A thousand operations have not ended yet.
            CallCancelled: The service is closed, or about to be.
        """
        operation = Operation(operation_id=f"op-{secrets.token_hex(8)}", workspace=workspace)
        with self._changing:
            if self._closed:
                raise CallCancelled("The service is closed, and nothing was begun. Ask again when it runs.")
            self._make_room()
            self._operations[operation.operation_id] = operation
            self._stops[operation.operation_id] = threading.Event()
            self._pool.submit(self._run, operation, work)
        return operation

    def _make_room(self) -> None:
        """Forget the oldest operation that has ended, if as many are kept as may be."""
        if len(self._operations) < _KEPT:
            return
        ended = (name for name, one in self._operations.items() if one.state not in ("queued", "running"))
        oldest = next(ended, None)
        if oldest is None:
            raise TooManyRequests(f"{_KEPT:,} operations have not ended yet. Wait for some of them, or cancel them.")
        del self._operations[oldest], self._stops[oldest]

    def get(self, workspace: str, operation_id: str) -> Operation:
        """How far an operation is.

        Raises:
            NotFound: There is none of that id in that workspace.
        """
        operation = self._operations.get(operation_id)
        if operation is None or operation.workspace != workspace:
            raise NotFound(f"There is no operation {operation_id!r}. Start one with POST …/reindex.")
        return operation

    def cancel(self, workspace: str, operation_id: str) -> Operation:
        """Ask an operation to stop; it does so after the batch at hand."""
        self.get(workspace, operation_id)
        with self._changing:
            self._stops[operation_id].set()
            operation = self._operations[operation_id]
            if operation.state == "queued":
                operation = self._operations[operation_id] = replace(operation, state="cancelled")
        return operation

    def running(self) -> int:
        """How many operations are queued or running."""
        return sum(operation.state in ("queued", "running") for operation in list(self._operations.values()))

    def close(self) -> None:
        """Stop everything and wait for it."""
        with self._changing:
            self._closed = True
            for stop in self._stops.values():
                stop.set()
        self._pool.shutdown(wait=True)

    def _run(self, operation: Operation, work: Work) -> None:
        with self._changing:
            stop = self._stops[operation.operation_id]
            # Under the lock: one that was cancelled while it waited must not be seen to run.
            begun = replace(operation, state="cancelled" if stop.is_set() else "running")
            self._operations[operation.operation_id] = begun
        if begun.state == "cancelled":
            return
        started = time.monotonic()

        def on_progress(progress: SyncProgress) -> None:
            now = self._operations[operation.operation_id]
            self._put(with_progress(now, progress, time.monotonic() - started))

        try:
            report = work(on_progress, stop.is_set)
        except SyncCancelled as error:
            self._end(operation, state="cancelled", error=str(error))
        except IndexerError as error:
            self._end(operation, state="failed", error=str(error))
        except BaseException as error:
            self._end(
                operation, state="failed", error=f"The reindex met a defect ({type(error).__name__}). See the log."
            )
            raise
        else:
            self._end(operation, state="done", report=report)

    def _end(
        self, operation: Operation, *, state: OperationState, report: SyncReport | None = None, error: str = ""
    ) -> None:
        now = self._operations.get(operation.operation_id, operation)
        self._put(replace(now, state=state, report=report, error=error, eta_seconds=0.0 if report else None))

    def _put(self, operation: Operation) -> None:
        with self._changing:
            if operation.operation_id in self._operations:
                self._operations[operation.operation_id] = operation

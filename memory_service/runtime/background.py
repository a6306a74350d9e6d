"""Operations that go on behind a call, such as a reindex, each with its progress.

Invariants: an operation goes queued → running → done, failed or cancelled, and never back; a stopped one leaves the
index usable and the next one goes on from there. The process that was asked does the work; a record of it shows all
processes of the home how far it is, and has it cancelled by any of them. One whose process has ended has failed.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from indexer import IndexerError, SyncCancelled, SyncProgress, SyncReport
from memory_service.errors import CallCancelled, NotFound, StorageFailed, TooManyRequests
from memory_service.runtime import index_answers
from memory_service.runtime.presence import Presence
from memory_service.schemas.status import Operation, OperationState, ReindexReport
from memory_service.storage.record_store import ANY, RecordKind, RecordStore, RecordVersion

_log = logging.getLogger("memory_service.runtime.background")

_KEPT = 1000
_KEPT_FOR = dt.timedelta(days=1)
# How often a record is written while there is progress, and looked at for an end that another process asks for.
_LOOK_SECONDS = 0.2
_WORKERS = 2
_GONE = "The process that did it has ended. Start it again: it goes on from there."
Work = Callable[[Callable[[SyncProgress], None], Callable[[], bool]], SyncReport]


@dataclass(slots=True, kw_only=True)
class _Running:
    """An operation of this process, what stops it, and the version of its record that this process wrote last."""

    workspace: str
    shown: Operation
    stop: threading.Event = field(default_factory=threading.Event)
    recording: threading.Lock = field(default_factory=threading.Lock)
    version: RecordVersion | None = None
    look_again: float = 0.0

    @property
    def has_ended(self) -> bool:
        return not self.shown.is_open

    def change(self, **changed_fields: object) -> None:
        self.shown = self.shown.model_copy(update=changed_fields)


class _Recorded(NamedTuple):
    """An operation as its record shows it, and the process that does it."""

    shown: Operation
    holder: str

    @classmethod
    def read(cls, raw: bytes) -> _Recorded:
        """The operation of a record."""
        value = json.loads(raw)
        return cls(Operation.model_validate(value["operation"]), value["holder"])

    def raw(self) -> bytes:
        """The record of an operation."""
        return json.dumps({"operation": self.shown.model_dump(mode="json"), "holder": self.holder}).encode()


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
    """The background work of one process, and what the others of the home do.

    Args:
        records: The records of a workspace.
        presence: That of this process.
        contains: Tells if there is a workspace of a name; of one that is not, others need to see nothing.
    """

    def __init__(
        self,
        records: Callable[[str], RecordStore],
        presence: Presence,
        *,
        contains: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._records = records
        self._presence = presence
        self._contains = contains
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="reindex")
        self._changing = threading.Lock()
        self._operations: OrderedDict[str, _Running] = OrderedDict()
        self._closed = False

    def start(self, workspace: str, work: Work) -> Operation:
        """Queue work; it begins as soon as a worker is free.

        Raises:
            TooManyRequests: A thousand operations have not ended yet.
            CallCancelled: The service is closed, or about to be.
            StorageFailed: Other processes could not see it; nothing was begun.
        """
        shown_operation = Operation(
            operation_id=f"op-{secrets.token_hex(8)}",
            state="queued",
            done=0,
            total=0,
            rate=0.0,
            eta_seconds=None,
            created_at=dt.datetime.now(dt.UTC),
        )
        operation = _Running(workspace=workspace, shown=shown_operation)
        with self._changing:
            if self._closed:
                raise CallCancelled("The service is closed, and nothing was begun. Ask again when it runs.")
            self._make_room()
            try:
                self._write_record(operation, shown_operation)
            except StorageFailed:
                if self._contains(workspace):
                    # What broke may have been the answer alone.
                    with suppress(StorageFailed):
                        self._records(workspace).erase(RecordKind.OPERATION, key=shown_operation.operation_id)
                    raise
            self._operations[shown_operation.operation_id] = operation
            self._pool.submit(self._run, operation, work)
        return shown_operation

    def _make_room(self) -> None:
        """Forget the oldest operation that has ended, if as many are kept as may be."""
        if len(self._operations) < _KEPT:
            return
        oldest = next((name for name, running in self._operations.items() if running.has_ended), None)
        if oldest is None:
            raise TooManyRequests(f"{_KEPT:,} operations have not ended yet. Wait for some of them, or cancel them.")
        ended_running = self._operations.pop(oldest)
        with suppress(StorageFailed):
            self._records(ended_running.workspace).erase(RecordKind.OPERATION, key=oldest)

    def get(self, workspace: str, operation_id: str) -> Operation:
        """Progress of an operation.

        Raises:
            NotFound: There is none of that id in that workspace.
        """
        own = self._own(workspace, operation_id)
        if own is None:
            return self._elsewhere(workspace, operation_id).shown
        self._look(own)
        return own.shown

    def list(self, workspace: str) -> list[Operation]:
        """The operations of a workspace, of every process; the newest first."""
        operations = {name: own.shown for name, own in list(self._operations.items()) if own.workspace == workspace}
        for name in self._records(workspace).keys(RecordKind.OPERATION):
            if name not in operations:
                with suppress(NotFound):
                    operations[name] = self._elsewhere(workspace, name).shown
        return sorted(operations.values(), key=_age, reverse=True)

    def cancel(self, workspace: str, operation_id: str) -> Operation:
        """Ask an operation to stop; it does so after the batch at hand."""
        own = self._own(workspace, operation_id)
        if own is None:
            return self._cancel_elsewhere(workspace, operation_id)
        self._stop(own)
        return own.shown

    def _own(self, workspace: str, operation_id: str) -> _Running | None:
        operation = self._operations.get(operation_id)
        return operation if operation is not None and operation.workspace == workspace else None

    def _elsewhere(self, workspace: str, operation_id: str, **changed_fields: object) -> _Recorded:
        """The operation of another process, changed if it has not ended; one whose process is gone has failed."""
        records = self._records(workspace)
        while (record := records.get(RecordKind.OPERATION, operation_id)) is not None:
            value = _Recorded.read(record.raw)
            if not value.shown.is_open:
                return value
            if self._presence.is_gone(value.holder):
                changed_fields = {"state": "failed", "error": _GONE, "eta_seconds": None}
            if not changed_fields:
                return value
            value = value._replace(shown=value.shown.model_copy(update=changed_fields))
            if records.put(RecordKind.OPERATION, operation_id, value.raw(), expected=record.version, expires=_expiry()):
                return value
        raise NotFound(f"There is no operation {operation_id!r}. Start one with POST …/reindex.")

    def _cancel_elsewhere(self, workspace: str, operation_id: str) -> Operation:
        """A new version of its record tells the process that does it to stop."""
        elsewhere = self._elsewhere(workspace, operation_id)
        if elsewhere.shown.state == "queued":
            return self._elsewhere(workspace, operation_id, state="cancelled").shown
        return self._elsewhere(workspace, operation_id, state=elsewhere.shown.state).shown

    def _stop(self, operation: _Running) -> None:
        with self._changing:
            operation.stop.set()
            if operation.shown.state == "queued":
                operation.change(state="cancelled")
                self._record(operation)

    def _look(self, operation: _Running) -> None:
        """Stop an operation of this process whose record another process has changed."""
        if operation.has_ended or operation.version is None:
            return
        with suppress(StorageFailed):
            with operation.recording:
                is_changed = self._records(operation.workspace).version(
                    RecordKind.OPERATION, operation.shown.operation_id
                ) not in (None, operation.version)
            if is_changed:
                self._stop(operation)

    def _record(self, operation: _Running, shown: Operation | None = None) -> None:
        """Show the other processes how far an operation is, or will be shown to be in a moment.

        Where that cannot be written any more, this process alone knows.
        """
        try:
            self._write_record(operation, shown or operation.shown)
        except StorageFailed as error:
            _log.warning("the record of an operation was not written: %s", error)

    def _write_record(self, operation: _Running, shown: Operation) -> None:
        records, operation_id = self._records(operation.workspace), shown.operation_id
        with operation.recording:
            raw = _Recorded(shown, self._presence.name).raw()
            version = operation.version
            stored_version = records.put(RecordKind.OPERATION, operation_id, raw, expected=version, expires=_expiry())
            if stored_version is None:
                # Another process asks for an end.
                operation.stop.set()
                if shown.state != "running" or version is None:
                    stored_version = records.put(
                        RecordKind.OPERATION, operation_id, raw, expected=ANY, expires=_expiry()
                    )
            operation.version = stored_version or records.version(RecordKind.OPERATION, operation_id)

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
            if not operation.stop.is_set():
                operation.change(state="running")
                self._record(operation)
            if operation.stop.is_set():
                operation.change(state="cancelled")
                self._record(operation)
                return
        started_time = time.monotonic()

        def is_due() -> bool:
            now = time.monotonic()
            if now < operation.look_again:
                return False
            operation.look_again = now + _LOOK_SECONDS
            return True

        def on_progress(progress: SyncProgress) -> None:
            operation.change(**_progress_of(progress, time.monotonic() - started_time))
            if is_due():
                self._record(operation)

        def is_cancelled() -> bool:
            if is_due():
                self._look(operation)
            return operation.stop.is_set()

        try:
            report = work(on_progress, is_cancelled)
        except SyncCancelled as error:
            self._end(operation, state="cancelled", error=str(error))
        except IndexerError as error:
            self._end(operation, state="failed", error=str(error))
        except BaseException as error:
            defect = f"The reindex met a defect ({type(error).__name__}). See the log."
            self._end(operation, state="failed", error=defect)
            raise
        else:
            self._end(operation, state="done", report=index_answers.reindex_report(report))

    def _end(
        self,
        operation: _Running,
        *,
        state: OperationState,
        report: ReindexReport | None = None,
        error: str | None = None,
    ) -> None:
        changed_fields = {"state": state, "report": report, "error": error, "eta_seconds": 0.0 if report else None}
        # First: what has ended may be forgotten at once, and its record with it.
        self._record(operation, operation.shown.model_copy(update=changed_fields))
        operation.change(**changed_fields)


def _age(operation: Operation) -> tuple[float, str]:
    moment = operation.created_at
    return (moment.timestamp() if moment else 0.0, operation.operation_id)


def _expiry() -> dt.datetime:
    return dt.datetime.now(dt.UTC) + _KEPT_FOR

"""Worker of hooks: a process that does what hook calls left, and ends.

`python -m memory_service.cli.hook_work HOME` is started by the command `hook`; one at a time works on a home, and what
others put into the queue meanwhile it does too. A call on standard input is one that the disk did not take: it is put
into the queue as soon as there is room.

Invariants: calls go before the index, and in the order in which they came; each is taken out of the queue once its work
is done; what the disk does not take stays for the next worker; nobody waits for this process, and it gives way to all.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_service.errors import MemoryServiceError
from memory_service.hosts.progress import note_faults
from memory_service.hosts.queue import CallQueue, QueuedCall, read_call

if TYPE_CHECKING:
    from memory_service.service import MemoryService

_NICENESS = 10
# So long a call that the disk does not take is held here.
_HELD_SECONDS = 1_800.0
_HELD_STEP_SECONDS = 2.0


def _main() -> None:
    """Do what waits in the home that the command line names."""
    with suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    home = Path(sys.argv[1])
    queue = CallQueue(home)
    if call := read_call(sys.stdin.buffer.read()):
        _queue(queue, call)
    _Worker(queue).run()


def _queue(queue: CallQueue, call: QueuedCall) -> None:
    """Put a call into the queue, once the disk takes it."""
    ends = time.monotonic() + _HELD_SECONDS
    while True:
        try:
            return queue.add(call)
        except MemoryServiceError as error:
            if time.monotonic() >= ends:
                note_faults(queue.home, call.host, "", (f"a call is lost: {error}",))
                return
            time.sleep(_HELD_STEP_SECONDS)


class _Worker:
    """The work on one queue."""

    def __init__(self, queue: CallQueue) -> None:
        self._queue = queue
        # What the disk did not take; the next worker tries again.
        self._left = set[Path]()

    def run(self) -> None:
        """Work until nothing waits, or another worker is at it."""
        # Who comes while this one works is not let in, and is seen by this one, which looks again when it has let go.
        while self._waits():
            with self._queue.worked_on() as alone:
                if not alone:
                    return
                try:
                    self._work()
                except MemoryServiceError as error:
                    note_faults(self._queue.home, "hook", "", (str(error),))
                    return

    def _work(self) -> None:
        from memory_service.service import MemoryService

        with MemoryService.open(self._queue.home) as service:
            while self._waits():
                for call in self._calls():
                    self._do(service, call)
                for workspace in self._queue.indexes()[:1]:
                    self._index(service, workspace)

    def _waits(self) -> bool:
        return bool(self._calls() or self._queue.indexes())

    def _calls(self) -> list[QueuedCall]:
        return [call for call in self._queue.calls() if call.path not in self._left]

    def _do(self, service: MemoryService, call: QueuedCall) -> None:
        begun_call = self._queue.begin(call)
        if begun_call is None:
            note_faults(self._queue.home, call.host, "", ("a call that ended several workers is given up",))
            return
        from memory_service.hosts.hooks.hook_calls import finish_hook

        host: Any = begun_call.host
        done_answer = finish_hook(service, host, begun_call.call, workspace=begun_call.workspace, work=begun_call.work)
        if done_answer.is_kept:
            self._queue.remove(begun_call)
        else:
            self._left.add(self._queue.put_back(begun_call))
        if done_answer.workspace and service.has_workspace(done_answer.workspace):
            self._queue.add_index(done_answer.workspace)

    def _index(self, service: MemoryService, workspace: str) -> None:
        """Bring an index up to date, until a call comes; what is embedded till then stays."""
        self._queue.index_begun(workspace)
        if not service.has_workspace(workspace):
            return
        came: Callable[[], bool] = lambda: bool(self._calls())  # noqa: E731
        try:
            service.index_words(workspace, cancelled=came)
            service.reindex(workspace, cancelled=came)
            service.bring_up_to_date(workspace)
        except MemoryServiceError as error:
            if came():
                self._queue.add_index(workspace)
            else:
                note_faults(self._queue.home, "hook", "index", (str(error),))


if __name__ == "__main__":
    _main()

"""Repair of damaged logs.

Invariants: nothing is thrown away: what is cut off stays beside the log; a file that has lines, and none of them
ours, is left alone; each finding is told once.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from memory_service.errors import StorageFailed
from memory_service.sessions.records import Repair, RepairKind
from memory_service.storage.files import disk

if TYPE_CHECKING:
    from memory_service.storage.files.log_offsets import Offsets


class LogRecovery:
    """Faults found in one log, and their repair. The caller holds the lock of the offsets.

    Args:
        path: The file of the log.
        offsets: Where its records begin.
    """

    def __init__(self, path: Path, offsets: Offsets) -> None:
        self._path = path
        self._offsets = offsets
        self._found: dict[Repair, None] = {}
        self._read_header: int | None = None

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """Faults found, and what was done about each."""
        count, first = self._offsets.damaged
        message = f"{count} lines of {self._path.name} were skipped; the first begins at byte {first}."
        repairs = [Repair(kind="damaged", message=message)] if count else []
        return (*repairs, *self._found)

    def note(self, kind: RepairKind, message: str) -> None:
        """Keeps a finding."""
        self._found[Repair(kind=kind, message=message)] = None

    def drop(self, seq: int) -> None:
        """Skips a record that turned out to be damaged."""
        self._offsets.drop(seq)
        self.note("damaged", f"Record {seq} of {self._path.name} cannot be read and was skipped.")

    def is_sound(self, descriptor: int) -> bool:
        """True if there is nothing to mend."""
        return not self._offsets.is_torn and not self.is_foreign and self.has_header(descriptor)

    def has_header(self, descriptor: int) -> bool:
        """True if the log has a header that can be read, or needs none."""
        while (seq := self._offsets.header_seq) is not None and seq != self._read_header:
            if self._offsets.line(descriptor, seq) is None:
                self.drop(seq)
            else:
                self._read_header = seq
        return seq is not None or not self._offsets.last_seq

    def cut_torn_end(self, descriptor: int) -> None:
        """Cuts a torn end off. The lock of the log is held.

        Raises:
            StorageFailed: The file is no log of ours, or the disk did not let it be mended.
        """
        self._offsets.refresh(descriptor)
        if self._offsets.is_torn:
            end = self._offsets.end
            torn_bytes = os.fstat(descriptor).st_size - end
            path = save_beside(self._path, lambda: disk.pieces(descriptor, end), "torn")
            disk.truncate_durably(descriptor, end)
            self._offsets.refresh(descriptor)
            text = f"The last {torn_bytes} bytes of {self._path.name} were no whole record; {path.name} has them."
            self.note("torn", text)
        if self.is_foreign:
            self.note("foreign", f"{self._path.name} holds no record of a session.")
            raise StorageFailed(
                f"{self._path.name} is no log of a session of this service. Choose another id, or move it away."
            )

    @property
    def is_foreign(self) -> bool:
        """True if there are whole lines, and none is ours."""
        return not self._offsets.last_seq and self._offsets.end > 0


def save_beside(path: Path, read: Callable[[], Iterable[bytes]], ending: str) -> Path:
    """Writes a file beside a log, under a name that is free.

    Args:
        path: The log.
        read: Gives the content in pieces, from its beginning each time.
        ending: What follows the name of the log.

    Raises:
        StorageFailed: The disk did not take it.
    """
    for number in itertools.count(1):
        target = path.with_name(f"{path.name}.{ending}" + (f"-{number}" if number > 1 else ""))
        if disk.current_signature(target) is None and disk.replace_durably(target, read(), expected=None):
            break
    return target

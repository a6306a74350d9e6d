"""The receipts of a workspace as files: one JSON line each, in a file per day.

Invariants: a line is written once and never changed, but blanked when its session is erased; one line is one write, so
processes that append at once do not mix theirs; old files go when the file of a new day begins.
"""

from __future__ import annotations

import datetime as dt
import errno
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from indexer import sync_file
from indexer.common import lazy_regex
from memory_service.errors import StorageFailed
from memory_service.storage.files.disk import FILE_MODE, FOLDER_MODE
from memory_service.storage.record_store import RecordVersion, StoredRecord

_ID = lazy_regex(r"r(\d{4})(\d{2})(\d{2})-[0-9a-f]{16}")
_OF_SESSION = b', "session_id": "'
_VERSION = b"written"


class ReceiptFiles:
    """The receipts below a workspace folder: JSON objects, whose first field is the key, which says the day.

    Args:
        folder: `<workspace>/receipts`; made at the first write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown_folder = f"{folder.parent.name}/{folder.name}"

    def get(self, key: str) -> StoredRecord | None:
        """A receipt; None if there is none that can be read."""
        if (day := _day_of(key)) is None:
            return None
        begin = _begin(key)
        with suppress(OSError), self._path(day).open("rb") as lines:
            # Not the id alone, which a query may quote; not at the start of a line, where half of one may stand.
            line = next((line[line.index(begin) :] for line in lines if begin in line), None)
            if line is not None:
                # Within a text these quotation marks would be escaped.
                raw, of_session, session = line.rstrip(b"\n").rpartition(_OF_SESSION)
                return (
                    StoredRecord(raw + b"}", _VERSION, session[:-2].decode())
                    if of_session
                    else StoredRecord(session, _VERSION)
                )
        return None

    def version(self, key: str) -> RecordVersion | None:
        """The version of a receipt, which never changes; None if there is none."""
        record = self.get(key)
        return record.version if record else None

    def put(self, key: str, raw: bytes, session: str, expires: dt.datetime | None) -> bytes | None:
        """Store a receipt.

        Raises:
            StorageFailed: The folder cannot be written, or old receipts in it cannot be deleted.
        """
        day = _day_of(key)
        if day is None or not raw.startswith(_begin(key)):
            raise StorageFailed(f"The receipt {key} does not begin with its id. Store it with one.")
        path, ending = self._path(day), _ending(session) if session else b"}\n"
        line = raw[:-1] + ending
        try:
            if fresh := not path.exists():
                self._folder.mkdir(exist_ok=True, mode=FOLDER_MODE)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE_MODE)
            try:
                if os.write(descriptor, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None  # of a workspace that nobody wrote to, nothing is made
        except OSError as error:
            raise StorageFailed(
                f"The receipt could not be stored in {self._shown_folder} ({error.strerror}). Make the folder writable."
            ) from error
        if fresh and expires is not None:
            self._prune(day, expires.date() - day)
        return _VERSION

    def erase(self, key: str, session: str) -> int:
        """Blank receipts where they stand: what others append meanwhile is not touched.

        Raises:
            StorageFailed: A file of receipts cannot be written.
        """
        begin, ending = _begin(key) if key else b"", _ending(session) if session else b"}\n"
        erased_count = 0
        try:
            for path in self._files():
                with suppress(FileNotFoundError):
                    erased_count += _blank(path, ending, lambda line: begin in line)
        except OSError as error:
            of = f" of the session {session}" if session else ""
            raise StorageFailed(
                f"Receipts{of} stay in {self._folder.name} ({error.strerror}). "
                "Make the folder writable, then delete the session again."
            ) from error
        return erased_count

    def keys(self) -> Iterator[str]:
        """The keys of all receipts."""
        for path in self._files():
            with suppress(OSError), path.open("rb") as lines:
                yield from (match[0] for line in lines if (match := _ID.search(line[:64].decode("ascii", "replace"))))

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("????-??-??.jsonl"))

    def _path(self, day: dt.date) -> Path:
        return self._folder / f"{day.isoformat()}.jsonl"

    def _prune(self, today: dt.date, keep: dt.timedelta) -> None:
        oldest = self._path(today - keep).name
        try:
            for path in self._files():
                if path.name < oldest:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageFailed(
                f"Receipts of more than {keep.days} days stay in {self._shown_folder} ({error.strerror}). "
                "Check its permissions, and delete them by hand."
            ) from error


def _day_of(key: str) -> dt.date | None:
    match = _ID.fullmatch(key)
    with suppress(ValueError):
        return dt.date(*(int(part) for part in match.groups())) if match else None
    return None


def _begin(key: str) -> bytes:
    return f'{{"receipt_id": "{key}"'.encode()


def _ending(session: str) -> bytes:
    return _OF_SESSION + f'{session}"}}\n'.encode()


def _blank(path: Path, ending: bytes, is_meant: Callable[[bytes], bool]) -> int:
    """Write spaces over the lines of a file that end so and are meant; gives their number."""
    blanked_count = 0
    with path.open("r+b") as stream:
        if not os.fstat(stream.fileno()).st_size:
            return 0
        with mmap.mmap(stream.fileno(), 0) as lines:
            at = lines.find(ending)
            while at >= 0:
                start, end = lines.rfind(b"\n", 0, at) + 1, at + len(ending) - 1
                if is_meant(lines[start:end]):
                    lines[start:end] = b" " * (end - start)
                    blanked_count += 1
                at = lines.find(ending, end)
            if blanked_count:
                lines.flush()
        if blanked_count:
            sync_file(stream.fileno())
    return blanked_count

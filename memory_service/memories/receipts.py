"""The receipts of a workspace: one JSON line each, in a file per day.

Invariants: a receipt is written once and never changed, but blanked when its session is erased; it holds no memory's
text, only where it stands; one line is one write, so processes that append at once do not mix theirs.
"""

from __future__ import annotations

import datetime as dt
import errno
import json
import mmap
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from indexer import sync_file
from indexer.common import lazy_regex
from memory_service.errors import NotFound, StorageFailed
from memory_service.schemas.memories import Receipt
from memory_service.storage.files.disk import FILE_MODE, FOLDER_MODE

_OF_SESSION = "session_id"
_ID = lazy_regex(r"r(\d{4})(\d{2})(\d{2})-[0-9a-f]{16}")


def new_receipt_id(now: dt.datetime) -> str:
    """An id that says which day's file to look in."""
    return f"r{now:%Y%m%d}-{secrets.token_hex(8)}"


class Receipts:
    """The receipts below a workspace folder.

    Args:
        folder: `<workspace>/receipts`; made at the first write.
        keep_days: Files older than this are deleted when a new day's file begins.
    """

    def __init__(self, folder: Path, *, keep_days: int) -> None:
        self._folder = folder
        self._shown = f"{folder.parent.name}/{folder.name}"
        self._keep_days = keep_days

    def put(self, receipt: Receipt, *, session_id: str = "") -> None:
        """Store a receipt.

        Args:
            receipt: What is stored.
            session_id: The session whose prompt it is of: erased with it, as its words may be the query.

        Raises:
            StorageFailed: The folder cannot be written, or old receipts in it cannot be deleted.
        """
        record = receipt.model_dump()
        # In the file, every item has a reason.
        record["included"] = [{**item, "reason": ""} for item in record["included"]]
        record |= {_OF_SESSION: session_id} if session_id else {}
        line = json.dumps(record, ensure_ascii=False, default=_iso) + "\n"
        path = self._path(receipt.created_at.date())
        try:
            if fresh := not path.exists():
                self._folder.mkdir(exist_ok=True, mode=FOLDER_MODE)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE_MODE)
            try:
                raw = line.encode("utf-8", "replace")
                if os.write(descriptor, raw) < len(raw):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return  # of a workspace that nobody wrote to, nothing is made
        except OSError as error:
            raise StorageFailed(
                f"The receipt could not be stored in {self._shown} ({error.strerror}). Make the folder writable."
            ) from error
        if fresh:
            self._prune(receipt.created_at.date())

    def get(self, receipt_id: str) -> Receipt:
        """Find a receipt.

        Raises:
            NotFound: There is none of that id, or it was kept for its time.
        """
        match = _ID.fullmatch(receipt_id)
        missing = NotFound(f"There is no receipt {receipt_id!r}. Receipts are kept for {self._keep_days} days.")
        if not match:
            raise missing
        try:
            day = dt.date(*(int(part) for part in match.groups()))
            with self._path(day).open(encoding="utf-8") as lines:
                # Not the id alone, which a query may quote; not at the start of a line, where half of one may stand.
                begin = f'{{"receipt_id": "{receipt_id}"'
                found = next((line[line.index(begin) :] for line in lines if begin in line), None)
            if found is None:
                raise missing
            return Receipt.model_validate_json(found)
        except (OSError, ValueError):
            raise missing from None

    def erase(self, session_id: str) -> None:
        """Blank every receipt of a session, where it stands: what others append meanwhile is not touched.

        Raises:
            StorageFailed: A file of receipts cannot be written.
        """
        try:
            for path in sorted(self._folder.glob("????-??-??.jsonl")):
                with suppress(FileNotFoundError), path.open("r+b") as stream:
                    _blank(stream, f'"{_OF_SESSION}": "{session_id}"}}\n'.encode())
        except OSError as error:
            raise StorageFailed(
                f"Receipts of the session {session_id} stay in {self._folder.name} ({error.strerror}). "
                "Make the folder writable, then delete the session again."
            ) from error

    def _path(self, day: dt.date) -> Path:
        return self._folder / f"{day.isoformat()}.jsonl"

    def _prune(self, today: dt.date) -> None:
        oldest = self._path(today - dt.timedelta(days=self._keep_days)).name
        try:
            for path in self._folder.glob("????-??-??.jsonl"):
                if path.name < oldest:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageFailed(
                f"Receipts of more than {self._keep_days} days stay in {self._shown} ({error.strerror}). "
                "Check its permissions, and delete them by hand."
            ) from error


def _blank(stream: BinaryIO, ending: bytes) -> None:
    """Write spaces over the lines of a file that end so."""
    if not os.fstat(stream.fileno()).st_size:
        return
    with mmap.mmap(stream.fileno(), 0) as lines:
        at = lines.find(ending)
        if at < 0:
            return
        while at >= 0:
            start, end = lines.rfind(b"\n", 0, at) + 1, at + len(ending) - 1
            lines[start:end] = b" " * (end - start)
            at = lines.find(ending, end)
        lines.flush()
    sync_file(stream.fileno())


def _iso(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)

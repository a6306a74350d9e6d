"""The receipts of a workspace: what went into each block of memories, what stayed out, and why.

Invariants: a receipt is stored once and never changed, but erased with its session; it holds no memory's text, only
where it stands.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
from itertools import islice

from memory_service.errors import NotFound
from memory_service.schemas.memories import Receipt
from memory_service.storage.record_store import RecordKind, RecordStore, StoredRecord


def new_receipt_id(now: dt.datetime) -> str:
    """An id that says which day a receipt is of."""
    return f"r{now:%Y%m%d}-{secrets.token_hex(8)}"


class Receipts:
    """The receipts of a workspace.

    Args:
        records: The small records of the workspace.
        keep_days: Receipts older than this are deleted when a new day begins.
    """

    def __init__(self, records: RecordStore, *, keep_days: int) -> None:
        self._records = records
        self._keep_days = keep_days

    def put(self, receipt: Receipt, *, session_id: str = "") -> None:
        """Store a receipt.

        Args:
            receipt: What is stored.
            session_id: The session whose prompt it is of: erased with it, as its words may be the query.

        Raises:
            StorageFailed: It cannot be written, or old receipts cannot be deleted.
        """
        record = receipt.model_dump(exclude={"session_id"})
        # What is stored has a reason for every item.
        record["included"] = [{**item, "reason": ""} for item in record["included"]]
        raw = json.dumps(record, ensure_ascii=False, default=_iso).encode("utf-8", "replace")
        expires = receipt.created_at + dt.timedelta(days=self._keep_days)
        self._records.put(RecordKind.RECEIPT, receipt.receipt_id, raw, session=session_id, expires=expires)

    def get(self, receipt_id: str) -> Receipt:
        """Find a receipt.

        Raises:
            NotFound: There is none of that id, or it was kept for its time.
        """
        record = self._records.get(RecordKind.RECEIPT, receipt_id)
        if record is not None and (receipt := _receipt_of(record)):
            return receipt
        raise NotFound(f"There is no receipt {receipt_id!r}. Receipts are kept for {self._keep_days} days.") from None

    def newest(self, limit: int, session_id: str = "") -> list[Receipt]:
        """The newest receipts, of a session or of all; the newest first.

        Raises:
            StorageFailed: They cannot be read.
        """
        stored = self._records.newest(RecordKind.RECEIPT, session=session_id)
        receipts = (receipt for _, record in stored if (receipt := _receipt_of(record)))
        return sorted(islice(receipts, limit), key=lambda receipt: receipt.created_at, reverse=True)

    def erase(self, session_id: str) -> None:
        """Erase every receipt of a session.

        Raises:
            StorageFailed: They cannot be erased.
        """
        self._records.erase(RecordKind.RECEIPT, session=session_id)


def _receipt_of(record: StoredRecord) -> Receipt | None:
    """The receipt that is stored in a record; None if it is damaged."""
    try:
        receipt = Receipt.model_validate_json(record.raw)
    except ValueError:
        return None
    return receipt.model_copy(update={"session_id": record.session or receipt.session_id})


def _iso(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)

"""Owns `Logs`: session logs that grow at their end are read there only, not from the top again.

Invariants: the result is that of `split_transcript` for the whole log, always; what is remembered is a bounded
number of logs, without their text, and only ever used where the log up to there is the same, byte for byte, and
the index holds the passages of just that log.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass

from indexer.documents.transcripts import Carried, grown_transcript, whole_transcript
from indexer.types import Passage

_LOGS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a log says beyond its first passages.

    Attributes:
        first: How many passages come before these, and stay as they are.
    """

    first: int
    passages: list[Passage]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A log as it was read last.

    Attributes:
        content_hash: Of the whole file then.
        read_hash: Of the part that was read, up to `carried.size_bytes`.
    """

    content_hash: str
    read_hash: bytes
    carried: Carried


class Logs:
    """Reads session logs, remembering those read lately. Safe to use from several threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._changing = threading.Lock()

    def read(self, raw: bytes, path: str, *, content_hash: str, stored_hash: str = "") -> Growth:
        """The passages of a log that an index does not have yet.

        Args:
            raw: The whole log.
            path: Where it lies.
            content_hash: What it is recognised by.
            stored_hash: The content hash of the log that the index holds in full; empty if it holds none.
        """
        with self._changing:
            known = self._known.get(path)
        usable = known if known and stored_hash == known.content_hash else None
        carried = usable.carried if usable else Carried()
        hashed = hashlib.sha256(memoryview(raw)[: carried.size_bytes])
        unchanged = usable is not None and hashed.digest() == usable.read_hash
        read = grown_transcript(raw, carried) if unchanged else None
        if read is None:
            # Another beginning, or earlier messages turn out to have a speaker.
            carried, hashed = Carried(), hashlib.sha256()
            read = whole_transcript(raw)
        hashed.update(memoryview(raw)[carried.size_bytes : read.carried.size_bytes])
        self._remember(path, _Known(content_hash=content_hash, read_hash=hashed.digest(), carried=read.carried))
        return Growth(first=carried.passages, passages=read.passages)

    def _remember(self, path: str, known: _Known) -> None:
        with self._changing:
            self._known.pop(path, None)
            self._known[path] = known
            while len(self._known) > _LOGS:
                self._known.popitem(last=False)

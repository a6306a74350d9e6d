"""A mapping that keeps the entries used last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Generic, TypeVar, TypeVarTuple

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_More = TypeVarTuple("_More")
# A longer text is read each time: 512 of these take at most 10 MB.
_SHORT_CHARS, _SHORT_TEXTS = 4_000, 512


def cached_for_short_texts(read: Callable[[str, *_More], _Value]) -> Callable[[str, *_More], _Value]:
    """A function of a text that remembers what it gave for short ones lately; what it gives may not be changed.

    A message is read for the flush, the summary, the request and the ledger, and again at the next compaction.
    """
    cached_value = lru_cache(_SHORT_TEXTS)(read)

    @wraps(read)
    def read_once(text: str, *more: *_More) -> _Value:
        return cached_value(text, *more) if len(text) <= _SHORT_CHARS else read(text, *more)

    return read_once


class LRU(Generic[_Key, _Value]):
    """The entries that were set or read last. Safe to use from several threads.

    Args:
        capacity: How many are kept at most.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[_Key, _Value] = OrderedDict()
        self._changing = threading.Lock()

    def get(self, key: _Key) -> _Value | None:
        """The value of a key, which is now the one used last; None if it is not there."""
        with self._changing:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def __setitem__(self, key: _Key, value: _Value) -> None:
        with self._changing:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def __contains__(self, key: _Key) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> list[tuple[_Key, _Value]]:
        """All entries, the one used last at the end."""
        with self._changing:
            return list(self._entries.items())

    def pop(self, key: _Key) -> _Value | None:
        """Take an entry out and give its value; None if it is not there."""
        with self._changing:
            return self._entries.pop(key, None)

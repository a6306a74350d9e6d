"""A mapping that keeps the entries used last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


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

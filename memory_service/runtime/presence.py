"""The presence of a process on its home: a name that other processes can ask after.

Invariants: a name is given once; it is leased from its first use until the process ends, however it ends.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from memory_service.errors import StorageFailed
from memory_service.storage.coordination import Coordination


class Presence:
    """The presence of one service on its home.

    Args:
        coordination: That of the home.
    """

    def __init__(self, coordination: Coordination) -> None:
        self._coordination = coordination
        self._naming = threading.Lock()
        self._name = ""
        self._give_back: Callable[[], None] | None = None

    @property
    def name(self) -> str:
        """The name of this process.

        Raises:
            StorageFailed: It cannot be leased.
        """
        with self._naming:
            if self._give_back is None:
                name = f"process-{secrets.token_hex(8)}"
                self._give_back = self._coordination.lease(name)
                self._name = name
            return self._name

    def is_gone(self, name: str) -> bool:
        """True if the process of a name has ended."""
        try:
            return name not in ("", self._name) and not self._coordination.is_leased(name)
        except StorageFailed:
            return False

    def close(self) -> None:
        """Give the name back; from then on the process counts as ended."""
        with self._naming:
            if self._give_back is not None:
                self._give_back()
                self._give_back = None

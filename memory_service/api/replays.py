"""Owns the answers to requests with an idempotency key, so that asking again does nothing again.

Invariants: used in the event loop alone, so that no look is parted from its entry; who asks the same while it is
being done waits for that answer and holds no thread; a request that failed is forgotten, so that it can be tried
again; what is kept is bounded in number and in bytes, and a restart forgets it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memory_service.errors import Conflict

_KEPT_ANSWERS = 10_000
_KEPT_BYTES = 32 * 1024 * 1024

# What is asked: the route with its workspace and session, and the key.
ReplayKey = tuple[str, str]


@dataclass(slots=True)
class _Asked:
    """A request: what it asked, and its answer once there is one."""

    content: bytes
    done: asyncio.Event
    answer: bytes | None = None


class Replays:
    """The answers of one app.

    Args:
        most_answers: How many are kept.
        most_bytes: What they may take together.
    """

    def __init__(self, *, most_answers: int = _KEPT_ANSWERS, most_bytes: int = _KEPT_BYTES) -> None:
        self._most_answers, self._most_bytes = most_answers, most_bytes
        self._asked: OrderedDict[ReplayKey, _Asked] = OrderedDict()
        self._bytes = 0

    async def once(self, key: ReplayKey, content: bytes, act: Callable[[], Awaitable[bytes]]) -> tuple[bytes, bool]:
        """Act, unless the same was asked with the same key before.

        Args:
            key: Where it was asked, and with which key.
            content: What was asked, or its hash.
            act: Gives the answer.

        Returns:
            The answer, and whether it is that of an earlier request.

        Raises:
            Conflict: Something else was asked with this key before.
        """
        while (known := self._asked.get(key)) is not None:
            if known.content != content:
                raise Conflict("The idempotency key was used for another request. Use a new key for a new request.")
            await known.done.wait()
            if known.answer is not None:
                return known.answer, True
        asked = self._asked[key] = _Asked(content=content, done=asyncio.Event())
        try:
            asked.answer = await act()
        finally:
            self._settle(key, asked)
        return asked.answer, False

    def _settle(self, key: ReplayKey, asked: _Asked) -> None:
        """Keep what was answered, let go of what was not, and wake who waits."""
        if asked.answer is None or len(asked.answer) > self._most_bytes:
            del self._asked[key]
        else:
            self._asked.move_to_end(key)
            self._bytes += len(asked.answer)
        asked.done.set()
        self._trim()

    def _trim(self) -> None:
        while self._bytes > self._most_bytes or len(self._asked) > self._most_answers:
            oldest = next((key for key, asked in self._asked.items() if asked.answer is not None), None)
            if oldest is None:
                return
            self._bytes -= len(self._asked.pop(oldest).answer or b"")

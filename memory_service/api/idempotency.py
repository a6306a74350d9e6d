"""Answers to requests that are sent again, by their idempotency key.

Invariants: the cache is used in the event loop alone, so a look-up and its entry are atomic; a request equal to a
running one waits for that answer without a thread; a failed request is forgotten, so that it can be tried again; the
cache is bounded in number and in bytes, and a restart empties it.
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
    """A request: its content, and its answer once there is one."""

    content: bytes
    done: asyncio.Event
    answer: bytes | None = None


class IdempotencyCache:
    """Answers of one app by idempotency key.

    Args:
        most_answers: Largest number of answers.
        most_bytes: Largest size of all of them.
    """

    def __init__(self, *, most_answers: int = _KEPT_ANSWERS, most_bytes: int = _KEPT_BYTES) -> None:
        self._most_answers, self._most_bytes = most_answers, most_bytes
        self._asked: OrderedDict[ReplayKey, _Asked] = OrderedDict()
        self._bytes = 0

    async def once(self, key: ReplayKey, content: bytes, act: Callable[[], Awaitable[bytes]]) -> tuple[bytes, bool]:
        """Act, unless the same request was made with the same key before.

        Args:
            key: The route, with the idempotency key.
            content: The request, or its hash.
            act: Gives the answer.

        Returns:
            The answer, and True if it is that of an earlier request.

        Raises:
            Conflict: The key belongs to another request.
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
        """Store an answer, forget a failure, and wake the waiting requests."""
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

"""Requests that are sent again, by their idempotency key, as the event loop sees them.

Invariants: a request equal to a running one waits for that answer without a thread; one that is running in another
process is asked after again and again, without a thread in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from memory_service.errors import key_reused
from memory_service.service import KeyedAnswers

_ASK_AGAIN_SECONDS = 0.05
AnswerBytes = Callable[[], bytes]
Reply = tuple[bytes, bool] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRequest:
    """A request with an idempotency key.

    Attributes:
        workspace: The workspace that its path names; empty for none.
        place: The route, with what its path names.
        content: Its body.
        session_id: The session that its path names; empty for none.
    """

    workspace: str
    place: str
    key: str
    content: bytes
    session_id: str = ""


@dataclass(slots=True)
class _Running:
    """A request that is running here."""

    content: bytes
    done: asyncio.Event = field(default_factory=asyncio.Event)


class RepeatedRequests:
    """The requests with a key of one app.

    Args:
        replies: The answers that there are.
    """

    def __init__(self, replies: KeyedAnswers) -> None:
        self._replies = replies
        self._running: dict[tuple[str, str, str], _Running] = {}

    async def once(
        self, asked: KeyedRequest, act: AnswerBytes, run: Callable[[Callable[[], Reply]], Awaitable[Reply]]
    ) -> tuple[bytes, bool]:
        """Act, unless the same request was made with the same key before.

        Args:
            asked: The request.
            act: Gives the answer.
            run: Runs something in a thread.

        Returns:
            The answer, and True if it is that of an earlier request.

        Raises:
            Conflict: The key belongs to another request.
        """
        place = asked.workspace, asked.place, asked.key
        while True:
            while (known_running := self._running.get(place)) is not None:
                if known_running.content != asked.content:
                    raise key_reused()
                await known_running.done.wait()
            running = self._running[place] = _Running(asked.content)
            try:
                answer = await run(lambda: self._answer(asked, act))
            finally:
                del self._running[place]
                running.done.set()
            if answer is not None:
                return answer
            await asyncio.sleep(_ASK_AGAIN_SECONDS)

    def _answer(self, asked: KeyedRequest, act: AnswerBytes) -> Reply:
        return self._replies.once(
            asked.workspace, asked.place, asked.key, asked.content, act, session_id=asked.session_id
        )

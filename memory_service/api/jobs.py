"""Owns how a request that changes something is run: in which threads, and once for each idempotency key.

Invariants: the answer to a repeated request is the first one's, byte for byte, and says so in a header; what an answer
was made of is turned into JSON in the thread that made it, never in the event loop.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Annotated

import anyio.to_thread
from fastapi import Depends, Request, Response

from memory_service.api.pools import Places
from memory_service.api.requests import IdempotencyKey
from memory_service.api.state import AppState, Shared
from memory_service.schemas import Answer

REPLAYED = {"Idempotency-Replayed": "true"}

Act = Callable[[], Answer]


class Job:
    """One request that changes something.

    Args:
        request: The request; its body is what a repetition has to be equal in.
        shared: What the routes share.
        key: Its idempotency key.
    """

    def __init__(self, request: Request, shared: AppState, key: str | None) -> None:
        self._request = request
        self._shared = shared
        self._key = key

    async def quick(self, act: Act) -> Response:
        """Run what waits for nobody."""
        return await self._once(lambda: anyio.to_thread.run_sync(self._made, act))

    async def slow(self, act: Act, places: Places | None = None) -> Response:
        """Run what may wait for a model or for others, in threads of their own.

        Raises:
            TooManyRequests: None of them was free in time.
            CallCancelled: The server ends.
        """
        run = (places or self._shared.pools.work).run
        return await self._once(lambda: run(lambda: self._made(act)))

    async def _once(self, run: Callable[[], Awaitable[bytes]]) -> Response:
        replayed = False
        if self._key is None:
            content = await run()
        else:
            asked = hashlib.blake2b(await self._request.body(), digest_size=16).digest()
            place = (f"{self._request.method} {self._request.url.path}", self._key)
            content, replayed = await self._shared.replays.once(place, asked, run)
        status = self._request.scope["route"].status_code or 200
        return Response(content, status, REPLAYED if replayed else {}, "application/json")

    def _made(self, act: Act) -> bytes:
        answer = act()
        self._shared.metrics.missed(getattr(answer, "degraded", ()))
        return json_of(answer)


def json_of(answer: Answer) -> bytes:
    """An answer as it goes over the wire."""
    try:
        return answer.model_dump_json().encode()
    except ValueError:
        # Half a surrogate pair, which a message may hold, can be named in JSON but not encoded.
        return json.dumps(answer.model_dump(), default=str).encode()


async def _job(request: Request, shared: Shared, key: IdempotencyKey = None) -> Job:
    return Job(request, shared, key)


Once = Annotated[Job, Depends(_job)]

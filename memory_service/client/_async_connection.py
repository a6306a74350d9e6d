"""The connection to a server, for async programs: calls, and streams of events.

Invariants: a call is repeated only where that does nothing twice; every failure leaves as an error of
`memory_service.errors`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from memory_service import schemas
from memory_service.client import _wire
from memory_service.client._event_stream import Listening
from memory_service.client._wire import Call
from memory_service.errors import MemoryServiceError

_A = TypeVar("_A", bound=BaseModel)


class AsyncConnection:
    """Connection to one server; use within one event loop.

    Args:
        base_url: Address of the server.
        api_key: A key of the server, if it has any.
        timeout: Seconds to wait for an answer.
    """

    def __init__(self, base_url: str, api_key: str | None, timeout: float) -> None:
        self.base_url = base_url
        self._http = httpx.AsyncClient(**_wire.httpx_arguments(base_url, api_key, timeout))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call[_A]) -> _A:
        """Answer to a call."""
        attempt = 0
        while True:
            outcome = await self._try(call)
            delay = _wire.retry_delay(call, attempt, outcome)
            if delay is None:
                break
            await asyncio.sleep(delay)
            attempt += 1
        if isinstance(outcome, httpx.RequestError):
            raise _wire.unreachable_error(outcome, self.base_url) from outcome
        return _wire.parse(call, outcome)

    @asynccontextmanager
    async def stream(self, call: Call[Any]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Pieces of an answer that does not end by itself."""
        try:
            async with self._http.stream(**_wire.request_arguments(call, self._http.timeout)) as response:
                if not response.is_success:
                    await response.aread()
                    raise _wire.failure(response)
                yield response.aiter_bytes()
        except httpx.RequestError as error:
            raise _wire.unreachable_error(error, self.base_url) from error

    async def events(
        self, call: Callable[[str], Call[schemas.SessionEvent]], after: int | None
    ) -> AsyncIterator[schemas.SessionEvent]:
        """Events as they happen, without an end; a broken connection is made again.

        Args:
            call: Makes the call of the stream that goes on behind an event.
            after: The last event that was heard; 0 begins with the oldest that is kept; else those to come.
        """
        listening = Listening(after)
        while True:
            try:
                async with self.stream(call(listening.last_id)) as pieces:
                    listening.begin_stream()
                    async for piece in pieces:
                        for event in listening.feed_line(piece):
                            yield event
            except MemoryServiceError as error:
                listening.count_failure(error)
            await asyncio.sleep(listening.pause_seconds())

    async def _try(self, call: Call[_A]) -> httpx.Response | httpx.RequestError:
        try:
            return await self._http.request(**_wire.request_arguments(call, self._http.timeout))
        except httpx.RequestError as error:
            return error

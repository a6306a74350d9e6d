"""Owns the async way to a server: calls are sent, repeated where that does nothing twice, and streams opened.

Invariants: every failure leaves as an error of `memory_service.errors`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from memory_service.client import _wire
from memory_service.client._wire import Call

A = TypeVar("A", bound=BaseModel)


class AsyncConnection:
    """The way to one server; for use within one event loop.

    Args:
        base_url: Where it listens.
        api_key: A key of the server, if it has any.
        timeout: Seconds to wait for an answer.
    """

    def __init__(self, base_url: str, api_key: str | None, timeout: float) -> None:
        self.base_url = base_url
        self._http = httpx.AsyncClient(**_wire.httpx_arguments(base_url, api_key, timeout))

    async def close(self) -> None:
        """Give back the connections."""
        await self._http.aclose()

    async def send(self, call: Call[A]) -> A:
        """The answer to a call."""
        attempt = 0
        while True:
            outcome = await self._try(call)
            delay = _wire.retry_delay(call, attempt, outcome)
            if delay is None:
                break
            await asyncio.sleep(delay)
            attempt += 1
        if isinstance(outcome, httpx.RequestError):
            raise _wire.unreached(outcome, self.base_url) from outcome
        return _wire.parse(call, outcome)

    @asynccontextmanager
    async def stream(self, call: Call[Any]) -> AsyncIterator[AsyncIterator[str]]:
        """The lines of an answer that does not end by itself."""
        try:
            async with self._http.stream(**_wire.request_arguments(call, self._http.timeout)) as response:
                if not response.is_success:
                    await response.aread()
                    raise _wire.failure(response)
                yield response.aiter_lines()
        except httpx.RequestError as error:
            raise _wire.unreached(error, self.base_url) from error

    async def _try(self, call: Call[A]) -> httpx.Response | httpx.RequestError:
        try:
            return await self._http.request(**_wire.request_arguments(call, self._http.timeout))
        except httpx.RequestError as error:
            return error

"""Owns the blocking way to a server: calls are sent, repeated where that does nothing twice, and streams opened.

Invariants: every failure leaves as an error of `memory_service.errors`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from memory_service.client import _wire
from memory_service.client._wire import Call

A = TypeVar("A", bound=BaseModel)


class Connection:
    """The way to one server; safe to use from several threads.

    Args:
        base_url: Where it listens.
        api_key: A key of the server, if it has any.
        timeout: Seconds to wait for an answer.
    """

    def __init__(self, base_url: str, api_key: str | None, timeout: float) -> None:
        self.base_url = base_url
        self._http = httpx.Client(**_wire.httpx_arguments(base_url, api_key, timeout))

    def close(self) -> None:
        """Give back the connections."""
        self._http.close()

    def send(self, call: Call[A]) -> A:
        """The answer to a call."""
        attempt = 0
        while True:
            outcome = self._try(call)
            delay = _wire.retry_delay(call, attempt, outcome)
            if delay is None:
                break
            time.sleep(delay)
            attempt += 1
        if isinstance(outcome, httpx.RequestError):
            raise _wire.unreached(outcome, self.base_url) from outcome
        return _wire.parse(call, outcome)

    @contextmanager
    def stream(self, call: Call[Any]) -> Iterator[Iterator[str]]:
        """The lines of an answer that does not end by itself."""
        try:
            with self._http.stream(**_wire.request_arguments(call, self._http.timeout)) as response:
                if not response.is_success:
                    response.read()
                    raise _wire.failure(response)
                yield response.iter_lines()
        except httpx.RequestError as error:
            raise _wire.unreached(error, self.base_url) from error

    def _try(self, call: Call[A]) -> httpx.Response | httpx.RequestError:
        try:
            return self._http.request(**_wire.request_arguments(call, self._http.timeout))
        except httpx.RequestError as error:
            return error

# Generated from _async_connection.py by `python -m tests.generate_client`: change that file, and run this again.
"""The connection to a server, for blocking programs: calls, and streams of events.

Invariants: a call is repeated only where that does nothing twice; every failure leaves as an error of
`memory_service.errors`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from memory_service import schemas
from memory_service.client import _wire
from memory_service.client._event_stream import Listening
from memory_service.client._wire import Call
from memory_service.errors import MemoryServiceError

_A = TypeVar("_A", bound=BaseModel)


class Connection:
    """Connection to one server; safe to use from several threads.

    Args:
        base_url: Address of the server.
        api_key: A key of the server, if it has any.
        timeout: Seconds to wait for an answer.
    """

    def __init__(self, base_url: str, api_key: str | None, timeout: float) -> None:
        self.base_url = base_url
        self._http = httpx.Client(**_wire.httpx_arguments(base_url, api_key, timeout))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call[_A]) -> _A:
        """Answer to a call."""
        attempt = 0
        while True:
            outcome = self._try(call)
            delay = _wire.retry_delay(call, attempt, outcome)
            if delay is None:
                break
            time.sleep(delay)
            attempt += 1
        if isinstance(outcome, httpx.RequestError):
            raise _wire.unreachable_error(outcome, self.base_url) from outcome
        return _wire.parse(call, outcome)

    @contextmanager
    def stream(self, call: Call[Any]) -> Iterator[Iterator[bytes]]:
        """Pieces of an answer that does not end by itself."""
        try:
            with self._http.stream(**_wire.request_arguments(call, self._http.timeout)) as response:
                if not response.is_success:
                    response.read()
                    raise _wire.failure(response)
                yield response.iter_bytes()
        except httpx.RequestError as error:
            raise _wire.unreachable_error(error, self.base_url) from error

    def events(
        self, call: Callable[[str], Call[schemas.SessionEvent]], after: int | None
    ) -> Iterator[schemas.SessionEvent]:
        """Events as they happen, without an end; a broken connection is made again.

        Args:
            call: Makes the call of the stream that goes on behind an event.
            after: The last event that was heard; 0 begins with the oldest that is kept; else those to come.
        """
        listening = Listening(after)
        while True:
            try:
                with self.stream(call(listening.last_id)) as pieces:
                    listening.begin_stream()
                    for piece in pieces:
                        yield from listening.feed_line(piece)
            except MemoryServiceError as error:
                listening.count_failure(error)
            time.sleep(listening.pause_seconds())

    def _try(self, call: Call[_A]) -> httpx.Response | httpx.RequestError:
        try:
            return self._http.request(**_wire.request_arguments(call, self._http.timeout))
        except httpx.RequestError as error:
            return error

"""The async client with blocking methods, so that one test serves both colours."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from memory_service import AsyncMemoryClient, AsyncReplyStream, AsyncSession, MemoryClient


class Waiting:
    """Something async whose methods wait, in a loop of its own."""

    def __init__(self, one: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._one = one
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._one, name)
        if not callable(method):
            return method

        def call(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            if inspect.isasyncgen(result):
                return self._listened(result)
            if inspect.isawaitable(result):
                result = self._loop.run_until_complete(result)
            if isinstance(result, AsyncReplyStream):
                return WaitingStream(result, self._loop)
            return Waiting(result, self._loop) if isinstance(result, AsyncSession) else result

        return call

    def _listened(self, events: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    event = self._loop.run_until_complete(anext(events))
                except StopAsyncIteration:
                    return
                yield event
        finally:
            self._loop.run_until_complete(events.aclose())


class WaitingStream(Waiting):
    """The async stream, read as the other one is."""

    def __iter__(self) -> Iterator[Any]:
        return self._listened(aiter(self._one))

    def __enter__(self) -> WaitingStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Blocking(Waiting):
    """The async client, used as the other one is."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(AsyncMemoryClient(*arguments, **named), asyncio.new_event_loop())

    def __enter__(self) -> Blocking:
        self._loop.run_until_complete(self._one.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._one.__aexit__(None, None, None))
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


COLOURS: list[Callable[..., Any]] = [MemoryClient, Blocking]

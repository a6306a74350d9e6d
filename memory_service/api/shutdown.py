"""Owns the order in which a server ends: open streams first.

Invariants: uvicorn waits for every open answer before it tells the app of the end, and a stream has no end of its
own, so it is ended before that; what must be done is done in the event loop, and at once.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn


class StreamingServer(uvicorn.Server):
    """A server that can end while streams are open.

    Args:
        config: See uvicorn.
        end_streams: Ends them all, and those to come; returns at once.
    """

    def __init__(self, config: uvicorn.Config, *, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, streams first; called by uvicorn."""
        self._end_streams()
        await super().shutdown(sockets)

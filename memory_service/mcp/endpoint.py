"""The route `/mcp` of a server: which memory a request is for, and the protocol's package behind it.

Invariants: the package is imported at the first request, in a thread, so that no server waits for what it may never
need; nothing is kept between requests, so that there is no stream to open with GET and no session to end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from memory_service.mcp.tools import RunTool
    from memory_service.service import MemoryService


class McpEndpoint:
    """The endpoint of one app.

    Args:
        service: What it serves.
        run: Runs the work of a tool in a thread, once it is the turn of its kind.
        max_body_bytes: The largest request.
    """

    def __init__(self, service: MemoryService, run: RunTool, *, max_body_bytes: int) -> None:
        self._service = service
        self._run_tool = run
        self._max_body_bytes = max_body_bytes
        self._lock = anyio.Lock()
        self._tasks: TaskGroup | None = None
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests until the block ends."""
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        async with self._lock:
            if self._manager is None:
                self._manager = await self._start()
        await self._manager.handle_request(scope, receive, send)

    async def _start(self) -> StreamableHTTPSessionManager:
        assert self._tasks is not None
        manager = await anyio.to_thread.run_sync(self._make)
        await self._tasks.start(self._run, manager)
        return manager

    def _make(self) -> StreamableHTTPSessionManager:
        from memory_service.mcp.protocol import http_manager

        return http_manager(self._service, self._run_tool, max_body_bytes=self._max_body_bytes)

    @staticmethod
    async def _run(manager: StreamableHTTPSessionManager, *, task_status: TaskStatus[None]) -> None:
        async with manager.run():
            task_status.started()
            await anyio.sleep_forever()

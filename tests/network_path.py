"""A path to a server that a test cuts, silences or leads elsewhere, as networks and proxies do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_AT_ONCE_BYTES = 65536


class NetworkPath:
    """A port of the loopback interface, behind which there is a server.

    Args:
        target_port: The port of the server, on the same interface.
    """

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self._is_open = True
        self._writers = set[asyncio.StreamWriter]()
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network path", daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def lead_to(self, target_port: int) -> None:
        """Lead to another server, and cut what leads to the former one."""
        self.target_port = target_port
        self.cut()

    def cut(self) -> None:
        """End all connections."""
        self._call(self._abort)

    @contextmanager
    def closed(self) -> Iterator[None]:
        """End all connections, and refuse new ones, while a block runs."""
        self._is_open = False
        self.cut()
        try:
            yield
        finally:
            self._is_open = True

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Pass nothing on while a block runs, and end all connections then."""
        self._call(self._passing.clear)
        try:
            yield
        finally:
            self.cut()
            self._call(self._passing.set)

    def close(self) -> None:
        """End it."""
        self._call(self._server.close)
        self._run(self._end())
        self._call(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        """All connections are cut, and nobody works on one any more."""
        self._abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._is_open:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(self._pass_on(reader, far_writer), self._pass_on(far_reader, writer))
        finally:
            self._writers -= {writer, far_writer}

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while part := await reader.read(_AT_ONCE_BYTES):
                await self._passing.wait()
                writer.write(part)
                await writer.drain()
        writer.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def _call(self, act: Callable[[], object]) -> None:
        done = threading.Event()

        def run() -> None:
            act()
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait(60)

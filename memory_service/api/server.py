"""The HTTP server: address, startup, shutdown, and settings of its process.

Invariants: no address but loopback is served without a key; the address is taken before it is printed, so a reader of
the line can connect. uvicorn waits for every open answer before it tells the app of the shutdown, and a stream never
ends by itself, so streams are ended first, in the event loop and at once. A request that does not arrive in time, and
an answer that is not read in time, end their connection; so no client holds a slot or memory by doing nothing. Time
that the server itself takes does not count.

glibc gives each thread a heap of its own and keeps memory that a burst of requests has freed: a server with dozens of
threads grows to several times what it uses. Two heaps are enough, as one thread at a time runs Python; elsewhere
nothing is set.
"""

from __future__ import annotations

import asyncio
import ctypes
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from memory_service.api.app import create_app
from memory_service.api.auth import is_loopback
from memory_service.api.errors import error_answer
from memory_service.api.requests import AppState
from memory_service.config import Settings, load_settings
from memory_service.errors import (
    ConnectionFailed,
    InvalidRequest,
    MemoryServiceError,
    StorageFailed,
    TooManyRequests,
    retry_headers,
)
from memory_service.home import PREFIX, announce_server, new_instance
from memory_service.service import AccessControl, MemoryService

_log = logging.getLogger("memory_service.api")

# Longer than a slow network needs for its first and its next bytes.
_HEAD_SECONDS = 20.0
_PAUSE_SECONDS = 20.0
# 16 MB at 64 KB a second.
_BODY_SECONDS = 300.0
_UNREAD_SECONDS = 60.0
_MOST_CONNECTIONS = 1_000


class TimedProtocol(H11Protocol):
    """A connection that is closed if its client keeps the server waiting.

    Attributes:
        head_seconds: From the first moment of a connection, or the first byte of a later request, to the end of its
            head.
        pause_seconds: Between two pieces of a body.
        body_seconds: For a whole body.
        unread_seconds: For a client to read some of what waits for it.
        most_connections: One more is refused.
    """

    head_seconds = _HEAD_SECONDS
    pause_seconds = _PAUSE_SECONDS
    body_seconds = _BODY_SECONDS
    unread_seconds = _UNREAD_SECONDS
    most_connections = _MOST_CONNECTIONS

    _incoming: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _is_new = True
    _body_ends_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self._refuse(503, TooManyRequests("The server has as many connections as it takes. Try again later."))
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._stop(self._incoming)
        self._stop(self._unread)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        """See asyncio."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """See asyncio."""
        self._stop(self._unread)
        super().resume_writing()

    def _watch(self) -> None:
        """Begin, go on with or end the wait for the rest of a request."""
        state, now = self.conn.their_state, self.loop.time()
        if state is h11.SEND_BODY:
            self._is_new = False
            self._body_ends_at = self._body_ends_at or now + self.body_seconds
            self._wait(min(self.pause_seconds, self._body_ends_at - now), anew=True)
            return
        self._body_ends_at = 0.0
        if state is h11.IDLE and (self._is_new or self.conn.trailing_data[0]):
            self._wait(self.head_seconds, anew=False)
        else:
            self._is_new = False
            self._stop(self._incoming)
            self._incoming = None

    def _wait(self, seconds: float, *, anew: bool) -> None:
        if self._incoming is None or anew:
            self._stop(self._incoming)
            self._incoming = self.loop.call_later(max(0.0, seconds), self._late)

    def _late(self) -> None:
        self._incoming = None
        if self.flow.read_paused:
            # It is the server that does not read.
            self._body_ends_at = 0.0
            self._watch()
        elif self._is_answering():
            self.transport.abort()
        else:
            self._refuse(408, ConnectionFailed("The request did not come whole in time. Send it again."))

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and cycle.response_started and not cycle.response_complete

    def _refuse(self, status: int, error: MemoryServiceError) -> None:
        body = bytes(error_answer(error).body)
        head = (
            f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n"
        )
        waits = "".join(f"{name}: {value}\r\n" for name, value in retry_headers(error).items() if status == 503)
        self.transport.write(f"{head}{waits}\r\n".encode() + body)
        self.transport.close()

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


class StreamingServer(uvicorn.Server):
    """Server that can stop while streams are open.

    Args:
        config: See uvicorn.
        end_streams: Ends all streams, future ones too; returns at once.
    """

    def __init__(self, config: uvicorn.Config, *, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down, streams first; called by uvicorn."""
        self._end_streams()
        await super().shutdown(sockets)


# Source: glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_ARENA_MAX = -8
_ARENAS = 2
_TRIM_BYTES = 128 * 1024


def _limit_heaps() -> None:
    """Limit the heaps of this process; existing heaps stay, so call it before threads start."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, _ARENAS)
        libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)


# How long a thread that computes keeps others waiting while there is work in the background. Source: our measurement,
# searches of 100,000 passages beside a thread that never rests: 31 ms and 210 at most with Python's 5 ms, 19 and 60
# with this; that thread does no less.
_TURN_SECONDS = 0.0005
# The same for threads that answer requests: the event loop waits for a turn at each of its steps, and with it health
# checks and refusals. Source: our measurement, 100 connections on a machine ten times too busy: `/health/live` .39 s
# and .59 at most with Python's 5 ms, .14 and .18 with half a millisecond.
_USUAL_TURN_SECONDS = 0.001


def _shorten_turns() -> None:
    """Give the threads of this process shorter turns, still shorter ones while background work runs."""
    usual = min(sys.getswitchinterval(), _USUAL_TURN_SECONDS)
    short = min(usual, _TURN_SECONDS)
    sys.setswitchinterval(usual)
    MemoryService.on_background_work(lambda busy: sys.setswitchinterval(short if busy else usual))


# As many as may come in one burst: whose connection finds no room in it tries again a second later.
_BACKLOG = 2048
# Longer than clients keep an idle connection, so that none is closed under a request.
_KEEP_ALIVE_SECONDS = 75
_SHUTDOWN_SECONDS = 5


def serve(settings: Settings, *, watch: bool = True) -> None:
    """Serve the HTTP API until the process is told to stop.

    Args:
        settings: Settings of the service and the address.
        watch: Index changes of the files as they happen, without waiting for a search.

    Raises:
        InvalidRequest: The address is open to others and there is no key, or it cannot be had.
    """
    _check_exposure(settings)
    _limit_heaps()
    _shorten_turns()
    with listening(settings.host, settings.port) as listener:
        service = MemoryService(settings)
        if not is_loopback(settings.host):
            # With the last key withdrawn it lets nobody in.
            service.access.require()
        instance = new_instance()
        app = create_app(service, watch=watch, instance=instance)
        app_state: AppState = app.state.shared
        server = StreamingServer(_config(app), end_streams=app_state.end)
        host, port = listener.getsockname()[:2]
        if threading.current_thread() is threading.main_thread():
            # When all is done uvicorn raises the signal that ended it once more, to be killed by it: as an interrupt
            # it comes here instead, and the process ends with 0.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            if hasattr(signal, "SIGHUP"):
                signal.signal(signal.SIGHUP, _on_hangup(settings, service.access))
        place = settings.place if settings.database_url else f"home {settings.home.absolute()}"
        sys.stderr.write(
            f"memory-service listens on http://{_in_url(host)}:{port} "
            f"({place}, model {service.embedding_model}, docs at /docs)\n"
        )
        sys.stderr.flush()
        url = f"http://{_in_url(_own_address(host))}:{port}"
        with announce_server(settings.home, url, instance, database=settings.database_url.get_secret_value()):
            with suppress(KeyboardInterrupt):
                server.run(sockets=[listener])


def _on_hangup(settings: Settings, access: AccessControl) -> Callable[[int, FrameType | None], None]:
    """The handler of SIGHUP: it reads the keys anew, or ends the server with the terminal it was started in."""
    has_terminal = _has_terminal()

    def on_hangup(number: int, frame: FrameType | None) -> None:
        if has_terminal and not _has_terminal():
            signal.raise_signal(signal.SIGTERM)
        else:
            # A log line may not be written in the middle of another one.
            threading.Thread(target=_read_keys_anew, args=(settings, access), daemon=True).start()

    return on_hangup


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True


def _read_keys_anew(settings: Settings, access: AccessControl) -> None:
    """Take the keys as the settings have them now; if they cannot be read, those of before stay."""
    try:
        api_keys = load_settings(home=settings.home, host=settings.host, port=settings.port).api_keys
        if bool(settings.api_keys) != bool(api_keys):
            raise InvalidRequest("A server with keys has to keep one, and one without has none. Restart it instead.")
    except MemoryServiceError as error:
        _log.error("The keys were not read anew, and those of before are in use: %s", error)
        return
    access.configure(api_keys)
    _log.warning("The keys were read anew: %d.", len(api_keys))


def _check_exposure(settings: Settings) -> None:
    """Refuse to serve without a key, of settings or home, where others reach the address or a client has one.

    Raises:
        InvalidRequest: There is none.
        StorageFailed: The keys of a home in files cannot be read, or those of a database for this machine alone.
    """
    has_clients_key = bool(os.environ.get(f"{PREFIX}API_KEY"))
    if settings.api_keys or (is_loopback(settings.host) and not has_clients_key):
        return
    try:
        with MemoryService(settings) as service:
            is_required = any(service.access.keys())
    except StorageFailed:
        if not settings.database_url or is_loopback(settings.host):
            raise
        # Such a server lets nobody in without a key, and that begins when the database is there.
        return
    if not is_required and has_clients_key:
        raise InvalidRequest(
            f"{PREFIX}API_KEY is the key of a client, and the server would serve without any. Make one with "
            f"`memory-service keys add NAME`, set {PREFIX}API_KEYS=key:workspace, or unset it."
        )
    if not is_required:
        raise InvalidRequest(
            f"The host {settings.host} can be reached by others, and there is no API key. Make one with "
            "`memory-service keys add NAME --role admin`, set MEMORY_SERVICE_API_KEYS=key:workspace, or serve on "
            "127.0.0.1."
        )


def _config(app: FastAPI) -> uvicorn.Config:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # What changes a view is told, whether it went well or not.
    logging.getLogger("memory_service.compactions").setLevel(logging.INFO)
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        http=TimedProtocol,
        ws="none",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )


def listening(host: str, port: int) -> socket.socket:
    """A socket that takes connections; port 0 picks a free one.

    Raises:
        InvalidRequest: The address cannot be had.
    """
    try:
        getaddrinfo = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )
        return _bind(getaddrinfo[0][0], getaddrinfo[0][4])
    except OSError as error:
        raise InvalidRequest(
            f"The server cannot listen on {host} port {port} ({error.strerror or error}). "
            "Stop the program that uses it, or choose another --port; 0 picks a free one."
        ) from error


def _bind(family: int, address: tuple[Any, ...]) -> socket.socket:
    # asyncio turns off Nagle's algorithm only where the protocol is named, which `socket.create_server` does
    # not do: each answer took 40 ms more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name != "nt":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _own_address(host: str) -> str:
    """The address at which this machine reaches a listener; that of all addresses is none."""
    if not ipaddress.ip_address(host).is_unspecified:
        return host
    return "::1" if ":" in host else "127.0.0.1"


def _in_url(host: str) -> str:
    return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host

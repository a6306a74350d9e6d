"""Commands through a running server: found by its address, spoken to over a bare socket, its answers as printed here.

A server is the one of `MEMORY_SERVICE_URL`, else the one that says that it runs on the same home. Invariants: what is
printed is the same byte for byte with and without it; a server of the home that cannot be used (another version, a
wrong key, gone) costs its speed alone; one that was named is used, or the command fails. httpx and pydantic take longer
to import than a search takes here, so neither is.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

from memory_service._version import __version__
from memory_service.errors import (
    ConnectionFailed,
    Forbidden,
    InvalidRequest,
    MemoryServiceError,
    NotFound,
    PreconditionFailed,
    ServerFailed,
    Unauthorized,
    from_wire,
)
from memory_service.home import (
    CONNECT_SECONDS,
    INSTANCE_HEADER,
    PREFIX,
    answers,
    check_workspace,
    home_of,
    server_of,
)

if TYPE_CHECKING:
    from memory_service.service import MemoryService

_SECONDS = 60.0
# Whoever has heard nothing by then asks if anybody is at work there: a stopped server still takes connections.
_SILENT_SECONDS = 1.5
_POLL_SECONDS = 0.2
# New changes may come while a command waits; it does not wait for ever.
_MOST_ROUNDS = 5
_REMEDIED_BY_WAITING = ("Ask again in a moment.", "wait. Run `memory-service reindex`.")
_TOKEN = rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+'
# What is not Unicode goes to the server as it is, which refuses it.
_AS_BYTES = "surrogatepass"
_VISIBLE = r"[\x21-\x7e]+"
Cold = Callable[[], AbstractContextManager["MemoryService"]]


class ServerUnusable(Exception):
    """The server of a home cannot be used; its message says why, and is empty where nothing is wrong."""


class Server(NamedTuple):
    """A server to go through.

    Attributes:
        instance: Its name for this run; empty where it was named by its URL.
        api_key: The key that is sent; that of the environment if it is empty.
    """

    url: str
    instance: str = ""
    api_key: str = ""

    @property
    def is_named(self) -> bool:
        """True if it is the one that was asked for, so that nothing else will do."""
        return not self.instance

    @property
    def is_here(self) -> bool:
        """True if it runs on this machine, by its address."""
        return urlsplit(self.url).hostname in ("127.0.0.1", "localhost", "::1")

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *, seconds: float
    ) -> bytes:
        """One request and the body of its answer; one that the server refuses for now is sent again once.

        The server says when, and if that is not within the time that the command has, the refusal stands.

        Raises:
            Unusable: Only for a server that was found, which nothing reached or which takes no such request: the work
                can be done without it.
            MemoryServiceError: The failure that it answered, or that there was no answer.
        """
        ends = time.monotonic() + seconds
        sent_parts = (self.url, method, path, body, self._headers(headers))
        try:
            status, answer, wait = _http_exchange(*sent_parts, seconds)
            if status in (429, 503) and wait and wait < ends - time.monotonic():
                time.sleep(wait)
                status, answer, wait = _http_exchange(*sent_parts, max(_SILENT_SECONDS, ends - time.monotonic()))
        except ConnectionRefusedError as error:
            if not self.is_named:
                # Killed, and its address stayed.
                raise ServerUnusable("") from None
            raise self._unreachable_error(error) from None
        except OSError as error:
            raise self._unreachable_error(error) from None
        if status < 400:
            return answer
        failure = self._failure(status, answer, wait)
        if isinstance(failure, Unauthorized | Forbidden) and not self.is_named:
            raise ServerUnusable(f"it wants another key: {failure} {PREFIX}API_KEY is sent") from None
        # A server knows no name that is not Unicode.
        is_worded_here = type(failure) in (PreconditionFailed, InvalidRequest) or not _is_unicode(path)
        if is_worded_here and not self.is_named:
            # Of what a request may have, and the words for it, the command has its own: they hold with a server, too.
            raise ServerUnusable("") from None
        raise failure

    def _headers(self, headers: Mapping[str, str] | None) -> dict[str, str]:
        key = self.api_key or os.environ.get(f"{PREFIX}API_KEY", "")
        if key and not re.fullmatch(_VISIBLE, key):
            name = "--api-key" if self.api_key else f"{PREFIX}API_KEY"
            raise InvalidRequest(f"{name} has a character that no key has. Set the key alone.")
        return {
            "User-Agent": f"memory-service/{__version__}",
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {key}"} if key else {}),
            **({INSTANCE_HEADER: self.instance} if self.instance else {}),
            **(headers or {}),
        }

    def _unreachable_error(self, error: OSError) -> MemoryServiceError:
        if isinstance(error, TimeoutError):
            return ConnectionFailed(f"The server at {self.url} did not answer in time. Try again, or restart it.")
        remedy = f"Start it, or unset {PREFIX}URL." if self.is_named else "Try again, or restart it."
        return ConnectionFailed(f"The server at {self.url} was not reached ({error.strerror or error}). {remedy}")

    def _failure(self, status: int, answer: bytes, wait: float) -> MemoryServiceError:
        try:
            value = json.loads(answer)["error"]
            return from_wire(status, value["code"], value["message"], retry_after_seconds=wait or None)
        except (ValueError, KeyError, TypeError):
            return ServerFailed(
                f"The server at {self.url} answered {status}, and not as memory-service {__version__} does. "
                "Check the address and its version (GET /version)."
            )


def server_for(home: Path | None, *, on_files: bool = False) -> Server | None:
    """The server that a command goes through; None for none.

    Args:
        home: The home of the command.
        on_files: Whether the home was named on the command line: then no other server than its own will do.

    Raises:
        InvalidRequest: The address is none.
        Unusable: There is one, of another version or with another database.
    """
    url = os.environ.get(f"{PREFIX}URL", "")
    if url and not on_files:
        return Server(checked_address(url, f"{PREFIX}URL").rstrip("/"))
    address = server_of(home_of(home))
    if address is None:
        return None
    fault = ""
    if address.version != __version__:
        fault = f"is version {address.version}, and this is {__version__}"
    elif not address.works_for(home_of(home)):
        fault = "has its memories elsewhere than database_url says"
    if fault:
        # One that was killed before an upgrade left its address, and is not there to be restarted.
        raise ServerUnusable(f"the server at {address.url} {fault}" if answers(address.url) else "")
    return Server(address.url, address.instance)


def checked_address(url: str, name: str) -> str:
    """The address of a server, as it was given.

    Raises:
        InvalidRequest: It is none; `name` says where it stands.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest(f"{name} is {url[:100]!r}, no address of a server. Set one such as http://127.0.0.1:8765.")
    return url


class FoundServer(NamedTuple):
    """A server that runs on a home, as `status` and `doctor` show it.

    Attributes:
        used: Whether commands go through it.
        reason: Why they do not; empty where they do.
    """

    url: str
    version: str
    pid: int
    used: bool
    reason: str

    def __str__(self) -> str:
        text = f"commands work without it, as {self.reason}" if self.reason else "commands go through it"
        return f"{self.url}, version {self.version}, process {self.pid}; {text}"


def found_server(home: Path, workspace: str) -> FoundServer | None:
    """The server that runs on a home, asked here and now; None where none answers."""
    address = server_of(home)
    if address is None:
        return None
    reason = ""
    try:
        if server := server_for(home, on_files=True):
            server.ask("GET", f"/v1/workspaces/{workspace}/status", seconds=CONNECT_SECONDS)
    except NotFound:
        pass  # the workspace is not there yet
    except ServerUnusable as error:
        if not str(error):
            return None
        reason = str(error)
    except MemoryServiceError as error:
        reason = str(error)
    return FoundServer(address.url, address.version, address.pid, not reason, reason)


def _http_exchange(
    url: str, method: str, path: str, body: bytes, headers: Mapping[str, str], seconds: float
) -> tuple[int, bytes, float]:
    """One exchange of HTTP/1.0, whose answer ends with the connection: status, body, and the wait asked for."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    lines = [f"{method} {parts.path}{path} HTTP/1.0", f"Host: {parts.netloc.rpartition('@')[2]}"]
    lines += [f"{name}: {value}" for name, value in {**headers, "Content-Length": str(len(body))}.items()]
    request = "\r\n".join([*lines, "", ""]).encode("latin-1") + body
    with socket.create_connection((parts.hostname, parts.port or (443 if secure else 80)), CONNECT_SECONDS) as plain:
        plain.settimeout(seconds)
        if secure:
            import ssl

            with ssl.create_default_context().wrap_socket(plain, server_hostname=parts.hostname) as sealed_socket:
                return _read_answer(sealed_socket, request, url, seconds)
        return _read_answer(plain, request, url, seconds)


def _read_answer(connection: socket.socket, request: bytes, url: str, seconds: float) -> tuple[int, bytes, float]:
    connection.settimeout(min(seconds, _SILENT_SECONDS))
    connection.sendall(request)
    try:
        pieces = [connection.recv(1 << 16)]
    except TimeoutError:
        if seconds <= _SILENT_SECONDS or not _is_at_work(url):
            raise
        connection.settimeout(seconds - _SILENT_SECONDS)
        pieces = [connection.recv(1 << 16)]
    connection.settimeout(seconds)
    while piece := connection.recv(1 << 16):
        pieces.append(piece)
    head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise OSError("it does not speak HTTP")
    wait = re.search(rb"(?i)\nretry-after: *([0-9]{1,4})\r", head + b"\r")
    return int(words[1]), body, float(wait[1]) if wait else 0.0


def _is_at_work(url: str) -> bool:
    """True if a server answers another request, whatever it says."""
    try:
        _http_exchange(url, "GET", "/health/live", b"", {}, _SILENT_SECONDS)
    except OSError:
        return False
    return True


class WarmAnswer(dict[str, Any]):
    """An answer of a server, read like the value of `schemas` that it is."""

    raw = b""

    def __getattribute__(self, name: str) -> Any:
        # A field comes before a method of dictionaries, as `values` of a fact.
        return self[name] if name in self else super().__getattribute__(name)

    def model_dump_json(self, *, indent: int) -> str:
        """The answer as it came, in lines; numbers and texts keep their bytes."""
        return _indent_json(self.raw, indent)


def answer_of(raw: bytes) -> WarmAnswer:
    """The answer of a server, read.

    Raises:
        ServerFailed: It is no JSON object, as that of another program, or half of one.
    """
    try:
        answer = json.loads(raw, object_hook=WarmAnswer)
    except ValueError:
        answer = None
    if not isinstance(answer, WarmAnswer):
        raise ServerFailed("The server gave an answer that is none of memory-service's. Check its address and version.")
    answer.raw = raw
    return answer


def _indent_json(raw: bytes, by: int) -> str:
    """Compact JSON in lines, as pydantic writes it."""
    chunks, depth, tokens = list[bytes](), 0, re.findall(_TOKEN, raw)
    for at, token in enumerate(tokens):
        empty = token in b"[{" and tokens[at + 1] in (b"]", b"}")
        if token in (b"[", b"{") and not empty:
            depth += 1
            chunks += [token, b"\n", b" " * by * depth]
        elif token in (b"]", b"}") and tokens[at - 1] not in (b"[", b"{"):
            depth -= 1
            chunks += [b"\n", b" " * by * depth, token]
        elif token == b",":
            chunks += [token, b"\n", b" " * by * depth]
        else:
            chunks.append(b": " if token == b":" else token)
    return b"".join(chunks).decode()


def _quote(name: str, safe: str) -> str:
    return quote(name, safe=safe, errors=_AS_BYTES)


def _is_unicode(path: str) -> bool:
    try:
        unquote(path, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def _waits(degraded: str) -> bool:
    """True if a part is missing that is there once all is indexed, by the remedy that the message names."""
    return degraded.startswith(("index: ", "vector: ")) and degraded.endswith(_REMEDIED_BY_WAITING)


# Of each method of `MemoryService` that commands use: method and path of its route, and the names of what it is given
# without a name.
_ROUTES = {
    "remember": ("POST", "/memories", ("text",)),
    "search": ("POST", "/search", ("query",)),
    "context": ("POST", "/context", ("query",)),
    "get": ("GET", "/memories/{path}", ("path", "start_line", "lines")),
    "versions": ("GET", "/versions/{path}", ("path",)),
    "erase_versions": ("DELETE", "/versions/{path}", ("path",)),
    "forget": ("POST", "/forget", ("memory",)),
    "entries": ("GET", "/entries", ()),
    "entry": ("GET", "/entries/{memory}", ("memory",)),
    "receipts": ("GET", "/receipts", ()),
    "changed_facts": ("GET", "/facts", ()),
    "distinguish": ("POST", "/facts/distinctions", ("first", "second")),
    "edit": ("PATCH", "/entries/{memory}", ("memory",)),
}
_WAITING = ("search", "context")


class _Call(NamedTuple):
    """A request, and what does the same without the server."""

    method: str
    place: str
    body: Mapping[str, Any] | None
    headers: Mapping[str, str]
    cold: Callable[[MemoryService], Any]


class ServerMemory:
    """A memory behind a server, with the methods of `MemoryService` that commands use.

    Args:
        server: The server.
        cold: Opens the memory without it, for one that cannot be used.
        told: Says why.
        waits: Whether a search waits until the server has indexed what it says that it has not.
    """

    def __init__(self, server: Server, cold: Cold, told: Callable[[str], None], *, waits: bool = False) -> None:
        self._server = server
        self._cold = cold
        self._told = told
        self._waits = waits

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        """The method of `MemoryService` with that name, through the server."""
        if verb not in _ROUTES:
            raise AttributeError(verb)
        return partial(self._call, verb)

    def _call(self, verb: str, workspace: str, *values: Any, **options: Any) -> Any:
        method, path, names = _ROUTES[verb]
        given_values = {**dict(zip(names, values, strict=False)), **options}
        given_values = {name: value for name, value in given_values.items() if value is not None}
        etag, items = given_values.pop("etag", None), re.findall(r"{(\w+)}", path)
        place = path.format_map({name: _quote(given_values.pop(name), "/" if name == "path" else "") for name in items})
        query = {"tag" if name == "tags" else name: value for name, value in given_values.items()}
        call = _Call(
            method=method,
            place=f"{place}?{urlencode(query, doseq=True, errors=_AS_BYTES)}" if method == "GET" else place,
            body=None if method == "GET" else given_values,
            headers={"If-Match": f'"{etag}"'} if etag else {},
            cold=lambda service: getattr(service, verb)(workspace, *values, **options),
        )
        return self._whole(workspace, call) if verb in _WAITING else self._ask(workspace, call)

    def _whole(self, workspace: str, call: _Call) -> Any:
        """An answer; where something is not indexed yet and may be waited for, one from when it is."""
        answer = self._ask(workspace, call)
        # Where the server may not be told to, or fails at it, its first answer says what is missing.
        with suppress(ServerUnusable, MemoryServiceError):
            for _ in range(_MOST_ROUNDS):
                if not (self._waits and isinstance(answer, WarmAnswer) and any(map(_waits, answer.degraded))):
                    break
                self._reindex_and_wait(workspace)
                answer = self._ask(workspace, call)
        return answer

    def _reindex_and_wait(self, workspace: str) -> None:
        """Have the server index all that changed, and wait for it."""
        from memory_service.cli.output import INDEXED_FIRST, Indexed, progress_bar

        path = f"/v1/workspaces/{workspace}"
        answer = answer_of(self._server.ask("POST", f"{path}/reindex", b"{}", seconds=_SECONDS))
        with progress_bar(INDEXED_FIRST) as show:
            while True:
                now = answer_of(self._server.ask("GET", f"{path}/operations/{answer.operation_id}", seconds=_SECONDS))
                show(Indexed(now.done, now.total))
                if now.state not in ("queued", "running"):
                    break
                time.sleep(_POLL_SECONDS)
            # What the server does of its own accord may take longer.
            while (found_answer := answer_of(self._server.ask("GET", f"{path}/status", seconds=_SECONDS))).syncing:
                show(Indexed(found_answer.sync_done, found_answer.sync_total))
                time.sleep(_POLL_SECONDS)

    def _ask(self, workspace: str, call: _Call) -> Any:
        check_workspace(workspace)
        content = json.dumps(call.body, default=date.isoformat).encode() if call.body is not None else b""
        path = f"/v1/workspaces/{workspace}{call.place}"
        try:
            answer = self._server.ask(call.method, path, content, call.headers, seconds=_SECONDS)
        except ServerUnusable as reason:
            self._told(str(reason))
            with self._cold() as service:
                return call.cold(service)
        return answer_of(answer)

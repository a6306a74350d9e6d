"""Serving a host by standard input and output: its first questions are answered before the protocol's package is there.

Hosts give a server about a second until it has told its tools, and then go on without them (Codex: openai/codex#31641);
the package alone may take as long to import. So the handshake (or what stands for it since 2026-07-28) and the list of
tools, which are what every host asks first, are answered here while a thread imports it. From the first other message
on, the package answers.

Invariants: what is answered here is what the package would answer, which a test compares; the package hears the same
handshake, and its own answer to that is left out; the service is opened behind the first answers, which need none.

Source: MCP 2025-11-25, "Lifecycle" and "Tools"; MCP 2026-07-28, "Discovery".
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from memory_service._version import __version__
from memory_service.mcp import tools
from memory_service.service import without_collector

if TYPE_CHECKING:
    from memory_service.service import MemoryService

_log = logging.getLogger("memory_service.mcp")
# Revisions in which the answers here are those of the package: with a handshake, and without one.
HANDSHAKES: Final = ("2025-06-18", "2025-11-25")
MODERN: Final = "2026-07-28"
_META = "io.modelcontextprotocol/"
_CAPABILITIES: Final = {"tools": {"listChanged": False}}
_SERVER: Final = {"name": tools.SERVER_NAME, "title": tools.SERVER_TITLE, "version": __version__}


class LazyService:
    """The service on a home, opened when it is first needed.

    Args:
        home: The folder; None for the one of the settings.
    """

    def __init__(self, home: Path | None) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._service: MemoryService | None = None
        self._warming: threading.Thread | None = None

    def get(self) -> MemoryService:
        """The open service.

        Raises:
            MemoryServiceError: A setting cannot be used.
        """
        with self._lock:
            if self._service is None:
                from memory_service.service import MemoryService

                self._service = MemoryService.open(self._home)
            return self._service

    def warm_up(self) -> None:
        """Open it in the background, and load its models; returns at once."""
        if self._warming is None:
            self._warming = threading.Thread(target=self._load, name="warm-up", daemon=True)
            self._warming.start()

    def close(self) -> None:
        """Give back all files."""
        with self._lock:
            if self._service is not None:
                self._service.close()

    def _load(self) -> None:
        try:
            self.get().warm_up()
        except Exception as error:
            # A call that needs it meets the same, and tells it to the model.
            _log.warning("%s", error)


@dataclass(slots=True)
class Heard:
    """What was read before the package was there, and is its to read.

    Attributes:
        lines: The lines, the first one first.
        answered: The id of the handshake that was answered; None if it was not.
        ended: Whether the input ended, so that there is nothing to serve.
    """

    lines: list[bytes] = field(default_factory=list)
    answered: int | str | None = None
    ended: bool = False


def serve_stdio(home: Path | None, workspace: str) -> None:
    """Serve a workspace of a home to the host that started this process, until its input ends."""
    lazy = LazyService(home)
    package = threading.Thread(target=_load_package, name="protocol", daemon=True)
    package.start()
    try:
        heard = answer_first(sys.stdin.buffer, sys.stdout.buffer, lazy.warm_up)
        if heard.ended:
            return
        package.join()
        from memory_service.mcp.protocol import speak_stdio

        speak_stdio(
            lambda: tools.CallPlace(service=lazy.get(), workspace=workspace), lazy.warm_up, heard.lines, heard.answered
        )
    finally:
        lazy.close()


def _load_package() -> None:
    with without_collector():
        import memory_service.mcp.protocol  # noqa: F401


def answer_first(read: BinaryIO, write: BinaryIO, on_listed: Callable[[], None]) -> Heard:
    """Answer the handshake, the list of tools and pings, up to the first message that is another one.

    Args:
        read: The host's messages, one in a line.
        write: Where the answers go.
        on_listed: Called when the host has asked for the tools, and so will soon call one.

    Returns:
        What the package has to hear.
    """
    heard = Heard()
    while line := read.readline():
        message = _parsed(line)
        method, number = message.get("method"), message.get("id")
        if method == "notifications/initialized" and heard.answered is not None:
            heard.lines.append(line)
            continue
        answer = _answer(message, is_known=heard.answered is not None)
        if answer is None or isinstance(number, bool) or not isinstance(number, int | str):
            heard.lines.append(line)
            return heard
        if method == "initialize":
            heard.answered = number
            heard.lines.append(line)
        told = {"jsonrpc": "2.0", "id": number, "result": answer}
        write.write(json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        write.flush()
        if method == "tools/list":
            on_listed()
    heard.ended = True
    return heard


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else {}


def _answer(message: Mapping[str, Any], *, is_known: bool) -> dict[str, Any] | None:
    """The answer to a message; None if it is the package's to give.

    Args:
        message: The message.
        is_known: Whether the host has introduced itself, after which its requests say no more who asks.
    """
    method, given = message.get("method"), message.get("params", {})
    match method, given:
        case "initialize", {
            "protocolVersion": str(version),
            "capabilities": dict(),
            "clientInfo": {"name": str(), "version": str()},
        } if version in HANDSHAKES and not is_known:
            asked = {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": _SERVER}
            return {**asked, "instructions": tools.INSTRUCTIONS}
        case "tools/list", dict() if is_known and not given.keys() - {"_meta"}:
            return {"tools": tools.described_tools()}
        case "ping", dict() if is_known:
            return {}
        case _, {"_meta": dict(meta)} if not is_known and len(given) == 1 and _is_modern(meta):
            return _modern_answer(method)
    return None


def _is_modern(meta: Mapping[str, Any]) -> bool:
    match {key.removeprefix(_META): value for key, value in meta.items()}:
        case {
            "protocolVersion": version,
            "clientInfo": {"name": str(), "version": str()},
            "clientCapabilities": dict(),
        }:
            return bool(version == MODERN)
    return False


def _modern_answer(method: object) -> dict[str, Any] | None:
    shared = {"resultType": "complete", "cacheScope": "private", "_meta": {f"{_META}serverInfo": _SERVER}}
    if method == "tools/list":
        return {**shared, "tools": tools.described_tools(), "ttlMs": tools.LIST_TTL_MS}
    if method == "server/discover":
        told = {"capabilities": _CAPABILITIES, "instructions": tools.INSTRUCTIONS, "supportedVersions": [MODERN]}
        return {**shared, **told, "ttlMs": 0}
    return None

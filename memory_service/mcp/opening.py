"""The first answers to a host by standard input and output, given before the protocol's package is there.

Hosts give a server about a second until it has told its tools, and then go on without them (Codex: openai/codex#31641);
the package alone may take as long to import. So the handshake (or what stands for it since 2026-07-28) and the list of
tools, which are what every host asks first, are answered here while a thread imports it. From the first other message
on, the package answers.

Invariants: what is answered here is what the package would answer, which a test compares; the package hears the same
handshake.

Source: MCP 2025-11-25, "Lifecycle" and "Tools"; MCP 2026-07-28, "Discovery".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from memory_service._version import __version__
from memory_service.mcp import tools

# Revisions in which the answers here are those of the package: with a handshake, and without one.
HANDSHAKES: Final = ("2025-06-18", "2025-11-25")
MODERN: Final = "2026-07-28"
_META = "io.modelcontextprotocol/"
_CAPABILITIES: Final = {"tools": {"listChanged": False}}
_SERVER: Final = {"name": tools.SERVER_NAME, "title": tools.SERVER_TITLE, "version": __version__}


@dataclass(slots=True)
class ReadAhead:
    """Input that was read before the package was there, and is its to read.

    Attributes:
        lines: The lines, the first one first.
        answered: The id of the handshake that was answered; None if it was not.
        ended: Whether the input ended, so that there is nothing to serve.
    """

    lines: list[bytes] = field(default_factory=list)
    answered: int | str | None = None
    ended: bool = False


def answer_first(read: BinaryIO, write: BinaryIO, on_listed: Callable[[], None]) -> ReadAhead:
    """Answer the handshake, the list of tools and pings, up to the first message that is another one.

    Args:
        read: The host's messages, one in a line.
        write: Where the answers go.
        on_listed: Called when the host has asked for the tools, and so will soon call one.

    Returns:
        What the package has to hear.
    """
    history = ReadAhead()
    while line := read.readline():
        message = _parse(line)
        method, number = message.get("method"), message.get("id")
        if method == "notifications/initialized" and history.answered is not None:
            history.lines.append(line)
            continue
        answer = _answer(message, is_known=history.answered is not None)
        if answer is None or isinstance(number, bool) or not isinstance(number, int | str):
            history.lines.append(line)
            return history
        if method == "initialize":
            history.answered = number
            history.lines.append(line)
        fields = {"jsonrpc": "2.0", "id": number, "result": answer}
        write.write(json.dumps(fields, separators=(",", ":")).encode() + b"\n")
        write.flush()
        if method == "tools/list":
            on_listed()
    history.ended = True
    return history


def _parse(line: bytes) -> dict[str, Any]:
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
    method, given_params = message.get("method"), message.get("params", {})
    match method, given_params:
        case "initialize", {
            "protocolVersion": str(version),
            "capabilities": dict(),
            "clientInfo": {"name": str(), "version": str()},
        } if version in HANDSHAKES and not is_known:
            asked_fields = {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": _SERVER}
            return {**asked_fields, "instructions": tools.INSTRUCTIONS}
        case "tools/list", dict() if is_known and not given_params.keys() - {"_meta"}:
            return {"tools": tools.described_tools()}
        case "ping", dict() if is_known:
            return {}
        case _, {"_meta": dict(meta)} if not is_known and len(given_params) == 1 and _is_modern(meta):
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
    shared_fields = {"resultType": "complete", "cacheScope": "private", "_meta": {f"{_META}serverInfo": _SERVER}}
    if method == "tools/list":
        return {**shared_fields, "tools": tools.described_tools(), "ttlMs": tools.LIST_TTL_MS}
    if method == "server/discover":
        fields = {"capabilities": _CAPABILITIES, "instructions": tools.INSTRUCTIONS, "supportedVersions": [MODERN]}
        return {**shared_fields, **fields, "ttlMs": 0}
    return None

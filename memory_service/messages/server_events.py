"""Server-sent events out of bytes as they come, however they are cut, for whoever reads a stream.

Invariants: time grows with the bytes, and memory is bounded; an event counts once its empty line has come, so one that
was cut off is none.

Source: WHATWG HTML, 9.2.6 "Interpreting an event stream".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Of one event. Source: an image of 4 MB in base64, with room.
MOST_EVENT_BYTES = 8_000_000
_MOST_LINES = 10_000
_MAX_DIGITS = 18
# Data that is no JSON, and no fault.
_MARKS = ("", "[DONE]")


class Unreadable(Exception):
    """An answer, or an event of it, that cannot be read, or is more than is read; the message says why."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One server-sent event: its name, empty for none, its data, and the id to resume after."""

    name: str
    text: str
    id: str = ""

    def json(self) -> dict[str, Any]:
        """The data as an object; empty if it is another value, or a mark such as `[DONE]`.

        Raises:
            ValueError: It is neither.
        """
        if self.text.strip() in _MARKS:
            return {}
        value = json.loads(self.text)
        return value if isinstance(value, dict) else {}

    def encode(self) -> str:
        """The event as it goes over the wire."""
        lines = "".join(f"data: {line}\n" for line in self.text.split("\n"))
        return f"{f'event: {self.name}' + chr(10) if self.name else ''}{lines}\n"


class EventSplitter:
    """Reader of a stream.

    Args:
        most_bytes: Longer events are not read.

    Attributes:
        last_id: Value of `Last-Event-ID` for a new connection; "" as long as the server has named none.
        retry_ms: Wait before that which the server asks for; None without one.
    """

    def __init__(self, most_bytes: int = MOST_EVENT_BYTES) -> None:
        self.last_id = ""
        self.retry_ms: int | None = None
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._searched_upto = 0
        self._after_return = False

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """The events that these bytes complete.

        Raises:
            Unreadable: One is longer than is read.
        """
        self._buffer += self._with_newlines(chunk)
        while (end := self._buffer.find(b"\n\n", self._searched_upto)) >= 0:
            block = bytes(self._buffer[:end])
            del self._buffer[: end + 2]
            self._searched_upto = 0
            if (event := self._event(block)) is not None:
                yield event
        # Its last byte may be the first half of an end.
        self._searched_upto = max(len(self._buffer) - 1, 0)
        if len(self._buffer) > self._most_bytes:
            raise Unreadable(f"an event is longer than {self._most_bytes:,} bytes")

    def rest(self) -> bytes:
        """The bytes behind the last event; they are given once."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._searched_upto = 0
        return rest

    def _with_newlines(self, chunk: bytes) -> bytes:
        """A chunk in which each line ends with a newline."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk, self._after_return = chunk[1:], False
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk

    def _event(self, block: bytes) -> ServerEvent | None:
        """The event in the lines between two blank ones; None if they have no data."""
        if block.count(b"\n") > _MOST_LINES:
            raise Unreadable(f"an event has more than {_MOST_LINES:,} lines")
        name, lines = "", list[str]()
        for line in block.decode("utf-8-sig", "replace").split("\n"):
            field, _, value = line.partition(":")
            match field:
                case "event":
                    name = value.strip()
                case "data":
                    lines.append(value.removeprefix(" "))
                case "id" if "\0" not in value:
                    self.last_id = value.removeprefix(" ")
                case "retry" if (wait := value.strip()).isascii() and wait.isdigit() and len(wait) <= _MAX_DIGITS:
                    self.retry_ms = int(wait)
                case _:
                    pass  # A comment, or what a later version may send.
        return ServerEvent(name, "\n".join(lines), self.last_id) if lines else None

"""Owns how the lines of an event stream become events, for both clients. Pure: no I/O.

Invariants: linear; an event counts once its empty line has come, so one that was cut off is none, and comes again
after a new connection with `last_id`; an event has a largest size, whatever a server sends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memory_service.errors import ServerFailed

MAX_EVENT_CHARS = 1_000_000
_MAX_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class SentEvent:
    """One event of a stream.

    Attributes:
        id: Where to go on after it; "" as long as the server has named none.
        kind: Its name.
        content: The JSON object it came with, to be checked by whom it concerns.
    """

    id: str
    kind: str
    content: dict[str, object]


class EventLines:
    """Reads a stream line by line, for either colour: `feed` is called for each.

    Attributes:
        last_id: What to send as `Last-Event-ID` on a new connection; "" before the first event.
        retry_ms: What the server asks to wait before that; None if it asks for nothing.

    Source: WHATWG HTML, 9.2.6 "Interpreting an event stream".
    """

    def __init__(self) -> None:
        self.last_id = ""
        self.retry_ms: int | None = None
        self._id = ""
        self._kind = ""
        self._parts: list[str] = []
        self._chars = 0
        self._begun = False

    def feed(self, line: str) -> SentEvent | None:
        """Take a line, without its end; gives the event that is complete with it.

        Raises:
            ServerFailed: It is none that memory-service sends.
        """
        if not self._begun:
            self._begun, line = True, line.removeprefix("\ufeff")
        if not line:
            return self._complete()
        name, _, value = line.partition(":")
        self._take(name, value.removeprefix(" "))
        return None

    def _take(self, name: str, value: str) -> None:
        match name:
            case "event":
                self._kind = value
            case "data":
                self._add(value)
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS:
                self.retry_ms = int(value)
            case _:
                pass  # A comment, or what a later version may send.

    def _add(self, value: str) -> None:
        self._chars += len(value) + 1
        if self._chars > MAX_EVENT_CHARS:
            raise ServerFailed(
                f"An event of the stream is over {MAX_EVENT_CHARS:,} characters. "
                "Check the URL: this may be another server."
            )
        self._parts.append(value)

    def _complete(self) -> SentEvent | None:
        text, kind = "\n".join(self._parts), self._kind or "message"
        self._parts, self._chars, self._kind = [], 0, ""
        self.last_id = self._id
        return SentEvent(id=self._id, kind=kind, content=_object(text)) if text else None


def events_of(lines: Iterable[str]) -> Iterator[SentEvent]:
    """The events in the lines of a stream, each as soon as it is complete.

    Raises:
        ServerFailed: One is none that memory-service sends.
    """
    reader = EventLines()
    for line in lines:
        event = reader.feed(line)
        if event is not None:
            yield event


def _object(text: str) -> dict[str, object]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ServerFailed(
            "An event of the stream is no JSON object. Check the URL, and that client and server are of one version."
        )
    return content

"""Event stream of a session: lines in, events out, and where to go on after a connection broke. No I/O.

Invariants: streams are read in linear time; an event counts once its empty line has come, so one that was cut off is
none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import ValidationError

from memory_service import schemas
from memory_service.errors import ConnectionFailed, MemoryServiceError, ServerFailed

MAX_EVENT_CHARS = 1_000_000
_MAX_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class SentEvent:
    """One event of a stream.

    Attributes:
        id: Id to resume after; "" as long as the server has named none.
        kind: Its name.
        content: Its JSON object, unchecked.
    """

    id: str
    kind: str
    content: dict[str, object]


class EventLines:
    """Reader of a stream, line by line: `feed` is called for each.

    Attributes:
        last_id: Value of `Last-Event-ID` for a new connection; "" before the first event.
        retry_ms: Wait before that which the server asks for; None without one.

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
        """Take a line, without its end; gives the event that it completes.

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


_MOST_FAILURES = 5
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0


class Listening:
    """Position in the events of a session, over all connections.

    Args:
        after: The last event that was received; 0 for all stored ones, None for future ones.

    Attributes:
        last_id: Value of `Last-Event-ID`; "" for future events.
    """

    def __init__(self, after: int | None) -> None:
        self.last_id = "" if after is None else str(after)
        self._failures = 0
        self._pause_seconds = _PAUSE_SECONDS
        self._reader = EventLines()

    def connected(self) -> None:
        """Begin a stream."""
        self._reader = EventLines()

    def heard(self, line: str) -> schemas.SessionEvent | None:
        """The event that a line completes."""
        self._failures = 0
        sent = self._reader.feed(line)
        if self._reader.retry_ms is not None:
            self._pause_seconds = min(self._reader.retry_ms / 1000, _LONGEST_PAUSE_SECONDS)
        self.last_id = self._reader.last_id or self.last_id
        if sent is None:
            return None
        try:
            return schemas.SessionEvent.model_validate(sent.content)
        except ValidationError:
            raise ServerFailed(
                "An event of the stream is none of memory-service's. Check that client and server are of one version."
            ) from None

    def failed(self, error: MemoryServiceError) -> None:
        """Count a failed or refused connection.

        Raises:
            MemoryServiceError: This error, if it will not pass, or has come too often in a row.
        """
        self._failures += 1
        if not (isinstance(error, ConnectionFailed) or error.status == 503) or self._failures > _MOST_FAILURES:
            raise error

    def pause_seconds(self) -> float:
        """Wait before the next connection."""
        return self._pause_seconds

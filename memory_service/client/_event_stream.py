"""Position in the events of a session: bytes in, events out, and where to go on after a connection broke. No I/O."""

from __future__ import annotations

from memory_service import schemas
from memory_service.errors import ConnectionFailed, MemoryServiceError, ServerFailed
from memory_service.messages.server_events import EventSplitter, Unreadable

MAX_EVENT_BYTES = 1_000_000
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
        self._reader = EventSplitter(MAX_EVENT_BYTES)

    def begin_stream(self) -> None:
        """Begin a stream."""
        self._reader = EventSplitter(MAX_EVENT_BYTES)

    def feed_line(self, piece: bytes) -> list[schemas.SessionEvent]:
        """The events that some bytes of the stream complete.

        Raises:
            ServerFailed: There is something else in it.
        """
        self._failures = 0
        try:
            events = [schemas.SessionEvent.model_validate(event.json()) for event in self._reader.feed(piece)]
        except (Unreadable, ValueError, RecursionError):
            raise ServerFailed(
                "An event of the stream is none of memory-service's, or too long. Check the URL, and that client and "
                "server are of one version."
            ) from None
        if self._reader.retry_ms is not None:
            self._pause_seconds = min(self._reader.retry_ms / 1000, _LONGEST_PAUSE_SECONDS)
        self.last_id = self._reader.last_id or self.last_id
        return events

    def count_failure(self, error: MemoryServiceError) -> None:
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

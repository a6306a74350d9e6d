"""Reading along: what passes by on its way from an upstream to a caller, read for the session that it belongs to.

Invariants: whatever comes, nothing here raises into the way of the bytes; what cannot be read, or is more than is read,
ends the reading of that answer for good, with a reason; time grows with the bytes, and memory is bounded, of compressed
answers too.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from memory_service.gateway.base import Dialect, GivenAnswer, JsonObject
from memory_service.service import EventSplitter, Unreadable

_Made = TypeVar("_Made")

# Of an answer in one piece.
MOST_READ_BYTES = 8_000_000
# Of a compressed answer, once it is not compressed any more.
_MOST_INFLATED_BYTES = 16_000_000
_STEP_BYTES = 64 * 1024
# How zlib is told of a format: 32 more finds out which of its headers there is. Source: zlib manual, `inflateInit2`
_WINDOW_BITS = {"gzip": zlib.MAX_WBITS | 32, "x-gzip": zlib.MAX_WBITS | 32, "deflate": zlib.MAX_WBITS | 32}


def readable_encoding(accepted_text: str) -> str:
    """The `Accept-Encoding` to send on for that of a caller: what it takes and what can be read along."""
    names = (entry.partition(";") for entry in accepted_text.lower().split(","))
    taken_texts = [name.strip() for name, _, weight in names if weight.replace(" ", "") not in ("q=0", "q=0.0")]
    return ", ".join(name for name in taken_texts if name in _WINDOW_BITS) or "identity"


def read_whole(dialect: Dialect, content: bytes, encoding: str) -> tuple[JsonObject, GivenAnswer]:
    """An answer that came in one piece, parsed and as a session takes it.

    Raises:
        Unreadable: It is none, whatever is wrong with it.
    """

    def read() -> tuple[JsonObject, GivenAnswer]:
        parsed_value = json.loads(_inflate_all(content, encoding))
        if not isinstance(parsed_value, dict):
            raise Unreadable("it is no JSON object")
        return parsed_value, dialect.answer(parsed_value)

    return _observe(read)


def plain_text(content: bytes, encoding: str) -> str:
    """The text of a content; empty where it cannot be read."""
    try:
        return _observe(lambda: _inflate_all(content, encoding).decode("utf-8", "replace"))
    except Unreadable:
        return ""


def _inflate_all(content: bytes, encoding: str) -> bytes:
    plain = bytearray()
    for piece in _Inflation(encoding).pieces(content):
        plain += piece
        if len(plain) > MOST_READ_BYTES:
            raise Unreadable(f"it is longer than {MOST_READ_BYTES:,} bytes")
    return bytes(plain)


def _observe(read: Callable[[], _Made]) -> _Made:
    """The result of reading something: the one place where a failure of that stops.

    Raises:
        Unreadable: It failed, in whatever way.
    """
    try:
        return read()
    except Unreadable:
        raise
    except Exception as error:  # what others write can break a reader in ways that nobody thought of
        raise Unreadable(f"it cannot be read ({type(error).__name__})") from error


class ReadAlong:
    """Reader of the stream of one answer.

    Args:
        dialect: The protocol.
        encoding: The `Content-Encoding` of the stream; empty for none.
        reference: A sealed one that the stream has to tell of; empty for none.

    Attributes:
        fault: Why nothing more of the answer is read; empty while it is.
        has_begun: Whether the stream has come to its first event that says something.
        failed_first: Whether that event is an error.
    """

    def __init__(self, dialect: Dialect, encoding: str = "", reference: str = "") -> None:
        self.fault = ""
        self.has_begun = False
        self.failed_first = False
        self._opening = dialect.opening_events
        self._reader = dialect.reader()
        self._inflation = _Inflation(encoding)
        self._events = EventSplitter()
        self._rewrite = dialect.with_compaction_event(reference) if reference and not encoding else None

    @property
    def rewrites(self) -> bool:
        """True if other bytes go on than came."""
        return self._rewrite is not None

    @property
    def has_ended(self) -> bool:
        """True if the model said all it wanted."""
        return self._reader.has_ended

    @property
    def failure(self) -> str:
        """The provider's own error in the stream; empty if there is none."""
        return self._reader.failure

    @property
    def omission(self) -> str:
        """The part of a long answer that is not kept; empty for none."""
        return self._reader.omission

    def feed(self, piece: bytes) -> bytes:
        """The bytes that go on for those that came."""
        if self.fault:
            return piece
        written_texts = list[str]()
        try:
            _observe(lambda: self._read(piece, written_texts))
        except Unreadable as error:
            self.fault = str(error)
        if self._rewrite is None:
            if self.fault:
                self._events = EventSplitter()
            return piece
        return "".join(written_texts).encode("utf-8", "replace") + (self.rest() if self.fault else b"")

    def rest(self) -> bytes:
        """Bytes of a stream with other ones that did not go on yet, as they belong to no whole event."""
        return self._events.rest() if self._rewrite is not None else b""

    def answer(self, *, whole: bool) -> GivenAnswer:
        """The answer so far; an empty one if it cannot be read."""
        if not self.fault:
            try:
                return _observe(lambda: self._reader.answer(whole=whole))
            except Unreadable as error:
                self.fault = str(error)
        return GivenAnswer(messages=())

    def _read(self, piece: bytes, written_texts: list[str]) -> None:
        for plain in self._inflation.pieces(piece):
            for event in self._events.feed(plain):
                if self._rewrite is not None:
                    written_texts.append(event.encode())
                    written_texts[-1] = self._rewrite(event)
                if self._reader.has_ended:
                    continue
                self._reader.read(event)
                if not self.has_begun and event.json().get("type") not in self._opening:
                    self.has_begun, self.failed_first = True, bool(self._reader.failure)


class _Inflation:
    """Compressed bytes as they were before, in small steps."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        self._room = _MOST_INFLATED_BYTES
        bits = _WINDOW_BITS.get(self._encoding)
        self._inflate = zlib.decompressobj(bits) if bits else None

    def pieces(self, piece: bytes) -> Iterator[bytes]:
        """The bytes that compressed ones stand for.

        Raises:
            Unreadable: The encoding is not known, or they stand for more than is read.
        """
        if self._encoding in ("", "identity"):
            yield piece
            return
        if self._inflate is None:
            raise Unreadable(f"it is encoded as {self._encoding[:20]!r}")
        plain = b""
        # A full step may have left something behind that needs no more bytes.
        while piece or len(plain) == _STEP_BYTES:
            plain = self._inflate.decompress(piece, _STEP_BYTES)
            piece = self._inflate.unconsumed_tail
            self._room -= len(plain)
            if self._room < 0:
                raise Unreadable(f"it is longer than {_MOST_INFLATED_BYTES:,} bytes once it is not compressed")
            yield plain

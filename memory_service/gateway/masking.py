"""Keys of this server, masked in what an upstream says of a failure: in bodies, headers and streams.

Rules: an upstream may repeat a key whole or in part, as it stands, escaped (JSON, URL, HTML, more than once), in base64
or in hexadecimal digits, with other capitals, or with something in between. Eight letters and digits in a row of a key
are masked, and fewer beside dots or asterisks that stand for the rest. An answer that tells of no failure goes on as it
came.

Invariants: what is not masked keeps its bytes; a stream is held back for the end of a line alone, which no client reads
before it is whole; the work is linear in what comes, and an error that is longer than any real one is cut.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

_MASK = "***"
# So many letters and digits of a key in a row are nobody's else.
_LEAST_CHARS = 8
# A shorter key is masked where it stands whole.
_LEAST_KEY_CHARS = 4
# A part of a key beside what stands for its rest.
_LEAST_QUOTED_CHARS = 3
_ROUNDS = 3
_MOST_ERROR_BYTES = 200_000
_MOST_HELD_BYTES = 64 * 1024
_ERROR = re.compile(rb"error|fail|denied|unauthori[sz]ed|forbidden|invalid", re.IGNORECASE)
_ESCAPE = re.compile(
    r"%(?P<url>[0-9A-Fa-f]{2})|\\{1,8}u00(?P<json>[0-9A-Fa-f]{2})|\\{1,8}x(?P<hex>[0-9A-Fa-f]{2})"
    r"|&#x0{0,4}(?P<html>[0-9A-Fa-f]{2});|&#0{0,4}(?P<decimal>[0-9]{2,3});|\\{1,8}(?P<plain>[/\"'])"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}")
_HEX = re.compile(r"[0-9A-Fa-f]{16,}")
_REST_OF_KEY = re.compile(r"\*{2,}|\.{3,}|…|•+|â\x80[¢¦]|x{4,}|X{4,}")
_BESIDE_CHARS = 40
_BEFORE, _BEHIND = re.compile(r"[A-Za-z0-9_-]*\Z"), re.compile(r"[A-Za-z0-9_-]*")
_NO_PLAIN = re.compile(r"[^a-z0-9]+")
_LETTERS = frozenset(ascii_letters + digits)
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
_JOINTS = frozenset("-_.~+=")
_URL_SAFE = str.maketrans("-_", "+/")
_Span = tuple[int, int]


class KeyMask:
    """The mask for some keys.

    What came of an answer before it broke off goes on masked, and then the failure is raised.

    Args:
        keys: The keys; those that are too short to be told from words are left out.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        plain = {_plain(key) for key in keys}
        self._keys = sorted(key for key in plain if len(key) >= _LEAST_CHARS)
        self._short = sorted(key for key in plain if _LEAST_KEY_CHARS <= len(key) < _LEAST_CHARS)

    def __bool__(self) -> bool:
        return bool(self._keys or self._short)

    def text(self, text: str) -> str:
        """A text without the keys."""
        marked_bytearray = bytearray(len(text))
        for start, end in self._find_spans(text):
            marked_bytearray[start:end] = b"\1" * (end - start)
        return text if not any(marked_bytearray) else _mask_spans(text, marked_bytearray)

    def content(self, raw: bytes) -> bytes:
        """Bytes without the keys, whatever their encoding."""
        return self.text(raw[:_MOST_ERROR_BYTES].decode("latin-1")).encode("latin-1")

    async def body(self, pieces: AsyncIterator[bytes], *, has_failed: bool) -> AsyncIterator[bytes]:
        """The pieces of a whole answer; one that is none of a failure is masked if it is short and tells of one."""
        held_chunks, size, cut_error = list[bytes](), 0, None
        most = _MOST_ERROR_BYTES if has_failed else _MOST_HELD_BYTES
        try:
            async for piece in pieces:
                if size <= most or not has_failed:
                    held_chunks.append(piece)
                size += len(piece)
                if size > most and not has_failed:
                    for raw in held_chunks:
                        yield raw
                    held_chunks.clear()
        except Exception as error:
            cut_error = error
        content = b"".join(held_chunks)
        if content:
            yield self.content(content) if has_failed or _ERROR.search(content) else content
        if cut_error is not None:
            raise cut_error

    async def lines(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The pieces of a stream of events, with whole lines in each; those that tell of a failure are masked."""
        held_rest, size, left, cut_error = list[bytes](), 0, _MOST_ERROR_BYTES, None
        try:
            async for piece in pieces:
                whole, newline, rest = piece.rpartition(b"\n")
                held_rest.append(whole + newline if newline else piece)
                size += len(piece)
                if newline or size > _MOST_HELD_BYTES:
                    ready = b"".join(held_rest)
                    yield self._of_stream(ready, left)
                    # Of a line that has no end, its beginning is looked into.
                    left = _MOST_ERROR_BYTES if newline else max(0, left - len(ready))
                    held_rest, size = ([rest] if newline and rest else []), len(rest) if newline else 0
        except Exception as error:
            cut_error = error
        if held_rest:
            yield self._of_stream(b"".join(held_rest), left)
        if cut_error is not None:
            raise cut_error

    def _of_stream(self, raw: bytes, most: int) -> bytes:
        """A piece of a stream; none of it is cut."""
        return self.content(raw[:most]) + raw[most:] if _ERROR.search(raw) else raw

    def _find_spans(self, text: str) -> Iterator[_Span]:
        """The places in a text that say something of a key."""
        seen_text, places = text, None
        for _ in range(_ROUNDS):
            for spans in (self._plainly(seen_text), self._encoded_spans(seen_text), self._quoted_spans(seen_text)):
                yield from ((places[start][0], places[end - 1][1]) if places else (start, end) for start, end in spans)
            escapes = _decode_escapes(seen_text, places)
            if escapes is None:
                return
            seen_text, places = escapes

    def _plainly(self, text: str) -> Iterator[_Span]:
        """Parts of keys as they stand, one place for each run of letters and digits."""
        runs = list(self._runs(_plain(text)))
        ats = [at for at, char in enumerate(text) if char in _LETTERS] if runs else []
        for start, end in runs:
            for at in range(start, end):
                yield ats[at], ats[at] + 1
            # What joins the parts of a key belongs to it.
            for before, after in zip(ats[start : end - 1], ats[start + 1 : end], strict=True):
                if 0 < after - before - 1 <= 2 and _JOINTS.issuperset(text[before + 1 : after]):
                    yield before + 1, after
        for key in self._short:
            for match in re.finditer(rf"(?<![a-z0-9]){re.escape(key)}(?![a-z0-9])", text.lower()):
                yield match.span()

    def _runs(self, plain: str) -> Iterator[_Span]:
        """The longest common parts of a text and the keys, both of small letters and digits alone."""
        half = _LEAST_CHARS // 2
        for key in self._keys:
            # Each part that is long enough has one of these in it.
            for of in range(0, len(key) - half + 1, half):
                at = plain.find(key[of : of + half])
                while at >= 0:
                    start, end = _extend_span(plain, at, key, of, half)
                    if end - start >= _LEAST_CHARS:
                        yield start, end
                    at = plain.find(key[of : of + half], max(at + 1, end - half + 1))

    def _encoded_spans(self, text: str) -> Iterator[_Span]:
        for match in _BASE64.finditer(text):
            if any(self._is_in(raw) for raw in _base64_readings(match[0])):
                yield match.span()
        for match in _HEX.finditer(text):
            digits = match[0]
            if any(self._is_in(bytes.fromhex(part[: len(part) // 2 * 2])) for part in (digits, digits[1:])):
                yield match.span()

    def _is_in(self, raw: bytes) -> bool:
        return next(self._runs(_plain(raw.decode("latin-1"))), None) is not None

    def _quoted_spans(self, text: str) -> Iterator[_Span]:
        """Parts of keys beside what stands for their rest."""
        for match in _REST_OF_KEY.finditer(text):
            begin = max(0, match.start() - _BESIDE_CHARS)
            before = _BEFORE.search(text, begin, match.start())
            behind = _BEHIND.match(text, match.end(), match.end() + _BESIDE_CHARS)
            left, right = before[0] if before else "", behind[0] if behind else ""
            beside = (_plain(left)[-_LEAST_CHARS:], _plain(right)[:_LEAST_CHARS])
            if any(len(part) >= _LEAST_QUOTED_CHARS and part in key for part in beside for key in self._keys):
                yield match.start() - len(left), match.end() + len(right)


def _plain(text: str) -> str:
    """The ASCII letters and digits of a text, in small letters."""
    return _NO_PLAIN.sub("", text.translate(_SMALL))


def _extend_span(plain: str, at: int, key: str, of: int, size: int) -> _Span:
    """The longest common part of two texts around one that both have."""
    start, end = at, at + size
    before, after = of, of + size
    while start and before and plain[start - 1] == key[before - 1]:
        start, before = start - 1, before - 1
    while end < len(plain) and after < len(key) and plain[end] == key[after]:
        end, after = end + 1, after + 1
    return start, end


def _base64_readings(text: str) -> Iterator[bytes]:
    for begin in range(4):
        part = text[begin:].translate(_URL_SAFE)
        usable = len(part) // 4 * 4
        if usable:
            yield base64.b64decode(part[:usable])
        if len(part) % 4 > 1:
            yield base64.b64decode(part + "=" * (-len(part) % 4))


def _decode_escapes(text: str, places: Sequence[_Span] | None) -> tuple[str, list[_Span]] | None:
    """A text with its escapes read, and where each character of it stands; None where there are none."""
    texts, spans, at = list[str](), list[_Span](), 0
    if _ESCAPE.search(text) is None:
        return None
    places = places or [(number, number + 1) for number in range(len(text))]
    for match in _ESCAPE.finditer(text):
        texts.append(text[at : match.start()])
        spans += places[at : match.start()]
        kind, value = match.lastgroup or "", match[match.lastgroup or 0]
        texts.append(value if kind == "plain" else chr(int(value, 10 if kind == "decimal" else 16)))
        spans.append((places[match.start()][0], places[match.end() - 1][1]))
        at = match.end()
    texts.append(text[at:])
    return "".join(texts), [*spans, *places[at:]]


def _mask_spans(text: str, marked_value: bytearray) -> str:
    texts, at = list[str](), 0
    for match in re.finditer(b"\1+", marked_value):
        texts += [text[at : match.start()], _MASK]
        at = match.end()
    return "".join([*texts, text[at:]])

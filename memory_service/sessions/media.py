"""Media of messages: base64 detached from the log's text, and put back.

Invariants: a part is named by its place in the text, never by a mark inside it, so no message can pretend to
hold one; what is put back is the original, character for character.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from indexer.common import lazy_regex
from memory_service.messages.shapes import Json
from memory_service.sessions.records import Media, compact_json

Encoding = Literal["base64", "text"]

# A string of nothing but base64 is taken out if it is longer than this, whatever it is.
_LONG_CHARS = 8 * 1024
# Each part costs two waits for the disk: an icon in the source of a page is not worth them.
_EMBEDDED_CHARS = 1024
_SOURCE_CHARS = 64
_OTHER = "application/octet-stream"
_MIME = lazy_regex(r"[\w.+-]{1,64}/[\w.+-]{1,64}", re.ASCII)
_BASE64 = lazy_regex(r"[A-Za-z0-9+/_-]++={0,2}")
_HANDLE = lazy_regex(r", ?ref=log:[0-9]{1,12}#[0-9]{1,6}\]")
# In JSON a slash may be written with a backslash before it.
_DATA_URL = lazy_regex(
    r"data:([\w.+-]{1,64})\\?/([\w.+-]{1,64})(?:;[\w.+=-]{1,128}){0,8}?;base64,((?:[A-Za-z0-9+/_=-]|\\/)++)", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachedPart:
    """Something that was taken out of a text.

    Attributes:
        at: Where it belongs in the text that is left.
        lead: How many characters before that place belong to it: the beginning of a data URL.
        sha256: Of its content beside the log, in hexadecimal digits.
        encoding: Whether that content is what the base64 means, or the base64 itself because it is unusual.
    """

    at: int
    lead: int
    sha256: str
    mime: str
    size_bytes: int
    encoding: Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """A text without its media; `contents` belong to `parts`, one by one."""

    text: str
    parts: tuple[DetachedPart, ...] = ()
    contents: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class _Span:
    start: int
    stop: int
    lead: int
    mime: str


def detach(text: str, json: Json) -> Detached:
    """Takes the media out of the JSON text of a message; `json` is what it means."""
    spans = _apart(sorted({*_data_urls(text), *_sources(text, json)}))
    if not spans:
        return Detached(text=text)
    left, parts, contents = list[str](), list[DetachedPart](), list[bytes]()
    at = end = 0
    for span in spans:
        left.append(text[end : span.start])
        at += span.start - end
        end = span.stop
        content, encoding = _content(text[span.start : span.stop])
        contents.append(content)
        parts.append(_part(at, span, content, encoding))
    return Detached(text="".join(left) + text[end:], parts=tuple(parts), contents=tuple(contents))


def attach(text: str, parts: Iterable[DetachedPart], content: Callable[[DetachedPart], bytes]) -> str:
    """Puts the media back where they were."""
    pieces, end = list[str](), 0
    for part in parts:
        raw = content(part)
        pieces += text[end : part.at], (base64.b64encode(raw) if part.encoding == "base64" else raw).decode()
        end = part.at
    return "".join(pieces) + text[end:]


def describe(text: str, media: Iterable[Media], parts: Iterable[DetachedPart]) -> str:
    """Puts a short note where each of the media was."""
    pieces, end = list[str](), 0
    for medium, part in zip(media, parts, strict=True):
        note = f"[{medium.mime}, {medium.size_bytes} bytes, ref={medium.handle}]"
        pieces += text[end : part.at - part.lead], note
        end = part.at
    return "".join(pieces) + text[end:]


def as_logged(message: Mapping[str, object]) -> Mapping[str, object]:
    """A message with notes where its media are, as a log shows it; the handles in them are no handles of a log."""
    if not _may_have_media(message):
        return message
    try:
        text = compact_json(message)
    except (ValueError, RecursionError):  # no log takes it
        return message
    detached = detach(text, cast(Json, message))
    if not detached.parts:
        return message
    fields: dict[str, object] = json.loads(describe(detached.text, media_of(detached.parts, 0), detached.parts))
    return fields


def _may_have_media(value: object) -> bool:
    """False if there is nothing in a value that `detach` would take out: much sooner known than what it would."""
    match value:
        case str():
            return len(value) > _LONG_CHARS or ";base64," in value
        case dict():
            return "data" in value or any(map(_may_have_media, value.values()))
        case list():
            return any(map(_may_have_media, value))
    return False


def notes_without_places(text: str) -> str:
    """A text whose notes on media no longer say where in which log they are; blanks in it may be missing."""
    return _HANDLE.sub("]", text) if "ref=log:" in text else text


def media_of(parts: Iterable[DetachedPart], seq: int) -> tuple[Media, ...]:
    """Descriptions of a logged message's detached parts."""
    return tuple(
        Media(mime=part.mime, size_bytes=part.size_bytes, handle=f"log:{seq}#{number}")
        for number, part in enumerate(parts, start=1)
    )


def _data_urls(text: str) -> Iterator[_Span]:
    if ";base64," not in text:
        return
    for match in _DATA_URL.finditer(text):
        start, stop = match.span(3)
        first = match.start()
        alone = text[first - 1] == '"' and text[first - 2] != "\\" and text[stop : stop + 1] == '"'
        if alone or stop - start >= _EMBEDDED_CHARS:
            yield _Span(start, stop, start - first, f"{match[1]}/{match[2]}")


def _sources(text: str, json: Json) -> Iterator[_Span]:
    """Spans of strings that are base64 and nothing else."""
    mimes: dict[str, str] = {}
    for value, mime in _payloads(json):
        mimes.setdefault(value, mime)
    for value, mime in mimes.items():
        for written_text in {value, value.replace("/", "\\/")}:
            at = text.find(f'"{written_text}"')
            while at >= 0:
                yield _Span(at + 1, at + 1 + len(written_text), 0, mime)
                at = text.find(f'"{written_text}"', at + len(written_text))


def _payloads(json: Json) -> Iterator[tuple[str, str]]:
    waiting: list[Json] = [json]
    while waiting:
        match waiting.pop():
            case list(items):
                waiting += items
            case dict(fields):
                waiting += fields.values()
                mime = _mime_beside(fields)
                data = fields.get("data")
                if mime and isinstance(data, str) and len(data) >= _SOURCE_CHARS and _BASE64.fullmatch(data):
                    yield data, mime
            case str(value) if len(value) > _LONG_CHARS and _BASE64.fullmatch(value):
                yield value, _OTHER
            case _:
                pass


def _mime_beside(fields: dict[str, Json]) -> str:
    """MIME type named by the neighbours of `data`; empty if it is no medium."""
    for name in ("media_type", "mime_type", "mimeType"):
        mime = fields.get(name)
        if isinstance(mime, str):
            return mime if _MIME.fullmatch(mime) else _OTHER
    if isinstance(form := fields.get("format"), str):
        return f"audio/{form}" if _MIME.fullmatch(f"audio/{form}") else _OTHER
    return _OTHER if fields.get("type") == "base64" else ""


def _apart(spans: Iterable[_Span]) -> list[_Span]:
    """Drop spans that overlap an earlier span."""
    kept_spans = list[_Span]()
    for span in spans:
        if not kept_spans or span.start >= kept_spans[-1].stop:
            kept_spans.append(span)
    return kept_spans


def _content(written_text: str) -> tuple[bytes, Encoding]:
    try:
        raw = base64.b64decode(written_text, validate=True)
    except binascii.Error:
        return written_text.encode(), "text"
    return (raw, "base64") if base64.b64encode(raw).decode() == written_text else (written_text.encode(), "text")


def _part(at: int, span: _Span, content: bytes, encoding: Encoding) -> DetachedPart:
    return DetachedPart(
        at=at,
        lead=span.lead,
        sha256=hashlib.sha256(content).hexdigest(),
        mime=span.mime,
        size_bytes=len(content),
        encoding=encoding,
    )

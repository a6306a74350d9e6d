"""The format of a line: a record to bytes and back. Pure.

```
{"seq":7,"ts":"2026-11-20T14:32:00.123Z","usage":{…},"media":[…],"message":{…}}
{"seq":8,"batch":2,"ts":"2026-11-20T14:32:07.005Z","kind":"pin",…}
{"seq":9,"ts":"2026-11-20T14:32:07.005Z","message":{…}}
```

Invariants: a line is JSON in UTF-8 and ends with LF; it begins with `seq` and `ts`, in this order and without
spaces, so that its place in the log is known without parsing it. What is written at once, all or nothing, has one
`ts`, and its first line says in `batch` how many lines these are, if there is more than one. A line with a `kind`
is a record of that kind; one with none is a message, which is the last field and stands there as it was given, or
as a string in `text` if it has line ends or half a surrogate pair in it.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, cast

from memory_service.compaction.record import Compaction, PinRecord
from memory_service.errors import InvalidRequest
from memory_service.messages.shapes import Json
from memory_service.messages.sizes import Usage
from memory_service.schemas.compaction import LedgerEntry
from memory_service.sessions.media import Detached, DetachedPart, Encoding, attach, describe, detach, media_of
from memory_service.sessions.records import (
    Body,
    ErasedRecord,
    FlushRecord,
    Keyed,
    Learned,
    MessageRecord,
    Pending,
    Record,
    SessionHeader,
    TrimRecord,
    Undo,
    Unknown,
    Unpin,
    compact_json,
)

if TYPE_CHECKING:
    pass


class Fields:
    """The fields of an object, each asked for by its type; `ValueError` if it has another."""

    def __init__(self, fields: Json) -> None:
        if not isinstance(fields, dict):
            raise ValueError("no object")
        self._fields = fields

    def integer(self, name: str) -> int:
        """A whole number."""
        value = self._fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{name} is no integer")
        return value

    def integer_or_none(self, name: str) -> int | None:
        """The same, if it is there."""
        return None if self._fields.get(name) is None else self.integer(name)

    def number_or_none(self, name: str) -> float | None:
        """A number, if it is there."""
        value = self._fields.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def count(self, name: str) -> int:
        """A whole number, or of a list how many it has; 0 where there is neither."""
        value = self._fields.get(name)
        return len(value) if isinstance(value, list) else self.integer_or_none(name) or 0

    def text(self, name: str) -> str:
        """A text."""
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise ValueError(f"{name} is no text")
        return value

    def text_or_none(self, name: str) -> str | None:
        """The same, if it is there."""
        return None if self._fields.get(name) is None else self.text(name)

    def text_or(self, name: str, otherwise: str) -> str:
        """The same, or another where it is not there."""
        return self.text(name) if self.has(name) else otherwise

    def items(self, name: str) -> list[Json]:
        """A list; an empty one where there is none."""
        value = self._fields.get(name, [])
        if not isinstance(value, list):
            raise ValueError(f"{name} is no list")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """The same, each entry as text."""
        return tuple(str(item) for item in self.items(name))

    def mapping(self, name: str) -> Mapping[str, Json]:
        """An object; an empty one where there is none."""
        value = self._fields.get(name, {})
        if not isinstance(value, dict):
            raise ValueError(f"{name} is no object")
        return value

    def has(self, name: str) -> bool:
        """True if it is there and not null."""
        return self._fields.get(name) is not None

    def truth(self, name: str) -> bool:
        """True if it is true."""
        return self._fields.get(name) is True


# Deeper than any message of a provider, and far from where the parser gives up.
MAX_NESTING = 256
_MAX_DIGITS = 400
# A line without a kind has to go on as a message does: a pin whose kind is damaged would be taken for one.
_STAMP = re.compile(
    rb'\{"seq":([1-9]\d{0,17})(?:,"batch":([1-9]\d{0,17}))?,"ts":"([^"\\]*)"'
    rb'(?:,"kind":"([a-z][a-z0-9_.-]*)"|(?=,"(?:usage|media|message|text)":))'
)
_MESSAGE = b',"message":'


# Ten thousand of these two are made when a log is read: a tuple takes a quarter of the time.
class Stamp(NamedTuple):
    """The place of a line in its log, which goes on after `size_bytes`; `batch` is 0 if the line does not tell it."""

    seq: int
    batch: int
    ts: str
    kind: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDraft:
    """A record without its number: the end of its line, and the media that go beside the log."""

    kind: str
    rest: str
    media: Detached | None = None


class LogLine(NamedTuple):
    """A record as its line holds it: the text of a message without its media, which `parts` name."""

    record: Record
    parts: tuple[DetachedPart, ...] = ()


def draft_record(body: Body) -> RecordDraft:
    """Checks a record and writes all of its line but the beginning.

    Raises:
        InvalidRequest: A message is no JSON object or nested too deep, or a value is no JSON.
    """
    if isinstance(body, MessageRecord):
        return _draft_of_message(body)
    if isinstance(body, Unknown):
        raise InvalidRequest(f"A record of the unknown kind {body.kind!r} cannot be written. Use one that is known.")
    kind = next(kind for kind, form in _FORMS.items() if form.made is type(body))
    try:
        return RecordDraft(kind=kind, rest=compact_json(_fields_of(body))[1:])
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidRequest(f"A {kind} record holds a value that is no JSON. Use only what JSON knows.") from error


def draft_copy(record: Record) -> RecordDraft:
    """The end of the line of a record of another log, which may be of a kind that is not known.

    Raises:
        InvalidRequest: It has no line that could be copied.
    """
    if not isinstance(record.body, Unknown):
        return draft_record(record.body)
    line = record.body.text.encode()
    place = stamp(line + b"\n")
    if place is None:
        return draft_record(record.body)
    return RecordDraft(kind=place.kind, rest=line[place.size_bytes :].decode().lstrip(","))


# What means something where it is 0 or empty.
_KEPT_EMPTY = frozenset({"input_tokens", "statements", "ledger_tokens"})


def _fields_of(body: Body) -> dict[str, Json]:
    """The fields of a record; of those that come often, what is nothing is left out."""
    whole = not isinstance(body, Usage | Compaction)
    fields = {name: value for name, value in asdict(body).items() if value or whole or name in _KEPT_EMPTY}
    if "estimated_tokens" in fields:
        fields["estimated"] = fields.pop("estimated_tokens")
    for name in ("statements", "ledger_tokens"):
        if isinstance(body, Compaction) and fields[name] is None:
            del fields[name]
    if isinstance(body, SessionHeader) and not body.log_id:
        del fields["log_id"]
    if isinstance(body, TrimRecord):
        fields["ledger"] = [entry.model_dump() for entry in body.ledger]
    return fields


def encode(draft: RecordDraft, *, seq: int, ts: str, batch: int = 1) -> bytes:
    """The line of a record; `batch` is how many are written at once, if it is the first of them."""
    count = f'"batch":{batch},' if batch > 1 else ""
    kind = "" if draft.kind == "message" else f'"kind":"{draft.kind}",'
    return f'{{"seq":{seq},{count}"ts":"{ts}",{kind}{draft.rest}\n'.encode()


def stamp(line: bytes) -> Stamp | None:
    """The place of a line in its log; None if it is not whole or not one of ours."""
    match = _STAMP.match(line)
    if match is None or not line.endswith(b"}\n") or b"\0" in line:
        return None
    seq, batch, ts, kind = match.groups()
    return Stamp(int(seq), int(batch or 0), ts.decode("utf-8", "replace"), (kind or b"message").decode(), match.end())


def decode(line: bytes) -> LogLine:
    """The record of a line.

    Raises:
        ValueError: The line is damaged.
    """
    place = stamp(line)
    if place is None:
        raise ValueError("no beginning of a record")
    json = _parse(line.decode())
    if not isinstance(json, dict):
        raise ValueError("no object")
    body, parts = _body(place.kind, json, line, place.size_bytes)
    return LogLine(
        record=Record(seq=place.seq, ts=place.ts, kind=place.kind, body=body, batch_length=place.batch), parts=parts
    )


def record_with_media(line: LogLine, content: Callable[[str], bytes] | None) -> Record:
    """The record of a line, its message with its media.

    Args:
        line: The line.
        content: Gives a content by its SHA-256; if it is None, a short note stands for each of the media.
    """
    body = line.record.body
    if not line.parts or not isinstance(body, MessageRecord):
        return line.record
    media = media_of(line.parts, line.record.seq)
    if content is None:
        text = describe(body.text, media, line.parts)
    else:
        text = attach(body.text, line.parts, lambda part: content(part.sha256))
    return replace(line.record, body=replace(body, text=text, media=media))


def first_header(session_id: str, first: Body) -> SessionHeader:
    """The header that a log begins with, which no other log has: the first record, if it is one."""
    header = first if isinstance(first, SessionHeader) else SessionHeader(session_id=session_id)
    return replace(header, log_id=secrets.token_hex(8))


def is_object(line: bytes) -> bool:
    """True if a line is a JSON object, ours or not."""
    try:
        return line.endswith(b"\n") and isinstance(_parse(line.decode()), dict)
    except ValueError:
        return False


def _parse(text: str) -> Json:
    """Parse a JSON text; numbers too long to compute with stay text.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        try:
            return cast(Json, _PARSER.decode(text))
        except json.JSONDecodeError:
            raise
        except ValueError:
            # A number has more digits than the interpreter takes.
            return cast(Json, _PARSER_OF_LONG_NUMBERS.decode(text))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _MAX_DIGITS else 0


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is no JSON")


_PARSER = json.JSONDecoder(parse_constant=_refuse)
_PARSER_OF_LONG_NUMBERS = json.JSONDecoder(parse_int=_integer, parse_constant=_refuse)


def _draft_of_message(message: MessageRecord) -> RecordDraft:
    try:
        json = _parse(message.text)
    except ValueError as error:
        raise InvalidRequest("A message is not JSON. Send a JSON object.") from error
    if not isinstance(json, dict):
        raise InvalidRequest("A message is JSON, but no object. Send an object with a role and a content.")
    if _is_deep(json):
        raise InvalidRequest(f"A message is nested more than {MAX_NESTING} levels deep. Make it flatter.")
    media = detach(message.text, json)
    usage = f'"usage":{compact_json(_fields_of(message.usage))},' if message.usage else ""
    parts = f'"media":{compact_json([asdict(part) for part in media.parts])},' if media.parts else ""
    return RecordDraft(kind="message", rest=f"{usage}{parts}{_message_field(media.text)}}}", media=media)


def _message_field(text: str) -> str:
    if "\n" not in text and "\r" not in text:
        try:
            text.encode()
        except UnicodeEncodeError:
            pass
        else:
            return f'"message":{text}'
    return f'"text":{json.dumps(text)}'


def _is_deep(value: Json) -> bool:
    level = [value]
    for _ in range(MAX_NESTING):
        inner = list[Json]()
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        level = inner
        if not level:
            return False
    return True


def _body(kind: str, json: Json, line: bytes, begins: int) -> tuple[Body, tuple[DetachedPart, ...]]:
    fields = Fields(json)
    if kind == "message":
        return _message(fields, line, begins)
    form = _FORMS.get(kind)
    if form is None:
        return Unknown(kind=kind, text=line[:-1].decode()), ()
    return form.read(fields), ()


def _message(fields: Fields, line: bytes, begins: int) -> tuple[MessageRecord, tuple[DetachedPart, ...]]:
    usage = _usage(Fields(dict(fields.mapping("usage")))) if fields.has("usage") else None
    parts = tuple(_part(Fields(item)) for item in fields.items("media")) if fields.has("media") else ()
    if fields.has("text"):
        text = fields.text("text")
    else:
        at = line.find(_MESSAGE, begins)
        if at < 0:
            raise ValueError("no message")
        text = line[at + len(_MESSAGE) : -2].decode()
    return MessageRecord(text=text, usage=usage), parts


def _part(fields: Fields) -> DetachedPart:
    encoding = fields.text("encoding")
    if encoding not in ("base64", "text"):
        raise ValueError("an unknown encoding")
    return DetachedPart(
        at=fields.integer("at"),
        lead=fields.integer("lead"),
        sha256=fields.text("sha256"),
        mime=fields.text("mime"),
        size_bytes=fields.integer("size_bytes"),
        encoding=cast(Encoding, encoding),
    )


def _header(fields: Fields) -> SessionHeader:
    return SessionHeader(
        session_id=fields.text("session_id"),
        log_id=fields.text_or("log_id", ""),
        model=fields.text_or_none("model"),
        context_window=fields.integer_or_none("context_window"),
        settings=fields.mapping("settings"),
        version=fields.integer("version"),
        rebuilt=fields.truth("rebuilt"),
        title=fields.text_or("title", ""),
    )


def _usage(fields: Fields) -> Usage:
    return Usage(
        input_tokens=fields.integer_or_none("input_tokens") or 0,
        output_tokens=fields.integer_or_none("output_tokens") or 0,
        cache_read_tokens=fields.integer_or_none("cache_read_tokens") or 0,
        cache_write_tokens=fields.integer_or_none("cache_write_tokens") or 0,
        model=fields.text_or_none("model"),
        # What older versions estimated, `estimated_tokens`, tells nothing of the estimate of today.
        estimated_tokens=fields.integer_or_none("estimated"),
        finish_reason=fields.text_or_none("finish_reason"),
    )


def _part_of_summary(item: Json) -> str | tuple[int, int]:
    match item:
        case str():
            return item
        case [int(first), int(last)]:
            return first, last
    raise ValueError("no part of a summary")


def _compaction(fields: Fields) -> Compaction:
    return Compaction(
        base=fields.integer_or_none("base"),
        upto=fields.integer_or_none("upto") or 0,
        tail_start=fields.integer_or_none("tail_start") or 0,
        summary=tuple(_part_of_summary(item) for item in fields.items("summary")),
        stage=fields.text("stage"),
        tokens_before=fields.integer_or_none("tokens_before") or 0,
        tokens_after=fields.integer_or_none("tokens_after") or 0,
        cleared={int(seq): str(stub) for seq, stub in fields.mapping("cleared").items()},
        stripped=tuple(seq for seq in fields.items("stripped") if isinstance(seq, int)),
        toolless_upto=fields.integer_or_none("toolless_upto") or 0,
        ledger_tokens=fields.integer_or_none("ledger_tokens"),
        whole_request=fields.truth("whole_request"),
        role=fields.text_or("role", "user"),
        preset=fields.text_or("preset", "default"),
        trigger=fields.text_or("trigger", "manual"),
        method=fields.text_or("method", "none"),
        model=fields.text_or_none("model"),
        prompt_version=fields.text_or_none("prompt_version"),
        calls=fields.integer_or_none("calls") or 0,
        input_tokens=fields.integer_or_none("input_tokens") or 0,
        output_tokens=fields.integer_or_none("output_tokens") or 0,
        chunk_ratio=fields.number_or_none("chunk_ratio"),
        parts=fields.integer_or_none("parts") or 0,
        duration_ms=fields.integer_or_none("duration_ms") or 0,
        audit=fields.mapping("audit"),
        identifier_policy=fields.text_or("identifier_policy", "preserve"),
        labels={original: str(label) for original, label in fields.mapping("labels").items()},
        overrides=fields.mapping("overrides"),
        notes=fields.texts("notes"),
        reason=fields.text_or("reason", ""),
        language=fields.text_or("language", ""),
        statements=tuple(map(_statement, fields.items("statements"))) if fields.has("statements") else None,
    )


def _statement(item: Json) -> tuple[str, str, int]:
    match item:
        case [str(kind), str(text), int(seq)]:
            return kind, text, seq
    raise ValueError("no statement")


def _flush(fields: Fields) -> FlushRecord:
    return FlushRecord(
        from_seq=fields.integer("from_seq"),
        to_seq=fields.integer("to_seq"),
        method=fields.text_or("method", ""),
        written=fields.count("written"),  # their ids, in older logs
        reason=fields.text("reason"),
    )


@dataclass(frozen=True, slots=True)
class _Form:
    """Reader of one kind of record."""

    made: type[Body]
    read: Callable[[Fields], Body]


def _trim_record(fields: Fields) -> TrimRecord:
    return TrimRecord(
        backup=fields.text("backup"),
        lines=fields.integer("lines"),
        head=fields.integer_or_none("head"),
        ledger=tuple(_ledger_entry(Fields(item)) for item in fields.items("ledger")),
    )


def _ledger_entry(fields: Fields) -> LedgerEntry:
    seqs = [seq for seq in fields.items("seqs") if isinstance(seq, int)]
    return LedgerEntry(kind=fields.text("kind"), text=fields.text("text"), seqs=seqs)


_FORMS: dict[str, _Form] = {
    "session": _Form(SessionHeader, _header),
    "usage": _Form(Usage, _usage),
    "compaction": _Form(Compaction, _compaction),
    "undo": _Form(
        Undo, lambda this_fields: Undo(compaction=this_fields.integer("compaction"), reason=this_fields.text("reason"))
    ),
    "pin": _Form(
        PinRecord,
        lambda this_fields: PinRecord(
            pin_id=this_fields.text("pin_id"),
            text=this_fields.text_or_none("text"),
            target=this_fields.integer_or_none("target"),
        ),
    ),
    "unpin": _Form(Unpin, lambda this_fields: Unpin(pin_id=this_fields.text("pin_id"))),
    "flush": _Form(FlushRecord, _flush),
    "pending": _Form(Pending, lambda this_fields: Pending(call_ids=this_fields.texts("call_ids"))),
    "learned": _Form(
        Learned,
        lambda this_fields: Learned(
            context_window=this_fields.integer("context_window"),
            model=this_fields.text_or_none("model"),
            reason=this_fields.text("reason"),
        ),
    ),
    "keyed": _Form(
        Keyed,
        lambda this_fields: Keyed(
            key=this_fields.text("key"), messages=this_fields.integer("messages"), content=this_fields.text("content")
        ),
    ),
    "trimmed": _Form(TrimRecord, _trim_record),
    "erased": _Form(ErasedRecord, lambda this_fields: ErasedRecord(was=this_fields.text_or("was", "message"))),
}

"""Transcripts of hosts: the JSON lines that Claude Code and Codex write, read on from a place, as messages.

Invariants: only whole lines are read, so a line that is being written waits for the next time; a file that was cut or
replaced is noticed by its beginning and by what stood before the place; words that the host itself put in, and those
of its subagents, are no messages. A stretch between two places has the same messages whenever it is read.

Source: lines of Claude Code 2.1 and rollouts of Codex 0.159.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeAlias

from indexer.text.inserted import without_inserted
from memory_service.disk import storage_errors
from memory_service.errors import InvalidRequest

_Entry: TypeAlias = Mapping[str, object]

_HEAD_BYTES = 256
_TAIL_BYTES = 64
_STRETCH_BYTES = 4 * 1024 * 1024
# Longer lines are passed over: no message has so much text.
_MOST_LINE_BYTES = 64 * 1024 * 1024
# Of a result of a tool, its beginning and its end; the host's own transcript has all of it.
_RESULT_CHARS = 16_000
_HOST_FLAGS = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPlace:
    """A place in a transcript, and what shows that it still is the same file.

    Attributes:
        offset: Bytes before it.
        head: Digest of how the file begins.
        tail: Digest of what stands before the place.
    """

    offset: int = 0
    head: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The lines between two places.

    Attributes:
        start: First byte.
        end: The place behind it.
        messages: In the shapes of Anthropic and OpenAI.
        more_bytes: Bytes behind it, where whole lines may be among them; 0 where none is.
        problems: Lines that could not be read, and a change of the file.
        begun_anew: True if the file was cut or replaced, so that this is its beginning.
    """

    start: int
    end: TranscriptPlace
    messages: tuple[_Entry, ...] = ()
    more_bytes: int = 0
    problems: tuple[str, ...] = ()
    begun_anew: bool = False


def read_on(file: Path, place: TranscriptPlace, *, until: int | None = None) -> Stretch:
    """Read on from a place; at most some megabytes, so that the caller can keep what is done.

    Args:
        file: The transcript.
        place: Where the last stretch ended.
        until: Read to this byte exactly, which is the end of a line.

    Raises:
        InvalidRequest: It is no regular file.
        NotFound: There is none.
        StorageFailed: It cannot be read.
    """
    with _opened(file) as opened:
        size = os.fstat(opened.fileno()).st_size
        change = _change(opened, place, size, until or 0)
        start = 0 if change else place.offset
        opened.seek(start)
        raw = _whole_lines(opened, until - start if until is not None and not change else None)
        end = start + len(raw)
        reading = _Reading.of(raw.split(b"\n"))
        problems = [f"transcript: the file {change}; it is read from its beginning"] if change else []
        if reading.unreadable:
            problems.append(f"transcript: {reading.unreadable} lines are no JSON objects; left out")
        return Stretch(
            start=start,
            end=_place_at(opened, end),
            messages=tuple(reading.messages),
            more_bytes=size - end if raw and (until is not None or size - start > _STRETCH_BYTES) else 0,
            problems=tuple(problems),
            begun_anew=bool(change),
        )


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    with storage_errors(file.name):
        # Opening a pipe would wait for somebody to write into it.
        if not stat.S_ISREG(file.stat().st_mode):
            raise InvalidRequest(f"The transcript {file.name} is no regular file. Send the path of one.")
        with file.open("rb") as opened:
            yield opened


def _change(opened: BinaryIO, place: TranscriptPlace, size: int, until: int) -> str:
    if size < max(place.offset, until):
        return "was truncated"
    return "was replaced" if place.offset and _place_at(opened, place.offset) != place else ""


def _place_at(opened: BinaryIO, offset: int) -> TranscriptPlace:
    opened.seek(0)
    head = opened.read(min(_HEAD_BYTES, offset))
    opened.seek(max(0, offset - _TAIL_BYTES))
    tail = opened.read(min(_TAIL_BYTES, offset))
    return TranscriptPlace(offset=offset, head=_digest(head), tail=_digest(tail))


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=8).hexdigest()


def _whole_lines(opened: BinaryIO, exactly: int | None) -> bytes:
    """Whole lines from here on: some megabytes, or more where one line is longer."""
    if exactly is not None:
        return opened.read(exactly)
    raw = opened.read(_STRETCH_BYTES)
    while b"\n" not in raw and (more := opened.read(_STRETCH_BYTES)):
        raw += more
        if len(raw) > _MOST_LINE_BYTES:
            # Of a line that has no end yet nothing is kept; its rest is no JSON, and is left out in its turn.
            return raw
    return raw[: raw.rfind(b"\n") + 1]


@dataclass(slots=True)
class _Reading:
    """Messages of lines, in their order."""

    messages: list[_Entry] = field(default_factory=list)
    unreadable: int = 0
    # A reply of Claude has a line for each of its parts.
    _reply_id: str = ""

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> _Reading:
        reading = cls()
        for line in lines:
            if line.strip():
                reading._add(line)
        return reading

    def _add(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict):
            self.unreadable += 1
            return
        message, reply_id = _claude_message(entry) if "message" in entry else (_codex_message(entry), "")
        if message is None:
            return
        if reply_id and reply_id == self._reply_id:
            before = self.messages[-1]
            self.messages[-1] = {**before, "content": [*_parts(before["content"]), *_parts(message["content"])]}
        else:
            self.messages.append(message)
        self._reply_id = reply_id


def is_of_subagent(file: Path) -> bool:
    """True if a rollout of Codex is that of a subagent, as its first line says.

    Raises:
        InvalidRequest: It is no regular file.
        StorageFailed: It cannot be read.
    """
    with _opened(file) as opened:
        line = opened.readline(_STRETCH_BYTES)
    try:
        entry = json.loads(line)
        source = entry["payload"]["source"] if entry["type"] == "session_meta" else ""
    except (ValueError, RecursionError, KeyError, TypeError):
        return False
    return isinstance(source, dict) and "subagent" in source


# Claude Code


def _claude_message(entry: _Entry) -> tuple[_Entry | None, str]:
    """The message of a line, and the id of the reply that it is a part of."""
    message = entry["message"]
    if not isinstance(message, dict) or any(entry.get(flag) for flag in _HOST_FLAGS):
        return None, ""
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        return None, ""
    if isinstance(content, str):
        return ({"role": role, "content": content} if _is_said(content) else None), ""
    parts = [part for each in _parts(content) if (part := _claude_part(each))]
    reply_id = message.get("id")
    return (
        {"role": role, "content": parts} if parts else None,
        reply_id if role == "assistant" and isinstance(reply_id, str) else "",
    )


def _claude_part(part: object) -> _Entry | None:
    """A part of a message without what only its host needs: thoughts, signatures, media."""
    match part:
        case {"type": "text", "text": str(text)} if _is_said(text):
            return {"type": "text", "text": text}
        case {"type": "tool_use", "id": str(call_id), "name": str(name), "input": dict(given)}:
            return {"type": "tool_use", "id": call_id, "name": name, "input": given}
        case {"type": "tool_result", "tool_use_id": str(call_id), **rest}:
            told = _shortened(_words(rest.get("content")))
            failed = {"is_error": True} if rest.get("is_error") is True else {}
            return {"type": "tool_result", "tool_use_id": call_id, "content": told, **failed}
        case {"type": "image" | "document" as kind}:
            return {"type": "text", "text": f"[{kind}]"}
    return None


# Codex


def _codex_message(entry: _Entry) -> _Entry | None:
    item = entry.get("payload")
    if entry.get("type") != "response_item" or not isinstance(item, dict):
        return None
    made = _CODEX_ITEMS.get(str(item.get("type")))
    return made(item) if made else None


def _codex_words(item: _Entry) -> _Entry | None:
    role = item.get("role")
    said = [text for text in _texts_of(item.get("content")) if _is_said(text)]
    if role not in ("user", "assistant") or not said:
        return None
    return {"role": role, "content": "\n".join(said)}


def _codex_call(item: _Entry) -> _Entry | None:
    call_id, name = item.get("call_id") or item.get("id"), item.get("name") or item.get("type")
    given = item.get("arguments", item.get("input", item.get("action", {})))
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None
    arguments = given if isinstance(given, str) and _is_json(given) else json.dumps(given, ensure_ascii=False)
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _codex_result(item: _Entry) -> _Entry | None:
    call_id = item.get("call_id")
    if not isinstance(call_id, str):
        return None
    return {"role": "tool", "tool_call_id": call_id, "content": _shortened(_words(item.get("output")))}


_CODEX_ITEMS: Mapping[str, Callable[[_Entry], _Entry | None]] = {
    "message": _codex_words,
    "function_call": _codex_call,
    "custom_tool_call": _codex_call,
    "local_shell_call": _codex_call,
    "function_call_output": _codex_result,
    "custom_tool_call_output": _codex_result,
}


# Words


def _parts(content: object) -> list[object]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _is_said(text: str) -> bool:
    return bool(without_inserted(text).strip())


def _words(content: object) -> str:
    """The text of a tool's result, whatever shape it has."""
    if isinstance(content, str):
        return content
    texts = list(_texts_of(content))
    return "\n".join(texts) if texts or content in (None, []) else json.dumps(content, ensure_ascii=False)


def _texts_of(content: object) -> Iterator[str]:
    for part in _parts(content):
        if isinstance(part, dict) and isinstance(text := part.get("text"), str):
            yield text


def _shortened(text: str) -> str:
    if len(text) <= _RESULT_CHARS:
        return text
    half = _RESULT_CHARS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters are in the host's transcript …]\n{text[-half:]}"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True

"""Transcripts of hosts: the JSON lines that Claude Code and Codex write, read on from a place, as messages.

Invariants: only whole lines are read, so a line that is being written waits for the next time; a file that was cut or
replaced is noticed by its beginning and by what stood before the place; a line is read by its `type`: of the types that
hold no message it is left out, and of those that no version known here writes it is counted too; words that the host
itself put in, and those of its subagents, are no messages. A prompt that follows the same line as an earlier one takes
its place, with all that came after that. A stretch between two places has the same messages whenever it is read.

Source: lines of Claude Code 2.1 (the types that 2.1.197 writes, and `api-request-blob` of 2.1.332) and rollouts of
Codex 0.169.
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

from indexer.language import without_inserted
from memory_service.errors import InvalidRequest
from memory_service.storage.files.disk import storage_errors

_Entry: TypeAlias = Mapping[str, object]

_HEAD_BYTES = 256
_TAIL_BYTES = 64
_STRETCH_BYTES = 4 * 1024 * 1024
# Longer lines are passed over: no message has so much text.
_MOST_LINE_BYTES = 64 * 1024 * 1024
# Of a result of a tool, its beginning and its end; the host's own transcript has all of it.
_RESULT_CHARS = 16_000
_HOST_FLAGS = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
# Types of lines that hold no message.
_CLAUDE_OTHERS = frozenset({
    "agent-color", "agent-name", "agent-setting", "ai-title", "api-request-blob", "attachment", "attribution-snapshot",
    "bridge-session", "content-replacement", "custom-title", "ended-by-model", "file-history-snapshot",
    "fork-context-ref", "frame-link", "isolation-latch", "last-prompt", "marble-origami-commit",
    "marble-origami-reset", "marble-origami-snapshot", "mode", "permission-mode", "pr-link", "progress",
    "queue-operation", "relocated", "speculation-accept", "summary", "system", "tag", "worktree-state",
})  # fmt: skip
_CODEX_OTHERS = frozenset({"session_meta", "turn_context", "event_msg", "compacted", "world_state"})
_CODEX_ITEM_OTHERS = frozenset({
    "reasoning", "web_search_call", "image_generation_call", "ghost_snapshot", "compaction", "compaction_trigger",
    "context_compaction", "tool_search_call", "tool_search_output", "agent_message", "other",
})  # fmt: skip
_NO_TYPE = "none"
_MOST_TYPE_CHARS = 60
# Longer words without a space are contents of media in a result.
_MOST_WORD_CHARS = 2_000


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
        prompts: Of the messages that are prompts, by their places: the line that each follows, empty for the beginning.
        unknown_counts: Types that no version known here writes, and how many lines were of each.
    """

    start: int
    end: TranscriptPlace
    messages: tuple[_Entry, ...] = ()
    more_bytes: int = 0
    problems: tuple[str, ...] = ()
    begun_anew: bool = False
    prompts: Mapping[int, str] = field(default_factory=dict)
    unknown_counts: Mapping[str, int] = field(default_factory=dict)


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
    with _open_transcript(file) as io:
        size = os.fstat(io.fileno()).st_size
        change = _change(io, place, size, until or 0)
        start = 0 if change else place.offset
        io.seek(start)
        raw = _whole_lines(io, until - start if until is not None and not change else None)
        end = start + len(raw)
        reading = _Reading.of(raw.split(b"\n"))
        problems = [f"transcript: the file {change}; it is read from its beginning"] if change else []
        if reading.unreadable:
            problems.append(f"transcript: {reading.unreadable} lines are no JSON objects; left out")
        return Stretch(
            start=start,
            end=_place_at(io, end),
            messages=tuple(reading.messages),
            more_bytes=size - end if raw and (until is not None or size - start > _STRETCH_BYTES) else 0,
            problems=tuple(problems),
            begun_anew=bool(change),
            prompts=reading.prompts,
            unknown_counts=reading.unknown_counts,
        )


@contextmanager
def _open_transcript(file: Path) -> Iterator[BinaryIO]:
    with storage_errors(file.name):
        # Opening a pipe would wait for somebody to write into it.
        if not stat.S_ISREG(file.stat().st_mode):
            raise InvalidRequest(f"The transcript {file.name} is no regular file. Send the path of one.")
        with file.open("rb") as reader:
            yield reader


def _change(io: BinaryIO, place: TranscriptPlace, size: int, until: int) -> str:
    if size < max(place.offset, until):
        return "was truncated"
    return "was replaced" if place.offset and _place_at(io, place.offset) != place else ""


def _place_at(io: BinaryIO, offset: int) -> TranscriptPlace:
    io.seek(0)
    head = io.read(min(_HEAD_BYTES, offset))
    io.seek(max(0, offset - _TAIL_BYTES))
    tail = io.read(min(_TAIL_BYTES, offset))
    return TranscriptPlace(offset=offset, head=_digest(head), tail=_digest(tail))


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=8).hexdigest()


def _whole_lines(io: BinaryIO, exactly: int | None) -> bytes:
    """Whole lines from here on: some megabytes, or more where one line is longer."""
    if exactly is not None:
        return io.read(exactly)
    raw = io.read(_STRETCH_BYTES)
    while b"\n" not in raw and (more := io.read(_STRETCH_BYTES)):
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
    prompts: dict[int, str] = field(default_factory=dict)
    unknown_counts: dict[str, int] = field(default_factory=dict)
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
        kind = _type_of(entry)
        if kind in ("user", "assistant"):
            self._add_message(*_claude_message(entry, kind), entry)
        elif kind == "response_item":
            self._add_item(entry)
        elif kind not in _CLAUDE_OTHERS and kind not in _CODEX_OTHERS:
            self._count(kind)

    def _add_item(self, entry: _Entry) -> None:
        item = entry.get("payload")
        kind = _type_of(item) if isinstance(item, dict) else _NO_TYPE
        if isinstance(item, dict) and (made := _CODEX_ITEMS.get(kind)):
            self._add_message(made(item), "", entry)
        elif kind not in _CODEX_ITEM_OTHERS:
            self._count(f"response_item/{kind}")

    def _add_message(self, message: _Entry | None, reply_id: str, entry: _Entry) -> None:
        if message is None:
            return
        if reply_id and reply_id == self._reply_id:
            before = self.messages[-1]
            self.messages[-1] = {**before, "content": [*_parts(before["content"]), *_parts(message["content"])]}
            return
        if (follows := _followed_line(entry, message)) is not None:
            self._take_back(follows)
            self.prompts[len(self.messages)] = follows
        moment = entry.get("timestamp")
        self.messages.append({**message, "created_at": moment} if isinstance(moment, str) else message)
        self._reply_id = reply_id

    def _take_back(self, follows: str) -> None:
        """Leave out what a prompt takes the place of: the host went back to the line before it."""
        start = next((at for at, line in self.prompts.items() if line == follows), None)
        if start is not None:
            del self.messages[start:]
            self.prompts = {at: line for at, line in self.prompts.items() if at < start}

    def _count(self, kind: str) -> None:
        self.unknown_counts[kind] = self.unknown_counts.get(kind, 0) + 1


def _type_of(entry: _Entry) -> str:
    kind = entry.get("type")
    return kind[:_MOST_TYPE_CHARS] if isinstance(kind, str) and kind else _NO_TYPE


def _followed_line(entry: _Entry, message: _Entry) -> str | None:
    """The line that a prompt of the user follows, empty for the beginning; None for what is no prompt.

    Calls made at once have their results behind different lines, which is no way back.
    """
    if message["role"] != "user" or not isinstance(entry.get("uuid"), str) or "parentUuid" not in entry:
        return None
    parts = _parts(message.get("content"))
    if any(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts):
        return None
    follows = entry["parentUuid"]
    return follows if isinstance(follows, str) else ""


def is_of_subagent(file: Path) -> bool:
    """True if a rollout of Codex is that of a subagent, as its first line says.

    Raises:
        InvalidRequest: It is no regular file.
        StorageFailed: It cannot be read.
    """
    with _open_transcript(file) as io:
        line = io.readline(_STRETCH_BYTES)
    try:
        entry = json.loads(line)
        source = entry["payload"]["source"] if entry["type"] == "session_meta" else ""
    except (ValueError, RecursionError, KeyError, TypeError):
        return False
    return isinstance(source, dict) and "subagent" in source


# Claude Code


def _claude_message(entry: _Entry, kind: str) -> tuple[_Entry | None, str]:
    """The message of a line, and the id of the reply that it is a part of."""
    message = entry.get("message")
    if not isinstance(message, dict) or any(entry.get(flag) for flag in _HOST_FLAGS):
        return None, ""
    role, content = message.get("role"), message.get("content")
    if role != kind:
        return None, ""
    if isinstance(content, str):
        return ({"role": role, "content": content} if _is_said(content) else None), ""
    parts = [part for each_part in _parts(content) if (part := _claude_part(each_part))]
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
        case {"type": "tool_use", "id": str(call_id), "name": str(name), "input": dict(given_value)}:
            return {"type": "tool_use", "id": call_id, "name": name, "input": given_value}
        case {"type": "tool_result", "tool_use_id": str(call_id), **rest}:
            result = _shorten_result(_words(rest.get("content")))
            failed_fields = {"is_error": True} if rest.get("is_error") is True else {}
            return {"type": "tool_result", "tool_use_id": call_id, "content": result, **failed_fields}
        case {"type": "image" | "document" as kind}:
            return {"type": "text", "text": f"[{kind}]"}
    return None


# Codex


def _codex_words(item: _Entry) -> _Entry | None:
    role = item.get("role")
    texts = [text for text in _texts_of(item.get("content")) if _is_said(text)]
    if role not in ("user", "assistant") or not texts:
        return None
    return {"role": role, "content": "\n".join(texts)}


def _codex_call(item: _Entry) -> _Entry | None:
    call_id, name = item.get("call_id") or item.get("id"), item.get("name") or item.get("type")
    given_arguments = item.get("arguments", item.get("input", item.get("action", {})))
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None
    arguments = (
        given_arguments
        if isinstance(given_arguments, str) and _is_json(given_arguments)
        else json.dumps(given_arguments, ensure_ascii=False)
    )
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _codex_result(item: _Entry) -> _Entry | None:
    call_id = item.get("call_id")
    if not isinstance(call_id, str):
        return None
    return {"role": "tool", "tool_call_id": call_id, "content": _shorten_result(_words(item.get("output")))}


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
    """The text of a tool's result, whatever shape it has: of a part without words, a label of its kind."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_part_words, content)))
    return _part_words(content) if content is not None else ""


def _part_words(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return json.dumps(part, ensure_ascii=False)
    if isinstance(text := part.get("text"), str):
        return text
    if isinstance(kind := part.get("type"), str) and kind:
        name = next((part[key] for key in ("tool_name", "name", "title") if isinstance(part.get(key), str)), "")
        return f"[{kind.removeprefix('input_')[:_MOST_TYPE_CHARS]}{f' {name[:_MOST_TYPE_CHARS]}' if name else ''}]"
    if isinstance(inner := part.get("content"), str | list):
        return _words(inner)
    return json.dumps(_without_media(part), ensure_ascii=False)


def _without_media(value: object) -> object:
    """A value of JSON with a label for each text that holds no words."""
    if isinstance(value, str):
        return value if len(value) <= _MOST_WORD_CHARS or any(map(str.isspace, value)) else "[media]"
    if isinstance(value, dict):
        return {name: _without_media(each_value) for name, each_value in value.items()}
    return [*map(_without_media, value)] if isinstance(value, list) else value


def _texts_of(content: object) -> Iterator[str]:
    for part in _parts(content):
        if isinstance(part, dict) and isinstance(text := part.get("text"), str):
            yield text


def _shorten_result(text: str) -> str:
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

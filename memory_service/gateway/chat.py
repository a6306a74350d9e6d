"""OpenAI's chat completions.

Several choices (`n` above 1) are sent on, and none of them is kept: the one that the client goes on with comes back
with its next call.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_service.gateway.base import (
    AnswerReader,
    Dialect,
    GivenAnswer,
    JsonObject,
    event,
    field_of,
    hint_of,
    list_of,
    messages_of,
    object_of,
    objects_of,
    openai_error,
    opening_of,
    texts_of,
)
from memory_service.service import ServerEvent, Unreadable

if TYPE_CHECKING:
    from memory_service.service import ConversationCall

# Of fields that nobody here knows, pieces are put together up to this.
_MOST_OTHER_CHARS = 500_000


class ChatCompletions(Dialect):
    """See `Dialect`."""

    protocol = "chat"

    def call(self, body: JsonObject, session_id: str | None, model: str) -> ConversationCall:
        """See `Dialect`."""
        from memory_service.service import ConversationCall

        messages = messages_of(body)
        opening = len(opening_of(messages))
        return ConversationCall(
            messages=messages[opening:],
            session_id=session_id,
            hint=hint_of([body.get(name) for name in ("prompt_cache_key", "safety_identifier", "user")]),
            system_prompt="\n".join(texts_of(message.get("content")) for message in messages[:opening]),
            tools=list_of(body.get("tools")),
            model=model or None,
        )

    def with_messages(
        self, body: JsonObject, messages: Sequence[Mapping[str, object]], *, whole: bool = True
    ) -> JsonObject:
        """See `Dialect`."""
        return {**body, "messages": [*opening_of(messages_of(body)), *messages]}

    def answer(self, content: JsonObject) -> GivenAnswer:
        """See `Dialect`."""
        choices = [*objects_of(field_of(content, "choices", list) or ())]
        choice = choices[0] if len(choices) == 1 else {}
        message = field_of(choice, "message", dict)
        if message is None and len(choices) < 2:
            raise Unreadable("it has no message")
        return GivenAnswer(
            messages=(message,) if message is not None else (),
            usage_fields=object_of(content.get("usage")),
            finish_reason=field_of(choice, "finish_reason", str) or "",
        )

    def reader(self) -> AnswerReader:
        """See `Dialect`."""
        return _ChatReader()

    def text_answer(self, text: str, body: JsonObject) -> JsonObject:
        """See `Dialect`."""
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        return {**_head(body, "chat.completion"), "choices": [choice], "usage": usage}

    def spoken_events(self, text: str, body: JsonObject) -> str:
        """See `Dialect`."""
        head = _head(body, "chat.completion.chunk")
        deltas: list[tuple[JsonObject, str | None]] = [({"role": "assistant", "content": text}, None), ({}, "stop")]
        pieces = [
            event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
            for delta, reason in deltas
        ]
        return "".join((*pieces, "data: [DONE]\n\n"))

    def error(self, status: int, code: str, message: str) -> JsonObject:
        """See `Dialect`."""
        return openai_error(status, code, message)


class _ChatReader(AnswerReader):
    """Reads `chat.completion.chunk` events."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: dict[str, list[str]] = {"content": [], "refusal": [], "reasoning_content": [], "reasoning": []}
        self._other_fields: JsonObject = {}
        self._other_chars = 0
        self._calls: dict[int, _GrowingCall] = {}
        self._usage: JsonObject | None = None
        self._reason = ""
        self._choices = 1

    def read(self, event: ServerEvent) -> None:
        """See `AnswerReader`."""
        if event.text.strip() == "[DONE]":
            self.has_ended = True
            return
        content = event.json()
        if "error" in content:
            self.failure = json.dumps({"error": content["error"]})
        self._usage = object_of(content.get("usage")) or self._usage
        for choice in objects_of(field_of(content, "choices", list) or ()):
            self._choose(choice, event)

    def _choose(self, choice: JsonObject, event: ServerEvent) -> None:
        self._choices = max(self._choices, self.place(choice.get("index")) + 1)
        delta = field_of(choice, "delta", dict) or {}
        for name, pieces in self._texts.items():
            if piece := self.room(delta.get(name)):
                pieces.append(piece)
        for call in objects_of(field_of(delta, "tool_calls", list) or ()):
            self._call(call)
        other_values = {
            name: value for name, value in delta.items() if name not in (*self._texts, "role", "tool_calls")
        }
        if any(value is not None for value in other_values.values()):
            self._other_chars += len(event.text)
            if self._other_chars > _MOST_OTHER_CHARS:
                self.omission = f"of fields that are not known only {_MOST_OTHER_CHARS:,} characters are kept"
            else:
                self._other_fields = _merge_pieces(self._other_fields, other_values)
        self._reason = field_of(choice, "finish_reason", str) or self._reason

    def _call(self, piece: JsonObject) -> None:
        call = self._calls.setdefault(self.place(piece.get("index")), _GrowingCall())
        call.id = self.room(field_of(piece, "id", str)) or call.id
        call.kind = field_of(piece, "type", str) or call.kind
        for name, value in (object_of(piece.get(call.kind)) or {}).items():
            is_known = name in ("name", "arguments") or isinstance(value, str)
            if is_known and (text := self.room(value)):
                call.texts.setdefault(name, []).append(text)
        call.other_fields |= {
            name: value for name, value in piece.items() if name not in ("index", "id", "type", call.kind)
        }

    def answer(self, *, whole: bool) -> GivenAnswer:
        """See `AnswerReader`."""
        message: JsonObject = {"role": "assistant", "content": "".join(self._texts["content"]) or None}
        for name in ("refusal", "reasoning_content", "reasoning"):
            if text := "".join(self._texts[name]):
                message[name] = text
        message |= self._other_fields if whole else {}
        if self._calls and whole:
            message["tool_calls"] = [self._calls[index].to_json() for index in sorted(self._calls)]
        return GivenAnswer(
            messages=(message,) if self._choices == 1 else (), usage_fields=self._usage, finish_reason=self._reason
        )


@dataclass(slots=True)
class _GrowingCall:
    """A call of a tool, as far as it was said."""

    id: str = ""
    kind: str = "function"
    texts: dict[str, list[str]] = field(default_factory=dict)
    other_fields: JsonObject = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        empty = {"name": "", "arguments": ""} if self.kind == "function" else {}
        own = empty | {name: "".join(pieces) for name, pieces in self.texts.items()}
        return {"id": self.id, "type": self.kind, self.kind: own, **self.other_fields}


def _merge_pieces(one_object: JsonObject, more: JsonObject) -> JsonObject:
    """An object with the pieces of another behind its own: texts and lists grow, other values are the last ones."""
    grown_fields = dict(one_object)
    for name, value in more.items():
        before = grown_fields.get(name)
        match before, value:
            case _, None:
                pass
            case str(), str() if name not in ("id", "type"):
                grown_fields[name] = before + value
            case list(), list():
                grown_fields[name] = [*before, *value]
            case dict(), dict():
                grown_fields[name] = _merge_pieces(before, value)
            case _:
                grown_fields[name] = value
    return grown_fields


def _head(body: JsonObject, kind: str) -> JsonObject:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": body.get("model") or "memory-service",
    }

"""OpenAI's chat completions.

Several choices (`n` above 1) are sent on, and none of them is kept: the one that the client goes on with comes back
with its next call.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from memory_service.gateway.base import (
    AnswerReader,
    Dialect,
    GivenAnswer,
    JsonObject,
    ServerEvent,
    event,
    hint_of,
    list_of,
    messages_of,
    object_of,
    openai_error,
    opening_of,
    texts_of,
)
from memory_service.service.conversations import ConversationCall


class ChatCompletions(Dialect):
    """See `Dialect`."""

    protocol = "chat"

    def call(self, body: JsonObject, session_id: str | None, model: str) -> ConversationCall:
        """See `Dialect`."""
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
        choices = list_of(content.get("choices"))
        choice = choices[0] if len(choices) == 1 and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        return GivenAnswer(
            messages=(message,) if isinstance(message, dict) else (),
            counted=object_of(content.get("usage")),
            finish_reason=str(choice.get("finish_reason") or ""),
        )

    def reader(self) -> AnswerReader:
        """See `Dialect`."""
        return _ChatReader()

    def spoken(self, text: str, body: JsonObject) -> JsonObject:
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
        self._texts: dict[str, list[str]] = {"content": [], "refusal": [], "reasoning_content": []}
        self._calls: dict[int, JsonObject] = {}
        self._usage: JsonObject | None = None
        self._reason = ""
        self._choices = 1

    def read(self, event: ServerEvent) -> None:
        """See `AnswerReader`."""
        if event.text.strip() == "[DONE]":
            self.ended = True
            return
        content = event.json()
        if "error" in content:
            self.failure = json.dumps({"error": content["error"]})
        self._usage = object_of(content.get("usage")) or self._usage
        for choice in list_of(content.get("choices")):
            if isinstance(choice, dict):
                self._choose(choice)

    def _choose(self, choice: JsonObject) -> None:
        self._choices = max(self._choices, int(choice.get("index") or 0) + 1)
        delta = object_of(choice.get("delta")) or {}
        for name, pieces in self._texts.items():
            if piece := self.room(delta.get(name)):
                pieces.append(piece)
        for piece in list_of(delta.get("tool_calls")):
            if isinstance(piece, dict):
                self._call(piece)
        self._reason = str(choice.get("finish_reason") or "") or self._reason

    def _call(self, piece: JsonObject) -> None:
        call = self._calls.setdefault(
            int(piece.get("index") or 0), {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        )
        call["id"] = piece.get("id") or call["id"]
        function: dict[str, Any] = object_of(piece.get("function")) or {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += self.room(function.get("arguments"))

    def answer(self, *, whole: bool) -> GivenAnswer:
        """See `AnswerReader`."""
        message: JsonObject = {"role": "assistant", "content": "".join(self._texts["content"]) or None}
        for name in ("refusal", "reasoning_content"):
            if text := "".join(self._texts[name]):
                message[name] = text
        if self._calls and whole:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        return GivenAnswer(
            messages=(message,) if self._choices == 1 else (), counted=self._usage, finish_reason=self._reason
        )


def _head(body: JsonObject, kind: str) -> JsonObject:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": body.get("model") or "memory-service",
    }

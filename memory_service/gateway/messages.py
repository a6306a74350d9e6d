"""Anthropic's messages, and the count of their tokens.

The system prompt stands beside the messages there and stays as it came, with its marks of the cache. Thinking goes back
with its signature as long as a message is shown whole; blocks of Anthropic's own compaction and edits of its own
context management go through untouched.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from memory_service.errors import Conflict
from memory_service.gateway.base import (
    ERROR_TYPES,
    AnswerReader,
    Dialect,
    GivenAnswer,
    JsonObject,
    event,
    field_of,
    list_of,
    messages_of,
    object_of,
    objects_of,
    texts_of,
)
from memory_service.service import CallOverview, ServerEvent, Unreadable, call_overview

if TYPE_CHECKING:
    from memory_service.service import ConversationCall

_TYPES = {**ERROR_TYPES, 413: "request_too_large"}
# The pieces that a block grows by, and their fields.
_GROWING = {
    "text_delta": "text", "thinking_delta": "thinking", "compaction_delta": "content",
    "input_json_delta": "partial_json",
}  # fmt: skip


class AnthropicMessages(Dialect):
    """See `Dialect`.

    Args:
        ours: Whether this server compacts in the place of the provider.
    """

    protocol = "messages"

    def __init__(self, *, ours: bool = False) -> None:
        self._ours = ours

    def call(self, body: JsonObject, session_id: str | None, model: str) -> ConversationCall:
        """See `Dialect`."""
        from memory_service.service import ConversationCall

        metadata = object_of(body.get("metadata")) or {}
        user = metadata.get("user_id")
        if self._ours and body.get("compaction"):
            raise Conflict(
                "The field compaction asks Anthropic for a summary, and this server compacts itself. Leave the field "
                "out: a conversation is compacted when it nears its window, and at once if its last message is "
                '`/compact`. For a summary of Anthropic\'s, set gateway.provider_compaction to "pass".'
            )
        return ConversationCall(
            messages=messages_of(body),
            wire="anthropic",
            session_id=session_id,
            hint=user if isinstance(user, str) else "",
            system_prompt=texts_of(body.get("system")),
            tools=list_of(body.get("tools")),
            model=model or None,
            is_untouched=not self._ours and _is_compacted_there(body),
            mark=next(map(_mark_of, _compactions(messages_of(body)[:1])), ""),
        )

    def overview(self, body: JsonObject) -> CallOverview:
        """See `Dialect`."""
        return call_overview(texts_of(body.get("system")), list_of(body.get("messages")), body.get("tools"))

    def with_messages(
        self, body: JsonObject, messages: Sequence[Mapping[str, object]], *, whole: bool = True
    ) -> JsonObject:
        """See `Dialect`."""
        kept_fields = {name: value for name, value in body.items() if not (self._ours and name == "context_management")}
        return {**kept_fields, "messages": list(messages)}

    def answer(self, content: JsonObject) -> GivenAnswer:
        """See `Dialect`."""
        blocks = field_of(content, "content", list)
        if blocks is None:
            raise Unreadable("it has no content")
        message = {"role": "assistant", "content": [*objects_of(blocks)]}
        return GivenAnswer(
            messages=(message,) if blocks else (),
            usage_fields=object_of(content.get("usage")),
            finish_reason=field_of(content, "stop_reason", str) or "",
        )

    def reader(self) -> AnswerReader:
        """See `Dialect`."""
        return _MessageReader()

    def text_answer(self, text: str, body: JsonObject) -> JsonObject:
        """See `Dialect`."""
        return {
            "id": f"msg_{uuid.uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model") or "memory-service",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }

    def spoken_events(self, text: str, body: JsonObject) -> str:
        """See `Dialect`."""
        whole = self.text_answer(text, body)
        objects: list[JsonObject] = [
            {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": whole["usage"]},
            {"type": "message_stop"},
        ]
        return "".join(event(each_object, each_object["type"]) for each_object in objects)

    def error(self, status: int, code: str, message: str) -> JsonObject:
        """See `Dialect`."""
        return {"type": "error", "error": {"type": _TYPES.get(status, "api_error"), "message": message, "code": code}}


def _is_compacted_there(body: JsonObject) -> bool:
    """True if the provider is asked for a compaction, or has made one that stands in the messages."""
    edits = list_of((object_of(body.get("context_management")) or {}).get("edits"))
    kinds = (str(edit.get("type")) for edit in edits if isinstance(edit, dict))
    return (
        bool(body.get("compaction"))
        or any(kind.startswith("compact_") for kind in kinds)
        or any(True for _ in _compactions(messages_of(body)))
    )


def _compactions(messages: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """The provider's own compactions in a list."""
    blocks = (block for message in messages for block in list_of(message.get("content")))
    return (block for block in blocks if isinstance(block, dict) and block.get("type") == "compaction")


def _mark_of(block: JsonObject) -> str:
    return str(block.get("encrypted_content") or block.get("content") or "")


class _MessageReader(AnswerReader):
    """Reads the events of a message: blocks that begin, grow and end."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, JsonObject] = {}
        self._written_values: dict[tuple[int, str], list[str]] = {}
        self._usage: JsonObject = {}
        self._reason = ""

    def read(self, event: ServerEvent) -> None:
        """See `AnswerReader`."""
        content = event.json()
        match content.get("type"):
            case "message_start":
                self.whole(event)
                message = field_of(content, "message", dict) or {}
                self._usage |= object_of(message.get("usage")) or {}
            case "content_block_start":
                self.whole(event)
                self._blocks[self.place(content.get("index"))] = {**(field_of(content, "content_block", dict) or {})}
            case "content_block_delta":
                self._grow(event, self.place(content.get("index")), field_of(content, "delta", dict) or {})
            case "message_delta":
                self.whole(event)
                delta = field_of(content, "delta", dict) or {}
                self._reason = field_of(delta, "stop_reason", str) or self._reason
                self._usage |= {name: n for name, n in (object_of(content.get("usage")) or {}).items() if n is not None}
            case "message_stop":
                self.has_ended = True
            case "error":
                self.failure = json.dumps({"error": content.get("error")})

    def _grow(self, event: ServerEvent, index: int, delta: JsonObject) -> None:
        block = self._blocks.setdefault(index, {"type": "text"})
        match delta.get("type"):
            case "signature_delta":
                self.whole(event)
                block["signature"] = delta.get("signature")
            case "citations_delta":
                self.whole(event)
                block["citations"] = citations = field_of(block, "citations", list) or []
                citations.append(delta.get("citation"))
            case str(kind) if kind in _GROWING:
                if kind == "compaction_delta" and delta.get("encrypted_content"):
                    self.whole(event)
                    block["encrypted_content"] = delta["encrypted_content"]
                name = _GROWING[kind]
                pieces = self._written_values.setdefault((index, name), [])
                if piece := self.room(delta.get(name)):
                    pieces.append(piece)

    def answer(self, *, whole: bool) -> GivenAnswer:
        """See `AnswerReader`."""
        blocks = [self._block(index) for index in sorted(self._blocks) if whole or self._is_said(index)]
        messages = ({"role": "assistant", "content": blocks},) if blocks else ()
        return GivenAnswer(messages=messages, usage_fields=self._usage or None, finish_reason=self._reason)

    def _is_said(self, index: int) -> bool:
        """True for a text: of an answer that was broken off, a call has no result, and thinking no signature."""
        return self._blocks[index].get("type") == "text" and (index, "text") in self._written_values

    def _block(self, index: int) -> JsonObject:
        block = self._blocks[index]
        for name in ("text", "thinking", "content"):
            if (index, name) in self._written_values:
                block = {**block, name: "".join(self._written_values[index, name])}
        written_text = "".join(self._written_values.get((index, "partial_json"), []))
        if not written_text:
            return block
        try:
            given_value = json.loads(written_text)
        except ValueError:
            given_value = None
        return {**block, "input": given_value if isinstance(given_value, dict) else {"_raw": written_text}}

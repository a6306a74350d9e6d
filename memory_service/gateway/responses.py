"""OpenAI's Responses.

`instructions` stay as they came, and so do the system messages that the input begins with. `previous_response_id` and
`conversation` tell the session, whose view goes on in their place: the provider need not have stored anything.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from itertools import takewhile

from memory_service.errors import InvalidRequest
from memory_service.gateway.base import (
    AnswerReader,
    Dialect,
    GivenAnswer,
    JsonObject,
    ServerEvent,
    event,
    hint_of,
    list_of,
    object_of,
    openai_error,
    texts_of,
)
from memory_service.service.conversations import ANSWER, ConversationCall
from memory_service.service.items import items_of_messages, messages_of_items

# Of a conversation, where it is told by a call that begins it.
_METADATA = ("session_id", "conversation_id", "thread_id")
_REASONS = {"max_output_tokens": "length"}


class OpenAIResponses(Dialect):
    """See `Dialect`."""

    protocol = "responses"

    def call(self, body: JsonObject, session_id: str | None, model: str) -> ConversationCall:
        """See `Dialect`."""
        items = _input(body)
        opening = len(_opening(items))
        instructions = body.get("instructions")
        told = [texts_of(item.get("content")) for item in items[:opening]]
        return ConversationCall(
            messages=messages_of_items(items[opening:]),
            wire="responses",
            session_id=session_id,
            hint=_hint(body),
            conversation=_id_of(body.get("conversation")),
            follows=_id_of(body.get("previous_response_id")),
            system_prompt="\n".join([instructions, *told] if isinstance(instructions, str) else told),
            tools=list_of(body.get("tools")),
            model=model or None,
        )

    def with_messages(
        self, body: JsonObject, messages: Sequence[Mapping[str, object]], *, whole: bool = True
    ) -> JsonObject:
        """See `Dialect`."""
        items = _input(body)
        sent = [*_opening(items), *items_of_messages(messages)]
        elsewhere = ("previous_response_id", "conversation") if whole else ()
        kept = {key: value for key, value in body.items() if key not in elsewhere}
        return {**kept, "input": body["input"] if sent == items else sent}

    def answer(self, content: JsonObject) -> GivenAnswer:
        """See `Dialect`."""
        return GivenAnswer(
            message=_message(list_of(content.get("output")), str(content.get("id") or "")),
            counted=object_of(content.get("usage")),
            finish_reason=_finish_reason(content),
        )

    def reader(self) -> AnswerReader:
        """See `Dialect`."""
        return _ResponseReader()

    def spoken(self, text: str, body: JsonObject) -> JsonObject:
        """See `Dialect`."""
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        said = {"type": "message", "id": _new_id("msg"), "role": "assistant", "status": "completed", "content": [part]}
        return _response([said], body)

    def spoken_events(self, text: str, body: JsonObject) -> str:
        """See `Dialect`."""
        response = self.spoken(text, body)
        [said] = response["output"]
        place = {"item_id": said["id"], "output_index": 0, "content_index": 0}
        part = said["content"][0]
        begun: JsonObject = {**said, "status": "in_progress", "content": []}
        return _events(response, [
            {"type": "response.output_item.added", "output_index": 0, "item": begun},
            {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
            {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
            {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
            {"type": "response.content_part.done", **place, "part": part},
            {"type": "response.output_item.done", "output_index": 0, "item": said},
        ])  # fmt: skip

    def error(self, status: int, code: str, message: str) -> JsonObject:
        """See `Dialect`."""
        return openai_error(status, code, message)

    def error_event(self, message: str) -> str:
        """See `Dialect`."""
        # Flat as the reference has it, and nested as its clients raise it.
        told = openai_error(502, "upstream_failed", message)
        return event({**told["error"], **told, "type": "error", "sequence_number": 0}, "error")


class _ResponseReader(AnswerReader):
    """Reads the events of a response: items that begin, grow and end."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[int, JsonObject] = {}
        self._texts: dict[int, list[str]] = {}
        self._response: JsonObject = {}

    def read(self, event: ServerEvent) -> None:
        """See `AnswerReader`."""
        content = event.json()
        index = int(content.get("output_index") or 0)
        match content.get("type"):
            case "response.created" | "response.completed" | "response.incomplete" | "response.failed" as kind:
                self._response = object_of(content.get("response")) or {}
                self.ended = kind in ("response.completed", "response.incomplete")
                self.failed = kind == "response.failed"
            case "response.output_item.done" if isinstance(item := content.get("item"), dict):
                self._items[index] = item
            case "response.output_text.delta" | "response.refusal.delta":
                self._texts.setdefault(index, []).append(self.room(content.get("delta")))
            case "error":
                self.failed = True

    def answer(self, *, whole: bool) -> GivenAnswer:
        """See `AnswerReader`."""
        items = [self._items[index] for index in sorted(self._items)]
        if not whole:
            items = self._said()
        return GivenAnswer(
            message=_message(items, str(self._response.get("id") or "")),
            counted=object_of(self._response.get("usage")),
            finish_reason=_finish_reason(self._response),
        )

    def _said(self) -> list[JsonObject]:
        """The words of an answer that was broken off: a call has no output then, and reasoning nothing behind it."""
        texts = {index: "".join(pieces) for index, pieces in self._texts.items()}
        return [{"role": "assistant", "content": texts[index]} for index in sorted(texts) if texts[index]]


def _input(body: JsonObject) -> list[JsonObject]:
    """The items of a body.

    Raises:
        InvalidRequest: There are none.
    """
    given = body.get("input", [] if body.get("previous_response_id") else None)
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise InvalidRequest("The field input is neither text nor a list of items. Send the conversation in it.")
    return given


def _opening(items: Sequence[JsonObject]) -> list[JsonObject]:
    return list(takewhile(lambda item: item.get("role") in ("system", "developer"), items))


def _hint(body: JsonObject) -> str:
    metadata = object_of(body.get("metadata")) or {}
    return hint_of([*(body.get(name) for name in ("prompt_cache_key", "safety_identifier", "user")),
                    *(metadata.get(name) for name in _METADATA)])  # fmt: skip


def _id_of(value: object) -> str:
    """An id that is given as itself or in an object."""
    found = value.get("id") if isinstance(value, dict) else value
    return found if isinstance(found, str) else ""


def _message(items: Sequence[object], response_id: str) -> JsonObject | None:
    """The message of an answer; None if there is none, or outputs stand between its parts."""
    try:
        messages = messages_of_items(items)
    except InvalidRequest:
        return None
    if len(messages) != 1:
        return None
    return {**messages[0], ANSWER: response_id} if response_id else messages[0]


def _finish_reason(response: JsonObject) -> str:
    """The end of a response, in the words that sessions know."""
    if response.get("status") != "incomplete":
        return "stop" if response.get("status") == "completed" else ""
    reason = str((object_of(response.get("incomplete_details")) or {}).get("reason") or "")
    return _REASONS.get(reason, reason)


# Answers of our own


def _new_id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex}"


def _response(output: Sequence[JsonObject], body: JsonObject) -> JsonObject:
    return {
        "id": _new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata") or {},
        "model": body.get("model") or "memory-service",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 0,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 0,
        },
    }


def _events(response: JsonObject, told: Sequence[JsonObject]) -> str:
    """A whole stream: its beginning, what is told, and its end."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[JsonObject] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *told,
        {"type": "response.completed", "response": response},
    ]
    return "".join(event({**each, "sequence_number": at}, each["type"]) for at, each in enumerate(events))

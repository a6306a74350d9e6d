"""OpenAI's Responses.

`instructions` stay as they came, and so do the system messages that the input begins with. `previous_response_id` and
`conversation` tell the session, whose view goes on in their place: the provider need not have stored anything.

A compaction that a client asks for is made here and answered with one compaction item, whose sealed content refers to
the session. When it comes back, the session stands for all that was said up to it. Items that other servers sealed
go on untouched.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from memory_service.errors import InvalidRequest
from memory_service.gateway.base import (
    AnswerReader,
    Dialect,
    GivenAnswer,
    JsonObject,
    event,
    field_of,
    hint_of,
    list_of,
    object_of,
    objects_of,
    openai_error,
    opening_of,
    texts_of,
)
from memory_service.schemas.compaction import CompactionReceipt
from memory_service.service import (
    TRIGGER,
    CallOverview,
    ServerEvent,
    Unreadable,
    call_overview,
    is_sealed_here,
    items_of_messages,
    messages_of_items,
)

if TYPE_CHECKING:
    from memory_service.service import ConversationCall, ConversationPrompt

# Of a conversation, where it is told by a call that begins it.
_METADATA = ("session_id", "conversation_id", "thread_id")
_REASONS = {"max_output_tokens": "length"}
# Codex knows the item by its other names too.
_COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")
_BEFORE_ITEMS = frozenset({"response.created", "response.in_progress", "response.queued"})


class OpenAIResponses(Dialect):
    """See `Dialect`.

    Args:
        compacts: Whether the calls ask for a compaction alone, as those of `/responses/compact` do.
    """

    protocol = "responses"
    opening_events = _BEFORE_ITEMS

    def __init__(self, *, compacts: bool = False) -> None:
        self._compacts = compacts

    def call(self, body: JsonObject, session_id: str | None, model: str) -> ConversationCall:
        """See `Dialect`."""
        from memory_service.service import ConversationCall

        if body.get("background"):
            raise InvalidRequest("The answer of a call with background comes by a route that is not served here.")
        items = _input(body)
        opening = len(opening_of(items))
        instructions = body.get("instructions")
        texts = [texts_of(item.get("content")) for item in items[:opening]]
        reference, new = _after_reference(items[opening:])
        is_triggered = bool(new) and new[-1].get("type") == TRIGGER
        return ConversationCall(
            messages=messages_of_items(new[:-1] if is_triggered else new),
            wire="responses",
            session_id=session_id,
            hint=_hint(body),
            conversation=_id_of(body.get("conversation")),
            follows=_id_of(body.get("previous_response_id")),
            reference=reference,
            compact_threshold=_threshold(body),
            compacts=self._compacts or is_triggered,
            system_prompt="\n".join([instructions, *texts] if isinstance(instructions, str) else texts),
            tools=list_of(body.get("tools")),
            model=model or None,
        )

    def overview(self, body: JsonObject) -> CallOverview:
        """See `Dialect`."""
        given_input, instructions = body.get("input"), body.get("instructions")
        items = [{"role": "user", "content": given_input}] if isinstance(given_input, str) else list_of(given_input)
        return call_overview(instructions if isinstance(instructions, str) else "", items, body.get("tools"))

    def reference(self, body: JsonObject) -> str:
        """See `Dialect`."""
        return _after_reference([item for item in list_of(body.get("input")) if isinstance(item, dict)])[0]

    def with_messages(
        self, body: JsonObject, messages: Sequence[Mapping[str, object]], *, whole: bool = True
    ) -> JsonObject:
        """See `Dialect`."""
        items = _input(body)
        objects = [*opening_of(items), *items_of_messages(messages)]
        given_input = body.get("input")
        own = ("previous_response_id", "conversation", "context_management") if whole else ()
        kept_fields = {key: value for key, value in body.items() if key not in own}
        other_entries = [entry for entry in list_of(body.get("context_management")) if not _is_compaction(entry)]
        managed_fields = {"context_management": other_entries} if whole and other_entries else {}
        return {**kept_fields, **managed_fields, "input": given_input if objects == items else objects}

    def answer(self, content: JsonObject) -> GivenAnswer:
        """See `Dialect`."""
        return GivenAnswer(
            messages=_messages(_output_of(content), field_of(content, "id", str) or ""),
            usage_fields=object_of(content.get("usage")),
            finish_reason=_finish_reason(content),
        )

    def reader(self) -> AnswerReader:
        """See `Dialect`."""
        return _ResponseReader()

    def text_answer(self, text: str, body: JsonObject) -> JsonObject:
        """See `Dialect`."""
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        fields = {
            "type": "message",
            "id": _new_id("msg"),
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        return _response([fields], body)

    def spoken_events(self, text: str, body: JsonObject) -> str:
        """See `Dialect`."""
        response = self.text_answer(text, body)
        [value] = response["output"]
        place = {"item_id": value["id"], "output_index": 0, "content_index": 0}
        part = value["content"][0]
        begun_object: JsonObject = {**value, "status": "in_progress", "content": []}
        return _events(response, [
            {"type": "response.output_item.added", "output_index": 0, "item": begun_object},
            {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
            {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
            {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
            {"type": "response.content_part.done", **place, "part": part},
            {"type": "response.output_item.done", "output_index": 0, "item": value},
        ])  # fmt: skip

    def compaction_answer(self, prompt: ConversationPrompt, body: JsonObject) -> JsonObject:
        """See `Dialect`."""
        item = _compaction_item(prompt.reference)
        response = _response([item], body, prompt.compaction)
        if not self._compacts:
            return response
        output = [*map(_as_output, items_of_messages(prompt.messages)), item]
        kept_fields = {key: response[key] for key in ("id", "created_at", "usage")}
        return {**kept_fields, "object": "response.compaction", "output": output}

    def compacted_events(self, prompt: ConversationPrompt, body: JsonObject) -> str:
        """See `Dialect`."""
        response = _response([item := _compaction_item(prompt.reference)], body, prompt.compaction)
        return _events(response, _item_events(item))

    def with_compaction(self, content: JsonObject, reference: str) -> JsonObject:
        """See `Dialect`."""
        return {**content, "output": [_compaction_item(reference), *list_of(content.get("output"))]}

    def with_compaction_event(self, reference: str) -> Callable[[ServerEvent], str]:
        """See `Dialect`."""
        return _CompactionFirst(_compaction_item(reference)).rewrite

    def error(self, status: int, code: str, message: str) -> JsonObject:
        """See `Dialect`."""
        return openai_error(status, code, message)

    def error_event(self, message: str) -> str:
        """See `Dialect`."""
        # Flat as the reference has it, and nested as its clients raise it.
        told_object = openai_error(502, "upstream_failed", message)
        return event({**told_object["error"], **told_object, "type": "error", "sequence_number": 0}, "error")


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
        match content.get("type"):
            case "response.created" | "response.completed" | "response.incomplete" | "response.failed" as kind:
                self._response = field_of(content, "response", dict) or {}
                self.has_ended = kind in ("response.completed", "response.incomplete")
                if kind == "response.failed":
                    self.failure = json.dumps({"error": self._response.get("error")})
            case "response.output_item.done":
                self.whole(event)
                [item] = objects_of([content.get("item")])
                self._items[self.place(content.get("output_index"))] = item
            case "response.output_text.delta" | "response.refusal.delta":
                pieces = self._texts.setdefault(self.place(content.get("output_index")), [])
                if piece := self.room(content.get("delta")):
                    pieces.append(piece)
            case "error":
                self.failure = event.text

    def answer(self, *, whole: bool) -> GivenAnswer:
        """See `AnswerReader`."""
        items = [self._items[index] for index in sorted(self._items)]
        if not whole:
            items = self._broken_off_texts()
        return GivenAnswer(
            messages=_messages(items, field_of(self._response, "id", str) or ""),
            usage_fields=object_of(self._response.get("usage")),
            finish_reason=_finish_reason(self._response),
        )

    def _broken_off_texts(self) -> list[JsonObject]:
        """The words of an answer that was broken off: a call has no output then, and reasoning nothing behind it."""
        texts = {index: "".join(pieces) for index, pieces in self._texts.items()}
        return [{"role": "assistant", "content": texts[index]} for index in sorted(texts) if texts[index]]


class _CompactionFirst:
    """Puts a compaction item before the items of a stream."""

    def __init__(self, item: JsonObject) -> None:
        self._item = item
        self._events = _item_events(item)
        self._is_told = False

    def rewrite(self, given_event: ServerEvent) -> str:
        """An event as it goes on, behind those of the item if it is the first to need them."""
        content = given_event.json()
        if not content:
            return given_event.encode()
        events = ""
        if not self._is_told and content.get("type") not in _BEFORE_ITEMS:
            self._is_told = True
            begin = int(content.get("sequence_number") or 0)
            events = _number_events(self._events, begin)
        if self._is_told:
            content = self._behind(content)
        return events + event(content, given_event.name)

    def _behind(self, content: JsonObject) -> JsonObject:
        moved_fields = {**content, "sequence_number": int(content.get("sequence_number") or 0) + len(self._events)}
        if isinstance(at := content.get("output_index"), int):
            moved_fields["output_index"] = at + 1
        if isinstance(response := content.get("response"), dict):
            moved_fields["response"] = {**response, "output": [self._item, *list_of(response.get("output"))]}
        return moved_fields


def _input(body: JsonObject) -> list[JsonObject]:
    """The items of a body.

    Raises:
        InvalidRequest: There are none.
    """
    given_input = body.get("input", [] if body.get("previous_response_id") else None)
    if isinstance(given_input, str):
        return [{"role": "user", "content": given_input}]
    if not isinstance(given_input, list) or not all(isinstance(item, dict) for item in given_input):
        raise InvalidRequest("The field input is neither text nor a list of items. Send the conversation in it.")
    return given_input


def _after_reference(items: Sequence[JsonObject]) -> tuple[str, Sequence[JsonObject]]:
    """The sealed content of the last compaction item that has the form of ours, and the items behind it."""
    for at in range(len(items) - 1, -1, -1):
        if items[at].get("type") in _COMPACTIONS and is_sealed_here(
            encrypted_content := items[at].get("encrypted_content")
        ):
            return str(encrypted_content), items[at + 1 :]
    return "", items


def _is_compaction(entry: object) -> bool:
    return isinstance(entry, dict) and entry.get("type") == "compaction"


def _threshold(body: JsonObject) -> int | None:
    """The size at which the caller wants a compaction; 0 if it names none, None if it does not want any."""
    entries = [entry for entry in list_of(body.get("context_management")) if _is_compaction(entry)]
    if not entries:
        return None
    size = entries[0].get("compact_threshold")
    return max(size, 0) if isinstance(size, int) else 0


def _hint(body: JsonObject) -> str:
    metadata = object_of(body.get("metadata")) or {}
    return hint_of([*(body.get(name) for name in ("prompt_cache_key", "safety_identifier", "user")),
                    *(metadata.get(name) for name in _METADATA)])  # fmt: skip


def _id_of(value: object) -> str:
    """An id that is given as itself or in an object."""
    found_value = value.get("id") if isinstance(value, dict) else value
    return found_value if isinstance(found_value, str) else ""


def _output_of(content: JsonObject) -> list[object]:
    output = field_of(content, "output", list)
    if output is None:
        raise Unreadable("it has no output")
    return output


def _messages(items: Sequence[object], response_id: str) -> tuple[JsonObject, ...]:
    """The messages of an answer, the last of them with its id.

    Raises:
        Unreadable: An item is of no kind that is known.
    """
    try:
        messages = messages_of_items(items)
    except InvalidRequest:
        raise Unreadable("an item of it has a shape that is not known") from None
    from memory_service.service import ANSWER

    named_fields = {ANSWER: response_id} if response_id else {}
    return (*messages[:-1], *({**message, **named_fields} for message in messages[-1:]))


def _finish_reason(response: JsonObject) -> str:
    """The end of a response, in the words that sessions know."""
    if response.get("status") != "incomplete":
        return "stop" if response.get("status") == "completed" else ""
    reason = str((object_of(response.get("incomplete_details")) or {}).get("reason") or "")
    return _REASONS.get(reason, reason)


# Answers of our own


def _new_id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex}"


def _compaction_item(reference: str) -> JsonObject:
    return {"type": "compaction", "id": _new_id("cmp"), "encrypted_content": reference}


def _as_output(item: JsonObject) -> JsonObject:
    """A message of the user as an item of an output."""
    content = item.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    return {**item, "type": "message", "id": _new_id("msg"), "status": "completed", "content": parts}


def _item_events(item: JsonObject) -> list[JsonObject]:
    place = {"output_index": 0}
    return [
        {"type": "response.output_item.added", **place, "item": {**item, "encrypted_content": ""}},
        {"type": "response.compaction.compacting", **place, "item_id": item["id"]},
        {"type": "response.output_item.done", **place, "item": item},
    ]


def _response(output: Sequence[JsonObject], body: JsonObject, receipt: CompactionReceipt | None = None) -> JsonObject:
    input_tokens = receipt.input_tokens if receipt else 0
    output_tokens = receipt.output_tokens if receipt else 0
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
            "input_tokens": input_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input_tokens + output_tokens,
        },
    }


def _events(response: JsonObject, objects: Sequence[JsonObject]) -> str:
    """A whole stream: its beginning, what is told, and its end."""
    begun_fields = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[JsonObject] = [
        {"type": "response.created", "response": begun_fields},
        {"type": "response.in_progress", "response": begun_fields},
        *objects,
        {"type": "response.completed", "response": response},
    ]
    return _number_events(events, 0)


def _number_events(events: Sequence[JsonObject], begin: int) -> str:
    return "".join(
        event({**each_object, "sequence_number": at}, each_object["type"])
        for at, each_object in enumerate(events, begin)
    )

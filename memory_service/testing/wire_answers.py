"""Answers of a scripted model as providers' protocols have them: in one piece, and as a stream of events.

Invariants: the same reply gives the same answer but for the ids of responses; each protocol's own names are used.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

from memory_service.llm.base import CallUsage
from memory_service.messages.server_events import ServerEvent

# Anthropic's messages
_EMPTY_BLOCKS: dict[str, dict[str, Any]] = {
    "text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}},
}  # fmt: skip


# OpenAI's Responses


_EMPTY_ITEMS: dict[str, dict[str, Any]] = {"message": {"content": []}, "function_call": {"arguments": ""}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer; the default usage counts four characters as a token.

    Attributes:
        tool_call: Name of a tool that the model calls after what it says, without being offered any.
        arguments: Of that call, as JSON.
        more_calls: Name and arguments of calls beside that one, in parallel.
        thinking: What it thinks before; with a signature where the protocol has one.
        pause_seconds: Between two pieces of a stream.
        breaks_after: After so many pieces of a stream the connection breaks.
    """

    text: str = ""
    finish_reason: str = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    tool_call: str | None = None
    arguments: str = "{}"
    more_calls: tuple[tuple[str, str], ...] = ()
    thinking: str = ""
    pause_seconds: float = 0.0
    breaks_after: int | None = None

    def usage(self, prompt_chars: int) -> CallUsage:
        """The usage that the provider would report."""
        return CallUsage(
            input_tokens=math.ceil(prompt_chars / 4) if self.input_tokens is None else self.input_tokens,
            output_tokens=math.ceil(len(self.text) / 4) if self.output_tokens is None else self.output_tokens,
            cached_tokens=self.cached_tokens,
        )


def _answer(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    choices = [
        {"index": index, "finish_reason": _finish_reason(reply), "message": _message(reply)}
        for index in range(body.get("n") or 1)
    ]
    return {**_head(body, "chat.completion"), "choices": choices, "usage": _usage(reply, body)}


def _message(reply: Reply) -> dict[str, Any]:
    thought_fields = {"reasoning_content": reply.thinking} if reply.thinking else {}
    if reply.tool_call is None:
        return {"role": "assistant", "content": reply.text, **thought_fields}
    calls = [
        {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for index, call in enumerate(_calls(reply))
    ]
    return {"role": "assistant", "content": reply.text or None, "tool_calls": calls, **thought_fields}


class _Call(NamedTuple):
    id: str
    name: str
    arguments: str


def _calls(reply: Reply) -> list[_Call]:
    pairs = [(reply.tool_call, reply.arguments)] if reply.tool_call else []
    return [_Call(_call_id(name, text), name, text) for name, text in (*pairs, *reply.more_calls)]


def _call_id(name: str, arguments: str) -> str:
    return f"call_{hashlib.blake2b(f'{name}{arguments}'.encode(), digest_size=6).hexdigest()}"


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.tool_call else reply.finish_reason


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"(?<= )", text) if word]


def _events(reply: Reply, body: Mapping[str, Any]) -> Iterator[str]:
    """The answer as server-sent events: a word each, then the end, then the usage."""
    pieces: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    pieces += [{"reasoning_content": word} for word in _words(reply.thinking)]
    pieces += [{"content": word} for word in _words(reply.text)]
    for call in _message(reply).get("tool_calls", ()):
        index, function = call["index"], call["function"]
        pieces.append({"tool_calls": [{**call, "function": {"name": function["name"], "arguments": ""}}]})
        pieces += [
            {"tool_calls": [{"index": index, "function": {"arguments": word}}]}
            for word in _words(function["arguments"])
        ]
    head = _head(body, "chat.completion.chunk")
    choices = [{"index": 0, "delta": piece, "finish_reason": None} for piece in pieces]
    for choice in (*choices, {"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}):
        yield ServerEvent("", json.dumps({**head, "choices": [choice]})).encode()
    yield ServerEvent("", json.dumps({**head, "choices": [], "usage": _usage(reply, body)})).encode()
    yield "data: [DONE]\n\n"


def _head(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": body.get("model", "scripted")}


def prompt_chars(body: Mapping[str, Any]) -> int:
    """How long a prompt is, system prompt and calls included."""
    text = body.get("messages") or body.get("input") or ""
    return len(text) if isinstance(text, str) else sum(len(str(value.get("content") or "")) for value in text)


def _usage(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    usage = reply.usage(prompt_chars(body))
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    thought_fields = {"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"}
    called_fields = [
        {
            "type": "tool_use",
            "id": call.id.replace("call", "toolu"),
            "name": call.name,
            "input": json.loads(call.arguments),
        }
        for call in _calls(reply)
    ]
    return [
        *([thought_fields] if reply.thinking else []),
        *([{"type": "text", "text": reply.text}] if reply.text else []),
        *called_fields,
    ]


def _stop_reason(reply: Reply) -> str:
    return "tool_use" if reply.tool_call else _STOP_REASONS.get(reply.finish_reason, reply.finish_reason)


def _anthropic_usage(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    usage = reply.usage(prompt_chars(body))
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.output_tokens,
    }


def _anthropic_answer(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": _blocks(reply),
        "stop_reason": _stop_reason(reply),
        "stop_sequence": None,
        "usage": _anthropic_usage(reply, body),
    }


def _anthropic_events(reply: Reply, body: Mapping[str, Any]) -> Iterator[str]:
    def make_event(kind: str, **fields: Any) -> str:
        return ServerEvent(kind, json.dumps({"type": kind, **fields})).encode()

    answer = _anthropic_answer(reply, body)
    usage = answer["usage"]
    yield make_event("message_start", message={**answer, "content": [], "stop_reason": None})
    yield make_event("ping")
    for index, block in enumerate(answer["content"]):
        yield make_event("content_block_start", index=index, content_block={**block, **_EMPTY_BLOCKS[block["type"]]})
        for delta in _deltas(block):
            yield make_event("content_block_delta", index=index, delta=delta)
        yield make_event("content_block_stop", index=index)
    yield make_event("message_delta", delta={"stop_reason": answer["stop_reason"], "stop_sequence": None}, usage=usage)
    yield make_event("message_stop")


def _deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": word} for word in _words(block["text"]))
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": word} for word in _words(block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case _:
            written_text = json.dumps(block["input"])
            yield from ({"type": "input_json_delta", "partial_json": word} for word in _words(written_text))


def _items(reply: Reply, number: int) -> list[dict[str, Any]]:
    thought_fields = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "c2VhbGVk"}
    text = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
    fields = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}
    called_fields = [
        {
            "type": "function_call", "id": f"fc_{number}", "call_id": call.id, "name": call.name,
            "arguments": call.arguments, "status": "completed",
        }
        for number, call in enumerate(_calls(reply), start=1)
    ]  # fmt: skip
    return [
        *([thought_fields] if reply.thinking else []),
        *([fields] if reply.text else []),
        *called_fields,
    ]


def _response(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    usage, is_cut, number = reply.usage(prompt_chars(body)), reply.finish_reason == "length", next(_RESPONSES)
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "error": None,
        "model": body.get("model", "scripted"),
        "output": _items(reply, number),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
    }


def _response_events(reply: Reply, body: Mapping[str, Any]) -> Iterator[str]:
    numbers = count()

    def make_event(kind: str, **fields: Any) -> str:
        name = f"response.{kind}"
        return ServerEvent(name, json.dumps({"type": name, "sequence_number": next(numbers), **fields})).encode()

    response = _response(reply, body)
    begun_fields = {**response, "status": "in_progress", "output": [], "usage": None}
    yield make_event("created", response=begun_fields)
    yield make_event("in_progress", response=begun_fields)
    for index, item in enumerate(response["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        values = {name: value for name, value in item.items() if name not in ("content", "arguments")}
        yield make_event("output_item.added", output_index=index, item={**values, **_EMPTY_ITEMS.get(item["type"], {})})
        if item["type"] == "message":
            part = item["content"][0]
            yield make_event("content_part.added", content_index=0, part={**part, "text": ""}, **place)
            for word in _words(reply.text):
                yield make_event("output_text.delta", content_index=0, delta=word, logprobs=[], **place)
            yield make_event("output_text.done", content_index=0, text=reply.text, logprobs=[], **place)
            yield make_event("content_part.done", content_index=0, part=part, **place)
        elif item["type"] == "function_call":
            for word in _words(reply.arguments):
                yield make_event("function_call_arguments.delta", delta=word, **place)
            yield make_event("function_call_arguments.done", arguments=reply.arguments, name=item["name"], **place)
        yield make_event("output_item.done", output_index=index, item=item)
    yield make_event("incomplete" if response["incomplete_details"] else "completed", response=response)


_RESPONSES = count(1)


PROTOCOLS: dict[str, tuple[Callable[..., dict[str, Any]], Callable[..., Iterator[str]]]] = {
    "completions": (_answer, _events),
    "messages": (_anthropic_answer, _anthropic_events),
    "responses": (_response, _response_events),
}

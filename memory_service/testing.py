"""The doubles that tests of chat models use: a model and a real HTTP server that play a script.

```python
model = ScriptedModel("A summary.", Reply(text="Cut sho", finish_reason="length"), ModelUnavailable("No key."))

with ScriptedServer(Failure.named("openai"), "A summary.") as server:
    LiteLLMModel("openai/any", api_base=server.url, api_key="any").complete(messages)
    assert len(server.requests) == 2
```

Invariants: a script is played once, in order, and never guessed on when it is over.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, Generic, NamedTuple, TypeVar

from indexer.testing import Exchange, LoopbackServer, Request
from memory_service.errors import CallCancelled, UpstreamFailed
from memory_service.llm.base import SAFETY_TIMEOUT_SECONDS, CallUsage, ChatMessage, Completion, not_cancelled

_POLL_SECONDS = 0.01
_Step = TypeVar("_Step")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """No answer for so long; then the connection closes."""

    seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks before an answer. Only a server can play it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An HTTP error. Only a server can play it."""

    status: int = 500
    body: Mapping[str, Any] | str = field(default_factory=lambda: _body("The server had an error.", "server_error"))
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def named(cls, name: str) -> Failure:
        """The way in which a provider says that a prompt is too long, by the provider's name; or "rate_limit".

        Raises:
            KeyError: There is none of that name.
        """
        status, message, code = _FAILURES[name]
        return cls(status=status, body=_body(message, code))


ScriptedAnswer = str | Reply | Hang
ScriptedStep = ScriptedAnswer | Cut | Failure


class ScriptedModel:
    """A `ChatModel` that answers from a script: texts, replies, hangs, errors to raise, or functions of the messages.

    Attributes:
        requests: The messages of every call so far.

    Args:
        script: What it does, call by call.
        name: See `ChatModel`.
        context_window: See `ChatModel`.
    """

    def __init__(
        self,
        *script: ScriptedAnswer | Exception | Callable[[Sequence[ChatMessage]], str],
        name: str = "scripted",
        context_window: int | None = None,
    ) -> None:
        self.name = name
        self.requests: list[list[ChatMessage]] = []
        self._context_window = context_window
        self._script = _Script(script)

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int | None = None,
        timeout_seconds: float = SAFETY_TIMEOUT_SECONDS,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> Completion:
        """See `ChatModel`.

        Raises:
            AssertionError: The script is over.
        """
        if cancelled():
            raise CallCancelled("The call was cancelled. Nothing was changed.")
        self.requests.append(list(messages))
        step = self._script.next()
        if isinstance(step, Exception):
            raise step
        if isinstance(step, Hang):
            _hang(min(step.seconds, timeout_seconds), cancelled)
            raise UpstreamFailed(f"The model {self.name} did not answer in time. Try again.", kind="timeout")
        reply = _reply(step(messages) if callable(step) else step)
        return Completion(
            text=reply.text,
            finish_reason="tool_calls" if reply.tool_call else reply.finish_reason,
            usage=reply.usage(sum(len(message["content"]) for message in messages)),
            model=self.name,
            tool_calls_present=reply.tool_call is not None,
        )

    def context_window(self) -> int | None:
        """See `ChatModel`."""
        return self._context_window

    def count_tokens(self, messages: Sequence[ChatMessage]) -> int | None:
        """See `ChatModel`; it has no tokenizer."""
        return None


class ScriptedServer(LoopbackServer):
    """A provider on a loopback port; it runs while its `with` block does.

    It answers `POST …/chat/completions`, `…/responses` and `…/messages`, each in its own protocol, in one piece or,
    where `stream` is asked for, word by word as time goes on; `…/messages/count_tokens` and `GET …/models` too, which
    take no step of the script.

    Attributes:
        left: How often a client went away before a stream was over.

    Args:
        script: What it does, request by request; when it is over, it answers 500.
    """

    def __init__(self, *script: ScriptedStep) -> None:
        super().__init__()
        self.left = 0
        self._script = _Script(script)

    def step(self, request: Request) -> ScriptedStep:
        """The step that answers a request: the next one of the script.

        Raises:
            AssertionError: The script is over.
        """
        return self._script.next()

    def answer(self, exchange: Exchange) -> None:
        """Play a step."""
        body, path = exchange.request.body, exchange.request.path.partition("?")[0]
        if path.endswith("/models"):
            exchange.send(200, json.dumps({"object": "list", "data": [_MODEL]}))
            return
        if path.endswith("/count_tokens"):
            exchange.send(200, json.dumps({"input_tokens": math.ceil(_chars(body) / 4)}))
            return
        made, events = _PROTOCOLS.get(path.rpartition("/")[2], (_answer, _events))
        try:
            step = self.step(exchange.request)
        except AssertionError as error:
            step = Failure(body=_body(str(error), "script_over"))
        match step:
            case Failure():
                text = step.body if isinstance(step.body, str) else json.dumps(step.body)
                exchange.send(step.status, text, step.headers)
            case Hang():
                exchange.hang_up(step.seconds)
            case Cut():
                exchange.hang_up()
            case _ if body.get("stream"):
                reply = _reply(step)
                pieces = islice(events(reply, body), reply.breaks_after)
                if not exchange.stream(pieces, pause_seconds=reply.pause_seconds, whole=reply.breaks_after is None):
                    self.left += 1
            case _:
                exchange.send(200, json.dumps(made(_reply(step), body)), _ANSWER_HEADERS)


class _Script(Generic[_Step]):
    """Steps that are taken once, by whoever comes first."""

    def __init__(self, steps: Sequence[_Step]) -> None:
        self._steps = steps
        self._taken = 0
        self._taking = threading.Lock()

    def next(self) -> _Step:
        """The next step.

        Raises:
            AssertionError: The script is over.
        """
        with self._taking:
            self._taken += 1
            if self._taken > len(self._steps):
                raise AssertionError(f"The script is over after {len(self._steps)} steps. Write one for every call.")
            return self._steps[self._taken - 1]


def _reply(step: str | Reply) -> Reply:
    return Reply(text=step) if isinstance(step, str) else step


def _hang(seconds: float, cancelled: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if cancelled():
            raise CallCancelled("The call was cancelled. Nothing was changed.")
        time.sleep(_POLL_SECONDS)


def _answer(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    choices = [
        {"index": index, "finish_reason": _finish_reason(reply), "message": _message(reply)}
        for index in range(body.get("n") or 1)
    ]
    return {**_head(body, "chat.completion"), "choices": choices, "usage": _usage(reply, body)}


def _message(reply: Reply) -> dict[str, Any]:
    thought = {"reasoning_content": reply.thinking} if reply.thinking else {}
    if reply.tool_call is None:
        return {"role": "assistant", "content": reply.text, **thought}
    calls = [
        {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for index, call in enumerate(_calls(reply))
    ]
    return {"role": "assistant", "content": reply.text or None, "tool_calls": calls, **thought}


class _Call(NamedTuple):
    id: str
    name: str
    arguments: str


def _calls(reply: Reply) -> list[_Call]:
    named = [(reply.tool_call, reply.arguments)] if reply.tool_call else []
    return [_Call(_call_id(name, written), name, written) for name, written in (*named, *reply.more_calls)]


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
    for piece in pieces:
        yield _event({**head, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}]})
    yield _event({**head, "choices": [], "usage": _usage(reply, body)})
    yield "data: [DONE]\n\n"


def _event(value: Mapping[str, Any], name: str = "") -> str:
    return f"{f'event: {name}' + chr(10) if name else ''}data: {json.dumps(value)}\n\n"


def _head(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": body.get("model", "scripted")}


def _chars(body: Mapping[str, Any]) -> int:
    """How long a prompt is, system prompt and calls included."""
    said = body.get("messages") or body.get("input") or ""
    return len(said) if isinstance(said, str) else sum(len(str(each.get("content") or "")) for each in said)


def _usage(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    usage = reply.usage(_chars(body))
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


# Anthropic's messages

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    thought = {"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"}
    called = [
        {
            "type": "tool_use",
            "id": call.id.replace("call", "toolu"),
            "name": call.name,
            "input": json.loads(call.arguments),
        }
        for call in _calls(reply)
    ]
    return [
        *([thought] if reply.thinking else []),
        *([{"type": "text", "text": reply.text}] if reply.text else []),
        *called,
    ]


def _stop_reason(reply: Reply) -> str:
    return "tool_use" if reply.tool_call else _STOP_REASONS.get(reply.finish_reason, reply.finish_reason)


def _anthropic_usage(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    usage = reply.usage(_chars(body))
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


_EMPTY_BLOCKS: dict[str, dict[str, Any]] = {
    "text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}},
}  # fmt: skip


def _anthropic_events(reply: Reply, body: Mapping[str, Any]) -> Iterator[str]:
    def told(kind: str, **fields: Any) -> str:
        return _event({"type": kind, **fields}, kind)

    answer = _anthropic_answer(reply, body)
    usage = answer["usage"]
    yield told("message_start", message={**answer, "content": [], "stop_reason": None})
    yield told("ping")
    for index, block in enumerate(answer["content"]):
        yield told("content_block_start", index=index, content_block={**block, **_EMPTY_BLOCKS[block["type"]]})
        for delta in _deltas(block):
            yield told("content_block_delta", index=index, delta=delta)
        yield told("content_block_stop", index=index)
    yield told("message_delta", delta={"stop_reason": answer["stop_reason"], "stop_sequence": None}, usage=usage)
    yield told("message_stop")


def _deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": word} for word in _words(block["text"]))
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": word} for word in _words(block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case _:
            written = json.dumps(block["input"])
            yield from ({"type": "input_json_delta", "partial_json": word} for word in _words(written))


# OpenAI's Responses


def _items(reply: Reply, number: int) -> list[dict[str, Any]]:
    thought = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "c2VhbGVk"}
    text = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
    said = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}
    called = [
        {
            "type": "function_call", "id": f"fc_{number}", "call_id": call.id, "name": call.name,
            "arguments": call.arguments, "status": "completed",
        }
        for number, call in enumerate(_calls(reply), start=1)
    ]  # fmt: skip
    return [
        *([thought] if reply.thinking else []),
        *([said] if reply.text else []),
        *called,
    ]


def _response(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    usage, cut, number = reply.usage(_chars(body)), reply.finish_reason == "length", next(_RESPONSES)
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
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


_EMPTY_ITEMS: dict[str, dict[str, Any]] = {"message": {"content": []}, "function_call": {"arguments": ""}}


def _response_events(reply: Reply, body: Mapping[str, Any]) -> Iterator[str]:
    numbers = count()

    def told(kind: str, **fields: Any) -> str:
        return _event({"type": f"response.{kind}", "sequence_number": next(numbers), **fields}, f"response.{kind}")

    response = _response(reply, body)
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield told("created", response=begun)
    yield told("in_progress", response=begun)
    for index, item in enumerate(response["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        emptied = {name: value for name, value in item.items() if name not in ("content", "arguments")}
        yield told("output_item.added", output_index=index, item={**emptied, **_EMPTY_ITEMS.get(item["type"], {})})
        if item["type"] == "message":
            part = item["content"][0]
            yield told("content_part.added", content_index=0, part={**part, "text": ""}, **place)
            for word in _words(reply.text):
                yield told("output_text.delta", content_index=0, delta=word, logprobs=[], **place)
            yield told("output_text.done", content_index=0, text=reply.text, logprobs=[], **place)
            yield told("content_part.done", content_index=0, part=part, **place)
        elif item["type"] == "function_call":
            for word in _words(reply.arguments):
                yield told("function_call_arguments.delta", delta=word, **place)
            yield told("function_call_arguments.done", arguments=reply.arguments, name=item["name"], **place)
        yield told("output_item.done", output_index=index, item=item)
    yield told("incomplete" if response["incomplete_details"] else "completed", response=response)


_RESPONSES = count(1)
_MODEL = {"id": "scripted", "object": "model", "created": 1, "owned_by": "memory-service"}
_ANSWER_HEADERS = {"x-request-id": "req_scripted", "request-id": "req_scripted", "x-ratelimit-remaining-requests": "41"}
_PROTOCOLS: dict[str, tuple[Callable[..., dict[str, Any]], Callable[..., Iterator[str]]]] = {
    "completions": (_answer, _events),
    "messages": (_anthropic_answer, _anthropic_events),
    "responses": (_response, _response_events),
}


def _body(message: str, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


# How providers say that a prompt of 140,000 tokens does not fit a window of 131,072; and that one has to wait.
_FAILURES: dict[str, tuple[int, str, str | None]] = {
    "openai": (
        400,
        "This model's maximum context length is 131072 tokens. However, your messages resulted in 140000 tokens. "
        "Please reduce the length of the messages.",
        "context_length_exceeded",
    ),
    "anthropic": (400, "prompt is too long: 140000 tokens > 131072 maximum", None),
    "gemini": (
        400,
        "The input token count (140000) exceeds the maximum number of tokens allowed (131072).",
        "INVALID_ARGUMENT",
    ),
    "mistral": (400, "Prompt contains 140000 tokens, too large for model with 131072 maximum context length", None),
    "moonshot": (
        400,
        "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)",
        None,
    ),
    "dashscope": (400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 131072]", None),
    "zhipu": (400, "Prompt 超长", "1261"),
    "vllm": (
        400,
        "This model's maximum context length is 131072 tokens. However, you requested 4096 output tokens and your "
        "prompt contains at least 135904 input tokens, for a total of at least 140000 tokens.",
        None,
    ),
    "llamacpp": (
        400,
        "request (140000 tokens) exceeds the available context size (131072 tokens), try increasing it",
        "exceed_context_size_error",
    ),
    "bytes": (413, "Request exceeds the maximum size", "request_too_large"),
    "rate_limit": (
        429,
        "Rate limit reached for any on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.",
        "rate_limit_exceeded",
    ),
}

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

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from indexer.testing import Exchange, LoopbackServer
from memory_service.errors import CallCancelled, UpstreamFailed
from memory_service.llm.base import SAFETY_TIMEOUT_SECONDS, CallUsage, ChatMessage, Completion, not_cancelled

_POLL_SECONDS = 0.01
_Step = TypeVar("_Step")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer; the default usage counts four characters as a token.

    Attributes:
        tool_call: Name of a tool that the model calls instead of answering, without being offered any.
    """

    text: str = ""
    finish_reason: str = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    tool_call: str | None = None

    def usage(self, prompt_chars: int) -> CallUsage:
        """What the provider would report."""
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


Answer = str | Reply | Hang
Step = Answer | Cut | Failure


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
        *script: Answer | Exception | Callable[[Sequence[ChatMessage]], str],
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
    """An OpenAI-compatible server on a loopback port; it runs while its `with` block does.

    It answers `POST …/chat/completions`, in one piece or, where `stream` is asked for, word by word.

    Args:
        script: What it does, request by request; when it is over, it answers 500.
    """

    def __init__(self, *script: Step) -> None:
        super().__init__()
        self._script = _Script(script)

    def answer(self, exchange: Exchange) -> None:
        """Take the next step of the script."""
        body = exchange.request.body
        try:
            step = self._script.next()
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
                exchange.send(200, "".join(_events(_reply(step), body)), {"content-type": "text/event-stream"})
            case _:
                exchange.send(200, json.dumps(_answer(_reply(step), body)))


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


def _message(reply: Reply) -> dict[str, Any]:
    if reply.tool_call is None:
        return {"role": "assistant", "content": reply.text}
    function = {"name": reply.tool_call, "arguments": "{}"}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    return {"role": "assistant", "content": reply.text or None, "tool_calls": calls}


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.tool_call else reply.finish_reason


def _answer(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": _finish_reason(reply), "message": _message(reply)}
    return {**_head(body, "chat.completion"), "choices": [choice], "usage": _usage(reply, body)}


def _events(reply: Reply, body: Mapping[str, Any]) -> Iterator[str]:
    """The answer as server-sent events: a word each, then the end, then the usage."""
    words = [word + " " for word in reply.text.split(" ")] if reply.text else []
    pieces: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": word} for word in words)]
    if words:
        pieces[-1]["content"] = words[-1][:-1]
    if reply.tool_call:
        pieces.append({"tool_calls": _message(reply)["tool_calls"]})
    head = _head(body, "chat.completion.chunk")
    for piece in pieces:
        yield _event({**head, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}]})
    yield _event({**head, "choices": [], "usage": _usage(reply, body)})
    yield "data: [DONE]\n\n"


def _event(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _head(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": body.get("model", "scripted")}


def _usage(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    usage = reply.usage(sum(len(str(message.get("content") or "")) for message in body.get("messages", [])))
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
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

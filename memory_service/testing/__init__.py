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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from indexer.testing import Exchange, LoopbackServer, Request
from memory_service.errors import CallCancelled, UpstreamFailed
from memory_service.llm.base import SAFETY_TIMEOUT_SECONDS, ChatMessage, Completion, not_cancelled
from memory_service.testing.wire_answers import PROTOCOLS, Reply, prompt_chars

__all__ = ["Cut", "Failure", "Hang", "Reply", "ScriptedAnswer", "ScriptedModel", "ScriptedServer", "ScriptedStep"]

_POLL_SECONDS = 0.01
_Step = TypeVar("_Step")


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
            exchange.send(200, json.dumps({"input_tokens": math.ceil(prompt_chars(body) / 4)}))
            return
        value, events = PROTOCOLS.get(path.rpartition("/")[2], PROTOCOLS["completions"])
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
                exchange.send(200, json.dumps(value(_reply(step), body)), _ANSWER_HEADERS)


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


_MODEL = {"id": "scripted", "object": "model", "created": 1, "owned_by": "memory-service"}
_ANSWER_HEADERS = {"x-request-id": "req_scripted", "request-id": "req_scripted", "x-ratelimit-remaining-requests": "41"}


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

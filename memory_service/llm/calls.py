"""The calls to a model that one summary takes: how many, for how long, to which model, with what window.

Invariants: no call begins after the deadline, the last allowed call or a cancellation; a window only ever shrinks;
nothing is kept of what was said. Safe to use from several threads at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory_service.errors import CallCancelled, ContextOverflow, ModelUnavailable, SummaryFailed, UpstreamFailed
from memory_service.llm.base import ChatMessage, ChatModel, Completion, not_cancelled
from memory_service.messages.sizes import MESSAGE_TOKENS, estimate_tokens

# How often the window may shrink: each time it at least halves, or becomes what the provider told.
_SHRINKS = 5
_POLL_SECONDS = 0.02
# Source: seeds 000 and 003: half a second before the second try, and twice as long before each further one.
CALL_ATTEMPTS = 4
BACKOFF_SECONDS = 0.5
# The most that is waited at once, whatever a provider asks for.
LONGEST_WAIT_SECONDS = 30.0
# What is on its way when one of several calls has failed may still end by itself.
_GRACE_SECONDS = 1.0


@dataclass(slots=True, kw_only=True)
class Spent:
    """Total usage of calls to models, failed ones included.

    Attributes:
        requests: How many were sent, further tries included.
        failed: How many of them got no answer.
        input_tokens: What the providers counted for those that were answered.
        output_tokens: The same for the answers.
    """

    requests: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class ModelCalls:
    """The calls of one summary.

    Args:
        model: Who is asked.
        window_tokens: What it takes, prompt and answer together.
        fallbacks: Who is asked from then on if `model`, and those before, cannot be used at all.
        max_calls: The most requests.
        attempts: Tries for one answer, where a failure may pass: 408, 409, 429, 5xx and broken connections.
        backoff_seconds: The wait before the second of them; it doubles each time. What the provider asks for
            takes its place.
        timeout_seconds: For all calls together.
        cancelled: See `ChatModel.complete`.
        spending: Counted on; it tells of the calls also where an error ends them.

    Attributes:
        window_tokens: The same, as far as was learned since.
        notes: What went differently than asked.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        window_tokens: int,
        fallbacks: Sequence[ChatModel] = (),
        max_calls: int = 24,
        attempts: int = CALL_ATTEMPTS,
        backoff_seconds: float = BACKOFF_SECONDS,
        timeout_seconds: float = 300.0,
        cancelled: Callable[[], bool] = not_cancelled,
        spending: Spent | None = None,
    ) -> None:
        self.window_tokens = window_tokens
        self.spending = spending or Spent()
        self.notes: list[str] = []
        self._models = [model, *fallbacks]
        self._left, self._attempts, self._backoff_seconds = max_calls, attempts, backoff_seconds
        self._deadline = time.monotonic() + timeout_seconds
        self._cancelled_by_caller = cancelled
        self._stopped_at: float | None = None
        self._changing = threading.Lock()
        self._shrinks = 0

    @property
    def model_name(self) -> str:
        """Name of the model in use."""
        return self._models[0].name

    @property
    def left(self) -> int:
        """Number of calls left."""
        return self._left

    def stop(self) -> None:
        """Begin no more answers, and soon end those that are waited for: one of several at once has failed."""
        with self._changing:
            self._stopped_at = self._stopped_at or time.monotonic()

    def ask(self, prompt: Sequence[ChatMessage]) -> Completion:
        """One answer.

        Raises:
            CallCancelled: The caller, or `stop`, ended it.
            ContextOverflow: The prompt is too long; `learn` tells what to do.
            SummaryFailed: There is no time or no call left.
            UpstreamFailed: The provider failed, as often as it was tried.
        """
        if self._stopped_at is not None:
            raise _cancellation()
        tries = 0
        while True:
            model = self._next_model()
            tries += 1
            try:
                return self._count_usage(
                    model.complete(prompt, timeout_seconds=self._seconds, cancelled=self._is_cancelled)
                )
            except UpstreamFailed as error:
                self._count_failed(error)
                if isinstance(error, ModelUnavailable):
                    self._replace(model, error)
                    tries = 0
                    continue
                wait_seconds = self._wait_seconds(error, tries)
                if tries >= self._attempts or not error.transient or wait_seconds >= self._seconds:
                    raise
                self._pause(wait_seconds)

    def learn(self, error: ContextOverflow, asked_window_tokens: int) -> None:
        """Shrink the window after a prompt did not fit.

        Args:
            error: What the provider said.
            asked_window_tokens: What the window was taken for when the prompt was made.

        Raises:
            ContextOverflow: The same error: it shrank as often as it may.
        """
        with self._changing:
            if self.window_tokens < asked_window_tokens:
                return  # another call has learned it meanwhile
            self._shrinks += 1
            if self._shrinks > _SHRINKS:
                raise error
            number = error.window_tokens
            # A window that was told and is no smaller means that the estimate was too low.
            self.window_tokens = number if number and number < self.window_tokens else self.window_tokens // 2
            how = "as the provider told" if self.window_tokens == number else "since a prompt did not fit"
            self.notes.append(f"The summariser's window was taken for {self.window_tokens:,} tokens, {how}.")

    def _next_model(self) -> ChatModel:
        if self._is_cancelled():
            raise _cancellation()
        with self._changing:
            if self._seconds <= 0:
                raise SummaryFailed(call_failure("there is no time left", "allow it more time"), kind="timeout")
            if self._left <= 0:
                raise SummaryFailed(
                    call_failure("it takes more calls than are allowed", "set a model with a larger window"),
                    kind="token_overflow",
                )
            self._left -= 1
            self.spending.requests += 1
            return self._models[0]

    def _count_usage(self, completion: Completion) -> Completion:
        with self._changing:
            self.spending.input_tokens += completion.usage.input_tokens
            self.spending.output_tokens += completion.usage.output_tokens
        return completion

    def _count_failed(self, error: UpstreamFailed) -> None:
        with self._changing:
            self.spending.failed += error.sent
            self.spending.requests -= not error.sent

    def _wait_seconds(self, error: UpstreamFailed, tries: int) -> float:
        value = self._backoff_seconds * 2.0 ** (tries - 1)
        return min(value if error.retry_after_seconds is None else error.retry_after_seconds, LONGEST_WAIT_SECONDS)

    def _replace(self, model: ChatModel, error: ModelUnavailable) -> None:
        """Ask the next model from now on.

        Raises:
            ModelUnavailable: There is none.
        """
        with self._changing:
            if self._models[0] is not model:
                return
            if len(self._models) == 1:
                raise error
            del self._models[0]
            next_model = self._models[0]
            self.notes.append(f"The model {model.name} cannot be used ({error.why}); {next_model.name} was asked.")
        window_tokens = next_model.context_window()
        with self._changing:
            self.window_tokens = min(self.window_tokens, window_tokens or self.window_tokens)

    @property
    def _seconds(self) -> float:
        return self._deadline - time.monotonic()

    def _is_cancelled(self) -> bool:
        is_stopped = self._stopped_at is not None and time.monotonic() > self._stopped_at + _GRACE_SECONDS
        return is_stopped or self._cancelled_by_caller()

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self._is_cancelled():
            time.sleep(min(left, _POLL_SECONDS))


def _cancellation() -> CallCancelled:
    return CallCancelled("The summary was cancelled. Nothing was changed.")


def call_failure(text: str, remedy: str) -> str:
    """The message of a failed summary. Its beginning keeps it from being taken for an overflow of the conversation."""
    return f"The model failed to summarise the history: {text}. Nothing was changed; {remedy}."


def estimate_prompt(prompt: Sequence[ChatMessage]) -> int:
    """Size of a prompt in tokens, by estimate."""
    return sum(estimate_tokens(message["content"]) + MESSAGE_TOKENS for message in prompt)

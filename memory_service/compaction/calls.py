"""Owns the calls to a model that one summary takes: how many, for how long, to which model, with what window.

Invariants: no call begins after the deadline, the last allowed call or a cancellation; a window only ever shrinks;
nothing is kept of what was said. Safe to use from several threads at once.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory_service.errors import CallCancelled, ContextOverflow, ModelUnavailable, SummaryFailed, UpstreamFailed
from memory_service.llm.base import ChatMessage, ChatModel, Completion, never

# How often the window may shrink: each time it at least halves, or becomes what the provider told.
_SHRINKS = 5
_POLL_SECONDS = 0.02
# What may be over the next time; the model's own tries come before these.
_PASSING = frozenset({"rate_limit", "unavailable", "timeout", "other"})


@dataclass(slots=True, kw_only=True)
class Spent:
    """What calls to models came to, whatever became of them.

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


class Calls:
    """The calls of one summary.

    Args:
        model: Who is asked.
        window_tokens: What it takes, prompt and answer together.
        fallback: Who is asked from then on if `model` cannot be used at all.
        max_calls: The most calls.
        attempts: Tries for one call.
        backoff_seconds: The wait before the second of them; it doubles each time.
        timeout_seconds: For all calls together.
        cancelled: See `ChatModel.complete`.
        spent: Counted on; it tells of the calls also where an error ends them.

    Attributes:
        window_tokens: The same, as far as was learned since.
        notes: What went differently than asked.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        window_tokens: int,
        fallback: ChatModel | None = None,
        max_calls: int = 24,
        attempts: int = 1,
        backoff_seconds: float = 0.5,
        timeout_seconds: float = 300.0,
        cancelled: Callable[[], bool] = never,
        spent: Spent | None = None,
    ) -> None:
        self.window_tokens = window_tokens
        self.spent = spent or Spent()
        self.notes: list[str] = []
        self._model, self._fallback = model, fallback
        self._left, self._attempts, self._backoff_seconds = max_calls, attempts, backoff_seconds
        self._deadline = time.monotonic() + timeout_seconds
        self._cancelled_by_caller = cancelled
        self._stopped = threading.Event()
        self._changing = threading.Lock()
        self._shrinks = 0

    @property
    def model_name(self) -> str:
        """Who is asked now."""
        return self._model.name

    @property
    def left(self) -> int:
        """How many calls may still be made."""
        return self._left

    def stop(self) -> None:
        """End the calls that run, and allow no more: one of several at once has failed."""
        self._stopped.set()

    def ask(self, prompt: Sequence[ChatMessage]) -> Completion:
        """One answer.

        Raises:
            CallCancelled: The caller, or `stop`, ended it.
            ContextOverflow: The prompt is too long; `learn` tells what to do.
            SummaryFailed: There is no time or no call left.
            UpstreamFailed: The provider failed, as often as it was tried.
        """
        tries = 0
        while True:
            model = self._next_model()
            tries += 1
            try:
                return self._counted(model.complete(prompt, timeout_seconds=self._seconds, cancelled=self._cancelled))
            except (CallCancelled, ContextOverflow):
                raise
            except ModelUnavailable as error:
                self._replace(model, error)
                tries -= 1
            except UpstreamFailed as error:
                wait_seconds = self._backoff_seconds * 2.0 ** (tries - 1)
                if tries >= self._attempts or error.kind not in _PASSING or wait_seconds >= self._seconds:
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
            told = error.window_tokens
            # A window that was told and is no smaller means that the estimate was too low.
            self.window_tokens = told if told and told < self.window_tokens else self.window_tokens // 2
            how = "as the provider told" if self.window_tokens == told else "since a prompt did not fit"
            self.notes.append(f"The summariser's window was taken for {self.window_tokens:,} tokens, {how}.")

    def _next_model(self) -> ChatModel:
        if self._cancelled():
            raise CallCancelled("The summary was cancelled. Nothing was changed.")
        with self._changing:
            if self._seconds <= 0:
                raise SummaryFailed(failure("there is no time left", "allow it more time"), kind="timeout")
            if self._left <= 0:
                raise SummaryFailed(
                    failure("it takes more calls than are allowed", "set a model with a larger window"),
                    kind="token_overflow",
                )
            self._left -= 1
            self.spent.requests += 1
            return self._model

    def _counted(self, completion: Completion) -> Completion:
        with self._changing:
            self.spent.requests += completion.tries - 1
            self.spent.input_tokens += completion.usage.input_tokens
            self.spent.output_tokens += completion.usage.output_tokens
        return completion

    def _replace(self, model: ChatModel, error: ModelUnavailable) -> None:
        """Ask the fallback from now on.

        Raises:
            ModelUnavailable: There is none, or it was the one that cannot be used.
        """
        window_tokens = self._fallback.context_window() if self._fallback else None
        with self._changing:
            if self._model is not model:
                return
            if self._fallback is None or self._fallback is model:
                raise error
            self._model = self._fallback
            self.window_tokens = min(self.window_tokens, window_tokens or self.window_tokens)
            self.notes.append(f"The model {model.name} cannot be used; {self._fallback.name} was asked instead.")

    @property
    def _seconds(self) -> float:
        return self._deadline - time.monotonic()

    def _cancelled(self) -> bool:
        return self._stopped.is_set() or self._cancelled_by_caller()

    def _pause(self, seconds: float) -> None:
        for _ in itertools.takewhile(lambda _: not self._cancelled(), range(max(1, int(seconds / _POLL_SECONDS)))):
            time.sleep(min(seconds, _POLL_SECONDS))


def failure(what: str, remedy: str) -> str:
    """The message of a failed summary. Its beginning keeps it from being taken for an overflow of the conversation."""
    return f"The model failed to summarise the history: {what}. Nothing was changed; {remedy}."

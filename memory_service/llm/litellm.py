"""Owns the chat models of litellm; imported at the first call.

Invariants: the only requests are the ones to `api_base`, or to the model's provider where none is set; tools
are never sent; nothing is printed; every exception of litellm ends here, and no text of a message or a key is
in the errors that leave. Tries, waits and the time for all of them are ours: litellm retries nothing.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Any, cast

from indexer.embeddings.litellm_package import litellm_package, told_failure
from memory_service.errors import CallCancelled, ContextOverflow, ModelUnavailable, UpstreamFailed
from memory_service.llm.base import SAFETY_TIMEOUT_SECONDS, ChatMessage, Completion, Usage, never
from memory_service.llm.overflow import FailureKind, ProviderFailure, classify
from memory_service.llm.sayings import SAYINGS

# How often a call looks whether it was cancelled.
_POLL_SECONDS = 0.05

_INSTALL = 'Install it with pip install "memory-service[llm]", or leave llm_model unset.'
_HOPELESS: frozenset[FailureKind] = frozenset({"auth", "quota", "unsupported"})
# Where the text tells nothing, litellm's own reading of it does.
_KIND_OF_CLASS: dict[str, FailureKind] = {
    "ContextWindowExceededError": "token_overflow",
    "ContentPolicyViolationError": "content_filter",
    "AuthenticationError": "auth",
    "PermissionDeniedError": "auth",
    "NotFoundError": "unsupported",
    "UnsupportedParamsError": "unsupported",
    "ImportError": "unsupported",
    "ModuleNotFoundError": "unsupported",
    "Timeout": "timeout",
    "APIConnectionError": "unavailable",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Whom to ask."""

    model: str
    api_base: str | None
    api_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What one call of `complete` wants."""

    messages: Sequence[ChatMessage]
    max_output_tokens: int | None
    deadline: float
    cancelled: Callable[[], bool]

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def check(self) -> None:
        """End the call if it was cancelled.

        Raises:
            CallCancelled: It was.
        """
        if self.cancelled():
            raise CallCancelled("The call to the model was cancelled. Nothing was changed.")


class _Failed(Exception):
    """One try failed; the cause is litellm's exception."""

    def __init__(self, failure: ProviderFailure) -> None:
        super().__init__(failure.kind)
        self.failure = failure


class LiteLLMModel:
    """A chat model by its litellm name.

    Args:
        model: Such as "openai/gpt-4o-mini", "anthropic/claude-haiku-4-5" or "ollama/llama3.1".
        api_base: Where it is served, if not at its provider's own address.
        api_key: Its key, if not in the variable that its provider names.
        fallback: A model to ask instead where this one cannot be used: no key, no credit, no such model, or
            not able to do what was asked. One of the same provider shares address and key; one of another
            provider uses that one's own address and the key from the environment.
        retries: Further tries after a failure that may pass: 408, 409, 429, 5xx and broken connections.
        backoff_seconds: The wait before the first of them; it doubles each time and varies by a quarter.
        longest_wait_seconds: The most that is waited at once, whatever `Retry-After` says.
        try_timeout_seconds: For one try; by default, what is left of the time for all.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        fallback: str | None = None,
        retries: int = 3,
        backoff_seconds: float = 0.5,
        longest_wait_seconds: float = 30.0,
        try_timeout_seconds: float | None = None,
    ) -> None:
        self._target = _Target(model=model, api_base=api_base, api_key=api_key)
        self._fallback = fallback
        self._retries = retries
        self._backoff_seconds = backoff_seconds
        self._longest_wait_seconds = longest_wait_seconds
        self._try_timeout_seconds = try_timeout_seconds

    @property
    def name(self) -> str:
        """See `ChatModel`."""
        return self._target.model

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int | None = None,
        timeout_seconds: float = SAFETY_TIMEOUT_SECONDS,
        cancelled: Callable[[], bool] = never,
    ) -> Completion:
        """See `ChatModel`."""
        call = _Call(
            messages=messages,
            max_output_tokens=max_output_tokens,
            deadline=time.monotonic() + timeout_seconds,
            cancelled=cancelled,
        )
        try:
            return self._ask(self._target, call)
        except ModelUnavailable:
            if not self._fallback or not _is_installed():
                raise
        return self._ask(_fallback_target(self._target, self._fallback), call)

    def context_window(self) -> int | None:
        """See `ChatModel`; from litellm's table, which is part of the package."""
        known = _known(self._target.model)
        window = known.get("max_input_tokens")
        return window if isinstance(window, int) and window > 0 else None

    def count_tokens(self, messages: Sequence[ChatMessage]) -> int | None:
        """See `ChatModel`; for OpenAI's models, whose tokenizers litellm has; others it would fetch."""
        if _known(self._target.model).get("litellm_provider") not in ("openai", "azure"):
            return None
        name = self._target.model.rpartition("/")[2]
        return int(_litellm().token_counter(model=name, messages=[dict(message) for message in messages]))

    def _ask(self, target: _Target, call: _Call) -> Completion:
        """Try until it answers, or trying on is no use."""
        tries = 0
        while True:
            call.check()
            tries += 1
            try:
                return replace(self._try(target, call), tries=tries)
            except _Failed as failed:
                wait_seconds = self._wait_seconds(failed.failure, tries)
                hopeless = tries > self._retries or not failed.failure.transient
                if hopeless or wait_seconds >= call.seconds_left:
                    raise _error(failed.failure, target.model, tries) from failed.__cause__
            _pause(wait_seconds, call)

    def _wait_seconds(self, failure: ProviderFailure, tries: int) -> float:
        if failure.retry_after_seconds is not None:
            return min(failure.retry_after_seconds, self._longest_wait_seconds)
        wanted = self._backoff_seconds * 2.0 ** (tries - 1) * random.uniform(0.75, 1.25)
        return min(wanted, self._longest_wait_seconds)

    def _try(self, target: _Target, call: _Call) -> Completion:
        litellm = _litellm()
        seconds = max(min(call.seconds_left, self._try_timeout_seconds or call.seconds_left), 0.001)
        optional = {"api_base": target.api_base, "api_key": target.api_key, "max_tokens": call.max_output_tokens}
        future = _LOOP.run(
            litellm.acompletion(
                model=target.model,
                messages=[dict(message) for message in call.messages],
                timeout=seconds,
                max_retries=0,
                num_retries=0,
                **{name: value for name, value in optional.items() if value is not None},
            )
        )
        try:
            return _completion(_answer(future, seconds, call), target.model)
        except (CallCancelled, _Failed):
            raise
        except Exception as error:  # litellm's have no common base, and its defects come as anything
            raise _Failed(_failure(error)) from error


def _answer(future: Future[Any], seconds: float, call: _Call) -> Any:
    """Wait for an answer; whoever does not wait to its end closes the connection."""
    end = time.monotonic() + seconds
    try:
        # litellm keeps the time too, and tells more of what happened: it gets a moment to do so.
        while not wait([future], _POLL_SECONDS).done:
            call.check()
            if time.monotonic() > end + 4 * _POLL_SECONDS:
                raise _Failed(ProviderFailure(kind="timeout", transient=True))
        return future.result()
    finally:
        future.cancel()


def _pause(seconds: float, call: _Call) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        call.check()
        time.sleep(min(left, _POLL_SECONDS))


# --- litellm's values into ours ------------------------------------------------------------------------------------


def _completion(response: Any, model: str) -> Completion:
    choice = response.choices[0] if response.choices else None
    message = getattr(choice, "message", None)
    return Completion(
        text=getattr(message, "content", None) or "",
        finish_reason=getattr(choice, "finish_reason", None) or "",
        usage=_usage(getattr(response, "usage", None)),
        model=model,
        tool_calls_present=bool(getattr(message, "tool_calls", None) or getattr(message, "function_call", None)),
    )


def _usage(usage: Any) -> Usage:
    prompt = getattr(usage, "prompt_tokens_details", None)
    answer = getattr(usage, "completion_tokens_details", None)
    return Usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached_tokens=_count(prompt, "cached_tokens") or _count(usage, "cache_read_input_tokens"),
        cache_write_tokens=_count(prompt, "cache_creation_tokens") or _count(usage, "cache_creation_input_tokens"),
        reasoning_tokens=_count(answer, "reasoning_tokens"),
    )


def _count(value: Any, name: str) -> int:
    count = getattr(value, name, None)
    return count if isinstance(count, int) else 0


def _failure(error: Exception) -> ProviderFailure:
    """What an exception of litellm means."""
    told = told_failure(error)
    failure = classify(told.text, status=told.status)
    kind = _KIND_OF_CLASS.get(type(error).__name__)
    if failure.kind == "other" and kind:
        failure = replace(failure, kind=kind, transient=kind in ("timeout", "unavailable"))
    return failure if told.wait_seconds is None else replace(failure, retry_after_seconds=told.wait_seconds)


def _error(failure: ProviderFailure, model: str, tries: int) -> UpstreamFailed:
    """The error for a failure. What the provider said stays out: it may quote the prompt."""
    if failure.kind == "token_overflow":
        return ContextOverflow(
            f"The prompt does not fit the model {model}{_sizes(failure)}. "
            "Send fewer messages, or set a model with a larger window.",
            window_tokens=failure.window_tokens,
            requested_tokens=failure.requested_tokens,
        )
    what, remedy = SAYINGS[failure.kind]
    times = f" ({tries} tries)" if tries > 1 else ""
    cause = ModelUnavailable if failure.kind in _HOPELESS else UpstreamFailed
    return cause(f"The model {model} {what}{times}. {remedy}", kind=failure.kind)


def _sizes(failure: ProviderFailure) -> str:
    if not failure.window_tokens:
        return ""
    window = f"a window of {failure.window_tokens:,} tokens"
    return f": {failure.requested_tokens:,} for {window}" if failure.requested_tokens else f" with {window}"


# --- the package ---------------------------------------------------------------------------------------------------


def _litellm() -> Any:
    try:
        return litellm_package()
    except ImportError as error:
        raise ModelUnavailable(
            f"Chat models need the package {error.name or 'litellm'}, which cannot be imported. {_INSTALL}",
            kind="unsupported",
        ) from error


def _is_installed() -> bool:
    try:
        _litellm()
    except ModelUnavailable:
        return False
    return True


def _known(model: str) -> dict[str, Any]:
    """What litellm's table has on a model: by its whole name, or by its name at the provider that it names."""
    table: dict[str, dict[str, Any]] = _litellm().model_cost
    if model in table:
        return table[model]
    provider, _, rest = model.partition("/")
    entry = table.get(rest, {})
    return entry if str(entry.get("litellm_provider", "")).startswith(provider) else {}


def _fallback_target(target: _Target, model: str) -> _Target:
    if _provider(model) == _provider(target.model):
        return replace(target, model=model)
    return _Target(model=model, api_base=None, api_key=None)


def _provider(model: str) -> str:
    """The provider that a name stands for; names without one are known to litellm, or stand for themselves."""
    provider, slash, _ = model.partition("/")
    return provider if slash else cast(str, _known(model).get("litellm_provider", model))


class _Loop:
    """One event loop for all calls, in a thread of its own.

    A request there can be broken off, which closes its connection, whereas one in a thread runs to its end.
    litellm keeps its connections by event loop; a loop per call would leave them behind.
    """

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._running: tuple[threading.Thread, asyncio.AbstractEventLoop] | None = None

    def run(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Start work; the future's `cancel` breaks it off."""
        with self._starting:
            # A fork leaves the thread behind.
            if self._running is None or not self._running[0].is_alive():
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name="chat-models", daemon=True)
                thread.start()
                self._running = thread, loop
        return asyncio.run_coroutine_threadsafe(work, self._running[1])


_LOOP = _Loop()

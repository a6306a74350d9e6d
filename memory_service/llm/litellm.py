"""Chat models of litellm, imported at the first call; and the messages for their failures.

Invariants: the only requests are the ones to `api_base`, or to the model's provider where none is set; tools
are never sent; nothing is printed; every exception of litellm ends here; the errors that leave have the provider's own
reason, without keys and without what was sent. One call is one request: litellm retries nothing, and neither does this
module.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from indexer import litellm_package, provider_message
from indexer.common import lazy_regex
from memory_service.errors import CallCancelled, ContextOverflow, ModelUnavailable, UpstreamFailed
from memory_service.llm.base import SAFETY_TIMEOUT_SECONDS, CallUsage, ChatMessage, Completion, not_cancelled
from memory_service.llm.errors import FailureKind, ProviderFailure, classify
from memory_service.llm.reasons import provider_reason

ERROR_MESSAGES: dict[FailureKind, tuple[str, str]] = {
    "byte_overflow": ("got a request of too many bytes", "Leave out images or send fewer messages."),
    "output_overflow": ("cannot answer at the length that was asked for", "Ask for fewer output tokens."),
    "malformed_history": ("refused the order of the messages", "Repair the history before it is sent."),
    "rate_limit": ("is asked too often", "Try again later, or raise the limit at the provider."),
    "quota": ("has no quota or credit left", "Pay, or set another llm_model."),
    "auth": ("refused the key", "Set the key of its provider."),
    "timeout": ("did not answer in time", "Try again, or allow it more time."),
    "content_filter": ("was kept from answering by a content filter", "Change the text, or set another llm_model."),
    "unsupported": ("is not there, or cannot do what was asked", "Check llm_model, or set another one."),
    "unavailable": ("cannot be reached or is overloaded", "Check llm_api_base, or try again later."),
    "other": ("failed", "Mend what the provider names, or set another llm_model."),
}


# How often a call looks whether it was cancelled.
_POLL_SECONDS = 0.05

_INSTALL = 'Install it with pip install "memory-service[llm]", or leave llm_model unset.'
_HOPELESS: frozenset[FailureKind] = frozenset({"auth", "quota", "unsupported"})
_KEY_NAME = lazy_regex(r"(?:KEY|TOKEN|SECRET|PASSWORD)S?$", re.IGNORECASE)
_LEAST_KEY_CHARS = 8
# litellm has no status for a key that is not there. Source: litellm 1.106, "Missing Gemini API key. Set the …"
_NO_KEY = lazy_regex(r"missing [\w ]*api key", re.IGNORECASE)
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
    "TimeoutError": "timeout",
    "APIConnectionError": "unavailable",
}


class LiteLLMModel:
    """A chat model by its litellm name.

    Args:
        model: Such as "openai/gpt-4o-mini", "anthropic/claude-haiku-4-5" or "ollama/llama3.1".
        api_base: Where it is served, if not at its provider's own address.
        api_key: Its key, if not in the variable that its provider names.
        window_tokens: What it takes; None for what litellm knows of it.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        window_tokens: int | None = None,
    ) -> None:
        self._model, self._api_base, self._api_key = model, api_base, api_key
        self._window_tokens = window_tokens

    @property
    def name(self) -> str:
        """See `ChatModel`."""
        return self._model

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int | None = None,
        timeout_seconds: float = SAFETY_TIMEOUT_SECONDS,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> Completion:
        """See `ChatModel`."""
        _check(cancelled)
        litellm = require_litellm()
        optional = {"api_base": self._api_base, "api_key": self._api_key, "max_tokens": max_output_tokens}
        future = _LOOP.run(
            partial(
                litellm.acompletion,
                model=self._model,
                messages=[dict(message) for message in messages],
                timeout=max(timeout_seconds, 0.001),
                max_retries=0,
                num_retries=0,
                **{name: value for name, value in optional.items() if value is not None},
            )
        )
        try:
            return _completion(_answer(future, timeout_seconds, cancelled), self._model)
        except CallCancelled:
            raise
        except Exception as error:  # litellm's have no common base, and its defects come as anything
            sent_texts = [message["content"] for message in messages]
            raise upstream_error(error, self._model, sent_texts, keys=[self._api_key or ""]) from error

    def context_window(self) -> int | None:
        """See `ChatModel`; where none was given, from litellm's table, which is part of the package."""
        if self._window_tokens:
            return self._window_tokens
        table_entry = _table_entry(self._model)
        window = table_entry.get("max_input_tokens")
        return window if isinstance(window, int) and window > 0 else None

    def count_tokens(self, messages: Sequence[ChatMessage]) -> int | None:
        """See `ChatModel`; for OpenAI's models, whose tokenizers litellm has; others it would fetch."""
        if _table_entry(self._model).get("litellm_provider") not in ("openai", "azure"):
            return None
        name = self._model.rpartition("/")[2]
        return int(require_litellm().token_counter(model=name, messages=[dict(message) for message in messages]))


def _answer(future: Future[Any], seconds: float, cancelled: Callable[[], bool]) -> Any:
    """Wait for an answer; whoever does not wait to its end closes the connection."""
    end = time.monotonic() + seconds
    try:
        # litellm keeps the time too, and tells more of what happened: it gets a moment to do so.
        while not wait([future], _POLL_SECONDS).done:
            _check(cancelled)
            if time.monotonic() > end + 4 * _POLL_SECONDS:
                raise TimeoutError
        return future.result()
    finally:
        future.cancel()


def _check(cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise CallCancelled("The call to the model was cancelled. Nothing was changed.")


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


def _usage(usage: Any) -> CallUsage:
    prompt = getattr(usage, "prompt_tokens_details", None)
    answer = getattr(usage, "completion_tokens_details", None)
    return CallUsage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached_tokens=_count(prompt, "cached_tokens") or _count(usage, "cache_read_input_tokens"),
        cache_write_tokens=_count(prompt, "cache_creation_tokens") or _count(usage, "cache_creation_input_tokens"),
        reasoning_tokens=_count(answer, "reasoning_tokens"),
    )


def _count(value: Any, name: str) -> int:
    count = getattr(value, name, None)
    return count if isinstance(count, int) else 0


def upstream_error(
    error: Exception, model: str, sent_texts: Sequence[str] = (), *, keys: Sequence[str] = ()
) -> UpstreamFailed:
    """The error for an exception of litellm.

    Args:
        error: The exception.
        model: Who was asked.
        sent_texts: The texts of the call, which an error may quote.
        keys: Keys that were sent, beside those of the environment.
    """
    reason = provider_reason(provider_message(error).text, sent_texts, [*keys, *_environment_keys()])
    return _error(_failure(error), model, reason)


def _environment_keys() -> list[str]:
    """The values of variables that hold keys, by their names."""
    return [value for name, value in os.environ.items() if _KEY_NAME.search(name) and len(value) >= _LEAST_KEY_CHARS]


def _failure(error: Exception) -> ProviderFailure:
    """Classify an exception of litellm."""
    message = provider_message(error)
    failure = classify(message.text, status=message.status)
    kind = _KIND_OF_CLASS.get(type(error).__name__)
    if _NO_KEY.search(message.text):
        kind, failure = "auth", replace(failure, kind="other")
    if failure.kind == "other" and kind:
        failure = replace(failure, kind=kind, transient=kind in ("timeout", "unavailable"))
    return failure if message.wait_seconds is None else replace(failure, retry_after_seconds=message.wait_seconds)


def _error(failure: ProviderFailure, model: str, reason: str) -> UpstreamFailed:
    """The error for a failure."""
    text = f" The provider said: {_as_sentence(reason)}" if reason else ""
    if failure.kind == "token_overflow":
        return ContextOverflow(
            f"The prompt does not fit the model {model}{_sizes(failure)}. "
            f"Send fewer messages, or set a model with a larger window.{text}",
            window_tokens=failure.window_tokens,
            requested_tokens=failure.requested_tokens,
            reason=reason,
        )
    this_text, remedy = ERROR_MESSAGES[failure.kind]
    cause = ModelUnavailable if failure.kind in _HOPELESS else UpstreamFailed
    return cause(
        f"The model {model} {this_text}. {remedy}{text}",
        kind=failure.kind,
        transient=failure.transient,
        retry_after_seconds=failure.retry_after_seconds,
        reason=reason,
    )


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", "。")) else f"{text}."


def _sizes(failure: ProviderFailure) -> str:
    if not failure.window_tokens:
        return ""
    window = f"a window of {failure.window_tokens:,} tokens"
    return f": {failure.requested_tokens:,} for {window}" if failure.requested_tokens else f" with {window}"


# --- the package ---------------------------------------------------------------------------------------------------


def require_litellm() -> Any:
    """The package litellm.

    Raises:
        ModelUnavailable: It is not installed.
    """
    try:
        return litellm_package()
    except ImportError as error:
        raise ModelUnavailable(
            f"Chat models need the package {error.name or 'litellm'}, which cannot be imported. {_INSTALL}",
            kind="unsupported",
            is_sent=False,
        ) from error


def _table_entry(model: str) -> dict[str, Any]:
    """Entry of a model in litellm's table, by its full name or its name at the provider."""
    table: dict[str, dict[str, Any]] = require_litellm().model_cost
    if model in table:
        return table[model]
    provider, _, rest = model.partition("/")
    entry = table.get(rest, {})
    return entry if str(entry.get("litellm_provider", "")).startswith(provider) else {}


class _Loop:
    """Event loop for all calls, running in its own thread.

    A request there can be broken off, which closes its connection, whereas one in a thread runs to its end.
    litellm keeps its clients by event loop and never closes them: the last call of several does.
    """

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._running: tuple[threading.Thread, asyncio.AbstractEventLoop] | None = None
        self._calls = 0
        self._closing: set[asyncio.Task[None]] = set()

    def run(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
        """Start work; the future's `cancel` breaks it off."""
        with self._starting:
            # A fork leaves the thread behind.
            if self._running is None or not self._running[0].is_alive():
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name="chat-models", daemon=True)
                thread.start()
                self._running, self._calls = (thread, loop), 0
        return asyncio.run_coroutine_threadsafe(self._call(work), self._running[1])

    async def _call(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        self._calls += 1
        try:
            return await work()
        finally:
            self._calls -= 1
            if not self._calls:
                # In a task of its own: no answer waits for it.
                task = asyncio.create_task(_close(_taken_clients()))
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)


def _taken_clients() -> list[Any]:
    """The clients that litellm kept for the running loop, whose number ends their keys.

    Source: litellm 1.106, caching/llm_caching_handler.py
    """
    cache = require_litellm().in_memory_llm_clients_cache
    ours = f"-{id(asyncio.get_running_loop())}"
    return [cache.cache_dict.pop(key) for key in list(cache.cache_dict) if key.endswith(ours)]


async def close_clients() -> None:
    """Close the clients that litellm kept for the running loop, if it was ever needed."""
    if "litellm" in sys.modules:
        await _close(_taken_clients())


async def _close(clients: list[Any]) -> None:
    for client in clients:
        with suppress(Exception):  # one that cannot be closed keeps none of the others open
            await client.close()


_LOOP = _Loop()

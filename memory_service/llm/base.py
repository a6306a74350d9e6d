"""The `ChatModel` seam: messages in, one answer out. Its one vendor lives beside this file.

Invariants: an answer is reported as it came, empty or cut short as it may be, and the caller judges it; a
failure is one of the errors named here, without the text of any message in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypedDict

# What all calls for one piece of work may take together.
SAFETY_TIMEOUT_SECONDS = 300.0


class ChatMessage(TypedDict):
    """One message of a request: text only, since summaries and memories are written from text."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallUsage:
    """Tokens as the provider counted them; 0 where it did not.

    Attributes:
        input_tokens: The whole prompt, with what came from the provider's cache.
        output_tokens: The answer, with what the model thought.
        cached_tokens: Of the prompt, what was read from the cache.
        cache_write_tokens: Of the prompt, what was written to it.
        reasoning_tokens: Of the answer, what the model thought.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's answer.

    Attributes:
        text: What the model wrote; may be empty.
        finish_reason: Why it ended: "stop", "length", "tool_calls", "content_filter", or a provider's own word.
        model: The model that answered, by the name of the setting: the fallback, if that one did.
        tool_calls_present: Whether it called a tool, though none was offered.
    """

    text: str
    finish_reason: str
    usage: CallUsage
    model: str
    tool_calls_present: bool = False


def not_cancelled() -> bool:
    """Cancellation check that is always false."""
    return False


class ChatModel(Protocol):
    """A model that answers; safe to call from several threads at once, and loaded at the first call."""

    @property
    def name(self) -> str:
        """The name a setting uses for it, such as "openai/gpt-4o-mini"."""
        ...

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int | None = None,
        timeout_seconds: float = SAFETY_TIMEOUT_SECONDS,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> Completion:
        """Ask for one answer by one request, which is not tried again; tools are never offered.

        Args:
            messages: The whole prompt.
            max_output_tokens: The longest answer wanted; None leaves it to the model.
            timeout_seconds: How long to wait for the answer.
            cancelled: Asked before and during the call; once true, it ends.

        Raises:
            ContextOverflow: The prompt, or prompt and answer, do not fit the model's window.
            ModelUnavailable: The model cannot be used: no package, no key, no money, no such model.
            CallCancelled: `cancelled` became true.
            UpstreamFailed: Anything else went wrong; its `kind` tells what.
        """
        ...

    def context_window(self) -> int | None:
        """Tokens the model takes as a prompt, by what is known of the model; None when nothing is."""
        ...

    def count_tokens(self, messages: Sequence[ChatMessage]) -> int | None:
        """Tokens of a prompt by the model's own tokenizer; None where none is at hand."""
        ...

"""Classifier of providers' error texts: overflow (by how much), wait, pay, or hopeless.

Invariants: pure, and never raises. Acting on a false overflow throws history away, so a failed compaction, a
rate limit that counts tokens and talk about context windows are never taken for one. Numbers are the
provider's own. How providers word things is in `indexer.providers.wordings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from indexer import error_numbers, wordings

FailureKind = Literal[
    "token_overflow",  # the prompt, or prompt and answer, do not fit the window
    "byte_overflow",  # the request, an image or one string is too big: a matter of bytes, not of tokens
    "output_overflow",  # the answer asked for is longer than the model gives: the prompt is not at fault
    "malformed_history",  # calls without results, wrong order, changed thinking
    "rate_limit",
    "quota",  # no money left, or an allowance used up
    "auth",
    "timeout",
    "content_filter",
    "unsupported",  # the model is not there, or cannot do what was asked
    "unavailable",  # the provider is down, overloaded or out of reach
    "other",
]
OVERFLOWS: frozenset[FailureKind] = frozenset({"token_overflow", "byte_overflow", "output_overflow"})
PASSING: frozenset[FailureKind] = frozenset({"rate_limit", "timeout", "unavailable"})

# In the order in which they are looked for.
_KINDS: dict[FailureKind, re.Pattern[str]] = {
    "quota": wordings.QUOTA,
    "rate_limit": wordings.RATE_LIMIT,
    "byte_overflow": wordings.any_of(wordings.REQUEST_TOO_LARGE.pattern, wordings.PART_TOO_LARGE.pattern),
    "malformed_history": wordings.MALFORMED,
    "content_filter": wordings.CONTENT_FILTER,
    "unsupported": wordings.any_of(wordings.NO_SUCH_MODEL.pattern, wordings.UNSUPPORTED.pattern),
    "auth": wordings.AUTH,
    "timeout": wordings.TIMEOUT,
}
# Where the text says nothing else, the status does; after it, what any failing server says.
_KIND_OF_STATUS: dict[int | None, FailureKind] = {
    401: "auth", 402: "quota", 403: "auth", 404: "unsupported", 407: "auth", 408: "timeout", 409: "unavailable",
    413: "byte_overflow", 429: "rate_limit", 504: "timeout", 524: "timeout",
}  # fmt: skip
_LAST_KINDS: dict[FailureKind, re.Pattern[str]] = {
    "unavailable": wordings.UNAVAILABLE,
    "rate_limit": wordings.any_of("RateLimitError"),
}
# So near its beginning, a short error names what is wrong; a sentence about errors takes longer.
_BEGINNING_CHARS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFailure:
    """Facts stated by an error text; None where it states nothing.

    Attributes:
        kind: What went wrong.
        transient: Whether the same request may succeed later.
        provider: Who said it, if the wording tells.
        window_tokens: What the model takes.
        requested_tokens: What was asked of it: prompt and answer, or the prompt where only that is told.
        input_tokens: The prompt alone.
        max_output_tokens: The longest answer the model gives.
        limit_bytes: The most the provider takes.
        requested_bytes: What it got.
        retry_after_seconds: How long it asks to wait.
    """

    kind: FailureKind
    transient: bool = False
    provider: str | None = None
    window_tokens: int | None = None
    requested_tokens: int | None = None
    input_tokens: int | None = None
    max_output_tokens: int | None = None
    limit_bytes: int | None = None
    requested_bytes: int | None = None
    retry_after_seconds: float | None = None


def classify(error_text: str, *, status: int | None = None) -> ProviderFailure:
    """Classify the text of a provider's error.

    Args:
        error_text: As the provider, a client library or a proxy words it; English or Chinese.
        status: The HTTP status; without it, one that the text names is used.
    """
    text = wordings.readable(error_text)
    wait = error_numbers.wait_seconds(text)
    kind = _kind(text, status, wait)
    tokens = _Tokens.of(text) if kind in ("token_overflow", "output_overflow") else _Tokens()
    in_bytes = kind == "byte_overflow"
    return ProviderFailure(
        kind=kind,
        transient=kind in PASSING and not error_numbers.over_allowance(text),
        provider=next((name for name, pattern in wordings.PROVIDERS if pattern.search(text)), None),
        window_tokens=tokens.window,
        requested_tokens=tokens.total,
        input_tokens=tokens.input,
        max_output_tokens=_first(error_numbers.MAX_OUTPUT_TOKENS, text) if kind == "output_overflow" else None,
        limit_bytes=_bytes(error_numbers.LIMIT_BYTES, text) if in_bytes else None,
        requested_bytes=_bytes(error_numbers.REQUESTED_BYTES, text) if in_bytes else None,
        retry_after_seconds=wait,
    )


def is_compaction_failure(error_text: str) -> bool:
    """True if the text reports that summarising a history failed, so that summarising it again is no remedy."""
    return bool(wordings.COMPACTION_FAILURE.search(wordings.readable(error_text)))


def _kind(text: str, status: int | None, wait: float | None) -> FailureKind:
    kind = _stated_kind(text, status)
    if kind in OVERFLOWS and (wordings.COMPACTION_FAILURE.search(text) or _is_talk(text, status)):
        return "other"
    # Gemini and DashScope call a rate limit a quota, but tell when to come back, or that they throttle.
    return "rate_limit" if kind == "quota" and (wait or "throttl" in text.lower()) else kind


def _stated_kind(text: str, status: int | None) -> FailureKind:
    overflow = _token_or_output_overflow(text, status)
    if overflow:
        return overflow
    status = status or _status(text)
    plain = wordings.MISLEADING.sub(" ", text)
    kinds = [kind for kind, pattern in _KINDS.items() if pattern.search(plain)]
    if not kinds and status in _KIND_OF_STATUS:
        kinds = [_KIND_OF_STATUS[status]]
    if not kinds:
        kinds = [kind for kind, pattern in _LAST_KINDS.items() if pattern.search(text)]
    if not kinds and status and status >= 500:
        return "unavailable"
    kind: FailureKind = kinds[0] if kinds else "other"
    return "other" if kind in OVERFLOWS and wordings.NO_OVERFLOW.search(text) else kind


def _token_or_output_overflow(text: str, status: int | None) -> FailureKind | None:
    window_named = bool(wordings.WINDOW.search(text))
    counts_a_rate = not window_named and wordings.RATE_LIMIT.search(wordings.MISLEADING.sub(" ", text))
    if counts_a_rate or wordings.NO_OVERFLOW.search(text):
        return None
    if wordings.OUTPUT_OVERFLOW.search(text) and not window_named:
        return "output_overflow"
    if wordings.TOKEN_OVERFLOW.search(text) or _is_vague_overflow(text, status):
        return "output_overflow" if _Tokens.of(text).answer_fills_window else "token_overflow"
    return None


def _is_vague_overflow(text: str, status: int | None) -> bool:
    # Cerebras says nothing else. Source: github.com/badlogic/pi-mono, packages/ai/src/utils/overflow.ts
    if "(no body)" in text and "cerebras" in text.lower():
        return True
    match = wordings.VAGUE_TOKEN_OVERFLOW.search(text)
    if not match or status in (401, 402, 403, 404, 429):
        return False
    return bool(status or wordings.ERROR_SHAPE.search(text) or match.start() < _BEGINNING_CHARS)


def _is_talk(text: str, status: int | None) -> bool:
    return not status and bool(wordings.TALK.search(text)) and not wordings.ERROR_SHAPE.search(text)


def _status(text: str) -> int | None:
    match = wordings.STATUS.search(text)
    return int(next(filter(None, match.groups()))) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    window: int | None = None
    total: int | None = None
    input: int | None = None
    output: int | None = None

    @classmethod
    def of(cls, text: str) -> _Tokens:
        """The numbers in a text; a total that is not told is the sum of its parts."""
        prompt, output = _first(error_numbers.INPUT_TOKENS, text), _first(error_numbers.OUTPUT_TOKENS, text)
        parts = prompt + (output or 0) if prompt else None
        total = _first(error_numbers.TOTAL_TOKENS, text) or parts
        return cls(window=_first(error_numbers.WINDOW_TOKENS, text), total=total, input=prompt, output=output)

    @property
    def answer_fills_window(self) -> bool:
        """True if the answer asked for leaves no room for any prompt."""
        return bool(self.output and self.window) and (self.output or 0) >= (self.window or 0)


def _first(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        if match := pattern.search(text):
            return error_numbers.whole(next(filter(None, match.groups()))) or None
    return None


def _bytes(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        if match := pattern.search(text):
            number = match[1].replace(",", "").rstrip(".")
            return int(float(number) * {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(match[2][:1].lower(), 1))
    return None

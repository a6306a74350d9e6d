"""Meaning of an embedding provider's error: send less, cut a text, wait, pay, or give up.

Invariants: pure, and never raises. Numbers are the provider's own. A size given as a rate per minute is no size,
unless one request asks for more than a whole minute allows. The wordings of providers are in `wordings`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from indexer.providers import error_numbers, wordings

FailureKind = Literal[
    "items",  # too many texts in one request
    "request",  # too many tokens or bytes in one request
    "text",  # one text is too long for the model
    "wait",  # asked too often
    "quota",  # no money left, or an allowance used up
    "auth",
    "unusable",  # no such model, or it takes no such request
    "passing",  # down, overloaded, too slow or out of reach
    "refused",  # this request, for a reason of its own
]
SIZES: frozenset[FailureKind] = frozenset({"items", "request", "text"})
HOPELESS: frozenset[FailureKind] = frozenset({"quota", "auth", "unusable"})

_SIZES: tuple[tuple[FailureKind, tuple[re.Pattern[str], ...], re.Pattern[str]], ...] = (
    ("request", error_numbers.REQUEST_SIZES, wordings.REQUEST_WORDS),
    ("text", error_numbers.TEXT_SIZES, wordings.TEXT_WORDS),
    ("items", error_numbers.ITEM_SIZES, wordings.ITEM_WORDS),
)
# Said about a request for vectors, these words mean nothing else.
_QUOTA = wordings.any_of(wordings.QUOTA.pattern, r"(?:exceeded|current)[\w ]{0,20}quota|billing|more credits")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingFailure:
    """An error as read; None for what it does not say.

    Attributes:
        kind: FailureKind of the failure.
        limit: The most that is taken: texts or tokens, by kind.
        given: The amount sent, in the same unit.
        wait_seconds: How long it asks to wait.
    """

    kind: FailureKind
    limit: int | None = None
    given: int | None = None
    wait_seconds: float | None = None


def read_failure(text: str, *, status: int | None = None, wait_seconds: float | None = None) -> EmbeddingFailure:
    """Read an error of a provider.

    Args:
        text: As the provider, a client library or a proxy words it; English or Chinese.
        status: The HTTP status, if there was an answer.
        wait_seconds: Seconds of a `Retry-After` header.
    """
    # litellm calls other failures so, too.
    text = wordings.readable(text).replace("RateLimitError", "Error")
    if over := error_numbers.over_allowance(text):
        return EmbeddingFailure(kind="request", limit=over[0] or None, given=over[1])
    wait = wait_seconds if wait_seconds is not None else error_numbers.wait_seconds(text)
    # Gemini and DashScope call a rate a quota, but tell when to come back, or that they throttle.
    if status == 402 or (_QUOTA.search(text) and wait is None and not wordings.RATE_LIMIT.search(text)):
        return EmbeddingFailure(kind="quota")
    if status == 429 or (status is None and wordings.RATE_LIMIT.search(text)):
        return EmbeddingFailure(kind="wait", wait_seconds=wait)
    for kind, patterns, words in _SIZES:
        sizes = _sizes(patterns, text)
        if sizes or words.search(text):
            limit, given_number = sizes or (None, None)
            return EmbeddingFailure(kind=kind, limit=limit, given=given_number)
    if status == 413:
        return EmbeddingFailure(kind="request")
    return EmbeddingFailure(kind=_plain_kind(text, status), wait_seconds=wait)


def _plain_kind(text: str, status: int | None) -> FailureKind:
    if status in (401, 403, 407) or wordings.AUTH.search(text):
        return "auth"
    if status in (404, 405) or wordings.NO_SUCH_MODEL.search(text):
        return "unusable"
    if status is None or status in (408, 409, 425) or status >= 500:
        return "passing"
    return "refused"


def _sizes(patterns: tuple[re.Pattern[str], ...], text: str) -> tuple[int | None, int | None] | None:
    """Limit and amount sent, by the first pattern that fits."""
    for pattern in patterns:
        if match := pattern.search(text):
            groups = match.groupdict()
            limit, given_number = (error_numbers.whole(groups.get(name) or "0") or None for name in ("limit", "given"))
            return limit, given_number
    return None

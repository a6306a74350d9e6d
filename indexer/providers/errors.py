"""What an embedding provider's error means: send less, cut a text, wait, pay, or leave it.

Invariants: pure, and never raises. Numbers are the provider's own. A size that is spoken of as a rate per minute
is no size, unless one request asks for more than a whole minute allows. Every pattern was written for a text that
a provider or a server really sends; they are collected in tests/indexer/embeddings/provider_errors.json.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
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
SIZES: frozenset[Kind] = frozenset({"items", "request", "text"})
HOPELESS: frozenset[Kind] = frozenset({"quota", "auth", "unusable"})

# An error may quote the request. What it says itself stands at one of the ends.
_HEAD_CHARS, _TAIL_CHARS = 6_000, 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingFailure:
    """What an error says. What it does not say is None.

    Attributes:
        kind: What went wrong.
        limit: The most that is taken: texts or tokens, by kind.
        given: What was sent, in the same unit.
        wait_seconds: How long it asks to wait.
    """

    kind: Kind
    limit: int | None = None
    given: int | None = None
    wait_seconds: float | None = None


def read_failure(text: str, *, status: int | None = None, wait_seconds: float | None = None) -> EmbeddingFailure:
    """What an error means.

    Args:
        text: As the provider, a client library or a proxy words it; English or Chinese.
        status: The HTTP status, if there was an answer.
        wait_seconds: What a `Retry-After` header asks for.
    """
    text = _normalised(text)
    over_allowance = _sizes(_ALLOWANCE, text)
    if over_allowance and over_allowance[1] and over_allowance[0] and over_allowance[1] > over_allowance[0]:
        return EmbeddingFailure(kind="request", limit=over_allowance[0], given=over_allowance[1])
    wait = wait_seconds if wait_seconds is not None else _wait_seconds(text)
    # Gemini and DashScope call a rate a quota, but tell when to come back, or that they throttle.
    if status == 402 or (_QUOTA.search(text) and wait is None and not _RATE.search(text)):
        return EmbeddingFailure(kind="quota")
    if status == 429 or (status is None and _RATE.search(text)):
        return EmbeddingFailure(kind="wait", wait_seconds=wait)
    for kind, patterns, words in _SIZES:
        found = _sizes(patterns, text)
        if found or words.search(text):
            limit, given = found or (None, None)
            return EmbeddingFailure(kind=kind, limit=limit, given=given)
    if status == 413:
        return EmbeddingFailure(kind="request")
    return EmbeddingFailure(kind=_plain_kind(text, status), wait_seconds=wait)


def _plain_kind(text: str, status: int | None) -> Kind:
    if status in (401, 403, 407) or _AUTH.search(text):
        return "auth"
    if status in (404, 405) or _UNUSABLE.search(text):
        return "unusable"
    if status is None or status in (408, 409, 425) or status >= 500:
        return "passing"
    return "refused"


def _normalised(text: str) -> str:
    if len(text) > _HEAD_CHARS + _TAIL_CHARS:
        text = f"{text[:_HEAD_CHARS]} … {text[-_TAIL_CHARS:]}"
    text = re.sub(r"(?<!\\)\\+u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    # litellm calls other failures so, too.
    text = text.replace("RateLimitError", "Error").replace("’", "'")
    return re.sub(r"(?:(?<!\\)\\+[nrt]|\s)+", " ", text).strip()


def _sizes(patterns: tuple[re.Pattern[str], ...], text: str) -> tuple[int | None, int | None] | None:
    """Limit and what was given, by the first pattern that fits."""
    for pattern in patterns:
        if found := pattern.search(text):
            groups = found.groupdict()
            return _whole(groups.get("limit")), _whole(groups.get("given"))
    return None


def _whole(number: str | None) -> int | None:
    return int(re.sub(r"\D", "", number)) or None if number else None


def _wait_seconds(text: str) -> float | None:
    for pattern in _WAITS:
        if found := pattern.search(text):
            parts = re.findall(r"(\d+(?:\.\d+)?) ?(ms|[hm])?", found[1].lower())
            return sum(float(amount) * {"h": 3600.0, "m": 60.0, "ms": 0.001}.get(unit, 1.0) for amount, unit in parts)
    return None


# --- how providers word it ---------------------------------------------------------------------------------------

_N = r"(?<!\d)\d{1,3}(?:,\d{3})+|(?<!\d)\d{1,12}"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


def _numbers(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Patterns in which <limit> and <given> stand for numbers; the first that fits counts."""
    return tuple(
        re.compile(pattern.replace("<limit>", f"(?P<limit>{_N})").replace("<given>", f"(?P<given>{_N})"), re.IGNORECASE)
        for pattern in patterns
    )


_SIZES: tuple[tuple[Kind, tuple[re.Pattern[str], ...], re.Pattern[str]], ...] = (
    (
        "request",
        _numbers(
            r"too many tokens in (?:the )?batch\D{0,20}<limit>\D{0,20}<given>",
            r"tokens per (?:submitted )?batch is <limit>\D{0,20}<given>",
            r"requested <given> tokens, max <limit> tokens per request",
            r"token count is <given> but (?:the )?model (?:only )?supports up to <limit>",
            r"max(?:imum)? tokens per (?:request|batch)\D{0,20}<limit>",
        ),
        _any(
            r"too many tokens (?:overall|in (?:the )?(?:batch|request))|max_tokens_per_request",
            r"(?:payload|request|content|request body)(?: entity)?(?: is)? too large|request_too_large|请求体过大",
        ),
    ),
    (
        "text",
        _numbers(
            r"maximum (?:context|input) length is <limit> tokens?(?:\D{0,40}requested <given>)?",
            r"must have less than <limit> tokens(?:\D{0,10}<given>)?",
            r"max input tokens: <limit>\D{0,40}<given>",
            r"input length <given> exceeds maximum allowed token size <limit>",
            r"has <given> tokens, exceeding max <limit>",
            r"input \(<given> tokens\) is too large to process\D{0,90}<limit>",
            r"text cannot exceed <limit> tokens(?:\. <given> tokens given)?",
            r"too many tokens:? \(?<given> ?> ?<limit>",
            r"input length should be \[\d+, ?<limit>\]",
            r"prefill <given> tokens exceed",
            r"max(?:imum)? (?:sequence|input|token) (?:length|size|limit)(?: is| of|:)? ?<limit>",
        ),
        _any(
            r"input (?:is )?too (?:long|large)|input length exceeds|exceeds? (?:the )?(?:maximum )?context length",
            r"context_length_exceeded|context (?:length|window) (?:is )?exceeded|increase the physical batch size",
            r"exceeds? (?:the )?(?:model's )?max(?:imum)? (?:sequence|input) length",
            r"输入(?:的)?(?:文本|内容)?(?:过长|超长)",
        ),
    ),
    (
        "items",
        _numbers(
            r"batch size <given> > maximum allowed batch size <limit>",
            r"max(?:imum)? (?:number of )?(?:inputs|items|texts|documents|batch size)(?: is| of|:| allowed)* ?<limit>",
            r"batch size is invalid, it should not be larger than <limit>",
            r"batch size limit is <limit>(?:\D{0,40}<given>)?",
            r"number of (?:texts|inputs) must be at most <limit>(?:\D{0,20}<given>)?",
            r"at most <limit> (?:requests|inputs|texts|items) can be in one batch",
            r"<limit> instance\(s\) is allowed per prediction(?:\D{0,20}<given>)?",
            r"maximum length <limit>, but got an array with length <given>",
            r"maximum item count: <limit>(?:, found: <given>)?",
            r"(?:数组|条数|数量|批次)\D{0,12}超过 ?<limit>",
            r"batch[_ ]size\D{0,40}(?:at most|exceed|than|<=|maximum)\D{0,12}<limit>",
        ),
        _any(r"too many (?:inputs|texts|items|documents)|split into more batches|array_above_max_length"),
    ),
)
# The allowance of a period and what one request wanted of it.
_ALLOWANCE = _numbers(r"limit:? <limit>, requested:? <given>")
_RATE = _any(
    r"rate[ _-]?limit|too many (?:concurrent )?requests|(?:tokens?|requests) per (?:minute|min|day|hour|second)\b",
    r"throttl|\b(?:tpm|rpm|qps|qpm)\b|resource[_ ](?:has been )?exhausted|请求(?:过于)?频繁|速率限制|限流",
)
_QUOTA = _any(
    r"insufficient[_ ](?:\w+ )?(?:quota|balance|funds|credits?)|(?:exceeded|current)[\w ]{0,20}quota|quota exceeded",
    r"credit balance|billing|payment required|out of credits|more credits|余额不足|欠费|额度(?:不足|已用完|用尽)",
)
_AUTH = _any(
    r"(?:invalid|incorrect|missing|no|expired)[ _](?:x-)?(?:api)?[ _-]?(?:key|token|credentials?|authentication)\b",
    r"api key (?:not valid|is (?:missing|invalid))|unauthori[sz]ed|permission[_ ]denied|access ?denied",
    r"api_key client option must be set|(?:missing|no) credentials|authentication[ _](?:error|failed|fails)",
    r"无效的?密钥",
)
_UNUSABLE = _any(
    r"model\b[^.]{0,80}(?:does not exist|not (?:found|available|supported)|no longer available)|no such model",
    r"model_not_found|unknown model|LLM provider not provided|does not support|unmapped LLM provider|模型不存在",
)
_WAITS = (
    re.compile(r"(?:try again|retry) (?:in|after) (?:about )?((?:\d[\d.]{0,9} ?(?:ms|[hms])\w{0,8} ?){1,4})", re.I),
    re.compile(r"retry[-_ ]?(?:after|delay)[\"']? ?[:=]? ?[\"']?(\d[\d.]{0,12} ?(?:ms|[hms])?)", re.I),
)

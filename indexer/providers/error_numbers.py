"""Numbers that the errors of providers tell: windows, sizes, allowances and waits. Pure.

Invariants: as of `wordings`; patterns see text that `readable` gave back.
"""

from __future__ import annotations

import re
from functools import partial

from indexer.common.patterns import lazy_regex

# 131072, 131,072 or 128k; looked for at the beginning of a run of digits alone, or a long run takes for ever.
_N = r"(?<!\d)(?:\d{1,3}(?:[,_']\d{3}){1,4}|\d{1,12}(?:\.\d{1,6})?[km]\b|\d{1,12})"


def whole(number: str) -> int:
    """Value of a number that a pattern found."""
    scale = {"k": 1_000, "m": 1_000_000}.get(number[-1].lower())
    return int(float(number[:-1]) * scale) if scale else int(re.sub(r"\D", "", number))


def wait_seconds(text: str) -> float | None:
    """Seconds that a text asks to wait."""
    for pattern in _WAITS:
        if match := pattern.search(text):
            parts = re.findall(r"(\d+(?:\.\d+)?) ?(ms|[hm])?", match[1].lower())
            return sum(float(amount) * {"h": 3600.0, "m": 60.0, "ms": 0.001}.get(unit, 1.0) for amount, unit in parts)
    return None


def over_allowance(text: str) -> tuple[int, int] | None:
    """The allowance of a period and the larger amount that one request asks for: waiting is no remedy."""
    match = _ALLOWANCE.search(text)
    limit, given_number = (whole(match["limit"]), whole(match["given"])) if match else (0, 0)
    return (limit, given_number) if given_number > limit else None


def _number_patterns(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Patterns with # for the wanted number, or <limit> and <given> for two; the first that fits counts."""
    number = {"#": f"({_N})", "<limit>": f"(?P<limit>{_N})", "<given>": f"(?P<given>{_N})"}
    fill = partial(re.sub, "|".join(number), lambda match: number[match[0]])
    return tuple(lazy_regex(fill(pattern), re.IGNORECASE) for pattern in patterns)


WINDOW_TOKENS = _number_patterns(
    r"context (?:length|size|window)(?: is| of|:)? ?(?:only )?\(?#",
    r"maximum (?:prompt|model|input|allowed|allowed input) length(?: is| of|:)? ?\(?#",
    r"> ?# maximum|\d \+ [\d,]+ ?> ?#",
    r"tokens allowed \(#",
    r"only supports up to #",
    r"context_window: ?#",
    r"token limit: ?#",
    r"exceeds the limit of #|configured limit of #|while limit is #",
    r"with # maximum context",
    r"input length should be \[\d+, ?#\]",
    r"(?:max_seq_len|max_prompt_tokens) \(#",
    r"n_ctx[\"']? ?: ?#",
    r"must be <= ?#|must have less than # tokens",
    r"cannot exceed #|maximum limit of #|limit #, content",
)
TOTAL_TOKENS = _number_patterns(
    r"requested (?:a total of |about )?# tokens",
    r"for a total of (?:at least )?#",
    r"\(requested: ?#|received #|resulted in # tokens|current length is #|requested tokens \(#\)",
)
INPUT_TOKENS = _number_patterns(
    r"\(# in (?:your|the) (?:prompt|messages)|# tokens from the input",
    r"contains (?:at least )?# (?:input )?tokens|(?:has|passed) # input tokens",
    r"too long: ?#",
    r"context limit[^\d]{0,12}# \+|input_tokens: ?#",
    r"token count(?: is| of)? \(?#|(?<!max_)prompt_tokens \(#|input tokens \(#",
    r"given: ?#",
    r"input length \(?#|(?:input|request|prompt) \(# tokens|prompt \((?:total )?length #|prompt has # tokens",
    r"n_prompt_tokens[\"']? ?: ?#|keep the first # tokens|, content #",
)
OUTPUT_TOKENS = _number_patterns(
    r"# (?:in|for) the completion|# tokens for the completion|requested # output tokens|is too large: ?#",
    r"context limit[^\d]{0,12}\d[\d,]* \+ #|and # `?max_new_tokens|max_tokens: ?# > context_window",
)
MAX_OUTPUT_TOKENS = _number_patterns(
    r"# ?, which is the maximum allowed|at most # (?:completion|output)|tokens (?:should be|is) \[\d+, ?#\]",
    r"maximum output tokens \(#|value <= ?#|less than or equal to `?#|限制数值范围 ?\[\d+, ?#\]",
)
# The allowance of a period and what one request wanted of it.
(_ALLOWANCE,) = _number_patterns(r"limit:? <limit>, requested:? <given>")
_AMOUNT = r"(\d[\d,]{0,15}(?:\.\d{1,6})?)"
LIMIT_BYTES = tuple(
    lazy_regex(pattern.replace("#", _AMOUNT), re.IGNORECASE)
    for pattern in (
        r"bytes > # ?(bytes)",
        r"limit:? (?:of )?# ?(bytes|[kmg]i?b)\b",
        r"maximum (?:size|length)(?: of| is|:)? # ?(bytes|[kmg]i?b|)",
        r"exceeds # ?([kmg]i?b) maximum",
    )
)
REQUESTED_BYTES = tuple(
    lazy_regex(pattern.replace("#", _AMOUNT), re.IGNORECASE)
    for pattern in (r"(?<![\d,])# (bytes) >", r"a string with length #()")
)
_WAITS = _number_patterns(
    r"(?:try again|retry) (?:in|after) (?:about )?((?:\d[\d.]{0,16} ?(?:ms|[hms])\w{0,8} ?){1,4})",
    r"retry[-_ ]?(?:after|delay)[\"']? ?[:=]? ?[\"']?(\d[\d.]{0,16} ?(?:ms|[hms])?)",
    r"(?<![\d.])(\d[\d.]{0,16} ?秒)钟?(?:之?后)",
)
REQUEST_SIZES = _number_patterns(
    r"too many tokens in (?:the )?batch\D{0,20}<limit>\D{0,20}<given>",
    r"tokens per (?:submitted )?batch is <limit>\D{0,20}<given>",
    r"requested <given> tokens, max <limit> tokens per request",
    r"token count is <given> but (?:the )?model (?:only )?supports up to <limit>",
    r"max(?:imum)? tokens per (?:request|batch)\D{0,20}<limit>",
)
TEXT_SIZES = _number_patterns(
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
)
ITEM_SIZES = _number_patterns(
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
)

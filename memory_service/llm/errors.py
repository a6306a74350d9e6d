"""What a model provider's error text means: too long, and by how much; wait; pay; or hopeless.

Invariants: pure, and never raises. Acting on a false overflow throws history away, so a failed compaction, a
rate limit that counts tokens and talk about context windows are never taken for one. Numbers are the
provider's own. How providers word things is in `wordings.py`.

How providers word their errors: the tables that `overflow.py` reads texts with.

Invariants: data only; patterns ignore case and see text whose white space is single blanks. Every row was
written for a text that a provider, a library or a proxy really sends, or for a look-alike that must not match;
both are collected in tests/memory_service/llm/provider_errors.json. A new wording goes there first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

# 131072, 131,072 or 128k; looked for at the beginning of a run of digits alone, or a long run takes for ever
_N = r"(?<!\d)(\d{1,3}(?:[,_']\d{3})+|\d+(?:\.\d+)?[kKmM]\b|\d+)"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


def _numbers(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Patterns in which # stands for the number that is wanted; the first that fits counts."""
    return tuple(re.compile(pattern.replace("#", _N), re.IGNORECASE) for pattern in patterns)


# --- overflows -------------------------------------------------------------------------------------------------

# Each names tokens, a window or a code of its own: nothing but an overflow is worded so.
TOKEN_OVERFLOW = _any(
    r"context_(?:length|window)_exceeded|Context(?:Window|Length)Exceeded|model_context_window_exceeded",
    r"max_prompt_tokens_exceeded|exceed_context_size_error|tokens_too_long|characters_too_long|input_length_error",
    r"prompt is too long: ?\d|max_tokens: \d+ > context_window|exceeds? (?:the )?context limit",
    r"maximum context length (?:is|of) \(?\d|exceeds? (?:the )?(?:model'?s )?maximum context length",
    r"maximum prompt length is \d|longer than the maximum model length|too long to fit into the model",
    r"input token count[^.]{0,60}exceeds? the maximum|input token count is \d+ but model only supports",
    r"exceeds the maximum number of (?:input )?tokens|input tokens exceed the configured limit",
    r"input length \(?[\d,]+(?: tokens)?\)? exceeds|prompt token count[^.]{0,30}exceeds the limit",
    r"input \([\d,]+ tokens\) is longer than the model|too large for model with \d+ maximum context",
    r"available context size|context length of only \d|is greater than the context length",
    r"exceeded model token limit|context window exceeds limit|exceeded max_prompt_tokens|exceeded max context length",
    r"range of input length should be \[|length of prompt_tokens \(\d+\) must be less than max_seq_len",
    r"tokens of (?:image and text|text and image) exceed max message tokens",
    r"inputs`? tokens \+ `?max_new_tokens`? must be|`inputs` must have less than \d+ tokens",
    r"total number of tokens[^.]{0,40}cannot exceed|current length is \d+ while limit is \d",
    r"requested tokens \(\d+\) exceed context window|you passed \d+ input tokens and requested",
    r"prompt has [\d,]+ tokens, but the configured context size|context window is [\d,.]+[km]? tokens, you requested",
    r"total tokens exceeds? the model|Limit [\d,]+, content \d|token count \+ max_tokens parameter must be less",
    r"prompt tokens (?:is )?too long|input token length too long|prompt exceeds max(?:imum)? length",
    r"(?:max_tokens|input length) would exceed (?:the )?context|the max input characters is \d",
    r"prompt 超长|tokens?数?量?超(?:过|出)(?:模型)?(?:最大)?(?:上限|限制)|请压缩上下文",
    r"超(?:过|出)了?(?:模型的?)?最大(?:上下文|tokens?|输入)?(?:长度|窗口)?(?:限制|上限|长度|窗口)",
    r"上下文(?:长度|窗口)?已?(?:过长|超长|超限|超(?:出|过)(?:模型)?(?:最大)?(?:限制|上限|长度|窗口))",
    r"输入的?(?:内容|文本|消息|tokens?)?(?:总?长度)?(?:过长|超长|超过模型)",
)
# Ordinary sentences share these: they count in what has a status or the shape of an error, or begins with them.
VAGUE_TOKEN_OVERFLOW = _any(
    r"prompt (?:is )?too (?:long|large)|input (?:is )?too (?:long|large)|too many (?:input )?tokens",
    r"(?:input|prompt|request)(?: size| length)? exceeds? (?:the )?(?:model\S* )?(?:max\w* )?(?:context|input length)",
    r"exceeds? (?:the )?(?:model )?context window|token limit exceeded|exceeds? (?:the )?(?:input )?token limit",
    r"context (?:length|window|limit|size) (?:is |was |has been )?exceeded",
    r"context overflow: (?:prompt|request|input)",
    r"reduce the length of (?:the|your) (?:messages|prompt|input)|maximum (?:context|input) length",
    r"(?:prompt|input|context|request)_too_long|maximum allowed number of input tokens",
)
# The answer asked for is longer than the model gives, whatever the prompt.
OUTPUT_OVERFLOW = _any(
    r"maximum allowed number of output tokens|supports at most [\d,]+ (?:completion|output) tokens",
    r"range of max_\w*tokens (?:should be|is) \[|invalid max_\w*tokens value|max_tokens ?参数(?:非法|错误)",
    r"`?max_(?:completion_|output_)?tokens`? (?:\(\d+\) )?(?:must be|should be|cannot exceed|exceeds model's maximum)",
    r"maxOutputTokens value of \d+ but the supported|limiting length: \[?max_tokens",
    r"parameter `?max_\w*tokens`? specified in the request (?:is|are) not valid",
)
BYTE_OVERFLOW = _any(
    r"request_too_large|request exceeds the maximum (?:allowed )?(?:size|number of bytes)",
    r"(?:request entity|payload|content|request body) (?:is )?too large|request too large(?! for)",
    r"(?:payload|body|request) size exceeds (?:the )?(?:limit|maximum)|request body: length limit exceeded",
    r"image exceeds [\d.]+ ?[km]i?b maximum|'(?:messages|input)[^']*': string too long",
    r"请求体过大|图片(?:过大|太大)",
)
# What reads like an overflow and is none.
NO_OVERFLOW = _any(
    r"context window[^.]{0,20}(?:too small|minimum is)|context deadline|upload limit",
    r"image dimensions exceed",
    r"can only afford",
)
# Words that tell the window's size even where a rate limit is spoken of.
WINDOW = _any(
    r"maximum context length (?:is|of) \(?\d|prompt is too long: ?\d|context limit[^.]{0,12}\d",
    r"context_length_exceeded",
)
# A summary that failed may quote the overflow it failed with.
COMPACTION_FAILURE = _any(
    r"summari[sz]ation (?:call |request )?failed|failed to (?:compact|summari[sz]e)|too large to compact",
    r"compact(?:ion)?[ _-](?:llm[ _])?(?:failed|failure|could not|error)",
    r"context[ _]overflow: ?(?:compact|summari[sz])",
    r"(?:压缩|摘要|总结)失败",
)
# People talk about windows; providers do not say "I" or "we", ask or wonder.
TALK = _any(
    r"\b(?:I|I'm|I'll|I've|me|my|we|we're|let's|our)\b|\?(?: |$)|^(?:how|why|what|should|can|could|does?|is) ",
    r"\b(?:bug|debugg\w+|investigat\w+|discuss\w*|article|explains?|mystery|the user)\b",
    r"？|我|怎么|为什么|如何|是否|什么",
)
ERROR_SHAPE = _any(
    r"[\"'](?:message|error|code|type|error_msg|detail)[\"'] ?:|error_code|request[_ ]id\b",
    r"\b(?:HTTP|status(?:[_ ]?code)?|error code)[ :=]*[45]\d\d\b|^\W*[45]\d\d\b|<[45]\d\d>",
    r"\b\w+(?:Error|Exception)\b ?[:()-]",
)

# --- other failures, in the order in which they are looked for ---------------------------------------------------

RATE_LIMIT = _any(
    r"rate[ _-]?limit|rate exceeded|too many (?:concurrent )?requests",
    r"(?:tokens?|requests) per (?:minute|min|day|hour|second)\b",
    r"\b(?:[io]?tpm|rpm|tpd|rpd|qps|qpm)\b|throttl|for this minute|per-model limit",
    r"too many tokens(?: per \w+)?, please wait",
    r"concurrency (?:limit|allocated)|resource[_ ](?:has been )?exhausted|cooling down|request limit[\w ]* reached",
    r"请求(?:过于)?频繁|速率限制|频率(?:限制|过高|超)|流控|限流|并发(?:数)?(?:超|过)|访问量过大|请求过多",
)
_QUOTA = _any(
    r"insufficient[_ ](?:\w+ )?(?:quota|balance|funds|credits?)|current[_ ]quota|quota (?:exceeded|limit)",
    r"usage limit",
    r"credit balance|plan and billing|plans & billing|billing hard limit|payment required",
    r"requires? more credits",
    r"out of credits",
    r"overdue|arrears|余额不足|欠费|额度(?:不足|已用完|用尽)|无可用资源包|配额(?:不足|已用完|超限)",
)
_MALFORMED = _any(
    r"tool_use`? ids were found without|unexpected `?tool_use_id|`?tool_(?:use|result)`? block must have",
    r"tool_use\.id",
    r"number of toolResult blocks|toolUse blocks|no tool (?:output|call) found|tool call result does not follow",
    r"'?tool_calls\"?'? must be followed by|tool_call_ids? did not have|role '?tool'? must be a response",
    r"tool_call_id[^.]{0,40}(?:not found|invalid|required)|roles must alternate|alternate between",
    r"must start with a user message|first message must (?:use|be)|expected last role",
    r"invalid message sequence",
    r"unexpected role",
    r"function call turn comes|number of function response parts|thinking`? blocks? [^.]{0,60}cannot be modified",
    r"expected `?thinking|signature`? in `?thinking|content blocks must be non-empty",
    r"all messages must have non-empty",
    r"消息(?:格式|角色|顺序)(?:错误|不合法|不正确)",
)
_CONTENT_FILTER = _any(
    r"content[_ ](?:filter|policy)|content management policy|responsibleaipolicy|safety system",
    r"data_?inspection_?failed",
    r"inappropriate content|considered high risk|SensitiveContentDetected|unsafe_request",
    r"prompt was (?:flagged|blocked)",
    r"blocked by (?:safety|guardrail)|PROHIBITED_CONTENT|敏感|违规|不安全|内容安全",
)
_UNSUPPORTED = _any(
    r"model[^.]{0,60}(?:does not exist|not (?:found|available|supported)|no longer available)",
    r"model (?:is|has been) (?:offline|deactivated|decommissioned)|model_is_deactivated",
    r"model_not_found|no such model|unknown model|DeploymentNotFound|ModelNotOpen|LLM provider not provided",
    r"does not support|unsupported (?:parameter|value)|reasoning is mandatory|requires reasoning",
    r"模型(?:不存在|未开通|已下线|不支持)",
)
_AUTH = _any(
    r"(?:invalid|incorrect|missing|no|expired)[ _](?:x-)?(?:api)?[ _-]?(?:key|token|credentials?|authentication)\b",
    r"api key (?:not valid|is (?:missing|invalid))|token has expired",
    r"authentication[ _](?:error|failed|fails)",
    r"unauthori[sz]ed",
    r"permission[_ ]denied|permission_error|access ?denied|forbidden|AuthFailure|security token|certification failed",
    r"api_key client option must be set|api[_ ]key (?:is )?(?:required|not set|must be)",
    r"鉴权失败|授权错误|身份验证|无效的?(?:令牌|密钥)|令牌(?:已)?过期",
)
_TIMEOUT = _any(r"timed? ?out\b|time-out|APITimeoutError|deadline exceeded|etimedout|请求超时")
_UNAVAILABLE = _any(
    r"overloaded|high demand|at capacity|capacity exceeded",
    r"service[_ ]?(?:is )?(?:temporarily )?unavailable",
    r"ModelNotReady",
    r"internal (?:server )?error|bad gateway|server[_ ]error|provider returned error",
    r"upstream (?:connect )?error",
    r"web server is down",
    r"connection (?:error|reset|refused|aborted|closed)|APIConnectionError|econn\w+|socket hang up",
    r"server disconnected",
    r"peer closed",
    r"服务(?:忙|繁忙|不可用|异常)|系统繁忙|网络异常|内部错误|稍后(?:再试|重试)",
)
KINDS = {
    "quota": _QUOTA,
    "rate_limit": RATE_LIMIT,
    "byte_overflow": BYTE_OVERFLOW,
    "malformed_history": _MALFORMED,
    "content_filter": _CONTENT_FILTER,
    "unsupported": _UNSUPPORTED,
    "auth": _AUTH,
    "timeout": _TIMEOUT,
}
# Where the text says nothing else, the status does; after it, what any failing server says.
KIND_OF_STATUS = {
    401: "auth", 402: "quota", 403: "auth", 404: "unsupported", 407: "auth", 408: "timeout", 409: "unavailable",
    413: "byte_overflow", 429: "rate_limit", 504: "timeout", 524: "timeout",
}  # fmt: skip
LAST_KINDS = {"unavailable": _UNAVAILABLE, "rate_limit": _any("RateLimitError")}
# litellm calls a 413 a RateLimitError.
MISLEADING = re.compile(r"\bRateLimitError\b")

STATUS = _any(
    r"^(?:error:? )?([45]\d\d)\b",
    r"\b(?:HTTP|status(?:[_ ]?code)?|error code)[\"']?[ :=]*([45]\d\d)\b",
    r"[\"']code[\"'] ?: ?[\"']?([45]\d\d)\b",
)

# --- numbers ---------------------------------------------------------------------------------------------------

WINDOW_TOKENS = _numbers(
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
TOTAL_TOKENS = _numbers(
    r"requested (?:a total of |about )?# tokens",
    r"for a total of (?:at least )?#",
    r"\(requested: ?#|received #|resulted in # tokens|current length is #|requested tokens \(#\)",
)
INPUT_TOKENS = _numbers(
    r"\(# in (?:your|the) (?:prompt|messages)|# tokens from the input",
    r"contains (?:at least )?# (?:input )?tokens|(?:has|passed) # input tokens",
    r"too long: ?#",
    r"context limit[^\d]{0,12}# \+|input_tokens: ?#",
    r"token count(?: is| of)? \(?#|(?<!max_)prompt_tokens \(#|input tokens \(#",
    r"given: ?#",
    r"input length \(?#|(?:input|request|prompt) \(# tokens|prompt \((?:total )?length #|prompt has # tokens",
    r"n_prompt_tokens[\"']? ?: ?#|keep the first # tokens|, content #",
)
OUTPUT_TOKENS = _numbers(
    r"# (?:in|for) the completion|# tokens for the completion|requested # output tokens|is too large: ?#",
    r"context limit[^\d]{0,12}\d[\d,]* \+ #|and # `?max_new_tokens|max_tokens: ?# > context_window",
)
MAX_OUTPUT_TOKENS = _numbers(
    r"# ?, which is the maximum allowed|at most # (?:completion|output)|tokens (?:should be|is) \[\d+, ?#\]",
    r"maximum output tokens \(#|value <= ?#|less than or equal to `?#|限制数值范围 ?\[\d+, ?#\]",
)
# The allowance of a period and what one request wanted of it.
ALLOWANCE = re.compile(rf"limit:? {_N}, requested:? {_N}", re.IGNORECASE)

LIMIT_BYTES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"bytes > ([\d,]+) ?(bytes)",
        r"limit:? (?:of )?([\d,.]+) ?(bytes|[kmg]i?b)\b",
        r"maximum (?:size|length)(?: of| is|:)? ([\d,.]+) ?(bytes|[kmg]i?b|)",
        r"exceeds ([\d.]+) ?([kmg]i?b) maximum",
    )
)
REQUESTED_BYTES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (r"(?<![\d,])([\d,]+) (bytes) >", r"a string with length ([\d,]+)()")
)
WAITS = (
    re.compile(r"(?:try again|retry) (?:in|after) (?:about )?((?:[\d.]+ ?(?:ms|[hms])\w* ?)+)", re.IGNORECASE),
    re.compile(r"retry[-_ ]?(?:after|delay)[\"']? ?[:=]? ?[\"']?([\d.]+ ?(?:ms|[hms])?)", re.IGNORECASE),
    re.compile(r"(?<![\d.])([\d.]+ ?秒)钟?(?:之?后)"),
)

# --- who says so: only wordings and names that no other provider shares ------------------------------------------

PROVIDERS = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("openrouter", r"openrouter|this endpoint's maximum"),
        ("copilot", r"copilot|model_max_prompt_tokens_exceeded|CAPIError"),
        ("bedrock", r"bedrock|ValidationException|ThrottlingException|for requested model"),
        ("vertex", r"vertex|unable to submit request because"),
        ("gemini", r"gemini|generativelanguage|INVALID_ARGUMENT|RESOURCE_EXHAUSTED|number of tokens allowed"),
        ("azure", r"azure|ChatCompletions_Create"),
        ("cerebras", r"cerebras|while limit is"),
        ("groq", r"groq|service tier `?on_demand"),
        ("mistral", r"mistral|too large for model with"),
        ("cohere", r"cohere|cannot exceed [\d,]+ ?- ?received"),
        ("fireworks", r"fireworks|, model maximum context length"),
        ("xai", r"\bx\.ai\b|\bgrok|maximum prompt length is"),
        ("dashscope", r"dashscope|qwen|InternalError\.Algo|data_inspection_failed"),
        ("deepseek", r"deepseek"),
        ("zhipu", r"bigmodel|zhipu|智谱|\bz\.ai\b|code[\"'] ?: ?[\"'](?:1210|1261|130[12]|1113)[\"']"),
        ("moonshot", r"moonshot|kimi|exceeded model token limit|exceeded_current_quota_error"),
        ("minimax", r"minimax|context window exceeds limit"),
        ("qianfan", r"qianfan|baidu|ernie|error_code\W+336\d{3}|(?:tokens|characters)_too_long|account_overdue"),
        ("ark", r"volc|doubao|exceed max message tokens|AccountOverdueError"),
        ("siliconflow", r"siliconflow|20015"),
        ("spark", r"xfyun|讯飞|\b10907\b"),
        ("hunyuan", r"hunyuan|混元"),
        ("baichuan", r"baichuan|百川"),
        ("anthropic", r"anthropic|claude|request_too_large|toolu_|exceed context limit \(i"),
        ("lmstudio", r"lm ?studio|when context the overflows|tokens to keep from the initial"),
        ("llamacpp", r"llama\.?cpp|exceed_context_size_error|available context size"),
        ("ollama", r"ollama|exceeded max context length by"),
        ("vllm", r"vllm|max_model_len|output tokens and your prompt contains|or 'max_completion_tokens' is too large"),
        ("sglang", r"sglang"),
        ("together", r"together_?ai|together\.xyz"),
        ("openai", r"platform\.openai\.com|in organization org-"),
    )
)  # fmt: skip


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

# An error may quote the request. What it says itself stands at one of the ends.
_HEAD_CHARS, _TAIL_CHARS = 12_000, 4_000
# So near its beginning, a short error names what is wrong; a sentence about errors takes longer.
_BEGINNING_CHARS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFailure:
    """What an error text says. What it does not say is None.

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
    """What the text of a provider's error means.

    Args:
        error_text: As the provider, a client library or a proxy words it; English or Chinese.
        status: The HTTP status; without it, one that the text names is used.
    """
    text = _normalised(error_text)
    wait = _wait_seconds(text)
    kind = _kind(text, status, wait)
    tokens = _Tokens.of(text) if kind in ("token_overflow", "output_overflow") else _Tokens()
    in_bytes = kind == "byte_overflow"
    return ProviderFailure(
        kind=kind,
        transient=kind in PASSING and not _is_over_allowance(text),
        provider=next((name for name, pattern in PROVIDERS if pattern.search(text)), None),
        window_tokens=tokens.window,
        requested_tokens=tokens.total,
        input_tokens=tokens.input,
        max_output_tokens=_first(MAX_OUTPUT_TOKENS, text) if kind == "output_overflow" else None,
        limit_bytes=_bytes(LIMIT_BYTES, text) if in_bytes else None,
        requested_bytes=_bytes(REQUESTED_BYTES, text) if in_bytes else None,
        retry_after_seconds=wait,
    )


def is_compaction_failure(error_text: str) -> bool:
    """Whether the text reports that summarising a history failed, so that summarising it again is no remedy."""
    return bool(COMPACTION_FAILURE.search(_normalised(error_text)))


def _normalised(text: str) -> str:
    """The text with its JSON escapes undone, white space as single blanks, and without a long middle."""
    if len(text) > _HEAD_CHARS + _TAIL_CHARS:
        text = f"{text[:_HEAD_CHARS]} … {text[-_TAIL_CHARS:]}"
    text = re.sub(r"(?<!\\)\\+u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r"(?<!\\)\\+([\"'])", r"\1", text).replace("’", "'")
    return re.sub(r"(?:(?<!\\)\\+[nrt]|\s)+", " ", text).strip()


def _kind(text: str, status: int | None, wait: float | None) -> FailureKind:
    kind = _stated_kind(text, status)
    if kind in OVERFLOWS and (COMPACTION_FAILURE.search(text) or _is_talk(text, status)):
        return "other"
    # Gemini and DashScope call a rate limit a quota, but tell when to come back, or that they throttle.
    return "rate_limit" if kind == "quota" and (wait or "throttl" in text.lower()) else kind


def _stated_kind(text: str, status: int | None) -> FailureKind:
    overflow = _token_or_output_overflow(text, status)
    if overflow:
        return overflow
    status = status or _status(text)
    plain = MISLEADING.sub(" ", text)
    kinds = [kind for kind, pattern in KINDS.items() if pattern.search(plain)]
    if not kinds and status in KIND_OF_STATUS:
        kinds = [KIND_OF_STATUS[status]]
    if not kinds:
        kinds = [kind for kind, pattern in LAST_KINDS.items() if pattern.search(text)]
    if not kinds and status and status >= 500:
        return "unavailable"
    kind = cast(FailureKind, kinds[0]) if kinds else "other"
    return "other" if kind in OVERFLOWS and NO_OVERFLOW.search(text) else kind


def _token_or_output_overflow(text: str, status: int | None) -> FailureKind | None:
    window_named = bool(WINDOW.search(text))
    counts_a_rate = not window_named and RATE_LIMIT.search(MISLEADING.sub(" ", text))
    if counts_a_rate or NO_OVERFLOW.search(text):
        return None
    if OUTPUT_OVERFLOW.search(text) and not window_named:
        return "output_overflow"
    if TOKEN_OVERFLOW.search(text) or _is_vague_overflow(text, status):
        return "output_overflow" if _Tokens.of(text).answer_fills_window else "token_overflow"
    return None


def _is_vague_overflow(text: str, status: int | None) -> bool:
    # Cerebras says nothing else. Source: github.com/badlogic/pi-mono, packages/ai/src/utils/overflow.ts
    if "(no body)" in text and "cerebras" in text.lower():
        return True
    found = VAGUE_TOKEN_OVERFLOW.search(text)
    if not found or status in (401, 402, 403, 404, 429):
        return False
    return bool(status or ERROR_SHAPE.search(text) or found.start() < _BEGINNING_CHARS)


def _is_talk(text: str, status: int | None) -> bool:
    return not status and bool(TALK.search(text)) and not ERROR_SHAPE.search(text)


def _status(text: str) -> int | None:
    found = STATUS.search(text)
    return int(next(filter(None, found.groups()))) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    window: int | None = None
    total: int | None = None
    input: int | None = None
    output: int | None = None

    @classmethod
    def of(cls, text: str) -> _Tokens:
        """The numbers in a text; a total that is not told is the sum of its parts."""
        prompt, output = _first(INPUT_TOKENS, text), _first(OUTPUT_TOKENS, text)
        parts = prompt + (output or 0) if prompt else None
        total = _first(TOTAL_TOKENS, text) or parts
        return cls(window=_first(WINDOW_TOKENS, text), total=total, input=prompt, output=output)

    @property
    def answer_fills_window(self) -> bool:
        """Whether the answer asked for leaves no room for any prompt."""
        return bool(self.output and self.window) and (self.output or 0) >= (self.window or 0)


def _first(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        if found := pattern.search(text):
            return _whole(next(filter(None, found.groups()))) or None
    return None


def _whole(number: str) -> int:
    scale = {"k": 1_000, "m": 1_000_000}.get(number[-1].lower())
    return int(float(number[:-1]) * scale) if scale else int(re.sub(r"\D", "", number))


def _is_over_allowance(text: str) -> bool:
    """Whether one request asks for more than a whole period allows, so that waiting is no remedy."""
    found = ALLOWANCE.search(text)
    return bool(found) and _whole(found[2]) > _whole(found[1]) if found else False


def _bytes(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        if found := pattern.search(text):
            number = found[1].replace(",", "").rstrip(".")
            return int(float(number) * {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(found[2][:1].lower(), 1))
    return None


def _wait_seconds(text: str) -> float | None:
    for pattern in WAITS:
        if found := pattern.search(text):
            parts = re.findall(r"(\d+(?:\.\d+)?) ?(ms|[hm])?", found[1].lower())
            return sum(float(amount) * {"h": 3600.0, "m": 60.0, "ms": 0.001}.get(unit, 1.0) for amount, unit in parts)
    return None

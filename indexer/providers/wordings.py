"""How providers of models word their errors, chat and embedding models alike: the tables that their readers share.

Invariants: pure, and nothing raises; patterns ignore case and see text that `readable` gave back. Every row was
written for a text that a provider, a library or a proxy really sends, or for a look-alike that must not match; they
are collected in provider_errors.json of tests/indexer/providers and of tests/memory_service/llm. A new wording goes
there first.
"""

from __future__ import annotations

import re

from indexer.common.patterns import lazy_regex

# An error may quote the request. What it says itself stands at one of the ends.
_HEAD_CHARS, _TAIL_CHARS = 12_000, 4_000


def readable(text: str) -> str:
    """A text with its JSON escapes undone, white space as single blanks, and without a long middle."""
    if len(text) > _HEAD_CHARS + _TAIL_CHARS:
        text = f"{text[:_HEAD_CHARS]} … {text[-_TAIL_CHARS:]}"
    text = re.sub(r"(?<!\\)\\+u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    text = re.sub(r"(?<!\\)\\+([\"'])", r"\1", text).replace("’", "'")
    return re.sub(r"(?:(?<!\\)\\+[nrt]|\s)+", " ", text).strip()


def any_of(*patterns: str) -> re.Pattern[str]:
    """A pattern that fits where one of these does."""
    return lazy_regex("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


# --- overflows -------------------------------------------------------------------------------------------------

# Each names tokens, a window or a code of its own: nothing but an overflow is worded so.
TOKEN_OVERFLOW = any_of(
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
VAGUE_TOKEN_OVERFLOW = any_of(
    r"prompt (?:is )?too (?:long|large)|input (?:is )?too (?:long|large)|too many (?:input )?tokens",
    r"(?:input|prompt|request)(?: size| length)? exceeds? (?:the )?(?:model\S* )?(?:max\w* )?(?:context|input length)",
    r"exceeds? (?:the )?(?:model )?context window|token limit exceeded|exceeds? (?:the )?(?:input )?token limit",
    r"context (?:length|window|limit|size) (?:is |was |has been )?exceeded",
    r"context overflow: (?:prompt|request|input)",
    r"reduce the length of (?:the|your) (?:messages|prompt|input)|maximum (?:context|input) length",
    r"(?:prompt|input|context|request)_too_long|maximum allowed number of input tokens",
)
# The answer asked for is longer than the model gives, whatever the prompt.
OUTPUT_OVERFLOW = any_of(
    r"maximum allowed number of output tokens|supports at most [\d,]+ (?:completion|output) tokens",
    r"range of max_\w*tokens (?:should be|is) \[|invalid max_\w*tokens value|max_tokens ?参数(?:非法|错误)",
    r"`?max_(?:completion_|output_)?tokens`? (?:\(\d+\) )?(?:must be|should be|cannot exceed|exceeds model's maximum)",
    r"maxOutputTokens value of \d+ but the supported|limiting length: \[?max_tokens",
    r"parameter `?max_\w*tokens`? specified in the request (?:is|are) not valid",
)
REQUEST_TOO_LARGE = any_of(
    r"request_too_large|request exceeds the maximum (?:allowed )?(?:size|number of bytes)",
    r"(?:request entity|payload|content|request body) (?:is )?too large|request too large(?! for)",
    r"(?:payload|body|request) size exceeds (?:the )?(?:limit|maximum)|request body: length limit exceeded",
    r"请求体过大",
)
PART_TOO_LARGE = any_of(
    r"image exceeds [\d.]+ ?[km]i?b maximum|'(?:messages|input)[^']*': string too long|图片(?:过大|太大)"
)
# What reads like an overflow and is none.
NO_OVERFLOW = any_of(
    r"context window[^.]{0,20}(?:too small|minimum is)|context deadline|upload limit",
    r"image dimensions exceed",
    r"can only afford",
)
# Words that tell the window's size even where a rate limit is spoken of.
WINDOW = any_of(
    r"maximum context length (?:is|of) \(?\d|prompt is too long: ?\d|context limit[^.]{0,12}\d",
    r"context_length_exceeded",
)
# A summary that failed may quote the overflow it failed with.
COMPACTION_FAILURE = any_of(
    r"summari[sz]ation (?:call |request )?failed|failed to (?:compact|summari[sz]e)|too large to compact",
    r"compact(?:ion)?[ _-](?:llm[ _])?(?:failed|failure|could not|error)",
    r"context[ _]overflow: ?(?:compact|summari[sz])",
    r"(?:压缩|摘要|总结)失败",
)
# People talk about windows; providers do not say "I" or "we", ask or wonder.
TALK = any_of(
    r"\b(?:I|I'm|I'll|I've|me|my|we|we're|let's|our)\b|\?(?: |$)|^(?:how|why|what|should|can|could|does?|is) ",
    r"\b(?:bug|debugg\w+|investigat\w+|discuss\w*|article|explains?|mystery|the user)\b",
    r"？|我|怎么|为什么|如何|是否|什么",
)
ERROR_SHAPE = any_of(
    r"[\"'](?:message|error|code|type|error_msg|detail)[\"'] ?:|error_code|request[_ ]id\b",
    r"\b(?:HTTP|status(?:[_ ]?code)?|error code)[ :=]*[45]\d\d\b|^\W*[45]\d\d\b|<[45]\d\d>",
    r"\b\w+(?:Error|Exception)\b ?[:()-]",
)

# --- other failures --------------------------------------------------------------------------------------------

RATE_LIMIT = any_of(
    r"rate[ _-]?limit|rate exceeded|too many (?:concurrent )?requests",
    r"(?:tokens?|requests) per (?:minute|min|day|hour|second)\b",
    r"\b(?:[io]?tpm|rpm|tpd|rpd|qps|qpm)\b|throttl|for this minute|per-model limit",
    r"too many tokens(?: per \w+)?, please wait",
    r"concurrency (?:limit|allocated)|resource[_ ](?:has been )?exhausted|cooling down|request limit[\w ]* reached",
    r"请求(?:过于)?频繁|速率限制|频率(?:限制|过高|超)|流控|限流|并发(?:数)?(?:超|过)|访问量过大|请求过多",
)
QUOTA = any_of(
    r"insufficient[_ ](?:\w+ )?(?:quota|balance|funds|credits?)|current[_ ]quota|quota (?:exceeded|limit)",
    r"usage limit",
    r"credit balance|plan and billing|plans & billing|billing hard limit|payment required",
    r"requires? more credits",
    r"out of credits",
    r"overdue|arrears|余额不足|欠费|额度(?:不足|已用完|用尽)|无可用资源包|配额(?:不足|已用完|超限)",
)
MALFORMED = any_of(
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
CONTENT_FILTER = any_of(
    r"content[_ ](?:filter|policy)|content management policy|responsibleaipolicy|safety system",
    r"data_?inspection_?failed",
    r"inappropriate content|considered high risk|SensitiveContentDetected|unsafe_request",
    r"prompt was (?:flagged|blocked)",
    r"blocked by (?:safety|guardrail)|PROHIBITED_CONTENT|敏感|违规|不安全|内容安全",
)
NO_SUCH_MODEL = any_of(
    r"model[^.]{0,80}(?:does not exist|not (?:found|available|supported)|no longer available)",
    r"model (?:is|has been) (?:offline|deactivated|decommissioned)|model_is_deactivated",
    r"model_not_found|no such model|unknown model|DeploymentNotFound|ModelNotOpen",
    r"LLM provider not provided|unmapped LLM provider|does not support",
    r"模型(?:不存在|未开通|已下线|不支持)",
)
UNSUPPORTED = any_of(r"unsupported (?:parameter|value)|reasoning is mandatory|requires reasoning")
AUTH = any_of(
    r"(?:invalid|incorrect|missing|no|expired)[ _](?:x-)?(?:api)?[ _-]?(?:key|token|credentials?|authentication)\b",
    r"api key (?:not valid|is (?:missing|invalid))|token has expired",
    r"authentication[ _](?:error|failed|fails)",
    r"unauthori[sz]ed",
    r"permission[_ ]denied|permission_error|access ?denied|forbidden|AuthFailure|security token|certification failed",
    r"api_key client option must be set|api[_ ]key (?:is )?(?:required|not set|must be)",
    r"鉴权失败|授权错误|身份验证|无效的?(?:令牌|密钥)|令牌(?:已)?过期",
)
TIMEOUT = any_of(r"timed? ?out\b|time-out|APITimeoutError|deadline exceeded|etimedout|请求超时")
UNAVAILABLE = any_of(
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
# litellm calls a 413 a RateLimitError.
MISLEADING = lazy_regex(r"\bRateLimitError\b")

STATUS = any_of(
    r"^(?:error:? )?([45]\d\d)\b",
    r"\b(?:HTTP|status(?:[_ ]?code)?|error code)[\"']?[ :=]*([45]\d\d)\b",
    r"[\"']code[\"'] ?: ?[\"']?([45]\d\d)\b",
)

# --- what a request for vectors may hold, without numbers ----------------------------------------------------------

REQUEST_WORDS = any_of(
    REQUEST_TOO_LARGE.pattern,
    r"request (?:is )?too large|too many tokens (?:overall|in (?:the )?(?:batch|request))|max_tokens_per_request",
)
TEXT_WORDS = any_of(
    r"input (?:is )?too (?:long|large)|input length exceeds|exceeds? (?:the )?(?:maximum )?context length",
    r"context_length_exceeded|context (?:length|window) (?:is )?exceeded|increase the physical batch size",
    r"exceeds? (?:the )?(?:model's )?max(?:imum)? (?:sequence|input) length",
    r"输入(?:的)?(?:文本|内容)?(?:过长|超长)",
)
ITEM_WORDS = any_of(
    r"too many (?:inputs|texts|items|documents)|split into more batches|array_above_max_length",
)

# --- who says so: only wordings and names that no other provider shares ------------------------------------------

PROVIDERS = tuple(
    (name, lazy_regex(pattern, re.IGNORECASE))
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

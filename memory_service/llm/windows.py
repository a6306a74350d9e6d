"""Limits of a model by its name: context window and longest answer.

Invariants: nothing is fetched and litellm is not imported, which takes seconds: where it is installed, only the
table in its package is read, once; a model that nobody knows is None, never a guess.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

LimitsSource = Literal["litellm", "table"]

# Part of litellm's package since 2023; it reads the same one where LITELLM_LOCAL_MODEL_COST_MAP is set.
_TABLE_NAME = "model_prices_and_context_window_backup.json"
_TEXT_MODES = frozenset({"chat", "responses", "completion"})

# What models of a family take and answer at their makers, the least where they differ; the first pattern that is found
# in the last part of a name, and not within a word, counts. Too small a window costs a compaction, too large a one the
# request, after which it is learned.
# Source: litellm's table and the makers' pages, November 2026.
_FAMILIES: tuple[tuple[str, int, int | None], ...] = (
    (r"gpt-5.*-chat", 111_616, 16_384),
    (r"gpt-5", 272_000, 128_000),
    (r"gpt-4\.5", 128_000, 16_384),
    (r"gpt-4\.1", 1_047_576, 32_768),
    (r"gpt-4o-(2024-05-13|.*(audio|realtime|search))", 128_000, 4_096),
    (r"(?:chat)?gpt-4o", 128_000, 16_384),
    (r"gpt-4-(turbo|1106|0125|vision)", 128_000, 4_096),
    (r"gpt-4-32k", 32_768, 4_096),
    (r"gpt-4(?![.\d])", 8_192, 4_096),
    (r"gpt-3\.?5-turbo", 16_385, 4_096),
    (r"gpt-oss", 131_072, 16_384),
    (r"o1-(mini|preview)", 128_000, 32_768),
    (r"o[134](?!\d)", 200_000, 100_000),
    (r"claude-(instant|v?[12])", 100_000, 4_096),
    (r"claude-3[.-]7", 200_000, 64_000),
    (r"claude-3[.-]5", 200_000, 8_192),
    (r"claude-3", 200_000, 4_096),
    (r"claude-opus-4(-[01](?!\d)|-2025|@|$)", 200_000, 32_000),
    (r"claude", 200_000, 64_000),
    (r"gemini-1\.0|gemini-pro", 32_760, 8_192),
    (r"gemini-(1\.5|2\.0)", 1_048_576, 8_192),
    (r"gemini-.*(image|live|audio|tts)", 32_768, 8_192),
    (r"gemini", 1_048_576, 65_535),
    (r"gemma-?[34]", 131_072, 8_192),
    (r"gemma", 8_192, 8_192),
    (r"deepseek-(reasoner|chat|v3\.[1-9]|v[4-9])", 131_072, 8_192),
    (r"deepseek-(v3|r1)(?!-distill)", 65_536, 8_192),
    (r"deepseek", 32_768, 4_096),
    (r"qwen3-?(max|plus|flash|coder|next|vl)", 131_072, 32_768),
    (r"qwen-?(plus|turbo|flash|long)", 129_024, 8_192),
    (r"qwen|qwq", 30_720, 8_192),
    (r"glm-4\.[6-9]|glm-[5-9]", 200_000, 128_000),
    (r"glm-4", 128_000, 4_096),
    (r"kimi-k[2-9]", 131_072, 16_000),
    (r"kimi|moonshot-v1-128k", 131_072, 16_000),
    (r"moonshot-v1-32k", 32_768, 8_192),
    (r"moonshot", 8_192, 4_096),
    (r"minimax", 196_000, 8_192),
    (r"llama-?4", 131_072, 8_192),
    (r"llama-?v?3[.p-]?[123]", 128_000, 4_096),
    (r"llama-?v?3", 8_192, 4_096),
    (r"llama", 4_096, 4_096),
    (r"codestral", 32_000, 4_096),
    (r"devstral|magistral|ministral|mistral-(nemo|large|medium|small)|pixtral", 128_000, 8_192),
    (r"mi[sx]tral", 32_000, 4_096),
    (r"grok-[3-9]", 131_072, 16_384),
    (r"grok", 32_768, 4_096),
    (r"command-[ar]", 128_000, 4_096),
    (r"nova-(micro|lite|pro|premier|2)", 128_000, 8_192),
    (r"jamba", 256_000, 4_096),
    (r"ernie|文心", 30_000, 8_192),
    (r"doubao|豆包|seed-1", 128_000, 8_192),
    (r"hunyuan|混元", 28_000, 4_096),
    (r"phi-?[34]", 16_384, 4_096),
    (r"sonar", 127_000, 8_000),
)
# No model has a longer name.
_NAME_CHARS = 200

# What a local server gives a model has little to do with what that could take.
# Source: Ollama's manual: 4,096 unless num_ctx says otherwise; what does not fit is dropped without an error.
_LOCAL: Mapping[str, int | None] = {
    "ollama": 4_096,
    "ollama_chat": 4_096,
    "lm_studio": None,
    "llamafile": None,
    "hosted_vllm": None,
    "vllm": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """Limits of a model in tokens: context window and longest answer.

    Attributes:
        window_tokens: The longest prompt; None if only the answer is known.
        max_output_tokens: The longest answer; None if it is not known.
        source: Where that is from.
    """

    window_tokens: int | None
    max_output_tokens: int | None
    source: LimitsSource


def model_limits(model: str) -> ModelLimits | None:
    """Limits of a model by its litellm name, such as "openai/gpt-4o"; None if unknown."""
    limits = _of_litellm(model) or _of_family(model)
    return limits if limits and (limits.window_tokens or limits.max_output_tokens) else None


def _of_litellm(model: str) -> ModelLimits | None:
    table = _litellm_table()
    if model in table:
        return table[model][1]
    provider, slash, rest = model.partition("/")
    pair = table.get(rest) if slash else None
    return pair[1] if pair and pair[0].startswith(provider) else None


@lru_cache(maxsize=256)
def _of_family(model: str) -> ModelLimits | None:
    provider, slash, _ = model.partition("/")
    if slash and provider.lower() in _LOCAL:
        return ModelLimits(window_tokens=_LOCAL[provider.lower()], max_output_tokens=None, source="table")
    name = model.rpartition("/")[2][:_NAME_CHARS].lower()
    return next((limits for pattern, limits in _families() if pattern.search(name)), None)


@cache
def _families() -> tuple[tuple[re.Pattern[str], ModelLimits], ...]:
    return tuple(
        (
            re.compile(f"(?<![a-z])(?:{pattern})"),
            ModelLimits(window_tokens=window, max_output_tokens=output, source="table"),
        )
        for pattern, window, output in _FAMILIES
    )


@cache
def _litellm_table() -> Mapping[str, tuple[str, ModelLimits]]:
    """Provider and limits by name; empty where litellm is not installed or keeps its table elsewhere."""
    file = _litellm_file()
    if file is None:
        return {}
    try:
        rows = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(rows, dict):
        return {}
    return {name: entry for name, row in rows.items() if isinstance(row, dict) and (entry := _entry(row))}


def _litellm_file() -> Path | None:
    spec = importlib.util.find_spec("litellm")
    return Path(spec.origin).parent / _TABLE_NAME if spec and spec.origin else None


def _entry(row: Mapping[str, object]) -> tuple[str, ModelLimits] | None:
    window, output = _size(row.get("max_input_tokens")), _size(row.get("max_output_tokens"))
    if row.get("mode") not in _TEXT_MODES or window is None:
        return None
    return str(row.get("litellm_provider", "")), ModelLimits(
        window_tokens=window, max_output_tokens=output, source="litellm"
    )


def _size(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None

"""What providers refuse inside the messages of a list that is in order: media, fields, marks, reasoning, bytes.

`refusals` judges a whole request by a provider's name, beside `tests.wire.problems`, which judges its order. Sources
stand at each rule; nobody can ask the providers in a test, so where they differ, the stricter one counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Wire = Mapping[str, Any]
Rule = Callable[[Sequence[Wire], Any], Iterator[str]]

# How a model of each provider is asked: the shape, and a name.
ASKED: dict[str, tuple[Any, str]] = {
    "openai": ("openai", "gpt-5.1"),
    "anthropic": ("anthropic", "claude-sonnet-4-5"),
    "gemini": ("openai", "gemini/gemini-3-pro"),
    "mistral": ("mistral", "mistral-large-latest"),
    "deepseek": ("openai", "deepseek/deepseek-reasoner"),
    "moonshot": ("openai", "moonshot/kimi-k2-thinking"),
}
_WEB_IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_GEMINI_IMAGES = {"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}
_DATA_URL = re.compile(r"data:([a-z0-9.+/-]+);base64,[A-Za-z0-9+/=]+")


def refusals(messages: Sequence[Wire], system: Any, provider: str) -> list[str]:
    """Everything in a request that a provider would refuse, as `rule: what and where`."""
    return [f"{rule.__name__}: {found}" for rule in CONTENT_RULES[provider] for found in rule(messages, system)]


def _parts(message: Wire) -> list[Wire]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _all_parts(messages: Sequence[Wire], system: Any) -> Iterator[Wire]:
    for parts in (system if isinstance(system, list) else [], *map(_parts, messages)):
        for part in parts:
            yield part
            yield from _parts(part) if part["type"] == "tool_result" else ()


def words_are_unicode(messages: Sequence[Wire], system: Any) -> Iterator[str]:
    """Source: JSON as UTF-8; OpenAI API, error "We could not parse the JSON body"; Anthropic, "no low surrogate"."""
    try:
        json.dumps([messages, system], ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        yield str(error)


def images_are_taken(kinds: set[str], addresses: tuple[str, ...]) -> Rule:
    def image_is_taken(messages: Sequence[Wire], system: Any) -> Iterator[str]:
        """Source: see `memory_service/messages/providers.py`."""
        for part in _all_parts(messages, system):
            if part["type"] != "image_url":
                continue
            url = part["image_url"]["url"]
            data = _DATA_URL.fullmatch(url)
            if not (data[1] in kinds if data else url.startswith(addresses)):
                yield url[:60]

    return image_is_taken


def parts_are_mistrals(messages: Sequence[Wire], system: Any) -> Iterator[str]:
    """Source: Mistral API reference, "ContentChunk"; error 422 "extra_forbidden"."""
    keys = {
        "text": {"type", "text"},
        "image_url": {"type", "image_url"},
        "document_url": {"type", "document_url", "document_name"},
        "thinking": {"type", "thinking"},
        "input_audio": {"type", "input_audio"},
        "reference": {"type", "reference_ids"},
        "file": {"type", "file_id"},
    }
    message_keys = {
        "assistant": {"role", "content", "tool_calls", "prefix"},
        "tool": {"role", "content", "tool_call_id", "name"},
    }
    for message in messages:
        yield from set(message) - message_keys.get(message["role"], {"role", "content"})
        for part in _parts(message):
            yield from (f"{part['type']}.{key}" for key in set(part) - keys.get(part["type"], set()))


def blocks_are_anthropics(messages: Sequence[Wire], system: Any) -> Iterator[str]:
    """Source: Anthropic API reference, messages; error "Extra inputs are not permitted"."""
    keys = {
        "text": {"type", "text", "cache_control", "citations"},
        "image": {"type", "source", "cache_control"},
        "document": {"type", "source", "cache_control", "citations", "context", "title"},
        "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
        "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
        "thinking": {"type", "thinking", "signature"},
        "redacted_thinking": {"type", "data"},
    }
    for message in messages:
        yield from set(message) - {"role", "content"}
    for part in _all_parts(messages, system):
        yield from (f"{part['type']}.{key}" for key in set(part) - keys.get(part["type"], set(part)))


def sources_are_anthropics(messages: Sequence[Wire], system: Any) -> Iterator[str]:
    """Source: Anthropic API reference, "Vision", "PDF support"; errors "image.source.base64.media_type: Input should
    be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", "URL sources must use HTTPS".
    """
    for part in _all_parts(messages, system):
        match part:
            case {"type": "image", "source": {"type": "base64", "media_type": kind}} if kind not in _WEB_IMAGES:
                yield kind
            case {"type": "document", "source": {"type": "base64", "media_type": kind}} if kind != "application/pdf":
                yield kind
            case {"type": "document", "source": {"type": "text", "media_type": kind}} if kind != "text/plain":
                yield kind
            case {"source": {"type": "url", "url": url}} if not url.startswith(("https://", "http://")):
                yield url


def marks_are_few_and_in_order(messages: Sequence[Wire], system: Any) -> Iterator[str]:
    """Source: Anthropic API, "Prompt caching", errors "A maximum of 4 blocks with cache_control may be provided", "a
    ttl='1h' cache_control block must not come after a ttl='5m' cache_control block".
    """
    marks = [part["cache_control"] for part in _all_parts(messages, system) if part.get("cache_control")]
    ages = [mark.get("ttl", "5m") for mark in marks]
    if len(ages) > 4:
        yield f"{len(ages)} marks"
    if ages != sorted(ages):
        yield f"{ages}"
    yield from (f"{mark}" for mark in marks if mark.get("type") != "ephemeral")


def keys_are_openais(messages: Sequence[Wire], system: Any) -> Iterator[str]:
    """Source: OpenAI API, error "Unknown parameter: 'messages[1].…'"; `annotations` of its own answers are taken."""
    known = {
        "role",
        "content",
        "name",
        "refusal",
        "audio",
        "tool_calls",
        "tool_call_id",
        "function_call",
        "annotations",
    }
    for message in messages:
        yield from set(message) - known
        for call in message.get("tool_calls") or []:
            yield from set(call) - {"id", "type", "function", "custom"}
        yield from set(message.get("audio") or {}) - {"id"}
        fit = {"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}
        for part in _parts(message):
            yield from {part["type"]} - fit.get(message["role"], {"text"})


def no_marks(messages: Sequence[Wire], system: Any) -> Iterator[str]:
    """Source: error "Unknown parameter: 'messages[0].content[0].cache_control'"."""
    yield from (part["type"] for part in _all_parts(messages, system) if "cache_control" in part)


def calls_have_reasoning(messages: Sequence[Wire], system: Any) -> Iterator[str]:
    """Source: DeepSeek API, error "The reasoning_content in the thinking mode must be passed back to the API"; Moonshot
    API, error "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2".
    """
    for at, message in enumerate(messages):
        if message.get("tool_calls") and not message.get("reasoning_content"):
            yield str(at)


def first_calls_are_signed(messages: Sequence[Wire], system: Any) -> Iterator[str]:
    """Source: Gemini API, "Thought signatures": error "Function call is missing a thought_signature"."""
    for at, message in enumerate(messages):
        if (calls := message.get("tool_calls")) and "thought" not in json.dumps(calls[0]):
            yield str(at)


_PLAIN: tuple[Rule, ...] = (words_are_unicode, no_marks)
CONTENT_RULES: dict[str, tuple[Rule, ...]] = {
    "openai": (*_PLAIN, images_are_taken(_WEB_IMAGES, ("https://", "http://")), keys_are_openais),
    "gemini": (*_PLAIN, images_are_taken(_GEMINI_IMAGES, ("https://", "http://", "gs://")), first_calls_are_signed),
    "deepseek": (*_PLAIN, images_are_taken(_WEB_IMAGES, ("https://", "http://")), calls_have_reasoning),
    "moonshot": (*_PLAIN, images_are_taken(_WEB_IMAGES, ("ms://",)), calls_have_reasoning),
    "mistral": (*_PLAIN, images_are_taken(_WEB_IMAGES, ("https://", "http://")), parts_are_mistrals),
    "anthropic": (words_are_unicode, blocks_are_anthropics, sources_are_anthropics, marks_are_few_and_in_order),
}

"""Rules of the providers for a list of messages, as one table. Pure.

```
            images                    addresses      files           reasoning  marks  roles, keys
openai      png jpeg gif webp         http(s)        its own         refused    none   its own
anthropic   png jpeg gif webp         http(s)        pdf, plain text signed     4      strict
gemini      png jpeg webp heic heif   http(s), gs    its own         wanted     none   its own
mistral     png jpeg gif webp         http(s)        pdf by address  refused    none   strict
deepseek    png jpeg gif webp         http(s)        its own         wanted     none   its own
moonshot    png jpeg gif webp         ms             its own         wanted     none   its own
```
A shape is asked for by name; of OpenAI's shape, the model tells the provider, and where it tells none, OpenAI's own row
counts. What a row does not take is written in a form that it takes, or as a label; see `wire_parts`.

Sources: OpenAI API reference, "Images and vision", error "You uploaded an unsupported image. Please make sure your
image has of one the following formats: ['png', 'jpeg', 'gif', 'webp']"; Anthropic API reference, "Vision", "PDF
support", "Prompt caching", error "A maximum of 4 blocks with cache_control may be provided"; Gemini API, "Image
understanding", "Thought signatures"; Mistral API reference, "Chat completion", error "extra_forbidden", and
mistral-common; DeepSeek API, "Thinking Mode: tool calls"; Moonshot API, "Use the Kimi vision model", "Kimi K2
Thinking"; litellm 1.106, `deepseek/chat/transformation.py` and `moonshot/chat/transformation.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

Shape = Literal["openai", "anthropic", "mistral"]

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_WEB = ("https://", "http://")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRules:
    """Rules of one provider for a list of messages.

    Attributes:
        images: Types of the images in a message.
        addresses: How the address of an image begins.
        wants_reasoning: Whether a call is refused without the reasoning that the model thought before it.
        wants_signatures: Whether a call is refused without the signature that the model put on it, or on its id.
        own_keys_alone: Whether a key that the provider has not documented is refused.
        cache_marks: How many places of a prompt may be marked for its cache.
    """

    images: frozenset[str] = _IMAGES
    addresses: tuple[str, ...] = _WEB
    wants_reasoning: bool = False
    wants_signatures: bool = False
    own_keys_alone: bool = False
    cache_marks: int = 0


PROVIDERS: dict[str, ProviderRules] = {
    # Reasoning stays on its side of chat completions; keys of others are an "Unknown parameter".
    "openai": ProviderRules(own_keys_alone=True),
    # What it signed comes back unchanged, in blocks of its own, see `writing`.
    "anthropic": ProviderRules(own_keys_alone=True, cache_marks=4),
    "gemini": ProviderRules(
        images=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
        addresses=(*_WEB, "gs://"),
        wants_reasoning=True,
        wants_signatures=True,
    ),
    # Ids of nine characters, and an answer between a result and the user: see `writing` and `repair`.
    "mistral": ProviderRules(own_keys_alone=True),
    "deepseek": ProviderRules(wants_reasoning=True),
    "moonshot": ProviderRules(addresses=("ms://",), wants_reasoning=True),
}
# Other models of OpenAI's shape that think between their calls, on servers of any kind.
_THINKING = replace(PROVIDERS["deepseek"], addresses=_WEB)
_UNNAMED = ProviderRules()
_MODELS: tuple[tuple[re.Pattern[str], ProviderRules], ...] = (
    # Keys are refused by OpenAI's own server; its open models run on any.
    (re.compile(r"^(?:openai/|azure/)?(?:gpt-(?!oss)|chatgpt|o\d)"), PROVIDERS["openai"]),
    (re.compile(r"gemini"), PROVIDERS["gemini"]),
    (re.compile(r"deepseek"), PROVIDERS["deepseek"]),
    (re.compile(r"kimi|moonshot"), PROVIDERS["moonshot"]),
    (re.compile(r"glm-|minimax|mimo"), _THINKING),
)


def provider_rules(shape: Shape, model: str | None) -> ProviderRules:
    """The row of the provider that gets a list of messages.

    Args:
        shape: The shape that the messages are written in.
        model: The name of the model, with or without that of its provider; None for one that is not known.
    """
    if shape != "openai":
        return PROVIDERS[shape]
    name = (model or "").lower()
    return next((rules for pattern, rules in _MODELS if pattern.search(name)), _UNNAMED)


def wants_reasoning(model: str | None) -> bool:
    """True for models of OpenAI's shape that refuse a call of theirs without the reasoning or signature beside it."""
    return provider_rules("openai", model).wants_reasoning

"""Writing messages: the inner form in, what OpenAI, Anthropic, Mistral and litellm take out.

Invariants: pure; no message is changed in place; a list read from OpenAI goes back to OpenAI unchanged, one from
Anthropic to Anthropic up to a string being the same as one text block; thinking blocks go out byte-identical or not at
all; keys of ours and keys that begin with `_` never reach the wire. The order of messages is not this module's matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from memory_service.messages.opaque import LEGACY, OWN_CALL, OWN_ROLE
from memory_service.messages.providers import PROVIDERS, ProviderRules, provider_rules
from memory_service.messages.shapes import (
    REASONING,
    Message,
    Part,
    ToolCall,
    json_text,
    mistral_id,
    openai_id,
    parts_of,
    text_of_part,
    text_part,
    tool_calls_of,
    wire_arguments,
    wire_name,
)

_OURS = frozenset({"block_order", "is_error", "interim", "created_at"})
_BEYOND_OPENAI = frozenset({*REASONING, "cache_control"})
# Mistral refuses every other key. Source: mistral-common, its messages forbid what they do not name.
_MISTRAL_TAKES: dict[str, frozenset[str]] = {
    "assistant": frozenset({"role", "content", "tool_calls", "prefix"}),
    "tool": frozenset({"role", "content", "tool_call_id", "name"}),
}
_MISTRAL_TAKES_OF_OTHERS = frozenset({"role", "content"})
# What OpenAI's own server has a name for. Sources: OpenAI API reference, "Create chat completion"; its error "Unknown
# parameter: 'messages[1].…'"; an answer of its own, which goes back as it came, has `annotations`.
_OPENAI_TAKES = frozenset({
    "role", "content", "name", "refusal", "audio", "tool_calls", "tool_call_id", "function_call", "annotations",
})  # fmt: skip
# Stands for reasoning, or for a signature, that is not there. Sources: litellm 1.106, `fill_reasoning_content`, "the
# minimum value the API accepts"; Gemini API, "Thought signatures", on calls that another model made.
_NO_REASONING = " "
_NO_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
# Between an id and the signature that litellm puts behind it.
_SIGNATURE = "__thought__"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """Differences between the APIs that take OpenAI's shape.

    Attributes:
        id_of: The id that goes out for one of the log's.
        extensions: Whether keys beyond OpenAI's go out too.
        refusals: Whether a refusal is known; else it goes out as text.
        own_kinds: Whether roles and calls go back in the shape that they came in, known or not.
        rules: Of the provider.
    """

    id_of: Callable[[str], str]
    extensions: bool = False
    refusals: bool = False
    own_kinds: bool = False
    rules: ProviderRules


_MISTRAL = _Dialect(id_of=mistral_id, rules=PROVIDERS["mistral"])


def to_openai(messages: Sequence[Message], *, model: str | None = None) -> list[dict[str, object]]:
    """Messages as OpenAI's chat API takes them, or as another provider of its shape does.

    Args:
        messages: In an order that the API takes; `sessions.repair` sees to that.
        model: The model that is asked: it tells the provider, see `provider_rules`.

    Returns:
        New messages; what the provider takes is in them unchanged.
    """
    rules = provider_rules("openai", model)
    # Gemini's signatures may be part of an id.
    id_of = str if rules.wants_signatures else openai_id
    dialect = _Dialect(id_of=id_of, refusals=True, own_kinds=True, rules=rules)
    return [_openai_message(message, dialect) for message in messages]


def to_mistral(messages: Sequence[Message]) -> list[dict[str, object]]:
    """Messages as Mistral's chat API takes them: OpenAI's, with ids of nine letters and digits, refusals as text."""
    return [_mistral_message(message, _openai_message(message, _MISTRAL)) for message in messages]


def _mistral_message(message: Message, wire: dict[str, object]) -> dict[str, object]:
    # Nothing is written until something is sent, and much of the service reads messages.
    from memory_service.messages.wire_parts import mistral_part

    if isinstance(message.get("content"), list):
        parts = [mistral_part(part, message["role"]) for part in parts_of(message)]
        wire["content"] = [part for part in parts if part is not None] or None
        if message["role"] == "tool":
            wire["content"] = wire["content"] or ""
    role = "system" if wire["role"] == "developer" else str(wire["role"])
    takes = _MISTRAL_TAKES.get(role, _MISTRAL_TAKES_OF_OTHERS)
    return {**{key: value for key, value in wire.items() if key in takes}, "role": role}


def _openai_message(message: Message, dialect: _Dialect) -> dict[str, object]:
    rules = dialect.rules
    private = _OURS if dialect.extensions else _OURS | _BEYOND_OPENAI
    if rules.wants_reasoning:
        private = private - {"reasoning_content"}
    wire = {key: value for key, value in message.items() if key not in private and not key.startswith("_")}
    if rules.own_keys_alone and dialect.own_kinds:
        wire = _with_own_keys(wire)
    if isinstance(message.get("content"), list):
        wire["content"] = _openai_content(message, dialect)
    if wire.get("refusal") and not dialect.refusals:
        wire["content"] = wire.get("content") or wire["refusal"]
        del wire["refusal"]
    if message["role"] == "tool":
        wire["content"] = wire.get("content") or ""
        wire["tool_call_id"] = dialect.id_of(message.get("tool_call_id", ""))
    if tool_calls_of(message):
        wire["tool_calls"] = [_openai_call(call, dialect) for call in tool_calls_of(message)]
        if dialect.own_kinds:
            _put_in(wire, rules)
    return _in_own_shape(message, wire) if dialect.own_kinds else wire


def _with_own_keys(wire: dict[str, object]) -> dict[str, object]:
    """A message with the keys alone that OpenAI has documented; of an answer in sound, its id."""
    left = {key: value for key, value in wire.items() if key in _OPENAI_TAKES}
    if isinstance(audio := left.get("audio"), Mapping) and "id" in audio:
        left["audio"] = {"id": audio["id"]}
    return left


def _put_in(wire: dict[str, object], rules: ProviderRules) -> None:
    """Put in what a call has to have beside it and has not: another model made it, or it was cut away."""
    if rules.wants_reasoning and not rules.wants_signatures and not wire.get("reasoning_content"):
        beside = wire.get("provider_specific_fields")
        reasoning = beside.get("reasoning_content") if isinstance(beside, Mapping) else None
        wire["reasoning_content"] = reasoning or _NO_REASONING
    if rules.wants_signatures:
        first = cast("list[dict[str, object]]", wire["tool_calls"])[0]
        if not (_SIGNATURE in str(first["id"]) or _is_signed(wire) or _is_signed(first)):
            first["extra_content"] = _NO_SIGNATURE


def _is_signed(fields: Mapping[str, object]) -> bool:
    """True if a signature stands beside what a model has said, or on a call of it."""
    function = fields.get("function")
    beside = [fields.get("extra_content"), fields.get("provider_specific_fields")]
    beside += [function.get("provider_specific_fields")] if isinstance(function, Mapping) else []
    return any("thought_signature" in json_text(value) for value in beside if isinstance(value, Mapping))


def _in_own_shape(message: Message, wire: dict[str, object]) -> dict[str, object]:
    """A message under its own role, with its call in OpenAI's first shape if it came in that."""
    if OWN_ROLE in message:
        wire["role"] = message.get(OWN_ROLE)
    if message.get(LEGACY):
        wire["role"] = "function"
        del wire["tool_call_id"]
    calls = tool_calls_of(message)
    if len(calls) == 1 and cast("dict[str, object]", calls[0]).get(LEGACY):
        function = calls[0]["function"]
        del wire["tool_calls"]
        wire["function_call"] = {
            "name": wire_name(function["name"]), "arguments": wire_arguments(function["arguments"])
        }  # fmt: skip
    return wire


def _openai_content(message: Message, dialect: _Dialect) -> list[Part] | None:
    from memory_service.messages.wire_parts import openai_part

    role = message["role"]
    parts = [openai_part(part, role, dialect.rules, extensions=dialect.extensions) for part in parts_of(message)]
    if not dialect.refusals:
        refused_values = (cast("Mapping[str, object]", part).get("type") == "refusal" for part in parts_of(message))
        parts = [
            text_part(text_of_part(part)) if part and is_refusal else part
            for part, is_refusal in zip(parts, refused_values, strict=True)
        ]
    return [part for part in parts if part is not None] or None


def _openai_call(call: ToolCall, dialect: _Dialect) -> dict[str, object]:
    function = call["function"]
    if dialect.own_kinds and OWN_CALL in call:
        return _call_of_kind(call, dialect.id_of(call["id"]))
    wire = {"name": wire_name(function["name"]), "arguments": wire_arguments(function["arguments"])}
    bare: dict[str, object] = {"id": dialect.id_of(call["id"]), "type": "function", "function": wire}
    if not (dialect.extensions or dialect.rules.wants_reasoning):
        return bare
    own = {key: value for key, value in call.items() if not key.startswith("_")}
    return {**own, **bare, "function": {**function, **wire}}


def _call_of_kind(call: ToolCall, call_id: str) -> dict[str, object]:
    """A call of another kind than a function as it came, with what was written for it since."""
    own = cast("dict[str, dict[str, object]]", cast("dict[str, object]", call)[OWN_CALL])
    kind, written_text = str(own.get("type")), call["function"]["arguments"]
    fields = own.get(kind)
    if isinstance(fields, dict) and isinstance(fields.get("input"), str) and fields["input"] != written_text:
        return {**own, "id": call_id, kind: {**fields, "input": written_text}}
    return {**own, "id": call_id}

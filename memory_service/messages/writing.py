"""Writing messages: the inner form in, what OpenAI, Anthropic, Mistral and litellm take out.

Invariants: pure; no message is changed in place; a list read from OpenAI goes back to OpenAI unchanged, one from
Anthropic to Anthropic up to a string being the same as one text block; thinking blocks go out byte-identical or not at
all; keys of ours and keys that begin with `_` never reach the wire. The order of messages is not this module's matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from memory_service.messages.opaque import LEGACY, OWN_CALL, OWN_ROLE
from memory_service.messages.shapes import (
    REASONING,
    Message,
    Part,
    ToolCall,
    anthropic_block,
    anthropic_id,
    arguments_of,
    is_blank,
    is_system,
    mistral_id,
    openai_id,
    openai_part,
    parts_of,
    text_of,
    text_of_part,
    text_part,
    tool_calls_of,
    wire_arguments,
    wire_name,
)

_OURS = frozenset({"block_order", "is_error", "interim"})
_BEYOND_OPENAI = frozenset({*REASONING, "cache_control"})
# Mistral refuses every other key. Source: mistral-common, its messages forbid what they do not name.
_MISTRAL_TAKES: dict[str, frozenset[str]] = {
    "assistant": frozenset({"role", "content", "tool_calls", "prefix"}),
    "tool": frozenset({"role", "content", "tool_call_id", "name"}),
}
_MISTRAL_TAKES_OF_OTHERS = frozenset({"role", "content"})
_REASONING_FAMILIES = ("deepseek", "kimi", "moonshot", "gemini", "glm-", "minimax", "mimo")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """Differences between the APIs that take OpenAI's shape.

    Attributes:
        id_of: The id that goes out for one of the log's.
        extensions: Whether keys beyond OpenAI's go out too.
        refusals: Whether a refusal is known; else it goes out as text.
        own_kinds: Whether roles and calls go back in the shape that they came in, known or not.
        reasoning: Whether reasoning goes back, and what a provider has put on a call.
    """

    id_of: Callable[[str], str]
    extensions: bool = False
    refusals: bool = False
    own_kinds: bool = False
    reasoning: bool = False


_OPENAI = _Dialect(id_of=openai_id, refusals=True, own_kinds=True)
_OPENAI_WITH_REASONING = replace(_OPENAI, reasoning=True)
_MISTRAL = _Dialect(id_of=mistral_id)
_LITELLM = _Dialect(id_of=str, extensions=True)


def wants_reasoning(model: str | None) -> bool:
    """True for models of OpenAI's shape that refuse a call of theirs without the reasoning or signature beside it.

    Sources: DeepSeek API, "Thinking Mode: tool calls"; Moonshot API, "Kimi K2 Thinking"; Gemini API, "Thought
    signatures".
    """
    name = (model or "").lower()
    return any(family in name for family in _REASONING_FAMILIES)


def to_openai(messages: Sequence[Message], *, reasoning: bool = False) -> list[dict[str, object]]:
    """Messages as OpenAI's chat API takes them.

    Args:
        messages: In an order that the API takes; `sessions.repair` sees to that.
        reasoning: Whether reasoning and what a provider has put on a call go back, too, see `wants_reasoning`.

    Returns:
        New messages; what OpenAI takes is in them unchanged.
    """
    dialect = _OPENAI_WITH_REASONING if reasoning else _OPENAI
    return [_openai_message(message, dialect) for message in messages]


def to_litellm(messages: Sequence[Message]) -> list[dict[str, object]]:
    """Messages in OpenAI's shape with what litellm translates for other providers.

    Thinking, cache marks, ids of any form (some hold Gemini's signatures), images in results, and what else a provider
    has put on a call stay; a refusal, which litellm leaves out, goes as text.
    """
    return [_openai_message(message, _LITELLM) for message in messages]


def to_mistral(messages: Sequence[Message]) -> list[dict[str, object]]:
    """Messages as Mistral's chat API takes them: OpenAI's, with ids of nine letters and digits, refusals as text."""
    return [_mistral_message(_openai_message(message, _MISTRAL)) for message in messages]


def _mistral_message(wire: dict[str, object]) -> dict[str, object]:
    role = "system" if wire["role"] == "developer" else str(wire["role"])
    takes = _MISTRAL_TAKES.get(role, _MISTRAL_TAKES_OF_OTHERS)
    return {**{key: value for key, value in wire.items() if key in takes}, "role": role}


def _openai_message(message: Message, dialect: _Dialect) -> dict[str, object]:
    private = _OURS if dialect.extensions else _OURS | _BEYOND_OPENAI
    if dialect.reasoning:
        private = private - {"reasoning_content"}
    wire = {key: value for key, value in message.items() if key not in private and not key.startswith("_")}
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
    return _in_own_shape(message, wire) if dialect.own_kinds else wire


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
    role = message["role"]
    parts = [openai_part(part, role, extensions=dialect.extensions) for part in parts_of(message)]
    if not dialect.refusals:
        refused = (cast("Mapping[str, object]", part).get("type") == "refusal" for part in parts_of(message))
        parts = [
            text_part(text_of_part(part)) if part and is_refusal else part
            for part, is_refusal in zip(parts, refused, strict=True)
        ]
    return [part for part in parts if part is not None] or None


def _openai_call(call: ToolCall, dialect: _Dialect) -> dict[str, object]:
    function = call["function"]
    if dialect.own_kinds and OWN_CALL in call:
        return _call_of_kind(call, dialect.id_of(call["id"]))
    wire = {"name": wire_name(function["name"]), "arguments": wire_arguments(function["arguments"])}
    bare: dict[str, object] = {"id": dialect.id_of(call["id"]), "type": "function", "function": wire}
    if not (dialect.extensions or dialect.reasoning):
        return bare
    return {**{key: value for key, value in call.items() if not key.startswith("_")}, **bare}


def _call_of_kind(call: ToolCall, call_id: str) -> dict[str, object]:
    """A call of another kind than a function as it came, with what was written for it since."""
    own = cast("dict[str, dict[str, object]]", cast("dict[str, object]", call)[OWN_CALL])
    kind, written = str(own.get("type")), call["function"]["arguments"]
    fields = own.get(kind)
    if isinstance(fields, dict) and isinstance(fields.get("input"), str) and fields["input"] != written:
        return {**own, "id": call_id, kind: {**fields, "input": written}}
    return {**own, "id": call_id}


def to_anthropic(messages: Sequence[Message]) -> tuple[str | list[Part], list[dict[str, object]]]:
    """Messages as Anthropic's API takes them.

    Args:
        messages: In an order that the API takes; `sessions.repair` sees to that.

    Returns:
        The system prompt, a string if it has one part and else text blocks, empty if there is none; and the
        messages, user and assistant in turn: results of calls and what the user then says share one message.
    """
    system = [part for message in messages if is_system(message) for part in _anthropic_content(message)]
    turns: list[dict[str, object]] = []
    for message in messages:
        blocks = [] if is_system(message) else _anthropic_blocks(message)
        role = "assistant" if message["role"] == "assistant" else "user"
        if blocks and turns and turns[-1]["role"] == role:
            cast("list[object]", turns[-1]["content"]).extend(blocks)
        elif blocks:
            turns.append({"role": role, "content": blocks})
    plain = len(system) < 2 and all(len(part) == 2 for part in system)
    return "".join(map(text_of_part, system)) if plain else system, turns


def _anthropic_blocks(message: Message) -> list[object]:
    content = _anthropic_content(message)
    match message["role"]:
        case "assistant":
            return [*_ordered(message, content), *map(_tool_use, tool_calls_of(message))]
        case "tool":
            return [_tool_result(message, content)]
        case _:
            return [*content]


def _anthropic_content(message: Message) -> list[Part]:
    """The content as blocks; Anthropic refuses blank text."""
    parts = parts_of(message) or [text_part(text_of(message))]
    return [anthropic_block(part, message["role"]) for part in parts if not is_blank(part)]


def _ordered(message: Message, content: list[Part]) -> list[Part]:
    """Thinking and content, in the order in which they came if that is known and nothing was cut since."""
    # What was never signed came from another provider; Anthropic refuses it.
    thinking = [block for block in message.get("thinking_blocks", []) if block.get("signature") or block.get("data")]
    order = message.get("block_order", [])
    whole = sorted(order, reverse=True) == ["thinking"] * len(thinking) + ["content"] * len(content)
    # Anthropic takes a turn that begins with thinking and ends with something else.
    if not thinking or not whole or order[0] != "thinking" or not (order[-1] == "content" or tool_calls_of(message)):
        return thinking + content
    waiting = {"thinking": iter(thinking), "content": iter(content)}
    return [next(waiting[kind]) for kind in order]


def _tool_use(call: ToolCall) -> dict[str, object]:
    rest = {key: value for key, value in call.items() if key in ("cache_control", "caller")}
    name = wire_name(call["function"]["name"])
    return {"type": "tool_use", "id": anthropic_id(call["id"]), "name": name, "input": arguments_of(call), **rest}


def _tool_result(message: Message, content: list[Part]) -> dict[str, object]:
    rest = {key: value for key, value in message.items() if key in ("is_error", "cache_control")}
    block: dict[str, object] = {"type": "tool_result", "tool_use_id": anthropic_id(message.get("tool_call_id", ""))}
    return {**block, **({"content": content} if content else {}), **rest}

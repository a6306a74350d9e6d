"""Messages in Anthropic's shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from memory_service.messages.shapes import (
    Message,
    Part,
    ToolCall,
    anthropic_id,
    arguments_of,
    is_blank,
    is_system,
    parts_of,
    text_of,
    text_of_part,
    text_part,
    tool_calls_of,
    wire_name,
)


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
            return [*_order_content(message, content), *map(_tool_use, tool_calls_of(message))]
        case "tool":
            return [_tool_result(message, content)]
        case _:
            return [*content]


def _anthropic_content(message: Message) -> list[Part]:
    """The content as blocks; Anthropic refuses blank text."""
    from memory_service.messages.wire_parts import anthropic_block

    parts = parts_of(message) or [text_part(text_of(message))]
    blocks = [anthropic_block(part, message["role"]) for part in parts if not is_blank(part)]
    return [block for block in blocks if block is not None]


def _order_content(message: Message, content: list[Part]) -> list[Part]:
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

"""Reading messages: OpenAI's and Anthropic's shapes in, the inner form out.

Invariants: pure; what came is not changed; what the inner form can hold stays as it came, valid on a wire or not; an
error names the message and the field and never holds their text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import cast, get_args

from memory_service.errors import InvalidRequest, TooLarge
from memory_service.messages.shapes import (
    THINKING,
    Message,
    Part,
    Role,
    ToolCall,
    is_known,
    json_text,
    text_of,
    tool_calls_of,
)

MAX_MESSAGES = 10_000
# A million tokens: more than a model takes, and seconds of work. Source: 15.9 million took 14 s (our measurement).
MAX_MESSAGE_CHARS = 4_000_000
MAX_PARTS = 1_000
_MAX_CALLS = 256
MAX_ID_CHARS = 4_096  # litellm puts Gemini's thought signatures into ids

_ROLES: tuple[str, ...] = get_args(Role)
# What Anthropic wraps around the message of an answer; callers append the whole.
_ENVELOPE = frozenset({"id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container"})


def read_messages(raw: Sequence[object]) -> list[Message]:
    """Reads messages of OpenAI's or Anthropic's shape, mixed as they come.

    Args:
        raw: Decoded JSON. An Anthropic system prompt is a message with the role `system`.

    Returns:
        The messages in the inner form. An Anthropic user message with tool results becomes one message for each
        result, in their order, and a user message with the rest; every other message becomes one.

    Raises:
        InvalidRequest: if a message is of neither shape.
        TooLarge: if there are more messages, parts or calls than one request may hold.
    """
    if len(raw) > MAX_MESSAGES:
        raise TooLarge(f"{len(raw)} messages are over the limit of {MAX_MESSAGES}. Send them in several requests.")
    return list(chain.from_iterable(_read_message(item, f"messages[{index}]") for index, item in enumerate(raw)))


def read_sent(raw: Sequence[object], *, most_chars: int | None = None) -> list[Message]:
    """Read messages that a caller sends now, within size limits that keep the work bounded.

    Args:
        raw: See `read_messages`.
        most_chars: How long all of them may be together.

    Raises:
        InvalidRequest: if a message is of neither shape.
        TooLarge: if there are too many, or there is too much in one or in all of them.
    """
    messages = read_messages(raw)
    sizes = [_text_chars(message) for message in messages]
    if (longest := max(sizes, default=0)) > MAX_MESSAGE_CHARS:
        raise TooLarge(
            f"A message has {longest:,} characters of text, more than {MAX_MESSAGE_CHARS:,}. "
            "Put such a text into a file, and send the part that counts."
        )
    if most_chars is not None and sum(sizes) > most_chars:
        raise TooLarge(
            f"The messages have {sum(sizes):,} characters of text, more than {most_chars:,}. "
            "Send fewer at once, or append them to a session."
        )
    return messages


def _text_chars(message: Message) -> int:
    """Number of text characters in a message; media do not count."""
    calls = tool_calls_of(message)
    return len(text_of(message)) + sum(len(call["function"]["arguments"]) for call in calls)


def _read_message(item: object, at: str) -> Iterator[Message]:
    fields = _mapping(item, at)
    role = fields.get("role")
    _check(isinstance(role, str) and role in _ROLES, f"{at}.role", f"one of {', '.join(_ROLES)}")
    wrapped = fields.get("type") == "message"
    message = cast(Message, {key: value for key, value in fields.items() if not (wrapped and key in _ENVELOPE)})
    for key in ("name", "reasoning_content"):
        _check(fields.get(key) is None or isinstance(fields[key], str), f"{at}.{key}", "text")
    for key in ("is_error", "interim"):
        _check(fields.get(key) is None or isinstance(fields[key], bool), f"{at}.{key}", "true or false")
    order = fields.get("block_order", [])
    _check(isinstance(order, list) and all(isinstance(kind, str) for kind in order), f"{at}.block_order", "texts")
    _check(not fields.get("tool_calls") or role == "assistant", f"{at}.tool_calls", "an assistant message")
    parts = _read_content(fields.get("content"), message["role"], f"{at}.content")
    match role:
        case "assistant":
            yield _read_assistant(message, parts, at)
        case "tool":
            _check_id(fields.get("tool_call_id"), f"{at}.tool_call_id")
            yield message
        case "user" if any(part["type"] == "tool_result" for part in parts):
            yield from _split_results(message, parts)
        case _:
            yield message


def _read_content(content: object, role: Role, at: str) -> list[Part]:
    """Checks content; returns its parts, of which a string has none."""
    if isinstance(content, str) or (content is None and role in ("assistant", "tool")):
        return []
    _check(isinstance(content, list), at, "text or a list of parts")
    parts = cast("list[object]", content)
    if len(parts) > MAX_PARTS:
        raise TooLarge(f"{at}: {len(parts)} parts are over the limit of {MAX_PARTS}. Split the message.")
    for index, part in enumerate(parts):
        _check_part(part, role, f"{at}[{index}]")
    return cast("list[Part]", parts)


# Fields that a part of a type must have.
_FIELDS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "refusal": {"refusal": str},
    "image_url": {"image_url": Mapping},
    "input_audio": {"input_audio": Mapping},
    "file": {"file": Mapping},
    "image": {"source": Mapping},
    "document": {"source": Mapping},
    "thinking": {"thinking": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"name": str, "input": Mapping},
}
_KINDS: dict[type, str] = {str: "text", Mapping: "an object"}
# Where a part of a type may stand; others may stand anywhere.
_PLACES: dict[str, Role] = {
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_use": "assistant",
    "refusal": "assistant",
    "tool_result": "user",
}


def _check_part(item: object, role: Role, at: str) -> None:
    part = _mapping(item, at)
    kind = part.get("type")
    _check(isinstance(kind, str) and is_known(kind), f"{at}.type", "a type that OpenAI or Anthropic has")
    kind = cast(str, kind)
    _check(_PLACES.get(kind, role) == role, f"{at}.type", f"a part that may stand in a message of the role {role}")
    for field, wanted in _FIELDS.get(kind, {}).items():
        _check(isinstance(part.get(field), wanted), f"{at}.{field}", _KINDS[wanted])
    if kind == "tool_use":
        _check_id(part.get("id"), f"{at}.id")
    if kind == "tool_result":
        _check_id(part.get("tool_use_id"), f"{at}.tool_use_id")
        _read_content(part.get("content"), "tool", f"{at}.content")


def _read_assistant(message: Message, parts: list[Part], at: str) -> Message:
    """An assistant message, its blocks sorted into thinking, content and calls."""
    calls = _read_calls(message.get("tool_calls"), f"{at}.tool_calls")
    thinking = _read_thinking(message.get("thinking_blocks"), f"{at}.thinking_blocks")
    read = cast("dict[str, object]", {**message})
    if any(part["type"] in THINKING or part["type"] == "tool_use" for part in parts):
        read |= _sorted_blocks(parts, calls, thinking, f"{at}.content")
    else:
        read |= {"tool_calls": calls, "thinking_blocks": thinking}
    # A list that is empty says nothing, and OpenAI refuses it.
    for key in ("tool_calls", "thinking_blocks"):
        if not read[key]:
            del read[key]
    return cast(Message, read)


def _sorted_blocks(parts: list[Part], calls: list[ToolCall], thinking: list[Part], at: str) -> dict[str, object]:
    rest = [part for part in parts if part["type"] not in THINKING and part["type"] != "tool_use"]
    order = ["thinking" if part["type"] in THINKING else "content" for part in parts if part["type"] != "tool_use"]
    read: dict[str, object] = {
        "content": rest or None,
        "tool_calls": calls
        + [_call_of(cast("dict[str, object]", part), at) for part in parts if part["type"] == "tool_use"],
        "thinking_blocks": thinking + [part for part in parts if part["type"] in THINKING],
    }
    return read if order == sorted(order, reverse=True) else {**read, "block_order": order}


def _read_thinking(value: object, at: str) -> list[Part]:
    _check(value is None or isinstance(value, list), at, "a list")
    blocks = cast("list[Part]", value or [])
    for index, block in enumerate(blocks):
        _check_part(block, "assistant", f"{at}[{index}]")
        _check(block["type"] in THINKING, f"{at}[{index}].type", "thinking or redacted_thinking")
    return blocks


def _read_calls(value: object, at: str) -> list[ToolCall]:
    _check(value is None or isinstance(value, list), at, "a list")
    calls = cast("list[object]", value or [])
    if len(calls) > _MAX_CALLS:
        raise TooLarge(f"{at}: {len(calls)} calls are over the limit of {_MAX_CALLS}.")
    return [_read_call(call, f"{at}[{index}]") for index, call in enumerate(calls)]


def _read_call(value: object, at: str) -> ToolCall:
    call = _mapping(value, at)
    function = _mapping(call.get("function"), f"{at}.function")
    _check_id(call.get("id"), f"{at}.id")
    # Mistral's and Ollama's clients leave the type out, and the latter writes arguments as an object.
    _check(call.get("type") in (None, "function"), f"{at}.type", "function")
    _check(isinstance(function.get("name"), str), f"{at}.function.name", "text")
    arguments = function.get("arguments", "")
    _check(isinstance(arguments, str | Mapping), f"{at}.function.arguments", "JSON as text")
    written = arguments if isinstance(arguments, str) else _written(arguments, f"{at}.function.arguments")
    if call.get("type") == "function" and function.get("arguments") == written:
        return cast(ToolCall, call)
    return cast(ToolCall, {**call, "type": "function", "function": {**function, "arguments": written}})


def _call_of(block: dict[str, object], at: str) -> ToolCall:
    function = {"name": block["name"], "arguments": _written(block["input"], at)}
    rest = {key: value for key, value in block.items() if key not in ("type", "id", "name", "input")}
    return cast(ToolCall, {"id": block["id"], "type": "function", "function": function, **rest})


def _written(arguments: object, at: str) -> str:
    try:
        return json_text(arguments)
    except (RecursionError, TypeError, ValueError) as error:
        raise InvalidRequest(f"{at} holds arguments that are no JSON, or too deep. Send them as text.") from error


def _split_results(message: Message, parts: list[Part]) -> Iterator[Message]:
    for part in parts:
        if part["type"] == "tool_result":
            fields = {key: value for key, value in part.items() if key not in ("type", "tool_use_id", "content")}
            content = part.get("content", "")
            result = {"role": "tool", "tool_call_id": part.get("tool_use_id"), "content": content, **fields}
            yield cast(Message, result)
    rest = [part for part in parts if part["type"] != "tool_result"]
    if rest:
        yield cast(Message, {**message, "content": rest})


def _mapping(value: object, at: str) -> dict[str, object]:
    _check(isinstance(value, Mapping), at, "an object")
    return cast("dict[str, object]", value)


def _check_id(value: object, at: str) -> None:
    valid = isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARS
    _check(valid, at, f"an id of 1 to {MAX_ID_CHARS} characters")


def _check(valid: bool, at: str, needed: str) -> None:
    if not valid:
        raise InvalidRequest(f"{at} cannot be used: {needed} is needed there, as OpenAI or Anthropic has it.")

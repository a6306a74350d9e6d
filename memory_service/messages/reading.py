"""Reading messages: OpenAI's and Anthropic's shapes in, the inner form out.

Parts, calls and roles that neither side knows are carried, see `opaque`; so is everything where nothing is refused: in
what a log has, and in what a client sends to its provider. What a caller of ours sends is refused where a part that is
known has not the fields that it must have.

Invariants: pure; what came is not changed; what the inner form can hold stays as it came, valid on a wire or not; an
error names the message and the field and never holds their text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import cast, get_args

from memory_service.errors import InvalidRequest, TooLarge
from memory_service.messages.opaque import LEGACY, OWN_CALL, OWN_ROLE, wrap_value
from memory_service.messages.shapes import (
    THINKING,
    Message,
    Part,
    Role,
    ToolCall,
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
_RARE = frozenset({"name", "reasoning_content", "is_error", "interim", "block_order"})
_ENVELOPE = frozenset({"id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container"})


def read_messages(raw: Sequence[object], *, strict: bool = True) -> list[Message]:
    """Reads messages of OpenAI's or Anthropic's shape, mixed as they come.

    Args:
        raw: Decoded JSON. An Anthropic system prompt is a message with the role `system`.
        strict: Whether what is malformed is refused, and not carried as it came.

    Returns:
        The messages in the inner form. An Anthropic user message with tool results becomes one message for each
        result, in their order, and a user message with the rest; every other message becomes one.

    Raises:
        InvalidRequest: if what is malformed is refused, and something is.
        TooLarge: if there are more messages, parts or calls than one request may hold.
    """
    if len(raw) > MAX_MESSAGES:
        raise TooLarge(f"{len(raw)} messages are over the limit of {MAX_MESSAGES}. Send them in several requests.")
    read = _read_message if strict else _carried_message
    return list(chain.from_iterable(read(item, f"messages[{index}]") for index, item in enumerate(raw)))


def read_sent(raw: Sequence[object], *, most_chars: int | None = None, strict: bool = True) -> list[Message]:
    """Read messages that a caller sends now, within size limits that keep the work bounded.

    Args:
        raw: See `read_messages`.
        most_chars: How long all of them may be together.
        strict: See `read_messages`.

    Raises:
        InvalidRequest: if a message is of neither shape.
        TooLarge: if there are too many, or there is too much in one or in all of them.
    """
    messages = read_messages(raw, strict=strict)
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


def _carried_message(item: object, at: str) -> list[Message]:
    """The messages of an item, whatever it is."""
    try:
        return list(_read_message(item, at, strict=False))
    except InvalidRequest:
        fields = item if isinstance(item, Mapping) else {}
        role = fields.get("role")
        # A result without its call, or calls that cannot be read, are nobody's words.
        own = {"role": role} if role in ("user", "assistant", "system", "developer") else _stand_in(role)
        return [cast(Message, {**own, "content": [wrap_value(fields.get("content", item))]})]


def _stand_in(role: object) -> dict[str, object]:
    """The role that one which is not known stands under: never that of the user, whose words count most."""
    return {"role": "assistant", OWN_ROLE: role}


def _read_message(item: object, at: str, *, strict: bool = True) -> Iterator[Message]:
    fields = _mapping(item, at)
    role = fields.get("role")
    _check(isinstance(role, str) and bool(role), f"{at}.role", f"one of {', '.join(_ROLES)}")
    wraps = fields.get("type") == "message"
    message = cast(Message, {key: value for key, value in fields.items() if not (wraps and key in _ENVELOPE)})
    if role == "function":
        message = _function_result(message)
    elif role not in _ROLES:
        message = cast(Message, {**message, **_stand_in(role)})
    message = _with_usable_fields(message, at, strict=strict)
    parts = _read_content(message.get("content"), message["role"], f"{at}.content", strict=strict)
    if parts and parts != message.get("content"):
        message = cast(Message, {**message, "content": parts})
    match message["role"]:
        case "assistant":
            yield _read_assistant(message, parts, at, strict=strict)
        case "tool" if strict and message.get("tool_call_id") is not None:
            _check_id(message.get("tool_call_id"), f"{at}.tool_call_id")
            yield message
        case "tool":
            yield cast(Message, {**message, "tool_call_id": _id_of(message.get("tool_call_id"))})
        case "user" if any(part["type"] == "tool_result" for part in parts):
            yield from _split_results(message, parts)
        case _:
            yield message


def _with_usable_fields(message: Message, at: str, *, strict: bool) -> Message:
    """A message whose fields are what the inner form has them for; where nothing is refused, without the others."""
    fields = cast("dict[str, object]", message)
    if _RARE.isdisjoint(fields) and (message["role"] == "assistant" or not fields.get("tool_calls")):
        return message
    order, calls = fields.get("block_order", []), fields.get("tool_calls")
    faults = {
        **{key: "text" for key in ("name", "reasoning_content") if not isinstance(fields.get(key), str | None)},
        **{key: "true or false" for key in ("is_error", "interim") if not isinstance(fields.get(key), bool | None)},
    }
    if not (isinstance(order, list) and all(isinstance(kind, str) for kind in order)):
        faults["block_order"] = "texts"
    if calls and message["role"] != "assistant":
        faults["tool_calls"] = "an assistant message"
    for key, needed_text in faults.items():
        _check(not strict, f"{at}.{key}", needed_text)
    return cast(Message, {key: value for key, value in fields.items() if key not in faults}) if faults else message


def _id_of(value: object) -> str:
    """An id, whatever came as one."""
    return value if isinstance(value, str) else "" if value is None else json_text(value)


def _read_content(content: object, role: Role, at: str, *, strict: bool) -> list[Part]:
    """Checks content; returns its parts, of which a string has none."""
    if isinstance(content, str) or (content is None and role in ("assistant", "tool")):
        return []
    if not strict and not isinstance(content, list):
        return [cast(Part, wrap_value(content))]
    _check(isinstance(content, list), at, "text or a list of parts")
    parts = cast("list[object]", content)
    if len(parts) > MAX_PARTS:
        raise TooLarge(f"{at}: {len(parts)} parts are over the limit of {MAX_PARTS}. Split the message.")
    return [_read_part(part, role, f"{at}[{index}]", strict=strict) for index, part in enumerate(parts)]


def _read_part(item: object, role: Role, at: str, *, strict: bool) -> Part:
    """A part as it came; wrapped where it cannot be used and nothing is refused."""
    if _is_of_others(item, role):
        return cast(Part, wrap_value(item))
    try:
        _check_part(item, role, at, strict=strict)
    except InvalidRequest:
        if strict:
            raise
        return cast(Part, wrap_value(item))
    part = cast(Part, item)
    if part["type"] == "tool_result" and part.get("content") is not None:
        content = _read_content(part["content"], "tool", f"{at}.content", strict=strict)
        return part if not content or content == part["content"] else {**part, "content": content}
    return part


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
    "tool_use": {"name": str},
}
# Fields that a part of a type may leave out.
_MAYBE: dict[str, dict[str, type]] = {"tool_use": {"input": Mapping}}
_KINDS: dict[type, str] = {str: "text", Mapping: "an object"}
# Where a part of a type may stand; others may stand anywhere.
_PLACES: dict[str, Role] = {
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_use": "assistant",
    "refusal": "assistant",
    "tool_result": "user",
}


# The same types as other providers write them; what these take is carried as it came. Source: Mistral API reference,
# "ContentChunk".
_FIELDS_OF_OTHERS: dict[str, tuple[str, type]] = {
    "image_url": ("image_url", str),
    "thinking": ("thinking", list),
    "input_audio": ("input_audio", str),
    "file": ("file_id", str),
}


def _is_of_others(item: object, role: Role) -> bool:
    """True for a part of a known type in the form of a provider that is neither OpenAI nor Anthropic."""
    kind = item.get("type") if isinstance(item, Mapping) else None
    if not isinstance(item, Mapping) or not isinstance(kind, str) or _PLACES.get(kind, role) != role:
        return False
    field, form = _FIELDS_OF_OTHERS.get(kind, ("", str))
    return isinstance(item.get(field), form)


def _check_part(item: object, role: Role, at: str, *, strict: bool = True) -> None:
    part = _mapping(item, at)
    kind = part.get("type")
    _check(isinstance(kind, str) and bool(kind), f"{at}.type", "a type that OpenAI or Anthropic has")
    kind = cast(str, kind)
    _check(_PLACES.get(kind, role) == role, f"{at}.type", f"a part that may stand in a message of the role {role}")
    for field, wanted_value in _FIELDS.get(kind, {}).items():
        _check(isinstance(part.get(field), wanted_value), f"{at}.{field}", _KINDS[wanted_value])
    for field, wanted_value in _MAYBE.get(kind, {}).items():
        _check(not strict or isinstance(part.get(field) or {}, wanted_value), f"{at}.{field}", _KINDS[wanted_value])
    if kind == "tool_use":
        _check_id(part.get("id"), f"{at}.id")
    if kind == "tool_result":
        _check_id(part.get("tool_use_id"), f"{at}.tool_use_id")


def _read_assistant(message: Message, parts: list[Part], at: str, *, strict: bool) -> Message:
    """An assistant message, its blocks sorted into thinking, content and calls."""
    calls = _read_calls(message.get("tool_calls"), f"{at}.tool_calls", strict=strict)
    thinking = _read_thinking(message.get("thinking_blocks"), f"{at}.thinking_blocks")
    read = cast("dict[str, object]", {**message})
    if not calls and isinstance(function := read.get("function_call"), Mapping):
        calls = [_function_call(function, f"{at}.function_call")]
        del read["function_call"]
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


def _read_calls(value: object, at: str, *, strict: bool) -> list[ToolCall]:
    _check(value is None or isinstance(value, list), at, "a list")
    calls = cast("list[object]", value or [])
    if len(calls) > _MAX_CALLS:
        raise TooLarge(f"{at}: {len(calls)} calls are over the limit of {_MAX_CALLS}.")
    return [_read_call(call, f"{at}[{index}]", strict=strict) for index, call in enumerate(calls)]


def _function_call(function: Mapping[str, object], at: str) -> ToolCall:
    """A call in OpenAI's first shape, where calls have no ids: a result belongs to the last one of its name."""
    name, arguments = function.get("name"), function.get("arguments", "")
    _check(isinstance(name, str), f"{at}.name", "text")
    written_arguments = arguments if isinstance(arguments, str) else _arguments_text(arguments, f"{at}.arguments")
    called_fields = {"name": name, "arguments": written_arguments}
    return cast(ToolCall, {"id": f"function_{name}", "type": "function", "function": called_fields, LEGACY: True})


def _function_result(message: Message) -> Message:
    content = message.get("content") or ""
    own = {"role": "tool", "tool_call_id": f"function_{message.get('name') or ''}", "content": content, LEGACY: True}
    return cast(Message, {**message, **own})


def _call_of_kind(call: dict[str, object], kind: str, at: str) -> ToolCall:
    """A call of another kind than a function, which stands beside the function that it is read as."""
    own = call.get(kind)
    fields = own if isinstance(own, Mapping) else {key: call[key] for key in call if key not in ("id", "type")}
    name, given_input = fields.get("name"), fields.get("input", fields.get("arguments", fields))
    arguments_text = given_input if isinstance(given_input, str) else _arguments_text(given_input, at)
    function = {"name": name if isinstance(name, str) and name else kind, "arguments": arguments_text}
    return cast(ToolCall, {"id": _id_of(call.get("id")), "type": "function", "function": function, OWN_CALL: call})


def _read_call(value: object, at: str, *, strict: bool) -> ToolCall:
    try:
        return _checked_call(_mapping(value, at), at)
    except InvalidRequest:
        if strict or not isinstance(value, Mapping):
            raise
        return _call_of_kind(dict(value), str(value.get("type") or "call"), at)


def _checked_call(call: dict[str, object], at: str) -> ToolCall:
    if call.get("id") is None:
        # Ollama's calls have none, and Mistral's and Gemini's may lack one.
        call = {**call, "id": ""}
    _check_id(call["id"], f"{at}.id")
    kind = call.get("type")
    if isinstance(kind, str) and kind != "function":
        return _call_of_kind(call, kind, f"{at}.{kind}")
    # Mistral's and Ollama's clients leave the type out, and the latter writes arguments as an object.
    _check(kind in (None, "function"), f"{at}.type", "function")
    function = _mapping(call.get("function"), f"{at}.function")
    _check(isinstance(function.get("name"), str), f"{at}.function.name", "text")
    arguments = "" if function.get("arguments") is None else function["arguments"]
    _check(isinstance(arguments, str | Mapping), f"{at}.function.arguments", "JSON as text")
    text = arguments if isinstance(arguments, str) else _arguments_text(arguments, f"{at}.function.arguments")
    if call.get("type") == "function" and function.get("arguments") == text:
        return cast(ToolCall, call)
    return cast(ToolCall, {**call, "type": "function", "function": {**function, "arguments": text}})


def _call_of(block: dict[str, object], at: str) -> ToolCall:
    given_value = {} if block.get("input") is None else block["input"]
    function = {
        "name": block["name"],
        "arguments": given_value if isinstance(given_value, str) else _arguments_text(given_value, at),
    }
    rest = {key: value for key, value in block.items() if key not in ("type", "id", "name", "input")}
    return cast(ToolCall, {"id": block["id"], "type": "function", "function": function, **rest})


def _arguments_text(arguments: object, at: str) -> str:
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
    # An empty one gets an id when it goes out.
    valid = isinstance(value, str) and len(value) <= MAX_ID_CHARS
    _check(valid, at, f"an id of at most {MAX_ID_CHARS} characters")


def _check(valid: bool, at: str, needed_text: str) -> None:
    if not valid:
        raise InvalidRequest(f"{at} cannot be used: {needed_text} is needed there, as OpenAI or Anthropic has it.")

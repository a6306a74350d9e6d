"""Items of OpenAI's Responses as messages of a session, and back.

A message of the assistant stands for several items: reasoning, the words behind it, the calls behind these, and what
ran at the provider. Where the next message begins depends on the items alone, never on how they were sent. A message
says what its items say; what it cannot say (ids, sealed reasoning, items of other kinds) stands beside it in `_items`,
without the words and arguments that the message has.

Invariants: pure; items that were read go back as they came, as long as nobody changed the message; where somebody did,
the message counts; no call parts from its output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memory_service.errors import InvalidRequest
from memory_service.messages.opaque import WRAPPED, opaque_label, unwrap_part
from memory_service.messages.shapes import Message
from memory_service.messages.writing import to_openai

Item = dict[str, Any]
# Keys of a message that begin so never reach a provider.
_ITEMS = "_items"
# An item that asks for a compaction.
TRIGGER = "compaction_trigger"
# The field of a part that holds its text, by type.
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_MEDIA = {"input_image": "image_url", "computer_screenshot": "image_url", "input_file": "file"}
# The field of a call that holds what the model wrote; other calls are arguments as a whole.
_WRITTEN = {"function_call": "arguments", "custom_tool_call": "input"}
# Outputs whose text may be another; those of other tools stay as they are.
_TEXT_OUTPUTS = {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}
_FRAME = {"type", "id", "call_id", "status"}
_ROLES = ("user", "assistant", "system", "developer")


def messages_of_items(items: Sequence[object]) -> list[Item]:
    """The messages that items are; what is of no kind that is known is carried, and a label stands for it.

    Raises:
        InvalidRequest: An item is no object, or asks for a compaction where it cannot.
    """
    groups = list[list[Item]]()
    for at, item in enumerate(items):
        checked_item = _check_item(item, at)
        if groups and _belongs_to(groups[-1], checked_item):
            groups[-1].append(checked_item)
        else:
            groups.append([checked_item])
    return [_turn(group) if _is_given_by_model(group[0]) else _single(group[0]) for group in groups]


def items_of_messages(messages: Sequence[Mapping[str, Any]]) -> list[Item]:
    """The items that messages are."""
    return [item for message in messages for item in _items_of(message)]


def standalone(message: Message) -> dict[str, object]:
    """A message of the log as it can be sent to a provider that has forgotten it.

    Ids of words and calls go, since a provider looks them up, and so does reasoning that is not sealed into its item.
    """
    [plain] = to_openai([message])
    known_bare_items = _bare_items(message)
    if not known_bare_items:
        return plain
    kept_fields = {key: value for key, value in message.items() if key in (*plain, "reasoning_content")}
    return {**kept_fields, _ITEMS: [_without_id(item) for item in known_bare_items if _is_sealed(item)]}


# Kinds of items


def _check_item(item: object, at: int) -> Item:
    if not isinstance(item, dict):
        raise InvalidRequest(f"input[{at}] cannot be used: an item with all that it says is needed there.")
    if item.get("type") == TRIGGER:
        raise InvalidRequest(f"input[{at}] cannot be used: a {TRIGGER} has to be the final item, and the only one.")
    return item


def _is_words(item: Item) -> bool:
    """True for a message; one without a role is an item of another kind."""
    return (item.get("type") or "message") == "message" and isinstance(item.get("role"), str)


def _kind(item: Item) -> str:
    kind = item.get("type")
    return kind if isinstance(kind, str) else ""


def _is_output(item: Item) -> bool:
    return isinstance(item.get("call_id"), str) and _kind(item).endswith("_output")


def _is_call(item: Item) -> bool:
    return isinstance(item.get("call_id"), str) and not _is_words(item) and not _is_output(item)


def _is_given_by_model(item: Item) -> bool:
    if _is_words(item):
        return bool(item["role"] == "assistant")
    return not _is_output(item) and item.get("type") != "mcp_approval_response"


def _belongs_to(group: Sequence[Item], item: Item) -> bool:
    """True if an item goes on with the message of those before it: words begin a new one, and so does reasoning."""
    if not _is_given_by_model(group[0]) or not _is_given_by_model(item):
        return False
    begins = _is_words(item) or item.get("type") == "reasoning"
    return not (begins and any(_is_words(each_item) or _is_call(each_item) for each_item in group))


def _is_sealed(item: Item) -> bool:
    """True if an item can be sent without the provider's own store: reasoning needs its sealed content for that."""
    content = item.get("encrypted_content")
    # A blank stands in the note that takes the place of what was erased beside the log.
    return item.get("type") != "reasoning" or (isinstance(content, str) and bool(content) and " " not in content)


def _without_id(item: Item) -> Item:
    """Words, calls and reasoning without an id: a provider wants all of them with what they stood beside, or none."""
    goes = _is_words(item) or _is_call(item) or _is_output(item) or item.get("type") == "reasoning"
    return {key: value for key, value in item.items() if key != "id"} if goes else item


def _label(items: Sequence[Item]) -> str:
    """Text in place of items that have none of their own."""
    return " ".join(_item_label(item) for item in items if item.get("type") != "reasoning")


def _item_label(item: Item) -> str:
    return f"[{kind}]" if (kind := _kind(item)) else opaque_label(item)


# Reading


def _single(item: Item) -> Item:
    """The message of an item that did not come from the model."""
    if _is_output(item):
        message: Item = {"role": "tool", "tool_call_id": item["call_id"], "content": _output(item)}
    elif _is_words(item):
        message = {"role": item["role"], "content": _content(item.get("content"))}
    else:
        message = {"role": "user", "content": _label([item])}
    same = message["role"] in _ROLES and _items_of(message) == [item]
    return message if same else {**message, _ITEMS: [_bare(item)]}


def _turn(items: Sequence[Item]) -> Item:
    """The message of what the model gave."""
    parts = [part for item in items if _is_words(item) for part in _parts(item.get("content"))]
    calls = [_call(item) for item in items if _is_call(item)]
    message: Item = {"role": "assistant", "content": _content_of(parts) if parts else None}
    if calls:
        message["tool_calls"] = calls
    if not parts and not calls:
        message["content"] = _label(items)
    if any(item.get("type") == "reasoning" for item in items):
        message["reasoning_content"] = "\n".join(filter(None, map(_reasoning_text, items)))
    return message if _items_of(message) == items else {**message, _ITEMS: list(map(_bare, items))}


def _call(item: Item) -> Item:
    field = _WRITTEN.get(_kind(item))
    given_item = item.get(field) if field else _own_fields(item)
    json = given_item if isinstance(given_item, str) else _json(given_item)
    name = str(item.get("name") or "") if field else _kind(item) or "call"
    return {"id": item["call_id"], "type": "function", "function": {"name": name, "arguments": json}}


def _output(item: Item) -> str | list[Item]:
    """A tool's output as content."""
    output = item.get("output", _own_fields(item))
    if isinstance(output, str) or (_kind(item) in _TEXT_OUTPUTS and isinstance(output, list | None)):
        return _content(output)
    if isinstance(output, dict) and _kind(output) in _MEDIA:
        return [_part(output)]
    return _json(output)


def _content(content: object) -> str | list[Item]:
    return content if isinstance(content, str) else _content_of(_parts(content))


def _content_of(parts: list[Item]) -> str | list[Item]:
    """Parts as content: a text alone is itself."""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _parts(content: object) -> list[Item]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    given_content = content if isinstance(content, list) else [] if content is None else [content]
    return list(map(_part, given_content))


def _part(part: object) -> Item:
    given_value = part.get("type") if isinstance(part, dict) else None
    kind = given_value if isinstance(given_value, str) else ""
    if isinstance(part, dict) and kind in _TEXTS and isinstance(part.get(_TEXTS[kind]), str):
        field = _TEXTS[kind]
        return {"type": field, field: part[field]}
    if not isinstance(part, dict) or kind not in _MEDIA:
        return {"type": WRAPPED, "value": part}
    fields = {key: value for key, value in part.items() if key not in ("type", "image_url")}
    if isinstance(url := part.get("image_url"), str):
        fields = {"url": url, **fields}
    return {"type": _MEDIA[kind], _MEDIA[kind]: fields}


def _reasoning_text(item: Item) -> str:
    summary = item.get("summary") or item.get("content") if item.get("type") == "reasoning" else None
    parts = summary if isinstance(summary, list) else []
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def _own_fields(item: Item) -> Item:
    return {key: value for key, value in item.items() if key not in _FRAME}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# Writing


def _items_of(message: Mapping[str, Any]) -> list[Item]:
    known_bare_items, role, content = _bare_items(message), message["role"], message.get("content")
    if role == "assistant":
        return _turn_items(message, known_bare_items)
    [item] = known_bare_items if len(known_bare_items) == 1 else [Item()]
    kind = _kind(item)
    if item and not _field(item):
        return [item]
    items = _fill_items(known_bare_items, content)
    if items is not None and items:
        return items
    if role == "tool":
        output = content if isinstance(content, str) else _written_parts(content, "input_text")
        return [{"type": kind or "function_call_output", "call_id": message.get("tool_call_id"), "output": output}]
    return [_words(role, content, "input_text")]


def _turn_items(message: Mapping[str, Any], known_items: Sequence[Item]) -> list[Item]:
    content = message.get("content")
    calls = {call["id"]: call for call in message.get("tool_calls") or []}
    words = _fill_items([item for item in known_items if _is_words(item)], content)
    if words is None or (content and not words):
        is_label = bool(known_items) and content == _label(known_items)
        words = [] if is_label or not content else [_words("assistant", content, "output_text")]
    items = list[Item]()
    for item in known_items:
        if _is_words(item):
            items += [words.pop(0)] if words else []
        elif _is_call(item):
            call = calls.pop(item["call_id"], None)
            items += [_with_call_fields(item, call)] if call else []
        elif item.get("type") != "reasoning" or "reasoning_content" in message:
            items.append(item)
    return [*items, *words, *(_with_call_fields({"type": "function_call"}, call) for call in calls.values())]


def _with_call_fields(item: Item, call: Item) -> Item:
    """A call, whose bare item is known."""
    function = call["function"]
    field = _WRITTEN.get(_kind(item))
    if not field or (field in item and _json(item[field]) == function["arguments"]):
        return item
    return {"call_id": call["id"], "name": function["name"], **item, field: function["arguments"]}


def _words(role: str, content: Any, kind: str) -> Item:
    written_content = content if isinstance(content, str) else _written_parts(content, kind)
    return {"role": role, "content": written_content} if isinstance(written_content, str) else {
        "type": "message", "role": role, "content": written_content
    }  # fmt: skip


def _written_parts(content: Any, kind: str) -> list[Any]:
    return [_written_part(part, kind) for part in content or []]


def _written_part(part: Any, kind: str) -> Any:
    """A part as an item has it; one that is no part of a message is as it came."""
    match part:
        case {"type": "text", "text": str(text)}:
            return {"type": kind, "text": text}
        case {"type": "image_url", "image_url": {**image}}:
            url = {"image_url": image["url"]} if "url" in image else {}
            return {"type": "input_image", **url, **{key: value for key, value in image.items() if key != "url"}}
        case {"type": "file", "file": {**file}}:
            return {"type": "input_file", **file}
        case {}:
            return unwrap_part(part)
        case _:
            return part


# What a message does not say


def _bare_items(message: Mapping[str, Any]) -> list[Item]:
    known_value = message.get(_ITEMS)
    return [item for item in known_value if isinstance(item, dict)] if isinstance(known_value, list) else []


def _field(item: Item) -> str:
    """The field of an item that its message has as its content; empty where that is no text and no list of parts."""
    field = "content" if _is_words(item) else "output" if _kind(item) in _TEXT_OUTPUTS else ""
    return field if isinstance(item.get(field), str | list | None) else ""


def _bare(item: Item) -> Item:
    """An item without the words and arguments that its message has."""
    field = _WRITTEN.get(_kind(item)) if _is_call(item) else _field(item)
    if not field or field not in item:
        return item
    if isinstance(item[field], list) and not _is_call(item):
        return {**item, field: [_bare_part(part) for part in item[field]]}
    if not isinstance(item[field], str):
        return item
    return {key: value for key, value in item.items() if key != field}


def _bare_part(part: Any) -> Any:
    field = _field_of_text(part)
    return {key: value for key, value in part.items() if key != field} if field else part


def _field_of_text(part: object) -> str:
    """The field of a part that holds its text; empty for a part of another kind."""
    return _TEXTS.get(_kind(part), "") if isinstance(part, dict) else ""


def _fill_items(bare: Sequence[Item], content: str | Sequence[Item] | None) -> list[Item] | None:
    """Bare items with the parts of a content; None if it has become another one."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else [*(content or ())]
    items = list[Item]()
    for item in bare:
        field = _field(item)
        if not field:
            items.append(item)
            parts = parts[1:]
            continue
        slots = item.get(field, [{"type": "text"}])
        new_items = [_filled_part(part, slot) for part, slot in zip(parts, slots, strict=False)]
        if len(new_items) < len(slots) or None in new_items:
            return None
        items.append({**item, field: new_items if field in item else parts[0]["text"]})
        parts = parts[len(slots) :]
    return None if parts else items


def _filled_part(part: Item, bare: Item) -> Item | None:
    field = _field_of_text(bare)
    if not field:
        return None if part["type"] in _TEXTS else bare
    return {**bare, field: part[field]} if field in part else None

"""Internal form of a message: its type and parts, queries, changes, tool calls and commands.

The inner form is OpenAI's chat message, plus keys for what that cannot say: `thinking_blocks` and
`reasoning_content` (the names that litellm has for them), `block_order`, `is_error` and `interim`. A part of its
content is an OpenAI content part or an Anthropic content block, kept as it came; what the other side does not know is
translated only when it goes out, and a label stands for what cannot be translated.

Invariants: pure; no message and no part is changed in place; every function takes any message, valid on a wire or not;
a part that its own side takes in its place goes back unchanged. Of a tool call what an API takes passes through
unchanged, and what it refuses is always replaced by the same valid value, so that a call and its result stay a pair. A
command (`/compact`) is the whole message, with nothing but text in it; what merely quotes or names one is none.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Literal, Required, TypeAlias, TypedDict, cast

from memory_service.messages.opaque import opaque_label, unwrap_part

Role = Literal["system", "developer", "user", "assistant", "tool"]


class Part(TypedDict, total=False):
    """A part of content; what else it holds, such as `cache_control` or `citations`, rides along."""

    type: Required[str]
    text: str
    refusal: str
    image_url: dict[str, object]
    file: dict[str, object]
    source: dict[str, object]
    title: str | None
    content: str | list[Part]
    thinking: str
    signature: str
    data: str


MEDIA = frozenset({"image_url", "input_audio", "file", "image", "document", "container_upload"})
THINKING = frozenset({"thinking", "redacted_thinking"})
_KNOWN = MEDIA | THINKING | {"text", "refusal", "tool_use", "tool_result", "search_result", "compaction"}

# Parts that tell whose shape a message came in.
ANTHROPIC_ALONE = THINKING | {
    "image", "document", "search_result", "container_upload", "tool_use", "tool_result"
}  # fmt: skip


def is_known(kind: str) -> bool:
    """True if a part of this type belongs to either side; tools that run at the provider are known by their ending."""
    return kind in _KNOWN or kind.endswith(("_tool_use", "_tool_result"))


def text_part(text: str) -> Part:
    """A text as a part."""
    return {"type": "text", "text": text}


def text_of_part(part: Part) -> str:
    """Text of a part; empty for media, a label for what is not known."""
    match part["type"]:
        case "text":
            return part.get("text", "")
        case "refusal":
            return part.get("refusal", "")
        case "search_result" | "compaction":
            return _text_of_content(part.get("content"))
        case kind:
            return "" if is_known(kind) or is_thought(part) else opaque_label(part)


def is_blank(part: Part) -> bool:
    """True if a part is a text without text, or what a model thought."""
    return (part["type"] in ("text", "refusal") or is_thought(part)) and not text_of_part(part).strip()


def is_thought(part: Part) -> bool:
    """True if a part that was carried as it came is what a model thought, such as Mistral's chunks."""
    value = unwrap_part(part)
    kind = value.get("type") if value is not part and isinstance(value, Mapping) else None
    return isinstance(kind, str) and kind in THINKING


def _text_of_content(content: object) -> str:
    """The text of content within a part; it was never checked."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def arguments_object(arguments: str) -> dict[str, object]:
    """The arguments of a call as an object, whatever the model wrote.

    This is the one place that decides: nothing is an empty object; what is no JSON object, such as arguments that
    were cut off, goes out whole under the key `_raw`. The log keeps what the model wrote.
    """
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"_raw": arguments}


def wire_arguments(arguments: str) -> str:
    """The arguments of a call as valid JSON; unchanged if they are a JSON object."""
    value = arguments_object(arguments)
    return arguments if arguments.strip() and value != {"_raw": arguments} else json_text(value)


def json_text(value: object) -> str:
    """A value as JSON, as models write it."""
    return json.dumps(value, ensure_ascii=False)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON.")


def openai_id(call_id: str) -> str:
    """An id of at most 40 characters.

    Source: OpenAI API, error "string too long. Expected a string with maximum length 40" on `tool_call_id`.
    """
    return call_id if len(call_id) <= 40 else f"{call_id[:31]}_{_digest(call_id)}"


def anthropic_id(call_id: str) -> str:
    """An id of letters, digits, `_` and `-`; other providers use more. Source: Anthropic API, `tool_use.id`."""
    if re.fullmatch(r"[a-zA-Z0-9_-]+", call_id):
        return call_id
    return f"{re.sub(r'[^a-zA-Z0-9_-]', '_', call_id)}_{_digest(call_id)}"


def mistral_id(call_id: str) -> str:
    """An id of nine letters and digits. Source: mistral-common, MistralRequestValidatorV3."""
    if re.fullmatch(r"[a-zA-Z0-9]{9}", call_id):
        return call_id
    return _digest(call_id, size=9)[:9]


def wire_name(name: str) -> str:
    """The name of a function as every API takes it: letters, digits, `_` and `-`, at most 64.

    Source: OpenAI API reference, `function.name`; mistral-common has the same, Anthropic allows twice the length.
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def _digest(text: str, size: int = 4) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Function(TypedDict):
    """A called function, with the arguments as the model wrote them, valid JSON or not."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """A tool call of an assistant message."""

    id: str
    type: Literal["function"]
    function: Function


class Message(TypedDict, total=False):
    """A message in the internal form; other fields, such as `audio` or `annotations`, are carried along.

    Attributes:
        thinking_blocks: Anthropic's `thinking` and `redacted_thinking`, as they came.
        reasoning_content: The reasoning of models that speak OpenAI's shape.
        block_order: Where an Anthropic message thinks between its contents: the sequence of the two.
        is_error: Of a tool's result: the tool failed.
        interim: Of a tool's result: the tool still runs and will answer again.
    """

    role: Required[Role]
    content: str | list[Part] | None
    name: str
    refusal: str | None
    tool_calls: list[ToolCall]
    tool_call_id: str
    thinking_blocks: list[Part]
    reasoning_content: str
    block_order: list[str]
    is_error: bool
    interim: bool


# What holds a message together, and bytes.
_STRUCTURE = frozenset(
    {
        "role",
        "_role",
        "type",
        "id",
        "tool_call_id",
        "name",
        "media_type",
        "data",
        "image_url",
        "input_audio",
        "file_data",
    }
)
REASONING = ("thinking_blocks", "reasoning_content")


def parts_of(message: Message) -> list[Part]:
    """The content as parts; a string is one text part, nothing is none."""
    content = message.get("content")
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return content or []


def text_of(message: Message) -> str:
    """Text of a message, one part per line; a refusal counts, thinking and calls do not; see `text_of_part`."""
    content = message.get("content")
    if isinstance(content, str) and content:
        return content
    return "\n".join(filter(None, map(text_of_part, parts_of(message)))) or message.get("refusal") or ""


def own_text_of(message: Message) -> str:
    """Text of a message; of one of the user without what a host inserted: each part is judged by itself."""
    # Clients, which count messages too, have no indexer.
    from indexer.language import without_inserted

    if message["role"] != "user":
        return text_of(message)
    content = message.get("content")
    if isinstance(content, str):
        return without_inserted(content)
    own = (without_inserted(text_of_part(part)) for part in parts_of(message) if is_known(part["type"]))
    return "\n".join(filter(None, own)) or message.get("refusal") or ""


def tool_calls_of(message: Message) -> list[ToolCall]:
    """The calls of an assistant message; none for other roles."""
    return (message.get("tool_calls") or []) if message["role"] == "assistant" else []


def arguments_of(call: ToolCall) -> dict[str, object]:
    """The arguments of a call as an object, see `arguments_object`."""
    return arguments_object(call["function"]["arguments"])


def media_parts_of(message: Message) -> list[Part]:
    """Images, audio, documents and files, in either side's form."""
    return [part for part in parts_of(message) if part["type"] in MEDIA]


def is_tool_result(message: Message) -> bool:
    """True if a message is the result of a tool call."""
    return message["role"] == "tool"


def is_system(message: Message) -> bool:
    """True if a message instructs the model: a system or developer message."""
    return message["role"] in ("system", "developer")


def is_empty(message: Message) -> bool:
    """True if a message says and does nothing; thinking alone is nothing."""
    return (
        not tool_calls_of(message)
        and not (message.get("refusal") or message.get("audio") or message.get("function_call"))
        and all(map(is_blank, parts_of(message)))
    )


def user_message(text: str) -> Message:
    """A user message."""
    return {"role": "user", "content": text}


def tool_result(call_id: str, text: str) -> Message:
    """The result of a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def with_text(message: Message, text: str) -> Message:
    """Copy of a message with another text; its media follow the text."""
    media = media_parts_of(message)
    content: str | list[Part] = [*([text_part(text)] if text else []), *media] if media else text
    kept_fields = {key: value for key, value in message.items() if key not in ("refusal", "block_order")}
    return cast(Message, {**kept_fields, "content": content})


def with_texts(message: Message, change: Callable[[str], str]) -> Message:
    """Copy of a message with every text and call argument changed; the message itself if nothing changed."""
    strings = _map_strings(message, change)
    return message if strings == message else cast(Message, strings)


def _map_strings(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_strings(item, change) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in _STRUCTURE and isinstance(item, str | dict) else _map_strings(item, change)
            for key, item in value.items()
        }
    return value


def without_thinking(message: Message) -> Message:
    """Copy of a message without its thinking; the message itself if it has none."""
    dropped_keys = {*REASONING, "block_order"}
    if dropped_keys.isdisjoint(message):
        return message
    return cast(Message, {key: value for key, value in message.items() if key not in dropped_keys})


# What stands right behind a path or a longer name is another word; Chinese may follow without a blank.
_COMPACT = re.compile(r"\s*/compact(?![A-Za-z0-9_/.-])[\s:：,，]*(.*)", re.DOTALL)
# In the log, of an answer that was broken off: why. Keys that begin so never reach a model.
CUT = "_cut"
# How providers say that an answer was cut at its end.
_CUT = frozenset({"length", "max_tokens", "model_context_window_exceeded", "MAX_TOKENS"})


def compact_command(message: Message) -> str | None:
    """Instructions of a user's `/compact` command; None if the message is no such command."""
    if message["role"] != "user" or any(part["type"] != "text" for part in parts_of(message)):
        return None
    match = _COMPACT.fullmatch(text_of(message))
    return match[1].strip() if match else None


def was_cut(finish_reason: object) -> bool:
    """True if a provider's word for why an answer ended says that it was cut at its end."""
    return isinstance(finish_reason, str) and finish_reason in _CUT

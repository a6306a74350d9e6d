"""Owns how messages and usage become plain JSON, whatever package of a provider they come from. Pure.

Invariants: no package of a provider is imported; a message keeps every field that says something; what cannot be a
message is refused with the name of its type, never with its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from pydantic import ValidationError

from memory_service.errors import InvalidRequest
from memory_service.session_schemas import UsageReport

# As it goes over the wire of its provider.
WireMessage = dict[str, Any]

_REMEDY = 'Give one as {"role": "user", "content": "…"}, or a list of them.'


def messages_of(said: object) -> list[WireMessage]:
    """One message, or several in order, as JSON.

    Args:
        said: A mapping, an object of a provider's package, or a list of either.

    Raises:
        InvalidRequest: It is none.
    """
    if isinstance(said, Iterable) and not isinstance(said, str | bytes | Mapping) and not _is_object(said):
        return [message_of(each) for each in said]
    return [message_of(said)]


def message_of(said: object) -> WireMessage:
    """One message as JSON; fields that hold nothing are left out, but for its content.

    Raises:
        InvalidRequest: It is none.
    """
    try:
        found = plain(said)
    except RecursionError:
        raise InvalidRequest(f"A message is nested too deeply. {_REMEDY}") from None
    if not isinstance(found, dict):
        raise InvalidRequest(f"A message cannot be of the type {type(said).__name__}. {_REMEDY}")
    return {name: value for name, value in found.items() if value is not None or name == "content"}


def plain(value: object) -> object:
    """A value as JSON knows it: objects of packages become mappings, wherever they stand."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain(dump())
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(each) for each in value]
    return plain(vars(value)) if hasattr(value, "__dict__") and not callable(value) else value


def usage_report(usage: object) -> UsageReport | None:
    """What a provider counted; None if it is in no shape that is known."""
    if usage is None or isinstance(usage, UsageReport):
        return usage
    try:
        return UsageReport.model_validate(plain(usage))
    except (ValidationError, RecursionError):
        return None


def prompt_tokens(usage: UsageReport | None) -> int:
    """What the whole prompt took, cached or not; 0 if that is not known."""
    if usage is None:
        return 0
    if usage.prompt_tokens is not None:
        return usage.prompt_tokens
    whole = usage.input_tokens or 0
    if usage.input_tokens_details is not None:
        return whole
    read = usage.cache_read_input_tokens or usage.cache_read_tokens or 0
    return whole + read + (usage.cache_creation_input_tokens or usage.cache_write_tokens or 0)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, without its other parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in _TEXT_PARTS]
    return "".join(text for text in texts if isinstance(text, str))


def tool_calls_of(message: Mapping[str, Any]) -> list[WireMessage]:
    """The calls of tools in a message, in the shape of its provider."""
    content, calls = message.get("content"), message.get("tool_calls")
    found = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    parts = content if isinstance(content, list) else []
    return found + [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_use"]


_TEXT_PARTS = ("text", "output_text")


def _is_object(value: object) -> bool:
    """Whether it is one message of a package, which may be iterable itself."""
    return hasattr(value, "model_dump") or any(hasattr(value, name) for name in ("role", "content"))

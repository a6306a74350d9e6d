"""Owns what a tool call is made of on the wire: its id, its name, its arguments.

Invariants: pure; what an API takes passes through unchanged; what it refuses is always replaced by the same valid
value, so that a call and its result stay a pair.
"""

from __future__ import annotations

import hashlib
import json
import re


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

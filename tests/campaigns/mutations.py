"""Bodies that no client should send: true ones, changed; and ones made of a schema.

Invariants: one random generator makes the same bodies again; a body is bytes, as JSON cannot say all that is sent.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_LONG = 100_000
# Values that JSON cannot hold in Python: written as these texts, and put in as they are.
_RAW: Mapping[str, str] = {
    "@nan@": "NaN",
    "@infinity@": "1e999",
    "@minus@": "-1e999",
    "@digits@": "1" * 5_000,
    "@deep100@": "[" * 100 + "]" * 100,
    "@deep400@": '{"a":' * 400 + "1" + "}" * 400,
    "@deep900@": "[" * 900 + "]" * 900,
    "@deep10000@": "[" * 10_000 + "]" * 10_000,
    "@many@": "[" + ",".join(["{}"] * 2_000) + "]",
    "@twice@": '{"type":"text","type":["x"],"role":"user","role":7}',
}
BAD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.5, 2**63, 10**30, "", "x", "0", " ", "\0", "\ud800", "a\udfff b", "é", "x" * _LONG,
    "../..", [], ["x"], [None], [[]], [{}], [1, "a", None], {}, {"": ""}, {"\ud800": 1}, {"type": "text"},
    {"type": ["x"]}, {"type": {"type": "text"}}, [{"type": ["x"]}], {"role": ["user"], "content": {"a": 1}},
    {"role": "user", "content": [{"type": "text", "text": {"a": 1}}]}, *_RAW,
)  # fmt: skip
Place = tuple[Any, Any]


def places_of(value: Any) -> Iterator[Place]:
    """All places in a body, as the container and the key or number in it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(inner):
        yield value, key
        yield from places_of(each)


def mutated(rng: random.Random, body: Mapping[str, Any], most: int = 3) -> bytes:
    """A body that was changed in a few places."""
    made: dict[str, Any] = {"body": copy.deepcopy(dict(body))}
    for _ in range(rng.randint(1, most)):
        places = [*places_of(made["body"])]
        # The body itself is replaced rarely.
        if not places or rng.random() < 0.02:
            _replace(rng, made, "body")
        else:
            rng.choice(_CHANGES)(rng, *rng.choice(places))
    content = written(made["body"])
    return rng.choice(_SPOILT)(rng, content) if rng.random() < 0.08 else content


def written(value: Any) -> bytes:
    """A value as JSON, with what only its text can say."""
    text = json.dumps(value)
    for name, raw in _RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode()


def _replace(rng: random.Random, container: Any, key: Any) -> None:
    container[key] = copy.deepcopy(rng.choice(BAD_VALUES))


def _delete(rng: random.Random, container: Any, key: Any) -> None:
    del container[key]


def _double(rng: random.Random, container: Any, key: Any) -> None:
    if isinstance(container, list):
        container[key:key] = [copy.deepcopy(container[key])] * rng.choice((1, 2, 50))
    else:
        container[f"{key}_"] = copy.deepcopy(container[key])


def _wrap(rng: random.Random, container: Any, key: Any) -> None:
    value = container[key]
    container[key] = rng.choice(([value], {"value": value}, [[value, value]], {"type": value}, json.dumps(value)))


def _swap(rng: random.Random, container: Any, key: Any) -> None:
    other = rng.choice(list(container) if isinstance(container, dict) else range(len(container)))
    container[key], container[other] = container[other], container[key]


def _rename(rng: random.Random, container: Any, key: Any) -> None:
    if isinstance(container, dict):
        container[rng.choice(("", "\ud800", key.upper(), f"{key}.x", "x" * 300, "__class__"))] = container.pop(key)


def _spoil_text(rng: random.Random, container: Any, key: Any) -> None:
    if isinstance(value := container[key], str):
        container[key] = value + rng.choice(("\ud800", "\0", "\u2028", "é" * 50, "\udcff", "<", "\r\n", "x" * _LONG))


def _add(rng: random.Random, container: Any, key: Any) -> None:
    if isinstance(container, dict):
        container[rng.choice(_NAMES)] = copy.deepcopy(rng.choice(BAD_VALUES))
    else:
        container.insert(key, copy.deepcopy(rng.choice(BAD_VALUES)))


_NAMES = (
    "type", "role", "content", "tool_calls", "name", "id", "usage", "stream", "metadata", "n", "user", "input", "tools",
    "tool_call_id", "call_id", "output", "summary", "encrypted_content", "reasoning_content", "thinking_blocks",
    "context_management", "previous_response_id", "conversation", "prompt_cache_key", "block_order", "system",
    "is_error", "interim", "function_call", "cache_control", "max_tokens", "_meta", "arguments", "messages", "_cut",
)  # fmt: skip
_CHANGES: tuple[Callable[[random.Random, Any, Any], None], ...] = (
    _replace, _replace, _replace, _replace, _delete, _double, _wrap, _swap, _rename, _spoil_text, _add, _add,
)  # fmt: skip


def _cut(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _other_byte(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) or 1)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def _twice(rng: random.Random, content: bytes) -> bytes:
    return content.replace(b"{", b'{"type":1,"role":[],"":0,', 1)


def _sixteen(rng: random.Random, content: bytes) -> bytes:
    return content.decode().encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig")))


_SPOILT: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _cut, _other_byte, _twice, _sixteen, lambda rng, content: b"", lambda rng, content: content * 2,
    lambda rng, content: b"\xff\xfe" + content, lambda rng, content: b"[" * 1_000_000,
)  # fmt: skip


def made_of(schema: Mapping[str, Any], shapes: Mapping[str, Any], rng: random.Random, depth: int = 0) -> Any:
    """A value that a schema allows, more or less.

    Args:
        schema: JSON Schema.
        shapes: The ones that it refers to, by their last names.
        rng: Chooses.
        depth: How deep the value stands.
    """
    if "$ref" in schema:
        return made_of(shapes[schema["$ref"].rpartition("/")[2]], shapes, rng, depth)
    for kind in ("anyOf", "oneOf", "allOf"):
        if kind in schema:
            return made_of(rng.choice(schema[kind]), shapes, rng, depth)
    if "const" in schema or "enum" in schema:
        return rng.choice(schema.get("enum", [schema.get("const")]))
    if schema.get("examples") and rng.random() < 0.5:
        return rng.choice(schema["examples"])
    made = _MADE.get(schema.get("type", ""))
    return made(schema, shapes, rng, depth) if made else rng.choice(BAD_VALUES[:20])


def _object(schema: Mapping[str, Any], shapes: Mapping[str, Any], rng: random.Random, depth: int) -> Any:
    required, found = schema.get("required", ()), dict[str, Any]()
    for name, inner in schema.get("properties", {}).items():
        if name in required or (depth < 5 and rng.random() < 0.5):
            found[name] = made_of(inner, shapes, rng, depth + 1)
    return found


def _array(schema: Mapping[str, Any], shapes: Mapping[str, Any], rng: random.Random, depth: int) -> Any:
    count = rng.choice((schema.get("minItems", 0), 1, 2, 3)) if depth < 5 else schema.get("minItems", 0)
    return [made_of(schema.get("items", {}), shapes, rng, depth + 1) for _ in range(count)]


def _string(schema: Mapping[str, Any], shapes: Mapping[str, Any], rng: random.Random, depth: int) -> Any:
    if schema.get("format") in ("date", "date-time"):
        return rng.choice(("2026-11-20", "2026-11-20T10:00:00Z", "0001-01-01", "9999-12-31T23:59:59Z"))
    alphabet = "abz019-_./ é周\n" if not re.search(r"A-Z|a-z", schema.get("pattern", "")) else "abz019-_"
    least = schema.get("minLength", 0)
    return "".join(rng.choice(alphabet) for _ in range(rng.choice((least, least + 1, 12, 60))))


def _number(schema: Mapping[str, Any], shapes: Mapping[str, Any], rng: random.Random, depth: int) -> Any:
    least, most = schema.get("minimum", 0), schema.get("maximum", 100_000)
    value = rng.choice((least, most, rng.uniform(least, most)))
    return int(value) if schema.get("type") == "integer" else value


_MADE: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any], random.Random, int], Any]] = {
    "object": _object, "array": _array, "string": _string, "integer": _number, "number": _number,
    "boolean": lambda schema, shapes, rng, depth: rng.random() < 0.5, "null": lambda *_: None,
}  # fmt: skip

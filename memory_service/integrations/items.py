"""Items of a key-value store as memory files: a path for each namespace and key, and a line of Markdown for each field.

```markdown
<!-- item {"namespace": ["users", "lena"], "key": "shipping", "created_at": "…", "updated_at": "…"} -->
- text: Lena wants parcels left with the neighbour.
- priority: 3
```

Invariants: pure; what is rendered is parsed to the same; what a person changed in a line is its value then; no two keys
have one path, on file systems that take capitals and small letters for the same either.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_service.errors import InvalidRequest

FOLDER = "memory/store"
_ITEM = re.compile(r"<!-- item (\{.*\}) -->\n")
_FIELD = re.compile(r'- ("(?:[^"\\]|\\.)*"|.*?): (.*)')
_KEY_BYTES = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFile:
    """An item as its file has it.

    Attributes:
        namespace: The folders that it is in, by their own names.
        key: Its name there.
        value: Its fields.
        created_at: In ISO 8601.
        updated_at: In ISO 8601, of the last write of a program.
        index: The fields that a query may find it by; False for none, None for all.
        lines: The field that stands in each line of the file.
    """

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    created_at: str
    updated_at: str
    index: Any = None
    lines: Mapping[int, str]

    def is_found_by(self, first_line: int, last_line: int) -> bool:
        """True if one of the lines belongs to a field that a query may find it by."""
        if not isinstance(self.index, list):
            return self.index is not False
        fields = {re.split(r"[.\[]", path)[0] for path in self.index}
        return "$" in fields or any(self.lines.get(line) in fields for line in range(first_line, last_line + 1))


def rendered_item(
    namespace: Sequence[str], key: str, value: Mapping[str, Any], *, created_at: str, updated_at: str, index: Any = None
) -> str:
    """The text of an item's file.

    Raises:
        InvalidRequest: JSON cannot hold the value.
    """
    about = {"namespace": list(namespace), "key": key, "created_at": created_at, "updated_at": updated_at}
    about |= {} if index is None else {"index": index}
    try:
        lines = [f"- {_name(name)}: {_word(each_value)}\n" for name, each_value in value.items()]
        return f"<!-- item {_json(about)} -->\n{''.join(lines)}"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"The value of an item cannot be written as JSON: {error}. Give plain values.") from None


def parsed_item(text: str) -> ItemFile | None:
    """The item of a file; None if it has none."""
    head = _ITEM.match(text)
    if head is None:
        return None
    value, lines = dict[str, Any](), dict[int, str]()
    for number, line in enumerate(text.split("\n"), 1):
        if number > 1 and (field := _FIELD.fullmatch(line)):
            name = str(_read_word(field[1]) if field[1].startswith('"') else field[1])
            value[name], lines[number] = _read_word(field[2]), name
    try:
        about = json.loads(head[1])
        about["namespace"] = tuple(about["namespace"])
        return ItemFile(**about, value=value, lines=lines)
    except (ValueError, TypeError, KeyError):
        return None


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a field is {name!r}, and no text")
    return name if _is_line(name) and ": " not in f"{name} " and not name.endswith(":") else _json(name)


def _word(value: object) -> str:
    """A value on one line: a text as it is, if it comes back so; anything else as JSON."""
    return value if isinstance(value, str) and _is_line(value) and _read_word(value) is value else _json(value)


def _is_line(text: str) -> bool:
    return text == text.strip() != "" and text.isprintable() and "<!--" not in text and not text.startswith('"')


def _read_word(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json(value: object) -> str:
    written_text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    # Neither ends a comment nor a line, and can be stored as UTF-8.
    return re.sub("[<>\x7f-\x9f\u2028\u2029\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", written_text)


def item_path(namespace: Sequence[str], key: str) -> str:
    """The path of an item's file."""
    name = _encode_name(key)
    if len(name.encode()) > _KEY_BYTES:
        name = f"{name.encode()[:_KEY_BYTES].decode('utf-8', 'ignore').rpartition('=')[0] or 'key'}~~{_digest(key)}"
    return f"{item_folder(namespace)}{name}.md"


def item_folder(namespace: Sequence[str]) -> str:
    """The folder of a namespace, with its slash."""
    return "".join(f"{part}/" for part in (FOLDER, *map(_encode_name, namespace)))


def _encode_name(text: str) -> str:
    """A text as a part of a path: letters and digits as they are, the rest in hexadecimal."""
    is_kept = unicodedata.normalize("NFC", text) == text
    name = "".join(
        each_text
        if each_text in "_-" or (each_text.isalnum() and (is_kept or each_text.isascii()))
        else _hexadecimal(each_text)
        for each_text in text
    )
    # Some file systems take capitals and small letters for the same.
    return (f"{name}~{_digest(text)}" if text != text.lower() else name) or "="


def _hexadecimal(char: str) -> str:
    return "".join(f"={byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def namespace_part(part: str) -> str:
    """The part of a namespace that a folder stands for."""
    name = part.partition("~")[0]
    return re.sub(
        "(?:=[0-9A-F]{2})+",
        lambda match: bytes.fromhex(match[0].replace("=", "")).decode("utf-8", "surrogatepass"),
        "" if name == "=" else name,
    )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()

"""Parts, calls and roles that neither side knows, as tomorrow's API or a host of another kind may send them. Pure.

They are carried as they came. A label stands for them where text is asked for: in searches, summaries and sizes, and on
the way to a provider of the other side. A part whose type is known and whose fields are none of it is wrapped.

```
came                       inner form                                goes back
unknown part               itself                                    itself; a label to the other side
malformed part, content    part `opaque` with the value              the value; a label to the other side
unknown role               assistant, its own in `_role`             under its own role to OpenAI's side
function_call, function    call and result of one id, `_legacy`      in the same shape to OpenAI's side
call of another kind       function, as it came in `_call`           as it came to OpenAI's side
```
The sides are told apart by how their parts are built: a part of OpenAI's chat holds its content in a field of its own
name, or its type ends in `_url` or begins with `input_`; any other is a block of Anthropic's. What is wrapped and is no
object counts as the chat's.

Invariants: what was wrapped comes out as it went in; a label is one line, has no bytes of media, and never lends a
part the voice of the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The type of what wraps a value that no part can hold.
WRAPPED = "opaque"
_VALUE = "value"
# A message of a role that is not known has it beside the one that it stands under.
OWN_ROLE = "_role"
# A call and its result in OpenAI's first shape, `function_call` and the role `function`.
LEGACY = "_legacy"
# A call of a kind that is no function, as it came.
OWN_CALL = "_call"
_LABEL_CHARS = 200
_WORD_CHARS = 80
# Fields that name nothing a reader could use.
_BYTES = frozenset({"type", "id", "data", "signature", "encrypted_content", "cache_control"})


def wrap_value(value: object) -> dict[str, Any]:
    """A value as a part."""
    return {"type": WRAPPED, _VALUE: value}


def unwrap_part(part: Mapping[str, Any]) -> Any:
    """The value of a part that wraps one; any other part itself."""
    return part.get(_VALUE) if part.get("type") == WRAPPED else part


def is_chat_shaped(part: Mapping[str, Any]) -> bool:
    """True if an unknown part is one of OpenAI's chat: its content stands in a field of its own name, or it says so."""
    value = unwrap_part(part)
    if not isinstance(value, Mapping):
        return True
    kind = value.get("type")
    return isinstance(kind, str) and (kind in value or kind.endswith("_url") or kind.startswith("input_"))


def opaque_label(part: Mapping[str, Any]) -> str:
    """One line for a part: its type, and what its short fields name."""
    value = unwrap_part(part)
    if isinstance(value, str):
        return _line(value)
    if isinstance(value, list):
        return _line(" ".join(opaque_label(wrap_value(each_value)) for each_value in value)) or "[part]"
    if not isinstance(value, Mapping):
        return "[part]"
    kind = value.get("type")
    words = [
        each_value
        for key, each_value in value.items()
        if key not in _BYTES and isinstance(each_value, str) and each_value.strip()
    ]
    line = _line(" ".join(word for word in words if len(word) <= _WORD_CHARS or " " in word[:_WORD_CHARS]))
    name = kind[:_WORD_CHARS] if isinstance(kind, str) else "part"
    return f"[{name}: {line}]" if line else f"[{name}]"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL_CHARS else f"{line[:_LABEL_CHARS]} …"

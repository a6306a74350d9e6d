"""Owns reading messages that a person has in a file: a JSON list, JSON lines, one object, or a whole request.

Invariants: pure; what is in the file goes on as it is, in its order; an error names the line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

_BATCH = 10_000


def messages_in(text: str) -> list[object]:
    """The messages of a file.

    Args:
        text: A JSON list of messages, one message for each line, one message, or an object with `messages` and
            perhaps Anthropic's `system`, as it is sent to a provider.

    Raises:
        InvalidRequest: It is none of these.
    """
    from memory_service.errors import InvalidRequest

    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("["):
            at = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else "too deep"
            raise InvalidRequest(f"The list of messages is no JSON ({at}). Correct it there.") from None
        return _lines(text)
    if isinstance(whole, list):
        return whole
    if isinstance(whole, Mapping):
        return _of_object(whole)
    raise InvalidRequest("The file holds JSON that is no message. Give a list of messages, one for each line, or one.")


def _of_object(whole: Mapping[str, object]) -> list[object]:
    messages = whole.get("messages")
    if "role" in whole or not isinstance(messages, list):
        return [whole]
    system = whole.get("system")
    return [*([{"role": "system", "content": system}] if system else []), *messages]


def _lines(text: str) -> list[object]:
    from memory_service.errors import InvalidRequest

    found = list[object]()
    # Only a line feed ends a line: others may stand within a JSON text.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            raise InvalidRequest(
                f"Line {number} is no JSON. Give a JSON list of messages, one message for each line, or one message."
            ) from None
    return found


def decoded(raw: bytes) -> str:
    """The text of a file; a mark of byte order is no part of it.

    Raises:
        InvalidRequest: It is not UTF-8.
    """
    from memory_service.errors import InvalidRequest

    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest("The messages are not UTF-8. Convert them first, as with iconv.") from None


def batches_of(messages: Sequence[object]) -> list[list[object]]:
    """Messages in as many lists as one append takes each; all of them can be read.

    Raises:
        InvalidRequest: There are none, or one is of neither OpenAI's nor Anthropic's shape.
        TooLarge: One has too many parts.
    """
    from memory_service.errors import InvalidRequest
    from memory_service.messages import read_messages

    if not messages:
        raise InvalidRequest("The file has no messages. Give a JSON list, one message for each line, or one message.")
    batches = [list(messages[at : at + _BATCH]) for at in range(0, len(messages), _BATCH)]
    for batch in batches:
        read_messages(batch)
    return batches

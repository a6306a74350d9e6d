"""Messages of a list and of a log as they are compared: which of them say the same.

Invariants: pure; a message counts by what it says and does, whatever else a client adds or leaves out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_service.messages import (
    Message,
    arguments_of,
    compact_command,
    is_tool_result,
    media_parts_of,
    read_sent,
    text_of,
    tool_calls_of,
)
from memory_service.messages.repair import SYSTEM_FRAME

SentMessage = Mapping[str, object]
# Of an answer that was broken off: why. Keys that begin so never reach a model.
CUT = "_cut"


@dataclass(frozen=True, slots=True)
class ComparedMessage:
    """A message as it is compared: its digest, whether it was broken off, and its number in the log or its place."""

    digest: bytes
    role: str
    cut: bool
    at: int


def compared(messages: Sequence[SentMessage]) -> Iterator[ComparedMessage]:
    """The messages of a list that a log has as messages: all but commands to the service."""
    for at, message in enumerate(messages):
        read = read_sent([message])
        if read and not (len(read) == 1 and compact_command(read[0]) is not None):
            yield compared_message(read, at)


def compared_message(messages: Sequence[Message], at: int) -> ComparedMessage:
    """A message as it is compared, whose number or place is `at`."""
    return ComparedMessage(_digest_of(messages), messages[-1]["role"], CUT in messages[-1], at)


def _digest_of(messages: Sequence[Message]) -> bytes:
    """Digest of what a message says and does. Blanks, thinking, marks of caches and the bytes of media are no part."""
    digest = hashlib.blake2b(digest_size=12)
    for message in messages:
        calls = [[call["id"], call["function"]["name"], arguments_of(call)] for call in tool_calls_of(message)]
        role = "system" if message["role"] == "developer" else message["role"]
        said = [role, "".join(text_of(message).split()), calls, len(media_parts_of(message))]
        if is_tool_result(message):
            said.append(message.get("tool_call_id"))
        digest.update(json.dumps(said, sort_keys=True).encode())
    return digest.digest()


def shared_beginning(log: Sequence[ComparedMessage], said: Sequence[ComparedMessage]) -> tuple[int, int]:
    """How many messages of a log a list begins with, and how many of the list they are.

    An answer that was broken off is passed over where the list does not have it: its client may not have kept it.
    """
    at = read = 0
    while at < len(log) and read < len(said):
        if log[at].digest == said[read].digest:
            read += 1
        elif not log[at].cut:
            break
        elif said[read].role == "assistant":
            read += 1
        at += 1
    return at, read


def overlap_of(log: Sequence[ComparedMessage], said: Sequence[ComparedMessage]) -> int:
    """How much of a list the log has at its end; the list may begin later than the log, or earlier."""
    for end in range(len(said), 0, -1):
        size = min(end, len(log))
        if all(a.digest == b.digest for a, b in zip(said[end - size : end], log[len(log) - size :], strict=True)):
            return end
    return 0


def rest_after(messages: Sequence[SentMessage], said: Sequence[ComparedMessage], read: int) -> Sequence[SentMessage]:
    """Messages after the first ones that were read; commands among what was read are passed over."""
    begin = said[read - 1].at + 1 if read else 0
    if read < len(said):
        return messages[begin:]
    # Only a command may follow: it counts if it is the last thing said.
    return messages[-1:] if begin < len(messages) else ()


def alike(view: Sequence[Message], given: Sequence[Message]) -> bool:
    """True if a view is what the client sent: nothing compacted, repaired or added. A system message may have moved."""

    def digests(messages: Sequence[Message], *, system: bool) -> list[bytes]:
        plain = map(_unframed, messages)
        return [_digest_of([each]) for each in plain if (each["role"] in ("system", "developer")) == system]

    return digests(view, system=False) == digests(given, system=False) and sorted(digests(view, system=True)) == sorted(
        digests(given, system=True)
    )


def _unframed(message: Message) -> Message:
    """The system message that a view shows as one of the user; any other as it is."""
    text = text_of(message) if message["role"] == "user" else ""
    if not text.startswith(f"{SYSTEM_FRAME}\n"):
        return message
    return {"role": "system", "content": text.removeprefix(f"{SYSTEM_FRAME}\n")}


def as_the_client_has_it(written: Sequence[SentMessage], given: Sequence[SentMessage]) -> list[SentMessage]:
    """A view with the client's own messages in it, as far back as it still shows them.

    What the client put on a message, such as the marks of a cache, counts as it stands in this call: older ones would
    become too many.
    """
    sent = [_without_marks(message) for message in written]
    for back in range(1, min(len(sent), len(given)) + 1):
        shown, own = written[-back], given[-back]
        if shown == own or _wire_digest(shown) == _wire_digest(own):
            sent[-back] = own
        elif not (shown.get("role") == own.get("role") and _has_result(own)):
            break
    return sent


def _wire_digest(message: SentMessage) -> bytes:
    return _digest_of(read_sent([message]))


def _has_result(message: SentMessage) -> bool:
    content = message.get("content")
    return message.get("role") == "tool" or (
        isinstance(content, list) and any(part_type(part) == "tool_result" for part in content)
    )


def _without_marks(message: SentMessage) -> SentMessage:
    bare, content = _unmarked(message), message.get("content")
    if isinstance(content, list):
        bare["content"] = [_unmarked(part) if isinstance(part, dict) else part for part in content]
    return bare


def _unmarked(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key != "cache_control"}


def part_type(part: object) -> object:
    """The type of a part of a message; None for what is none."""
    return part.get("type") if isinstance(part, Mapping) else None

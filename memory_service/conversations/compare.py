"""Messages of a list and of a log as they are compared: which of them say the same.

Invariants: pure; a message counts by what it says and does, whatever else a client adds or leaves out; words and calls
of a model count the same as one message or as two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from indexer.common import LRU
from memory_service.messages.opaque import OWN_ROLE
from memory_service.messages.reading import MAX_MESSAGES, read_sent
from memory_service.messages.shapes import (
    CUT,
    Message,
    arguments_of,
    compact_command,
    is_tool_result,
    media_parts_of,
    own_text_of,
    text_of,
    tool_calls_of,
)
from memory_service.messages.units import REPAIR_TEXTS
from memory_service.sessions.media import as_logged, notes_without_places

SentMessage = Mapping[str, object]
_KNOWN_MESSAGES = 20_000
_SYSTEM_FRAMES = frozenset(texts.system for texts in REPAIR_TEXTS.values())


@dataclass(frozen=True, slots=True)
class ComparedMessage:
    """A message as it is compared.

    Attributes:
        digest: Of all that it says and does.
        role: Its role.
        is_cut: Whether it was broken off.
        at: Its number in the log, or its place in a list.
        units: Digests of what may stand in messages of their own: the words of a model, and its calls.
    """

    digest: bytes
    role: str
    is_cut: bool
    at: int
    units: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """A message of a client's list, read once for as long as the client sends it again.

    Attributes:
        sent_message: As it came; None of one with media, whose bytes are not kept.
        comparison: As it is compared; None for a command to the service.
        shown_forms: Of each message that it is for a log: whether it is the system's, and its digest.
    """

    sent_message: SentMessage | None
    comparison: ComparedMessage | None
    shown_forms: tuple[tuple[bool, bytes], ...]


def read_list(messages: Sequence[SentMessage], before: Sequence[ReadMessage] = ()) -> list[ReadMessage]:
    """The messages of a list; what the list before had in the same place is not read again.

    Raises:
        TooLarge: There are too many, or there is too much in one.
    """
    if len(messages) > MAX_MESSAGES:
        read_sent(messages, strict=False)
    read = list[ReadMessage]()
    for at, message in enumerate(messages):
        known_message = before[at] if at < len(before) else None
        same = (
            known_message is not None
            and known_message.sent_message is not None
            and (known_message.sent_message is message or known_message.sent_message == message)
        )
        read.append(known_message if known_message is not None and same else _read_message(message, at))
    return read


def _read_message(message: SentMessage, at: int) -> ReadMessage:
    logged_fields = as_logged(message)
    read = read_sent([logged_fields], strict=False)
    is_command = not read or (len(read) == 1 and compact_command(read[0]) is not None)
    found_message = None if is_command else compared_message(read, at)
    shown_forms = tuple(map(_shown_form, read))
    return ReadMessage(message if logged_fields is message else None, found_message, shown_forms)


class ShownDigests:
    """Digests of the messages of views, which stay the same objects from call to call."""

    def __init__(self) -> None:
        self._cache: LRU[int, tuple[Message, tuple[bool, bytes]]] = LRU(_KNOWN_MESSAGES)

    def of(self, message: Message) -> tuple[bool, bytes]:
        """Digest of a message, behind a sign that it is the system's."""
        known_pair = self._cache.get(id(message))
        if known_pair is None or known_pair[0] is not message:
            known_pair = self._cache[id(message)] = message, _shown_form(message)
        return known_pair[1]


def comparable_messages(messages: Sequence[SentMessage]) -> Iterator[ComparedMessage]:
    """The messages of a list that a log has as messages: all but commands to the service."""
    for at, message in enumerate(messages):
        read = _read_as_logged([message])
        if read and not (len(read) == 1 and compact_command(read[0]) is not None):
            yield compared_message(read, at)


def _read_as_logged(messages: Sequence[SentMessage]) -> list[Message]:
    """Messages of a client as the log has them: with notes where media are, also those inside of a text."""
    return read_sent(list(map(as_logged, messages)), strict=False)


def compared_message(messages: Sequence[Message], at: int) -> ComparedMessage:
    """A message as it is compared, whose number or place is `at`."""
    digest, units = _digest_of(messages), list[Message]()
    for message in messages:
        units += _split_calls(message)
    digests = tuple(_digest_of([unit]) for unit in units) if len(units) > len(messages) else (digest,)
    return ComparedMessage(digest, messages[-1]["role"], CUT in messages[-1], at, digests)


def _split_calls(message: Message) -> list[Message]:
    """The words of a message and its calls, if it has both; else the message."""
    if message["role"] != "assistant" or not tool_calls_of(message):
        return [message]
    words: Message = {"role": "assistant", "content": message.get("content")}
    if not (text_of(words).strip() or media_parts_of(words)):
        return [message]
    return [words, {**message, "content": None}]


def _digest_of(messages: Sequence[Message]) -> bytes:
    """Digest of what a message says and does. Blanks, thinking, marks of caches and the bytes of media are no part.

    Nor is what a host put beside a user's words: the next call may come without it, or with something else there.
    """
    digest = hashlib.blake2b(digest_size=12)
    for message in messages:
        calls = [[call["id"], call["function"]["name"], arguments_of(call)] for call in tool_calls_of(message)]
        role = "system" if message["role"] == "developer" else message["role"]
        words = own_text_of(message) or text_of(message)
        value = [role, "".join(words.split()), calls, len(media_parts_of(message))]
        if is_tool_result(message):
            value.append(message.get("tool_call_id"))
        if (own_role := cast("Mapping[str, object]", message).get(OWN_ROLE)) is not None:
            value.append(own_role)
        digest.update(notes_without_places(json.dumps(value, sort_keys=True)).encode())
    return digest.digest()


def shared_beginning(log: Sequence[ComparedMessage], messages: Sequence[ComparedMessage]) -> tuple[int, int]:
    """How many messages of a log a list begins with, and how many of the list they are.

    An answer that was broken off is passed over where the list does not have it: its client may not have kept it.
    """
    at = read = 0
    while at < len(log) and read < len(messages):
        if log[at].digest == messages[read].digest:
            at, read = at + 1, read + 1
        elif same := _same(partial(_units_at, log, at), partial(_units_at, messages, read)):
            at, read = at + same[0], read + same[1]
        elif not log[at].is_cut:
            break
        else:
            at, read = at + 1, read + (messages[read].role == "assistant")
    return at, read


def _units_at(messages: Sequence[ComparedMessage], start: int, count: int) -> tuple[bytes, ...]:
    """The units of the message that is `count` behind the one at `start`; none beyond the end."""
    return messages[start + count].units if start + count < len(messages) else ()


def _same(one: Callable[[int], tuple[bytes, ...]], other: Callable[[int], tuple[bytes, ...]]) -> tuple[int, int] | None:
    """How many messages of two lists say the same, at least one of both; None if they differ.

    Two answers without input between them are one message in some protocols, and two in others.

    Args:
        one: The units of a message of a list, by its number from 0; none beyond the end.
        other: The same of the other list.
    """
    lists, counts, units = (one, other), [1, 1], [one(0), other(0)]
    while units[0] != units[1]:
        short = int(len(units[1]) < len(units[0]))
        size, longer = len(units[short]), units[1 - short]
        more = lists[short](counts[short])
        if not more or size == len(longer) or longer[:size] != units[short]:
            return None
        units[short] += more
        counts[short] += 1
    return counts[0], counts[1]


def suffix_length(log: Sequence[ComparedMessage], messages: Sequence[ComparedMessage]) -> int:
    """How much of a list the log has at its end; the list may begin later than the log, or earlier."""
    logged_units = [unit for message in log for unit in message.units]
    units = [unit for message in messages for unit in message.units]
    for end in range(len(messages), 0, -1):
        size = min(len(units), len(logged_units))
        if units[len(units) - size :] == logged_units[len(logged_units) - size :]:
            return end
        del units[len(units) - len(messages[end - 1].units) :]
    return 0


def rest_after(
    messages: Sequence[SentMessage], said_messages: Sequence[ComparedMessage], read: int
) -> Sequence[SentMessage]:
    """Messages after the first ones that were read; commands among what was read are passed over."""
    begin = said_messages[read - 1].at + 1 if read else 0
    if read < len(said_messages):
        return messages[begin:]
    # Only a command may follow: it counts if it is the last thing said.
    return messages[-1:] if begin < len(messages) else ()


def alike(view: Sequence[tuple[bool, bytes]], given_pairs: Sequence[tuple[bool, bytes]]) -> bool:
    """True if a view is what the client sent: nothing compacted, repaired or added. A system message may have moved.

    Args:
        view: Of each message: whether it is the system's, and its digest.
        given_pairs: The same of the client's list.
    """
    return [pair for pair in view if not pair[0]] == [pair for pair in given_pairs if not pair[0]] and sorted(
        digest for is_systems, digest in view if is_systems
    ) == sorted(digest for is_systems, digest in given_pairs if is_systems)


def _shown_form(message: Message) -> tuple[bool, bytes]:
    plain = _strip_frame(message)
    return plain["role"] in ("system", "developer"), _digest_of([plain])


def _strip_frame(message: Message) -> Message:
    """The system message that a view shows as one of the user; any other as it is."""
    text = text_of(message) if message["role"] == "user" else ""
    first, _, rest = text.partition("\n")
    return {"role": "system", "content": rest} if first in _SYSTEM_FRAMES and first != text else message


def as_the_client_has_it(messages: Sequence[SentMessage], given_messages: Sequence[SentMessage]) -> list[SentMessage]:
    """A view with the client's own messages in it, as far back as it still shows them.

    What the client put on a message, such as the marks of a cache, counts as it stands in this call: older ones would
    become too many.
    """
    sent_messages = list[SentMessage]()
    at, place = len(messages), len(given_messages)
    while at and place:
        message, own = messages[at - 1], given_messages[place - 1]
        same = (
            (1, 1)
            if message == own
            else _same(partial(_units_before, messages, at), partial(_units_before, given_messages, place))
        )
        if same:
            sent_messages[:0] = given_messages[place - same[1] : place]
        elif message.get("role") == own.get("role") and _has_result(own):
            sent_messages.insert(0, _without_marks(message))
        else:
            break
        at, place = (at - same[0], place - same[1]) if same else (at - 1, place - 1)
    return [*map(_without_marks, messages[:at]), *sent_messages]


def _units_before(messages: Sequence[SentMessage], end: int, count: int) -> tuple[bytes, ...]:
    """The units of the message that is `count` before the last one of the first `end`, the last first."""
    at = end - 1 - count
    return compared_message(_read_as_logged([messages[at]]), at).units[::-1] if at >= 0 else ()


def _has_result(message: SentMessage) -> bool:
    content = message.get("content")
    return message.get("role") == "tool" or (
        isinstance(content, list) and any(part_type(part) == "tool_result" for part in content)
    )


def _without_marks(message: SentMessage) -> SentMessage:
    bare, content = _without_cache_mark(message), message.get("content")
    if isinstance(content, list):
        bare["content"] = [_without_cache_mark(part) if isinstance(part, dict) else part for part in content]
    return bare


def _without_cache_mark(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: each_value for key, each_value in value.items() if key != "cache_control"}


def part_type(part: object) -> object:
    """The type of a part of a message; None for what is none."""
    return part.get("type") if isinstance(part, Mapping) else None

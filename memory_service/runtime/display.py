"""Sessions as a person reads them: their messages, with what was done to each.

Invariants: pure; every message has its number in the log, or is marked as put there by the service.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from memory_service.compaction.checkpoint import is_checkpoint
from memory_service.compaction.view import View, view_language
from memory_service.messages.reading import read_messages
from memory_service.messages.shapes import Message, arguments_object, is_system, media_parts_of, text_of, tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.text.placeholders import call_line, is_inline, media_label, telling_argument
from memory_service.text.texts import ENGLISH, Texts, texts_in

if TYPE_CHECKING:
    from memory_service.runtime.session import SessionState
    from memory_service.runtime.session_services import SessionSnapshot


# Of an argument that holds others, so many levels are told apart, and so many arguments of a call.
_MOST_LEVELS = 4
_MOST_ARGUMENTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """A call of a tool.

    Attributes:
        name: The name of the tool.
        written: The arguments as the model wrote them, JSON or not.
    """

    name: str
    written: str

    @property
    def line(self) -> str:
        """The call in a few words."""
        return call_line(self.name, arguments_object(self.written))

    @property
    def whole(self) -> str:
        """The call with its arguments as they are."""
        return f"{self.name}({self.written})"

    @property
    def telling(self) -> str:
        """The argument that tells most, in a few words; empty where none does."""
        return telling_argument(arguments_object(self.written))

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """The arguments by their names, as a person reads them; those inside of others have a dot in their name."""
        return list(islice(_arguments(arguments_object(self.written), ""), _MOST_ARGUMENTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """A message as it is shown.

    Attributes:
        seq: Its number in the log; None for what the service put there.
        note: What was done to it: `checkpoint`, `cleared`, `media removed`, `added`; empty for nothing.
        media: A label for each medium.
        thinking_chars: Length of its reasoning; None without any.
    """

    seq: int | None
    role: str
    text: str
    note: str = ""
    calls: tuple[ShownCall, ...] = ()
    media: tuple[str, ...] = ()
    is_error: bool = False
    thinking_chars: int | None = None


def _shown_message(message: Message, seq: int | None = None, note: str = "", texts: Texts = ENGLISH) -> ShownMessage:
    blocks = message.get("thinking_blocks") or []
    thought_count = sum(len(str(block.get("thinking") or "")) for block in blocks)
    thought_count += len(message.get("reasoning_content") or "")
    return ShownMessage(
        seq=seq,
        role=message["role"],
        text=text_of(message),
        note=note,
        calls=tuple(_calls(message)),
        media=tuple(_media(message, seq, texts)),
        is_error=bool(message.get("is_error")),
        thinking_chars=thought_count if thought_count or blocks else None,
    )


def shown_prompt(messages: Sequence[object]) -> list[ShownMessage]:
    """The messages of a prompt, in OpenAI's shape."""
    return [_shown_message(message) for message in read_messages(messages, strict=False)]


def shown_log(snapshot: SessionSnapshot, within: range | None = None) -> list[ShownMessage]:
    """Everything ever said, or the messages with numbers in a range."""
    texts = texts_in(view_language(snapshot.state))
    messages = snapshot.state.messages if within is None else snapshot.state.between(within.start, within.stop - 1)
    return [_shown_message(message.message, message.seq, texts=texts) for message in messages]


def shown_part(messages: Iterable[Numbered]) -> list[ShownMessage]:
    """Messages of a log."""
    return [_shown_message(message.message, message.seq) for message in messages]


def shown_view(snapshot: SessionSnapshot, within: range | None = None) -> list[ShownMessage]:
    """The messages that the model sees, with the numbers that the log has for them.

    Args:
        snapshot: The session.
        within: Show the messages with numbers in this range alone, and those without a number before each of them,
            and, where the range holds the last message, those at the end.
    """
    view, texts = snapshot.view(), texts_in(view_language(snapshot.state))
    seqs = _numbers(snapshot.state, view)
    messages, added = list[ShownMessage](), list[ShownMessage]()
    for message, seq in zip(view.messages, seqs, strict=True):
        if seq is None:
            added.append(_shown_message(message, seq, _note(snapshot, message, seq), texts))
        elif within is None or seq in within:
            messages += [*added, _shown_message(message, seq, _note(snapshot, message, seq), texts)]
            added = []
        else:
            added = []
    last = snapshot.state.messages[-1].seq if snapshot.state.messages else 0
    return [*messages, *added] if within is None or last < within.stop else messages


def _note(snapshot: SessionSnapshot, message: Message, seq: int | None) -> str:
    if seq is None:
        return "checkpoint" if is_checkpoint(text_of(message)) else "added"
    if message["role"] == "tool" and seq in snapshot.state.head.cleared:
        return "cleared"
    return "media removed" if seq in snapshot.state.head.stripped else ""


_Likeness = tuple[str, str, tuple[str, ...]]


def _numbers(state: SessionState, view: View) -> list[int | None]:
    """The number of each message of a view; None for what the log has not said."""
    inside = {message.seq for message in view.tail}
    leading = [message for message in state.messages if message.seq not in inside and is_system(message.message)]
    # Most messages stand in the view as they are in the tail; those that were made valid are told by what they say.
    by_identity = {id(message.message): message.seq for message in (*leading, *view.tail)}
    in_view = {id(message) for message in view.messages}
    by_likeness = defaultdict[_Likeness, deque[int]](deque)
    for each in (*leading, *view.tail):
        if id(each.message) not in in_view:
            by_likeness[_likeness(each.message)].append(each.seq)
    numbers = list[int | None]()
    for message in view.messages:
        seq = by_identity.get(id(message))
        if seq is None and (alike := by_likeness.get(_likeness(message))):
            seq = alike.popleft()
        numbers.append(seq)
    return numbers


def _likeness(message: Message) -> _Likeness:
    """The traits of a message that it has in common with itself after it was made valid on the wire."""
    return message["role"], text_of(message), tuple(call["function"]["arguments"] for call in tool_calls_of(message))


def _calls(message: Message) -> Iterator[ShownCall]:
    for call in tool_calls_of(message):
        yield ShownCall(name=call["function"]["name"], written=call["function"]["arguments"])


def _arguments(values: Mapping[str, object], inside: str, level: int = 1) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{inside}{key}"
        if isinstance(value, Mapping) and value and level < _MOST_LEVELS:
            yield from _arguments(value, f"{name}.", level + 1)
        elif isinstance(value, list) and value and not any(isinstance(each, (dict, list)) for each in value):
            yield name, ", ".join(map(_written_value, value))
        elif isinstance(value, list) and value and level < _MOST_LEVELS:
            numbered = {str(number): each for number, each in enumerate(value, 1)}
            yield from _arguments(numbered, f"{name}.", level + 1)
        else:
            yield name, _written_value(value)


def _written_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _media(message: Message, seq: int | None, texts: Texts) -> Iterator[str]:
    inline = 0
    for part in media_parts_of(message):
        inline += is_inline(part)
        yield _label_in(part) or media_label(part, seq, inline, texts)


def _label_in(part: object) -> str:
    """The label that the log has in the place of a medium that is kept beside it; empty if the medium is there."""
    if isinstance(part, str):
        return part if part.startswith("[") and ", ref=log:" in part[:200] else ""
    values = part.values() if isinstance(part, Mapping) else ()
    return next(filter(None, map(_label_in, values)), "")

"""Sessions as a person reads them: their messages with what was done to each, and the numbers behind their state.

Invariants: pure; every message has its number in the log, or is marked as put there by the service.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_service.compaction.checkpoint import is_checkpoint
from memory_service.compaction.record import newest_compaction
from memory_service.compaction.view import tail_of, view_language
from memory_service.messages.reading import read_messages
from memory_service.messages.shapes import Message, arguments_object, is_system, media_parts_of, text_of, tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.text.placeholders import call_line, is_inline, media_label
from memory_service.text.texts import ENGLISH, Texts, texts_in

if TYPE_CHECKING:
    from memory_service.runtime.session_services import SessionSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """A call of a tool: in one line, and with its arguments as they are."""

    line: str
    whole: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDetails:
    """Numbers of a session beside its status.

    Attributes:
        marks: Where a compaction ends, a flush begins and a compaction begins, in tokens; None for a refused window.
        usable_tokens: What can be used of the window.
        first_shown: The first message that the view shows word for word.
        in_view: How many messages it shows so.
        newest_compaction: Id of the newest compaction that counts; empty for none.
        undone: How many compactions were undone.
        unreadable: How many lines of the log cannot be read.
    """

    last_message: int
    first_shown: int
    in_view: int
    newest_compaction: str
    undone: int
    flushes: int
    unreadable: int
    marks: tuple[int, int, int] | None
    usable_tokens: int = 0


def details_of(snapshot: SessionSnapshot) -> SessionDetails:
    """Details of a session."""
    state, view = snapshot.state, snapshot.view()
    budget = None if snapshot.options.window.problem == "refuse" else snapshot.budget()
    return SessionDetails(
        last_message=state.messages[-1].seq if state.messages else 0,
        first_shown=view.first_seq,
        in_view=len(view.seqs),
        newest_compaction=newest_compaction(state.compactions),
        undone=sum(not past.active for past in state.compactions),
        flushes=len(state.flushes),
        unreadable=state.unreadable,
        marks=(budget.target_tokens, budget.soft_tokens, budget.hard_tokens) if budget else None,
        usable_tokens=budget.usable_tokens if budget else 0,
    )


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
    return [
        _shown_message(message.message, message.seq, texts=texts)
        for message in snapshot.state.messages
        if within is None or message.seq in within
    ]


def shown_view(snapshot: SessionSnapshot, within: range | None = None) -> list[ShownMessage]:
    """The messages that the model sees, with the numbers that the log has for it; in a range, beside those without."""
    numbers = _numbers(snapshot, tail_of(snapshot.state, snapshot.shape))
    messages, texts = list[ShownMessage](), texts_in(view_language(snapshot.state))
    for message in snapshot.view().messages:
        known_number = numbers[_likeness(message)]
        seq = known_number.popleft() if known_number else None
        if seq is None or within is None or seq in within:
            messages.append(_shown_message(message, seq, _note(snapshot, message, seq), texts))
    return messages


def _note(snapshot: SessionSnapshot, message: Message, seq: int | None) -> str:
    if seq is None:
        return "checkpoint" if is_checkpoint(text_of(message)) else "added"
    if message["role"] == "tool" and seq in snapshot.state.head.cleared:
        return "cleared"
    return "media removed" if seq in snapshot.state.head.stripped else ""


_Likeness = tuple[str, str, tuple[str, ...]]


def _numbers(snapshot: SessionSnapshot, tail: Sequence[Numbered]) -> dict[_Likeness, deque[int]]:
    numbers = defaultdict[_Likeness, deque[int]](deque)
    inside = {message.seq for message in tail}
    leading = [
        each_message
        for each_message in snapshot.state.messages
        if is_system(each_message.message) and each_message.seq not in inside
    ]
    for each in (*leading, *tail):
        numbers[_likeness(each.message)].append(each.seq)
    return numbers


def _likeness(message: Message) -> _Likeness:
    """The traits of a message that it has in common with itself after it was made valid on the wire."""
    return message["role"], text_of(message), tuple(call["function"]["arguments"] for call in tool_calls_of(message))


def _calls(message: Message) -> Iterator[ShownCall]:
    for call in tool_calls_of(message):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        yield ShownCall(line=call_line(name, arguments_object(arguments)), whole=f"{name}({arguments})")


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

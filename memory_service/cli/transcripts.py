"""Messages in a terminal, and messages in a file: a JSON list, JSON lines, one object, or a whole request. Pure.

Invariants: every message has its number in the log, or is marked as the service's; nothing in a message can move the
cursor; a shortened text says so. All messages of a file can be read, or none is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from memory_service.cli.columns import fit_to_cells, pad_text
from memory_service.cli.output import printable

if TYPE_CHECKING:
    from memory_service.service import ShownMessage


_LINES = 4
_GUTTER = 18
_COLOURS = {"user": "green", "assistant": "cyan", "tool": "yellow", "system": "magenta", "developer": "magenta"}
_NOTES = {"checkpoint": "magenta", "cleared": "yellow", "media removed": "yellow", "added": "magenta"}


def newest_messages(spoken: Sequence[ShownMessage], limit: int | None, since: int | None) -> list[ShownMessage]:
    """The first messages after a number, or without one the newest."""
    if since is None:
        return list(spoken[-limit:] if limit else spoken)
    later = [message for message in spoken if message.seq is not None and message.seq > since]
    return later[:limit] if limit else later


def transcript_lines(spoken: Iterable[ShownMessage], *, cells: int, full: bool = False) -> Iterator[str]:
    """Lines for messages.

    Args:
        spoken: The messages.
        cells: Width of the terminal.
        full: Show the whole text of each, without cuts.
    """
    for message in spoken:
        role = message.role
        number = "-" if message.seq is None else str(message.seq)
        colour = _NOTES.get(message.note) or _COLOURS.get(role)
        before = f"{pad_text(number, 6, right=True)} {click.style(pad_text(role, 10), fg=colour)} "
        room = max(cells - _GUTTER, 20)
        for line in _lines(message, room, full):
            yield f"{before}{line}".rstrip()
            before = " " * _GUTTER


def _lines(each: ShownMessage, room: int, full: bool) -> Iterator[str]:
    """Lines for the text and the calls of a message; at least one."""
    marks = _marks(each)
    text = list(_text(each.text, room - sum(map(len, marks)), full))
    lines = [" ".join((*(click.style(mark, fg=_NOTES.get(mark[1:-1]), dim=True) for mark in marks), *text[:1]))]
    lines += [*text[1:], *(click.style(printable(label), fg="yellow") for label in each.media)]
    for call in each.calls:
        said_text = printable(f"-> {call.whole if full else call.line}").replace("\n", " ")
        lines.append(click.style(said_text if full else fit_to_cells(said_text, room), fg="blue"))
    yield from filter(None, lines) if any(lines) and not full else lines if any(lines) else ["(empty)"]


def _marks(each: ShownMessage) -> list[str]:
    """Notes before the text of a message."""
    marks = [f"({each.note})"] if each.note else []
    if each.is_error:
        marks.append("(error)")
    return marks if each.thinking_chars is None else [*marks, f"(thinking, {each.thinking_chars:,} characters)"]


def _text(text: str, room: int, full: bool) -> Iterator[str]:
    if full:
        yield from printable(text).strip("\n").split("\n") if text else ()
        return
    room = max(room, _GUTTER)
    lines = [line for line in text.split("\n") if line.strip()]
    for line in lines[:_LINES]:
        # A line of a megabyte is no reason to look at all of it.
        yield fit_to_cells(printable(line[: 8 * room + 1]), room)
    if len(lines) > _LINES:
        yield click.style(f"… {len(lines) - _LINES:,} more lines, {len(text):,} characters in all", dim=True)


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
            at = (
                f"line {error.lineno}: {error.msg.removesuffix(' at')}"
                if isinstance(error, json.JSONDecodeError)
                else "too deep"
            )
            raise InvalidRequest(f"The list of messages is no JSON ({at}). Correct it there.") from None
        return _message_file_lines(text)
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


def _message_file_lines(text: str) -> list[object]:
    from memory_service.errors import InvalidRequest

    items = list[object]()
    # Only a line feed ends a line: others may stand within a JSON text.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            items.append(json.loads(line))
        except (ValueError, RecursionError):
            raise InvalidRequest(
                f"Line {number} is no JSON. Give a JSON list of messages, one message for each line, or one message."
            ) from None
    return items


def decode_text(raw: bytes) -> str:
    """Text of a file, without its byte order mark.

    Raises:
        InvalidRequest: It is not UTF-8.
    """
    from memory_service.errors import InvalidRequest

    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest("The messages are not UTF-8. Convert them first, as with iconv.") from None


def batches_of(messages: Sequence[object]) -> list[list[object]]:
    """Messages in as many lists as one append takes each, all of them valid.

    Raises:
        InvalidRequest: There are none, or one is of neither OpenAI's nor Anthropic's shape.
        TooLarge: One has too many parts.
    """
    from memory_service.errors import InvalidRequest
    from memory_service.service import check_messages

    if not messages:
        raise InvalidRequest("The file has no messages. Give a JSON list, one message for each line, or one message.")
    batches = [list(messages[at : at + _BATCH]) for at in range(0, len(messages), _BATCH)]
    for batch in batches:
        check_messages(batch)
    return batches

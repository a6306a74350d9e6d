"""The originals behind handles: what a search result, a stub or a summary names, word for word.

A handle is a file (`memory/2026-11-20.md`) or lines of one (`memory/2026-11-20.md#L14-L15`); messages of a session by
its path (`sessions/support-42.jsonl#L12-L14`); or messages as stubs and summaries name them (`log:12`, `log:12-14`,
`log:12#1` for a medium), for which the session has to be known. `#C32000` behind any of them goes on at a character.

The session is the one that the caller names; else the one whose model is asking: its last words in the log call a tool
with that very handle, and wait for the result; else the only one there is. A model behind the gateway knows no names
of sessions, and what it says is in the log before its client calls the tool.

Invariants: an answer is bounded, and names the handle of what follows; nothing is left out without that; of two
sessions that may be meant, none is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from indexer import session_path
from indexer.common import lazy_regex
from memory_service.errors import InvalidRequest
from memory_service.home import citation
from memory_service.memories.entries import HeldEntry
from memory_service.messages.shapes import is_tool_result, tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.schemas.memories import FileText

if TYPE_CHECKING:
    from memory_service.runtime.session_store import SessionStore

# A quarter of what hosts let a tool answer.
_MAX_CHARS = 32_000
_MAX_MESSAGES = 200
# A number that no message has: to the end of a log.
_NO_END = 999_999_999
_SHOWN_SESSIONS = 5
# Of the last active sessions, those that may be asking just now.
_ASKING_SESSIONS = 64
_HANDLE = lazy_regex(
    r"(?:(?P<log>log:(?P<seq>\d{1,15})(?:[-–](?P<last_seq>\d{1,15})|#(?P<medium>\d{1,6}))?)"
    r"|(?P<path>.+?)(?:#L(?P<line>\d{1,9})(?:-L?(?P<last_line>\d{1,9}))?)?)"
    r"(?:#C(?P<char>\d{1,12}))?",
    re.DOTALL,
)
_SESSION_PATH = lazy_regex(r"sessions/([^/]+)\.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A handle, read.

    Attributes:
        path: The file; empty for messages.
        session_id: The session, if the handle names it.
        first: The first line or message; 0 for all of a file.
        last: The last one; 0 for the end.
        medium: The number of a medium in the message; 0 for the message itself.
        start_char: Where to go on in the text.
        words: The handle without that.
    """

    words: str
    path: str = ""
    session_id: str | None = None
    first: int = 0
    last: int = 0
    medium: int = 0
    start_char: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The text behind a handle.

    Attributes:
        place: Path and lines, or session and messages; the same for every handle of one text.
        next_handle: What to ask for to read on; None at the end.
        memory_ids: The entries that stand in the text, of a memory file.
        media: Content and MIME type, of a medium.
    """

    title: str
    place: str
    text: str
    next_handle: str | None = None
    memory_ids: tuple[str, ...] = ()
    media: tuple[bytes, str] | None = None


def read_handle(words: str) -> Handle:
    """Reads a handle.

    Raises:
        InvalidRequest: It is none.
    """
    match = _HANDLE.fullmatch(words.strip())
    if match is None:
        raise InvalidRequest("The id is empty. Send the id of a search result, a path, or a handle such as log:12.")
    words_of = match.groupdict()
    number = {name: int(text) for name, text in words_of.items() if text and name not in ("log", "path")}
    start_char = number.get("char", 0)
    base = words.strip()[: match.start("char") - 2] if "char" in number else words.strip()
    if match["log"]:
        first = number["seq"]
        last = number.get("last_seq", first)
        return Handle(words=base, first=first, last=last, medium=number.get("medium", 0), start_char=start_char)
    first = number.get("line", 0)
    last = number.get("last_line", first)
    session = _SESSION_PATH.fullmatch(match["path"])
    if session is None:
        return Handle(words=base, path=match["path"], first=first, last=last, start_char=start_char)
    return Handle(words=base, session_id=session[1], first=first or 1, last=last, start_char=start_char)


def original_of_file(
    handle: Handle, read: Callable[[str, int, int | None], FileText], entries: Callable[[str], Iterable[HeldEntry]]
) -> Original:
    """Lines of a file.

    Args:
        handle: Which.
        read: Reads so many lines of a path from a line on.
        entries: Gives the entries of a path.
    """
    first = handle.first or 1
    _check_order(first, handle.last or first)
    file_text = read(handle.path, first, handle.last - first + 1 if handle.last else None)
    inside = [
        entry.entry.memory_id
        for entry in entries(file_text.path)
        if entry.entry.touches(file_text.start_line, file_text.end_line)
    ]
    whole = Original(
        title=handle.path,
        place=citation(file_text.path, file_text.start_line, file_text.end_line) if handle.first else file_text.path,
        text=file_text.text,
        next_handle=_following_lines(handle, file_text),
        memory_ids=tuple(dict.fromkeys(inside)),
    )
    return _cut_to_answer(whole, handle)


def _following_lines(handle: Handle, file_text: FileText) -> str | None:
    """The handle of the wanted lines that a single reading did not give."""
    if file_text.next_start_line is None or (handle.last and file_text.end_line >= handle.last):
        return None
    return f"{handle.path}#L{file_text.next_start_line}-L{handle.last or file_text.total_lines}"


def original_of_messages(handle: Handle, store: SessionStore, session_id: str | None) -> Original:
    """Messages of a session, as they were said, or one medium of them."""
    session = handle.session_id or session_id or _asking_session(handle, store) or _only_session(handle, store)
    _check_order(handle.first, handle.last or handle.first)
    log = session_path(session)
    if handle.medium:
        content, mime = store.medium(session, handle.first, handle.medium)
        title = f"{session}, medium {handle.medium} of message {handle.first}"
        place = citation(log, handle.first, handle.first)
        return Original(title=title, place=place, text=f"{mime}, {len(content):,} bytes", media=(content, mime))
    pairs, _ = store.iter_messages(session, since_seq=handle.first - 1, limit=_MAX_MESSAGES + 1, media=False)
    parts = list(
        _message_texts(takewhile(lambda numbered_pair: not handle.last or numbered_pair[0] <= handle.last, pairs))
    )
    if not parts:
        store.message(session, handle.first)  # tells why there is none
    texts, rest = parts[:_MAX_MESSAGES], parts[_MAX_MESSAGES:]
    several, last = handle.last != handle.first, texts[-1][0]
    whole = Original(
        title=f"{session}, message{f's {handle.first}-{last}' if several else f' {last}'}",
        place=citation(log, handle.first, last),
        text="\n\n".join(f"log:{seq} {role}: {text}" for seq, role, text in texts) if several else texts[0][2],
        next_handle=citation(log, rest[0][0], handle.last or _NO_END) if rest else None,
    )
    return _cut_to_answer(whole, replace(handle, words=whole.place))


def _asking_session(handle: Handle, store: SessionStore) -> str:
    """The session whose model has called a tool with a handle, and has no result; empty for none or several."""
    pattern = re.compile(rf"(?<![\w:]){re.escape(handle.words)}(?!\d|[-–#]\d)")
    asking = list[str]()
    for session in islice(store.list_sessions(), _ASKING_SESSIONS):
        waiting = _waiting_calls(store.messages_of(session.session_id))
        if any(pattern.search(arguments) for arguments in waiting):
            asking.append(session.session_id)
    return asking[0] if len(asking) == 1 else ""


def _waiting_calls(messages: Sequence[Numbered]) -> Iterator[str]:
    """Arguments of the calls that a conversation ends with, and that have no result yet; as the model wrote them."""
    answered_keys = set[str | None]()
    for message in (each_message.message for each_message in reversed(messages)):
        if is_tool_result(message):
            answered_keys.add(message.get("tool_call_id"))
            continue
        calls = [call for call in tool_calls_of(message) if call["id"] not in answered_keys]
        yield from (call["function"]["arguments"] for call in calls)
        if not calls:
            return


def _only_session(handle: Handle, store: SessionStore) -> str:
    """The session of a workspace that has no other."""
    session_ids = [session.session_id for session in store.list_sessions()]
    if len(session_ids) == 1:
        return session_ids[0]
    names = f"; the last active are {', '.join(session_ids[:_SHOWN_SESSIONS])}" if session_ids else ""
    raise InvalidRequest(
        f"{handle.words} is a message of a session, and there are {len(session_ids)} sessions{names}. Name its session."
    )


def _message_texts(pairs: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Number, role and text of messages; what is more than text stays JSON, as it was given."""
    for seq, body in pairs:
        message = json.loads(body)
        content = message.get("content")
        plain = isinstance(content, str) and not message.get("tool_calls")
        yield seq, str(message.get("role", "")), content if plain else body


def _check_order(first: int, last: int) -> None:
    if first < 1 or last < first:
        raise InvalidRequest(f"The id names {first} to {last}. Both count from 1, and the first comes first.")


def _cut_to_answer(whole: Original, handle: Handle) -> Original:
    """So much of a text as one answer may hold."""
    end = handle.start_char + _MAX_CHARS
    following = f"{handle.words}#C{end}" if end < len(whole.text) else whole.next_handle
    return replace(whole, text=whole.text[handle.start_char : end], next_handle=following)

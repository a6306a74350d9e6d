"""The note, which stands for messages that no summary could be written of. Pure.

Invariants: earlier notes become one, never longer than asked for.
"""

from __future__ import annotations

import re

from memory_service.compaction.summary import Summary, SummaryRequest
from memory_service.llm.chunks import is_oversized
from memory_service.llm.validation import clip_sections
from memory_service.messages.sizes import count_tokens
from memory_service.text.texts import TEXTS, pattern_of, texts_in

_NOTE_VERSION = "note-2"
_COUNT, _SEQ = r"\d{1,9}", r"\d{1,18}"


def with_note(request: SummaryRequest, kind: str, *, window_tokens: int) -> Summary:
    """The note, below what was known before.

    Args:
        request: What should have been summarised.
        kind: Why it was not, see `UpstreamFailed`. The error's text is not taken: it may quote anything.
        window_tokens: Of the model that failed; a message over half of it is called very large.
    """
    messages = (*request.messages, *request.prefix)
    large = sum(is_oversized(message, window_tokens) for message in messages)
    texts = texts_in(request.language)
    previous, count, first = request.previous, len(messages), messages[0].seq if messages else 0
    if messages and (before := _earlier_note(previous)):
        previous = previous[: before.start()].rstrip()
        count, first, large = count + int(before["count"]), int(before["first"]), large + _large_of(before["large"])
    sizes = texts.note_large.format(large=large) if large else ""
    note = texts.note.format(count=count, first=first, last=messages[-1].seq, large=sizes) if messages else ""
    room = max(request.target_tokens - count_tokens(note) - 1, 0)
    previous = previous if count_tokens(previous) <= room else clip_sections(previous, room, texts)
    return Summary(
        text="\n\n".join(part for part in (previous, note) if part),
        method="note",
        prompt_version=_NOTE_VERSION,
        notes=(f"No summary could be written ({kind}); a note stands for {len(messages)} messages.",),
    )


def _earlier_note(previous: str) -> re.Match[str] | None:
    """The note that a summary ends with, in any language."""
    for texts in TEXTS.values():
        large = pattern_of(texts.note_large, large=_COUNT).pattern.replace("?P<large>", "?:")
        note = pattern_of(texts.note + "{end}", count=_COUNT, first=_SEQ, last=_SEQ, large=f"(?:{large})?", end=r"\Z")
        if match := note.search(previous):
            return match
    return None


def _large_of(text: str) -> int:
    """The number in what a note says of very large messages; 0 where it says nothing."""
    return int("".join(filter(str.isdecimal, text)) or 0)

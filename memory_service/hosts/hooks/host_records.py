"""Records that hosts are given of a conversation: pins, summary and request, within the room that an answer has. Pure.

Invariants: a record is whole: where the room is short, the summary is cut, section by section, and the request and the
end of the record stand; pins that do not fit are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_service.compaction.checkpoint import (
    Checkpoint,
    checkpoint_messages,
    pinned_texts,
    shorten_text,
)
from memory_service.compaction.users_request import AskedNow, asked_now
from memory_service.compaction.view import pin_texts, view_language, view_texts
from memory_service.hosts.dialects import host_chars
from memory_service.llm.validation import clip_sections
from memory_service.messages.shapes import own_text_of
from memory_service.messages.sizes import count_tokens
from memory_service.schemas.messages import MAX_PIN_CHARS
from memory_service.text.placeholders import handle
from memory_service.text.talk_language import talk_language
from memory_service.text.texts import Texts, texts_in

if TYPE_CHECKING:
    from memory_service.runtime.session_services import SessionSnapshot

# A frame around what is given, and a note of what did not fit.
SPARE_CHARS = 200
# Of a request that the host has compacted.
_REQUEST_CHARS = 2_000


def words_for(snapshot: SessionSnapshot | None, text: str) -> Texts:
    """Words of the talk's language; before anything was said, of that of a text."""
    return texts_in(view_language(snapshot.state) if snapshot and snapshot.state.turn else talk_language([text]))


def rule_pieces(name: str, text: str, words: Mapping[str, str]) -> list[str]:
    """A file of rules as pins, each as long as a pin may be."""
    head = words["pinned"].format(name=name)
    size = MAX_PIN_CHARS - len(head)
    return [head + text[at : at + size] for at in range(0, len(text), size)]


def rules_record(rules: Mapping[str, str], room: int) -> str:
    """Rules for a session that has no message yet."""
    texts = words_for(None, "\n".join(rules.values()))
    pieces = [(piece, None) for name, text in rules.items() for piece in rule_pieces(name, text, texts.rules)]
    return _rendered_record(pieces, Checkpoint(texts=texts), room)


def record_of(snapshot: SessionSnapshot, forgotten_count: int, room: int) -> str:
    """Pins and summary of a session, and the request that its host has compacted and our summary does not have."""
    state = snapshot.state
    texts = view_texts(state)
    parts = Checkpoint(summary=state.head.summary, texts=texts)
    now = asked_now(state.messages)
    message = (now.answer or now.request) if now else None
    if now and message and state.head.tail_start <= message.seq <= forgotten_count:
        parts = replace(parts, request=_asked_words(now, texts), request_seq=message.seq)
    return _rendered_record(pin_texts(state), parts, room)


def _asked_words(now: AskedNow, texts: Texts) -> str:
    """The newest request in words; an answer stands with its question."""
    pieces = list[str]()
    if now.request and now.request is not now.answer:
        pieces.append(shorten_text(own_text_of(now.request.message), _REQUEST_CHARS, handle(now.request.seq), texts))
    if now.answer:
        answer = shorten_text(own_text_of(now.answer.message), _REQUEST_CHARS, handle(now.answer.seq), texts)
        pieces.append(texts.question.format(seq=now.asked_in, question=now.question))
        pieces.append(texts.answer.format(seq=now.answer.seq, answer=answer))
    return "\n\n".join(pieces)


def _rendered_record(given_pairs: Sequence[tuple[str, int | None]], parts: Checkpoint, room: int) -> str:
    """A record with its pins; pins that do not fit are named, and a long summary is cut."""
    pins, fitting = pinned_texts(given_pairs), list[str]()
    left = room - host_chars(parts.request)
    for pin in pins:
        left -= host_chars(pin) + 1
        if left < SPARE_CHARS:
            fitting.append(f"- {parts.texts.pins_left.format(count=len(pins) - len(fitting))}")
            break
        fitting.append(pin)
    frame = replace(parts, pins=tuple(fitting))
    # What is escaped may be longer: the end of the record stands, and the summary is cut once more.
    left = room - host_chars(_checkpoint(replace(frame, summary="-")))
    while parts.summary and left > 0:
        text = _checkpoint(replace(frame, summary=_cut_summary(parts.summary, left, parts.texts)))
        if (over := host_chars(text) - room) <= 0:
            return text
        left -= over
    text = _checkpoint(replace(frame, summary=""))
    return text if host_chars(text) <= room else cut_text(text, room, parts.texts)


def _checkpoint(parts: Checkpoint) -> str:
    messages = checkpoint_messages(parts)
    return str(messages[0]["content"]) if messages else ""


def _cut_summary(summary: str, room: int, texts: Texts) -> str:
    """A summary within some room: its longest sections lose their last lines, and none goes because it stands last."""
    if host_chars(summary) <= room:
        return summary
    fitting, low, high = "", 1, count_tokens(summary)
    while low <= high:
        middle = (low + high) // 2
        shorter = clip_sections(summary, middle, texts)
        if host_chars(shorter) <= room:
            fitting, low = shorter, middle + 1
        else:
            high = middle - 1
    return fitting or cut_text(summary, room, texts)


def cut_text(text: str, room: int, texts: Texts) -> str:
    """The beginning of a text, up to the end of a line; empty without room for any."""
    if host_chars(text) <= room:
        return text
    note = f"\n{texts.rest}"
    left = room - host_chars(note)
    if left <= 0:
        return ""
    kept_text = text[:left]
    while host_chars(kept_text) > left:
        kept_text = kept_text[: len(kept_text) * 9 // 10]
    return (kept_text[: kept_text.rfind("\n")] if "\n" in kept_text else kept_text) + note

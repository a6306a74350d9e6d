"""Speech: speakers, days and texts of a stretch of messages. Pure.

Invariants: linear; nothing counts of a system message, of a memory block or of a checkpoint that the service put in; a
name in front of a text is a speaker only where the stretch shows that it is one, and never lends an assistant a user's
voice; a day in brackets holds until the next.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from indexer.common import THROTTLE, lazy_regex
from indexer.language import ANY, STATED_HOLDS, announces_others, full_day, is_tool_output
from memory_service.messages.shapes import is_system, is_tool_result, own_text_of, text_of
from memory_service.messages.sizes import Numbered
from memory_service.text.secrets import names_secret
from memory_service.text.texts import TEXTS, in_every_language

MAX_SAID_CHARS = 20_000

_BRACKETS = lazy_regex(r"\s*[\[【]([^\[\]【】\n]{6,60})[\]】]\s*")
_NAMED = lazy_regex(r"\s*([^\W\d_][\w.'’·-]{0,23}(?: [^\W\d_][\w.'’-]{0,23}){0,2})\s?(?:[:：])(?!//)\s*(?=\S)")
_SUBJECTS_WITHIN = lazy_regex(ANY.labels.subjects_within)
# What this service, and others like it, put into a conversation between what was said.
_INSERTED = lazy_regex(
    r"<(relevant[_-]context|memory[_-]?context|memories|context[_-]summary|conversation[_-]summary|checkpoint"
    r"|session[_-]summary|compaction[_-]?\w*|summary|system-reminder|environment[_-]context|pinned|ledger)\b[^<>]*>"
)
_HEADS = (
    *in_every_language("checkpoint_begin"),
    *in_every_language("pins_begin"),
    *(texts.pruned[name] for texts in TEXTS.values() for name in ("truncated", "old_cleared")),
)
_INSERTED_HEAD = lazy_regex(
    r"\s*(?:\[(?:checkpoint|pinned|compacted(?:_context)?|truncated|old tool result)\b"
    rf"|{'|'.join(map(re.escape, _HEADS))}"
    rf"|(?:#+ *|\[|【|\*\*)?(?:{ANY.authorship.inserted_heads}))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """An utterance: the text of one message with its speaker and day.

    Attributes:
        seq: The message.
        role: `user`, `assistant` or `tool`.
        name: The speaker's name; empty if the stretch gives none.
        text: Without day, name and what was put in.
        day: The day it was said; None if that is not known.
        failed: Of a tool's result: the tool reported an error.
    """

    seq: int
    role: str
    name: str
    text: str
    day: dt.date | None
    failed: bool = False


def read_speech(
    messages: Sequence[Numbered], zone: dt.tzinfo = dt.UTC, *, before: Sequence[Numbered] = ()
) -> list[Utterance]:
    """Utterances in order; messages without text are left out.

    Args:
        messages: A stretch of a session.
        zone: Whose days count where only the moment of a message is known.
        before: What was said before it: a day that was stated there still holds.
    """
    return list(_speech(list(_open_messages(messages, zone, _stated_day(before, messages)))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A message whose text has lost its day, but not its name."""

    said: Utterance
    label: str
    rest: str


def _stated_day(before: Sequence[Numbered], messages: Sequence[Numbered]) -> dt.date | None:
    """The day stated last before some messages, if that was lately by the clock."""
    until = said_moment(messages[0]) if messages else None
    for item in reversed(before):
        moment = said_moment(item)
        if until is None or moment is None or until - moment >= STATED_HOLDS:
            return None
        if not (is_system(item.message) or is_tool_result(item.message)):
            day, _ = _bracketed_day(text_of(item.message)[:MAX_SAID_CHARS])
            if day is not None:
                return day
    return None


def _open_messages(messages: Sequence[Numbered], zone: dt.tzinfo, stated_day: dt.date | None) -> Iterator[_Opened]:
    for item in THROTTLE.pace(messages):
        message = item.message
        if is_system(message):
            continue
        text = without_inserted(own_text_of(message)[: MAX_SAID_CHARS * 2])[:MAX_SAID_CHARS]
        is_printed = is_tool_result(message) or (message["role"] == "user" and is_tool_output(text))
        if is_printed:
            day, label, rest = stated_day or _day_of(item, zone), "", text
        else:
            found_day, text = _bracketed_day(text)
            stated_day = found_day or stated_day
            day = stated_day or _day_of(item, zone)
            label, rest = _label(text)
        has_failed = bool(message.get("is_error"))
        if text.strip():
            role = "tool" if is_printed else message["role"]
            utterance = Utterance(seq=item.seq, role=role, name="", text=text, day=day, failed=has_failed)
            yield _Opened(said=utterance, label=label, rest=rest)


def _speech(openings: list[_Opened]) -> Iterator[Utterance]:
    spoken_items = [item for item in openings if item.said.role != "tool"]
    count = Counter(item.label for item in spoken_items if item.label)
    users = {item.label for item in spoken_items if item.said.role == "user"}
    # One name in one message may be any word; a talk in which everybody is named, or a name that comes back, is not.
    # An assistant that writes "Lena: I always" speaks as Lena only in a talk of named people, and not for the user.
    everybody = sum(count.values()) == len(spoken_items)
    people = everybody and bool(users)
    for item in openings:
        own = item.said.role == "user" or (people and item.label not in users)
        if item.label and own and (everybody or count[item.label] > 1):
            utterance = item.said
            yield Utterance(
                seq=utterance.seq,
                role=utterance.role,
                name=item.label,
                text=item.rest,
                day=utterance.day,
                failed=utterance.failed,
            )
        else:
            yield item.said


def without_inserted(text: str) -> str:
    """A text without the blocks and checkpoints that a service put into it."""
    if _INSERTED_HEAD.match(text):
        return ""
    kept_value, at = [], 0
    while match := _INSERTED.search(text, at):
        kept_value.append(text[at : match.start()])
        close = f"</{match[1]}>"
        end = text.find(close, match.end())
        # What is never closed was cut off: all of it was put in.
        at = len(text) if end < 0 else end + len(close)
    kept_value.append(text[at:])
    return "".join(kept_value)


def _bracketed_day(text: str) -> tuple[dt.date | None, str]:
    match = _BRACKETS.match(text)
    day = full_day(match[1]) if match else None
    return (day, text[match.end() :]) if match and day else (None, text)


def said_moment(item: Numbered) -> dt.datetime | None:
    """The moment at which a message was said: as it tells itself, else when it was appended."""
    moment = _moment_at(item.at)
    told_moment = _moment_at(item.message.get("created_at"))
    # A clock that is ahead would write into files of days to come.
    return told_moment if told_moment and (moment is None or told_moment <= moment) else moment


def _moment_at(at: object) -> dt.datetime | None:
    try:
        if isinstance(at, int | float):
            return dt.datetime.fromtimestamp(at, dt.UTC)
        moment = dt.datetime.fromisoformat(at) if isinstance(at, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return moment.replace(tzinfo=dt.UTC) if moment and moment.tzinfo is None else moment


def _day_of(item: Numbered, zone: dt.tzinfo) -> dt.date | None:
    moment = said_moment(item)
    return moment.astimezone(zone).date() if moment else None


def _label(text: str) -> tuple[str, str]:
    """The name in front of a text, if it can be one, and the text behind it."""
    match = _NAMED.match(text)
    # "Passcode: 4711" names no speaker, and must stay whole to be known as a secret; "She wrote:" names another one.
    if match is None or names_secret(match[0]) or announces_others(match[0]):
        return "", text
    name = match[1].strip()
    if name.isascii():
        is_known = not ANY.labels.subjects.isdisjoint(name.lower().split())
        # "From now on: …" and "My address: …" are no people; "Ludwig van Beethoven: …" is one.
        usable = name[0].isupper() and name.split()[-1][0].isupper() and not is_known
    else:
        usable = len(name) <= 12 and _SUBJECTS_WITHIN.search(name) is None
    return (name, text[match.end() :]) if usable else ("", text)

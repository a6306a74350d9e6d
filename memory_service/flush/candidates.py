"""Owns the extraction of memories without a model: from a stretch of messages to the facts worth keeping. Pure.

```
speech, statements, wording, secrets, outcomes  ->  worth  ->  notes (every fact)  ->  candidates (the best of them)
```
Invariants: the same messages give the same candidates; a candidate is one line of less than 400 characters without
the opening of a comment; no two say the same thing; together they stay within a share of what was said, except in a
short stretch, and always within `MAX_ENTRIES` and `MAX_TOKENS`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.flush.notes import Note, find_notes
from memory_service.flush.speech import read_speech
from memory_service.messages import Numbered
from memory_service.tokens import count_tokens, quarters

SHARE = 0.34
MAX_ENTRIES = 40
MAX_TOKENS = 4_000
# What an entry takes in its file beside its text, at most: list marker, time heading, blank line.
ENTRY_CHARS = 14
# Up to so many messages, or quarters of a token, nothing is left out for its size; from so many on the share holds.
_SHORT_MESSAGES = 6, 12
_SHORT_QUARTERS = 800, 1_600
# Of two notes with so many of the shorter one's words in common, one is enough.
_SAME = 0.8
# Source: evidence kept per character on LoCoMo (our measurement); 0 takes the best notes, 1 the densest.
_DENSITY = 0.8
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One fact worth keeping.

    Attributes:
        text: One line of Markdown that reads as a fact to someone who was not there.
        seqs: The messages it comes from.
        date: The day it was said; None if that is not known.
        score: How much it is worth, from 0 to 1.
    """

    text: str
    seqs: tuple[int, ...]
    date: dt.date | None
    score: float


def find_candidates(messages: Sequence[Numbered], *, share: float = SHARE, zone: dt.tzinfo = dt.UTC) -> list[Candidate]:
    """The facts of a stretch of conversation, in the order in which they were said.

    Args:
        messages: A stretch of a session: a talk, or an agent's work with calls and results.
        share: How long the candidates may be together, as a share of what was said.
        zone: Whose days count where only the moment of a message is known.
    """
    said = read_speech(messages, zone)
    sizes = [quarters(item.text) for item in said if item.role != "tool"]
    chosen = _choose(find_notes(said, messages), _budget(len(sizes), sum(sizes), share))
    return [
        Candidate(text=note.text, seqs=note.seqs, date=note.day, score=round(note.score, 4))
        for note in sorted(chosen, key=lambda note: note.order)
    ]


def _budget(count: int, size: int, share: float) -> float:
    """How much may be kept of so many messages of that size, in quarters of a token.

    A short stretch may be kept whole, with what each entry adds; the share holds for a long one.
    """
    longer = min(_between(count, *_SHORT_MESSAGES), _between(size, *_SHORT_QUARTERS))
    return size * share * longer + MAX_TOKENS * 4 * (1 - longer)


def _between(value: float, low: float, high: float) -> float:
    """Where a value stands between two others, from 0 to 1."""
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _choose(notes: list[Note], budget: float) -> list[Note]:
    """The best notes for their length that fit, what binds before all others, none that says what a better one says."""
    chosen: list[Note] = []
    used = tokens = 0
    sizes = {note.order: quarters(note.text) + ENTRY_CHARS for note in notes}
    for note in sorted(notes, key=lambda note: _rank(note, sizes[note.order])):
        size, cost = sizes[note.order], count_tokens(note.text)
        fits = used + size <= budget and tokens + cost <= MAX_TOKENS
        if not fits or any(_same(note, other) for other in chosen):
            continue
        chosen.append(note)
        used, tokens = used + size, tokens + cost
        if len(chosen) == MAX_ENTRIES:
            break
    return chosen


def _rank(note: Note, size: int) -> tuple[bool, float, int]:
    return not note.binding, -note.score / size**_DENSITY, note.order


def _same(note: Note, other: Note) -> bool:
    """Whether two notes say the same thing; another number is another fact."""
    if _DIGITS.findall(note.body) != _DIGITS.findall(other.body):
        return False
    common = len(note.content & other.content)
    return common >= _SAME * max(1, min(len(note.content), len(other.content)))

"""Redundancy filter: drops passages that repeat the view or another passage.

Invariants: pure for its callers; a passage is an echo only if every statement of it is made, word for word, in one
text (see `text.similarity.covers`); what is known of messages that were shown before is used again, so a longer view
costs what was added to it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from indexer.types import Hit
from memory_service.messages import Numbered, text_of, tool_calls_of
from memory_service.text.similarity import comparable_text, covers, size_of, statements_of, words_of_statements

# Of two that say the same, the longer one takes the place of a better one only up to this many times its length.
_LONGER: Final = 4
# So many texts that are gone are carried on at least.
_CARRIED: Final = 128


class _Texts:
    """Texts by their words; it only grows, and a reader says up to where it reads.

    Each word has one number whose bits are the texts that have it: those that have all of some words are found by a
    few operations on long numbers, however many texts there are.
    """

    def __init__(self) -> None:
        self.growing = threading.Lock()
        self.texts: list[str] = []
        self.places: dict[str, int] = {}

    def add(self, said: str) -> None:
        """Add one text, as `comparable_text` gives it."""
        place, places = 1 << len(self.texts), self.places
        for word in set(said.split()):
            places[word] = places.get(word, 0) | place
        self.texts.append(said)

    def holders(self, statements: tuple[str, ...], within: int) -> Iterator[int]:
        """The places, among some, of texts that make all of some statements, in order."""
        for word in words_of_statements(statements):
            within &= self.places.get(word, 0)
            if not within:
                return
        for place in _bits(within):
            if covers(self.texts[place], statements):
                yield place


class ViewText:
    """Text of a view's messages, for finding passages that repeat it; immutable.

    Make one with `of`.
    """

    def __init__(self, messages: tuple[Numbered, ...], start: int, texts: _Texts) -> None:
        self._messages = messages
        self._start = start
        self._texts = texts
        self._end = len(texts.texts)
        self._within = (1 << self._end) - (1 << start)

    @classmethod
    def of(cls, messages: Sequence[Numbered], *, before: ViewText | None = None) -> ViewText:
        """Build the comparable text of messages.

        Args:
            messages: As the model sees them, in order.
            before: What an earlier list said; the nearer it is to this one, the less is to do.
        """
        listed = tuple(messages)
        if before is not None and (grown := before._grown(listed)) is not None:
            return grown
        known = before._known() if before is not None else {}
        texts = _Texts()
        for each in listed:
            texts.add(known.get((each.seq, id(each.message))) or _said(each))
        return cls(listed, 0, texts)

    def says(self, text: str) -> bool:
        """True if one of the messages states the same as a text."""
        return next(self._texts.holders(statements_of(text), self._within), None) is not None

    def _known(self) -> dict[tuple[int, int], str]:
        said = self._texts.texts[self._start : self._end]
        return {(each.seq, id(each.message)): text for each, text in zip(self._messages, said, strict=True)}

    def _grown(self, listed: tuple[Numbered, ...]) -> ViewText | None:
        """Copy with messages dropped at the front and added at the end; None if it must be rebuilt."""
        if not listed or not self._messages:
            return None
        at = _place(self._messages, listed[0].seq)
        kept = self._messages[at:]
        start = self._start + at
        # What is gone is still stored; when that is most of it, a new start costs less than to carry it on.
        if listed[: len(kept)] != kept or not kept or start > self._end // 2 + _CARRIED:
            return None
        with self._texts.growing:
            if len(self._texts.texts) != self._end:
                return None  # another view has grown out of this one
            for each in listed[len(kept) :]:
                self._texts.add(_said(each))
            return ViewText(listed, start, self._texts)


def drop_redundant(hits: Sequence[Hit], shown: ViewText) -> tuple[Hit, ...]:
    """The hits that say something that the model does not see, each thing once.

    Args:
        hits: Best first.
        shown: What the model sees.

    Returns:
        The others in their order. Where two say the same, the longer stays, at the place and with the score and
        relevance of the better one; of two that are as long, the one from a memory file. A hit that says the same among
        much else does not take the place of a better one that says just this.
    """
    return _each_once([hit for hit in hits if not shown.says(hit.passage.text)])


def _each_once(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    repeats = _repeats(hits)
    places = dict[int, int]()
    for at in range(len(hits)):
        kept = at
        while kept in repeats:
            kept = repeats[kept]
        places[kept] = min(places.get(kept, at), at)
    return tuple(
        hits[kept] if place == kept else _in_place_of(hits[kept], hits[place])
        for kept, place in sorted(places.items(), key=lambda item: item[1])
    )


def _in_place_of(hit: Hit, better: Hit) -> Hit:
    """A hit that says what a better one says, judged as that is."""
    return replace(hit, score=better.score, relevance=better.relevance, answers=better.answers)


def _repeats(hits: Sequence[Hit]) -> dict[int, int]:
    """Map each redundant hit to the hit that covers it (acyclic)."""
    sizes = [size_of(statements_of(hit.passage.text)) for hit in hits]
    # What says more comes first; so each is compared with those before it alone.
    order = sorted(
        range(len(hits)), key=lambda at: (-sizes[at], -len(hits[at].passage.text), hits[at].source != "memory", at)
    )
    texts = _Texts()
    repeats = dict[int, int]()
    for place, at in enumerate(order):
        passage = hits[at].passage
        for first in texts.holders(statements_of(passage.text), (1 << place) - 1):
            other = order[first]
            if other < at or sizes[other] <= _LONGER * sizes[at]:
                repeats[at] = other
                break
        texts.add(_spoken(f"({passage.date})\n{passage.text}" if passage.date else passage.text))
    return repeats


@lru_cache(maxsize=4_096)
def _spoken(passage: str) -> str:
    """Comparable text of a passage, cached since the same passages are found again and again."""
    return comparable_text(passage)


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _said(each: Numbered) -> str:
    """The text of a message with who wrote it and when, as a note of it would have them."""
    message = each.message
    calls = [call["function"]["arguments"] for call in tool_calls_of(message)]
    name = message.get("name") if message["role"] in ("user", "assistant") else None
    head = f"{name or ''} ({each.at[:10]})\n" if name or each.at else ""
    return comparable_text("\n".join((head + text_of(message), *calls)))


def _place(messages: Sequence[Numbered], seq: int) -> int:
    low, high = 0, len(messages)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if messages[middle].seq < seq else (low, middle)
    return low

"""Redundancy: passages that repeat the view or another passage, and facts that a memory states already.

Invariants: pure for its callers; a passage is an echo only if every statement of it is made, word for word, in one
text (see `text.similarity.covers`); what is known of messages that were shown before is used again, so a longer view
costs what was added to it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from indexer import Hit, IndexerError, SearchFilter
from indexer.language import breadcrumb, ornament
from memory_service.messages.shapes import own_text_of, tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.text.phrases import is_relative
from memory_service.text.similarity import (
    Fact,
    comparable_text,
    covers,
    holds_all,
    probe,
    read_fact,
    size_of,
    stands_in,
    statements_of,
    words_of_statements,
)

if TYPE_CHECKING:
    from indexer import Index

# A longer text says itself what it is about.
_SHORT_CHARS: Final = 60
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

    def add(self, text: str, words: Iterable[str] = ()) -> None:
        """Add one text, as `comparable_text` gives it; its words, if they are known."""
        place, places = 1 << len(self.texts), self.places
        for word in words or set(text.split()):
            places[word] = places.get(word, 0) | place
        self.texts.append(text)

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
        listed_messages = tuple(messages)
        if before is not None and (view_text := before._grow(listed_messages)) is not None:
            return view_text
        values = before._text_by_message() if before is not None else {}
        texts = _Texts()
        for message in listed_messages:
            texts.add(
                values.get((message.seq, id(message.message))) or ornament("similarity", "", _message_text, message)
            )
        return cls(listed_messages, 0, texts)

    def says(self, text: str) -> bool:
        """True if one of the messages states the same as a text."""

        def read() -> bool:
            return next(self._texts.holders(statements_of(text), self._within), None) is not None

        return ornament("similarity", False, read)

    def _text_by_message(self) -> dict[tuple[int, int], str]:
        texts = self._texts.texts[self._start : self._end]
        return {(message.seq, id(message.message)): text for message, text in zip(self._messages, texts, strict=True)}

    def _grow(self, messages: tuple[Numbered, ...]) -> ViewText | None:
        """Copy with messages dropped at the front and added at the end; None if it must be rebuilt."""
        if not messages or not self._messages:
            return None
        at = _place(self._messages, messages[0].seq)
        kept_messages = self._messages[at:]
        start = self._start + at
        # What is gone is still stored; when that is most of it, a new start costs less than to carry it on.
        if messages[: len(kept_messages)] != kept_messages or not kept_messages or start > self._end // 2 + _CARRIED:
            return None
        with self._texts.growing:
            if len(self._texts.texts) != self._end:
                return None  # another view has grown out of this one
            for message in messages[len(kept_messages) :]:
                self._texts.add(ornament("similarity", "", _message_text, message))
            return ViewText(messages, start, self._texts)


def repeats_among(hits: Sequence[Hit], *, longest: float = math.inf) -> dict[int, int]:
    """The hits that say nothing but what another one says, each with that other one, by their places.

    Of two that say the same, the one that says more stays; of two that say as much, the one from a memory file. What
    was replaced since stands for nothing that was not, nobody for the word of somebody of a higher authority, and
    yesterday is not the same day on two days. A hit
    behind another stands for it up to `longest` times its size.
    """
    said_texts = [
        _comparable_passage(f"({hit.passage.date})\n{hit.passage.text}" if hit.passage.date else hit.passage.text)
        for hit in hits
    ]
    # What says more comes first; so each is compared with those before it alone.
    sizes = [size_of(statements_of(hit.passage.text)) for hit in hits]
    order = sorted(range(len(hits)), key=lambda at: (-sizes[at], hits[at].source != "memory", -len(said_texts[at]), at))
    texts, repeats = _Texts(), dict[int, int]()
    for place, at in enumerate(order):
        holders = (order[n] for n in texts.holders(statements_of(hits[at].passage.text), (1 << place) - 1))
        fitting = (n for n in holders if n < at or sizes[n] <= longest * sizes[at])
        if (other_number := next((n for n in fitting if _stands_for(hits[n], hits[at])), None)) is not None:
            repeats[at] = repeats.get(other_number, other_number)
        texts.add(said_texts[at], _words_of(said_texts[at]))
    return repeats


def _stands_for(hit: Hit, other_hit: Hit) -> bool:
    """True if a hit that makes the statements of another means the same by them, and has no less authority."""
    if hit.passage.authority < other_hit.passage.authority:
        return False
    if hit.replaced_by is not None and other_hit.replaced_by is None:
        return False
    if len(other_hit.passage.text) <= _SHORT_CHARS and not _tells_place(hit, other_hit):
        return False
    return not is_relative(other_hit.passage.text) or len({_day_of(hit), _day_of(other_hit)} - {""}) < 2


def _tells_place(hit: Hit, other_hit: Hit) -> bool:
    """True if a hit says all that stands above another: below other titles the same words mean another thing."""
    keys = {*breadcrumb(hit.passage.heading)}
    return all(title in keys or title.casefold() in hit.passage.text.casefold() for title in _titles_of(other_hit))


def _titles_of(hit: Hit) -> tuple[str, ...]:
    return () if hit.source == "sessions" else breadcrumb(hit.passage.heading)


def _day_of(hit: Hit) -> str:
    """The day that the words of a hit are of; empty if that is not known."""
    return read_fact(hit.passage.text).day or str(hit.passage.date or "")


@lru_cache(maxsize=4_096)
def _comparable_passage(passage: str) -> str:
    """Comparable text of a passage, cached since the same passages are found again and again."""
    return comparable_text(passage)


@lru_cache(maxsize=4_096)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _message_text(each_message: Numbered) -> str:
    """The text of a message with who wrote it and when, as a note of it would have them."""
    message = each_message.message
    calls = [call["function"]["arguments"] for call in tool_calls_of(message)]
    name = message.get("name") if message["role"] in ("user", "assistant") else None
    head = f"{name or ''} ({each_message.at[:10]})\n" if name or each_message.at else ""
    return comparable_text("\n".join((head + own_text_of(message), *calls)))


def _place(messages: Sequence[Numbered], seq: int) -> int:
    low, high = 0, len(messages)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if messages[middle].seq < seq else (low, middle)
    return low


# A fact that is known is among the first to be found by its own words.
_NEAREST = 3
_PROBED = 8
_QUERY_CHARS = 1_000
_MEMORIES = SearchFilter(sources=("memory",))


def stated_among(index: Index, texts: Sequence[str]) -> tuple[set[int], list[str]]:
    """Positions of the facts that a memory already states, and the reasons why others could not be looked up."""
    numbers, missing = set[int](), list[str]()
    try:
        numbers.update(at for at, text in enumerate(texts) if ornament("similarity", False, _is_stated, index, text))
    except IndexerError as error:
        missing.append(f"index: {error}")
    return numbers, missing


def _is_stated(index: Index, text: str) -> bool:
    # A flush alone asks for it.
    from memory_service.text.retelling import retells_any, retold_words

    return _is_known(index, read_fact(text)) or retells_any(text, _passages(index, retold_words(text), _PROBED))


def _is_known(index: Index, fact: Fact) -> bool:
    words = probe(fact)
    passages = _passages(index, words, _PROBED)
    if any(stands_in(fact, passage) for passage in passages):
        return True
    if len(passages) < _PROBED or not holds_all(passages[-1], words):
        return False
    # More passages have those words than were looked at.
    return any(stands_in(fact, passage) for passage in _passages(index, fact.plain, _NEAREST))


def _passages(index: Index, query: str, limit: int) -> list[str]:
    """The memories with words of a question, the best first; what was replaced since is stated no more."""
    if not query.strip():
        return []
    hits = index.search(query[:_QUERY_CHARS], limit=limit, mode="text", filter=_MEMORIES).hits
    return [hit.passage.text for hit in hits if hit.replaced_by is None]

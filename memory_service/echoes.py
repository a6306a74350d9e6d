"""Owns echoes: what was found and says nothing new, since the model sees it already or it was found twice.

Invariants: pure for its callers; a text that differs in a number, a day, a name or a negation is no echo; what is
known of messages that were shown before is used again, so a longer view costs what was added to it.

Why 80 % and not all: people and models repeat a statement with one word more or less. Why within a stretch: a long
message has the words of many statements that it never makes.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from indexer.types import Hit
from memory_service.gist import FEW, NOT, Gist, cached_gist, gist_of
from memory_service.messages import Message, Numbered, text_of, tool_calls_of

SHOWN_SHARE: Final = 0.80
TWICE_SHARE: Final = 0.85
# A statement is looked for within so many terms, half of which the next stretch has too.
_STRETCH = 128
# So many rare terms more than may be missing are looked up together: the more, the fewer texts are compared in vain.
_MORE = 4
# Of two that say the same, the longer one takes the place of a better one only up to this many times its length.
_LONGER = 4


class _Stretches:
    """Texts by their terms; it only grows, and a reader says up to where it reads.

    Each term has one number whose bits are the places where it stands: what has most of many terms is then found by
    a few operations on long numbers, however many texts there are.
    """

    def __init__(self) -> None:
        self.growing = threading.Lock()
        self.terms: list[frozenset[str]] = []
        self.places: dict[str, int] = {}
        self.words: dict[str, int] = {}
        self.counts = Counter[str]()
        self.whole = 0  # long messages as a whole, which only a long text can repeat

    def add(self, gist: Gist) -> None:
        """Adds one text, as one stretch or as many."""
        if gist.words:
            self.words[gist.words] = self.words.get(gist.words, 0) | 1 << len(self.terms)
        if len(gist.terms) > _STRETCH:
            self.whole |= 1 << len(self.terms)
        for terms in _stretches_of(gist):
            place, places = 1 << len(self.terms), self.places
            for term in terms:
                places[term] = places.get(term, 0) | place
            self.counts.update(terms)
            self.terms.append(terms)

    def holders(self, gist: Gist, share: float, within: int) -> Iterator[int]:
        """The places, among some, of texts that say what a text says, in order."""
        terms = gist.distinct
        if len(terms) < FEW:
            yield from _bits(self.words.get(gist.words, 0) & within if gist.words else 0)
            return
        for term in gist.firm:
            within &= self.places.get(term, 0)
        if not within:
            return
        if len(terms) <= _STRETCH // 2:
            within &= ~self.whole
        spare = len(terms) - _least(len(terms), share)
        rarest = sorted(terms, key=self.counts.__getitem__)[: spare + _MORE]
        places = [self.places.get(term, 0) & within for term in rarest]
        for place in _bits(_shared(places, len(rarest) - spare)):
            if _contains(self.terms[place], terms, spare):
                yield place


class Shown:
    """What the messages of a view say; it never changes.

    Make one with `of`.
    """

    def __init__(
        self, messages: tuple[Numbered, ...], gists: tuple[Gist, ...], starts: tuple[int, ...], stock: _Stretches
    ) -> None:
        self._messages = messages
        self._gists = gists
        self._starts = starts
        self._stock = stock
        self._end = len(stock.terms)
        self._within = (1 << self._end) - (1 << (starts[0] if starts else self._end))

    @classmethod
    def of(cls, messages: Sequence[Numbered], *, before: Shown | None = None) -> Shown:
        """What messages say.

        Args:
            messages: As the model sees them, in order.
            before: What an earlier list said; the nearer it is to this one, the less is to do.
        """
        listed = tuple(messages)
        if before is not None and (grown := before._grown(listed)) is not None:
            return grown
        known = {(each.seq, id(each.message)): gist for each, gist in before._known()} if before else {}
        gists = tuple(known.get((each.seq, id(each.message))) or _said(each.message) for each in listed)
        stock = _Stretches()
        return cls(listed, gists, tuple(_added(stock, gists)), stock)

    def says(self, gist: Gist) -> bool:
        """Whether one of the messages says what a text says."""
        return next(self._stock.holders(gist, SHOWN_SHARE, self._within), None) is not None

    def _known(self) -> Iterator[tuple[Numbered, Gist]]:
        return zip(self._messages, self._gists, strict=True)

    def _grown(self, listed: tuple[Numbered, ...]) -> Shown | None:
        """The same with messages gone at the front and come at the end; None if it has to be made anew."""
        if not listed or not self._messages:
            return None
        at = _place(self._messages, listed[0].seq)
        kept = self._messages[at:]
        # What is gone is still stored; when that is most of it, a new start costs less than to carry it on.
        if listed[: len(kept)] != kept or not kept or self._starts[at] > self._end // 2 + _STRETCH:
            return None
        stock = self._stock
        with stock.growing:
            if len(stock.terms) != self._end:
                return None  # another view has grown out of this one
            gists = tuple(_said(each.message) for each in listed[len(kept) :])
            starts = (*self._starts[at:], *_added(stock, gists))
            return Shown(listed, (*self._gists[at:], *gists), starts, stock)


def without_echoes(hits: Sequence[Hit], shown: Shown) -> tuple[Hit, ...]:
    """The hits that say something that the model does not see, each thing once.

    Args:
        hits: Best first.
        shown: What the model sees.

    Returns:
        The others in their order. Where two say the same, the longer stays, at the place and with the score of the
        better one; of two that are as long, the one from a memory file. A hit that says the same among much else
        does not take the place of a better one that says just this.
    """
    gists = [cached_gist(hit.passage.text) for hit in hits]
    news = [at for at, gist in enumerate(gists) if not shown.says(gist)]
    return _each_once([hits[at] for at in news], [gists[at] for at in news])


def _each_once(hits: Sequence[Hit], gists: Sequence[Gist]) -> tuple[Hit, ...]:
    repeats = _repeats(hits, gists)
    places = dict[int, int]()
    for at in range(len(hits)):
        kept = at
        while kept in repeats:
            kept = repeats[kept]
        places[kept] = min(places.get(kept, at), at)
    return tuple(
        hits[kept] if place == kept else replace(hits[kept], score=hits[place].score)
        for kept, place in sorted(places.items(), key=lambda item: item[1])
    )


def _repeats(hits: Sequence[Hit], gists: Sequence[Gist]) -> dict[int, int]:
    """Which hits say what another one says, and which one that is; none goes in a circle."""
    stock = _Stretches()
    starts = list(_added(stock, gists))
    hit_at = {start: at for at, start in enumerate(starts)}
    everything = sum(1 << start for start in starts)
    sizes = [len(hit.passage.text) for hit in hits]
    # What says more comes first.
    ranks = [(-sizes[at], hit.source != "memory", at) for at, hit in enumerate(hits)]
    repeats = dict[int, int]()
    for at, gist in enumerate(gists):
        others = map(hit_at.__getitem__, stock.holders(gist, TWICE_SHARE, everything ^ 1 << starts[at]))
        fitting = [
            other
            for other in others
            if ranks[other] < ranks[at] and (other < at or sizes[other] <= _LONGER * sizes[at])
        ]
        if fitting:
            repeats[at] = min(fitting, key=ranks.__getitem__)
    return repeats


def _least(count: int, share: float) -> int:
    return -int(-count * share // 1)


def _shared(places: Sequence[int], least: int) -> int:
    """The bits that at least so many of some numbers have."""
    layers = [0] * least
    for place in places:
        for at in range(least - 1, 0, -1):
            layers[at] |= layers[at - 1] & place
        layers[0] |= place
    return layers[-1]


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _contains(stretch: frozenset[str], terms: Sequence[str], spare: int) -> bool:
    missing = [term for term in terms if term not in stretch]
    return len(missing) <= spare and not any(_is_news(term, stretch) for term in missing)


def _is_news(term: str, stretch: frozenset[str]) -> bool:
    """Whether a term that a text lacks changes what is said, though it is one among many."""
    if NOT + term in stretch:
        return True
    # Of Chinese 80 % of the bigrams may be all but the name: two characters that the text does not have at all.
    return not term.isascii() and len(term) == 2 and set(term).isdisjoint(chain.from_iterable(stretch))


def _stretches_of(gist: Gist) -> Iterator[frozenset[str]]:
    terms = gist.terms
    yield frozenset(terms)
    if len(terms) > _STRETCH:
        for start in range(0, len(terms), _STRETCH // 2):
            yield frozenset(terms[start : start + _STRETCH])


def _added(stock: _Stretches, gists: Iterable[Gist]) -> Iterator[int]:
    for gist in gists:
        yield len(stock.terms)
        stock.add(gist)


def _said(message: Message) -> Gist:
    calls = [call["function"]["arguments"] for call in tool_calls_of(message)]
    return gist_of("\n".join((text_of(message), *calls)) if calls else text_of(message))


def _place(messages: Sequence[Numbered], seq: int) -> int:
    low, high = 0, len(messages)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if messages[middle].seq < seq else (low, middle)
    return low

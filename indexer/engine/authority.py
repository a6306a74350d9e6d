"""Order of authority among the hits of a search: what a lower one says of a thing stands behind what a higher one says.

A passage rivals one of higher authority if it tells of the same thing: it says nearly the same words, or the vectors of
the two are near each other, or both answer the question as well by its words. Facts that change are told apart by
`chains`, which know more of them; here are all others.

Invariants: pure; nothing is left out, and passages of one authority keep their order; only what rivals a hit moves, and
only before it; questions and requests of a conversation rival nothing, nor do two people who talk to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from indexer.corpus import Floats, Ints, Mask
from indexer.language.authorship import in_first_person
from indexer.language.questions import asks, requests
from indexer.language.sentences import split_parts
from indexer.language.terms import index_terms, query_terms
from indexer.stores.base import StoredPassage
from indexer.types import AUTHORITY, CUE_BITS, ROLE_BITS, ROLES, Hit, Vectors

if TYPE_CHECKING:
    from indexer.engine.candidates import Candidates
    from indexer.engine.relevance import QuestionTerms

_BY_ROLE = np.array([AUTHORITY[role] for role in ROLES])
# Of what a note says, how much a rival says too, and that of a message, which is about as much else.
_ALIKE, _ALIKE_TALK = 0.5, 0.6
_LEAST_SHARED = 2
# Words that two sentences share of all that either has, with those that any sentence has, and how many at least.
_SAME_FRAME, _LEAST_FRAME = 0.35, 3
# Words by which two sentences begin alike.
_BEGINNING = 2
_MOST_SENTENCES = 24
# Cosine of passages that tell of one thing.
_NEAR, _NEAR_TALK = 0.6, 0.75
# Of the question's words by their rarity: how many the higher one has, and as a share of those of the lower one.
_COVERED, _AS_WELL, _COVERED_WHOLE = 0.5, 0.75, 0.95
# Relevance of a note, and of a message, that answers the question where nothing of lower authority is known.
_BEARS, _BEARS_TALK = 0.3, 0.6
# A note in other words than the question, which bears on it so many times more than any other.
_LEAST_ALONE, _FAR_MORE = 0.02, 5.0
_SOME_COVERED, _SOME_NEAR = 0.3, 0.4
# Longer messages are texts that were given to work on.
_MOST_CHARS = 600


def authorities(marks: Ints) -> Ints:
    """Authority of each passage by its `Passage.marks`."""
    ranks: Ints = _BY_ROLE[roles_of(marks)]
    return ranks


def roles_of(marks: Ints) -> Ints:
    """Number of the role of each passage, its place in `ROLES`, by its `Passage.marks`."""
    roles: Ints = marks >> CUE_BITS & ((1 << ROLE_BITS) - 1)
    return roles


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A passage and its hit, as it is compared with others for one question.

    Attributes:
        alone: Its relevance where nothing of lower authority is known; None where no relevance is.
        next_best: That of the second best of those that are compared.
    """

    stored: StoredPassage
    hit: Hit
    asked: QuestionTerms
    alone: float | None = None
    next_best: float = 1.0

    @property
    def authority(self) -> int:
        """Authority of the passage."""
        return self.stored.passage.authority

    @property
    def is_talk(self) -> bool:
        """True for a message of a conversation."""
        return self.stored.source == "sessions"

    @cached_property
    def terms(self) -> frozenset[str]:
        """Telling terms of its text; single characters of unspaced scripts say too little."""
        return _long(self.stored.passage.text)

    @cached_property
    def sentences(self) -> tuple[tuple[str, ...], ...]:
        """All words of each of its sentences, in order."""
        passage = self.stored.passage
        text = passage.text if passage.role == "user" else in_first_person(passage.text)
        texts = split_parts(text)[:_MOST_SENTENCES]
        return tuple(tuple(_pairs(index_terms(sentence))) for sentence in texts)

    @cached_property
    def asked_numbers(self) -> frozenset[str]:
        """Numbers and identifiers of the question that it has: which of several like things it tells of."""
        passage = self.stored.passage
        own = index_terms("\n".join((*passage.heading, passage.text)))
        return frozenset(term for term in self.asked.telling if any(map(str.isdigit, term))).intersection(own)

    @cached_property
    def coverage(self) -> float:
        """Share of the question that its words and its titles have, by how rare each word is."""
        passage = self.stored.passage
        own = {*query_terms("\n".join((*passage.heading, passage.text)))}
        return sum(map(self.asked.rarity_of, own.intersection(self.asked.telling))) / self.asked.rarity

    @property
    def stands_out(self) -> bool:
        """True if it bears on the question far more than any other, though in other words."""
        near = self.coverage >= _SOME_COVERED or (not self.is_talk and (self.hit.vector_score or 0.0) >= _SOME_NEAR)
        return near and (self.alone or 0.0) >= max(_LEAST_ALONE, _FAR_MORE * self.next_best)

    @cached_property
    def states(self) -> bool:
        """True if it says something, rather than asking for it."""
        passage = self.stored.passage
        if not self.is_talk:
            return True
        return len(passage.text) <= _MOST_CHARS and not asks(passage.text) and not requests(passage.text)


def _long(text: str) -> frozenset[str]:
    terms = query_terms(text)
    return frozenset(term for term in terms if len(term) > 1 or term.isascii()) or frozenset(terms)


def _pairs(terms: list[str]) -> list[str]:
    """Terms without single characters of unspaced scripts, which stand in all sentences."""
    return [term for term in terms if len(term) > 1 or term.isascii()] or terms


def _is_framed(higher: Contender, lower: Contender) -> bool:
    """True if a sentence of each is the same but for what it says of a thing: "I work as a nurse", "… as a pilot".

    Where the lower one alone has words of the question, the two have to begin alike as well.
    """
    anyhow = higher.coverage > 0 or not lower.coverage
    return any(
        (anyhow or own[:_BEGINNING] == other_sentence[:_BEGINNING])
        and len(intersection := {*own}.intersection(other_sentence)) >= _LEAST_FRAME
        and len(intersection) >= _SAME_FRAME * len({*own, *other_sentence})
        and not intersection.isdisjoint(higher.terms)
        for own in higher.sentences
        for other_sentence in lower.sentences
    )


def _rivals(higher: Contender, lower: Contender, cosine: Callable[[int, int], float]) -> bool:
    """True if the lower one tells of what the higher one tells of.

    Args:
        higher: The one of higher authority.
        lower: The other one.
        cosine: Of the stored vectors of two passages, by their keys; 0.0 where they have none.
    """
    if higher.authority <= lower.authority or not higher.states:
        return False
    labels = higher.stored.passage.label, lower.stored.passage.label
    if all(labels) and labels[0] != labels[1]:
        return False
    if not lower.asked_numbers <= higher.asked_numbers:
        return False
    talk, is_noted = higher.is_talk, lower.stored.passage.role == "agent"
    shared_count = len(higher.terms & lower.terms)
    if (
        shared_count >= _LEAST_SHARED
        and shared_count >= (_ALIKE_TALK if talk or is_noted else _ALIKE) * len(higher.terms)
        and higher.coverage
    ):
        return True
    if _is_framed(higher, lower):
        return True
    # The notes of an agent are about what the user's are about: that both bear on a question says little there.
    if is_noted and not talk and higher.coverage >= _COVERED_WHOLE:
        return True
    if not is_noted:
        if (not talk or lower.is_talk) and higher.coverage >= max(_COVERED, _AS_WELL * lower.coverage):
            return True
        if (higher.alone or 0.0) >= (_BEARS_TALK if talk else _BEARS) or higher.stands_out:
            return True
    return cosine(higher.stored.key, lower.stored.key) >= (_NEAR_TALK if talk or is_noted else _NEAR)


def by_authority(
    hits: Sequence[Contender], higher: Sequence[Contender], cosine: Callable[[int, int], float]
) -> list[tuple[StoredPassage, Hit]]:
    """The hits, none before the best one of higher authority that it rivals.

    Args:
        hits: Best first.
        higher: Passages that may be of higher authority, best first, whether they are among the hits or not.
        cosine: Of the stored vectors of two passages, by their keys; 0.0 where they have none.
    """
    values = dict[int, tuple[StoredPassage, Hit]]()
    contenders = {contender.stored.key: contender for contender in hits}

    def place(each_contender: Contender, before: Hit | None) -> None:
        if each_contender.stored.key in values:
            return
        above = next(
            (other_contender for other_contender in higher if _rivals(other_contender, each_contender, cosine)), None
        )
        hit = each_contender.hit if before is None else not_below(each_contender.hit, before)
        if above is not None:
            place(contenders.get(above.stored.key, above), hit)
            hit = replace(hit, yields_to=((above.stored.path, above.stored.ordinal),))
            if _plain(above.stored.passage.text) == _plain(each_contender.stored.passage.text):
                return
        values[each_contender.stored.key] = each_contender.stored, hit

    for each in hits:
        place(each, None)
    return [*values.values()]


def cosines_among(keys: Ints, vectors: Vectors) -> Callable[[int, int], float]:
    """Cosine of two of some passages, by their keys; 0.0 where one has no vector."""
    place = {int(key): at for at, key in enumerate(keys)}

    def cosine(first: int, second: int) -> float:
        if first not in place or second not in place:
            return 0.0
        return float(np.vecdot(vectors[place[first]], vectors[place[second]]))

    return cosine


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def unknown_cosine(first: int, second: int) -> float:
    """Cosine of passages without vectors."""
    return 0.0


def best_above(candidates: Candidates, scores: Floats, rarity: float, least: int, count: int, mask: Mask) -> Ints:
    """Places of the candidates of more than an authority that say most of the question themselves, by their scores.

    Args:
        candidates: The candidates.
        scores: Their scores, in which what stands around a passage counts too.
        rarity: Of the question's words together.
        least: The authority.
        count: Most of them.
        mask: Mask of the candidates to look among.
    """
    places = np.flatnonzero(mask & (authorities(candidates.marks) > least))
    own = np.zeros(len(places))
    if candidates.text:
        own += candidates.text.unit[places] / rarity
    if candidates.vector:
        own += candidates.vector.own[places]
    places = places[np.argsort(-own, kind="stable")[:count]]
    return places[np.argsort(-scores[places], kind="stable")]


def not_below(hit: Hit, other_hit: Hit) -> Hit:
    """A hit with a score and a relevance that are not less than those of another."""
    score = max(hit.score, other_hit.score)
    raised_value = score - hit.score
    relevance = other_hit.relevance if hit.relevance is None else max(hit.relevance, other_hit.relevance or 0.0)
    answers = other_hit.answers if hit.answers is None else max(hit.answers, other_hit.answers or 0.0)
    signals = {**hit.signals, "current": raised_value} if other_hit.signals and raised_value else hit.signals
    return replace(hit, score=score, relevance=relevance, answers=answers, signals=signals)

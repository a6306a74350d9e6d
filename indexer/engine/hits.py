"""Hits of a question: the best candidates as passages, each text once, current values first.

Invariants: no hit comes before one of higher authority that tells of the same thing; a passage that is removed before
it is fetched is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from indexer.engine.attribute_first import attribute_first, body_first
from indexer.engine.authority import (
    Contender,
    authorities,
    best_above,
    by_authority,
    cosines_among,
    unknown_cosine,
)
from indexer.engine.candidates import Ranked
from indexer.engine.chains import FactResolver
from indexer.engine.copies import days_of_copies, distinct
from indexer.engine.ranking import RankingSettings, mmr_order, spread
from indexer.engine.reader import IndexReader
from indexer.engine.restatements import COMPARED, restated_last
from indexer.engine.sought import named_first
from indexer.language import terms as analysis
from indexer.language.ornaments import ornament
from indexer.language.sentences import SNIPPET_CHARS, snippet
from indexer.stores.base import IndexStore, StoredPassage
from indexer.types import AUTHORITY, Hit

if TYPE_CHECKING:
    from indexer.engine.search import Query, Relevance

# Hits of one Markdown file before the best of others, where places are asked for. Source: dialogues at work (RealMem),
# evidence among the first five and ten without, with 5, 3, 2: .570 / .642, .608 / .719, .612 / .734, .618 / .747.
_OF_ONE_FILE = 5
# Of those of higher authority than a hit, how many of the best are compared with it.
_CONTENDERS = 8


def to_hits(
    view: IndexReader, query: Query, ranked: Ranked, settings: RankingSettings, relevance: Relevance
) -> tuple[Hit, ...]:
    """The best candidates as hits, each text once, none before one of higher authority that tells of the same thing."""
    varied = settings.mmr_lambda < 1
    pool = 4 * query.limit if varied else max(query.limit, COMPARED)
    order = np.argsort(-ranked.scores, kind="stable")
    if query.spread:
        order = spread(order, ranked.candidates.files, ~ranked.candidates.spoken, _OF_ONE_FILE)
    chosen = distinct(view.store, ranked, order, pool)
    if varied:
        chosen = _varied(chosen, ranked, settings.mmr_lambda, max(query.limit, COMPARED))
    if settings.fusion == "evidence":
        ranked, chosen = ornament("labels", (ranked, chosen), attribute_first, query.text, ranked, chosen)
        ranked, chosen = ornament("labels", (ranked, chosen), body_first, query.text, ranked, chosen)
    made = _Hits(view.store, query, ranked, relevance)
    contenders = made.contenders(chosen[: query.limit])
    hits = ornament("authority", [(each.stored, each.hit) for each in contenders], made.by_authority, contenders)
    if days := ornament("days", {}, days_of_copies, view.store, ranked, chosen[: query.limit]):
        hits = [(stored, replace(hit, days=days.get(stored.key, ()))) for stored, hit in hits]
    chains = view.facts.on(query.today, query.zone)
    resolver = FactResolver(view.store, chains, query.filter, history=query.history)
    resolved = ornament("facts", [hit for _, hit in hits], resolver.resolved, hits, made.brought)
    others = [stored for _, stored in chosen[query.limit : COMPARED]]
    known = chains, resolver.parted, made.brought
    told = ornament("restated", resolved, restated_last, resolved, others, *known, history=query.history)
    told = named_first(told, ranked, chosen)
    return tuple(_descending(told) if query.spread else told)


def _descending(hits: Sequence[Hit]) -> Iterator[Hit]:
    """The hits with scores that only fall: what stands behind another file's hits has no more than these."""
    least = math.inf
    for hit in hits:
        least = min(least, hit.score)
        lacks = least - hit.score
        signals = {**hit.signals, "spread": lacks} if hit.signals and lacks else hit.signals
        yield replace(hit, score=least, signals=signals) if lacks else hit


class _Hits:
    """The hits of one question.

    Args:
        store: The index, within a read.
        query: The question.
        ranked: Its candidates.
        relevance: How relevant they are.
    """

    def __init__(self, store: IndexStore, query: Query, ranked: Ranked, relevance: Relevance) -> None:
        self._store = store
        self._query = query
        self._ranked = ranked
        self._relevance = relevance
        self._terms = analysis.asked_terms(query.text)

    def contenders(self, chosen: Sequence[tuple[int, StoredPassage]]) -> list[Contender]:
        """Some candidates by their positions, as hits to be compared."""
        chances = self._relevance.of(self._ranked, chosen)
        return [
            Contender(stored=found, hit=self._hit(found, position, *chance), asked=self._relevance.asked)
            for (position, found), chance in zip(chosen, chances, strict=True)
        ]

    def by_authority(self, hits: list[Contender]) -> list[tuple[StoredPassage, Hit]]:
        """The hits, and before each the passage of higher authority that it rivals, be it among them or not."""
        found = self._ranked.candidates
        least = min((each.authority for each in hits), default=max(AUTHORITY.values()))
        told = self._ranked.parts.get("echo", np.zeros(len(found))) >= 0
        above = best_above(found, self._ranked.scores, self._relevance.asked.rarity, least, _CONTENDERS, told)
        if not len(above):
            return [(each.stored, each.hit) for each in hits]
        known = {each.stored.key: each for each in hits}
        places = dict(zip(found.keys[above].tolist(), above.tolist(), strict=True))
        fetched = self._store.passages([key for key in places if key not in known])
        unknown = [(places[key], stored) for key, stored in fetched.items()]
        known |= {each.stored.key: each for each in self.contenders(unknown)}
        higher = self._alone([known[key] for key in places if key in known])
        vectors = self._store.vectors([*known]) if found.vector else None
        return by_authority(hits, higher, cosines_among(*vectors) if vectors else unknown_cosine)

    def _alone(self, higher: list[Contender]) -> list[Contender]:
        """Passages with the relevance that each would have without any of lower authority beside it."""
        ranked, judged = self._ranked, dict[int, float | None]()
        ranks = authorities(ranked.candidates.marks)
        for authority in {each.authority for each in higher}:
            places = np.flatnonzero(ranks >= authority)
            others = Ranked(
                candidates=ranked.candidates.take(places),
                scores=ranked.scores[places],
                parts={name: part[places] for name, part in ranked.parts.items()},
                recipe=ranked.recipe,
            )
            at = {key: place for place, key in enumerate(others.candidates.keys.tolist())}
            some = [(at[each.stored.key], each.stored) for each in higher if each.authority == authority]
            chances = self._relevance.of(others, some)
            judged |= {stored.key: chance for (_, stored), (chance, _) in zip(some, chances, strict=True)}
        best = sorted((chance or 0.0 for chance in judged.values()), reverse=True)
        next_best = best[1] if len(best) > 1 else 0.0
        return [replace(each, alone=judged[each.stored.key], next_best=next_best) for each in higher]

    def brought(self, found: StoredPassage, before: Hit) -> Hit:
        """A passage that is brought in to stand before a hit."""
        position = np.flatnonzero(self._ranked.candidates.keys == found.key)
        if len(position):
            return self._hit(found, int(position[0]))
        return replace(
            before,
            path=found.path,
            source=found.source,
            passage=found.passage,
            ordinal=found.ordinal,
            snippet=self._snippet(found),
            text_score=0.0,
            vector_score=None,
            replaces=(),
            replaced_by=None,
            yields_to=(),
            history=(),
            signals={},
        )

    def _snippet(self, found: StoredPassage) -> str:
        text = found.passage.text
        return ornament("snippets", text[:SNIPPET_CHARS], snippet, text, self._terms) if self._query.snippets else text

    def _hit(
        self, found: StoredPassage, position: int, relevance: float | None = None, answers: float | None = None
    ) -> Hit:
        ranked = self._ranked
        text, vector = ranked.candidates.text, ranked.candidates.vector
        explained = {name: float(part[position]) for name, part in ranked.parts.items()} if self._query.explain else {}
        return Hit(
            path=found.path,
            source=found.source,
            passage=found.passage,
            ordinal=found.ordinal,
            snippet=self._snippet(found),
            score=float(ranked.scores[position]),
            text_score=float(text.unit[position]) if text else 0.0,
            vector_score=float(vector.own[position]) if vector else None,
            relevance=relevance,
            answers=answers,
            signals=explained,
        )


def why_unjudged(hits: Sequence[Hit], problem: str) -> str:
    """Why hits have no relevance, as `degraded` says it; empty where they have, and where there are none."""
    if hits and not problem and all(hit.relevance is None for hit in hits):
        return (
            "relevance: its reader failed on this question, and limits of relevance leave nothing out. Ask in other "
            "words, and report the line that the log has of it."
        )
    return problem if hits else ""


def _varied(
    chosen: list[tuple[int, StoredPassage]], ranked: Ranked, weight: float, count: int
) -> list[tuple[int, StoredPassage]]:
    scores = ranked.scores[[position for position, _ in chosen]]
    terms = [frozenset(analysis.stored_terms(found.passage.text)) for _, found in chosen]
    return [chosen[i] for i in mmr_order(scores, terms, weight, count)]

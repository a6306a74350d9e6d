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
from indexer.language import search_terms
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
    view: IndexReader, query: Query, ranking: Ranked, settings: RankingSettings, relevance: Relevance
) -> tuple[Hit, ...]:
    """The best candidates as hits, each text once, none before one of higher authority that tells of the same thing."""
    is_varied = settings.mmr_lambda < 1
    pool = 4 * query.limit if is_varied else max(query.limit, COMPARED)
    order = np.argsort(-ranking.scores, kind="stable")
    if query.spread:
        order = spread(order, ranking.candidates.files, ~ranking.candidates.spoken, _OF_ONE_FILE)
    pairs = distinct(view.store, ranking, order, pool)
    if is_varied:
        pairs = _diversify(pairs, ranking, settings.mmr_lambda, max(query.limit, COMPARED))
    if settings.fusion == "evidence":
        ranking, pairs = ornament("labels", (ranking, pairs), attribute_first, query.text, ranking, pairs)
        ranking, pairs = ornament("labels", (ranking, pairs), body_first, query.text, ranking, pairs)
    new_hits = _Hits(view.store, query, ranking, relevance)
    contenders = new_hits.contenders(pairs[: query.limit])
    hits = ornament(
        "authority", [(contender.stored, contender.hit) for contender in contenders], new_hits.by_authority, contenders
    )
    if days := ornament("days", {}, days_of_copies, view.store, ranking, pairs[: query.limit]):
        hits = [(passage, replace(hit, days=days.get(passage.key, ()))) for passage, hit in hits]
    chains = view.facts.on(query.today, query.zone)
    resolver = FactResolver(view.store, chains, query.filter, history=query.history)
    resolved_hits = ornament("facts", [hit for _, hit in hits], resolver.resolve, hits, new_hits.bring)
    passages = [stored_passage for _, stored_passage in pairs[query.limit : COMPARED]]
    known_value = chains, resolver.is_distinct, new_hits.bring
    told_hits = ornament(
        "restated", resolved_hits, restated_last, resolved_hits, passages, *known_value, history=query.history
    )
    told_hits = named_first(told_hits, ranking, pairs)
    return tuple(_descending(told_hits) if query.spread else told_hits)


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

    def __init__(self, store: IndexStore, query: Query, ranking: Ranked, relevance: Relevance) -> None:
        self._store = store
        self._query = query
        self._ranked = ranking
        self._relevance = relevance
        self._terms = search_terms.asked_terms(query.text)

    def contenders(self, chosen_pairs: Sequence[tuple[int, StoredPassage]]) -> list[Contender]:
        """Some candidates by their positions, as hits to be compared."""
        chances = self._relevance.of(self._ranked, chosen_pairs)
        return [
            Contender(stored=passage, hit=self._hit(passage, position, *chance), asked=self._relevance.asked)
            for (position, passage), chance in zip(chosen_pairs, chances, strict=True)
        ]

    def by_authority(self, hits: list[Contender]) -> list[tuple[StoredPassage, Hit]]:
        """The hits, and before each the passage of higher authority that it rivals, be it among them or not."""
        candidates = self._ranked.candidates
        least = min((contender.authority for contender in hits), default=max(AUTHORITY.values()))
        rows = self._ranked.parts.get("echo", np.zeros(len(candidates))) >= 0
        above = best_above(candidates, self._ranked.scores, self._relevance.asked.rarity, least, _CONTENDERS, rows)
        if not len(above):
            return [(contender.stored, contender.hit) for contender in hits]
        contenders = {contender.stored.key: contender for contender in hits}
        places = dict(zip(candidates.keys[above].tolist(), above.tolist(), strict=True))
        passages = self._store.passages([key for key in places if key not in contenders])
        unknown_pairs = [(places[key], passage) for key, passage in passages.items()]
        contenders |= {contender.stored.key: contender for contender in self.contenders(unknown_pairs)}
        higher = self._alone([contenders[key] for key in places if key in contenders])
        vectors = self._store.vectors([*contenders]) if candidates.vector else None
        return by_authority(hits, higher, cosines_among(*vectors) if vectors else unknown_cosine)

    def _alone(self, higher: list[Contender]) -> list[Contender]:
        """Passages with the relevance that each would have without any of lower authority beside it."""
        ranking, values = self._ranked, dict[int, float | None]()
        ranks = authorities(ranking.candidates.marks)
        for authority in {contender.authority for contender in higher}:
            places = np.flatnonzero(ranks >= authority)
            other_rankings = Ranked(
                candidates=ranking.candidates.take(places),
                scores=ranking.scores[places],
                parts={name: part[places] for name, part in ranking.parts.items()},
                recipe=ranking.recipe,
            )
            at = {key: place for place, key in enumerate(other_rankings.candidates.keys.tolist())}
            pairs = [
                (at[each_contender.stored.key], each_contender.stored)
                for each_contender in higher
                if each_contender.authority == authority
            ]
            chances = self._relevance.of(other_rankings, pairs)
            values |= {passage.key: chance for (_, passage), (chance, _) in zip(pairs, chances, strict=True)}
        best = sorted((chance or 0.0 for chance in values.values()), reverse=True)
        next_best = best[1] if len(best) > 1 else 0.0
        return [replace(contender, alone=values[contender.stored.key], next_best=next_best) for contender in higher]

    def bring(self, found: StoredPassage, before: Hit) -> Hit:
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

    def _snippet(self, passage: StoredPassage) -> str:
        text = passage.passage.text
        return ornament("snippets", text[:SNIPPET_CHARS], snippet, text, self._terms) if self._query.snippets else text

    def _hit(
        self, passage: StoredPassage, position: int, relevance: float | None = None, answers: float | None = None
    ) -> Hit:
        ranking = self._ranked
        text, vector = ranking.candidates.text, ranking.candidates.vector
        fields = {name: float(part[position]) for name, part in ranking.parts.items()} if self._query.explain else {}
        return Hit(
            path=passage.path,
            source=passage.source,
            passage=passage.passage,
            ordinal=passage.ordinal,
            snippet=self._snippet(passage),
            score=float(ranking.scores[position]),
            text_score=float(text.unit[position]) if text else 0.0,
            vector_score=float(vector.own[position]) if vector else None,
            relevance=relevance,
            answers=answers,
            signals=fields,
        )


def why_unjudged(hits: Sequence[Hit], problem: str) -> str:
    """Why hits have no relevance, as `degraded` says it; empty where they have, and where there are none."""
    if hits and not problem and all(hit.relevance is None for hit in hits):
        return (
            "relevance: its reader failed on this question, and limits of relevance leave nothing out. Ask in other "
            "words, and report the line that the log has of it."
        )
    return problem if hits else ""


def _diversify(
    chosen_pairs: list[tuple[int, StoredPassage]], ranking: Ranked, weight: float, count: int
) -> list[tuple[int, StoredPassage]]:
    scores = ranking.scores[[position for position, _ in chosen_pairs]]
    terms = [frozenset(search_terms.stored_terms(passage.passage.text)) for _, passage in chosen_pairs]
    return [chosen_pairs[i] for i in mmr_order(scores, terms, weight, count)]

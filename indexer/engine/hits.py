"""Hits of a question: the best candidates as passages, each text once, current values first.

Copies, passages that say the same words at the same kind of place, are one hit, which names all their days. Sentences
that were made again with another value stand with the later one first, the earlier one marked: `chains` knows the facts
that its rules read, and here are the others, told by `indexer.language.restated` from two sentences side by side.

Invariants: no hit comes before one of higher authority that tells of the same thing; a passage that is removed before
it is fetched is left out. A copy of a higher authority stands for the others; short texts that stand below different
titles say different things, as "Price: 18 €" does; days are those of candidates, so a filter holds for them too, in
order. Of sentences made again nothing is left out but what the limit cuts off; compared are passages of one authority
and one speaker, of one day and file only where their hours or a word of change tell which is the later; what a person
says is not the same thing stays.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, islice
from typing import TYPE_CHECKING

import numpy as np

from indexer.common.scripts import SENTENCE_ENDS
from indexer.corpus import Ints
from indexer.engine.authority import (
    Contender,
    authorities,
    best_above,
    by_authority,
    cosines_among,
    not_below,
    unknown_cosine,
)
from indexer.engine.candidates import Ranked
from indexer.engine.chains import DayChains, FactResolver, FactStatement
from indexer.engine.finding import named_first
from indexer.engine.ranking import RankingSettings, mmr_order, spread
from indexer.engine.reader import IndexReader
from indexer.language import search_terms
from indexer.language.asked_labels import asked_labels, is_labelled, label_of
from indexer.language.breadcrumbs import breadcrumb, name_title
from indexer.language.facts import topic_of
from indexer.language.facts_clause import Claim
from indexer.language.ornaments import ornament
from indexer.language.restated import LEAST_SHARED, restating, words_in
from indexer.language.search_terms import stored_terms
from indexer.language.sentences import SNIPPET_CHARS, snippet
from indexer.language.terms import query_terms
from indexer.stores.base import IndexStore, StoredPassage
from indexer.types import AUTHORITY, Hit, Passage

if TYPE_CHECKING:
    from indexer.engine.search import Query, Relevance


# How many of the best passages are compared with each other, whatever the limit.
COMPARED = 12
_MOST_CHARS = 600
_LEAST_AUTHORITY = AUTHORITY["agent"]
_ABOUT = "what it says"


def _restated_last(
    hits: Sequence[Hit],
    other_passages: Sequence[StoredPassage],
    chains: DayChains,
    parted: Callable[[FactStatement, FactStatement], bool],
    found: Callable[[StoredPassage, Hit], Hit],
    *,
    history: bool = False,
) -> list[Hit]:
    """The hits, each one that was made again marked, with the later one before it.

    Args:
        hits: Best first.
        other_passages: More passages that answer the question, best first.
        chains: What is known of facts on the day.
        parted: True for two statements of which a person says that they are not the same thing.
        found: A passage as a hit that stands before another.
        history: Tell of the later one what it said before, too.
    """
    passages = [
        passage for passage in (*map(_stored_passage, hits[:COMPARED]), *other_passages) if _is_compared(passage)
    ]
    alike = _comparable(passages)
    if not alike:
        return [*hits]
    known_hits = {(hit.path, hit.ordinal): hit for hit in hits}
    placed_hits = dict[tuple[str, int], Hit]()
    for key, hit in known_hits.items():
        pair = None if key not in alike or hit.replaced_by else _last(*alike[key], chains, parted)
        if pair is None:
            placed_hits.setdefault(key, hit)
            continue
        old, new = pair
        first = new.stored.path, new.stored.ordinal
        newer = placed_hits.get(first) or not_below(known_hits.get(first) or found(new.stored, hit), hit)
        if newer.replaced_by:
            placed_hits.setdefault(key, hit)
            continue
        newer = replace(newer, replaces=(*newer.replaces, old.to_statement()))
        placed_hits[first] = _with_history(newer, old, new) if history else newer
        placed_hits.setdefault(key, replace(hit, replaced_by=new.to_statement()))
    return [*placed_hits.values()]


def _with_history(hit: Hit, old: FactStatement, new: FactStatement) -> Hit:
    before = [statement for statement in hit.history if not statement.current]
    before.insert(0, old.to_statement(current=False))
    before.sort(key=lambda statement: statement.date or dt.date.min)
    return replace(hit, history=(*before, new.to_statement(current=True)))


def _last(
    older: StoredPassage,
    passages: Sequence[StoredPassage],
    chains: DayChains,
    parted: Callable[[FactStatement, FactStatement], bool],
) -> tuple[FactStatement, FactStatement] | None:
    """A passage and the last one that says the same again with another value; None if none does."""
    pairs = (_pair(older, newer, chains) for newer in passages)
    later = [pair for pair in pairs if pair is not None and not parted(pair[1], pair[0])]
    return max(later, key=lambda pair: pair[1].age, default=None)


def _pair(older: StoredPassage, newer: StoredPassage, chains: DayChains) -> tuple[FactStatement, FactStatement] | None:
    sentence = restating(older.passage.text, newer.passage.text)
    if sentence is None:
        return None
    old, new = chains.statement_of(_claim(), older), chains.statement_of(_claim(changes=sentence.changes), newer)
    if old.is_plan or new.is_plan or not new.is_after(old):
        return None
    is_list = older.path == newer.path and old.day == new.day and not new.is_later_that_day(old)
    return None if is_list and not sentence.changes else (old, new)


def _comparable(passages: Sequence[StoredPassage]) -> dict[tuple[str, int], tuple[StoredPassage, list[StoredPassage]]]:
    """Each passage that shares many of its words with others, and these, by its path and place.

    Most share few: no sentence of theirs is read.
    """
    words = [words_in(passage.passage.text) for passage in passages]
    values = dict[tuple[str, int], tuple[StoredPassage, list[StoredPassage]]]()
    for (at, one_passage), (other_at, other_passage) in combinations(enumerate(passages), 2):
        number = len(words[at] & words[other_at])
        if number >= max(2, LEAST_SHARED * min(len(words[at]), len(words[other_at]))) and _are_comparable(
            one_passage, other_passage
        ):
            values.setdefault((one_passage.path, one_passage.ordinal), (one_passage, []))[1].append(other_passage)
            values.setdefault((other_passage.path, other_passage.ordinal), (other_passage, []))[1].append(one_passage)
    return values


def _are_comparable(passage: StoredPassage, other_passage: StoredPassage) -> bool:
    """True for two passages of one authority and speaker below the same titles."""
    return (
        passage.passage.authority == other_passage.passage.authority
        and passage.passage.label == other_passage.passage.label
        and topic_of(passage.passage.heading, passage.path)
        == topic_of(other_passage.passage.heading, other_passage.path)
    )


def _claim(*, changes: bool = False) -> Claim:
    return Claim(f"|{_ABOUT}", "", changes, single=True, day=None, subject=frozenset())


def _is_compared(stored_passage: StoredPassage) -> bool:
    passage = stored_passage.passage
    return (
        stored_passage.source in ("memory", "sessions")
        and passage.authority >= _LEAST_AUTHORITY
        and len(passage.text) <= _MOST_CHARS
    )


def _stored_passage(hit: Hit) -> StoredPassage:
    return StoredPassage(key=0, path=hit.path, source=hit.source, passage=hit.passage, ordinal=hit.ordinal)


def _attribute_first(
    question: str, ranking: Ranked, chosen_pairs: Sequence[tuple[int, StoredPassage]]
) -> tuple[Ranked, list[tuple[int, StoredPassage]]]:
    """The candidates and the best of them, with the line first that has the label asked for.

    Lines of a record say the same of their thing: all stand below its name, and none has another word of "where is the
    sofa?". Which of them answers, its label tells. Only the lines of the record that stands first change places.

    Args:
        question: The question.
        ranking: The candidates; the line gets the score of the one that stood first, as the part "label".
        chosen_pairs: Positions of the best, with their passages, the best first.
    """
    best = [*chosen_pairs]
    labels = asked_labels(question) if len(best) > 1 else frozenset()
    if not labels:
        return ranking, best
    keys = [label_of(passage.passage.text) for _, passage in best]
    if not keys[0][1] or is_labelled(keys[0][1], labels):
        return ranking, best
    record = best[0][1].path, best[0][1].passage.heading, keys[0][0]
    for place, (_, stored_passage) in enumerate(best):
        of = stored_passage.path, stored_passage.passage.heading, keys[place][0]
        if of == record and is_labelled(keys[place][1], labels):
            return _lift_to_first(ranking, best, place)
    return ranking, best


def _lift_to_first(
    ranking: Ranked, best: list[tuple[int, StoredPassage]], place: int
) -> tuple[Ranked, list[tuple[int, StoredPassage]]]:
    """The candidates and the best of them, with one of these first, as high as the one that stood there."""
    position = best[place][0]
    lift = ranking.parts.get("label", np.zeros(len(ranking.scores))).copy()
    lift[position] += ranking.scores[best[0][0]] - ranking.scores[position]
    scores = ranking.scores.copy()
    scores[position] = ranking.scores[best[0][0]]
    lifted_ranking = replace(ranking, scores=scores, parts={**ranking.parts, "label": lift})
    return lifted_ranking, [best[place], *best[:place], *best[place + 1 :]]


def _body_first(
    question: str, ranking: Ranked, pairs: Sequence[tuple[int, StoredPassage]]
) -> tuple[Ranked, list[tuple[int, StoredPassage]]]:
    """The candidates and the best of them, the text of a file before its properties that only say its other names.

    Args:
        question: A question, which asks more than the other name.
        ranking: The candidates; the text gets the score of the properties, as the part "label".
        pairs: Positions of the best, with their passages, the best first.
    """
    best = [*pairs]
    aliases = _aliases_in(best[0][1]) if len(best) > 1 else ""
    keys = frozenset(query_terms(question)) if aliases else frozenset()
    if keys and keys - frozenset(stored_terms(aliases)) and not keys.isdisjoint(stored_terms(aliases)):
        for place, (_, passage) in enumerate(best):
            if place and passage.path == best[0][1].path:
                return _lift_to_first(ranking, best, place)
    return ranking, best


def _aliases_in(passage: StoredPassage) -> str:
    """The other names of a file, of the passage of its properties."""
    if passage.ordinal or not passage.passage.text.casefold().startswith(("alias", "tag", "title")):
        return ""
    lines = [line.partition(":") for line in passage.passage.text.splitlines()]
    return " ".join(value for key, _, value in lines if key.strip().casefold() in ("alias", "aliases"))


# A text as long as this says what it is about itself; so does a sentence.
_SELF_CONTAINED_CHARS = 60
# Passages looked at for one search; a text that is repeated more often names some of its days.
_MOST_COPIES = 512
_SAME_WORDS, _SAME_VECTOR = 1e-6, 1e-5
_Identity = tuple[str, tuple[str, ...]]


def distinct(
    store: IndexStore, ranking: Ranked, positions: Ints, count: int, *, beside: Sequence[int]
) -> tuple[list[tuple[int, StoredPassage]], dict[int, StoredPassage]]:
    """Positions of the first candidates in an order with their passages, those that say the same once; and all read.

    Args:
        store: The index, within a read.
        ranking: The candidates.
        positions: Their order.
        count: Most of them to return.
        beside: Keys of other passages, which are read at once with the first ones.
    """
    order, passages = positions.tolist(), dict[int, StoredPassage]()
    chosen_values: dict[_Identity, tuple[int, StoredPassage]] = {}
    spare = 5
    while order and len(chosen_values) < count:
        # What is missing and some more, as texts repeat; twice as much more each time, for a talk of repeats alone.
        step = count - len(chosen_values) + spare
        batch, order, spare = order[:step], order[step:], 2 * spare
        keys = ranking.candidates.keys[batch].tolist()
        passages |= store.passages([*dict.fromkeys((*keys, *beside))])
        beside = ()
        for position, key in zip(batch, keys, strict=True):
            if passage := passages.get(key):
                same = _identity(passage)
                if same not in chosen_values or chosen_values[same][1].passage.authority < passage.passage.authority:
                    chosen_values[same] = position, passage
    return [*chosen_values.values()][:count], passages


class _Copies:
    """Other candidates of a search that may have the words of some, on other days.

    Args:
        ranking: The candidates.
    """

    def __init__(self, ranking: Ranked) -> None:
        self._candidates = ranking.candidates
        self._known = dict[int, list[int]]()

    def of(self, positions: Iterable[int]) -> list[int]:
        """Keys of the copies of some candidates, each once, without those of a text that is repeated too often."""
        keys = (key for position in positions for key in self._keys(position))
        return [*dict.fromkeys(islice(keys, _MOST_COPIES))]

    def days(
        self, store: IndexStore, pairs: Sequence[tuple[int, StoredPassage]], passages: Mapping[int, StoredPassage]
    ) -> Mapping[int, tuple[dt.date, ...]]:
        """All days on which the words of some candidates were written, by key, where there are several.

        Args:
            store: The index, within a read.
            pairs: Positions of the candidates, with their passages.
            passages: Passages that were read already.
        """
        missing_keys = [key for key in self.of(position for position, _ in pairs) if key not in passages]
        passages = {**passages, **store.passages(missing_keys)} if missing_keys else passages
        found_days = dict[int, tuple[dt.date, ...]]()
        for position, passage in pairs:
            same = _identity(passage)
            copies = (passages.get(key) for key in self._keys(position))
            other_days = {copy.passage.date for copy in copies if copy is not None and _identity(copy) == same}
            days = sorted(day for day in {passage.passage.date, *other_days} if day is not None)
            if len(days) > 1:
                found_days[passage.key] = tuple(days)
        return found_days

    def _keys(self, position: int) -> list[int]:
        """Keys of the other candidates that have the same score by words, or the same vector, on other days."""
        if position not in self._known:
            text, vector, days = self._candidates.text, self._candidates.vector, self._candidates.days
            same = np.zeros(len(days), bool)
            if text is not None and text.unit[position] > 0:
                same |= np.abs(text.unit - text.unit[position]) < _SAME_WORDS
            if vector is not None:
                same |= np.abs(vector.own - vector.own[position]) < _SAME_VECTOR
            places = np.flatnonzero(same & (days > 0) & (days != days[position]))
            self._known[position] = self._candidates.keys[places].tolist()
        return self._known[position]


def _identity(passage: StoredPassage) -> _Identity:
    """The same value for all copies: the words, and of a short text where it stands."""
    return _of(passage.passage.text, _place(passage.passage, passage.path))


def _place(passage: Passage, path: str) -> tuple[str, ...]:
    is_labelled = ":" in passage.text or "：" in passage.text
    if len(passage.text) > _SELF_CONTAINED_CHARS or (not is_labelled and passage.text.endswith(SENTENCE_ENDS)):
        return ()
    name = name_title(path) if is_labelled else ""
    return (*breadcrumb(passage.heading), name) if name else breadcrumb(passage.heading)


# The same passages are found again and again.
@lru_cache(maxsize=4_096)
def _of(text: str, place: tuple[str, ...]) -> _Identity:
    return " ".join(text.casefold().split()), place


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
    copies = _Copies(ranking)
    pairs, stored_passages = distinct(view.store, ranking, order, pool, beside=copies.of(order[: query.limit].tolist()))
    if is_varied:
        pairs = _diversify(pairs, ranking, settings.mmr_lambda, max(query.limit, COMPARED))
    if settings.fusion == "evidence":
        ranking, pairs = ornament("labels", (ranking, pairs), _attribute_first, query.text, ranking, pairs)
        ranking, pairs = ornament("labels", (ranking, pairs), _body_first, query.text, ranking, pairs)
    new_hits = _Hits(view.store, query, ranking, relevance)
    contenders = new_hits.contenders(pairs[: query.limit])
    hits = ornament(
        "authority", [(contender.stored, contender.hit) for contender in contenders], new_hits.by_authority, contenders
    )
    if days := ornament("days", {}, copies.days, view.store, pairs[: query.limit], stored_passages):
        hits = [(passage, replace(hit, days=days.get(passage.key, ()))) for passage, hit in hits]
    chains = view.facts.on(query.today, query.zone)
    resolver = FactResolver(view.store, chains, query.filter, history=query.history)
    resolved_hits = ornament("facts", [hit for _, hit in hits], resolver.resolve, hits, new_hits.bring)
    passages = [stored_passage for _, stored_passage in pairs[query.limit : COMPARED]]
    known_value = chains, resolver.is_distinct, new_hits.bring
    told_hits = ornament(
        "restated", resolved_hits, _restated_last, resolved_hits, passages, *known_value, history=query.history
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

"""Sentences among the hits that were made again with another value: the later one first, the earlier one marked.

`chains` knows the facts that its rules read; here are the others, told by `indexer.language.restated` from two
sentences that stand side by side. Compared are the passages that answer the same question, of one authority and one
speaker.

Invariants: nothing is left out but what the limit cuts off; only notes and messages are compared, of one day and file
only where their hours or a word of change tell which is the later; what a person says is not the same thing stays.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

from indexer.engine.authority import not_below
from indexer.engine.chains import DayChains, FactStatement
from indexer.language.facts import topic_of
from indexer.language.facts_clause import Claim
from indexer.language.restated import LEAST_SHARED, restating, words_in
from indexer.stores.base import StoredPassage
from indexer.types import AUTHORITY, Hit

# How many of the best passages are compared with each other, whatever the limit.
COMPARED = 12
_MOST_CHARS = 600
_LEAST_AUTHORITY = AUTHORITY["agent"]
_ABOUT = "what it says"


def restated_last(
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
    alike = _alike(passages)
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


def _alike(passages: Sequence[StoredPassage]) -> dict[tuple[str, int], tuple[StoredPassage, list[StoredPassage]]]:
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

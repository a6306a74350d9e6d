"""Passages that tell of the attribute a question asks for, before those that tell of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from indexer.engine.candidates import Ranked
from indexer.language.asked_labels import asked_labels, is_labelled, label_of
from indexer.language.search_terms import stored_terms
from indexer.language.terms import query_terms
from indexer.stores.base import StoredPassage


def attribute_first(
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


def body_first(
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

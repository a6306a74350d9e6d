"""Judge of corrections: the probability that a sentence of a talk gives a value anew that an earlier one gave.

```
later sentence                   -> its vector -> does it correct anything?                        \
earlier sentence, later sentence -> figures of the pair (likeness, words, kinds, distance)          -> does it correct
                                 -> how the pair stands out from others that the later one may mean /   that one?
```
Invariants: only sentences of the same talk are compared, and only with what was said before them; weights are read at
the first judgement.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from indexer.common import lazy_regex
from indexer.language import ornament, query_terms, restating
from memory_service.text.sentence_judge import (
    MOST_CHARS,
    Embed,
    Floats,
    Judgement,
    LinearFunction,
    Spoken,
    Weights,
    classify_sentences,
    logistic,
    read_weights,
)

CORRECTION_WEIGHTS = Path(__file__).parent / "correction_judge.json"
PAIR_FIGURES = (
    "likeness", "shared", "overlap", "near", "same_message", "same_voice", "numbers", "later_change",
    "later_superseded", "earlier_superseded", "same_kind", "restated", "earlier_length", "later_length", "rare_shared",
    "rarity", "news", "likest", "likeness_among_others", "rarest", "likeness_margin",
)  # fmt: skip
# So many of them are of a pair by itself.
_ALONE = 14
# Figures of the vector by which a sentence corrects something, whatever it is.
NEWS_FIGURES = 384
_NEWS_SCALE = 4.0
# The likeness of a sentence to one that is not there.
_UNLIKE = -0.2
_NUMBER = lazy_regex(r"\d+(?:[.,:]\d+)*")
_NEAR_MESSAGES = 3
# Source: our measurement on talks that took no part (`python -m tests.evals.corrections`).
_CORRECTS, _IS_SURE = 0.2, 0.35
# Sentences that last and stand between a value and its correction, at most.
_MOST_BEFORE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A sentence that was judged to last.

    Attributes:
        spoken: The sentence.
        judgement: Its judgement.
        place: The place of its message in the talk.
    """

    spoken: Spoken
    judgement: Judgement
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """Correction of a sentence.

    Attributes:
        new: The place of the later sentence.
        is_sure: False where it may just as well tell of something else.
    """

    new: int
    is_sure: bool


def _correctable(items: Sequence[Told]) -> list[tuple[int, int]]:
    """The pairs of places in a talk of which the second sentence may correct the first.

    Args:
        items: Sentences that last, in order.
    """
    return [
        (old, new)
        for new, later in enumerate(items)
        for old in range(max(0, new - _MOST_BEFORE), new)
        if later.spoken.voice != "assistant" and items[old].place <= later.place
    ]


def _pair_matrix(items: Sequence[Told], pairs: Sequence[tuple[int, int]], news: Floats) -> Floats:
    """The figures of pairs, of shape (pairs, figures).

    Args:
        items: Sentences that last, in order.
        pairs: See `_correctable`.
        news: Of each sentence, the log-odds that it corrects something, see `_news_of`.
    """
    terms = [ornament("statements", frozenset[str](), _terms_of, value) for value in items]
    counts = Counter(term for keys in terms for term in keys)
    values = [0.0] * _ALONE
    rows = [
        [
            *ornament("statements", values, _pair_figures, items[old], items[new], terms[old], terms[new]),
            min(2.0, sum(counts[term] <= 2 for term in terms[old] & terms[new])),
            min(2.0, sum(1 / counts[term] for term in terms[old] & terms[new])),
            float(news[new]) / _NEWS_SCALE,
        ]
        for old, new in pairs
    ]
    alone = np.array(rows, np.float64).reshape(len(pairs), _ALONE + 3)
    return np.hstack([alone, _among_others(alone, pairs)])


def _among_others(figures: Floats, pairs: Sequence[tuple[int, int]]) -> Floats:
    """How each sentence stands out from the others that the later one may correct, of shape (pairs, 4)."""
    rows = np.zeros((len(pairs), 4))
    later = np.array([new for _, new in pairs])
    for new in set(later.tolist()):
        at = np.flatnonzero(later == new)
        likeness, rarity = figures[at, PAIR_FIGURES.index("likeness")], figures[at, PAIR_FIGURES.index("rarity")]
        order = np.sort(np.append(likeness, _UNLIKE))
        best = likeness == order[-1]
        rows[at, 0] = best
        rows[at, 1] = (likeness - likeness.mean()) / (likeness.std() + 0.05) / 2
        rows[at, 2] = (rarity == rarity.max()) & (rarity > 0)
        rows[at, 3] = np.where(best, likeness - order[-2], likeness - order[-1])
    return rows


def _terms_of(value: Told) -> frozenset[str]:
    return frozenset(query_terms(value.spoken.text))


def _pair_figures(earlier: Told, later: Told, words: frozenset[str], other_keys: frozenset[str]) -> list[float]:
    """The first figures of `PAIR_FIGURES`, those of a pair by itself, each about 0 to 2."""
    old, new = earlier.spoken.text, later.spoken.text
    numbers, more = frozenset(_NUMBER.findall(old)), frozenset(_NUMBER.findall(new))
    before, after = earlier.judgement.kinds, later.judgement.kinds
    return [
        float(earlier.judgement.vector @ later.judgement.vector),
        len(words & other_keys) / max(1, min(len(words), len(other_keys))),
        len(words & other_keys) / max(1, len(words | other_keys)),
        math.exp((earlier.place - later.place) / _NEAR_MESSAGES),
        float(earlier.place == later.place),
        float((earlier.spoken.voice, earlier.spoken.name) == (later.spoken.voice, later.spoken.name)),
        float(bool(numbers and more and numbers != more)),
        after["change"],
        after["superseded"],
        before["superseded"],
        sum(before[kind] * after[kind] for kind in before),
        float(restating(old, new) is not None),
        min(2.0, len(old) / 100),
        min(2.0, len(new) / 100),
    ]


def _news_of(items: Sequence[Told], function: LinearFunction) -> Floats:
    """Log-odds that each sentence corrects something, by its vector alone, of shape (sentences,)."""
    vectors = np.array([value.judgement.vector for value in items]).reshape(len(items), NEWS_FIGURES)
    news: Floats = function.scores(vectors)[:, 0]
    return news


def _find_corrections(items: Sequence[Told], *, embedder: str) -> dict[int, Correction]:
    """Sentences that a later one corrects.

    Args:
        items: Sentences that last, in order.
        embedder: Fingerprint of the model that they were judged with.

    Returns:
        The place of each corrected sentence in `items`, with what corrects it.

    Raises:
        DamagedWeights: There are no weights for that model.
    """
    pairs = _correctable(items)
    if not pairs:
        return {}
    functions = correction_weights(embedder).functions
    figures = _pair_matrix(items, pairs, _news_of(items, functions["news"]))
    chances = logistic(functions["corrects"].scores(figures))[:, 0]
    return _one_to_one(pairs, chances)


def _one_to_one(pairs: Sequence[tuple[int, int]], chances: Floats, least: float = _CORRECTS) -> dict[int, Correction]:
    """The surest pairs of which no two have a sentence at the same place, by their earlier one.

    Args:
        pairs: See `_correctable`.
        chances: The probability of each.
        least: The least one that counts.
    """
    corrections: dict[int, Correction] = {}
    correcting = set[int]()
    for at in np.argsort(-chances, kind="stable"):
        old, new = pairs[at]
        if chances[at] >= least and old not in corrections and new not in correcting:
            corrections[old] = Correction(new=new, is_sure=bool(chances[at] >= _IS_SURE))
            correcting.add(new)
    return corrections


@cache
def correction_weights(embedder: str) -> Weights:
    """The weights of the package.

    Args:
        embedder: Fingerprint of the model at hand.

    Raises:
        DamagedWeights: They cannot be read, or are for another model.
    """
    widths = {"corrects": len(PAIR_FIGURES), "news": NEWS_FIGURES}
    return read_weights(CORRECTION_WEIGHTS, embedder=embedder, figures=PAIR_FIGURES, widths=widths)


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkJudge:
    """Judge of a talk.

    Attributes:
        embed: Gives the vectors of texts.
        embedder: Fingerprint of its model.
    """

    embed: Embed
    embedder: str

    def judgements(self, sentences: Sequence[Spoken], *, most_chars: int = MOST_CHARS) -> list[Judgement]:
        """Judgements of the sentences of a stretch, in order.

        Args:
            sentences: The sentences.
            most_chars: So much of them is in vectors, see `classify_sentences`.

        Raises:
            DamagedWeights: See `classify_sentences`.
        """
        return classify_sentences(sentences, self.embed, embedder=self.embedder, most_chars=most_chars)

    def find_corrections(self, items: Sequence[Told]) -> dict[int, Correction]:
        """The places of sentences that a later one corrects, each with what corrects it.

        Raises:
            DamagedWeights: There are no weights for that model.
        """
        return _find_corrections(items, embedder=self.embedder)

"""Judge of corrections: the probability that a sentence of a talk gives a value anew that an earlier one gave.

```
earlier sentence, later sentence -> figures of the pair (likeness, words, kinds, distance) -> a logistic function
```
Invariants: only sentences of the same talk are compared, and only with what was said before them; a pair is judged by
itself; weights are read at the first judgement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from indexer.text import lazy_regex
from indexer.text.ornaments import ornament
from indexer.text.restated import restating
from indexer.text.terms import query_terms
from memory_service.text.judge_weights import Floats, Weights, logistic, read_weights
from memory_service.text.sentence_judge import MOST_CHARS, Embed, Judgement, Spoken, classify_sentences

CORRECTION_WEIGHTS = Path(__file__).parent / "correction_judge.json"
PAIR_FIGURES = (
    "likeness", "shared", "overlap", "near", "same_message", "same_voice", "numbers", "later_change",
    "later_superseded", "earlier_superseded", "same_kind", "restated", "earlier_length", "later_length",
)  # fmt: skip
_NUMBER = lazy_regex(r"\d+(?:[.,:]\d+)*")
_NEAR_MESSAGES = 3
# Source: our measurement on talks that took no part (`python -m tests.evals.corrections`).
_CORRECTS = 0.25
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


def _pair_figures(earlier: Told, later: Told) -> list[float]:
    """The figures of `PAIR_FIGURES` for a pair of sentences, each about 0 to 2."""
    old, new = earlier.spoken.text, later.spoken.text
    words, others = frozenset(query_terms(old)), frozenset(query_terms(new))
    numbers, more = frozenset(_NUMBER.findall(old)), frozenset(_NUMBER.findall(new))
    before, after = earlier.judgement.kinds, later.judgement.kinds
    return [
        float(earlier.judgement.vector @ later.judgement.vector),
        len(words & others) / max(1, min(len(words), len(others))),
        len(words & others) / max(1, len(words | others)),
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


def _find_corrections(told: Sequence[Told], *, embedder: str) -> dict[int, int]:
    """Sentences that a later one corrects.

    Args:
        told: Sentences that last, in order.
        embedder: Fingerprint of the model that they were judged with.

    Returns:
        The place of each corrected sentence in `told`, with the place of the one that corrects it.

    Raises:
        DamagedWeights: There are no weights for that model.
    """
    pairs = [
        (old, new)
        for new, later in enumerate(told)
        for old in range(max(0, new - _MOST_BEFORE), new)
        if later.spoken.voice != "assistant" and told[old].place <= later.place
    ]
    if not pairs:
        return {}
    figures = _pair_matrix([(told[old], told[new]) for old, new in pairs])
    chances = logistic(correction_weights(embedder).functions["corrects"].scores(figures))[:, 0]
    found: dict[int, tuple[float, int]] = {}
    for (old, new), chance in zip(pairs, chances, strict=True):
        if chance >= max(_CORRECTS, found.get(old, (0.0, 0))[0]):
            found[old] = (float(chance), new)
    return {old: new for old, (_, new) in found.items()}


@cache
def correction_weights(embedder: str) -> Weights:
    """The weights of the package.

    Args:
        embedder: Fingerprint of the model at hand.

    Raises:
        DamagedWeights: They cannot be read, or are for another model.
    """
    return read_weights(
        CORRECTION_WEIGHTS, embedder=embedder, figures=PAIR_FIGURES, widths={"corrects": len(PAIR_FIGURES)}
    )


def _pair_matrix(pairs: Sequence[tuple[Told, Told]]) -> Floats:
    """The figures of some pairs, of shape (pairs, figures)."""
    nothing = [0.0] * len(PAIR_FIGURES)
    rows = [ornament("statements", nothing, _pair_figures, old, new) for old, new in pairs]
    return np.array(rows, np.float64).reshape(len(pairs), len(PAIR_FIGURES))


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkJudge:
    """Judge of a talk.

    Attributes:
        embed: Gives the vectors of texts.
        embedder: Fingerprint of its model.
    """

    embed: Embed
    embedder: str

    def judgements(self, spoken: Sequence[Spoken], *, most_chars: int = MOST_CHARS) -> list[Judgement]:
        """Judgements of the sentences of a stretch, in order.

        Args:
            spoken: The sentences.
            most_chars: So much of them is in vectors, see `classify_sentences`.

        Raises:
            DamagedWeights: See `classify_sentences`.
        """
        return classify_sentences(spoken, self.embed, embedder=self.embedder, most_chars=most_chars)

    def find_corrections(self, told: Sequence[Told]) -> dict[int, int]:
        """The places of sentences that a later one corrects, each with the place of that one.

        Raises:
            DamagedWeights: There are no weights for that model.
        """
        return _find_corrections(told, embedder=self.embedder)

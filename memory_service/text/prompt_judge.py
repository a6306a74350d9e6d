"""Judge of prompts: the probability that what was found for a prompt belongs into it.

```
prompt (a short one with the turn before it) -> vector  \
passages that were found -> relevance, cosines, words    -> a logistic function -> Wish
```
Invariants: the same prompt over the same passages gets the same answer; nothing is embedded but the prompt; weights are
read at the first judgement.

Source: our measurement; neither what a prompt says nor how well passages match it is enough: together they let a few of
a hundred prompts through that nothing in memory concerns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from indexer import Hit, folder_number
from indexer.language import asks, ornament
from memory_service.text.sentence_judge import Floats, Weights, logistic, read_weights, size_of

PROMPT_WEIGHTS = Path(__file__).parent / "prompt_judge.json"
# Whose cosines are known: those of other models have another scale.
Space = Literal["minilm", "e5", ""]
_COSINES = ("best", "second", "most", "mean", "above_fifth", "above_mean")
PROMPT_FIGURES = (
    "relevance", "second_relevance", "fifth_relevance", "relevance_gap", "no_relevance", "answers", "second_answers",
    "words", "second_words", "words_gap", *(f"minilm_{name}" for name in _COSINES),
    *(f"e5_{name}" for name in _COSINES), "no_cosine", "length", "asks",
)  # fmt: skip
_MAX_CHARS = 600
# A prompt of fewer words is judged with the turn before it.
_SHORT_WORDS = 6
_SCALE = 4.0
_LEAST = 1e-5
_LOGIT, _WORDS = 4.0, 10.0
_MOST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Judgement of a prompt.

    Attributes:
        wants: Probability that something that was found belongs into it.
        figures: What was read beside the prompt, by name.
    """

    wants: float
    figures: Mapping[str, float]


def _judged_prompt(prompt: str, before: str = "") -> str:
    """The text whose vector is judged.

    Args:
        prompt: The prompt.
        before: The user's turn before it, which a short one goes on with.
    """
    text = f"{before} {prompt}".strip() if before and size_of(prompt) < _SHORT_WORDS else prompt
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS // 2]} {text[-_MAX_CHARS // 2 :]}"


def _prompt_figures(prompt: str, hits: Sequence[Hit], space: Space) -> list[float]:
    """The figures of `PROMPT_FIGURES`, each about -3 to 3; 0 for what is not known.

    Args:
        prompt: The prompt.
        hits: Passages, the best first.
        space: The model of their cosines.
    """
    best = hits[:_MOST]
    relevances = [hit.relevance for hit in best if hit.relevance is not None]
    logits = [_logit(value) for value in relevances]
    answers = [hit.answers or 0.0 for hit in best]
    words = [hit.text_score / _WORDS for hit in best]
    return [
        *(_at(logits, at) for at in (0, 1, 4)),
        _at(logits, 0) - _at(logits, 1) if len(logits) > 1 else 0.0,
        float(not relevances),
        _at(answers, 0),
        _at(answers, 1),
        min(3.0, max(words, default=0.0)),
        min(3.0, sorted(words)[-2]) if len(words) > 1 else 0.0,
        min(3.0, words[0] - _at(words, 1)) if words else 0.0,
        *_cosines(best, "minilm", space, 0.3, 4.0),
        *_cosines(best, "e5", space, 0.8, 15.0),
        float(not space or not any(hit.vector_score is not None for hit in best)),
        min(2.0, len(prompt) / 300),
        float(asks(prompt)),
    ]


def _cosines(hits: Sequence[Hit], of: Space, space: Space, middle: float, scale: float) -> list[float]:
    cosines = [hit.vector_score for hit in hits if hit.vector_score is not None]
    if of != space or not cosines:
        return [0.0] * len(_COSINES)
    mean, most = fmean(cosines), max(cosines)
    levels = [cosines[0], _at(cosines, 1), most, mean]
    gaps = [most - _at(sorted(cosines, reverse=True), 4), most - mean]
    return [*((value - middle) * scale for value in levels), *(value * scale * 2 for value in gaps)]


def _at(values: Sequence[float], place: int) -> float:
    """The value at a place; the last one where there are fewer, 0 where there is none."""
    return values[min(place, len(values) - 1)] if values else 0.0


def _logit(chance: float) -> float:
    bounded_value = min(1 - _LEAST, max(_LEAST, chance))
    return math.log(bounded_value / (1 - bounded_value)) / _LOGIT


def _prompt_rows(mean: Floats, vectors: NDArray[np.floating[Any]], figures: Floats) -> Floats:
    """Figures that are read of prompts, of shape (prompts, dimensions + figures)."""
    return np.hstack([(np.asarray(vectors, np.float64) - mean) * _SCALE, figures])


def _judge(vector: NDArray[np.floating[Any]], prompt: str, hits: Sequence[Hit], *, space: Space, embedder: str) -> Wish:
    """Judgement of a prompt.

    Args:
        vector: Of `_judged_prompt`.
        prompt: The prompt.
        hits: Passages, the best first.
        space: The model of their cosines.
        embedder: Fingerprint of the model of the vector.

    Raises:
        DamagedWeights: There are no weights for that model.
    """
    weights = prompt_weights(embedder)
    figures = ornament("recall", [0.0] * len(PROMPT_FIGURES), _prompt_figures, prompt, hits, space)
    row = _prompt_rows(weights.mean, vector[None, :], np.array([figures], np.float64))
    wants = float(logistic(weights.functions["wants"].scores(row))[0, 0])
    return Wish(wants=wants, figures=dict(zip(PROMPT_FIGURES, figures, strict=True)))


# The least probability. Source: our measurement on worlds of notes that took no part (`python -m tests.evals.prompts`).
# Of a few notes it is a third of that, since the judge learned from worlds of some thirty.
WANTS = 0.35
# A passage of this relevance belongs into the prompt, whatever the judge says.
SURE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptJudge:
    """Judge of prompts, by the vectors of one model.

    Attributes:
        embed: Gives the vector of a question.
        embedder: Fingerprint of its model.
        spaces: The models whose cosines are known, by fingerprint.
    """

    embed: Callable[[str], NDArray[np.floating[Any]]]
    embedder: str
    spaces: Mapping[str, Space]

    def silence(self, prompt: str, before: str, hits: Sequence[Hit], made_with: str) -> str:
        """Why nothing that was found belongs into a prompt; empty where something does.

        Args:
            prompt: The prompt.
            before: The user's turn before it.
            hits: Passages, the best first.
            made_with: Fingerprint of the model of their cosines.

        Raises:
            IndexerError: The model of the vector cannot be loaded.
            DamagedWeights: See `_judge`.
        """
        # Of sessions are the prompts of other days, too: each is like this one, and answers nothing.
        noted_hits = [hit for hit in hits if hit.source != "sessions"]
        hits = _of_best_folder(noted_hits or hits)
        # Where relevance is not known, the judge has not learned what speaks for a passage.
        if all(hit.relevance is None for hit in hits):
            return ""
        vector = self.embed(ornament("recall", prompt[:_MAX_CHARS], _judged_prompt, prompt, before))
        wish = _judge(vector, prompt, hits, space=self.spaces.get(made_with, ""), embedder=self.embedder)
        least = WANTS if len(hits) >= _MOST else WANTS / 3
        best = max(hit.relevance for hit in hits if hit.relevance is not None)
        if wish.wants >= least or best >= SURE:
            return ""
        return (
            f"nothing here concerns the prompt: judged {wish.wants:.2f}, the least is {least:.2g}; "
            f"the best relevance is {best:.3f}"
        )


def _of_best_folder(hits: Sequence[Hit]) -> Sequence[Hit]:
    """The passages of the folder that the most relevant one is of: what lies beside it changes no judgement."""
    best = max(hits, key=lambda hit: hit.relevance or 0.0, default=None)
    return [hit for hit in hits if best and folder_number(hit.path) == folder_number(best.path)]


@cache
def prompt_weights(embedder: str) -> Weights:
    """The weights of the package.

    Args:
        embedder: Fingerprint of the model at hand.

    Raises:
        DamagedWeights: They cannot be read, or are for another model.
    """
    return read_weights(
        PROMPT_WEIGHTS, embedder=embedder, figures=PROMPT_FIGURES, widths={"wants": len(PROMPT_FIGURES)}
    )

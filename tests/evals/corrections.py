"""The judge of corrections: trained on the labelled talks, and judged on those that took no part.

`python -m tests.evals.corrections [--write]`

A pair is two sentences that last; it is a correction where the talk says that the value of the second one stands for
that of the first. Beside the labelled talks there are small ones in `corrected/` that hold such sentences alone. Talks
are dealt as for the judge of sentences, whose weights have to be written first.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexer import multilingual_embedder
from memory_service.text.correction_judge import (
    CORRECTION_WEIGHTS,
    PAIR_FIGURES,
    Told,
    _correctable,
    _news_of,
    _one_to_one,
    _pair_matrix,
    correction_weights,
)
from memory_service.text.sentence_judge import LASTING, LinearFunction, Spoken, Weights, classify_sentences, logistic
from tests.evals.judges import LABELLED, Answers, by_talk, load, part_of

CORRECTED = Path(__file__).parent / "corrected"
_C, _NEWS_C = 1.0, 3.0
_FOLDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTalk:
    """The sentences of a talk that last.

    Attributes:
        told: The sentences, in order.
        corrections: Places in `told` of a sentence and of the one that corrects it.
    """

    told: tuple[Told, ...]
    corrections: frozenset[tuple[int, int]]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs that may be corrections."""
        return _correctable(self.told)

    @property
    def correcting(self) -> Answers:
        """True for each sentence that corrects another one."""
        return np.array([any(new == at for _, new in self.corrections) for at in range(len(self.told))])


def load_corrections(folder: Path = LABELLED) -> dict[str, list[tuple[str, str]]]:
    """The old and new values of each talk."""
    talks = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*/*.json"))]
    return {talk["name"]: [(each["old"], each["new"]) for each in talk["corrections"]] for talk in talks}


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A talk.

    Attributes:
        heard: All its sentences, in order.
        lasting: The places of those that last.
        corrections: Places of a sentence and of the one that corrects it.
        judged: True if it takes no part in the training.
    """

    heard: tuple[Spoken, ...]
    lasting: tuple[int, ...]
    corrections: frozenset[tuple[int, int]]
    judged: bool


def talks() -> Iterator[Talk]:
    """The labelled talks, and the small ones."""
    rows, values = load(), load_corrections()
    for places in by_talk(rows):
        part = [rows[at] for at in places]
        lasting = [at for at, row in enumerate(part) if row.label in (*LASTING, "superseded")]
        yield Talk(
            heard=tuple(row.heard for row in part),
            lasting=tuple(lasting),
            corrections=frozenset(
                (old, new)
                for old in lasting
                for new in lasting
                if part[old].label == "superseded"
                for before, after in values[part[old].talk]
                if before in part[old].heard.text and after in part[new].heard.text
            ),
            judged=part[0].judged,
        )
    for path in sorted(CORRECTED.glob("*.json")):
        for talk in json.loads(path.read_text("utf-8")):
            heard = [Spoken(text=text, voice="user", message=message) for message, text in talk["sentences"]]
            yield Talk(
                heard=tuple(heard),
                lasting=tuple(range(len(heard))),
                corrections=frozenset((old, new) for old, new in talk["corrections"]),
                judged=part_of(talk["name"]) == 0,
            )


def told_of(talks: Iterable[Talk]) -> Iterator[ToldTalk]:
    """What lasts of some talks, judged."""
    embedder = multilingual_embedder()
    for talk in talks:
        labels = classify_sentences(talk.heard, embedder.embed_documents, embedder=embedder.fingerprint)
        places = {at: place for place, at in enumerate(talk.lasting)}
        yield ToldTalk(
            told=tuple(
                Told(spoken=talk.heard[at], judgement=labels[at], place=talk.heard[at].message) for at in talk.lasting
            ),
            corrections=frozenset((places[old], places[new]) for old, new in talk.corrections),
        )


def _truth(talk: ToldTalk) -> list[bool]:
    return [pair in talk.corrections for pair in talk.pairs]


def trained(talks: Sequence[ToldTalk]) -> Weights:
    """Weights trained on these talks."""
    from sklearn.linear_model import LogisticRegression

    vectors = [np.array([each.judgement.vector for each in talk.told]) for talk in talks]

    def news_by(some: Sequence[int]) -> LinearFunction:
        figures = np.vstack([vectors[at] for at in some])
        model = LogisticRegression(C=_NEWS_C, max_iter=3000)
        model.fit(figures, np.concatenate([talks[at].correcting for at in some]))
        return LinearFunction(labels=("news",), matrix=model.coef_, bias=model.intercept_)

    # What the second function reads has to be as sure as it will be of talks that took no part.
    rows, truth = [], []
    for part in range(_FOLDS):
        function = news_by([at for at in range(len(talks)) if at % _FOLDS != part])
        for talk in talks[part::_FOLDS]:
            rows.append(_pair_matrix(talk.told, talk.pairs, _news_of(talk.told, function)))
            truth += _truth(talk)
    model = LogisticRegression(C=_C, max_iter=3000).fit(np.vstack(rows), truth)
    return Weights(
        embedder=multilingual_embedder().fingerprint,
        figures=PAIR_FIGURES,
        mean=np.zeros(0),
        functions={
            "corrects": LinearFunction(labels=("corrects",), matrix=model.coef_, bias=model.intercept_),
            "news": news_by(range(len(talks))),
        },
    )


def main() -> None:
    """Train if that is asked, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="train anew and write the weights")
    options = parser.parse_args()
    if options.write:
        CORRECTION_WEIGHTS.write_text(
            trained([*told_of(talk for talk in talks() if not talk.judged)]).as_json() + "\n", "utf-8"
        )
    functions = correction_weights(multilingual_embedder().fingerprint).functions
    apart = [*told_of(talk for talk in talks() if talk.judged)]
    figures = [_pair_matrix(talk.told, talk.pairs, _news_of(talk.told, functions["news"])) for talk in apart]
    chances = [logistic(functions["corrects"].scores(each))[:, 0] for each in figures]
    print(f"{len(apart)} talks that took no part, {sum(len(talk.corrections) for talk in apart)} corrections")
    for least in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5):
        found = [
            {(old, each.new) for old, each in _one_to_one(talk.pairs, some, least).items()}
            for talk, some in zip(apart, chances, strict=True)
        ]
        right = sum(len(pairs & talk.corrections) for talk, pairs in zip(apart, found, strict=True))
        print(f"{least}: {right} of {sum(map(len, found))} found are right")


if __name__ == "__main__":
    main()

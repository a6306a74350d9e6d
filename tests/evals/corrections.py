"""The judge of corrections: trained on the labelled talks, and judged on those that took no part.

`python -m tests.evals.corrections [--write]`

A pair is two sentences that last; it is a correction where the talk says that the value of the second one stands for
that of the first. Beside the labelled talks there are small ones in `corrected/` that hold such sentences alone. Talks
are dealt as for the judge of sentences, whose weights have to be written first.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexer import multilingual_embedder
from memory_service.text.correction_judge import (
    CORRECTION_WEIGHTS,
    PAIR_FIGURES,
    Told,
    _pair_matrix,
    correction_weights,
)
from memory_service.text.judge_weights import Floats, LinearFunction, Weights, logistic
from memory_service.text.sentence_judge import LASTING, Spoken, classify_sentences
from tests.evals.judges import LABELLED, Answers, by_talk, load, part_of

CORRECTED = Path(__file__).parent / "corrected"
_C = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Pairs of sentences that last.

    Attributes:
        figures: Of shape (pairs, figures).
        truth: True for each pair of which the second corrects the first.
        texts: The sentences.
    """

    figures: Floats
    truth: Answers
    texts: tuple[tuple[str, str], ...]


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


def pairs_of(talks: Iterable[Talk]) -> Pairs:
    """All pairs of some talks."""
    embedder = multilingual_embedder()
    pairs: list[tuple[Told, Told]] = []
    truth: list[bool] = []
    for talk in talks:
        labels = classify_sentences(talk.heard, embedder.embed_documents, embedder=embedder.fingerprint)
        told = {
            at: Told(spoken=talk.heard[at], judgement=labels[at], place=talk.heard[at].message) for at in talk.lasting
        }
        for new in talk.lasting:
            if talk.heard[new].voice != "assistant":
                before = [at for at in talk.lasting if at < new]
                pairs += [(told[old], told[new]) for old in before]
                truth += [(old, new) in talk.corrections for old in before]
    texts = tuple((old.spoken.text, new.spoken.text) for old, new in pairs)
    return Pairs(figures=_pair_matrix(pairs), truth=np.array(truth), texts=texts)


def trained(pairs: Pairs) -> Weights:
    """Weights trained on these pairs."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_C, max_iter=2000).fit(pairs.figures, pairs.truth)
    return Weights(
        embedder=multilingual_embedder().fingerprint,
        figures=PAIR_FIGURES,
        mean=np.zeros(0),
        functions={"corrects": LinearFunction(labels=("corrects",), matrix=model.coef_, bias=model.intercept_)},
    )


def main() -> None:
    """Train if that is asked, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="train anew and write the weights")
    options = parser.parse_args()
    if options.write:
        pairs = pairs_of(talk for talk in talks() if not talk.judged)
        CORRECTION_WEIGHTS.write_text(trained(pairs).as_json() + "\n", "utf-8")
    apart = pairs_of(talk for talk in talks() if talk.judged)
    weights = correction_weights(multilingual_embedder().fingerprint)
    chances = logistic(weights.functions["corrects"].scores(apart.figures))[:, 0]
    print(f"{len(apart.truth)} pairs of talks that took no part, {apart.truth.sum()} corrections")
    for threshold in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
        found = chances >= threshold
        right = int((found & apart.truth).sum())
        print(f"{threshold}: {right} of {int(found.sum())} found are right")
    for at in np.argsort(-chances)[:20]:
        print(f"{chances[at]:.2f} {bool(apart.truth[at])} | {apart.texts[at][0][:90]} => {apart.texts[at][1][:90]}")


if __name__ == "__main__":
    main()

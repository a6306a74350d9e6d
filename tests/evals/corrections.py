"""The judge of corrections: trained on the labelled talks, and judged on those that took no part.

`python -m tests.evals.corrections [--write]`

A pair is two sentences that last; it is a correction where the talk says that the value of the second one stands for
that of the first. Talks are dealt as for the judge of sentences, whose weights have to be written first.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexer import multilingual_embedder
from memory_service.judges.corrections import FIGURES, WEIGHTS_PATH, Told, correction_weights, pair_matrix
from memory_service.judges.sentences import LASTING, classify
from memory_service.judges.weights import Floats, Function, Weights, logistic
from tests.evals.judges import LABELLED, Answers, Labelled, by_talk, load

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


def pairs_of(rows: Sequence[Labelled], values: dict[str, list[tuple[str, str]]]) -> Pairs:
    """All pairs of some talks."""
    embedder = multilingual_embedder()
    pairs: list[tuple[Told, Told]] = []
    truth: list[bool] = []
    for places in by_talk(rows):
        labels = classify([rows[at].heard for at in places], embedder.embed_documents, embedder=embedder.fingerprint)
        told = [
            (rows[at], Told(heard=rows[at].heard, labels=found, place=rows[at].heard.message))
            for at, found in zip(places, labels, strict=True)
            if rows[at].label in (*LASTING, "superseded")
        ]
        for new, (later, after) in enumerate(told):
            for earlier, before in told[:new]:
                if later.heard.voice != "assistant":
                    pairs.append((before, after))
                    truth.append(
                        earlier.label == "superseded"
                        and any(
                            old in earlier.heard.text and value in later.heard.text
                            for old, value in values[earlier.talk]
                        )
                    )
    texts = tuple((old.heard.text, new.heard.text) for old, new in pairs)
    return Pairs(figures=pair_matrix(pairs), truth=np.array(truth), texts=texts)


def trained(pairs: Pairs) -> Weights:
    """Weights trained on these pairs."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_C, max_iter=2000).fit(pairs.figures, pairs.truth)
    return Weights(
        embedder=multilingual_embedder().fingerprint,
        figures=FIGURES,
        mean=np.zeros(0),
        functions={"corrects": Function(labels=("corrects",), matrix=model.coef_, bias=model.intercept_)},
    )


def main() -> None:
    """Train if that is asked, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="train anew and write the weights")
    options = parser.parse_args()
    rows, values = load(), load_corrections()
    if options.write:
        pairs = pairs_of([row for row in rows if not row.judged], values)
        WEIGHTS_PATH.write_text(trained(pairs).as_json() + "\n", "utf-8")
    apart = pairs_of([row for row in rows if row.judged], values)
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

"""The judge of sentences: its labelled talks, its training, and how well it does on talks that took no part.

`python -m tests.evals.judges [--write]`

The talks of `labelled/` are dealt by their names: one in five is only judged, and so are two languages. Without
`--write` the weights of the package are judged; with it they are trained anew first, and written to
`memory_service/text/sentence_judge.json`. The same text gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer import multilingual_embedder
from indexer.language.questions import asks
from memory_service.text.sentence_judge import (
    CUES,
    LABELS,
    LASTING,
    SENTENCE_WEIGHTS,
    Floats,
    LinearFunction,
    Spoken,
    Weights,
    _durable_figures,
    _judged_text,
    _kind_figures,
    _known_kind,
    _probabilities,
    _softmax,
    answering,
    sentence_weights,
)

LABELLED = Path(__file__).parent / "labelled"
# Languages that take no part in the training.
UNSEEN = ("pt", "ru")
_PARTS = 5
# Weights of the penalties. Source: our measurement on a split by talk of the talks that are trained on.
_KINDS_C, _DURABLE_C = 0.3, 1.0
# Messages of the stretches that are trained on: whole talks, and what is flushed of short ones.
_STRETCHES = (0, 6, 1)

Answers = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A labelled sentence.

    Attributes:
        talk: Its talk.
        language: Of the talk.
        heard: The sentence.
        label: Its label.
    """

    talk: str
    language: str
    heard: Spoken
    label: str

    @property
    def durable(self) -> bool:
        """True if it lasts."""
        return self.label in LASTING

    @property
    def judged(self) -> bool:
        """True if its talk takes no part in the training."""
        return self.language in UNSEEN or part_of(self.talk) == 0


def part_of(talk: str) -> int:
    """The part that a talk belongs to, by its name."""
    return hashlib.blake2b(talk.encode(), digest_size=1).digest()[0] % _PARTS


def load(folder: Path = LABELLED) -> list[Labelled]:
    """All labelled sentences, in the order of their files."""
    return [each for path in sorted(folder.glob("*/*.json")) for each in _read(json.loads(path.read_text("utf-8")))]


def _read(talk: dict[str, Any]) -> Iterator[Labelled]:
    question, asker = "", ""
    for number, message in enumerate(talk["messages"]):
        voice, _, name = message["voice"].partition(":")
        asked = question if asker not in ("", message["voice"]) else ""
        question, first = "", True
        for raw, label in message["sentences"]:
            text = raw.strip()
            if text:
                whole = answering(text, asked) if first else ""
                heard = Spoken(text=whole or text, voice="user" if name else voice, message=number, name=name)
                yield Labelled(talk=talk["name"], language=talk["language"], heard=heard, label=label)
                question, asker, first = (text, message["voice"], False) if asks(text) else (question, asker, False)


def by_talk(rows: Sequence[Labelled]) -> list[list[int]]:
    """The places of the sentences of each talk."""
    return [list(places) for _, places in groupby(range(len(rows)), key=lambda at: rows[at].talk)]


def stretches_of(rows: Sequence[Labelled], messages: int) -> Iterator[list[int]]:
    """The places of the sentences of stretches of so many messages; of whole talks for 0."""
    for places in by_talk(rows):
        numbers = list(dict.fromkeys(rows[at].heard.message for at in places))
        size = messages or len(numbers)
        for begin in range(0, len(numbers), size):
            some = set(numbers[begin : begin + size])
            yield [at for at in places if rows[at].heard.message in some]


def vectors_of(rows: Sequence[Labelled]) -> Floats:
    """Vectors of the sentences, as the judge sees them."""
    return multilingual_embedder().embed_documents([_judged_text(row.heard) for row in rows]).astype(np.float64)


def trained(rows: Sequence[Labelled], vectors: Floats) -> Weights:
    """Weights trained on whole talks."""
    from sklearn.linear_model import LogisticRegression

    mean = np.rint(vectors.mean(axis=0) * 1000) / 1000
    own = _kind_figures(mean, vectors, [row.heard for row in rows])
    labels = np.array([row.label for row in rows])
    known = [_known_kind(row.heard) for row in rows]
    open_ = np.array([not kind for kind in known])
    parts = np.array([part_of(f"inner {row.talk}") for row in rows])

    def kinds_by(train: Answers) -> LinearFunction:
        model = LogisticRegression(C=_KINDS_C, max_iter=400).fit(own[train & open_], labels[train & open_])
        # A label that is missing there is as good as impossible.
        matrix, bias = np.zeros((len(LABELS), own.shape[1])), np.full(len(LABELS), -20.0)
        for row, label in enumerate(model.classes_):
            matrix[LABELS.index(label)], bias[LABELS.index(label)] = model.coef_[row], model.intercept_[row]
        return LinearFunction(labels=LABELS, matrix=matrix, bias=bias)

    # What the second function reads has to be as sure as it will be of talks that took no part.
    kinds = np.zeros((len(rows), len(LABELS)))
    for part in sorted(set(parts)):
        kinds[parts == part] = _softmax(kinds_by(parts != part).scores(own[parts == part]))
    for at, kind in enumerate(known):
        if kind:
            kinds[at] = [float(each == kind) for each in LABELS]
    stretches = [stretch for messages in _STRETCHES for stretch in stretches_of(rows, messages)]
    figures = np.vstack(
        [_durable_figures(own[places], kinds[places], [rows[at].heard for at in places]) for places in stretches]
    )
    order = np.concatenate([np.array(places) for places in stretches])
    # By itself, what is corrected later lasts as much as what corrects it.
    counts = (open_ & (labels != "superseded"))[order]
    truth = np.array([row.durable for row in rows])[order]
    model = LogisticRegression(C=_DURABLE_C, max_iter=3000).fit(figures[counts], truth[counts])
    durable = LinearFunction(labels=("durable",), matrix=model.coef_, bias=model.intercept_)
    return Weights(
        embedder=multilingual_embedder().fingerprint,
        figures=(*CUES, *LABELS),
        mean=mean,
        functions={"kinds": kinds_by(np.ones(len(rows), bool)), "durable": durable},
    )


def judged(rows: Sequence[Labelled], vectors: Floats, weights: Weights, messages: int = 0) -> Floats:
    """Probability that each sentence lasts, in stretches of so many messages; in whole talks for 0."""
    chances = np.zeros(len(rows))
    for places in stretches_of(rows, messages):
        heard = [rows[at].heard for at in places]
        known = [_known_kind(each) for each in heard]
        _, lasts = _probabilities(weights, _kind_figures(weights.mean, vectors[places], heard), heard, known)
        chances[places] = np.where([bool(kind) for kind in known], 0.0, lasts)
    return chances


def auc(scores: Floats, truth: Answers) -> float:
    """Share of pairs of a true and a false one that the scores put in order."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    for value in np.unique(scores):
        same = scores == value
        ranks[same] = ranks[same].mean()
    hits, misses = int(truth.sum()), int((~truth).sum())
    return float((ranks[truth].sum() - hits * (hits - 1) / 2) / max(1, hits * misses))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How well sentences were judged.

    Attributes:
        sentences: Their number.
        auc: See `auc`.
        kept: Share of what lasts that is kept at a threshold.
        passed: Share of what is of the moment that is kept with it.
        wrong: Share of the moment among all that is kept.
    """

    sentences: int
    auc: float
    kept: float
    passed: float
    wrong: float


def figures_of(rows: Sequence[Labelled], chances: Floats, threshold: float) -> Figures:
    """The figures of some sentences; what is corrected in its talk counts on neither side."""
    counts = np.array([row.label != "superseded" for row in rows])
    truth, scores = np.array([row.durable for row in rows])[counts], chances[counts]
    kept = scores >= threshold
    return Figures(
        sentences=int(counts.sum()),
        auc=auc(scores, truth),
        kept=float(kept[truth].mean()),
        passed=float(kept[~truth].mean()),
        wrong=float((kept & ~truth).sum() / max(1, kept.sum())),
    )


def report(rows: Sequence[Labelled], chances: Floats) -> str:
    """The figures of each language at some thresholds."""
    lines = []
    for language in [*sorted({row.language for row in rows}), "all"]:
        places = [at for at, row in enumerate(rows) if language in (row.language, "all")]
        part = [rows[at] for at in places]
        for threshold in (0.4, 0.5, 0.6, 0.7):
            found = figures_of(part, chances[places], threshold)
            begin = f"{language:4} {found.sentences:5} AUC {found.auc:.3f}" if threshold == 0.4 else " " * 20
            lines.append(
                f"{begin} | {threshold}: {found.kept:.2f} kept, {found.passed:.3f} of the rest, "
                f"{found.wrong:.3f} of the lines"
            )
    return "\n".join(lines)


def main() -> None:
    """Train if that is asked, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="train anew and write the weights")
    options = parser.parse_args()
    rows = load()
    print(f"{len(rows)} sentences of {len({row.talk for row in rows})} talks; labels:")
    print(dict(Counter(row.label for row in rows).most_common()))
    if options.write:
        train = [row for row in rows if not row.judged]
        SENTENCE_WEIGHTS.write_text(trained(train, vectors_of(train)).as_json() + "\n", "utf-8")
    apart = [row for row in rows if row.judged]
    weights = sentence_weights(multilingual_embedder().fingerprint)
    vectors = vectors_of(apart)
    print("talks that took no part\n" + report(apart, judged(apart, vectors, weights)))
    print("each message by itself\n" + report(apart, judged(apart, vectors, weights, 1)))


if __name__ == "__main__":
    main()

"""Judge of sentences: the probability that a sentence of a talk lasts, and of each kind that it may be.

```
sentence, voice -> vector of "voice: sentence" -> kinds of it  -> does it last?
                -> cues (form, rules)          -> kinds around it /
```
Invariants: a sentence is judged by itself and by what kinds of sentences stand around it, for the same sentence is a
fact in a report and none in a novel; greetings, empty phrases and a tool's output cost no vector and do not last; the
vectors come from a function that is given; weights, linear functions of figures, are read at the first judgement and
checked against what the code computes, so that a damaged or foreign file is named and never judges.

Source: our measurement (`python -m tests.evals.judges`); whole talks are judged better than each message by itself.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexer import Ints, Vectors
from indexer.common import lazy_regex
from indexer.language import asks, days_of, has_unspaced, is_reported, ornament
from memory_service.text.lasting import asks_to_remember, is_about_self, tells_value, wishes_address
from memory_service.text.phrases import is_narration, is_nothing, is_pleasantry, is_relative, points_back
from memory_service.text.salience import WEIGHTS as MARKS
from memory_service.text.salience import limit_marks, marks_of, words_of
from memory_service.text.sentences import Voice
from memory_service.text.statements import decisions_of, is_order, is_promise, reports_will, rules_of

Floats = NDArray[np.float64]


class DamagedWeights(Exception):
    """The weights of a judge cannot be read; whoever asks a judge goes on by rules and says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFunction:
    """One linear function a label.

    Attributes:
        labels: Names of what the functions tell.
        matrix: Of shape (labels, figures).
        bias: Of shape (labels,).
    """

    labels: tuple[str, ...]
    matrix: Floats
    bias: Floats

    def scores(self, figures: Floats) -> Floats:
        """Log-odds, of shape (rows, labels), for figures of shape (rows, figures)."""
        scores: Floats = figures @ self.matrix.T + self.bias
        return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of a judge.

    Attributes:
        embedder: Fingerprint of the model whose vectors they read.
        figures: Names of the figures beside the vector.
        mean: Mean of the vectors that the judge was trained on, of shape (dimensions,); empty where it reads no vector.
        functions: The functions by name.
    """

    embedder: str
    figures: tuple[str, ...]
    mean: Floats
    functions: Mapping[str, LinearFunction]

    def as_json(self) -> str:
        """The text of their file."""
        functions = {
            name: {
                "labels": function.labels,
                "bias": [round(float(value), 3) for value in function.bias],
                "matrix": [_pack_row(row) for row in function.matrix],
            }
            for name, function in self.functions.items()
        }
        named_fields = {"embedder": self.embedder, "figures": self.figures, "mean": _pack_row(self.mean)}
        return json.dumps({**named_fields, "functions": functions}, indent=1)


def logistic(scores: Floats) -> Floats:
    """Probabilities of log-odds, of the same shape."""
    probabilities: Floats = 1.0 / (1.0 + np.exp(-np.clip(scores, -30.0, 30.0)))
    return probabilities


def _softmax(scores: Floats) -> Floats:
    """Probabilities of labels of which one holds, of the same shape as their scores: (rows, labels)."""
    exp = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: Floats = exp / exp.sum(axis=1, keepdims=True)
    return probabilities


def read_weights(path: Path, *, embedder: str, figures: Sequence[str], widths: Mapping[str, int]) -> Weights:
    """The weights of a file.

    Args:
        path: The file.
        embedder: Fingerprint of the model at hand.
        figures: Names of the figures that the code computes beside the vector.
        widths: The functions that are needed, and how many figures each reads beside the vector.

    Raises:
        DamagedWeights: The file is not there or not whole, or belongs to another model or other figures.
    """
    try:
        weights = _parse_weights(json.loads(path.read_text("utf-8")))
        whole = all(_fits(weights.functions[name], len(weights.mean) + width) for name, width in widths.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedWeights(
            f"The weights of a judge in {path.name} cannot be read ({type(error).__name__}). Reinstall memory-service; "
            "until then rules stand in for the judge."
        ) from error
    if not whole or weights.embedder != embedder or weights.figures != tuple(figures):
        raise DamagedWeights(
            f"The weights of a judge in {path.name} are not those of this version. Reinstall memory-service; until "
            "then rules stand in for the judge."
        )
    return weights


def _parse_weights(read: Mapping[str, object]) -> Weights:
    functions = {
        name: LinearFunction(
            labels=tuple(value["labels"]),
            matrix=np.stack([_unpack_row(row) for row in value["matrix"]]),
            bias=np.asarray(value["bias"], np.float64),
        )
        for name, value in read["functions"].items()  # type: ignore[attr-defined]  # checked by the reader of the file
    }
    return Weights(
        embedder=str(read["embedder"]),
        figures=tuple(read["figures"]),  # type: ignore[arg-type]  # likewise
        mean=_unpack_row(read["mean"]),  # type: ignore[arg-type]  # likewise
        functions=functions,
    )


def _fits(function: LinearFunction, figures: int) -> bool:
    shapes = function.matrix.shape == (len(function.labels), figures) and function.bias.shape == (len(function.labels),)
    return shapes and bool(np.isfinite(function.matrix).all() and np.isfinite(function.bias).all())


def _pack_row(row: Floats) -> str:
    """A row as base64 of thousandths, two bytes each."""
    return base64.b64encode(np.clip(np.rint(row * 1000), -32_768, 32_767).astype("<i2").tobytes()).decode("ascii")


def _unpack_row(text: str) -> Floats:
    row: Floats = np.frombuffer(base64.b64decode(text, validate=True), "<i2").astype(np.float64) / 1000
    return row


LASTING = ("rule", "decision", "preference", "plan", "cause", "change", "event", "fact")
OF_THE_MOMENT = (
    "superseded", "chatter", "question", "order", "offer", "report", "state", "temporary", "knowledge", "joke",
    "belief", "quoted", "tool",
)  # fmt: skip
LABELS = (*LASTING, *OF_THE_MOMENT)
SENTENCE_WEIGHTS = Path(__file__).parent / "sentence_judge.json"
_ANSWER_WORDS, _QUESTION_CHARS = 4, 120
# So many characters of a sentence are in its vector, and of a stretch in all vectors, each with a cost of its own; the
# likeliest to last by all that is known without get theirs first. Source: our measurement; about four seconds.
_VECTOR_CHARS, _LEAST_CHARS, MOST_CHARS = 300, 20, 45_000
# Factor of a vector beside cues of about 1.
_SCALE = 4.0
# So many sentences on each side tell what a talk is like, and so many figures tell what stands around a sentence.
_WINDOW = 25
_AROUND = 6 * len(LABELS) + 3

# Characters of a sentence that count.
_MAX_CHARS = 600
_KEPT_CUES = 4096

Embed: TypeAlias = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A sentence and whose it is.

    Attributes:
        text: The sentence.
        voice: The role of its message.
        message: The number of its message.
        name: Its speaker in a talk of named people; empty in a talk with an assistant.
    """

    text: str
    voice: Voice
    message: int
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Judgement of a sentence.

    Attributes:
        durable: Probability that it lasts.
        kinds: Probability of each kind, of which one holds.
        vector: The unit vector of what sets the sentence apart from others, of shape (dimensions,); zeros where it was
            judged without one.
    """

    durable: float
    kinds: Mapping[str, float]
    vector: Floats

    @property
    def kind(self) -> str:
        """The likeliest kind."""
        return max(self.kinds, key=self.kinds.__getitem__)

    @property
    def lasting_kind(self) -> str:
        """The likeliest of the kinds that last."""
        return max(LASTING, key=lambda kind: self.kinds[kind])


_CAPITAL = lazy_regex(r"(?<=[^\W\d_][ ,;:] )[A-ZÀ-ÞА-Я]|(?<=[a-zà-þа-я,;:] )[A-ZÀ-ÞА-Я]")
_CODE = lazy_regex(r"[{}<>|\\=;`$]|\w\(|::|\w_\w")
_LIST = lazy_regex(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
_QUOTED = lazy_regex('["“”„«»「『《]')
_MARKS = tuple(MARKS)

# By name when they are called: a reader can be put in the place of another.
_FORMS: Mapping[str, Callable[[str], object]] = {
    "asks": lambda text: asks(text),
    "question_mark": lambda text: text.rstrip("\"'”’)） ").endswith(("?", "？")),
    "exclaims": lambda text: text.rstrip().endswith(("!", "！")),
    "digit": lambda text: any(map(str.isdigit, text)),
    "day": lambda text: next(iter(days_of(text)), None),
    "capital": _CAPITAL.search,
    "code": _CODE.search,
    "list": _LIST.match,
    "quotes": _QUOTED.search,
    "colon": lambda text: text.rstrip().endswith((":", "：")),
    "pleasantry": lambda text: is_pleasantry(text),
    "narration": lambda text: is_narration(text),
    "nothing": lambda text: is_nothing(text),
    "points_back": lambda text: points_back(text),
    "relative": lambda text: is_relative(text),
    "reported": lambda text: is_reported(text),
    "will": lambda text: reports_will(text),
    "rule_words": lambda text: rules_of(text),
    "decision_words": lambda text: decisions_of(text),
    "order_words": lambda text: is_order(text),
    "promise_words": lambda text: is_promise(text),
    "remember_words": lambda text: asks_to_remember(text),
    "address_words": lambda text: wishes_address(text),
    "self_words": lambda text: is_about_self(text),
    "value_words": lambda text: tells_value(text),
}
CUES = ("user", "assistant", "tool", "named", "length", "words", "few", *_FORMS, *(f"mark_{mark}" for mark in _MARKS))


def _cues_of(sentence: Spoken) -> Sequence[float]:
    """The figures of `CUES` for a sentence, each about 0 to 2."""
    return _cues(sentence.text[:_MAX_CHARS], sentence.voice, sentence.name)


# A sentence is judged at the flush, for the summary, and again with what comes after it.
@lru_cache(_KEPT_CUES)
def _cues(text: str, voice: Voice, name: str) -> Sequence[float]:
    words = words_of(text)
    size = size_of(text)
    marks = limit_marks(marks_of(text, words, (name,) if name else ()))
    is_named = bool(name)
    return (
        float(voice == "user" and not is_named),
        float(voice == "assistant" and not is_named),
        float(voice == "tool"),
        float(is_named),
        min(2.0, len(text) / 100),
        min(2.0, math.log1p(size) / 2),
        float(size < 4),
        *(float(bool(form(text))) for form in _FORMS.values()),
        *(min(2.0, marks.get(mark, 0)) for mark in _MARKS),
    )


def size_of(text: str) -> int:
    """Size of a text in words; a Chinese character carries about what half a word does."""
    return max(1, len(text) // 2) if has_unspaced(text) else text.count(" ") + 1


def answering(text: str, question: str) -> str:
    """A sentence with the question before it, where it is an answer too short to be judged alone; else empty.

    Args:
        text: The first sentence of a message.
        question: The last question of the message before, of somebody else; empty if there is none.
    """
    short = question and size_of(text) < _ANSWER_WORDS and len(question) <= _QUESTION_CHARS
    return f"{question} {text}" if short else ""


def _judged_text(sentence: Spoken) -> str:
    """The text whose vector is judged."""
    return f"{'user' if sentence.name else sentence.voice}: {sentence.text[:_VECTOR_CHARS]}"


def _known_kind(sentence: Spoken) -> str:
    """The kind of a sentence that needs no vector; empty if it needs one."""
    if sentence.voice == "tool":
        return "tool"
    text = sentence.text[:_MAX_CHARS]
    says = any(map(str.isalnum, text)) and not is_nothing(text) and not is_pleasantry(text)
    return "" if says else "chatter"


def _kind_figures(mean: Floats, vectors: NDArray[np.floating[Any]], sentences: Sequence[Spoken]) -> Floats:
    """Figures that tell the kinds of sentences, of shape (sentences, dimensions + cues)."""
    rows = [ornament("statements", [0.0] * len(CUES), _cues_of, sentence) for sentence in sentences]
    cues = np.array(rows, np.float64).reshape(len(sentences), len(CUES))
    return np.hstack([_vector_figures(mean, vectors), cues])


def _vector_figures(mean: Floats, vectors: NDArray[np.floating[Any]]) -> Floats:
    figures: Floats = (np.asarray(vectors, np.float64) - mean) * _SCALE
    return figures


def _durable_figures(own: Floats, kinds: Floats, sentences: Sequence[Spoken]) -> Floats:
    """Figures that tell whether sentences last, of shape (sentences, figures).

    Args:
        own: See `_kind_figures`.
        kinds: Probability of each kind, of shape (sentences, kinds); of a whole stretch.
        sentences: The sentences.
    """
    at, (first, last) = np.arange(len(sentences)), _messages(sentences)
    size = last - first
    # Nothing stands at either end.
    rows = np.vstack([np.zeros((1, kinds.shape[1])), kinds, np.zeros((1, kinds.shape[1]))])
    totals = np.vstack([np.zeros((1, kinds.shape[1])), kinds.cumsum(axis=0)])
    low, high = np.maximum(at - _WINDOW, 0), np.minimum(at + _WINDOW + 1, len(sentences))
    return np.hstack([
        own,
        kinds * 2,
        np.where(at > first, rows[at].T, 0.0).T,
        np.where(at + 1 < last, rows[at + 2].T, 0.0).T,
        rows[first],
        (totals[last] - totals[first] - kinds) / np.maximum(size - 1, 1)[:, None],
        np.column_stack([at == first, size == 1, np.minimum(size / 5, 2.0)]),
        (totals[high] - totals[low]) / (high - low)[:, None] * 3,
    ])  # fmt: skip


def _messages(sentences: Sequence[Spoken]) -> tuple[Ints, Ints]:
    """Of each sentence, the places of the first one of its message and of the first one of the next message."""
    first, last = [0] * len(sentences), [len(sentences)] * len(sentences)
    for at in range(1, len(sentences)):
        first[at] = first[at - 1] if sentences[at].message == sentences[at - 1].message else at
    for at in range(len(sentences) - 2, -1, -1):
        last[at] = last[at + 1] if sentences[at].message == sentences[at + 1].message else at + 1
    return np.array(first, np.int64), np.array(last, np.int64)


def classify_sentences(
    sentences: Sequence[Spoken], embed: Embed, *, embedder: str, most_chars: int = MOST_CHARS
) -> list[Judgement]:
    """Judgements of the sentences of a stretch, in order.

    Args:
        sentences: The sentences.
        embed: Gives the vectors of texts.
        embedder: Fingerprint of its model.
        most_chars: So much of them is in vectors, the likeliest to last first; of the others form tells, and place.

    Raises:
        DamagedWeights: There are no weights for that model.
    """
    weights = sentence_weights(embedder)
    if not sentences:
        return []
    ornaments = [ornament("statements", "", _known_kind, sentence) for sentence in sentences]
    asked_numbers = [at for at, kind in enumerate(ornaments) if not kind]
    vectors = np.tile(weights.mean, (len(sentences), 1))
    costs = {at: min(len(sentences[at].text), _VECTOR_CHARS) + _LEAST_CHARS for at in asked_numbers}
    own = _kind_figures(weights.mean, vectors, sentences)
    if sum(costs.values()) > most_chars:
        # The vectors of a very long stretch would take minutes: cues, and what stands around, do for the others.
        _, values = _probabilities(weights, own, sentences, ornaments)
        likeliest = sorted(asked_numbers, key=lambda at: -values[at])
        rows = np.cumsum([costs[at] for at in likeliest])
        asked_numbers = sorted(likeliest[: int((rows <= most_chars).sum())])
    if asked_numbers:
        vectors[asked_numbers] = embed([_judged_text(sentences[at]) for at in asked_numbers])
        own[:, : len(weights.mean)] = _vector_figures(weights.mean, vectors)
    kinds, lasts = _probabilities(weights, own, sentences, ornaments)
    apart = _set_apart(vectors, weights.mean)
    return [
        Judgement(
            durable=0.0 if ornaments[at] else float(lasts[at]),
            kinds={kind: float(value) for kind, value in zip(LABELS, kinds[at], strict=True)},
            vector=apart[at],
        )
        for at in range(len(sentences))
    ]


def _probabilities(
    weights: Weights, own: Floats, sentences: Sequence[Spoken], known_texts: Sequence[str]
) -> tuple[Floats, Floats]:
    """Probabilities of kinds, of shape (sentences, kinds), and that each sentence lasts, of shape (sentences,).

    Args:
        weights: Those of the judge.
        own: See `_kind_figures`; of sentences of a known kind they do not count.
        sentences: The sentences of a stretch, in order.
        known_texts: See `_known_kind`.
    """
    kinds = _softmax(weights.functions["kinds"].scores(own))
    for at, kind in enumerate(known_texts):
        if kind:
            kinds[at] = [float(label == kind) for label in LABELS]
    lasts = logistic(weights.functions["durable"].scores(_durable_figures(own, kinds, sentences)))[:, 0]
    return kinds, lasts


def _set_apart(vectors: NDArray[np.floating[Any]], mean: Floats) -> Floats:
    """Vectors without what all have in common, as unit vectors, of the same shape."""
    apart = np.asarray(vectors, np.float64) - mean
    unit: Floats = apart / np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-9)
    return unit


@cache
def sentence_weights(embedder: str) -> Weights:
    """The weights of the package.

    Args:
        embedder: Fingerprint of the model at hand.

    Raises:
        DamagedWeights: They cannot be read, or are for another model.
    """
    widths = {"kinds": len(CUES), "durable": len(CUES) + _AROUND}
    return read_weights(SENTENCE_WEIGHTS, embedder=embedder, figures=(*CUES, *LABELS), widths=widths)

"""Weights of a judge: linear functions of figures, trained beforehand and kept as data.

Invariants: a file of weights is checked against what the code computes when it is read, so that a damaged or foreign
file is named and never judges; the same figures give the same answer.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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


def softmax(scores: Floats) -> Floats:
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

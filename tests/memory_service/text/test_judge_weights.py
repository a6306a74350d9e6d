from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memory_service.text.sentence_judge import DamagedWeights, LinearFunction, Weights, _softmax, logistic, read_weights

FIGURES = ("asks", "length")
WEIGHTS = Weights(
    embedder="model-1",
    figures=FIGURES,
    mean=np.array([0.25, -0.5, 0.125]),
    functions={
        "lasts": LinearFunction(labels=("lasts",), matrix=np.array([[1.5, -2, 0.5, 0.25, -1]]), bias=np.ones(1))
    },
)


def read(path: Path, *, embedder: str = "model-1", figures: tuple[str, ...] = FIGURES, width: int = 2) -> Weights:
    return read_weights(path, embedder=embedder, figures=figures, widths={"lasts": width})


def test_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text(WEIGHTS.as_json())
    again = read(path)
    assert again.as_json() == WEIGHTS.as_json()
    row = np.array([[1.0, 2, 3, 4, 5]])
    assert np.allclose(again.functions["lasts"].scores(row), WEIGHTS.functions["lasts"].scores(row))


@pytest.mark.parametrize("cut", [0, 1, 40, 200, -3])
def test_a_torn_file_is_named_and_never_judges(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "weights.json"
    path.write_text(WEIGHTS.as_json()[:cut])
    with pytest.raises(DamagedWeights, match=r"weights\.json cannot be read .* until then rules"):
        read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedWeights, match="FileNotFoundError"):
        read(tmp_path / "weights.json")


@pytest.mark.parametrize(
    "other", [{"embedder": "model-2"}, {"figures": ("asks", "words")}, {"width": 3}], ids=["model", "figures", "width"]
)
def test_weights_of_something_else_are_refused(tmp_path: Path, other: dict[str, object]) -> None:
    path = tmp_path / "weights.json"
    path.write_text(WEIGHTS.as_json())
    with pytest.raises(DamagedWeights, match="not those of this version"):
        read(path, **other)  # type: ignore[arg-type]


def test_a_missing_function_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text(WEIGHTS.as_json().replace('"lasts": {', '"other": {'))
    with pytest.raises(DamagedWeights):
        read(path)


def test_probabilities_are_between_0_and_1_whatever_the_scores() -> None:
    scores = np.array([[-1e9, -2.0, 0.0, 2.0, 1e9]])
    assert np.all((logistic(scores) >= 0) & (logistic(scores) <= 1)) and logistic(scores)[0, 2] == 0.5
    assert np.allclose(_softmax(scores).sum(axis=1), 1)

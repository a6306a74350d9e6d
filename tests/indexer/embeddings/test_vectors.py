from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from indexer.embeddings.base import empty_rows, unit_rows
from indexer.errors import EmbeddingError

NAN, INF = float("nan"), float("inf")


def test_rows_come_out_with_length_one() -> None:
    rows = unit_rows("m", np.array([[3, 4], [0, 1e-20]], np.float16), texts=2)
    assert rows.dtype == np.float32
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]


@pytest.mark.parametrize("bad", [[0.0, 0.0], [NAN, 1.0], [INF, 1.0], [-INF, NAN], [1e200, 1e200]])
def test_a_row_that_is_no_vector_is_zeros(bad: list[float]) -> None:
    rows = unit_rows("m", [[1.0, 0.0], bad, [0.0, 2.0]], texts=3)
    assert rows.tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    assert empty_rows(rows) == [1]


@pytest.mark.parametrize(
    ("made", "texts", "told"),
    [
        ([[1.0]], 2, "gave 1 vectors for 2 texts"),
        ([], 1, "gave 0 vectors for 1 texts"),
        ([[1.0], [1.0]], 1, "gave 2 vectors for 1 texts"),
        ([[1.0], [1.0, 2.0]], 2, r"not of one length \(\[1, 2\]\)"),
        ([None], 1, "not of numbers"),
        (["base64"], 1, "not of numbers"),
        ([1.0], 1, "not of numbers"),
        ([[1.0, 2.0, 3.0]], 1, "vectors of 3 numbers, and of 2 before"),
    ],
)
def test_what_is_wrong_is_named_with_its_numbers(made: list[Any], texts: int, told: str) -> None:
    with pytest.raises(EmbeddingError, match=f"^The model m gave .*{told.removeprefix('gave ')}.*\\. [A-Z]"):
        unit_rows("m", made, texts=texts, dimensions=2 if "before" in told else 0)

"""Quality floors of identifiers and days. See `tests.evals.named`, where they are described."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexer import Embedder
from tests.evals.models import minilm
from tests.evals.named import LAYOUTS, Layout, measure_days, measure_identifiers


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_passage_with_the_asked_identifier_is_first(layout: Layout, tmp_path: Path) -> None:
    """Measured 1.00 of each kind, by words and with vectors."""
    by_words = measure_identifiers(tmp_path / "words", None, layout)
    by_both = measure_identifiers(tmp_path / "both", minilm(), layout)
    for kind, share in by_both.items():
        assert share.first >= by_words[kind].first >= 0.98, (kind, share.missed, by_words[kind].missed)


@pytest.mark.parametrize("embedder", [None, minilm()])
def test_the_asked_day_is_first(embedder: Embedder | None, tmp_path: Path) -> None:
    """Measured 120 of 120, by words and with vectors."""
    share = measure_days(tmp_path, embedder)
    assert share.right >= 118, share.missed

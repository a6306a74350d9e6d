"""Quality floors in eleven scripts. See `tests.evals.scripts`, where the passages and questions are described."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from indexer import Index
from tests.evals.chinese import HALVES, TODAY, reference, score, write_workspace
from tests.evals.models import minilm
from tests.evals.scripts import ALL, SCRIPTS, load, measure


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_set_is_what_it_says(script: str) -> None:
    collection = load(script)
    count = 20 if script in ("khmer", "lao", "burmese") else 60
    assert len(collection.pairs) == len({pair.question for pair in collection.pairs}) == count
    assert {(pair.path, pair.answer) for pair in collection.pairs} == set(collection.lines)
    assert len(set(collection.lines)) == count


@pytest.mark.parametrize("script", [*SCRIPTS, ALL])
def test_hybrid_finds_what_words_find(script: str, tmp_path: Path) -> None:
    """Measured alike in every script: all among the first five, .94 first or more."""
    collection = load(script)
    by_words = measure(collection, None, tmp_path / "words")
    by_both = measure(collection, minilm(), tmp_path / "both")
    for half in HALVES:
        assert by_both[half].hit5 >= by_words[half].hit5 >= 0.96
        assert by_both[half].hit1 >= by_words[half].hit1 >= 0.9


def test_a_packed_index_finds_the_same(tmp_path: Path) -> None:
    """Measured 1.00 of five, by words and with vectors."""
    collection = load(ALL)
    for embedder in (None, minilm()):
        folder = tmp_path / ("both" if embedder else "words")
        write_workspace(collection, folder)
        with closing(Index(folder, embedder, today=lambda: TODAY, pack_passages=100)) as index:
            index.sync()
            assert index.status().packed
            assert score(index, collection.pairs).hit5 >= 0.98


def test_stems_find_more_than_forms(tmp_path: Path) -> None:
    """Measured .90 by rank-bm25 in Russian, whose words change their endings."""
    collection = load("cyrillic")
    by_words = measure(collection, None, tmp_path)
    for half in HALVES:
        assert by_words[half].hit5 > reference(collection, collection.half(half), 40).hit5 + 0.05

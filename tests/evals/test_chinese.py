"""Quality floors on Chinese notes. See `tests.evals.chinese`, where the two groups of questions are described."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer import Embedder
from tests.evals.chinese import (
    GROUPS,
    HALVES,
    Collection,
    Group,
    Half,
    Score,
    load,
    open_index,
    reference,
    score,
    write_workspace,
)
from tests.evals.models import minilm

Scores = dict[tuple[Group, Half], Score]


@pytest.fixture(scope="module")
def collections() -> dict[Group, Collection]:
    return {group: load(group) for group in GROUPS}


def found(collections: dict[Group, Collection], folder: Path, embedder: Embedder | None) -> Scores:
    def asked() -> Iterator[tuple[tuple[Group, Half], Score]]:
        for group, collection in collections.items():
            write_workspace(collection, folder / group)
            index = open_index(folder / group, embedder)
            yield from (((group, half), score(index, collection.half(half))) for half in HALVES)
            index.close()

    return dict(asked())


@pytest.fixture(scope="module")
def by_text(collections: dict[Group, Collection], tmp_path_factory: pytest.TempPathFactory) -> Scores:
    return found(collections, tmp_path_factory.mktemp("text"), None)


def test_the_set_is_what_it_says(collections: dict[Group, Collection]) -> None:
    for collection in collections.values():
        lines = list(collection.lines)
        assert len(lines) == len(set(lines)) > 590
        assert len({pair.question for pair in collection.pairs}) == len(collection.pairs) > 550
        assert {(pair.path, pair.answer) for pair in collection.pairs} <= set(lines)
        assert all(250 < len(collection.half(half)) < 300 for half in HALVES)
    shared = {group: sum(pair.shared for pair in c.pairs) / len(c.pairs) for group, c in collections.items()}
    assert shared["paraphrased"] < 0.3 < 0.5 < shared["natural"] < 0.53


@pytest.mark.parametrize("half", HALVES)
def test_words_find_what_is_asked_naturally(by_text: Scores, half: Half) -> None:
    """Measured .990 and .941 first on the half that ranking was tuned on, .986 and .917 on the other."""
    assert by_text["natural", half].hit5 >= 0.97
    assert by_text["natural", half].hit1 >= 0.89


@pytest.mark.parametrize("half", HALVES)
def test_how_far_words_reach_when_a_question_has_others(by_text: Scores, half: Half) -> None:
    """Measured .833 and .615 first on the one half, .869 and .606 on the other."""
    assert by_text["paraphrased", half].hit5 >= 0.82
    assert by_text["paraphrased", half].hit1 >= 0.58


def test_words_find_more_than_plain_bm25(collections: dict[Group, Collection], by_text: Scores) -> None:
    """Measured .976 over single characters, .979 over pairs; when a question has other words, .798 and .617."""
    margins: dict[Group, float] = {"natural": 0.0, "paraphrased": 0.04}
    for group, margin in margins.items():
        ours = by_text[group, "held"]
        for size in (1, 2):
            plain = reference(collections[group], collections[group].half("held"), size)
            assert ours.hit5 > plain.hit5 + margin
            assert ours.hit1 > plain.hit1 + margin


def test_a_model_that_does_not_read_chinese_costs_nothing(
    collections: dict[Group, Collection], by_text: Scores, tmp_path: Path
) -> None:
    """Measured alike among the first five, and first for one question more. Embedding the other group takes long."""
    natural: dict[Group, Collection] = {"natural": collections["natural"]}
    for part, by_both in found(natural, tmp_path, minilm()).items():
        assert by_both.hit5 >= by_text[part].hit5
        # Vectors differ a little from one processor to another: one question.
        assert by_both.hit1 >= by_text[part].hit1 - 1 / 250

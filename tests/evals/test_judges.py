"""Floors of the judges of the package, on talks and worlds that took no part in their training."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from indexer import multilingual_embedder
from memory_service.text.prompt_judge import PROMPT_WEIGHTS, WANTS, prompt_weights
from memory_service.text.sentence_judge import (
    LASTING,
    OF_THE_MOMENT,
    SENTENCE_WEIGHTS,
    Floats,
    Weights,
    sentence_weights,
)
from tests.evals import prompts as worlds
from tests.evals.judges import UNSEEN, Labelled, figures_of, judged, load, vectors_of

_EMBEDDER = multilingual_embedder()


@pytest.fixture(scope="module")
def apart() -> list[Labelled]:
    return [row for row in load() if row.judged]


@pytest.fixture(scope="module")
def vectors(apart: list[Labelled]) -> Floats:
    return vectors_of(apart)


def test_the_labelled_text_is_large_and_whole() -> None:
    rows = load()
    assert len(rows) >= 3_000 and len({row.talk for row in rows}) >= 60
    assert len({row.language for row in rows}) >= 6
    assert {row.label for row in rows} == {*LASTING, *OF_THE_MOMENT}


def test_weights_are_small() -> None:
    assert sum(path.stat().st_size for path in (SENTENCE_WEIGHTS, PROMPT_WEIGHTS)) < 200_000


def test_what_lasts_is_told_on_talks_that_took_no_part(apart: list[Labelled], vectors: Floats) -> None:
    chances = judged(apart, vectors, sentence_weights(_EMBEDDER.fingerprint))
    found = figures_of(apart, chances, 0.5)
    assert found.auc >= 0.96 and found.kept >= 0.83 and found.passed <= 0.07, found
    for language in sorted({row.language for row in apart}):
        places = [at for at, row in enumerate(apart) if row.language == language]
        least = 0.9 if language in UNSEEN else 0.93
        assert figures_of([apart[at] for at in places], chances[places], 0.5).auc >= least, language


def test_a_message_by_itself_is_judged_nearly_as_well(apart: list[Labelled], vectors: Floats) -> None:
    chances = judged(apart, vectors, sentence_weights(_EMBEDDER.fingerprint), messages=1)
    assert figures_of(apart, chances, 0.5).auc >= 0.94


@pytest.fixture(scope="module")
def prompts() -> Iterator[list[worlds.Prompt]]:
    yield list(worlds.judged_by_meaning())


def test_prompts_that_nothing_concerns_get_nothing(prompts: list[worlds.Prompt]) -> None:
    weights: Weights = prompt_weights(_EMBEDDER.fingerprint)
    chances = worlds.chances_of(prompts, worlds.vectors_of(prompts), weights)
    share = {
        kind: float(
            np.mean([chance >= WANTS for each, chance in zip(prompts, chances, strict=True) if each.kind == kind])
        )
        for kind in worlds.KINDS
    }
    assert share["related"] >= 0.91 and share["unrelated"] <= 0.2 and share["unanswered"] <= 0.52, share

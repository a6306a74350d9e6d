"""Quality floors in thirteen languages. See `tests.evals.paraphrases`, where the notes and questions are described."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from indexer import bundled_choice
from indexer.language.search_terms import asked_terms
from indexer.language.terms import has_unspaced, index_terms
from tests.evals.models import minilm
from tests.evals.paraphrases import LANGUAGES, load, opened, others, shares


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_set_is_what_it_says(language: str) -> None:
    collection = load(language)
    assert len({pair.question for pair in collection.pairs}) == len({pair.answer for pair in collection.pairs}) == 50
    assert len(others(language)) >= 50
    assert len(list(collection.lines)) >= 100


@pytest.mark.parametrize("language", [name for name in LANGUAGES if not has_unspaced(load(name).pairs[0].question)])
def test_a_question_has_the_words_of_its_note_only_by_grammar(language: str) -> None:
    shared = [
        pair.question
        for pair in load(language).pairs
        if any(len(term) > 4 for term in {*asked_terms(pair.question)} & {*index_terms(pair.answer)})
    ]
    assert len(shared) <= 2


@pytest.mark.parametrize("language", [name for name in LANGUAGES if name != "English"])
def test_more_is_found_than_by_the_model_for_english(language: str, tmp_path: Path) -> None:
    collection = load(language)
    found = {}
    for name, embedder in (("english", minilm()), ("auto", bundled_choice())):
        with closing(opened(collection, embedder, tmp_path / name)) as index:
            found[name] = shares(index, collection.half("held"))
    assert found["auto"][1] >= found["english"][1] + 0.2
    assert found["auto"][0] >= found["english"][0]
    assert found["auto"][1] >= FLOORS[language]


def test_english_stays_with_its_own_model(tmp_path: Path) -> None:
    with closing(opened(load("English"), bundled_choice(), tmp_path)) as index:
        assert index.status().choice.startswith("minilm")
        assert shares(index, load("English").pairs)[1] >= 0.85


# Of the held half, of 20 to 28 questions: one question below what was measured.
FLOORS = {
    "Chinese": 0.84, "Japanese": 0.73, "Korean": 0.68, "German": 0.54, "Spanish": 0.54, "French": 0.52,
    "Portuguese": 0.56, "Russian": 0.68, "Arabic": 0.62, "Hindi": 0.48, "Turkish": 0.44, "Vietnamese": 0.47,
}  # fmt: skip

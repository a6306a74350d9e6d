from __future__ import annotations

import subprocess
import sys

import pytest

from indexer.embeddings.bundled import LanguageChoice, bundled_choice, multilingual_embedder
from indexer.language.languages import Writing
from indexer.testing import HashEmbedder

ENGLISH, OTHERS = HashEmbedder(seed=1), HashEmbedder(seed=2)
CHOICE = LanguageChoice(ENGLISH, OTHERS)


def written(foreign: float) -> Writing:
    return Writing(shares={"English": 1 - foreign, "German": foreign})


@pytest.mark.parametrize(
    ("foreign", "made_with", "chosen"),
    [
        (0.0, "", ENGLISH),
        (0.05, ENGLISH.fingerprint, ENGLISH),
        (0.45, ENGLISH.fingerprint, ENGLISH),
        (0.45, OTHERS.fingerprint, OTHERS),
        (0.45, "another", ENGLISH),
        (0.55, ENGLISH.fingerprint, OTHERS),
        (0.55, "", OTHERS),
        (0.2, OTHERS.fingerprint, ENGLISH),
        (1.0, OTHERS.fingerprint, OTHERS),
    ],
)
def test_most_of_what_is_written_decides_and_an_index_does_not_go_to_and_fro(
    foreign: float, made_with: str, chosen: HashEmbedder
) -> None:
    assert CHOICE.choose(written(foreign), made_with) is chosen


def test_where_nothing_is_written_it_is_english() -> None:
    assert CHOICE.choose(Writing(shares={}), OTHERS.fingerprint) is ENGLISH


def test_each_index_has_the_model_that_made_it() -> None:
    assert CHOICE.maker(ENGLISH.fingerprint) is ENGLISH
    assert CHOICE.maker(OTHERS.fingerprint) is OTHERS
    assert CHOICE.maker("another") is None


def test_there_is_one_model_for_all_languages_in_a_process() -> None:
    assert bundled_choice().others is multilingual_embedder() is bundled_choice().others
    assert multilingual_embedder().name == "multilingual-e5-small"
    assert bundled_choice().english.name == "minilm"


def test_making_a_choice_loads_neither_model() -> None:
    code = (
        "import sys; from indexer import bundled_choice; bundled_choice(); "
        "raise SystemExit(bool({'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

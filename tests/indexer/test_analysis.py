from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.analysis import MAX_TERM_CHARS, STOP_WORDS, fold, has_unspaced, index_terms, query_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Deploys go out on Tuesdays.", ["deploi", "go", "out", "on", "tuesdai"]),
        ("snake_case and kebab-case", ["snake", "case", "and", "kebab", "case"]),
        ("v2.10 10:30", ["v2", "10", "10", "30"]),
        ("Café NAÏVE", ["cafe", "naiv"]),
        ("cafe\u0301", ["cafe"]),
        ("İstanbul", ["istanbul"]),
        ("phở Hà Nội", ["pho", "ha", "noi"]),
        ("ＡＢＣ１２３", ["abc123"]),
        ("Straße", ["strass"]),
        ("ﬁle", ["file"]),
        ("Ёлка", ["елка"]),
        ("部署", ["部", "署", "部署"]),
        ("用Python写", ["用", "python", "写"]),
        ("서울에서", ["서", "울", "에", "서", "서울", "울에", "에서"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("🎉 ... \x00 --", []),
        ("", []),
    ],
)
def test_index_terms(text: str, terms: list[str]) -> None:
    assert index_terms(text) == terms


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("When do we deploy?", ["deploi"]),
        ("deploy deploys deploying", ["deploi"]),
        ("the who", ["the", "who"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ("什么时候部署?", ["部署", "部", "署"]),
        ("猫", ["猫"]),
        ("的", ["的"]),
        ("我的猫", ["猫"]),
        ("Python 怎么部署", ["python", "部署", "部", "署"]),
        ("S", ["s"]),
        ("?!", []),
    ],
)
def test_query_terms(question: str, terms: list[str]) -> None:
    assert query_terms(question) == terms


def test_over_long_words_are_cut_alike_in_text_and_question() -> None:
    word = "q" * 5000
    assert index_terms(word) == query_terms(word) == ["q" * MAX_TERM_CHARS]
    assert len(index_terms("漢" * 5000)) == 9999


@given(st.text())
def test_terms_are_letters_and_digits_in_folded_form(text: str) -> None:
    for term in index_terms(text):
        assert term
        assert has_unspaced(term) or not re.search(r"[\W_]", term)
        assert not term.isascii() or term == term.lower()


@given(st.text())
def test_a_question_asks_only_for_terms_that_its_own_text_has(text: str) -> None:
    asked = query_terms(text)
    assert len(asked) == len(set(asked))
    assert set(asked) <= set(index_terms(text))
    assert bool(asked) == bool(index_terms(text))


@given(st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x24F)))
def test_composed_and_decomposed_letters_are_the_same_word(text: str) -> None:
    assert index_terms(unicodedata.normalize("NFD", text)) == index_terms(unicodedata.normalize("NFC", text))


@given(st.text(alphabet=st.characters(max_codepoint=0x7F)))
def test_ascii_is_only_lowered(text: str) -> None:
    assert fold(text) == text.lower()


def test_stop_words_are_folded_words() -> None:
    assert all(word == fold(word) and word.isalpha() for word in STOP_WORDS)


@pytest.mark.parametrize(
    ("text", "unspaced"), [("部署", True), ("カタカナ", True), ("ภาษาไทย", True), ("한국", True), ("abc é я", False)]
)
def test_has_unspaced(text: str, unspaced: bool) -> None:
    assert has_unspaced(text) is unspaced

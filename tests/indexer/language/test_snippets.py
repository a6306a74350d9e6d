from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.language.sentences import SNIPPET_CHARS, snippet


def test_a_short_text_is_shown_whole() -> None:
    text = "x" * SNIPPET_CHARS
    assert snippet(text, ["y"]) == text


def test_the_sentences_with_the_terms_are_shown() -> None:
    text = " ".join(f"Sentence number {number}." for number in range(100)) + " The quokka sleeps. " + "Done now. " * 60
    cut = snippet(text.strip(), ["quokka"], max_chars=100)
    assert "The quokka sleeps." in cut
    assert cut.startswith("… ") and cut.endswith(" …")
    assert len(cut) <= 104


@pytest.mark.parametrize(
    ("term", "starts", "ends"),
    [("first", True, False), ("last", False, True)],
)
def test_marks_stand_only_where_something_was_cut(term: str, starts: bool, ends: bool) -> None:
    text = "First things come here. " + "Filler goes here. " * 50 + "\n\nLast things."
    cut = snippet(text, [term], max_chars=80)
    assert cut.startswith("First") is starts
    assert cut.endswith("things.") is ends
    assert cut.startswith("… ") is not starts
    assert cut.endswith(" …") is not ends


def test_chinese_sentences_end_without_a_space() -> None:
    text = "今天天气很好。" * 200 + " 部署在星期二。"
    cut = snippet(text, ["部署"], max_chars=60)
    assert cut.endswith("部署在星期二。")


@given(st.text(alphabet="ab.?! \n。中", min_size=1, max_size=400), st.integers(10, 120))
def test_any_text_gives_a_stretch_of_itself(text: str, max_chars: int) -> None:
    cut = snippet(text, ["a", "中"], max_chars=max_chars)
    inner = cut.removeprefix("… ").removesuffix(" …")
    assert inner in text
    assert len(cut) <= max(max_chars + 4, 14)

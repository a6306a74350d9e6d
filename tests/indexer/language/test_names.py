from __future__ import annotations

import pytest

from indexer.language.names import named_speakers
from indexer.language.terms import index_terms

TALK = {1: "Fahim Khan", 2: "Muhhamed Ali", 3: "Anna", 4: "王小明", 5: "李娜"}


def of(
    speakers: dict[int, str], question: str, *, text: str = "", greeted: dict[str, set[int]] | None = None
) -> set[int]:
    known = set(index_terms(text))
    return set(
        named_speakers(
            speakers,
            question,
            occurs=lambda word: not known.isdisjoint(index_terms(word)),
            greeted_fields={name: frozenset(labels) for name, labels in (greeted or {}).items()},
        ).labels
    )


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What does Fahim like?", {1}),
        ("what does fahim like?", {1}),
        ("Fahim Khan's job", {1}),
        ("Where did Fahim and Muhhamed meet?", {1, 2}),
        ("Is Muhammed's sister here?", {2}),
        ("Did Fahmi and Ana go?", {1, 3}),
        ("Annabel?", set()),
        ("What is a banana?", set()),
        ("小明喜欢什么", {4}),
        ("老王去哪儿了？", {4}),
        ("小王和李娜什么时候见面", {4, 5}),
        ("王先生的电话", {4}),
        ("国王住在哪里", set()),
        ("nobody", set()),
    ],
)
def test_parts_of_names_and_misspellings_name_their_speaker(question: str, named: set[int]) -> None:
    assert of(TALK, question) == named


@pytest.mark.parametrize(
    ("speakers", "question", "named"),
    [
        ({1: "Will", 2: "Anna"}, "When will Anna come?", {2}),
        ({1: "Will", 2: "Anna"}, "Will Anna come?", {2}),
        ({1: "Will", 2: "Anna"}, "What did Will say?", {1}),
        ({1: "Will", 2: "Anna"}, "Will's car", {1}),
        ({1: "May", 2: "Anna"}, "May I see what happened?", set()),
        ({1: "Mark Green", 2: "Anna"}, "which green marks did she get", set()),
        ({1: "Mark Green", 2: "Anna"}, "Did Mark call?", {1}),
        ({1: "王", 2: "李"}, "国王是谁", set()),
        ({1: "王", 2: "李"}, "老王是谁", {1}),
        ({1: "李海洋", 2: "王芳"}, "海洋公园在哪里", set()),
    ],
)
def test_a_name_that_is_a_word_counts_only_as_a_name(speakers: dict[int, str], question: str, named: set[int]) -> None:
    assert of(speakers, question) == named


def test_one_first_name_of_two_speakers_is_both_and_the_whole_name_one() -> None:
    speakers = {1: "Anna Lund", 2: "Anna Weiss", 3: "Bob", 4: "王小明", 5: "王芳"}
    assert of(speakers, "What did Anna buy?") == {1, 2}
    assert of(speakers, "What did Anna Weiss buy?") == {2}
    assert of(speakers, "老王买了什么") == {4, 5}
    assert of(speakers, "王芳买了什么") == {5}


def test_a_word_of_its_own_is_no_misspelling() -> None:
    speakers = {1: "Mark", 2: "Anna", 3: "Marcus"}
    assert of(speakers, "What did Marcos say?") == {3}
    assert of(speakers, "What did Marcos say?", text="- Anna: Marcos came, too") == set()


def test_a_name_that_somebody_is_greeted_by() -> None:
    assert of({1: "Emi", 2: "Elise"}, "Where does Kate work?", greeted={"kate": {1}}) == {1}
    assert of({1: "Emi", 2: "Elise"}, "凯特在哪里上班") == set()


def test_the_words_that_name_are_told() -> None:
    named = named_speakers(TALK, "Where did Fahim go with Anna?")
    assert named.words == {"fahim", "anna"}


def test_a_name_by_greeting_is_written_as_a_name_or_all_is_small() -> None:
    greeted = {"joy": {1}, "bear": {1}, "小鱼": {1}}
    speakers = {1: "Emi", 2: "Elise"}
    for question, named in (
        ("Where does Bear work?", {1}),
        ("where does bear work?", {1}),
        ("Which bear did Elise see?", {2}),
        ("Where does Joy work?", {1}),
        ("what joy is that", set()),
        ("小鱼在哪里上班", {1}),
        ("Where does Baer work?", {1}),
    ):
        assert of(speakers, question, greeted=greeted) == named, question

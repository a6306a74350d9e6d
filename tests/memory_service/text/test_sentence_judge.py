"""Judgements of sentences, by the model and the weights of the package; how good they are is an evaluation."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from indexer import multilingual_embedder
from indexer.types import Vectors
from memory_service.text.sentence_judge import LABELS, DamagedWeights, Judgement, Spoken, classify_sentences
from memory_service.text.sentences import Voice


def judged(*lines: str, embedded: list[str] | None = None) -> list[Judgement]:
    """Judgements of "u text" of a user and "a text" of an assistant, each a message."""
    voices: dict[str, Voice] = {"u": "user", "a": "assistant", "t": "tool"}
    spoken = [Spoken(text=line[2:], voice=voices[line[0]], message=at) for at, line in enumerate(lines)]
    embedder = multilingual_embedder()

    def embed(texts: Sequence[str]) -> Vectors:
        if embedded is None:
            return embedder.embed_documents(texts)
        embedded.extend(texts)
        # What differs by a number alone has one vector.
        kinds = [re.sub(r"\d+", "7", text) for text in texts]
        different = list(dict.fromkeys(kinds))
        return embedder.embed_documents(different)[[different.index(kind) for kind in kinds]]

    return classify_sentences(spoken, embed, embedder=embedder.fingerprint)


@pytest.mark.parametrize(
    ("lasting", "passing"),
    [
        ("u I'm allergic to penicillin.", "u Thanks, that looks good."),
        ("u From now on write commit messages in English.", "u Show me the log of the last run."),
        ("u 我对青霉素过敏。", "u 帮我看看这个报错。"),
        ("u Meine Schwester heißt Ada und wohnt in Graz.", "u Mach das bitte kürzer."),
        ("u Mon médecin s'appelle Dr Blanc, son cabinet est rue des Lilas.", "u Tu peux me traduire cette phrase ?"),
        ("u Нашего бухгалтера зовут Олег, он работает по вторникам.", "u Спасибо, всё понятно."),
    ],
)
def test_what_lasts_is_told_from_what_is_of_the_moment(lasting: str, passing: str) -> None:
    first, second = judged(lasting)[0], judged(passing)[0]
    assert first.durable > 0.5 > second.durable


def test_kinds_are_probabilities_of_which_one_holds() -> None:
    for found in judged("u We decided to stay with Postgres.", "a Shall I write that down?"):
        assert tuple(found.kinds) == LABELS and np.isclose(sum(found.kinds.values()), 1)
        assert found.kind in LABELS and found.lasting_kind in LABELS


def test_greetings_empty_phrases_and_tools_cost_no_vector() -> None:
    embedded: list[str] = []
    found = judged("u Thank you!", 't {"ok": true}', "u …", "u I live in Graz.", embedded=embedded)
    assert embedded == ["user: I live in Graz."]
    assert [each.durable for each in found[:3]] == [0, 0, 0] and [each.kind for each in found[:2]] == [
        "chatter",
        "tool",
    ]


def test_the_same_talk_is_judged_the_same_again() -> None:
    talk = ("u Our office is closed on Fridays.", "a Good to know.", "u Who is on call?")
    assert [each.durable for each in judged(*talk)] == pytest.approx([each.durable for each in judged(*talk)])


@pytest.mark.parametrize(
    "text", ["🙂", "x" * 20_000, "\ue000\ue001", "שלום 123 abc", "ок", '{"a": [1, 2]}', "\ud800 half"]
)
def test_any_text_gets_a_judgement(text: str) -> None:
    found = judged(f"u {text}")[0]
    assert 0 <= found.durable <= 1


def test_nothing_is_nothing() -> None:
    assert judged() == []


def test_the_weights_of_another_model_are_not_taken() -> None:
    with pytest.raises(DamagedWeights):
        classify_sentences(
            [Spoken(text="a", voice="user", message=1)], multilingual_embedder().embed_documents, embedder="other"
        )


def test_of_a_very_long_talk_the_likeliest_sentences_get_a_vector() -> None:
    embedded: list[str] = []
    chatter = [f"a Running step {number} of the script now." for number in range(1_500)]
    found = judged(*chatter[:450], "u 我对青霉素过敏，也不能吃虾。", *chatter[450:], embedded=embedded)
    assert 300 < len(embedded) < 1_200 and "user: 我对青霉素过敏，也不能吃虾。" in embedded
    assert len(found) == 1_501 and found[450].durable > max(each.durable for each in (*found[:450], *found[451:]))

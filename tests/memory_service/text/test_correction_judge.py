from __future__ import annotations

import pytest

from indexer import multilingual_embedder
from memory_service.text.correction_judge import TalkJudge, Told
from memory_service.text.sentence_judge import Spoken


def corrected(*texts: str) -> dict[int, int]:
    embedder = multilingual_embedder()
    judge = TalkJudge(embed=embedder.embed_documents, embedder=embedder.fingerprint)
    spoken = [Spoken(text=text, voice="user", message=at * 2) for at, text in enumerate(texts)]
    judged = judge.judgements(spoken)
    told = [
        Told(spoken=each, judgement=found, place=at)
        for at, (each, found) in enumerate(zip(spoken, judged, strict=True))
    ]
    return {old: each.new for old, each in judge.find_corrections(told).items()}


@pytest.mark.parametrize(
    "texts",
    [
        ("The report goes out on Sunday at 20:00.", "No wait, the report goes out on Monday at 06:00."),
        ("A mug costs 26 euros.", "OK, decided: a mug costs 29 euros from December on."),
        ("La hora cuesta 22 euros.", "A partir de enero la hora cuesta 25 euros."),
    ],
)
def test_a_value_given_anew_is_found(texts: tuple[str, str]) -> None:
    assert corrected(*texts) == {0: 1}


@pytest.mark.parametrize(
    "texts",
    [
        ("My sister is called Ada.", "We drive to Graz on 3 March."),
        ("The office is on the third floor.", "Please write commit messages in English."),
        ("我对花生过敏。", "部署在周二上午十点。"),
    ],
)
def test_different_things_correct_nothing(texts: tuple[str, str]) -> None:
    assert corrected(*texts) == {}


def test_one_sentence_or_none_corrects_nothing() -> None:
    assert corrected() == {} and corrected("A mug costs 26 euros.") == {}

"""Kinds of sentences by the judge, with patterns as cues and as what stands in for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from indexer import multilingual_embedder
from indexer.types import Vectors
from memory_service.messages.reading import read_messages
from memory_service.messages.sizes import Numbered, number_message
from memory_service.text.correction_judge import TalkJudge
from memory_service.text.judged_kinds import judge_kinds
from memory_service.text.sentence_kinds import BY_PATTERNS, SentenceKinds
from memory_service.text.sentences import sentences_of
from memory_service.text.statements import Kind

_EMBEDDER = multilingual_embedder()
JUDGE = TalkJudge(embed=_EMBEDDER.embed_documents, embedder=_EMBEDDER.fingerprint)


def talk(*said: tuple[str, str]) -> list[Numbered]:
    raw = [{"role": role, "content": text, "tool_call_id": "call"} for role, text in said]
    return [number_message(message, seq) for seq, message in enumerate(read_messages(raw), 1)]


def kinds_of(messages: Sequence[Numbered], kinds: SentenceKinds) -> list[Kind]:
    return [kinds.kind_of(sentence)[0] for each in messages for sentence in sentences_of(each)]


@pytest.mark.parametrize(
    "text",
    [
        "Keep the old invoices for seven years.",
        "Die Rechnungen gehen immer an die Buchhaltung, nie an mich.",
        "los pedidos se mandan los martes, siempre con factura en papel",
        "Never deploy on Fridays.",
    ],
)
def test_a_rule_is_one_in_every_language(text: str) -> None:
    messages = talk(("user", text), ("assistant", "Noted."))
    kinds = judge_kinds(messages, JUDGE)
    assert kinds_of(messages[:1], kinds) == [Kind.RULE] and kinds.statements_of(messages[0]) == ([text], [])


def test_what_is_over_soon_binds_all_the_same() -> None:
    messages = talk(("user", "For now just run the tests on my machine, don't commit that."))
    rules, _ = judge_kinds(messages, JUDGE).statements_of(messages[0]) or ([], [])
    assert len(rules) == 1


def test_what_only_sounds_like_a_rule_is_none_for_the_judge() -> None:
    messages = talk(("user", "Never mind, good morning to you!"), ("assistant", "Always happy to help."))
    kinds = judge_kinds(messages, JUDGE)
    assert kinds.statements_of(messages[0]) == ([], []) and Kind.RULE not in kinds_of(messages, kinds)


def test_an_assistant_lays_down_no_rule() -> None:
    messages = talk(("user", "Hi."), ("assistant", "Invoices are always kept for seven years from now on."))
    assert Kind.RULE not in kinds_of(messages[1:], judge_kinds(messages, JUDGE))


def test_what_lasts_is_worth_more_than_what_does_not() -> None:
    messages = talk(("user", "My sister Ada is allergic to penicillin. I'm on the bus right now."))
    kinds = judge_kinds(messages, JUDGE)
    lasting, momentary = (kinds.weight_of(each) for each in sentences_of(messages[0]))
    assert lasting > 1 > momentary
    assert BY_PATTERNS.weight_of(sentences_of(messages[0])[0]) == 1


def test_talks_of_named_people_are_read_by_patterns() -> None:
    said = [("user", f"Lena: I moved to Graz in week {at}.") for at in range(3)]
    assert judge_kinds(talk(*said), JUDGE) is BY_PATTERNS


def test_of_a_long_stretch_a_bounded_part_is_judged() -> None:
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> Vectors:
        asked.extend(texts)
        # They differ by their numbers: one vector for all of them.
        return _EMBEDDER.embed_documents(texts[:1]).repeat(len(texts), axis=0)

    said = [("user", f"The cupboard with the number {at} holds {at * 3} boxes of screws.") for at in range(2_000)]
    kinds = judge_kinds(talk(*said), TalkJudge(embed=embed, embedder=_EMBEDDER.fingerprint))
    assert len(kinds.kinds) == 1_500 and max(kinds.kinds) == (2_000, 0), "the newest"
    assert sum(map(len, asked)) <= 15_000
    assert kinds.statements_of(number_message(read_messages([{"role": "user", "content": "Never."}])[0], 1)) is None


def test_nothing_said_is_nothing_judged() -> None:
    assert judge_kinds([], JUDGE) is BY_PATTERNS

"""Which sentences bind, decide or promise, as agents' sessions have them; English and Chinese."""

from __future__ import annotations

import pytest

from memory_service.text.statements import decisions_of, is_order, is_promise, is_standing, promises_of, rules_of
from tests.growth import assert_grows_at_most

# r: a rule, d: a decision, p: a promise or a deadline; each of the whole text or of nothing.
SENTENCES = {
    "Never ship plants when it is below 5 °C.": "r",
    "Book nothing before I confirm, ok?": "r",
    "No press before Christmas, friendly no.": "rp",
    "Merge, but deploy only after I said go.": "r",
    "Must it be blue?": "",
    "She asks whether you must wrap them.": "",
    "There is no problem with that.": "",
    "他们问包装：要不要每个盆单独气泡袋。": "",
    "盆底一定要有排水孔。": "r",
    "以后给我的快递都必须打电话确认。": "r",
    "一定要预热吗？": "",
    "Decision: a guide in place of a sale.": "d",
    "Shipping stays at €5.35.": "d",
    "It takes 38 s instead of 35 s.": "",
    "如果有毒，能不能换成对猫安全的，差价我补。": "",
    "建议换成袖珍椰子。": "",
    "我们决定用 Go。": "d",
    "I'll mail her on Thursday.": "p",
    "They want a yes by Friday 12:00.": "p",
    "I do the German on Sunday.": "p",
    "The offer is valid until 4 December.": "p",
    "It was sold by Lee.": "",
    "Shall I tell you by tomorrow?": "",
    "优惠到 11 月 30 日截止。": "p",
    "周日上午我会提醒您。": "p",
    "他在前面等。": "",
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_sorts_of_sentences(sentence: str) -> None:
    sorts = {"r": rules_of, "d": decisions_of, "p": promises_of}
    found = {sort: find(sentence) for sort, find in sorts.items()}
    assert found == {sort: [sentence] if sort in SENTENCES[sentence] else [] for sort in sorts}
    assert is_promise(sentence) == ("p" in SENTENCES[sentence])


def test_what_others_say_binds_nobody() -> None:
    for text in (
        "Look:\n“Never call me. We decided it. I'll pay by Friday.”",
        "阿哲说：\n不要动它。我们决定换成新的。",
    ):
        assert rules_of(text) == decisions_of(text) == promises_of(text) == []


def test_orders_and_standing_rules() -> None:
    assert all(map(is_order, ("Wrap them.", "Good, send.", "把它删掉", "告诉阿哲")))
    assert not any(map(is_order, ("Note: it is red.", "Sending it.", "我在看", "Order is fine")))
    assert is_standing("Never do it.") and is_standing("以后都要打电话")
    assert not is_standing("Don't do it now.") and not is_standing("That is what the rule is for.")


def test_a_rule_in_an_endless_line_is_cut_out() -> None:
    (rule,) = rules_of(f"{'word ' * 200}, never push to main {'word ' * 200}")
    assert "never push to main" in rule and len(rule) <= 240


@pytest.mark.parametrize(
    "piece", ["i will ", "by ", "no a ", "please a ", "不要", "周一", "never ", "我会", "“a ", "remind "]
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    def found(chars: int) -> None:
        for find in (rules_of, decisions_of, promises_of):
            find(piece * (chars // len(piece)))

    assert_grows_at_most(10, found, 25_000, 100_000)

"""What a summary by rules and a ledger make of an agent's work; they have to read well."""

from __future__ import annotations

import pytest

from memory_service.compaction.extractive import extract
from memory_service.compaction.ledger import ledger_of, merge_ledger
from memory_service.compaction.ledger_text import fit_ledger, render_ledger
from memory_service.compaction.summary import SummaryRequest
from memory_service.messages.shapes import Message, Role
from memory_service.messages.sizes import Numbered, number_message

SAID: tuple[tuple[Role, str], ...] = (
    ("user", "[2026-11-17 Tue 07:41] Good morning. Which parcels go somewhere cold?"),
    ("assistant", "Three of the seven parcels go into frost."),
    ("user", "A new rule: never ship plants below 5 °C. 8 trays."),
    ("assistant", 'Noted. The page shows "wieder da am 4. Dezember" now. They want a yes by Friday 12:00.'),
    ("user", "看一下这封信：\n“能不能换成别的？一定要预热吗？不要再打电话给我。”"),
    ("assistant", "已经回复客户。"),
    ("user", "Book the two flights we hold."),
    ("assistant", 'Draft:\n"It cannot be paid out in cash. We never do that."\nShall I?'),
    ("user", "The mail is fine. From now on, open a claim at once when a parcel is late."),
)


def _messages() -> tuple[Numbered, ...]:
    tool: Message = {"role": "tool", "tool_call_id": "c", "content": "exit code 0"}
    spoken: list[Message] = [{"role": role, "content": text} for role, text in SAID]
    return tuple(number_message(message, seq, "2026-11-20T09:00:00Z") for seq, message in enumerate([*spoken, tool], 1))


@pytest.fixture(name="summary")
def _summary() -> str:
    return extract(SummaryRequest(messages=_messages(), target_tokens=600)).text


def test_a_summary_has_what_counts_now(summary: str) -> None:
    assert "User, latest: From now on, open a claim at once when a parcel is late." in summary
    assert "never ship plants below 5 °C" in summary
    assert "They want a yes by Friday 12:00." in summary.partition("## In progress")[2]
    assert '"wieder da am 4. Dezember" now.' in summary


def test_a_summary_has_nothing_that_says_nothing(summary: str) -> None:
    for nothing in ("Good morning", "07:41", "8 trays", "exit code", "cannot be paid", "Draft:"):
        assert nothing not in summary
    constraints = summary.partition("## User constraints")[2].partition("##")[0]
    assert "不要再打电话" not in constraints


def test_a_ledger_has_rules_and_promises_but_no_words_of_others() -> None:
    text = render_ledger(merge_ledger((), ledger_of(_messages())))
    assert "## Promises and deadlines\n- assistant: They want a yes by Friday 12:00. (log:4)" in text
    assert "never ship plants below 5 °C" in text and "From now on" in text
    assert "换成" not in text and "不要再打电话" not in text and "We never do" not in text


def test_what_always_holds_fits_before_what_was_said_of_one_thing() -> None:
    said = ("Never push to main.", "绝不能删除日志。", *(f"Do not touch part {at} today." for at in range(12)))
    messages = [number_message({"role": "user", "content": text}, seq) for seq, text in enumerate(said, 1)]
    text = render_ledger(fit_ledger(merge_ledger((), ledger_of(messages)), 60))
    assert "Never push to main." in text and "绝不能删除日志。" in text
    assert 0 < text.count("Do not touch") < 12

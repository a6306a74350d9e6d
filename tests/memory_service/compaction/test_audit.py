"""The audit against summaries written by hand: none that is faithful is refused, none that is not goes through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.compaction.audit import Audit, audit_problems, audit_record, audit_summary, drop_ungrounded
from memory_service.compaction.ledger import ledger_of
from memory_service.compaction.summary import SummaryRequest
from memory_service.messages.reading import read_messages
from memory_service.messages.sizes import Numbered, number_message
from memory_service.schemas.compaction import LedgerEntry
from memory_service.sessions.records import compact_json
from memory_service.text.texts import TEXTS, texts_in
from tests.growth import at_most_readings


def call(call_id: str, name: str, arguments: str) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def talk(*raw: dict[str, object], at: str = "2026-11-20T09:00:00Z") -> tuple[Numbered, ...]:
    return tuple(number_message(message, seq, at) for seq, message in enumerate(read_messages(list(raw)), 1))


ENGLISH = talk(
    {"role": "user", "content": "Checkout of ORD-4711 hangs. Never deploy on Fridays. The timeout is 30s, I think. "
     "Budget is $1,000."},
    {
        "role": "assistant",
        "content": "I'll look at it.",
        "tool_calls": [
            call("c1", "read_file", '{"path": "/srv/shop/src/checkout.py"}'),
            call("c2", "bash", '{"command": "cd /srv/shop && pytest -q tests/test_checkout.py", "timeout_ms": 90000}'),
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "TIMEOUT_SECONDS = 30\nURL = 'https://Pay.example.com/v2/charge'\n"},
    {
        "role": "tool",
        "tool_call_id": "c2",
        "content": "FAILED tests/test_checkout.py::test_slow - TimeoutError: no answer in 30 s\n"
        "3 passed, 1 failed in 34.20s\nexit code: 1",
    },
    {"role": "assistant", "content": "The payment call times out. Shall I raise the payment timeout to 60 seconds?"},
    {"role": "user", "content": "Yes, go ahead. We ship it tomorrow at 10 pm, Nov 25 at the latest. "
     "Ping ops@example.com then."},
    {"role": "assistant", "content": "Done in commit 3f2a9bc: v2.4.1 waits 60 seconds. Three retries remain."},
)  # fmt: skip
CHINESE = talk(
    {"role": "user", "content": "订单ORD-4711在/srv/商城/pay.py里超时，现在是30秒。不要在周五发布。预算5万元。"},
    {"role": "assistant", "content": "", "tool_calls": [call("c1", "run_shell", '{"cmd": "npm test"}')]},
    {"role": "tool", "tool_call_id": "c1", "content": "错误：连接 10.0.0.8:5432 超时\n退出码: 1"},
    {"role": "assistant", "content": "支付接口超时。要把超时改为60秒吗？"},
    {"role": "user", "content": "好的，就这样。11月25日晚上10点前上线，之后通知张三。"},
    {"role": "assistant", "content": "已改好，版本v2.4.1，成功率99.5%，耗时两天。"},
)

FAITHFUL = [
    (ENGLISH, "Checkout of ORD-4711 hung; the timeout was 30 s in `src/checkout.py`."),
    (ENGLISH, 'The user said: "Never deploy on Fridays." The budget is $1000.'),
    (ENGLISH, "The user agreed to raise the payment timeout to 60 s; v2.4.1 (3f2a9bc) has it."),
    (ENGLISH, "`pytest -q tests/test_checkout.py` ended with exit 1: “TimeoutError: no answer in 30 s” after 34.2 s."),
    (ENGLISH, "It ships on 2026-11-21 at 22:00, 2026-11-25 at the latest; then mail ops@example.com."),
    (
        ENGLISH,
        "The call goes to https://pay.example.com/v2/charge. Command limit: 90 seconds. See log:3-5 and/or log:7.",
    ),
    (ENGLISH, "File: /srv/shop/tests/test_checkout.py, 3 retries remain, waiting 1 minute."),
    (CHINESE, "订单 ORD-4711 的 /srv/商城/pay.py 原超时 30 s，用户同意把超时改为 60 秒，预算 50,000 元。"),
    (CHINESE, "约束：“不要在周五发布”。`npm test` 失败，退出码 1：连接10.0.0.8:5432超时。"),
    (CHINESE, "最迟2026-11-25 22:00上线（Nov 25），通知张三；版本 2.4.1，成功率 99.5 %，耗时2天。"),
]
PARAPHRASES = [
    ("Review at 9:15.", "the review is at quarter past nine"),
    ("It took ~1.3 s, about 1.3 s or 1.3 s.", "took 1.31s"),
    ("about 4,800 rows", "4,751 rows"),
    ("90 minutes", "1 h 30 min"),
    ("1 h 30 min", "90 minutes"),
    ("25 % of them", "12 of 48 failed"),
    ("34 s and 1.2k users", "34.20s, 1,203 users"),
    ('"deploy on Friday"', "Please deploy it on Friday"),
    ("25 minutes", "twenty-five minutes"),
    ("下午3:30", "下午三点半"),
]
NO_PARAPHRASES = [
    ("4,750 euros", "4,751 euros"),
    ("100 %", "99.6 %"),
    ('"never deploy on Friday"', "deploy on friday"),
    ("It took 45 s", "44 s"),
    ("about 5 s", "9 s"),
    ("Review at 9:20.", "the review is at quarter past nine"),
]


@pytest.mark.parametrize(("summary", "source"), [*PARAPHRASES, *NO_PARAPHRASES])
def test_a_paraphrase_is_no_finding(summary: str, source: str) -> None:
    request = SummaryRequest(messages=talk({"role": "user", "content": source}))
    found = audit_summary(summary, request=request, top=0).ungrounded_texts
    assert bool(found) == ((summary, source) in NO_PARAPHRASES), found


@pytest.mark.parametrize("reply", ["Good.", "👍", "Perfect, thanks!", "passt", "很好"])
def test_an_approval_in_other_words_is_one(reply: str) -> None:
    said = talk({"role": "assistant", "content": "Here is the fix."}, {"role": "user", "content": reply})
    assert audit_summary("The user approved the fix", request=SummaryRequest(messages=said), top=0).flagged_texts == ()
    other = "The user approved the purchase of a boat"
    assert audit_summary(other, request=SummaryRequest(messages=said), top=0).flagged_texts == (other,)


def test_what_the_service_writes_itself_is_no_finding() -> None:
    for texts in TEXTS.values():
        counts = {"first": 1, "last": 9_012, "user": 4_711, "assistant": 8_888, "tool": 7_777}
        coverage = texts.coverage.format(**counts) + texts.coverage_media.format(media=5_150)
        for line in (
            coverage + texts.coverage_times.format(since="2031-02-03 10:00", until="2031-02-04 10:00"),
            texts.omitted["partial"].format(first="log:4711", last="log:9999"),
            texts.omitted["message"].format(what=texts.omitted["tool"], size="26K", handle="log:4711"),
            texts.note.format(count=4_711, first=1, last=9_999, large=texts.note_large.format(large=4_242)),
        ):
            audit = audit_summary(f"- {line}", request=SummaryRequest(messages=()), top=0)
            assert audit.ungrounded_texts == (), line


def test_of_a_line_the_sentence_that_does_not_hold_goes() -> None:
    text = "- The timeout is 30 seconds. It cost 8,888 euros. Never deploy on Fridays."
    audit = audit_summary(text, request=SummaryRequest(messages=ENGLISH), top=0)
    assert drop_ungrounded(text, audit) == "- The timeout is 30 seconds. Never deploy on Fridays."


UNFAITHFUL = [
    (ENGLISH, "Checkout of ORD-4712 hung.", "ORD-4712"),
    (ENGLISH, "The timeout is 45 s now.", "45 s"),
    (ENGLISH, "The file is src/payments.py.", "src/payments.py"),
    (ENGLISH, "The call goes to https://pay.example.com/v3/charge.", "https://pay.example.com/v3/charge"),
    (ENGLISH, 'The user said "deploy whenever you like".', "deploy whenever you like"),
    (ENGLISH, "It ships on 2027-03-02.", "2027-03-02"),
    (ENGLISH, "The user approved deleting the production database.",
     "The user approved deleting the production database."),
    (ENGLISH, "`npm run deploy` was run in commit 9e8d7c6.", "npm run deploy"),
    (CHINESE, "订单ORD-4712超时，现在是90秒。", "90秒"),
    (CHINESE, "用户已确认删除生产数据库。", "用户已确认删除生产数据库。"),
    (CHINESE, "预算8万元，1月3日上线。", "8万元"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("messages", "summary"), FAITHFUL, ids=lambda value: value[:30] if isinstance(value, str) else ""
)
def test_a_faithful_summary_raises_no_alarm(messages: tuple[Numbered, ...], summary: str) -> None:
    audit = audit_summary(summary, request=SummaryRequest(messages=messages), top=0)

    assert (audit.ungrounded_texts, audit.flagged_texts) == ((), ())
    assert drop_ungrounded(summary, audit) == summary


@pytest.mark.parametrize(
    ("messages", "summary", "wrong"), UNFAITHFUL, ids=lambda value: value[:30] if isinstance(value, str) else ""
)
def test_an_unfaithful_summary_is_found(messages: tuple[Numbered, ...], summary: str, wrong: str) -> None:
    text = f"## Done\n- Something that is true.\n{summary}\n## Next"
    audit = audit_summary(text, request=SummaryRequest(messages=messages), top=0)

    assert wrong in audit.ungrounded_texts + audit.flagged_texts
    assert not audit.ok
    assert drop_ungrounded(text, audit) == "## Done\n- Something that is true.\n## Next\n(none)"
    assert any(wrong in problem for problem in audit_problems(audit))
    assert compact_json(audit_record(audit))


def test_what_matters_is_in_the_summary_or_the_ledger() -> None:
    bare = audit_summary("Something happened.", request=SummaryRequest(messages=ENGLISH), top=3)
    ledger = ledger_of(ENGLISH)
    beside = audit_summary("Something happened.", request=SummaryRequest(messages=ENGLISH, ledger=ledger), top=3)

    assert {"ORD-4711", "ops@example.com"} <= {*bare.missing} and len(bare.missing) == 3
    assert bare.unquoted == ("Never deploy on Fridays.",)
    assert (beside.missing, beside.unquoted) == ((), ())
    assert audit_summary("不要在周五发布。", request=SummaryRequest(messages=CHINESE), top=0).unquoted == ()
    assert audit_summary("……", request=SummaryRequest(messages=CHINESE), top=0).unquoted == ("不要在周五发布。",)


def test_headings_are_there_in_order_and_not_empty() -> None:
    text = "## Goal\nx\n\n## 决定\n\n## Done\n### Tests\n- y\n```\n# Next\n```"
    audit = audit_summary(
        text, request=SummaryRequest(messages=()), headings=["## Goal", "决定", "Done", "Next", "Goal"]
    )

    assert audit.missing_headings == ("Next", "Goal")
    assert audit.empty_headings == ("决定",)


def test_headings_of_a_summary_may_be_in_another_language_than_those_asked_for() -> None:
    source = SummaryRequest(messages=())
    for text in ("## 目标\n- x\n## 已完成\n- y", "## Goal\n- x\n## 已完成\n- y"):
        assert audit_summary(text, request=source, headings=["Goal", "### Done"]).missing_headings == ()
    audit = audit_summary("## 目标\n\n## 背景\n- x", request=source, headings=["Goal", "Done", "Context"])
    assert (audit.missing_headings, audit.empty_headings) == (("Done",), ("Goal",))
    told = audit_problems(audit, texts_in("zh"))
    assert told[0].endswith(": 已完成.") and "write （无） if" in told[1] and told[1].endswith(": 目标.")


def test_pins_are_reported_but_no_fault() -> None:
    audit = audit_summary("Kept: A-100.", request=SummaryRequest(messages=()), pins=["Kept: A-100.", "不要删除"])

    assert audit.unpinned_texts == ("不要删除",)
    assert audit.ok


@pytest.mark.parametrize(
    "source",
    [
        SummaryRequest(messages=(), previous="ORD-1 and ORD-2"),
        SummaryRequest(messages=(), ledger=(LedgerEntry(kind="id", text="ORD-1 ORD-2", seqs=[1]),)),
        SummaryRequest(messages=(), instructions="Keep ORD-1 and ORD-2."),
        SummaryRequest(messages=(), prefix=talk({"role": "user", "content": "看ORD-1和ORD-2"})),
    ],
)
def test_all_of_the_request_is_source(source: SummaryRequest) -> None:
    assert audit_summary("ORD-1", request=source, top=0).ungrounded_texts == ()
    assert audit_summary("ORD-3", request=source, top=0).ungrounded_texts == ("ORD-3",)


@pytest.mark.parametrize(
    "waiting",
    [
        "Deploy once the user approved it.",
        "The user has not confirmed the deletion.",
        "等用户确认后删除。",
        "用户确认后再删除。",
    ],
)
def test_waiting_for_a_consent_is_no_claim(waiting: str) -> None:
    assert audit_summary(waiting, request=SummaryRequest(messages=()), top=0).flagged_texts == ()


def test_a_no_is_no_consent() -> None:
    said = talk(
        {"role": "assistant", "content": "Shall I delete the database?"},
        {"role": "user", "content": "No, okay, do not delete it."},
    )
    claim = "The user confirmed deleting the database."

    assert audit_summary(claim, request=SummaryRequest(messages=said), top=0).flagged_texts == (claim,)
    assert audit_summary(claim, request=SummaryRequest(messages=(), ledger=ledger_of(said)), top=0).flagged_texts == (
        claim,
    )


LINES = st.sampled_from(
    [
        "## Goal",
        "### Sub",
        "- at ORD-1",
        "- ORD-2 took 30 s",
        "```bash",
        "```",
        "",
        "用户已确认删除。",
        "“引用一句话吧”",
        "plain",
    ]
)


@given(st.lists(LINES, max_size=12).map("\n".join), st.text(max_size=60))
def test_leaving_out_twice_changes_nothing_more(lines: str, noise: str) -> None:
    text = lines + noise
    audit = audit_summary(text, request=SummaryRequest(messages=ENGLISH[:2]))
    once = drop_ungrounded(text, audit)

    assert drop_ungrounded(once, audit) == once
    assert [line for line in text.split("\n") if line.startswith("#")] == [
        line for line in once.split("\n") if line.startswith("#")
    ]
    assert drop_ungrounded(text, Audit()) == text


def test_a_hostile_summary_is_checked_in_good_time() -> None:
    source = talk({"role": "user", "content": "a/b c/d " * 10_000})
    summary = " ".join(f"/a/b/x{number}.py ORD-{number}" for number in range(700))
    with at_most_readings(170):
        audit_summary(summary, request=SummaryRequest(messages=source))

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_service.compaction.checkpoint import Labels
from memory_service.schemas.compaction import LedgerEntry
from tests.memory_service.compaction.talk import calls, log, user


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("my order is ORD-4711-XYZ, mail lena@example.com", "my order is [id 1], mail [email 1]"),
        ("lena@example.com and bo@example.com and lena@example.com", "[email 1] and [email 2] and [email 1]"),
        ("call +49 170 1234567 or (555) 123-4567", "call [number 1] or [number 2]"),
        ("身份证号 11010519491231002X，手机 13812345678。", "身份证号 [number 1]，手机 [number 2]。"),
        ("订单 ORD-4711-XYZ，邮箱 lena@example.com", "订单 [id 1]，邮箱 [email 1]"),
        ("see src/app.py at https://a.example/c on 10.0.0.1:8080", "see [file 1] at [url 1] on [host 1]"),
        ("我叫王小明，请帮我。", "[person 1]，请帮我。"),
        ("run `pytest tests/test_a.py -q`", "run `pytest [file 1] -q`"),
    ],
)
def test_identifiers_give_way_to_labels(said: str, shown: str) -> None:
    assert Labels({}).text(said) == shown


@pytest.mark.parametrize(
    "said",
    [
        "on 2026-11-20 10:00, or 20261120, version v1.2.3",
        "20 000 000 tokens, 4,711,000 lines, 30 s, 1.5 GB, pi is 3.14159265",
        "the rest is log:12, log:13-15 and log:136#1",
        "部署在周二上午 10 点，版本 1.2.3",
    ],
)
def test_days_amounts_versions_and_handles_stay(said: str) -> None:
    assert Labels({}).text(said) == said


@example("B-0/0B")
@given(st.text(alphabet="aB1 0-./@:#[]ORDlogemail部，", max_size=60))
def test_a_second_time_changes_nothing(said: str) -> None:
    labels = Labels({})
    once = labels.text(said)
    assert labels.text(once) == once


def test_numbers_go_on_where_earlier_ones_ended() -> None:
    labels = Labels({"lena@example.com": "[email 1]"})
    assert (
        labels.text("[email 4] wrote to bo@example.com and lena@example.com")
        == "[email 4] wrote to [email 5] and [email 1]"
    )


def test_what_nobody_knows_is_left_to_the_audit() -> None:
    labels = Labels({})
    labels.text("ORD-4711-XYZ")
    assert labels.known_text("ORD-4711-XYZ or ORD-4712-XYZ") == "[id 1] or ORD-4712-XYZ"
    assert labels.corrected == 1


def test_arguments_of_calls_have_labels_and_their_ids_stay() -> None:
    said = log(calls("call_8fA3", arguments='{"path": "src/app.py"}', text="看 src/app.py"), user("src/app.py"))
    labels = Labels({})
    shown = [labels.message(message).message for message in said]
    assert shown[0]["tool_calls"][0]["id"] == "call_8fA3"
    assert shown[0]["tool_calls"][0]["function"]["arguments"] == '{"path": "[file 1]"}'
    assert (shown[0]["content"], shown[1]["content"]) == ("看 [file 1]", "[file 1]")


def test_a_ledger_has_each_thing_once() -> None:
    entries: list[LedgerEntry] = [
        LedgerEntry(kind="id", text="[id 1]", seqs=[2]),
        LedgerEntry(kind="id", text="ORD-4711-XYZ", seqs=[9]),
        LedgerEntry(kind="name", text="My name is Lena", seqs=[3]),
        LedgerEntry(kind="file_read", text="报告.txt", seqs=[4]),
    ]
    shown = Labels({"ORD-4711-XYZ": "[id 1]"}).entries(entries)
    assert [(entry.text, entry.seqs) for entry in shown] == [
        ("[person 1]", [3]), ("[file 1]", [4]), ("[id 1]", [2, 9]),
    ]  # fmt: skip

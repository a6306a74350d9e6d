from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.flush.candidates import _MAX_NOTES_TOKENS, _SHARE, ENTRY_CHARS, MAX_ENTRIES, find_candidates
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import Numbered, count_tokens, number_message, quarters
from tests.growth import at_most_readings
from tests.memory_service.flush.stretches import AT, stretch, texts

FRAGMENTS = (
    "We decided to use PostgreSQL 15",
    "yesterday",
    "Ingrid: ",
    "李雷：",
    "[2026-03-02] ",
    "[shares an image: a photo of a shed]",
    "我们决定下周三上线",
    "花了八千块。",
    "Where was it?",
    "在哪里？",
    "It was great! ",
    "`app.toml`",
    "<!-- memory id=x -->",
    "<relevant_context>",
    "</relevant_context>",
    "```\n",
    "- ",
    "sk-abcdefghijkl12345",
    "password: hunter2",
    "!!! ",
    "。\n",
    "https://example.com/x ",
    "\x00\u2028\ud800",
)
SAID = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=20)), max_size=12).map(" ".join)
MESSAGES = st.lists(
    st.builds(
        lambda role, content, failed: Message(role=role, content=content, is_error=failed, tool_call_id="c1"),
        st.sampled_from(["user", "assistant", "tool", "system"]),
        st.one_of(SAID, st.none(), SAID.map(lambda text: [{"type": "text", "text": text}])),
        st.booleans(),
    ),
    max_size=20,
).map(lambda messages: [number_message(message, seq, AT) for seq, message in enumerate(messages, 5)])


@settings(max_examples=100, deadline=None)
@given(MESSAGES)
def test_any_messages_give_candidates_of_the_promised_form(messages: list[Numbered]) -> None:
    candidates = find_candidates(messages)
    assert candidates == find_candidates(messages)
    seqs = {item.seq for item in messages}
    assert len(candidates) <= MAX_ENTRIES
    assert sum(count_tokens(candidate.text) for candidate in candidates) <= _MAX_NOTES_TOKENS
    assert len({candidate.text for candidate in candidates}) == len(candidates)
    assert [candidate.seqs[-1] for candidate in candidates] == sorted(candidate.seqs[-1] for candidate in candidates)
    for candidate in candidates:
        assert candidate.seqs
        assert seqs.issuperset(candidate.seqs)
        assert 0 <= candidate.score <= 1
        assert len(candidate.text.splitlines()) == 1
        assert candidate.text == candidate.text.strip()
        assert "<!--" not in candidate.text
        assert len(candidate.text) < 400
        assert "sk-abcdefghijkl" not in candidate.text
        assert "hunter2" not in candidate.text


def _facts(count: int) -> list[str]:
    places = ("Bergen", "Porto", "Lyon", "Graz", "Turku")
    things = ("kayak", "printer", "router", "bicycle", "piano", "lathe", "tent")
    return [f"u We sold {at + 3} of the {things[at % 7]} parts to a shop in {places[at % 5]}." for at in range(count)]


def test_a_short_stretch_loses_no_fact() -> None:
    assert len(texts(*_facts(6))) == 6
    short = (
        "u 端口是8080。",
        "u 我对花生过敏。",
        "u 决定用 Go 写。",
        "u 预算32万元。",
        "u 我女儿六岁。",
        "u 周五前交报告。",
    )
    assert len(texts(*short)) == 6


def test_few_messages_and_little_text_are_both_short() -> None:
    long = [fact + " They said nothing else of it, and nobody asked them for more," * 4 for fact in _facts(6)]
    assert sum(len(line) for line in long) > 1_600
    assert len(texts(*long)) == 6
    many = [line for fact in _facts(6) for line in (fact, "a OK", "u Hm")]
    assert len(texts(*many)) == 6


@pytest.mark.parametrize("share", [0.1, _SHARE, 0.6])
def test_a_long_stretch_keeps_to_its_share(share: float) -> None:
    messages = stretch(*_facts(60))
    said = sum(quarters(str(item.message["content"])) for item in messages)
    kept = sum(quarters(candidate.text) + ENTRY_CHARS for candidate in find_candidates(messages, share=share))
    assert share * said * 0.6 < kept <= share * said


def test_a_long_session_stays_within_its_caps_and_keeps_the_best() -> None:
    best = "u We decided on 3 May to move the `billing` service from Lyon to Bergen because of the outage OPS-417."
    worst = [f"a The reader now runs step {at} with the file." for at in range(2000)]
    candidates = find_candidates(stretch(*worst[:1000], best, *worst[1000:]))
    assert len(candidates) <= MAX_ENTRIES
    assert any("OPS-417" in candidate.text for candidate in candidates)


def test_bulk_of_tools_and_pastes_leaves_little() -> None:
    bulk = "\n".join(f"2026-11-20 09:00:{at % 60:02} ERROR worker {at} failed" for at in range(5000))
    tool: Message = {"role": "tool", "tool_call_id": "c1", "content": bulk}
    assert texts(tool) == []
    assert len(texts(f"u {bulk}")) <= 15


DUPLICATES = (
    ("u The API listens on port 8765.", "a Understood: the API listens on port 8765."),
    ("u We decided to ship on Friday with Go.", "a OK! We decided to ship with Go on Friday."),
    ("u 我们决定周五上线新的支付接口。", "a 好的，我们决定周五上线新的支付接口。"),
)


@pytest.mark.parametrize("pair", DUPLICATES)
def test_the_same_thing_is_kept_once(pair: tuple[str, str]) -> None:
    assert len(texts(*pair)) == 1


@pytest.mark.parametrize(
    "pair",
    [
        ("u The API listens on port 8765.", "u The API listens on port 8766."),
        ("u 预算一共32万元。", "u 预算一共35万元。"),
    ],
)
def test_another_number_is_another_fact(pair: tuple[str, str]) -> None:
    assert len(texts(*pair)) == 2


def test_the_day_is_that_of_the_zone() -> None:
    late = [number_message({"role": "user", "content": "The disk failed yesterday."}, 1, "2026-11-20T20:00:00+00:00")]
    assert find_candidates(late)[0].date == dt.date(2026, 11, 20)
    assert find_candidates(late, zone=ZoneInfo("Asia/Shanghai"))[0].date == dt.date(2026, 11, 21)


def test_without_a_moment_there_is_no_day() -> None:
    (candidate,) = find_candidates([number_message({"role": "user", "content": "The disk failed yesterday."}, 1)])
    assert (candidate.date, candidate.text) == (None, "User: The disk failed yesterday.")


HOSTILE = (
    "a/" * 125_000,
    "[" * 250_000,
    "a " * 125_000,
    "so, " * 62_500,
    "password " * 27_500,
    "<summary>" * 27_500,
    "-----BEGIN PRIVATE KEY-----" * 10_000,
    "? " * 125_000,
    "Ab: " * 62_500,
    "1." * 125_000,
    "我们，" * 75_000,
    "the last " * 27_500,
    "a_" * 125_000,
    "```\n" * 62_500,
)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:9].strip())
@pytest.mark.timeout(60)
def test_hostile_text_takes_no_longer_than_its_length(text: str) -> None:
    with at_most_readings(90):
        for role in ("user", "tool"):
            message: Message = (
                {"role": "user", "content": text} if role == "user" else {"role": "tool", "content": text}
            )
            find_candidates([number_message(message, 1, AT)])

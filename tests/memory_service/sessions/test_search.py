from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from indexer.language.terms import index_terms, query_terms
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import Numbered, number_message
from memory_service.schemas.messages import FoundMessage
from memory_service.sessions.search import SNIPPET_CHARS, SessionKeywordSearch
from tests.growth import assert_costs_at_most, at_most_readings


def said(*texts: str, first: int = 1) -> tuple[Numbered, ...]:
    return tuple(number_message({"role": "user", "content": text}, seq) for seq, text in enumerate(texts, first))


def found(query: str, *texts: str, limit: int = 10) -> list[int]:
    return [each.seq for each in SessionKeywordSearch.of(said(*texts), upto=len(texts)).search(query, limit=limit)]


TALK = (
    "Deploys go out on Tuesdays after the stand-up.",
    "Anna owns the billing service.",
    "我们决定每周二部署支付服务。",
    "缓存用Redis，端口是6379。",
    "The cache runs on Redis.",
)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("when do we deploy?", 1), ("who owns billing", 2), ("支付服务哪天部署", 3), ("端口是多少", 4), ("6379", 4),
        ("缓存", 4), ("the cache", 5), ("ＢＩＬＬＩＮＧ", 2),
    ],
)  # fmt: skip
def test_what_was_said_is_found(query: str, first: int) -> None:
    assert found(query, *TALK)[0] == first


def test_only_what_has_a_word_of_the_question_is_found() -> None:
    assert found("redis", *TALK) == [5, 4]
    assert found("kubernetes", *TALK) == []
    assert found("数据库迁移", *TALK) == []
    assert found("", *TALK) == found("?!", *TALK) == []


def test_of_equal_ones_the_newest_is_first() -> None:
    assert found("harbor", "harbor one", "nothing here", "harbor two", "harbor six") == [4, 3, 1]


def test_a_long_result_with_all_of_the_question_is_before_a_short_message_with_half() -> None:
    long = "filler words of a page " * 30 + "harbor crane " + "and more words of it " * 30
    assert found("harbor crane", "the harbor", "hello there", "good morning all", long, "a crane")[0] == 4


def test_what_has_more_of_the_question_is_first() -> None:
    assert found("harbor crane", "a harbor", "a crane", "a harbor crane", "some orchard")[0] == 3


@pytest.mark.parametrize("texts", [["tea is nice"], ["tea"] * 3, ["tea"] * 9 + ["coffee"], ["绿茶"] * 4 + ["咖啡"]])
def test_a_word_of_most_messages_counts_for_them(texts: list[str]) -> None:
    query = "绿茶" if "绿茶" in texts else "tea"
    hits = SessionKeywordSearch.of(said(*texts), upto=len(texts)).search(query)
    assert len(hits) == min(10, sum(query in text for text in texts))
    assert all(each.score > 0 for each in hits)


def test_the_package_s_other_class_would_turn_them_negative() -> None:
    texts = ["tea with milk", "tea with milk", "tea with honey"]
    assert max(BM25Okapi([index_terms(text) for text in texts]).get_scores(query_terms("tea with milk"))) < 0
    assert found("tea with milk", *texts)[:2] == [2, 1]


def test_results_and_arguments_of_tools_are_searched() -> None:
    call: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {
                    "name": "run_query",
                    "arguments": '{"sql": "a\\nvioletta", "tags": ["\\u90e8\\u7f72", 4711, null]}',
                },
            },
            {"id": "c2", "type": "function", "function": {"name": "broken", "arguments": '{"cut": "orchar'}},
        ],
    }  # fmt: skip
    result: Message = {"role": "tool", "tool_call_id": "c1", "content": "copper unloaded"}
    parts: Message = {"role": "user", "content": [{"type": "text", "text": "look at the lighthouse"}]}
    live = SessionKeywordSearch.of(
        [number_message(call, 1), number_message(result, 2), number_message(parts, 3)], upto=3
    )
    for query in ("query", "violetta", "部署", "4711", "orchar", "tags"):
        assert [(each.seq, each.role) for each in live.search(query)] == [(1, "assistant")], query
    assert [(each.seq, each.role) for each in live.search("copper")] == [(2, "tool")]
    assert [each.seq for each in live.search("lighthouse")] == [3]


@pytest.mark.parametrize(
    ("filler", "needle", "query"),
    [
        ("2026 row of a table | 1 | 2 | 3\n", "violet lighthouse ", "the violet lighthouse"),
        ("wordsinarow ", "violet lighthouse ", "violet lighthouse"),
        ("0123456789abcdef", " lighthouse ", "lighthouse"),
        ("团队开了会聊到很多别的事情", "紫色灯塔", "紫色的灯塔"),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.31, 0.5, 0.83, 1.0])
def test_a_needle_in_a_long_result_is_found_and_shown(filler: str, needle: str, query: str, share: float) -> None:
    count = 20_000 // len(filler)
    before = round(count * share)
    text = filler * before + needle + filler * (count - before)
    hits = SessionKeywordSearch.of(said("a violet", text, "别的"), upto=3).search(query)
    assert hits[0].seq == 2
    assert needle.strip() in hits[0].text
    assert len(hits[0].text) <= SNIPPET_CHARS
    assert (hits[0].text[0] == "…", hits[0].text[-1] == "…") == (share > 0, share < 1)


def test_the_snippet_shows_where_most_of_the_question_is() -> None:
    text = "harbor " + "filler " * 60 + "harbor crane copper " + "filler " * 60 + "copper"
    (hit,) = SessionKeywordSearch.of(said(text), upto=1).search("harbor crane copper")
    assert "harbor crane copper" in hit.text


def test_a_word_at_the_edge_of_two_windows_is_not_cut() -> None:
    for shift in (*range(85, 105), *range(280, 305)):
        text = "x" * 900 + " " + "y" * shift + " lighthouse " + "z " * 700
        (hit,) = SessionKeywordSearch.of(said(text), upto=1).search("lighthouse")
        assert "lighthouse" in hit.text
        assert not SessionKeywordSearch.of(said(text), upto=1).search("house")


def test_later_messages_are_left_out() -> None:
    messages = said("harbor one", "harbor two", "harbor three")
    live = SessionKeywordSearch.of(messages, upto=2)
    assert live.upto == 2
    assert [each.seq for each in live.search("harbor")] == [2, 1]
    assert [each.seq for each in SessionKeywordSearch.of(messages, upto=9, before=live).search("harbor")] == [3, 2, 1]


WORDS = "tea milk harbor 8080 the 部署 绿茶 周二 redis。 …".split()
TEXTS = st.lists(st.sampled_from(WORDS), max_size=400).map(" ".join) | st.text(max_size=60)


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXTS, max_size=8), TEXTS, st.integers(-1, 5), st.integers(0, 8))
def test_answers_are_sorted_bounded_and_the_same_however_they_came_about(
    texts: list[str], query: str, limit: int, known: int
) -> None:
    messages = said(*texts)
    live = SessionKeywordSearch.of(messages, upto=len(texts))
    hits = live.search(query, limit=limit)
    grown = SessionKeywordSearch.of(messages, upto=len(texts), before=SessionKeywordSearch.of(messages, upto=known))
    assert hits == live.search(query, limit=limit) == grown.search(query, limit=limit)
    assert len(hits) <= max(0, limit)
    assert hits == sorted(hits, key=lambda each: (-each.score, -each.seq))
    assert len({each.seq for each in hits}) == len(hits)
    assert all(is_sound(each, texts, query) for each in hits)
    if 0 <= limit:
        assert hits == live.search(query, limit=100)[:limit]


def is_sound(hit: FoundMessage, texts: list[str], query: str) -> bool:
    has_term = not set(query_terms(query)).isdisjoint(index_terms(texts[hit.seq - 1]))
    shown = hit.text.removeprefix("… ").removesuffix(" …")
    return has_term and hit.score > 0 and len(hit.text) <= SNIPPET_CHARS and shown in texts[hit.seq - 1]


def test_a_search_of_many_messages_is_quick_beside_making_it() -> None:
    texts = [f"message {at} about harbor{at % 37} and crane{at % 91} with 部署{at} notes " * 3 for at in range(2_000)]
    messages = said(*texts)
    live = SessionKeywordSearch.of(messages, upto=2_000)
    assert_costs_at_most(
        1, lambda: live.search("notes about harbor7 and crane9"), lambda: SessionKeywordSearch.of(messages, upto=2_000)
    )


@pytest.mark.parametrize("piece", ["a", "a ", "部", "…", "\n", "_", "{"])
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (250_000 // len(piece))
    with at_most_readings(80):
        SessionKeywordSearch.of(said(text), upto=1).search(text)

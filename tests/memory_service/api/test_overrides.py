"""Numbers of a preset that users override: in the settings, for a session, and for one call."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from memory_service.client import MemoryClient
from memory_service.compaction.presets import PRESETS, numbers_of
from memory_service.errors import InvalidRequest
from tests.memory_service.api.talking import Json, begin, ok, refused, say, talking
from tests.memory_service.rooms import calls, result, turn, words
from tests.serving import RunningServer, W

NAMES = count()
BAD: list[tuple[Json, str]] = [
    ({"target_share": 0.95}, "target_share"),
    ({"keep_turns": -1}, "keep_turns"),
    ({"keep_turns": "3"}, "keep_turns"),
    ({"keep_turns": 1.5}, "keep_turns"),
    ({"colour": 1}, "colour"),
    ({"trigger_share": 0.2}, "trigger_share"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    overrides = {"keep_most_tokens": 10_000, "recovery_attempts": 2}
    with talking(tmp_path_factory.mktemp("overrides"), compaction={"overrides": overrides}) as running:
        yield running


def session(server: RunningServer, turns: int = 30, tokens: int = 200, **given: object) -> str:
    """A session of its own, with something said in it."""
    name = f"s{next(NAMES)}"
    begin(server, name, **{"context_window": 32_000, **given})
    say(server, [message for number in range(turns) for message in turn(number, tokens)], f"{W}/sessions/{name}")
    return f"{W}/sessions/{name}"


def plan(server: RunningServer, place: str, **body: object) -> Json:
    return ok(server.http.post(f"{place}/compact", json={"mode": "plan", "force": True, **body}))


def kept(server: RunningServer, place: str, made: Json) -> int:
    said = ok(server.http.get(f"{place}/messages", params={"view": "log"}))["seqs"]
    return sum(seq >= made["first_kept"] for seq in said)


def test_the_nearest_wins_name_by_name_and_the_status_shows_what_holds(server: RunningServer) -> None:
    own = {"compaction": {"overrides": {"recovery_attempts": 1, "target_share": 0.3}}}
    numbers = ok(server.http.get(session(server, 1, settings=own)))["numbers"]
    wanted = {"keep_most_tokens": 10_000, "recovery_attempts": 1, "target_share": 0.3, "emergency_target_share": 0.3}
    assert numbers == {**numbers_of(PRESETS["default"]), **wanted}


def test_another_preset_begins_with_its_own_numbers(server: RunningServer) -> None:
    place = session(server, 1, settings={"compaction": {"preset": "openclaw", "overrides": {"reserve_tokens": 5_000}}})
    assert ok(server.http.get(place))["numbers"] == {**numbers_of(PRESETS["openclaw"]), "reserve_tokens": 5_000}
    assert plan(server, place, preset="turns")["overrides"] == {}
    assert plan(server, place, preset="turns", overrides={"keep_turns": 2})["overrides"] == {"keep_turns": 2}


def test_a_call_keeps_fewer_turns_and_the_receipt_tells(server: RunningServer) -> None:
    place = session(server)
    made = plan(server, place, overrides={"keep_turns": 2})
    assert kept(server, place, made) == 4
    assert made["overrides"] == {"keep_most_tokens": 10_000, "recovery_attempts": 2, "keep_turns": 2}
    assert kept(server, place, plan(server, place)) > 4, "the call alone had it so"
    applied = ok(server.http.post(f"{place}/compact", json={"force": True, "overrides": {"keep_messages": 6}}))
    assert (kept(server, place, applied), applied["overrides"]["keep_messages"]) == (6, 6)
    again = ok(server.http.get(f"{place}/compactions/{applied['compaction_id']}"))
    assert again["overrides"] == applied["overrides"], "the log has it"


@pytest.mark.parametrize(("name", "value", "least", "most"), [
    ("keep_most_tokens", 1_000, 500, 1_000),
    ("keep_most_tokens", 3_000, 2_400, 3_000),
    ("keep_share", 0.1, 1_500, 2_400),
])  # fmt: skip
def test_the_newest_tokens_that_stay(server: RunningServer, name: str, value: float, least: int, most: int) -> None:
    place = session(server)
    ok(server.http.post(f"{place}/compact", json={"force": True, "overrides": {name: value, "keep_least_tokens": 0}}))
    view = ok(server.http.post(f"{place}/context", json={"recall": "never", "auto": False}))
    assert least <= view["tokens"]["tail"] <= most


def test_the_trigger_and_the_target_of_a_session(server: RunningServer) -> None:
    own = {"compaction": {"overrides": {"trigger_share": 0.45, "flush_share": 0.4, "target_share": 0.2}}}
    early, late = session(server, settings=own), session(server)
    sizes = {place: ok(server.http.get(place))["pressure"] for place in (early, late)}
    assert sizes == {early: "hard", late: "ok"}
    made = ok(server.http.post(f"{early}/context", json={"recall": "never"}))["compaction"]
    assert made["target_tokens"] == int(0.2 * 24_000) >= made["tokens_after"]
    assert ok(server.http.post(f"{late}/context", json={"recall": "never"}))["compaction"] is None


def test_the_reserve(server: RunningServer) -> None:
    own = {"compaction": {"preset": "openclaw", "overrides": {"reserve_tokens": 2_000}}}
    place = session(server, settings=own)
    answer = ok(server.http.post(f"{place}/context", json={"recall": "never", "max_tokens": None}))
    assert answer["compaction"] is None
    say(server, [message for number in range(40) for message in turn(number, 200)], place)
    assert ok(server.http.get(place))["tokens"] > 24_576 and ok(server.http.get(place))["pressure"] == "soft"


def test_nothing_is_compacted_where_auto_is_off(server: RunningServer) -> None:
    own = {"compaction": {"overrides": {"auto": False}}, "flush": {"mode": "off"}}
    place = session(server, 55, settings=own)
    assert ok(server.http.get(place))["pressure"] == "hard"
    assert ok(server.http.post(f"{place}/context", json={"recall": "never"}))["compaction"] is None
    assert ok(server.http.post(f"{place}/compact", json={}))["applied"], "who asks gets it"


def test_the_attempts_after_an_overflow(server: RunningServer) -> None:
    place = session(server, 60)
    error = {"error": "This model's maximum context length is 32000 tokens. However, your messages resulted in 33000."}
    remedies = [ok(server.http.post(f"{place}/overflow", json=error))["remedy"] for _ in range(3)]
    assert remedies == ["compact", "compact", "give_up"]


def test_a_share_of_the_window_for_the_summary(server: RunningServer) -> None:
    place = session(server, 40)
    for share, most in ((0.1, 3_200), (0.05, 1_600)):
        made = plan(server, place, overrides={"summary_share": share})
        assert f"a summary of at most {most} tokens" in made["reason"]
    made = plan(server, place, trigger="overflow", overrides={"summary_share": 0.1, "emergency_summary_share": 0.05})
    assert "a summary of at most 1600 tokens" in made["reason"]


def test_turns_that_give_way_are_told_in_the_receipt(server: RunningServer) -> None:
    place = session(server, 30, 400, settings={"compaction": {"preset": "turns"}}, context_window=16_000)
    made = plan(server, place, overrides={"keep_turns": 25})
    assert len(made["notes"]) == 1 and "of 25 turns stay: more would leave too little" in made["notes"][0]
    applied = ok(server.http.post(f"{place}/compact", json={"force": True, "overrides": {"keep_turns": 25}}))
    again = ok(server.http.get(f"{place}/compactions/{applied['compaction_id']}"))
    assert made["notes"][0] in again["notes"], "the log has it"


def test_safeguard_is_a_trigger_of_a_call_and_a_switch_of_a_session(server: RunningServer) -> None:
    early = ok(server.http.post(f"{session(server, 10)}/compact", json={"trigger": "safeguard"}))
    assert not early["applied"] and "compaction begins at" in early["reason"]
    own = {"compaction": {"preset": "openclaw", "overrides": {"safeguard": True}}, "flush": {"mode": "off"}}
    place = session(server, 62, settings=own)
    made = ok(server.http.post(f"{place}/context", json={"recall": "never"}))["compaction"]
    assert (made["trigger"], made["overrides"]) == ("safeguard", {"safeguard": True})
    metrics = server.http.get("/metrics").text
    assert 'trigger="safeguard"' in metrics


def test_the_longest_result_of_a_tool(server: RunningServer) -> None:
    place = session(server, 1, settings={"compaction": {"overrides": {"guard_max_chars": 3_000}}})
    say(server, [calls("c1"), result("c1", "x" * 10_000), calls("c2"), result("c2", words(2_000, chinese=True))], place)
    shown = [m["content"] for m in ok(server.http.get(f"{place}/messages"))["messages"] if m["role"] == "tool"]
    assert [len(text) <= limit for text, limit in zip(shown, (3_000, 1_000), strict=True)] == [True, True]
    assert all("log:" in text for text in shown)


def of_old_results(server: RunningServer, ttl_seconds: float) -> tuple[str, list[int]]:
    """A session with four old results: its place, and their sizes in the next prompt."""
    numbers = {"pruning_soft_trim_chars": 1_000, "pruning_head_chars": 300, "pruning_tail_chars": 200}
    more = {"pruning_keep_last_assistants": 1, "pruning_soft_trim_ratio": 0.01, "pruning_hard_clear": False}
    own = {
        "compaction": {"preset": "openclaw", "overrides": {**numbers, **more}},
        "pruning": {"mode": "cache_ttl", "ttl_seconds": ttl_seconds},
    }
    place = session(server, 1, settings=own)
    for number in range(4):
        say(server, [calls(f"c{number}"), result(f"c{number}", f"{number} " * 2_000)], place)
    say(server, turn(9, 10), place)
    made = ok(server.http.post(f"{place}/context", json={"recall": "never"}))
    return place, [len(message["content"]) for message in made["messages"] if message["role"] == "tool"]


def test_old_results_are_shortened_as_the_numbers_say(server: RunningServer) -> None:
    _, sizes = of_old_results(server, 0)
    assert all(500 < size < 600 for size in sizes) and len(sizes) == 4


def test_old_results_stay_as_long_as_the_provider_keeps_its_cache(server: RunningServer) -> None:
    place, sizes = of_old_results(server, 3_600)
    assert sizes == [4_000] * 4, "an answer came a moment ago, so its provider's cache is warm"
    own = ok(server.http.get(place))["settings"]
    own["pruning"]["ttl_seconds"] = 0
    ok(server.http.patch(place, json={"settings": own}))
    made = ok(server.http.post(f"{place}/context", json={"recall": "never"}))
    assert made["compaction"]["trigger"] == "cache_ttl"


@pytest.mark.parametrize(("overrides", "named"), BAD)
def test_what_makes_no_sense_is_refused_by_name_wherever_it_comes_from(
    server: RunningServer, overrides: Json, named: str
) -> None:
    place = session(server, 1)
    answers: list[httpx.Response] = [
        server.http.post(f"{place}/compact", json={"overrides": overrides}),
        server.http.post(f"{place}/compact", json={"mode": "plan", "overrides": overrides}),
        server.http.post("/v1/compact", json={"messages": turn(1), "overrides": overrides}),
        server.http.patch(place, json={"settings": {"compaction": {"overrides": overrides}}}),
        server.http.post(f"{W}/sessions", json={"settings": {"compaction": {"overrides": overrides}}}),
    ]
    for answer in answers:
        assert named in refused(answer, 422, "invalid_request") and "overrides" in answer.text
    assert ok(server.http.get(place))["settings"] == {}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400"])
def test_a_number_that_is_none_is_refused(server: RunningServer, number: str) -> None:
    place = session(server, 1)
    for route, more in ((f"{place}/compact", ""), ("/v1/compact", '"messages": [{"role": "user", "content": "x"}], ')):
        body = f'{{{more}"overrides": {{"target_share": {number}}}}}'
        answer = server.http.post(route, content=body, headers={"Content-Type": "application/json"})
        refused(answer, 422, "invalid_request")


def test_messages_without_a_session(server: RunningServer) -> None:
    messages = [message for number in range(30) for message in turn(number, 200)]
    body = {"messages": messages, "context_window": 32_000, "force": True, "overrides": {"keep_messages": 4}}
    made = ok(server.http.post("/v1/compact", json=body))
    assert [m["content"][:9] for m in made["messages"][-4:]] == ["Question ", "Answer 28", "Question ", "Answer 29"]
    assert made["receipt"]["first_kept"] == 57 and made["receipt"]["overrides"]["keep_messages"] == 4


def test_the_client_sends_them(server: RunningServer) -> None:
    name = session(server).rpartition("/")[2]
    with MemoryClient(server.url) as memory:
        made = memory.session(name).compact("plan", force=True, overrides={"keep_turns": 1})
        assert made.overrides["keep_turns"] == 1
        messages = [message for number in range(30) for message in turn(number, 200)]
        short = memory.compact_messages(messages, 32_000, force=True, overrides={"keep_messages": 2})
        assert short.receipt.first_kept == 59
        with pytest.raises(InvalidRequest, match="keep_turns"):
            memory.session(name).compact(overrides={"keep_turns": 0})

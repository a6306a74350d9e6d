"""Routes of prompts, compactions and flushes, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from memory_service.errors import UpstreamFailed
from memory_service.testing import ScriptedModel
from tests.memory_service.api.talking import anthropic_talk, begin, ok, refused, say, talk, talking, without
from tests.serving import RunningServer, W
from tests.wire import problems

NAMES = count()
WINDOW = 10_000
# More than the window holds.
LONG = talk(48, words=80)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with talking(tmp_path_factory.mktemp("prompts")) as running:
        yield running


@pytest.fixture
def place(server: RunningServer) -> str:
    """A session with more than its window holds."""
    name = f"p{next(NAMES)}"
    begin(server, name, context_window=WINDOW)
    place = f"{W}/sessions/{name}"
    say(server, LONG, place)
    return place


@pytest.fixture
def small(server: RunningServer) -> str:
    """A session with little in it."""
    name = f"q{next(NAMES)}"
    begin(server, name, context_window=WINDOW)
    place = f"{W}/sessions/{name}"
    say(server, [{"role": "system", "content": "你很友好。"}, *talk(4)], place)
    return place


def context(server: RunningServer, place: str, **asked: Any) -> dict[str, Any]:
    return ok(server.http.post(f"{place}/context", json=asked))


def view(server: RunningServer, place: str) -> bytes:
    return server.http.get(f"{place}/messages").content


def test_a_prompt_of_little_is_all_of_it(server: RunningServer, small: str) -> None:
    said = [*talk(4), {"role": "user", "content": "And now?"}]
    say(server, said[-1:], small)
    made = context(server, small, system_prompt="You are kind.", recall="never", tools=[{"name": "check"}])
    assert made["messages"][0] == {"role": "system", "content": "You are kind."}
    assert [message["content"] for message in made["messages"][2:]] == [message["content"] for message in said]
    tokens = made["tokens"]
    assert tokens["summary"] == tokens["memory"] == 0
    assert tokens["total"] == tokens["system"] + tokens["tail"] < tokens["window"] == WINDOW
    assert (made["receipt"], made["compaction"], made["flush"]) == (None, None, None)
    assert made["recall"]["searched"] is False and made["recall"]["reason"]
    assert (made["system"], made["degraded"]) == (None, [])


def test_a_prompt_of_too_much_is_flushed_compacted_and_fits(server: RunningServer, place: str) -> None:
    before = ok(server.http.get(place))
    assert (before["pressure"], before["tokens"] > WINDOW) == ("hard", True)
    made = context(server, place, system_prompt="You are kind.", query="service-7", memory_budget_tokens=300)
    assert problems(made["messages"], "openai") == []
    assert made["tokens"]["total"] <= WINDOW
    assert made["tokens"]["summary"] > 0
    assert made["compaction"]["applied"] is True
    assert made["compaction"]["tokens_after"] < made["compaction"]["tokens_before"]
    assert made["flush"]["mode"] == "service" and made["flush"]["method"] == "extractive"
    assert 0 < made["tokens"]["memory"] <= 300 + 4
    assert made["receipt"]["included"]
    assert made["recall"] == {"searched": True, "query": "service-7", "reason": made["recall"]["reason"]}
    assert ok(server.http.get(f"{W}/receipts/{made['receipt']['receipt_id']}")) == made["receipt"]
    after = ok(server.http.get(place))
    assert (after["compactions"], after["pressure"], after["messages"]) == (1, "ok", before["messages"])
    assert context(server, place)["compaction"] is None


def test_the_service_takes_its_own_prompt_back_without_logging_it(server: RunningServer, place: str) -> None:
    made = context(server, place, query="service-7")
    last = ok(server.http.get(place))["last_seq"]
    told = say(server, [*made["messages"][:1], {"role": "assistant", "content": "Done."}], place)
    assert (told["first_seq"], told["last_seq"]) == (last + 1, last + 1)
    assert told["degraded"]


def test_memories_of_the_workspace_are_recalled(server: RunningServer, small: str) -> None:
    ok(server.http.post(f"{W}/memories", json={"text": "The zeppelin lands on Sundays."}), 201)
    say(server, [{"role": "user", "content": "When does the zeppelin land?"}], small)
    made = context(server, small, sources=["memory"], recall="always")
    assert "The zeppelin lands on Sundays." in str(made["messages"])
    assert made["receipt"]["included"][0]["path"].startswith("memory/")
    none = context(server, small, memory_budget_tokens=0, query="zeppelin")
    assert (none["receipt"], none["tokens"]["memory"]) == (None, 0)


@pytest.mark.parametrize("shape", ["anthropic", "mistral"])
def test_other_shapes_are_valid_too(server: RunningServer, shape: Any) -> None:
    place = f"{W}/sessions/shape-{shape}"
    begin(server, f"shape-{shape}", context_window=WINDOW)
    say(
        server,
        [*anthropic_talk(24, words=150), {"role": "user", "content": [{"type": "text", "text": "接下来？"}]}],
        place,
    )
    made = context(server, place, format=shape, system_prompt="你很友好。")
    assert made["compaction"]["applied"] is True
    assert problems(made["messages"], shape, ready=True) == []
    assert made["system"] == ("你很友好。" if shape == "anthropic" else None)


def test_max_tokens_is_the_longest_prompt(server: RunningServer, place: str) -> None:
    made = context(server, place, max_tokens=4_000, recall="never")
    assert made["tokens"]["total"] <= 4_000
    assert made["compaction"]["tokens_after"] <= 4_000


def test_what_cannot_fit_is_named_with_its_parts(server: RunningServer, small: str) -> None:
    answer = server.http.post(f"{small}/context", json={"system_prompt": "word " * 10_000})
    refused(answer, 422, "incompressible")
    assert max(answer.json()["error"]["parts"].values()) > WINDOW
    for name in ("memory_budget_tokens", "max_tokens"):
        assert name in refused(server.http.post(f"{small}/context", json={name: -1}), 422, "invalid_request")


def test_without_auto_nothing_is_done_first(server: RunningServer, place: str) -> None:
    refused(server.http.post(f"{place}/context", json={"auto": False}), 422, "incompressible")
    assert ok(server.http.get(place))["compactions"] == 0


def test_a_compaction_is_planned_previewed_applied_listed_and_undone(server: RunningServer, place: str) -> None:
    compact, before = f"{place}/compact", view(server, place)
    plan = ok(server.http.post(compact, json={"mode": "plan"}))
    assert (plan["applied"], plan["compaction_id"], plan["summary"], plan["messages"]) == (False, None, "", None)
    assert plan["stage"] == "summary" and plan["covered"] and plan["steps"] and plan["reason"]
    preview = ok(server.http.post(compact, json={"mode": "preview"}))
    assert (preview["applied"], preview["compaction_id"]) == (False, None)
    assert preview["summary"] and problems(preview["messages"], "openai") == []
    assert view(server, place) == before
    made = ok(server.http.post(compact, json={"instructions": "Keep 部署.", "trigger": "manual"}))
    assert (made["applied"], made["active"], made["mode"], made["method"]) == (True, True, "apply", "extractive")
    assert made["tokens_after"] == preview["tokens_after"] < made["tokens_before"]
    assert made["ratio"] == pytest.approx(made["tokens_after"] / made["tokens_before"], abs=0.001)
    assert (made["first_kept"], made["covered"]) == (preview["first_kept"], preview["covered"])
    assert made["ledger"] and made["audit"]["ok"] in (True, False) and made["window_tokens"] == WINDOW
    place_of = f"{place}/compactions/{made['compaction_id']}"
    kept = ok(server.http.get(place_of))
    assert kept["summary"] == made["summary"]
    assert ok(server.http.get(f"{place}/compactions"))["compactions"] == [kept]
    undone = ok(server.http.post(f"{place_of}/undo"))
    assert (undone["compaction_id"], undone["active"]) == (made["compaction_id"], False)
    assert view(server, place) == before
    refused(server.http.post(f"{place_of}/undo"), 409, "conflict")
    refused(server.http.get(f"{place}/compactions/c999999"), 404, "not_found")
    assert [each["active"] for each in ok(server.http.get(f"{place}/compactions"))["compactions"]] == [False]


def test_a_compaction_with_nothing_to_gain_changes_nothing(server: RunningServer, small: str) -> None:
    made = ok(server.http.post(f"{small}/compact", json={"trigger": "threshold"}))
    assert (made["applied"], made["stage"], made["compaction_id"]) == (False, "none", None) and made["reason"]
    for body in ({"mode": "maybe"}, {"preset": "nope"}, {"target_tokens": 0}, {"trigger": "x"}):
        refused(server.http.post(f"{small}/compact", json=body), 422, "invalid_request")


@pytest.mark.parametrize("preset", ["openclaw", "turns", "ponybunny", "opencode"])
def test_presets_are_reachable(server: RunningServer, place: str, preset: str) -> None:
    ok(server.http.patch(place, json={"context_window": 64_000}))
    plan = ok(server.http.post(f"{place}/compact", json={"mode": "plan", "preset": preset, "force": True}))
    assert plan["preset"] == preset


def test_pins_stay_in_every_view(server: RunningServer, place: str) -> None:
    ok(server.http.post(f"{place}/pins", json={"text": "周五不要部署。"}), 201)
    ok(server.http.post(f"{place}/compact", json={"force": True}))
    assert "周五不要部署。" in view(server, place).decode()


def test_a_flush_writes_what_the_next_search_finds(server: RunningServer, small: str) -> None:
    say(server, [{"role": "user", "content": "Remember: the 梅花 server is called umbriel."}], small)
    made = ok(server.http.post(f"{small}/flush"))
    assert made["mode"] == "service" and made["written"] and made["path"].startswith("memory/")
    assert made["messages"] and made["reason"] and made["prompt"] is None
    found = ok(server.http.post(f"{W}/search", json={"query": "umbriel", "mode": "text", "sources": ["memory"]}))
    assert "umbriel" in found["results"][0]["text"]
    again = ok(server.http.post(f"{small}/flush", json={}))
    assert (again["written"], again["path"], again["messages"]) == ([], None, None) and again["reason"]


def test_an_agent_may_find_the_memories_itself(server: RunningServer, small: str) -> None:
    asked = ok(server.http.get(f"{small}/flush-prompt"))
    assert "NO_REPLY" in asked["prompt"] + asked["system_prompt"]
    silent = ok(server.http.post(f"{small}/flush", json={"reply": "NO_REPLY"}))
    assert (silent["method"], silent["written"]) == ("agent", [])
    told = ok(server.http.post(f"{small}/flush", json={"reply": "- The 竹子 gate opens at 06:30 every day.\n"}))
    assert told["method"] == "agent" and "06:30" in told["written"][0]["text"]


def test_a_context_asks_the_agent_for_memories_where_that_is_set(server: RunningServer) -> None:
    settings = {"flush": {"mode": "agent", "prompt": "Notiere, was bleibt."}}
    begin(server, "asking", context_window=WINDOW, settings=settings)
    place, made = f"{W}/sessions/asking", None
    for _ in range(40):
        say(server, talk(2), place)
        if ok(server.http.get(place))["pressure"] == "soft":
            made = context(server, place, recall="never", memory_budget_tokens=0)
            break
    assert made is not None, "the session never came under soft pressure"
    assert (made["flush"]["mode"], made["flush"]["written"], made["compaction"]) == ("agent", [], None)
    assert "Notiere, was bleibt." in made["flush"]["prompt"] and made["flush"]["system_prompt"]


TOO_LONG = "This model's maximum context length is {} tokens. However, your messages resulted in {} tokens."


def test_an_overflow_is_recovered_from_and_its_window_learned(server: RunningServer, small: str) -> None:
    say(server, [*talk(40), {"role": "user", "content": "接下来做什么？"}], small)
    first = context(server, small, system_prompt="You are kind.", recall="never")
    asked = {"error": TOO_LONG.format(5000, 6100), "status": 400}
    made = ok(server.http.post(f"{small}/overflow", json=asked))
    assert (made["action"], made["kind"], made["remedy"]) == ("retry", "token_overflow", "compact")
    assert made["learned_window"] == 5000 == made["tokens"]["window"]
    assert made["tokens"]["total"] <= 5000
    # Made as the last one was, since nothing else was told.
    assert made["messages"][0] == first["messages"][0]
    assert problems(made["messages"], "openai", ready=True) == []
    assert "接下来做什么？" in str(made["messages"])
    assert made["compaction"]["trigger"] == "overflow"
    assert ok(server.http.get(small))["context_window"]["source"] == "learned"
    other = ok(server.http.post(f"{small}/overflow", json={**asked, "system_prompt": "Anew.", "format": "anthropic"}))
    if other["action"] == "retry":
        assert other["system"][0] == {"type": "text", "text": "Anew."}
        assert problems(other["messages"], "anthropic") == []


@pytest.mark.parametrize(
    ("error", "kind", "remedy"),
    [
        ("Rate limit reached. Please try again in 7s.", "rate_limit", "wait"),
        ("Incorrect API key provided.", "auth", "give_up"),
    ],
)
def test_what_is_no_overflow_is_not_compacted(
    server: RunningServer, small: str, error: str, kind: str, remedy: str
) -> None:
    before = view(server, small)
    made = ok(server.http.post(f"{small}/overflow", json={"error": error, "status": 429 if remedy == "wait" else 401}))
    assert (made["kind"], made["remedy"]) == (kind, remedy)
    assert (made["action"], bool(made["messages"])) == (("retry", True) if remedy == "wait" else ("give_up", False))
    assert (made["retry_after_seconds"], made["compaction"]) == (7 if remedy == "wait" else None, None)
    assert view(server, small) == before
    refused(server.http.post(f"{small}/overflow", json={}), 422, "invalid_request")


def test_a_recovery_that_is_over_leaves_the_session_at_rest(server: RunningServer, small: str) -> None:
    say(server, talk(40), small)
    ok(server.http.post(f"{small}/overflow", json={"error": TOO_LONG.format(5000, 6100)}))
    assert ok(server.http.get(f"{small}/idle", params={"timeout_seconds": 0})) == {"idle": False, "degraded": []}
    say(server, [{"role": "assistant", "content": "Done."}], small)
    assert ok(server.http.get(f"{small}/idle"))["idle"] is True


@pytest.mark.parametrize("shape", ["openai", "anthropic", "mistral"])
def test_messages_are_compacted_without_a_session(server: RunningServer, shape: Any) -> None:
    said = [{"role": "system", "content": "你很友好。"}, *LONG, {"role": "user", "content": "And now?"}]
    asked = {"messages": said, "context_window": WINDOW, "format": shape, "pins": ["周五不要部署。"]}
    made = ok(server.http.post("/v1/compact", json=asked))
    assert made["receipt"]["applied"] is True and made["receipt"]["compaction_id"] is None
    assert made["receipt"]["tokens_after"] < WINDOW < made["receipt"]["tokens_before"]
    assert made["receipt"]["covered"][0] >= 1 and made["receipt"]["window_tokens"] == WINDOW
    assert problems(made["messages"], shape, ready=True) == []
    assert "周五不要部署。" in str(made["messages"])
    assert made["system"] == ("你很友好。" if shape == "anthropic" else None)
    assert not list((server.home / "default" / "sessions").glob("stateless*"))


def test_messages_that_fit_come_back_as_they_are(server: RunningServer) -> None:
    said = [{"role": "user", "content": "你好"}]
    made = ok(server.http.post("/v1/compact", json={"messages": said, "context_window": WINDOW}))
    assert (made["messages"], made["receipt"]["applied"], made["receipt"]["stage"]) == (said, False, "none")
    counted = {"messages": talk(20), "context_window": WINDOW, "system_prompt": "word " * 4_000}
    assert ok(server.http.post("/v1/compact", json=counted))["receipt"]["applied"] is True
    faulty: list[dict[str, Any]] = [{"messages": []}, {"messages": said, "extra": 1}, {"messages": [{"role": ""}]}, {}]
    for wrong in faulty:
        refused(server.http.post("/v1/compact", json=wrong), 422, "invalid_request")


def test_a_model_that_fails_is_502_where_nothing_may_stand_in(tmp_path: Path) -> None:
    model = ScriptedModel(*[UpstreamFailed("The model broke.", kind="unavailable")] * 20)
    with talking(tmp_path / "home", model, compaction={"fallback": "none"}) as server:
        begin(server, context_window=WINDOW)
        place = f"{W}/sessions/support-42"
        say(server, LONG, place)
        before = view(server, place)
        refused(server.http.post(f"{place}/compact", json={}), 502, "upstream_failed")
        refused(server.http.post(f"{place}/context", json={}), 502, "upstream_failed")
        assert view(server, place) == before
        numbers = server.http.get("/metrics").text
        failed = 'memory_service_compactions_total{method="none",outcome="upstream_failed",trigger="manual"} 1.0'
        assert failed in numbers
        # Rules may: the receipt says what happened.
        ok(server.http.patch(place, json={"settings": {"compaction": {"fallback": "extractive"}}}))
        made = ok(server.http.post(f"{place}/compact", json={}))
        assert made["method"] == "extractive" and made["notes"]
        assert without(made, "summary")["applied"] is True

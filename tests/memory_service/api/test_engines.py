"""Routes of a session whose context engine is somebody else's, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.memory_service.api.talking import begin, ok, refused, say, talk, talking
from tests.memory_service.engines.plugins import installed
from tests.serving import RunningServer, W

NAMES = count()
TOO_LONG = "This model's maximum context length is 8000 tokens. However, your messages resulted in 9100 tokens."
OWNERS = ["sliding-window", "stubborn", "odd-compact", "bad-compact"]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[str], RunningServer]]:
    servers = list[Any]()

    def serve(engine: str) -> RunningServer:
        servers.append(talking(tmp_path / f"home-{next(NAMES)}", context_engine=engine, context_window=8_000))
        running: RunningServer = servers[-1].__enter__()
        return running

    with installed(tmp_path / "site-packages"):
        yield serve
        for server in servers:
            server.__exit__(None, None, None)


def session_in(server: RunningServer) -> str:
    begin(server, "engined")
    place = f"{W}/sessions/engined"
    say(server, talk(30), place)
    return place


def test_a_compaction_by_the_engine_is_answered_with_its_receipt(served: Callable[[str], RunningServer]) -> None:
    server = served("sliding-window")
    place = session_in(server)
    made = ok(server.http.post(f"{place}/compact", json={"force": True}))
    assert (made["stage"], made["method"], made["applied"]) == ("engine", "engine", True)
    assert (made["compaction_id"], made["reason"], made["tokens_before"]) == (None, "a smaller window", 900)
    assert ok(server.http.get(f"{place}/compactions")) == {"compactions": [], "degraded": []}
    # There is nothing of the service's to undo, and that is said.
    refused(server.http.post(f"{place}/compactions/c1/undo"), 404, "not_found")
    numbers = server.http.get("/metrics").text
    assert 'memory_service_compactions_total{method="engine",outcome="engine",trigger="manual"} 1.0' in numbers


def test_a_plan_of_what_the_engine_owns_says_whose_it_is(served: Callable[[str], RunningServer]) -> None:
    server = served("sliding-window")
    place = session_in(server)
    for mode in ("plan", "preview"):
        made = ok(server.http.post(f"{place}/compact", json={"mode": mode, "force": True}))
        assert made["applied"] is False and made["stage"] != "engine"
        assert "the engine sliding-window compacts this session" in " ".join(made["notes"])


@pytest.mark.parametrize("engine", [*OWNERS, "raises", "greedy", "gone", "full"])
def test_no_route_of_an_engines_session_meets_a_defect(served: Callable[[str], RunningServer], engine: str) -> None:
    server = served(engine)
    place, http = session_in(server), server.http
    answers = [
        http.post(f"{place}/context", json={"recall": "never"}),
        *(
            http.post(f"{place}/compact", json={"mode": mode, "trigger": trigger, "force": force})
            for mode, force in (("plan", False), ("plan", True), ("preview", True), ("apply", False), ("apply", True))
            for trigger in (("manual", "threshold", "overflow") if mode == "apply" else ("overflow",))
        ),
        http.post(f"{place}/overflow", json={"error": TOO_LONG}),
        http.post(f"{place}/overflow", json={"error": TOO_LONG}),
        http.get(f"{place}/compactions"),
        http.post(f"{place}/compactions/c9999/undo"),
        http.post(f"{place}/context", json={"recall": "never", "max_tokens": 3000}),
        http.get(f"{place}/messages"),
        http.post(f"{place}/flush", json={}),
        http.get(place),
        http.get(f"{W}/status"),
        http.get("/metrics"),
    ]
    assert [(each.request.url.path, each.text) for each in answers if each.status_code >= 500] == []
    for receipt in ok(http.get(f"{place}/compactions"))["compactions"]:
        ok(http.get(f"{place}/compactions/{receipt['compaction_id']}"))
    with http.stream("GET", f"{place}/events", headers={"Last-Event-ID": "0"}) as stream:
        assert stream.status_code == 200
        lines = (line for line in stream.iter_lines() if line.startswith("data: "))
        heard = [json.loads(next(lines).removeprefix("data: ")) for _ in range(2)]
    assert {each["kind"] for each in heard} <= {"compaction_start", "compaction_end", "flush", "prune", "overflow"}
    assert ok(http.delete(place))["session_id"] == "engined"

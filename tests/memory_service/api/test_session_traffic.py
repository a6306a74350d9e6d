"""Sessions under traffic: repeated requests, other keys, streams, slow models, many at once, numbers, the end."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_service.messages.server_events import ServerEvent
from memory_service.testing import Hang, ScriptedModel
from tests.memory_service.api.talking import anthropic_talk, begin, ok, refused, say, talk, talking
from tests.serving import RunningServer, W, events_of
from tests.wire import problems

NAMES = count()
WINDOW = 10_000
LONG = talk(48, words=80)
KEYS = {"key-of-default": "default", "key-of-team": "team", "master": "*"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with talking(tmp_path_factory.mktemp("traffic")) as running:
        yield running


@pytest.fixture
def place(server: RunningServer) -> str:
    """A session with more than its window holds."""
    return filled(server, f"t{next(NAMES)}")


def filled(server: RunningServer, name: str) -> str:
    begin(server, name, context_window=WINDOW)
    say(server, LONG, f"{W}/sessions/{name}")
    return f"{W}/sessions/{name}"


def keyed(server: RunningServer, path: str, body: object = None, key: str = "k-1") -> httpx.Response:
    headers = {"Idempotency-Key": key}
    return (
        server.http.post(path, json=body, headers=headers)
        if body is not None
        else server.http.post(path, headers=headers)
    )


# --- repeated requests -----------------------------------------------------------------------------------------------


def test_every_post_does_the_same_once(server: RunningServer, place: str) -> None:
    asked: list[tuple[str, Any, Any]] = [
        ("/pins", {"text": "周五不要部署。"}, {"text": "x"}),
        ("/pending", {"call_ids": ["a"]}, {"call_ids": ["b"]}),
        ("/flush", {"reply": "- The gate opens at 06:30."}, {"reply": "- At 07:30."}),
        ("/compact", {"force": True}, {"force": False}),
        ("/context", {"recall": "never"}, {"recall": "always"}),
        ("/overflow", {"error": "prompt is too long: 7000 tokens > 6000 maximum"}, {"error": "x"}),
        ("/trim", {"keep_last": 20}, {"keep_last": 10}),
        ("/restore", None, None),
    ]
    for route, body, other in asked:
        first = keyed(server, f"{place}{route}", body)
        assert first.is_success and "idempotency-replayed" not in first.headers, (route, first.text)
        log = ok(server.http.get(place))["last_seq"]
        again = keyed(server, f"{place}{route}", body)
        assert (again.status_code, again.content) == (first.status_code, first.content), route
        assert again.headers["idempotency-replayed"] == "true"
        assert ok(server.http.get(place))["last_seq"] == log, route
        if other is not None:
            refused(keyed(server, f"{place}{route}", other), 409, "conflict")
    compaction = ok(server.http.get(f"{place}/compactions"))["compactions"][0]["compaction_id"]
    undo = f"{place}/compactions/{compaction}/undo"
    assert keyed(server, undo).json() == keyed(server, undo).json()
    refused(server.http.post(undo), 409, "conflict")


def test_a_session_is_begun_once_by_key(server: RunningServer) -> None:
    first, again = (keyed(server, f"{W}/sessions", {"model": "gpt-4o"}, "begin-1") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["session_id"] == again.json()["session_id"]
    refused(keyed(server, f"{W}/sessions", {"model": "gpt-5"}, "begin-1"), 409, "conflict")


def test_messages_are_appended_once_by_key_however_many_ask_at_once(server: RunningServer, place: str) -> None:
    body = {"messages": [{"role": "user", "content": "只说一次"}]}
    before = ok(server.http.get(place))["messages"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: keyed(server, f"{place}/messages", body), range(16)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({(answer.json()["first_seq"], answer.json()["last_seq"]) for answer in answers}) == 1
    assert [answer.headers.get("idempotency-replayed") for answer in answers].count(None) == 1
    assert ok(server.http.get(place))["messages"] == before + 1
    refused(keyed(server, f"{place}/messages", {"messages": talk(1)}), 409, "conflict")


def test_a_failed_request_may_be_tried_again(server: RunningServer) -> None:
    place = f"{W}/sessions/later"
    refused(keyed(server, f"{place}/compact", {"force": True}), 404, "not_found")
    filled(server, "later")
    assert keyed(server, f"{place}/compact", {"force": True}).json()["applied"] is True


def test_two_at_once_with_one_key_compact_once(server: RunningServer, place: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: keyed(server, f"{place}/compact", {"force": True}), range(4)))
    assert len({answer.content for answer in answers}) == 1
    assert len(ok(server.http.get(f"{place}/compactions"))["compactions"]) == 1


# --- other keys ------------------------------------------------------------------------------------------------------


def test_a_session_of_another_workspace_is_out_of_reach(tmp_path: Path) -> None:
    with talking(tmp_path / "home", api_keys=KEYS) as server:
        mine, theirs = ({"Authorization": f"Bearer key-of-{name}"} for name in ("default", "team"))
        place = f"{W}/sessions/s"
        said = {"messages": [{"role": "user", "content": "秘密"}]}
        assert server.http.post(f"{place}/messages", json=said, headers=mine).status_code == 200
        routes = [("GET", ""), ("GET", "/messages"), ("POST", "/context"), ("POST", "/compact"), ("GET", "/events")]
        routes += [("DELETE", ""), ("POST", "/messages"), ("GET", "/idle"), ("GET", "/messages/2"), ("GET", "/pins")]
        for method, route in routes:
            body = {"messages": [{"role": "user", "content": "x"}]} if route == "/messages" else {}
            sent = body if method == "POST" else None
            answer = server.http.request(method, f"{place}{route}", headers=theirs, json=sent)
            assert refused(answer, 403, "forbidden") and "秘密" not in answer.text
            refused(server.http.request(method, f"{place}{route}", json=sent), 401, "unauthorized")
        for key in (mine, theirs):
            assert ok(server.http.post("/v1/compact", json=said, headers=key))["messages"] == said["messages"]
        refused(server.http.post("/v1/compact", json=said), 401, "unauthorized")


# --- events ----------------------------------------------------------------------------------------------------------


def heard(server: RunningServer, path: str, wanted: int, headers: dict[str, str] | None = None) -> list[ServerEvent]:
    found: list[ServerEvent] = []
    with server.http.stream("GET", path, headers=headers, timeout=120) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for event in events_of(response.iter_lines()):
            found.append(event)
            if len(found) == wanted:
                break
    return found


def test_a_stream_tells_of_a_compaction_while_it_happens(server: RunningServer, place: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(heard, server, f"{place}/events?after=0", 3)
        ok(server.http.post(f"{place}/flush"))
        made = ok(server.http.post(f"{place}/compact", json={"force": True}))
        events = listening.result(20)
    assert [event.name for event in events] == ["flush", "compaction_start", "compaction_end"]
    fields: Any = events[2].json()["fields"]
    assert (fields["compaction_id"], fields["method"]) == (made["compaction_id"], "extractive")
    assert fields["tokens_before"] > fields["tokens_after"] == made["tokens_after"]
    assert "service-1" not in str(events), "events hold no text of messages"
    last = {"Last-Event-ID": events[1].id}
    assert [event.id for event in heard(server, f"{place}/events", 1, last)] == [events[2].id]
    assert [event.id for event in heard(server, f"{place}/events?after={events[0].id}", 1)] == [events[1].id]
    refused(server.http.get(f"{place}/events?after=x"), 422, "invalid_request")


def test_who_waits_for_rest_holds_no_thread_and_hears_of_it(tmp_path: Path) -> None:
    with talking(tmp_path / "home", ScriptedModel(Hang(seconds=8.0))) as server:
        place = filled(server, "resting")
        http = httpx.Client(base_url=server.url, trust_env=False, timeout=120)
        with http, ThreadPoolExecutor(60) as pool:
            compacting = pool.submit(server.http.post, f"{place}/compact", json={"force": True})
            begun = heard(server, f"{place}/events?after=0", 2)
            assert [event.name for event in begun] == ["flush", "compaction_start"]
            waiting = [pool.submit(http.get, f"{place}/idle") for _ in range(50)]
            no = ok(server.http.get(f"{place}/idle", params={"timeout_seconds": 0.05}))
            assert no["idle"] is False and not compacting.done()
            assert ok(server.http.get(f"{place}/pins"))["pins"] == []
            assert compacting.result(60).is_success
            assert {ok(each.result(60))["idle"] for each in waiting} == {True}


# --- slow models -----------------------------------------------------------------------------------------------------


def test_searches_answer_while_many_calls_hang_on_a_slow_model(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    model = ScriptedModel(*[Hang()] * 500)
    with talking(tmp_path / "home", model) as server:
        ok(server.http.post(f"{W}/memories", json={"text": "Deploys go out on Tuesdays."}), 201)
        names = [filled(server, f"h{number}") for number in range(4)]

        async def run() -> None:
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=600, limits=limits) as http:
                posts = [http.post(f"{names[n % 4]}/compact", json={"force": True}) for n in range(30)]
                posts += [http.post(f"{names[n % 4]}/context", json={}) for n in range(30)]
                stateless = {"messages": LONG, "context_window": WINDOW}
                posts += [http.post("/v1/compact", json=stateless) for _ in range(10)]
                hanging = [asyncio.create_task(post) for post in posts]
                await asyncio.sleep(1.0)
                assert not any(task.done() for task in hanging)
                for number in range(10):
                    found = await http.post(f"{W}/search", json={"query": "when are deploys?"})
                    assert found.json()["results"], found.text
                    said = {"messages": [{"role": "user", "content": f"Still here? 还在吗 {number}"}]}
                    appended = await http.post(f"{names[0]}/messages", json=said)
                    assert appended.status_code == 200
                # Nobody waited for the model: it hangs for longer than a test may take.
                assert not all(task.done() for task in hanging)
                for task in hanging:
                    task.cancel()
                await asyncio.gather(*hanging, return_exceptions=True)

        asyncio.run(run())
    # What hangs is told to stop when the server ends.
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("AnyIO"):
            thread.join(120)
            assert not thread.is_alive()


def test_appends_go_on_during_a_compaction_and_none_is_lost(tmp_path: Path) -> None:
    model = ScriptedModel(Hang(seconds=0.5), Hang(seconds=0.5), Hang(seconds=0.1), Hang(seconds=0.1))
    with talking(tmp_path / "home", model) as server:
        place = filled(server, "busy")
        with ThreadPoolExecutor(1) as pool:
            compacting = pool.submit(server.http.post, f"{place}/compact", json={"force": True})
            said, during = list[str](), 0
            while not compacting.done():
                message = {"role": "user", "content": f"Meanwhile {len(said)} 期间"}
                say(server, [message], place)
                said.append(str(message["content"]))
                during += not compacting.done()
            made = ok(compacting.result())
        assert made["applied"] is True and during > 3
        shown = [message["content"] for message in ok(server.http.get(f"{place}/messages"))["messages"]]
        assert [content for content in shown if content in set(said)] == said
        log = ok(server.http.get(f"{place}/messages", params={"view": "log"}))
        assert len(log["messages"]) == len(LONG) + len(said) and log["seqs"] == sorted(set(log["seqs"]))


def test_many_agents_at_once_each_get_a_valid_prompt(server: RunningServer) -> None:
    def turn(number: int) -> str:
        place = f"{W}/sessions/many-{number % 3}"
        said = anthropic_talk(4) if number % 2 else talk(4)
        say(server, said, place)
        shape: Any = "anthropic" if number % 2 else "openai"
        made = ok(server.http.post(f"{place}/context", json={"format": shape, "max_tokens": 3_000}))
        assert made["tokens"]["total"] <= 3_000
        return "; ".join(problems(made["messages"], shape))

    for number in range(3):
        begin(server, f"many-{number}")
    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(turn, range(18))) == {""}


# --- numbers and the end ---------------------------------------------------------------------------------------------


def test_metrics_count_what_was_done_with_bounded_labels(tmp_path: Path) -> None:
    with talking(tmp_path / "home") as server:
        place = filled(server, "counted-42")
        ok(server.http.post(f"{place}/flush", json={"reply": "- The gate opens at 06:30."}))
        ok(server.http.post(f"{place}/compact", json={"force": True}))
        ok(server.http.post(f"{place}/overflow", json={"error": "Incorrect API key provided.", "status": 401}))
        heard(server, f"{place}/events?after=0", 1)
        numbers = server.http.get("/metrics").text
        read = dict(re.findall(r"^(memory_service_\S+) (\S+)$", numbers, re.M))
        assert read["memory_service_sessions_messages_total"] == f"{len(LONG)}.0"
        made = 'memory_service_compactions_total{method="extractive",outcome="summary",trigger="manual"}'
        assert read[made] == "1.0"
        assert read["memory_service_compaction_seconds_count"] == "1.0"
        before, after = (float(read[f"memory_service_compaction_tokens_{name}_sum"]) for name in ("before", "after"))
        assert before > after > 0
        assert read['memory_service_flush_written_total{method="agent"}'] == "1.0"
        assert read['memory_service_overflow_total{remedy="give_up"}'] == "1.0"
        assert "memory_service_pruned_total" in read
        assert "counted-" not in numbers
        assert 'route="/v1/workspaces/{workspace}/sessions/{session_id}/events"' in numbers
        timed = [line for line in numbers.splitlines() if "request_seconds" in line and "/events" in line]
        assert timed == [], "how long somebody listened is no latency"


PROGRAM = """
import sys
from memory_service.api.server import serve
from memory_service.config import load_settings
serve(load_settings(home=sys.argv[1], port=0, embedding_model="none"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM to catch")
def test_a_server_told_to_end_does_so_with_a_stream_open(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split(" ")[3]
            with httpx.Client(base_url=url, trust_env=False, timeout=120) as http:
                ok(http.post(f"{W}/sessions", json={"session_id": "s"}), 201)
                with http.stream("GET", f"{W}/sessions/s/events") as response:
                    lines = response.iter_lines()
                    assert next(lines).startswith("retry:")
                    process.send_signal(signal.SIGTERM)
                    assert list(events_of(lines)) == []
                    assert process.wait(60) == 0, "who asked for it gets no failure"
        finally:
            process.kill()

"""Memories before sessions where that is asked for, over a real socket, with the SDK and the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from memory_service import MemoryClient
from memory_service.errors import InvalidRequest
from memory_service.service import MemoryService
from tests.memory_service.api.talking import begin, ok, refused, say, talking
from tests.memory_service.cli.commands import CommandLine
from tests.serving import RunningServer, W

TALK = f"{W}/sessions/talk"
QUESTIONS = ("which colour has the front door", "前门是什么颜色")
# A message that repeats the question would be no answer to it.
SAID = ("The colour that the front door has is green, coat {}.", "前门是绿色，什么颜色都盖得住，第{}遍。")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A workspace where what was said in a session matches better than what is remembered."""
    with talking(tmp_path_factory.mktemp("order"), context_window=200_000) as running:
        for text in ("The front door was painted last spring.", "前门去年春天刷过漆。"):
            ok(running.http.post(f"{W}/memories", json={"text": text}), 201)
        begin(running, "talk")
        for said in SAID:
            lines = [said.format(number) for number in range(6)]
            say(running, [{"role": "user", "content": line} for line in lines], TALK)
        ok(running.http.post(f"{W}/reindex", json={}), 202)
        with MemoryClient(running.url) as memory:
            memory.reindex()
        yield running


def sources(found: list[dict[str, Any]]) -> list[str]:
    return [each["path"].partition("/")[0] for each in found]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_search_gives_memories_before_sessions_on_request(server: RunningServer, question: str) -> None:
    def found(**asked: object) -> list[dict[str, Any]]:
        body = {"query": question, "limit": 4, **asked}
        return list(ok(server.http.post(f"{W}/search", json=body))["results"])

    assert found() == found(order="score")
    assert sources(found())[0] == "sessions"
    first = found(order="memory_first")
    assert len(first) == 4 and first[0]["source"] == "memory" and first[-1]["source"] == "sessions"
    assert sources(first) == sorted(sources(first)), "all memories, then all sessions"
    for kind in ("memory", "sessions"):
        scores = [each["score"] for each in first if each["source"] == kind]
        assert scores == sorted(scores, reverse=True), "the best first of each kind"


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_context_gives_memories_the_budget_first(server: RunningServer, question: str) -> None:
    def included(**asked: object) -> list[str]:
        body = {"query": question, "budget_tokens": 60, **asked}
        return sources(ok(server.http.post(f"{W}/context", json=body))["receipt"]["included"])

    assert "sessions" in included()
    assert set(included(order="memory_first")) == {"memory"}
    roomy = included(order="memory_first", budget_tokens=2000)
    assert roomy.count("memory") == 2 and "sessions" in roomy and roomy == sorted(roomy)


@pytest.mark.parametrize("preset", ["default", "ponybunny"])
def test_a_session_recalls_memories_first_on_request_or_by_its_preset(server: RunningServer, preset: str) -> None:
    begin(server, f"asks-{preset}", settings={"compaction": {"preset": preset}})
    place = f"{W}/sessions/asks-{preset}"
    say(server, [{"role": "user", "content": QUESTIONS[0]}], place)

    def included(**asked: object) -> set[str]:
        body = {"memory_budget_tokens": 60, "recall": "always", **asked}
        return set(sources(ok(server.http.post(f"{place}/context", json=body))["receipt"]["included"]))

    assert included(order="memory_first") == {"memory"}
    assert "sessions" in included(order="score")
    assert included() == included(order="memory_first" if preset == "ponybunny" else "score")


@pytest.mark.parametrize(("asked", "told"), [(10_001, True), (200_000, True), (10_000, False)])
def test_ponybunny_gives_memories_10_000_tokens_at_most_and_says_so(
    server: RunningServer, asked: int, told: bool
) -> None:
    name = f"much-{asked}"
    begin(server, name, settings={"compaction": {"preset": "ponybunny"}})
    place = f"{W}/sessions/{name}"
    say(server, [{"role": "user", "content": QUESTIONS[1]}], place)
    made = ok(server.http.post(f"{place}/context", json={"memory_budget_tokens": asked}))
    assert made["receipt"]["budget_tokens"] == 10_000
    assert ("it gets 10,000, the most in preset ponybunny" in made["recall"]["reason"]) is told
    begin(server, f"free-{asked}")
    free = f"{W}/sessions/free-{asked}"
    say(server, [{"role": "user", "content": QUESTIONS[1]}], free)
    made = ok(server.http.post(f"{free}/context", json={"memory_budget_tokens": min(asked, 60_000)}))
    assert made["receipt"]["budget_tokens"] == min(asked, 60_000)


def test_an_order_that_is_none_is_refused_and_the_choices_are_named(server: RunningServer) -> None:
    for path in (f"{W}/search", f"{W}/context", f"{TALK}/context"):
        message = refused(server.http.post(path, json={"query": "q", "order": "newest"}), 422, "invalid_request")
        assert "order" in message and "'score'" in message and "'memory_first'" in message
    service: MemoryService = server.app.state.shared.service
    with pytest.raises(InvalidRequest, match="Use one of score, memory_first"):
        service.search("default", "q", order="newest")  # type: ignore[arg-type]


def test_the_sdk_takes_an_order(server: RunningServer) -> None:
    with MemoryClient(server.url) as memory:
        assert memory.search(QUESTIONS[0], order="memory_first").results[0].source == "memory"
        made = memory.context(QUESTIONS[0], budget_tokens=60, order="memory_first")
        assert [each.path.partition("/")[0] for each in made.receipt.included] == ["memory", "memory"]
        session = memory.session("sdk-asks")
        session.append({"role": "user", "content": QUESTIONS[0]})
        receipt = session.context(memory_budget_tokens=60, order="memory_first").receipt
        assert receipt is not None and receipt.included[0].path.startswith("memory/")
        reply = session.complete(lambda messages: "Red.", memory_budget_tokens=60, order="memory_first")
        assert reply.context is not None and reply.context.receipt is not None
        assert reply.context.receipt.included[0].path.startswith("memory/")


def test_the_command_line_takes_an_order(server: RunningServer) -> None:
    def printed(*arguments: str) -> str:
        done = CommandLine(home=server.home).run(*arguments, "--order", "memory_first")
        assert done.code == 0, done.err
        return done.out

    assert json.loads(printed("search", QUESTIONS[0], "--json"))["results"][0]["source"] == "memory"
    assert "painted" in printed("context", QUESTIONS[0], "--budget-tokens", "60")
    told = json.loads(printed("sessions", "context", "talk", QUESTIONS[0], "-b", "60", "--json"))
    assert told["receipt"]["included"][0]["path"].startswith("memory/")
    assert CommandLine(home=server.home).run("search", "q", "--order", "newest").code == 2

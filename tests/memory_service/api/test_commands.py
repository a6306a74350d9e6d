"""What the conversation itself asks for, over a real socket: `/compact` of a user, and an answer that was cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from memory_service import AsyncMemoryClient, MemoryClient
from memory_service.errors import UpstreamFailed
from memory_service.testing import ScriptedModel
from tests.memory_service.api.talking import begin, ok, say, talk, talking
from tests.memory_service.rooms import summary
from tests.serving import RunningServer, W

NAMES = count()
COMMANDS = [("/compact", ""), ("/compact Keep every order number.", "Keep every order number."),
            ("/compact 请保留订单号", "请保留订单号"), ("/compact请保留订单号", "请保留订单号")]  # fmt: skip


@pytest.fixture(scope="module")
def model() -> ScriptedModel:
    return ScriptedModel(*[summary("We decided to deploy on Tuesday. 服务正常。")] * 200)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel) -> Iterator[RunningServer]:
    with talking(tmp_path_factory.mktemp("commands"), model, context_window=64_000) as running:
        yield running


@pytest.fixture
def place(server: RunningServer) -> str:
    """A session with room, in which nothing has to be compacted."""
    name = f"c{next(NAMES)}"
    begin(server, name, context_window=64_000)
    say(server, talk(40), f"{W}/sessions/{name}")
    return f"{W}/sessions/{name}"


def context(server: RunningServer, place: str, **asked: Any) -> dict[str, Any]:
    return ok(server.http.post(f"{place}/context", json=asked))


@pytest.mark.parametrize(("command", "instructions"), COMMANDS)
def test_the_users_command_compacts_at_the_next_context(
    server: RunningServer, place: str, model: ScriptedModel, command: str, instructions: str
) -> None:
    before = context(server, place, recall="never")
    assert (before["compaction"], before["command"]) == (None, None)
    say(server, [{"role": "user", "content": command}], place)
    made = context(server, place)
    receipt = made["compaction"]
    assert made["command"] == "compact" and made["recall"]["searched"] is False
    assert (receipt["applied"], receipt["trigger"], receipt["stage"]) == (True, "manual", "summary")
    assert made["tokens"]["total"] < before["tokens"]["total"] * 0.7
    # It is in the log word for word, and the model never sees it.
    log = ok(server.http.get(f"{place}/messages", params={"view": "log"}))["messages"]
    assert log[-1] == {"role": "user", "content": command}
    view = ok(server.http.get(f"{place}/messages"))["messages"]
    assert "/compact" not in str(view) and "/compact" not in str(made["messages"])
    if instructions:
        assert instructions in model.requests[-1][-1]["content"]
    # Once is enough: what comes after it is an ordinary turn.
    assert context(server, place)["compaction"] is None
    say(server, [{"role": "user", "content": "And now?"}], place)
    after = context(server, place)
    assert (after["command"], after["compaction"], after["messages"][-1]["content"]) == (None, None, "And now?")


def test_a_command_that_gains_nothing_says_so_and_changes_nothing(server: RunningServer) -> None:
    begin(server, "little")
    place = f"{W}/sessions/little"
    say(server, [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}], place)
    say(server, [{"role": "user", "content": "/compact"}], place)
    made = context(server, place)
    assert made["command"] == "compact" and made["compaction"]["applied"] is False and made["compaction"]["reason"]
    assert len(made["messages"]) == 2
    begin(server, "empty")
    say(server, [{"role": "user", "content": "/compact"}], f"{W}/sessions/empty")
    assert context(server, f"{W}/sessions/empty")["messages"] == []


def test_a_command_with_a_question_behind_it_is_carried_out_first(server: RunningServer, place: str) -> None:
    say(server, [{"role": "user", "content": "/compact"}, {"role": "user", "content": "What is next?"}], place)
    made = context(server, place)
    assert made["command"] is None and made["compaction"]["trigger"] == "manual" and made["compaction"]["applied"]
    assert made["messages"][-1]["content"] == "What is next?"


def test_without_auto_a_command_waits_and_that_is_said(server: RunningServer, place: str) -> None:
    say(server, [{"role": "user", "content": "/compact"}], place)
    made = context(server, place, auto=False)
    assert made["compaction"] is None and "compaction: the user asked for /compact" in made["degraded"][0]
    assert context(server, place)["compaction"]["applied"] is True


def test_a_command_can_be_undone(server: RunningServer, place: str) -> None:
    before = server.http.get(f"{place}/messages").content
    say(server, [{"role": "user", "content": "/compact"}], place)
    done = context(server, place)["compaction"]["compaction_id"]
    ok(server.http.post(f"{place}/compactions/{done}/undo"))
    assert server.http.get(f"{place}/messages").content == before
    assert context(server, place)["compaction"] is None, "it is not done again"


def test_a_model_that_fails_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    failing = ScriptedModel(*[UpstreamFailed("bad request", kind="auth")] * 9)
    with talking(tmp_path, failing, context_window=64_000, compaction={"fallback": "none"}) as server:
        place = f"{W}/sessions/fails"
        say(server, talk(40), place)
        say(server, [{"role": "user", "content": "/compact"}], place)
        made = context(server, place)
        assert made["command"] == "compact" and made["compaction"] is None
        assert any(line.startswith("compaction: ") for line in made["degraded"])
        assert len(made["messages"]) == len(talk(40))


def never(messages: object) -> str:
    raise AssertionError("the model was called for a command")


def test_complete_carries_a_command_out_without_the_model(server: RunningServer, place: str) -> None:
    with MemoryClient(server.url) as memory:
        session = memory.session(place.rpartition("/")[2])
        reply = session.complete(never, user="/compact 请保留订单号")
        assert reply.finish_reason == "command" and reply.attempts == 0 and reply.appended is None
        assert reply.text.startswith("Compacted: ") and reply.text.endswith(" tokens.")
        assert len(reply.compactions) == 1
        assert session.complete(lambda messages: "Fine.", user="And now?").text == "Fine."
        assert memory.session("new").complete(never, user="/compact").text.startswith("Nothing was compacted: ")


def test_complete_of_the_other_colour_does_so_too(server: RunningServer, place: str) -> None:
    async def played() -> None:
        async with AsyncMemoryClient(server.url) as memory:
            reply = await memory.session(place.rpartition("/")[2]).complete(never, user="/compact")
        assert reply.finish_reason == "command" and reply.text.startswith("Compacted: ")

    asyncio.run(played())


CUT: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    lambda said: {"messages": [said], "finish_reason": "length"},
    lambda said: {"messages": [said], "finish_reason": "max_tokens", "usage": {"prompt_tokens": 4000}},
    lambda said: {"messages": [{**said, "finish_reason": "length"}]},
    lambda said: {"messages": [{**said, "stop_reason": "max_tokens"}]},
]


@pytest.mark.parametrize("cut", CUT)
@pytest.mark.parametrize("preset", ["turns", "default"])
def test_after_an_answer_that_was_cut_the_preset_turns_compacts(
    server: RunningServer, cut: Callable[[dict[str, Any]], dict[str, Any]], preset: str
) -> None:
    name = f"cut{next(NAMES)}"
    begin(server, name, context_window=64_000, settings={"compaction": {"preset": preset}})
    place = f"{W}/sessions/{name}"
    say(server, talk(40), place)
    assert context(server, place)["compaction"] is None
    answer = {"role": "assistant", "content": "服务正常，而且 it goes on and"}
    ok(server.http.post(f"{place}/messages", json=cut(answer)))
    say(server, [{"role": "user", "content": "Go on. 请继续。"}], place)
    made = context(server, place)
    if preset == "default":
        assert made["compaction"] is None
        return
    assert made["compaction"]["applied"] is True and made["compaction"]["trigger"] == "overflow"
    assert context(server, place)["compaction"] is None, "once for one answer"
    say(server, [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Next?"}], place)
    assert context(server, place)["compaction"] is None


def test_the_sdk_tells_how_an_answer_ended(server: RunningServer) -> None:
    with MemoryClient(server.url) as memory:
        session = memory.session("sdk-cut", context_window=64_000, settings={"compaction": {"preset": "turns"}})
        session.append(talk(40))
        session.append({"role": "assistant", "content": "and"}, finish_reason="length")
        session.append({"role": "user", "content": "Go on."})
        receipt = session.context().compaction
        assert receipt is not None and receipt.applied and receipt.trigger == "overflow"

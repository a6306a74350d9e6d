from __future__ import annotations

import json
import threading
import time

import httpx
import pytest

from memory_service.errors import CallCancelled, ModelUnavailable, UpstreamFailed
from memory_service.llm.base import CallUsage, ChatMessage, ChatModel, Completion
from memory_service.llm.errors import classify
from memory_service.testing import _FAILURES, Cut, Failure, Hang, Reply, ScriptedModel, ScriptedServer

MESSAGES: list[ChatMessage] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello there"}]


def post(server: ScriptedServer, **body: object) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=120) as client:
        return client.post(f"{server.url}/chat/completions", json={"model": "any", "messages": MESSAGES, **body})


def test_a_model_plays_its_script() -> None:
    model: ChatModel = ScriptedModel(
        "One.",
        Reply(),
        Reply(text="Tw", finish_reason="length", input_tokens=7, cached_tokens=3),
        Reply(tool_call="search"),
        ModelUnavailable("No key."),
        lambda messages: str(len(messages)),
        context_window=4096,
    )
    assert model.context_window() == 4096
    assert model.count_tokens(MESSAGES) is None
    assert model.complete(MESSAGES) == Completion(
        text="One.", finish_reason="stop", usage=CallUsage(input_tokens=5, output_tokens=1), model="scripted"
    )
    assert model.complete(MESSAGES).text == ""
    cut = model.complete(MESSAGES)
    assert (cut.finish_reason, cut.usage) == ("length", CallUsage(input_tokens=7, output_tokens=1, cached_tokens=3))
    assert model.complete(MESSAGES).tool_calls_present
    with pytest.raises(ModelUnavailable, match="No key"):
        model.complete(MESSAGES)
    assert model.complete(MESSAGES).text == "2"


def test_a_model_records_requests_and_ends_with_its_script() -> None:
    model = ScriptedModel("One.")
    model.complete(MESSAGES)
    with pytest.raises(AssertionError, match="over after 1 steps"):
        model.complete(MESSAGES[:1])
    assert model.requests == [MESSAGES, MESSAGES[:1]]


def test_a_model_hangs_until_it_is_cancelled_or_out_of_time() -> None:
    model = ScriptedModel(Hang(), Hang(), "never")
    with pytest.raises(UpstreamFailed) as caught:
        model.complete(MESSAGES, timeout_seconds=0.05)
    assert caught.value.kind == "timeout"
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()
    with pytest.raises(CallCancelled):
        model.complete(MESSAGES, cancelled=stop.is_set)
    with pytest.raises(CallCancelled):
        model.complete(MESSAGES, cancelled=stop.is_set)
    assert len(model.requests) == 2


def test_a_server_answers_and_records() -> None:
    with ScriptedServer("One.", Reply(text="Tw", finish_reason="length"), Reply(tool_call="search")) as server:
        answer = post(server, max_tokens=5).json()
        assert answer["choices"][0]["message"] == {"role": "assistant", "content": "One."}
        assert answer["usage"]["total_tokens"] == 6
        assert post(server).json()["choices"][0]["finish_reason"] == "length"
        assert post(server).json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "search"
        over = post(server)
        assert (over.status_code, over.json()["error"]["code"]) == (500, "script_over")
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].body["max_tokens"] == 5
    assert server.requests[0].headers["content-type"] == "application/json"
    assert len(server.requests) == 4


def test_a_server_streams() -> None:
    with ScriptedServer("One two three.") as server:
        lines = [line for line in post(server, stream=True).text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    words = [choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]]
    assert "".join(words) == "One two three."
    assert len([word for word in words if word]) == 3
    assert chunks[-1]["usage"]["prompt_tokens"] == 5


def test_a_server_fails_as_it_is_told() -> None:
    script = (Failure(status=503, body="down", headers={"Retry-After": "2"}), Cut(), Hang(seconds=0.05))
    with ScriptedServer(*script) as server:
        down = post(server)
        assert (down.status_code, down.text, down.headers["retry-after"]) == (503, "down", "2")
        for _ in range(2):
            with pytest.raises(httpx.TransportError):
                post(server)


def test_leaving_a_server_ends_what_hangs() -> None:
    def ask() -> None:
        with pytest.raises(httpx.TransportError):
            post(server)

    with ScriptedServer(Hang()) as server:
        asking = threading.Thread(target=ask)
        asking.start()
        while not server.requests:
            time.sleep(0.01)
    asking.join(60)
    assert not asking.is_alive()


@pytest.mark.parametrize("name", sorted(_FAILURES))
def test_named_failures_are_what_providers_say(name: str) -> None:
    failure = Failure.named(name)
    told = classify(json.dumps(failure.body), status=failure.status)
    expected = {"bytes": "byte_overflow", "rate_limit": "rate_limit"}.get(name, "token_overflow")
    assert told.kind == expected
    if expected == "token_overflow" and name != "zhipu":
        assert told.window_tokens == 131_072

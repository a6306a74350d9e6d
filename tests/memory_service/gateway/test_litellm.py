"""Calls that go to their model through litellm: the real package, in front of a scripted server like OpenAI's."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memory_service.testing import Cut, Failure, Hang, Reply, ScriptedStep
from tests.memory_service.gateway.talking import Gateway, gateway, said, user
from tests.waiting import until

pytestmark = [
    pytest.mark.litellm,
    # litellm's own, when it reads a stream; as errors they would break it off.
    pytest.mark.filterwarnings("ignore:Accessing the 'model_"),
]
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 4}}
LONG = [message for n in range(30) for message in (user(f"Part {n}. " + "words " * 300), said(f"Noted {n}."))]
# Not a provider that the gateway speaks to itself.
MODEL = "cerebras/small"


@contextmanager
def through_litellm(
    home: Path, monkeypatch: pytest.MonkeyPatch, *script: ScriptedStep, **values: Any
) -> Iterator[tuple[Gateway, Gateway]]:
    """A server without upstreams, whose `llm_model` is served by a scripted one; and what stands behind it."""
    monkeypatch.setenv("CEREBRAS_API_KEY", "sk-own")
    with gateway(home / "upstream", *script) as up:
        own = {"gateway": {}, "llm_model": MODEL, "llm_api_base": up.upstream.url, **values}
        with gateway(home / "own", **own) as gate:
            yield gate, up


def test_a_talk_goes_on_with_tools_and_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, IMAGE]}
    called = Reply(text="Let me see.", thinking="Hm.", tool_call="look", arguments='{"at": "it"}')
    with through_litellm(tmp_path, monkeypatch, called, "A cat.") as (gate, up):
        client = gate.openai().chat.completions.with_raw_response
        first = client.create(
            model="small", messages=[asked], tools=[TOOL], temperature=0.3, extra_body={"top_k": 4, "未知": [1]}
        )
        message = first.parse().choices[0].message
        assert up.sent() == {
            "model": "small", "messages": [asked], "tools": [TOOL], "temperature": 0.3, "top_k": 4, "未知": [1],
        }  # fmt: skip
        assert up.upstream.requests[-1].headers["authorization"] == "Bearer sk-own"
        assert first.headers["x-request-id"] == "req_scripted"
        assert first.headers["x-ratelimit-remaining-requests"] == "41"
        assert message.tool_calls and message.tool_calls[0].function.arguments == '{"at": "it"}'
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "fur, whiskers"}
        answer = client.create(model="small", messages=[asked, message.model_dump(exclude_none=True), result]).parse()
        assert answer.choices[0].message.content == "A cat." and answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None and answer.usage.completion_tokens == 2
        [session] = gate.sessions()
        kept = gate.log(session)
        assert [each["role"] for each in kept] == ["user", "assistant", "tool", "assistant"]
        assert kept[0] == asked and kept[1]["reasoning_content"] == "Hm."


def test_a_stream_comes_as_it_is_made_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = Reply(text="one two three four five", pause_seconds=0.4)
    called = Reply(tool_call="look", arguments='{"at": "it"}')
    with through_litellm(tmp_path, monkeypatch, reply, called) as (gate, _):
        came, usage = list[tuple[float, str]](), None
        client = gate.openai().chat.completions
        for chunk in client.create(
            model=MODEL, messages=[user("Count.")], stream=True, stream_options={"include_usage": True}
        ):
            usage = chunk.usage or usage
            if chunk.choices and chunk.choices[0].delta.content:
                came.append((time.monotonic(), chunk.choices[0].delta.content))
        assert "".join(word for _, word in came) == reply.text
        assert came[-1][0] - came[0][0] > 0.3, "the pieces came together"
        assert usage is not None and usage.completion_tokens == 6
        talk = [user("Count."), said(reply.text), user("Look.")]
        stream = client.create(model=MODEL, messages=talk, tools=[TOOL], stream=True)
        pieces = [call for chunk in stream if chunk.choices for call in chunk.choices[0].delta.tool_calls or []]
        assert "".join(piece.function.arguments or "" for piece in pieces if piece.function) == '{"at": "it"}'
        [session] = gate.sessions()
        kept = gate.log(session)
        assert [each["role"] for each in kept] == ["user", "assistant", "user", "assistant"]
        assert kept[3]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "it"}'}


def test_what_the_provider_refuses_is_told_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Failure(status=429, body={"error": {"message": "slow down", "code": "rl"}}, headers={"retry-after": "7"})
    missing = Failure(status=404, body={"error": {"message": "no such model"}})
    with through_litellm(tmp_path, monkeypatch, slow, missing) as (gate, _):
        client = gate.openai().chat.completions
        with pytest.raises(openai.RateLimitError, match="slow down") as limited:
            client.create(model=MODEL, messages=[user("Hi")], stream=True)
        assert limited.value.response.headers["retry-after"] == "7" and limited.value.code == "rl"
        with pytest.raises(openai.NotFoundError, match="no such model"):
            client.create(model="nope", messages=[user("Hi")])


@pytest.mark.parametrize(
    "step",
    [
        Failure(status=200, body="<html>Log in</html>", headers={"content-type": "text/html"}),
        Failure(status=200, body='{"id": "1", "choi'),
        Cut(),
        Hang(seconds=30),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_fails_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: Failure | Cut | Hang, stream: bool
) -> None:
    with through_litellm(tmp_path, monkeypatch, step, "Better.", llm_timeout_seconds=3.0) as (gate, _):
        client = gate.openai().chat.completions
        with pytest.raises(openai.InternalServerError, match=MODEL) as failed:
            client.create(model=MODEL, messages=[user("Hi")], stream=stream)
        assert failed.value.status_code == 502 and "sk-own" not in str(failed.value)
        client.create(model=MODEL, messages=[user("Hi")])
        [session] = gate.sessions()
        assert gate.words(session) == ["u: Hi", "a: Better."]


def test_who_goes_away_ends_the_call_and_who_dies_leaves_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = " ".join(f"word{n}" for n in range(200))
    dying = Reply(text="one two three four", breaks_after=3, pause_seconds=0.05)
    with through_litellm(tmp_path, monkeypatch, Reply(text=words, pause_seconds=0.05), dying) as (gate, up):
        stream = gate.openai().chat.completions.create(model=MODEL, messages=[user("Talk.")], stream=True)
        for number, _ in enumerate(stream):
            if number == 5:
                break
        stream.close()
        [session] = gate.sessions()
        until(lambda: up.upstream.left == 1 and len(gate.log(session)) == 2)
        assert up.upstream.left == 1 and gate.log(session)[1]["_cut"] == "the client went away"
        with pytest.raises(openai.APIError, match=r"broke the connection"):
            list(gate.openai().chat.completions.create(model=MODEL, messages=[user("Count.")], stream=True))
        [other] = set(gate.sessions()) - {session}
        kept = gate.log(other)[1]
        assert kept["content"] == "one two " and kept["_cut"] == "the upstream broke off"


def test_an_overflow_is_recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with through_litellm(tmp_path, monkeypatch, Failure.named("openai"), *["Here."] * 8) as (gate, up):
        given = gate.openai().chat.completions.with_raw_response.create(model=MODEL, messages=[*LONG, user("And now?")])
        assert given.parse().choices[0].message.content == "Here." and given.headers["x-memory-compaction"]
        assert len(json.dumps(up.sent())) < len(json.dumps(up.sent(0)))


def test_a_client_chooses_no_address_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with through_litellm(tmp_path, monkeypatch, "Fine.") as (gate, up):
        own: dict[str, Any] = {
            "api_base": "http://127.0.0.1:9/v1",
            "base_url": "http://127.0.0.1:9/v1",
            "api_key": "sk-mine",
        }
        own |= {"mock_response": "Faked.", "callbacks": ["x"], "custom_llm_provider": "anthropic"}
        answer = gate.openai().chat.completions.create(model=MODEL, messages=[user("Hi")], extra_body=own)
        assert answer.choices[0].message.content == "Fine."
        assert up.upstream.requests[-1].headers["authorization"] == "Bearer sk-own"


def test_several_choices_come_whole_and_are_refused_as_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with through_litellm(tmp_path, monkeypatch, "Twice.", llm_model="azure_ai/small") as (gate, up):
        monkeypatch.setenv("AZURE_AI_API_KEY", "sk-own")
        client = gate.openai().chat.completions
        assert len(client.create(model="small", messages=[user("Say.")], n=2).choices) == 2
        with pytest.raises(openai.UnprocessableEntityError, match="Several choices cannot be streamed"):
            client.create(model="small", messages=[user("Say.")], n=2, stream=True)
        assert len(up.upstream.requests) == 1


def test_messages_of_anthropics_clients_are_translated_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = Reply(text="Let me see.", tool_call="look", arguments='{"at": "it"}')
    tool = {"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}
    with through_litellm(tmp_path, monkeypatch, called, called, "A cat.") as (gate, up):

        def send(**more: Any) -> httpx.Response:
            body = {"model": MODEL, "max_tokens": 50, "system": "Be nice.", "messages": [user("What?")], **more}
            return httpx.post(f"{gate.url}/messages", json=body, timeout=120)

        whole = send(tools=[tool], top_k=3).json()
        assert [block["type"] for block in whole["content"]] == ["text", "tool_use"]
        assert whole["stop_reason"] == "tool_use" and whole["usage"]["output_tokens"] == 3
        sent = up.sent()
        assert sent["messages"] == [{"role": "system", "content": "Be nice."}, user("What?")] and sent["top_k"] == 3
        streamed = send(tools=[tool], stream=True)
        events = [line[7:] for line in streamed.text.splitlines() if line.startswith("event: ")]
        assert events[0] == "message_start" and events[-1] == "message_stop"
        result = {"type": "tool_result", "tool_use_id": whole["content"][-1]["id"], "content": "fur"}
        talk = [
            user("What?"),
            {"role": "assistant", "content": whole["content"]},
            {"role": "user", "content": [result]},
        ]
        assert send(messages=talk, tools=[tool]).json()["content"][0]["text"] == "A cat."
        session, streaming = sorted(gate.sessions(), key=lambda name: -len(gate.log(name)))
        assert gate.log(streaming) == gate.log(session)[:2]
        assert [each["role"] for each in gate.log(session)] == ["user", "assistant", "user", "assistant"]
        document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
        losses: list[dict[str, Any]] = [
            {"context_management": {"edits": []}},
            {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            {"messages": [{"role": "user", "content": [document]}]},
        ]
        for lost in losses:
            refused = send(**lost)
            assert refused.status_code == 422 and "cannot be translated" in refused.json()["error"]["message"]


def test_an_upstream_of_any_provider_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANY_KEY", "sk-any")
    with gateway(tmp_path / "up", "Fine.") as up:
        named = {"any": {"protocol": "litellm", "base_url": up.upstream.url, "api_key_env": "ANY_KEY"}}
        with gateway(tmp_path / "own", gateway={"upstreams": named}) as gate:
            gate.openai().chat.completions.create(model="any/cerebras/big", messages=[user("Hi")])
            assert up.sent()["model"] == "big"
            assert up.upstream.requests[-1].headers["authorization"] == "Bearer sk-any"
            assert list(gate.openai().models.list()) == []


def test_a_provider_without_a_key_is_told_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with gateway(tmp_path, gateway={}, llm_model="gemini/gemini-2.5-flash") as gate:
        with pytest.raises(openai.InternalServerError, match=r"gemini-2\.5-flash .*key"):
            gate.openai().chat.completions.create(model="gemini-2.5-flash", messages=[user("Hi")])
        assert [model.id for model in gate.openai().models.list()] == ["gemini/gemini-2.5-flash"]


def test_litellm_is_imported_when_it_is_needed() -> None:
    code = "import memory_service.api, sys; sys.exit('litellm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

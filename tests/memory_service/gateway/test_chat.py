"""Chat completions through the gateway, with OpenAI's own client."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memory_service.testing import Cut, Failure, Hang, Reply
from tests.memory_service.gateway.talking import gateway, said, user
from tests.waiting import until

SYSTEM = {"role": "system", "content": "You are terse."}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}


def test_a_talk_is_one_session_and_goes_on_as_it_came(tmp_path: Path) -> None:
    with gateway(tmp_path, "Hello.", "On Tuesdays.", "Yes.") as gate:
        client, talk = gate.openai(), [SYSTEM, user("Hi")]
        for question in ("When do we deploy?", "Sure?", ""):
            given = client.chat.completions.with_raw_response.create(
                model="some-model", messages=talk, temperature=0.3, seed=7, extra_body={"top_k": 4, "未知": [1]}
            )
            answer = given.parse()
            assert gate.sent() == {
                "model": "some-model", "messages": talk, "temperature": 0.3, "seed": 7, "top_k": 4, "未知": [1],
            }  # fmt: skip
            talk += [answer.choices[0].message.model_dump(), user(question)]
        [session] = gate.sessions()
        assert given.headers["x-memory-session"] == session
        assert given.headers["x-memory-workspace"] == "default"
        assert given.headers["x-request-id"] == "req_scripted"
        assert given.headers["x-ratelimit-remaining-requests"] == "41"
        assert "total=" in given.headers["x-memory-tokens"]
        assert answer.usage is not None and answer.usage.completion_tokens == 1
        assert gate.words(session) == [
            "u: Hi", "a: Hello.", "u: When do we deploy?", "a: On Tuesdays.", "u: Sure?", "a: Yes.",
        ]  # fmt: skip


@pytest.mark.parametrize("inserted", ["relevant_context", "system-reminder"])
def test_what_a_plugin_puts_beside_a_prompt_for_one_call_parts_no_talk(tmp_path: Path, inserted: str) -> None:
    beside = {"type": "text", "text": f"<{inserted}>\nThe gate is oiled on Mondays.\n</{inserted}>"}
    with gateway(tmp_path, "On Tuesdays.", "Yes.") as gate:
        client = gate.openai()
        first: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "When do we deploy?"}, beside]}]
        answer = client.chat.completions.create(model="some-model", messages=first)
        talk: list[Any] = [user("When do we deploy?"), answer.choices[0].message.model_dump(), user("Sure?")]
        client.chat.completions.create(model="some-model", messages=talk)
        [session] = gate.sessions()
        assert gate.words(session)[1:] == ["a: On Tuesdays.", "u: Sure?", "a: Yes."]
        assert gate.sent()["messages"] == talk


def test_a_stream_comes_as_it_is_made(tmp_path: Path) -> None:
    reply = Reply(text="one two three four five", pause_seconds=0.4)
    with gateway(tmp_path, reply) as gate:
        came = list[tuple[float, str]]()
        begun = time.monotonic()
        stream = gate.openai().chat.completions.create(
            model="m", messages=[user("Count.")], stream=True, stream_options={"include_usage": True}
        )
        usage = None
        for chunk in stream:
            usage = chunk.usage or usage
            if chunk.choices and chunk.choices[0].delta.content:
                came.append((time.monotonic() - begun, chunk.choices[0].delta.content))
        assert "".join(word for _, word in came) == reply.text
        assert came[-1][0] - came[0][0] > 0.3, "the pieces came together"
        assert usage is not None and usage.completion_tokens == 6
        [session] = gate.sessions()
        assert gate.words(session) == ["u: Count.", "a: one two three four five"]


def test_tools_and_images_go_through_and_are_kept(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 40}}
    asked = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}
    with gateway(tmp_path, Reply(tool_call="look", arguments='{"at": "it"}'), Reply(text="A cat.")) as gate:
        client = gate.openai()
        stream = client.chat.completions.create(model="m", messages=[asked], tools=[TOOL], stream=True)
        calls = [call for chunk in stream if chunk.choices for call in chunk.choices[0].delta.tool_calls or []]
        name, arguments = calls[0].function, "".join(call.function.arguments or "" for call in calls if call.function)
        assert name is not None and name.name == "look" and json.loads(arguments) == {"at": "it"}
        call = {"id": calls[0].id, "type": "function", "function": {"name": "look", "arguments": arguments}}
        called = {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": calls[0].id, "content": "fur, whiskers"}
        talk = [asked, called, result]
        answer = client.chat.completions.create(model="m", messages=talk, tools=[TOOL])
        assert answer.choices[0].message.content == "A cat."
        assert gate.sent()["messages"] == talk and gate.sent()["tools"] == [TOOL]
        [session] = gate.sessions()
        kept = gate.log(session)
        assert [message["role"] for message in kept] == ["user", "assistant", "tool", "assistant"]
        assert kept[0] == asked


def test_memories_stand_before_the_last_words(tmp_path: Path) -> None:
    with gateway(tmp_path, "Fine.", "On Tuesdays.") as gate:
        gate.remember("Deploys go out on Tuesdays after the stand-up.")
        talk = [SYSTEM, user("Hi"), said("Fine."), user("When do the deploys go out?")]
        client = gate.openai()
        client.chat.completions.create(model="m", messages=talk[:2])
        given = client.chat.completions.with_raw_response.create(model="m", messages=talk)
        *before, block, last = gate.sent()["messages"]
        assert (before, last) == (talk[:3], talk[3])
        assert block["role"] == "user" and "Tuesdays" in block["content"]
        receipt = gate.server.http.get(f"/v1/workspaces/default/receipts/{given.headers['x-memory-receipt']}").json()
        assert receipt["included"]
        [session] = gate.sessions()
        assert "Tuesdays" not in json.dumps(gate.log(session)[:3])


def test_several_choices_are_sent_on_and_the_chosen_one_is_kept(tmp_path: Path) -> None:
    with gateway(tmp_path, "Twice.", "On.") as gate:
        client = gate.openai()
        answer = client.chat.completions.create(model="m", messages=[user("Say.")], n=2)
        assert len(answer.choices) == 2
        [session] = gate.sessions()
        assert gate.words(session) == ["u: Say."]
        client.chat.completions.create(model="m", messages=[user("Say."), said("Twice."), user("More.")])
        assert gate.words(session) == ["u: Say.", "a: Twice.", "u: More.", "a: On."]


def test_headers_switch_memory_off_or_let_it_only_read(tmp_path: Path) -> None:
    with gateway(tmp_path, "One.", "Two.") as gate:
        gate.remember("Deploys go out on Tuesdays after the stand-up.")
        talk = [user("When do the deploys go out?")]
        off = gate.openai(**{"X-Memory-Mode": "off"}).chat.completions.with_raw_response
        off.create(model="m", messages=talk)
        assert gate.sent()["messages"] == talk
        read = gate.openai(**{"X-Memory-Mode": "read-only"}).chat.completions.with_raw_response
        given = read.create(model="m", messages=talk)
        assert len(gate.sent()["messages"]) == 2 and "Tuesdays" in gate.sent()["messages"][0]["content"]
        assert given.headers["x-memory-receipt"]
        assert gate.sessions() == []
        with pytest.raises(openai.UnprocessableEntityError):
            gate.openai(**{"X-Memory-Mode": "sometimes"}).chat.completions.create(model="m", messages=talk)


def test_an_overflow_is_recovered_without_the_client(tmp_path: Path) -> None:
    long = [message for n in range(30) for message in (user(f"Part {n}. " + "words " * 300), said(f"Noted {n}."))]
    with gateway(tmp_path, Failure.named("openai"), "Here.") as gate:
        given = gate.openai().chat.completions.with_raw_response.create(
            model="m", messages=[SYSTEM, *long, user("And now?")]
        )
        assert given.parse().choices[0].message.content == "Here."
        assert given.headers["x-memory-compaction"]
        first, second = gate.sent(0)["messages"], gate.sent(1)["messages"]
        assert len(json.dumps(second)) < len(json.dumps(first))
        assert second[0] == SYSTEM and second[-1] == user("And now?")
        session = given.headers["x-memory-session"]
        assert len(gate.log(session)) == len(long) + 2
        undone = gate.server.http.post(
            f"/v1/workspaces/default/sessions/{session}/compactions/{given.headers['x-memory-compaction']}/undo"
        )
        assert undone.status_code == 200


def test_what_the_upstream_refuses_is_told_as_it_was(tmp_path: Path) -> None:
    with gateway(
        tmp_path,
        Failure(status=404, body={"error": {"message": "no such model", "code": "model_not_found"}}),
        Failure(status=429, body={"error": {"message": "slow down"}}, headers={"retry-after": "7"}),
        Failure(status=502, body="<html>Bad gateway</html>", headers={"content-type": "text/html"}),
    ) as gate:
        client = gate.openai()
        with pytest.raises(openai.NotFoundError, match="no such model"):
            client.chat.completions.create(model="nope", messages=[user("Hi")])
        with pytest.raises(openai.RateLimitError) as limited:
            client.chat.completions.create(model="m", messages=[user("Hi")], stream=True)
        assert limited.value.response.headers["retry-after"] == "7"
        with pytest.raises(openai.InternalServerError) as broken:
            client.chat.completions.create(model="m", messages=[user("Hi")])
        assert broken.value.response.text == "<html>Bad gateway</html>"
        [session] = gate.sessions()
        assert gate.words(session) == ["u: Hi"]


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (Cut(), "broke the connection"),
        (Hang(seconds=30), "did not answer in time"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_fails_is_an_error_that_says_so(
    tmp_path: Path, step: Cut | Hang, told: str, stream: bool
) -> None:
    with gateway(tmp_path, step, "Better.", llm_timeout_seconds=2.5) as gate:
        client = gate.openai()
        with pytest.raises(openai.InternalServerError, match=told) as failed:
            client.chat.completions.create(model="m", messages=[user("Hi")], stream=stream)
        assert failed.value.status_code == 502
        client.chat.completions.create(model="m", messages=[user("Hi")])
        [session] = gate.sessions()
        assert gate.words(session) == ["u: Hi", "a: Better."]


def test_an_upstream_that_dies_in_the_middle_leaves_what_was_said(tmp_path: Path) -> None:
    with gateway(tmp_path, Reply(text="one two three four", breaks_after=3), "Whole.") as gate:
        client, talk = gate.openai(), [user("Count.")]
        with pytest.raises(openai.APIConnectionError):
            list(client.chat.completions.create(model="m", messages=talk, stream=True))
        [session] = gate.sessions()
        kept = gate.log(session)
        assert kept[1]["content"] == "one two " and kept[1]["_cut"] == "the upstream broke off"
        # The client has nothing of the answer in its list, and goes on.
        client.chat.completions.create(model="m", messages=[*talk, user("Again.")])
        assert gate.words(session) == ["u: Count.", "a: one two ", "u: Again.", "a: Whole."]
        assert "_cut" not in json.dumps(gate.sent())


def test_a_client_that_goes_away_ends_the_call(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(200))
    with gateway(tmp_path, Reply(text=words, pause_seconds=0.05), Hang(seconds=30)) as gate:
        stream = gate.openai().chat.completions.create(model="m", messages=[user("Talk.")], stream=True)
        for number, _ in enumerate(stream):
            if number == 5:
                break
        stream.close()
        [session] = gate.sessions()
        until(lambda: gate.upstream.left == 1 and len(gate.log(session)) == 2)
        assert gate.upstream.left == 1
        kept = gate.log(session)[1]
        assert kept["_cut"] == "the client went away"
        assert kept["content"].startswith("word0 word1 ") and len(kept["content"]) < len(words) / 2
        with pytest.raises(openai.APITimeoutError):
            gate.openai().with_options(timeout=0.3).chat.completions.create(model="m", messages=[user("Wait.")])


def test_twenty_streams_at_once_lose_nothing(tmp_path: Path) -> None:
    replies = [Reply(text=f"one two three {n}", pause_seconds=0.02) for n in range(20)]
    with gateway(tmp_path, *replies) as gate:

        async def talk() -> list[str]:
            # Of a machine that has much to do, some are refused with the time to wait: then nothing was done.
            async with openai.AsyncOpenAI(base_url=gate.url, api_key="any", max_retries=20) as client:

                async def one(n: int) -> str:
                    stream = await client.chat.completions.create(
                        model="m",
                        messages=[user(f"Talk {n}")],
                        stream=True,
                    )
                    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

                return await asyncio.gather(*(one(n) for n in range(20)))

        heard = asyncio.run(talk())
        assert sorted(heard) == sorted(reply.text for reply in replies)
        kept = [gate.words(session)[1] for session in gate.sessions()]
        assert sorted(kept) == sorted(f"a: {reply.text}" for reply in replies)


def test_the_models_of_all_upstreams_are_listed(tmp_path: Path) -> None:
    with gateway(tmp_path) as gate:
        assert [model.id for model in gate.openai().models.list()] == ["scripted"]
        assert [model.id for model in gate.anthropic().models.list()] == ["scripted"]


def test_the_command_to_compact_is_carried_out_here(tmp_path: Path) -> None:
    long = [message for n in range(30) for message in (user(f"Part {n}. " + "words " * 300), said(f"Noted {n}."))]
    with gateway(tmp_path, "Seen.", "On.") as gate:
        client = gate.openai()
        client.chat.completions.create(model="m", messages=[*long, user("Seen?")])
        talk = [*long, user("Seen?"), said("Seen."), user("/compact")]
        answer = client.chat.completions.create(model="m", messages=talk)
        told = answer.choices[0].message.content or ""
        assert told.startswith("Compacted: ") and len(gate.upstream.requests) == 1
        client.chat.completions.create(model="m", messages=[*talk, said(told), user("Go on.")])
        assert len(json.dumps(gate.sent())) < len(json.dumps(gate.sent(0))) / 2
        assert len(gate.sessions()) == 1


def test_without_upstreams_the_model_of_the_settings_is_asked(tmp_path: Path) -> None:
    with gateway(tmp_path, "Fine.", "Too.") as gate:
        base = gate.upstream.url
        own: dict[str, Any] = {"gateway": {}, "llm_model": "openai/small", "llm_api_base": base}
        with gateway(tmp_path / "own", **own) as other:
            other.openai().chat.completions.create(model="openai/small", messages=[user("Hi")])
            assert gate.sent()["model"] == "small"
            answer = httpx.post(f"{other.url}/chat/completions", json={"messages": [user("Hi")]})
            assert answer.status_code == 200 and gate.sent()["model"] == "small"


def test_a_server_without_a_model_says_what_to_set(tmp_path: Path) -> None:
    with gateway(tmp_path, gateway={}) as gate, pytest.raises(openai.NotFoundError, match="llm_model"):
        gate.openai().chat.completions.create(model="m", messages=[user("Hi")])


def test_threads_of_one_talk_do_not_mix(tmp_path: Path) -> None:
    """Two clients go on with one talk at once, each in its own way."""
    with gateway(tmp_path, "Start.", *(Reply(text=f"To {n}.") for n in range(6))) as gate:
        client, talk = gate.openai(), [user("Begin.")]
        client.chat.completions.create(model="m", messages=talk)
        answers = dict[str, str | None]()

        def go_on(name: str) -> None:
            answer = client.chat.completions.create(model="m", messages=[*talk, said("Start."), user(name)])
            answers[name] = answer.choices[0].message.content

        threads = [threading.Thread(target=go_on, args=(f"Way {n}",)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept = [gate.words(session) for session in gate.sessions()]
        assert sorted(kept) == sorted(
            ["u: Begin.", "a: Start.", f"u: {name}", f"a: {answer}"] for name, answer in answers.items()
        )


@pytest.mark.parametrize("route", ["chat/completions", "responses", "messages"])
@pytest.mark.parametrize("body", [b'{"messages":' + b"[" * 100_000, b"{", b"[]", b"\xff"])
def test_a_body_that_cannot_be_read_is_the_callers_fault(tmp_path: Path, route: str, body: bytes) -> None:
    with gateway(tmp_path) as gate:
        headers = {"Content-Type": "application/json"}
        answer = gate.server.http.post(f"/v1/{route}", content=body, headers=headers)
        assert answer.status_code == 422 and "The body is no JSON" in answer.text

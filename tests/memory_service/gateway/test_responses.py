"""OpenAI's Responses through the gateway, with OpenAI's own client."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from memory_service.testing import Cut, Failure, Hang, Reply
from tests.memory_service.gateway.talking import Gateway, gateway, said, user
from tests.waiting import until

TOOL: dict[str, Any] = {
    "type": "function", "name": "look", "strict": False,
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}  # fmt: skip
LOOK = Reply(text="Let me see.", thinking="What is it?", tool_call="look", arguments='{"at": "it"}')
LONG = [message for n in range(30) for message in (user(f"Part {n}. " + "words " * 300), said(f"Noted {n}."))]


def ask(gate: Gateway, given: Any, headers: dict[str, str] | None = None, **parameters: Any) -> Any:
    """Ask, and give the raw answer."""
    return gate.openai(**headers or {}).responses.with_raw_response.create(model="m", input=given, **parameters)


def test_a_talk_is_one_session_and_goes_on_as_it_came(tmp_path: Path) -> None:
    with gateway(tmp_path, "Hello.", "On Tuesdays.", "Yes.") as gate:
        talk: list[Any] = [{"role": "developer", "content": "Be terse."}, user("Hi")]
        for question in ("When do we deploy?", "Sure?", ""):
            own: dict[str, Any] = {
                "instructions": "You help.", "temperature": 0.3, "store": False, "reasoning": {"effort": "low"},
                "include": ["reasoning.encrypted_content"], "metadata": {"k": "v"}, "text": {"verbosity": "low"},
            }  # fmt: skip
            given = ask(gate, talk, extra_body={"未知": [1]}, **own)
            assert gate.sent() == {"model": "m", "input": talk, "未知": [1], **own}
            assert gate.upstream.requests[-1].path == "/v1/responses"
            answer = given.parse()
            talk += [*(item.to_dict() for item in answer.output), user(question)]
        [session] = gate.sessions()
        assert given.headers["x-memory-session"] == session
        assert given.headers["x-request-id"] == "req_scripted"
        assert given.headers["x-ratelimit-remaining-requests"] == "41"
        assert answer.output_text == "Yes." and answer.usage is not None and answer.usage.output_tokens == 1
        assert gate.words(session) == [
            "u: Hi", "a: Hello.", "u: When do we deploy?", "a: On Tuesdays.", "u: Sure?", "a: Yes.",
        ]  # fmt: skip


def test_text_alone_stays_text_and_memories_stand_before_the_last_words(tmp_path: Path) -> None:
    with gateway(tmp_path, "Hello.", "On Tuesdays.") as gate:
        ask(gate, "Hi")
        assert gate.sent() == {"model": "m", "input": "Hi"}
        gate.remember("Deploys go out on Tuesdays after the stand-up.")
        talk = [user("Hi"), said("Hello."), user("When do the deploys go out?")]
        given = ask(gate, talk)
        *before, block, last = gate.sent()["input"]
        assert (before, last) == (talk[:2], talk[2])
        assert block["role"] == "user" and "Tuesdays" in block["content"] and given.headers["x-memory-receipt"]
        assert len(gate.sessions()) == 1


def test_tools_reasoning_and_images_go_through_and_are_kept(tmp_path: Path) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "iVBORw0KGgo" * 40, "detail": "auto"}
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is it?"}, image]}
    with gateway(tmp_path, LOOK, "A cat.", LOOK, "A cat.") as gate:
        for stream in (False, True):
            talk: list[Any] = [asked]
            client = gate.openai(**{"X-Memory-Workspace": f"streamed-{stream}".lower()})
            for _ in range(2):
                if stream:
                    with client.responses.stream(model="m", input=talk, tools=[TOOL], store=False) as events:
                        answer: Any = events.get_final_response()
                else:
                    answer = client.responses.create(model="m", input=talk, tools=[TOOL], store=False)
                assert gate.sent()["input"] == talk and gate.sent()["tools"] == [TOOL]
                talk += [item.to_dict() for item in answer.output]
                if answer.output[-1].type == "function_call":
                    output = {"type": "function_call_output", "call_id": answer.output[-1].call_id, "output": "fur"}
                    talk.append(output)
            assert [item.get("type") for item in talk] == [
                "message", "reasoning", "message", "function_call", "function_call_output", "message",
            ]  # fmt: skip
        names = ("streamed-false", "streamed-true")
        whole, streamed = (gate.log(gate.sessions(name)[0], name) for name in names)
        assert [message["role"] for message in whole] == ["user", "assistant", "tool", "assistant"]
        assert whole[1]["tool_calls"] == streamed[1]["tool_calls"] and whole[1]["content"] == "Let me see."
        bare = [[{**item, "id": ""} for item in log[1]["_items"]] for log in (whole, streamed)]
        assert bare[0] == bare[1] and bare[0][0]["encrypted_content"] == "c2VhbGVk"
        assert whole[0]["content"][1]["image_url"]["url"] == image["image_url"]


def test_a_previous_answer_tells_the_session_and_its_view_goes_on(tmp_path: Path) -> None:
    with gateway(tmp_path, LOOK, "A cat.", "Yes.", "No.") as gate:
        first = ask(gate, "What is it?", tools=[TOOL], instructions="Be nice.").parse()
        output = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "fur"}
        second = ask(gate, [output], previous_response_id=first.id).parse()
        sent = gate.sent()
        assert "previous_response_id" not in sent and "instructions" not in sent
        assert [item.get("type", item.get("role")) for item in sent["input"]] == [
            "user", "reasoning", "message", "function_call", "function_call_output",
        ]  # fmt: skip
        assert sent["input"][1]["encrypted_content"] == "c2VhbGVk" and "id" not in sent["input"][2]
        third = ask(gate, "Sure?", previous_response_id=second.id)
        [session] = gate.sessions()
        assert [message["role"] for message in gate.log(session)] == [
            "user", "assistant", "tool", "assistant", "user", "assistant",
        ]  # fmt: skip
        # From an earlier answer on it is another way.
        other = ask(gate, "Really?", previous_response_id=second.id)
        assert other.headers["x-memory-branch-of"] == session == third.headers["x-memory-session"]
        branch = other.headers["x-memory-session"]
        assert [message["content"] for message in gate.log(branch)][-3:] == ["A cat.", "Really?", "No."]


def test_a_previous_answer_is_found_after_a_restart_and_in_another_process(tmp_path: Path) -> None:
    with gateway(tmp_path, "One.") as gate:
        first = ask(gate, "Hi", instructions="Be nice.").parse()
        with gateway(tmp_path, "Two.", "Three.") as other:
            second = ask(other, "And?", previous_response_id=first.id).parse()
            assert other.sent()["input"][0] == user("Hi") and len(other.sent()["input"]) == 3
            stranger = ask(other, "And?", previous_response_id="resp_of_somebody")
            assert other.sent() == {"model": "m", "input": "And?", "previous_response_id": "resp_of_somebody"}
            assert "no session" in stranger.headers["x-memory-degraded"]
        assert len(gate.sessions()) == 1 and second.output_text == "Two."
        [session] = gate.sessions()
        assert gate.words(session) == ["u: Hi", "a: One.", "u: And?", "a: Two."]


def test_a_conversation_is_a_session_by_its_id(tmp_path: Path) -> None:
    with gateway(tmp_path, "One.", "Two.", Cut(), "Three.", "Four.") as gate:
        ask(gate, "Hi", conversation="conv_1")
        ask(gate, [user("Hi")], conversation={"id": "conv_1"})
        assert "conversation" not in gate.sent() and len(gate.sent()["input"]) == 3
        with pytest.raises(openai.InternalServerError):
            ask(gate, "Again", conversation="conv_1")
        ask(gate, "Again", conversation="conv_1")
        assert gate.words("conv_1") == ["u: Hi", "a: One.", "u: Hi", "a: Two.", "u: Again", "a: Three."]
        ask(gate, "Hi", conversation="会话 一")
        assert len(gate.sessions()) == 2


def test_talks_that_begin_alike_part_by_key_or_metadata(tmp_path: Path) -> None:
    with gateway(tmp_path, *"12345") as gate:
        for own in ({}, {"prompt_cache_key": "a"}, {"metadata": {"session_id": "b"}}, {"metadata": {"turn": "1"}}):
            ask(gate, "Hi", **own)
        # What tells nothing of a conversation parts nothing: the fourth is the first once more, answered otherwise.
        assert len([name for name in gate.sessions() if "branch" not in name]) == 3


def test_an_edited_turn_is_a_branch_and_a_retry_is_not_said_twice(tmp_path: Path) -> None:
    with gateway(tmp_path, "A1", "A1", "A2", "B2") as gate:
        session = ask(gate, [user("Hi")]).headers["x-memory-session"]
        ask(gate, [user("Hi")])
        assert gate.words(session) == ["u: Hi", "a: A1"]
        assert ask(gate, [user("Hi"), said("A1"), user("On")]).headers["x-memory-session"] == session
        edited = ask(gate, [user("Hi"), said("A1"), user("On, edited")])
        assert edited.headers["x-memory-branch-of"] == session
        assert gate.words(session) == ["u: Hi", "a: A1", "u: On", "a: A2"]


@pytest.mark.parametrize("long", [False, True], ids=["whole", "compacted"])
def test_two_answers_without_input_between_them_are_one_talk(tmp_path: Path, long: bool) -> None:
    call = Reply(text="", tool_call="look", arguments='{"at": "it"}')
    window: dict[str, Any] = {"context_window": 6_000} if long else {}
    with gateway(tmp_path, "Let me see.", call, "A cat.", "Yes.", **window) as gate:
        talk: list[Any] = [*(LONG if long else []), user("What is it?")]
        for _ in range(2):
            talk += [item.to_dict() for item in ask(gate, talk, tools=[TOOL]).parse().output]
        talk.append({"type": "function_call_output", "call_id": talk[-1]["call_id"], "output": "fur"})
        talk += [item.to_dict() for item in ask(gate, talk, tools=[TOOL]).parse().output]
        given = ask(gate, [*talk, user("Sure?")], tools=[TOOL])
        [session] = gate.sessions()
        assert "x-memory-branch-of" not in given.headers
        end = [message["role"] for message in gate.log(session)][-7:]
        assert end == ["user", "assistant", "assistant", "tool", "assistant", "user", "assistant"]
        # What the view still shows goes on as the client has it, ids and all.
        sent = gate.sent()["input"]
        assert sent[-5:] == [*talk[-4:], user("Sure?")]
        assert (sent == [*talk, user("Sure?")]) is not long


def test_a_stream_comes_as_it_is_made(tmp_path: Path) -> None:
    reply = Reply(text="one two three four five", pause_seconds=0.4)
    with gateway(tmp_path, reply) as gate:
        came, begun = list[float](), time.monotonic()
        for event in gate.openai().responses.create(model="m", input="Count.", stream=True):
            if event.type == "response.output_text.delta":
                came.append(time.monotonic() - begun)
        assert len(came) == 5 and came[-1] - came[0] > 0.3, "the pieces came together"
        [session] = gate.sessions()
        assert gate.words(session) == ["u: Count.", "a: one two three four five"]


def test_an_async_client_is_served_too(tmp_path: Path) -> None:
    with gateway(tmp_path, "One.", "Two.") as gate:

        async def talk() -> list[str]:
            async with openai.AsyncOpenAI(base_url=gate.url, api_key="any", max_retries=0) as client:
                first = await client.responses.create(model="m", input="Hi")
                stream = await client.responses.create(
                    model="m", input="On", previous_response_id=first.id, stream=True
                )
                return [event.delta async for event in stream if event.type == "response.output_text.delta"]

        assert asyncio.run(talk()) == ["Two."]
        [session] = gate.sessions()
        assert gate.words(session) == ["u: Hi", "a: One.", "u: On", "a: Two."]


def test_an_overflow_is_recovered_without_the_client(tmp_path: Path) -> None:
    with gateway(tmp_path, Failure.named("openai"), "Here.") as gate:
        opening = {"role": "developer", "content": "Be terse."}
        given = ask(gate, [opening, *LONG, user("And now?")], instructions="You help.")
        assert given.parse().output_text == "Here." and given.headers["x-memory-compaction"]
        first, second = gate.sent(0)["input"], gate.sent(1)["input"]
        assert len(json.dumps(second)) < len(json.dumps(first))
        assert second[0] == opening and second[-1] == user("And now?")
        session = given.headers["x-memory-session"]
        assert len(gate.log(session)) == len(LONG) + 2


def failed_stream(code: str, *before: str) -> Failure:
    """A stream that fails after these events, with status 200."""
    response = {"id": "resp_f", "object": "response", "status": "failed", "output": [],
                "error": {"code": code, "message": "Your input exceeds the context window of this model."}}  # fmt: skip
    kinds = ["response.created", "response.in_progress", *before, "response.failed"]
    events = [{"type": kind, "sequence_number": n, "delta": "So", "output_index": 0, "response": response}
              for n, kind in enumerate(kinds)]  # fmt: skip
    body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    return Failure(status=200, body=body, headers={"content-type": "text/event-stream", "x-request-id": "req_f"})


def test_a_stream_that_fails_as_too_long_before_it_says_anything_is_recovered(tmp_path: Path) -> None:
    with gateway(tmp_path, failed_stream("context_length_exceeded"), "Here.") as gate:
        raw = gate.openai().responses.with_raw_response.create(model="m", input=[*LONG, user("So?")], stream=True)
        kinds = [event.type for event in raw.parse()]
        assert raw.headers["x-memory-compaction"] and kinds.count("response.created") == 1
        assert "response.failed" not in kinds and kinds[-1] == "response.completed"
        assert len(json.dumps(gate.sent(1)["input"])) < len(json.dumps(gate.sent(0)["input"]))
        assert gate.words(raw.headers["x-memory-session"])[-2:] == ["u: So?", "a: Here."]


@pytest.mark.parametrize(
    ("code", "before"), [("server_error", ()), ("context_length_exceeded", ("response.output_text.delta",))]
)
def test_another_failure_of_a_stream_or_a_later_one_goes_through_as_it_came(
    tmp_path: Path, code: str, before: tuple[str, ...]
) -> None:
    failure = failed_stream(code, *before)
    if not before:
        failure = replace(failure, body=str(failure.body).replace("Your input exceeds the context window", "Sorry"))
    with gateway(tmp_path, failure, "Never.") as gate:
        raw = gate.openai().responses.with_raw_response.create(model="m", input=[*LONG, user("So?")], stream=True)
        assert [event.type for event in raw.parse()][-1] == "response.failed"
        assert len(gate.upstream.requests) == 1 and raw.headers["x-request-id"] == "req_f"


def test_an_answer_that_was_cut_is_known_as_such(tmp_path: Path) -> None:
    with gateway(
        tmp_path, Reply(text="So it", finish_reason="length"), "Done.", compaction={"preset": "turns"}
    ) as gate:
        first = ask(gate, [*LONG, user("Tell all.")]).parse()
        assert first.status == "incomplete"
        given = ask(gate, [*LONG, user("Tell all."), said("So it"), user("Go on.")])
        assert given.headers["x-memory-compaction"]


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
        with pytest.raises(openai.InternalServerError, match=told) as failed:
            gate.openai().responses.create(model="m", input="Hi", stream=stream)
        assert failed.value.status_code == 502
        ask(gate, "Hi")
        [session] = gate.sessions()
        assert gate.words(session) == ["u: Hi", "a: Better."]


def test_what_the_upstream_refuses_is_told_as_it_was(tmp_path: Path) -> None:
    with gateway(
        tmp_path,
        Failure(status=404, body={"error": {"message": "no such model", "code": "model_not_found"}}),
        Failure(status=429, body={"error": {"message": "slow down"}}, headers={"retry-after": "7"}),
    ) as gate:
        with pytest.raises(openai.NotFoundError, match="no such model"):
            ask(gate, "Hi")
        with pytest.raises(openai.RateLimitError) as limited:
            gate.openai().responses.create(model="m", input="Hi", stream=True)
        assert limited.value.response.headers["retry-after"] == "7"


def test_an_upstream_that_dies_in_the_middle_leaves_what_was_said(tmp_path: Path) -> None:
    with gateway(tmp_path, Reply(text="one two three four", breaks_after=6), "Whole.") as gate:
        with pytest.raises(openai.APIConnectionError):
            list(gate.openai().responses.create(model="m", input="Count.", stream=True))
        [session] = gate.sessions()
        kept = gate.log(session)[1]
        assert kept["content"] == "one two " and kept["_cut"] == "the upstream broke off"
        ask(gate, [user("Count."), user("Again.")])
        assert gate.words(session) == ["u: Count.", "a: one two ", "u: Again.", "a: Whole."]
        assert "_cut" not in json.dumps(gate.sent())


def test_a_client_that_goes_away_ends_the_call(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(200))
    with gateway(tmp_path, Reply(text=words, pause_seconds=0.05)) as gate:
        stream = gate.openai().responses.create(model="m", input="Talk.", stream=True)
        for number, _ in enumerate(stream):
            if number == 9:
                break
        stream.close()
        [session] = gate.sessions()
        until(lambda: gate.upstream.left == 1 and len(gate.log(session)) == 2)
        kept = gate.log(session)[1]
        assert gate.upstream.left == 1 and kept["_cut"] == "the client went away"
        assert kept["content"].startswith("word0 word1 ") and len(kept["content"]) < len(words) / 2


@pytest.mark.parametrize(
    "item",
    [
        {"type": "item_reference", "id": "msg_1"},
        {"role": "user", "content": [{"type": "hologram"}]},
        {"role": "nobody", "content": "x"},
    ],
)
def test_items_of_an_unknown_shape_go_through_and_are_kept(tmp_path: Path, item: dict[str, Any]) -> None:
    with gateway(tmp_path, "Seen.") as gate:
        talk = [{"role": "user", "content": "Look."}, item]
        given = ask(gate, talk)
        assert gate.sent()["input"] == talk and "x-memory-degraded" not in given.headers
        [session] = gate.sessions()
        assert len(gate.log(session)) == 3


def test_a_call_in_the_background_goes_through_and_says_that_nothing_is_kept(tmp_path: Path) -> None:
    with gateway(tmp_path, "Seen.") as gate:
        given = ask(gate, "Hi", background=True)
        assert gate.sent()["background"] is True and "background" in given.headers["x-memory-degraded"]
        assert gate.server.http.get("/v1/workspaces").json()["workspaces"] == []


def test_headers_switch_memory_off_or_let_it_only_read(tmp_path: Path) -> None:
    with gateway(tmp_path, "One.", "Two.") as gate:
        gate.remember("Deploys go out on Tuesdays after the stand-up.")
        talk = [user("When do the deploys go out?")]
        ask(gate, talk, {"X-Memory-Mode": "off"})
        assert gate.sent()["input"] == talk
        given = ask(gate, talk, {"X-Memory-Mode": "read-only"}, previous_response_id="resp_1")
        assert len(gate.sent()["input"]) == 2 and "Tuesdays" in gate.sent()["input"][0]["content"]
        assert gate.sent()["previous_response_id"] == "resp_1" and given.headers["x-memory-receipt"]
        assert gate.sessions() == []


def test_a_key_for_another_workspace_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    with gateway(tmp_path, "1", "2", api_keys={"key-a": "ann", "key-all": "*"}) as gate:

        def call(key: str, **parameters: Any) -> Any:
            headers = {"X-Memory-Workspace": parameters.pop("workspace", "ann")}
            client = openai.OpenAI(base_url=gate.url, api_key=key, max_retries=0, default_headers=headers)
            return client.responses.with_raw_response.create(model="m", input="Hi", **parameters)

        first = call("key-a").parse()
        with pytest.raises(openai.PermissionDeniedError, match="not for the workspace"):
            call("key-a", workspace="bob")
        # The answer of one workspace is no answer of another.
        other = call("key-all", workspace="bob", previous_response_id=first.id)
        assert "no session" in other.headers["x-memory-degraded"]
        assert gate.sent()["input"] == "Hi" and gate.sent()["previous_response_id"] == first.id


def test_a_long_history_at_every_call_is_appended_once(tmp_path: Path) -> None:
    history = [message for n in range(400) for message in (user(f"{n} " + "x" * 2_500), said(f"{n} " + "y" * 2_500))]
    assert len(json.dumps(history)) > 2_000_000
    with gateway(
        tmp_path, *(Reply(text=f"a{n}") for n in range(2)), context_window=2_000_000, flush={"mode": "off"}
    ) as gate:
        talk: list[Any] = [*history, user("q0")]
        for number in range(2):
            session = ask(gate, talk).headers["x-memory-session"]
            talk += [said(f"a{number}"), user(f"q{number + 1}")]
        assert len(gate.log(session)) == len(history) + 4 and gate.sessions() == [session]
        assert gate.sent()["input"] == talk[:-2]


def test_the_command_to_compact_is_carried_out_here(tmp_path: Path) -> None:
    with gateway(tmp_path, "Seen.") as gate:
        ask(gate, [*LONG, user("Seen?")])
        talk: list[Any] = [*LONG, user("Seen?"), said("Seen."), user("/compact")]
        assert ask(gate, talk).parse().output_text.startswith("Compacted: ")
        with gate.openai().responses.stream(model="m", input=[*talk, said("Done."), user("/compact")]) as events:
            assert events.get_final_response().output_text
        assert len(gate.upstream.requests) == 1

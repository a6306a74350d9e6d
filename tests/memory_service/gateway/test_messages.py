"""Anthropic's messages through the gateway, with Anthropic's own client."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic
import pytest

from memory_service.testing import Cut, Failure, Reply
from tests.memory_service.gateway.talking import Gateway, gateway, said, user
from tests.waiting import until

SYSTEM = [{"type": "text", "text": "You are terse.", "cache_control": {"type": "ephemeral"}}]
TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}
LONG = [message for n in range(30) for message in (user(f"Part {n}. " + "words " * 300), said(f"Noted {n}."))]


def marked(text: str) -> dict[str, Any]:
    part = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
    return {"role": "user", "content": [part]}


def ask(gate: Gateway, talk: list[Any], **parameters: Any) -> Any:
    raw = gate.anthropic().messages.with_raw_response
    return raw.create(model="m", max_tokens=100, messages=talk, **parameters)


def test_the_summary_of_a_hosts_own_compaction_is_no_part_of_the_talk(tmp_path: Path) -> None:
    with gateway(tmp_path, "On Tuesdays.", "<summary>They deploy.</summary>", "Yes.", protocol="anthropic") as gate:
        talk = [user("When do we deploy?")]
        ask(gate, talk, tools=[TOOL])
        order = "CRITICAL: Respond with TEXT ONLY.\n\nYour task is to create a detailed summary of the conversation."
        compacting = [*talk, said("On Tuesdays."), user(order)]
        given = ask(gate, compacting, tools=[TOOL])
        assert gate.sent()["messages"] == compacting and "x-memory-session" not in given.headers
        ask(gate, [*talk, said("On Tuesdays."), user("Sure?")], tools=[TOOL])
        [session] = gate.sessions()
        logged = gate.words(session)
        assert len(logged) == 4 and logged[2] == "u: Sure?" and "CRITICAL" not in str(logged)


def test_a_talk_with_tools_and_thinking_is_one_session_and_goes_on_as_it_came(tmp_path: Path) -> None:
    called = Reply(text="Let me see.", thinking="What is it?", tool_call="look", arguments='{"at": "it"}')
    with gateway(tmp_path, called, called, "A cat.", protocol="anthropic") as gate:
        own: dict[str, Any] = {"system": SYSTEM, "tools": [TOOL], "metadata": {"user_id": "ann"}}
        first = ask(gate, [marked("What is it?")], extra_body={"top_k": 3}, **own)
        answer = first.parse()
        assert [block.type for block in answer.content] == ["thinking", "text", "tool_use"]
        assert gate.sent() == {
            "model": "m", "max_tokens": 100, "messages": [marked("What is it?")], "top_k": 3, **own,
        }  # fmt: skip
        assert gate.upstream.requests[-1].path == "/v1/messages"
        assert gate.upstream.requests[-1].headers["anthropic-version"]
        assert first.headers["request-id"] == "req_scripted" and first.headers["x-memory-session"]
        with gate.anthropic().messages.stream(
            model="m", max_tokens=100, messages=[marked("What is it?")], tools=[TOOL], metadata={"user_id": "bob"}
        ) as stream:
            streamed = stream.get_final_message()
        assert [block.to_dict() for block in streamed.content] == [block.to_dict() for block in answer.content]
        result = {"type": "tool_result", "tool_use_id": answer.content[-1].id, "content": "fur"}
        talk = [
            user("What is it?"),
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": [result]},
        ]
        last = ask(gate, talk, system=SYSTEM, tools=[TOOL], metadata={"user_id": "ann"})
        assert last.headers["x-memory-session"] == first.headers["x-memory-session"]
        sent = gate.sent()["messages"]
        assert "What is it?" in json.dumps(sent[0]) and sent[2] == talk[2]
        assert sent[1]["content"][0] == {"type": "thinking", "thinking": "What is it?", "signature": "c2lnbmVk"}
        kept = [gate.log(session) for session in gate.sessions()]
        assert sorted(len(log) for log in kept) == [2, 4]
        # The streamed answer is kept as the whole one was.
        assert kept[0][1] == kept[1][1]


def test_memories_stand_in_the_last_words_of_the_user(tmp_path: Path) -> None:
    with gateway(tmp_path, "On Tuesdays.", protocol="anthropic") as gate:
        gate.remember("Deploys go out on Tuesdays after the stand-up.")
        talk = [user("Hi"), said("Hello."), marked("When do the deploys go out?")]
        given = ask(gate, talk, system="Be nice.")
        assert gate.sent()["system"] == "Be nice."
        *before, last = gate.sent()["messages"]
        assert before == talk[:2]
        assert "Tuesdays" in last["content"][0]["text"] and last["content"][1:] == talk[2]["content"]
        assert given.headers["x-memory-receipt"]


def test_an_overflow_is_recovered_and_old_marks_of_the_cache_are_gone(tmp_path: Path) -> None:
    with gateway(tmp_path, "Seen.", Failure.named("anthropic"), "Here.", protocol="anthropic") as gate:
        ask(gate, [*LONG, marked("Seen?")])
        talk = [*LONG, user("Seen?"), said("Seen."), marked("And now?")]
        given = ask(gate, talk, system=SYSTEM)
        assert given.parse().content[0].text == "Here." and given.headers["x-memory-compaction"]
        sent = gate.sent()
        assert len(json.dumps(sent)) < len(json.dumps(gate.sent(1)))
        assert json.dumps(sent["messages"]).count("cache_control") == 1
        assert sent["messages"][-1]["content"][-1] == talk[-1]["content"][0] and sent["system"] == SYSTEM
        roles = [message["role"] for message in sent["messages"]]
        assert roles[0] == "user" and all(a != b for a, b in pairwise(roles))


def test_tokens_are_counted_by_the_provider(tmp_path: Path) -> None:
    with gateway(tmp_path, protocol="anthropic") as gate:
        counted = gate.anthropic().messages.count_tokens(model="m", messages=[user("x" * 400)])
        assert counted.input_tokens == 100
        assert gate.server.http.get("/v1/workspaces").json()["workspaces"] == []


def test_failures_are_told_in_the_protocols_own_shape(tmp_path: Path) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with gateway(
        tmp_path, Failure(status=529, body=overloaded), Cut(), Reply(text="one two three", breaks_after=5),
        protocol="anthropic",
    ) as gate:  # fmt: skip
        with pytest.raises(anthropic.InternalServerError, match="Overloaded") as told:
            ask(gate, [user("Hi")])
        assert told.value.status_code == 529 and told.value.body == overloaded
        with pytest.raises(anthropic.InternalServerError, match="broke the connection") as broken:
            ask(gate, [user("Hi")])
        assert broken.value.body["type"] == "error" and broken.value.body["error"]["type"] == "api_error"
        with (
            pytest.raises(Exception, match="incomplete chunked read"),
            gate.anthropic().messages.stream(model="m", max_tokens=9, messages=[user("Hi")]) as stream,
        ):
            stream.get_final_message()
        [session] = gate.sessions()
        assert gate.log(session)[1] == {
            "role": "assistant", "content": [{"type": "text", "text": "one two "}], "_cut": "the upstream broke off",
        }  # fmt: skip


def test_a_client_that_goes_away_ends_the_call(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(200))
    with gateway(tmp_path, Reply(text=words, pause_seconds=0.05), "On.", protocol="anthropic") as gate:
        with gate.anthropic().messages.stream(model="m", max_tokens=9, messages=[user("Talk.")]) as stream:
            for number, _ in enumerate(stream.text_stream):
                if number == 3:
                    break
        [session] = gate.sessions()
        until(lambda: gate.upstream.left == 1 and len(gate.log(session)) == 2)
        assert gate.upstream.left == 1
        assert gate.log(session)[1]["_cut"] == "the client went away"
        ask(gate, [user("Talk."), user("Less.")])
        assert len(gate.sessions()) == 1 and "_cut" not in json.dumps(gate.sent())


def test_the_command_to_compact_is_answered_here(tmp_path: Path) -> None:
    with gateway(tmp_path, "Seen.", protocol="anthropic") as gate:
        ask(gate, [*LONG, user("Seen?")])
        talk = [*LONG, user("Seen?"), said("Seen."), user("/compact")]
        with gate.anthropic().messages.stream(model="m", max_tokens=9, messages=talk) as stream:
            assert stream.get_final_message().content[0].text.startswith("Compacted: ")
        assert len(gate.upstream.requests) == 1


BLOCK = {
    "type": "compaction", "content": "We talked of deploys.", "encrypted_content": "c2VhbGVk", "signature": "c2ln",
}  # fmt: skip
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}


def compacted(*, stream: bool) -> Failure:
    """An answer with a compaction block, as Anthropic gives it."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": {"input_tokens": 9}}
    blocks: list[dict[str, Any]] = [BLOCK, {"type": "text", "text": "On Tuesdays."}]
    whole = {**head, "content": blocks, "stop_reason": "end_turn", "stop_sequence": None}
    if not stream:
        return Failure(status=200, body=whole)
    delta = {"type": "compaction_delta", "content": BLOCK["content"], "encrypted_content": BLOCK["encrypted_content"]}
    told: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {**BLOCK, "content": None}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "On Tuesdays."}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    events = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in told)
    return Failure(status=200, body=events, headers={"content-type": "text/event-stream"})


EDITS: Any = {
    "edits": [
        {"type": "clear_thinking_20251015", "keep": "all"},
        {"type": "clear_tool_uses_20250919"},
        {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}},
    ]
}


@pytest.mark.parametrize("stream", [False, True])
def test_compaction_of_the_provider_goes_through_untouched(tmp_path: Path, stream: bool) -> None:
    with gateway(tmp_path, compacted(stream=stream), "More.", protocol="anthropic") as gate:
        beta = gate.anthropic().beta.messages
        talk: list[Any] = [*LONG, user("When?")]
        own: dict[str, Any] = {"model": "m", "max_tokens": 9, "betas": ["compact-2026-01-12"]}
        if stream:
            with beta.stream(messages=talk, context_management=EDITS, **own) as events:
                answer = events.get_final_message()
        else:
            answer = beta.create(messages=talk, context_management=EDITS, **own)
        assert answer.content[0].type == "compaction" and answer.content[0].content == BLOCK["content"]
        assert gate.sent()["messages"] == talk and gate.sent()["context_management"] == EDITS
        assert gate.upstream.requests[-1].headers["anthropic-beta"] == "compact-2026-01-12"
        [session] = gate.sessions()
        assert gate.log(session)[-1]["content"][0] == BLOCK
        # The client drops what the block stands for, and sends it and its thinking back.
        back = {"role": "assistant", "content": [BLOCK, THOUGHT, {"type": "text", "text": "On Tuesdays."}]}
        later = [back, user("Why?")]
        beta.create(messages=later, context_management=EDITS, **own)
        assert gate.sent()["messages"] == later
        assert gate.sessions() == [session] and len(gate.log(session)) == len(LONG) + 4


def test_a_request_for_a_compaction_goes_through_untouched(tmp_path: Path) -> None:
    with gateway(tmp_path, compacted(stream=False), protocol="anthropic") as gate:
        asked: Any = {"type": "summarize", "instructions": "Keep the dates."}
        gate.anthropic().beta.messages.create(
            model="m", max_tokens=9, messages=[user("When?")], betas=["compact-2026-09-04"], compaction=asked
        )
        assert gate.sent()["compaction"] == asked and gate.sent()["messages"] == [user("When?")]


def test_compaction_can_be_ours(tmp_path: Path) -> None:
    ours = {"provider_compaction": "ours"}
    with gateway(tmp_path, "Seen.", protocol="anthropic", gateway_values=ours, context_window=12_000) as gate:
        beta = gate.anthropic().beta.messages
        given = beta.with_raw_response.create(
            model="m", max_tokens=9, messages=[*LONG, user("When?")], context_management=EDITS
        )
        assert given.headers["x-memory-compaction"] and "context_management" not in gate.sent()
        assert len(gate.sent()["messages"]) < len(LONG)
        with pytest.raises(anthropic.ConflictError, match=r"`/compact`.*provider_compaction"):
            beta.create(model="m", max_tokens=9, messages=[user("When?")], compaction={"type": "summarize"})
        # What the error names works.
        talk = [*LONG, user("When?"), said("Seen."), user("/compact")]
        assert beta.create(model="m", max_tokens=9, messages=talk).content[0].text.startswith("Compacted: ")


def test_a_turn_keeps_its_memories_while_tools_work(tmp_path: Path) -> None:
    called = Reply(text="Let me see.", thinking="Hm.", tool_call="look", arguments='{"at": "it"}')
    with gateway(tmp_path, called, "Done.", "Bye.", protocol="anthropic") as gate:
        gate.remember("Deploys go out on Tuesdays after the stand-up.")
        system = {"role": "system", "content": "# Environment: it is noon."}
        talk: list[Any] = [marked("When do the deploys go out?"), system]
        first = ask(gate, talk, tools=[TOOL])
        # What was learned meanwhile is for the next turn: the beginning of the prompt stays as a provider has it.
        gate.remember("Deploys go out on Tuesdays, but never in December.")
        answer = [block.to_dict() for block in first.parse().content]
        result = {"type": "tool_result", "tool_use_id": answer[-1]["id"], "content": "fur"}
        talk += [{"role": "assistant", "content": answer}, {"role": "user", "content": [result]}]
        second = ask(gate, talk, tools=[TOOL])
        assert gate.sent()["messages"][:2] == gate.sent(0)["messages"]
        assert gate.sent()["messages"][1:] == talk[1:], "thinking, results and system messages are as they came"
        assert second.headers["x-memory-receipt"] == first.headers["x-memory-receipt"]
        assert second.headers["x-memory-tokens"].split("memory=")[1][0] != "0"
        third = ask(gate, [*talk, said("Done."), user("And when do deploys go out in December?")], tools=[TOOL])
        assert third.headers["x-memory-receipt"] != first.headers["x-memory-receipt"]
        assert "never in December" in json.dumps(gate.sent()["messages"][-1])

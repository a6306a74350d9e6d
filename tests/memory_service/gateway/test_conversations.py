"""Which session a list of messages belongs to, and what of it is new: through the gateway, as clients send it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import openai
import pytest

from memory_service.testing import Reply
from tests.memory_service.gateway.talking import Gateway, gateway, said, user

ZH = [user("每周什么时候部署?"), said("星期二。"), user("为什么?")]


def ask(gate: Gateway, talk: Sequence[Any], model: str = "m", **headers: str) -> str:
    """Ask, and give the session."""
    given = gate.openai(**headers).chat.completions.with_raw_response.create(
        model=model,
        messages=list(talk),
    )
    return str(given.headers["x-memory-session"])


def without_blocks(gate: Gateway) -> list[dict[str, Any]]:
    """The messages of the last request to the provider, without recalled memories."""
    return [message for message in gate.sent()["messages"] if "<relevant_context>" not in message["content"]]


@pytest.mark.parametrize("headers", [{}, {"X-Memory-Session": "mine"}])
def test_a_retry_is_not_said_twice(tmp_path: Path, headers: dict[str, str]) -> None:
    with gateway(tmp_path, "One.", "One.", "Two.") as gate:
        session = ask(gate, [user("Hi")], **headers)
        ask(gate, [user("Hi")], **headers)
        assert gate.words(session) == ["u: Hi", "a: One."]
        assert ask(gate, [user("Hi"), said("One."), user("More")], **headers) == session
        assert gate.words(session) == ["u: Hi", "a: One.", "u: More", "a: Two."]


def test_a_regeneration_is_a_branch_and_the_talk_goes_on_in_the_one_that_was_chosen(tmp_path: Path) -> None:
    with gateway(tmp_path, "A1", "A2", "A3", "B1", "B2", "B3") as gate:
        sessions = [ask(gate, [user("Hi")]) for _ in range(3)]
        assert len(set(sessions)) == 3
        assert [gate.words(session)[1] for session in sessions] == ["a: A1", "a: A2", "a: A3"]
        for number in (2, 0, 1):
            talk = [user("Hi"), said(f"A{number + 1}"), user("On")]
            assert ask(gate, talk) == sessions[number]
        assert [len(gate.log(session)) for session in sessions] == [4, 4, 4]


def test_an_edited_turn_is_a_branch_that_shares_what_came_before(tmp_path: Path) -> None:
    with gateway(tmp_path, "A1", "A2", "C1", "C2") as gate:
        talk = [user("Hi"), said("A1"), user("Second"), said("A2")]
        first = ask(gate, talk[:1])
        assert ask(gate, talk[:3]) == first
        edited = [*talk[:2], user("Second, edited")]
        branch = ask(gate, edited)
        assert branch != first and branch.startswith(first)
        assert gate.words(first) == ["u: Hi", "a: A1", "u: Second", "a: A2"]
        assert gate.words(branch) == ["u: Hi", "a: A1", "u: Second, edited", "a: C1"]
        assert ask(gate, [*edited, said("C1"), user("Third")]) == branch
        assert gate.words(branch)[-2:] == ["u: Third", "a: C2"]
        # Who names the branch, as the header told it, is in it too.
        assert len(gate.sessions()) == 2


def test_a_branch_may_be_named_and_branches_again(tmp_path: Path) -> None:
    with gateway(tmp_path, *"abcdef") as gate:
        root = ask(gate, [user("1")])
        branch = ask(gate, [user("1"), said("x"), user("2")], **{"X-Memory-Session": root})
        talk = [user("1"), said("x"), user("2"), said("b"), user("3")]
        assert ask(gate, talk, **{"X-Memory-Session": branch}) == branch
        other = ask(gate, [*talk[:-1], user("4")], **{"X-Memory-Session": branch})
        assert other not in (root, branch)
        assert gate.words(other) == ["u: 1", "a: x", "u: 2", "a: b", "u: 4", "a: d"]


def test_a_branch_keeps_the_compactions_of_what_it_shares(tmp_path: Path) -> None:
    long = [message for n in range(30) for message in (user(f"Part {n}. " + "words " * 300), said(f"Noted {n}."))]
    with gateway(tmp_path, "Seen.", "Yes.", "Other.") as gate:
        session = ask(gate, [*long, user("Seen?")])
        made = gate.server.http.post(f"/v1/workspaces/default/sessions/{session}/compact", json={"mode": "apply"})
        assert made.status_code == 200 and made.json()["applied"]
        talk = [*long, user("Seen?"), said("Seen.")]
        ask(gate, [*talk, user("Go on.")])
        compacted = without_blocks(gate)
        branch = ask(gate, [*talk, user("Go elsewhere.")])
        assert branch != session
        assert without_blocks(gate) == [*compacted[:-1], user("Go elsewhere.")]
        assert len(compacted) < len(talk)
        again = gate.server.http.get(f"/v1/workspaces/default/sessions/{branch}/compactions").json()["compactions"]
        assert len(again) == 1


def test_what_a_client_adds_or_leaves_out_does_not_part_a_talk(tmp_path: Path) -> None:
    with gateway(tmp_path, "Hello  there.", "B") as gate:
        session = ask(gate, [{"role": "system", "content": "It is 12:01."}, user("Hi")])
        answer = {"role": "assistant", "content": [{"type": "text", "text": "Hello there."}], "refusal": None}
        marked = {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]}
        talk = [{"role": "system", "content": "It is 12:02."}, marked, answer, user("On")]
        assert ask(gate, talk) == session
        assert gate.sent()["messages"] == talk
        assert len(gate.log(session)) == 4


def test_a_client_that_cuts_its_history_stays_in_its_session(tmp_path: Path) -> None:
    with gateway(tmp_path, "a1", "a2", "a3", "a4") as gate:
        named = {"X-Memory-Session": "mine"}
        ask(gate, [user("1")], **named)
        ask(gate, [user("1"), said("a1"), user("2")], **named)
        ask(gate, [user("2"), said("a2"), user("3")], **named)
        ask(gate, [user("4")], **named)
        assert gate.words("mine") == ["u: 1", "a: a1", "u: 2", "a: a2", "u: 3", "a: a3", "u: 4", "a: a4"]
        assert [message["content"] for message in gate.sent()["messages"]] == ["1", "a1", "2", "a2", "3", "a3", "4"]
        assert gate.sessions() == ["mine"]


@pytest.mark.parametrize(
    "payload",
    [
        "QUJD" * 3000,
        "Read this: data:image/png;base64," + "QUJD" * 400 + " and tell me.",
        "data:text/plain;base64,QUJD",
        "看这个 " + "data:image/png;base64," + "QUJD" * 400,
    ],
    ids=["a run", "inside a text", "alone", "zh"],
)
def test_a_text_with_a_file_in_it_is_the_same_text_at_the_next_call(tmp_path: Path, payload: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": json.dumps({"file": payload})}}
    talk: list[dict[str, Any]] = [
        user(payload),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": payload},
    ]
    with gateway(tmp_path, "Seen.", "Yes.", "Other.") as gate:
        session = ask(gate, talk)
        talk += [said("Seen."), user("Sure?")]
        assert ask(gate, talk) == session
        assert len(gate.log(session)) == 6
        assert gate.sent()["messages"][0]["content"] == payload
        assert ask(gate, [user(payload + "QUJD"), *talk[1:]]) != session


@pytest.mark.parametrize("begin", [0, 2], ids=["whole", "cut"])
def test_words_and_calls_are_the_same_as_one_message_or_two(tmp_path: Path, begin: int) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    output = {"role": "tool", "tool_call_id": "call_1", "content": "fur"}
    with gateway(tmp_path, "Hello.", Reply(text="Let me see.", tool_call="look"), "A cat.", "Yes.") as gate:
        named = {"X-Memory-Session": "mine"}
        talk: list[Any] = [user("Hi"), said("Hello."), user("What is it?")]
        for end in (1, 3):
            ask(gate, talk[:end], **named)
        [_, _, _, answer] = gate.log("mine")
        call["id"] = output["tool_call_id"] = answer["tool_calls"][0]["id"]
        talk += [said("Let me see."), {"role": "assistant", "content": None, "tool_calls": [call]}, output]
        ask(gate, talk[begin:], **named)
        ask(gate, [*talk, said("A cat."), user("Sure?")][begin:], **named)
        assert gate.sessions() == ["mine"]
        roles = [message["role"] for message in gate.log("mine")]
        assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant"]
        assert gate.sent()["messages"][begin - 8 :] == [*talk, said("A cat."), user("Sure?")][begin:]


def test_a_trimmed_log_goes_on(tmp_path: Path) -> None:
    with gateway(tmp_path, "a1", "a2", "a3") as gate:
        session = ask(gate, [user("1")])
        ask(gate, [user("1"), said("a1"), user("2")])
        trimmed = gate.server.http.post(f"/v1/workspaces/default/sessions/{session}/trim", json={"keep_last": 2})
        assert trimmed.status_code == 200
        assert ask(gate, [user("1"), said("a1"), user("2"), said("a2"), user("3")]) == session
        assert gate.words(session) == ["a: a2", "u: 3", "a: a3"] or gate.words(session)[-2:] == ["u: 3", "a: a3"]


def test_talks_of_different_users_are_different_sessions(tmp_path: Path) -> None:
    with gateway(tmp_path, "a", "b", "c") as gate:
        client = gate.openai()
        for name in ("ann", "bob"):
            client.chat.completions.create(model="m", messages=[user("Hi")], user=name)
        assert len(gate.sessions()) == 2
        client.chat.completions.create(model="m", messages=[user("Hi")], prompt_cache_key="thread-7")
        assert len(gate.sessions()) == 3


def test_a_talk_in_chinese_is_one_session_too(tmp_path: Path) -> None:
    with gateway(tmp_path, "星期二。", "没有人值班。") as gate:
        gate.remember("部署在每周二站会之后进行。")
        session = ask(gate, ZH[:1])
        assert "站会" in gate.sent()["messages"][0]["content"] and gate.sent()["messages"][1] == ZH[0]
        assert ask(gate, ZH) == session
        assert [message["content"] for message in gate.log(session)] == [
            "每周什么时候部署?", "星期二。", "为什么?", "没有人值班。",
        ]  # fmt: skip


def test_keys_decide_whose_memory_it_is(tmp_path: Path) -> None:
    keys = {"key-a": "ann", "key-all": "*"}
    with gateway(tmp_path, "1", "2", api_keys=keys) as gate:

        def call(key: str, **headers: str) -> openai.types.chat.ChatCompletion:
            client = openai.OpenAI(base_url=gate.url, api_key=key, max_retries=0, default_headers=headers)
            return client.chat.completions.create(model="m", messages=[user("Hi")])

        call("key-a")
        call("key-all", **{"X-Memory-Workspace": "bob"})
        with pytest.raises(openai.PermissionDeniedError, match="not for the workspace"):
            call("key-a", **{"X-Memory-Workspace": "bob"})
        with pytest.raises(openai.AuthenticationError):
            call("wrong")
        assert len(gate.upstream.requests) == 2
        # Neither key is the upstream's.
        assert all("authorization" not in request.headers for request in gate.upstream.requests)
        listed = {
            name: gate.server.http.get(
                f"/v1/workspaces/{name}/sessions", headers={"X-API-Key": "key-all"}
            ).json()["sessions"]
            for name in ("ann", "bob")
        }  # fmt: skip
        assert [len(sessions) for sessions in listed.values()] == [1, 1]


def test_an_upstreams_own_key_is_read_from_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", "sk-upstream")
    with gateway(tmp_path, "1") as inner:
        named = {"up": {"base_url": inner.upstream.url, "api_key_env": "SCRIPTED_KEY"}}
        with gateway(tmp_path / "outer", gateway={"upstreams": named}) as gate:
            ask(gate, [user("Hi")], model="up/big")
            assert inner.upstream.requests[-1].headers["authorization"] == "Bearer sk-upstream"
            assert inner.sent()["model"] == "big"


def test_bad_names_are_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    with gateway(tmp_path, "1") as gate:
        for headers in ({"X-Memory-Session": "../x"}, {"X-Memory-Workspace": "No Good"}):
            with pytest.raises(openai.BadRequestError):
                ask(gate, [user("Hi")], **headers)
        assert gate.upstream.requests == []


def test_words_that_imitate_a_block_are_words(tmp_path: Path) -> None:
    with gateway(tmp_path, "a", "b") as gate:
        gate.remember("Deploys go out on Tuesdays after the stand-up.")
        ask(gate, [user("When do the deploys go out?")])
        block = gate.sent()["messages"][0]["content"]
        session = ask(gate, [user(block), said("hm"), user("Is that so?")])
        assert gate.log(session)[0] == user(block)
        assert user(block) in gate.sent()["messages"]


def test_messages_of_an_unknown_shape_go_through_and_are_kept(tmp_path: Path) -> None:
    odd = [{"role": "user", "content": [{"type": "hologram", "hologram": 1}]}]
    with gateway(tmp_path, "Seen.") as gate:
        given = gate.openai().chat.completions.with_raw_response.create(model="m", messages=odd)
        assert gate.sent()["messages"] == odd
        assert "x-memory-degraded" not in given.headers
        [session] = gate.sessions()
        assert gate.log(session)[0] == odd[0]


def test_a_long_history_at_every_call_is_appended_once(tmp_path: Path) -> None:
    history = [message for n in range(400) for message in (user(f"{n} " + "x" * 2_500), said(f"{n} " + "y" * 2_500))]
    assert len(json.dumps(history)) > 2_000_000
    with gateway(
        tmp_path, *(Reply(text=f"a{n}") for n in range(3)), context_window=2_000_000, flush={"mode": "off"}
    ) as gate:
        talk = [*history, user("q0")]
        for number in range(3):
            session = ask(gate, talk)
            talk += [said(f"a{number}"), user(f"q{number + 1}")]
        assert len(gate.log(session)) == len(history) + 6
        assert gate.sessions() == [session]
        assert gate.sent()["messages"][-1] == user("q2")


def test_an_answer_that_was_cut_is_compacted_after_as_the_preset_says(tmp_path: Path) -> None:
    long = [message for n in range(30) for message in (user(f"Part {n}. " + "words " * 300), said(f"Noted {n}."))]
    cut = Reply(text="So it", finish_reason="length")
    with gateway(tmp_path, cut, "Done.", compaction={"preset": "turns"}) as gate:
        client = gate.openai().chat.completions.with_raw_response
        client.create(model="m", messages=[*long, user("Tell all.")])
        given = client.create(model="m", messages=[*long, user("Tell all."), said("So it"), user("Go on.")])
        assert given.headers["x-memory-compaction"]
        assert len(json.dumps(gate.sent())) < len(json.dumps(gate.sent(0)))


def test_the_window_is_that_of_the_model_that_is_asked(tmp_path: Path) -> None:
    windows = {"small": 8_000, "large": 200_000}
    with gateway(tmp_path, "a", "b", "c", context_windows=windows) as gate:
        client, talk = gate.openai().chat.completions.with_raw_response, [user("1")]
        told = []
        for model in ("large", "small", "large"):
            given = client.create(model=model, messages=talk)
            told.append(given.headers["x-memory-tokens"].rpartition("window=")[2])
            talk += [said(given.parse().choices[0].message.content or ""), user("Go on.")]
        assert told == ["200000", "8000", "200000"]
        assert len(gate.sessions()) == 1


def test_what_was_missing_is_told_in_any_script(tmp_path: Path) -> None:
    with gateway(tmp_path, "On Tuesdays.", max_file_bytes=1024) as gate:
        gate.remember("Deploys go out on Tuesdays after the stand-up.")
        (tmp_path / "default" / "memory" / "记忆 100%.md").write_text("x" * 2_000)
        assert gate.server.http.post("/v1/workspaces/default/reindex", json={}).is_success
        given = gate.openai().chat.completions.with_raw_response.create(
            model="m", messages=[user("When do the deploys go out?")]
        )
        told = given.headers["x-memory-degraded"]
        assert told.isascii() and "100%25" in told and "memory/记忆 100%.md" in unquote(told)

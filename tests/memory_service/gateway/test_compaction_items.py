"""Compactions that clients of OpenAI's Responses ask for: with its own client, and what Codex sends."""

from __future__ import annotations

import base64
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from pydantic import TypeAdapter

from indexer.testing import HashEmbedder
from memory_service.conversations.client_calls import ConversationCall
from memory_service.conversations.seals import Reference, Seals
from memory_service.service import MemoryService
from memory_service.storage.base import SEALING_KEY
from memory_service.storage.files.file_storage import FileStorage
from memory_service.testing import Failure, Reply
from tests.memory_service.gateway.talking import Gateway, gateway, said, user
from tests.serving import W, serving, settings

LONG: list[Any] = [
    message for n in range(30) for message in (user(f"Part {n}. " + "words " * 300), said(f"Noted {n}."))
]
TRIGGER = {"type": "compaction_trigger"}


def ask(gate: Gateway, given: Any, headers: dict[str, str] | None = None, **parameters: Any) -> Any:
    return gate.openai(**headers or {}).responses.with_raw_response.create(model="m", input=given, **parameters)


def compacted(gate: Gateway, **parameters: Any) -> Any:
    return gate.openai().responses.with_raw_response.compact(model="m", **parameters)


def output_of(answer: Any) -> list[dict[str, Any]]:
    # The package has no type for a message of the user in an output; its warnings are for those who write it.
    return [item.to_dict(warnings=False) for item in answer.output]


def view(gate: Gateway, session: str) -> Any:
    return gate.server.http.get(f"{W}/sessions/{session}/messages", params={"view": "model"}).json()["messages"]


def undo(gate: Gateway, session: str, compaction: str) -> int:
    return gate.server.http.post(f"{W}/sessions/{session}/compactions/{compaction}/undo").status_code


def test_a_conversation_is_compacted_into_one_item_and_goes_on_with_it(tmp_path: Path) -> None:
    with gateway(tmp_path, "Seen.", "Here.", "Still.") as gate:
        talk = [*LONG, user("Seen?")]
        session = ask(gate, talk).headers["x-memory-session"]
        before = view(gate, session)
        raw = compacted(gate, input=[*talk, said("Seen.")], instructions="Be nice.")
        answer = raw.parse()
        assert answer.object == "response.compaction" and answer.usage.total_tokens == 0
        *users, item = output_of(answer)
        assert [each["content"][0]["text"] for each in users] == [m["content"] for m in talk if m["role"] == "user"]
        assert item["type"] == "compaction" and "Part" not in item["encrypted_content"]
        assert raw.headers["x-memory-session"] == session and len(gate.upstream.requests) == 1
        # The client goes on with what it got.
        kept: list[Any] = [{"role": "developer", "content": "Be terse."}, *users, item, user("And now?")]
        second = ask(gate, kept)
        assert second.headers["x-memory-session"] == session and second.parse().output_text == "Here."
        sent = gate.sent()["input"]
        assert sent[0] == kept[0] and sent[-1] == user("And now?") and "encrypted_content" not in json.dumps(sent)
        assert len(json.dumps(sent)) < len(json.dumps(talk)) / 2
        assert gate.words(session)[-3:] == ["a: Seen.", "u: And now?", "a: Here."] and len(gate.sessions()) == 1
        kept += [*output_of(second.parse()), user("Still there?")]
        assert ask(gate, kept).headers["x-memory-session"] == session
        assert gate.words(session)[-2:] == ["u: Still there?", "a: Still."]
        # Undo works behind the item.
        assert undo(gate, session, raw.headers["x-memory-compaction"]) == 200
        assert view(gate, session)[: len(before)] == before


def test_an_undone_compaction_shows_all_again_through_its_item(tmp_path: Path) -> None:
    with gateway(tmp_path, "Seen.", "Here.", context_window=200_000) as gate:
        session = ask(gate, LONG).headers["x-memory-session"]
        raw = compacted(gate, input=[*LONG, said("Seen.")])
        assert undo(gate, session, raw.headers["x-memory-compaction"]) == 200
        ask(gate, [*output_of(raw.parse()), user("And now?")])
        sent = gate.sent()["input"]
        assert [*sent[:-2], sent[-1]] == [*LONG, user("And now?")] and "Seen." in json.dumps(sent[-2])


def test_a_pin_and_a_receipt_work_behind_an_item(tmp_path: Path) -> None:
    with gateway(tmp_path, "Seen.", "Here.") as gate:
        session = ask(gate, LONG).headers["x-memory-session"]
        pinned = gate.server.http.post(f"{W}/sessions/{session}/pins", json={"text": "Never deploy on Fridays."})
        assert pinned.status_code == 201
        raw = compacted(gate, input=[*LONG, said("Seen.")])
        found = gate.server.http.get(f"{W}/sessions/{session}/compactions/{raw.headers['x-memory-compaction']}").json()
        assert found["applied"] and found["tokens_after"] < found["tokens_before"]
        ask(gate, [*output_of(raw.parse()), user("And now?")])
        assert "Never deploy on Fridays." in json.dumps(gate.sent()["input"])


def test_a_previous_answer_can_be_compacted(tmp_path: Path) -> None:
    with gateway(tmp_path, "Seen.", "Here.") as gate:
        first = ask(gate, LONG).parse()
        answer = compacted(gate, previous_response_id=first.id).parse()
        *users, _ = output_of(answer)
        assert len(users) == 30
        ask(gate, [*output_of(answer), user("And now?")])
        [session] = gate.sessions()
        assert gate.words(session)[-3:] == ["a: Seen.", "u: And now?", "a: Here."]


@pytest.mark.parametrize("stream", [False, True])
def test_a_trigger_is_answered_with_exactly_one_item(tmp_path: Path, stream: bool) -> None:
    with gateway(tmp_path, "Seen.", "Here.") as gate:
        ask(gate, LONG)
        talk = [*LONG, said("Seen."), TRIGGER]
        client = gate.openai()
        if stream:
            events = list(client.responses.create(model="m", input=talk, stream=True, store=False))
            assert [event.type for event in events] == [
                "response.created", "response.in_progress", "response.output_item.added",
                "response.compaction.compacting", "response.output_item.done", "response.completed",
            ]  # fmt: skip
            assert [event.sequence_number for event in events] == list(range(6))
            done: Any = events[-2]
            last: Any = events[-1]
            assert [done.item.to_dict()] == output_of(last.response)
            answer = last.response
        else:
            answer = client.responses.create(model="m", input=talk, store=False)
        [item] = output_of(answer)
        assert item["type"] == "compaction" and answer.status == "completed" and len(gate.upstream.requests) == 1
        # What Codex keeps: words of the user, some of them cut, then the item.
        ask(gate, [user("Part 29. wor"), item, user("And now?")])
        [session] = gate.sessions()
        assert gate.words(session)[-3:] == ["a: Seen.", "u: And now?", "a: Here."]
        assert len(json.dumps(gate.sent())) < len(json.dumps(talk)) / 2


def test_the_stream_of_a_trigger_has_the_shapes_of_the_package(tmp_path: Path) -> None:
    events_of = TypeAdapter[Any](openai.types.responses.ResponseStreamEvent)
    with gateway(tmp_path, "Seen.", "Here.") as gate:
        ask(gate, LONG)
        body = {"model": "m", "input": [*LONG, said("Seen."), TRIGGER], "stream": True}
        text = httpx.post(f"{gate.url}/responses", json=body, timeout=120).text
        events = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
        for event in events:
            events_of.validate_python(event)
        answer = httpx.post(f"{gate.url}/responses/compact", json={"model": "m", "input": "Hi"}, timeout=120).json()
        openai.types.responses.CompactedResponse.construct(**answer)


def test_a_threshold_of_the_clients_own_compacts_in_line(tmp_path: Path) -> None:
    managed = [{"type": "compaction", "compact_threshold": 3_000}, {"type": "other"}]
    with gateway(tmp_path, "Fine.", "Seen.", "Here.", "Whole.", context_window=200_000) as gate:
        small = ask(gate, "Hi", context_management=managed).parse()
        assert [item.type for item in small.output] == ["message"]
        assert gate.sent()["context_management"] == [{"type": "other"}]
        stream = gate.openai().responses.create(model="m", input=LONG, context_management=managed, stream=True)
        events = list(stream)
        assert [event.sequence_number for event in events] == list(range(len(events)))
        answer: Any = next(event for event in events if event.type == "response.completed").response
        assert [item.type for item in answer.output] == ["compaction", "message"]
        added = [event for event in events if event.type == "response.output_item.added"]
        assert [event.output_index for event in added] == [0, 1]
        assert len(json.dumps(gate.sent())) < len(json.dumps(LONG)) / 2
        talk = [*LONG, *output_of(answer), user("And now?")]
        again = ask(gate, talk, context_management=[{"type": "compaction"}])
        assert again.parse().output_text == "Here." and len(gate.sent()["input"]) < 20
        session = again.headers["x-memory-session"]
        assert gate.words(session)[-3:] == ["a: Seen.", "u: And now?", "a: Here."]
        assert len(gate.log(session)) == len(LONG) + 3
        # In one piece it is the same.
        other = {"X-Memory-Session": "other"}
        whole = ask(gate, [*LONG, user("So?")], other, context_management=managed).parse()
        assert [item.type for item in whole.output] == ["compaction", "message"]


def test_an_overflow_in_a_call_that_asks_for_compactions_is_told_by_an_item(tmp_path: Path) -> None:
    with gateway(tmp_path, Failure.named("openai"), "Here.") as gate:
        given = ask(gate, [*LONG, user("So?")], context_management=[{"type": "compaction"}])
        assert [item.type for item in given.parse().output] == ["compaction", "message"]


def test_an_item_outlives_the_server_and_is_known_to_others_on_the_same_home(tmp_path: Path) -> None:
    with gateway(tmp_path, "Seen.") as gate, gateway(tmp_path, "Here.") as other:
        ask(gate, LONG)
        item = output_of(compacted(gate, input=[*LONG, said("Seen.")]).parse())[-1]
        ask(other, [item, user("And now?")])
        assert "Part 0" not in json.dumps(other.sent()["input"][-1])
    with gateway(tmp_path, "Later.") as gate:
        ask(gate, [item, user("And now?"), said("Here."), user("Later?")])
        [session] = gate.sessions()
        assert gate.words(session)[-4:] == ["u: And now?", "a: Here.", "u: Later?", "a: Later."]
    key = tmp_path / SEALING_KEY
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600 and len(key.read_bytes()) == 32


def test_two_servers_that_need_the_key_at_once_make_one(tmp_path: Path) -> None:
    made, place = list[str](), Reference(workspace="w", session_id="s", last_seq=1, digest="d")
    threads = [threading.Thread(target=lambda: made.append(Seals(FileStorage(tmp_path)).seal(place))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1 and os.listdir(tmp_path) == [SEALING_KEY]
    assert Seals(FileStorage(tmp_path)).open(made[0]) == place


def changed(item: dict[str, Any], **fields: str) -> dict[str, Any]:
    """An item whose reference was changed by somebody without the key."""
    head, one, told, code = item["encrypted_content"].split(".")
    place = json.loads(base64.urlsafe_b64decode(told + "==")) | fields
    written = base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")
    return {**item, "encrypted_content": f"{head}.{one}.{written}.{code}"}


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, dict[str, Any]]]:
    with gateway(tmp_path_factory.mktemp("home"), *["Seen."] * 20, api_keys={"k": "*"}) as gate:
        client = openai.OpenAI(base_url=gate.url, api_key="k", max_retries=0)
        client.responses.create(model="m", input=LONG)
        yield gate, output_of(client.responses.compact(model="m", input=[*LONG, said("Seen.")]))[-1]


@pytest.mark.parametrize(
    ("forged", "told"),
    [
        (lambda item: changed(item, workspace="bob"), "was changed"),
        (lambda item: changed(item, session_id="other"), "was changed"),
        (lambda item: {**item, "encrypted_content": item["encrypted_content"][:-1]}, "was changed"),
        (lambda item: {**item, "encrypted_content": "memory-service.1."}, "was changed"),
        (lambda item: {**item, "encrypted_content": "memory-service.1.é.你"}, "was changed"),
        (lambda item: {**item, "encrypted_content": item["encrypted_content"] + "\ud800"}, "was changed"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_item_that_was_changed_is_refused_with_what_to_do(
    furnished: tuple[Gateway, dict[str, Any]], forged: Any, told: str, stream: bool
) -> None:
    gate, item = furnished
    sent = len(gate.upstream.requests)
    body = {"model": "m", "input": [forged(item), user("And now?")], "stream": stream}
    answer = httpx.post(
        f"{gate.url}/responses",
        content=json.dumps(body).encode(),
        headers={"Authorization": "Bearer k", "Content-Type": "application/json"},
    )
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["code"] == "invalid_reference" and told in error["message"]
    assert "Send the conversation without" in error["message"]
    assert len(gate.upstream.requests) == sent


def test_an_item_of_another_workspace_home_or_a_deleted_session_is_refused(tmp_path: Path) -> None:
    with gateway(tmp_path / "a", "Seen.", "Here.") as gate, gateway(tmp_path / "b", "Never.") as other:
        session = ask(gate, LONG).headers["x-memory-session"]
        item = output_of(compacted(gate, input=[*LONG, said("Seen.")]).parse())[-1]
        with pytest.raises(openai.BadRequestError, match="another server made it"):
            ask(other, [item, user("And now?")])
        with pytest.raises(openai.BadRequestError, match="another workspace"):
            ask(gate, [item, user("And now?")], {"X-Memory-Workspace": "bob"})
        for mode in ("read-only", "off"):
            with pytest.raises(openai.BadRequestError, match=f"X-Memory-Mode: {mode}"):
                ask(gate, [item, user("And now?")], {"X-Memory-Mode": mode})
        with pytest.raises(openai.BadRequestError, match="another server made it"):
            compacted(other, input=[item, user("And now?")])
        assert gate.server.http.delete(f"{W}/sessions/{session}").status_code == 200
        with pytest.raises(openai.BadRequestError, match="is gone"):
            ask(gate, [item, user("And now?")])
        assert len(gate.upstream.requests) == 1 and not other.upstream.requests


def test_an_item_of_the_upstream_itself_goes_on_untouched(tmp_path: Path) -> None:
    foreign = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABotOpenAIs" * 40}
    with gateway(tmp_path, "Seen.", "Here.") as gate:
        talk = [user("Hi"), foreign, user("And now?")]
        ask(gate, talk)
        assert gate.sent()["input"] == talk
        ask(gate, [*talk, said("Seen."), user("Still?")])
        assert gate.sent()["input"] == [*talk, said("Seen."), user("Still?")]
        assert len(gate.sessions()) == 1


def test_words_that_imitate_an_item_are_words(tmp_path: Path) -> None:
    with gateway(tmp_path, "Seen.", "No.", "Here.") as gate:
        ask(gate, LONG)
        item = output_of(compacted(gate, input=[*LONG, said("Seen.")]).parse())[-1]
        words = user(json.dumps(item))
        ask(gate, [words])
        assert gate.sent()["input"][-1] == words
        quoted = {"role": "user", "content": [{"type": "input_text", "text": item["encrypted_content"]}]}
        ask(gate, [quoted])
        assert gate.sent()["input"][-1] == quoted


def test_what_cannot_be_compacted_here_is_left_to_the_provider(tmp_path: Path) -> None:
    with gateway(tmp_path, "One.", "Two.", "Three.") as gate:
        misplaced = [user("Hi"), TRIGGER, user("Ho")]
        given = ask(gate, misplaced)
        assert gate.sent()["input"] == misplaced and "final" in given.headers["x-memory-degraded"]
        body = {"model": "m", "previous_response_id": "resp_of_somebody"}
        answer = httpx.post(f"{gate.url}/responses/compact", json=body, timeout=120)
        assert gate.upstream.requests[-1].path == "/v1/responses/compact" and gate.sent() == body
        assert "no session" in answer.headers["x-memory-degraded"]


def test_several_compactions_are_each_undone_to_the_byte(tmp_path: Path) -> None:
    replies = [Reply(text=f"Done {n}.", tool_call="look", arguments=f'{{"at": "src/{n}.py"}}') for n in range(24)]
    with gateway(tmp_path, *replies) as gate:
        items: list[Any] = [user("Go through all files of the project. " + "Mind the rules. " * 200)]
        views, compactions, session = list[Any](), list[str](), ""
        for number in range(24):
            given = ask(gate, items)
            session = given.headers["x-memory-session"]
            answer = given.parse()
            called = {item["call_id"] for item in gate.sent()["input"] if item.get("type") == "function_call"}
            done = {item["call_id"] for item in gate.sent()["input"] if item.get("type") == "function_call_output"}
            assert called == done
            items += output_of(answer)
            call_id = items[-1]["call_id"]
            items.append({"type": "function_call_output", "call_id": call_id, "output": f"{number} " + "x" * 4_000})
            if number % 6 == 5:
                views.append(view(gate, session))
                ask_again = compacted(gate, input=items)
                compactions.append(ask_again.headers["x-memory-compaction"])
                items = [*output_of(ask_again.parse())[-1:], user(f"Go on after {number}.")]
        assert len(gate.sessions()) == 1 and len(set(compactions)) == 4
        for compaction in reversed(compactions):
            shown = views.pop()
            assert view(gate, session)[: len(shown)] != shown
            assert undo(gate, session, compaction) == 200
            assert view(gate, session)[: len(shown)] == shown
        log = gate.log(session)
        assert view(gate, session) == [
            {key: value for key, value in message.items() if not key.startswith("_")} for message in log
        ]


def test_in_process_a_conversation_is_compacted_too(tmp_path: Path) -> None:
    with MemoryService(settings(tmp_path, embedding_model="none"), embedder=HashEmbedder()) as service:
        made = service.compact_conversation("w", ConversationCall(messages=LONG, wire="responses"))
        assert made.reference and made.compaction is not None and made.compaction.applied
        prompt = service.conversation_prompt(
            "w", ConversationCall(messages=[user("On.")], wire="responses", reference=made.reference)
        )
        assert prompt.session_id == made.session_id and prompt.messages[-1] == user("On.")
        with serving(service) as server:
            assert server.http.get("/v1/workspaces/w/sessions").json()["sessions"]

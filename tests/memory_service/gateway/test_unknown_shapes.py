"""Shapes that nobody here knows: none of them costs a conversation its memory, in any protocol.

Each shape stands in a talk of two turns. The provider gets it as it came, and the session has both turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_service.messages.reading import read_messages
from memory_service.messages.repair import to_wire
from memory_service.messages.shapes import text_of
from memory_service.messages.sizes import message_tokens
from memory_service.testing import Reply
from tests.memory_service.gateway.talking import Gateway, gateway, said, user

Shape = list[dict[str, Any]]


def parts(*content: object) -> Shape:
    looked: list[object] = [{"type": "text", "text": "Look."}, *content]
    return [{"role": "user", "content": looked}]


def answered(call: dict[str, Any], result: dict[str, Any]) -> Shape:
    return [user("Go."), {"role": "assistant", "content": None, "tool_calls": [call]}, result]


def used(*content: object, given: Any = "done") -> Shape:
    """A tool of Anthropic's messages, with blocks beside its call and a result."""
    called = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": given}
    return [user("Go."), {"role": "assistant", "content": [*content, called]}, {"role": "user", "content": [result]}]


FUNCTION = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "done"}
CALLED: Shape = [
    {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
    {"role": "function", "name": "look", "content": "done"},
]

CHAT: dict[str, Shape] = {
    "video": parts({"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}),
    "audio by address": parts({"type": "audio_url", "audio_url": {"url": "https://example.org/a.mp3"}}),
    "document by address": parts({"type": "document_url", "document_url": "https://example.org/a.pdf"}),
    "input of Responses": parts({"type": "input_text", "text": "hello"}),
    "image of Responses": parts({"type": "input_image", "image_url": "https://example.org/a.png"}),
    "image by its address alone": parts({"type": "image_url", "image_url": "https://example.org/a.png"}),
    "reference": parts({"type": "reference", "reference_ids": [1, 2]}),
    "hologram": parts({"type": "hologram", "depth": {"z": [1, 2, 3]}}),
    "a part of no type": parts({"text": "hello"}),
    "a part that is text": parts("hello"),
    "a part that is a number": parts(7),
    "a part that is nothing": parts(None),
    "a text of no text": parts({"type": "text", "text": None}),
    "a file by its id": parts({"type": "file", "file_id": "file_1"}),
    "thinking as a list": [user("Go."), {"role": "assistant", "content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Yes."}]}],
    "content that is an object": [{"role": "user", "content": {"parts": ["hello"]}}],
    "content that is a number": [{"role": "user", "content": 42}],
    "no content": [{"role": "user"}],
    "role function": [user("Go."), {"role": "assistant", "content": None,
        "function_call": {"name": "look", "arguments": "{}"}}, {"role": "function", "name": "look", "content": "done"}],
    "role function, twice": [user("Go."), *CALLED, *CALLED],
    "role function of nobody": [user("Go."), {"role": "function", "name": "look", "content": "done"}],
    "role critic": [user("Go."), {"role": "critic", "content": "Hm."}],
    "role ipython": [user("Go."), {"role": "ipython", "content": "3"}],
    "role context": [user("Go."), {"role": "context", "content": [{"type": "snippet", "snippet": "x"}]}],
    "role model": [user("Go."), {"role": "model", "content": "Yes."}],
    "a role that is a number": [user("Go."), {"role": 5, "content": "Hm."}],
    "no role": [user("Go."), {"content": "Hm."}],
    "a custom tool": answered({"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "ls"}}, RESULT),
    "a tool of another kind": answered({"id": "call_1", "type": "mcp", "mcp": {"server": "s", "name": "n"}}, RESULT),
    "a tool of a flat kind": answered({"id": "call_1", "type": "web_search", "query": "x"}, RESULT),
    "a call without a function": answered({"id": "call_1", "type": "function"}, RESULT),
    "a call without a type": answered({"id": "call_1", "function": {"name": "look", "arguments": "{}"}}, RESULT),
    "arguments that are an object": answered(
        {**FUNCTION, "function": {"name": "look", "arguments": {"a": 1}}}, RESULT),
    "arguments that are a list": answered({**FUNCTION, "function": {"name": "look", "arguments": [1]}}, RESULT),
    "a call without an id": answered({**FUNCTION, "id": ""}, {**RESULT, "tool_call_id": ""}),
    "an id that is a number": answered({**FUNCTION, "id": 7}, {**RESULT, "tool_call_id": 7}),
    "a signature on a call": answered(
        {**FUNCTION, "extra_content": {"google": {"thought_signature": "c2ln"}}}, RESULT),
    "a result that is an object": answered(FUNCTION, {**RESULT, "content": {"rows": 3}}),
    "a result of another kind": answered(FUNCTION, {**RESULT, "content": [{"type": "resource", "uri": "a://b"}]}),
    "a user who calls": [{"role": "user", "content": "Go.", "tool_calls": [FUNCTION]}],
    "a name that is an object": [{"role": "user", "content": "Go.", "name": {"first": "Kim"}}],
    "fields of tomorrow": [{"role": "user", "content": "Go.", "effort": "high", "trace": {"id": 1}}],
    "reasoning details": [user("Go."), {"role": "assistant", "content": "Yes.", "reasoning": "hm",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}],
    "audio of an answer": [user("Go."), {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}],
}  # fmt: skip

MESSAGES: dict[str, Shape] = {
    "tool reference": used(given=[{"type": "tool_reference", "tool_name": "mcp__notes__search"}]),
    "a result of a new kind": used(given=[{"type": "text", "text": "a"}, {"type": "resource_link", "uri": "a://b"}]),
    "a result that is an object": used(given={"rows": 3}),
    "a result that is nothing": used(given=None),
    "a block before a call": used({"type": "connector_text", "connector_text": "One moment."}),
    "a fallback": used({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}),
    "a call without input": [user("Go."), {"role": "assistant", "content": [
        {"type": "tool_use", "id": "toolu_1", "name": "look"}]}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1"}]}],
    "input that is text": [user("Go."), {"role": "assistant", "content": [
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": "a"}]}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "b"}]}],
    "a call of the server": used({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
    "a call of a new server": used({"type": "advisor_tool_use", "id": "srvtoolu_1", "name": "a", "input": {}},
        {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_1", "content": {"type": "advice", "text": "x"}}),
    "video": parts({"type": "video", "source": {"type": "url", "url": "https://example.org/a.mp4"}}),
    "audio": parts({"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="}}),
    "an image by its id": parts({"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
    "an image of no source": parts({"type": "image"}),
    "a source that is text": parts({"type": "document", "source": "file_1"}),
    "a block of no type": parts({"text": "hello"}),
    "a block that is text": parts("hello"),
    "a block that is a list": parts([1, 2]),
    "hologram": parts({"type": "hologram", "depth": [1, 2, 3]}),
    "a system message in the middle": [user("Go."), said("Yes."), {"role": "system", "content": "Be brief.",
        "output_config": {"effort": "low"}}, user("On.")],
    "a block of a system message": [user("Go."), said("Yes."), {"role": "system", "content": [
        {"type": "mid_conversation", "value": {"a": 1}}]}, user("On.")],
    "thinking of the user": parts({"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
    "thinking without words": [user("Go."), {"role": "assistant", "content": [
        {"type": "thinking", "signature": "c2ln"}, {"type": "text", "text": "Yes."}]}],
    "hidden thinking of a new kind": [user("Go."), {"role": "assistant", "content": [
        {"type": "sealed_thinking", "blob": "x"}, {"type": "text", "text": "Yes."}]}],
    "an answer of a block alone": [user("Go."), {"role": "assistant", "content": [{"type": "canvas", "ops": [1]}]}],
    "role observer": [user("Go."), {"role": "observer", "content": "Hm."}],
    "content that is an object": [{"role": "user", "content": {"type": "text", "text": "Go."}}],
}  # fmt: skip

RESPONSES: dict[str, Shape] = {
    "item reference": [user("Go."), {"type": "item_reference", "id": "msg_1"}],
    "a part of a new kind": [{"role": "user", "content": [{"type": "hologram", "z": 1}]}],
    "audio": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}]}],
    "a part that is text": [{"role": "user", "content": ["Go."]}],
    "content that is an object": [{"role": "user", "content": {"text": "Go."}}],
    "role nobody": [user("Go."), {"role": "nobody", "content": "Hm."}],
    "a message without a role": [user("Go."), {"type": "message", "content": "Hm."}],
    "a message without content": [user("Go."), {"role": "nobody"}],
    "a type that is a list": [user("Go."), {"type": ["odd"], "id": "x"}],
    "an item of tomorrow": [user("Go."), {"type": "agent_note", "id": "an_1", "note": "hm"}],
    "program": [user("Go."), {"type": "program", "call_id": "p", "code": "x"}, {"type": "program_output",
        "call_id": "p", "output": {"rows": 3}}],
    "tool search": [user("Go."), {"type": "tool_search_call", "call_id": "c", "arguments": {"query": "x"}},
        {"type": "tool_search_output", "call_id": "c", "tools": [{"name": "x"}]}],
    "a shell": [user("Go."), {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a", "outcome": {"type": "exit"}}]}],
    "a patch": [user("Go."), {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file"}},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"}],
    "an output that is an object": [user("Go."), {"type": "function_call", "call_id": "c", "name": "n",
        "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": {"rows": 3}}],
    "an output of a new kind": [user("Go."), {"type": "function_call", "call_id": "c", "name": "n",
        "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_video"}]}],
    "an answer of a tool of the provider": [user("Go."), {"type": "mcp_list_tools", "id": "m", "server_label": "s",
        "tools": []}, {"type": "mcp_approval_request", "id": "r", "name": "n", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True}],
    "a picture that was made": [user("Go."), {"type": "image_generation_call", "id": "ig_1", "result": "x"}],
}  # fmt: skip

SHAPES = [
    pytest.param(protocol, shape, id=f"{protocol}: {name}")
    for protocol, shapes in (("chat", CHAT), ("messages", MESSAGES), ("responses", RESPONSES))
    for name, shape in shapes.items()
]
# What no provider takes, whoever sends it.
_MENDED = {"chat: role function of nobody", "chat: a call without an id", "responses: a message without content"}
_PATHS = {"chat": "chat/completions", "messages": "messages", "responses": "responses"}


@pytest.fixture(scope="module")
def gates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Gateway]]:
    homes: Path = tmp_path_factory.mktemp("homes")
    replies = [Reply(text="Noted.")] * 400
    with (
        gateway(homes / "openai", *replies) as openai,
        gateway(homes / "anthropic", *replies, protocol="anthropic") as anthropic,
    ):
        yield {"chat": openai, "responses": openai, "messages": anthropic}


def test_there_are_enough_of_them() -> None:
    assert len(SHAPES) >= 80


@pytest.mark.parametrize(("protocol", "shape"), SHAPES)
def test_a_shape_that_nobody_knows_costs_no_memory(
    gates: dict[str, Gateway], protocol: str, shape: Shape, request: pytest.FixtureRequest
) -> None:
    gate, workspace = gates[protocol], f"w{[each.id for each in SHAPES].index(request.node.callspec.id)}"
    field = "input" if protocol == "responses" else "messages"
    talk = [*shape, user("What now?")]
    for more in ([], [said("Noted."), user("Thanks, and the jetty closes at nine.")]):
        talk += more
        answer = gate.server.http.post(
            f"/v1/{_PATHS[protocol]}",
            json={"model": "m", "max_tokens": 9, field: talk},
            headers={"X-Memory-Workspace": workspace},
        )
        assert answer.status_code == 200, answer.text
        assert "session:" not in answer.headers.get("x-memory-degraded", ""), answer.headers["x-memory-degraded"]
        assert gate.sent()[field] == talk or request.node.callspec.id in _MENDED
    [session] = gate.sessions(workspace)
    logged = json.dumps(gate.log(session, workspace))
    assert "the jetty closes at nine" in logged and logged.count("Noted.") == 2


@pytest.mark.parametrize(("protocol", "shape"), [each for each in SHAPES if each.values[0] != "responses"])
def test_it_has_a_label_a_size_and_goes_back_as_it_came(protocol: str, shape: Shape) -> None:
    read = read_messages(shape, strict=False)
    assert all(message_tokens(each) > 0 for each in read)
    assert any(text_of(each).strip() for each in read)
    for wire in ("openai", "anthropic", "mistral"):
        sent, _ = to_wire(read, wire)
        assert not {key for key in _keys(sent) if key.startswith("_") and key != "_raw"}
        assert '"opaque"' not in json.dumps(sent)


def _keys(value: Any) -> set[str]:
    """The names of all fields in a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {*(value if isinstance(value, dict) else ()), *(key for each in inner for key in _keys(each))}

"""Items of OpenAI's Responses: to messages and back, and as they go on from the log."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from memory_service.errors import InvalidRequest
from memory_service.messages.reading import read_messages
from memory_service.messages.response_items import items_of_messages, messages_of_items, standalone
from memory_service.messages.shapes import Message

TEXT = {"type": "output_text", "text": "Let me see.", "annotations": []}
REASONING = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm."}]}
SEALED = {**REASONING, "encrypted_content": "c2VhbGVk"}
WORDS = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [TEXT]}
CALL = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'}
PATCH = {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin Patch"}
SHELL = {"type": "local_shell_call", "id": "lsh", "call_id": "c3", "action": {"type": "exec", "command": ["ls"]}}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBOR", "detail": "auto"}
LISTS: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": "你好"}],
    [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
    [{"type": "message", "role": "user", "id": "m", "content": [{"type": "input_text", "text": "Hi"}, IMAGE]}],
    [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}, {"type": "input_image", "file_id": "g"}]}],
    [SEALED, WORDS, CALL, PATCH, SHELL],
    [WORDS, {**WORDS, "id": "second"}, REASONING, CALL, REASONING, WORDS],
    [{"type": "web_search_call", "id": "ws", "status": "completed"}, WORDS],
    [{"type": "image_generation_call", "id": "ig", "result": "iVBOR"}],
    [{**WORDS, "content": [TEXT, {"type": "refusal", "refusal": "No."}]}],
    [{"type": "compaction", "encrypted_content": "gAAAA"}],
    [{"type": "function_call_output", "call_id": "c1", "output": "fur"}],
    [{"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "a"}, IMAGE]}],
    [{"type": "custom_tool_call_output", "id": "o", "call_id": "c2", "output": "Done."}],
    [{"type": "computer_call_output", "call_id": "c4",
      "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBOR"}}],
    [{"type": "shell_call_output", "call_id": "c5", "output": [{"stdout": "x", "stderr": ""}]}],
    [{"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}],
]  # fmt: skip


@pytest.mark.parametrize(
    "items", LISTS, ids=lambda items: "-".join(str(item.get("type")) for item in cast("list[dict[str, Any]]", items))
)
def test_items_come_back_as_they_were(items: list[dict[str, Any]]) -> None:
    messages = messages_of_items(items)
    read_messages(messages)
    assert items_of_messages(json.loads(json.dumps(messages))) == items


def test_the_messages_do_not_depend_on_how_items_were_sent() -> None:
    answers: list[list[Any]] = [
        [SEALED, WORDS, CALL],
        [{"type": "function_call_output", "call_id": "c1", "output": "fur"}],
        [WORDS],
    ]
    apart = [message for answer in answers for message in messages_of_items(answer)]
    assert messages_of_items([item for answer in answers for item in answer]) == apart
    assert len(messages_of_items([CALL, {**CALL, "call_id": "c9"}])) == 1


def test_a_message_that_was_changed_counts() -> None:
    [message] = messages_of_items([SEALED, WORDS, CALL, PATCH])
    [_, words, call] = items_of_messages([{**message, "content": "Cut.", "tool_calls": message["tool_calls"][:1]}])
    assert words["content"][0]["text"] == "Cut." and call["call_id"] == "c1"
    [output] = messages_of_items([{"type": "custom_tool_call_output", "id": "o", "call_id": "c2", "output": "long"}])
    [written] = items_of_messages([{**output, "content": "[cleared]"}])
    assert written == {"type": "custom_tool_call_output", "id": "o", "call_id": "c2", "output": "[cleared]"}
    [seen] = messages_of_items([{"role": "user", "id": "m", "content": [IMAGE, {"type": "input_text", "text": "?"}]}])
    [shown] = items_of_messages([{**seen, "content": "[image not shown]\n?"}])
    assert "iVBOR" not in json.dumps(shown)


def test_from_the_log_go_no_ids_and_no_reasoning_that_is_not_sealed() -> None:
    def sent(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return items_of_messages([standalone(cast(Message, message)) for message in messages_of_items(items)])

    assert [item["type"] for item in sent([REASONING, WORDS, CALL])] == ["message", "function_call"]
    assert not any("id" in item for item in sent([REASONING, WORDS, CALL]))
    assert sent([SEALED, CALL])[0] == {key: value for key, value in SEALED.items() if key != "id"}
    assert not any("id" in item for item in sent([SEALED, WORDS, CALL]))
    lost = {**REASONING, "encrypted_content": "[application/octet-stream, 9000 bytes, ref=log:3#1]"}
    assert [item["type"] for item in sent([lost, WORDS])] == ["message"]
    [stripped] = messages_of_items([SEALED, WORDS])
    del stripped["reasoning_content"]
    assert [item["type"] for item in items_of_messages([stripped])] == ["message"]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "item_reference", "id": "m"}, {"role": "nobody", "content": "x"}, {"role": "user", "content": 3},
        {"role": "user", "content": [{"type": "hologram"}]}, {"call_id": "c"}, {"type": ["odd"]},
        {"type": "function_call_output", "call_id": "c", "output": {"odd": 1}},
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "hologram"}, "b"]},
    ],
)  # fmt: skip
def test_what_has_no_known_shape_is_carried(item: Any) -> None:
    [message] = read_messages(messages_of_items([item]), strict=False)
    assert items_of_messages([message]) == [item]


@pytest.mark.parametrize("item", [{"type": "compaction_trigger"}, "text"])
def test_what_is_no_item_is_refused_without_its_text(item: Any) -> None:
    with pytest.raises(InvalidRequest):
        messages_of_items([item])

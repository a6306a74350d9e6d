"""Codex through the gateway: the requests that it makes with the configuration of the recipe.

Source: openai/codex, `codex-api/src/common.rs` (`ResponsesApiRequest`), `core/src/compact_remote_v2.rs`: a stream in
which exactly one `response.output_item.done` holds a compaction, before `response.completed`; what it keeps are the
words of the user, cut to a budget, and that item; `codex-api/src/endpoint/compact.rs`: the route that was used before.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import httpx

from memory_service.testing import Reply
from tests.memory_service.gateway.talking import Gateway, gateway

DOCS = Path(__file__).parents[3] / "docs" / "gateway.md"
PERMISSIONS = {
    "type": "message",
    "role": "developer",
    "content": [{"type": "input_text", "text": "<permissions instructions>…</permissions instructions>"}],
}
SHELL = {"type": "function", "name": "shell", "strict": False, "parameters": {"type": "object", "properties": {}}}
PATCH = {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}}
CALL = Reply(thinking="Look first.", tool_call="shell", arguments='{"command": ["ls"]}')


def recipe() -> dict[str, Any]:
    """The configuration that the page gives."""
    block = re.search(r"```\n(model_provider = .*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert block and len(block[1].splitlines()) <= 15
    return tomllib.loads(block[1])


def typed(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def codex(gate: Gateway, history: list[Any]) -> list[dict[str, Any]]:
    """A turn as Codex asks for it; gives the items that are done."""
    config = recipe()
    provider = config["model_providers"][config["model_provider"]]
    assert (provider["name"], provider["wire_api"]) == ("OpenAI", "responses")
    path = httpx.URL(provider["base_url"]).path
    body = {
        "model": "gpt-5.5", "instructions": "You are Codex.", "input": history, "tools": [SHELL, PATCH],
        "tool_choice": "auto", "parallel_tool_calls": False, "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False, "stream": True, "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "0199a213-81c0-7800-8aa1-bbab2a035a53", "text": {"verbosity": "low"},
    }  # fmt: skip
    headers = {"Authorization": "Bearer any", "Accept": "text/event-stream", "originator": "codex_cli_rs",
               "session_id": "0199a213-81c0-7800-8aa1-bbab2a035a53"}  # fmt: skip
    answer = httpx.post(f"{gate.server.url}{path}/responses", json=body, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert events[0]["type"] == "response.created" and events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["id"] and events[-1]["response"]["usage"]["total_tokens"] >= 0
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    # Codex sends no ids back.
    return [{key: value for key, value in item.items() if key not in ("id", "status")} for item in done]


def output(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": item["call_id"], "output": "main.py\n" * 500}


def test_codex_talks_calls_compacts_and_goes_on(tmp_path: Path) -> None:
    with gateway(tmp_path, CALL, "Two files.", "Still two.", "Done.") as gate:
        history: list[Any] = [
            PERMISSIONS,
            typed("<environment_context>…</environment_context>"),
            typed("What is here?"),
        ]
        history += codex(gate, history)
        history.append(output(history[-1]))
        history += codex(gate, history)
        assert gate.sent()["input"] == history[:-1] and gate.sent()["tools"] == [SHELL, PATCH]
        assert [item["type"] for item in history[3:]] == [
            "reasoning", "function_call", "function_call_output", "message",
        ]  # fmt: skip
        [item] = codex(gate, [*history, {"type": "compaction_trigger"}])
        assert item["type"] == "compaction" and len(gate.upstream.requests) == 2
        # The first context is given anew, and the words of the user may be cut.
        history = [typed("What is"), PERMISSIONS, item, typed("And now?")]
        history += codex(gate, history)
        assert "encrypted_content" not in json.dumps(gate.sent()["input"])
        history.append(typed("Sure?"))
        history += codex(gate, history)
        [session] = gate.sessions()
        texts = [message["content"] for message in gate.log(session) if message["role"] in ("user", "assistant")]
        assert texts[-4:] == ["And now?", "Still two.", "Sure?", "Done."]
        assert len([message for message in gate.log(session) if message["role"] == "tool"]) == 1


def test_an_older_codex_compacts_by_the_route(tmp_path: Path) -> None:
    with gateway(tmp_path, CALL, "Two files.", "Still two.") as gate:
        history: list[Any] = [typed("What is here?")]
        history += codex(gate, history)
        history.append(output(history[-1]))
        history += codex(gate, history)
        key = "0199a213-81c0-7800-8aa1-bbab2a035a53"
        body = {"model": "gpt-5.5", "input": history, "instructions": "You are Codex.", "prompt_cache_key": key}
        answer = httpx.post(f"{gate.url}/responses/compact", json=body, timeout=60).json()
        assert [item["type"] for item in answer["output"]] == ["message", "compaction"]
        codex(gate, [*answer["output"], typed("And now?")])
        [session] = gate.sessions()
        assert [message["role"] for message in gate.log(session)][-2:] == ["user", "assistant"]

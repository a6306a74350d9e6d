"""The recipes of docs/gateway.md for programs that cannot be installed here, or need an environment of their own: the
words of the page, and the requests that such a program sends. Codex has a file of its own.

Source: requests of Claude Code 2.1 (`claude -p`, `claude -c -p`) against this gateway; Cursor's documentation of
"Override OpenAI Base URL".
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memory_service.testing import Reply
from tests.memory_service.gateway.talking import Gateway, gateway, user

DOCS = Path(__file__).parents[3] / "docs" / "gateway.md"
ADDRESS = "http://127.0.0.1:8765"
BASH = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
REMINDER = {"type": "text", "text": "<system-reminder>\nThe folder is a repository.\n</system-reminder>"}
SYSTEM = [
    {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.330.f4d; cc_entrypoint=sdk-cli;"},
    {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}},
]


def recipe(beginning: str) -> str:
    """The block of the page that begins with these words."""
    block = re.search(rf"```\w*\n({re.escape(beginning)}.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert block and len(block[1].splitlines()) <= 15
    return block[1]


def claude(gate: Gateway, base: str, messages: list[Any], session: str, key: str = "sk-any") -> list[dict[str, Any]]:
    """A call of Claude Code; gives the blocks of the answer."""
    body = {
        "model": "claude-opus-5-5", "max_tokens": 32_000, "stream": True, "system": SYSTEM, "tools": [BASH],
        "messages": messages, "thinking": {"type": "adaptive", "display": "omitted"},
        "output_config": {"effort": "medium"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "metadata": {"user_id": json.dumps({"device_id": "09d5", "account_uuid": "", "session_id": session})},
    }  # fmt: skip
    headers = {
        "Authorization": f"Bearer {key}", "x-app": "cli", "anthropic-version": "2023-06-01",
        "anthropic-beta": "claude-code-20250219,context-management-2025-06-27",
        "x-claude-code-session-id": session,
    }  # fmt: skip
    url = base.replace(ADDRESS, gate.server.url) + "/v1/messages?beta=true"
    answer = httpx.post(url, json=body, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert events[0]["type"] == "message_start" and events[-1]["type"] == "message_stop"
    blocks = [dict(event["content_block"]) for event in events if event["type"] == "content_block_start"]
    for event in events:
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
            blocks[event["index"]]["text"] += event["delta"]["text"]
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            blocks[event["index"]]["partial"] = (
                blocks[event["index"]].get("partial", "") + event["delta"]["partial_json"]
            )
    for block in blocks:
        if "partial" in block:
            block["input"] = json.loads(block.pop("partial"))
    return blocks


def test_claude_code_talks_calls_a_tool_and_goes_on(tmp_path: Path) -> None:
    variable, command = shlex.split(recipe("ANTHROPIC_BASE_URL="))
    base = variable.removeprefix("ANTHROPIC_BASE_URL=")
    assert base == ADDRESS and command == "claude"
    call = Reply(tool_call="Bash", arguments='{"command": "echo 1"}')
    with gateway(tmp_path, "On Tuesdays.", call, "It is 1.", protocol="anthropic") as gate:
        gate.remember("Deploys go out on Tuesdays after the stand-up.")
        talk: list[Any] = [
            {"role": "user", "content": [REMINDER, {"type": "text", "text": "When do the deploys go out?"}]}
        ]
        talk.append({"role": "assistant", "content": claude(gate, base, talk, "ff928a32")})
        assert "after the stand-up" in json.dumps(gate.sent()["messages"][0]) and gate.sent()["system"] == SYSTEM
        talk.append({"role": "user", "content": [{"type": "text", "text": "Run echo."}]})
        blocks = claude(gate, base, talk, "ff928a32")
        assert blocks[-1]["input"] == {"command": "echo 1"}
        result = {"type": "tool_result", "tool_use_id": blocks[-1]["id"], "content": "1"}
        talk += [{"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
        assert claude(gate, base, talk, "ff928a32")[-1]["text"] == "It is 1."
        [session] = gate.sessions()
        roles = [message["role"] for message in gate.log(session)]
        assert roles == ["user", "assistant", "user", "assistant", "user", "assistant"]
        url, body = f"{gate.url}/messages/count_tokens?beta=true", {"model": "claude-opus-5-5", "messages": talk[:1]}
        assert httpx.post(url, json=body, headers={"Authorization": "Bearer sk-any"}).json()["input_tokens"] > 0


def test_claude_code_with_a_key_of_the_server(tmp_path: Path) -> None:
    assert "one of them is `ANTHROPIC_AUTH_TOKEN`" in DOCS.read_text(encoding="utf-8")
    keys = {"api_keys": {"sk-team": "team"}}
    with gateway(tmp_path, "Yes.", protocol="anthropic", **keys) as gate:
        claude(gate, ADDRESS, [user("Is it on?")], "0199", key="sk-team")
        answer = httpx.post(
            f"{gate.server.url}/v1/messages?beta=true", headers={"Authorization": "Bearer wrong"}, json={}
        )
        assert answer.status_code == 401 and len(gate.upstream.requests) == 1


def test_an_editor_that_takes_a_base_url(tmp_path: Path) -> None:
    assert "*Settings, Models, Override OpenAI Base URL*,\n`https://your-server/v1`" in DOCS.read_text(encoding="utf-8")
    with gateway(tmp_path, "On Tuesdays.", "Yes.", api_keys={"sk-team": "default"}) as gate:
        http = openai.DefaultHttpxClient(verify=False)
        with openai.OpenAI(base_url=gate.url, api_key="sk-team", http_client=http, max_retries=0) as editor:
            assert editor.models.list().data is not None
            talk: list[Any] = [{"role": "system", "content": "You are an editor."}, user("When do we deploy?")]
            for expected in ("On Tuesdays.", "Yes."):
                stream = editor.chat.completions.create(
                    model="gpt-4o", messages=talk, stream=True, stream_options={"include_usage": True}
                )
                text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
                assert text == expected
                talk += [{"role": "assistant", "content": text}, user("Sure?")]


@pytest.mark.litellm
@pytest.mark.filterwarnings("ignore")  # litellm's own
def test_litellm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would ask the network for prices
    with gateway(tmp_path, "On Tuesdays.") as gate:
        gate.remember("Deploys go out on Tuesdays after the stand-up.")
        names: dict[str, Any] = {}
        exec(compile(recipe("import litellm").replace(ADDRESS, gate.server.url), "recipe", "exec"), names)
        assert names["answer"].choices[0].message.content == "On Tuesdays."
        assert "after the stand-up" in json.dumps(gate.sent()["messages"])

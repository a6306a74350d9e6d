"""A model behind the gateway follows the handle of a stub, though it knows no name of its session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from memory_service.testing import Reply
from tests.memory_service.gateway.talking import Gateway, gateway
from tests.memory_service.mcp.hosts import answer_of, by_http, failure_of

GET = "mcp__memory-service__get"
ROUNDS = 14
# A result of each talk that is shortened first, and cleared later.
HANDLE = "log:8"
# In which the first results are cleared, and nothing is summarised yet.
WINDOWS = {"chat": 18_000, "responses": 16_000, "anthropic": 16_000}
PATHS = {"chat": "chat/completions", "responses": "responses", "anthropic": "messages"}


def counted(subject: str, number: int) -> str:
    return "\n".join(f"{subject} {number}.{line}: counted, weighed and put back on its shelf" for line in range(150))


class Talk:
    """A client of one protocol, which sends all that was said with every call."""

    def __init__(self, gate: Gateway, protocol: str, subject: str) -> None:
        self.gate, self.protocol, self.subject = gate, protocol, subject
        self.field = "input" if protocol == "responses" else "messages"
        self.said: list[dict[str, Any]] = [{"role": "user", "content": f"Count all the {subject}."}]

    def ask(self) -> tuple[str, str]:
        """Send what was said; gives the id and the arguments of the call that the model made."""
        body = {"model": "m", "max_tokens": 500, self.field: self.said}
        answer = self.gate.server.http.post(f"/v1/{PATHS[self.protocol]}", json=body)
        assert answer.status_code == 200, answer.text
        if self.protocol == "responses":
            self.said += (output := answer.json()["output"])
            return output[-1]["call_id"], output[-1]["arguments"]
        if self.protocol == "anthropic":
            content = answer.json()["content"]
            self.said.append({"role": "assistant", "content": content})
            return content[-1]["id"], json.dumps(content[-1]["input"])
        message = answer.json()["choices"][0]["message"]
        self.said.append(message)
        call = message["tool_calls"][0]
        return call["id"], call["function"]["arguments"]

    def answer(self, call_id: str, text: str) -> None:
        """Note the result of a call, which the next call of the client brings."""
        match self.protocol:
            case "responses":
                self.said.append({"type": "function_call_output", "call_id": call_id, "output": text})
            case "anthropic":
                result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
                self.said.append({"role": "user", "content": [result]})
            case _:
                self.said.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def work(self) -> str:
        """Let the model count until it asks for an original; gives the id of that call."""
        for number in range(ROUNDS):
            call_id, _ = self.ask()
            self.answer(call_id, counted(self.subject, number))
        call_id, arguments = self.ask()
        shown = json.dumps(self.gate.sent()[self.field])
        assert f"150 lines, cleared; {HANDLE}]" in shown, "the stub tells of the result as it came"
        assert json.loads(arguments) == {"id": HANDLE}
        return call_id


def script() -> list[Reply]:
    """The model's part of one talk."""
    rounds = [Reply(tool_call="count", arguments=f'{{"at": {number}}}') for number in range(ROUNDS)]
    return [*rounds, Reply(tool_call=GET, arguments=json.dumps({"id": HANDLE}))]


@pytest.mark.parametrize("protocol", PATHS)
def test_the_original_is_that_of_the_conversation_whose_model_asks(tmp_path: Path, protocol: str) -> None:
    upstream = "anthropic" if protocol == "anthropic" else "openai"
    again = [Reply(tool_call="count", arguments='{"at": "the end"}')] * 2
    replies = [*script(), *again[:1], *script(), *again[1:]]
    with gateway(tmp_path, *replies, protocol=upstream, context_window=WINDOWS[protocol]) as gate:

        async def get(client: Client) -> str:
            return str(answer_of(await client.call_tool("get", {"id": HANDLE}))["text"])

        for subject in ("plums", "pears"):
            talk = Talk(gate, protocol, subject)
            call_id = talk.work()
            original = by_http(gate.server.url, get)
            assert counted(subject, 1) in original.replace("\\n", "\n")
            talk.answer(call_id, original)
            talk.ask()
        assert len(gate.sessions()) == 2


def test_where_two_models_ask_for_the_same_handle_nothing_is_guessed(tmp_path: Path) -> None:
    with gateway(tmp_path, *script(), *script(), context_window=WINDOWS["chat"]) as gate:
        for subject in ("plums", "pears"):
            Talk(gate, "chat", subject).work()

        async def get(client: Client) -> str:
            return failure_of(await client.call_tool("get", {"id": HANDLE}))

        assert "Name its session" in by_http(gate.server.url, get)


def test_a_longer_number_is_another_message(tmp_path: Path) -> None:
    asked = [Reply(tool_call=GET, arguments=f'{{"id": "{name}"}}') for name in ("log:2", "log:21")]
    with gateway(tmp_path, *asked) as gate:
        for subject in ("plums", "pears"):
            Talk(gate, "chat", subject).ask()

        async def get(client: Client) -> str:
            return str(answer_of(await client.call_tool("get", {"id": "log:2"}))["text"])

        assert by_http(gate.server.url, get) == "Count all the plums."

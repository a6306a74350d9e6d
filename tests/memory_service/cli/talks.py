"""Conversations for tests of the session commands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memory_service import schemas
from tests.memory_service.cli.commands import CommandLine

Json = Mapping[str, Any]
SYSTEM: Json = {"role": "system", "content": "You are the shop's assistant. 你是店里的助手。"}


def turn(number: int, *, lines: int = 60) -> list[Json]:
    """A question, a call, its result, an answer; half of it Chinese."""
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "bash", "arguments": json.dumps({"command": f"npm test {number}"})},
    }
    return [
        {"role": "user", "content": f"订单 A-{1000 + number} 改到什么时候发货？请记住：周五不部署。"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": f"第{number}行 output of a test\n" * lines},
        {"role": "assistant", "content": f"Order A-{1000 + number} ships on 2026-12-{number % 28 + 1:02}."},
    ]


def talk(turns: int = 20) -> list[Json]:
    """A long conversation."""
    return [SYSTEM, *(message for number in range(turns) for message in turn(number))]


def jsonl(messages: Sequence[Json]) -> str:
    """A message on each line."""
    return "".join(f"{json.dumps(message, ensure_ascii=False)}\n" for message in messages)


def appended(cli: CommandLine, session_id: str, messages: Sequence[Json], *options: str) -> schemas.AppendedMessages:
    run = cli.run("sessions", "append", session_id, "--file", "-", "--json", *options, stdin=jsonl(messages))
    return run.answer(schemas.AppendedMessages)


def begun(cli: CommandLine, session_id: str = "support-42", turns: int = 20, window: int = 12_000) -> None:
    """A session that its window is too small for."""
    cli.ok("sessions", "create", session_id, "--model", "gpt-4o", "--context-window", str(window))
    appended(cli, session_id, talk(turns))


def view(cli: CommandLine, session_id: str = "support-42") -> list[Json]:
    """What the model sees."""
    shown: list[Json] = json.loads(cli.ok("sessions", "show", session_id, "--json"))["messages"]
    return shown


def log(cli: CommandLine, session_id: str = "support-42", *options: str) -> list[Json]:
    """Everything ever said."""
    said: list[Json] = json.loads(cli.ok("sessions", "show", session_id, "--view", "log", "--json", *options))[
        "messages"
    ]
    return said

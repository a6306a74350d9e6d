"""The first answers of a server by standard input and output: given without the protocol's package, and the same."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memory_service.mcp.opening import HANDSHAKES, MODERN, answer_first

PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"progressToken": 0}}}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "remember", "arguments": {"text": "部署在每周二。"}},
}


def initialize(version: str, **more: Any) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "主机", "version": "1"}, **more}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def lines_of(messages: Sequence[Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in messages)


def first_answers(messages: Sequence[Any]) -> tuple[list[dict[str, Any]], int]:
    """The answers without the package, and how many lines are left to it."""
    written, read = io.BytesIO(), io.BytesIO(lines_of(messages))
    heard = answer_first(read, written, lambda: None)
    return [json.loads(line) for line in written.getvalue().splitlines()], len(heard.lines)


@contextmanager
def process(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "memory_service", "mcp", "--home", str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        try:
            yield started
        finally:
            started.kill()


def answers_of(home: Path, messages: Sequence[Any], count: int) -> list[dict[str, Any]]:
    with process(home) as started:
        assert started.stdin and started.stdout
        started.stdin.write(lines_of(messages))
        started.stdin.flush()
        return [json.loads(started.stdout.readline()) for _ in range(count)]


@pytest.mark.parametrize("version", HANDSHAKES)
def test_the_first_answers_are_those_of_the_package(tmp_path: Path, version: str) -> None:
    talk = [initialize(version), INITIALIZED, LIST, PING]
    # A ping ahead of the handshake is left to the package, and so is all that follows.
    assert first_answers([PING, *talk]) == ([], 1)
    _, *by_package = answers_of(tmp_path, [PING, *talk], 4)
    assert sorted(by_package, key=str) == sorted(first_answers(talk)[0], key=str)


def modern(method: str, number: int, **more: Any) -> dict[str, Any]:
    told = {"protocolVersion": MODERN, "clientInfo": {"name": "主机", "version": "1"}, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in {**told, **more}.items()}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {"_meta": meta}}


def test_the_first_answers_without_a_handshake_are_those_of_the_package_too(tmp_path: Path) -> None:
    talk = [modern("server/discover", 1), modern("tools/list", 2)]
    unknown = modern("tools/unknown", 0)
    assert first_answers([unknown, *talk]) == ([], 1)
    _, *by_package = answers_of(tmp_path, [unknown, *talk], 3)
    assert sorted(by_package, key=str) == sorted(first_answers(talk)[0], key=str)


@pytest.mark.parametrize(
    ("message", "more"),
    [
        (initialize("2024-11-05"), []),
        (initialize("2099-01-01"), []),
        (initialize("2025-11-25", clientInfo=None), []),
        (LIST, []),
        (INITIALIZED, []),
        (["a batch"], []),
        (modern("tools/list", 1, protocolVersion="2099-01-01"), []),
        (modern("tools/list", 1, clientInfo={}), []),
        (modern("ping", 1), []),
        ({**initialize("2025-11-25"), "id": None}, []),
        ({**LIST, "params": {"cursor": "2"}}, [initialize("2025-11-25")]),
        (CALL, [initialize("2025-11-25")]),
        (initialize("2025-11-25"), [initialize("2025-11-25")]),
    ],
)
def test_all_else_is_left_to_the_package(message: Any, more: list[Any]) -> None:
    answers, left = first_answers([*more, message, PING])
    assert len(answers) == len(more) and left == len(more) + 1


def test_a_host_gets_one_answer_to_each_question(tmp_path: Path) -> None:
    again = {**LIST, "id": 3}
    given = answers_of(tmp_path, [initialize("2025-11-25"), INITIALIZED, LIST, CALL, again], 4)
    assert sorted(each["id"] for each in given) == [0, 1, 2, 3]
    assert [each["id"] for each in given[:2]] == [0, 1]
    by_id = {each["id"]: each["result"] for each in given}
    assert by_id[1] == by_id[3] and by_id[2]["structuredContent"]["path"].startswith("memory/")


def test_half_a_character_in_an_id_comes_back_as_it_was() -> None:
    answers, _ = first_answers([{**initialize("2025-11-25"), "id": "\ud800"}])
    assert answers[0]["id"] == "\ud800"


def test_half_a_message_and_the_end_of_the_input_end_a_process(tmp_path: Path) -> None:
    with process(tmp_path) as started:
        out, _ = started.communicate(lines_of([initialize("2025-11-25")]) + b'{"jsonrpc": "2.0", "id', timeout=240)
        assert started.returncode == 0
    assert json.loads(out.splitlines()[0])["id"] == 0

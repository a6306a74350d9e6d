from __future__ import annotations

import pytest

from memory_service.messages.reading import read_messages
from memory_service.messages.shapes import Message, compact_command, was_cut


@pytest.mark.parametrize(
    ("text", "instructions"),
    [
        ("/compact", ""),
        ("  /compact \n", ""),
        ("/compact Keep the order numbers.", "Keep the order numbers."),
        ("/compact\nKeep\nboth", "Keep\nboth"),
        ("/compact 请保留订单号", "请保留订单号"),
        ("/compact请保留订单号", "请保留订单号"),
        ("/compact：请保留订单号。", "请保留订单号。"),
    ],
)
def test_a_command_and_what_stands_behind_it(text: str, instructions: str) -> None:
    assert compact_command({"role": "user", "content": text}) == instructions
    (read,) = read_messages([{"role": "user", "content": [{"type": "text", "text": text}]}])
    assert compact_command(read) == instructions


@pytest.mark.parametrize(
    "text", ["", "compact", "Run /compact", "/compaction", "/compact.py", "/compact/x", "/compact-mode", "说 /compact"]
)
def test_what_is_no_command(text: str) -> None:
    assert compact_command({"role": "user", "content": text}) is None


def test_only_the_users_words_are_commands() -> None:
    said: Message = {"role": "assistant", "content": "/compact"}
    assert compact_command(said) is None
    url = {"url": "data:image/png;base64,aGVsbG8="}
    parts = [{"type": "text", "text": "/compact"}, {"type": "image_url", "image_url": url}]
    (read,) = read_messages([{"role": "user", "content": parts}])
    assert compact_command(read) is None


def test_how_answers_end() -> None:
    assert [was_cut(word) for word in ("length", "max_tokens", "stop", "end_turn", "", None, 7)] == [True] * 2 + [
        False
    ] * 5

"""How messages stand in a terminal."""

from __future__ import annotations

import click

from memory_service.cli.transcripts import newest_messages, transcript_lines
from memory_service.messages.shapes import Message, user_message
from memory_service.runtime.display import _shown_message
from tests.growth import at_most_readings


def lines(message: Message, *, seq: int | None = 7, note: str = "", full: bool = False, cells: int = 80) -> list[str]:
    return [
        click.unstyle(line) for line in transcript_lines([_shown_message(message, seq, note)], cells=cells, full=full)
    ]


def test_thinking_errors_and_notes_stand_before_the_text() -> None:
    thought: Message = {
        "role": "assistant",
        "content": "好的。",
        "thinking_blocks": [{"type": "thinking", "thinking": "嗯嗯"}],
    }
    assert lines(thought) == ["     7 assistant  (thinking, 2 characters) 好的。"]
    failed: Message = {"role": "tool", "tool_call_id": "c", "content": "no such file", "is_error": True}
    assert lines(failed) == ["     7 tool       (error) no such file"]
    assert lines(failed, note="cleared") == ["     7 tool       (cleared) (error) no such file"]
    assert lines(user_message("hi"), seq=None, note="added") == ["     - user       (added) hi"]


def test_a_message_that_says_nothing_is_a_line_too() -> None:
    empty: Message = {"role": "assistant", "content": None}
    assert lines(empty) == lines(empty, full=True) == ["     7 assistant  (empty)"]
    reasoning: Message = {"role": "assistant", "content": "", "reasoning_content": "hm"}
    assert lines(reasoning) == ["     7 assistant  (thinking, 2 characters)"]


def test_a_call_is_one_line_and_whole_if_all_is_asked_for() -> None:
    call: Message = {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {
                "id": "c",
                "type": "function",
                "function": {"name": "read", "arguments": '{"path": "部署.md", "lines": 4}'},
            },
            {"id": "d", "type": "function", "function": {"name": "ls", "arguments": "not\njson\x1b[0m"}},
        ],
    }
    assert lines(call)[1].strip() == "-> read: `部署.md`" and lines(call)[2].strip().startswith("-> ls")
    full = lines(call, full=True)
    assert full[0].endswith("Let me look.")
    assert full[1].strip() == '-> read({"path": "部署.md", "lines": 4})'
    assert full[2].strip() == "-> ls(not json\\x1b[0m)"


def test_blank_lines_stay_only_if_all_is_asked_for() -> None:
    text = "\n一\n\n\n二\n三\n四\n五\n六\n"
    assert [line.strip() for line in lines(user_message(text))] == [
        "7 user       一", "二", "三", "四", "… 2 more lines, 15 characters in all",
    ]  # fmt: skip
    assert [line[18:] for line in lines(user_message(text), full=True)] == ["一", "", "", "二", "三", "四", "五", "六"]


def test_the_newest_or_those_behind_a_number() -> None:
    spoken = [_shown_message(user_message(str(seq)), seq) for seq in (None, 2, 3, 5, 8)]
    assert [each.seq for each in newest_messages(spoken, 2, None)] == [5, 8]
    assert [each.seq for each in newest_messages(spoken, 2, 2)] == [3, 5]
    assert [each.seq for each in newest_messages(spoken, None, 3)] == [5, 8]
    assert newest_messages(spoken, None, None) == spoken


def test_megabytes_are_shown_at_once() -> None:
    with at_most_readings(200):
        for text in ("部" * 1_000_000, "\n" * 1_000_000, "a\n" * 500_000, "\x1b[" * 500_000):
            assert len(lines(user_message(text))) <= 5

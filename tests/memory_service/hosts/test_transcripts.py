"""Transcripts of Claude Code and rollouts of Codex, read on while they grow, and after they were cut or replaced."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.errors import InvalidRequest, NotFound
from memory_service.hosts import transcripts
from memory_service.hosts.transcripts import TranscriptPlace, is_of_subagent, read_on


def claude(role: str, content: object, **fields: object) -> str:
    message = {"role": role, "content": content, **({"id": fields.pop("reply")} if "reply" in fields else {})}
    return json.dumps({"type": role, "isSidechain": False, "message": message, **fields}, ensure_ascii=False) + "\n"


def codex(payload: Mapping[str, object], kind: str = "response_item") -> str:
    return json.dumps({"timestamp": "2026-11-20T10:00:00Z", "type": kind, "payload": payload}) + "\n"


def words(file: Path, place: TranscriptPlace | None = None) -> list[object]:
    return [message["content"] for message in read_on(file, place or TranscriptPlace()).messages]


def test_claude_lines_become_messages(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "a.txt"}]}
    file.write_text(
        json.dumps({"type": "summary", "summary": "A title"})
        + "\n"
        + claude("user", "部署是每周二。")
        + claude("user", "<command-name>/clear</command-name>")
        + claude("user", "A note of the host.", isMeta=True)
        + claude("assistant", [{"type": "text", "text": "of a subagent"}], isSidechain=True)
        + claude("user", "A summary of the host.", isCompactSummary=True)
        + claude("assistant", [{"type": "thinking", "thinking": "hm", "signature": "x"}], reply="m1")
        + claude("assistant", [{"type": "text", "text": "I look."}], reply="m1")
        + claude("assistant", [call], reply="m1")
        + claude("user", [result, {"type": "text", "text": "<system-reminder>x</system-reminder>"}]),
        "utf-8",
    )
    assert read_on(file, TranscriptPlace()).messages == (
        {"role": "user", "content": "部署是每周二。"},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
        {"role": "user", "content": [{**result, "content": "a.txt"}]},
    )


def test_codex_lines_become_messages(tmp_path: Path) -> None:
    file = tmp_path / "rollout.jsonl"
    file.write_text(
        codex({"id": "x", "source": "cli"}, "session_meta")
        + codex({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]})
        + codex(
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]}
        )
        + codex({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list"}]})
        + codex({"type": "user_message", "message": "list"}, "event_msg")
        + codex({"type": "reasoning", "encrypted_content": "zz"})
        + codex({"type": "function_call", "name": "shell", "arguments": '{"command": "ls"}', "call_id": "c1"})
        + codex({"type": "function_call_output", "call_id": "c1", "output": "a.txt"})
        + codex({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One file."}]})
    )
    call = {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "ls"}'}}
    when = {"created_at": "2026-11-20T10:00:00Z"}
    assert read_on(file, TranscriptPlace()).messages == (
        {"role": "user", "content": "list", **when},
        {"role": "assistant", "content": None, "tool_calls": [call], **when},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt", **when},
        {"role": "assistant", "content": "One file.", **when},
    )
    assert not is_of_subagent(file)
    file.write_text(codex({"id": "x", "source": {"subagent": "review"}}, "session_meta"))
    assert is_of_subagent(file)


def test_lines_are_read_by_their_type_and_those_of_a_newer_host_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    body = {"role": "user", "content": [{"type": "text", "text": "Kim owns billing."}]}
    file.write_text(
        claude("user", "Kim owns billing.")
        + json.dumps({"type": "api-request-blob", "message": body})
        + "\n"
        + json.dumps({"type": "thought-of-2030", "message": body})
        + "\n"
        + json.dumps({"message": body})
        + "\n"
        + json.dumps({"type": "assistant", "message": body})
        + "\n"
        + codex({"type": "dream", "text": "Kim owns billing."})
        + claude("user", "[Request interrupted by user for tool use]")
        + json.dumps({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}})
        + "\n"
    )
    read = read_on(file, TranscriptPlace())
    assert [message["content"] for message in read.messages] == ["Kim owns billing."] and not read.problems
    assert read.unknown_counts == {"thought-of-2030": 1, "none": 1, "response_item/dream": 1}


def test_results_without_words_are_labels(tmp_path: Path) -> None:
    file, base64 = tmp_path / "t.jsonl", "iVBORw0KGgo" * 900
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64}}
    shown = [image, {"type": "text", "text": "a chart"}, {"type": "tool_reference", "tool_name": "search"}]
    outputs: list[object] = [[{"type": "input_image", "image_url": base64}], {"image": base64, "width": 7}]
    file.write_text(
        claude("user", [{"type": "tool_result", "tool_use_id": "t", "content": shown}])
        + "".join(codex({"type": "function_call_output", "call_id": "c", "output": each}) for each in outputs)
    )
    result, *others = words(file)
    told = "[image]\na chart\n[tool_reference search]"
    assert result == [{"type": "tool_result", "tool_use_id": "t", "content": told}]
    assert others == ["[image]", '{"image": "[media]", "width": 7}']


def test_a_prompt_takes_the_place_of_one_that_the_host_went_back_before(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]
    talk = [
        claude("user", "Plan the shop.", uuid="u1", parentUuid=None),
        claude("assistant", "Two tables.", uuid="a1", parentUuid="u1"),
        claude("assistant", "And a third.", uuid="a2", parentUuid="a1"),
        claude("user", result, uuid="r1", parentUuid="a1"),
        claude("user", "Use MySQL.", uuid="u2", parentUuid="a2"),
        claude("assistant", "MySQL it is.", uuid="a3", parentUuid="u2"),
    ]
    file.write_text("".join(talk))
    before = read_on(file, TranscriptPlace())
    assert len(before.messages) == 6, "results of calls that were made at once are no way back"
    file.write_text("".join([*talk, claude("user", "Use PostgreSQL.", uuid="u3", parentUuid="a2")]))
    assert [*words(file)][3:] == [[{**result[0]}], "Use PostgreSQL."]
    later = read_on(file, before.end)
    assert later.prompts == {0: "a2"} and before.prompts == {0: "", 4: "a2"}


@given(cuts=st.lists(st.integers(0, 2_000), max_size=6))
def test_a_file_that_is_being_written_is_read_once_whatever_the_cuts(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    file = tmp_path_factory.mktemp("t") / "t.jsonl"
    raw = "".join(claude("user", f"第{number}句 said {number}") for number in range(12)).encode()
    place, said = TranscriptPlace(), list[object]()
    for cut in [*sorted(cuts), len(raw)]:
        file.write_bytes(raw[:cut])
        stretch = read_on(file, place)
        assert not stretch.problems
        said += [message["content"] for message in stretch.messages]
        place = stretch.end
    assert said == [f"第{number}句 said {number}" for number in range(12)]


def test_a_file_that_was_truncated_or_replaced_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(claude("user", "one") + claude("user", "two"))
    place = read_on(file, TranscriptPlace()).end
    file.write_text(claude("user", "one"))
    cut = read_on(file, place)
    assert cut.begun_anew and "truncated" in cut.problems[0]
    file.write_text(claude("user", "another") + claude("user", "conversation") + claude("user", "here"))
    other = read_on(file, place)
    assert other.begun_anew and "replaced" in other.problems[0] and len(other.messages) == 3


@pytest.mark.parametrize(
    "line", ["{half", "[]", "7", '"text"', "[" * 5_000, "\x00", '{"message": 7}', '{"message": {"role": 1}}']
)
def test_garbage_is_left_out_and_the_rest_is_read(tmp_path: Path, line: str) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(f"{line}\n" + claude("user", "good"))
    assert words(file) == ["good"]
    file.write_bytes(b"\xff\xfe\n" + claude("user", "good").encode())
    assert words(file) == ["good"]


def test_a_long_file_is_read_in_stretches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "_STRETCH_BYTES", 300)
    file = tmp_path / "t.jsonl"
    file.write_text("".join(claude("user", f"said {number}") for number in range(30)) + claude("user", "x" * 2_000))
    place, said, stretches = TranscriptPlace(), list[object](), 0
    while (stretch := read_on(file, place)).end.offset > place.offset:
        again = read_on(file, place, until=stretch.end.offset)
        assert again.messages == stretch.messages and again.end == stretch.end
        said += [message["content"] for message in stretch.messages]
        place, stretches = stretch.end, stretches + 1
    assert said == [*(f"said {number}" for number in range(30)), "x" * 2_000]
    assert stretches > 5 and stretch.more_bytes == 0


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_on(tmp_path / "nothing.jsonl", TranscriptPlace())
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path):
        with pytest.raises(InvalidRequest):
            read_on(place, TranscriptPlace())

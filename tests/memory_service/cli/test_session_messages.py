"""show, append and context."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from memory_service import schemas
from memory_service.cli.columns import width
from tests.memory_service.cli.commands import CommandLine
from tests.memory_service.cli.talks import SYSTEM, Json, appended, begun, jsonl, log, talk, turn, view

PNG = base64.b64encode(b"\x89PNG" * 4000).decode()
SEEN: Json = {
    "role": "user",
    "content": [
        {"type": "text", "text": "看这张图"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    ],
}
ANTHROPIC: list[Json] = [
    {"role": "user", "content": "几点开门？"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "hours", "input": {"day": "周二"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "10:00"}]},
]


# append


@pytest.mark.parametrize(
    "text",
    [
        jsonl(talk(1)),
        jsonl(talk(1)).replace("\n", "\r\n\r\n"),
        "\ufeff" + json.dumps(talk(1), ensure_ascii=False, indent=1),
        json.dumps({"messages": talk(1), "model": "gpt-4o"}),
        json.dumps({"messages": talk(1)[1:], "system": SYSTEM["content"]}, ensure_ascii=False),
    ],
)
def test_every_shape_of_a_file_is_read(cli: CommandLine, tmp_path: Path, text: str) -> None:
    file = tmp_path / "messages.jsonl"
    file.write_text(text, "utf-8", newline="")
    printed = cli.ok("sessions", "append", "support-42", "--file", str(file))
    assert re.fullmatch(r"appended  2-6  the view takes [\d,]+ tokens \(estimate\), ok\n", printed)
    assert log(cli) == talk(1)


def test_one_object_and_anthropics_shape_are_read(cli: CommandLine) -> None:
    one = cli.run("sessions", "append", "s", "-f", "-", "--json", stdin=json.dumps(ANTHROPIC[0]))
    assert one.answer(schemas.AppendedMessages).first_seq == 2
    appended(cli, "s", ANTHROPIC[1:])
    assert log(cli, "s") == ANTHROPIC
    assert [message["role"] for message in view(cli, "s")] == ["user", "assistant", "tool"]
    shown = json.loads(cli.ok("sessions", "show", "s", "--json", "--wire", "anthropic"))
    assert shown["messages"][1]["content"][0]["type"] == "tool_use"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "no messages"),
        ("[]", "no messages"),
        ('{"role": "user", "content": "a"}\nnot json\n', "Line 2"),
        ('[{"role": "user"},\n 周]', "line 2"),
        ("17", "no message"),
        ('{"role": "", "content": "a"}', "role"),
        ('{"role": "user", "content": "fine"}\n{"role": "user", "content": 17}', "messages[1].content"),
        ("\udcff\udcfe", "UTF-8"),
        ("[" * 100_000, "too deep"),
    ],
)
def test_what_cannot_be_read_is_named_and_nothing_is_written(cli: CommandLine, text: str, named: str) -> None:
    cli.run("sessions", "append", "s", "-f", "-", stdin=text.encode("utf-8", "surrogateescape")).failed_with(named)
    assert not cli.home.exists()


def test_the_same_key_appends_once(cli: CommandLine) -> None:
    first = appended(cli, "s", turn(1), "--key", "k1")
    again = appended(cli, "s", turn(1), "--key", "k1")
    assert (first.first_seq, first.last_seq) == (again.first_seq, again.last_seq)
    assert len(log(cli, "s")) == 4


def test_more_messages_than_one_append_takes_are_appended_in_order(cli: CommandLine) -> None:
    many = [{"role": "user", "content": f"第{number}句"} for number in range(10_050)]
    made = appended(cli, "s", many)
    assert (made.first_seq, made.last_seq) == (2, 10_051)
    assert log(cli, "s", "--limit", "3") == many[-3:]


# show


def test_the_head_says_how_the_session_stands(cli: CommandLine) -> None:
    begun(cli)
    cli.ok("sessions", "pin", "support-42", "Never on Fridays.")
    assert cli.run("sessions", "flush", "support-42").code == 0
    cli.ok("sessions", "compact", "support-42")
    head = cli.run("sessions", "show", "support-42").out.split("\n\n")[0]
    fields = {line.split()[0]: " ".join(line.split()[1:]) for line in head.splitlines() if not line.startswith(" ")}
    assert fields["session"].startswith("support-42 20")
    assert fields["model"] == "gpt-4o, preset default"
    assert fields["window"] == "12,000 tokens, from: session"
    assert re.fullmatch(r"\[#+\.*\|\.+\|\.*\|\.*\] [\d,]+ tokens, ok", fields["view"])
    assert "flush from 6,750, compaction from 8,100 down to " in head and "usable 9,000" in head
    assert re.fullmatch(r"81, \d+ of them in view, from number \d+ on", fields["messages"])
    assert re.fullmatch(r"1, newest c\d+", fields["compactions"])
    assert fields["flushes"] == "1, up to message 82 of 82"
    assert (fields["pins"], fields["repairs"]) == ("1", "none")


def test_a_window_that_is_too_small_is_told(cli: CommandLine) -> None:
    cli.ok("sessions", "create", "tiny", "--context-window", "900")
    appended(cli, "tiny", turn(1))
    assert "hard: " in cli.ok("sessions", "show", "tiny") and "900" in cli.ok("sessions", "show", "tiny")
    assert "hard" in cli.ok("sessions", "list")
    cli.run("sessions", "compact", "tiny").failed_with("900")


def test_messages_stand_with_number_role_and_first_lines(cli: CommandLine) -> None:
    begun(cli, turns=1)
    printed = cli.ok("sessions", "show", "support-42").split("\n\n")[1].splitlines()
    assert printed[0] == f"     2 system     {SYSTEM['content']}"
    assert printed[1].startswith("     3 user       订单 A-1000 改到")
    assert printed[2] == "     4 assistant  -> bash: `npm test 0`"
    assert printed[3] == "     5 tool       第0行 output of a test"
    assert printed[7] == f"{' ' * 18}… 56 more lines, {60 * len('第0行 output of a test') + 60:,} characters in all"
    assert printed[8] == "     6 assistant  Order A-1000 ships on 2026-12-01."
    assert len(printed) == 9


def test_no_line_is_wider_than_the_terminal(cli: CommandLine) -> None:
    appended(cli, "s", [{"role": "user", "content": "部署" * 400}, {"role": "assistant", "content": "x" * 5000}])
    narrow = CommandLine(home=cli.home, environment={**cli.environment, "COLUMNS": "60"})
    lines = narrow.ok("sessions", "show", "s").split("\n\n")[1].splitlines()
    assert [width(line) for line in lines] in ([59, 60], [60, 60])
    assert all(line.endswith("…") for line in lines)
    assert "部署" * 400 in narrow.ok("sessions", "show", "s", "--full")


def test_what_a_tool_printed_cannot_steer_the_terminal(cli: CommandLine) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe \x9b31m ok\rback\ttab"
    appended(cli, "s", [{"role": "user", "content": evil}, {"role": "assistant", "content": "好👩‍👩‍👧"}])
    for options in ([], ["--full"], ["--view", "log"]):
        printed = cli.ok("sessions", "show", "s", *options)
        assert not {"\x1b", "\x07", "\u202e", "\x9b", "\r"} & {*printed}
        assert "\\x1b[2J" in printed and "\\u202e" in printed and "好👩‍👩‍👧" in printed
    assert log(cli, "s")[0]["content"] == evil
    assert json.loads(cli.ok("sessions", "show", "s", "--raw", "2"))["content"] == evil


def test_stubs_and_the_checkpoint_are_marked_and_numbers_are_those_of_the_log(cli: CommandLine) -> None:
    begun(cli, turns=60, window=24_000)
    cli.ok("sessions", "compact", "support-42")
    printed = cli.run("sessions", "show", "support-42", "-n", "500").out.split("\n\n", 1)[1].splitlines()
    assert printed[1].startswith("     - user       (checkpoint) [检查点：")
    stubs = [line for line in printed if "(cleared)" in line]
    assert stubs
    for line in stubs:
        seq = int(line.split()[0])
        assert line.endswith(f"已清除；log:{seq}]")
        kept = json.loads(cli.ok("sessions", "show", "support-42", "--raw", str(seq)))
        assert kept["role"] == "tool" and len(kept["content"]) > 500
    numbers = [int(line.split()[0]) for line in printed if re.match(r" *\d+ ", line)]
    assert numbers == [2, *range(numbers[1], 243)]


def test_images_are_labels(cli: CommandLine) -> None:
    appended(cli, "s", [SEEN])
    assert "[Attached image/png: file; log:2#1]" in cli.ok("sessions", "show", "s")
    assert "[image/png, 16000 bytes, ref=log:2#1]" in cli.ok("sessions", "show", "s", "--view", "log")
    assert PNG not in cli.ok("sessions", "show", "s", "--full")
    assert log(cli, "s") == [SEEN] == view(cli, "s")


def test_raw_is_byte_for_byte(cli: CommandLine) -> None:
    begun(cli, turns=1)
    run = cli.spawn("sessions", "show", "support-42", "--raw", "5")
    assert (run.code, run.err) == (0, "")
    assert run.out.encode() in (cli.workspace / "sessions" / "support-42.jsonl").read_bytes()
    assert json.loads(run.out) == talk(1)[3]
    cli.run("sessions", "show", "support-42", "--raw", "77").failed_with("77")


def test_a_part_of_the_messages(cli: CommandLine) -> None:
    begun(cli)
    run = cli.run("sessions", "show", "support-42", "--limit", "3")
    rows = [line for line in run.out.split("\n\n")[1].splitlines() if re.match(r" *\d+ ", line)]
    assert [int(row.split()[0]) for row in rows] == [80, 81, 82]
    assert run.err == "(3 of 81 messages; more with --limit, or --since SEQ)\n"
    run = cli.run("sessions", "show", "support-42", "--view", "log", "--since", "10", "--limit", "2")
    assert re.findall(r"^ *(\d+) ", run.out.split("\n\n")[1], re.MULTILINE) == ["11", "12"]
    assert log(cli, "support-42", "--since", "10", "--limit", "2") == talk()[9:11]
    assert log(cli, "support-42", "--limit", "4") == talk()[-4:]
    assert cli.run("sessions", "show", "support-42", "--json", "--limit", "3").code == 2


def test_a_view_that_had_to_be_mended_says_what_was_added(cli: CommandLine) -> None:
    lonely = [*turn(1)[:2], {"role": "user", "content": "还在吗？"}]
    appended(cli, "s", lonely)
    printed = cli.ok("sessions", "show", "s").split("\n\n")[1].splitlines()
    assert [line.split()[0] for line in printed] == ["2", "3", "-", "4"]
    assert "(added)" in printed[2]


# context


def test_a_context_is_printed_with_what_each_part_takes(cli: CommandLine) -> None:
    begun(cli, turns=3)
    cli.ok("remember", "The courier comes at four. 快递四点来。")
    arguments = ("sessions", "context", "support-42", "快递几点来？", "--system-prompt", "Be brief.", "-b", "300")
    run = cli.run(*arguments)
    assert run.code == 0
    assert run.out.startswith("     - system     Be brief.") and "快递四点来。" in run.out
    assert re.match(r"[\d,]+ of 12,000 tokens: system \d+, memory [1-9]\d*, summary 0, tail [\d,]+; receipt r", run.err)
    again = cli.run(*arguments)
    assert re.search(r"tail [\d,]+; the first 1,\d+ as in the last prompt; receipt r", again.err)
    made = cli.run(*arguments, "--json").answer(schemas.SessionContext)
    assert made.tokens.memory <= 310 and made.receipt and made.messages[0]["content"] == "Be brief."
    wired = cli.run(*arguments, "--json", "--wire", "anthropic").answer(schemas.SessionContext)
    assert wired.system and all(message["role"] in ("user", "assistant") for message in wired.messages)


def test_a_context_compacts_first_if_it_must(cli: CommandLine) -> None:
    begun(cli)
    cli.run("sessions", "context", "support-42", "--no-auto", "--max-tokens", "8000").failed_with("8000 fit")
    run = cli.run("sessions", "context", "support-42")
    assert run.code == 0 and "flushed first: " in run.err and "compacted first: c" in run.err
    again = cli.run("sessions", "context", "support-42", "--json").answer(schemas.SessionContext)
    assert again.compaction is None and again.tokens.total <= 12_000

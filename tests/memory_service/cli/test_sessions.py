"""The group `sessions`: its help, and list, create, trim, restore, delete."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import httpx
import pytest
from click.testing import CliRunner

from memory_service import MemoryClient, schemas
from memory_service.cli.columns import width
from memory_service.cli.root import root
from memory_service.cli.sessions import sessions
from tests.memory_service.cli.commands import CommandLine
from tests.memory_service.cli.talks import appended, begun, jsonl, log, talk, view
from tests.serving import W, found_by_home

NAMES = tuple(sessions.list_commands(click.Context(sessions)))
READERS = ("show", "context", "prompts", "compact", "compactions", "undo", "flush", "pins", "restore", "delete")


# Help


def test_the_contract_names_these() -> None:
    assert {"list", "show", "compact", "flush", "undo"} <= {*NAMES}


def _command(name: str) -> click.Command:
    command = sessions.get_command(click.Context(sessions), name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", NAMES)
def test_every_command_takes_the_common_options_and_tells_all(name: str) -> None:
    command = _command(name)
    assert {"home", "workspace", "as_json"} <= {parameter.name for parameter in command.params}
    text = CliRunner().invoke(root, ["sessions", name, "--help"], prog_name="memory-service").output
    assert "\\b" not in text and "\nExamples:\n" in text.replace("\n  Examples:", "\nExamples:")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.name} has no help"
            assert all(spelling in text for spelling in parameter.opts)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_valid(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "messages.jsonl").write_text("{}", "utf-8")
    epilog = _command(name).epilog or ""
    lines = [line.strip() for line in epilog.splitlines() if line.strip().startswith("memory-service")]
    assert any(line.startswith(f"memory-service sessions {name}") for line in lines)
    for line in lines:
        words = shlex.split(re.split(r" (?:\||>|<<<) ", line)[0])[2:]
        with _command(words[0]).make_context(words[0], words[1:]):
            pass


def test_the_list_of_commands_cuts_no_sentence_off() -> None:
    text = CliRunner().invoke(root, ["sessions", "--help"], prog_name="memory-service").output
    listed = text[text.index("Commands:") :].splitlines()[1:]
    assert [line.split()[0] for line in listed] == [*NAMES]
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nonsense"], "nonsense"),
        (["show"], "SESSION_ID"),
        (["show", "s", "--view", "all"], "--view"),
        (["show", "s", "--limit", "0"], "--limit"),
        (["compact", "s", "--target-tokens", "0"], "--target-tokens"),
        (["append", "s"], "--file"),
        (["append", "s", "--file", "absent.jsonl"], "absent.jsonl"),
        (["pin", "s"], "--seq"),
        (["pin", "s", "text", "--seq", "3"], "--seq"),
        (["trim", "s", "--keep", "-1"], "--keep"),
        (["context", "s", "--budget-tokens", "-1"], "--budget-tokens"),
        ([], "Usage:"),
    ],
)
def test_wrong_usage_exits_with_2(cli: CommandLine, arguments: list[str], named: str) -> None:
    run = cli.run("sessions", *arguments)
    assert (run.code, run.out) == (2, "")
    assert named in run.err
    assert not cli.home.exists()


# What is not there


@pytest.mark.parametrize("name", READERS)
def test_an_unknown_session_is_named_with_its_remedy(cli: CommandLine, name: str) -> None:
    cli.ok("remember", "A note.")
    cli.run("sessions", name, "nobody").failed_with("no session nobody", "List the sessions")
    cli.run("sessions", name, "../etc").failed_with("no id of a session")
    told = cli.run("sessions", name, "nobody", "--json")
    assert told.code == 1 and json.loads(told.err)["error"]["code"] == "not_found"


@pytest.mark.parametrize("name", READERS)
def test_a_look_makes_no_workspace(cli: CommandLine, name: str) -> None:
    cli.run("sessions", name, "support-42").failed_with("no session support-42")
    listed = cli.run("sessions", "list")
    assert (listed.code, listed.out, listed.err) == (0, "", "no sessions\n")
    assert not cli.home.exists()


# list and create


def test_the_list_shows_the_last_active_first_with_what_each_takes(cli: CommandLine) -> None:
    begun(cli, "older")
    appended(cli, "newer-", talk(1))
    lines = cli.ok("sessions", "list").splitlines()
    assert lines[0].split() == ["SESSION", "LAST", "ACTIVITY", "MESSAGES", "TOKENS", "PRESSURE", "SIZE"]
    assert [line.split()[0] for line in lines[1:]] == ["newer-", "older"]
    assert re.search(r"^older +\d{4}-\d\d-\d\d \d\d:\d\d +81 +[\d,]+  hard +\d+\.\d kB$", lines[2])
    assert re.search(r"^newer- .* +5 +[\d,]+  ok ", lines[1])
    listed = json.loads(cli.ok("sessions", "list", "--json"))
    assert [row["session_id"] for row in listed["sessions"]] == ["newer-", "older"]
    assert (listed["total"], listed["sessions"][1]["window_tokens"]) == (2, 12_000)
    assert f"{listed['sessions'][1]['tokens']:,}" in lines[2]


def test_times_are_those_of_the_timezone(cli: CommandLine) -> None:
    appended(cli, "s", talk(1))
    far = CommandLine(home=cli.home, environment={**cli.environment, "MEMORY_SERVICE_TIMEZONE": "Asia/Shanghai"})
    here, there = (re.findall(r"\d\d:\d\d", each.ok("sessions", "list"))[0] for each in (cli, far))
    assert (int(there[:2]) - int(here[:2])) % 24 == 8 and there[2:] == here[2:]


def test_the_list_says_how_many_it_leaves_out(cli: CommandLine) -> None:
    for number in range(3):
        appended(cli, f"s{number}", talk(1))
    run = cli.run("sessions", "list", "--limit", "2")
    assert run.code == 0 and len(run.out.splitlines()) == 3
    assert run.err == "(2 of 3; more with --limit)\n"


def test_one_session_that_cannot_be_used_does_not_hide_the_others(cli: CommandLine) -> None:
    appended(cli, "good", talk(1))
    cli.ok("sessions", "create", "bad", "--preset", "turns")
    file = cli.workspace / "sessions" / "bad.jsonl"
    file.write_text(file.read_text("utf-8").replace('"turns"', '"spins"'), "utf-8")
    run = cli.run("sessions", "list")
    assert run.code == 0 and "good" in run.out and re.search(r"^bad .* \? ", run.out, re.MULTILINE)
    assert run.err.startswith("degraded: bad: ") and "compaction.preset" in run.err


def test_an_empty_list_says_so(cli: CommandLine) -> None:
    cli.ok("remember", "A note.")
    run = cli.run("sessions", "list")
    assert (run.code, run.out, run.err) == (0, "", "no sessions\n")
    assert json.loads(cli.ok("sessions", "list", "--json")) == {"sessions": [], "total": 0}


def test_a_session_begins_with_its_own_model_window_and_preset(cli: CommandLine) -> None:
    run = cli.run(
        "sessions", "create", "s", "--model", "gpt-4o", "--context-window", "9000", "--preset", "turns", "--json"
    )
    made = run.answer(schemas.Session)
    assert (made.session_id, made.context_window.tokens, made.preset) == ("s", 9000, "turns")
    cli.run("sessions", "create", "s").failed_with("session s already")
    cli.run("sessions", "create", "t", "--preset", "spins").failed_with("spins", "openclaw")
    assert cli.ok("sessions", "create").startswith("created  2")


# trim, restore, delete


def test_a_trim_can_be_taken_back(cli: CommandLine) -> None:
    begun(cli)
    before = log(cli)
    printed = cli.ok("sessions", "trim", "support-42", "--keep", "8")
    assert "72 messages" in printed
    assert before[0]["role"] == "system" and log(cli) == [before[0], *before[-8:]]
    assert "81 messages" in cli.ok("sessions", "restore", "support-42")
    assert log(cli) == before
    assert "moved to" in cli.ok("sessions", "trim", "support-42") and len(log(cli)) <= 100
    cli.ok("sessions", "restore", "support-42")
    cli.run("sessions", "restore", "support-42").failed_with("trim")


def test_delete_asks_and_erases(cli: CommandLine) -> None:
    begun(cli)
    for answer in ("n\n", ""):
        run = cli.run("sessions", "delete", "support-42", stdin=answer)
        assert run.code == 1 and run.out == "" and "with 81 messages?" in run.err
        assert len(log(cli)) == 81
    run = cli.run("sessions", "delete", "support-42", stdin="y\n")
    assert run.code == 0
    assert run.out.startswith(
        "deleted  support-42\nerased 0 passages; looked for in files, rows, full text: nothing left\n"
    )
    assert not list((cli.workspace / "sessions").glob("support-42*"))
    begun(cli)
    erased = cli.run("sessions", "delete", "support-42", "--yes", "--json").answer(schemas.ErasedSession)
    assert erased.session_id == "support-42"
    assert json.loads(cli.ok("sessions", "list", "--json"))["sessions"] == []


# Beside a server


def test_commands_work_beside_a_server(cli: CommandLine) -> None:
    begun(cli)
    with found_by_home(cli.home) as url, MemoryClient(url, workspace="default") as memory:
        assert cli.spawn("sessions", "compact", "support-42").code == 0
        said = {"messages": [{"role": "user", "content": "周五部署吗？"}]}
        httpx.post(f"{url}{W}/sessions/support-42/messages", json=said, timeout=120).raise_for_status()
        assert log(cli)[-1]["content"] == "周五部署吗？"
        run = cli.spawn("sessions", "undo", "support-42")
        assert (run.code, run.err) == (0, "")
        assert len(view(cli)) == 82
        assert cli.spawn("sessions", "flush", "support-42").code == 0
        assert any("A-1003" in result.text for result in memory.search("Order A-1003 ships", limit=20).results)
        done = cli.spawn("sessions", "append", "support-42", "--file", "-", input=jsonl(talk(1)).encode())
        assert done.code == 0, done.err
        cli.ok("sessions", "delete", "support-42", "--yes")
    assert not (cli.workspace / "sessions" / "support-42.jsonl").exists()


def test_columns_stand_below_each_other(cli: CommandLine) -> None:
    begun(cli)
    lines = cli.ok("sessions", "list").splitlines()
    assert len({width(line) for line in lines}) == 1


def test_a_title_names_a_session_whose_id_is_made_from_it(cli: CommandLine, tmp_path: Path) -> None:
    said = tmp_path / "said.json"
    said.write_text('{"role": "user", "content": "我们什么时候发布？"}', "utf-8")
    for _ in range(2):
        cli.ok("sessions", "append", "客服 Order 42", "--file", str(said))
    (row,) = json.loads(cli.ok("sessions", "list", "--json"))["sessions"]
    assert row["title"] == "客服 Order 42" and row["messages"] == 2
    assert re.fullmatch(r"order-42-[0-9a-f]{8}", row["session_id"])
    assert "客服 Order 42" in cli.ok("sessions", "show", "客服 Order 42") and "客服" in cli.ok("sessions", "list")
    cli.ok("sessions", "create", "投诉")
    cli.run("sessions", "create", "投诉").failed_with("There is a session session-")
    assert "投诉" in cli.ok("sessions", "show", "投诉")
    cli.ok("sessions", "create", "plain-id", "--title", "有名字")
    assert "有名字" in cli.ok("sessions", "show", "plain-id")
    cli.run("sessions", "show", "../客服").failed_with("is no id of a session")


# prompts


def test_the_sizes_of_the_last_prompts_stand_in_a_table(cli: CommandLine) -> None:
    appended(cli, "sized", talk(1))
    empty = cli.run("sessions", "prompts", "sized")
    assert (empty.code, empty.out, empty.err) == (0, "", "no prompts\n")
    assert cli.run("sessions", "context", "sized").code == 0
    appended(cli, "sized", talk(2))
    assert cli.run("sessions", "context", "sized").code == 0
    measures = cli.run("sessions", "prompts", "sized", "--json").answer(schemas.PromptMeasures).prompts
    head, *rows = cli.ok("sessions", "prompts", "sized").splitlines()
    assert head.split() == "WHEN SYSTEM TOOLS PINS SUMMARY MEMORY TAIL FREE CACHED RECEIPT".split()
    assert len(rows) == len(measures) == 2 and 0 < measures[0].tail < measures[1].tail
    for row, measure in zip(rows, measures, strict=True):
        for tokens in (measure.system, measure.tail, measure.free, measure.cached_prefix_tokens):
            assert f" {tokens:,}" in row

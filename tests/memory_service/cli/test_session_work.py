"""compact, compactions, undo and flush."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from memory_service import schemas
from memory_service.storage.engines import open_storage
from tests.memory_service.cli.commands import CommandLine
from tests.memory_service.cli.talks import appended, begun, jsonl, log, talk, view
from tests.serving import settings


def receipt(cli: CommandLine, *arguments: str) -> schemas.CompactionReceipt:
    return cli.run("sessions", *arguments, "--json").answer(schemas.CompactionReceipt)


def raw(cli: CommandLine) -> bytes:
    with closing(open_storage(settings(cli.home))) as storage:
        return storage.workspace("default").logs.open("support-42").tail()[0]


@pytest.mark.parametrize("mode", ["--plan", "--preview"])
def test_a_plan_shows_its_steps_and_changes_nothing(cli: CommandLine, mode: str) -> None:
    begun(cli)
    before = raw(cli)
    printed = cli.ok("sessions", "compact", "support-42", mode)
    assert raw(cli) == before
    lines = printed.splitlines()
    assert lines[0].split() == ["STEP", "BEFORE", "AFTER", "COUNT"]
    assert any(line.split()[0] == "old_results" for line in lines[1:])
    assert re.search(r"^covers +messages 3-\d+,", printed, re.MULTILINE)
    assert re.search(r"^keeps +from message \d+ on$", printed, re.MULTILINE)
    assert lines[-1].endswith("Nothing was changed.")
    assert ("  | ## " in printed) == (mode == "--preview")
    assert receipt(cli, "compact", "support-42", mode).mode == mode[2:]
    assert raw(cli) == before


def test_a_branch_is_begun_once(cli: CommandLine) -> None:
    begun(cli)
    for _ in range(2):
        printed = cli.ok("sessions", "branch", "support-42", "12", "--title", "With a queue")
        assert re.fullmatch(
            r"branched  support-42\.branch-with-a-queue-\w{8}  With a queue  \d+ messages, .+\n", printed
        )
    cli.ok("sessions", "branch", "support-42", "12", "--id", "other")
    assert log(cli, "other") == log(cli)[:11]
    cli.run("sessions", "branch", "support-42", "9999").failed_with("9999")
    assert cli.run("sessions", "branch", "support-42", "9", "--json").answer(schemas.Session).title == ""


def test_a_compaction_shrinks_the_view_keeps_the_log_and_is_undone_exactly(cli: CommandLine) -> None:
    begun(cli)
    seen, said = view(cli), log(cli)
    printed = cli.ok("sessions", "compact", "support-42")
    last = re.search(r"^compacted (c\d+): ([\d,]+) -> ([\d,]+) tokens \((\d+)%\)$", printed, re.MULTILINE)
    assert last is not None
    before, after = (int(number.replace(",", "")) for number in last.groups()[1:3])
    assert after < before / 2 and len(view(cli)) < len(seen) and log(cli) == said
    undone = cli.ok("sessions", "undo", "support-42")
    assert re.fullmatch(rf"undone  {last[1]}  [\d,]+ -> [\d,]+ tokens\n", undone)
    assert view(cli) == seen
    cli.run("sessions", "undo", "support-42").failed_with("no compaction that counts")
    cli.run("sessions", "undo", "support-42", last[1]).failed_with("undone before")
    cli.run("sessions", "undo", "support-42", "c99999").failed_with("c99999")


def test_a_plan_of_a_talk_that_is_just_begun_does_not_make_it_larger(cli: CommandLine) -> None:
    appended(cli, "support-42", [{"role": "user", "content": "Where is ORD-4711?"}])
    cli.ok("sessions", "pin", "support-42", "Never promise a delivery date.")
    for more in ((), ("--force",), ("--plan", "--force"), ("--plan",)):
        printed = cli.run("sessions", "compact", "support-42", *more)
        assert printed.code == 0 and "nothing left to compact" in printed.out + printed.err, (more, printed)


def test_nothing_to_do_is_no_failure(cli: CommandLine) -> None:
    appended(cli, "support-42", [{"role": "user", "content": "几点开门？"}])
    before = raw(cli)
    run = cli.run("sessions", "compact", "support-42")
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith("nothing to do: ") and run.out.count("\n") == 1
    assert raw(cli) == before


def test_what_is_wanted_of_a_compaction_counts(cli: CommandLine) -> None:
    begun(cli)
    assert receipt(cli, "compact", "support-42", "--plan", "--preset", "turns").preset == "turns"
    assert receipt(cli, "compact", "support-42", "--plan", "--target-tokens", "2500").target_tokens == 2500
    cli.run("sessions", "compact", "support-42", "--preset", "spins").failed_with("spins")
    made = receipt(cli, "compact", "support-42", "--instructions", "Keep order numbers.", "--force")
    assert made.applied and made.compaction_id


def test_undo_tells_the_sizes_in_json_too(cli: CommandLine) -> None:
    begun(cli)
    made = receipt(cli, "compact", "support-42")
    answer = json.loads(cli.ok("sessions", "undo", "support-42", "--json"))
    assert answer["compaction_id"] == made.compaction_id and answer["active"] is False
    assert answer["view_tokens_before"] < answer["view_tokens_after"] == made.tokens_before


def test_past_compactions_are_listed_newest_first(cli: CommandLine) -> None:
    begun(cli)
    run = cli.run("sessions", "compactions", "support-42")
    assert (run.code, run.out, run.err) == (0, "", "no compactions\n")
    first = receipt(cli, "compact", "support-42").compaction_id
    cli.ok("sessions", "undo", "support-42")
    second = receipt(cli, "compact", "support-42").compaction_id
    assert first and second
    lines = cli.ok("sessions", "compactions", "support-42").splitlines()
    assert [(line.split()[0], line.split()[-1]) for line in lines[1:]] == [(second, "active"), (first, "undone")]
    listed = cli.run("sessions", "compactions", "support-42", "--json").answer(schemas.Compactions)
    assert [each.compaction_id for each in listed.compactions] == [second, first]
    shown = cli.ok("sessions", "compactions", "support-42", second)
    assert "  | ## " in shown and shown.splitlines()[-1].startswith(f"compacted {second}: ")
    assert receipt(cli, "compactions", "support-42", first).active is False
    cli.run("sessions", "compactions", "support-42", "c99999").failed_with("c99999")


def test_a_flush_says_what_it_wrote_where(cli: CommandLine) -> None:
    begun(cli, turns=4)
    made = cli.run("sessions", "flush", "support-42")
    assert made.code == 0 and made.err.count("embedding_model is none, so rules alone tell what lasts") == 1
    printed = made.out
    *memories, last = printed.splitlines()
    assert re.match(rf"{len(memories)} written(, \d+ known before)? in messages 3-\d+: .*\(extractive\)$", last)
    for memory in memories:
        memory_id, where, text = memory.split(maxsplit=2)
        path, line = re.findall(r"^(.*)#L(\d+)", where)[0]
        written = cli.read(path).splitlines()
        assert f"id={memory_id}" in written[int(line) - 2]
        assert text.rstrip("…")[:20] in written[int(line) - 1]
    assert "A-1002" in cli.ok("search", "Order A-1002 ships")
    again = cli.run("sessions", "flush", "support-42", "--json").answer(schemas.Flush)
    assert again.written == [] and again.reason == "nothing was said since the last flush"
    assert cli.ok("sessions", "flush", "support-42") == "nothing written: nothing was said since the last flush\n"


def test_compactions_and_appends_at_once_lose_nothing(cli: CommandLine) -> None:
    begun(cli)
    commands = [("compact", "support-42")] * 2
    late = [{"role": "user", "content": f"第{number}句话，later."} for number in range(2)]
    with ThreadPoolExecutor(4) as typists:
        compacted = [typists.submit(cli.spawn, "sessions", *command) for command in commands]
        sent = [
            typists.submit(cli.spawn, "sessions", "append", "support-42", "-f", "-", input=jsonl([message]).encode())
            for message in late
        ]
    assert [(done.result().code, done.result().err) for done in sent] == [(0, "")] * 2
    for done in compacted:
        run = done.result()
        # Who comes second finds nothing to do, adds to what the first did, or is told to look again.
        assert run.code == 0 or (run.code == 1 and run.err.startswith("error: ") and run.err.count("\n") == 1), run
    assert any(done.result().code == 0 for done in compacted)
    said = log(cli)
    assert said[:81] == talk() and sorted(map(str, said[81:])) == sorted(map(str, late))
    shown = [str(message["content"]) for message in view(cli)]
    assert all(any(str(message["content"]) in text for text in shown) for message in late)


def test_numbers_of_the_preset_are_overridden_for_one_call(cli: CommandLine) -> None:
    begun(cli)
    numbers = ("--override", "keep_messages=4", "--override", "keep_most_tokens=null")
    made = json.loads(cli.ok("sessions", "compact", "support-42", "--plan", "--force", "--json", *numbers))
    assert made["overrides"] == {"keep_messages": 4, "keep_most_tokens": None}
    as_it_is = json.loads(cli.ok("sessions", "compact", "support-42", "--plan", "--force", "--json"))
    assert made["first_kept"] > as_it_is["first_kept"] and as_it_is["overrides"] == {}
    cli.run("sessions", "compact", "support-42", "--override", "keep_turns=none").failed_with("keep_turns", "'none'")
    run = cli.run("sessions", "compact", "support-42", "--override", "keep_turns")
    assert run.code == 2 and "NAME=VALUE" in run.err

"""remember, forget and get."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess

import pytest

from memory_service import schemas
from tests.memory_service.cli.commands import PROGRAM, CommandLine


def remembered(cli: CommandLine, text: str, *options: str, stdin: str | bytes = "") -> schemas.StoredMemory:
    return cli.run("remember", text, "--json", *options, stdin=stdin).answer(schemas.StoredMemory)


def results(cli: CommandLine, query: str, *options: str) -> list[schemas.SearchResult]:
    return cli.run("search", query, "--json", *options).answer(schemas.SearchResults).results


def test_an_entry_stands_in_the_file_of_today_and_is_found(cli: CommandLine) -> None:
    printed = cli.ok("remember", "Deploys go out on Tuesdays.", "--tag", "ops", "--tag", "release/web")
    word, memory_id, where = printed.split()
    path, line = where.split("#L")
    assert word == "remembered"
    assert path in {f"memory/{dt.datetime.now(dt.UTC).date() - dt.timedelta(days=days)}.md" for days in (0, 1)}
    lines = cli.read(path).splitlines()
    assert lines[int(line) - 1] == "- Deploys go out on Tuesdays. #ops #release/web"
    assert f"id={memory_id}" in lines[int(line) - 2] and "origin=user" in lines[int(line) - 2]
    (found,) = results(cli, "deploys")
    assert (found.path, found.start_line) == (path, int(line))


def test_date_origin_and_session_are_kept(cli: CommandLine) -> None:
    options = ("--date", "2026-11-03", "--origin", "tool", "--session", "ops-114")
    stored = remembered(cli, "The certificate was renewed.", *options)
    assert stored.path == "memory/2026-11-03.md" and not stored.duplicate
    comment = cli.read(stored.path).splitlines()[stored.start_line - 2]
    assert "session=ops-114" in comment and "origin=tool" in comment


def test_the_same_text_is_stored_once(cli: CommandLine) -> None:
    first = remembered(cli, "周二部署，周五不部署。")
    again = remembered(cli, "周二部署，周五不部署。")
    assert again == first.model_copy(update={"duplicate": True})
    assert cli.ok("remember", "周二部署，周五不部署。") == (
        f"already there  {first.memory_id}  {first.path}#L{first.start_line}\n"
    )
    assert [found.text for found in results(cli, "周五 部署")] == ["周二部署，周五不部署。"]


def test_a_dash_reads_standard_input(cli: CommandLine) -> None:
    stored = remembered(cli, "-", stdin="The first line, 第一行.\n\n```\ncode\n```\n")
    text = cli.read(stored.path)
    assert "- The first line, 第一行." in text and "code" in text
    assert stored.end_line > stored.start_line
    assert "\r" not in (cli.workspace / remembered(cli, "-", stdin="One.\r\nTwo.\r\n").path).read_bytes().decode()
    # A mark of byte order, as editors on Windows write it, is no part of the memory.
    marked = remembered(cli, "-", stdin="\ufeffA marked line.")
    assert cli.ok("get", marked.path, "--start-line", str(marked.start_line)).startswith("- A marked line.")


def test_standard_input_that_is_not_text_is_refused(cli: CommandLine) -> None:
    cli.run("remember", "-", stdin=b"caf\xe9").failed_with("not UTF-8")
    assert not cli.home.exists()
    cli.run("remember", "-", stdin="").failed_with("empty")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["remember", " \n "], "text of the memory is empty"),
        (["remember", "x", "--tag", "two words"], "'two words'"),
        (["remember", "x", "--session", "../up"], "'../up'"),
        (["remember", "x", "--workspace", "../up"], "'../up'"),
        (["remember", "x", "--workspace", "UPPER"], "'UPPER'"),
        (["get", "../../etc/passwd"], "'../../etc/passwd'"),
        (["get", "/etc/passwd"], "'/etc/passwd'"),
        (["get", "memory/../../x.md"], "'memory/../../x.md'"),
        (["get", "index.sqlite"], "'index.sqlite'"),
    ],
)
def test_bad_names_are_refused_in_one_line(cli: CommandLine, arguments: list[str], named: str) -> None:
    cli.write("MEMORY.md", ["- A note."])
    before = sorted(cli.home.rglob("*"))
    cli.run(*arguments).failed_with(named)
    assert sorted(path for path in cli.home.rglob("*") if ".locks" not in path.parts) == before


def test_get_prints_a_range_and_says_how_to_go_on(cli: CommandLine) -> None:
    cli.write("memory/notes.md", [f"- note {number}" for number in range(1, 11)])
    assert cli.ok("get", "memory/notes.md") == "".join(f"- note {number}\n" for number in range(1, 11))
    run = cli.run("get", "memory/notes.md", "--start-line", "3", "--lines", "2")
    assert (run.code, run.out) == (0, "- note 3\n- note 4\n")
    assert "line 4 of 10" in run.err and "--start-line 5" in run.err
    part = cli.run("get", "memory/notes.md", "--start-line", "9", "--lines", "5", "--json").answer(schemas.FileText)
    assert (part.text, part.start_line, part.end_line) == ("- note 9\n- note 10\n", 9, 10)
    assert (part.total_lines, part.next_start_line) == (10, None)


def test_get_of_a_file_that_cannot_be_had_says_why(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- A note."])
    cli.run("get", "memory/absent.md").failed_with("memory/absent.md")
    (cli.workspace / "USER.md").write_bytes(b"- ok\n- caf\xe9\n")
    cli.run("get", "USER.md").failed_with("USER.md", "UTF-8", "line 2")


def test_forget_erases_from_file_and_index(cli: CommandLine) -> None:
    stored = remembered(cli, "The spare key hangs behind the door.")
    kept = remembered(cli, "The kettle is in the kitchen.")
    assert cli.ok("forget", stored.memory_id).startswith(
        f"forgotten  {stored.memory_id}  {stored.path}\n"
        "erased 1 passage; looked for in files, rows, full text: nothing left\n"
    )
    assert "spare key" not in cli.read(stored.path)
    index = cli.workspace / "index.sqlite"
    assert not index.exists() or b"spare key" not in index.read_bytes()
    assert results(cli, "spare key") == []
    gone = cli.run("forget", kept.memory_id, "--json").answer(schemas.ForgottenMemory)
    assert (gone.memory_id, gone.path) == (kept.memory_id, kept.path)


def test_forget_of_an_unknown_memory_is_one_whole_sentence(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- A note."])
    run = cli.run("forget", "m0123456789ab")
    run.failed_with("There is no memory m0123456789ab. ")
    cli.run("forget", "没有").failed_with("There is no memory ")


def test_an_error_is_json_where_json_was_asked_for(cli: CommandLine) -> None:
    run = cli.run("get", "memory/absent.md", "--workspace", "nowhere", "--json")
    assert (run.code, run.out) == (1, "")
    error = schemas.ErrorAnswer.model_validate_json(run.err).error
    assert error.code == "not_found" and "memory/absent.md" in error.message


def test_workspaces_do_not_see_each_other(cli: CommandLine) -> None:
    cli.ok("remember", "Anna likes tea.", "--workspace", "anna")
    cli.ok("remember", "Ben likes coffee.", "-w", "ben")
    assert [found.text for found in results(cli, "likes", "-w", "anna")] == ["Anna likes tea."]
    named = CommandLine(home=cli.home, environment={**cli.environment, "MEMORY_SERVICE_WORKSPACE": "ben"})
    assert [found.text for found in results(named, "likes")] == ["Ben likes coffee."]


def test_an_argument_that_is_not_utf_8_is_no_defect(cli: CommandLine) -> None:
    done = subprocess.run(
        [*(os.fsencode(part) for part in PROGRAM), b"remember", b"caf\xe9 au lait"],
        env=cli.variables, capture_output=True, timeout=240, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1)
    assert cli.run("search", "lait").code == done.returncode


def test_a_day_that_is_none_is_wrong_usage(cli: CommandLine) -> None:
    for command in (("search", "x", "--since"), ("context", "x", "--until"), ("remember", "x", "--date")):
        for day in ("yesterday", "2026-13-01"):
            run = cli.run(*command, day)
            assert run.code == 2 and f"{day!r} is no day. Write one such as 2026-11-20." in run.err


def test_an_explained_result_tells_its_relevance(cli: CommandLine) -> None:
    cli.ok("remember", "Deploys go out on Tuesdays.")
    found = json.loads(cli.ok("search", "deploys", "--explain", "--json"))["results"][0]
    assert f"     relevance   {found['relevance']:.3f}\n" in cli.ok("search", "deploys", "--explain")
    assert "relevance" not in cli.ok("search", "deploys")

"""entries, edit and forget: what they print, ask and refuse, with a server and without."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memory_service import schemas
from memory_service.cli.output import erased_line
from memory_service.service import MemoryService
from tests.memory_service.cli.commands import PROGRAM, CommandLine
from tests.serving import serving, settings

OLD = "memory/2026-11-03.md"


@pytest.fixture
def filled(cli: CommandLine) -> CommandLine:
    cli.write(OLD, ["# 2026-11-03", "", "- Anna likes tea. #people", "- Ben likes coffee.", "", "About trams."])
    return cli


def _listed(cli: CommandLine, *options: str) -> list[schemas.MemoryEntry]:
    return cli.run("entries", "--json", *options).answer(schemas.MemoryEntries).entries


def test_entries_are_listed_with_their_ids(filled: CommandLine) -> None:
    ben, anna = _listed(filled)
    assert filled.ok("entries", "--tag", "PEOPLE") == f"{anna.memory_id}  {OLD}#L3\n   Anna likes tea. #people\n"
    run = filled.run("entries", "--limit", "1")
    assert run.out.startswith(ben.memory_id) and run.err == f"(go on with --cursor {OLD}#L4)\n"
    assert [entry.memory_id for entry in _listed(filled, "--cursor", f"{OLD}#L4")] == [anna.memory_id]
    assert filled.run("entries", "--origin", "agent").err.startswith("no entries in ")
    assert _listed(filled, "--since", "2026-11-04") == _listed(filled, "--session", "s-1") == []
    filled.run("entries", "--cursor", "x").failed_with("cursor")
    found = filled.ok("search", "tea", "--tag", "people")
    assert (
        found.startswith(f"1. {OLD}#L3  ") and f"  {anna.memory_id}  2026-11-03\n   Anna likes tea. #people\n" in found
    )


def test_an_entry_is_edited_by_id_or_place(filled: CommandLine) -> None:
    [anna] = _listed(filled, "--tag", "people")
    assert filled.ok("edit", anna.memory_id, "Anna likes cocoa.") == (
        f"changed  {anna.memory_id}  {OLD}#L4\n   Anna likes cocoa. #people\n"
    )
    changed = filled.run("edit", f"{OLD}#L4", "--no-tags", "--json").answer(schemas.ChangedEntry)
    assert (changed.text, changed.memory_id) == ("Anna likes cocoa.", anna.memory_id)
    assert filled.ok("edit", anna.memory_id, "-", stdin="One\ntwo\n").endswith("   One\n   two\n")
    filled.run("edit", anna.memory_id, "x", "--etag", anna.etag).failed_with("was changed: its etag is")
    filled.run("edit", anna.memory_id, "x", "--origin", "agent").failed_with("the user's word")
    filled.run("edit", "m0123456789ab", "x").failed_with("There is no memory m0123456789ab")
    for wrong in (["edit", anna.memory_id], ["edit", anna.memory_id, "--tag", "x", "--no-tags"]):
        assert filled.run(*wrong).code == 2


def test_a_dry_run_shows_what_would_go(filled: CommandLine) -> None:
    before = filled.read(OLD)
    [anna] = _listed(filled, "--tag", "people")
    shown = f"1. {OLD}#L3  {anna.memory_id}\n   Anna likes tea. #people\n"
    for named in ([anna.memory_id], [f"{OLD}#L3"], ["--search", "likes TEA"]):
        assert filled.ok("forget", *named, "--dry-run") == shown
    whole = filled.run("forget", OLD, "--dry-run", "--json").answer(schemas.ForgottenMemory)
    assert whole.dry_run and whole.removed[-1].text == "About trams.\n" and len(whole.removed) == 4
    run = filled.run("forget", "--search", "likes", "--dry-run")
    assert "2 memories have these words: nothing would go" in run.err and run.out.count("likes") == 2
    assert filled.read(OLD) == before


def test_places_and_words_are_forgotten(filled: CommandLine) -> None:
    filled.ok("search", "trams")
    assert filled.ok("forget", f"{OLD}#L6").startswith(f"forgotten  {OLD}#L6  {OLD}\nerased 1 passage; ")
    run = filled.run("forget", "--search", "likes", "--json", "--yes")
    assert (run.code, run.out) == (1, "") and json.loads(run.err)["error"]["code"] == "conflict"
    run = filled.run("forget", "--search", "likes")
    assert run.code == 1 and "error: These words stand in 2 memories" in run.err and "Anna likes tea" in run.err
    assert "forgotten" in filled.ok("forget", "--search", "likes tea")
    filled.ok("remember", "Cara likes water.")
    assert filled.ok("forget", "--search", "likes", "--yes").count("forgotten") == 2
    assert _listed(filled) == []
    for wrong in (["forget"], ["forget", "m0", "--search", "x"]):
        assert filled.run(*wrong).code == 2


def test_with_a_server_the_same_is_said(filled: CommandLine, tmp_path: Path) -> None:
    """The ids are those of the texts, so that two homes say the same."""
    commands = [
        ["entries", "--tag", "people", "--json"],
        ["edit", f"{OLD}#L4", "Ben likes cocoa.", "--tag", "x"],
        ["forget", "--search", "cocoa", "--dry-run"],
        ["forget", f"{OLD}#L3"],
    ]
    other = CommandLine(home=tmp_path / "served")
    other.write(OLD, filled.read(OLD).splitlines())
    with serving(MemoryService(settings(other.home, embedding_model="none"))) as server:
        warm = CommandLine(home=tmp_path / "unused", environment={"MEMORY_SERVICE_URL": server.url})
        for command in commands:
            told, said = warm.run(*command), filled.run(*command)
            # When the last of it is gone from a database is a time of each call.
            printed = [run.out.partition("\nstill in ")[0] for run in (told, said)]
            assert (told.code, printed[0], told.err) == (said.code, printed[1], said.err), command
        warm.run("forget", f"{OLD}#L99").failed_with("none with the number 99", server.place)
        filled.run("forget", f"{OLD}#L99").failed_with("none with the number 99", str(filled.home))
    assert not (tmp_path / "unused").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
@pytest.mark.parametrize(("answer", "left"), [(b"1\n", 1), (b"1, 2\n", 0), (b"none\n", 2), (b"7\n", 2)])
def test_a_terminal_is_asked(filled: CommandLine, answer: bytes, left: int) -> None:
    import pty

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, "forget", "--search", "likes"], env=filled.variables, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        seen = b""
        while b"(numbers, or none)" not in seen:
            seen += os.read(ours, 4096)
        os.write(ours, answer)
        with open(ours, "rb", buffering=0) as rest:
            try:
                while piece := rest.read(4096):
                    seen += piece
            except OSError:  # Linux says so of a terminal whose other end is closed
                pass
        assert process.wait(timeout=240) == 0
    assert b"These have the words" in seen and b"Anna likes tea" in seen
    assert len(_listed(filled)) == left


@pytest.mark.parametrize("until", [dt.datetime(2026, 11, 28, 11, 4, tzinfo=dt.UTC), "2026-11-28T11:04:05.25Z"])
def test_what_is_not_gone_yet_is_told_with_its_time_whoever_read_the_answer(until: Any) -> None:
    pending = schemas.PendingErasure.model_construct(place="the tables of the database", until=until)
    erased = schemas.Erased.model_construct(passages=1, checked=["files"], pending=[pending])
    assert erased_line(erased).splitlines() == [
        "erased 1 passage; looked for in files: nothing left",
        "still in the tables of the database; gone by 2026-11-28 11:04 UTC",
    ]

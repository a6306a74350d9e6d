"""The command that moves a home: there and back, killed at any time, with what it prints."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memory_service.home import announce_server
from memory_service.service import MemoryService
from tests.memory_service.cli.commands import CommandLine, Run
from tests.serving import settings

WORDS = {"MEMORY_SERVICE_EMBEDDING_MODEL": "none"}
NOTES = 150


def command(home: Path, *arguments: str) -> list[str]:
    """The command line that moves."""
    return [sys.executable, "-m", "memory_service", "migrate", "--home", str(home), *arguments]


def migrate(home: Path, *arguments: str) -> Run:
    """A move in this process."""
    return CommandLine(home=home, environment=WORDS).run("migrate", "--home", str(home), *arguments)


def moved(home: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """What a move answers as JSON, its exit code, and what it says beside."""
    done = migrate(home, *arguments, "--json")
    return done.code, json.loads(done.out or "{}"), done.err


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with some memories and a conversation."""
    with MemoryService(settings(tmp_path / "home", embedding_model="none")) as service:
        for number in range(NOTES):
            service.remember("default", f"Note {number}: deploys of team {number % 7} go out at {number % 24}:00.")
        service.append("default", "desk", [{"role": "user", "content": f"Message {n}."} for n in range(40)])
    return tmp_path / "home"


def test_a_home_is_moved_into_a_database_and_back(home: Path, migrated_database: str, tmp_path: Path) -> None:
    code, there, _ = moved(home, "--to", migrated_database)
    assert code == 0 and there["complete"] and not there["was_finished"] and "@" not in there["target"]
    code, back, _ = moved(home, "--from", migrated_database, "--to", str(tmp_path / "back"))
    assert code == 0 and [part["sha256"] for part in back["parts"]] == [part["sha256"] for part in there["parts"]]
    for path in sorted((home / "default" / "memory").glob("*.md")):
        assert (tmp_path / "back" / "default" / "memory" / path.name).read_bytes() == path.read_bytes()
    with MemoryService(settings(tmp_path / "rows", embedding_model="none", database_url=migrated_database)) as service:
        assert "Note 77:" in service.search("default", "Note 77").results[0].text
        assert len(service.messages("default", "desk", limit=100).messages) == 40
    done = migrate(home, "--to", migrated_database)
    assert done.code == 0 and "was moved before and is equal" in done.err
    assert [line.split()[-1] for line in done.out.splitlines()[1:]] == ["equal"] * len(there["parts"])
    with MemoryService(settings(tmp_path / "rows", embedding_model="none", database_url=migrated_database)) as service:
        service.remember("default", "Since then there is more.")
    done = migrate(home, "--to", migrated_database)
    assert done.code == 1 and "DIFFERS" in done.out and "is not moved" in done.err


def test_a_move_that_is_killed_goes_on(home: Path, migrated_database: str) -> None:
    chance, kills = random.Random(4), 0
    for _ in range(6):
        process = subprocess.Popen(command(home, "--to", migrated_database), stdout=subprocess.DEVNULL)
        try:
            process.wait(0.7 + 1.2 * chance.random())
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait(60)
    code, report, text = moved(home, "--to", migrated_database)
    assert code == 0 and report["complete"], text
    assert kills or report["was_finished"]


def test_a_place_that_cannot_be_is_refused(home: Path, tmp_path: Path) -> None:
    for place, words in (
        ("mysql://host/name", "not at mysql:"),
        (str(home), "where it is"),
        ("postgresql://someone:hunter2@127.0.0.1:1/none", "127.0.0.1:1/none"),
    ):
        code, _, text = moved(home, "--from", str(home), "--to", place)
        assert code == 1 and words in text and "hunter2" not in text
    code, _, text = moved(home, "--from", str(tmp_path / "nobody"), "--to", str(tmp_path / "new"))
    assert code == 1 and "nothing to move" in text and not (tmp_path / "nobody").exists()
    with announce_server(home, "http://127.0.0.1:1", "x" * 32):
        code, _, text = moved(home, "--to", str(tmp_path / "new"))
        assert code == 1 and "Stop it" in text


def test_a_person_is_told_what_a_database_still_holds_and_has_it_rewritten(
    tmp_path: Path, migrated_database: str
) -> None:
    code, _, said = moved(tmp_path, "--rewrite")
    assert code != 0 and "is in files, where nothing is left" in said
    words = {**WORDS, "MEMORY_SERVICE_DATABASE_URL": migrated_database}
    for arguments, answers in {
        ("remember", "The vault opens with a word."): [],
        ("forget", "--search", "vault opens", "--yes"): [
            "still in the tables of the database",
            "; gone by 20",
            "backups",
        ],
        ("migrate", "--rewrite"): ["rewritten in", "documents, ", "log_records"],
    }.items():
        done = CommandLine(home=tmp_path, environment=words).run(*arguments, "--home", str(tmp_path))
        assert done.code == 0, done.err
        for answer in answers:
            assert answer in done.out


def test_what_is_not_there_was_looked_for_in_the_database(tmp_path: Path, migrated_database: str) -> None:
    address = migrated_database.replace("postgres@", "postgres:open-sesame@", 1)
    assert address != migrated_database
    place = address.rpartition("@")[2].partition("?")[0]
    words = {**WORDS, "MEMORY_SERVICE_DATABASE_URL": address}
    for arguments in (("get", "memory/2026-01-01.md"), ("workspaces",), ("workspaces", "--json")):
        done = CommandLine(home=tmp_path, environment=words).run(*arguments, "--home", str(tmp_path / "folder"))
        assert f"the database {place}" in done.out + done.err
        assert "open-sesame" not in done.out + done.err and str(tmp_path) not in done.out + done.err

"""keys, receipts and facts: what they print, for people and as JSON, with a server and without."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from memory_service import schemas
from memory_service.service import MemoryService
from tests.memory_service.cli.commands import CommandLine
from tests.serving import found_by_home, settings

# Longer than a process may know a key.
KNOWN_SECONDS = 1.3


def test_a_key_is_made_listed_and_withdrawn(cli: CommandLine) -> None:
    run = cli.run("keys", "list")
    assert (run.code, run.out) == (0, "") and "need none" in run.err
    run = cli.run("keys", "add", "help desk", "--role", "read", "-k", "support", "--for", "team", "--days", "3")
    key = run.out.strip()
    key_id = key.split("_")[1]
    assert (run.code, run.err) == (0, f"read for support, team; withdraw it: keys withdraw {key_id}\n")
    line = cli.ok("keys", "list")
    assert line.startswith(f"{key_id}  read  support,team  help desk  until ") and "used" not in line
    assert key not in line
    with MemoryService(settings(cli.home, embedding_model="none")) as service:
        assert service.access.grant(key) is not None
    assert "  used 2" in cli.ok("keys", "list")
    assert cli.ok("keys", "withdraw", key_id) == f"withdrawn  {key_id}\n"
    cli.run("keys", "withdraw", key_id).failed_with("no made key", key_id)
    assert cli.run("keys", "list").out == ""


def test_keys_are_json_for_machines(cli: CommandLine) -> None:
    made = cli.run("keys", "add", "帮助", "--role", "admin", "--json").answer(schemas.MadeKey)
    assert (made.name, made.role, made.workspaces, made.expires_at) == ("帮助", "admin", ["*"], None)
    [listed] = cli.run("keys", "list", "--json").answer(schemas.AccessKeys).keys
    assert listed.model_dump() == schemas.AccessKey.model_validate(made.model_dump(exclude={"key"})).model_dump()
    assert made.key not in cli.ok("keys", "list", "--json")
    assert json.loads(cli.ok("keys", "withdraw", made.key_id, "--json")) == {}
    run = cli.run("keys", "withdraw", made.key_id, "--json")
    assert (run.code, json.loads(run.err)["error"]["code"]) == (1, "not_found")


@pytest.mark.parametrize("options", [["--role", "owner"], ["--days", "0"], ["--days", "x"]])
def test_wrong_options_of_keys_make_none(cli: CommandLine, options: list[str]) -> None:
    assert cli.run("keys", "add", "x", *options).code == 2
    cli.run("keys", "add", "x", "--for", "No/Where").failed_with("No/Where")
    cli.run("keys", "add", "").failed_with("name")
    assert cli.run("keys", "list").out == ""


def test_keys_of_the_settings_are_listed(cli: CommandLine) -> None:
    with_keys = CommandLine(
        home=cli.home, environment={**cli.environment, "MEMORY_SERVICE_API_KEYS": "key-of-team:team"}
    )
    line = with_keys.ok("keys", "list")
    assert "write  team  setting api_keys" in line and "key-of-team" not in line
    with_keys.run("keys", "withdraw", line.split()[0]).failed_with("no made key")


def test_keys_of_a_server_elsewhere_are_its_admins(cli: CommandLine, tmp_path: Path) -> None:
    with found_by_home(tmp_path / "far") as url:
        named = CommandLine(home=cli.home, environment={**cli.environment, "MEMORY_SERVICE_URL": url})
        first = named.run("keys", "add", "me", "--role", "admin").out.strip()
        time.sleep(KNOWN_SECONDS)
        named.run("keys", "list").failed_with("no known key")
        by = ("--url", url, "--api-key", first)
        reader = cli.run("keys", "add", "help desk", "--role", "read", "-k", "team", "--json", *by).answer(
            schemas.MadeKey
        )
        assert (reader.role, reader.workspaces) == ("read", ["team"])
        admin = CommandLine(home=cli.home, environment={**named.environment, "MEMORY_SERVICE_API_KEY": first})
        assert "read  team  help desk" in admin.ok("keys", "list").splitlines()[0]
        assert [key.name for key in cli.run("keys", "list", "--json", *by).answer(schemas.AccessKeys).keys] == [
            "help desk", "me",
        ]  # fmt: skip
        for action in (["list"], ["add", "x"], ["withdraw", reader.key_id]):
            cli.run("keys", *action, "--url", url, "--api-key", reader.key).failed_with("role read", "needs admin")
        admin.run("keys", "add", "x", "--for", "No/Where").failed_with("No/Where")
        admin.run("keys", "withdraw", "0" * 12).failed_with("no made key")
        assert admin.ok("keys", "withdraw", reader.key_id) == f"withdrawn  {reader.key_id}\n"
        cli.run("keys", "list", "--url", url, "--api-key", reader.key).failed_with("no known key")
        cli.run("keys", "list", "--url", url, "--api-key", "a b").failed_with("--api-key")
        cli.run("keys", "list", "--url", "nowhere").failed_with("nowhere")
        # A home on the command line counts for more than a server of the environment.
        assert "need none" in admin.run("keys", "list", "--home", str(cli.home)).err
    named.run("keys", "list").failed_with("was not reached")


def test_receipts_tell_what_went_in(cli: CommandLine) -> None:
    assert cli.run("receipts").err.startswith("no receipts in ")
    cli.write("memory/2026-11-20.md", ["# 2026-11-20", "", "- Deploys go out on Tuesdays."])
    receipt_id = cli.run("context", "when do deploys go out?", "--json").answer(schemas.Context).receipt.receipt_id
    lines = cli.ok("receipts").splitlines()
    assert lines[0].startswith(f"{receipt_id}  ") and lines[0].endswith("when do deploys go out?")
    assert lines[1].startswith("   in   memory/2026-11-20.md#L")
    [receipt] = cli.run("receipts", "--json", "-n", "1").answer(schemas.ReceiptList).receipts
    assert receipt.receipt_id == receipt_id
    assert cli.run("receipts", "--session", "s1", "--json").answer(schemas.ReceiptList).receipts == []


def test_facts_tell_their_values(cli: CommandLine) -> None:
    assert cli.run("facts").err.startswith("no facts that changed in ")
    cli.write("memory/2026-01-10.md", ["# 2026-01-10", "", "- Ana lives in Lisbon."])
    cli.write("memory/2026-03-10.md", ["# 2026-03-10", "", "- Ana moved to Porto."])
    [fact] = cli.run("facts", "--json").answer(schemas.ChangedFacts).facts
    assert [value.current for value in fact.values] == [False, True]
    assert cli.ok("facts").splitlines() == [
        fact.about,
        "     2026-01-10  Ana lives in Lisbon.  memory/2026-01-10.md#L3",
        "   * 2026-03-10  Ana moved to Porto.  memory/2026-03-10.md#L3",
    ]


def test_statements_are_told_apart(cli: CommandLine, tmp_path: Path) -> None:
    cli.write("memory/2026-01-10.md", ["# 2026-01-10", "", "- Ana lives in Lisbon."])
    cli.write("memory/2026-03-10.md", ["# 2026-03-10", "", "- Ana moved to Porto."])
    assert len(cli.run("facts", "--json").answer(schemas.ChangedFacts).facts) == 1
    words = ("Ana lives in Lisbon", "Ana moved to Porto")
    done, memory_id, where = cli.ok("distinguish", *words).split()
    line = cli.ok("get", where.split("#L")[0], "--start-line", where.split("#L")[1], "--lines", "1")
    assert done == "distinguished" and line == '- Not the same: "Ana lives in Lisbon" and "Ana moved to Porto"\n'
    assert cli.ok("distinguish", *words).startswith(f"already there  {memory_id}")
    assert cli.run("facts").out == ""
    with found_by_home(cli.home):
        warm = CommandLine(home=cli.home, environment={"MEMORY_SERVICE_EMBEDDING_MODEL": "model that does not load"})
        stored = warm.run("distinguish", "Tom", "Tim", "--json").answer(schemas.StoredMemory)
        assert not stored.duplicate
    cli.run("distinguish", "Tom", "").failed_with("second")


def test_receipts_and_facts_go_through_a_server(cli: CommandLine, tmp_path: Path) -> None:
    cli.write("memory/2026-01-10.md", ["# 2026-01-10", "", "- Ana lives in Lisbon."])
    cli.write("memory/2026-03-10.md", ["# 2026-03-10", "", "- Ana moved to Porto."])
    cli.ok("reindex")
    cli.ok("context", "Ana", "--json")
    commands = (["receipts"], ["receipts", "--json"], ["facts"], ["facts", "--json"], ["receipts", "--session", "s"])
    cold = [cli.run(*command) for command in commands]
    with found_by_home(cli.home):
        # On the files, this model would fail.
        warm = CommandLine(home=cli.home, environment={"MEMORY_SERVICE_EMBEDDING_MODEL": "model that does not load"})
        assert [warm.run(*command) for command in commands] == cold

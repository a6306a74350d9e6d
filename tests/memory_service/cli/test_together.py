"""Several processes on one home: commands beside commands, and beside a server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from memory_service import MemoryClient, schemas
from tests.memory_service.cli.commands import CommandLine
from tests.serving import found_by_home, running_process


def test_no_write_is_lost_when_four_write_at_once(cli: CommandLine) -> None:
    texts = [f"Note {number:02} of writer {number % 4}." for number in range(8)]
    with ThreadPoolExecutor(4) as writers:
        runs = list(writers.map(lambda text: cli.spawn("remember", text), texts))
    assert [(run.code, run.err) for run in runs] == [(0, "")] * 8
    answer = cli.run("search", "note of writer", "--limit", "50", "--json").answer(schemas.SearchResults)
    assert sorted(result.text for result in answer.results) == texts
    assert cli.run("reindex", "--json").answer(schemas.ReindexReport).changed == 0


def test_a_command_and_a_server_see_each_other_at_once(cli: CommandLine) -> None:
    with (
        running_process(cli.home, dict(cli.environment)) as url,
        MemoryClient(url, workspace="default") as memory,
    ):
        stored = cli.spawn("remember", "The courier comes at four.", "--json").answer(schemas.StoredMemory)
        assert [result.text for result in memory.search("courier").results] == ["The courier comes at four."]
        memory.remember("The baker comes at five.")
        assert "The baker comes at five." in cli.ok("search", "baker")
        cli.write("MEMORY.md", ["- The milkman comes at six."])
        cli.ok("reindex")
        assert [result.path for result in memory.search("milkman").results] == ["MEMORY.md"]
        assert cli.spawn("forget", stored.memory_id).code == 0
        assert memory.search("courier").results == []
        assert cli.spawn("reindex", "--full").code == 0
        assert len(memory.search("comes").results) == 2
        assert len(cli.run("search", "comes", "--json").answer(schemas.SearchResults).results) == 2


def test_commands_write_while_a_server_does(cli: CommandLine) -> None:
    with (
        found_by_home(cli.home) as url,
        MemoryClient(url, workspace="default") as memory,
        ThreadPoolExecutor(4) as writers,
    ):
        sent = [writers.submit(memory.remember, f"Sent note {number}.") for number in range(20)]
        typed = [writers.submit(cli.spawn, "remember", f"Typed note {number}.") for number in range(4)]
        assert all(not done.result().degraded for done in sent)
        assert [(done.result().code, done.result().err) for done in typed] == [(0, "")] * 4
        assert len(memory.search("note", limit=50).results) == 24

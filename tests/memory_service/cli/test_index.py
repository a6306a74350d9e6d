"""reindex, status and doctor."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from indexer import Index, SyncCancelled, SyncProgress
from indexer.testing import HashEmbedder
from memory_service import schemas
from memory_service.service import MemoryService
from memory_service.storage.engines import open_storage
from tests.indexer.rebuilds import write_schema
from tests.memory_service.cli.commands import CommandLine, Run
from tests.serving import settings
from tests.waiting import until


def report(run: Run) -> schemas.ReindexReport:
    return schemas.ReindexReport.model_validate_json(run.out)


def counts(run: Run) -> tuple[int, int, int, int, int]:
    found = report(run)
    return found.added, found.changed, found.removed, found.unchanged, len(found.failed)


def test_reindex_counts_what_it_did(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- Never deploy on Fridays."])
    cli.write("memory/2026-11-02.md", ["- Monday was quiet."])
    gone = cli.write("memory/old.md", ["- Outdated."])
    assert cli.ok("reindex").startswith("3 added, 0 changed, 0 removed, 0 unchanged, 0 failed; 0 passages embedded in ")
    cli.write("memory/2026-11-02.md", ["- Monday was quiet.", "- Until the evening."])
    cli.write("memory/new.md", ["- Another."])
    gone.unlink()
    assert counts(cli.run("reindex", "--dry-run", "--json")) == (1, 1, 1, 1, 0)
    assert cli.ok("reindex", "--dry-run") == "would be: 1 added, 1 changed, 1 removed, 1 unchanged, 0 failed\n"
    assert counts(cli.run("reindex", "--json")) == (1, 1, 1, 1, 0)
    assert counts(cli.run("reindex", "--json")) == (0, 0, 0, 3, 0)
    assert counts(cli.run("reindex", "--full", "--json")) == (3, 0, 0, 0, 0)


@pytest.mark.parametrize(("text", "query"), [("the quokka sleeps", "quokka"), ("袋鼠在睡觉", "袋")])
def test_the_store_that_is_set_holds_what_can_be_made_again(cli: CommandLine, text: str, query: str) -> None:
    index, set_in = cli.workspace / "index.sqlite", cli.home / "memory-service.toml"
    cli.home.mkdir()
    for name in ("memory", "postgres", ""):
        set_in.write_text(f'store = "{name}"\n', "utf-8")
        cli.run("remember", text).failed_with("'store'", "write sqlite")
        assert not cli.workspace.exists(), name
    set_in.write_text('store = "sqlite"\n', "utf-8")
    cli.ok("remember", text)
    assert index.read_bytes().startswith(b"SQLite format 3\0")
    for path in cli.workspace.glob("index.sqlite*"):
        path.unlink()
    cli.ok("reindex")
    assert index.exists()
    assert text in cli.run("search", query).out


def test_a_dry_run_does_nothing(cli: CommandLine) -> None:
    note = cli.write("MEMORY.md", ["- Never deploy on Fridays."])
    before = [path for path in cli.home.rglob("*") if ".locks" not in path.parts]
    assert cli.ok("reindex", "--dry-run").startswith("would be: 1 added")
    assert [path for path in cli.home.rglob("*") if ".locks" not in path.parts] == before
    cli.ok("reindex")
    index = (cli.workspace / "index.sqlite").read_bytes()
    note.write_text("- Changed.\n", "utf-8")
    assert counts(cli.run("reindex", "--dry-run", "--json")) == (0, 1, 0, 0, 0)
    assert (cli.workspace / "index.sqlite").read_bytes() == index


def test_reindex_of_paths_leaves_the_rest(cli: CommandLine) -> None:
    for name in ("MEMORY.md", "memory/a.md", "memory/deep/b.md", "memory/deep/c.md"):
        cli.write(name, [f"- Note of {name}."])
    assert counts(cli.run("reindex", "memory/a.md", "--json"))[0] == 1
    assert counts(cli.run("reindex", "memory/deep/", "--json"))[0] == 2
    assert counts(cli.run("reindex", "memory", "MEMORY.md", "--json")) == (1, 0, 0, 3, 0)
    cli.run("reindex", "../elsewhere").failed_with("../elsewhere")
    cli.run("reindex", "/etc").failed_with("/etc")


def test_a_file_that_cannot_be_read_fails_by_name_and_the_rest_is_indexed(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- Never deploy on Fridays."])
    bad = cli.write("memory/bad.md", [])
    bad.write_bytes(b"- ok\n- caf\xe9\n")
    run = cli.run("reindex")
    assert run.code == 1
    assert run.out.startswith("1 added, 0 changed, 0 removed, 0 unchanged, 1 failed")
    assert run.err.startswith("failed: memory/bad.md: ") and "UTF-8" in run.err and run.err.count("\n") == 1
    assert "Fridays" in cli.run("search", "deploy").out
    again = cli.run("reindex", "--json")
    assert again.code == 1 and [failure.path for failure in report(again).failed] == ["memory/bad.md"]
    assert "failed: memory/bad.md" in cli.run("status").err
    bad.write_text("- café\n", "utf-8")
    assert counts(cli.run("reindex", "--json")) == (0, 1, 0, 1, 0)


def test_status_tells_how_the_workspace_stands(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- Never deploy on Fridays.", "- Friday is for tests."])
    rows = dict(line.split(maxsplit=1) for line in cli.ok("status").splitlines())
    with closing(open_storage(settings(cli.home))) as storage:
        assert rows["workspace"] == f"default  ({storage.place}/default)"
    assert "none yet" in rows["index"] and "0 indexed, 1 changed since" in rows["files"]
    cli.ok("reindex")
    found = cli.run("status", "--json").answer(schemas.Status)
    assert (found.files, found.passages, found.dirty, found.embedding_model) == (1, 2, 0, "none")
    assert found.index_bytes > 0 and found.fingerprint == found.current_fingerprint
    cli.write("MEMORY.md", ["- Never deploy on Fridays, or Mondays."])
    assert cli.run("status", "--json").answer(schemas.Status).dirty == 1
    assert "1 changed since" in cli.ok("status")


def test_status_with_the_model(cli: CommandLine) -> None:
    real = CommandLine(home=cli.home, environment={})
    real.ok("remember", "Deploys go out on Tuesdays.")
    found = real.run("status", "--json").answer(schemas.Status)
    assert (found.coverage, found.embedded, found.embedding_model) == (1.0, 1, "auto")
    assert found.embedding_choice == "minilm, as 100% of what is written here is English"
    assert "1, 100% with a vector" in real.ok("status")
    # Another model than the one that made the index is named with its remedy, not hidden.
    run = cli.run("status")
    assert run.code == 0 and "reindex --full" in run.err
    assert cli.run("reindex", "--full").code == 0
    assert cli.run("status").err == ""


def test_status_tells_an_index_of_another_version_from_none(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- Never deploy on Fridays."])
    assert "index      none yet; run `memory-service reindex`" in cli.ok("status").splitlines()
    cli.ok("reindex")
    write_schema(cli.workspace, 1)
    run = cli.run("status")
    assert "index      not readable by this version" in run.out.splitlines()
    assert "The index was made by an older version" in run.err and "--full" not in run.err
    assert "an older version made the index" in cli.run("doctor").out
    cli.ok("reindex")
    assert cli.run("status").err == ""


def test_an_index_of_a_newer_version_is_refused_by_name(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- Never deploy on Fridays."])
    cli.ok("reindex")
    write_schema(cli.workspace, 99)
    named = "made by a newer version (schema 99"
    for command in (("search", "deploy"), ("reindex",), ("context", "deploy")):
        cli.run(*command).failed_with(named, "`memory-service reindex --full`")
    assert named in cli.run("status").err
    cli.ok("reindex", "--full")
    assert "Never deploy" in cli.ok("search", "deploy")


def test_an_index_of_an_older_version_is_made_anew_by_a_search(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- Never deploy on Fridays."])
    cli.ok("reindex")
    write_schema(cli.workspace, 1)
    told = cli.run("search", "--no-wait", "deploy")
    assert "older version made it" in told.err and "Run `memory-service reindex`" in told.err and told.code == 0
    run = cli.run("search", "deploy")
    assert run.code == 0 and "Never deploy" in run.out and "version" not in run.err
    assert cli.run("status").err == ""


def test_status_names_a_rebuild_that_was_interrupted(cli: CommandLine) -> None:
    for number in range(30):
        cli.write(f"memory/{number}.md", [f"- Line {number} {n} of the notes." for n in range(100)])
    cli.ok("reindex")
    index = Index(cli.workspace, None)
    seen: list[SyncProgress] = []
    with pytest.raises(SyncCancelled):
        index.sync(full=True, on_progress=seen.append, cancelled=lambda: bool(seen))
    index.close()
    run = cli.run("status")
    row = next(line for line in run.out.splitlines() if line.startswith("rebuild"))
    assert "interrupted at" in row and "in index-2.sqlite" in row and len(row) <= 80
    told = "a rebuild was interrupted (index-2.sqlite). Run `memory-service reindex --full` to go on with it."
    assert told in run.err
    told = "Run `memory-service reindex --full` to begin anew, as it was for another model or version."
    assert told in CommandLine(home=cli.home, environment={}).run("status").err
    found = cli.run("status", "--json").answer(schemas.Status)
    assert found.rebuild is not None and found.rebuild.state == "interrupted" and 0 < found.rebuild.share <= 1
    assert found.rebuild.total_files == 30 and found.passages == 3000
    cli.ok("reindex", "--full")
    run = cli.run("status")
    assert not any(line.startswith("rebuild") for line in run.out.splitlines()) and run.err == ""


def test_doctor_finds_nothing_wrong_with_a_sound_home(cli: CommandLine) -> None:
    real = CommandLine(home=cli.home, environment={})
    real.ok("remember", "Live plants leave the warehouse from Monday to Wednesday only.")
    lines = real.ok("doctor").splitlines()
    assert [line[:5] for line in lines] == ["ok   "] * len(lines)
    names = [line[6:].split(":")[0] for line in lines]
    with closing(open_storage(settings(cli.home))) as storage:
        checks = [check.name for check in storage.checks()]
        assert storage.workspaces() == ["default"]
    assert names == ["home", *checks, "model", "round trip", "index", "files", "retrieval", "readers"]


def test_doctor_names_what_is_wrong_and_what_mends_it(cli: CommandLine) -> None:
    cli.ok("remember", "Live plants leave the warehouse from Monday to Wednesday only.")
    (cli.workspace / "index.sqlite").write_bytes(b"this is no database" * 100)
    run = cli.run("doctor")
    assert (run.code, run.err) == (1, "")
    wrong = [line for line in run.out.splitlines() if line.startswith("WRONG")]
    assert wrong and "damaged" in wrong[0] and "reindex" in wrong[0]
    machine = cli.run("doctor", "--json")
    assert machine.code == 1
    checks = [schemas.Check.model_validate(check) for check in json.loads(machine.out)["checks"]]
    assert next(check.name for check in checks if not check.ok) == "index"
    assert all(check.remedy for check in checks if not check.ok)


def test_doctor_says_what_waits(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- Never deploy on Fridays."])
    run = cli.run("doctor")
    assert run.code == 1
    assert "WRONG index: there is no index yet. Run `memory-service reindex`." in run.out


def test_operations_are_listed_and_cancelled(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- Never deploy on Fridays."])
    with MemoryService(settings(cli.home), embedder=HashEmbedder()) as service:
        begun = service.start_reindex("default")
        until(lambda: service.operation("default", begun.operation_id).state == "done")
        told = cli.ok("operations")
        assert told.startswith(f"{begun.operation_id}  done  1 of 1 passages  20"), told
        listing = schemas.OperationList.model_validate_json(cli.ok("operations", "--json"))
        assert [operation.operation_id for operation in listing.operations] == [begun.operation_id]
        assert cli.ok("operations", "--cancel", begun.operation_id) == told, "what has ended stays as it is"
    cli.run("operations", "--cancel", "op-none").failed_with("op-none", "POST")
    assert "no operations" in cli.run("operations", "--workspace", "other").err

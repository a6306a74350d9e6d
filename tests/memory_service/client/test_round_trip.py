"""Both clients against a real server: the same methods, the same answers, the same errors."""

from __future__ import annotations

import datetime as dt
import hashlib
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer import MiniLM
from indexer.testing import HashEmbedder
from memory_service import (
    AsyncMemoryClient,
    AsyncSession,
    Conflict,
    Forbidden,
    InvalidName,
    InvalidRequest,
    MemoryClient,
    NotFound,
    PreconditionFailed,
    Session,
    TooLarge,
    Unauthorized,
    __version__,
    schemas,
)
from memory_service.service import MemoryService
from tests.memory_service.client.colours import COLOURS
from tests.serving import RunningServer, serving, settings
from tests.storages import write_documents


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server for all rows of the tables below."""
    service = MemoryService(
        settings(tmp_path_factory.mktemp("shared"), embedding_model="none"), embedder=HashEmbedder()
    )
    with serving(service) as server:
        yield server


@pytest.fixture(params=COLOURS, ids=["sync", "async"])
def guest(request: pytest.FixtureRequest, shared_server: RunningServer) -> Iterator[Any]:
    """A client of a server that others use too, with a workspace of its own."""
    workspace = f"w{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:20]}"
    with request.param(shared_server.url, workspace=workspace) as made:
        yield made


@pytest.fixture(params=COLOURS, ids=["sync", "async"])
def client(request: pytest.FixtureRequest, running_server: RunningServer) -> Iterator[Any]:
    with request.param(running_server.url) as made:
        yield made


def test_a_memory_goes_all_the_way_round(guest: Any) -> None:
    stored = guest.remember(
        "Deploys go out on Tuesdays.", tags=["ops"], date=dt.date(2026, 11, 20), origin="user", session_id="s-1"
    )
    assert isinstance(stored, schemas.StoredMemory)
    assert (stored.path, stored.duplicate) == ("memory/2026-11-20.md", False)
    assert [file.path for file in guest.files()] == ["memory/2026-11-20.md"]
    line = guest.get(stored.path, start_line=stored.start_line, lines=1)
    assert line.text == "- Deploys go out on Tuesdays. #ops\n"
    [result] = guest.search(
        "deploys", limit=3, mode="hybrid", sources=["memory"], since=dt.date(2026, 11, 1), explain=True
    ).results
    assert result.citation == f"{stored.path}#L{stored.start_line}"
    assert result.signals
    assert guest.search("deploys", min_score=1.1, until=dt.date(2026, 12, 1), path_prefix="memory/").results == []
    made = guest.context("deploys", system_prompt="Be kind.", budget_tokens=300)
    assert made.system_prompt.startswith("Be kind.\n\n<relevant_context>")
    assert guest.receipt(made.receipt.receipt_id) == made.receipt
    assert guest.forget(stored.memory_id).path == stored.path
    assert guest.search("deploys").results == []


def test_an_entry_is_found_changed_and_forgotten(guest: Any) -> None:
    stored = guest.remember("The lift is out of order.", tags=["house/lift"], date=dt.date(2026, 11, 20), origin="user")
    guest.remember("Deploys go out on Tuesdays.", date=dt.date(2026, 11, 19), session_id="s-1")
    [found] = guest.search("lift", tags=["house"]).results
    assert found.memory_id == stored.memory_id
    assert "lift" in guest.context("lift", tags=["house"]).block and not guest.context("lift", tags=["x"]).block
    entry = guest.entry(stored.memory_id)
    changed = guest.edit(entry.memory_id, text="The lift works.", etag=entry.etag)
    assert (changed.text, changed.memory_id, changed.degraded) == ("The lift works. #house/lift", stored.memory_id, [])
    with pytest.raises(PreconditionFailed):
        guest.edit(entry.memory_id, tags=[], etag=entry.etag)
    assert guest.edit(entry.memory_id, tags=[]).text == "The lift works."
    whole = guest.entries(limit=1)
    assert [each.memory_id for each in whole.entries] == [stored.memory_id] and whole.next_cursor
    [other] = guest.entries(cursor=whole.next_cursor, limit=1).entries
    assert guest.entries(origin="agent", session_id="s-1", since=dt.date(2026, 11, 1)).entries == [other]
    assert guest.entries(tags=["x"]).entries == []
    assert guest.forget(other.citation, dry_run=True).removed[0].text == "Deploys go out on Tuesdays."
    with pytest.raises(Conflict):
        guest.forget(query="nothing says this")
    assert guest.forget(query="lift works").memory_id == stored.memory_id
    assert guest.forget(other.citation).erased.passages == 1
    assert guest.entries().entries == []


def test_one_message_is_erased(guest: Any) -> None:
    session = guest.session("s-1")
    said = session.append([{"role": "user", "content": text} for text in ("One okapi.", "Two.")])
    gone = session.erase(said.first_seq)
    assert (gone.seqs, gone.compactions, gone.degraded) == ([said.first_seq], [], [])
    assert [each["content"] for each in session.messages("log").messages] == ["Two."]
    assert guest.search("okapi", mode="text").results == []
    with pytest.raises(NotFound):
        session.erase(said.first_seq)


def test_a_file_is_created_replaced_and_erased(guest: Any) -> None:
    etag = guest.put("memory/a plan #1?.md", "one\n").etag
    with pytest.raises(PreconditionFailed):
        guest.put("memory/a plan #1?.md", "two\n")
    assert guest.put("memory/a plan #1?.md", "two\n", etag=etag).etag != etag
    with pytest.raises(PreconditionFailed):
        guest.put("memory/a plan #1?.md", "three\n", etag=etag)
    assert guest.get("memory/a plan #1?.md").text == "two\n"
    with pytest.raises(PreconditionFailed):
        guest.delete("memory/a plan #1?.md", etag=etag)
    read = guest.get("memory/a plan #1?.md")
    assert read.text == "two\n"
    assert guest.delete("memory/a plan #1?.md", etag=read.etag).path == "memory/a plan #1?.md"
    assert guest.files() == []


@pytest.mark.parametrize(
    "path", ["memory/käse.md", "memory/100%.md", "memory/备忘.md", "memory/a&b=c;d+e.md", "memory/sub dir/x.md"]
)
def test_any_name_survives_the_way(guest: Any, path: str) -> None:
    guest.put(path, "x\n")
    assert guest.get(path).path == path
    assert [file.path for file in guest.files()] == [path]


@pytest.mark.parametrize(
    "path", ["../other/memory/x.md", "..", "memory/../../x.md", "./MEMORY.md", "", "/etc/passwd", "%2e%2e/x.md"]
)
def test_a_path_cannot_change_the_route(guest: Any, path: str) -> None:
    guest.remember("x")
    with pytest.raises(InvalidName):
        guest.get(path)
    with pytest.raises(InvalidName):
        guest.delete(path)
    with pytest.raises(InvalidName):
        guest.put(path, "x")


def test_a_reindex_reports_and_returns(client: Any, running_server: RunningServer) -> None:
    client.remember("x")
    write_documents(running_server.home, {"memory/new.md": "- new\n"})
    seen: list[schemas.Operation] = []
    report = client.reindex(on_progress=seen.append, poll_seconds=0.01)
    assert isinstance(report, schemas.ReindexReport)
    assert report.added == 1
    assert seen[-1].state == "done"
    assert client.reindex(["memory/new.md"], full=True).reused > 0
    operation_id = client.start_reindex().operation_id
    assert client.cancel(operation_id).operation_id == operation_id
    assert client.operation(operation_id).operation_id == operation_id


def test_a_cancelled_reindex_is_an_error(client: Any, running_server: RunningServer) -> None:
    facts = {number: "\n".join(f"- fact {number} {line}" for line in range(300)) for number in range(100)}
    write_documents(running_server.home, {f"memory/{number}.md": text for number, text in facts.items()})
    with MemoryClient(running_server.url) as other, pytest.raises(Conflict, match=r"Run it again|Start it again"):
        client.reindex(on_progress=lambda operation: other.cancel(operation.operation_id), poll_seconds=0.01)


def test_status_and_version(client: Any) -> None:
    client.remember("x")
    assert client.status().passages == 1
    assert client.version() == schemas.Version(version=__version__, embedding_model="hash")


def test_the_servers_errors_come_back_as_the_same_classes(client: Any) -> None:
    with pytest.raises(NotFound, match="There is no workspace default"):
        client.forget("m0")
    client.remember("x", idempotency_key="k-1")
    with pytest.raises(Conflict):
        client.remember("y", idempotency_key="k-1")
    with pytest.raises(InvalidRequest, match="tag"):
        client.remember("y", tags=["a b"])
    with pytest.raises(TooLarge):
        client.put("MEMORY.md", "x" * (8 * 1024 * 1024 + 1))
    for name, value in (("receipt", "../status"), ("forget", "m..x"), ("operation", "")):
        with pytest.raises(NotFound):
            getattr(client, name)(value)


def test_half_a_surrogate_pair_is_no_name(client: Any) -> None:
    client.remember("x")
    for name, values in (
        ("put", ("memory/a\ud800绿.md", "x")),
        ("get", ("memory/\ud800.md",)),
        ("entry", ("m\ud800",)),
    ):
        with pytest.raises(InvalidName):
            getattr(client, name)(*values)
    assert len(client.files()) == 1


def test_what_no_server_would_take_is_not_sent(guest: Any) -> None:
    asked: list[tuple[str, tuple[str, ...], dict[str, object]]] = [
        ("search", ("x",), {"limit": 0}),
        ("search", ("",), {}),
        ("context", ("x",), {"budget_tokens": -1}),
        ("remember", ("x",), {"tags": "ops"}),
        ("remember", ("x\ud800",), {}),
        ("remember", ("x",), {"idempotency_key": "a b"}),
        ("put", ("MEMORY.md", "x"), {"etag": "ä"}),
    ]
    for name, values, options in asked:
        with pytest.raises(InvalidRequest):
            getattr(guest, name)(*values, **options)


def test_what_is_wrong_is_said_in_plain_words(guest: Any) -> None:
    with pytest.raises(
        InvalidRequest, match=r"The field 'since' cannot be used: a day is written as YYYY-MM-DD\. Give"
    ):
        guest.search("x", since="yesterday")


@pytest.mark.parametrize("colour", COLOURS)
def test_keys(colour: Any, tmp_path: Path) -> None:
    service = MemoryService(settings(tmp_path, api_keys={"k1": "team"}), embedder=HashEmbedder())
    with serving(service) as server:
        with colour(server.url, workspace="team", api_key="k1") as client:
            client.remember("x")
        with colour(server.url, workspace="default", api_key="k1") as client, pytest.raises(Forbidden):
            client.status()
        with colour(server.url, workspace="team") as client, pytest.raises(Unauthorized):
            client.status()
        with pytest.raises(InvalidRequest):
            colour(server.url, api_key="two words")


def test_a_workspace_cannot_change_the_route(running_server: RunningServer) -> None:
    for name in ("../x", "..", ".", "a/b", "UPPER", "a%2fb"):
        with MemoryClient(running_server.url, workspace=name) as client, pytest.raises((InvalidName, NotFound)):
            client.remember("x")
    assert not running_server.home.exists()


def methods(kind: type) -> dict[str, Any]:
    return {name: one for name, one in vars(kind).items() if not name.startswith("_") and callable(one)}


def test_both_colours_have_the_same_methods() -> None:
    sync, coloured = methods(MemoryClient), methods(AsyncMemoryClient)
    assert len(sync) == 35
    assert inspect.signature(MemoryClient.__init__) == inspect.signature(AsyncMemoryClient.__init__)
    # What it gives makes no request, and has a colour of its own.
    assert inspect.signature(sync["session"]).parameters == inspect.signature(coloured["session"]).parameters
    assert sync.pop("session").__doc__ == coloured.pop("session").__doc__
    # What it gives is asked for the next event in another way.
    assert sync.pop("events").__doc__ == coloured.pop("events").__doc__
    assert_same(sync, coloured)


def test_both_colours_of_a_session_have_the_same_methods() -> None:
    sync, coloured = methods(Session), methods(AsyncSession)
    assert len(sync) == 29
    events = (sync.pop("events"), coloured.pop("events"))
    assert inspect.isasyncgenfunction(events[1])
    assert events[0].__doc__ == events[1].__doc__
    assert inspect.signature(events[0]).parameters == inspect.signature(events[1]).parameters
    # A reply that comes in parts has the colour of its session.
    complete = (sync.pop("complete"), coloured.pop("complete"))
    assert inspect.iscoroutinefunction(complete[1])
    assert complete[0].__doc__ == complete[1].__doc__
    assert inspect.signature(complete[0]).parameters == inspect.signature(complete[1]).parameters
    assert_same(sync, coloured)


def assert_same(sync: dict[str, Any], coloured: dict[str, Any]) -> None:
    assert sync.keys() == coloured.keys()
    for name, one in sync.items():
        assert inspect.signature(one) == inspect.signature(coloured[name])
        assert inspect.iscoroutinefunction(coloured[name])
        assert one.__doc__ == coloured[name].__doc__


def test_a_client_needs_no_server_package(running_server: RunningServer) -> None:
    program = textwrap.dedent(
        f"""
        import sys
        from memory_service import MemoryClient, AsyncMemoryClient
        with MemoryClient({running_server.url!r}) as memory:
            memory.remember("x")
            assert memory.search("x").results
            assert memory.session("s").complete(lambda messages: "y", user="x").text == "y"
        heavy = {{"fastapi", "starlette", "uvicorn", "indexer", "numpy", "apsw", "onnxruntime", "prometheus_client"}}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=240)
    assert done.stdout.strip() == "[]"


def test_the_bundled_model_end_to_end(tmp_path: Path) -> None:
    with serving(MemoryService(settings(tmp_path), embedder=MiniLM())) as server, MemoryClient(server.url) as memory:
        memory.remember("The invoice of the plumber is due in March.", date=dt.date(2026, 11, 20))
        memory.remember("Our cat is called Minka and sleeps all day.", date=dt.date(2026, 11, 20))
        found = memory.search("what is the name of our pet?", mode="vector")
        assert (found.mode, found.degraded) == ("vector", [])
        assert "Minka" in found.results[0].text
        assert "Minka" in memory.context("what is the name of our pet?", budget_tokens=60).block

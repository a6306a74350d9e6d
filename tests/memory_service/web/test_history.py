"""The history of a file through every door, on a database: HTTP, both clients, the command line, and the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from memory_service.errors import Forbidden, NotFound
from memory_service.schemas import NewKey
from memory_service.service import MemoryService
from memory_service.web.views.history import ShownLine, _compared_lines
from tests.memory_service.cli.commands import CommandLine
from tests.memory_service.client.colours import COLOURS
from tests.memory_service.web.visits import Person, field_of, read
from tests.serving import RunningServer, W, serving, settings

FIRST = "# Rules\n\n- Never deploy on Fridays.\n- <b>绿萝</b> & ferns.\n"
SECOND = "# Rules\n\n- Never deploy on Mondays.\n"


@pytest.fixture
def server(migrated_database: str, tmp_path: Path) -> Iterator[RunningServer]:
    """A server on a database, with a file that has a version."""
    made = settings(tmp_path / "rows", embedding_model="none", database_url=migrated_database)
    with serving(MemoryService(made)) as running:
        write(running, "MEMORY.md", FIRST, SECOND)
        yield running


@pytest.fixture
def person(server: RunningServer) -> Iterator[Person]:
    with closing(Person(server=server)) as somebody:
        yield somebody


def write(server: RunningServer, path: str, *texts: str) -> None:
    """Write one text after the other into a file."""
    for text in texts:
        etag = server.http.get(f"{W}/memories/{path}").headers.get("etag")
        must = {"If-Match": etag} if etag else {"If-None-Match": "*"}
        assert server.http.put(f"{W}/memories/{path}", json={"text": text}, headers=must).status_code == 200


def test_versions_over_http(server: RunningServer) -> None:
    answer = server.http.get(f"{W}/versions/MEMORY.md").json()
    [version] = answer["versions"]
    assert (answer["path"], answer["has_history"], version["bytes"]) == ("MEMORY.md", True, len(FIRST.encode()))
    old = server.http.get(f"{W}/memories/MEMORY.md", params={"version": version["version_id"], "start_line": 3})
    assert old.json()["text"] == "".join(FIRST.splitlines(keepends=True)[2:])
    assert old.headers["etag"] != server.http.get(f"{W}/memories/MEMORY.md").headers["etag"]
    for path in ("versions/USER.md", "memories/MEMORY.md?version=00", "memories/MEMORY.md?version="):
        assert server.http.get(f"{W}/{path}").status_code == 404
    for path in ("versions/..%2Fx.md", "versions/notes.txt", "versions/@docs/a.md"):
        assert server.http.get(f"{W}/{path}").status_code == 400
    write(server, "memory/文 件/a.md", "one\n", "two\n")
    assert len(server.http.get(f"{W}/versions/{quote('memory/文 件/a.md')}").json()["versions"]) == 1
    gone = server.http.delete(f"{W}/versions/MEMORY.md").json()
    assert gone["versions"] == 1 and gone["pending"]
    assert server.http.get(f"{W}/versions/MEMORY.md").json()["versions"] == []


@pytest.mark.parametrize("colour", COLOURS, ids=["sync", "async"])
def test_versions_with_both_clients(server: RunningServer, colour: Any) -> None:
    with colour(server.url) as client:
        [version] = client.versions("MEMORY.md").versions
        assert client.get("MEMORY.md", version=version.version_id).text == FIRST
        with pytest.raises(NotFound):
            client.get("MEMORY.md", version="x")
        assert client.erase_versions("MEMORY.md").versions == 1
        assert client.versions("MEMORY.md").versions == []


@pytest.mark.parametrize("is_warm", [False, True], ids=["alone", "with a server"])
def test_versions_on_the_command_line(
    server: RunningServer, tmp_path: Path, is_warm: bool, migrated_database: str
) -> None:
    there = {"URL": server.url} if is_warm else {"DATABASE_URL": migrated_database}
    cli = CommandLine(
        home=tmp_path / "rows", environment={f"MEMORY_SERVICE_{name}": value for name, value in there.items()}
    )
    write(server, "MEMORY.md", "x\n" * 4_500, SECOND)
    listing = json.loads(cli.run("history", "MEMORY.md", "--json").out)
    last, first = (version["version_id"] for version in listing["versions"][::2])
    printed = cli.run("history", "MEMORY.md").out.splitlines()
    assert [line.split()[0] for line in printed][::2] == [last, first] and "9.0 kB" in printed[0]
    assert cli.run("history", "MEMORY.md", "--show", first).out == FIRST
    assert cli.run("history", "MEMORY.md", "--show", last).out == "x\n" * 4_500
    assert json.loads(cli.run("history", "MEMORY.md", "--show", first, "--json").out)["text"] == FIRST
    cli.run("history", "MEMORY.md", "--show", "00").failed_with("no version")
    cli.run("history", "USER.md").failed_with("no file")
    assert cli.run("history", "MEMORY.md", "--show", first, "--erase").code == 2
    erased = cli.run("history", "MEMORY.md", "--erase")
    assert "erased 3 earlier versions" in erased.out and "still in the tables" in erased.out
    assert "no edit" in cli.run("history", "MEMORY.md").err


def test_the_page_shows_what_differs_and_brings_a_version_back(server: RunningServer, person: Person) -> None:
    page = person.opens("/w/default/files/MEMORY.md")
    [link] = [attributes["href"] for tag, attributes in read(page).elements if "version=" in attributes.get("href", "")]
    page = person.opens(link)
    assert "<b>绿萝" not in page
    shown = read(page).text
    assert "− - Never deploy on Fridays." in shown and "− - <b>绿萝</b> & ferns." in shown
    assert "+ - Never deploy on Mondays." in shown and "  # Rules" in shown
    person.sends(link, 403, etag=field_of(page, "etag"), token="another")
    write(server, "MEMORY.md", "changed meanwhile\n")
    refused = person.sends(link, 409, etag=field_of(page, "etag"))
    assert (
        "was changed" in refused and server.http.get(f"{W}/memories/MEMORY.md").json()["text"] == "changed meanwhile\n"
    )
    page = person.sends(link, etag=field_of(refused, "etag"))
    assert server.http.get(f"{W}/memories/MEMORY.md").json()["text"] == FIRST
    assert len(re.findall(r"\?version=", page)) == 3, "what was replaced by it is a version now"
    person.opens("/w/default/history/USER.md", 404)
    assert "Choose a version" in person.opens("/w/default/history/MEMORY.md?version=00")
    chinese = person.http.get(link, headers={"Accept-Language": "zh"}).text
    assert "恢复此版本" in chinese and "Bring this version back" not in chinese


def test_a_key_that_reads_sees_versions_and_changes_none(migrated_database: str, tmp_path: Path) -> None:
    made = settings(tmp_path / "rows", embedding_model="none", database_url=migrated_database, api_keys={"owner": "*"})
    service = MemoryService(made)
    with serving(service) as server:
        server.http.headers["Authorization"] = "Bearer owner"
        write(server, "MEMORY.md", FIRST, SECOND)
        reader = service.access.make(NewKey(name="reader", role="read", workspaces=["default"])).key
        [version] = server.http.get(f"{W}/versions/MEMORY.md").json()["versions"]
        server.http.headers["Authorization"] = f"Bearer {reader}"
        assert server.http.get(f"{W}/versions/MEMORY.md").status_code == 200
        assert server.http.delete(f"{W}/versions/MEMORY.md").status_code == 403
        with COLOURS[0](server.url, api_key=reader) as client, pytest.raises(Forbidden):
            client.erase_versions("MEMORY.md")
        with closing(Person(server=server)) as person:
            person.opens("/sign-in")
            person.sends("/sign-in", key=reader)
            link = f"/w/default/history/MEMORY.md?version={version['version_id']}"
            page = person.opens(link)
            assert "Fridays" in page and "Bring this version back" not in page
            person.sends(link, 403, etag="*")


def test_the_page_of_a_home_in_files_says_that_there_is_no_history(tmp_path: Path) -> None:
    with serving(MemoryService(settings(tmp_path, embedding_model="none"))) as server:
        write(server, "MEMORY.md", FIRST, SECOND)
        assert server.http.get(f"{W}/versions/MEMORY.md").json() == {
            "path": "MEMORY.md", "has_history": False, "versions": [],
        }  # fmt: skip
        assert "use git there" in CommandLine(home=tmp_path).run("history", "MEMORY.md").err
        with closing(Person(server=server)) as person:
            assert "/history/" not in person.opens("/w/default/files/MEMORY.md")
            assert "No history is kept" in person.opens("/w/default/history/MEMORY.md")


def test_lines_are_compared_with_some_around_them() -> None:
    old, new = [f"{at}" for at in range(30)], [f"{at}" for at in range(30)]
    assert list(_compared_lines(old, new)) == list(_compared_lines([], [])) == []
    new[10] = "ten"
    del new[20]
    kinds = [(line.kind, line.text) for line in _compared_lines(old, new)]
    assert kinds == [
        ("gap", "7"), ("same", "7"), ("same", "8"), ("same", "9"), ("gone", "10"), ("new", "ten"),
        ("same", "11"), ("same", "12"), ("same", "13"), ("gap", "3"), ("same", "17"), ("same", "18"), ("same", "19"),
        ("gone", "20"), ("same", "21"), ("same", "22"), ("same", "23"), ("gap", "6"),
    ]  # fmt: skip
    assert list(_compared_lines(["a"], [])) == [ShownLine("gone", "a")]
    assert list(_compared_lines([], ["a"])) == [ShownLine("new", "a")]
    assert list(_compared_lines(["a", "b"], ["b"])) == [ShownLine("gone", "a"), ShownLine("same", "b")]
    long = [f"{at}" for at in range(3_000)]
    turned = [line.text for line in _compared_lines([*long, "end"], [*reversed(long), "end"]) if line.kind == "new"]
    assert turned == long[::-1], "texts that take too long are not compared line by line"
    for line in _compared_lines(long, [*long[:1_500], "x", *long[1_500:]]):
        assert line.kind != "gone"

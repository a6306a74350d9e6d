"""Paths in both Unicode forms at every door: a name that macOS decomposed is opened, changed, filtered and erased."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Literal

import pytest
from mcp import Client

from indexer.testing import HashEmbedder
from memory_service import MemoryClient, schemas
from memory_service.errors import InvalidName, NotFound, PreconditionFailed
from memory_service.service import MemoryService
from tests.memory_service.cli.commands import CommandLine
from tests.memory_service.mcp.hosts import answer_of, by_http
from tests.serving import serving, settings

Form = Literal["NFC", "NFD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD")
NAMES = ("Café", "東京ガイド", "한국어", "Müller/Łódź 🎉")


def in_form(form: Form, text: str) -> str:
    return unicodedata.normalize(form, text)


def write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, "utf-8")


def opened(home: Path, **values: object) -> MemoryService:
    return MemoryService(settings(home, **values), embedder=HashEmbedder())


@pytest.mark.parametrize("asked", FORMS)
@pytest.mark.parametrize("on_disk", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_found_read_changed_and_erased_by_either_form(
    tmp_path: Path, name: str, on_disk: Form, asked: Form
) -> None:
    stored, path = in_form(on_disk, f"memory/{name}.md"), in_form(asked, f"memory/{name}.md")
    write(tmp_path / "default" / stored, "- The quokka is green.\n\nA line.\n")
    with opened(tmp_path) as service:
        (hit, *_) = service.search("default", "quokka", path_prefix=path, mode="text").results
        assert hit.path == stored
        assert "quokka" in service.context("default", "quokka", path_prefix=path.removesuffix(".md")).block
        assert [file.path for file in service.files("default")] == [stored]
        read = service.get("default", path)
        assert (read.path, read.text) == (stored, "- The quokka is green.\n\nA line.\n")
        assert service.original("default", f"{path}#L1").place == f"{stored}#L1"
        service.reindex("default", [path, path.rpartition("/")[0]])
        with pytest.raises(PreconditionFailed):
            service.put("default", path, "x", if_none_match=True)
        written = service.put("default", path, "- The quokka is blue.\n\nA line.\n", if_match=read.etag)
        assert written.path == stored
        assert service.search("default", "quokka", mode="text").results[0].text == "The quokka is blue."
        gone = service.forget("default", f"{path}#L3")
        assert [each.path for each in gone.removed] == [stored]
        erased = service.delete("default", path)
        assert erased.path == stored and not service.search("default", "quokka").results
        assert service.files("default") == []
        with pytest.raises(NotFound):
            service.get("default", path)


@pytest.mark.parametrize("asked", FORMS)
def test_an_entry_is_changed_and_forgotten_by_its_place(tmp_path: Path, asked: Form) -> None:
    stored, path = in_form("NFD", "memory/Müller/2026-11-20.md"), in_form(asked, "memory/Müller/2026-11-20.md")
    write(tmp_path / "default" / stored, "- The quokka is green.\n- The kettle is red.\n")
    with opened(tmp_path) as service:
        assert service.entry("default", f"{path}#L1").path == stored
        changed = service.edit("default", f"{path}#L1", text="The quokka is blue.")
        assert changed.path == stored
        place = f"{path}#L{service.search('default', 'kettle', mode='text', limit=1).results[0].start_line}"
        assert service.forget("default", place, dry_run=True).paths == [stored]
        assert service.forget("default", place).paths == [stored]
        assert "kettle" not in (tmp_path / "default" / stored).read_text("utf-8")


def test_each_of_two_files_is_opened_by_its_own_name(tmp_path: Path) -> None:
    both = [in_form(form, "memory/Café.md") for form in FORMS]
    for number, path in enumerate(both):
        write(tmp_path / "default" / path, f"- quokka number {number}\n")
    with opened(tmp_path) as service:
        assert [service.get("default", path).text for path in both] == ["- quokka number 0\n", "- quokka number 1\n"]
        assert {hit.path for hit in service.search("default", "quokka", path_prefix=both[0]).results} == set(both)
        service.delete("default", both[1])
        assert [hit.path for hit in service.search("default", "quokka").results] == both[:1]
        assert service.get("default", both[1]).path == both[0]


@pytest.mark.parametrize("asked", FORMS)
def test_a_new_file_is_composed(tmp_path: Path, asked: Form) -> None:
    with opened(tmp_path) as service:
        written = service.put("default", in_form(asked, "memory/Café/Müller.md"), "x\n", if_none_match=True)
        assert written.path == "memory/Café/Müller.md"
    assert [path.name for path in (tmp_path / "default" / "memory").rglob("*.md")] == ["Müller.md"]


@pytest.mark.parametrize("asked", FORMS)
@pytest.mark.parametrize("on_disk", FORMS)
def test_a_file_of_an_extra_folder(tmp_path: Path, on_disk: Form, asked: Form) -> None:
    docs = tmp_path / in_form("NFD", "Ordnér")
    write(docs / in_form(on_disk, "Pâté/Café.md"), "- The quokka is green.\n")
    stored, path = in_form(on_disk, "Pâté/Café.md"), in_form(asked, "Pâté/Café.md")
    with opened(tmp_path / "home", extra_paths=[str(docs)]) as service:
        service.remember("default", "The kettle is red.")
        name = in_form(asked, "@Ordnér")
        assert service.reindex("default", [f"{name}/{path}"]).added == 1
        assert service.get("default", f"{name}/{path}").path == f"@Ordnér/{stored}"
        (hit,) = service.search("default", "quokka", path_prefix=f"{name}/{path}").results
        assert hit.path == f"@Ordnér/{stored}"
        assert service.original("default", f"{name}/{path}#L1").text == "- The quokka is green.\n"


def test_the_longest_decomposed_name_with_an_emoji(tmp_path: Path) -> None:
    name = "e\u0301🎉" * 36 + ".md"
    assert len(name.encode()) == 255
    write(tmp_path / "default" / "memory" / name, "- The quokka is green.\n")
    with opened(tmp_path) as service:
        (hit,) = service.search("default", "quokka").results
        assert hit.path == f"memory/{name}"
        for form in FORMS:
            assert service.get("default", in_form(form, hit.path)).path == hit.path


def test_names_that_cannot_be_given_back_are_named_with_the_remedy(tmp_path: Path) -> None:
    for name in ("two\nlines", "back\\slash", "good"):
        write(tmp_path / "default" / "memory" / f"{name}.md", "- The quokka is green.\n")
    with opened(tmp_path) as service:
        service.reindex("default")
        assert [hit.path for hit in service.search("default", "quokka").results] == ["memory/good.md"]
        assert [file.path for file in service.files("default")] == ["memory/good.md"]
        assert {(each.path, each.reason) for each in service.status("default").failed} == {
            (r"memory/two\nlines.md", "its name has a control character in it; rename it"),
            (r"memory/back\slash.md", "its name has a backslash in it; rename it"),
        }
        for path in ("memory/two\nlines.md", "memory/back\\slash.md"):
            with pytest.raises(InvalidName):
                service.get("default", path)


@pytest.mark.parametrize("asked", FORMS)
def test_over_http_and_mcp(tmp_path: Path, asked: Form) -> None:
    stored, path = in_form("NFD", "memory/Café.md"), in_form(asked, "memory/Café.md")
    write(tmp_path / "default" / stored, "- The quokka is green.\n- The kettle is red.\n")

    async def read(client: Client) -> str:
        return str(answer_of(await client.call_tool("get", {"id": f"{path}#L1"}))["text"])

    with serving(opened(tmp_path)) as server, MemoryClient(server.url, workspace="default") as client:
        assert client.get(path).path == stored
        assert {hit.path for hit in client.search("quokka", path_prefix=path).results} == {stored}
        assert "quokka" in client.context("quokka", path_prefix=path).block
        assert by_http(server.url, read) == "- The quokka is green.\n"
        assert client.forget(f"{path}#L2").paths == [stored]
        assert client.put(path, "- The quokka is blue.\n", etag=client.get(path).etag).path == stored
        assert client.delete(path).path == stored
        with pytest.raises(NotFound):
            client.get(path)


@pytest.mark.parametrize("asked", FORMS)
def test_on_the_command_line(tmp_path: Path, asked: Form) -> None:
    cli = CommandLine(home=tmp_path / "home")
    stored, path = in_form("NFD", "memory/Café.md"), in_form(asked, "memory/Café.md")
    cli.write(stored, ["- The quokka is green.", "- The kettle is red."])
    found = cli.run("search", "quokka", "--path", path, "--json").answer(schemas.SearchResults)
    assert {hit.path for hit in found.results} == {stored}
    assert "quokka" in cli.run("context", "quokka", "--path", path).out
    assert "quokka" in cli.ok("get", path)
    assert cli.run("reindex", path).code == 0
    cli.ok("forget", f"{path}#L2")
    assert "kettle" not in cli.ok("get", path)
    cli.ok("forget", path)
    assert not (cli.workspace / stored).exists()

"""The setting, and the whole way from a folder to a hit, its lines, and a refused write."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service import MemoryClient
from memory_service.config import load_settings
from memory_service.config.extra_paths import ExtraPath, _read_extra_path, read_extra_paths
from memory_service.errors import InvalidName, InvalidRequest, NotFound
from memory_service.home import SETTINGS_FILE
from memory_service.schemas import Source
from memory_service.service import MemoryService
from tests.serving import serving, settings

FILES: tuple[Source, ...] = ("files",)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "指南").mkdir(parents=True)
    (folder / "指南" / "部署.md").write_text("# 部署\n\n服务器在每周二部署。\n")
    (folder / "net.py").write_bytes(b"import os\r\n\r\n\r\ndef parse_kettle(raw):\r\n    return raw\r\n")
    return folder


def opened(home: Path, **values: object) -> MemoryService:
    service = MemoryService(settings(home, **values), embedder=HashEmbedder())
    service.remember("default", "The kettle is green.")
    service.remember("other", "The kettle is blue.")
    return service


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("/a/notes", ("notes", "/a/notes", ())),
        (" /a/notes/ ", ("notes", "/a/notes", ())),
        ("n=/a/notes", ("n", "/a/notes", ())),
        ("n=/a/x=y::*.md, !drafts/", ("n", "/a/x=y", ("*.md", "!drafts/"))),
        ("/a/x=y", None),
        ("笔记=/a/b", ("笔记", "/a/b", ())),
        ("/a/笔记 本", ("笔记 本", "/a/笔记 本", ())),
    ],
)
def test_an_entry(entry: str, expected: tuple[str, str, tuple[str, ...]] | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="write NAME=/a/x=y"):
            _read_extra_path(entry)
    else:
        name, folder, globs = expected
        assert _read_extra_path(entry) == ExtraPath(name=name, folder=Path(folder), globs=globs)


def test_a_tilde_is_the_home_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _read_extra_path("~/notes").folder == tmp_path / "notes"


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "notes",
        "n=notes",
        "/",
        "=/a/b",
        "/a/../b",
        "/a/.hidden",
        "a@b=/x",
        "~nobody-has-this-name/x",
        "/a::!",
        "n=/a::*\nb",
        "n=/a\0b",
    ],
)
def test_what_cannot_be_read_says_what_to_write(entry: str) -> None:
    with pytest.raises(ValueError, match=r"write|leave it out"):
        _read_extra_path(entry)


def test_a_name_that_cannot_be_one_leaves_the_folder_to_be_named() -> None:
    with pytest.raises(ValueError, match=r"write NAME=/a/b$"):
        _read_extra_path("no!name=/a/b")


def test_two_alike_names_need_another() -> None:
    with pytest.raises(ValueError, match="such as docs-2=/b/docs"):
        read_extra_paths(("/a/docs", "/b/docs"))


def test_the_setting_is_a_list_a_text_or_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / SETTINGS_FILE).write_text('extra_paths = ["/a/notes", "docs=/b::*.md,!x/"]\n')
    assert load_settings(home=tmp_path).extra_paths == {"default": ("/a/notes", "docs=/b::*.md,!x/")}
    (tmp_path / SETTINGS_FILE).write_text('[extra_paths]\nteam = ["/a/notes"]\nother = "/b;c=/c::*.py"\n')
    assert load_settings(home=tmp_path).extra_paths == {"team": ("/a/notes",), "other": ("/b", "c=/c::*.py")}
    monkeypatch.setenv("MEMORY_SERVICE_EXTRA_PATHS__TEAM", "/d;/e")
    assert load_settings(home=tmp_path).extra_paths["team"] == ("/d", "/e")
    monkeypatch.delenv("MEMORY_SERVICE_EXTRA_PATHS__TEAM")
    monkeypatch.setenv("MEMORY_SERVICE_EXTRA_PATHS", "/a/notes; docs=/b::*.md,!x/;")
    assert load_settings(home=tmp_path).extra_paths == {"default": ("/a/notes", " docs=/b::*.md,!x/")}
    assert load_settings(home=tmp_path, extra_paths=["/x"]).extra_paths == {"default": ("/x",)}


@pytest.mark.parametrize("value", ["notes", ["/a/x", "/b/x"], {"No Name": ["/a/x"]}, {"default": 3}, 3, [3]])
def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path, value: object) -> None:
    with pytest.raises(InvalidRequest, match="'extra_paths"):
        load_settings(home=tmp_path, extra_paths=value)


@pytest.mark.parametrize("value", [5, True, {"default": 5}])
def test_a_setting_of_another_kind_says_what_to_write(tmp_path: Path, value: object) -> None:
    with pytest.raises(InvalidRequest, match="write a folder, a list of folders, or a table of these by workspace"):
        load_settings(home=tmp_path, extra_paths=value)


def test_a_hit_can_be_read_and_not_written(tmp_path: Path, docs: Path) -> None:
    with opened(tmp_path / "home", extra_paths=[f"d={docs}"]) as service:
        assert service.reindex("default").failed == []
        (hit,) = service.search("default", "parse_kettle", mode="text", sources=FILES).results
        assert (hit.path, hit.start_line, hit.end_line) == ("@d/net.py", 1, 5)
        read = service.get("default", hit.path, start_line=4, lines=1)
        assert (read.text, read.total_lines, read.next_start_line) == ("def parse_kettle(raw):\r\n", 5, 5)
        (hit,) = service.search("default", "部署", path_prefix="@d/指南/").results
        assert service.get("default", hit.path).text.startswith("# 部署\n")
        assert "@d/net.py" in service.context("default", "parse_kettle", sources=FILES).block
        for path in ("@d/net.py", "@d/new.md", "@e/x.md"):
            with pytest.raises(InvalidName, match="only read"):
                service.put("default", path, "x", if_none_match=True)
            with pytest.raises(InvalidName, match="only read"):
                service.delete("default", path)
        (docs / "secret.md").write_text("x")
        (docs / "link.md").symlink_to(docs / "net.py")
        for path in (
            "@d/secret.md",
            "@d/link.md",
            "@d/../home/default/MEMORY.md",
            "@d",
            "@",
            "@d//etc/passwd",
            "@x/net.py",
        ):
            with pytest.raises(NotFound):
                service.get("default", path)
        (docs / "net.py").unlink()
        (docs / "net.py").symlink_to("/etc/passwd")
        with pytest.raises(NotFound):
            service.get("default", "@d/net.py")
        assert {path for path in docs.rglob("*") if path.is_file()} >= {docs / "指南" / "部署.md"}


def test_only_the_named_workspace_gets_them(tmp_path: Path, docs: Path) -> None:
    home = tmp_path / "home"
    with opened(home, extra_paths={"default": [f"d={docs}"], "other": [f"all={tmp_path}"]}) as service:
        for workspace in ("default", "other"):
            service.reindex(workspace)
        assert {hit.path for hit in service.search("default", "kettle", mode="text", sources=FILES).results} == {
            "@d/net.py"
        }
        assert {hit.path for hit in service.search("other", "kettle", mode="text", sources=FILES).results} == {
            "@all/docs/net.py"
        }
        assert all("green" not in hit.text for hit in service.search("other", "kettle", limit=50).results)
        with pytest.raises(NotFound):
            service.get("other", "@d/net.py")


def test_a_folder_that_is_away_is_told_and_one_that_is_not_named_leaves_the_index(tmp_path: Path, docs: Path) -> None:
    home = tmp_path / "home"
    with opened(home, extra_paths=[f"d={docs}"]) as service:
        service.reindex("default", ["@d/指南"])
        service.reindex("default", ["@d"])
        assert all(finding.ok for finding in service.examine("default"))
        docs.rename(tmp_path / "away")
        assert service.reindex("default").removed == 0
        (failed,) = service.status("default").failed
        assert failed.path == "@d" and failed.reason.startswith("its folder is not there; ")
        wrong = {finding.name: finding for finding in service.examine("default") if not finding.ok}
        assert wrong["files"].detail == "@d is not indexed: its folder is not there"
        remedy = "Bring it back, or take it out of extra_paths. Then run `memory-service reindex`."
        assert wrong["files"].remedy == remedy
        assert service.search("default", "parse_kettle", sources=FILES).results
        with pytest.raises(NotFound):
            service.get("default", "@d/net.py")
    with opened(home) as service:
        assert service.reindex("default").removed == 2
        assert not service.search("default", "parse_kettle", sources=FILES).results


def test_over_http(tmp_path: Path, docs: Path) -> None:
    with (
        serving(opened(tmp_path / "home", extra_paths=[f"d={docs}"])) as server,
        MemoryClient(server.url, workspace="default") as client,
    ):
        client.reindex()
        (hit,) = client.search("部署", sources=["files"], limit=1).results
        assert (hit.path, hit.source, hit.citation) == ("@d/指南/部署.md", "files", "@d/指南/部署.md#L3")
        assert client.get(hit.path, start_line=3, lines=1).text == "服务器在每周二部署。\n"
        with pytest.raises(InvalidName):
            client.put(hit.path, "x")
        with pytest.raises(InvalidName):
            client.delete(hit.path)
        with pytest.raises(NotFound):
            client.get("@d/../x.md")


def test_a_folder_that_cannot_be_one_says_why_and_what_to_do_and_not_where_it_lies(tmp_path: Path, docs: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / ".gitignore").write_bytes(b"x" * (1024 * 1024 + 1))
    told = {
        f"{tmp_path}/none": ("its folder is not there", "bring it back"),
        f"{docs}/net.py": ("it is a file", "put the folder that it lies in"),
        f"{home}/default/memory": ("it lies inside of what the workspace holds", "take it out of extra_paths"),
        f"{home}/other": ("it lies among the workspaces", "take it out of extra_paths"),
        f"{home}": ("it lies among the workspaces", "take it out of extra_paths"),
        f"{tmp_path}/{'long' * 64}": ("File name too long", "give it a shorter path"),
        f"{tmp_path}/rules": ("its .gitignore has more than", "shorten it"),
    }
    for folder, (what, remedy) in told.items():
        with serving(opened(home, extra_paths=[f"n={folder}"])) as server:
            begun = server.http.post("/v1/workspaces/default/reindex", json={}).json()["operation_id"]
            while (done := server.http.get(f"/v1/workspaces/default/operations/{begun}").json())["report"] is None:
                time.sleep(0.01)
            status = server.http.get("/v1/workspaces/default/status").json()
            assert (
                done["report"]["failed"]
                == status["failed"]
                == [{"path": "@n", "reason": status["failed"][0]["reason"]}]
            )
            found, _, mend = status["failed"][0]["reason"].partition("; ")
            assert (what in found, remedy in mend, str(tmp_path) in f"{done}{status}") == (True, True, False), found
            (finding,) = [one for one in server.app.state.shared.service.examine("default") if not one.ok]
            assert found in finding.detail and mend[1:] in finding.remedy

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from indexer import Index, SearchFilter
from indexer.errors import SourceMissing
from indexer.sources.folders import ExtraFolder, FileSource, Folders
from indexer.sources.scan import source_file
from indexer.testing import HashEmbedder
from tests.indexer.sources.test_scan import reachable
from tests.indexer.workspace import Workspace, run_unprivileged

Beside = Callable[..., Folders]
CODE = "def parse_http_header(raw):\n    return raw\n"


def fill(root: Path, files: dict[str, str | bytes]) -> None:
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def folders(
    workspace: Workspace, *extra: tuple[str, Path] | tuple[str, Path, str], private: Path | None = None
) -> Folders:
    made = [
        ExtraFolder(name=one[0], folder=one[1], globs=tuple(one[2].split(",")) if len(one) > 2 else ()) for one in extra
    ]
    return Folders(workspace.root, made, private=(private,) if private else ())


def listed(found: Folders) -> set[str]:
    scan = found.scan()
    assert scan.failures == ()
    assert all(file.source == "files" and file.path == path for path, file in scan.files.items())
    # One by one they are the same.
    assert found.look(scan.files).files == scan.files
    return set(scan.files)


def failures(found: Folders) -> dict[str, str]:
    return {failure.path: failure.reason for failure in found.scan().failures}


def index_of(workspace: Workspace, found: Folders) -> Index:
    return Index(FileSource(workspace.root, extra=found), HashEmbedder())


def test_what_people_wrote_is_listed_and_the_rest_is_not(workspace: Workspace, project: Path) -> None:
    wanted = [
        "README",
        "a.md",
        "b.TXT",
        "c.rst",
        "src/d.py",
        "src/深/处.ts",
        "Makefile",
        "x.yaml",
        "空 格.md",
        "vendor/x.go",
    ]
    unwanted = [
        ".env", ".github/x.yml", "node_modules/x/y.js", "src/__pycache__/x.py", "dist/a.js", "build/a.py", "a.png",
        "a.json", "pnpm-lock.yaml", "jquery.min.js", "x_pb2.py", "x.egg-info/a.txt", "LICENSE", "noending", "a.lock",
        "a.bundle.js",
    ]  # fmt: skip
    fill(project, dict.fromkeys([*wanted, *unwanted], "text"))
    assert listed(folders(workspace, ("p", project))) == {f"@p/{path}" for path in wanted}


def test_ignore_rules_hold_at_every_level(workspace: Workspace, project: Path) -> None:
    fill(
        project,
        {
            ".gitignore": "*.log\n/secret/\ngen*.py\n!gen_keep.py\n草稿/\n",
            ".git/info/exclude": "mine.md\n",
            "sub/.gitignore": "!gen_two.py\nonly.txt\n",
            "secret/.gitignore": "!*",
            **dict.fromkeys(
                ["secret/a.md", "gen_one.py", "gen_keep.py", "sub/gen_two.py", "sub/only.txt", "only.txt", "mine.md",
                 "sub/mine.md", "草稿/一.md", "sub/secret/b.md", "正文.md"],
                "text",
            ),
        },
    )  # fmt: skip
    assert listed(folders(workspace, ("p", project, "*.py,*.md,*.txt,*.log"))) == {
        "@p/gen_keep.py", "@p/sub/gen_two.py", "@p/only.txt", "@p/sub/secret/b.md", "@p/正文.md",
    }  # fmt: skip


def test_the_rules_of_the_repository_around_hold_too(workspace: Workspace, project: Path) -> None:
    fill(project, {".git/HEAD": "x", ".git/info/exclude": "c.md\n", ".gitignore": "/docs/a.md\nb.md\n/x.md\n"})
    fill(project / "docs", {"a.md": "x", "b.md": "x", "c.md": "x", "x.md": "x"})
    assert listed(folders(workspace, ("docs", project / "docs"))) == {"@docs/x.md"}


def test_globs_say_what_is_wanted(workspace: Workspace, project: Path) -> None:
    fill(
        project,
        dict.fromkeys(["a.py", "b.log", "docs/c.md", "docs/d.png", "drafts/e.md", "build/f.py", "x/docs/g.md"], "x"),
    )
    assert listed(folders(workspace, ("p", project, "*.log,/docs/,!drafts/"))) == {"@p/b.log", "@p/docs/c.md"}
    assert listed(folders(workspace, ("p", project, "!drafts/,!*.py"))) == {"@p/docs/c.md", "@p/x/docs/g.md"}
    assert listed(folders(workspace, ("p", project, "build/"))) == {"@p/build/f.py"}


def test_what_is_as_it_was_known_is_counted_alone(workspace: Workspace, project: Path) -> None:
    fill(project, dict.fromkeys(["a.md", "b.py", "sub/c.md", "sub/d.py", "e.txt", "f.md"], "x"))
    found = folders(workspace, ("p", project, "!f.md"))
    known = {path: file.version for path, file in found.scan().files.items()}
    fill(project, {"b.py": "xy", "new.md": "x", "sub/.gitignore": "d.py\n"})
    (project / "e.txt").unlink()
    ignored = source_file("@p/f.md", os.lstat(project / "f.md"))
    known |= {"memory/g.md": b"", "@p/f.md": ignored.version}
    scan = found.scan(known)
    assert (set(scan.files), scan.unchanged, scan.failures) == ({"@p/b.py", "@p/new.md"}, 2, ())
    assert set(known) == {"@p/b.py", "@p/sub/d.py", "@p/e.txt", "@p/f.md", "memory/g.md"}


def test_links_are_not_followed_but_for_the_folder_itself(workspace: Workspace, project: Path, tmp_path: Path) -> None:
    fill(tmp_path / "outside", {"secret.md": "x", "in/secret.md": "x"})
    fill(project, {"a.md": "x", "sub/b.md": "x"})
    (project / "link.md").symlink_to(tmp_path / "outside" / "secret.md")
    (project / "linked").symlink_to(tmp_path / "outside")
    (project / "loop").symlink_to(project)
    (tmp_path / "alias").symlink_to(project)
    found = folders(workspace, ("p", tmp_path / "alias"))
    assert listed(found) == {"@p/a.md", "@p/sub/b.md"}
    assert found.look(["@p/link.md", "@p/linked/secret.md", "@p/loop/a.md", "@p/../outside/secret.md"]).files == {}
    for path in (
        "@p/link.md",
        "@p/linked/secret.md",
        "@p/loop/a.md",
        "@p/../outside/secret.md",
        "@p//etc/passwd",
        "@p",
        "@q/a.md",
    ):
        assert found.locate(path) is None
    assert found.locate("@p/sub/b.md") == project.resolve() / "sub/b.md"


def test_memory_files_and_other_workspaces_are_never_files_too(tmp_path: Path) -> None:
    home = tmp_path / "code" / "home"
    workspace = Workspace(home / "mine")
    fill(home, {"mine/MEMORY.md": "x", "mine/memory/a.md": "x", "mine/docs/b.md": "x", "other/memory/c.md": "x"})
    fill(tmp_path / "code", {"d.md": "x"})
    assert listed(folders(workspace, ("code", tmp_path / "code"), private=home)) == {"@code/d.md"}
    assert listed(folders(workspace, ("docs", home / "mine" / "docs"), private=home)) == {"@docs/b.md"}
    assert listed(folders(workspace, ("all", home / "mine"), private=home)) == {"@all/docs/b.md"}
    for inside in ("mine/memory", "mine/sessions", "mine/memory/deep"):
        (home / inside).mkdir(parents=True, exist_ok=True)
        assert "indexed already" in failures(folders(workspace, ("m", home / inside), private=home))["@m"]
    for others in (home / "other", home):
        found = folders(workspace, ("o", others), private=home)
        assert found.scan().files == {}
        assert "apart from each other" in failures(found)["@o"]


def test_a_file_lies_in_the_inner_one_of_two_folders(workspace: Workspace, project: Path) -> None:
    fill(project, {"a.md": "x", "docs/b.md": "x", "docs/c.py": "x"})
    both = folders(workspace, ("p", project), ("docs", project / "docs", "*.md"))
    assert listed(both) == {"@p/a.md", "@docs/b.md"}
    twice = folders(workspace, ("p", project), ("q", project))
    assert set(twice.scan().files) == {"@p/a.md", "@p/docs/b.md", "@p/docs/c.py"}
    assert "the same folder as @p" in failures(twice)["@q"]
    with pytest.raises(ValueError, match="one name"):
        folders(workspace, ("p", project), ("p", project / "docs"))


def test_names_that_no_path_can_have_are_told(workspace: Workspace, project: Path) -> None:
    fill(project, {"two\nlines.md": "x", "good.md": "x"})
    Path(os.fsdecode(os.fsencode(project) + b"/\xff.md")).write_text("x")
    found = folders(workspace, ("p", project))
    assert set(found.scan().files) == {"@p/good.md"}
    assert sorted(failure.reason for failure in found.scan().misnamed) == [
        "its name has a control character in it; rename it",
        "its name is not UTF-8; rename it",
    ]
    assert found.look(["@p/two\nlines.md"]).files == {}


@pytest.mark.parametrize("asked", ["@p/pâté/cafe\u0301.md", "@p/pa\u0302te\u0301/café.md"])
def test_a_path_is_that_of_the_disk_in_either_form(workspace: Workspace, project: Path, asked: str) -> None:
    fill(project, {"pa\u0302te\u0301/cafe\u0301.md": "x"})
    workspace.write("memory/cafe\u0301.md", "x")
    found = folders(workspace, ("p", project))
    (listed_path,) = found.scan().files
    assert found.as_on_disk(asked) == listed_path == "@p/pa\u0302te\u0301/cafe\u0301.md"
    assert found.as_on_disk("memory/café.md") == "memory/cafe\u0301.md"
    for other in ("@p/pâté/thé.md", "@q/café.md", "@p/../café.md", "memory/thé.md"):
        assert found.as_on_disk(other) == other


def test_rules_that_cannot_be_read_hide_the_folder(workspace: Workspace, project: Path) -> None:
    fill(project, {"a.md": "x", "sub/.gitignore": b"#" * (1024 * 1024 + 1), "sub/b.md": "x"})
    found = folders(workspace, ("p", project))
    assert set(found.scan().files) == {"@p/a.md"}
    assert failures(found) == {"@p/sub": "its .gitignore has more than 1,048,576 bytes; shorten it"}
    assert found.scan().removals(["@p/sub/b.md", "@p/c.md"]) == ["@p/c.md"]


def test_files_are_found_by_words_and_by_the_parts_of_names(workspace: Workspace, project: Path) -> None:
    workspace.write_items("MEMORY.md", ["The header is blue."])
    fill(
        project,
        {
            "src/net.py": CODE,
            "文档/部署.md": "# 部署\n\n服务器在每周二部署。\n",
            "a.rst": "Title\n=====\n\nOld words.\n",
        },
    )
    index = index_of(workspace, folders(workspace, ("代码", project)))
    report = index.sync()
    assert (report.added, report.failed) == (4, ())
    only = SearchFilter(sources=("files",))
    (hit,) = index.search("parseHttpHeader", limit=1, mode="text", filter=only).hits
    assert (hit.path, hit.source, hit.passage.heading) == ("@代码/src/net.py", "files", ("def parse_http_header",))
    (hit,) = index.search("什么时候部署服务器", limit=1, filter=SearchFilter(path_prefix="@代码/文档/")).hits
    assert (hit.path, hit.passage.start_line) == ("@代码/文档/部署.md", 3)
    fill(project, {"src/Boil.java": "class BoilKettleFast {\n}\n"})
    index.sync(["@代码/src/Boil.java"])
    assert [hit.path for hit in index.search("kettle", mode="text").hits] == ["@代码/src/Boil.java"]
    (project / "src/Boil.java").unlink()
    index.sync(["@代码/src/Boil.java"])
    assert index.search("kettle", mode="text").hits == ()
    assert {hit.source for hit in index.search("header", filter=SearchFilter(sources=("memory",))).hits} == {"memory"}
    assert index.sync().unchanged == 4
    assert index.status().pending == 0
    assert index.source.folders == (workspace.root, project)
    assert index.listed_path("@代码/src/net.py") == "@代码/src/net.py"


def test_changes_are_found_and_files_can_be_named(workspace: Workspace, project: Path) -> None:
    fill(project, {"a.md": "one", "sub/b.md": "two", "c.md": "three"})
    index = index_of(workspace, folders(workspace, ("p", project)))
    assert index.sync(["@p/sub"]).added == 1
    assert index.sync().added == 2
    fill(project, {"a.md": "one and more", "new.md": "four"})
    (project / "c.md").unlink()
    assert index.plan().removed == ("@p/c.md",)
    report = index.sync(["@p/a.md", "@p/c.md", "@p/new.md"])
    assert (report.added, report.changed, report.removed) == (1, 1, 1)
    fill(project, {".gitignore": "a.md\n"})
    assert index.sync(["@p/a.md"]).removed == 1, "what is ignored now is gone"
    with pytest.raises(SourceMissing):
        index.sync(["@p/nothing.md"])
    with pytest.raises(SourceMissing):
        index.listed_path("@p/a.md")


def test_a_folder_that_is_away_keeps_its_passages_and_one_that_is_not_named_loses_them(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    fill(project, {"a.md": "The kettle is green."})
    index = index_of(workspace, folders(workspace, ("p", project)))
    index.sync()
    project.rename(tmp_path / "away")
    for report in (index.sync(), index.sync(["@p/a.md"], missing_ok=True)):
        assert report.removed == 0
        assert report.failed[0].path == "@p"
        assert report.failed[0].reason == "its folder is not there; bring it back, or take it out of extra_paths"
    assert index.search("kettle").hits
    assert [failure.path for failure in index.status().failed] == ["@p"]
    index.close()
    without = index_of(workspace, folders(workspace))
    assert without.sync().removed == 1
    assert not without.search("kettle").hits


def test_what_cannot_be_read_is_told_and_what_is_no_text_is_left_out(workspace: Workspace, project: Path) -> None:
    fill(
        project,
        {
            "bin.txt": b"MZ\0\1binary",
            "late.txt": b"a word " * 2_000 + b"\0",
            "latin.py": b"# caf\xe9\n",
            "utf16.md": "x".encode("utf-16"),
            "empty.py": "",
            "bom.py": b"\xef\xbb\xbfx = 'bom'\r\ny = 1",
            "gen.go": "// Code generated by x. DO NOT EDIT.\nfunc F() {}\n",
        },
    )
    with open(project / "big.md", "wb") as stream:
        stream.truncate(1 << 30)  # a gigabyte of nothing: it takes no room, and reading it would take long
    index = index_of(workspace, folders(workspace, ("p", project)))
    failed = {failure.path: failure.reason for failure in index.sync().failed}
    assert set(failed) == {"@p/latin.py", "@p/utf16.md", "@p/big.md"}
    assert "line 1" in failed["@p/latin.py"]
    assert "1,073,741,824 bytes" in failed["@p/big.md"]
    assert {hit.path for hit in index.search("word bom binary F", limit=20).hits} == {"@p/late.txt", "@p/bom.py"}
    assert index.status().pending == 0
    with pytest.raises(SourceMissing):
        index.listed_path("@p/big.md")


def test_a_file_that_changes_all_the_time_keeps_what_was_read(workspace: Workspace, project: Path) -> None:
    fill(project, {"a.md": "steady", "b.md": "The kettle is green."})
    index = index_of(workspace, folders(workspace, ("p", project)))
    index.sync()
    stop = threading.Event()

    def write() -> None:
        count = 0
        with open(project / "b.md", "ab", buffering=0) as stream:
            while not stop.is_set():
                stream.write(b"x" * (1 + count % 3))
                count += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        failed = [failure for _ in range(20) for failure in index.sync(["@p/b.md"]).failed]
    finally:
        stop.set()
        writer.join()
    assert all(failure.reason.startswith("it changes while it is read") for failure in failed)
    assert index.search("kettle").hits
    assert index.sync().failed == ()


def test_files_that_come_and_go_during_a_look(workspace: Workspace, project: Path) -> None:
    fill(project, {f"{n % 7}/f{n}.md": "x" for n in range(400)})
    found = folders(workspace, ("p", project))
    stop = threading.Event()

    def shuffle() -> None:
        while not stop.is_set():
            for n in range(0, 400, 2):
                (project / f"{n % 7}/f{n}.md").unlink()
            fill(project, {f"{n % 7}/f{n}.md": "x" for n in range(0, 400, 2)})

    mover = threading.Thread(target=shuffle)
    mover.start()
    try:
        for _ in range(20):
            scan = found.scan()
            assert scan.failures == ()
            assert {f"@p/{n % 7}/f{n}.md" for n in range(1, 400, 2)} <= set(scan.files)
    finally:
        stop.set()
        mover.join()


@pytest.mark.skipif(os.name == "nt", reason="rights are others there")
def test_a_folder_without_rights_is_told(tmp_path: Path) -> None:
    root = tmp_path / "p"
    fill(root, {"a.md": "x", "locked/b.md": "x"})
    (root / "locked").chmod(0)
    reachable(root)
    script = (
        "import sys; from pathlib import Path; from indexer.sources.folders import *\ndrop()\n"
        "found = Folders(Path(sys.argv[1]) / 'w', [ExtraFolder(name='p', folder=Path(sys.argv[1]) / 'p')])\n"
        "scan = found.scan()\n"
        "print(sorted(scan.files), [f.path for f in scan.failures], scan.removals(['@p/locked/b.md', '@p/b.md']))\n"
        "print([f.path for f in found.look(['@p/locked/b.md']).failures])"
    )
    try:
        printed = run_unprivileged(script, tmp_path).splitlines()
    finally:
        (root / "locked").chmod(0o755)
    assert printed == ["['@p/a.md'] ['@p/locked'] ['@p/b.md']", "['@p/locked']"]

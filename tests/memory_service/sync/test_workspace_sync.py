"""Each rule of a sync, between folders and a real server."""

from __future__ import annotations

import datetime as dt
import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_service.client import MemoryClient
from memory_service.errors import ConnectionFailed, InvalidRequest, NotFound, StorageFailed
from memory_service.sync import WorkspaceSync
from memory_service.sync.folder import SyncFolder
from memory_service.sync.manifest import Manifest
from tests.memory_service.sync.editor import Editor, steps_of

Editors = Callable[..., Editor]
DAY = "memory/2026-11-20.md"


def test_both_sides_get_what_the_other_one_has(there: MemoryClient, ana: Editor) -> None:
    there.put("MEMORY.md", "- from there\n")
    there.put("memory/日记/käse & co.md", "一\r\n\n二")
    ana.write("USER.md", "- from here\n")
    ana.write("memory/deep/er/plan #1?.md", "")
    assert ana.actions() == {
        "MEMORY.md": "download", "memory/日记/käse & co.md": "download",
        "USER.md": "create", "memory/deep/er/plan #1?.md": "create",
    }  # fmt: skip
    assert ana.read("memory/日记/käse & co.md") == "一\r\n\n二"
    assert there.get("USER.md").text == "- from here\n"
    assert {file.path for file in there.files()} == ana.files().keys()
    assert ana.actions() == {} and ana.sync.run().unchanged == 4


def test_one_side_alone_changes(there: MemoryClient, ana: Editor) -> None:
    ana.write(DAY, "- one\n")
    ana.actions()
    ana.write(DAY, "- one\n- two\n")
    assert ana.actions() == {DAY: "upload"}
    assert there.get(DAY).text == "- one\n- two\n"
    there.put(DAY, "- three\n", etag=there.get(DAY).etag)
    assert ana.actions() == {DAY: "download"}
    assert ana.read(DAY) == "- three\n"
    assert ana.actions() == {}


def test_a_long_file_comes_whole(there: MemoryClient, ana: Editor) -> None:
    text = "".join(f"- line {number}\n" for number in range(4_500))
    there.put(DAY, text)
    ana.actions()
    assert ana.read(DAY) == text


def test_both_sides_change_and_are_merged(there: MemoryClient, ana: Editor) -> None:
    stored = there.remember("Deploys go out on Tuesdays.", date=None)
    ana.actions()
    there.remember("The lift works again.")
    ana.write(stored.path, ana.read(stored.path) + "- Fridays are off.\n")
    assert ana.actions() == {stored.path: "merge"}
    text = ana.read(stored.path)
    assert text == there.get(stored.path).text
    for line in ("- Deploys go out on Tuesdays.", "- The lift works again.", "- Fridays are off."):
        assert text.count(line) == 1
    assert len(there.entries().entries) == 3
    assert ana.actions() == {}


def test_a_conflict_leaves_the_servers_text_and_puts_yours_beside_it(there: MemoryClient, ana: Editor) -> None:
    ana.write(DAY, "- Deploys go out on Tuesdays.\n")
    ana.actions()
    there.put(DAY, "- Deploys go out on Mondays.\n", etag=there.get(DAY).etag)
    ana.write(DAY, "- Deploys go out on Fridays.\n")
    report = ana.sync.run()
    assert not report.is_clean and steps_of(report) == {DAY: "conflict"}
    [conflict] = report.conflicts
    assert (conflict.path, conflict.copy) == (DAY, "memory/2026-11-20.conflict.md")
    assert ana.read(DAY) == there.get(DAY).text == "- Deploys go out on Mondays.\n"
    assert ana.read(conflict.copy) == "- Deploys go out on Fridays.\n"
    # The copy is this person's alone, and is named until it is gone.
    assert ana.actions() == {}
    assert ana.sync.run().unresolved == [conflict.copy]
    assert [file.path for file in there.files()] == [DAY]
    # A second one does not take its place.
    there.put(DAY, "- Deploys go out on Sundays.\n", etag=there.get(DAY).etag)
    ana.write(DAY, "- Deploys go out never.\n")
    assert [each.copy for each in ana.sync.run().conflicts] == ["memory/2026-11-20.conflict-2.md"]
    assert len(ana.files()) == 3


def test_a_file_that_is_missing_here_comes_back(there: MemoryClient, ana: Editor) -> None:
    ana.write(DAY, "- one\n").unlink()
    ana.write(DAY, "- one\n")
    ana.actions()
    (ana.folder / DAY).unlink()
    assert ana.actions() == {DAY: "restore"}
    assert ana.read(DAY) == "- one\n"


def test_a_file_that_is_missing_here_is_erased_there_on_request(there: MemoryClient, editors: Editors) -> None:
    ana = editors("ana", deletes=True)
    ana.write(DAY, "- one\n")
    ana.write("MEMORY.md", "- always\n")
    ana.actions()
    for path in (DAY, "MEMORY.md"):
        (ana.folder / path).unlink()
    # What somebody changed there meanwhile is not what was removed here.
    there.put("MEMORY.md", "- always, and more\n", etag=there.get("MEMORY.md").etag)
    assert ana.actions() == {DAY: "delete_there", "MEMORY.md": "restore"}
    assert [file.path for file in there.files()] == ["MEMORY.md"]
    assert ana.files() == {"MEMORY.md": "- always, and more\n"}
    assert ana.actions() == {}


def test_a_file_that_an_editor_puts_anew_is_not_erased(there: MemoryClient, editors: Editors) -> None:
    ana = editors("ana", deletes=True)
    ana.write(DAY, "- one\n")
    ana.write("MEMORY.md", "- always\n")
    ana.actions()
    (ana.folder / DAY).unlink()
    ana.sync.run(lambda done, total: done == 1 and ana.write(DAY, "- one\n- two\n"))
    assert there.get(DAY).text == ana.read(DAY) == "- one\n- two\n"


def test_a_file_that_was_erased_there_goes_here_too_unless_it_changed(there: MemoryClient, ana: Editor) -> None:
    ana.write(DAY, "- zanzibarium\n")
    ana.write("MEMORY.md", "- always\n")
    ana.actions()
    there.delete(DAY)
    there.delete("MEMORY.md")
    ana.write("MEMORY.md", "- always, and more\n")
    assert ana.actions() == {DAY: "delete_here", "MEMORY.md": "create"}
    assert ana.files() == {"MEMORY.md": "- always, and more\n"} and len(there.files()) == 1
    # Nothing of what was erased is left among the notes.
    assert not [file for file in ana.folder.rglob("*") if file.is_file() and b"zanzibarium" in file.read_bytes()]
    (ana.folder / "MEMORY.md").unlink()
    there.delete("MEMORY.md")
    assert ana.actions() == {} and ana.actions() == {}


def test_a_workspace_that_is_no_more_takes_nothing_with_it(there: MemoryClient, ana: Editor, tmp_path: Path) -> None:
    ana.write(DAY, "- one\n")
    ana.actions()
    (ana.folder / ".memory-sync.json").write_text(
        (ana.folder / ".memory-sync.json").read_text().replace(f'"{there.workspace}"', '"nobody"')
    )
    with (
        WorkspaceSync(ana.folder, url=there.base_url, workspace="nobody") as sync,
        pytest.raises(NotFound, match="Nothing was removed"),
    ):
        sync.run()
    assert ana.read(DAY) == "- one\n"


def test_two_people_and_the_server_have_the_same_in_the_end(there: MemoryClient, editors: Editors) -> None:
    ana, ben = editors("ana"), editors("ben")
    ana.write(DAY, "- one\n- two\n- three\n")
    ana.actions()
    assert ben.actions() == {DAY: "download"}
    ana.write(DAY, "- ONE\n- two\n- three\n")
    ben.write(DAY, "- one\n- two\n- THREE\n- four\n")
    assert ben.actions() == {DAY: "upload"}
    assert ana.actions() == {DAY: "merge"}
    assert ben.actions() == {DAY: "download"}
    assert ana.files() == ben.files() == {DAY: "- ONE\n- two\n- THREE\n- four\n"}


def test_a_name_is_one_in_both_unicode_forms(there: MemoryClient, ana: Editor) -> None:
    composed, decomposed = (unicodedata.normalize(form, "memory/Äpfel.md") for form in ("NFC", "NFD"))
    ana.write(decomposed, "- one\n")
    ana.actions()
    assert [file.path for file in there.files()] == [composed]
    there.put(composed, "- two\n", etag=there.get(composed).etag)
    assert ana.actions() == {composed: "download"}
    assert ana.files() == {decomposed: "- two\n"}
    ana.write(composed, "- three\n")
    report = ana.sync.run()
    assert not report.is_clean and "two names" in report.left_out[0].reason
    assert there.get(composed).text == "- two\n"
    (ana.folder / composed).unlink()
    assert ana.actions() == {}


def test_what_cannot_be_synced_is_named_and_the_rest_goes_on(there: MemoryClient, ana: Editor, tmp_path: Path) -> None:
    ana.write("memory/good.md", "- one\n")
    ana.write("memory/nul.md", "- one\n- a\0b\n")
    ana.write("memory/latin.md", "- one\n- käse\n".encode("latin-1"))
    ana.write("memory/half.md", b"- \xed\xa0\x80\n")
    ana.write("README.md", "mine\n")
    ana.write("notes.txt", "mine\n")
    ana.write("memory/picture.png", b"\x89PNG")
    ana.write("memory/back\\slash.md", "x\n")
    ana.write("memory/.obsidian/x.md", "x\n")
    (ana.folder / "memory/link.md").symlink_to(ana.folder / "README.md")
    (ana.folder / "memory/elsewhere").symlink_to(tmp_path)
    os.mkfifo(ana.folder / "memory/pipe.md")
    (ana.folder / os.fsdecode(b"memory/\xff.md")).write_text("x\n")
    report = ana.sync.run()
    assert steps_of(report) == {"memory/good.md": "create"}
    reasons = {each.path: each.reason for each in report.left_out}
    failures = {each.path for each in report.left_out if each.is_failure}
    assert failures == {"memory/nul.md", "memory/latin.md", "memory/half.md"}
    assert reasons["memory/nul.md"] == "The file memory/nul.md has a NUL in line 2. Take it out, then sync again."
    assert "line 2" in reasons["memory/latin.md"] and "Save it as UTF-8" in reasons["memory/half.md"]
    others = {
        "README.md", "memory/picture.png", "memory/back\\slash.md", "memory/link.md", "memory/elsewhere",
        "memory/pipe.md", os.fsdecode(b"memory/\xff.md"),
    }  # fmt: skip
    assert reasons.keys() - failures == others
    assert [file.path for file in there.files()] == ["memory/good.md"]


def test_a_file_that_only_seems_to_be_missing_is_erased_nowhere(there: MemoryClient, editors: Editors) -> None:
    ana = editors("ana", deletes=True)
    ana.write(DAY, "- one\n")
    ana.write("MEMORY.md", "- always\n")
    ana.actions()
    (ana.folder / "memory").rename(ana.folder / "elsewhere")
    (ana.folder / "memory").symlink_to(ana.folder / "elsewhere")
    ana.write("MEMORY.md", b"\xff\n")
    report = ana.sync.run()
    assert steps_of(report) == {} and {each.path for each in report.left_out} == {"memory", "MEMORY.md"}
    assert len(there.files()) == 2
    (ana.folder / "memory").unlink()
    (ana.folder / "elsewhere").rename(ana.folder / "memory")
    ana.write("MEMORY.md", "- always\n")
    assert ana.actions() == {}


def test_what_the_server_refuses_is_named_and_the_rest_goes_on(there: MemoryClient, ana: Editor) -> None:
    ana.write("memory/a.md", "- x\n" * 100_001)
    ana.write("memory/b.md", "- x\n")
    report = ana.sync.run()
    assert steps_of(report) == {"memory/b.md": "create"}
    assert [(each.path, each.is_failure) for each in report.left_out] == [("memory/a.md", True)]
    assert "Split the file" in report.left_out[0].reason


def test_a_file_of_the_server_that_is_not_utf8_is_named(there: MemoryClient, ana: Editor, sync_server: object) -> None:
    there.put(DAY, "- one\n")
    home = sync_server.home  # type: ignore[attr-defined]
    (home / there.workspace / "memory/latin.md").write_bytes("- käse\n".encode("latin-1"))
    (home / there.workspace / "memory/x.conflict.md").write_text("- x\n")
    report = ana.sync.run()
    assert steps_of(report) == {DAY: "download"}
    assert {each.path: each.is_failure for each in report.left_out} == {
        "memory/latin.md": True,
        "memory/x.conflict.md": False,
    }


def test_a_plan_changes_nothing(there: MemoryClient, ana: Editor) -> None:
    ana.write(DAY, "- Tuesdays\n")
    ana.write("memory/same.md", "- x\n")
    ana.actions()
    there.put(DAY, "- Mondays\n", etag=there.get(DAY).etag)
    there.put("MEMORY.md", "- new\n")
    ana.write(DAY, "- Fridays\n")
    before = ana.files()
    report = ana.sync.plan()
    assert report.dry_run and steps_of(report) == {DAY: "conflict", "MEMORY.md": "download"}
    assert report.unchanged == 1
    assert ana.files() == before and there.get(DAY).text == "- Mondays\n"


def test_notes_that_are_lost_or_torn_lose_nothing(there: MemoryClient, ana: Editor) -> None:
    ana.write(DAY, "- one\n- two\n")
    ana.write("memory/same.md", "- x\n")
    ana.actions()
    for text in (ana.folder / ".memory-sync").iterdir():
        text.write_bytes(b"")
    there.put(DAY, "- one\n- two\n- three\n", etag=there.get(DAY).etag)
    ana.write(DAY, "- zero\n- one\n- two\n")
    assert ana.actions() == {DAY: "merge"}
    assert ana.read(DAY) == "- zero\n- one\n- two\n- three\n"
    (ana.folder / ".memory-sync.json").unlink()
    ana.write("MEMORY.md", "- y\n")
    assert ana.actions() == {"MEMORY.md": "create"}
    for broken in ("{", '{"format": 2}', "[]", '{"format": 1, "url": "", "workspace": "", "files": {"a": 1}}'):
        (ana.folder / ".memory-sync.json").write_text(broken)
        with pytest.raises(InvalidRequest, match="begin anew"):
            ana.sync.run()


def test_a_folder_belongs_to_one_workspace(there: MemoryClient, ana: Editor) -> None:
    ana.write(DAY, "- one\n")
    ana.actions()
    with (
        WorkspaceSync(ana.folder, url=there.base_url, workspace="another") as sync,
        pytest.raises(InvalidRequest, match=there.workspace),
    ):
        sync.run()
    noted = json.loads((ana.folder / ".memory-sync.json").read_text())
    assert (noted["workspace"], noted["url"]) == (there.workspace, there.base_url)
    (ana.folder / "index.sqlite").touch()
    with pytest.raises(InvalidRequest, match="is a workspace itself"):
        WorkspaceSync(ana.folder, url=there.base_url, workspace="another")


def test_one_run_at_a_time(there: MemoryClient, ana: Editor, editors: Editors) -> None:
    def meanwhile(*_: int) -> None:
        with pytest.raises(StorageFailed, match=r"sync\.lock"):
            other.sync.run()
        runs.append(True)

    other, runs = editors("ana"), list[bool]()
    ana.write(DAY, "- one\n")
    ana.sync.run(meanwhile)
    assert runs == [True]


def test_a_server_that_is_away_ends_the_run_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("- one\n")
    with (
        WorkspaceSync(tmp_path, url="http://127.0.0.1:9", workspace="team") as sync,
        pytest.raises(ConnectionFailed),
    ):
        sync.run()
    assert (tmp_path / "MEMORY.md").read_text() == "- one\n"


class Killed(Exception):
    """Stands for a process that is killed."""


@pytest.fixture
def effects(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], object]], None]:
    """Does something before the effect of a number, here or on the server, counted from 1."""

    def arm(number: int, act: Callable[[], object]) -> None:
        counted = iter(range(1, 1_000))

        def wrap(place: type, name: str) -> None:
            real = getattr(place, name)

            def effect(*arguments: object, **options: object) -> object:
                if next(counted) == number:
                    act()
                return real(*arguments, **options)

            monkeypatch.setattr(place, name, effect)

        for place, names in (
            (SyncFolder, ("replace", "remove", "put_aside")),
            (Manifest, ("note", "begin", "drop", "save")),
            (MemoryClient, ("put", "delete")),
        ):
            for name in names:
                wrap(place, name)

    return arm


def prepared(there: MemoryClient, ana: Editor) -> None:
    """A folder and a workspace with a file for every step."""
    for name in ("up", "down", "both", "clash", "gone-here", "gone-there"):
        ana.write(f"memory/{name}.md", f"- {name}\n- base\n")
    ana.actions()
    for name, text in (
        ("down", "- down\n- base\n- S\n"),
        ("both", "- both\n- S\n"),
        ("clash", "- S\n- base\n"),
    ):
        there.put(f"memory/{name}.md", text, etag=there.get(f"memory/{name}.md").etag)
    there.delete("memory/gone-there.md")
    (ana.folder / "memory/gone-here.md").unlink()
    ana.write("memory/up.md", "- up\n- base\n- O\n")
    ana.write("memory/both.md", "- both\n- base\n- O\n")
    ana.write("memory/clash.md", "- O\n- base\n")
    ana.write("memory/new.md", "- O\n")


FINISHED = {
    "memory/up.md": "- up\n- base\n- O\n",
    "memory/down.md": "- down\n- base\n- S\n",
    "memory/both.md": "- both\n- S\n- O\n",
    "memory/clash.md": "- S\n- base\n",
    "memory/clash.conflict.md": "- O\n- base\n",
    "memory/new.md": "- O\n",
}


@pytest.mark.parametrize("number", range(1, 21))
def test_a_run_that_is_killed_anywhere_is_gone_on_with(
    there: MemoryClient,
    editors: Editors,
    effects: Callable[[int, Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    def die() -> None:
        # What is done on the way out of a run is not done by one that is killed.
        monkeypatch.setattr(Manifest, "save", lambda _: None)
        raise Killed

    ana = editors("ana", deletes=True)
    prepared(there, ana)
    effects(number, die)
    with pytest.raises(Killed):
        ana.sync.run()
    monkeypatch.undo()
    ana.sync.run()
    assert ana.files() == FINISHED
    assert {file.path: there.get(file.path).text for file in there.files()} == {
        path: text for path, text in FINISHED.items() if "conflict" not in path
    }
    assert ana.actions() == {}


@pytest.mark.parametrize("number", range(1, 21))
def test_what_an_editor_saves_meanwhile_is_in_the_end(
    there: MemoryClient, editors: Editors, effects: Callable[[int, Callable[[], object]], None], number: int
) -> None:
    def save() -> None:
        for name in ("up", "down", "both", "clash", "gone-there", "new"):
            file = ana.folder / f"memory/{name}.md"
            ana.write(f"memory/{name}.md", (file.read_text() if file.exists() else "") + "- late\n")
        there.remember("Somebody else is faster.")

    ana = editors("ana", deletes=True)
    prepared(there, ana)
    effects(number, save)
    ana.sync.run()
    ana.sync.run()
    texts = {path: there.get(path).text for path in (file.path for file in there.files())}
    for name in ("up", "down", "both", "new"):
        assert texts[f"memory/{name}.md"].count("- late\n") == 1, (name, texts)
    copies = [text for path, text in ana.files().items() if "conflict" in path]
    assert "- late\n" in "".join([texts["memory/clash.md"], *copies])
    assert "- late\n" in texts["memory/gone-there.md"]
    assert any("Somebody else" in text for text in texts.values())
    assert {path: text for path, text in ana.files().items() if "conflict" not in path} == texts


def test_what_changes_on_the_server_meanwhile_is_not_erased(
    there: MemoryClient, editors: Editors, effects: Callable[[int, Callable[[], object]], None]
) -> None:
    ana = editors("ana", deletes=True)
    ana.write(DAY, "- one\n")
    ana.actions()
    (ana.folder / DAY).unlink()
    effects(1, lambda: there.remember("Somebody else is faster.", date=dt.date(2026, 11, 20)))
    assert ana.actions() == {DAY: "restore"}
    assert "Somebody else" in ana.read(DAY) == there.get(DAY).text


def test_a_server_that_never_rests_is_given_up_for_now(
    there: MemoryClient, ana: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana.write(DAY, "- one\n")
    ana.actions()
    real, tried = MemoryClient.put, list[str]()

    def put(client: MemoryClient, path: str, text: str, *, etag: str | None = None) -> object:
        tried.append(path)
        real(client, path, there.get(path).text + f"- faster {len(tried)}\n", etag="*")
        return real(client, path, text, etag=etag)

    ana.write(DAY, "- zero\n- one\n")
    monkeypatch.setattr(MemoryClient, "put", put)
    report = ana.sync.run()
    assert [(each.path, each.is_failure) for each in report.left_out] == [(DAY, True)]
    assert "kept changing" in report.left_out[0].reason and len(tried) == 5
    monkeypatch.undo()
    ana.actions()
    assert ana.read(DAY) == "- zero\n- one\n" + "".join(f"- faster {number}\n" for number in range(1, 6))

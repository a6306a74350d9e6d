"""Entries of a workspace: listed in pages, found for passages, and lines that are taken out."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from memory_service.errors import InvalidRequest, NotFound, PreconditionFailed
from memory_service.memories.drafts import checked_change, entry_draft
from memory_service.memories.entries import EntryFilter
from memory_service.memories.store import MemoryStore
from memory_service.schemas import EntryChange
from memory_service.storage.files.document_files import FileDocuments

NOW = dt.datetime(2026, 11, 20, 14, 32, tzinfo=dt.UTC)
OLD = "memory/2026-11-03.md"
PAGE = (
    "# 2026-11-03\n\n- Anna likes tea. #people\n- Ben likes coffee.\n  - With milk.\n\nA paragraph.\nIts second line.\n"
)


@pytest.fixture
def files(tmp_path: Path) -> MemoryStore:
    (tmp_path / "memory").mkdir()
    (tmp_path / OLD).write_text(PAGE)
    (tmp_path / "MEMORY.md").write_text("- By hand.\n<!-- memory id=mfeed origin=tool -->\n- Noted here. #x/y\n")
    store = MemoryStore(FileDocuments(tmp_path), now=lambda: NOW)
    store.notes.append(entry_draft("First of today. #people", origin="user", session_id="s-1"))
    store.notes.append(entry_draft("Second of today."))
    return store


def _texts(files: MemoryStore, limit: int = 50, after: str = "", **wanted: object) -> list[str]:
    held, _ = files.entries.list_entries(EntryFilter(**wanted), limit=limit, after=after)  # type: ignore[arg-type]
    return [each.text for each in held]


def test_the_newest_come_first_and_pages_join(files: MemoryStore) -> None:
    whole = _texts(files)
    assert whole == [
        "Second of today.", "First of today. #people", "Ben likes coffee.\n- With milk.", "Anna likes tea. #people",
        "Noted here. #x/y",
    ]  # fmt: skip
    for limit in (1, 2, 3):
        found, after = list[str](), ""
        for _ in range(len(whole)):
            held, after = files.entries.list_entries(EntryFilter(), limit=limit, after=after)
            found += [each.text for each in held]
            # What comes meanwhile moves nothing.
            files.notes.append(entry_draft(f"{limit} {len(found)}"))
            if not after:
                break
        assert found[-4:] == whole[-4:] and len(found) == len(set(found))
        whole = _texts(files)
    with pytest.raises(InvalidRequest, match="cursor"):
        files.entries.list_entries(EntryFilter(), limit=1, after="nowhere")


def test_filters_restrict_the_list(files: MemoryStore) -> None:
    assert _texts(files, tags=("People",)) == ["First of today. #people", "Anna likes tea. #people"]
    assert _texts(files, tags=("x",)) == ["Noted here. #x/y"]
    assert _texts(files, role="agent") == ["Second of today."]
    assert _texts(files, role="user")[0] == "First of today. #people" and len(_texts(files, role="user")) == 3
    assert _texts(files, session_id="s-1") == ["First of today. #people"]
    assert len(_texts(files, since=dt.date(2026, 11, 4))) == 2 and len(_texts(files, until=dt.date(2026, 11, 4))) == 2


def test_a_passage_is_of_the_entry_that_its_lines_are_of(files: MemoryStore, tmp_path: Path) -> None:
    ben = files.entries.finder()(OLD, 5, 5, "With milk.")
    assert ben is not None and ben.text.startswith("Ben") and files.entries.finder()(OLD, 7, 8, "A paragraph.") is None
    assert files.entries.finder()("MEMORY.md", 1, 1, "By hand.") is None
    # Whoever has found it in an older file is not told of what stands there now.
    (tmp_path / OLD).write_text(PAGE.replace("With milk", "Black"))
    assert files.entries.finder()(OLD, 5, 5, "With milk.") is None
    assert files.entries.finder()("memory/absent.md", 1, 1, "x") is None


@pytest.mark.parametrize(
    ("lines", "gone", "rest"),
    [
        ((5, 5), ["Ben likes coffee.\n- With milk."], PAGE.replace("- Ben likes coffee.\n  - With milk.\n", "")),
        ((8, 8), ["Its second line.\n"], PAGE.replace("Its second line.\n", "")),
        ((7, 99), ["A paragraph.\nIts second line.\n"], PAGE[: PAGE.index("\nA paragraph")]),
        (
            (3, 7),
            ["Anna likes tea. #people", "Ben likes coffee.\n- With milk.", "A paragraph.\n"],
            "# 2026-11-03\n\nIts second line.\n",
        ),
    ],
)  # fmt: skip
def test_a_range_takes_entries_whole_and_other_lines_as_named(
    files: MemoryStore, tmp_path: Path, lines: tuple[int, int], gone: list[str], rest: str
) -> None:
    assert [each.text for each in files.entries.within(OLD, *lines)] == gone
    assert (tmp_path / OLD).read_text() == PAGE
    assert [each.text for each in files.entries.forget_lines(OLD, *lines)] == gone
    assert (tmp_path / OLD).read_text() == rest


def test_lines_that_are_not_there_are_said_to_be_missing(files: MemoryStore) -> None:
    with pytest.raises(NotFound, match="has 8 lines"):
        files.entries.forget_lines(OLD, 9, 9)
    with pytest.raises(InvalidRequest):
        files.entries.within(OLD, 0, 0)
    with pytest.raises(NotFound):
        files.entries.within("memory/absent.md", 1, 1)


def test_a_change_that_was_made_from_another_text_is_refused(files: MemoryStore) -> None:
    [held, *_], _ = files.entries.list_entries(EntryFilter(), limit=1)
    change = checked_change(EntryChange(text="Second, corrected."))
    [now] = files.entries.change(held.entry.memory_id, change, etag=held.etag)
    assert (now.text, now.entry.role) == ("Second, corrected.", "user") and now.etag != held.etag
    with pytest.raises(PreconditionFailed, match=now.etag):
        files.entries.change(held.entry.memory_id, change, etag=held.etag)


def test_an_entry_in_two_files_is_changed_in_both(files: MemoryStore, tmp_path: Path) -> None:
    [held, *_], _ = files.entries.list_entries(EntryFilter(), limit=1)
    copied = (tmp_path / held.path).read_text()
    (tmp_path / "memory" / "copy.md").write_text(copied[copied.index("<!--", copied.index("14:32", 30)) :])
    changed = files.entries.change(held.entry.memory_id, checked_change(EntryChange(text="New.")))
    assert sorted(each.path for each in changed) == ["memory/2026-11-20.md", "memory/copy.md"]
    assert "New." in (tmp_path / "memory" / "copy.md").read_text()

"""Several memories of one moment: written at once, below one heading, each an entry of its own."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.documents.entries import short_hash
from memory_service.errors import InvalidRequest
from memory_service.memories.drafts import Addition, Page, entry_draft
from memory_service.memories.format import cut_spans, find_entries, spans_of
from memory_service.memories.store import MemoryStore
from memory_service.schemas.entries import StoredMemory
from memory_service.storage.files.document_files import FileDocuments

NOW = dt.datetime(2026, 11, 20, 14, 32, tzinfo=ZoneInfo("Europe/Berlin"))
TODAY = "memory/2026-11-20.md"
NEWS = (
    entry_draft("Deploys go out on Tuesdays.", origin="agent", session_id="support-42", messages=(12, 48)),
    entry_draft("Two lines\nof one memory", origin="agent"),
    entry_draft("李雷对花生过敏。", origin="user"),
)


@pytest.fixture
def files(tmp_path: Path) -> MemoryStore:
    return MemoryStore(FileDocuments(tmp_path / "w"), now=lambda: NOW)


def page(tmp_path: Path) -> Path:
    path = tmp_path / "w" / TODAY
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _without(text: str, memory_id: str, day: dt.date | None) -> str | None:
    """A file without an entry; None if it has none of that id."""
    spans = spans_of(text, memory_id, day)
    return cut_spans(text, spans) if spans else None


def lines_of(path: Path, entry: StoredMemory) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()[entry.start_line - 1 : entry.end_line]


def test_all_stand_below_one_heading_each_with_its_comment(files: MemoryStore, tmp_path: Path) -> None:
    entries = files.notes.append_all(NEWS)
    ids = [entry.memory_id for entry in entries]
    ends = [f"at=2026-11-20T13:32:00.000Z hash={short_hash(each.folded)} -->" for each in NEWS]
    assert page(tmp_path).read_text() == (
        "# 2026-11-20\n\n## 14:32\n"
        f"<!-- memory id={ids[0]} session=support-42 messages=12-48 origin=agent {ends[0]}\n"
        "- Deploys go out on Tuesdays.\n"
        f"<!-- memory id={ids[1]} origin=agent {ends[1]}\n- Two lines\n  of one memory\n"
        f"<!-- memory id={ids[2]} origin=user {ends[2]}\n- 李雷对花生过敏。\n"
    )
    assert len(set(ids)) == 3
    assert [(entry.path, entry.duplicate, entry.replayed) for entry in entries] == [(TODAY, False, False)] * 3
    assert [lines_of(page(tmp_path), entry)[0] for entry in entries] == [
        "- Deploys go out on Tuesdays.",
        "- Two lines",
        "- 李雷对花生过敏。",
    ]


BEFORE = {
    "none": "",
    "blank line": "# 2026-11-20\n\n- by hand\n\n",
    "finished": "# 2026-11-20\n\n- by hand\n",
    "unfinished": "# 2026-11-20\n\n- by hand",
    "crlf": "# 2026-11-20\r\n\r\n- by hand\r\n",
    "crlf unfinished": "# 2026-11-20\r\n\r\n- 手写的",
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_lines_are_right_and_what_was_there_stays(files: MemoryStore, tmp_path: Path, before: str) -> None:
    if before:
        page(tmp_path).write_bytes(before.encode())
    entries = files.notes.append_all(NEWS)
    text = page(tmp_path).read_bytes().decode()
    assert text.startswith(before)
    assert ("\r" in text) == ("\r" in before)
    assert text.count("\n") == text.count("\r\n") or "\r" not in before
    assert text.count("## 14:32") == 1
    assert [lines_of(page(tmp_path), entry) for entry in entries] == [
        ["- Deploys go out on Tuesdays."],
        ["- Two lines", "  of one memory"],
        ["- 李雷对花生过敏。"],
    ]
    # A page that is read anew says the same as the one that was remembered.
    assert {(entry.memory_id, entry.start_line, entry.end_line) for entry in find_entries(text, NOW.date())} >= {
        (entry.memory_id, entry.start_line, entry.end_line) for entry in entries
    }


def test_the_same_again_writes_nothing(files: MemoryStore, tmp_path: Path) -> None:
    first = files.notes.append_all(NEWS)
    raw = page(tmp_path).read_bytes()
    for again in (files, MemoryStore(FileDocuments(tmp_path / "w"), now=lambda: NOW)):
        entries = again.notes.append_all(NEWS)
        assert [entry.duplicate for entry in entries] == [True] * 3
        assert [(e.memory_id, e.start_line, e.end_line) for e in entries] == [
            (e.memory_id, e.start_line, e.end_line) for e in first
        ]
        assert page(tmp_path).read_bytes() == raw


def test_only_what_is_missing_is_written(files: MemoryStore, tmp_path: Path) -> None:
    known = files.notes.append(NEWS[1])
    entries = files.notes.append_all([*NEWS, entry_draft("Deploys  go out\non Tuesdays.")])
    assert [entry.duplicate for entry in entries] == [False, True, False, False]
    assert entries[1].memory_id == known.memory_id
    assert entries[0].memory_id == entries[3].memory_id
    assert page(tmp_path).read_text().count("\n- ") == 3


def test_nothing_is_written_for_nothing_or_if_one_cannot_be(files: MemoryStore, tmp_path: Path) -> None:
    assert files.notes.append_all([]) == []
    with pytest.raises(InvalidRequest):
        files.notes.append_all([NEWS[0], entry_draft(" \n")])
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("gone", range(3))
def test_one_is_forgotten_and_the_others_stay(files: MemoryStore, tmp_path: Path, gone: int) -> None:
    entries = files.notes.append_all(NEWS)
    files.entries.forget(entries[gone].memory_id)
    text = page(tmp_path).read_text()
    left = [entry.memory_id for entry in find_entries(text, NOW.date())]
    assert left == [entry.memory_id for at, entry in enumerate(entries) if at != gone]
    assert text.count("## 14:32") == 1
    assert NEWS[gone].text.split("\n")[0] not in text
    for memory_id in left:
        files.entries.forget(memory_id)
    assert not page(tmp_path).exists()


def test_a_page_that_was_edited_meanwhile_is_read_again(files: MemoryStore, tmp_path: Path) -> None:
    files.notes.append_all(NEWS[:1])
    page(tmp_path).write_text("# 2026-11-20\n\n- 李雷对花生过敏。\n")
    entries = files.notes.append_all(NEWS)
    assert [entry.duplicate for entry in entries] == [False, False, True]
    assert lines_of(page(tmp_path), entries[2]) == ["- 李雷对花生过敏。"]


def test_many_at_once_store_each_once(tmp_path: Path) -> None:
    texts = [f"Fact {number} 事实" for number in range(20)]
    ready = threading.Barrier(6)

    def write(thread: int) -> list[StoredMemory]:
        files = MemoryStore(FileDocuments(tmp_path / "w"), now=lambda: NOW)
        ready.wait(60)
        return list(files.notes.append_all([entry_draft(text) for text in texts[thread:] + texts[:thread]]))

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(write, range(6)))
    assert len(find_entries(page(tmp_path).read_text(), NOW.date())) == 20
    assert sum(not entry.duplicate for entries in answers for entry in entries) == 20
    assert page(tmp_path).read_text().count("## 14:32") == 1


TEXTS = st.text(st.sampled_from("ab -#\n<>!`=*|1.事"), min_size=1, max_size=12).filter(str.strip)


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from(sorted(BEFORE.values())))
def test_whatever_is_added_at_once_is_found_and_taken_out_again(texts: list[str], before: str) -> None:
    known, text = Page(NOW.date(), before), before
    added: list[Addition] = []
    for each in map(entry_draft, texts):
        if known.find(each) is None:
            added.append(known.plan(each, None if added else "14:32"))
            known.add(added[-1])
    text += "".join(addition.text for addition in added)
    found = {entry.memory_id: entry for entry in find_entries(text, NOW.date())}
    assert all(found[addition.entry.memory_id] == addition.entry for addition in added)
    for addition in added:
        rest = _without(text, addition.entry.memory_id, NOW.date())
        assert rest is not None
        left = {entry.memory_id for entry in find_entries(rest, NOW.date())}
        assert left == set(found) - {addition.entry.memory_id}

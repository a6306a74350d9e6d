"""What edits took out of a file is in its history, and what was forgotten is not."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memory_service.errors import InvalidRequest, NotFound
from memory_service.memories.drafts import entry_draft
from memory_service.memories.store import MemoryStore
from memory_service.schemas.entries import EntryChange
from memory_service.service import MemoryService
from tests.memory_service.storage.in_memory_documents import InMemoryDocuments, Shelf
from tests.serving import settings

NOW = dt.datetime(2026, 11, 20, 14, 32, tzinfo=ZoneInfo("Europe/Berlin"))
PAGE = "memory/2026-11-20.md"
W = "default"


@pytest.fixture
def files() -> MemoryStore:
    return MemoryStore(InMemoryDocuments(Shelf()), now=lambda: NOW)


def texts(files: MemoryStore, path: str) -> list[str]:
    """All versions of a file, the last first."""
    return [files.history.read(path, version.version_id).text for version in files.history.versions(path).versions]


def write(files: MemoryStore, path: str, *contents: str) -> None:
    """Write one content after the other into a file."""
    for text in contents:
        is_there = files.exists(path)
        files.write(path, text, if_match="*" if is_there else None, if_none_match=not is_there)


def test_an_edit_is_in_the_history_and_an_append_is_not(files: MemoryStore) -> None:
    first = files.notes.append(entry_draft("The vault opens with a key."))
    files.notes.append(entry_draft("The bakery opens at seven."))
    assert texts(files, PAGE) == []
    files.entries.change(first.memory_id, EntryChange(text="The vault opens with a code."))
    [old] = texts(files, PAGE)
    assert "with a key" in old and "bakery" in old
    write(files, PAGE, "- All is new.\n")
    assert len(texts(files, PAGE)) == 2 and "with a code" in texts(files, PAGE)[0]


def test_what_is_forgotten_is_in_no_version_in_no_words_and_in_no_file(files: MemoryStore) -> None:
    memory = files.notes.append(entry_draft("The vault opens with 4711."))
    files.notes.append(entry_draft("The bakery opens at seven."))
    files.entries.change(memory.memory_id, EntryChange(text="The vault opens with 1147."))
    write(files, "MEMORY.md", "# A\n\nThe vault opens with 1147.\n", "# B\n\n- ferns\n", "# C\n\n- ferns\n")
    files.entries.forget(memory.memory_id)
    assert texts(files, PAGE) == [], "a version with the words, or with the entry in other words, is gone"
    assert texts(files, "MEMORY.md") == ["# B\n\n- ferns\n"]


def test_lines_that_are_forgotten_go_from_versions_and_short_ones_from_those_of_their_file(files: MemoryStore) -> None:
    write(files, "MEMORY.md", "- no\n- ferns\n", "- yes\n- ferns\n", "- yes\n- trees\n")
    write(files, "USER.md", "- yes\n", "- maybe\n")
    files.entries.forget_lines("MEMORY.md", 1, 1)
    assert texts(files, "MEMORY.md") == ["- no\n- ferns\n"] and texts(files, "USER.md") == ["- yes\n"]


def test_a_file_that_is_erased_takes_its_versions_with_it(files: MemoryStore) -> None:
    write(files, "MEMORY.md", "one\n", "two\n")
    files.delete("MEMORY.md")
    with pytest.raises(NotFound):
        files.history.versions("MEMORY.md")
    write(files, "MEMORY.md", "three\n")
    assert texts(files, "MEMORY.md") == []


def test_messages_that_are_erased_go_line_by_line(files: MemoryStore) -> None:
    write(files, "MEMORY.md", "- My word is zubrowka.\n", "- My word is zubrowka, says Ana.\n", "- ok\n")
    files.history.erase_messages(lambda: ["Hello.\n  My word is zubrowka.", "ok"])
    assert texts(files, "MEMORY.md") == ["- My word is zubrowka, says Ana.\n"]


def test_a_version_that_is_no_text_is_refused_and_not_lost(files: MemoryStore) -> None:
    files.documents.replace("MEMORY.md", b"\xff\xfe", expected=None)
    write(files, "MEMORY.md", "text\n")
    [version] = files.history.versions("MEMORY.md").versions
    with pytest.raises(InvalidRequest):
        files.history.read("MEMORY.md", version.version_id)
    assert version.bytes == 2


def test_a_service_on_a_database_keeps_a_history_and_forgets_it(migrated_database: str, tmp_path: Path) -> None:
    made = settings(tmp_path, embedding_model="none", database_url=migrated_database)
    with MemoryService(made) as service:
        service.put(W, "MEMORY.md", "# Rules\n\n- Word: zubrowka4711.\n- Ferns.\n", if_none_match=True)
        etag = service.get(W, "MEMORY.md").etag
        service.put(W, "MEMORY.md", "# Rules\n\n- Ferns.\n", if_match=etag)
        answer = service.versions(W, "MEMORY.md")
        [version] = answer.versions
        assert answer.has_history and version.bytes == 40
        old = service.get(W, "MEMORY.md", 3, 1, version=version.version_id)
        assert (old.text, old.etag, old.total_lines) == ("- Word: zubrowka4711.\n", etag, 4)
        said = [{"role": "user", "content": "- Word: zubrowka4711."}, {"role": "assistant", "content": "Noted."}]
        service.append(W, "s1", said)
        service.forget(W, "sessions/s1.jsonl#L2")
        assert service.versions(W, "MEMORY.md").versions == [], "a message that is erased is in no version"
        service.put(W, "MEMORY.md", "- Word: quetzal4711.\n", if_match="*")
        service.put(W, "MEMORY.md", "- Ferns.\n", if_match="*")
        service.append(W, "s2", [{"role": "user", "content": "Word: quetzal4711."}])
        service.sessions(W).store.delete("s2")
        assert [row.bytes for row in service.versions(W, "MEMORY.md").versions] == [18]
        erased = service.erase_versions(W, "MEMORY.md")
        assert erased.versions == 1 and "tables" in erased.pending[0].place
        assert service.erase_versions(W, "MEMORY.md").versions == 0
        with pytest.raises(NotFound):
            service.versions(W, "USER.md")


def test_a_home_in_files_keeps_no_history(tmp_path: Path) -> None:
    with MemoryService(settings(tmp_path, embedding_model="none")) as service:
        for text in ("one\n", "two\n"):
            there = service.has_workspace(W)
            service.put(W, "MEMORY.md", text, if_match="*" if there else None, if_none_match=not there)
        answer = service.versions(W, "MEMORY.md")
        assert (answer.has_history, answer.versions) == (False, [])
        assert service.erase_versions(W, "MEMORY.md").versions == 0
        with pytest.raises(NotFound):
            service.get(W, "MEMORY.md", version="1f2e3d4c5b6a7988")

"""Names and contents that a row of a database takes, and those that it does not."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from memory_service.errors import InvalidName, TooLarge
from memory_service.storage.postgres.postgres_documents import PostgresDocuments
from tests.memory_service.storage.postgres_workspaces import PostgresWorkspaces
from tests.memory_service.storage.postgres_workspaces import postgres_workspaces as postgres_workspaces

LARGE = 8 << 20


@pytest.fixture
def store(postgres_workspaces: PostgresWorkspaces) -> PostgresDocuments:
    return PostgresDocuments(
        postgres_workspaces.database(), postgres_workspaces.name(), lock=postgres_workspaces.lock()
    )


def _long_path(size_bytes: int) -> str:
    path = "memory/" + "/".join(secrets.token_hex(100) for _ in range(12))
    return path[: size_bytes - 3] + ".md"


@pytest.mark.parametrize(
    "path", ["memory/a\0.md", "memory/\ud800.md", "memory/a\nb.md", f"memory/{'x' * 256}.md", _long_path(2049)]
)
def test_paths_that_no_row_can_have_are_refused(store: PostgresDocuments, path: str) -> None:
    uses: list[Callable[[], object]] = [
        lambda: store.replace(path, b"x", expected=None),
        lambda: store.append(path, b"x", expected=None),
        lambda: store.read(path),
        lambda: list(store.pieces(path)),
        lambda: store.remove(path),
        lambda: store.revision(path),
    ]
    for use in uses:
        with pytest.raises(InvalidName):
            use()
    assert store.containing(b"x", [path]) == [] and store.spelling(path) == path
    assert not store.scan().documents


def test_long_paths_are_stored(store: PostgresDocuments) -> None:
    paths = [_long_path(2048), f"memory/{'ä' * 126}.md", "memory/" + "a/" * 600 + "b.md"]
    for path in paths:
        assert store.replace(path, b"x", expected=None)
        assert store.read(path).raw == b"x" and store.spelling(path) == path
    assert sorted(store.scan().documents) == sorted(paths)


def test_paths_that_differ_in_case_or_form_are_others(store: PostgresDocuments) -> None:
    composed, decomposed = "memory/Café.md", "memory/Cafe\u0301.md"
    paths = ["memory/a.md", "memory/A.md", composed, decomposed, "memory/ﬁ.md", "memory/fi.md"]
    for number, path in enumerate(paths):
        assert store.replace(path, b"%d" % number, expected=None)
    assert [store.read(path).raw for path in paths] == [b"%d" % number for number in range(len(paths))]
    assert [store.spelling(path) for path in paths] == paths
    assert store.remove(composed) and store.spelling(composed) == decomposed
    assert store.replace("memory/Cafe\u0301/deep.md", b"x", expected=None)
    assert store.spelling("memory/Café/other é.md") == "memory/Cafe\u0301/other é.md"


def test_no_document_is_a_folder_of_another_one(store: PostgresDocuments) -> None:
    assert store.replace("memory/a.md", b"x", expected=None)
    assert store.append("memory/b.md/c.md", b"x", expected=None) is not None
    for path in ("memory/a.md/b.md", "memory/a.md/b/c.md", "memory/b.md"):
        with pytest.raises(InvalidName, match="takes a file for a folder"):
            store.replace(path, b"x", expected=None)
        with pytest.raises(InvalidName, match="takes a file for a folder"):
            store.append(path, b"x", expected=None)
    assert store.replace("memory/a.md0", b"x", expected=None) and store.replace("memory/a.m", b"x", expected=None)


def test_large_documents_are_stored_to_the_byte(store: PostgresDocuments) -> None:
    raw = secrets.token_bytes(LARGE - 9) + b"\0\xff\xed\xa0\x80 end"
    assert store.replace("MEMORY.md", raw, expected=None)
    document = store.read("MEMORY.md")
    assert document.raw == raw and b"".join(store.pieces("MEMORY.md")) == raw
    revision = store.append("MEMORY.md", raw, expected=document.revision)
    assert store.read("MEMORY.md") == (raw + raw, revision)
    assert store.containing(b"\0\xff\xed\xa0\x80 end", ["MEMORY.md"]) == ["MEMORY.md"]
    assert store.scan().documents["MEMORY.md"].size_bytes == 2 * len(raw)


def test_what_memory_may_have_no_room_for_is_read_in_pieces(store: PostgresDocuments) -> None:
    raw = bytes(65 << 20)
    assert store.replace("MEMORY.md", raw, expected=None)
    with pytest.raises(TooLarge, match="68,157,440 bytes"):
        store.read("MEMORY.md")
    assert b"".join(store.pieces("MEMORY.md")) == raw


def test_revisions_of_another_engine_are_those_of_no_document(store: PostgresDocuments) -> None:
    assert store.replace("MEMORY.md", b"x", expected=None)
    assert not store.replace("MEMORY.md", b"y", expected=b"")
    assert store.append("MEMORY.md", b"y", expected=bytes(32)) is None
    assert not store.remove("MEMORY.md", expected=b"one")
    assert store.read("MEMORY.md").raw == b"x"

"""What tests of a rebuild share: one whose steps can be listened to, and what an index holds before and after it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from indexer import Index
from indexer.stores.sqlite import SqliteStore
from indexer.sync.rebuild import Rebuild
from indexer.sync.runner import SyncControl
from indexer.testing import HashEmbedder
from tests.indexer.workspace import Workspace


def rebuild(
    index: Index,
    reached: Callable[[str], None] = lambda step: None,
    *,
    free_bytes: Callable[[Path], int] = lambda folder: 1 << 40,
) -> None:
    made, runner = index.fingerprint, index._sync.rebuild_runner(index.fingerprint, SyncControl())
    Rebuild(index._store, made, runner, reached=reached, free_bytes=free_bytes).run()


def write_schema(root: Path, schema: int) -> None:
    """Let the index of a folder be one that a version with another schema made: its tables are others."""
    store = SqliteStore(root / "index.sqlite")
    with store._database.writing():
        sql = "UPDATE meta SET value = json_set(value, '$.schema', ?) WHERE name = 'fingerprint'"
        store._database.run(sql, (schema,))
        store._database.run("ALTER TABLE passages RENAME COLUMN day TO noted")
    store.close()


def files_of(workspace: Workspace) -> list[str]:
    """What of the index is there, without SQLite's own files of the generation in use."""
    made = {file.name for file in workspace.root.iterdir() if file.name.startswith(("index", ".index"))}
    return sorted(name for name in made if not name.endswith(("-wal", "-shm", ".pack")))


def has_files(workspace: Workspace, *names: str) -> bool:
    """True if these files of the index are there, and none of an index that is kept in memory."""
    return files_of(workspace) == (list(names) if workspace.keeps_files else [])


def content(index: Index) -> list[tuple[str, int, str]]:
    hits = index.search("quokka wombat numbat", limit=500, mode="text").hits
    return sorted((hit.path, hit.passage.start_line, hit.passage.text) for hit in hits)


def texts(index: Index, query: str, *, limit: int = 6) -> list[str]:
    """What is found by words: there are vectors on one side of a switch only."""
    return [hit.passage.text for hit in index.search(query, limit=limit, mode="text").hits]


def is_whole(workspace: Workspace, index: Index) -> None:
    """It holds what an index made from nothing would hold, every passage with its vector."""
    index.check()
    counts = index.status().counts
    assert counts is not None and counts.passages == counts.embedded
    fresh = workspace.root.parent / "fresh"
    shutil.copytree(workspace.root / "memory", fresh / "memory")
    other = Index(fresh, HashEmbedder(seed=1))
    other.sync()
    assert content(index) == content(other)
    other.close()
    shutil.rmtree(fresh)

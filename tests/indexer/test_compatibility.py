"""An index that another model, other rules or another version made: what goes on, what waits, and how it is named."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from indexer import Index, StoreOutdated
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from tests.indexer.rebuilds import content, files_of, is_whole, texts
from tests.indexer.stores.test_sqlite import two_sentences
from tests.indexer.workspace import Workspace


def outdated_by(workspace: Workspace, **changed: object) -> Index:
    """An index whose fingerprint says that another version made it."""
    store = SqliteStore(workspace.root / "index.sqlite")
    made = store.head().fingerprint
    assert made is not None
    other = replace(made, **changed)  # type: ignore[arg-type]
    values = {name: getattr(other, name) for name in ("model", "dimensions", "rules", "schema")}
    with store._database.writing():
        store._database.run("UPDATE meta SET value = ? WHERE name = 'fingerprint'", (json.dumps(values),))
    store.close()
    return workspace.index(HashEmbedder())


def test_writes_of_another_model_are_found_by_words(filled: Workspace) -> None:
    index = filled.index(HashEmbedder(seed=1))
    filled.write_items("memory/new.md", ["new wombat"])
    report = index.sync(["memory/new.md"])
    assert (report.added, report.embedded) == (1, 0)
    assert len(report.degraded) == 1 and "hash-64-0, and hash-64-1 is configured" in report.degraded[0]
    assert texts(index, "wombat") == ["new wombat"]
    assert index.sync(["memory/new.md"]).unchanged == 1, "what has no vector is not read again and again"
    assert index.plan().suspects == ()
    filled.write_items("memory/1.md", ["quokka changed"])
    index.sync()
    assert texts(index, "changed") == ["quokka changed"] and len(content(index)) == 18
    index.sync(full=True)
    is_whole(filled, index)


def test_other_rules_are_searched_and_written_and_named(filled: Workspace) -> None:
    index = outdated_by(filled, rules="older")
    found = index.search("quokka q3x2")
    assert found.mode == "hybrid" and found.hits[0].passage.text == "quokka q3x2"
    assert len(found.degraded) == 1 and found.degraded[0].startswith("index: The index was made by another version")
    filled.write_items("memory/1.md", ["quokka changed", "new wombat"])
    report = index.sync()
    assert (report.changed, report.embedded) == (1, 2)
    assert "another version" in report.degraded[0] and texts(index, "wombat")[0] == "new wombat"
    index.sync(full=True)
    assert index.search("quokka").degraded == ()
    counts = index.status().counts
    assert counts is not None and counts.passages == 18


def test_terms_that_other_rules_stored_do_no_harm(filled: Workspace) -> None:
    store = SqliteStore(filled.root / "index.sqlite")
    with store._database.writing():
        # As rules would have it that know fewer terms: more is taken away than was put in.
        store._database.run("INSERT INTO terms (terms) VALUES ('delete-all')")
        store._database.run("INSERT INTO terms (rowid, body) SELECT key, 'quokka' FROM passages")
        store._database.run("UPDATE passages SET length = 1")
    store.close()
    index = outdated_by(filled, rules="older")
    for number in range(5):
        filled.write_items(f"memory/{number}.md", [f"new wombat {number}"])
    assert index.sync().changed == 5
    assert sorted(texts(index, "wombat", limit=20)) == [f"new wombat {number}" for number in range(5)]
    index.check()


def test_the_status_of_an_index_that_an_earlier_version_made(filled: Workspace) -> None:
    index = outdated_by(filled, schema=2)
    store = SqliteStore(filled.root / "index.sqlite")
    with store._database.writing():
        store._database.run("ALTER TABLE files DROP COLUMN stat")
    (filled.root / "memory/1.md").unlink()
    status = index.status()
    assert status.outdated and status.pending == 1
    assert set(store.file_stats().values()) == {b""}


def test_another_schema_is_not_read_and_made_anew(filled: Workspace) -> None:
    index = outdated_by(filled, schema=99)
    for act in (lambda: index.search("quokka"), index.sync, index.plan, lambda: index.sync(["memory/1.md"])):
        with pytest.raises(StoreOutdated, match="another version") as raised:
            act()
        assert two_sentences(raised.value)
    status = index.status()
    assert status.counts is None and status.outdated
    index.sync(full=True)
    assert files_of(filled) == ["index-2.sqlite", "index.sqlite"]
    assert len(content(index)) == 20 and index.status().outdated == ""

"""An index that another model, other rules or another version made: what goes on, what waits, and how it is named."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from indexer import EmbedderUnavailable, Index, LanguageChoice, StoreFull, StoreOutdated
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from tests.indexer.rebuilds import content, files_of, is_whole, rebuild, texts
from tests.indexer.stores.test_sqlite import two_sentences
from tests.indexer.workspace import CountingEmbedder, FailingEmbedder, Workspace, every_store


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
    assert set(store.file_versions().values()) == {b""}


def test_a_newer_schema_is_not_read_and_made_anew_only_on_demand(filled: Workspace) -> None:
    index = outdated_by(filled, schema=99)
    for act in (lambda: index.search("quokka"), index.sync, index.plan, lambda: index.sync(["memory/1.md"])):
        with pytest.raises(StoreOutdated, match="newer version") as raised:
            act()
        assert two_sentences(raised.value) and "reindex --full" in str(raised.value)
    status = index.status()
    assert status.counts is None and status.outdated and not index.is_unread()
    index.sync(full=True)
    assert files_of(filled) == ["index-2.sqlite", "index.sqlite"]
    assert len(content(index)) == 20 and index.status().outdated == ""


def test_an_older_schema_is_made_anew_by_the_next_sync(filled: Workspace) -> None:
    index = outdated_by(filled, schema=2)
    for act in (lambda: index.search("quokka"), index.plan, lambda: index.sync(["memory/1.md"])):
        with pytest.raises(StoreOutdated, match="older version") as raised:
            act()
        assert two_sentences(raised.value) and "--full" not in str(raised.value)
    assert index.is_unread()
    report = index.sync()
    assert (report.added, report.embedded, report.degraded) == (5, 20, ())
    is_whole(filled, index)
    assert not index.is_unread() and index.status().outdated == ""


def test_an_older_schema_is_made_anew_by_words_where_the_model_is_away(filled: Workspace) -> None:
    outdated_by(filled, schema=2).close()
    index = filled.index(FailingEmbedder(EmbedderUnavailable("The model is away. Wait for it.")))
    assert index.sync().degraded
    assert texts(index, "q3x2")[0] == "quokka q3x2"
    index.close()
    index = filled.index(HashEmbedder())
    index.sync()
    is_whole(filled, index)


def test_older_rules_lag_and_other_rules_do_not(filled: Workspace) -> None:
    now = filled.index(HashEmbedder()).fingerprint.rules
    name, _, version = now.rpartition("-")
    index = outdated_by(filled, rules=f"{name}-{int(version) - 1}")
    assert index.lags() and "older version" in index.search("quokka").degraded[0]
    index.close()
    for other in (f"{name}-{int(version) + 1}", "older", now):
        index = outdated_by(filled, rules=other)
        assert not index.lags() and not index.is_unread()
        index.close()


ENGLISH_NOTES = [f"The meeting number {number} of the team is on Tuesday." for number in range(12)]
CHINESE_NOTES = [f"第{number}次会议在星期二下午举行。" for number in range(12)]
CHOICE = LanguageChoice(HashEmbedder(seed=1), HashEmbedder(seed=2))


def model(index: Index) -> str:
    stored = index.status().stored
    assert stored is not None
    return stored.model


@every_store
def test_a_new_index_has_the_model_for_what_is_written(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", CHINESE_NOTES)
    index = workspace.synced(CHOICE)
    assert model(index) == CHOICE.others.fingerprint
    assert index.status().choice == "hash, as 100% of what is written here is Chinese"
    assert not index.status().moving


def test_a_first_note_decides_where_nothing_was_written_before(workspace: Workspace) -> None:
    index = workspace.synced(CHOICE)
    workspace.write_items("memory/2026-11-20.md", CHINESE_NOTES[:1])
    index.sync(["memory/2026-11-20.md"])
    assert model(index) == CHOICE.others.fingerprint
    assert index.search("星期二").degraded == ()


def test_a_note_in_another_language_changes_nothing(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", ENGLISH_NOTES)
    index = workspace.synced(CHOICE)
    workspace.write_items("memory/2026-11-20.md", CHINESE_NOTES[:1])
    report = index.sync()
    assert report.degraded == ()
    assert not index.moves() and not index.rebuild_reason()
    assert model(index) == CHOICE.english.fingerprint


@every_store
def test_a_workspace_that_becomes_another_language_moves_over_once(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", ENGLISH_NOTES[:4])
    index = workspace.synced(CHOICE)
    workspace.write_items("memory/2026-11-20.md", CHINESE_NOTES)
    report = index.sync()
    # Until it is made anew it is whole, and searched by the model that made it.
    assert report.degraded == () and index.moves()
    assert model(index) == CHOICE.english.fingerprint
    found = index.search("第3次会议", mode="vector")
    assert found.hits and found.degraded == ()
    status = index.status()
    assert status.moving and not status.outdated and status.unembedded == 0
    assert "made with the model" in index.rebuild_reason()
    index.sync(full=True)
    assert model(index) == CHOICE.others.fingerprint
    assert not index.moves() and not index.status().moving
    # What is written in English now is too little to go back.
    workspace.write_items("memory/2026-11-21.md", ENGLISH_NOTES[4:])
    index.sync()
    assert not index.moves()
    # Another process that was open before finds by the model that the index has now.
    assert index.search("第3次会议", mode="vector").degraded == ()


def test_an_index_that_moved_is_served_in_a_process_that_chose_before(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", ENGLISH_NOTES)
    index = workspace.synced(CHOICE)
    assert not index.moves()
    workspace.write_items("MEMORY.md", CHINESE_NOTES)
    workspace.index(CHOICE).sync(full=True)
    assert index.search("第3次会议", mode="vector").degraded == ()
    workspace.write_items("memory/2026-11-20.md", ["星期五没有会议。"])
    assert index.sync(["memory/2026-11-20.md"]).degraded == ()
    assert index.status().unembedded == 0


MOVE_KILLED = """
import os, signal, sys
from pathlib import Path
from indexer import Index, LanguageChoice
from indexer.testing import HashEmbedder
from tests.indexer.rebuilds import rebuild
index = Index(Path(sys.argv[1]), LanguageChoice(HashEmbedder(seed=1), HashEmbedder(seed=2)))
assert index.moves()
rebuild(index, lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == "filled" else None)
"""


def test_a_move_that_is_killed_goes_on_where_it_was(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", ENGLISH_NOTES[:4])
    workspace.synced(CHOICE).close()
    workspace.write_items("memory/2026-11-20.md", CHINESE_NOTES)
    done = subprocess.run([sys.executable, "-c", MOVE_KILLED, str(workspace.root)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    others = CountingEmbedder(seed=2)
    index = workspace.index(LanguageChoice(HashEmbedder(seed=1), others))
    index.sync()
    assert model(index) == CHOICE.english.fingerprint
    assert index.search("第3次会议", mode="vector").degraded == ()
    state = index.status().rebuild
    assert state is not None and state.current and not state.running
    index.sync(full=True)
    assert model(index) == others.fingerprint
    assert others.documents == [], "all vectors were made before it was killed"


def test_a_disk_without_room_for_a_move_leaves_the_index_as_it_is(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", ENGLISH_NOTES[:4])
    index = workspace.synced(CHOICE)
    workspace.write_items("memory/2026-11-20.md", CHINESE_NOTES)
    index.sync()
    assert index.moves()
    with pytest.raises(StoreFull, match=r"needs .* MB beside the index in use, and its disk has 0\.0 MB free"):
        rebuild(index, free_bytes=lambda folder: 1000)
    assert model(index) == CHOICE.english.fingerprint
    assert index.search("第3次会议", mode="vector").degraded == ()


def test_a_named_model_stays_whatever_is_written(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", CHINESE_NOTES)
    index = workspace.synced(HashEmbedder(seed=1))
    assert not index.moves()
    assert index.status().choice == "" and model(index) == CHOICE.english.fingerprint
    # Named now, chosen before: it is another model as any.
    other = workspace.index(HashEmbedder(seed=2))
    assert "made with the model" in other.rebuild_reason() and not other.moves()


def test_an_index_of_another_model_is_made_anew_with_the_chosen_one(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", CHINESE_NOTES)
    workspace.synced(HashEmbedder(seed=9)).close()
    index = workspace.index(CHOICE)
    assert any("made with the model" in each for each in index.search("会议").degraded)
    index.sync(full=True)
    assert model(index) == CHOICE.others.fingerprint

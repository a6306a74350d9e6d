"""The words of what is not packed, kept from state to state: a real store, random edits, passages counted."""

from __future__ import annotations

import random

import pytest

from indexer.corpus import Corpus
from indexer.engine.segments.file_words import Recent, load_recent
from indexer.stores.base import StoredPassage, Which
from indexer.stores.sqlite import SqliteStore
from tests.indexer.test_corpus import edit
from tests.indexer.workspace import Workspace


class Counted(SqliteStore):
    """Counts the passages that it is asked for."""

    read = 0

    def passages(self, which: Which) -> dict[int, StoredPassage]:
        found = super().passages(which)
        self.read += len(found)
        return found


def entries(words: Recent) -> list[tuple[int, int, int]]:
    return sorted(zip(words.hashes.tolist(), words.rows.tolist(), words.counts.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_kept_words_are_those_read_anew(workspace: Workspace, seed: int) -> None:
    chance = random.Random(seed)
    index = workspace.synced()
    store = Counted(workspace.root / "index.sqlite")
    corpus: Corpus | None = None
    words: Recent | None = None
    for number in range(40):
        edit(workspace, chance, number)
        index.sync()
        corpus = store.corpus(corpus)
        words = load_recent(store, corpus, words)
        assert entries(words) == entries(load_recent(store, corpus, None)), number
    store.close()
    index.close()


def test_a_page_that_grows_is_not_read_again(workspace: Workspace) -> None:
    page = [f"第{number}条 entry {number}" for number in range(300)]
    workspace.write_items("memory/2026-11-02.md", page)
    index = workspace.synced()
    store = Counted(workspace.root / "index.sqlite")
    corpus = store.corpus(None)
    words = load_recent(store, corpus, None)
    for number in range(5):
        page.append(f"one more {number}")
        workspace.write_items("memory/2026-11-02.md", page)
        index.sync()
        before, corpus = store.read, store.corpus(corpus)
        words = load_recent(store, corpus, words)
        assert store.read - before == 1
    assert len(corpus) == 305
    store.close()
    index.close()

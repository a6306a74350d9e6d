"""What is known of the terms of late questions, beside what the store says: real indexes, random edits."""

from __future__ import annotations

import random
from collections.abc import Collection

import numpy as np
import pytest

from indexer.engine import reader
from indexer.engine.reader_manager import IndexReaderManager
from indexer.stores.base import OfTags, TermPosting
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from tests.indexer.test_corpus import edit
from tests.indexer.workspace import Workspace

TERMS = ["line", "3", "ann", "append", "plan", "袋鼠", "nobody", "袋"]


class Asked(SqliteStore):
    """Counts the terms that it is asked for."""

    asked = 0

    def postings(
        self, terms: Collection[str] | OfTags | None, *, among: Collection[int] | None = None
    ) -> list[TermPosting]:
        self.asked += 0 if isinstance(terms, OfTags) else len(terms or ())
        return super().postings(terms, among=among)


def tables(postings: list[TermPosting]) -> dict[str, list[tuple[int, int]]]:
    return {each.term: list(zip(each.keys.tolist(), each.counts.tolist(), strict=True)) for each in postings}


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_written_the_known_is_what_the_store_says(workspace: Workspace, seed: int) -> None:
    chance, embedder = random.Random(seed), HashEmbedder()
    workspace.write_items("memory/a.md", ["袋鼠 line 3 line", "Ann: the plan 3"])
    index = workspace.synced(embedder)
    store = Asked(workspace.root / "index.sqlite")
    views = IndexReaderManager(store)
    for number in range(40):
        for _ in range(chance.randint(0, 2)):
            edit(workspace, chance, number)
            workspace.write_items(
                f"memory/zh{number % 3}.md", [f"袋鼠 appended {n}" for n in range(chance.randint(0, 4))]
            )
        index.sync(full=number == 25)
        wanted = chance.sample(TERMS, chance.randint(1, len(TERMS)))
        with store.reading():
            view = views.reader(embedder.dimensions)
            found, fresh = view.terms.postings(store, wanted), SqliteStore.postings(store, wanted)
        assert tables(found) == tables(fresh), number
        assert [each.term for each in found] == [term for term in wanted if term in tables(fresh)]
    assert store.asked < 3 * len(TERMS), "a term was asked for again, though nothing but passages came and went"
    store.close()
    index.close()


def test_a_bounded_number_of_terms_is_known_and_many_new_passages_are_not_read(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_REMEMBERED_TERMS", 3)
    workspace.write_items("memory/a.md", ["red fish lamp door"])
    index = workspace.synced(HashEmbedder())
    store = Asked(workspace.root / "index.sqlite")
    views = IndexReaderManager(store)
    with store.reading():
        view = views.reader(None)
        for term in ("red", "fish", "lamp", "door", "fish"):
            assert len(view.terms.postings(store, [term])) == 1
        assert store.asked == 4
        assert len(view.terms.postings(store, ["red", "fish", "lamp", "door"])) == 4
        assert store.asked == 5, "the oldest had gone"
    workspace.write_items("memory/b.md", [f"fish x{n}" for n in range(reader._NEW_PASSAGES + 1)])
    index.sync()
    with store.reading():
        (fish,) = views.reader(None).terms.postings(store, ["fish"])
    assert len(fish.keys) == reader._NEW_PASSAGES + 2 and store.asked == 6
    assert (np.diff(fish.keys) > 0).all()
    store.close()
    index.close()

"""What an index knows of a model that tells little of itself, or is not there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from indexer.compatibility import Identity, _identify, _learn
from indexer.embeddings.base import CachedEmbedder
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.index import Index
from indexer.testing import HashEmbedder
from indexer.types import Fingerprint, MissingVectors, Vectors

STORED = Fingerprint(model="remote-1", dimensions=16, rules="r", schema=1)
FIRST, SECOND = "The spare key hangs behind the blue door.", "Bins go out on Mondays."


class Remote:
    """A provider's model: its size shows with the first text, and it may be away."""

    name = "remote"

    def __init__(self, dimensions: int = 16, *, away: bool = False, fingerprint: str = "remote-1") -> None:
        self.dimensions = 0
        self.away = away
        self.asked = 0
        self.refuses = ""
        self._fingerprint = fingerprint
        self._model = HashEmbedder(dimensions)

    def reads(self, text: str) -> bool:
        return self._model.reads(text)

    @property
    def fingerprint(self) -> str:
        if self._fingerprint == "only if here" and self.away:
            raise EmbedderUnavailable("The folder x is not there. Put it back.")
        return self._fingerprint

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.asked += 1
        if self.away:
            raise EmbedderUnavailable("The model remote cannot be reached. Try again later.")
        self.dimensions = self._model.dimensions
        vectors = self._model.embed_documents(texts)
        refused = [place for place, text in enumerate(texts) if self.refuses and self.refuses in text]
        if refused:
            vectors[refused] = 0.0
            raise EmbeddingError(f"No vector for {len(refused)} of {len(texts)} texts. Never mind.", vectors=vectors)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self.embed_documents([text])[0]
        return row


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "MEMORY.md").write_text(f"- {FIRST}\n")
    return tmp_path


def test_a_model_that_is_known_needs_no_index() -> None:
    def nobody() -> Fingerprint | None:
        raise AssertionError

    assert _identify(HashEmbedder(8), nobody) == Identity(model="hash-8-0", dimensions=8)
    assert _identify(None, nobody) == Identity()


def test_the_index_knows_the_size_of_its_own_model_alone() -> None:
    assert _identify(Remote(), lambda: STORED) == Identity(model="remote-1", dimensions=16)
    assert _identify(Remote(fingerprint="remote-2"), lambda: STORED) == Identity(model="remote-2", dimensions=0)
    assert _identify(Remote(), lambda: None) == Identity(model="remote-1", dimensions=0)


def test_a_model_that_is_not_there_is_taken_for_the_one_of_the_index() -> None:
    gone = Remote(away=True, fingerprint="only if here")
    assert _identify(gone, lambda: STORED) == Identity(
        model="remote-1", dimensions=16, problem="The folder x is not there. Put it back."
    )
    assert _identify(gone, lambda: None).model == ""


def test_learning_asks_once_and_only_where_it_must() -> None:
    remote = Remote()
    _learn(None)
    _learn(HashEmbedder())
    _learn(remote)
    _learn(remote)
    assert (remote.asked, remote.dimensions) == (1, 16)
    with pytest.raises(EmbedderUnavailable):
        _learn(Remote(away=True))


def test_a_status_asks_nobody(root: Path) -> None:
    remote = Remote()
    index = Index(root, remote)
    index.status()
    assert remote.asked == 0
    index.sync()
    index.close()
    again = Remote(away=True)
    index = Index(root, again)
    status = index.status()
    assert status.stored == status.current and status.current.dimensions == 16
    assert again.asked == 0
    index.close()


def test_a_provider_that_is_away_at_a_restart_leaves_words(root: Path) -> None:
    index = Index(root, Remote())
    index.sync()
    index.close()
    remote = Remote(away=True)
    index = Index(root, CachedEmbedder(remote))
    found = index.search("spare key")
    assert [hit.passage.text for hit in found.hits] == [FIRST]
    assert found.mode == "text" and found.degraded == ("vector: The model remote cannot be reached. Try again later.",)
    (root / "MEMORY.md").write_text(f"- {FIRST}\n- {SECOND}\n")
    assert "cannot be reached" in index.sync().degraded[0]
    assert index.search("bins").hits[0].passage.text == SECOND
    remote.away = False
    assert index.sync().embedded == 1, "the next run makes up for it"
    assert index.search("bins").mode == "hybrid"
    index.close()


def test_a_provider_that_is_away_at_the_first_sync_leaves_an_index_of_words(root: Path) -> None:
    remote = Remote(away=True)
    index = Index(root, remote)
    assert any("cannot be reached" in problem for problem in index.sync().degraded)
    found = index.search("spare key")
    assert found.mode == "text" and len(found.hits) == 1
    assert found.degraded and found.degraded[0].startswith("vector: ")
    (root / "MEMORY.md").write_text(f"- {FIRST}\n- {SECOND}\n")
    index.sync()
    assert index.search("bins").hits[0].passage.text == SECOND
    remote.away = False
    assert found.degraded[0] == (
        "vector: The index has no vectors yet. They are made as soon as the model remote answers."
    )
    assert index.sync(["MEMORY.md"]).embedded == 2, "the next write makes up for its file"
    found = index.search("bins")
    assert (found.mode, found.degraded) == ("hybrid", ())
    assert index.rebuild_reason() == "" and index.status().unembedded == 0
    index.close()


@pytest.mark.parametrize("how", ["sync", "embed_missing", "a new process"])
def test_an_index_of_words_heals_when_the_provider_answers(root: Path, how: str) -> None:
    (root / "memory").mkdir()
    (root / "memory/2026-11-20.md").write_text("- 备用钥匙挂在蓝色的门后面。\n")
    remote = Remote(away=True)
    index = Index(root, CachedEmbedder(remote))
    index.sync(["MEMORY.md"])
    index.sync()
    assert index.status().unembedded == 2 and index.status().outdated == ""
    assert index.embed_missing() == MissingVectors(
        problems=("vector: The model remote cannot be reached. Try again later.",), left=True, away=True
    )
    if how == "a new process":
        index.close()
        remote = Remote(away=True)
        index = Index(root, CachedEmbedder(remote))
        assert index.search("钥匙").hits[0].passage.text == "备用钥匙挂在蓝色的门后面。"
    remote.away = False
    embedded = index.sync().embedded if how == "sync" else index.embed_missing().embedded
    assert embedded == 2
    for query in ("spare key", "蓝色的门"):
        found = index.search(query, mode="vector")
        assert (found.mode, len(found.hits), found.degraded) == ("vector", 2, ())
        assert all((hit.vector_score or 0) > -1 for hit in found.hits)
    best = index.search("蓝色的门", mode="vector").hits[0]
    assert best.passage.text == "备用钥匙挂在蓝色的门后面。" and (best.vector_score or 0) > 0.1
    assert index.embed_missing() == MissingVectors()
    index.close()


def test_a_wrong_name_of_a_model_is_mended_by_the_right_one(root: Path) -> None:
    index = Index(root, Remote(away=True, fingerprint="wrong"))
    index.sync()
    index.close()
    index = Index(root, HashEmbedder())
    assert index.search("spare key").degraded == (
        "vector: The index has no vectors yet. They are made as soon as the model hash answers.",
    )
    assert index.embed_missing().embedded == 1
    assert index.search("spare key").mode == "hybrid"
    index.close()
    index = Index(root, Remote(fingerprint="another"))
    assert "reindex --full" in index.search("spare key").degraded[0], "vectors of two models never meet"
    assert index.embed_missing() == MissingVectors()
    index.close()


def test_two_processes_heal_one_index(root: Path) -> None:
    (root / "MEMORY.md").write_text("".join(f"- item {number}\n" for number in range(600)))
    first = Index(root, Remote(away=True))
    first.sync()
    first.close()
    healing, other = Index(root, Remote()), Index(root, Remote())
    with ThreadPoolExecutor(2) as pool:
        done = [one.result() for one in [pool.submit(each.embed_missing) for each in (healing, other)]]
    assert sum(one.embedded for one in done) >= 600
    assert [each.status().unembedded for each in (healing, other)] == [0, 0]
    healing.check()
    found = other.search("item 599", mode="vector")
    assert (found.hits[0].passage.text, found.degraded) == ("item 599", ())
    healing.close()
    other.close()


def test_a_full_rebuild_for_a_model_that_is_away_changes_nothing(root: Path) -> None:
    index = Index(root, HashEmbedder())
    index.sync()
    index.close()
    index = Index(root, Remote(away=True))
    with pytest.raises(EmbedderUnavailable):
        index.sync(full=True)
    index.close()
    index = Index(root, HashEmbedder())
    found = index.search("spare key")
    assert (found.mode, found.degraded) == ("hybrid", ())
    index.close()


def test_a_model_that_changes_its_size_is_named(root: Path) -> None:
    index = Index(root, Remote())
    index.sync()
    index.close()
    index = Index(root, Remote(24))
    for _ in range(2):
        found = index.search("spare key")
        assert found.mode == "text" and len(found.hits) == 1
        assert "16 numbers, and remote-1 gives 24 now" in found.degraded[0] and "--full" in found.degraded[0]
    (root / "MEMORY.md").write_text(f"- {FIRST}\n- {SECOND}\n")
    assert index.sync().degraded
    assert index.search("bins").hits[0].passage.text == SECOND
    index.sync(full=True)
    assert index.search("bins").mode == "hybrid"
    index.close()


def test_a_text_that_is_refused_loses_no_other(root: Path) -> None:
    remote = Remote()
    remote.refuses = "vault"
    (root / "MEMORY.md").write_text(f"- {FIRST}\n- The vault opens with 4711.\n- {SECOND}\n")
    index = Index(root, CachedEmbedder(remote))
    report = index.sync()
    assert report.embedded == 2 and report.degraded == ("vector: No vector for 1 of 3 texts. Never mind.",)
    counts = index.status().counts
    assert counts is not None and (counts.passages, counts.embedded) == (3, 2)
    assert index.search("vault").hits[0].passage.text == "The vault opens with 4711."
    assert index.search("bins").mode == "hybrid"
    index.close()


def test_a_cache_passes_on_what_was_made(root: Path) -> None:
    remote = Remote()
    remote.refuses = "b"
    cached = CachedEmbedder(remote)
    for texts in (["a", "b", "c"], ["c", "b", "a", "d"]):
        with pytest.raises(EmbeddingError) as raised:
            cached.embed_documents(texts)
        assert raised.value.vectors is not None
        expected = HashEmbedder(16).embed_documents(texts)
        expected[1] = 0.0
        assert np.array_equal(raised.value.vectors, expected)
    assert np.array_equal(cached.embed_documents(["d", "a"]), HashEmbedder(16).embed_documents(["d", "a"]))
    assert remote.asked == 2, "what was made is not made again"

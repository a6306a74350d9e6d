from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.corpus import Corpus
from indexer.engine import matrix as matrices
from indexer.engine.matrix import Matrix, load_matrix
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from tests.indexer.corpora import Row, corpus_of, rows
from tests.indexer.test_corpus import edit
from tests.indexer.workspace import Workspace


def matrix_of(corpus: Corpus, vectors: Vectors) -> Matrix:
    held = matrices._Vectors(*vectors.shape)
    places, new = held.add(vectors), np.full(len(vectors), -1)
    near, far = (matrices._products(held, places, new, step, None) for step in (1, 2))
    norms = matrices._triple_norms(corpus, held.squares[places], (near, far))
    return Matrix(
        corpus=corpus, held_vectors=held, end=held.used_count, places=places, products=(near, far), triple_norms=norms
    )


def vectors_of(matrix: Matrix) -> Vectors:
    vectors: Vectors = matrix.held_vectors.rows[matrix.places]
    return vectors


@given(rows(), st.integers(0, 2**32 - 1))
def test_cosines_against_loops(made: list[Row], seed: int) -> None:
    chance = np.random.default_rng(seed)
    vectors = chance.standard_normal((len(made), 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = vectors[0]
    corpus = corpus_of(made)
    own, triple = matrix_of(corpus, vectors).cosines(query)
    for i, (low, high) in enumerate(zip(*corpus.triples, strict=True)):
        total = vectors[low : high + 1].astype(np.float64).sum(axis=0)
        assert own[i] == pytest.approx(float(vectors[i].astype(np.float64) @ query), abs=1e-5)
        if np.linalg.norm(total) > 0.01:
            assert triple[i] == pytest.approx(float(total @ query / np.linalg.norm(total)), abs=1e-3)


def test_passages_without_a_vector_are_near_nothing() -> None:
    corpus = corpus_of([Row(), Row(), Row()])
    vectors = np.zeros((3, 4), np.float32)
    own, triple = matrix_of(corpus, vectors).cosines(np.array([1, 0, 0, 0], np.float32))
    assert own.tolist() == triple.tolist() == [0, 0, 0]


@pytest.mark.parametrize("spare", [0, 3, 256])
def test_loading_what_is_new_equals_loading_all(
    workspace: Workspace, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrices, "_SPARE", spare)
    chance = random.Random(3)
    embedder = HashEmbedder(16)
    workspace.write_items("memory/steady.md", [f"steady line {number}" for number in range(60)])
    index = workspace.synced(embedder)
    store = SqliteStore(workspace.root / "index.sqlite")
    corpus, matrix = store.corpus(None), None
    seen = list[tuple[Matrix, Vectors]]()
    for number in range(25):
        edit(workspace, chance, number)
        index.sync()
        corpus = store.corpus(corpus)
        matrix = load_matrix(store, corpus, 16, matrix)
        anew = load_matrix(store, corpus, 16, None)
        assert np.array_equal(vectors_of(matrix), vectors_of(anew))
        assert np.allclose(matrix.triple_norms, anew.triple_norms, atol=1e-6)
        assert np.allclose(np.linalg.norm(vectors_of(matrix), axis=1), 1, atol=1e-5)
        seen.append((matrix, vectors_of(matrix)))
    assert all(np.array_equal(vectors_of(each), then) for each, then in seen), "what a search holds was changed"
    store.close()
    index.close()


def test_a_passage_more_is_one_vector_more(workspace: Workspace) -> None:
    page = [f"第{number}条 entry {number}" for number in range(200)]
    workspace.write_items("memory/2026-11-02.md", page)
    index = workspace.synced(HashEmbedder(16))
    store = SqliteStore(workspace.root / "index.sqlite")
    corpus = store.corpus(None)
    matrix = load_matrix(store, corpus, 16, None)
    # Whoever multiplies these once more gets what is no number.
    matrix.held_vectors.rows[matrix.places[:190]] = np.nan
    for number in range(5):
        page.append(f"one more {number}")
        workspace.write_items("memory/2026-11-02.md", page)
        index.sync()
        corpus = store.corpus(corpus)
        before, matrix = matrix, load_matrix(store, corpus, 16, matrix)
        assert (matrix.held_vectors, matrix.end) == (before.held_vectors, before.end + 1)
        assert np.isfinite(matrix.triple_norms).all()
    store.close()
    index.close()


def test_two_that_grow_out_of_one_do_not_meet(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", ["a wombat", "a quokka"])
    index = workspace.synced(HashEmbedder(16))
    store = SqliteStore(workspace.root / "index.sqlite")
    corpus = store.corpus(None)
    matrix = load_matrix(store, corpus, 16, None)
    workspace.write_items("memory/b.md", ["a numbat"])
    index.sync()
    grown = [load_matrix(store, store.corpus(corpus), 16, matrix) for _ in range(2)]
    assert np.array_equal(vectors_of(grown[0]), vectors_of(grown[1]))
    assert grown[0].held_vectors is not grown[1].held_vectors
    store.close()
    index.close()

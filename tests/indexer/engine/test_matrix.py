from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.engine.matrix import Matrix, _triple_norms, load_matrix
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from tests.indexer.corpora import Row, corpus_of, rows
from tests.indexer.test_corpus import edit
from tests.indexer.workspace import Workspace


@given(rows(), st.integers(0, 2**32 - 1))
def test_cosines_against_loops(made: list[Row], seed: int) -> None:
    chance = np.random.default_rng(seed)
    vectors = chance.standard_normal((len(made), 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = vectors[0]
    corpus = corpus_of(made)
    own, triple = Matrix(
        corpus=corpus, vectors=vectors, filled=np.ones(len(corpus), bool), triple_norms=_triple_norms(corpus, vectors)
    ).cosines(query)
    for i, (low, high) in enumerate(zip(*corpus.triples, strict=True)):
        total = vectors[low : high + 1].astype(np.float64).sum(axis=0)
        assert own[i] == pytest.approx(float(vectors[i].astype(np.float64) @ query), abs=1e-5)
        if np.linalg.norm(total) > 0.01:
            assert triple[i] == pytest.approx(float(total @ query / np.linalg.norm(total)), abs=1e-3)


def test_passages_without_a_vector_are_near_nothing() -> None:
    corpus = corpus_of([Row(), Row(), Row()])
    vectors = np.zeros((3, 4), np.float32)
    own, triple = Matrix(
        corpus=corpus, vectors=vectors, filled=np.ones(len(corpus), bool), triple_norms=_triple_norms(corpus, vectors)
    ).cosines(np.array([1, 0, 0, 0], np.float32))
    assert own.tolist() == triple.tolist() == [0, 0, 0]


def test_loading_what_is_new_equals_loading_all(workspace: Workspace) -> None:
    chance = random.Random(3)
    embedder = HashEmbedder(16)
    workspace.write_items("memory/steady.md", [f"steady line {number}" for number in range(60)])
    index = workspace.synced(embedder)
    store = SqliteStore(workspace.root / "index.sqlite")
    corpus, matrix = store.corpus(None), None
    for number in range(25):
        edit(workspace, chance, number)
        index.sync()
        corpus = store.corpus(corpus)
        matrix = load_matrix(store, corpus, 16, matrix)
        anew = load_matrix(store, corpus, 16, None)
        assert np.array_equal(matrix.vectors, anew.vectors)
        assert np.array_equal(matrix.triple_norms, anew.triple_norms)
        assert np.allclose(np.linalg.norm(matrix.vectors, axis=1), 1, atol=1e-5)
    store.close()
    index.close()

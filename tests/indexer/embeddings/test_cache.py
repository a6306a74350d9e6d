from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from indexer.embeddings.base import CachedEmbedder, Embedder
from indexer.testing import HashEmbedder
from tests.indexer.workspace import CountingEmbedder


def test_it_is_the_embedder_behind_it() -> None:
    plain = HashEmbedder(32, seed=3)
    seam: Embedder = CachedEmbedder(plain)
    assert (seam.name, seam.dimensions, seam.fingerprint, seam.reads("数据库在哪里")) == ("hash", 32, "hash-32-3", True)
    texts = ["one", "two", "one", "", "\ud800"[:0]]
    assert np.array_equal(seam.embed_documents(texts), plain.embed_documents(texts))
    assert np.array_equal(seam.embed_query("one"), plain.embed_query("one"))


def test_a_text_is_embedded_once() -> None:
    counting = CountingEmbedder()
    cached = CachedEmbedder(counting)
    cached.embed_documents(["a", "b", "a"])
    cached.embed_documents(["b", "c"])
    assert counting.documents == ["a", "b", "c"]
    counting.questions.clear()
    for _ in range(3):
        cached.embed_query("a")
    assert counting.questions == ["a"], "a question is not the vector of a stored text"


def test_no_texts_have_no_vectors() -> None:
    counting = CountingEmbedder(8)
    assert CachedEmbedder(counting).embed_documents([]).shape == (0, 8)
    assert counting.documents == []


def test_what_was_used_longest_ago_is_dropped() -> None:
    counting = CountingEmbedder()
    cached = CachedEmbedder(counting, capacity=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cached.embed_query(text)
    assert counting.questions == ["a", "b", "c", "b"]


def test_more_texts_than_it_holds() -> None:
    cached = CachedEmbedder(HashEmbedder(), capacity=3)
    texts = [f"text {number}" for number in range(20)]
    assert np.array_equal(cached.embed_documents(texts), HashEmbedder().embed_documents(texts))


def test_threads_share_it() -> None:
    cached, plain = CachedEmbedder(HashEmbedder(), capacity=5), HashEmbedder()
    texts = [f"text {number % 11}" for number in range(300)]
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(cached.embed_query, texts))
    assert all(np.array_equal(vector, plain.embed_query(text)) for vector, text in zip(vectors, texts, strict=True))

"""Published weights for real, through sentence-transformers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from indexer.embeddings.base import Embedder
from indexer.embeddings.bundled import MiniLM
from indexer.embeddings.sentence_transformers import SentenceTransformerEmbedder
from indexer.errors import EmbedderUnavailable
from indexer.index import Index
from tests.indexer.embeddings.weights import weights_folder

pytestmark = [
    # Raised inside sentence-transformers, transformers and torch, which are not ours to change.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

TEXTS = (
    "The staging database moved to Frankfurt in March.",
    "ok",
    "",
    "Anna prefers tea over coffee, and never drinks anything with caffeine after four in the afternoon.",
    "def add(a: int, b: int) -> int:\n    return a + b",
    "我昨天在上海买了一本书。",
    "lone surrogate \ud800",
    "The quarterly report showed that revenue grew, while costs stayed flat. " * 2_000,
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def weights() -> Path:
    return weights_folder()


@pytest.fixture(scope="module")
def embedder(weights: Path) -> Iterator[SentenceTransformerEmbedder]:
    yield SentenceTransformerEmbedder(str(weights))


@pytest.fixture
def prompted(weights: Path, tmp_path: Path) -> Path:
    """The same model, said to want something before a text."""
    made = tmp_path / "prompted"
    shutil.copytree(weights, made, copy_function=os.link if os.name != "nt" else shutil.copy2)
    (made / "config_sentence_transformers.json").unlink()
    (made / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "query: ", "document": "passage: "}})
    )
    return made


def test_is_an_embedder(weights: Path) -> None:
    seam: Embedder = SentenceTransformerEmbedder(str(weights))
    assert (seam.name, seam.dimensions, seam.reads("数据库在哪里")) == (f"sentence-transformers/{weights}", 384, False)
    assert seam.fingerprint.startswith("sentence-transformers-")


def test_vectors_are_those_of_the_bundled_model(embedder: SentenceTransformerEmbedder) -> None:
    ours, bundled = embedder.embed_documents(TEXTS), MiniLM().embed_documents(TEXTS)
    assert ours.dtype == np.dtype(np.float32)
    assert np.linalg.norm(ours, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert (ours * bundled).sum(axis=1).min() > 0.99
    assert embedder.embed_query(TEXTS[0]) @ bundled[0] > 0.99


def test_order_and_company_do_not_matter(embedder: SentenceTransformerEmbedder) -> None:
    texts = [f"{'word ' * (number * 7 % 40)}number {number}" for number in range(70)]
    alone = np.stack([embedder.embed_query(text) for text in texts[60:]])
    assert (embedder.embed_documents(texts)[60:] * alone).sum(axis=1) == pytest.approx(1.0, abs=1e-4)
    assert embedder.embed_documents([]).shape == (0, 384)


def test_a_models_prompts_are_used(embedder: SentenceTransformerEmbedder, prompted: Path) -> None:
    other = SentenceTransformerEmbedder(str(prompted))
    assert other.fingerprint != embedder.fingerprint
    assert other.embed_query("tea") @ embedder.embed_query("query: tea") == pytest.approx(1.0, abs=1e-4)
    assert other.embed_documents(["tea"])[0] @ embedder.embed_query("passage: tea") == pytest.approx(1.0, abs=1e-4)
    assert other.embed_query("tea") @ embedder.embed_query("tea") < 0.99


def test_threads_may_share_one(weights: Path, embedder: SentenceTransformerEmbedder) -> None:
    expected = embedder.embed_documents(TEXTS[:6])
    fresh = SentenceTransformerEmbedder(str(weights))
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: fresh.embed_documents(TEXTS[:6]), range(6)))
    assert all((answer * expected).sum(axis=1).min() > 1 - 1e-4 for answer in answers)


def test_nothing_is_loaded_for_a_status_nor_printed_by_a_load(weights: Path) -> None:
    code = (
        "import sys; from indexer import SentenceTransformerEmbedder as E; e = E(sys.argv[1]); "
        "e.dimensions, e.fingerprint, e.reads('数据'); assert 'torch' not in sys.modules; e.embed_query('a')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(weights)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_model_that_is_gone_leaves_words_and_comes_back(weights: Path, tmp_path: Path) -> None:
    place, away, root = tmp_path / "model", tmp_path / "away", tmp_path / "home"
    shutil.copytree(weights, place, copy_function=os.link if os.name != "nt" else shutil.copy2)
    root.mkdir()
    (root / "MEMORY.md").write_text("- The spare key hangs behind the blue door.\n")
    index = Index(root, SentenceTransformerEmbedder(str(place)))
    assert index.sync().degraded == ()
    index.close()
    made = index.fingerprint
    place.rename(away)

    index = Index(root, SentenceTransformerEmbedder(str(place)))
    found = index.search("spare key")
    assert (len(found.hits), found.mode) == (1, "text")
    (problem,) = found.degraded
    assert problem.startswith("vector: ") and "is not there. Put it back" in problem
    (root / "MEMORY.md").write_text("- The spare key hangs behind the blue door.\n- Bins go out on Mondays.\n")
    assert "is not there" in index.sync().degraded[0]
    assert index.search("bins").hits[0].passage.text == "Bins go out on Mondays.", "what is new is found by its words"
    status = index.status()
    assert status.stored == status.current == made, "nothing asks to be made anew"
    with pytest.raises(EmbedderUnavailable, match="is not there"):
        index.sync(full=True)
    index.close()

    away.rename(place)
    index = Index(root, SentenceTransformerEmbedder(str(place)))
    assert index.sync().embedded == 1
    found = index.search("when is the trash collected?")
    assert (found.hits[0].passage.text, found.mode, found.degraded) == ("Bins go out on Mondays.", "hybrid", ())
    index.close()


def test_a_damaged_model_says_what_to_do(weights: Path, tmp_path: Path) -> None:
    shutil.copytree(weights, tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    (tmp_path / "model" / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(EmbedderUnavailable, match=r"cannot be loaded \(\w+\)\. Fetch it anew"):
        SentenceTransformerEmbedder(str(tmp_path / "model")).embed_query("a")


def test_a_name_that_is_not_here_is_not_fetched_by_a_question(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = SentenceTransformerEmbedder("nobody/no-such-model")
    assert embedder.dimensions == 0
    for ask in (lambda: embedder.fingerprint, lambda: embedder.embed_query("a")):
        with pytest.raises(EmbedderUnavailable, match=r"not on this machine yet\. Run `memory-service reindex`"):
            ask()
    with pytest.raises(EmbedderUnavailable, match="the hub did not give a model of that name"):
        embedder.embed_documents(["a"])


def test_a_folder_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    embedder = SentenceTransformerEmbedder(str(tmp_path / "nowhere"))
    assert (embedder.dimensions, embedder.reads("数据库")) == (0, True)
    with pytest.raises(EmbedderUnavailable, match=r"nowhere is not there\. Put it back, or set embedding_model"):
        embedder.embed_query("a")


def test_a_missing_package_is_another_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "config.json").write_text('{"hidden_size": 8}')
    with pytest.raises(EmbedderUnavailable, match=r'pip install "memory-service\[sentence-transformers\]"'):
        SentenceTransformerEmbedder(str(tmp_path)).embed_query("a")

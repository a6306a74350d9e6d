"""A real cross-encoder, small and made here: it learns in a moment what it shall like."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from indexer.embeddings.bundled import MINILM_FOLDER
from indexer.embeddings.reranking import Reranker
from indexer.embeddings.sentence_transformers import CrossEncoderReranker
from indexer.errors import EmbedderUnavailable
from indexer.index import Index

pytestmark = [
    # Raised inside sentence-transformers, transformers and torch, which are not ours to change.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

WORDS = "tea coffee key door river harbour garden blue green tuesday friday invoice parser build".split()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A model of two layers, trained for a moment to like texts with a river in them."""
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed")
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model only loses by more
    place = tmp_path_factory.mktemp("cross-encoder")
    train(place)
    yield place
    torch.set_num_threads(threads)


def train(place: Path) -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    torch.manual_seed(0)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(MINILM_FOLDER / "tokenizer.json"),
        unk_token="[UNK]", sep_token="[SEP]", pad_token="[PAD]", cls_token="[CLS]", mask_token="[MASK]",
        model_max_length=64,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, num_labels=1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    random = np.random.default_rng(0)
    for _ in range(30):
        texts = [" ".join(random.choice(WORDS[:6], 3, replace=False)) for _ in range(16)]
        labels = torch.tensor([float("river" in text) for text in texts])
        batch = tokenizer(["which?"] * len(texts), texts, padding=True, return_tensors="pt")
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(**batch).logits[:, 0], labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)


def test_scores_are_those_of_the_model(folder: Path) -> None:
    seam: Reranker = CrossEncoderReranker(str(folder))
    assert seam.name == f"sentence-transformers/{folder}"
    scores = seam.score(
        "river", ["tea key door", "blue river garden", "\ud800", "friday build parser", "", "river " * 500]
    )
    assert scores.shape == (6,) and np.isfinite(scores).all()
    from sentence_transformers import CrossEncoder

    theirs = CrossEncoder(str(folder), device="cpu").predict(
        [("river", "blue river garden"), ("river", "tea key door")]
    )
    assert scores[[1, 0]] == pytest.approx(theirs, abs=1e-4)


def test_a_search_is_reordered_by_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("".join(f"- {a} {b} parser\n" for a in WORDS[:6] for b in WORDS[:6] if a != b))
    reranker = CrossEncoderReranker(str(folder))
    reranker.score("warm", ["up"])
    index = Index(tmp_path, None, reranker=reranker)
    index.sync()
    found = index.search("parser", limit=30, explain=True)
    assert found.degraded == ()
    # Scores that differ by less than the model can mean leave the order to what search found.
    scores = [round(hit.signals["rerank"], 3) for hit in found.hits]
    assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]
    assert all("river" in hit.passage.text for hit in found.hits[:10])
    index.close()


def test_a_folder_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"nowhere is not there\. Put it back, or set rerank_model"):
        CrossEncoderReranker(str(tmp_path / "nowhere")).score("a", ["b"])

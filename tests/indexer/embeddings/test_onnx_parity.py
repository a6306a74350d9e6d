"""Models in ONNX format held against sentence-transformers, which runs the same weights: the published MiniLM, exported
here, and a cross-encoder that is made here.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer.embeddings.onnx_models import OnnxEmbedder, OnnxReranker
from indexer.embeddings.sentence_transformers import CrossEncoderReranker, SentenceTransformerEmbedder
from tests.indexer.embeddings.test_minilm_parity import TEXTS
from tests.indexer.embeddings.test_rerankers import WORDS, train
from tests.indexer.embeddings.weights import weights_folder

pytestmark = [
    # Raised inside sentence-transformers, transformers and torch, which are not ours to change.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore:Converting a tensor"),
]

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def export(model: Any, output: str, path: Path) -> None:
    """Save a model of transformers as a graph with one output."""
    import torch

    class OneOutput(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            made = self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
            return getattr(made, output)

    model.eval()
    model.set_attn_implementation("eager")
    example = torch.ones(2, 7, dtype=torch.long)
    path.parent.mkdir(parents=True, exist_ok=True)
    axes = {name: {0: "texts", 1: "tokens"} for name in (*INPUTS, output)}
    torch.onnx.export(
        OneOutput(), (example, example, example), str(path), dynamo=False,
        input_names=list(INPUTS), output_names=[output], dynamic_axes=axes,
    )  # fmt: skip


def test_vectors_are_those_of_sentence_transformers(tmp_path: Path) -> None:
    weights = weights_folder()
    from transformers import AutoModel

    folder = tmp_path / "exported"
    shutil.copytree(weights, folder, ignore=shutil.ignore_patterns("*.safetensors", "*.bin"))
    export(AutoModel.from_pretrained(str(weights)), "last_hidden_state", folder / "onnx" / "model.onnx")
    theirs = SentenceTransformerEmbedder(str(weights))
    ours = OnnxEmbedder(str(folder))
    assert ours.dimensions == theirs.dimensions == 384
    same = (ours.embed_documents(TEXTS) * theirs.embed_documents(TEXTS)).sum(axis=1)
    assert same.min() >= 0.999
    assert float(ours.embed_query(TEXTS[0]) @ theirs.embed_query(TEXTS[0])) >= 0.999


def test_scores_are_those_of_sentence_transformers(tmp_path: Path) -> None:
    weights_folder()  # skips where sentence-transformers is not installed
    from transformers import AutoModelForSequenceClassification

    train(tmp_path)
    export(AutoModelForSequenceClassification.from_pretrained(str(tmp_path)), "logits", tmp_path / "model.onnx")
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(WORDS, size, replace=True)) for size in (1, 3, 9, 30, 90)]
    theirs = CrossEncoderReranker(str(tmp_path)).score("which?", texts)
    assert np.abs(OnnxReranker(str(tmp_path)).score("which?", texts) - theirs).max() < 0.001

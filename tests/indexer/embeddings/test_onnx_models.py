"""Encoders and cross-encoders in ONNX format, from folders as exporters leave them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from indexer.embeddings.base import Embedder
from indexer.embeddings.bundled import MiniLM
from indexer.embeddings.onnx_models import OnnxEmbedder, OnnxReranker
from indexer.embeddings.reranking import Reranker
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.index import Index
from tests.growth import at_most_readings
from tests.indexer.embeddings.onnx_graphs import (
    BUNDLED,
    save_apart,
    save_bundled,
    save_dense,
    save_foreign,
    save_json,
    save_scores,
    save_small,
    small_vectors,
)

TEXTS = (
    "The staging database moved to Frankfurt in March.",
    "ok",
    "",
    "我昨天在上海买了一本书。",
    "lone surrogate \ud800",
    "The quarterly report showed that revenue grew, while costs stayed flat. " * 2_000,
)
POOLED = "1_Pooling/config.json"
MODULES = [
    {"path": "", "type": "sentence_transformers.models.Transformer"},
    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]


def unit(vector: Any) -> np.ndarray[Any, Any]:
    found = np.asarray(vector, np.float64)
    return np.asarray(found / np.linalg.norm(found))


def token_ids(text: str) -> list[int]:
    tokenizer = Tokenizer.from_file(str(BUNDLED / "tokenizer.json"))
    tokenizer.no_padding()
    return list(tokenizer.encode(text).ids)


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bundled(tmp_path_factory.mktemp("bundled"))


def test_a_model_that_pools_itself(bundled: Path) -> None:
    seam: Embedder = OnnxEmbedder(str(bundled))
    assert seam.name == f"onnx/{bundled}" and seam.dimensions == 384
    ours = MiniLM().embed_documents(TEXTS)
    theirs = seam.embed_documents(TEXTS)
    assert (ours * theirs).sum(axis=1).min() > 0.9999
    assert np.allclose(seam.embed_query(TEXTS[0]), theirs[0], atol=1e-5)
    assert seam.embed_documents([]).shape == (0, 384)
    assert not seam.reads("私はその人を常に先生と呼んでいた。") and seam.reads("naïve café déjà vu crème")


def test_threads_may_share_one(bundled: Path) -> None:
    shared, alone = OnnxEmbedder(str(bundled)), OnnxEmbedder(str(bundled), threads=1)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(shared.embed_query, TEXTS[:4] * 2))
    assert np.allclose(found[:4], found[4:], atol=1e-5)
    assert np.allclose(found[:4], alone.embed_documents(TEXTS[:4]), atol=1e-5)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"pooling_mode_mean_tokens": True}, lambda x: x.mean(axis=0)),
        ({"pooling_mode_cls_token": True}, lambda x: x[0]),
        ({"pooling_mode": "lasttoken"}, lambda x: x[-1]),
        ({"pooling_mode_max_tokens": True}, lambda x: x.max(axis=0)),
        ({"pooling_mode": ["mean_sqrt_len_tokens"]}, lambda x: x.sum(axis=0)),
        (
            {"pooling_mode_weightedmean_tokens": True},
            lambda x: (x * np.arange(1, len(x) + 1)[:, None]).sum(axis=0),
        ),
        (
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True, "word_embedding_dimension": 8},
            lambda x: np.concatenate([x[0], x.mean(axis=0)]),
        ),
    ],
)
def test_every_pooling(tmp_path: Path, config: dict[str, Any], expected: Any) -> None:
    save_small(tmp_path, files={"modules.json": MODULES, POOLED: config})
    texts = ["tea", "the harbour at night, and a river", "blue"]
    embedder = OnnxEmbedder(str(tmp_path))
    made = embedder.embed_documents(texts)
    for text, row in zip(texts, made, strict=True):
        assert np.allclose(row, unit(expected(small_vectors(token_ids(text)))), atol=1e-5)
    assert embedder.dimensions == made.shape[1]


def test_a_plain_encoder_gives_the_mean(tmp_path: Path) -> None:
    save_small(tmp_path)
    found = OnnxEmbedder(str(tmp_path)).embed_query("green door")
    assert np.allclose(found, unit(small_vectors(token_ids("green door")).mean(axis=0)), atol=1e-5)


def test_layers_behind_the_pooling_and_a_cut(tmp_path: Path) -> None:
    weight, bias = np.random.default_rng(3).standard_normal((4, 8)), np.full(4, 0.1)
    modules = [*MODULES, {"path": "2_Dense", "type": "x.Dense"}, {"path": "3_Normalize", "type": "x.Normalize"}]
    save_small(
        tmp_path,
        files={
            "modules.json": modules,
            POOLED: {"pooling_mode_mean_tokens": True},
            "config_sentence_transformers.json": {"truncate_dim": 3},
        },
    )
    save_dense(tmp_path / "2_Dense", weight, bias, "torch.nn.modules.activation.Tanh")
    embedder = OnnxEmbedder(str(tmp_path))
    assert embedder.dimensions == 3
    mean = small_vectors(token_ids("blue river")).mean(axis=0)
    assert np.allclose(embedder.embed_query("blue river"), unit(np.tanh(mean @ weight.T + bias)[:3]), atol=1e-5)
    before = embedder.fingerprint
    save_dense(tmp_path / "2_Dense", weight, bias, "torch.nn.modules.linear.Identity")
    assert OnnxEmbedder(str(tmp_path)).fingerprint != before


def test_prompts_of_the_models_own_files(tmp_path: Path) -> None:
    prompts = {"config_sentence_transformers.json": {"prompts": {"query": "ask: ", "document": ""}}}
    save_small(tmp_path, files={**prompts, "modules.json": MODULES, POOLED: {"include_prompt": False}})
    embedder = OnnxEmbedder(str(tmp_path))
    ids = token_ids("ask: tea")
    assert np.allclose(
        embedder.embed_documents(["tea"])[0], unit(small_vectors(token_ids("tea")).mean(axis=0)), atol=1e-5
    )
    # The prompt is read, and its tokens do not count: [CLS] ask : tea [SEP].
    assert np.allclose(embedder.embed_query("tea"), unit(small_vectors(ids[3:]).mean(axis=0)), atol=1e-5)


def test_a_long_text_is_cut_where_the_model_ends(tmp_path: Path) -> None:
    save_small(tmp_path, files={"sentence_bert_config.json": {"max_seq_length": 5}})
    embedder = OnnxEmbedder(str(tmp_path))
    assert np.allclose(embedder.embed_query("tea key door river"), embedder.embed_query("tea key door"), atol=1e-6)


def test_a_graph_may_be_named_and_the_whole_one_comes_first(bundled: Path, tmp_path: Path) -> None:
    save_small(tmp_path)
    small = (tmp_path / "model.onnx").read_bytes()
    save_bundled(tmp_path, graph="onnx/model_quantized.onnx")
    assert len(OnnxEmbedder(str(tmp_path)).embed_query("a")) == 8
    named = OnnxEmbedder(f"{tmp_path}/onnx/model_quantized.onnx")
    assert len(named.embed_query("a")) == 384
    assert named.fingerprint != OnnxEmbedder(str(tmp_path)).fingerprint
    (tmp_path / "model.onnx").unlink()
    assert len(OnnxEmbedder(str(tmp_path)).embed_query("a")) == 384
    (tmp_path / "onnx" / "model_quantized.onnx").unlink()
    for name in ("one.onnx", "two.onnx"):
        (tmp_path / name).write_bytes(small)
    with pytest.raises(
        EmbedderUnavailable, match=r"2 \.onnx files and none is called model\.onnx: one\.onnx, two\.onnx"
    ):
        OnnxEmbedder(str(tmp_path)).embed_query("a")


def test_a_model_is_known_by_its_content(bundled: Path, tmp_path: Path) -> None:
    moved = save_bundled(tmp_path / "moved")
    assert OnnxEmbedder(str(moved)).fingerprint == OnnxEmbedder(str(bundled)).fingerprint
    save_json(moved, {"config_sentence_transformers.json": {"prompts": {"query": "q: "}}})
    assert OnnxEmbedder(str(moved)).fingerprint != OnnxEmbedder(str(bundled)).fingerprint


def _truncate(folder: Path) -> None:
    os.truncate(folder / "model.onnx", 1_000)


def _tear_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{", "utf-8")


def _change_tokenizer(folder: Path, **parts: Any) -> None:
    file = folder / "tokenizer.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **parts}), "utf-8")


def _panic_at_once(folder: Path) -> None:
    _change_tokenizer(folder, normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"})


def _panic_later(folder: Path) -> None:
    single = [{"SpecialToken": {"id": "[LOST]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template = {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": {}}
    _change_tokenizer(folder, post_processor=template)


def _grow(folder: Path) -> None:
    os.truncate(folder / "model.onnx", 1 << 43)


def _pipe(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    os.mkfifo(folder / "model.onnx")


def _swell(folder: Path) -> None:
    os.truncate(folder / "tokenizer.json", 1 << 36)


def _without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _unknown_layer(folder: Path) -> None:
    save_json(folder, {"modules.json": [*MODULES, {"path": "2_LSTM", "type": "x.models.LSTM"}]})


def _unknown_pooling(folder: Path) -> None:
    save_json(folder, {"modules.json": MODULES, POOLED: {"pooling_mode": "by_moonlight"}})


def _lost_layer(folder: Path) -> None:
    save_json(folder, {"modules.json": [*MODULES, {"path": "2_Dense", "type": "x.Dense"}]})


def _torn_settings(folder: Path) -> None:
    (folder / "config.json").write_text("{", "utf-8")


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (_truncate, "cannot be loaded .*Fetch it anew"),
        (_tear_tokenizer, "cannot be loaded .*Fetch it anew|is no JSON"),
        (_panic_at_once, "cannot be loaded .*Fetch it anew"),
        (_panic_later, "cannot be loaded .*Fetch it anew"),
        (_grow, r"8,796\.1 GB of weights, and this machine has .* Choose a smaller embedding_model"),
        (_pipe, r"has no \.onnx file"),
        (_swell, "is too large for settings or a vocabulary"),
        (_without_tokenizer, r"has no tokenizer\.json"),
        (save_foreign, "no encoder of texts: it takes pixel_values"),
        (_unknown_layer, "a layer LSTM, which is not run here"),
        (_unknown_pooling, "pooling by_moonlight"),
        (_lost_layer, r"not in model\.safetensors"),
        (_torn_settings, "is no JSON"),
        (lambda folder: (folder / "model.onnx").unlink(), r"has no \.onnx file"),
    ],
)
def test_a_damaged_huge_or_foreign_model_says_what_to_do(tmp_path: Path, spoil: Any, text: str) -> None:
    save_small(tmp_path)
    spoil(tmp_path)
    with pytest.raises(EmbedderUnavailable, match=text):
        OnnxEmbedder(str(tmp_path)).embed_query("a")


def test_weights_that_a_graph_keeps_in_a_file_of_any_name_are_a_part_of_it(tmp_path: Path) -> None:
    whole = OnnxEmbedder(str(save_small(tmp_path / "whole"))).embed_query("a")
    kept = save_apart(save_small(tmp_path / "apart") / "model.onnx")
    model = OnnxEmbedder(str(tmp_path / "apart"))
    assert np.allclose(model.embed_query("a"), whole)
    weights = bytearray(kept.read_bytes())
    weights[: len(weights) // 2] = bytes(len(weights) // 2)
    kept.write_bytes(weights)
    assert OnnxEmbedder(str(tmp_path / "apart")).fingerprint != model.fingerprint
    kept.unlink()
    with pytest.raises(EmbedderUnavailable, match="keeps weights in words, which is not there"):
        OnnxEmbedder(str(tmp_path / "apart")).embed_query("a")


def test_a_tokenizer_that_fails_on_a_text_is_named(tmp_path: Path) -> None:
    save_small(tmp_path)
    model = {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "[LOST]"}
    _change_tokenizer(tmp_path, model=model, post_processor=None, added_tokens=[])
    assert OnnxEmbedder(str(tmp_path)).embed_query("a").shape == (8,)
    with pytest.raises(EmbeddingError, match=r"tokenizer of the model .* failed on a text .* Fetch the model anew"):
        OnnxEmbedder(str(tmp_path)).embed_query("c")


def test_numbers_that_are_none_are_no_vectors(tmp_path: Path) -> None:
    save_small(tmp_path, nan=True)
    with pytest.raises(EmbeddingError, match=r"no usable vector .* for 2 of 2 texts") as caught:
        OnnxEmbedder(str(tmp_path)).embed_documents(["a", "b"])
    assert caught.value.vectors is not None and not caught.value.vectors.any()


@pytest.mark.parametrize("name", ["/nowhere/at/all", "m" * 300, "a/b/c", "模型", "a\0b", "/nowhere/model.onnx"])
def test_what_is_no_folder_and_no_name_says_what_to_do(name: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"is not there\. Put it back, or set embedding_model"):
        OnnxEmbedder(name).embed_query("a")


def test_making_one_loads_nothing() -> None:
    code = (
        "import sys; from indexer import OnnxEmbedder, OnnxReranker; OnnxReranker('a/b'); "
        "OnnxEmbedder('/nowhere').name; "
        "print(sorted({'onnxruntime', 'tokenizers', 'huggingface_hub', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_an_index_of_such_a_model_answers_within_seconds(bundled: Path, tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "2026-03-01.md").write_text("- The ferry to Gotland leaves at nine.\n- Tea is at four.\n")
    with at_most_readings(100):
        index = Index(tmp_path, OnnxEmbedder(str(bundled)))
        index.sync()
        found = index.search("when does the boat go?", mode="vector")
    assert "ferry" in found.hits[0].passage.text and not found.degraded
    index.close()


def test_a_cross_encoder_scores_as_its_graph_does(tmp_path: Path) -> None:
    seam: Reranker = OnnxReranker(str(save_scores(tmp_path)))
    texts = ["tea key door", "blue river garden", "\ud800", "", "river " * 500]
    scores = seam.score("river", texts)
    assert scores.shape == (5,) and ((scores > 0) & (scores < 1)).all()
    tokenizer = Tokenizer.from_file(str(BUNDLED / "tokenizer.json"))
    tokenizer.no_padding()
    ids = tokenizer.encode("river", texts[0]).ids
    assert scores[0] == pytest.approx(1 / (1 + np.exp(-(small_vectors(ids, 1) / 100).sum())), abs=1e-6)
    assert seam.score("river", []).shape == (0,)
    save_json(tmp_path, {"config.json": {"sentence_transformers": {"activation_fn": "torch.nn.Identity"}}})
    raw = OnnxReranker(str(tmp_path)).score("river", texts)
    assert np.allclose(1 / (1 + np.exp(-raw)), scores, atol=1e-6)


def test_a_model_of_three_labels_tells_not_how_well_a_text_answers(tmp_path: Path) -> None:
    save_scores(tmp_path, labels=2)
    assert OnnxReranker(str(tmp_path)).score("river", ["tea", "key"]).shape == (2,)
    save_scores(tmp_path, labels=3)
    with pytest.raises(EmbeddingError, match="gives 3 scores for each text"):
        OnnxReranker(str(tmp_path)).score("river", ["tea", "key"])


def test_an_encoder_is_no_cross_encoder(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match="Set rerank_model to a cross-encoder"):
        OnnxReranker(str(save_small(tmp_path))).score("a", ["b"])
    with pytest.raises(EmbedderUnavailable, match="set rerank_model to where it is now"):
        OnnxReranker(str(tmp_path / "nowhere")).score("a", ["b"])

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memory_service.config import load_settings
from memory_service.errors import InvalidRequest
from memory_service.runtime.models import make_embedder, make_reranker
from memory_service.service import MemoryService
from tests.indexer.embeddings.onnx_graphs import save_bundled, save_scores


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("auto", "auto"),
        ("minilm", "minilm"),
        ("multilingual-e5-small", "multilingual-e5-small"),
        ("sentence-transformers/intfloat/multilingual-e5-small", None),
        ("onnx/intfloat/multilingual-e5-small", None),
        ("onnx//models/mine", None),
        ("sentence-transformers//models/mine", None),
        ("litellm/openai/text-embedding-3-small", None),
    ],
)
def test_embedding_models_by_name(tmp_path: Path, setting: str, name: str | None) -> None:
    before = set(sys.modules)
    made = make_embedder(load_settings(home=tmp_path, embedding_model=setting))
    assert made is not None and made.name == (name or setting)
    assert not {"torch", "litellm", "sentence_transformers"} & (set(sys.modules) - before)


@pytest.mark.parametrize(
    "name", ["gpt", "", "minilm/x", "none/x", "litellm/", "litellm", "sentence-transformers/", "onnx/", "x/y"]
)
def test_a_name_that_nobody_knows_says_which_there_are(tmp_path: Path, name: str) -> None:
    told = (
        "is unknown. Set embedding_model to auto, minilm, multilingual-e5-small, onnx/NAME, sentence-transformers/NAME"
    )
    with pytest.raises(InvalidRequest, match=told):
        make_embedder(load_settings(home=tmp_path, embedding_model=name))


def test_rerank_models_by_name(tmp_path: Path) -> None:
    assert make_reranker(load_settings(home=tmp_path)) is None
    for name in ("onnx/mine", "sentence-transformers/BAAI/bge-reranker-v2-m3", "litellm/cohere/rerank-v3.5"):
        made = make_reranker(load_settings(home=tmp_path, rerank_model=name))
        assert made is not None and made.name == name
    for name in ("bge", "minilm", "litellm/"):
        with pytest.raises(InvalidRequest, match=r"is unknown\. Set rerank_model to"):
            make_reranker(load_settings(home=tmp_path, rerank_model=name))


def test_models_in_onnx_format_find_and_reorder(tmp_path: Path) -> None:
    model, judge = save_bundled(tmp_path / "model"), save_scores(tmp_path / "judge")
    settings = {"embedding_model": f"onnx/{model}", "rerank_model": f"onnx/{judge}"}
    with MemoryService.open(tmp_path / "home", **settings) as service:
        service.remember("default", "The ferry to Gotland leaves at nine.")
        service.remember("default", "Tea is at four.")
        found = service.search("default", "When does the boat go?", mode="vector", explain=True)
        # The table of relevance is that of another model.
        (said,) = found.degraded
        assert said.startswith("relevance: none is known for the vectors of ") and "mode text" in said
        assert service.status("default").degraded == []  # nothing that is wrong with the index
        scores = {hit.text: hit.signals["rerank"] for hit in found.results if hit.signals}
        assert len(scores) == 2 and [hit.text for hit in found.results] == sorted(scores, key=scores.__getitem__)[::-1]
        told = {finding.name: finding for finding in service.examine("default")}
        assert told["index"].ok and told["index"].detail.endswith(f", undamaged; {said}")
        assert told["model"].ok and "does not tell an answer from another text" in told["rerank"].detail


@pytest.mark.parametrize("engine", ["onnx", "sentence-transformers"])
def test_models_that_are_not_there_are_told_by_the_doctor(tmp_path: Path, engine: str) -> None:
    gone = f"{engine}/{tmp_path}/gone"
    with MemoryService.open(tmp_path, embedding_model=gone, rerank_model=gone) as service:
        findings = {finding.name: finding for finding in service.examine("default")}
    for name, setting in (("model", "embedding_model"), ("rerank", "rerank_model")):
        assert not findings[name].ok
        assert "gone is not there" in findings[name].detail
        assert f"set {setting} to where it is now" in findings[name].remedy


def test_a_model_that_is_gone_is_told_by_the_status_and_keeps_no_reindex_from_the_words(tmp_path: Path) -> None:
    gone = f"sentence-transformers/{tmp_path}/gone"
    with MemoryService.open(tmp_path, embedding_model=gone) as service:
        told = service.remember("default", "the quokka sleeps")
        assert any("gone is not there" in problem for problem in told.degraded)
        assert [hit.text for hit in service.search("default", "quokka").results] == ["the quokka sleeps"]
        status = service.status("default")
        assert any(problem.startswith("vector: ") and "gone is not there" in problem for problem in status.degraded)


def test_a_reindex_for_a_model_that_is_away_keeps_the_index_and_its_words(tmp_path: Path) -> None:
    with MemoryService.open(tmp_path) as service:
        service.remember("default", "the quokka sleeps")
    # Nobody listens there, or the package is not installed: either way it cannot tell how long its vectors are.
    away = {"embedding_model": "litellm/openai/any", "embedding_api_base": "http://127.0.0.1:9/v1"}
    with MemoryService.open(tmp_path, **away) as service:
        service.remember("default", "the wombat digs")
        found = service.search("default", "wombat")
        assert [hit.text for hit in found.results][:1] == ["the wombat digs"] and found.degraded
    with MemoryService.open(tmp_path) as service:
        service.reindex("default")
        found = service.search("default", "quokka")
        assert (found.mode, found.degraded) == ("hybrid", [])

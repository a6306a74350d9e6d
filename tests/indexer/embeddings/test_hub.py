"""Names of models, without loading one."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexer.embeddings.sentence_transformers import _find_model
from indexer.errors import EmbedderUnavailable


@pytest.mark.parametrize("name", ["~nobody-of-this-name/model", "m" * 300, "a/b/c", "模型", "a\0b", "-x"])
def test_what_is_no_folder_and_no_name_says_what_to_do(name: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"is not there\. Put it back, or set embedding_model"):
        _find_model(name)


@pytest.mark.parametrize("name", ["a--b", "a..b", "x.git", "org/ends-"])
def test_a_name_that_the_hub_refuses_says_what_to_do(name: str) -> None:
    pytest.importorskip("huggingface_hub")
    with pytest.raises(EmbedderUnavailable, match=r"is not there\. Put it back, or set rerank_model"):
        _find_model(name, "rerank")


def test_a_model_that_was_fetched_in_part_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--sentence-transformers--small"
    snapshot = repository / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("c0ffee")
    (snapshot / "modules.json").write_text("[]")
    (snapshot / "config.json").write_text("{}")
    assert _find_model("small") is None
    (snapshot / "model.safetensors").write_bytes(b"weights")
    assert _find_model("small") == _find_model("sentence-transformers/small") == snapshot

"""Folders as sentence-transformers writes them, without weights that could run."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from indexer.embeddings.model_folder import Prompts, read_model_folder
from indexer.errors import EmbedderUnavailable

MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]
POOLING = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "a-model"
    write(made / "modules.json", MODULES)
    write(made / "config.json", {"hidden_size": 32, "model_type": "bert"})
    write(made / "1_Pooling" / "config.json", POOLING)
    write(made / "tokenizer.json", {"model": {"vocab": {f"word{n}": n for n in range(1_000)}}})
    (made / "model.safetensors").write_bytes(bytes(range(256)) * 40_000)
    return made


def identity(folder: Path, name: str = "a-model") -> str:
    return read_model_folder(folder, name).identity


@pytest.mark.parametrize(
    ("file", "value", "expected"),
    [
        ("config.json", {"hidden_size": 32}, 32),
        ("1_Pooling/config.json", {**POOLING, "pooling_mode_cls_token": True}, 64),
        ("1_Pooling/config.json", {"embedding_dimension": 32, "pooling_mode": "mean"}, 32),
        ("1_Pooling/config.json", {"embedding_dimension": 32, "pooling_mode": ["mean", "max", "cls"]}, 96),
        ("config_sentence_transformers.json", {"truncate_dim": 16}, 16),
        ("modules.json", [*MODULES, {"path": "3_Dense", "type": "sentence_transformers.models.Dense"}], 12),
        ("modules.json", [*MODULES, {"path": "x", "type": "somebody.Own"}], 0),
        ("modules.json", [], 32),
    ],
)
def test_dimensions_are_followed_through_the_modules(folder: Path, file: str, value: Any, expected: int) -> None:
    write(folder / "3_Dense" / "config.json", {"in_features": 32, "out_features": 12})
    write(folder / file, value)
    assert read_model_folder(folder, "a-model").dimensions == expected


@pytest.mark.parametrize(
    ("config", "name", "expected"),
    [
        ({"prompts": {"query": "Q: ", "document": "D: "}}, "e5-base", Prompts(query="Q: ", document="D: ")),
        ({"prompts": {"query": "Q: ", "passage": "P: "}}, "x", Prompts(query="Q: ", document="P: ")),
        ({"prompts": {"search_query": "Q: ", "search_document": "D: "}}, "x", Prompts(query="Q: ", document="D: ")),
        ({"prompts": {"query": "Q: "}}, "bge-base-en", Prompts(query="Q: ")),
        ({"prompts": {"any": "A: "}, "default_prompt_name": "any"}, "x", Prompts(query="A: ", document="A: ")),
        ({"prompts": {"query": "", "document": ""}}, "e5-base", Prompts(query="query: ", document="passage: ")),
        ({}, "intfloat/e5-base", Prompts(query="query: ", document="passage: ")),
        ({"prompts": None}, "x", Prompts()),
    ],
)
def test_a_models_own_prompts_go_before_its_familys(folder: Path, config: Any, name: str, expected: Prompts) -> None:
    write(folder / "config_sentence_transformers.json", config)
    assert read_model_folder(folder, name).prompts == expected


def test_the_family_shows_in_the_files_too(folder: Path) -> None:
    write(folder / "config.json", {"hidden_size": 32, "_name_or_path": "intfloat/multilingual-e5-small"})
    found = read_model_folder(folder, "a-model")
    assert found.prompts == Prompts(query="query: ", document="passage: ")
    assert found.reader()("数据库在哪里")


def test_a_model_that_is_moved_and_renamed_is_the_same(folder: Path, tmp_path: Path) -> None:
    before = identity(folder)
    moved = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(folder, moved)
    (moved / "README.md").write_text("another card")
    (moved / "onnx").mkdir()
    (moved / "onnx" / "model.onnx").write_bytes(b"x")
    assert identity(moved, "renamed") == before


def test_anything_that_changes_a_vector_changes_the_identity(folder: Path) -> None:
    seen = {identity(folder)}
    weights = folder / "model.safetensors"
    before = weights.read_bytes()
    half = len(before) // 2
    for trained in (before[:half] + before[half:][::-1], before[:half][::-1] + before[half:], before + b"z"):
        weights.write_bytes(trained)
        seen.add(identity(folder))
    write(folder / "1_Pooling" / "config.json", {**POOLING, "pooling_mode_cls_token": True})
    seen.add(identity(folder))
    write(folder / "sentence_bert_config.json", {"max_seq_length": 64})
    seen.add(identity(folder))
    write(folder / "tokenizer.json", {"model": {"vocab": {"other": 1}}})
    seen.add(identity(folder))
    write(folder / "config_sentence_transformers.json", {"prompts": {"query": "Q: "}})
    seen.add(identity(folder))
    assert len(seen) == 8
    assert identity(folder, "e5-base") == identity(folder), "its own prompts stay those of its files"


def test_weights_in_two_formats_count_once(folder: Path) -> None:
    before = identity(folder)
    (folder / "pytorch_model.bin").write_bytes(b"the same in the older format")
    assert identity(folder) == before


@pytest.mark.parametrize(
    ("vocabulary", "expected"),
    [
        ({f"word{n}": n for n in range(3_000)} | {chr(0x4E00 + n): n for n in range(60)}, False),
        ({f"word{n}": n for n in range(1_000)} | {chr(0x4E00 + n): n for n in range(300)}, True),
        ([[f"▁{n}", -1.0] for n in range(120_000)], True),
        ([["▁数据", -1.0], ["▁the", -2.0]], True),
        ({}, False),
    ],
    ids=["english", "chinese", "large", "unigram", "none"],
)
def test_scripts_by_the_vocabulary(folder: Path, vocabulary: Any, expected: bool) -> None:
    write(folder / "tokenizer.json", {"model": {"vocab": vocabulary}})
    assert read_model_folder(folder, "a-model").reader()("数据库在哪里") is expected


def test_scripts_by_an_older_vocabulary(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("[CLS]\n的\n了\n", "utf-8")
    assert read_model_folder(folder, "a-model").reader()("数据库在哪里")


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"neither modules\.json nor config\.json\. Set "):
        read_model_folder(tmp_path, "x")


def test_a_damaged_file_is_named(folder: Path) -> None:
    (folder / "modules.json").write_text("{")
    with pytest.raises(EmbedderUnavailable, match=r"modules\.json is no JSON\. Fetch "):
        read_model_folder(folder, "x")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="everything is readable to root")
def test_a_folder_that_cannot_be_read_is_named(folder: Path) -> None:
    folder.chmod(0)
    try:
        with pytest.raises(EmbedderUnavailable):
            read_model_folder(folder, "x")
    finally:
        folder.chmod(0o755)

from __future__ import annotations

import ast
from pathlib import Path

import indexer
from tests.indexer.workspace import run_python


def test_all_is_sorted_and_complete() -> None:
    tree = ast.parse(Path(indexer.__file__).read_text(encoding="utf-8"))
    imported = {
        name.asname or name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names
    }
    assert indexer.__all__ == sorted(indexer.__all__)
    assert set(indexer.__all__) == imported
    assert all(hasattr(indexer, name) for name in indexer.__all__)


def test_every_error_is_public() -> None:
    from indexer import errors

    assert {name for name, value in vars(errors).items() if isinstance(value, type)} <= set(indexer.__all__)


def test_importing_it_loads_no_engine_and_no_model() -> None:
    loaded = run_python("import sys, indexer; print(*sys.modules)").split()
    assert not {"apsw", "onnxruntime", "sqlite_vec", "tokenizers", "Stemmer"} & set(loaded)

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import indexer
from tests.indexer.workspace import run_python


def test_all_is_complete() -> None:
    tree = ast.parse(Path(indexer.__file__).read_text(encoding="utf-8"))
    imported = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module not in ("importlib", "typing")
        for name in node.names
    }
    assert set(indexer.__all__) == imported
    assert all(hasattr(indexer, name) for name in indexer.__all__)
    assert set(indexer.__all__) <= set(dir(indexer))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'indexer' has no attribute 'Nothing'"):
        getattr(indexer, "Nothing")  # noqa: B009  (mypy knows that it is not there)


def test_every_error_is_public() -> None:
    from indexer import errors

    assert {name for name, value in vars(errors).items() if isinstance(value, type)} <= set(indexer.__all__)


ENGINES = {"apsw", "onnxruntime", "sentencepiece", "sqlite_vec", "tokenizers", "Stemmer"}


def test_importing_it_loads_no_engine_and_no_model() -> None:
    loaded = set(run_python("import sys, indexer; print(*sys.modules)").split())
    assert not (ENGINES | {"numpy", "indexer.index"}) & loaded
    loaded = set(run_python("import sys, indexer; indexer.Index; print(*sys.modules)").split())
    assert "indexer.index" in loaded and not ENGINES & loaded


def test_a_late_name_is_the_one_of_its_module() -> None:
    code = "import indexer; from indexer.index import Index; print(indexer.Index is Index, 'Index' in dir(indexer))"
    assert run_python(code).split() == ["True", "True"]

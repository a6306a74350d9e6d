"""Runs the real bundled model."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from indexer.embeddings import bundled
from indexer.embeddings.base import Embedder, runs_by_length
from indexer.embeddings.bundled import MiniLM
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.types import Vectors

FOLDER = bundled.MINILM_FOLDER
TEXTS = (
    "The staging database moved to Frankfurt in March.",
    "ok",
    "Anna prefers tea over coffee, and never drinks anything with caffeine after four in the afternoon.",
    "",
    "Deploys happen on Tuesdays. " * 12,
    "def add(a: int, b: int) -> int:\n    return a + b",
    "- [ ] renew the certificate before 2025-06-30",
    "The quarterly report showed that revenue grew, while costs for hosting and support stayed flat. " * 30,
)
ODD = {
    "empty": "",
    "spaces": " \n\t ",
    "nul": "a\x00b\x00",
    "only nul": "\x00",
    "emoji": "🎉👩‍👩‍👧‍👦🇩🇪",
    "lone surrogate": "before \ud800 after",
    "reversed pair": "\udc00\ud800",
    "megabyte word": "x" * 1_000_000,
    "megabyte prose": "the cat sat on the mat " * 45_000,
    "chinese": "我昨天在上海买了一本书。",
    "right to left": "שלום \u202e abc",
    "special tokens": "[CLS] [SEP] [PAD] [MASK] [UNK]",
    "combining": "e\u0301" * 500,
}


@pytest.fixture(scope="module")
def embedder() -> MiniLM:
    return MiniLM()


def test_is_an_embedder(embedder: MiniLM) -> None:
    seam: Embedder = embedder
    assert (seam.name, seam.dimensions, seam.reads("数据库在哪里")) == ("minilm", 384, False)
    assert seam.fingerprint == f"minilm-{bundled.MINILM_SHA256[:12]}-256"


def test_model_file_is_the_one_the_fingerprint_names() -> None:
    assert hashlib.sha256((FOLDER / "model.onnx").read_bytes()).hexdigest() == bundled.MINILM_SHA256


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE", "README.md", "tokenizer.json"])
def test_model_comes_with_its_papers(name: str) -> None:
    assert (FOLDER / name).stat().st_size > 0


def test_rows_are_unit_float32(embedder: MiniLM) -> None:
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.dtype(np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_no_texts_give_no_rows(embedder: MiniLM) -> None:
    vectors = embedder.embed_documents([])
    assert vectors.shape == (0, 384)
    assert vectors.dtype == np.dtype(np.float32)


def test_a_query_is_a_document_alone(embedder: MiniLM) -> None:
    vector = embedder.embed_query(TEXTS[0])
    assert vector.shape == (384,)
    assert np.array_equal(vector, embedder.embed_documents([TEXTS[0]])[0])


def test_same_texts_same_bytes(embedder: MiniLM) -> None:
    first = embedder.embed_documents(TEXTS)
    assert np.array_equal(first, embedder.embed_documents(TEXTS))
    assert np.array_equal(first, MiniLM().embed_documents(TEXTS))


def test_company_does_not_change_a_vector(embedder: MiniLM) -> None:
    alone = np.stack([embedder.embed_query(text) for text in TEXTS])
    together = embedder.embed_documents(TEXTS)
    assert (alone * together).sum(axis=1) == pytest.approx(1.0, abs=1e-4)


def test_padding_does_not_change_a_vector(embedder: MiniLM) -> None:
    engine = embedder._load()
    tokens = [engine.token_ids(text) for text in TEXTS]
    alone = np.concatenate([engine.vectors([ids]) for ids in tokens])
    assert (alone * engine.vectors(tokens)).sum(axis=1) == pytest.approx(1.0, abs=1e-4)


def test_thread_count_does_not_change_a_vector(embedder: MiniLM) -> None:
    single = MiniLM(threads=1).embed_documents(TEXTS)
    assert (single * embedder.embed_documents(TEXTS)).sum(axis=1) == pytest.approx(1.0, abs=1e-4)


def test_order_is_that_of_the_texts(embedder: MiniLM) -> None:
    texts = [f"{'word ' * (number * 7 % 40)}number {number}" for number in range(60)]
    likeness = embedder.embed_documents(texts) @ np.stack([embedder.embed_query(text) for text in texts]).T
    assert likeness.argmax(axis=1).tolist() == list(range(60))


def test_few_texts_are_shared_out_among_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    by_two, sizes = MiniLM(threads=2), list[int]()
    engine, run = by_two._load(), bundled.Engine.vectors

    def vectors(self: bundled.Engine, batch: Sequence[Sequence[int]]) -> Vectors:
        sizes.append(len(batch))
        return run(self, batch)

    monkeypatch.setattr(bundled.Engine, "vectors", vectors)
    for count, shares in ((1, [1]), (2, [1, 1]), (5, [2, 3]), (8, [4, 4])):
        sizes.clear()
        found = by_two.embed_documents(["one and the same text"] * count)
        assert sorted(sizes) == shares
        assert (found @ engine.vectors([engine.token_ids("one and the same text")]).T) == pytest.approx(1.0, abs=1e-4)


def test_runs_hold_every_place_once_and_keep_the_budget() -> None:
    lengths = [256, 3, 90, 3, 128, 128, 2, 255, 40]
    runs = list(runs_by_length(lengths, bundled.RUN_TOKENS))
    assert sorted(place for run in runs for place in run) == list(range(len(lengths)))
    assert all(max(lengths[place] for place in run) * len(run) <= bundled.RUN_TOKENS for run in runs)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_odd_texts_get_a_vector(embedder: MiniLM, text: str) -> None:
    assert np.linalg.norm(embedder.embed_query(text)) == pytest.approx(1.0, abs=1e-5)


def test_long_texts_are_cut_at_256_tokens(embedder: MiniLM) -> None:
    start = "apple " * 254
    assert np.array_equal(embedder.embed_query(start), embedder.embed_query(start + "and something else"))
    assert not np.array_equal(embedder.embed_query("apple " * 253), embedder.embed_query("apple " * 253 + "else"))


def test_threads_may_share_one(embedder: MiniLM) -> None:
    expected = embedder.embed_documents(TEXTS)
    fresh = MiniLM(threads=1)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: fresh.embed_documents(TEXTS), range(8)))
    assert all((answer * expected).sum(axis=1).min() > 1 - 1e-4 for answer in answers)


def test_threads_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Path] = []
    load = bundled.load_engine

    def counted(model: bundled.BundledModel, folder: Path) -> Any:
        loads.append(folder)
        return load(model, folder)

    monkeypatch.setattr(bundled, "load_engine", counted)
    fresh = MiniLM(threads=1)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fresh.embed_query, ["a", "b", "c", "d", "e", "f", "g", "h"]))
    assert len(loads) == 1


@pytest.mark.parametrize(
    ("question", "answer", "others"),
    [
        ("What does she drink in the morning?", "Anna has a cup of tea at breakfast.", TEXTS[4:]),
        ("Where is the test server hosted?", TEXTS[0], (TEXTS[2], *TEXTS[4:])),
        ("He bought a car.", "A vehicle was purchased by him.", TEXTS),
        ("How do I sum two numbers in Python?", TEXTS[5], (TEXTS[0], TEXTS[2], TEXTS[6])),
    ],
)
def test_a_paraphrase_is_nearer_than_another_text(
    embedder: MiniLM, question: str, answer: str, others: Sequence[str]
) -> None:
    likeness = embedder.embed_documents([answer, *others]) @ embedder.embed_query(question)
    assert likeness.argmax() == 0
    assert likeness[0] > likeness[1:].max() + 0.1


def test_missing_model_says_what_to_do(tmp_path: Path) -> None:
    absent = MiniLM(folder=tmp_path)
    with pytest.raises(EmbedderUnavailable, match=r"model\.onnx is missing\. Reinstall .*\.$"):
        absent.embed_query("a")


def test_damaged_model_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    (tmp_path / "tokenizer.json").write_bytes((FOLDER / "tokenizer.json").read_bytes())
    with pytest.raises(EmbedderUnavailable, match=r"cannot be read \(\w+\)\. Reinstall .*\.$"):
        MiniLM(folder=tmp_path).embed_query("a")


def test_missing_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(EmbedderUnavailable, match=r"package onnxruntime.*\. Install .*\.$"):
        MiniLM().embed_query("a")


def test_runtime_errors_are_translated(embedder: MiniLM) -> None:
    with pytest.raises(EmbeddingError, match=r"failed on 1 texts \(\w+\)\. Try again"):
        embedder._load().vectors([[101, 10**6, 102]])


def test_vectors_that_are_not_finite_are_refused() -> None:
    class Broken:
        def run(self, *_: object) -> list[np.ndarray[Any, Any]]:
            return [np.full((1, 384), np.nan, np.float32)]

    with pytest.raises(EmbeddingError, match=r"not finite"):
        bundled.Engine(
            model=bundled._MINILM, session=Broken(), tokenizer=cast(Any, None), vocabulary=cast(Any, None)
        ).vectors([[101, 102]])


def test_import_and_making_one_load_nothing() -> None:
    code = (
        "import sys; from indexer.embeddings.bundled import MiniLM; MiniLM(); "
        "raise SystemExit(bool({'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_is_written_to_the_console() -> None:
    code = "from indexer.embeddings.bundled import MiniLM; MiniLM().embed_documents(['a', 'b c'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_the_engine_keeps_no_record_of_its_use(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    program = (
        "from indexer import MiniLM; MiniLM().embed_query('a'); import onnxruntime; print(onnxruntime.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**kept, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "CI": ""},
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert done.stderr == ""
    assert list(tmp_path.rglob("*")) == []

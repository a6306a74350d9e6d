"""The default embedder: all-MiniLM-L6-v2 in ONNX Runtime, from the files in `minilm_model/`.

Invariants: nothing is fetched; a text gets the same vector alone and in company, but for the last digits of a float;
neither importing this module nor making a `MiniLM` imports ONNX Runtime; its errors stop here.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from indexer.embeddings.base import without_surrogates
from indexer.embeddings.onnx_session import (
    Vocabulary,
    default_threads,
    load_tokenizer,
    padded,
    run_in_threads,
    start_session,
)
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.types import Vectors

MODEL_SHA256 = "dc76711c8876414d261eb55812285d534ed40c83fe0403d487afb4186c7e004d"
MAX_TOKENS = 256
DIMENSIONS = 384

_FOLDER = Path(__file__).parent / "minilm_model"

# 256 tokens of prose are under 2,000 characters. The cut keeps a text of a megabyte from being tokenised whole.
_MAX_CHARACTERS = 20_000

# Tokens in one run, padding included. Source: our measurement; 1,024 is 5 to 20 % slower, since what passes
# between the layers then leaves the processor's cache, and smaller runs gain nothing.
_RUN_TOKENS = 256

_REINSTALL = "Reinstall memory-service, or choose another embedder."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    """The loaded model. Thread-safe."""

    session: Any
    tokenizer: Any
    vocabulary: Vocabulary

    def token_ids(self, text: str) -> list[int]:
        """Token ids of a text, from [CLS] to [SEP]; at most `MAX_TOKENS`."""
        ids: list[int] = self.tokenizer.encode(without_surrogates(text[:_MAX_CHARACTERS])).ids
        return ids

    def vectors(self, batch: Sequence[Sequence[int]]) -> Vectors:
        ids, mask = padded(batch)
        try:
            vectors: Vectors = self.session.run(["vectors"], {"ids": ids, "mask": mask})[0]
        except Exception as error:  # ONNX Runtime's exceptions have no common base of their own
            raise EmbeddingError(
                f"The minilm model failed on {len(batch)} texts ({type(error).__name__}). "
                "Try again; if it stays, reinstall onnxruntime."
            ) from error
        if not np.isfinite(vectors).all():
            raise EmbeddingError(
                f"The minilm model gave vectors that are not finite for a batch of {len(batch)} texts. {_REINSTALL}"
            )
        return vectors


class MiniLM:
    """English sentence embeddings without network or torch; the model is loaded at the first call.

    Args:
        threads: Runs at a time in one call; by default as many as the process has processors, at most 4.
        folder: Folder of `model.onnx` and `tokenizer.json`, for an install that has them apart from the code.
    """

    name = "minilm"
    dimensions = DIMENSIONS
    fingerprint = f"minilm-{MODEL_SHA256[:12]}-{MAX_TOKENS}"

    def __init__(self, *, threads: int | None = None, folder: Path = _FOLDER) -> None:
        self._threads = threads or default_threads()
        self._folder = folder
        self._engine: _Engine | None = None
        self._loading = threading.Lock()

    def reads(self, text: str) -> bool:
        """See `Embedder`; by its vocabulary, which is English."""
        try:
            return self._loaded().vocabulary.reads(text)
        except EmbedderUnavailable:
            return True

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        if not texts:
            return vectors
        engine = self._loaded()
        tokens = [engine.token_ids(text) for text in texts]

        def fill(places: list[int]) -> None:
            vectors[places] = engine.vectors([tokens[place] for place in places])

        lengths = [len(ids) for ids in tokens]
        run_in_threads(lengths, fill, threads=self._threads, run_tokens=_RUN_TOKENS, name=self.name)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        row: Vectors = self.embed_documents([text])[0]
        return row

    def _loaded(self) -> _Engine:
        if self._engine is None:
            with self._loading:
                if self._engine is None:
                    self._engine = _load(self._folder)
        return self._engine


def _load(folder: Path) -> _Engine:
    for path in (folder / "model.onnx", folder / "tokenizer.json"):
        if not path.is_file():
            raise EmbedderUnavailable(f"The minilm model's file {path} is missing. {_REINSTALL}")
    try:
        tokenizer = _tokenizer(folder / "tokenizer.json")
        return _Engine(
            session=start_session(folder / "model.onnx"), tokenizer=tokenizer, vocabulary=Vocabulary(tokenizer)
        )
    except ImportError as error:
        raise EmbedderUnavailable(
            f"The minilm model needs the package {error.name or 'onnxruntime'}, which cannot be imported. "
            "Install onnxruntime and tokenizers, or choose another embedder."
        ) from error
    except Exception as error:  # both packages raise plain subclasses of Exception for a file they cannot read
        raise EmbedderUnavailable(
            f"The minilm model in {folder} cannot be read ({type(error).__name__}). {_REINSTALL}"
        ) from error


def _tokenizer(path: Path) -> Any:
    tokenizer = load_tokenizer(path)
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer

"""Embedder and reranker for any model of sentence-transformers, from a folder or from the Hugging Face hub.

Invariants: making one and asking for its name, size or fingerprint loads nothing and uses no network; a model on this
machine is loaded from it and nobody is asked, not even for a newer version; only an index run fetches an embedding
model, a question never does, and a reranker is fetched behind its first question; code that comes with a model is never
run; the lock is held for one run of texts at a time, so a question waits for no more than that; texts get the prompts
that the model was trained with. sentence_transformers, torch, transformers and huggingface_hub are imported here alone,
at the first need, and their exceptions end here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from indexer.embeddings.base import runs_by_length, without_surrogates
from indexer.embeddings.model_folder import (
    HUB_NAME,
    FolderEmbedder,
    ModelFolder,
    folder_of,
    has_weights,
    not_here,
    read_model_folder,
)
from indexer.embeddings.onnx_session import usable_processors
from indexer.embeddings.reranking import Scores, scores_of_labels
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.providers.environment import variables
from indexer.types import Vectors

_Kind = Literal["embedding", "rerank"]
_CLASSES: dict[_Kind, str] = {"embedding": "SentenceTransformer", "rerank": "CrossEncoder"}
_INSTALL = 'Install it with pip install "memory-service[sentence-transformers]", or choose another {kind}_model.'
_FIRST_FILES = ("modules.json", "config.json")


def _find_model(name: str, kind: _Kind = "embedding") -> Path | None:
    """The folder of a model on this machine; None for a name of the hub that was not fetched yet.

    Raises:
        EmbedderUnavailable: It can be no name of the hub, and there is no such folder.
    """
    folder = folder_of(name)
    if folder is not None:
        return folder
    try:
        if not HUB_NAME.fullmatch(name):
            raise ValueError(name)
        return _cached_model(name, kind)
    except ValueError as error:  # the hub has rules of its own, too
        raise EmbedderUnavailable(
            f"The model folder {name} is not there. Put it back, or set {kind}_model to where it is now"
            + (", or to another model and run `memory-service reindex --full`." if kind == "embedding" else ".")
        ) from error


def _cached_model(name: str, kind: _Kind) -> Path | None:
    """The folder in the hub's cache, if the model in it is complete; ValueError for an impossible name."""
    for repository in (name,) if "/" in name else (f"sentence-transformers/{name}", f"cross-encoder/{name}", name):
        for file in _FIRST_FILES:
            path = _cached_file(repository, file, kind)
            if path is not None and has_weights(path.parent):
                return path.parent
    return None


def _load_model(name: str, kind: _Kind, *, fetch: bool) -> Any:
    """A `SentenceTransformer`, or to rerank a `CrossEncoder`, on the best device there is.

    Raises:
        EmbedderUnavailable: The package or the model is not there, or the model cannot be read.
    """
    place = _find_model(name, kind)
    try:
        _prepare()
        if place is None and not fetch:
            raise not_here(name)
        import sentence_transformers

        loaded_value = getattr(sentence_transformers, _CLASSES[kind])
        return loaded_value(str(place or name), local_files_only=place is not None, trust_remote_code=False)
    except EmbedderUnavailable:
        raise
    except ImportError as error:
        raise _not_installed(name, kind, error) from error
    except Exception as error:  # of four packages, with no common base
        if place is None:
            raise EmbedderUnavailable(
                f"There is no folder {name}, and the hub did not give a model of that name ({type(error).__name__}). "
                f"Check {kind}_model and the network, or fetch the model on another machine and give its folder."
            ) from error
        raise EmbedderUnavailable(
            f"The model in {place} cannot be loaded ({type(error).__name__}). "
            f"Fetch it anew, or choose another {kind}_model; models that bring code of their own are not run."
        ) from error


def _not_installed(name: str, kind: _Kind, error: ImportError) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"The model {name} needs the package {error.name or 'sentence_transformers'}, which cannot be imported. "
        + _INSTALL.format(kind=kind)
    )


def _prepare() -> None:
    """Limit the packages to the usable processors, and silence their progress bars."""
    # Stays set, since it is read whenever the process forks: without it each fork prints a warning.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with variables(HF_HUB_DISABLE_TELEMETRY="1"):
        import torch
        import transformers

    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(min(torch.get_num_threads(), usable_processors()))


def _cached_file(repository: str, file: str, kind: _Kind) -> Path | None:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError as error:
        raise _not_installed(repository, kind, error) from error
    from_cache = try_to_load_from_cache(repository, file)
    return Path(from_cache) if isinstance(from_cache, str) else None


_ENGINE = "sentence-transformers"

# A run holds so many characters at most, padding included, and so many texts: what a run needs of memory grows with
# both, and a question waits for a run to end.
_RUN_CHARACTERS = 32_000
_RUN_TEXTS = 64
# Characters that can matter for one token of the longest text: it keeps a megabyte from being tokenised whole.
_CHARACTERS_PER_TOKEN = 40
_UNLIMITED_TOKENS = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class _Encoder:
    """The loaded model, and the lock that lets one thread in: every run changes its tokenizer."""

    model: Any
    folder: ModelFolder
    max_characters: int
    running: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, texts: Sequence[str], *, query: bool) -> Any:
        prompt = self.folder.prompts.query if query else self.folder.prompts.document
        # Before version 5 there is one way for both, and the prompt makes the difference.
        encode = getattr(self.model, "encode_query" if query else "encode_document", self.model.encode)
        try:
            with self.running:
                return encode(
                    list(texts), prompt=prompt, batch_size=len(texts), convert_to_numpy=True, show_progress_bar=False
                )
        except Exception as error:  # torch's and the tokenizer's have no common base
            raise EmbeddingError(
                f"The model {self.folder.names[0]} failed on {len(texts)} texts ({type(error).__name__}). "
                "Try again; if it stays, choose another embedding_model."
            ) from error


class SentenceTransformerEmbedder(FolderEmbedder[_Encoder]):
    """Any model of sentence-transformers; loaded at the first call, on a GPU where there is one.

    Args:
        model: A folder, or a name on the hub such as "intfloat/multilingual-e5-small".
    """

    def __init__(self, model: str) -> None:
        super().__init__(_ENGINE, model)

    def _read_folder(self) -> ModelFolder:
        path = _find_model(self._model)
        if path is None:
            raise not_here(self._model)
        return read_model_folder(path, self._model)

    def _load(self, *, fetch: bool) -> _Encoder:
        model = _load_model(self._model, "embedding", fetch=fetch)
        tokens = getattr(model, "max_seq_length", None) or _UNLIMITED_TOKENS
        return _Encoder(model=model, folder=self._model_folder, max_characters=_CHARACTERS_PER_TOKEN * tokens)

    def _rows(self, encoder: _Encoder, texts: Sequence[str], *, query: bool) -> Vectors:
        cleaned_texts = [without_surrogates(text[: encoder.max_characters]) for text in texts]
        vectors = np.zeros((len(texts), 0), np.float32)
        for places in runs_by_length([len(text) for text in cleaned_texts], _RUN_CHARACTERS, most_texts=_RUN_TEXTS):
            rows = self._unit_rows(encoder.rows([cleaned_texts[place] for place in places], query=query), len(places))
            if not vectors.size:
                vectors = np.zeros((len(texts), rows.shape[1]), np.float32)
            vectors[places] = rows
        return vectors


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers.

    Args:
        model: A folder, or a name on the hub such as "BAAI/bge-reranker-v2-m3".
    """

    def __init__(self, model: str) -> None:
        self.name = f"{_ENGINE}/{model}"
        self.at_once = 10
        self._model = model
        self._loaded_model: Any = None
        self._running = threading.Lock()

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        """See `Reranker.score`."""
        pairs = [(without_surrogates(query), without_surrogates(text)) for text in texts]
        with self._running:
            if self._loaded_model is None:
                self._loaded_model = _load_model(self._model, "rerank", fetch=True)
            try:
                scores = self._loaded_model.predict(pairs, convert_to_numpy=True, show_progress_bar=False)
            except Exception as error:  # torch's and the tokenizer's have no common base
                raise EmbeddingError(
                    f"The model {self.name} failed on {len(pairs)} texts ({type(error).__name__}). "
                    "Choose another rerank_model if it stays."
                ) from error
        return scores_of_labels(self.name, np.asarray(scores, np.float64))

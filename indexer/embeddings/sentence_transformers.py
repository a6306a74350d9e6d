"""Owns the embedder that runs any model of sentence-transformers, from a folder or from the hub.

Invariants: making one and asking for its name, size or fingerprint loads nothing and uses no network; a question
never fetches a model, only an index run does; the lock is held for one run of texts at a time, so that a question
waits for no more than that; texts get the prompts that the model was trained with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from indexer.embeddings.hub import find_model, load_encoder
from indexer.embeddings.model_folder import ModelFolder, read_model_folder
from indexer.embeddings.vectors import empty_rows, unit_rows
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.types import Vectors

PREFIX = "sentence-transformers/"

# A run holds so many characters at most, padding included, and so many texts: what a run needs of memory grows with
# both, and a question waits for a run to end.
_RUN_CHARACTERS = 32_000
_RUN_TEXTS = 64
# Characters that can matter for one token of the longest text: it keeps a megabyte from being tokenised whole.
_CHARACTERS_PER_TOKEN = 40
_UNLIMITED_TOKENS = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    """The loaded model, and the lock that lets one thread in: its tokenizer is changed by every run."""

    model: Any
    folder: ModelFolder
    max_characters: int
    running: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, texts: Sequence[str], *, query: bool) -> Any:
        """Run the model once.

        Raises:
            EmbeddingError: It failed.
        """
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


class SentenceTransformerEmbedder:
    """Any model of sentence-transformers; loaded at the first call, on a GPU where there is one.

    Args:
        model: A folder, or a name on the hub such as "intfloat/multilingual-e5-small".
    """

    def __init__(self, model: str) -> None:
        self.name = PREFIX + model
        self._model = model
        self._folder: ModelFolder | None = None
        self._engine: _Engine | None = None
        self._learned_dimensions = 0
        self._reader: Callable[[str], bool] | None = None
        self._loading = threading.Lock()

    @property
    def dimensions(self) -> int:
        """See `Embedder`; by the model's files, 0 where they do not tell and no text was embedded yet."""
        try:
            return self._learned_dimensions or self._place().dimensions
        except EmbedderUnavailable:
            return 0

    @property
    def fingerprint(self) -> str:
        """See `Embedder`; the same wherever the model is and whatever it is called."""
        return f"sentence-transformers-{self._place().identity}"

    def reads(self, text: str) -> bool:
        """See `Embedder`; everything where its name or its vocabulary is of many scripts, else by its vocabulary."""
        try:
            self._reader = self._reader or self._place().reader()
        except EmbedderUnavailable:
            return True
        return self._reader(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`; fetches a model of the hub that is not on this machine."""
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        return self._embedded(self._loaded(fetch=True), texts, query=False)

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        row: Vectors = self._embedded(self._loaded(fetch=False), [text], query=True)[0]
        return row

    def _embedded(self, engine: _Engine, texts: Sequence[str], *, query: bool) -> Vectors:
        cleaned = [_readable(text, engine.max_characters) for text in texts]
        vectors: Vectors | None = None
        for places in _runs([len(text) for text in cleaned]):
            made = engine.rows([cleaned[place] for place in places], query=query)
            rows = unit_rows(self.name, made, texts=len(places), dimensions=self._learned_dimensions)
            self._learned_dimensions = rows.shape[1]
            if vectors is None:
                vectors = np.zeros((len(texts), rows.shape[1]), np.float32)
            vectors[places] = rows
        assert vectors is not None
        bad = empty_rows(vectors)
        if bad:
            raise EmbeddingError(
                f"The model {self.name} gave no usable vector (not finite, or of no length) "
                f"for {len(bad)} of {len(texts)} texts. Choose another embedding_model if it stays.",
                vectors=vectors,
            )
        return vectors

    def _place(self) -> ModelFolder:
        """The model on this machine; looked for until it is found."""
        folder = self._folder
        if folder is None:
            path = find_model(self._model)
            if path is None:
                raise EmbedderUnavailable(
                    f"The model {self._model} is not on this machine yet. Run `memory-service reindex` to fetch it."
                )
            folder = self._folder = read_model_folder(path, self._model)
        return folder

    def _loaded(self, *, fetch: bool) -> _Engine:
        if self._engine is None:
            with self._loading:
                if self._engine is None:
                    model = load_encoder(self._model, fetch=fetch)
                    tokens = getattr(model, "max_seq_length", None) or _UNLIMITED_TOKENS
                    self._engine = _Engine(
                        model=model, folder=self._place(), max_characters=_CHARACTERS_PER_TOKEN * tokens
                    )
        return self._engine


def _readable(text: str, max_characters: int) -> str:
    # Tokenizers refuse lone surrogates, which JSON can bring in.
    return text[:max_characters].encode("utf-8", "replace").decode("utf-8")


def _runs(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Split places 0..n-1 into runs of texts alike in length, so that little is padded."""
    run: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if run and (lengths[place] * (len(run) + 1) > _RUN_CHARACTERS or len(run) == _RUN_TEXTS):
            yield run
            run = []
        run.append(place)
    if run:
        yield run

"""The bundled embedders, for English and for all languages, and the choice between them by what is written.

Invariants: nothing is fetched; a model takes memory from its first text on and not before; a text gets the same vector
alone and in company, but for the last digits of a float; neither importing this module nor making an embedder imports
ONNX Runtime; its errors stop here, and name the model and its file.

Invariants of the choice: an index stays with the model that made it until most of the workspace is clearly in another
language, so it does not go to and fro; both models may serve at once, each the indexes that it made.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from indexer.embeddings.base import CachedEmbedder, Embedder
from indexer.embeddings.model_folder import NO_PROMPTS, Prompts
from indexer.embeddings.onnx_session import default_threads, pad_batch, run_in_threads, start_session
from indexer.embeddings.tokenization import (
    LEAST_PIECE,
    SentencePieces,
    Tokenizer,
    TokenizerFile,
    Vocabulary,
    load_tokenizer,
)
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.language.languages import ENGLISH_NAME, Writing
from indexer.types import Vectors

# Tokens in one run, padding included. Source: our measurement; 1,024 is 5 to 20 % slower, since what passes
# between the layers then leaves the processor's cache, and smaller runs gain nothing.
RUN_TOKENS = 256

MINILM_FOLDER = Path(__file__).parent / "minilm_model"
E5_FOLDER = Path(__file__).parent / "e5_model"
MINILM_SHA256 = "dc76711c8876414d261eb55812285d534ed40c83fe0403d487afb4186c7e004d"
E5_SHA256 = "a45a7119f1df2b30cad3af390d7d269477566703594f53ddd137639761bf6864"
E5_TOKENIZER_SHA256 = "1fd89137770e0ea17251673a85a35dc6cd78a69bb623f41bacd59798de6804bf"

_REINSTALL = "Reinstall memory-service, or choose another embedder."


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledModel:
    """Description of a bundled model, known before it is loaded.

    Attributes:
        name: Its name in settings.
        fingerprint: Identity of its vectors.
        dimensions: Length of its vectors.
        max_tokens: So many tokens of a text count.
        max_characters: So many characters are cut into tokens; it keeps a text of a megabyte from being read whole.
        padding: The token behind shorter texts.
        prompts: Texts put before what is embedded.
        least_piece: See `Vocabulary`.
        pieces: Name of the file of its tokenizer.
    """

    name: str
    fingerprint: str
    dimensions: int
    max_tokens: int
    max_characters: int = 20_000
    padding: int = 0
    prompts: Prompts = NO_PROMPTS
    least_piece: float = LEAST_PIECE
    pieces: str = "tokenizer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A loaded model. Thread-safe."""

    model: BundledModel
    session: Any
    tokenizer: Tokenizer
    vocabulary: Vocabulary

    def token_ids(self, text: str) -> Sequence[int]:
        """Token ids of a text, from the first special one to the last; at most `max_tokens`."""
        return self.tokenizer.ids(text[: self.model.max_characters])

    def vectors(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """Vectors of texts by their token ids."""
        ids, mask = pad_batch(batch, padding=self.model.padding)
        try:
            vectors: Vectors = self.session.run(["vectors"], {"ids": ids, "mask": mask})[0]
        except Exception as error:  # ONNX Runtime's exceptions have no common base of their own
            raise EmbeddingError(
                f"The {self.model.name} model failed on {len(batch)} texts ({type(error).__name__}). "
                "Try again; if it stays, reinstall onnxruntime."
            ) from error
        if not np.isfinite(vectors).all():
            raise EmbeddingError(
                f"The {self.model.name} model gave vectors that are not finite for a batch of {len(batch)} texts. "
                f"{_REINSTALL}"
            )
        return vectors


class BundledEmbedder:
    """An embedder without network or torch; its model is loaded at the first call.

    Args:
        model: Which one.
        folder: Folder of its files.
        threads: Runs at a time in one call; by default as many as the process has processors, at most 4.
    """

    # Those of a class of one model are known without making one.
    name: str
    dimensions: int
    fingerprint: str

    def __init__(self, model: BundledModel, folder: Path, *, threads: int | None = None) -> None:
        self._model = model
        self._threads = threads or default_threads()
        self._folder = folder
        self._engine: Engine | None = None
        self._loading = threading.Lock()

    def reads(self, text: str) -> bool:
        """See `Embedder`; by its vocabulary."""
        try:
            return self._load().vocabulary.reads(text)
        except EmbedderUnavailable:
            return True

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        return self._embed([f"{self._model.prompts.document}{text}" for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        row: Vectors = self._embed([f"{self._model.prompts.query}{text}"])[0]
        return row

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        if not texts:
            return vectors
        engine = self._load()
        tokens = [engine.token_ids(text) for text in texts]

        def fill(places: list[int]) -> None:
            vectors[places] = engine.vectors([tokens[place] for place in places])

        lengths = [len(ids) for ids in tokens]
        run_in_threads(lengths, fill, threads=self._threads, run_tokens=RUN_TOKENS, name=self.name)
        return vectors

    def _load(self) -> Engine:
        if self._engine is None:
            with self._loading:
                if self._engine is None:
                    self._engine = load_engine(self._model, self._folder)
        return self._engine


_MINILM = BundledModel(
    name="minilm",
    fingerprint=f"minilm-{MINILM_SHA256[:12]}-256",
    dimensions=384,
    # Of prose under 2,000 characters.
    max_tokens=256,
)
_E5 = BundledModel(
    name="multilingual-e5-small",
    # A vector depends on both files: the pieces of a text are the tokenizer's.
    fingerprint=f"e5-{E5_SHA256[:12]}-{E5_TOKENIZER_SHA256[:6]}-512",
    dimensions=384,
    max_tokens=512,
    padding=1,
    prompts=Prompts(query="query: ", document="passage: "),
    # The mark of a word's beginning is a piece of its own before a character that is not known.
    least_piece=0.75,
    pieces="tokenizer.model",
)


class MiniLM(BundledEmbedder):
    """English sentence embeddings by all-MiniLM-L6-v2; the model is loaded at the first call.

    Args:
        threads: Runs at a time in one call; by default as many as the process has processors, at most 4.
        folder: Folder of `model.onnx` and of its tokenizer, for an install that has them apart from the code.
    """

    name = _MINILM.name
    dimensions = _MINILM.dimensions
    fingerprint = _MINILM.fingerprint

    def __init__(self, *, threads: int | None = None, folder: Path = MINILM_FOLDER) -> None:
        super().__init__(_MINILM, folder, threads=threads)


class MultilingualE5(BundledEmbedder):
    """Sentence embeddings of a hundred languages by multilingual-e5-small; the model is loaded at the first call.

    Args:
        threads: See `MiniLM`.
        folder: See `MiniLM`.
    """

    name = _E5.name
    dimensions = _E5.dimensions
    fingerprint = _E5.fingerprint

    def __init__(self, *, threads: int | None = None, folder: Path = E5_FOLDER) -> None:
        super().__init__(_E5, folder, threads=threads)


def load_engine(model: BundledModel, folder: Path) -> Engine:
    """Load a model.

    Raises:
        EmbedderUnavailable: A file or a package is not there, or cannot be read.
    """
    graph, pieces = folder / "model.onnx", folder / model.pieces
    for path in (graph, pieces):
        if not path.is_file():
            raise EmbedderUnavailable(f"The {model.name} model's file {path} is missing. {_REINSTALL}")
    path = pieces
    try:
        tokenizer = _read_tokenizer(pieces, most=model.max_tokens)
        path = graph
        return Engine(
            model=model,
            session=start_session(graph),
            tokenizer=tokenizer,
            vocabulary=Vocabulary(tokenizer, least_piece=model.least_piece),
        )
    except ImportError as error:
        raise EmbedderUnavailable(
            f"The {model.name} model needs the package {error.name or 'onnxruntime'}, which cannot be imported. "
            "Install onnxruntime, tokenizers and sentencepiece, or choose another embedder."
        ) from error
    except Exception as error:  # both packages raise plain subclasses of Exception for a file they cannot read
        raise EmbedderUnavailable(
            f"The {model.name} model's file {path} cannot be read ({type(error).__name__}). {_REINSTALL}"
        ) from error


def _read_tokenizer(path: Path, *, most: int) -> Tokenizer:
    if path.suffix == ".model":
        return SentencePieces(path, most=most)
    tokenizer = load_tokenizer(path)
    tokenizer.enable_truncation(most)
    return TokenizerFile(tokenizer)


# At import, so that no two threads make one each; it holds nothing until its first text.
_ONE_MULTILINGUAL: Final = CachedEmbedder(MultilingualE5())


def multilingual_embedder() -> Embedder:
    """The bundled model for all languages, the same one for the whole process.

    Whoever judges a text by its vector asks this one, whatever model the index of a workspace is made with: it is
    loaded once, at its first text, by whichever thread comes first, and a text that was embedded lately is not embedded
    again. `embed_documents` is for texts that are compared with each other or stored, `embed_query` for a question that
    is held against such texts; the same words get another vector from each.
    """
    return _ONE_MULTILINGUAL


# Shares of texts that are not in English, beyond which an index is made for all languages, and below which one for all
# languages is made for English again. Between them an index stays as it is. English loses by that for all languages
# about as much as each other language gains: the majority decides. Source: tests/evals/paraphrases.py.
_MOSTLY_FOREIGN: Final = 0.5
_MOSTLY_ENGLISH: Final = 0.3


class LanguageChoice:
    """A model for English, another for all languages, and the rule which of both an index is made with.

    Args:
        english: The embedder for workspaces that are mostly in English.
        others: The embedder for the others.
    """

    name = "auto"

    def __init__(self, english: Embedder, other_embedders: Embedder) -> None:
        self.english = english
        self.others = other_embedders

    @property
    def models(self) -> tuple[Embedder, Embedder]:
        """Both embedders, that for English first."""
        return self.english, self.others

    def choose(self, writing: Writing, made_with: str) -> Embedder:
        """The embedder for an index.

        Args:
            writing: The languages of the workspace.
            made_with: Fingerprint of the model that made the index; empty where there is none yet.
        """
        least = _MOSTLY_ENGLISH if made_with == self.others.fingerprint else _MOSTLY_FOREIGN
        return self.others if writing.foreign > least and writing.shares else self.english

    def reason(self, embedder: Embedder, writing: Writing) -> str:
        """Why one of both was chosen for a workspace, as a share of what is written there."""
        if not writing.shares:
            return "nothing is written here yet"
        if embedder is self.english:
            return f"{1 - writing.foreign:.0%} of what is written here is {ENGLISH_NAME}"
        name, share = next(item for item in writing.shares.items() if item[0] != ENGLISH_NAME)
        if share < writing.foreign:
            return f"{writing.foreign:.0%} of what is written here is not {ENGLISH_NAME}, most of that {name}"
        return f"{share:.0%} of what is written here is {name}"

    def maker(self, made_with: str) -> Embedder | None:
        """The embedder of that fingerprint; None if neither has it."""
        return next((embedder for embedder in self.models if embedder.fingerprint == made_with), None)


def bundled_choice() -> LanguageChoice:
    """The choice between the two bundled models."""
    return LanguageChoice(CachedEmbedder(MiniLM()), multilingual_embedder())

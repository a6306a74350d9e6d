"""The files of a sentence-transformers model, read without running it, and the embedder that is made of them.

Invariants: reads only, and imports no engine, so a status takes no time; the identity is that of the content, so a
model that was moved or renamed is the same model, and one that was trained on is another. A model's own files go
before the tables of known names, in which the first row that fits counts.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import CJK_LETTERS
from indexer.embeddings.base import empty_rows, unit_rows
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.language.terms import is_spaced
from indexer.types import Vectors

_Loaded = TypeVar("_Loaded")

_CJK_LETTER = lazy_regex(f"[{CJK_LETTERS}]")
# A name tells at its ends and between - _ . / and :, never within a word.
_START, _END = r"(?:^|[-_./:])", r"(?=$|[-_./:])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Texts put before a text that is embedded.

    Attributes:
        query: Before a question.
        document: Before a stored text.
    """

    query: str = ""
    document: str = ""


NO_PROMPTS = Prompts()
_SEARCH = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

# Source: the model card of each family on huggingface.co, section "Usage".
_PROMPTS: tuple[tuple[str, Prompts], ...] = (
    # intfloat/multilingual-e5-large-instruct: documents get none.
    (r"e5-[\w.-]*instruct", Prompts(query=_INSTRUCT)),
    # intfloat/e5-base-v2, intfloat/multilingual-e5-small.
    (r"e5", Prompts(query="query: ", document="passage: ")),
    # BAAI/bge-base-zh-v1.5.
    (r"bge-(?:small|base|large)-zh", Prompts(query="为这个句子生成表示以用于检索相关文章：")),
    # BAAI/bge-base-en-v1.5; BAAI/bge-m3 wants none.
    (r"bge-(?:small|base|large)(?:-en)?", Prompts(query=_SEARCH)),
    # mixedbread-ai/mxbai-embed-large-v1.
    (r"mxbai-embed", Prompts(query=_SEARCH)),
    # Snowflake/snowflake-arctic-embed-l-v2.0, ollama's snowflake-arctic-embed2; then the first version.
    (r"arctic-embed(?:2|-[ml]-v2(?:\.0)?)", Prompts(query="query: ")),
    (r"arctic-embed", Prompts(query=_SEARCH)),
    # nomic-ai/nomic-embed-text-v1.5.
    (r"nomic-embed-text", Prompts(query="search_query: ", document="search_document: ")),
    # google/embeddinggemma-300m.
    (r"embeddinggemma", Prompts(query="task: search result | query: ", document="title: none | text: ")),
    # Qwen/Qwen3-Embedding-0.6B: documents get none.
    (r"qwen3-embedding", Prompts(query=_INSTRUCT.removesuffix(" "))),
)

# Source: the model cards and the providers' lists of languages.
_SCRIPTS: tuple[tuple[str, bool], ...] = (
    (r"multilingual|m3|m3e|zh|chinese|cn|labse|qwen\d*|bce|conan|acge|piccolo|xiaobu|text2vec", True),
    (r"arctic-embed2|arctic-embed-[ml]-v2|embeddinggemma|embedding-gemma|nomic-embed-text-v2", True),
    (r"text-embedding-(?:3|v\d)|embed-v4|gemini-embedding|mistral-embed|titan-embed-text-v2|doubao", True),
    (r"jina-embeddings-v[3-9]|voyage-(?:[3-9]|multilingual)|gte-qwen\w*|stella-[\w-]*zh|embedding-[23]", True),
    (r"en|english|minilm|mpnet|distilroberta|gtr|sentence-t5|instructor|e5|bge|gte|mxbai-embed", False),
    (r"arctic-embed|nomic-embed-text|jina-embeddings-v[12]|embed-english|granite-embedding", False),
)


def prompts_of(*names: str) -> Prompts:
    """Prompts of a model, by the first of its names that is known; empty if none is."""
    for name in names:
        for pattern, prompts in _PROMPTS:
            if _fits(pattern, name):
                return prompts
    return NO_PROMPTS


def reads_more_than_latin(*names: str) -> bool | None:
    """True if a model was trained on more scripts than Latin, by its names; None if they do not tell."""
    for name in names:
        for pattern, answer in _SCRIPTS:
            if _fits(pattern, name):
                return answer
    return None


def _fits(pattern: str, name: str) -> bool:
    return bool(re.search(f"{_START}(?:{pattern}){_END}", name[-200:].lower()))


# What decides the vectors of a text, beside the weights.
_DECIDING = lazy_regex(
    r"config\.json|modules\.json|config_sentence_transformers\.json|sentence_\w+_config\.json|added_tokens\.json"
    r"|special_tokens_map\.json|tokenizer(?:_config)?\.json|vocab\.\w+|merges\.txt|[\w.-]+\.model"
)
_WEIGHTS = (".safetensors", ".bin", ".pt")
# Copies of the model for other engines, and what git keeps.
OTHER_ENGINES = {"onnx", "openvino"}
_OTHER_FOLDERS = {*OTHER_ENGINES, ".git", ".cache"}
# So much of a file of weights is read: training changes numbers everywhere in it, so it shows in pieces all over.
_PIECES, _PIECE_BYTES = 256, 4096
_WHOLE_BYTES = 4 * _PIECES * _PIECE_BYTES

_QUERY_NAMES = ("query", "s2p_query", "search_query", "retrieval.query", "Retrieval-query", "web_search_query")
_DOCUMENT_NAMES = (
    "document", "passage", "corpus", "search_document", "retrieval.passage", "Retrieval-document",
)  # fmt: skip
_POOLINGS = {
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
_SAME_SIZE = {"Normalize", "Dropout", "LayerNorm"}

# An English vocabulary (BERT's) has 2.2 % of them, a Chinese one a third; larger ones than this are made for many
# scripts (mBERT 120,000, Qwen 152,000, XLM-R 250,000, against 30,000 to 50,000).
# Source: BERT's is counted in its file; the sizes are those of each model's config.json.
_CJK_SHARE = 0.05
_MANY_TOKENS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """A model on disk.

    Attributes:
        path: Its folder.
        dimensions: Length of its vectors; 0 where the files do not tell.
        prompts: Its prompts: from its files, else those of its family.
        identity: Hexadecimal digits that change with anything that could change a vector.
        names: Its names: as asked for, and in its own files.
    """

    path: Path
    dimensions: int
    prompts: Prompts
    identity: str
    names: tuple[str, ...]

    def reader(self) -> Callable[[str], bool]:
        """Test for texts without Latin letters that the model reads: by its name, else by its tokens."""
        many = reads_more_than_latin(*self.names)
        if many or (many is None and _has_tokens_for_more(self.path)):
            return lambda text: True
        from indexer.embeddings.tokenization import read_vocabulary

        vocabulary = read_vocabulary(self.path / "tokenizer.json")
        return vocabulary.reads if vocabulary else is_spaced


def read_model_folder(path: Path, name: str, *, weights: Sequence[Path] = ()) -> ModelFolder:
    """The model in a folder.

    Args:
        path: The folder.
        name: The name that was asked for: of the hub, or the folder's own.
        weights: Files below the folder that are loaded; none for those that sentence-transformers takes.

    Raises:
        EmbedderUnavailable: It cannot be read, or there is no model in it.
    """
    try:
        if not weights and not any((path / file).is_file() for file in ("modules.json", "config.json")):
            raise EmbedderUnavailable(
                f"The folder {path} holds no sentence-transformers model: neither modules.json nor config.json. "
                "Set embedding_model to the folder that has them."
            )
        own = str(read_table(path / "config.json").get("_name_or_path", ""))
        names = (name, own) if own else (name,)
        prompts = _prompts(read_table(path / "config_sentence_transformers.json"), names)
        return ModelFolder(
            path=path,
            dimensions=_dimensions(path),
            prompts=prompts,
            identity=_identity(path, prompts, weights),
            names=names,
        )
    except OSError as error:
        raise EmbedderUnavailable(
            f"The model folder {path} cannot be read ({error.strerror or type(error).__name__}). "
            "Check its permissions, or choose another embedding_model."
        ) from error


# "all-MiniLM-L6-v2" or "intfloat/multilingual-e5-small". Source: huggingface_hub, validate_repo_id.
HUB_NAME = lazy_regex(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?")


def folder_of(name: str) -> Path | None:
    """The folder of a name in the settings; None if there is no such folder."""
    try:
        place = Path(name).expanduser()
        return place.absolute() if place.is_dir() else None
    except (OSError, RuntimeError):
        # Too long for a file, not to be looked into, or in the home of a user who is not known.
        return None


def decides_vectors(name: str) -> bool:
    """True for a file of a repository that decides vectors: settings, tokenizer, and layers behind the encoder."""
    folder, _, file = name.rpartition("/")
    if folder in _OTHER_FOLDERS or "/" in folder:
        return False
    return bool(_DECIDING.fullmatch(file)) or (bool(folder) and file.endswith(".safetensors"))


def has_weights(path: Path) -> bool:
    """True if a folder has weights, without which nothing can be loaded from it."""
    try:
        return any(kind == "weights" for _, kind in _deciding_files(path))
    except OSError:
        return False


def read_table(path: Path) -> dict[str, Any]:
    """The object in a JSON file of a model; empty without one.

    Raises:
        EmbedderUnavailable: It is no JSON.
    """
    json = _json(path)
    return json if isinstance(json, dict) else {}


def read_modules(path: Path) -> list[tuple[str, Path]]:
    """Kinds and folders of the modules that a text goes through in a model's folder; empty for a plain encoder."""
    modules = _json(path / "modules.json")
    return [
        (str(module.get("type", "")).rpartition(".")[2], path / str(module.get("path", "")))
        for module in (modules if isinstance(modules, list) else ())
        if isinstance(module, dict)
    ]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise EmbedderUnavailable(
            f"The model's file {path} is no JSON. Fetch the model anew, or choose another embedding_model."
        ) from error


# --- prompts ---------------------------------------------------------------------------------------------------


def _prompts(config: dict[str, Any], names: tuple[str, ...]) -> Prompts:
    prompts = config.get("prompts")
    own = {key: text for key, text in prompts.items() if isinstance(text, str)} if isinstance(prompts, dict) else {}
    if not any(own.values()):
        return prompts_of(*names)
    default = own.get(str(config.get("default_prompt_name")), "")
    return Prompts(query=_first(own, _QUERY_NAMES, default), document=_first(own, _DOCUMENT_NAMES, default))


def _first(prompts: dict[str, str], names: tuple[str, ...], default: str) -> str:
    return next((prompts[name] for name in names if name in prompts), default)


# --- dimensions ------------------------------------------------------------------------------------------------


def _dimensions(path: Path) -> int:
    """Length of the vectors, followed through the modules; 0 if one of them is unknown."""
    whole = _whole(read_table(path / "config.json").get("hidden_size"))
    size = whole
    for kind, folder in read_modules(path):
        size = _size_after(kind, folder, size)
    cut_whole = _whole(read_table(path / "config_sentence_transformers.json").get("truncate_dim"))
    return min(size, cut_whole) if cut_whole else size


def _size_after(kind: str, folder: Path, size: int) -> int:
    config = read_table(folder / "config.json")
    if kind == "Transformer":
        return _whole(config.get("hidden_size")) or size
    if kind == "Pooling":
        return len(_pooling(config)) * (
            _whole(config.get("embedding_dimension")) or _whole(config.get("word_embedding_dimension"))
        )
    if kind == "Dense":
        return _whole(config.get("out_features"))
    return size if kind in _SAME_SIZE else 0


def pooling_modes(path: Path) -> tuple[tuple[str, ...], bool]:
    """How the vectors of a text's tokens become one, and whether the tokens of a prompt count, by a model's files.

    The modes are "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean" and "lasttoken"; with several, their
    vectors stand one behind the other.
    """
    folder = next((folder for kind, folder in read_modules(path) if kind == "Pooling"), None)
    config = read_table(folder / "config.json") if folder else {}
    return _pooling(config), config.get("include_prompt") is not False


def _pooling(config: dict[str, Any]) -> tuple[str, ...]:
    pooling_mode = config.get("pooling_mode")
    modes = [pooling_mode] if isinstance(pooling_mode, str) else pooling_mode if isinstance(pooling_mode, list) else []
    texts = tuple(map(str, modes)) or tuple(name for key, name in _POOLINGS.items() if config.get(key) is True)
    return texts or ("mean",)


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


# --- scripts ---------------------------------------------------------------------------------------------------


def _has_tokens_for_more(path: Path) -> bool:
    count = cjk = 0
    for token in _tokens(path):
        count += 1
        cjk += bool(_CJK_LETTER.search(token))
    return count > _MANY_TOKENS or cjk > _CJK_SHARE * count > 0


def _tokens(path: Path) -> Iterator[str]:
    """A vocabulary from tokenizer.json or vocab.txt."""
    model = read_table(path / "tokenizer.json").get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if vocabulary:
        # A dictionary of tokens, or for unigrams a list of tokens with their scores.
        yield from (entry if isinstance(entry, str) else str(entry[0]) for entry in vocabulary)
    elif (path / "vocab.txt").is_file():
        yield from (path / "vocab.txt").read_text("utf-8", "replace").splitlines()


# --- identity --------------------------------------------------------------------------------------------------


def _identity(path: Path, prompts: Prompts, weights: Sequence[Path]) -> str:
    digest = hashlib.blake2b(json.dumps([prompts.query, prompts.document]).encode(), digest_size=12)
    deciding = _deciding_files(path)
    if weights:
        deciding = [(file, kind) for file, kind in deciding if kind == "text" or file.parent != path]
        deciding += [(file, "weights") for file in weights]
    for file, kind in deciding:
        size = file.stat().st_size
        digest.update(f"{file.relative_to(path).as_posix()} {size}\n".encode("utf-8", "surrogateescape"))
        with file.open("rb") as content:
            if kind == "text" or size <= _WHOLE_BYTES:
                digest.update(content.read())
                continue
            for piece in range(_PIECES):
                content.seek(piece * (size - _PIECE_BYTES) // (_PIECES - 1))
                digest.update(content.read(_PIECE_BYTES))
    return digest.hexdigest()


def _deciding_files(path: Path) -> list[tuple[Path, Literal["text", "weights"]]]:
    """Files that decide the vectors: the folder's own and those of its modules, one level below."""
    folders = [path, *sorted(child for child in path.iterdir() if child.is_dir() and child.name not in _OTHER_FOLDERS)]
    pairs: list[tuple[Path, Literal["text", "weights"]]] = []
    for folder in folders:
        files = sorted(file for file in folder.iterdir() if file.is_file())
        pairs += [(file, "text") for file in files if _DECIDING.fullmatch(file.name)]
        # Of weights in two formats the first is loaded.
        formats = [[file for file in files if file.suffix == suffix] for suffix in _WEIGHTS]
        pairs += [(file, "weights") for file in next(filter(None, formats), [])]
    return pairs


# --- embedders -------------------------------------------------------------------------------------------------


def not_here(model: str) -> EmbedderUnavailable:
    """The error for a model of the hub that a question needs and nobody has fetched."""
    return EmbedderUnavailable(
        f"The model {model} is not on this machine yet. Run `memory-service reindex` to fetch it."
    )


class FolderEmbedder(ABC, Generic[_Loaded]):
    """An embedder whose model is a folder on this machine, loaded at the first text; only documents fetch it.

    Args:
        engine: What runs the model, such as "onnx": the beginning of its name in the settings and of its fingerprint.
        model: The folder, or a name on the hub.
    """

    def __init__(self, engine: str, model: str) -> None:
        self.name = f"{engine}/{model}"
        self._engine = engine
        self._model = model
        self._folder: ModelFolder | None = None
        self._loaded_model: _Loaded | None = None
        self._learned_dimensions = 0
        self._reader: Callable[[str], bool] | None = None
        self._loading = threading.Lock()

    @abstractmethod
    def _read_folder(self) -> ModelFolder:
        """The files of the model; `not_here` where they are not on this machine."""

    @abstractmethod
    def _load(self, *, fetch: bool) -> _Loaded:
        """Load the model; fetch it from the hub first, if that is allowed and it is not on this machine."""

    @abstractmethod
    def _rows(self, loaded_value: _Loaded, texts: Sequence[str], *, query: bool) -> Vectors:
        """Rows of texts as `_unit_rows` gives them, with the prompt of a question or of a stored text before each."""

    @property
    def _model_folder(self) -> ModelFolder:
        folder = self._folder = self._folder or self._read_folder()
        return folder

    @property
    def dimensions(self) -> int:
        """See `Embedder`; from the model's files, 0 if they do not tell before the first text."""
        try:
            return self._learned_dimensions or self._model_folder.dimensions
        except EmbedderUnavailable:
            return 0

    @property
    def fingerprint(self) -> str:
        """See `Embedder`; independent of the model's place and name."""
        return f"{self._engine}-{self._model_folder.identity}"

    def reads(self, text: str) -> bool:
        """See `Embedder`; by the name of the model, else by its vocabulary."""
        try:
            self._reader = self._reader or self._model_folder.reader()
        except EmbedderUnavailable:
            return True
        return self._reader(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`; fetches a model of the hub that is not on this machine."""
        return self._embed(texts, query=False) if texts else np.zeros((0, self.dimensions), np.float32)

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        row: Vectors = self._embed([text], query=True)[0]
        return row

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        if self._loaded_model is None:
            with self._loading:
                if self._loaded_model is None:
                    self._loaded_model = self._load(fetch=not query)
        vectors = self._rows(self._loaded_model, texts, query=query)
        if bad := empty_rows(vectors):
            raise EmbeddingError(
                f"The model {self.name} gave no usable vector (not finite, or of no length) "
                f"for {len(bad)} of {len(texts)} texts. Choose another embedding_model if it stays.",
                vectors=vectors,
            )
        return vectors

    def _unit_rows(self, value: Any, texts: int) -> Vectors:
        """See `unit_rows`; the first ones tell the length of all."""
        rows = unit_rows(self.name, value, texts=texts, dimensions=self._learned_dimensions)
        self._learned_dimensions = rows.shape[1]
        return rows

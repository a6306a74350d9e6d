"""Owns what the files of a sentence-transformers model say without being run: size, prompts, scripts, identity.

Invariants: reads only, and imports no engine, so that a status takes no time; the identity is that of the content,
so a model that was moved or renamed is the same model, and one that was trained on is another.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from indexer.analysis import is_spaced
from indexer.embeddings.families import Prompts, prompts_of, reads_more_than_latin
from indexer.embeddings.vocabulary import read_vocabulary
from indexer.errors import EmbedderUnavailable

# What decides the vectors of a text, beside the weights.
_DECIDING = re.compile(
    r"config\.json|modules\.json|config_sentence_transformers\.json|sentence_\w+_config\.json|added_tokens\.json"
    r"|special_tokens_map\.json|tokenizer(?:_config)?\.json|vocab\.\w+|merges\.txt|[\w.-]+\.model"
)
_WEIGHTS = (".safetensors", ".bin", ".pt")
# Copies of the model for other engines, and what git keeps.
_OTHER_FOLDERS = {"onnx", "openvino", ".git", ".cache"}
# So much of a file of weights is read: training changes numbers everywhere in it, so it shows in pieces all over.
_PIECES, _PIECE_BYTES = 256, 4096
_WHOLE_BYTES = 4 * _PIECES * _PIECE_BYTES

_QUERY_NAMES = ("query", "s2p_query", "search_query", "retrieval.query", "Retrieval-query", "web_search_query")
_DOCUMENT_NAMES = (
    "document", "passage", "corpus", "search_document", "retrieval.passage", "Retrieval-document",
)  # fmt: skip
_POOLINGS = (
    "pooling_mode_cls_token", "pooling_mode_max_tokens", "pooling_mode_mean_tokens",
    "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken",
)  # fmt: skip
_SAME_SIZE = {"Normalize", "Dropout", "LayerNorm"}

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")
# An English vocabulary (BERT's) has 2.2 % of them, a Chinese one a third; larger ones than this are made for many
# scripts (mBERT 120,000, Qwen 152,000, XLM-R 250,000, against 30,000 to 50,000).
# Source: BERT's is counted in its file; the sizes are those of each model's config.json.
_CJK_SHARE = 0.05
_MANY_TOKENS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """A model on disk.

    Attributes:
        path: Where it is.
        dimensions: Length of its vectors; 0 where the files do not tell.
        prompts: What it wants before a text: as its files say, else as its family is known to.
        identity: Hexadecimal digits that change with anything that could change a vector.
        names: What it is called: as asked for, and by its own files.
    """

    path: Path
    dimensions: int
    prompts: Prompts
    identity: str
    names: tuple[str, ...]

    def reader(self) -> Callable[[str], bool]:
        """Judge of whether it reads a text without Latin letters: by its name, else by the tokens that it has."""
        many = reads_more_than_latin(*self.names)
        if many or (many is None and _has_tokens_for_more(self.path)):
            return lambda text: True
        vocabulary = read_vocabulary(self.path / "tokenizer.json")
        return vocabulary.reads if vocabulary else is_spaced


def read_model_folder(path: Path, name: str) -> ModelFolder:
    """What a folder says.

    Args:
        path: The folder.
        name: What it was asked for as: a hub name, or the folder's own.

    Raises:
        EmbedderUnavailable: It cannot be read, or there is no model in it.
    """
    try:
        if not any((path / file).is_file() for file in ("modules.json", "config.json")):
            raise EmbedderUnavailable(
                f"The folder {path} holds no sentence-transformers model: neither modules.json nor config.json. "
                "Set embedding_model to the folder that has them."
            )
        own = str(_table(path / "config.json").get("_name_or_path", ""))
        names = (name, own) if own else (name,)
        prompts = _prompts(_table(path / "config_sentence_transformers.json"), names)
        return ModelFolder(
            path=path,
            dimensions=_dimensions(path),
            prompts=prompts,
            identity=_identity(path, prompts),
            names=names,
        )
    except OSError as error:
        raise EmbedderUnavailable(
            f"The model folder {path} cannot be read ({error.strerror or type(error).__name__}). "
            "Check its permissions, or choose another embedding_model."
        ) from error


def has_weights(path: Path) -> bool:
    """Whether there are weights in a folder, without which nothing can be loaded from it."""
    try:
        return any(kind == "weights" for _, kind in _deciding_files(path))
    except OSError:
        return False


def _table(path: Path) -> dict[str, Any]:
    found = _json(path)
    return found if isinstance(found, dict) else {}


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
    saved = config.get("prompts")
    own = {key: text for key, text in saved.items() if isinstance(text, str)} if isinstance(saved, dict) else {}
    if not any(own.values()):
        return prompts_of(*names)
    default = own.get(str(config.get("default_prompt_name")), "")
    return Prompts(query=_first(own, _QUERY_NAMES, default), document=_first(own, _DOCUMENT_NAMES, default))


def _first(prompts: dict[str, str], names: tuple[str, ...], default: str) -> str:
    return next((prompts[name] for name in names if name in prompts), default)


# --- dimensions ------------------------------------------------------------------------------------------------


def _dimensions(path: Path) -> int:
    """Length of the vectors, followed through the modules; 0 where one of them is not known here."""
    modules = _json(path / "modules.json")
    hidden = _whole(_table(path / "config.json").get("hidden_size"))
    size = hidden
    for module in modules if isinstance(modules, list) else ():
        size = _size_after(str(module.get("type", "")).rpartition(".")[2], path / str(module.get("path", "")), size)
    cut = _whole(_table(path / "config_sentence_transformers.json").get("truncate_dim"))
    return min(size, cut) if cut else size


def _size_after(kind: str, folder: Path, size: int) -> int:
    config = _table(folder / "config.json")
    if kind == "Transformer":
        return _whole(config.get("hidden_size")) or size
    if kind == "Pooling":
        modes = sum(config.get(mode) is True for mode in _POOLINGS)
        named = config.get("pooling_mode")
        modes = len(named) if isinstance(named, list) else max(modes, 1)
        return modes * (_whole(config.get("embedding_dimension")) or _whole(config.get("word_embedding_dimension")))
    if kind == "Dense":
        return _whole(config.get("out_features"))
    return size if kind in _SAME_SIZE else 0


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


# --- scripts ---------------------------------------------------------------------------------------------------


def _has_tokens_for_more(path: Path) -> bool:
    count = cjk = 0
    for token in _tokens(path):
        count += 1
        cjk += bool(_CJK.search(token))
    return count > _MANY_TOKENS or cjk > _CJK_SHARE * count > 0


def _tokens(path: Path) -> Iterator[str]:
    """A vocabulary, as tokenizer.json or vocab.txt has it."""
    model = _table(path / "tokenizer.json").get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if vocabulary:
        # A dictionary of tokens, or for unigrams a list of tokens with their scores.
        yield from (entry if isinstance(entry, str) else str(entry[0]) for entry in vocabulary)
    elif (path / "vocab.txt").is_file():
        yield from (path / "vocab.txt").read_text("utf-8", "replace").splitlines()


# --- identity --------------------------------------------------------------------------------------------------


def _identity(path: Path, prompts: Prompts) -> str:
    digest = hashlib.blake2b(json.dumps([prompts.query, prompts.document]).encode(), digest_size=12)
    for file, kind in _deciding_files(path):
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
    """What decides the vectors: beside the folder's own files those one level below it, of its modules."""
    folders = [path, *sorted(child for child in path.iterdir() if child.is_dir() and child.name not in _OTHER_FOLDERS)]
    found: list[tuple[Path, Literal["text", "weights"]]] = []
    for folder in folders:
        files = sorted(file for file in folder.iterdir() if file.is_file())
        found += [(file, "text") for file in files if _DECIDING.fullmatch(file.name)]
        # Of weights in two formats the first is loaded.
        formats = [[file for file in files if file.suffix == suffix] for suffix in _WEIGHTS]
        found += [(file, "weights") for file in next(filter(None, formats), [])]
    return found

"""The default embedder: all-MiniLM-L6-v2 in ONNX Runtime, from the files in `minilm_model/`.

Invariants: nothing is fetched; a text gets the same vector alone and in company, but for the last digits of a float;
neither importing this module nor making a `MiniLM` imports ONNX Runtime; its errors stop here.

`usable_processors` and `Vocabulary` serve other models too. A limit of processors that cannot be read does not count.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from indexer.embeddings.base import runs_by_length, without_surrogates
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.lru import LRU
from indexer.providers.environment import variables
from indexer.types import Vectors

_CGROUPS = Path("/sys/fs/cgroup")


def usable_processors(*, cgroups: Path = _CGROUPS) -> int:
    """Number of processors that this process may use: its affinity, and the quota of its control group.

    A container often has fewer than the machine.

    Args:
        cgroups: Folder where the control groups are mounted.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    share = _quota(cgroups)
    return count if share is None else max(1, min(count, math.ceil(share)))


def _quota(cgroups: Path) -> float | None:
    """Processors of the group's quota; None without one. Source: kernel.org, admin-guide/cgroup-v2, cpu.max."""
    found = _words(cgroups / "cpu.max") or [
        *_words(cgroups / "cpu" / "cpu.cfs_quota_us"),
        *_words(cgroups / "cpu" / "cpu.cfs_period_us"),
    ]
    if len(found) != 2 or not all(word.isdigit() for word in found) or int(found[1]) == 0:
        return None
    return int(found[0]) / int(found[1])


def _words(path: Path) -> list[str]:
    try:
        return path.read_text("ascii").split()
    except (OSError, ValueError):
        return []


# Characters of a text for each piece of it. BERT's English vocabulary cuts English into pieces of 4 characters,
# accented Latin into 1.5 to 2.7; of Cyrillic, Greek, Arabic, Hebrew, Devanagari and Chinese it has the letters: 1.0 to
# 1.15.
# Source: our measurement, tests/indexer/embeddings/test_vocabulary.py.
_LEAST_PIECE = 1.5
_KEPT_ANSWERS = 64


class Vocabulary:
    """Pieces of text that a model was trained on. Thread-safe.

    Args:
        tokenizer: A `tokenizers.Tokenizer` that pads nothing.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._unknown = getattr(tokenizer.model, "unk_token", None)
        # Each search asks again, about the same samples of other scripts.
        self._known: LRU[str, bool] = LRU(_KEPT_ANSWERS)

    def reads(self, text: str) -> bool:
        """True if the pieces of a text are longer than single letters."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._reads(text)
        return known

    def _reads(self, text: str) -> bool:
        made = self._tokenizer.encode(without_surrogates(text), add_special_tokens=False)
        pieces = zip(made.tokens, made.offsets, strict=True)
        sizes = [end - start if token != self._unknown else 0 for token, (start, end) in pieces]
        return sum(sizes) >= _LEAST_PIECE * len(sizes)


def read_vocabulary(path: Path) -> Vocabulary | None:
    """The vocabulary in a file such as tokenizer.json; None if it cannot be read."""
    try:
        return Vocabulary(_load_tokenizer(path))
    except Exception:  # a package that is not there, and tokenizers' plain subclasses of Exception
        return None


def _load_tokenizer(path: Path) -> Any:
    """The tokenizer in a file such as tokenizer.json, without padding."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    return tokenizer


MODEL_SHA256 = "dc76711c8876414d261eb55812285d534ed40c83fe0403d487afb4186c7e004d"
MAX_TOKENS = 256
DIMENSIONS = 384

_FOLDER = Path(__file__).parent / "minilm_model"

# 256 tokens of prose are under 2,000 characters. The cut keeps a text of a megabyte from being tokenised whole.
_MAX_CHARACTERS = 20_000

# Tokens in one run, padding included. Source: our measurement; 1,024 is 5 to 20 % slower, since what passes
# between the layers then leaves the processor's cache, and smaller runs gain nothing.
_RUN_TOKENS = 256

# Beyond that many runs at a time, memory's bandwidth is the limit, and the processor is taken from others.
_MAX_THREADS = 4

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
        ids, mask = _padded(batch)
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
        self._threads = threads or min(usable_processors(), _MAX_THREADS)
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
        # Few texts are shared out, too: who waits for them waits for the slowest run.
        share = math.ceil(sum(lengths) / self._threads) + max(lengths) - 1
        runs = list(runs_by_length(lengths, min(_RUN_TOKENS, share)))
        if len(runs) == 1:
            fill(runs[0])
            return vectors
        with ThreadPoolExecutor(min(self._threads, len(runs)), "minilm") as pool:
            for _ in pool.map(fill, runs):
                pass
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
        return _Engine(session=_session(folder / "model.onnx"), tokenizer=tokenizer, vocabulary=Vocabulary(tokenizer))
    except ImportError as error:
        raise EmbedderUnavailable(
            f"The minilm model needs the package {error.name or 'onnxruntime'}, which cannot be imported. "
            "Install onnxruntime and tokenizers, or choose another embedder."
        ) from error
    except Exception as error:  # both packages raise plain subclasses of Exception for a file they cannot read
        raise EmbedderUnavailable(
            f"The minilm model in {folder} cannot be read ({type(error).__name__}). {_REINSTALL}"
        ) from error


def _session(path: Path) -> Any:
    # From 1.29 on it keeps a device id and a record of its use below ~/.cache and sends them home, unless told not
    # to before it starts: nothing leaves this machine. Source: github.com/microsoft/onnxruntime/pull/27379
    with variables(ORT_DISABLE_TELEMETRY="1"):
        import onnxruntime

        return _started(onnxruntime, path)


def _started(onnxruntime: Any, path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    # One thread for a run, and several runs at a time. Two threads for one run spin while they wait for each other: on
    # two busy cores that is 1.6 times the processor time and 1.7 times the wait; a query on an idle machine takes
    # 2.4 ms by two and 3.4 ms by one. Source: our measurement.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _tokenizer(path: Path) -> Any:
    tokenizer = _load_tokenizer(path)
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def _padded(batch: Sequence[Sequence[int]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    shape = (len(batch), max(len(ids) for ids in batch))
    padded, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int32)
    for row, ids in enumerate(batch):
        padded[row, : len(ids)] = ids
        mask[row, : len(ids)] = 1
    return padded, mask

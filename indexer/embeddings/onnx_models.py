"""Embedder and reranker for any encoder in ONNX format, from a folder or from the Hugging Face hub, without torch.

Invariants: making one and asking for its name, size or fingerprint loads nothing and uses no network; only an index run
fetches an embedding model, a question never does, and a reranker is fetched behind its first question; code that comes
with a model is never run; texts get the prompts, the pooling and the layers that the model's own files tell, and what
is not known here is refused, never left out; a text is read alone or in company with the same result, but for graphs
that are quantised by batch. ONNX Runtime's exceptions end here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.embeddings.base import without_surrogates
from indexer.embeddings.model_folder import (
    FolderEmbedder,
    ModelFolder,
    not_here,
    pooling_modes,
    read_model_folder,
    read_modules,
    read_table,
)
from indexer.embeddings.onnx_files import ModelKind, OnnxFiles, fetch_onnx_files, find_onnx_files
from indexer.embeddings.onnx_session import default_threads, pad_batch, run_in_threads, start_session
from indexer.embeddings.reranking import Scores, scores_of_labels
from indexer.embeddings.tokenization import load_tokenizer, panics_as_errors
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.types import Vectors

_ENGINE = "onnx"

# Tokens in one run, padding included; as for the bundled model, of which most encoders are larger relatives.
_RUN_TOKENS = 512
# Where a model's files do not tell how much it reads, and the most that is read of any.
_USUAL_TOKENS, _MOST_TOKENS = 512, 8_192
# Characters that can matter for one token of the longest text: it keeps a megabyte from being tokenised whole.
_CHARACTERS_PER_TOKEN = 40
# Models that number their positions from behind the padding's.
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet"}

_Array = NDArray[Any]
_Layer = Callable[[_Array], _Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graph:
    """A loaded graph with its tokenizer. Thread-safe.

    Attributes:
        name: Where it is.
        inputs: Names of what it takes, with their types.
        output: Name of what is read of what it gives.
        rank: Dimensions of that: 3 for a vector of each token, 2 for one of each text.
        max_characters: So much of a text is read.
        padding: The token behind shorter texts.
        lowers: Whether texts are written small first.
        tells_texts_apart: Whether the tokens of a second text have the type 1, or 0 as those of the first.
    """

    name: str
    session: Any
    tokenizer: Any
    inputs: dict[str, Any]
    output: str
    rank: int
    max_characters: int
    padding: int
    lowers: bool
    tells_texts_apart: bool

    def encode(self, text: str, pair: str | None = None) -> Any:
        """The tokens of a text, or of two that are read together."""
        cut_text = without_surrogates(text[: self.max_characters])
        cut_text = cut_text.lower() if self.lowers else cut_text
        try:
            with panics_as_errors():
                return self.tokenizer.encode(cut_text, pair and without_surrogates(pair[: self.max_characters]))
        except Exception as error:  # tokenizers raises no others
            raise EmbeddingError(
                f"The tokenizer of the model {self.name} failed on a text ({type(error).__name__}). "
                "Fetch the model anew, or choose another one."
            ) from error

    def run(self, encoded_items: Sequence[Any]) -> tuple[_Array, _Array]:
        """The output of the graph for tokens, and which of them count, of shape (texts, longest)."""
        ids, mask = pad_batch([value.ids for value in encoded_items], padding=self.padding)
        rows: dict[str, _Array] = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self.inputs:
            rows["token_type_ids"] = (
                pad_batch([value.type_ids for value in encoded_items])[0] if self.tells_texts_apart else 0 * ids
            )
        if "position_ids" in self.inputs:
            rows["position_ids"] = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
        feed = {name: rows[name].astype(kind) for name, kind in self.inputs.items()}
        return self.session.run([self.output], feed)[0], mask


_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32, "tensor(bool)": np.bool_}
_TOKEN_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}


def _load_graph(files: OnnxFiles, kind: ModelKind, *, outputs: Sequence[str]) -> _Graph:
    """Load a model.

    Args:
        files: Its files.
        kind: What it is for.
        outputs: Names of outputs by preference; else the first is read.

    Raises:
        EmbedderUnavailable: It cannot be read, or it does not read text.
    """
    try:
        tokenizer = load_tokenizer(files.tokenizer)
        most = _max_tokens(files, tokenizer, kind)
        tokenizer.enable_truncation(most)
        session = start_session(files.graph)
        inputs = {one_input.name: one_input.type for one_input in session.get_inputs()}
        given_values = {one_output.name: len(one_output.shape) for one_output in session.get_outputs()}
    except ImportError as error:
        raise EmbedderUnavailable(
            f"A model in ONNX format needs the package {error.name or 'onnxruntime'}, which cannot be imported. "
            f"Install onnxruntime and tokenizers, or choose another {kind}_model."
        ) from error
    except EmbedderUnavailable:
        raise
    except Exception as error:  # both packages raise plain subclasses of Exception for a file they cannot read
        raise EmbedderUnavailable(
            f"The model {files.graph} cannot be loaded ({type(error).__name__}). "
            f"Fetch it anew, or choose another {kind}_model."
        ) from error
    foreign = [name for name in inputs if name not in _TOKEN_INPUTS or inputs[name] not in _TYPES]
    if foreign or "input_ids" not in inputs:
        raise EmbedderUnavailable(
            f"The model {files.graph} is no encoder of texts: it takes {', '.join(foreign or inputs)}. "
            f"Choose another {kind}_model."
        )
    output = next((name for name in outputs if name in given_values), next(iter(given_values)))
    return _Graph(
        name=str(files.graph),
        session=session,
        tokenizer=tokenizer,
        inputs={name: _TYPES[kind] for name, kind in inputs.items()},
        output=output,
        rank=given_values[output],
        max_characters=_CHARACTERS_PER_TOKEN * most,
        padding=_padding(files, tokenizer),
        lowers=read_table(files.folder / "sentence_bert_config.json").get("do_lower_case") is True,
        tells_texts_apart=_tells_texts_apart(read_table(files.tokenizer.with_name("tokenizer_config.json"))),
    )


def _max_tokens(files: OnnxFiles, tokenizer: Any, kind: ModelKind) -> int:
    """Tokens of the longest text that is read whole. Source: sentence_transformers, Transformer.max_seq_length."""
    config = read_table(files.folder / "config.json")
    model_max_length = [read_table(files.tokenizer.with_name("tokenizer_config.json")).get("model_max_length")]
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int):
        model_max_length.append(positions - 2 * (config.get("model_type") in _OFFSET_POSITIONS))
    own = read_table(files.folder / "sentence_bert_config.json").get("max_seq_length") if kind == "embedding" else None
    if isinstance(own, int):
        model_max_length.append(own)
    elif not any(isinstance(most, int) for most in model_max_length) and tokenizer.truncation:
        model_max_length.append(tokenizer.truncation["max_length"])
    mosts = [most for most in model_max_length if isinstance(most, int) and most > 0]
    return min(_MOST_TOKENS, *mosts) if mosts else _USUAL_TOKENS


def _padding(files: OnnxFiles, tokenizer: Any) -> int:
    pad_token_id = read_table(files.folder / "config.json").get("pad_token_id")
    return pad_token_id if isinstance(pad_token_id, int) and 0 <= pad_token_id < tokenizer.get_vocab_size() else 0


def _tells_texts_apart(config: dict[str, Any]) -> bool:
    """By the inputs that a tokenizer is said to make. Source: transformers 5, TokenizersBackend.model_input_names."""
    model_input_names = config.get("model_input_names")
    return (
        "token_type_ids" in model_input_names
        if isinstance(model_input_names, list)
        else config.get("tokenizer_class") != "TokenizersBackend"
    )


# --- vectors ---------------------------------------------------------------------------------------------------


def _pool(mode: str, tokens: _Array, mask: _Array) -> _Array:
    """One vector of each text from those of its tokens. Source: sentence_transformers, Pooling.forward.

    Args:
        mode: A name of `pooling_modes`.
        tokens: Shape (texts, longest, size).
        mask: Which tokens count, of shape (texts, longest); none of a text for zeros.
    """
    rows, weights = np.arange(len(tokens)), mask[:, :, None].astype(tokens.dtype)
    total = np.maximum(weights.sum(axis=1), 1)
    if mode == "cls":
        new_rows = tokens[rows, mask.argmax(axis=1)]
    elif mode == "lasttoken":
        new_rows = tokens[rows, mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)]
    elif mode == "max":
        new_rows = np.where(weights > 0, tokens, -1e9).max(axis=1)
    elif mode == "mean_sqrt_len_tokens":
        new_rows = (tokens * weights).sum(axis=1) / np.sqrt(total)
    elif mode == "weightedmean":
        weights = weights * np.arange(1, mask.shape[1] + 1, dtype=tokens.dtype)[None, :, None]
        new_rows = (tokens * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    elif mode == "mean":
        new_rows = (tokens * weights).sum(axis=1) / total
    else:
        raise EmbedderUnavailable(f"The pooling {mode} of a model is not known here. Choose another embedding_model.")
    return np.asarray(new_rows)


def _layers(folder: Path) -> tuple[_Layer, ...]:
    """The layers of a model behind its pooling, by its modules.json.

    Raises:
        EmbedderUnavailable: A layer is not known here.
    """
    layers: list[_Layer] = []
    for kind, place in read_modules(folder):
        if kind == "Dense":
            layers.append(_dense(place))
        elif kind not in ("Transformer", "Pooling", "Normalize", "Dropout"):
            raise EmbedderUnavailable(
                f"The model in {folder} has a layer {kind}, which is not run here. "
                "Set embedding_model to sentence-transformers/ with this folder, or choose another."
            )
    return tuple(layers)


_ACTIVATIONS: dict[str, _Layer] = {"Identity": lambda x: x, "Tanh": np.tanh, "ReLU": lambda x: np.maximum(x, 0)}


def _dense(folder: Path) -> _Layer:
    """A layer that multiplies by a matrix, adds a vector and bends the result."""
    config = read_table(folder / "config.json")
    bend = _ACTIVATIONS.get(str(config.get("activation_function", "Tanh")).rpartition(".")[2])
    file = folder / "model.safetensors"
    if bend is None or not file.is_file():
        raise EmbedderUnavailable(
            f"The layer in {folder} is not run here: its weights are not in model.safetensors, or its activation "
            "is another than Identity, Tanh or ReLU. Set embedding_model to sentence-transformers/ with the model."
        )
    tensors = _safetensors(file)
    weight, bias = tensors["linear.weight"].T, tensors.get("linear.bias", np.float32(0))
    return lambda vectors: bend(vectors @ weight + bias)


def _safetensors(path: Path) -> dict[str, _Array]:
    """The tensors of a small file. Source: https://huggingface.co/docs/safetensors, "Format"."""
    kinds = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}
    try:
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        header, body, value = json.loads(content[8 : 8 + length]), content[8 + length :], {}
        for name, entry in header.items():
            if name != "__metadata__":
                values = np.frombuffer(body[slice(*entry["data_offsets"])], kinds[entry["dtype"]])
                if entry["dtype"] == "BF16":
                    values = (values.astype("<u4") << 16).view("<f4")
                value[name] = values.reshape(entry["shape"]).astype(np.float32)
        return value
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EmbedderUnavailable(
            f"The model's file {path} cannot be read ({type(error).__name__}). Fetch the model anew."
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Encoder:
    """A loaded model that makes vectors of texts.

    Attributes:
        pooling: Modes, whose vectors stand one behind the other; unused where the graph pools itself.
        cut: Length to which vectors are cut; 0 for none.
        counts_prompt: Whether the tokens of a prompt count in the pooling.
    """

    graph: _Graph
    folder: ModelFolder
    pooling: tuple[str, ...]
    layers: tuple[_Layer, ...]
    cut: int
    counts_prompt: bool

    def vectors(self, encoded_items: Sequence[Any], prompt_tokens: int) -> _Array:
        try:
            rows, mask = self.graph.run(encoded_items)
        except Exception as error:  # ONNX Runtime's exceptions have no common base of their own
            raise EmbeddingError(
                f"The model {self.folder.names[0]} failed on {len(encoded_items)} texts ({type(error).__name__}). "
                "Try again; if it stays, choose another embedding_model."
            ) from error
        if rows.ndim == 3:
            rows = rows.astype(np.float32)
            mask[:, :prompt_tokens] = 0
            rows = np.concatenate([_pool(mode, rows, mask) for mode in self.pooling], axis=1)
            for layer in self.layers:
                rows = layer(rows)
        return rows[:, : self.cut] if self.cut else rows

    def prompt_tokens(self, prompt: str) -> int:
        """Tokens at the beginning that do not count."""
        if self.counts_prompt or not prompt:
            return 0
        encoded_value = self.graph.encode(prompt)
        return len(encoded_value.ids) - (encoded_value.special_tokens_mask[-1] if encoded_value.ids else 0)


def _load_encoder(files: OnnxFiles, folder: ModelFolder) -> _Encoder:
    graph = _load_graph(
        files, "embedding", outputs=("sentence_embedding", "last_hidden_state", "token_embeddings", "hidden_states")
    )
    if graph.rank not in (2, 3):
        raise EmbedderUnavailable(
            f"The model {files.graph} gives {graph.output} of {graph.rank} dimensions, which are no vectors of texts. "
            "Choose another embedding_model."
        )
    modes, counts_prompt = pooling_modes(files.folder)
    truncate_dim = read_table(files.folder / "config_sentence_transformers.json").get("truncate_dim")
    return _Encoder(
        graph=graph,
        folder=folder,
        pooling=modes,
        layers=_layers(files.folder) if graph.rank == 3 else (),
        cut=truncate_dim if isinstance(truncate_dim, int) else 0,
        counts_prompt=counts_prompt,
    )


class OnnxEmbedder(FolderEmbedder[_Encoder]):
    """Any encoder in ONNX format; loaded at the first call.

    Args:
        model: A folder with tokenizer.json and an .onnx file in it or in its folder `onnx/`; or a name on the hub such
            as "intfloat/multilingual-e5-small"; either with "/" and the path of one of its graphs behind it, such as
            "intfloat/multilingual-e5-small/onnx/model_qint8_avx512_vnni.onnx".
        threads: Runs at a time in one call; by default as many as the process has processors, at most 4.
    """

    def __init__(self, model: str, *, threads: int | None = None) -> None:
        super().__init__(_ENGINE, model)
        self._threads = threads or default_threads()

    def _read_folder(self) -> ModelFolder:
        files = self._files()
        return read_model_folder(files.folder, self._model, weights=(*files.weights, files.tokenizer))

    def _load(self, *, fetch: bool) -> _Encoder:
        files = fetch_onnx_files(self._model, "embedding") if fetch else self._files()
        return _load_encoder(files, self._model_folder)

    def _files(self) -> OnnxFiles:
        files = find_onnx_files(self._model, "embedding")
        if files is None:
            raise not_here(self._model)
        return files

    def _rows(self, encoder: _Encoder, texts: Sequence[str], *, query: bool) -> Vectors:
        prompt = encoder.folder.prompts.query if query else encoder.folder.prompts.document
        encoded_items = [encoder.graph.encode(prompt + text) for text in texts]
        prompt_tokens = encoder.prompt_tokens(prompt)
        rows: list[_Array] = [np.zeros(0)] * len(texts)

        def fill(places: list[int]) -> None:
            vectors = encoder.vectors([encoded_items[place] for place in places], prompt_tokens)
            for place, row in zip(places, vectors, strict=True):
                rows[place] = row

        lengths = [max(1, len(value.ids)) for value in encoded_items]
        run_in_threads(lengths, fill, threads=self._threads, run_tokens=_RUN_TOKENS, name="onnx")
        return self._unit_rows(rows, len(texts))


# --- reranker --------------------------------------------------------------------------------------------------


class OnnxReranker:
    """A cross-encoder in ONNX format.

    Args:
        model: A folder, a name on the hub, or one of its graphs, as for `OnnxEmbedder`.
    """

    def __init__(self, model: str) -> None:
        self.name = f"{_ENGINE}/{model}"
        self.at_once = 10
        self._model = model
        self._graph: _Graph | None = None
        self._is_bounded = False
        self._loading = threading.Lock()

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        """See `Reranker.score`; between 0 and 1 for a model of one label, as in sentence-transformers."""
        graph = self._load()
        encoded_items = [graph.encode(query, text) for text in texts]
        scores = np.zeros(len(texts))

        def fill(places: list[int]) -> None:
            rows = graph.run([encoded_items[place] for place in places])[0].astype(np.float64)
            scores[places] = scores_of_labels(self.name, rows.reshape(len(places), -1))

        if not texts:
            return scores
        try:
            lengths = [max(1, len(value.ids)) for value in encoded_items]
            run_in_threads(lengths, fill, threads=default_threads(), run_tokens=_RUN_TOKENS, name="onnx-rerank")
        except EmbeddingError:
            raise
        except Exception as error:  # ONNX Runtime's exceptions have no common base of their own
            raise EmbeddingError(
                f"The model {self.name} failed on {len(texts)} texts ({type(error).__name__}). "
                "Choose another rerank_model if it stays."
            ) from error
        # The logistic function, without an exponent that is too large.
        return np.exp(-np.logaddexp(0.0, -scores)) if self._is_bounded else scores

    def _load(self) -> _Graph:
        if self._graph is None:
            with self._loading:
                if self._graph is None:
                    files = fetch_onnx_files(self._model, "rerank")
                    graph = _load_graph(files, "rerank", outputs=("logits",))
                    if graph.rank > 2:
                        raise EmbedderUnavailable(
                            f"The model {files.graph} gives {graph.output}, which are no scores of texts. "
                            "Set rerank_model to a cross-encoder."
                        )
                    self._is_bounded = _is_bounded(read_table(files.folder / "config.json"))
                    self._graph = graph
        return self._graph


def _is_bounded(config: dict[str, Any]) -> bool:
    """True for a model with one label, unless its settings name another function for its scores."""
    own = config.get("sentence_transformers")
    named_text = str(own.get("activation_fn", "")) if isinstance(own, dict) else ""
    labels = config.get("id2label")
    return (named_text.endswith("Sigmoid") if named_text else True) and isinstance(labels, dict) and len(labels) == 1

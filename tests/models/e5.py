"""Conversion of four-bit weights of multilingual-e5-small to `model.onnx` and `tokenizer.model`.

Run it with the packages `onnx` and `sentencepiece` installed: `python -m tests.models.e5 WEIGHTS OUTPUT_FOLDER`.

Invariants: the input is checked against its SHA-256; the same input gives the same bytes; the encoder's values are
the input's, none is rounded again, and the vocabulary is the input's. README.md beside the model says what was
measured and where the input is from.
"""

from __future__ import annotations

import argparse
import hashlib
import struct
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

from indexer.embeddings.bundled import E5_SHA256, E5_TOKENIZER_SHA256
from tests.models.encoder_graph import EncoderGraph, add_embeddings, build_encoder

_WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# Of sentencepiece's rule "nmt_nfkc", which the vocabulary was made with.
_CHARACTERS_SHA256 = "1e2c7b43d3ee9755ceaa2ac335e253d8703604e0249ee1e81156c92b46423844"

_LAYERS = 12
_DIMENSIONS = 384
_BLOCK = 32
# A block of the input: its scale in half precision, and two values in each byte.
_Q4 = np.dtype([("scale", "<f2"), ("values", "u1", _BLOCK // 2)])
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
# Names that the parts of a layer have in the input, by those that they have in the graph.
_PARTS = {"qkv": ("q", "k", "v"), "attended": ("ao",), "up": ("fi",), "down": ("fo",)}
_NORMS = {"attended": "aln", "down": "oln"}


class _Reader:
    """Numbers of a file, one after the other."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def numbers(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{layout}", self.content, self.place)
        self.place += struct.calcsize(f"<{layout}")
        return found

    def take(self, size: int) -> bytes:
        self.place += size
        return self.content[self.place - size : self.place]


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor of the file: four-bit blocks in rows, or plain numbers."""

    content: bytes
    packed: bool

    def plain(self) -> NDArray[Any]:
        return np.frombuffer(self.content, "<f4")

    def blocks(self, columns: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Values 0 to 15, of shape (rows, columns), and scales in half precision, of shape (rows, blocks)."""
        found = np.frombuffer(self.content, _Q4).reshape(-1, columns // _BLOCK)
        low, high = found["values"] & 15, found["values"] >> 4
        return np.concatenate([low, high], axis=2).reshape(len(found), columns), found["scale"]


@dataclass(frozen=True, slots=True)
class _Source:
    """The file of weights.

    Attributes:
        pieces: The vocabulary, most probable first behind the special ones, with the logarithm of each probability.
        tensors: The weights by their names there.
    """

    epsilon: float
    pieces: list[tuple[str, float]]
    tensors: dict[str, _Tensor]


def _read_source(path: Path) -> _Source:
    """Read the file of weights.

    Raises:
        ValueError: The file is not the one this script was written for.
    """
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != _WEIGHTS_SHA256:
        raise ValueError(f"{path} has SHA-256 {digest}. Give the published file, {_WEIGHTS_SHA256}.")
    reader = _Reader(content)
    reader.numbers("4s8i")
    epsilon, _ = reader.numbers("fi")
    count = reader.numbers("5i")[0]
    (size,) = reader.numbers("Q")
    starts = reader.numbers(f"{count + 1}I")
    scores = np.frombuffer(reader.take(4 * count), "<f4")
    text = reader.take(size)
    pieces = [text[start:end].decode() for start, end in pairwise(starts)]
    # The map of characters, which sentencepiece has with combinations of them.
    reader.take(reader.numbers("iI")[1])
    tensors = {}
    for _ in range(reader.numbers("i")[0]):
        name = reader.take(reader.numbers("H")[0]).decode()
        kind, _, start, length = reader.numbers("BIQQ")
        tensors[name] = _Tensor(content[start : start + length], bool(kind))
    # As short as they can be told apart: "-3.4635427".
    return _Source(epsilon, [(piece, float(str(score))) for piece, score in zip(pieces, scores, strict=True)], tensors)


class _Encoder:
    """The weights under the names of the graph."""

    def __init__(self, source: _Source) -> None:
        self.epsilon = source.epsilon
        self._tensors = source.tensors

    def product(self, graph: EncoderGraph, name: str, inputs: str, bias: str = "") -> str:
        """See `EncoderWeights`."""
        columns = _DIMENSIONS if not name.endswith("down") else 4 * _DIMENSIONS
        parts = [self._tensors[f"{part}.w"].blocks(columns) for part in self._places(name)]
        values, scale = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        packed = values[:, 0::2] | values[:, 1::2] << 4
        return graph.matmul(name, inputs, packed.reshape(*scale.shape, _BLOCK // 2), scale, bias, bits=4)

    def bias(self, name: str) -> NDArray[Any]:
        """See `EncoderWeights`."""
        return np.concatenate([self._tensors[f"{part}.b"].plain() for part in self._places(name)])

    def norm(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `EncoderWeights`."""
        layer, _, part = name.partition(".")
        place = f"l{layer}.{_NORMS[part]}"
        return self._tensors[f"{place}.w"].plain(), self._tensors[f"{place}.b"].plain()

    def _places(self, name: str) -> list[str]:
        layer, _, part = name.partition(".")
        return [f"l{layer}.{each}" for each in _PARTS[part]]


def _add_words(graph: EncoderGraph, word: _Tensor) -> str:
    """Token ids to vectors, of which only those of a text are unpacked."""
    values, scale = word.blocks(_DIMENSIONS)
    half = _DIMENSIONS // 2
    packed = values[:, :half] | values[:, half:] << 4
    row = graph.value("word.row", "Gather", [graph.tensor("word.weight", packed), "ids"])
    low = graph.value("word.low", "BitwiseAnd", [row, graph.tensor("word.mask", np.array(15, np.uint8))])
    shift = graph.tensor("word.shift", np.array(4, np.uint8))
    high = graph.value("word.high", "BitShift", [row, shift], direction="RIGHT")
    whole = graph.value("word.whole", "Concat", [low, high], axis=-1)
    number = graph.value("word.float", "Cast", [whole], to=TensorProto.FLOAT)
    centred = graph.value("word.centred", "Sub", [number, graph.tensor("word.zero", np.array(8, np.float32))])
    blocks = graph.tensor("word.blocks", np.array([0, 0, _DIMENSIONS // _BLOCK, _BLOCK], np.int64))
    parted = graph.value("word.parted", "Reshape", [centred, blocks])
    of_row = graph.value("word.row_scale", "Gather", [graph.tensor("word.scale", scale), "ids"])
    of_block = graph.value("word.block_scale", "Unsqueeze", [of_row, graph.tensor("last", np.array([-1], np.int64))])
    factor = graph.value("word.factor", "Cast", [of_block], to=TensorProto.FLOAT)
    scaled = graph.value("word.scaled", "Mul", [parted, factor])
    shape = graph.tensor("word.shape", np.array([0, 0, _DIMENSIONS], np.int64))
    return graph.value("word", "Reshape", [scaled, shape])


def _build(source: _Source) -> ModelProto:
    graph = EncoderGraph()
    tensors = source.tensors
    word = _add_words(graph, tensors["emb.word"])
    # Every token has type 0, so that vector is part of the position's.
    positions = tensors["emb.pos"].plain().reshape(-1, _DIMENSIONS) + tensors["emb.type"].plain()[:_DIMENSIONS]
    norm = tensors["emb.ln.w"].plain(), tensors["emb.ln.b"].plain()
    embedded = add_embeddings(graph, word, positions, norm, epsilon=source.epsilon)
    return build_encoder(graph, "multilingual-e5-small", embedded, _LAYERS, _Encoder(source))


def _messages() -> Any:
    """The package's own classes of its file's messages, which have no types."""
    from sentencepiece import sentencepiece_model_pb2

    return sentencepiece_model_pb2


def _character_map() -> bytes:
    """The compiled map of characters of the rule "nmt_nfkc".

    Raises:
        ValueError: sentencepiece has another one.
    """
    from sentencepiece import SentencePieceNormalizer

    made = SentencePieceNormalizer(rule_name="nmt_nfkc").serialized_model_proto()
    found: bytes = _messages().ModelProto.FromString(made).normalizer_spec.precompiled_charsmap
    digest = hashlib.sha256(found).hexdigest()
    if digest != _CHARACTERS_SHA256:
        raise ValueError(f"The map of characters has SHA-256 {digest}. Install sentencepiece 0.2.3.")
    return found


def _tokenizer(source: _Source) -> bytes:
    """The file of the tokenizer, as the package sentencepiece reads it."""
    made = _messages().ModelProto()
    kinds = made.SentencePiece
    for place, (piece, score) in enumerate(source.pieces):
        kind = kinds.NORMAL if place >= len(_SPECIAL) else kinds.UNKNOWN if piece == "<unk>" else kinds.CONTROL
        made.pieces.add(piece=piece, score=score, type=kind)
    trainer = made.trainer_spec
    trainer.model_type = trainer.UNIGRAM
    trainer.bos_id, trainer.pad_id, trainer.eos_id, trainer.unk_id = range(len(_SPECIAL))
    characters = made.normalizer_spec
    characters.precompiled_charsmap = _character_map()
    characters.add_dummy_prefix = characters.remove_extra_whitespaces = characters.escape_whitespaces = True
    content: bytes = made.SerializeToString(deterministic=True)
    return content


def _main() -> int:
    """Convert, write, and print each SHA-256; 1 if one is not that of the shipped file."""
    parser = argparse.ArgumentParser(description="Make model.onnx and tokenizer.model from the published weights.")
    parser.add_argument("weights", type=Path, help="e5-small-q4.bin, or the folder it is in")
    parser.add_argument("output", type=Path, help="folder that gets the files")
    arguments = parser.parse_args()
    path = arguments.weights / "e5-small-q4.bin" if arguments.weights.is_dir() else arguments.weights
    source = _read_source(path)
    arguments.output.mkdir(parents=True, exist_ok=True)
    same = True
    for name, content, expected in (
        ("model.onnx", _build(source).SerializeToString(deterministic=True), E5_SHA256),
        ("tokenizer.model", _tokenizer(source), E5_TOKENIZER_SHA256),
    ):
        (arguments.output / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        sys.stdout.write(f"{digest}  {name}\n")
        same = same and digest == expected
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(_main())

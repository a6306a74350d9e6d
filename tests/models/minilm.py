"""Conversion of the published weights of all-MiniLM-L6-v2 to `model.onnx`.

Run it with the package `onnx` installed: `python -m tests.models.minilm FOLDER_OR_SAFETENSORS OUTPUT_FOLDER`.

Invariants: the input is checked against its SHA-256; the same input gives the same bytes; nothing is calibrated or
trained, so no text takes part. README.md beside the model says what was measured and why the encoder's weights are
stored as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

from indexer.embeddings.bundled import MINILM_SHA256
from tests.models.encoder_graph import EncoderGraph, add_embeddings, build_encoder

_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_LAYERS = 6
_POSITIONS = 256
_EPSILON = 1e-12

# Values that share one scale, along the input of a matrix; attention's inputs suffer most from rounding. From
# 128 on, the kernel's result depends in its last digit on a row's place in the batch, and later roundings
# magnify that: the same text then has cosine 0.999 to itself. Source: our measurement, README.md.
_ATTENTION_BLOCK = 32
_OTHER_BLOCK = 64

_Weights = dict[str, NDArray[np.float32]]


def _read_safetensors(path: Path) -> _Weights:
    """Read the float32 tensors of a safetensors file.

    Raises:
        ValueError: The file is not the one this script was written for.
    """
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != _WEIGHTS_SHA256:
        raise ValueError(f"{path} has SHA-256 {digest}. Give the published file, {_WEIGHTS_SHA256}.")
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    body = memoryview(content)[8 + length :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def _quantize_rows(weight: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Round to int8 with one scale per row: (rows, columns) to the same shape and (rows, 1)."""
    scale = np.maximum(np.abs(weight).max(axis=1, keepdims=True) / np.float32(127), np.float32(1e-12))
    return np.rint(weight / scale).astype(np.int8), scale


def _quantize_blocks(weight: NDArray[np.float32], block: int) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Round to uint8 around 128, one scale per block: (rows, columns) to (rows, blocks, block), (rows, blocks)."""
    rows, columns = weight.shape
    blocks = weight.reshape(rows, columns // block, block)
    scale = np.maximum(np.abs(blocks).max(axis=2, keepdims=True) / np.float32(127), np.float32(1e-12))
    return (np.rint(blocks / scale) + 128).astype(np.uint8), scale[..., 0]


class _Encoder:
    """The published weights under the names of the graph."""

    epsilon = _EPSILON

    def __init__(self, weights: _Weights) -> None:
        self.weights = weights

    def product(self, graph: EncoderGraph, name: str, inputs: str, bias: str = "") -> str:
        """See `EncoderWeights`."""
        layer, _, part = name.partition(".")
        matrix = np.concatenate([self.weights[f"{place}.weight"] for place in _places(layer, part)])
        rounded, scale = _quantize_blocks(matrix, _ATTENTION_BLOCK if part == "qkv" else _OTHER_BLOCK)
        return graph.matmul(name, inputs, rounded, scale, bias, bits=8)

    def bias(self, name: str) -> NDArray[Any]:
        """See `EncoderWeights`."""
        layer, _, part = name.partition(".")
        return np.concatenate([self.weights[f"{place}.bias"] for place in _places(layer, part)])

    def norm(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `EncoderWeights`."""
        layer, _, part = name.partition(".")
        place = _places(layer, part)[0].replace("dense", "LayerNorm")
        return self.weights[f"{place}.weight"], self.weights[f"{place}.bias"]


def _places(layer: str, part: str) -> list[str]:
    """Names of the published matrices that make one of the graph."""
    prefix = f"encoder.layer.{layer}."
    return [
        prefix + name
        for name in {
            "qkv": [f"attention.self.{name}" for name in ("query", "key", "value")],
            "attended": ["attention.output.dense"],
            "up": ["intermediate.dense"],
            "down": ["output.dense"],
        }[part]
    ]


def _add_embeddings(graph: EncoderGraph, weights: _Weights) -> str:
    """Token ids to vectors. Every token has type 0, so that vector is part of the position's."""
    rounded, scale = _quantize_rows(weights["embeddings.word_embeddings.weight"])
    positions = weights["embeddings.position_embeddings.weight"][:_POSITIONS]
    positions = positions + weights["embeddings.token_type_embeddings.weight"][0]
    row = graph.value("word.row", "Gather", [graph.tensor("word.weight", rounded), "ids"])
    row_scale = graph.value("word.row_scale", "Gather", [graph.tensor("word.scale", scale), "ids"])
    word = graph.value("word", "Mul", [graph.value("word.float", "Cast", [row], to=TensorProto.FLOAT), row_scale])
    norm = weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"]
    return add_embeddings(graph, word, positions, norm, epsilon=_EPSILON)


def _build(weights: _Weights) -> ModelProto:
    graph = EncoderGraph()
    return build_encoder(graph, "all-MiniLM-L6-v2", _add_embeddings(graph, weights), _LAYERS, _Encoder(weights))


def main() -> int:
    """Convert, write, and print the SHA-256; 1 if it is not that of the shipped file."""
    parser = argparse.ArgumentParser(description="Make model.onnx from the published weights.")
    parser.add_argument("weights", type=Path, help="model.safetensors, or the folder it is in")
    parser.add_argument("output", type=Path, help="folder that gets model.onnx")
    arguments = parser.parse_args()
    path = arguments.weights / "model.safetensors" if arguments.weights.is_dir() else arguments.weights
    content = _build(_read_safetensors(path)).SerializeToString(deterministic=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "model.onnx").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    sys.stdout.write(f"{digest}  model.onnx\n")
    return 0 if digest == MINILM_SHA256 else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""Conversion of the published weights of all-MiniLM-L6-v2 to `model.onnx`.

Run it with the package `onnx` installed: `python convert.py FOLDER_OR_SAFETENSORS OUTPUT_FOLDER`.

Invariants: the input is checked against its SHA-256; the same input gives the same bytes; nothing is calibrated or
trained, so no text takes part. README.md beside it says what was measured and why the encoder's weights are stored as
they are.
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
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from indexer.embeddings.minilm import DIMENSIONS, MAX_TOKENS, MODEL_SHA256

_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_LAYERS = 6
_HEADS = 12
_EPSILON = 1e-12
_MICROSOFT = "com.microsoft"

# Values that share one scale, along the input of a matrix; attention's inputs suffer most from rounding. From
# 128 on, the kernel's result depends in its last digit on a row's place in the batch, and later roundings
# magnify that: the same text then has cosine 0.999 to itself. Source: our measurement, README.md.
_ATTENTION_BLOCK = 32
_OTHER_BLOCK = 64

_Array = NDArray[Any]
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


def _quantize_rows(weight: NDArray[np.float32]) -> tuple[_Array, NDArray[np.float32]]:
    """Round to int8 with one scale per row: (rows, columns) to the same shape and (rows, 1)."""
    scale = np.maximum(np.abs(weight).max(axis=1, keepdims=True) / np.float32(127), np.float32(1e-12))
    return np.rint(weight / scale).astype(np.int8), scale


def _quantize_blocks(weight: NDArray[np.float32], block: int) -> tuple[_Array, NDArray[np.float32]]:
    """Round to uint8 around 128, one scale per block: (rows, columns) to (rows, blocks, block), (rows, blocks)."""
    rows, columns = weight.shape
    blocks = weight.reshape(rows, columns // block, block)
    scale = np.maximum(np.abs(blocks).max(axis=2, keepdims=True) / np.float32(127), np.float32(1e-12))
    return (np.rint(blocks / scale) + 128).astype(np.uint8), scale[..., 0]


class _Graph:
    """Nodes and tensors in the order in which they were added; every value is named after its node."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []

    def tensor(self, name: str, array: _Array) -> str:
        """Store an array and return its name."""
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(
        self, name: str, kind: str, inputs: list[str], outputs: int = 1, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add a node and return the names of what it puts out."""
        names = [name] if outputs == 1 else [f"{name}.{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=name, domain=domain, **attributes))
        return names

    def value(self, name: str, kind: str, inputs: list[str], domain: str = "", **attributes: Any) -> str:
        """Add a node with one output and return its name."""
        return self.node(name, kind, inputs, 1, domain, **attributes)[0]

    def matmul(self, name: str, inputs: str, weight: NDArray[np.float32], block: int, bias: str = "") -> str:
        """Multiply by an 8-bit matrix; the inputs are rounded to 8 bits too, each block of each row by itself."""
        rounded, scale = _quantize_blocks(weight, block)
        names = [inputs, self.tensor(f"{name}.weight", rounded), self.tensor(f"{name}.scale", scale)]
        names += ["", "", bias] if bias else []
        rows, columns = weight.shape
        return self.value(
            name, "MatMulNBits", names, _MICROSOFT, K=columns, N=rows, bits=8, block_size=block, accuracy_level=4
        )

    def add_and_norm(self, name: str, inputs: str, skip: str, bias: _Array, gain: _Array, offset: _Array) -> str:
        """Normalise `inputs + bias + skip`."""
        names = [self.tensor(f"{name}.{part}", array) for part, array in zip("gob", (gain, offset, bias), strict=True)]
        return self.value(name, "SkipLayerNormalization", [inputs, skip, *names], _MICROSOFT, epsilon=_EPSILON)


def _add_embeddings(graph: _Graph, weights: _Weights) -> str:
    """Token ids to vectors. Every token has type 0, so that vector is part of the position's."""
    rounded, scale = _quantize_rows(weights["embeddings.word_embeddings.weight"])
    positions = weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
    positions = positions + weights["embeddings.token_type_embeddings.weight"][0]
    row = graph.value("word.row", "Gather", [graph.tensor("word.weight", rounded), "ids"])
    row_scale = graph.value("word.row_scale", "Gather", [graph.tensor("word.scale", scale), "ids"])
    word = graph.value("word", "Mul", [graph.value("word.float", "Cast", [row], to=TensorProto.FLOAT), row_scale])
    first = graph.tensor("first", np.array([0], np.int64))
    length = graph.value("length", "Shape", ["ids"], start=1, end=2)
    position = graph.value("position", "Slice", [graph.tensor("position.weight", positions), first, length, first])
    gain = graph.tensor("embedded.g", weights["embeddings.LayerNorm.weight"])
    offset = graph.tensor("embedded.o", weights["embeddings.LayerNorm.bias"])
    total = graph.value("summed", "Add", [word, position])
    return graph.value("embedded", "LayerNormalization", [total, gain, offset], axis=-1, epsilon=_EPSILON)


def _add_attention(graph: _Graph, weights: _Weights, layer: int, inputs: str) -> str:
    """Self-attention of one layer, with its output matrix but without that one's bias."""
    prefix = f"encoder.layer.{layer}.attention."
    names = [f"{prefix}self.{part}" for part in ("query", "key", "value")]
    weight = np.concatenate([weights[f"{name}.weight"] for name in names])
    bias = graph.tensor(f"{layer}.qkv.bias", np.concatenate([weights[f"{name}.bias"] for name in names]))
    packed = graph.matmul(f"{layer}.qkv", inputs, weight, _ATTENTION_BLOCK)
    parts = graph.node(f"{layer}.part", "Split", [packed], 3, axis=-1, num_outputs=3)
    heads = graph.value(
        f"{layer}.heads", "MultiHeadAttention", [*parts, bias, "mask"], domain=_MICROSOFT, num_heads=_HEADS
    )
    return graph.matmul(f"{layer}.attended", heads, weights[f"{prefix}output.dense.weight"], _OTHER_BLOCK)


def _add_layer(graph: _Graph, weights: _Weights, layer: int, inputs: str) -> str:
    prefix = f"encoder.layer.{layer}."

    def norm_of(part: str) -> list[_Array]:
        return [weights[f"{prefix}{part}.{name}"] for name in ("dense.bias", "LayerNorm.weight", "LayerNorm.bias")]

    attended = _add_attention(graph, weights, layer, inputs)
    middle = graph.add_and_norm(f"{layer}.middle", attended, inputs, *norm_of("attention.output"))
    bias = graph.tensor(f"{layer}.up.bias", weights[f"{prefix}intermediate.dense.bias"])
    up = graph.matmul(f"{layer}.up", middle, weights[f"{prefix}intermediate.dense.weight"], _OTHER_BLOCK, bias)
    active = graph.value(f"{layer}.active", "Gelu", [up], domain=_MICROSOFT)
    down = graph.matmul(f"{layer}.down", active, weights[f"{prefix}output.dense.weight"], _OTHER_BLOCK)
    return graph.add_and_norm(f"{layer}.out", down, middle, *norm_of("output"))


def _add_pooling(graph: _Graph, inputs: str) -> None:
    """Sum the tokens of each text and bring the sum to length 1, which makes dividing by their number needless."""
    axis = graph.tensor("axis", np.array([1], np.int64))
    weight = graph.value("mask.float", "Cast", ["mask"], to=TensorProto.FLOAT)
    total = graph.value("total", "MatMul", [graph.value("mask.row", "Unsqueeze", [weight, axis]), inputs])
    graph.value("vectors", "LpNormalization", [graph.value("pooled", "Squeeze", [total, axis])], axis=-1, p=2)


def _build(weights: _Weights) -> ModelProto:
    """The whole model: `ids` (int64) and `mask` (int32), both (texts, tokens), to `vectors` (texts, 384)."""
    graph = _Graph()
    current = _add_embeddings(graph, weights)
    for layer in range(_LAYERS):
        current = _add_layer(graph, weights, layer, current)
    _add_pooling(graph, current)
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "tokens"]),
        helper.make_tensor_value_info("mask", TensorProto.INT32, ["texts", "tokens"]),
    ]
    outputs = [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", DIMENSIONS])]
    whole = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", inputs, outputs, graph.tensors)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_MICROSOFT, 1)]
    return helper.make_model(whole, opset_imports=opsets, ir_version=9)


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
    return 0 if digest == MODEL_SHA256 else 1


if __name__ == "__main__":
    raise SystemExit(main())

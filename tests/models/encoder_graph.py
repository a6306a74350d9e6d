"""ONNX graph of a BERT encoder that ends in sentence vectors; for the scripts that make the bundled models.

Invariants: imported by those scripts alone, as it needs the package `onnx`; the same weights give the same bytes; a
text gets the same vector in every batch, as each row of a product is rounded by itself.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

_MICROSOFT = "com.microsoft"
_DIMENSIONS = 384
_HEADS = 12


class EncoderGraph:
    """Nodes and tensors in the order in which they were added; every value is named after its node."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []

    def tensor(self, name: str, array: NDArray[Any]) -> str:
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

    def matmul(
        self, name: str, inputs: str, rounded: NDArray[Any], scale: NDArray[Any], bias: str = "", *, bits: int
    ) -> str:
        """Multiply by a matrix of few bits; the inputs are rounded to 8 bits, each block of each row by itself.

        Args:
            name: Of the node.
            inputs: What is multiplied.
            rounded: uint8 of shape (rows, blocks, bytes of a block).
            scale: Of each block, of shape (rows, blocks); stored as it is, also in half precision.
            bias: Name of what is added; empty for nothing.
            bits: Of a value: 8 or 4.
        """
        names = [inputs, self.tensor(f"{name}.weight", rounded), self._scale(f"{name}.scale", scale)]
        names += ["", "", bias] if bias else []
        rows, blocks, size = rounded.shape
        block = size * 8 // bits
        return self.value(
            name, "MatMulNBits", names, _MICROSOFT,
            K=blocks * block, N=rows, bits=bits, block_size=block, accuracy_level=4,
        )  # fmt: skip

    def _scale(self, name: str, scale: NDArray[Any]) -> str:
        if scale.dtype == np.float32:
            return self.tensor(name, scale)
        # Done once, when the model is loaded.
        return self.value(f"{name}.float", "Cast", [self.tensor(name, scale)], to=TensorProto.FLOAT)


class EncoderWeights(Protocol):
    """The weights of an encoder's layers, and how its matrices are stored."""

    @property
    def epsilon(self) -> float:
        """Of the normalisations."""
        ...

    def product(self, graph: EncoderGraph, name: str, inputs: str, bias: str = "") -> str:
        """Add the product with a matrix ("3.qkv", "3.attended", "3.up", "3.down"), named so, and return its name."""
        ...

    def bias(self, name: str) -> NDArray[Any]:
        """The bias that belongs to a matrix."""
        ...

    def norm(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Gain and offset of the normalisation behind a matrix ("3.attended", "3.down")."""
        ...


def build_encoder(graph: EncoderGraph, title: str, embedded: str, layers: int, weights: EncoderWeights) -> ModelProto:
    """The whole model: `ids` (int64) and `mask` (int32), both (texts, tokens), to `vectors` (texts, 384).

    Args:
        graph: What makes vectors of the ids.
        title: Name of the model.
        embedded: Name of those vectors.
        layers: Number of layers.
        weights: Theirs.
    """
    for layer in range(layers):
        embedded = _add_layer(graph, weights, layer, embedded)
    _add_pooling(graph, embedded)
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "tokens"]),
        helper.make_tensor_value_info("mask", TensorProto.INT32, ["texts", "tokens"]),
    ]
    outputs = [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", _DIMENSIONS])]
    whole = helper.make_graph(graph.nodes, title, inputs, outputs, graph.tensors)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_MICROSOFT, 1)]
    return helper.make_model(whole, opset_imports=opsets, ir_version=9)


def add_embeddings(
    graph: EncoderGraph, word: str, positions: NDArray[Any], norm: tuple[NDArray[Any], NDArray[Any]], *, epsilon: float
) -> str:
    """Vectors of tokens with those of their positions added, normalised.

    Args:
        graph: Gets the nodes.
        word: Name of the tokens' vectors.
        positions: The positions' vectors, with that of the type that every token has.
        norm: Gain and offset.
        epsilon: Of the normalisation.
    """
    first = graph.tensor("first", np.array([0], np.int64))
    length = graph.value("length", "Shape", ["ids"], start=1, end=2)
    position = graph.value("position", "Slice", [graph.tensor("position.weight", positions), first, length, first])
    gain, offset = graph.tensor("embedded.g", norm[0]), graph.tensor("embedded.o", norm[1])
    total = graph.value("summed", "Add", [word, position])
    return graph.value("embedded", "LayerNormalization", [total, gain, offset], axis=-1, epsilon=epsilon)


def _add_attention(graph: EncoderGraph, weights: EncoderWeights, layer: int, inputs: str) -> str:
    """Self-attention of one layer, with its output matrix but without that one's bias."""
    bias = graph.tensor(f"{layer}.qkv.bias", weights.bias(f"{layer}.qkv"))
    packed = weights.product(graph, f"{layer}.qkv", inputs)
    parts = graph.node(f"{layer}.part", "Split", [packed], 3, axis=-1, num_outputs=3)
    heads = graph.value(
        f"{layer}.heads", "MultiHeadAttention", [*parts, bias, "mask"], domain=_MICROSOFT, num_heads=_HEADS
    )
    return weights.product(graph, f"{layer}.attended", heads)


def _add_layer(graph: EncoderGraph, weights: EncoderWeights, layer: int, inputs: str) -> str:
    attended = _add_attention(graph, weights, layer, inputs)
    middle = _add_and_norm(graph, weights, f"{layer}.middle", attended, inputs)
    bias = graph.tensor(f"{layer}.up.bias", weights.bias(f"{layer}.up"))
    up = weights.product(graph, f"{layer}.up", middle, bias)
    active = graph.value(f"{layer}.active", "Gelu", [up], domain=_MICROSOFT)
    down = weights.product(graph, f"{layer}.down", active)
    return _add_and_norm(graph, weights, f"{layer}.out", down, middle)


def _add_and_norm(graph: EncoderGraph, weights: EncoderWeights, name: str, product: str, skip: str) -> str:
    """Normalise a product with its bias and `skip` added."""
    arrays = (*weights.norm(product), weights.bias(product))
    names = [graph.tensor(f"{name}.{part}", array) for part, array in zip("gob", arrays, strict=True)]
    return graph.value(name, "SkipLayerNormalization", [product, skip, *names], _MICROSOFT, epsilon=weights.epsilon)


def _add_pooling(graph: EncoderGraph, inputs: str) -> None:
    """Sum the tokens of each text and bring the sum to length 1, which makes dividing by their number needless."""
    axis = graph.tensor("axis", np.array([1], np.int64))
    weight = graph.value("mask.float", "Cast", ["mask"], to=TensorProto.FLOAT)
    total = graph.value("total", "MatMul", [graph.value("mask.row", "Unsqueeze", [weight, axis]), inputs])
    graph.value("vectors", "LpNormalization", [graph.value("pooled", "Squeeze", [total, axis])], axis=-1, p=2)

"""Models in ONNX format for tests: the bundled one under the names that exporters give, and small ones made here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from indexer.embeddings.bundled import MINILM_FOLDER

BUNDLED = MINILM_FOLDER


def save_bundled(folder: Path, *, graph: str = "onnx/model.onnx") -> Path:
    """The bundled model as an exporter would have saved it, its pooling within the graph."""
    model = onnx.load(BUNDLED / "model.onnx")
    names = {"ids": "input_ids", "mask": "attention_mask", "vectors": "sentence_embedding"}
    for value in (*model.graph.input, *model.graph.output):
        value.name = names[value.name]
    for node in model.graph.node:
        for side in (node.input, node.output):
            side[:] = [names.get(name, name) for name in side]
    (folder / graph).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / graph)
    shutil.copy(BUNDLED / "tokenizer.json", folder)
    settings: dict[str, Any] = {"model_type": "bert", "hidden_size": 384, "max_position_embeddings": 512}
    save_json(folder, {"config.json": settings, "tokenizer_config.json": {"model_max_length": 256}})
    return folder


def save_small(folder: Path, *, files: Mapping[str, Any] | None = None, size: int = 8, nan: bool = False) -> Path:
    """A graph that looks up a vector of each token, and nothing else; the vectors have numbers that tell the token."""
    words = _small_vectors(size)
    if nan:
        words[:] = np.nan
    _save(folder / "model.onnx", words, output="last_hidden_state")
    shutil.copy(BUNDLED / "tokenizer.json", folder)
    save_json(folder, {"config.json": {"hidden_size": size}, **(files or {})})
    return folder


def save_apart(graph: Path) -> Path:
    """Move the weights of a graph into a file beside it with the name of their tensor, as for large ones."""
    made = onnx.load(graph)
    graph.unlink()
    onnx.save_model(made, graph, save_as_external_data=True, all_tensors_to_one_file=False, size_threshold=64)
    return graph.with_name("words")


def save_foreign(folder: Path) -> Path:
    """A graph that takes pixels."""
    pixels = helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["n", 3])
    seen = helper.make_tensor_value_info("seen", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph([helper.make_node("Abs", ["pixel_values"], ["seen"])], "pixels", [pixels], [seen])
    _write(folder / "model.onnx", graph)
    shutil.copy(BUNDLED / "tokenizer.json", folder)
    return folder


def save_scores(folder: Path, *, labels: int = 1) -> Path:
    """A cross-encoder that likes texts by the sum of their tokens' numbers, alike for each of its labels."""
    _save(folder / "model.onnx", _small_vectors(1)[:, 0] / 100, output="logits", labels=labels)
    shutil.copy(BUNDLED / "tokenizer.json", folder)
    save_json(
        folder, {"config.json": {"id2label": {"0": "LABEL_0"}}, "tokenizer_config.json": {"model_max_length": 64}}
    )
    return folder


def save_json(folder: Path, files: Mapping[str, Any]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content), "utf-8")


def save_dense(folder: Path, weight: np.ndarray[Any, Any], bias: np.ndarray[Any, Any], activation: str) -> None:
    """A layer as sentence-transformers saves it, its weights in the format of safetensors."""
    parts = {"linear.weight": weight.astype("<f4"), "linear.bias": bias.astype("<f4")}
    header, body = {}, b""
    for name, values in parts.items():
        content = np.ascontiguousarray(values).tobytes()
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(body), len(body) + len(content)]}
        body += content
    head = json.dumps(header).encode()
    save_json(folder, {"config.json": {"out_features": len(weight), "activation_function": activation}})
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + body)


def _small_vectors(size: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).standard_normal((30_522, size)).astype(np.float32)


def small_vectors(ids: list[int], size: int = 8) -> np.ndarray[Any, Any]:
    """What the graph of `save_small` gives for the tokens of one text."""
    found: np.ndarray[Any, Any] = _small_vectors(size)[ids]
    return found


def _save(path: Path, words: np.ndarray[Any, Any], *, output: str, labels: int = 1) -> None:
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", "t"])
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["n", "t"])
    stored = [numpy_helper.from_array(words, "words")]
    if words.ndim == 2:
        nodes = [helper.make_node("Gather", ["words", "input_ids"], [output])]
        given = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["n", "t", words.shape[1]])
        # Read, so that it is an input of the graph that runs.
        nodes.append(helper.make_node("Identity", ["attention_mask"], ["mask"]))
    else:
        stored.append(numpy_helper.from_array(np.array([1], np.int64), "axes"))
        nodes = [
            helper.make_node("Gather", ["words", "input_ids"], ["found"]),
            helper.make_node("Cast", ["attention_mask"], ["counted"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["found", "counted"], ["kept"]),
            helper.make_node("ReduceSum", ["kept", "axes"], ["sum"], keepdims=1),
            helper.make_node("Concat", ["sum"] * labels, [output], axis=1),
        ]
        given = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["n", labels])
    _write(path, helper.make_graph(nodes, "small", [ids, mask], [given], stored))


def _write(path: Path, graph: onnx.GraphProto) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)

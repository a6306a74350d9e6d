"""The files of a model for ONNX Runtime: which graph of a folder is run, and how a model of the hub gets here.

Invariants: finding one reads names and sizes, and of a small graph where its weights are, and uses no network; fetching
takes one graph, its weights and the small files beside it, the graph last, so that a graph on this machine is a whole
model; one that is larger than the machine's memory is neither fetched nor loaded. huggingface_hub is imported at the
first name of the hub.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Literal

from indexer.embeddings.model_folder import HUB_NAME, OTHER_ENGINES, decides_vectors, folder_of
from indexer.errors import EmbedderUnavailable
from indexer.providers.environment import variables

ModelKind = Literal["embedding", "rerank"]

_TOKENIZER = "tokenizer.json"
# The graph that is run where none is named: full precision first, since it is what the model's maker measured.
# Source: names that optimum and transformers.js give, https://huggingface.co/docs/transformers.js/guides/dtypes
_GRAPHS = ("model", "model_fp16", "model_int8", "model_uint8", "model_quantized", "model_q8", "model_q4")
# A tensor that a graph keeps in another file, as protobuf writes it: the key "location", the length of the value.
# Source: onnx.proto, TensorProto.external_data. BAAI/bge-m3 has model.onnx_data and Constant_7_attr__value.
_LOCATION = rb"\n\x08location\x12([\x80-\xff]?)([\x00-\x7f])"
# A larger graph has its weights in it: of what it keeps elsewhere, its usual names are known.
_MOST_BARE_BYTES = 16 * 1024 * 1024
# The largest vocabularies, of 256,000 tokens, take 34 MB.
_MOST_SETTINGS_BYTES = 256 * 1024 * 1024
_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxFiles:
    """A model on disk.

    Attributes:
        folder: Folder of its settings.
        graph: Its .onnx file, in the folder or in `onnx/`.
        weights: The graph, and files beside it in which it keeps its weights.
        tokenizer: Its tokenizer.json.
    """

    folder: Path
    graph: Path
    weights: tuple[Path, ...]
    tokenizer: Path


class _Incomplete(EmbedderUnavailable):
    """A part of the model is not there."""


def find_onnx_files(name: str, kind: ModelKind) -> OnnxFiles | None:
    """The files of a model on this machine; None for a name of the hub that was not fetched yet.

    Args:
        name: A folder, a name of the hub, or either with "/" and the path of one of its graphs behind it.
        kind: What the model is for.

    Raises:
        EmbedderUnavailable: There is no such folder and it can be no name of the hub, or files are missing in it, or it
            is too large for this machine.
    """
    place, graph = _place(name)
    if place is None:
        repository, graph = _repository(name)
        try:
            if not HUB_NAME.fullmatch(repository):
                raise ValueError(name)
            place = _cached_folder(repository)
        except ValueError as error:  # the hub has rules of its own, too
            raise EmbedderUnavailable(
                f"The model folder {name} is not there. Put it back, or set {kind}_model to where it is now."
            ) from error
        if place is None or not (graph or _graphs(_names(place))) or (graph and not (place / graph).is_file()):
            return None
        with suppress(_Incomplete):
            return _files(place, graph, kind)
        return None
    return _files(place, graph, kind)


def fetch_onnx_files(name: str, kind: ModelKind) -> OnnxFiles:
    """The files of a model, fetched from the hub where they are not on this machine.

    Raises:
        EmbedderUnavailable: As `find_onnx_files`, or the hub did not give it.
    """
    onnx_files = find_onnx_files(name, kind)
    if onnx_files is not None:
        return onnx_files
    repository, graph = _repository(name)
    try:
        place = _fetch_folder(repository, graph, kind)
    except EmbedderUnavailable:
        raise
    except Exception as error:  # of the hub, of httpx and of the disk, with no common base
        raise EmbedderUnavailable(
            f"There is no folder {name}, and the hub did not give a model of that name ({type(error).__name__}). "
            f"Check {kind}_model and the network, or fetch the model on another machine and give its folder."
        ) from error
    return _files(place, graph, kind)


# --- folders ---------------------------------------------------------------------------------------------------


def _place(name: str) -> tuple[Path | None, str]:
    """A folder, and the graph in it that is named; no folder for a name of the hub."""
    place = folder_of(name)
    if place is not None or not name.endswith(".onnx"):
        return place, ""
    above = PurePosixPath(name).parent
    place = folder_of(str(above))
    if place is None or not (place / PurePosixPath(name).name).is_file():
        return None, ""
    file = place / PurePosixPath(name).name
    folder = place if (place / _TOKENIZER).is_file() or place.name not in OTHER_ENGINES else place.parent
    return folder, file.relative_to(folder).as_posix()


def _names(folder: Path) -> list[str]:
    below = (folder, folder / "onnx")
    paths = [file for place in below if place.is_dir() for file in sorted(place.iterdir())]
    # A pipe would be waited for.
    return [file.relative_to(folder).as_posix() for file in paths if file.is_file()]


def _graphs(names: Iterable[str]) -> list[str]:
    """Graphs among names of files, the one to run first."""
    texts = [name for name in names if name.endswith(".onnx") and name.removeprefix("onnx/").count("/") == 0]
    known_texts = [path + stem + ".onnx" for stem in _GRAPHS for path in ("", "onnx/")]
    return sorted(texts, key=lambda name: (known_texts.index(name) if name in known_texts else len(known_texts), name))


def _choose_graph(names: Sequence[str], model: str, kind: ModelKind) -> str:
    graphs = _graphs(names)
    if not graphs:
        raise EmbedderUnavailable(
            f"The model {model} has no .onnx file, in its folder or in onnx/. Export it, for example with "
            f"`optimum-cli export onnx`, or set {kind}_model to sentence-transformers/NAME, which runs other formats."
        )
    if len(graphs) > 1 and PurePosixPath(graphs[0]).stem not in _GRAPHS:
        raise EmbedderUnavailable(
            f"The model {model} has {len(graphs)} .onnx files and none is called model.onnx: {', '.join(graphs[:5])}. "
            f'Put "/" and the name of one behind {kind}_model.'
        )
    return graphs[0]


def _files(folder: Path, graph: str, kind: ModelKind) -> OnnxFiles:
    try:
        names = _names(folder)
        graph = graph or _choose_graph(names, str(folder), kind)
        beside = _beside(graph, names, _kept_beside(folder / graph))
        texts = [name for name in beside if name not in names]
        weights = tuple(folder / name for name in (graph, *beside) if name not in texts)
        _check_size(str(folder), sum(file.stat().st_size for file in weights), kind)
        swollen = next((name for name in names if _is_swollen(name, (folder / name).stat().st_size)), "")
        tokenizer = next(
            (path for path in (folder / _TOKENIZER, (folder / graph).parent / _TOKENIZER) if path.is_file()), None
        )
    except OSError as error:
        raise EmbedderUnavailable(
            f"The model folder {folder} cannot be read ({error.strerror or type(error).__name__}). "
            f"Check its permissions, or choose another {kind}_model."
        ) from error
    if swollen:
        raise EmbedderUnavailable(
            f"The model's file {folder / swollen} is too large for settings or a vocabulary. Fetch the model anew, or "
            f"choose another {kind}_model."
        )
    if texts:
        raise _Incomplete(
            f"The model in {folder} keeps weights in {texts[0]}, which is not there. Fetch the model anew, or choose "
            f"another {kind}_model."
        )
    if tokenizer is None:
        raise EmbedderUnavailable(
            f"The model in {folder} has no {_TOKENIZER}. Save its fast tokenizer beside config.json, or choose another "
            f"{kind}_model."
        )
    return OnnxFiles(folder=folder, graph=folder / graph, weights=weights, tokenizer=tokenizer)


def _beside(graph: str, names: Iterable[str], kept_texts: Iterable[str]) -> list[str]:
    """Files in which a graph keeps weights: those that it names, and those with the usual names."""
    folder = PurePosixPath(graph).parent
    usual = [name for name in names if name != graph and name.startswith((f"{graph}_data", f"{graph}.data"))]
    return list(dict.fromkeys([*usual, *((folder / name).as_posix() for name in kept_texts)]))


def _kept_beside(graph: Path) -> list[str]:
    """Paths of the files in which a graph says that it keeps weights, from its own folder on."""
    if graph.stat().st_size > _MOST_BARE_BYTES:
        return []
    content = graph.read_bytes()
    texts = list[str]()
    for match in re.finditer(_LOCATION, content, re.DOTALL):
        low, high = match[1], match[2][0]
        size = high if not low else (low[0] & 0x7F) | high << 7
        texts.append(content[match.end() : match.end() + size].decode("utf-8", "replace"))
    return texts


def _is_swollen(name: str, size: int) -> bool:
    return size > _MOST_SETTINGS_BYTES and name.endswith((".json", ".txt"))


def _check_size(model: str, size: int, kind: ModelKind) -> None:
    memory = _memory_bytes()
    if memory and size > memory:
        raise EmbedderUnavailable(
            f"The model {model} has {size / 1e9:,.1f} GB of weights, and this machine has {memory / 1e9:,.1f} GB of "
            f"memory. Choose a smaller {kind}_model, or the name of a quantised graph of this one."
        )


def _memory_bytes() -> int:
    """Memory that a process may have here; 0 if the system does not tell."""
    limits = []
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        pass
    for path in map(Path, _MEMORY_LIMITS):
        try:
            limits.append(int(path.read_text("ascii")))
        except (OSError, ValueError):
            continue
    return min(limits, default=0)


# --- hub -------------------------------------------------------------------------------------------------------


def _repository(name: str) -> tuple[str, str]:
    """A name of the hub, and the graph in it that is named."""
    if not name.endswith(".onnx"):
        return name, ""
    parts = name.split("/")
    return "/".join(parts[:2]), "/".join(parts[2:])


def _hub() -> Any:
    with variables(HF_HUB_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_PROGRESS_BARS="1"):
        import huggingface_hub

        return huggingface_hub


def _cached_folder(repository: str) -> Path | None:
    """The folder of a repository in the hub's cache."""
    from_cache = _hub().try_to_load_from_cache(repository, _TOKENIZER)
    return Path(from_cache).parent if isinstance(from_cache, str) else None


def _fetch_folder(repository: str, graph: str, kind: ModelKind) -> Path:
    hub = _hub()
    info = hub.HfApi().model_info(repository, files_metadata=True)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    graph = graph or _choose_graph(list(sizes), repository, kind)
    for name in filter(decides_vectors, sizes):
        hub.hf_hub_download(repository, name)
    kept_texts = _named_by(repository, graph) if sizes.get(graph, 0) <= _MOST_BARE_BYTES else []
    weights = [*_beside(graph, sizes, kept_texts), graph]
    _check_size(repository, sum(sizes.get(name, 0) for name in weights), kind)
    for name in weights:
        last = hub.hf_hub_download(repository, name)
    return Path(last).parents[graph.count("/")]


def _named_by(repository: str, graph: str) -> list[str]:
    """See `_kept_beside`; the graph is read elsewhere, as on this machine it comes last."""
    with TemporaryDirectory(prefix="onnx-") as place:
        return _kept_beside(Path(_hub().hf_hub_download(repository, graph, local_dir=place)))

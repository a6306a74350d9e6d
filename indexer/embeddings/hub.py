"""Owns the way from a model's name to the loaded model: a folder, or a name on the Hugging Face hub.

Invariants: what is on this machine is loaded from it and nobody is asked, not even for a newer version; only
`fetch=True` uses the network; code that comes with a model is never run; sentence_transformers, torch, transformers
and huggingface_hub are imported here alone, at the first need, and their exceptions end here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from indexer.embeddings.model_folder import has_weights
from indexer.embeddings.processors import usable_processors
from indexer.errors import EmbedderUnavailable

Kind = Literal["embedding", "rerank"]

# "all-MiniLM-L6-v2" or "intfloat/multilingual-e5-small". Source: huggingface_hub, validate_repo_id.
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?")
_INSTALL = 'Install it with pip install "memory-service[sentence-transformers]", or choose another {kind}_model.'
_FIRST_FILES = ("modules.json", "config.json")


def find_model(name: str, kind: Kind = "embedding") -> Path | None:
    """The folder of a model on this machine; None for a name of the hub that was not fetched yet.

    Raises:
        EmbedderUnavailable: It can be no name of the hub, and there is no such folder.
    """
    folder = _folder(name)
    if folder is not None:
        return folder
    try:
        if not _HUB_NAME.fullmatch(name):
            raise ValueError(name)
        return _fetched(name, kind)
    except ValueError as error:  # the hub has rules of its own, too
        raise EmbedderUnavailable(
            f"The model folder {name} is not there. Put it back, or set {kind}_model to where it is now"
            + (", or to another model and run `memory-service reindex --full`." if kind == "embedding" else ".")
        ) from error


def _folder(name: str) -> Path | None:
    try:
        place = Path(name).expanduser()
        return place.absolute() if place.is_dir() else None
    except (OSError, RuntimeError):
        # Too long for a file, not to be looked into, or in the home of a user who is not known.
        return None


def _fetched(name: str, kind: Kind) -> Path | None:
    """The folder in the hub's cache, if all of the model is in it: a fetch that was broken off is gone on with.

    Raises:
        ValueError: The hub has no such names.
    """
    for repository in (name,) if "/" in name else (f"sentence-transformers/{name}", f"cross-encoder/{name}", name):
        for file in _FIRST_FILES:
            found = _cached(repository, file, kind)
            if found is not None and has_weights(found.parent):
                return found.parent
    return None


def load_encoder(name: str, *, fetch: bool) -> Any:
    """A `SentenceTransformer`, on the best device there is.

    Raises:
        EmbedderUnavailable: The package or the model is not there, or the model cannot be read.
    """

    def load(place: str, local_files_only: bool) -> Any:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(place, local_files_only=local_files_only, trust_remote_code=False)

    return _loaded(name, "embedding", load, fetch=fetch)


def load_cross_encoder(name: str, *, fetch: bool) -> Any:
    """A `CrossEncoder`, on the best device there is.

    Raises:
        EmbedderUnavailable: The package or the model is not there, or the model cannot be read.
    """

    def load(place: str, local_files_only: bool) -> Any:
        from sentence_transformers import CrossEncoder

        return CrossEncoder(place, local_files_only=local_files_only, trust_remote_code=False)

    return _loaded(name, "rerank", load, fetch=fetch)


def _loaded(name: str, kind: Kind, load: Callable[[str, bool], Any], *, fetch: bool) -> Any:
    place = find_model(name, kind)
    try:
        _prepare()
        if place is None and not fetch:
            raise EmbedderUnavailable(
                f"The model {name} is not on this machine yet. Run `memory-service reindex` to fetch it."
            )
        return load(str(place or name), place is not None)
    except EmbedderUnavailable:
        raise
    except ImportError as error:
        raise _not_installed(name, kind, error) from error
    except Exception as error:  # of four packages, with no common base
        if place is None:
            raise EmbedderUnavailable(
                f"There is no folder {name}, and the hub did not give a model of that name ({type(error).__name__}). "
                f"Check {kind}_model and the network, or fetch the model on another machine and give its folder."
            ) from error
        raise EmbedderUnavailable(
            f"The model in {place} cannot be loaded ({type(error).__name__}). "
            f"Fetch it anew, or choose another {kind}_model; models that bring code of their own are not run."
        ) from error


def _not_installed(name: str, kind: Kind, error: ImportError) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"The model {name} needs the package {error.name or 'sentence_transformers'}, which cannot be imported. "
        + _INSTALL.format(kind=kind)
    )


def _prepare() -> None:
    """Have the packages use the processors that are ours, and draw no bars while they load."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its warning after a fork
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(min(torch.get_num_threads(), usable_processors()))


def _cached(repository: str, file: str, kind: Kind) -> Path | None:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError as error:
        raise _not_installed(repository, kind, error) from error
    found = try_to_load_from_cache(repository, file)
    return Path(found) if isinstance(found, str) else None

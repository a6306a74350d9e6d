"""Owns which model an index is, or would be, made with, told without asking anybody: `identify` and `learn`.

Invariants: `identify` embeds nothing and uses no network, so a status never waits for a provider; a model that is
not there now is taken for the one that made the index, so that nothing is made anew for its absence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from indexer.embeddings.base import Embedder
from indexer.errors import EmbedderUnavailable
from indexer.types import Fingerprint

_FIRST_TEXT = "The first text tells how long the vectors are."


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A model as an index knows it.

    Attributes:
        model: Its fingerprint; empty for none.
        dimensions: Length of its vectors; 0 for none, and where only a text would tell.
        problem: Why it cannot be used; empty where nothing is known against it.
    """

    model: str = ""
    dimensions: int = 0
    problem: str = ""


def identify(embedder: Embedder | None, stored: Callable[[], Fingerprint | None]) -> Identity:
    """Which model an index would be made with now.

    Args:
        embedder: The configured one.
        stored: Gives what the index was made with; called only where the model itself does not tell.
    """
    if embedder is None:
        return Identity()
    try:
        model = embedder.fingerprint
    except EmbedderUnavailable as error:
        made = stored()
        if made is None:
            return Identity(problem=str(error))
        return Identity(model=made.model, dimensions=made.dimensions, problem=str(error))
    dimensions = embedder.dimensions
    if not dimensions:
        made = stored()
        dimensions = made.dimensions if made and made.model == model else 0
    return Identity(model=model, dimensions=dimensions)


def learn(embedder: Embedder | None, *, briefly: bool = False) -> None:
    """Have a model tell what has to be known before an index is made with it: it may embed a text for that.

    Args:
        embedder: The configured one.
        briefly: Embed it as a question: no model is fetched for that, and a provider has but seconds to answer.

    Raises:
        EmbeddingError: It cannot.
    """
    if embedder is None:
        return
    try:
        known = bool(embedder.fingerprint and embedder.dimensions)
    except EmbedderUnavailable:
        known = False
    if not known and briefly:
        embedder.embed_query(_FIRST_TEXT)
    elif not known:
        embedder.embed_documents([_FIRST_TEXT])

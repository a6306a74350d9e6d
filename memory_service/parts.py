"""Owns what the settings ask for: the embedding model and the language models, made but not loaded."""

from __future__ import annotations

from indexer import (
    CachedEmbedder,
    Embedder,
    MiniLM,
)
from memory_service.config import Settings
from memory_service.errors import InvalidRequest
from memory_service.llm.litellm import LiteLLMModel
from memory_service.shortterm.bench import Models


def make_embedder(settings: Settings) -> Embedder | None:
    """The configured embedder; None for "none".

    Raises:
        InvalidRequest: The name is unknown.
    """
    name = settings.embedding_model
    if name == "none":
        return None
    if name == "minilm":
        return CachedEmbedder(MiniLM(threads=settings.embedding_threads or None))
    raise InvalidRequest(f"The embedding model {name!r} is unknown. Set embedding_model to minilm or none.")


def make_models(settings: Settings) -> Models:
    """The configured language models; none are loaded before the first call."""
    if not settings.llm_model:
        return Models()

    def made(name: str) -> LiteLLMModel:
        return LiteLLMModel(name, api_base=settings.llm_api_base or None)

    fallback = made(settings.llm_fallback_model) if settings.llm_fallback_model else None
    memories = made(settings.llm_model)
    own = settings.compaction.model
    return Models(summaries=made(own) if own else memories, memories=memories, fallback=fallback)

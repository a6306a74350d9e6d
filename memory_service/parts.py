"""Owns what the settings ask for: the embedding model and the language models, made but not loaded."""

from __future__ import annotations

from indexer import (
    CachedEmbedder,
    CrossEncoderReranker,
    Embedder,
    LiteLLMEmbedder,
    LiteLLMReranker,
    MiniLM,
    Reranker,
    SentenceTransformerEmbedder,
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
    engine, _, model = settings.embedding_model.partition("/")
    match engine, model:
        case "none", "":
            return None
        case "minilm", "":
            return CachedEmbedder(MiniLM())
        case "sentence-transformers", str(name) if name:
            return CachedEmbedder(SentenceTransformerEmbedder(name))
        case "litellm", str(name) if name:
            return CachedEmbedder(LiteLLMEmbedder(name, api_base=settings.embedding_api_base or None))
    raise InvalidRequest(
        f"The embedding model {settings.embedding_model!r} is unknown. "
        "Set embedding_model to minilm, sentence-transformers/NAME, litellm/NAME or none."
    )


def make_reranker(settings: Settings) -> Reranker | None:
    """The configured reranker; None where there is none.

    Raises:
        InvalidRequest: The name is unknown.
    """
    if not settings.rerank_model:
        return None
    engine, _, model = settings.rerank_model.partition("/")
    match engine, model:
        case "sentence-transformers", str(name) if name:
            return CrossEncoderReranker(name)
        case "litellm", str(name) if name:
            return LiteLLMReranker(name, api_base=settings.embedding_api_base or None)
    raise InvalidRequest(
        f"The rerank model {settings.rerank_model!r} is unknown. "
        "Set rerank_model to sentence-transformers/NAME or litellm/NAME, or leave it unset."
    )


def make_models(settings: Settings) -> Models:
    """The configured language models; none are loaded before the first call."""
    if not settings.llm_model:
        return Models()

    def made(name: str) -> LiteLLMModel:
        return LiteLLMModel(name, api_base=settings.llm_api_base or None)

    fallbacks = tuple(map(made, settings.llm_fallback_model))
    memories = made(settings.llm_model)
    own = settings.compaction.model
    return Models(summaries=made(own) if own else memories, memories=memories, fallbacks=fallbacks)

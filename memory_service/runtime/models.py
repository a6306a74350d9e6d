"""The models that the settings ask for.

Invariants: none is loaded before its first use, nor is the code of a kind that no setting names.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from memory_service.errors import InvalidRequest

if TYPE_CHECKING:
    from indexer import Embedder, LanguageChoice, Reranker
    from memory_service.config import Settings
    from memory_service.llm.base import ChatModel
    from memory_service.text.correction_judge import TalkJudge
    from memory_service.text.prompt_judge import PromptJudge


_NAMED_MODELS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models that the service may call; None for none.

    Attributes:
        summaries: Writes summaries.
        memories: Finds memories.
        fallbacks: Asked when one of them cannot, the first one first.
        named: Makes the model of a name, for sessions and calls that have one of their own; None where no model is
            called.
    """

    summaries: ChatModel | None = None
    memories: ChatModel | None = None
    fallbacks: tuple[ChatModel, ...] = ()
    named: Callable[[str], ChatModel] | None = None

    @property
    def is_any(self) -> bool:
        """True if a language model may be called."""
        return self.summaries is not None or self.memories is not None

    def of_name(self, name: str | None) -> ChatModel | None:
        """The model of a name; None where none is named, or no model is called."""
        return self.named(name) if name and self.named is not None else None


def make_embedder(settings: Settings) -> Embedder | LanguageChoice | None:
    """The configured embedder, for "auto" the two that each workspace chooses from; None for "none".

    Raises:
        InvalidRequest: The name is unknown.
    """
    from indexer import CachedEmbedder

    engine, _, model = settings.embedding_model.partition("/")
    match engine, model:
        case "none", "":
            return None
        case "auto", "":
            from indexer import bundled_choice

            return bundled_choice()
        case "minilm", "":
            from indexer import MiniLM

            return CachedEmbedder(MiniLM())
        case "multilingual-e5-small", "":
            from indexer import multilingual_embedder

            return multilingual_embedder()
        case "sentence-transformers", str(name) if name:
            from indexer import SentenceTransformerEmbedder

            return CachedEmbedder(SentenceTransformerEmbedder(name))
        case "onnx", str(name) if name:
            from indexer import OnnxEmbedder

            return CachedEmbedder(OnnxEmbedder(name))
        case "litellm", str(name) if name:
            from indexer import LiteLLMEmbedder

            return CachedEmbedder(LiteLLMEmbedder(name, api_base=settings.embedding_api_base or None))
    raise InvalidRequest(
        f"The embedding model {settings.embedding_model!r} is unknown. "
        "Set embedding_model to auto, minilm, multilingual-e5-small, onnx/NAME, sentence-transformers/NAME, "
        "litellm/NAME or none."
    )


def make_talk_judge(settings: Settings) -> TalkJudge | None:
    """The judge of what lasts of a talk, whose model is loaded at its first use; None where no vectors are wanted."""
    if settings.embedding_model == "none":
        return None
    from indexer import multilingual_embedder
    from memory_service.text.correction_judge import TalkJudge

    embedder = multilingual_embedder()
    return TalkJudge(embed=embedder.embed_documents, embedder=embedder.fingerprint)


def make_prompt_judge(settings: Settings) -> PromptJudge | None:
    """The judge of what belongs into a prompt, whose model is loaded when it is first asked; None without vectors."""
    if settings.embedding_model == "none":
        return None
    from indexer import MiniLM, MultilingualE5, multilingual_embedder
    from memory_service.text.prompt_judge import PromptJudge

    embedder = multilingual_embedder()
    return PromptJudge(
        embed=embedder.embed_query,
        embedder=embedder.fingerprint,
        spaces={MiniLM.fingerprint: "minilm", MultilingualE5.fingerprint: "e5"},
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
            from indexer import CrossEncoderReranker

            return CrossEncoderReranker(name)
        case "onnx", str(name) if name:
            from indexer import OnnxReranker

            return OnnxReranker(name)
        case "litellm", str(name) if name:
            from indexer import LiteLLMReranker

            return LiteLLMReranker(name, api_base=settings.embedding_api_base or None)
    raise InvalidRequest(
        f"The rerank model {settings.rerank_model!r} is unknown. "
        "Set rerank_model to onnx/NAME, sentence-transformers/NAME or litellm/NAME, or leave it unset."
    )


def make_models(settings: Settings) -> Models:
    """The configured language models; none are loaded before the first call."""
    if not settings.llm_model:
        return Models()
    from memory_service.llm.litellm import LiteLLMModel

    def make(name: str) -> LiteLLMModel:
        windows = settings.context_windows
        window_tokens = windows.get(name) or windows.get(name.rpartition("/")[2])
        return LiteLLMModel(name, api_base=settings.llm_api_base or None, window_tokens=window_tokens)

    fallbacks = tuple(map(make, settings.llm_fallback_model))
    memories = make(settings.llm_model)
    own = settings.compaction.model
    return Models(
        summaries=make(own) if own else memories,
        memories=memories,
        fallbacks=fallbacks,
        named=lru_cache(_NAMED_MODELS)(make),
    )


def load_litellm() -> None:
    """Import litellm now, which takes seconds, and not at the first call of a model; no matter if it is not there."""
    from indexer import litellm_package

    with suppress(ImportError):
        litellm_package()

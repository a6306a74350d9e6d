"""Markdown and session logs in, ranked passages out: the index library.

```python
from pathlib import Path
from indexer import Index, MiniLM

index = Index(Path("data/default"), MiniLM())
index.sync()
for hit in index.search("when do we deploy?").hits:
    print(hit.path, hit.passage.start_line, hit.snippet)
```

Errors and values are here at once; the first use of any other name loads what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from indexer.errors import (
    EmbedderUnavailable,
    EmbeddingError,
    IndexerError,
    QueryInvalid,
    SourceMissing,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreOutdated,
    StoreReadOnly,
    StoreReplaced,
    SyncCancelled,
)
from indexer.types import (
    FileFailure,
    Fingerprint,
    Hit,
    LineRange,
    Mode,
    Passage,
    SearchFilter,
    SearchResults,
    Source,
    SyncProgress,
    SyncReport,
)

if TYPE_CHECKING:
    from indexer.compatibility import IndexStatus
    from indexer.embeddings.base import CachedEmbedder, Embedder
    from indexer.embeddings.bundled import LanguageChoice, MiniLM, MultilingualE5, bundled_choice, multilingual_embedder
    from indexer.embeddings.litellm import LiteLLMEmbedder, LiteLLMReranker
    from indexer.embeddings.onnx_models import OnnxEmbedder, OnnxReranker
    from indexer.embeddings.reranking import Reranker
    from indexer.embeddings.sentence_transformers import CrossEncoderReranker, SentenceTransformerEmbedder
    from indexer.engine.ranking import RankingSettings
    from indexer.index import Index
    from indexer.rebuild import RebuildState
    from indexer.stores.base import IndexStore
    from indexer.sync.plan import SyncPlan

__all__ = [
    "CachedEmbedder",
    "CrossEncoderReranker",
    "Embedder",
    "EmbedderUnavailable",
    "EmbeddingError",
    "FileFailure",
    "Fingerprint",
    "Hit",
    "Index",
    "IndexStatus",
    "IndexStore",
    "IndexerError",
    "LanguageChoice",
    "LineRange",
    "LiteLLMEmbedder",
    "LiteLLMReranker",
    "MiniLM",
    "Mode",
    "MultilingualE5",
    "OnnxEmbedder",
    "OnnxReranker",
    "Passage",
    "QueryInvalid",
    "RankingSettings",
    "RebuildState",
    "Reranker",
    "SearchFilter",
    "SearchResults",
    "SentenceTransformerEmbedder",
    "Source",
    "SourceMissing",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreOutdated",
    "StoreReadOnly",
    "StoreReplaced",
    "SyncCancelled",
    "SyncPlan",
    "SyncProgress",
    "SyncReport",
    "bundled_choice",
    "multilingual_embedder",
]

_MODULES = {
    "CachedEmbedder": "embeddings.base",
    "CrossEncoderReranker": "embeddings.sentence_transformers",
    "Embedder": "embeddings.base",
    "Index": "index",
    "IndexStatus": "compatibility",
    "IndexStore": "stores.base",
    "LanguageChoice": "embeddings.bundled",
    "LiteLLMEmbedder": "embeddings.litellm",
    "LiteLLMReranker": "embeddings.litellm",
    "MiniLM": "embeddings.bundled",
    "MultilingualE5": "embeddings.bundled",
    "OnnxEmbedder": "embeddings.onnx_models",
    "OnnxReranker": "embeddings.onnx_models",
    "RankingSettings": "engine.ranking",
    "RebuildState": "rebuild",
    "Reranker": "embeddings.reranking",
    "SentenceTransformerEmbedder": "embeddings.sentence_transformers",
    "SyncPlan": "sync.plan",
    "bundled_choice": "embeddings.bundled",
    "multilingual_embedder": "embeddings.bundled",
}

# Unseen by type checkers, which would take any name for one that is here.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            module = import_module(f"{__name__}.{_MODULES[name]}")
        except ModuleNotFoundError as error:
            if not str(error.name).startswith(f"{__name__}."):
                raise
            raise ImportError(
                f"indexer.{name} is part of the server, and only memory-service-client is installed here. "
                "Install the server with: pip install memory-service (in a checkout: pip install .)",
                name=error.name,
            ) from None
        value = globals()[name] = getattr(module, name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

"""Markdown and session logs in, ranked passages out: the index library.

```python
from pathlib import Path
from indexer import Index, MiniLM

index = Index(Path("data/default"), MiniLM())
index.sync()
for hit in index.search("when do we deploy?").hits:
    print(hit.path, hit.passage.start_line, hit.snippet)
```
"""

from indexer.compatibility import IndexStatus
from indexer.embeddings.base import Embedder
from indexer.embeddings.cache import CachedEmbedder
from indexer.embeddings.litellm import LiteLLMEmbedder
from indexer.embeddings.minilm import MiniLM
from indexer.embeddings.rerankers import CrossEncoderReranker, LiteLLMReranker
from indexer.embeddings.sentence_transformers import SentenceTransformerEmbedder
from indexer.engine.ranking import RankingSettings
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
from indexer.index import Index
from indexer.rebuild import RebuildState
from indexer.reranking import Reranker
from indexer.stores.base import IndexStore
from indexer.sync.plan import SyncPlan
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
    "LineRange",
    "LiteLLMEmbedder",
    "LiteLLMReranker",
    "MiniLM",
    "Mode",
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
]

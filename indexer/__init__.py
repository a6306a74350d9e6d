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

from indexer.embeddings.base import Embedder
from indexer.embeddings.cache import CachedEmbedder
from indexer.embeddings.minilm import MiniLM
from indexer.errors import (
    EmbedderUnavailable,
    EmbeddingError,
    IndexerError,
    QueryInvalid,
    SourceMissing,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreOutdated,
    StoreReadOnly,
    SyncCancelled,
)
from indexer.index import Index, IndexStatus
from indexer.plan import SyncPlan
from indexer.ranking import RankingSettings
from indexer.stores.base import IndexStore
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
    "MiniLM",
    "Mode",
    "Passage",
    "QueryInvalid",
    "RankingSettings",
    "SearchFilter",
    "SearchResults",
    "Source",
    "SourceMissing",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreOutdated",
    "StoreReadOnly",
    "SyncCancelled",
    "SyncPlan",
    "SyncProgress",
    "SyncReport",
]

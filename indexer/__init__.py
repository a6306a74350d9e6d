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
    AUTHORITY,
    EVERGREEN,
    EXTRA_MARK,
    FileFailure,
    Fingerprint,
    Hit,
    LineRange,
    Mode,
    Passage,
    Role,
    SearchFilter,
    SearchResults,
    SourceKind,
    Statement,
    SyncProgress,
    SyncReport,
    Vectors,
    fold_tag,
    has_tags,
    sync_file,
    to_nfc,
)

if TYPE_CHECKING:
    from indexer.compatibility import IndexStatus
    from indexer.corpus import Floats, Ints, folder_number
    from indexer.documents.entries import (
        ITEM,
        MAX_TAG_CHARS,
        entry_hash,
        fold_entry,
        fold_words,
        is_blank,
        is_tag,
        item_end,
        moment_of,
        read_comment,
        role_of,
        short_hash,
        starts_entry,
        tags_of,
    )
    from indexer.documents.transcripts import is_openclaw, openclaw_messages, split_transcript
    from indexer.embeddings.base import CachedEmbedder, Embedder, empty_rows, unit_rows
    from indexer.embeddings.bundled import LanguageChoice, MiniLM, MultilingualE5, bundled_choice, multilingual_embedder
    from indexer.embeddings.litellm import LiteLLMEmbedder, LiteLLMReranker
    from indexer.embeddings.onnx_models import OnnxEmbedder, OnnxReranker
    from indexer.embeddings.reranking import Reranker
    from indexer.embeddings.sentence_transformers import CrossEncoderReranker, SentenceTransformerEmbedder
    from indexer.engine.chains import current_first
    from indexer.engine.finding import recall
    from indexer.engine.ranking import RankingSettings
    from indexer.engine.reader import neighbours, sampled_texts
    from indexer.engine.search import AskedQuestion, is_echo
    from indexer.index import Index, index_activity
    from indexer.providers import error_numbers, wordings
    from indexer.providers.litellm_package import error_chain, litellm_package, provider_message
    from indexer.sources.base import Content, Scan, Source, SourceFile, content_of, failed_read
    from indexer.sources.folders import ExtraFolder, FileSource, Folders
    from indexer.sources.scan import (
        MEMORY_FOLDER,
        change_times,
        is_memory_path,
        is_session_path,
        name_fault,
        path_for_new,
        path_on_disk,
        scan_memories,
        scan_workspace,
        session_path,
    )
    from indexer.sources.watch import Watch, Watched, WatchState, WatchTiming
    from indexer.stores.base import FileState, IndexStore, StoredPassage, Version
    from indexer.sync.plan import SyncPlan
    from indexer.sync.rebuild import RebuildState, needed_bytes

__all__ = [
    "AUTHORITY",
    "EVERGREEN",
    "EXTRA_MARK",
    "ITEM",
    "MAX_TAG_CHARS",
    "MEMORY_FOLDER",
    "AskedQuestion",
    "CachedEmbedder",
    "Content",
    "CrossEncoderReranker",
    "Embedder",
    "EmbedderUnavailable",
    "EmbeddingError",
    "ExtraFolder",
    "FileFailure",
    "FileSource",
    "FileState",
    "Fingerprint",
    "Floats",
    "Folders",
    "Hit",
    "Index",
    "IndexStatus",
    "IndexStore",
    "IndexerError",
    "Ints",
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
    "Role",
    "Scan",
    "SearchFilter",
    "SearchResults",
    "SentenceTransformerEmbedder",
    "Source",
    "SourceFile",
    "SourceKind",
    "SourceMissing",
    "Statement",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreOutdated",
    "StoreReadOnly",
    "StoreReplaced",
    "StoredPassage",
    "SyncCancelled",
    "SyncPlan",
    "SyncProgress",
    "SyncReport",
    "Vectors",
    "Version",
    "Watch",
    "WatchState",
    "WatchTiming",
    "Watched",
    "bundled_choice",
    "change_times",
    "content_of",
    "current_first",
    "empty_rows",
    "entry_hash",
    "error_chain",
    "error_numbers",
    "failed_read",
    "fold_entry",
    "fold_tag",
    "fold_words",
    "folder_number",
    "has_tags",
    "index_activity",
    "is_blank",
    "is_echo",
    "is_memory_path",
    "is_openclaw",
    "is_session_path",
    "is_tag",
    "item_end",
    "litellm_package",
    "moment_of",
    "multilingual_embedder",
    "name_fault",
    "needed_bytes",
    "neighbours",
    "openclaw_messages",
    "path_for_new",
    "path_on_disk",
    "provider_message",
    "read_comment",
    "recall",
    "role_of",
    "sampled_texts",
    "scan_memories",
    "scan_workspace",
    "session_path",
    "short_hash",
    "split_transcript",
    "starts_entry",
    "sync_file",
    "tags_of",
    "to_nfc",
    "unit_rows",
    "wordings",
]

_MODULES = {
    "AskedQuestion": "engine.search",
    "CachedEmbedder": "embeddings.base",
    "Content": "sources.base",
    "CrossEncoderReranker": "embeddings.sentence_transformers",
    "Embedder": "embeddings.base",
    "ExtraFolder": "sources.folders",
    "FileState": "stores.base",
    "FileSource": "sources.folders",
    "Floats": "corpus",
    "Folders": "sources.folders",
    "ITEM": "documents.entries",
    "Index": "index",
    "index_activity": "index",
    "IndexStatus": "compatibility",
    "IndexStore": "stores.base",
    "Ints": "corpus",
    "LanguageChoice": "embeddings.bundled",
    "LiteLLMEmbedder": "embeddings.litellm",
    "LiteLLMReranker": "embeddings.litellm",
    "MAX_TAG_CHARS": "documents.entries",
    "MEMORY_FOLDER": "sources.scan",
    "MiniLM": "embeddings.bundled",
    "MultilingualE5": "embeddings.bundled",
    "OnnxEmbedder": "embeddings.onnx_models",
    "OnnxReranker": "embeddings.onnx_models",
    "RankingSettings": "engine.ranking",
    "RebuildState": "sync.rebuild",
    "Reranker": "embeddings.reranking",
    "Scan": "sources.base",
    "SentenceTransformerEmbedder": "embeddings.sentence_transformers",
    "Source": "sources.base",
    "SourceFile": "sources.base",
    "StoredPassage": "stores.base",
    "SyncPlan": "sync.plan",
    "Version": "stores.base",
    "Watch": "sources.watch",
    "WatchState": "sources.watch",
    "WatchTiming": "sources.watch",
    "Watched": "sources.watch",
    "bundled_choice": "embeddings.bundled",
    "change_times": "sources.scan",
    "content_of": "sources.base",
    "current_first": "engine.chains",
    "empty_rows": "embeddings.base",
    "entry_hash": "documents.entries",
    "error_chain": "providers.litellm_package",
    "error_numbers": "providers.error_numbers",
    "failed_read": "sources.base",
    "fold_words": "documents.entries",
    "fold_entry": "documents.entries",
    "folder_number": "corpus",
    "is_blank": "documents.entries",
    "is_echo": "engine.search",
    "is_memory_path": "sources.scan",
    "is_openclaw": "documents.transcripts",
    "is_session_path": "sources.scan",
    "is_tag": "documents.entries",
    "item_end": "documents.entries",
    "litellm_package": "providers.litellm_package",
    "moment_of": "documents.entries",
    "multilingual_embedder": "embeddings.bundled",
    "name_fault": "sources.scan",
    "needed_bytes": "sync.rebuild",
    "neighbours": "engine.reader",
    "openclaw_messages": "documents.transcripts",
    "path_for_new": "sources.scan",
    "path_on_disk": "sources.scan",
    "provider_message": "providers.litellm_package",
    "read_comment": "documents.entries",
    "recall": "engine.finding",
    "role_of": "documents.entries",
    "sampled_texts": "engine.reader",
    "scan_memories": "sources.scan",
    "scan_workspace": "sources.scan",
    "session_path": "sources.scan",
    "short_hash": "documents.entries",
    "split_transcript": "documents.transcripts",
    "starts_entry": "documents.entries",
    "tags_of": "documents.entries",
    "unit_rows": "embeddings.base",
    "wordings": "providers.wordings",
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
        # The wordings of errors and the numbers in them are all that their files hold.
        value = globals()[name] = module if name in ("error_numbers", "wordings") else getattr(module, name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

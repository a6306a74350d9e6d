"""Owns the error tree of the index library.

```
IndexerError
├── QueryInvalid            the question or its filter cannot be searched
├── SourceMissing           a file or folder that should be indexed is not there
├── StoreError              the index file cannot be used
│   ├── StoreCorrupt        it is damaged, or no index at all
│   ├── StoreOutdated       another model or other passage rules made it
│   ├── StoreLocked         another process kept the write lock too long
│   ├── StoreReadOnly       it, or its folder, cannot be written
│   └── StoreFull           the disk has no room left
├── SyncCancelled           the caller stopped a sync; what was written stays
└── EmbeddingError          a text could not be turned into a vector
    └── EmbedderUnavailable the model, or the package that runs it, is not there
```

Every message has two sentences: what failed (with the value), and what to do. No message contains
the text of a memory.
"""

from __future__ import annotations


class IndexerError(Exception):
    """Root of everything the index library raises on purpose."""


class QueryInvalid(IndexerError):
    """The question or its filter cannot be searched."""


class SourceMissing(IndexerError):
    """A file or folder that should be indexed is not there."""


class StoreError(IndexerError):
    """The index file cannot be used."""


class StoreCorrupt(StoreError):
    """The index file is damaged, or it is no index."""


class StoreOutdated(StoreError):
    """The index was made by another model or with other passage rules."""


class StoreLocked(StoreError):
    """Another process kept the write lock for longer than the busy timeout."""


class StoreReadOnly(StoreError):
    """The index file or its folder cannot be written."""


class StoreFull(StoreError):
    """The disk has no room left for the index."""


class SyncCancelled(IndexerError):
    """The caller stopped a sync. What was written before stays and is not repeated."""


class EmbeddingError(IndexerError):
    """A text could not be turned into a vector."""


class EmbedderUnavailable(EmbeddingError):
    """The embedding model, or the package that runs it, is not there."""

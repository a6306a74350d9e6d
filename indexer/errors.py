"""The error tree of the index library.

```
IndexerError
├── QueryInvalid            the question or its filter cannot be searched
├── SourceMissing           a file or folder that should be indexed is not there
├── StoreError              the index file cannot be used
│   ├── StoreCorrupt        it is damaged, or no index at all
│   ├── StoreOutdated       another version made it, which cannot be read
│   │   └── StoreReplaced   another generation took its place while it was written to
│   ├── StoreLocked         another process kept the write lock too long
│   ├── StoreBusy           it is being rebuilt already
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

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    """The index was made by another version, and cannot be read."""


class StoreReplaced(StoreOutdated):
    """Another generation took the index's place while it was written to: what was planned has to be planned anew."""


class StoreLocked(StoreError):
    """Another process kept the write lock for longer than the busy timeout."""


class StoreBusy(StoreError):
    """The index is being rebuilt already, by this process or another one."""


class StoreReadOnly(StoreError):
    """The index file or its folder cannot be written."""


class StoreFull(StoreError):
    """The disk has no room left for the index."""


class SyncCancelled(IndexerError):
    """The caller stopped a sync. What was written before stays and is not repeated."""


class EmbeddingError(IndexerError):
    """A text could not be turned into a vector.

    Attributes:
        vectors: What was made all the same: float32 of shape (texts, dimensions), zeros where there is none; None
            where there is nothing at all.
    """

    def __init__(self, message: str, *, vectors: NDArray[np.float32] | None = None) -> None:
        super().__init__(message)
        self.vectors = vectors


class EmbedderUnavailable(EmbeddingError):
    """The embedding model, or the package that runs it, is not there."""

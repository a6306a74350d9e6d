"""Every use case of the service: `MemoryService`, loaded at its first use; `SyncProgress`, which `reindex` tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexer import SyncProgress
    from memory_service.service.facade import MemoryService

__all__ = ["MemoryService", "SyncProgress"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from memory_service.service import facade

        return getattr(facade, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

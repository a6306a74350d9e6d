"""Every use case of the service: `MemoryService`."""

from memory_service.service.facade import MemoryService

__all__ = ["MemoryService"]

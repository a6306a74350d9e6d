"""The Python clients of the HTTP API, one for each colour; they need httpx and pydantic alone."""

from memory_service.client._async_client import AsyncMemoryClient
from memory_service.client._client import MemoryClient

__all__ = ["AsyncMemoryClient", "MemoryClient"]

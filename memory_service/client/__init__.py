"""The Python clients of the HTTP API, sync and async; they need httpx and pydantic alone."""

from memory_service.client._async_client import AsyncMemoryClient
from memory_service.client._async_session import AsyncSession
from memory_service.client._async_stream import AsyncReplyStream
from memory_service.client._client import MemoryClient
from memory_service.client._messages import Reply
from memory_service.client._session import Session
from memory_service.client._stream import ReplyStream
from memory_service.schemas.sessions import SessionEvent

__all__ = [
    "AsyncMemoryClient",
    "AsyncReplyStream",
    "AsyncSession",
    "MemoryClient",
    "Reply",
    "ReplyStream",
    "Session",
    "SessionEvent",
]

"""Hybrid memory for AI agents: Markdown files in, an exact, budgeted block in the prompt out.

```python
from memory_service import MemoryClient

memory = MemoryClient("http://127.0.0.1:8765", workspace="default")
memory.remember("Deploys go out on Tuesdays.", tags=["ops"])
print(memory.context("when do we deploy?", budget_tokens=500).block)
```

Importing this imports neither the index nor the HTTP client; both come with the first use of a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory_service._version import __version__
from memory_service.errors import (
    CallCancelled,
    Conflict,
    ConnectionFailed,
    ContextOverflow,
    Forbidden,
    Incompressible,
    InvalidName,
    InvalidReference,
    InvalidRequest,
    MemoryServiceError,
    ModelUnavailable,
    NotFound,
    Overloaded,
    PreconditionFailed,
    ServerFailed,
    StorageFailed,
    SummaryFailed,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    UnsupportedMedia,
    UpstreamFailed,
)

if TYPE_CHECKING:
    from memory_service.client import (
        AsyncMemoryClient,
        AsyncReplyStream,
        AsyncSession,
        MemoryClient,
        Reply,
        ReplyStream,
        Session,
        SessionEvent,
    )


__all__ = [
    "AsyncMemoryClient",
    "AsyncReplyStream",
    "AsyncSession",
    "CallCancelled",
    "Conflict",
    "ConnectionFailed",
    "ContextOverflow",
    "Forbidden",
    "Incompressible",
    "InvalidName",
    "InvalidReference",
    "InvalidRequest",
    "MemoryClient",
    "MemoryServiceError",
    "ModelUnavailable",
    "NotFound",
    "Overloaded",
    "PreconditionFailed",
    "Reply",
    "ReplyStream",
    "ServerFailed",
    "Session",
    "SessionEvent",
    "StorageFailed",
    "SummaryFailed",
    "TooLarge",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMedia",
    "UpstreamFailed",
    "__version__",
]

_OF_THE_CLIENT = frozenset(
    "AsyncMemoryClient AsyncReplyStream AsyncSession MemoryClient Reply ReplyStream Session SessionEvent".split()
)

# Unseen by type checkers, which would take any name for one that is here.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        # httpx and pydantic take a fifth of a second to import: paid by those who make a client.
        if name in _OF_THE_CLIENT:
            from memory_service import client

            return getattr(client, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

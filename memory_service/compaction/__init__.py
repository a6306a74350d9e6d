"""Compaction: a long conversation in, a shorter one out. Knows nothing of logs, folders or servers.

```python
from memory_service.compaction import compact

result = compact(messages, context_window=16_000)
result.messages, result.receipt
```

Importing this loads none of it; the first use of a name does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory_service._version import require_server

if TYPE_CHECKING:
    from memory_service.compaction.stateless import compact
    from memory_service.schemas.compaction import CompactedMessages, CompactionReceipt

__all__ = ["CompactedMessages", "CompactionReceipt", "compact"]


def __getattr__(name: str) -> Any:
    # Tables of words and shapes of answers take time to load: paid by those who compact.
    if name == "compact":
        require_server("memory_service.compaction.compact")
        from memory_service.compaction import stateless

        return stateless.compact
    if name in __all__:
        from memory_service.schemas import compaction

        return getattr(compaction, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

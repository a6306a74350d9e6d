"""The server as its page sees it: the service, and its queues of threads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from memory_service.service import MemoryService

# The queues of the server that work of the page waits in.
PageWork: TypeAlias = Literal["read", "search", "append", "status"]
# Runs a call in a thread, in the queue of its kind.
Runner: TypeAlias = Callable[[PageWork, Callable[[], Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The parts of the server that its page works with.

    Attributes:
        service: The service.
        run: Runs a call in a thread, in the queue of its kind.
    """

    service: MemoryService
    run: Runner

"""The server as its page sees it: the service, and its queues of threads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive

    from memory_service.service import MemoryService, Subscription

# The queues of the server that work of the page waits in.
PageWork: TypeAlias = Literal["read", "search", "append", "status"]
# Sends events as they happen, as long as a check allows it.
Streamer: TypeAlias = Callable[["Subscription", Callable[[], bool]], "Response"]
# Runs a call in a thread, in the queue of its kind; one that a client waits for is given up if the client goes away
# before its turn.
Runner: TypeAlias = Callable[[PageWork, Callable[[], Any], "Receive | None"], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The parts of the server that its page works with.

    Attributes:
        service: The service.
        run: Runs a call in a thread, in the queue of its kind.
        stream: Makes the response that sends events.
        shows_home: Tells of a request that needs no key if it may know what there is on this machine.
    """

    service: MemoryService
    run: Runner
    stream: Streamer
    shows_home: Callable[[Request], bool]

"""Values that the parts of the work on sessions give each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_service.schemas.compaction import CompactRequest

if TYPE_CHECKING:
    from memory_service.compaction.plan_sizes import CompactionTrigger
    from memory_service.schemas.compaction import Flush


# Told at the first flush of a session.
RULES_ALONE = "flush: embedding_model is none, so rules alone tell what lasts."


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCall:
    """A request to compact a session, by a person or by the work on a prompt.

    Attributes:
        request: What is wanted; what it leaves out is as the session's settings have it.
        cause: Why, where that is no trigger of a request.
        overhead_tokens: What is sent beside the view, by estimate.
        most_tokens: The longest prompt wanted, if that is less than the window allows.
        will_retry: Whether the prompt that was refused is sent again afterwards.
        flushes: Whether what lasts is written down first, unless the session's settings switch flushes off.
        on_flush: Told what that came to.
    """

    request: CompactRequest = field(default_factory=CompactRequest)
    cause: CompactionTrigger | None = None
    overhead_tokens: int = 0
    most_tokens: int | None = None
    will_retry: bool = False
    flushes: bool = True
    on_flush: Callable[[Flush], None] | None = None

    @property
    def trigger(self) -> CompactionTrigger:
        """Why the session is compacted."""
        return self.cause or self.request.trigger

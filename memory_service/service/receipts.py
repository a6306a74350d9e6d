"""Requests of compactions of a session, and receipts of those that a context engine made. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory_service.compaction.plan import CompactionTrigger
from memory_service.compaction.receipt import CompactionMode, CompactionReceipt
from memory_service.compaction.summary import IdentifierPolicy
from memory_service.engines import Compacted
from memory_service.messages.shapes import Json
from memory_service.service.session_services import SessionSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCall:
    """A request to compact a session; None takes the session's setting.

    Attributes:
        most_tokens: The longest prompt wanted, if that is less than the window allows.
    """

    mode: CompactionMode = "apply"
    preset: str | None = None
    overrides: Mapping[str, Json] | None = None
    trigger: CompactionTrigger = "manual"
    instructions: str | None = None
    identifier_policy: IdentifierPolicy | None = None
    target_tokens: int | None = None
    force: bool = False
    overhead_tokens: int = 0
    most_tokens: int | None = None
    will_retry: bool = False


def engine_receipt(made: Compacted, snapshot: SessionSnapshot, call: CompactionCall, before: int) -> CompactionReceipt:
    """The receipt of a compaction that a context engine made; the service has nothing that it could undo."""
    return CompactionReceipt(
        compaction_id=None,
        applied=True,
        active=False,
        mode=call.mode,
        stage="engine",
        reason=made.reason,
        preset=snapshot.options.preset.name,
        trigger=call.trigger,
        tokens_before=made.tokens_before or before,
        tokens_after=made.tokens_after or made.tokens_before or before,
        summary=made.summary,
        method="engine",
        window_tokens=snapshot.options.window.tokens,
        window_source=snapshot.options.window.source,
    )

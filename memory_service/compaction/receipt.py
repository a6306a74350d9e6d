"""The builder of receipts: of a compaction that was made, planned, of no use, or left to an engine. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory_service.compaction.plan_sizes import CompactionTrigger
from memory_service.compaction.record import Compaction, LoggedCompaction
from memory_service.compaction.summary import Summary
from memory_service.engines import Compacted
from memory_service.schemas.compaction import CompactionMode, CompactionReceipt

if TYPE_CHECKING:
    from memory_service.compaction.plan import Plan
    from memory_service.compaction.presets import CompactionSettings

# What a receipt says of a compaction that did nothing of the kind.
_NOTHING: dict[str, Any] = {
    "target_tokens": 0, "first_kept": 0, "covered": None, "covered_messages": 0, "cleared": [], "stripped": [],
    "steps": [], "summary": "", "method": "none", "model": None, "prompt_version": None, "calls": 0,
    "input_tokens": 0, "output_tokens": 0, "chunk_ratio": None, "parts": 0, "duration_ms": 0, "ledger": [],
    "audit": None, "notes": [], "overrides": {}, "created_at": "", "window_tokens": 0, "window_source": "",
}  # fmt: skip


def receipt_of(past: LoggedCompaction) -> CompactionReceipt:
    """The receipt of a compaction that the log has."""
    compaction: Compaction = past.compaction
    is_summarised = compaction.stage != "prune"
    return _receipt(
        compaction.tokens_before,
        compaction.tokens_after,
        compaction_id=past.compaction_id,
        applied=True,
        active=past.active,
        mode="apply",
        stage=compaction.stage,
        reason=compaction.reason,
        preset=compaction.preset,
        trigger=compaction.trigger,
        first_kept=compaction.tail_start,
        cleared=sorted(compaction.cleared),
        stripped=compaction.stripped,
        summary=past.head.summary if is_summarised else "",
        method=compaction.method,
        model=compaction.model,
        prompt_version=compaction.prompt_version,
        calls=compaction.calls,
        input_tokens=compaction.input_tokens,
        output_tokens=compaction.output_tokens,
        chunk_ratio=compaction.chunk_ratio,
        parts=compaction.parts,
        duration_ms=compaction.duration_ms,
        ledger=past.head.ledger if is_summarised else (),
        audit=dict(compaction.audit),
        notes=compaction.notes,
        overrides=dict(compaction.overrides),
        created_at=past.at,
    )


def receipt_of_made(
    past: LoggedCompaction, plan: Plan, options: CompactionSettings, *, mode: CompactionMode = "apply", is_applied: bool
) -> CompactionReceipt:
    """The receipt of a compaction that was just made, with what was planned."""
    planned_fields = {
        "compaction_id": past.compaction_id if past.seq else None,
        "applied": is_applied,
        "active": is_applied,
        "mode": mode,
        **_plan_fields(plan, options),
    }
    return receipt_of(past).model_copy(update=planned_fields)


def receipt_of_plan(
    plan: Plan,
    options: CompactionSettings,
    trigger: CompactionTrigger,
    mode: CompactionMode = "apply",
    *,
    summary: Summary | None = None,
) -> CompactionReceipt:
    """The receipt of a compaction that was only planned, or found to be of no use after `summary` was written."""
    return _receipt(
        plan.tokens_before,
        plan.tokens_after,
        compaction_id=None,
        applied=False,
        active=False,
        mode=mode,
        stage=plan.stage,
        reason=plan.reason,
        preset=options.preset.name,
        trigger=trigger,
        first_kept=plan.tail_start,
        cleared=sorted(plan.cleared),
        stripped=plan.stripped,
        calls=summary.calls if summary else 0,
        input_tokens=summary.input_tokens if summary else 0,
        output_tokens=summary.output_tokens if summary else 0,
        chunk_ratio=summary.chunk_ratio if summary else None,
        parts=summary.parts if summary else 0,
        notes=(*plan.notes, *plan.shortfalls, *(summary.notes if summary else ())),
        overrides=dict(options.overrides),
        **_plan_fields(plan, options),
    )


def receipt_of_engine(
    compaction: Compacted,
    options: CompactionSettings,
    trigger: CompactionTrigger,
    mode: CompactionMode,
    tokens_before: int,
) -> CompactionReceipt:
    """The receipt of a compaction that a context engine made; the service has nothing that it could undo."""
    before = compaction.tokens_before or tokens_before
    return _receipt(
        before,
        compaction.tokens_after or before,
        compaction_id=None,
        applied=True,
        active=False,
        mode=mode,
        stage="engine",
        reason=compaction.reason,
        preset=options.preset.name,
        trigger=trigger,
        summary=compaction.summary,
        method="engine",
        window_tokens=options.window.tokens,
        window_source=options.window.source,
    )


def _receipt(tokens_before: int, tokens_after: int, **fields: object) -> CompactionReceipt:
    ratio = round(tokens_after / tokens_before, 4) if tokens_before else 1.0
    sizes = {"tokens_before": tokens_before, "tokens_after": tokens_after, "ratio": ratio}
    return CompactionReceipt.model_validate(_NOTHING | sizes | fields)


def _plan_fields(plan: Plan, options: CompactionSettings) -> dict[str, Any]:
    messages = (*plan.covered, *plan.prefix)
    return {
        "target_tokens": plan.target_tokens,
        "covered": (messages[0].seq, messages[-1].seq) if messages else None,
        "covered_messages": len(messages),
        "steps": list(plan.steps),
        "degraded": [f"compaction: {shortfall}" for shortfall in plan.shortfalls],
        "window_tokens": options.window.tokens,
        "window_source": options.window.source,
    }

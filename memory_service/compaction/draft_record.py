"""The record of a compaction, as the log will have it, from its plan and its summary. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_service.compaction.audit import Audit, audit_record
from memory_service.compaction.plan import Plan
from memory_service.compaction.plan_sizes import CompactionTrigger
from memory_service.compaction.record import Compaction, text_delta
from memory_service.compaction.summary import Summary
from memory_service.compaction.view import Conversation

if TYPE_CHECKING:
    from memory_service.compaction.presets import CompactionSettings


def compaction_record(
    state: Conversation,
    plan: Plan,
    settings: CompactionSettings,
    trigger: CompactionTrigger,
    summary: Summary | None,
    audit: Audit | None,
    language: str,
) -> Compaction:
    """Record of a compaction; without a summary nothing before the tail is stood for."""
    return Compaction(
        base=state.head.seq,
        upto=state.last_seq,
        tail_start=plan.tail_start if summary else state.head.tail_start,
        summary=text_delta(state.head.summary, summary.text) if summary else (),
        stage=plan.stage,
        tokens_before=plan.tokens_before,
        tokens_after=plan.tokens_after,
        cleared=plan.cleared,
        stripped=plan.stripped,
        toolless_upto=plan.toolless_upto,
        ledger_tokens=plan.ledger_limit_tokens if summary else None,
        whole_request=plan.whole_request,
        role=settings.preset.role,
        preset=settings.preset.name,
        trigger=trigger,
        method=summary.method if summary else "none",
        model=summary.model if summary else None,
        prompt_version=summary.prompt_version if summary else None,
        calls=summary.calls if summary else 0,
        input_tokens=summary.input_tokens if summary else 0,
        output_tokens=summary.output_tokens if summary else 0,
        chunk_ratio=summary.chunk_ratio if summary else None,
        parts=summary.parts if summary else 0,
        audit=audit_record(audit) if audit is not None else {},
        notes=(*plan.notes, *plan.shortfalls, *(summary.notes if summary else ())),
        overrides=settings.overrides,
        reason=plan.reason,
        language="" if language == "en" else language,
    )

"""A compaction that is not committed: its options, its parts, and the record that the log will have. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_service.compaction.audit import audit_record
from memory_service.compaction.record import Compaction, text_delta
from memory_service.hooks import Provided

if TYPE_CHECKING:
    from memory_service.compaction.audit import Audit
    from memory_service.compaction.plan import Plan
    from memory_service.compaction.plan_sizes import CompactionTrigger
    from memory_service.compaction.presets import CompactionSettings
    from memory_service.compaction.record import Head
    from memory_service.compaction.summary import Summary
    from memory_service.compaction.view import Conversation, View
    from memory_service.llm.base import ChatModel
    from memory_service.schemas.compaction import IdentifierPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions:
    """Options of one compaction.

    Attributes:
        trigger: Why it is asked for.
        instructions: What the summary should look at, beside the settings'.
        provided: What hooks put in the place of the prompt or the summary.
        target_tokens: What the view should come to; None for the preset's target.
        force: Compact although nothing asks for it, and although the last tries failed.
        model: Writes the summary in the place of the compactor's model; None for that one.
    """

    trigger: CompactionTrigger = "manual"
    instructions: str = ""
    provided: Provided = field(default_factory=Provided)
    identifier_policy: IdentifierPolicy = "preserve"
    target_tokens: int | None = None
    force: bool = False
    model: ChatModel | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDraft:
    """A compaction that is not committed.

    Attributes:
        plan: What it does.
        made: The record; None if there is nothing to do, and `plan.reason` says why.
        view: The view behind it; as it is now if there is nothing to do.
        head: What the record makes of the session's.
        summary: What stands for the covered messages; None where none was needed.
        audit: What was found in it.
    """

    plan: Plan
    made: Compaction | None
    view: View
    head: Head
    summary: Summary | None = None
    audit: Audit | None = None


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

"""The record of a compaction: made, planned, or found to be of no use. Plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from memory_service.compaction.ledger import LedgerEntry
from memory_service.compaction.options import CompactionSettings
from memory_service.compaction.plan import CompactionTrigger, Plan, Step
from memory_service.compaction.record import Compaction, LoggedCompaction
from memory_service.compaction.summary import Summary
from memory_service.messages import Message, to_openai
from memory_service.messages.shapes import Json
from memory_service.schemas import compaction as schemas

CompactionMode = Literal["plan", "preview", "apply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReceipt:
    """The record of a compaction: made, planned, or found to be of no use.

    Attributes:
        compaction_id: `c` and the number of its record; None if nothing was changed.
        applied: Whether the view is another one now.
        stage: How far it went: `none`, `prune`, `summary`, `hard`; `engine` for what a context engine did.
        first_kept: The first message that stays word for word; 0 for all.
        covered: The first and the last message that the summary stands for now.
        ratio: Tokens after by tokens before.
        summary: Its text; empty where none was written.
        method: Who wrote it: `model`, `extractive`, `note`, `hook`, `engine`, `none`.
        ledger: Exact things that are kept beside the summary.
        overrides: What of the preset's numbers was overridden.
        messages: What the view would be: of a preview alone.
        continue_note: Whether a note to go on may stand behind the messages; a hook may switch it off.
    """

    compaction_id: str | None
    applied: bool
    active: bool
    mode: CompactionMode
    stage: str
    reason: str
    preset: str
    trigger: str
    tokens_before: int
    tokens_after: int
    target_tokens: int = 0
    first_kept: int = 0
    covered: tuple[int, int] | None = None
    covered_messages: int = 0
    cleared: tuple[int, ...] = ()
    stripped: tuple[int, ...] = ()
    steps: tuple[Step, ...] = ()
    summary: str = ""
    method: str = "none"
    model: str | None = None
    prompt_version: str | None = None
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    duration_ms: int = 0
    ledger: tuple[LedgerEntry, ...] = ()
    audit: dict[str, object] | None = None
    notes: tuple[str, ...] = ()
    overrides: Mapping[str, Json] = field(default_factory=dict)
    created_at: str = ""
    window_tokens: int = 0
    window_source: str = ""
    degraded: tuple[str, ...] = ()
    messages: tuple[Message, ...] | None = None
    continue_note: bool = True

    @property
    def ratio(self) -> float:
        """Tokens after by tokens before."""
        return round(self.tokens_after / self.tokens_before, 4) if self.tokens_before else 1.0


def receipt_of(past: LoggedCompaction) -> CompactionReceipt:
    """The receipt of a compaction that the log has."""
    made: Compaction = past.compaction
    return CompactionReceipt(
        compaction_id=f"c{past.seq}",
        applied=True,
        active=past.active,
        mode="apply",
        stage=made.stage,
        reason=made.reason,
        preset=made.preset,
        trigger=made.trigger,
        tokens_before=made.tokens_before,
        tokens_after=made.tokens_after,
        first_kept=made.tail_start,
        cleared=tuple(sorted(made.cleared)),
        stripped=made.stripped,
        summary=past.head.summary if made.stage != "prune" else "",
        method=made.method,
        model=made.model,
        prompt_version=made.prompt_version,
        calls=made.calls,
        input_tokens=made.input_tokens,
        output_tokens=made.output_tokens,
        duration_ms=made.duration_ms,
        ledger=past.head.ledger if made.stage != "prune" else (),
        audit=dict(made.audit),
        notes=made.notes,
        overrides=made.overrides,
        created_at=past.at,
    )


def receipt_of_made(
    past: LoggedCompaction, plan: Plan, options: CompactionSettings, *, mode: CompactionMode = "apply", applied: bool
) -> CompactionReceipt:
    """The receipt of a compaction that was just made, with what was planned."""
    return replace(
        receipt_of(past),
        compaction_id=f"c{past.seq}" if past.seq else None,
        applied=applied,
        active=applied,
        mode=mode,
        target_tokens=plan.target_tokens,
        covered=_range(plan),
        covered_messages=len(plan.covered) + len(plan.prefix),
        steps=plan.steps,
        window_tokens=options.window.tokens,
        window_source=options.window.source,
    )


def receipt_of_plan(
    plan: Plan,
    options: CompactionSettings,
    trigger: CompactionTrigger,
    mode: CompactionMode = "apply",
    *,
    summary: Summary | None = None,
) -> CompactionReceipt:
    """The receipt of a compaction that was only planned, or found to be of no use after `summary` was written."""
    return CompactionReceipt(
        compaction_id=None,
        applied=False,
        active=False,
        mode=mode,
        stage=plan.stage,
        reason=plan.reason,
        preset=options.preset.name,
        trigger=trigger,
        tokens_before=plan.tokens_before,
        tokens_after=plan.tokens_after,
        target_tokens=plan.target_tokens,
        first_kept=plan.tail_start,
        covered=_range(plan),
        covered_messages=len(plan.covered) + len(plan.prefix),
        cleared=tuple(sorted(plan.cleared)),
        stripped=plan.stripped,
        steps=plan.steps,
        calls=summary.calls if summary else 0,
        input_tokens=summary.input_tokens if summary else 0,
        output_tokens=summary.output_tokens if summary else 0,
        notes=(*plan.notes, *(summary.notes if summary else ())),
        overrides=options.overrides,
        window_tokens=options.window.tokens,
        window_source=options.window.source,
    )


def _range(plan: Plan) -> tuple[int, int] | None:
    covered = (*plan.covered, *plan.prefix)
    return (covered[0].seq, covered[-1].seq) if covered else None


def as_answer(made: CompactionReceipt) -> schemas.CompactionReceipt:
    """The record of a compaction as it goes over the wire."""
    fields = {
        field.name: getattr(made, field.name)
        for field in dataclasses.fields(made)
        if field.name not in ("steps", "ledger", "messages", "audit", "continue_note")
    }
    return schemas.CompactionReceipt(
        **fields,
        ratio=made.ratio,
        steps=[schemas.CompactionStep.model_validate(dataclasses.asdict(step)) for step in made.steps],
        ledger=[schemas.LedgerEntry.model_validate(entry) for entry in made.ledger],
        audit=dict(made.audit) if made.audit is not None else None,
        messages=to_openai(made.messages) if made.messages is not None else None,
    )

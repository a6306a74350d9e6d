"""Owns the compactions of the sessions of one workspace: plan, preview, apply, undo, and the receipt of each.

Invariants: one session is compacted by one caller at a time, and few at once in all, while appends go on; who waited
and finds nothing left to do changes nothing; a try that fails leaves the session as it was, says so in its event, and
after some strikes waits for new messages before it tries again by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from memory_service.compaction.plan import CompactionTrigger, Plan, Step
from memory_service.compaction.summary import IdentifierPolicy
from memory_service.engines import CompactCall, Compacted
from memory_service.errors import CallCancelled, Conflict, MemoryServiceError, NotFound
from memory_service.hooks import Intent
from memory_service.llm.base import never
from memory_service.messages import Message
from memory_service.sessions.records import Compaction, LedgerEntry, Undo
from memory_service.sessions.state import PastCompaction, SessionState, chain_of
from memory_service.shortterm.bench import Bench, Look
from memory_service.shortterm.compactor import CompactionWish, Compactor, Draft
from memory_service.shortterm.options import SessionOptions
from memory_service.shortterm.seat import Seat
from memory_service.shortterm.snapshot import snapshot_of

CompactionMode = Literal["plan", "preview", "apply"]

# Source: Claude Code and Codex stop after three failures in a row; each may cost a call of a model.
_STRIKES = 3
# New material that makes another try worth it, as a share of the view.
_NEWS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReceipt:
    """The record of a compaction: made, planned, or found to be of no use.

    Attributes:
        compaction_id: `c` and the number of its record; None if nothing was changed.
        applied: Whether the view is another one now.
        stage: How far it went: `none`, `prune`, `summary`, `hard`.
        first_kept: The first message that stays word for word; 0 for all.
        covered: The first and the last message that the summary stands for now.
        ratio: Tokens after by tokens before.
        summary: Its text; empty where none was written.
        method: Who wrote it: `model`, `extractive`, `note`, `none`.
        ledger: Exact things that are kept beside the summary.
        messages: What the view would be: of a preview alone.
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
    created_at: str = ""
    window_tokens: int = 0
    window_source: str = ""
    degraded: tuple[str, ...] = ()
    messages: tuple[Message, ...] | None = None

    @property
    def ratio(self) -> float:
        """Tokens after by tokens before."""
        return round(self.tokens_after / self.tokens_before, 4) if self.tokens_before else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCall:
    """What a caller wants of a compaction; what is None is as the session's settings have it.

    Attributes:
        most_tokens: The longest prompt wanted, if that is less than the window allows.
    """

    mode: CompactionMode = "apply"
    preset: str | None = None
    trigger: CompactionTrigger = "manual"
    instructions: str | None = None
    identifier_policy: IdentifierPolicy | None = None
    target_tokens: int | None = None
    force: bool = False
    overhead_tokens: int = 0
    most_tokens: int | None = None
    will_retry: bool = False


@dataclass(slots=True)
class _Strikes:
    """How often compacting failed or did not help, and what the view took then, as its model counts."""

    count: int = 0
    last_seq: int = 0
    tokens: int = 0


class Compactions:
    """Compacts the sessions of one workspace.

    Args:
        bench: What work on them needs.
        compactor: Makes them.
        seat: Of a context engine that may be there.
    """

    def __init__(self, bench: Bench, compactor: Compactor, seat: Seat) -> None:
        self._bench = bench
        self._compactor = compactor
        self._seat = seat
        self._strikes: dict[str, _Strikes] = {}

    def compact(
        self, session_id: str, call: CompactionCall, *, cancelled: Callable[[], bool] = never
    ) -> CompactionReceipt:
        """Plan, preview or apply a compaction.

        Raises:
            NotFound: There is no such session.
            Incompressible: What cannot be compacted is larger than the window.
            UpstreamFailed: The model failed and nothing may stand in for it; nothing was changed.
            Conflict: Another process compacted or undid meanwhile; nothing was changed.
        """
        if call.mode == "plan":
            look = self._bench.look(session_id, preset=call.preset)
            return self._planned(look, call)
        with self._bench.alone(session_id, compacting=True):
            look = self._bench.look(session_id, preset=call.preset)
            if call.mode == "preview":
                draft = self._draft(look, call, cancelled)
                return replace(self._shown(look, call, draft, applied=None), messages=draft.view.messages)
            return self._applied(look, call, cancelled)

    def undo(self, session_id: str, compaction_id: str) -> CompactionReceipt:
        """Back to the exact view before a compaction; what was said since stays.

        Raises:
            NotFound: There is no such compaction.
            Conflict: It does not count any more.
        """
        with self._bench.alone(session_id):
            look = self._bench.look(session_id)
            past = _past(look.state, compaction_id)
            if past.seq not in chain_of(look.state.heads, look.state.head):
                raise Conflict(
                    f"The compaction {compaction_id} was undone before. List the compactions to see which count."
                )
            look.session.append([Undo(compaction=past.seq)])
            now = self._bench.look(session_id)
        view = now.view()
        self._bench.tell("undo", session_id, compaction_id=compaction_id, tokens_after=view.tokens)
        return receipt_of(replace(past, active=False))

    def past(self, session_id: str) -> list[CompactionReceipt]:
        """The receipts of all compactions, newest first."""
        state = self._bench.session(session_id).state()
        return [receipt_of(each) for each in reversed(state.compactions)]

    def receipt(self, session_id: str, compaction_id: str) -> CompactionReceipt:
        """The receipt of a compaction.

        Raises:
            NotFound: There is none of that id.
        """
        return receipt_of(_past(self._bench.session(session_id).state(), compaction_id))

    def worth_trying(self, session_id: str, last_seq: int, tokens: int) -> bool:
        """Whether an automatic compaction may help: the last ones did, or enough was said since."""
        strikes = self._strikes.get(session_id)
        if strikes is None or strikes.count < _STRIKES:
            return True
        return last_seq < strikes.last_seq or tokens > strikes.tokens * (1 + _NEWS)

    def _planned(self, look: Look, call: CompactionCall) -> CompactionReceipt:
        view = look.view()
        plan = self._compactor.plan(
            snapshot_of(look.state, view, look.shape, now=self._bench.now(), last_used_at=None),
            look.options.preset,
            look.budget(overhead_tokens=call.overhead_tokens, most_tokens=call.most_tokens),
            _wish(look, call, ""),
        )
        return receipt_of_plan(plan, look.options, call.trigger, call.mode)

    def _draft(self, look: Look, call: CompactionCall, cancelled: Callable[[], bool], more: str = "") -> Draft:
        return self._compactor.draft(
            look.state,
            look.view(),
            look.shape,
            look.options.preset,
            look.budget(overhead_tokens=call.overhead_tokens, most_tokens=call.most_tokens),
            _wish(look, call, more),
            now=self._bench.now(),
            originals=look.session.originals(look.state),
            cancelled=cancelled,
        )

    def _applied(self, look: Look, call: CompactionCall, cancelled: Callable[[], bool]) -> CompactionReceipt:
        bench, session_id, before = self._bench, look.session_id, look.view().tokens
        intent = Intent(
            work="compaction",
            workspace=bench.workspace,
            session_id=session_id,
            fields={"trigger": call.trigger, "tokens_before": before},
        )
        verdict = bench.shared.hooks.ask(intent)
        if verdict.refused is not None:
            raise Conflict(f"A hook refused the compaction: {verdict.refused.reason}")
        bench.tell("compaction_start", session_id, trigger=call.trigger, tokens_before=before)
        outcome, started = "failed", time.monotonic()
        receipt: CompactionReceipt | None = None
        try:
            receipt = self._by_engine(look, call, before)
            if receipt is not None:
                outcome = receipt.stage
                return receipt
            draft = self._draft(look, call, cancelled, verdict.instructions)
            seq = look.session.commit(draft.made) if draft.made is not None else None
            receipt = self._shown(look, call, draft, applied=seq)
            receipt = replace(receipt, degraded=(*receipt.degraded, *verdict.failures))
            outcome = receipt.stage
            self._count(look, call, helped=seq is not None)
            return receipt
        except (Conflict, CallCancelled) as error:
            # Others were faster, or nobody wants it any more: that says nothing about the next try.
            outcome = error.code
            raise
        except MemoryServiceError as error:
            outcome = error.code
            self._count(look, call, helped=False)
            raise
        finally:
            event = bench.shared.events.publish(
                bench.workspace,
                "compaction_end",
                session_id,
                trigger=call.trigger,
                outcome=outcome,
                compaction_id=receipt.compaction_id if receipt else None,
                tokens_before=before,
                tokens_after=receipt.tokens_after if receipt else before,
                method=receipt.method if receipt else "none",
                calls=receipt.calls if receipt else 0,
                pruned=len(receipt.cleared) + len(receipt.stripped) if receipt and receipt.applied else 0,
                duration_ms=int((time.monotonic() - started) * 1000),
                will_retry=call.will_retry,
            )
            bench.shared.hooks.tell("compaction", event)

    def _by_engine(self, look: Look, call: CompactionCall, before: int) -> CompactionReceipt | None:
        """Let a context engine compact what it holds; None if the view is to be compacted as well.

        Asked for by a person, the compaction of an engine that owns compaction is all there is to do.
        """
        if call.trigger == "cache_ttl":
            return None
        budget = look.budget(overhead_tokens=call.overhead_tokens, most_tokens=call.most_tokens)
        target = budget.emergency_target_tokens if call.trigger == "overflow" else budget.target_tokens
        wish = CompactCall(trigger=call.trigger, instructions=call.instructions or "", force=call.force)
        made = self._seat.compacted(look, target_tokens=budget.estimated(call.target_tokens or target), call=wish)
        if made is None or not made.compacted or call.trigger != "manual":
            return None
        return engine_receipt(made, look, call, before) if self._seat.owns_compaction(look.session_id) else None

    def _count(self, look: Look, call: CompactionCall, *, helped: bool) -> None:
        if helped:
            self._strikes.pop(look.session_id, None)
            return
        if call.trigger == "cache_ttl":
            # Asked before every prompt, and nearly always too early.
            return
        strikes = self._strikes.setdefault(look.session_id, _Strikes())
        strikes.count += 1
        # In the same unit as what `worth_trying` is asked with, or the two could not be compared.
        strikes.last_seq, strikes.tokens = look.state.last_seq, look.reading().tokens

    def _shown(self, look: Look, call: CompactionCall, draft: Draft, *, applied: int | None) -> CompactionReceipt:
        if draft.made is None:
            return receipt_of_plan(draft.plan, look.options, call.trigger, call.mode)
        past = PastCompaction(
            seq=applied or 0, at=self._bench.now().isoformat(), compaction=draft.made, head=draft.head
        )
        return receipt_of_made(past, draft.plan, look.options, mode=call.mode, applied=applied is not None)


def receipt_of(past: PastCompaction) -> CompactionReceipt:
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
        created_at=past.at,
    )


def receipt_of_made(
    past: PastCompaction, plan: Plan, options: SessionOptions, *, mode: CompactionMode = "apply", applied: bool
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


def engine_receipt(made: Compacted, look: Look, call: CompactionCall, before: int) -> CompactionReceipt:
    """The receipt of a compaction that a context engine made; the service has nothing that it could undo."""
    return CompactionReceipt(
        compaction_id=None,
        applied=True,
        active=False,
        mode=call.mode,
        stage="engine",
        reason=made.reason,
        preset=look.options.preset.name,
        trigger=call.trigger,
        tokens_before=made.tokens_before or before,
        tokens_after=made.tokens_after or made.tokens_before or before,
        summary=made.summary,
        method="engine",
        window_tokens=look.options.window.tokens,
        window_source=look.options.window.source,
    )


def receipt_of_plan(
    plan: Plan, options: SessionOptions, trigger: CompactionTrigger, mode: CompactionMode = "apply"
) -> CompactionReceipt:
    """The receipt of a compaction that was only planned, or found to be of no use."""
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
        window_tokens=options.window.tokens,
        window_source=options.window.source,
    )


def _range(plan: Plan) -> tuple[int, int] | None:
    covered = (*plan.covered, *plan.prefix)
    return (covered[0].seq, covered[-1].seq) if covered else None


def _wish(look: Look, call: CompactionCall, more: str) -> CompactionWish:
    words = (look.options.instructions, call.instructions or "", more)
    return CompactionWish(
        trigger=call.trigger,
        instructions="\n".join(word for word in words if word),
        identifier_policy=call.identifier_policy or look.options.identifier_policy,
        target_tokens=call.target_tokens,
        force=call.force,
        fallback=look.options.fallback,
    )


def _past(state: SessionState, compaction_id: str) -> PastCompaction:
    for past in state.compactions:
        if f"c{past.seq}" == compaction_id:
            return past
    raise NotFound(f"There is no compaction {compaction_id[:80]!a}. List the compactions to see their ids.")

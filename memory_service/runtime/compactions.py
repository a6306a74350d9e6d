"""Compactions of sessions: plan, preview, apply, undo, with receipts.

Invariants: one session is compacted by one caller at a time, and few at once in all, while appends go on; who waited
and finds nothing left to do changes nothing; before a summary takes the place of messages, what lasts of them is
flushed, and a flush that fails is named and keeps nobody from compacting; a try that fails leaves the view as it was,
says so in its event, and after some strikes waits for new messages before it tries again by itself.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_service.compaction.draft import CompactionDraft, CompactionOptions
from memory_service.compaction.plan import Plan, original_messages
from memory_service.compaction.receipt import receipt_of, receipt_of_engine, receipt_of_made, receipt_of_plan
from memory_service.compaction.record import LoggedCompaction, newest_compaction
from memory_service.compaction.snapshot import snapshot_of
from memory_service.engines import CompactCall
from memory_service.errors import CallCancelled, Conflict, Incompressible, MemoryServiceError, NotFound
from memory_service.hooks import Intent, Material, Verdict
from memory_service.llm.base import not_cancelled
from memory_service.llm.calls import Spent
from memory_service.messages.writing import to_openai
from memory_service.runtime.base import RULES_ALONE, CompactionCall
from memory_service.runtime.session import SessionState, chain_of
from memory_service.runtime.session_options import check_summary_model
from memory_service.schemas.compaction import CompactionReceipt, CompactRequest
from memory_service.sessions.records import Undo

if TYPE_CHECKING:
    from memory_service.compaction.compactor import Compactor
    from memory_service.llm.base import ChatModel
    from memory_service.runtime.engine_adapter import EngineAdapter
    from memory_service.runtime.flushes import Flushes
    from memory_service.runtime.session_services import SessionRuntime, SessionSnapshot

_log = logging.getLogger("memory_service.compactions")
# Source: Claude Code and Codex stop after three failures in a row; each may cost a call of a model.
_STRIKES = 3
# New material that makes another try worth it, as a share of the view.
_NEWS = 0.05


@dataclass(slots=True)
class _Strikes:
    """Count of compactions that failed or did not help, and the size of the view at that time in the model's tokens."""

    count: int = 0
    last_seq: int = 0
    tokens: int = 0


class SessionCompactions:
    """Compacts the sessions of one workspace.

    Args:
        services: What work on them needs.
        compactor: Makes them.
        adapter: Of a context engine that may be there.
        flushes: Writes down what lasts, before a summary takes its place.
    """

    def __init__(
        self, services: SessionRuntime, compactor: Compactor, adapter: EngineAdapter, flushes: Flushes
    ) -> None:
        self._services = services
        self._compactor = compactor
        self._adapter = adapter
        self._flushes = flushes
        self._strikes: dict[str, _Strikes] = {}

    def compact(
        self, session_id: str, call: CompactionCall, *, cancelled: Callable[[], bool] = not_cancelled
    ) -> CompactionReceipt:
        """Plan, preview or apply a compaction.

        Raises:
            NotFound: There is no such session.
            Incompressible: What cannot be compacted is larger than the window.
            UpstreamFailed: The model failed and nothing may stand in for it; nothing was changed.
            Conflict: Another process compacted or undid meanwhile; nothing was changed.
        """
        mode, preset, overrides = call.request.mode, call.request.preset, call.request.overrides
        if mode == "plan":
            snapshot = self._services.snapshot(session_id, preset=preset, overrides=overrides)
            return self._unlike_engine(session_id, self._plan_receipt(snapshot, call))
        check_summary_model(self._services.shared.settings, call.request.model or "")
        with self._services.alone(session_id, compacting=True):
            snapshot = self._services.snapshot(session_id, preset=preset, overrides=overrides)
            if mode == "preview":
                draft = self._draft(snapshot, call, cancelled, Spent())
                receipt = self._receipt_of(snapshot, call, draft, applied=None)
                receipt = receipt.model_copy(update={"messages": to_openai(draft.view.messages)})
                return self._unlike_engine(session_id, receipt)
            return self._apply(snapshot, call, cancelled)

    def undo(self, session_id: str, compaction_id: str) -> CompactionReceipt:
        """Back to the exact view before a compaction; what was said since stays.

        Raises:
            NotFound: There is no such compaction.
            Conflict: It does not count any more.
        """
        with self._services.alone(session_id):
            snapshot = self._services.snapshot(session_id)
            past, before = _past(snapshot.state, compaction_id), snapshot.view().tokens
            if past.seq not in chain_of(snapshot.state.heads, snapshot.state.head):
                raise Conflict(
                    f"The compaction {compaction_id} was undone before. List the compactions to see which count."
                )
            snapshot.session.note([Undo(compaction=past.seq)], snapshot.state)
            now = self._services.snapshot(session_id)
        view = now.view()
        self._services.tell("undo", session_id, compaction_id=compaction_id, tokens_after=view.tokens)
        sizes = {"active": False, "view_tokens_before": before, "view_tokens_after": view.tokens}
        return receipt_of(past).model_copy(update=sizes)

    def past(self, session_id: str) -> list[CompactionReceipt]:
        """The receipts of all compactions, newest first."""
        state = self._services.session(session_id).state()
        return [receipt_of(compaction) for compaction in reversed(state.compactions)]

    def receipt(self, session_id: str, compaction_id: str) -> CompactionReceipt:
        """The receipt of a compaction.

        Raises:
            NotFound: There is none of that id.
        """
        return receipt_of(_past(self._services.session(session_id).state(), compaction_id))

    def newest_active(self, session_id: str) -> str:
        """The id of the newest compaction that counts.

        Raises:
            NotFound: There is none.
        """
        if compaction := newest_compaction(self._services.session(session_id).state().compactions):
            return compaction
        raise NotFound(f"The session {session_id} has no compaction that counts. `sessions compactions` lists all.")

    def worth_trying(self, session_id: str, last_seq: int, tokens: int) -> bool:
        """True if an automatic compaction may help: the last ones did, or enough was said since."""
        strikes = self._strikes.get(session_id)
        if strikes is None or strikes.count < _STRIKES:
            return True
        return last_seq < strikes.last_seq or tokens > strikes.tokens * (1 + _NEWS)

    def _material(self, snapshot: SessionSnapshot, call: CompactionCall) -> Material:
        """Messages that a summary would replace, for hooks."""
        plan = self._plan(snapshot, call)
        messages, prefix = original_messages(snapshot.state, plan)
        return Material(
            messages=tuple(copy.deepcopy(message.message) for message in (*messages, *prefix)),
            previous=snapshot.state.head.summary,
            target_tokens=plan.summary_tokens,
        )

    def _plan_receipt(self, snapshot: SessionSnapshot, call: CompactionCall) -> CompactionReceipt:
        return receipt_of_plan(self._plan(snapshot, call), snapshot.options, call.trigger, call.request.mode)

    def _plan(self, snapshot: SessionSnapshot, call: CompactionCall) -> Plan:
        view = snapshot.view()
        return self._compactor.plan(
            snapshot_of(snapshot.state, view, snapshot.shape, now=self._services.now()),
            snapshot.options,
            snapshot.budget(overhead_tokens=call.overhead_tokens, most_tokens=call.most_tokens),
            _compaction_options(snapshot, call, Verdict()),
        )

    def _draft(
        self,
        snapshot: SessionSnapshot,
        call: CompactionCall,
        cancelled: Callable[[], bool],
        spending: Spent,
        verdict: Verdict | None = None,
    ) -> CompactionDraft:
        return self._compactor.draft(
            snapshot.state,
            snapshot.view(),
            snapshot.shape,
            snapshot.options,
            snapshot.budget(overhead_tokens=call.overhead_tokens, most_tokens=call.most_tokens),
            replace(
                _compaction_options(snapshot, call, verdict or Verdict()), model=self._own_model(snapshot, call.request)
            ),
            now=self._services.now(),
            originals=snapshot.session.originals(snapshot.state),
            cancelled=cancelled,
            spending=spending,
        )

    def _own_model(self, snapshot: SessionSnapshot, request: CompactRequest) -> ChatModel | None:
        """The model that the call or the session names for its summaries; None for that of the service."""
        return self._services.shared.models.of_name(request.model or snapshot.options.summary_model)

    def _apply(
        self, snapshot: SessionSnapshot, call: CompactionCall, cancelled: Callable[[], bool]
    ) -> CompactionReceipt:
        services, session_id, before = self._services, snapshot.session_id, snapshot.view().tokens
        verdict = self._verdict(snapshot, call, before)
        snapshot, missed_texts = self._flush_first(snapshot, call, cancelled)
        services.tell("compaction_start", session_id, trigger=call.trigger, tokens_before=before)
        outcome, started_time, spending = "failed", time.monotonic(), Spent()
        place = f"{services.workspace}/{session_id}"
        _log.info("compaction of %s begins: trigger %s, %d tokens", place, call.trigger, before)
        receipt: CompactionReceipt | None = None
        failure = ""
        try:
            receipt = self._by_engine(snapshot, call, before)
            if receipt is not None:
                outcome = receipt.stage
                return receipt.model_copy(update={"degraded": [*receipt.degraded, *missed_texts]})
            draft = self._draft(snapshot, call, cancelled, spending, verdict)
            seq = snapshot.session.commit(draft.made, snapshot.state) if draft.made is not None else None
            receipt = self._receipt_of(snapshot, call, draft, applied=seq)
            fields = {
                "degraded": [*receipt.degraded, *verdict.failures, *missed_texts],
                "continue_note": verdict.provided.continue_note,
            }
            receipt = receipt.model_copy(update=fields)
            outcome = receipt.stage
            self._count(snapshot, call, is_helped=seq is not None)
            return receipt
        except (Conflict, CallCancelled) as error:
            # Others were faster, or nobody wants it any more: that says nothing about the next try.
            outcome = error.code
            raise
        except MemoryServiceError as error:
            outcome, failure = error.code, str(error)
            self._count(snapshot, call, is_helped=False)
            raise
        finally:
            event = services.shared.events.publish(
                services.workspace,
                "compaction_end",
                session_id,
                trigger=call.trigger,
                outcome=outcome,
                compaction_id=receipt.compaction_id if receipt else None,
                tokens_before=before,
                tokens_after=receipt.tokens_after if receipt else before,
                method=receipt.method if receipt else "none",
                calls=spending.requests,
                failed_calls=spending.failed,
                pruned=len(receipt.cleared) + len(receipt.stripped) if receipt and receipt.applied else 0,
                duration_ms=int((time.monotonic() - started_time) * 1000),
                will_retry=call.will_retry,
            )
            services.shared.hooks.tell("compaction", event)
            _log_end(place, outcome, before, receipt, spending, time.monotonic() - started_time, failure)

    def _verdict(self, snapshot: SessionSnapshot, call: CompactionCall, tokens: int) -> Verdict:
        """The verdict of the hooks.

        Raises:
            Conflict: One refuses the compaction.
        """
        intent = Intent(
            work="compaction",
            workspace=self._services.workspace,
            session_id=snapshot.session_id,
            fields={"trigger": call.trigger, "tokens_before": tokens},
            material=lambda: self._material(snapshot, call),
        )
        verdict = self._services.shared.hooks.ask(intent)
        if verdict.refused is not None:
            raise Conflict(f"A hook refused the compaction: {verdict.refused.reason}")
        return verdict

    def _flush_first(
        self, snapshot: SessionSnapshot, call: CompactionCall, cancelled: Callable[[], bool]
    ) -> tuple[SessionSnapshot, list[str]]:
        """The session after the flush that comes before a summary, if one is due; and what the flush missed."""
        if not call.flushes or call.trigger == "cache_ttl" or not self._flushes.is_due(snapshot):
            return snapshot, []
        if not self._adapter.owns_compaction(snapshot.session_id) and not self._covers_news(snapshot, call):
            return snapshot, []
        flush = self._flushes.before(snapshot, hard=True, cancelled=cancelled)
        if call.on_flush is not None:
            call.on_flush(flush)
        request = call.request
        again = self._services.snapshot(snapshot.session_id, preset=request.preset, overrides=request.overrides)
        if again.state.edition != snapshot.state.edition:
            raise Conflict(
                f"The session {snapshot.session_id} was deleted and begun anew, trimmed or restored while its memories "
                "were written, so it was not compacted. Look at it again."
            )
        # That no embedder is wanted is no failure of this one: a flush that is asked for says so.
        return again, [text for text in flush.degraded if text != RULES_ALONE]

    def cuts(self, snapshot: SessionSnapshot, call: CompactionCall) -> bool:
        """True if the compaction would shorten the last request or the newest messages."""
        try:
            plan = self._plan(snapshot, call)
        except Incompressible:
            return True
        return plan.stage == "hard" or bool(plan.cuts)

    def _covers_news(self, snapshot: SessionSnapshot, call: CompactionCall) -> bool:
        """True if a summary is due, and for a compaction that the budget asks for: of what no flush has seen."""
        try:
            plan = self._plan(snapshot, call)
        except Incompressible:
            return False
        if plan.stage not in ("summary", "hard"):
            return False
        # The flush that comes before these has its own threshold, once for each: what stays word for word waits.
        return call.trigger not in ("threshold", "safeguard") or plan.tail_start > snapshot.state.flushed_to + 1

    def _by_engine(self, snapshot: SessionSnapshot, call: CompactionCall, before: int) -> CompactionReceipt | None:
        """Let a context engine compact what it holds; None if the view is to be compacted as well.

        Asked for by a person, the compaction of an engine that owns compaction is all there is to do.
        """
        if call.trigger == "cache_ttl":
            return None
        budget = snapshot.budget(overhead_tokens=call.overhead_tokens, most_tokens=call.most_tokens)
        target = budget.emergency_target_tokens if call.trigger == "overflow" else budget.target_tokens
        request = call.request
        compaction_options = CompactCall(
            trigger=call.trigger, instructions=request.instructions or "", force=request.force
        )
        compaction = self._adapter.compact(
            snapshot, target_tokens=budget.to_estimate(request.target_tokens or target), call=compaction_options
        )
        if compaction is None or not compaction.compacted or call.trigger != "manual":
            return None
        if not self._adapter.owns_compaction(snapshot.session_id):
            return None
        return receipt_of_engine(compaction, snapshot.options, call.trigger, request.mode, before)

    def _unlike_engine(self, session_id: str, receipt: CompactionReceipt) -> CompactionReceipt:
        """A plan, with a note where it is not what `apply` would do."""
        owner = self._adapter.owner(session_id)
        note = f"This is what the service would do; the engine {owner} compacts this session, and does it its own way."
        return receipt.model_copy(update={"notes": [*receipt.notes, note]}) if owner else receipt

    def _count(self, snapshot: SessionSnapshot, call: CompactionCall, *, is_helped: bool) -> None:
        if is_helped:
            self._strikes.pop(snapshot.session_id, None)
            return
        if call.trigger == "cache_ttl":
            # Asked before every prompt, and nearly always too early.
            return
        strikes = self._strikes.setdefault(snapshot.session_id, _Strikes())
        strikes.count += 1
        # As `worth_trying` is asked: what the model counts of the view that the session's own settings show.
        own = (
            self._services.snapshot(snapshot.session_id) if call.request.preset or call.request.overrides else snapshot
        )
        strikes.last_seq, strikes.tokens = snapshot.state.last_seq, own.reading().tokens

    def _receipt_of(
        self, snapshot: SessionSnapshot, call: CompactionCall, draft: CompactionDraft, *, applied: int | None
    ) -> CompactionReceipt:
        if draft.made is None:
            return receipt_of_plan(draft.plan, snapshot.options, call.trigger, call.request.mode, summary=draft.summary)
        past = LoggedCompaction(
            seq=applied or 0, at=self._services.now().isoformat(), compaction=draft.made, head=draft.head
        )
        return receipt_of_made(
            past, draft.plan, snapshot.options, mode=call.request.mode, is_applied=applied is not None
        )


def _log_end(
    place: str,
    outcome: str,
    before: int,
    receipt: CompactionReceipt | None,
    spending: Spent,
    seconds: float,
    failure: str,
) -> None:
    """One line for operators: what came of a compaction, and why it is less than was asked for."""
    after, method = (receipt.tokens_after, receipt.method) if receipt else (before, "none")
    is_less = bool(failure) or spending.failed > 0
    texts = [failure] if failure else receipt.notes if receipt and is_less else []
    _log.log(
        logging.WARNING if is_less else logging.INFO,
        "compaction of %s ended: %s, %d to %d tokens, summary by %s, %d calls (%d failed), %.1f s%s",
        place,
        outcome,
        before,
        after,
        method,
        spending.requests,
        spending.failed,
        seconds,
        f". {' '.join(texts)}" if texts else "",
    )


def _compaction_options(snapshot: SessionSnapshot, call: CompactionCall, verdict: Verdict) -> CompactionOptions:
    request = call.request
    words = (snapshot.options.instructions, request.instructions or "", verdict.instructions)
    return CompactionOptions(
        trigger=call.trigger,
        instructions="\n".join(word for word in words if word),
        provided=verdict.provided,
        identifier_policy=request.identifier_policy or snapshot.options.identifier_policy,
        target_tokens=request.target_tokens,
        force=request.force,
    )


def _past(state: SessionState, compaction_id: str) -> LoggedCompaction:
    for past in state.compactions:
        if past.compaction_id == compaction_id:
            return past
    raise NotFound(f"There is no compaction {compaction_id[:80]!r}. List the compactions to see their ids.")

"""Contexts: the messages an agent sends to its model, with recalled memories, within the window.

Invariants: the prompt is valid on the wire and fits the window, or an error names the part that does not; memories
take no more than their budget, wrapper included, and the last of the room; nothing that the view or an earlier block
shows is recalled again; a prompt begins as the one before did, whatever was written to memory, until the view is
compacted; what was decided, and why, is in the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from memory_service.compaction.budget import ContextBudget
from memory_service.compaction.plan_sizes import CompactionTrigger
from memory_service.compaction.view import View, view_language
from memory_service.errors import Conflict, Incompressible, InvalidRequest, MemoryServiceError, StorageFailed
from memory_service.llm.base import not_cancelled
from memory_service.llm.token_anchor import scale_tokens
from memory_service.messages.repair import close_calls
from memory_service.messages.sizes import MESSAGE_TOKENS, estimate_tokens, tools_tokens
from memory_service.prompts.blocks import MemoryRoom, Prompt, PromptMemory, SessionBlocks, prompt_of, turn_block
from memory_service.prompts.prompt_records import PromptRecord, SentDigests, common_beginning
from memory_service.prompts.receipt_records import Receipts
from memory_service.prompts.session_recall import Question, SessionRecall, last_turns, recall_decision
from memory_service.runtime.base import CompactionCall
from memory_service.runtime.log_changes import unreadable
from memory_service.schemas.compaction import (
    CompactionReceipt,
    CompactRequest,
    Flush,
    PromptMeasure,
    Recall,
    SessionContextRequest,
)
from memory_service.schemas.memories import Receipt

if TYPE_CHECKING:
    from memory_service.runtime.compactions import SessionCompactions
    from memory_service.runtime.engine_adapter import EngineAdapter
    from memory_service.runtime.flushes import Flushes
    from memory_service.runtime.session_services import SessionRuntime, SessionSnapshot


# However small the window, a block of this size says something.
_LEAST_MEMORY_TOKENS = 64
# How often a compaction is tried where others compact or undo the same session meanwhile.
_COMPACTION_ATTEMPTS = 3
# Of what is usable, what memories may take: the session is what the agent is working on.
_MOST_MEMORY_SHARE = 0.5
# The same for the blocks of earlier turns. When they take more they go at once: a cache breaks once then, and not with
# every turn.
_EARLIER_SHARE = 0.4
_RECORD_ATTEMPTS = 3
_RESTLESS = "prompt: others made prompts of this session all the time, so the next one may begin in another way."


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltContext:
    """A prompt, and how it came about.

    Attributes:
        tools_tokens: What the schemas of tools take beside the prompt, by estimate.
        receipt: What was recalled; None if nothing was searched.
        cached_prefix_tokens: Of the messages that the last prompt of the session began with, too.
        compaction: The compaction that was made first, if one was; and that which the user asked for, made or not.
        flush: The flush that was made first, or that the agent is asked for.
        command: The command to the service that was the last thing said; the model need not be called then.
        memory: The block of memories of the turn; empty if there is none.
    """

    prompt: Prompt
    tools_tokens: int
    recall: Recall
    receipt: Receipt | None = None
    cached_prefix_tokens: int = 0
    compaction: CompactionReceipt | None = None
    flush: Flush | None = None
    command: Literal["compact"] | None = None
    memory: str = ""
    degraded: tuple[str, ...] = field(default_factory=tuple)


class Contexts:
    """Makes prompts from the sessions of one workspace."""

    def __init__(
        self,
        services: SessionRuntime,
        compactions: SessionCompactions,
        flushes: Flushes,
        recalls: SessionRecall,
        adapter: EngineAdapter,
        receipts: Receipts,
    ) -> None:
        self._services = services
        self._compactions = compactions
        self._digests = SentDigests()
        self._flushes = flushes
        self._blocks = SessionBlocks(recalls, receipts)
        self._adapter = adapter
        self._receipts = receipts

    def context(
        self,
        session_id: str,
        call: SessionContextRequest,
        *,
        cancelled: Callable[[], bool] = not_cancelled,
        by_engine: bool = True,
        schemas_tokens: int | None = None,
    ) -> BuiltContext:
        """Build the messages to send to the model.

        Args:
            session_id: The session.
            call: What is wanted.
            cancelled: Asked while a model works.
            by_engine: Whether a context engine of somebody else may decide, if one is configured.
            schemas_tokens: What the schemas of tools take, if that was counted before; else those of `call` are.

        Raises:
            NotFound: There is no such session.
            InvalidRequest: The window is too small, or a number cannot be used.
            Incompressible: The prompt cannot be made to fit.
        """
        if call.memory_budget_tokens < 0 or (call.max_tokens is not None and call.max_tokens < 1):
            raise InvalidRequest("A number of tokens is negative. Give memory_budget_tokens and max_tokens from 0 on.")
        counted_tools_tokens = tools_tokens(call.tools) if schemas_tokens is None else schemas_tokens
        work = _Work(self._services, session_id, call, counted_tools_tokens)
        is_owned = by_engine and self._adapter.owns_compaction(session_id)
        if call.auto:
            self._prepare(work, cancelled, compacts=not is_owned)
        view = self._by_engine(work) if by_engine else None
        if call.auto and is_owned and view is None:
            # The engine failed just now, and nobody has kept the session small.
            self._prepare(work, cancelled)
        return self._assemble(work, view or work.snapshot.view())

    def measures(self, session_id: str) -> tuple[PromptMeasure, ...]:
        """The sizes of the last prompts of a session, the oldest first."""
        return self._services.prompts.of(session_id).measures

    def _by_engine(self, work: _Work) -> View | None:
        tokens = work.budget.to_estimate(work.budget.usable_tokens)
        return self._adapter.view(
            work.snapshot, tokens=tokens, query=work.decision.query, system_prompt=work.call.system_prompt
        )

    def _prepare(self, work: _Work, cancelled: Callable[[], bool], *, compacts: bool = True) -> None:
        """Flush, prune and compact as the budget asks for it."""
        services, session_id = self._services, work.session_id
        flush = self._flushes.due(work.snapshot, work.tokens(), work.budget)
        preset = work.snapshot.options.preset
        prunes = compacts and preset.pruning_mode in ("cache_ttl", "budget")
        is_asked = work.requested_compaction(compacts=compacts) is not None
        due = compacts and preset.auto
        if not (flush or (work.is_hard() and due) or prunes or is_asked):
            return
        with services.alone(session_id):
            # Who was here before may have compacted, or undone it.
            work.again()
            if flush:
                work.note_flush(self._flushes.before(work.snapshot, hard=work.is_hard(), cancelled=cancelled))
                work.again()
            if (wish := work.requested_compaction(compacts=compacts)) is not None:
                self._compact(work, wish, cancelled)
            if prunes:
                self._compact(work, CompactionCall(cause="cache_ttl"), cancelled)
            last_seq = work.snapshot.state.last_seq
            if due and work.is_hard() and self._compactions.worth_trying(session_id, last_seq, work.tokens()):
                trigger: CompactionTrigger = "safeguard" if preset.safeguard else "threshold"
                self._compact(work, CompactionCall(cause=trigger), cancelled)

    def _compact(self, work: _Work, wish: CompactionCall, cancelled: Callable[[], bool]) -> None:
        for _ in range(_COMPACTION_ATTEMPTS):
            if work.memory_tokens and self._compactions.cuts(work.snapshot, work.with_overhead(wish)):
                # What was said comes first: memories get what it leaves.
                work.reserve(0)
            call = replace(
                work.with_overhead(wish),
                # One that failed just now is not tried again within the same answer.
                flushes=work.flush is None or not work.flush.degraded,
                on_flush=work.note_flush,
            )
            try:
                receipt = self._compactions.compact(work.session_id, call, cancelled=cancelled)
            except Incompressible as error:
                if not work.memory_tokens:
                    raise
                # What was said comes first: memories get what it leaves.
                work.failure = error
                work.reserve(0)
                continue
            except MemoryServiceError as error:
                # The session is as it was: as long as it fits, the agent can go on with it.
                work.failure = error
                work.again()
                if isinstance(error, Conflict) and work.is_hard():
                    # Another process came first, and undid it, maybe.
                    continue
                break
            work.failure = None
            work.degraded += tuple(text for text in receipt.degraded if text not in work.degraded)
            if receipt.applied or call.trigger == "manual":
                work.compaction = receipt
            work.again()
            return
        work.degraded += (f"compaction: {work.failure}",)

    def _assemble(self, work: _Work, view: View) -> BuiltContext:
        call = work.call
        if not call.auto and work.snapshot.state.open_command is not None:
            work.degraded += ("compaction: the user asked for /compact, and `auto` is off. Ask with auto.",)
        for _ in range(_RECORD_ATTEMPTS):
            record = self._services.prompts.of(work.session_id)
            memory = self._recall(work, view, record)
            prompt = self._prompt(work, view, memory)
            sent_texts = self._digests.of(prompt.messages, call.format)
            cached_tokens = prompt.beginning_tokens(common_beginning(sent_texts, record.sent))
            receipt = memory.receipt
            if receipt is not None:
                receipt = receipt.model_copy(update={"cached_prefix_tokens": cached_tokens})
            blocks = memory.blocks if call.memory_budget_tokens else record.blocks
            prompt_record = replace(record, view=work.snapshot.state.changed_seq, blocks=blocks, sent=sent_texts)
            if prompt_record != record:
                measure = self._measure(work, view, prompt, cached_tokens, receipt)
                prompt_record = prompt_record.with_measure(measure)
            is_kept, left = self._store_prompt(work, record, prompt_record, receipt if memory.is_new else None)
            if is_kept:
                break
        return BuiltContext(
            prompt=prompt,
            tools_tokens=work.tools_tokens,
            recall=work.decision,
            receipt=receipt,
            cached_prefix_tokens=cached_tokens,
            compaction=work.compaction,
            flush=work.flush,
            command="compact" if work.snapshot.state.is_commanded else None,
            memory=memory.turn.text if memory.turn else "",
            degraded=(*self._missing(work), *memory.degraded, *left),
        )

    def _recall(self, work: _Work, view: View, record: PromptRecord) -> PromptMemory:
        call, budget = work.call, work.budget
        if not call.memory_budget_tokens:
            return PromptMemory()
        usable, tokens = budget.to_estimate(budget.usable_tokens) + work.memory_tokens, view.tokens
        total = usable - tokens
        room = MemoryRoom(
            own_tokens=max(total, 0),
            # A compaction is not due because of what could go.
            beside_tokens=max(0, budget.to_estimate(budget.hard_tokens) + work.memory_tokens - tokens),
            earlier_tokens=int(_EARLIER_SHARE * usable),
        )
        left = max(total - MESSAGE_TOKENS, 0)
        question = work.question if left else None
        memory = self._blocks.memory(work.snapshot, view, record, question, room, at=self._services.now())
        budget_tokens = work.question.budget_tokens if work.question else 0
        if left < budget_tokens and (memory.turn is None or memory.is_new):
            work.squeezed = f"memory: {left} of {budget_tokens} tokens were left for memories."
        return memory

    def _prompt(self, work: _Work, view: View, memory: PromptMemory) -> Prompt:
        call = work.call
        prompt = prompt_of(
            view,
            system_prompt=call.system_prompt,
            blocks=memory.blocks,
            window_tokens=work.snapshot.options.window.tokens,
            scale=work.snapshot.scale(),
        )
        state = work.snapshot.state
        ready = close_calls(prompt.messages, pending=state.pending, language=view_language(state))
        if ready is not prompt.messages:
            prompt = prompt.with_messages(ready)
        most = min(call.max_tokens or prompt.tokens.window, prompt.tokens.window)
        if prompt.tokens.total > most:
            raise work.failure or _refusal(prompt, most, _remedy(call, work.snapshot.options.preset.auto))
        return prompt

    def _measure(
        self, work: _Work, view: View, prompt: Prompt, cached_tokens: int, receipt: Receipt | None
    ) -> PromptMeasure:
        state, tokens = work.snapshot.state, prompt.tokens
        pins = min(scale_tokens(view.pin_tokens, prompt.scale), tokens.summary)
        return PromptMeasure(
            created_at=self._services.now(),
            last_seq=state.last_seq,
            system=tokens.system,
            pins=pins,
            summary=tokens.summary - pins,
            memory=tokens.memory,
            tail=tokens.tail,
            tools=scale_tokens(work.tools_tokens, prompt.scale),
            window=tokens.window,
            cached_prefix_tokens=cached_tokens,
            flushed_to=state.flushed_to,
            compactions=len(state.compactions),
            receipt_id=receipt.receipt_id if receipt else None,
        )

    def _store_prompt(
        self, work: _Work, before: PromptRecord, prompt_record: PromptRecord, receipt: Receipt | None
    ) -> tuple[bool, tuple[str, ...]]:
        """Store a prompt, and its receipt if there is a new one.

        Returns:
            False if another process stored one meanwhile, or something in it was erased; and what could not be stored.
        """
        if prompt_record == before and receipt is None:
            return True, ()
        is_kept, left, snapshot = True, tuple[str, ...](), work.snapshot
        try:
            with snapshot.session.hold(snapshot.state):
                if prompt_record != before:
                    is_kept, left = self._store_record(work.session_id, prompt_record)
                if is_kept and receipt is not None:
                    self._receipts.put(receipt, session_id=work.session_id)
        except (StorageFailed, Conflict) as error:
            left = (*left, f"receipt: {error}")
        return is_kept, left

    def _store_record(self, session_id: str, prompt_record: PromptRecord) -> tuple[bool, tuple[str, ...]]:
        """Store a prompt; see `_store_prompt`."""
        try:
            stored_prompt_record = self._services.prompts.put(session_id, prompt_record)
        except StorageFailed as error:
            return True, (f"prompt: {error}",)
        is_kept = stored_prompt_record is not None and stored_prompt_record.blocks == prompt_record.blocks
        return is_kept, () if is_kept else (_RESTLESS,)

    def _missing(self, work: _Work) -> list[str]:
        degraded = [*work.degraded, *self._adapter.failures(work.session_id), *unreadable(work.snapshot.session.log)]
        if work.snapshot.options.window.problem == "warn":
            degraded.append(f"window: {work.snapshot.options.window.message}")
        return [*degraded, work.squeezed] if work.squeezed else degraded


class _Work:
    """State of one context while it is built."""

    def __init__(
        self,
        services: SessionRuntime,
        session_id: str,
        call: SessionContextRequest,
        tools_tokens: int,
    ) -> None:
        self._services = services
        self.session_id, self.call = session_id, call
        self.snapshot: SessionSnapshot = services.snapshot(session_id)
        self.decision = Recall(searched=False, query="", reason="")
        self.flush: Flush | None = None
        self.compaction: CompactionReceipt | None = None
        self.degraded: tuple[str, ...] = ()
        self.failure: MemoryServiceError | None = None
        self.question: Question | None = None
        self.squeezed = ""
        self.memory_tokens = 0
        self.tools_tokens = tools_tokens
        self.overhead_tokens = 0
        self.budget: ContextBudget = self.snapshot.budget(most_tokens=call.max_tokens)
        self._decide()

    def _decide(self) -> None:
        """Decide if memories are searched, and reserve room for them."""
        call = self.call
        plan = recall_decision(self.snapshot, call.query, call.recall, call.memory_budget_tokens)
        decision = plan.decision
        is_searched, reason = decision.searched, decision.reason
        preset, budget_tokens = self.snapshot.options.preset, call.memory_budget_tokens
        limit = preset.recall.most_tokens
        if is_searched and limit is not None and budget_tokens > limit:
            budget_tokens = limit
            reason += f"; of {call.memory_budget_tokens:,} tokens it gets {limit:,}, the most in preset {preset.name}"
        self.decision = decision.model_copy(update={"reason": reason})
        self.question = None
        if not is_searched:
            self.reserve(0)
            return
        is_forced = plan.outright or call.min_relevance is not None or "memory_budget_tokens" in call.model_fields_set
        prompt, before = ("", "") if is_forced else last_turns(self.snapshot)
        self.question = Question(
            query=decision.query,
            budget_tokens=budget_tokens,
            sources=tuple(call.sources),
            order=call.order or preset.recall.order,
            min_relevance=call.min_relevance,
            least_beside=plan.least_beside,
            prompt=prompt,
            before=before,
        )
        record = self._services.prompts.of(self.session_id)
        own = turn_block(self.snapshot, record, self.question)
        usable = self.budget.to_estimate(self.budget.usable_tokens)
        most = max(_LEAST_MEMORY_TOKENS, int(usable * _MOST_MEMORY_SHARE))
        self.reserve(min(budget_tokens, most) if own is None else own.tokens)

    def reserve(self, memory_tokens: int) -> None:
        """Reserve so much room for memories."""
        prompt = self.call.system_prompt
        system = estimate_tokens(prompt) + MESSAGE_TOKENS if prompt else 0
        self.memory_tokens = memory_tokens
        self.overhead_tokens = system + self.tools_tokens + memory_tokens
        self._measure()

    def with_overhead(self, wish: CompactionCall) -> CompactionCall:
        """A call for a compaction, with what is sent beside the view."""
        return replace(wish, overhead_tokens=self.overhead_tokens, most_tokens=self.call.max_tokens)

    def note_flush(self, flush: Flush) -> None:
        """Keep what a flush came to: the last one that was due, and what all of them missed."""
        self.flush = flush
        self.degraded += tuple(flush.degraded)

    def again(self) -> None:
        """Look at the session anew."""
        before = self.snapshot.state.edition
        self.snapshot = self._services.snapshot(self.session_id)
        if self.snapshot.state.edition != before:
            # Deleted and begun anew, or trimmed: what was said in another log is not asked for.
            self._decide()
        self._measure()

    def requested_compaction(self, *, compacts: bool) -> CompactionCall | None:
        """The compaction that the conversation itself asks for: by `/compact`, or by an answer that was cut.

        Args:
            compacts: Whether the service keeps the session small; a person is heard whoever does.
        """
        state = self.snapshot.state
        if (command := state.open_command) is not None:
            return CompactionCall(request=CompactRequest.model_construct(instructions=command.instructions or None))
        if compacts and state.is_cut and self.snapshot.options.preset.recovery.on_length:
            return CompactionCall(request=CompactRequest(trigger="overflow", force=True))
        return None

    def tokens(self) -> int:
        """Size of the view in the model's tokens."""
        return self.snapshot.reading().tokens

    def is_hard(self) -> bool:
        """True if the view must be compacted."""
        return self.tokens() >= self.budget.hard_tokens

    def _measure(self) -> None:
        self.budget = self.snapshot.budget(
            overhead_tokens=self.overhead_tokens, tools_tokens=self.tools_tokens, most_tokens=self.call.max_tokens
        )


def _remedy(call: SessionContextRequest, compacts: bool) -> str:
    """The remedy for a prompt that is too long: its largest part is at fault only where a compaction may be made."""
    if not call.auto:
        return "Compact the session, or ask with auto."
    if not compacts:
        return "Compact the session: its preset has `auto` set to false, and so nothing compacts it by itself."
    return "Shorten the largest part."


def _refusal(prompt: Prompt, most: int, remedy: str) -> Incompressible:
    tokens = prompt.tokens
    parts = {"system": tokens.system, "last_unit": tokens.tail, "summary": tokens.summary, "memory": tokens.memory}
    ordered_parts = dict(sorted(parts.items(), key=lambda part: -part[1]))
    return Incompressible(
        f"The prompt takes {tokens.total} tokens and {most} fit: "
        + ", ".join(f"{name} {size}" for name, size in ordered_parts.items())
        + f". {remedy}",
        parts=ordered_parts,
    )

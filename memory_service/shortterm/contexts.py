"""Owns what an agent sends to its model: session and memories within the window, compacted first if need be.

Invariants: the prompt is valid on the wire and fits the window, or an error names the part that does not; memories
take no more than their budget, wrapper included, and the last of the room; nothing that the view shows is recalled
again; what was decided, and why, is in the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from memory_service.budget import ContextBudget
from memory_service.compaction.plan import CompactionTrigger
from memory_service.context import Context, Receipt
from memory_service.errors import Conflict, Incompressible, InvalidRequest, MemoryServiceError
from memory_service.llm.base import never
from memory_service.messages.sizes import MESSAGE_TOKENS
from memory_service.schemas import Order
from memory_service.sessions.foreign import unreadable
from memory_service.sessions.view import View
from memory_service.shortterm.bench import Bench, Look
from memory_service.shortterm.compactions import Compactions
from memory_service.shortterm.flushes import Flushes, FlushReport
from memory_service.shortterm.prompt import Prompt, prompt_of
from memory_service.shortterm.recalls import Recalled, Recalls
from memory_service.shortterm.receipts import CompactionCall, CompactionReceipt
from memory_service.shortterm.seat import Seat
from memory_service.tokens import count_tokens

# However small the window, a block of this size says something.
_LEAST_MEMORY_TOKENS = 64
# How often a compaction is tried where others compact or undo the same session meanwhile.
_COMPACTION_ATTEMPTS = 3
# Of what is usable, what memories may take: the session is what the agent is working on.
_MOST_MEMORY_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCall:
    """What a caller wants of a context.

    Attributes:
        query: What to recall memories for; None leaves it to the last message of the user.
        memory_budget_tokens: Most tokens of the memories, wrapper included; 0 recalls nothing.
        max_tokens: The longest prompt wanted; None for what the window allows.
        auto: Whether to flush and compact first if that is due.
        tools_tokens: What the schemas of the agent's tools take.
        recall: Whether to search: as the rules decide, always, or never.
        sources: Where to recall from; empty is everywhere.
        order: Whether memories go before what was said in sessions; None is as the preset has it.
    """

    query: str | None = None
    system_prompt: str = ""
    memory_budget_tokens: int = 2_000
    max_tokens: int | None = None
    auto: bool = True
    tools_tokens: int = 0
    recall: Literal["auto", "always", "never"] = "auto"
    sources: tuple[Literal["memory", "sessions", "files"], ...] = ()
    order: Order | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallDecision:
    """Whether memories were searched, for what, and why."""

    searched: bool
    query: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """A prompt, and how it came about.

    Attributes:
        receipt: What was recalled; None if nothing was searched.
        compaction: The compaction that was made first, if one was; and that which the user asked for, made or not.
        flush: The flush that was made first, or that the agent is asked for.
        command: The command to the service that was the last thing said; the model need not be called then.
    """

    prompt: Prompt
    recall: RecallDecision
    receipt: Receipt | None = None
    compaction: CompactionReceipt | None = None
    flush: FlushReport | None = None
    command: Literal["compact"] | None = None
    degraded: tuple[str, ...] = field(default_factory=tuple)


class Contexts:
    """Makes prompts from the sessions of one workspace."""

    def __init__(self, bench: Bench, compactions: Compactions, flushes: Flushes, recalls: Recalls, seat: Seat) -> None:
        self._bench = bench
        self._compactions = compactions
        self._flushes = flushes
        self._recalls = recalls
        self._seat = seat

    def context(
        self,
        session_id: str,
        call: ContextCall,
        *,
        cancelled: Callable[[], bool] = never,
        by_engine: bool = True,
    ) -> SessionContext:
        """What to send to the model.

        Args:
            session_id: The session.
            call: What is wanted.
            cancelled: Asked while a model works.
            by_engine: Whether a context engine of somebody else may decide, if one is configured.

        Raises:
            NotFound: There is no such session.
            InvalidRequest: The window is too small, or a number cannot be used.
            Incompressible: The prompt cannot be made to fit.
        """
        if call.memory_budget_tokens < 0 or (call.max_tokens is not None and call.max_tokens < 1):
            raise InvalidRequest("A number of tokens is negative. Give memory_budget_tokens and max_tokens from 0 on.")
        work = _Work(self._bench, self._recalls, session_id, call)
        owned = by_engine and self._seat.owns_compaction(session_id)
        if call.auto:
            self._prepare(work, cancelled, compacts=not owned)
        view = self._by_engine(work) if by_engine else None
        if call.auto and owned and view is None:
            # The engine failed just now, and nobody has kept the session small.
            self._prepare(work, cancelled)
        return self._assembled(work, view or work.look.view())

    def _by_engine(self, work: _Work) -> View | None:
        tokens = work.budget.estimated(work.budget.usable_tokens)
        return self._seat.view(
            work.look, tokens=tokens, query=work.decision.query, system_prompt=work.call.system_prompt
        )

    def _prepare(self, work: _Work, cancelled: Callable[[], bool], *, compacts: bool = True) -> None:
        """Flush, prune and compact as the budget asks for it."""
        bench, session_id = self._bench, work.session_id
        flush = self._flushes.due(work.look, work.tokens(), work.budget)
        preset = work.look.options.preset
        prunes = compacts and preset.pruning_mode in ("cache_ttl", "budget")
        asked = work.asked(compacts=compacts) is not None
        due = compacts and preset.auto
        if not (flush or (work.is_hard() and due) or prunes or asked):
            return
        with bench.alone(session_id):
            # Who was here before may have compacted, or undone it.
            work.again()
            if flush:
                work.flush = self._flushes.before(work.look, hard=work.is_hard(), cancelled=cancelled)
                work.degraded += work.flush.degraded
                work.again()
            if (wish := work.asked(compacts=compacts)) is not None:
                self._compact(work, wish, cancelled)
            if prunes:
                self._compact(work, CompactionCall(trigger="cache_ttl"), cancelled)
            last_seq = work.look.state.last_seq
            if due and work.is_hard() and self._compactions.worth_trying(session_id, last_seq, work.tokens()):
                trigger: CompactionTrigger = "safeguard" if preset.safeguard else "threshold"
                self._compact(work, CompactionCall(trigger=trigger), cancelled)

    def _compact(self, work: _Work, wish: CompactionCall, cancelled: Callable[[], bool]) -> None:
        call = replace(wish, overhead_tokens=work.overhead_tokens, most_tokens=work.call.max_tokens)
        for _ in range(_COMPACTION_ATTEMPTS):
            try:
                receipt = self._compactions.compact(work.session_id, call, cancelled=cancelled)
            except Incompressible:
                raise
            except MemoryServiceError as error:
                # The session is as it was: as long as it fits, the agent can go on with it.
                work.failure = error
                work.again()
                if isinstance(error, Conflict) and work.is_hard():
                    # Another process came first, and undid it, maybe.
                    continue
                break
            work.failure = None
            if receipt.applied or call.trigger == "manual":
                work.compaction = receipt
            work.again()
            return
        work.degraded += (f"compaction: {work.failure}",)

    def _assembled(self, work: _Work, view: View) -> SessionContext:
        call = work.call
        room = work.budget.estimated(work.budget.usable_tokens) - view.tokens + work.memory_tokens
        memory_budget = min(work.memory_budget_tokens, max(room - MESSAGE_TOKENS, 0))
        recalled = Recalled()
        if work.decision.searched and memory_budget > 0:
            recalled = self._recalls.recall(
                work.look,
                work.decision.query,
                memory_budget,
                sources=call.sources,
                order=call.order or work.look.options.preset.recall.order,
                at=self._bench.now(),
            )
        context = recalled.context
        if not call.auto and work.look.state.open_command is not None:
            work.degraded += ("compaction: the user asked for /compact, and `auto` is off. Ask with auto.",)
        degraded = [*work.degraded, *self._seat.failures(work.session_id), *recalled.degraded]
        degraded += unreadable(work.look.session.log)
        if work.look.options.window.problem == "warn":
            degraded.append(f"window: {work.look.options.window.message}")
        if work.decision.searched and memory_budget < work.memory_budget_tokens:
            degraded.append(f"memory: {memory_budget} of {work.memory_budget_tokens} tokens were left for memories.")
        prompt = prompt_of(
            view,
            system_prompt=call.system_prompt,
            memory=context.block if context else "",
            window_tokens=work.look.options.window.tokens,
            scale=work.look.scale(),
        )
        most = min(call.max_tokens or prompt.tokens.window, prompt.tokens.window)
        if prompt.tokens.total > most:
            raise work.failure or _refusal(prompt, most, call)
        return SessionContext(
            prompt=prompt,
            recall=work.decision,
            receipt=_receipt(context),
            compaction=work.compaction,
            flush=work.flush,
            command="compact" if work.look.state.is_commanded else None,
            degraded=tuple(degraded),
        )


class _Work:
    """One context while it is made."""

    def __init__(self, bench: Bench, recalls: Recalls, session_id: str, call: ContextCall) -> None:
        self._bench = bench
        self._recalls = recalls
        self.session_id, self.call = session_id, call
        self.look: Look = bench.look(session_id)
        self.decision = RecallDecision(searched=False, query="", reason="")
        self.flush: FlushReport | None = None
        self.compaction: CompactionReceipt | None = None
        self.degraded: tuple[str, ...] = ()
        self.failure: MemoryServiceError | None = None
        self.memory_budget_tokens = call.memory_budget_tokens
        self.memory_tokens = 0
        self.overhead_tokens = 0
        self.budget: ContextBudget = self.look.budget(most_tokens=call.max_tokens)
        self._decide()

    def _decide(self) -> None:
        """Whether to search, and what room is kept for what is found."""
        call = self.call
        searched, query, reason = self._recalls.decide(self.look, call.query, call.recall, call.memory_budget_tokens)
        preset = self.look.options.preset
        limit = preset.recall.most_tokens
        if searched and limit is not None and call.memory_budget_tokens > limit:
            self.memory_budget_tokens = limit
            reason += f"; of {call.memory_budget_tokens:,} tokens it gets {limit:,}, the most in preset {preset.name}"
        self.decision = RecallDecision(searched=searched, query=query, reason=reason)
        usable = self.budget.estimated(self.budget.usable_tokens)
        most = max(_LEAST_MEMORY_TOKENS, int(usable * _MOST_MEMORY_SHARE))
        self.memory_tokens = min(self.memory_budget_tokens, most) if searched else 0
        system = count_tokens(call.system_prompt) + MESSAGE_TOKENS if call.system_prompt else 0
        self.overhead_tokens = system + call.tools_tokens + self.memory_tokens
        self._measure()

    def again(self) -> None:
        """Look at the session anew."""
        before = self.look.state.edition
        self.look = self._bench.look(self.session_id)
        if self.look.state.edition != before:
            # Deleted and begun anew, or trimmed: what was said in another log is not asked for.
            self._decide()
        self._measure()

    def asked(self, *, compacts: bool) -> CompactionCall | None:
        """The compaction that the conversation itself asks for: by `/compact`, or by an answer that was cut.

        Args:
            compacts: Whether the service keeps the session small; a person is heard whoever does.
        """
        state = self.look.state
        if (command := state.open_command) is not None:
            return CompactionCall(trigger="manual", instructions=command.instructions or None)
        if compacts and state.is_cut and self.look.options.preset.recovery.on_length:
            return CompactionCall(trigger="overflow", force=True)
        return None

    def tokens(self) -> int:
        """What the view takes, as its model would count it."""
        return self.look.reading().tokens

    def is_hard(self) -> bool:
        """Whether it has to be compacted."""
        return self.tokens() >= self.budget.hard_tokens

    def _measure(self) -> None:
        self.budget = self.look.budget(
            overhead_tokens=self.overhead_tokens, tools_tokens=self.call.tools_tokens, most_tokens=self.call.max_tokens
        )


def _receipt(context: Context | None) -> Receipt | None:
    return context.receipt if context else None


def _refusal(prompt: Prompt, most: int, call: ContextCall) -> Incompressible:
    tokens = prompt.tokens
    parts = {"system": tokens.system, "last_unit": tokens.tail, "summary": tokens.summary, "memory": tokens.memory}
    ordered = dict(sorted(parts.items(), key=lambda part: -part[1]))
    remedy = "Shorten the largest part." if call.auto else "Compact the session, or ask with auto."
    return Incompressible(
        f"The prompt takes {tokens.total} tokens and {most} fit: "
        + ", ".join(f"{name} {size}" for name, size in ordered.items())
        + f". {remedy}",
        parts=ordered,
    )

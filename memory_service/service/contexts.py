"""Contexts: the messages an agent sends to its model, with recalled memories, within the window.

Invariants: the prompt is valid on the wire and fits the window, or an error names the part that does not; memories
take no more than their budget, wrapper included, and the last of the room; nothing that the view shows is recalled
again; what was decided, and why, is in the answer.

Invariants of the prompt: the parts of `PromptTokens` add up to its total, whatever the counts rest on, and none is
negative; the list is valid on the wire; what changes least stands first, so that a provider's cache holds: system
prompt, checkpoint, older messages, then the memories, then the turn that they are for; nothing of the view is
changed.

Invariants of recall: what the view shows is left out before anything is ranked, and what says the same is left out
after; the covered messages of this session are found as well as all other sources, whether or not the index has them
yet.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal

from indexer import LineRange, SearchFilter, Source
from indexer.lru import LRU
from memory_service.compaction.budget import ContextBudget
from memory_service.compaction.plan import CompactionTrigger
from memory_service.compaction.view import View
from memory_service.errors import Conflict, Incompressible, InvalidRequest, MemoryServiceError, StorageFailed
from memory_service.llm.base import not_cancelled
from memory_service.llm.token_counter import scale_tokens
from memory_service.memories.block import RelevanceLimits, build_context, candidates_for, checked_share
from memory_service.memories.overlap import ViewText, drop_redundant
from memory_service.memories.receipts import Receipts, new_receipt_id
from memory_service.messages import Message, is_tool_result, message_tokens, text_of, user_message
from memory_service.messages.sizes import MESSAGE_TOKENS, count_tokens, tools_tokens
from memory_service.schemas.compaction import (
    CompactionReceipt,
    CompactRequest,
    Flush,
    PromptTokens,
    Recall,
    RecallMode,
    SessionContextRequest,
)
from memory_service.schemas.memories import Context, Order, Receipt
from memory_service.schemas.sessions import FoundMessages
from memory_service.service.compactions import CompactionCall, SessionCompactions
from memory_service.service.engine_adapter import EngineAdapter
from memory_service.service.flushes import Flushes
from memory_service.sessions.folder import unreadable
from memory_service.sessions.search import SessionKeywordSearch
from memory_service.text.recall import decide_recall

if TYPE_CHECKING:
    from memory_service.service.session_services import SessionServices, SessionSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A list of messages for a model, and what it takes.

    Attributes:
        tokens: As the model would count them.
        estimated: The same by estimate alone, which is what a provider's count is learned from.
        scale: Tokens of the model for each one estimated.
    """

    messages: tuple[Message, ...]
    tokens: PromptTokens
    estimated: PromptTokens
    scale: float = 1.0

    def with_messages(self, messages: Sequence[Message]) -> Prompt:
        """Copy of the prompt with other messages in its tail."""
        more = sum(map(message_tokens, messages)) - self.estimated.total
        grown = {"tail": self.estimated.tail + more, "total": self.estimated.total + more}
        estimated = self.estimated.model_copy(update=grown)
        return replace(self, messages=tuple(messages), estimated=estimated, tokens=_as_counted(estimated, self.scale))


def _prompt_of(
    view: View, *, system_prompt: str = "", memory: str = "", window_tokens: int, scale: float = 1.0
) -> Prompt:
    """Put a view, a system prompt and a block of memories together.

    Args:
        view: The session.
        system_prompt: Stands before everything; empty for none.
        memory: A block as `build_context` makes it; empty for none.
        window_tokens: What the model takes.
        scale: Tokens of the model for each one estimated.
    """
    opening: list[Message] = [{"role": "system", "content": system_prompt}] if system_prompt else []
    recalled = [user_message(memory)] if memory else []
    at = _turn(view)
    messages = (*opening, *view.messages[:at], *recalled, *view.messages[at:])
    system = sum(map(message_tokens, opening)) + view.system_tokens
    block = sum(map(message_tokens, recalled))
    estimated = PromptTokens(
        system=system,
        memory=block,
        summary=view.summary_tokens,
        tail=view.tail_tokens,
        total=system + block + view.summary_tokens + view.tail_tokens,
        window=window_tokens,
    )
    return Prompt(messages=messages, tokens=_as_counted(estimated, scale), estimated=estimated, scale=scale)


def _as_counted(estimated: PromptTokens, scale: float) -> PromptTokens:
    """Each part as the model counts it. What is rounded is their running sum, so that they add up to the total."""
    parts = (estimated.system, estimated.memory, estimated.summary, estimated.tail)
    sums = [scale_tokens(upto, scale) for upto in accumulate(parts, initial=0)]
    system, memory, summary, tail = (after - before for before, after in pairwise(sums))
    return PromptTokens(
        system=system, memory=memory, summary=summary, tail=tail, total=sums[-1], window=estimated.window
    )


def _turn(view: View) -> int:
    """Start of the last turn: the user's last message, unless that would part a result from its call."""
    messages = view.messages
    for at in range(len(messages) - 1, view.lead - 1, -1):
        if messages[at]["role"] == "user":
            return at
    at = view.lead
    while at < len(messages) and is_tool_result(messages[at]):
        at += 1
    return at


_EVERYTHING = 1 << 62
_KEPT_SESSIONS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Recalled memories; no context if nothing was searched or could be."""

    context: Context | None = None
    degraded: tuple[str, ...] = ()


class SessionRecall:
    """Recalls for the sessions of one workspace.

    Args:
        services: What work on them needs.
        receipts: Where receipts are kept.
    """

    def __init__(self, services: SessionServices, receipts: Receipts) -> None:
        self._services = services
        self._receipts = receipts
        self._live: LRU[str, tuple[int, SessionKeywordSearch]] = LRU(_KEPT_SESSIONS)
        self._shown: LRU[str, ViewText] = LRU(_KEPT_SESSIONS)

    def decide(
        self,
        snapshot: SessionSnapshot,
        query: str | None,
        wanted: RecallMode,
        budget_tokens: int,
    ) -> tuple[bool, str, str]:
        """Decide if memories are searched, for what, and why."""
        if budget_tokens == 0:
            return False, "", "the budget for memories is 0"
        if wanted == "never":
            return False, "", "recall is off"
        if query is not None and query.strip():
            return True, query, "a query was given"
        if snapshot.state.is_commanded:
            return False, "", "the command /compact needs no memory"
        said = next((each for each in reversed(snapshot.state.messages) if each.message["role"] == "user"), None)
        if said is None:
            return False, "", "the user has said nothing yet"
        decision = decide_recall(text_of(said.message))
        if wanted == "always":
            return True, decision.query or text_of(said.message), "recall is always on"
        return decision.search, decision.query, decision.reason

    def recall(
        self,
        snapshot: SessionSnapshot,
        query: str,
        budget_tokens: int,
        *,
        sources: tuple[Source, ...] = (),
        order: Order = "score",
        min_relevance: float | None = None,
        forgotten: int = 0,
        at: dt.datetime,
    ) -> Recalled:
        """A block of what is not in view, of at most so many tokens, with its stored receipt.

        What is less relevant than `min_relevance` stays out; None is as the settings have it. Of a view that is not
        ours, `forgotten` is the last message that is in it no more.
        """
        degraded = list[str]()
        in_view = snapshot.session_id
        path, shown = f"sessions/{snapshot.session_id}.jsonl", max(snapshot.view().first_seq, forgotten + 1)
        # The log begins with its header: a first message has nothing before it that could be found.
        if any(each.seq < shown for each in snapshot.state.messages[:1]):
            unready = self._services.longterm.session_ready(
                snapshot.session_id, edition=snapshot.state.edition, upto_seq=shown - 1
            )
            degraded += unready or []
            # What the index does not have yet is looked for by its words, as that of other sessions is.
            in_view = in_view if unready is not None else ""
        kept = SearchFilter(sources=sources, without=(LineRange(path=path, start_line=shown, end_line=_EVERYTHING),))
        try:
            found = self._services.longterm.search(
                query,
                limit=candidates_for(budget_tokens),
                kept=kept,
                snippets=False,
                order=order,
                in_view=in_view,
            )
        except MemoryServiceError as error:
            return Recalled(degraded=(*degraded, f"recall: {error}"))
        hits = drop_redundant(found.hits, self._shown_of(snapshot, shown))
        context = build_context(
            hits,
            query=query,
            budget_tokens=budget_tokens,
            limits=self._limits(min_relevance),
            receipt_id=new_receipt_id(at),
            created_at=at,
            degraded=found.degraded,
            order=order,
            heard=path,
        )
        try:
            with snapshot.session.held(snapshot.state):
                self._receipts.put(context.receipt, session_id=snapshot.session_id)
        except (StorageFailed, Conflict) as error:
            degraded.append(f"receipt: {error}")
        return Recalled(context=context, degraded=(*found.degraded, *degraded))

    def search(self, snapshot: SessionSnapshot, query: str, *, limit: int = 10) -> FoundMessages:
        """Search all messages of a session by words, in view or not."""
        edition, live = self._live.get(snapshot.session_id) or (0, None)
        if live is None or (edition, live.upto) != (snapshot.state.edition, snapshot.state.last_seq):
            live = SessionKeywordSearch.of(snapshot.state.messages, upto=snapshot.state.last_seq, before=live)
            self._live[snapshot.session_id] = snapshot.state.edition, live
        return FoundMessages(results=live.search(query, limit=limit), degraded=[*unreadable(snapshot.session.log)])

    def _limits(self, min_relevance: float | None) -> RelevanceLimits:
        recall = self._services.shared.settings.recall
        least = recall.min_relevance if min_relevance is None else min_relevance
        return RelevanceLimits(min_relevance=checked_share(least), min_gain=recall.min_gain)

    def _shown_of(self, snapshot: SessionSnapshot, first_seq: int) -> ViewText:
        """Text of the view from a message on, for dropping memories that repeat it."""
        before = self._shown.get(snapshot.session_id)
        tail = [each for each in snapshot.view().tail if each.seq >= first_seq]
        shown = ViewText.of(tail, before=before)
        self._shown[snapshot.session_id] = shown
        return shown


# However small the window, a block of this size says something.
_LEAST_MEMORY_TOKENS = 64
# How often a compaction is tried where others compact or undo the same session meanwhile.
_COMPACTION_ATTEMPTS = 3
# Of what is usable, what memories may take: the session is what the agent is working on.
_MOST_MEMORY_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltContext:
    """A prompt, and how it came about.

    Attributes:
        tools_tokens: What the schemas of tools take beside the prompt, by estimate.
        receipt: What was recalled; None if nothing was searched.
        compaction: The compaction that was made first, if one was; and that which the user asked for, made or not.
        flush: The flush that was made first, or that the agent is asked for.
        command: The command to the service that was the last thing said; the model need not be called then.
        memory: The block of memories in the prompt; empty if there is none.
    """

    prompt: Prompt
    tools_tokens: int
    recall: Recall
    receipt: Receipt | None = None
    compaction: CompactionReceipt | None = None
    flush: Flush | None = None
    command: Literal["compact"] | None = None
    memory: str = ""
    degraded: tuple[str, ...] = field(default_factory=tuple)


class Contexts:
    """Makes prompts from the sessions of one workspace."""

    def __init__(
        self,
        services: SessionServices,
        compactions: SessionCompactions,
        flushes: Flushes,
        recalls: SessionRecall,
        adapter: EngineAdapter,
    ) -> None:
        self._services = services
        self._compactions = compactions
        self._flushes = flushes
        self._recalls = recalls
        self._adapter = adapter

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
        counted = tools_tokens(call.tools) if schemas_tokens is None else schemas_tokens
        work = _Work(self._services, self._recalls, session_id, call, counted)
        owned = by_engine and self._adapter.owns_compaction(session_id)
        if call.auto:
            self._prepare(work, cancelled, compacts=not owned)
        view = self._by_engine(work) if by_engine else None
        if call.auto and owned and view is None:
            # The engine failed just now, and nobody has kept the session small.
            self._prepare(work, cancelled)
        return self._assembled(work, view or work.snapshot.view())

    def _by_engine(self, work: _Work) -> View | None:
        tokens = work.budget.estimated(work.budget.usable_tokens)
        return self._adapter.view(
            work.snapshot, tokens=tokens, query=work.decision.query, system_prompt=work.call.system_prompt
        )

    def _prepare(self, work: _Work, cancelled: Callable[[], bool], *, compacts: bool = True) -> None:
        """Flush, prune and compact as the budget asks for it."""
        services, session_id = self._services, work.session_id
        flush = self._flushes.due(work.snapshot, work.tokens(), work.budget)
        preset = work.snapshot.options.preset
        prunes = compacts and preset.pruning_mode in ("cache_ttl", "budget")
        asked = work.asked(compacts=compacts) is not None
        due = compacts and preset.auto
        if not (flush or (work.is_hard() and due) or prunes or asked):
            return
        with services.alone(session_id):
            # Who was here before may have compacted, or undone it.
            work.again()
            if flush:
                work.flush = self._flushes.before(work.snapshot, hard=work.is_hard(), cancelled=cancelled)
                work.degraded += tuple(work.flush.degraded)
                work.again()
            if (wish := work.asked(compacts=compacts)) is not None:
                self._compact(work, wish, cancelled)
            if prunes:
                self._compact(work, CompactionCall(cause="cache_ttl"), cancelled)
            last_seq = work.snapshot.state.last_seq
            if due and work.is_hard() and self._compactions.worth_trying(session_id, last_seq, work.tokens()):
                trigger: CompactionTrigger = "safeguard" if preset.safeguard else "threshold"
                self._compact(work, CompactionCall(cause=trigger), cancelled)

    def _compact(self, work: _Work, wish: CompactionCall, cancelled: Callable[[], bool]) -> None:
        for _ in range(_COMPACTION_ATTEMPTS):
            call = replace(wish, overhead_tokens=work.overhead_tokens, most_tokens=work.call.max_tokens)
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
            if receipt.applied or call.trigger == "manual":
                work.compaction = receipt
            work.again()
            return
        work.degraded += (f"compaction: {work.failure}",)

    def _assembled(self, work: _Work, view: View) -> BuiltContext:
        call = work.call
        room = work.budget.estimated(work.budget.usable_tokens) - view.tokens + work.memory_tokens
        memory_budget = min(work.memory_budget_tokens, max(room - MESSAGE_TOKENS, 0))
        recalled = Recalled()
        if work.decision.searched and memory_budget > 0:
            recalled = self._recalls.recall(
                work.snapshot,
                work.decision.query,
                memory_budget,
                sources=tuple(call.sources),
                order=call.order or work.snapshot.options.preset.recall.order,
                min_relevance=call.min_relevance,
                at=self._services.now(),
            )
        context = recalled.context
        if not call.auto and work.snapshot.state.open_command is not None:
            work.degraded += ("compaction: the user asked for /compact, and `auto` is off. Ask with auto.",)
        degraded = [*work.degraded, *self._adapter.failures(work.session_id), *recalled.degraded]
        degraded += unreadable(work.snapshot.session.log)
        if work.snapshot.options.window.problem == "warn":
            degraded.append(f"window: {work.snapshot.options.window.message}")
        if work.decision.searched and memory_budget < work.memory_budget_tokens:
            degraded.append(f"memory: {memory_budget} of {work.memory_budget_tokens} tokens were left for memories.")
        prompt = _prompt_of(
            view,
            system_prompt=call.system_prompt,
            memory=context.block if context else "",
            window_tokens=work.snapshot.options.window.tokens,
            scale=work.snapshot.scale(),
        )
        most = min(call.max_tokens or prompt.tokens.window, prompt.tokens.window)
        if prompt.tokens.total > most:
            raise work.failure or _refusal(prompt, most, call)
        return BuiltContext(
            prompt=prompt,
            tools_tokens=work.tools_tokens,
            recall=work.decision,
            receipt=_receipt(context),
            compaction=work.compaction,
            flush=work.flush,
            command="compact" if work.snapshot.state.is_commanded else None,
            memory=context.block if context else "",
            degraded=tuple(degraded),
        )


class _Work:
    """State of one context while it is built."""

    def __init__(
        self,
        services: SessionServices,
        recalls: SessionRecall,
        session_id: str,
        call: SessionContextRequest,
        tools_tokens: int,
    ) -> None:
        self._services = services
        self._recalls = recalls
        self.session_id, self.call = session_id, call
        self.snapshot: SessionSnapshot = services.snapshot(session_id)
        self.decision = Recall(searched=False, query="", reason="")
        self.flush: Flush | None = None
        self.compaction: CompactionReceipt | None = None
        self.degraded: tuple[str, ...] = ()
        self.failure: MemoryServiceError | None = None
        self.memory_budget_tokens = call.memory_budget_tokens
        self.memory_tokens = 0
        self.tools_tokens = tools_tokens
        self.overhead_tokens = 0
        self.budget: ContextBudget = self.snapshot.budget(most_tokens=call.max_tokens)
        self._decide()

    def _decide(self) -> None:
        """Decide if memories are searched, and reserve room for them."""
        call = self.call
        searched, query, reason = self._recalls.decide(
            self.snapshot, call.query, call.recall, call.memory_budget_tokens
        )
        preset = self.snapshot.options.preset
        limit = preset.recall.most_tokens
        if searched and limit is not None and call.memory_budget_tokens > limit:
            self.memory_budget_tokens = limit
            reason += f"; of {call.memory_budget_tokens:,} tokens it gets {limit:,}, the most in preset {preset.name}"
        self.decision = Recall(searched=searched, query=query, reason=reason)
        usable = self.budget.estimated(self.budget.usable_tokens)
        most = max(_LEAST_MEMORY_TOKENS, int(usable * _MOST_MEMORY_SHARE))
        self.reserve(min(self.memory_budget_tokens, most) if searched else 0)

    def reserve(self, memory_tokens: int) -> None:
        """Reserve so much room for memories."""
        prompt = self.call.system_prompt
        system = count_tokens(prompt) + MESSAGE_TOKENS if prompt else 0
        self.memory_tokens = memory_tokens
        self.overhead_tokens = system + self.tools_tokens + memory_tokens
        self._measure()

    def again(self) -> None:
        """Look at the session anew."""
        before = self.snapshot.state.edition
        self.snapshot = self._services.snapshot(self.session_id)
        if self.snapshot.state.edition != before:
            # Deleted and begun anew, or trimmed: what was said in another log is not asked for.
            self._decide()
        self._measure()

    def asked(self, *, compacts: bool) -> CompactionCall | None:
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


def _receipt(context: Context | None) -> Receipt | None:
    return context.receipt if context else None


def _refusal(prompt: Prompt, most: int, call: SessionContextRequest) -> Incompressible:
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

"""Overflow recovery: the next step after a provider refuses a prompt, decided and taken.

Invariants: recovery ends, whatever the provider says, as every step is taken a bounded number of times for one prompt;
a failed compaction is never taken for an overflow; the window that the error tells is learned; the request of the user
stands in the prompt that is tried again; what is given up on says what a person can do. The decision is pure.

```
a failed compaction                      -> give up: compacting again is no remedy
too many tokens   -> compact, up to 3x   -> cut oversized results, once -> give up
too many bytes    -> strip media         -> compact                     -> give up
refused order     -> send without thinking, once                        -> give up
a rate limit, a broken connection        -> the same again, after a while
anything else                            -> give up
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from indexer.common import LRU
from memory_service.compaction.presets import RecoveryRules
from memory_service.compaction.prompts import CONTINUE_NOTE, MEDIA_REMOVED_NOTE
from memory_service.compaction.pruning import media_bytes, media_to_bytes, truncate_results
from memory_service.compaction.record import Compaction, built_on
from memory_service.compaction.view import newest_language, project, tail_of, with_head
from memory_service.errors import Conflict, Incompressible, MemoryServiceError
from memory_service.llm.base import not_cancelled
from memory_service.llm.errors import ProviderFailure, classify, is_compaction_failure
from memory_service.llm.token_anchor import usage_of
from memory_service.messages.shapes import Message, is_tool_result, media_parts_of, without_thinking
from memory_service.runtime.base import CompactionCall
from memory_service.schemas.compaction import (
    CompactionReceipt,
    CompactRequest,
    OverflowRequest,
    PromptOptions,
    SessionContextRequest,
)
from memory_service.sessions.records import Learned
from memory_service.text.texts import texts_in

if TYPE_CHECKING:
    from memory_service.prompts.build import BuiltContext, Contexts
    from memory_service.runtime.compactions import SessionCompactions
    from memory_service.runtime.engine_adapter import EngineAdapter
    from memory_service.runtime.session import SessionState
    from memory_service.runtime.session_services import SessionRuntime, SessionSnapshot

Remedy = Literal["compact", "truncate", "strip_media", "drop_thinking", "wait", "give_up"]

# The same prompt again, for an error that may pass.
_WAITS = 3
_WAY_OUT = "Start a new session, send less, or use a model with a larger context window."


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryAttempts:
    """Steps tried for one prompt so far; a new message begins another prompt.

    Attributes:
        last_message: The last message of the prompt.
        compactions: Tries to compact since anything else was done.
        compacted: How many compactions were made in all.
    """

    last_message: int = 0
    compactions: int = 0
    compacted: int = 0
    truncations: int = 0
    strips: int = 0
    repairs: int = 0
    waits: int = 0

    def at(self, last_message: int) -> RecoveryAttempts:
        """Attempts for the prompt that ends with a message; fresh ones for a new prompt."""
        return self if last_message == self.last_message else RecoveryAttempts(last_message=last_message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The next step, why, and what was tried once it is taken."""

    remedy: Remedy
    reason: str
    tried: RecoveryAttempts


def _decide(
    failure: ProviderFailure,
    *,
    failed_compaction: bool,
    attempts: RecoveryAttempts,
    rules: RecoveryRules,
    compactible: bool = True,
    is_oversized: bool = True,
    has_media: bool = True,
) -> Decision:
    """The next step.

    Args:
        failure: What the error means.
        failed_compaction: Whether it tells of a compaction that failed.
        attempts: What was done for this prompt.
        rules: Of the preset.
        compactible: Whether the last compaction left something to compact.
        is_oversized: Whether a tool result is there that could be cut.
        has_media: Whether media are there that could be stripped.
    """
    if failed_compaction:
        return _given_up("The error tells of a failed compaction, not of an overflow; nothing was changed.", attempts)
    if failure.kind == "token_overflow":
        return _too_many_tokens(attempts, rules, compactible, is_oversized)
    if failure.kind == "byte_overflow":
        if has_media and attempts.strips < 2:
            return Decision(
                remedy="strip_media",
                reason="The request had too many bytes; media give way to labels.",
                tried=replace(attempts, strips=attempts.strips + 1),
            )
        return _too_many_tokens(attempts, rules, compactible, is_oversized)
    if failure.kind == "malformed_history" and attempts.repairs == 0:
        return Decision(
            remedy="drop_thinking",
            reason="The provider refused the order of the messages; they are sent again without thinking.",
            tried=replace(attempts, repairs=1),
        )
    if failure.transient and attempts.waits < _WAITS:
        wait = failure.retry_after_seconds
        after = f"after {wait:g} seconds" if wait else "after a while"
        return Decision(
            remedy="wait",
            reason=f"No overflow ({failure.kind}): the same prompt may succeed {after}.",
            tried=replace(attempts, waits=attempts.waits + 1),
        )
    return _given_up(_why_not(failure), attempts)


def _too_many_tokens(
    attempts: RecoveryAttempts, rules: RecoveryRules, compactible: bool, is_oversized: bool
) -> Decision:
    if compactible and attempts.compactions < rules.attempts:
        count = attempts.compactions + 1
        return Decision(
            remedy="compact",
            reason=f"The prompt was too long; it was compacted ({count} of {rules.attempts}).",
            tried=replace(attempts, compactions=count),
        )
    if rules.truncates and is_oversized and attempts.truncations == 0:
        return Decision(
            remedy="truncate",
            reason="The prompt was too long; its largest tool results were cut.",
            # What follows may be compacted again.
            tried=replace(attempts, truncations=1, compactions=0),
        )
    times = f"{attempts.compacted} compaction{'' if attempts.compacted == 1 else 's'}"
    return _given_up(
        f"Context overflow: the prompt is too long after {times}"
        f"{' and a cut of its tool results' if attempts.truncations else ''}. {_WAY_OUT}",
        attempts,
    )


def _why_not(failure: ProviderFailure) -> str:
    if failure.kind == "output_overflow":
        most = f" of {failure.max_output_tokens:,} tokens" if failure.max_output_tokens else ""
        return f"The answer asked for is longer than the model gives: ask for at most its limit{most}. The prompt fits."
    if failure.kind == "malformed_history":
        return "The provider refuses the order of the messages, thinking or not. Look at the error itself."
    if failure.kind == "rate_limit" and not failure.transient:
        return (
            "The request alone is larger than what the provider takes from you in a minute: waiting does not help. "
            "Raise the limit there, or give the session a context_window below it, so that its prompts stay smaller."
        )
    return f"This is no overflow ({failure.kind}): compacting would not help. Look at the error itself."


def _given_up(reason: str, attempts: RecoveryAttempts) -> Decision:
    return Decision(remedy="give_up", reason=reason, tried=attempts)


# A result that takes a smaller share of the window is no reason for an overflow.
_OVERSIZED_SHARE = 0.05
_KEPT_SESSIONS = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryStep:
    """Next step of a recovery, taken.

    Attributes:
        action: `retry` with the prompt of `context`, or `give_up`.
        kind: What the error means.
        retry_after_seconds: How long to wait first.
        learned_window: The window that the error told.
    """

    action: Literal["retry", "give_up"]
    remedy: Remedy
    reason: str
    kind: str
    context: BuiltContext | None = None
    compaction: CompactionReceipt | None = None
    retry_after_seconds: float | None = None
    learned_window: int | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages to send; none where it is given up."""
        return self.context.prompt.messages if self.context else ()

    @property
    def degraded(self) -> tuple[str, ...]:
        """Parts that the new prompt, or the compaction before it, misses."""
        missed_value = tuple(self.compaction.degraded) if self.compaction else ()
        return (*missed_value, *(self.context.degraded if self.context else ()))


class Overflows:
    """Recovers the sessions of one workspace."""

    def __init__(
        self, services: SessionRuntime, compactions: SessionCompactions, contexts: Contexts, adapter: EngineAdapter
    ) -> None:
        self._services = services
        self._compactions = compactions
        self._contexts = contexts
        self._adapter = adapter
        self._tried: LRU[str, RecoveryAttempts] = LRU(_KEPT_SESSIONS)
        self._calls: LRU[str, tuple[SessionContextRequest, int]] = LRU(_KEPT_SESSIONS)

    def note_call(self, session_id: str, call: SessionContextRequest, tools_tokens: int) -> None:
        """Remember how the last prompt of a session was made."""
        # Of the schemas of tools only the size is needed again.
        self._calls[session_id] = call.model_copy(update={"tools": []}), tools_tokens

    def recover(
        self, session_id: str, call: OverflowRequest, *, cancelled: Callable[[], bool] = not_cancelled
    ) -> RecoveryStep:
        """Take the next step of the recovery.

        Raises:
            NotFound: There is no such session.
        """
        with self._services.alone(session_id):
            snapshot = self._services.snapshot(session_id)
            failure = self._classify(snapshot, call)
            learned_count = self._learn_window(snapshot, failure)
            if learned_count:
                snapshot = self._services.snapshot(session_id)
            while True:
                decision = self._decide_step(snapshot, call, failure)
                self._services.tell("overflow", session_id, failure=failure.kind, remedy=decision.remedy)
                if decision.remedy == "give_up":
                    self._forget(session_id)
                    return self._answer("give_up", decision, failure, learned_count=learned_count)
                done_step = self._take_step(snapshot, decision, call, failure, cancelled)
                if done_step is not None:
                    return replace(done_step, learned_window=learned_count)
                snapshot = self._services.snapshot(session_id)

    def _classify(self, snapshot: SessionSnapshot, call: OverflowRequest) -> ProviderFailure:
        failure = classify(call.error, status=call.status)
        usage = usage_of(call.usage)
        if usage is not None and failure.kind == "other" and not call.error.strip():
            count = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
            if count > snapshot.options.window.tokens:
                return replace(failure, kind="token_overflow", requested_tokens=count)
        return failure

    def _learn_window(self, snapshot: SessionSnapshot, failure: ProviderFailure) -> int | None:
        """Note the window that the error told, if it is smaller than the one that was worked with."""
        window = failure.window_tokens if failure.kind == "token_overflow" else None
        if window is None or window >= snapshot.options.window.tokens:
            return None
        snapshot.session.note(
            [Learned(context_window=window, model=snapshot.options.model_name, reason="the provider's error told it")],
            snapshot.state,
        )
        return window

    def _decide_step(self, snapshot: SessionSnapshot, call: OverflowRequest, failure: ProviderFailure) -> Decision:
        view = snapshot.view()
        tail = tail_of(snapshot.state, snapshot.shape)
        share = _OVERSIZED_SHARE * snapshot.options.window.tokens
        last = snapshot.state.messages[-1].seq if snapshot.state.messages else 0
        attempts = (self._tried.get(snapshot.session_id) or RecoveryAttempts()).at(last)
        decision = _decide(
            failure,
            failed_compaction=is_compaction_failure(call.error),
            attempts=attempts,
            rules=snapshot.options.preset.recovery,
            compactible=bool(tail),
            is_oversized=any(
                is_tool_result(each_message.message) and each_message.tokens > share for each_message in tail
            ),
            has_media=any(media_parts_of(message) for message in view.messages),
        )
        self._tried[snapshot.session_id] = decision.tried
        return decision

    def _count_compacted(self, session_id: str) -> None:
        attempts = self._tried.get(session_id) or RecoveryAttempts()
        self._tried[session_id] = replace(attempts, compacted=attempts.compacted + 1)

    def _take_step(
        self,
        snapshot: SessionSnapshot,
        decision: Decision,
        call: OverflowRequest,
        failure: ProviderFailure,
        cancelled: Callable[[], bool],
    ) -> RecoveryStep | None:
        """The answer after a step; None if the step changed nothing, so that the next one is to be taken."""
        receipt: CompactionReceipt | None = None
        note = ""
        try:
            if decision.remedy == "compact":
                receipt = self._compact(snapshot, failure, cancelled)
                # An engine may have sent more than the view that there is nothing left to compact of.
                if not receipt.applied and not (_by_engine(decision) and self._adapter.is_limited(snapshot.session_id)):
                    return None
                if receipt.applied:
                    self._count_compacted(snapshot.session_id)
                if snapshot.options.preset.recovery.replays:
                    is_stripped = self._strip_media(self._services.snapshot(snapshot.session_id), 2)
                    notes = (MEDIA_REMOVED_NOTE if is_stripped else "", CONTINUE_NOTE if receipt.continue_note else "")
                    note = "\n\n".join(filter(None, notes))
            elif decision.remedy == "truncate":
                if not self._truncate_results(snapshot):
                    return None
            elif decision.remedy == "strip_media":
                if not self._strip_media(snapshot, decision.tried.strips):
                    return None
                note = MEDIA_REMOVED_NOTE
            context = self._prompt(snapshot, call, note, decision)
        except Incompressible as error:
            # The next step of the ladder may make it fit; the last one is to give up.
            self._services.tell(
                "overflow", snapshot.session_id, failure=failure.kind, remedy=decision.remedy, outcome=error.code
            )
            return None
        except MemoryServiceError as error:
            given_up = replace(decision, remedy="give_up", reason=f"The recovery failed: {error}")
            return self._answer("give_up", given_up, failure)
        return self._answer("retry", decision, failure, context=context, receipt=receipt)

    def _compact(
        self, snapshot: SessionSnapshot, failure: ProviderFailure, cancelled: Callable[[], bool]
    ) -> CompactionReceipt:
        view, target = snapshot.view(), None
        if failure.requested_tokens and failure.window_tokens and failure.requested_tokens > failure.window_tokens:
            # What was measured is too much by this: the target comes down in proportion.
            share = failure.window_tokens / failure.requested_tokens
            target = max(1, min(int(view.tokens * share * 0.8), snapshot.budget().emergency_target_tokens))
        return self._compactions.compact(
            snapshot.session_id,
            CompactionCall(request=CompactRequest(trigger="overflow", target_tokens=target), will_retry=True),
            cancelled=cancelled,
        )

    def _truncate_results(self, snapshot: SessionSnapshot) -> bool:
        """Cut the largest results to what fits twice over."""
        tail = tail_of(snapshot.state, snapshot.shape)
        size = sum(message.tokens for message in tail)
        room, texts = (
            min(size // 2, snapshot.budget().emergency_target_tokens),
            texts_in(newest_language(snapshot.state)),
        )
        outcome = truncate_results(tail, room, protected_numbers=_pinned_seqs(snapshot.state), texts=texts)
        return bool(outcome.cleared) and self._commit(
            snapshot, cleared_values=dict(outcome.cleared), reason="oversized results were cut"
        )

    def _strip_media(self, snapshot: SessionSnapshot, times: int) -> bool:
        """Let media give way to labels: the older half of their bytes first, then all of them."""
        tail = tail_of(snapshot.state, snapshot.shape, originals=snapshot.session.originals(snapshot.state))
        limit = media_bytes(tail) // 2 if times < 2 else 0
        stripped_numbers = media_to_bytes(tail, limit).stripped
        return bool(stripped_numbers) and self._commit(
            snapshot, stripped_numbers=stripped_numbers, reason="media gave way to labels"
        )

    def _commit(
        self,
        snapshot: SessionSnapshot,
        *,
        cleared_values: dict[int, str] | None = None,
        stripped_numbers: tuple[int, ...] = (),
        reason: str,
    ) -> bool:
        state, before = snapshot.state, snapshot.view().tokens
        compaction = Compaction(
            base=state.head.seq,
            upto=state.last_seq,
            tail_start=state.head.tail_start,
            summary=(),
            stage="prune",
            tokens_before=before,
            tokens_after=before,
            cleared=cleared_values or {},
            stripped=stripped_numbers,
            preset=snapshot.options.preset.name,
            trigger="overflow",
            reason=reason,
        )
        head = built_on(state.head, compaction, state.last_seq + 1, state.head.ledger)
        after = project(with_head(state, head), snapshot.shape).tokens
        try:
            snapshot.session.commit(replace(compaction, tokens_after=after), state)
        except Conflict:
            return False
        self._services.tell("prune", snapshot.session_id, tokens_before=before, tokens_after=after, reason=reason)
        return True

    def _prompt(self, snapshot: SessionSnapshot, call: OverflowRequest, note: str, decision: Decision) -> BuiltContext:
        request, last = _prompt_request(call), self._calls.get(snapshot.session_id) or (SessionContextRequest(), 0)
        asked_request, tools_tokens = (request, None) if request else last
        context = self._contexts.context(
            snapshot.session_id,
            asked_request.model_copy(update={"auto": False}),
            by_engine=_by_engine(decision),
            schemas_tokens=tools_tokens,
        )
        messages = context.prompt.messages
        if decision.remedy == "drop_thinking":
            messages = tuple(map(without_thinking, messages))
        if note:
            messages = (*messages, {"role": "user", "content": note})
        return replace(context, prompt=context.prompt.with_messages(messages))

    def _forget(self, session_id: str) -> None:
        self._tried.pop(session_id)

    def _answer(
        self,
        action: Literal["retry", "give_up"],
        decision: Decision,
        failure: ProviderFailure,
        *,
        context: BuiltContext | None = None,
        receipt: CompactionReceipt | None = None,
        learned_count: int | None = None,
    ) -> RecoveryStep:
        return RecoveryStep(
            action=action,
            remedy=decision.remedy,
            reason=decision.reason,
            kind=failure.kind,
            context=context,
            compaction=receipt,
            retry_after_seconds=failure.retry_after_seconds,
            learned_window=learned_count,
        )


def _prompt_request(call: OverflowRequest) -> SessionContextRequest | None:
    """How the new prompt is made, if the request tells that; else it is made as the last one of the session was."""
    options = PromptOptions.model_fields.keys() - {"format"}
    keys = call.model_fields_set & options
    return SessionContextRequest.model_construct(**{name: getattr(call, name) for name in keys}) if keys else None


def _by_engine(decision: Decision) -> bool:
    """True if an engine of somebody else may make the next prompt: once, in less room; then the service makes it."""
    return decision.remedy not in ("truncate", "strip_media") and decision.tried.compactions <= 1


def _pinned_seqs(state: SessionState) -> tuple[int, ...]:
    return tuple(pin.target for pin in state.pins if pin.target is not None)

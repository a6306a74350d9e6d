"""The flush of the sessions of one workspace: when it is due, who finds the memories, and that they are kept once.

Invariants: the service alone writes, and what it writes is found by the next search; a stretch is searched once, and a
fact is stored once; what fails leaves the stretch for the next flush, and never keeps a session from being compacted.
What a user's message `/remember X` asks for is written as soon as it is appended, in the words behind the command.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from indexer import IndexerError
from memory_service.compaction.budget import ContextBudget
from memory_service.errors import CallCancelled, Conflict, InvalidRequest, MemoryServiceError, UpstreamFailed
from memory_service.flush.candidates import find_candidates
from memory_service.flush.notes import Candidate
from memory_service.flush.replies import agent_prompt, facts_of_reply, is_silent
from memory_service.hooks import Intent
from memory_service.llm.base import ChatModel, not_cancelled
from memory_service.llm.calls import Spent
from memory_service.memories.drafts import entry_draft
from memory_service.messages import Message, Numbered, is_system, own_text_of
from memory_service.runtime.models import make_talk_judge
from memory_service.runtime.session import SessionState
from memory_service.runtime.session_options import RULES_ALONE
from memory_service.schemas.compaction import Flush, FlushedMemory, FlushPrompt
from memory_service.sessions.records import FlushRecord
from memory_service.text.judge_weights import DamagedWeights
from memory_service.text.recall import words_to_keep
from memory_service.text.speech import said_moment

if TYPE_CHECKING:
    from memory_service.runtime.session_services import SessionServices, SessionSnapshot
    from memory_service.schemas.sessions import AppendedMessages

FlushMethod = Literal["agent", "model", "extractive", "none"]
_BYTES_PER_TOKEN = 4


class Flushes:
    """Flushes the sessions of one workspace."""

    def __init__(self, services: SessionServices) -> None:
        self._services = services

    def due(self, snapshot: SessionSnapshot, tokens: int, budget: ContextBudget) -> str:
        """Reason why a flush is due; empty if it is off, was done for this cycle, or there is room."""
        table, state = snapshot.options.flush, snapshot.state
        fresh = state.since(state.flushed_to + 1)
        if table.mode == "off" or not fresh:
            return ""
        grown = sum(each.tokens for each in fresh) * _BYTES_PER_TOKEN
        if table.force_bytes and grown >= table.force_bytes:
            return f"the log has grown by about {grown:,} bytes since the last flush"
        if tokens < budget.soft_tokens or state.flushed_round == state.head.rounds:
            return ""
        return f"{tokens:,} tokens of {budget.soft_tokens:,} before a compaction"

    def wanted(self, snapshot: SessionSnapshot) -> bool:
        """True if flushes are on, and something was said since the last one."""
        return snapshot.options.flush.mode != "off" and bool(_stretch(snapshot.state))

    def before(self, snapshot: SessionSnapshot, *, hard: bool, cancelled: Callable[[], bool] = not_cancelled) -> Flush:
        """The flush before a compaction: the agent is asked while there is time; after that the service does it."""
        if snapshot.options.flush.mode == "agent" and not hard:
            asked = self.prompt(snapshot)
            return _report(
                mode="agent",
                reason="the agent is asked for memories",
                method="agent",
                prompt=asked.prompt,
                system_prompt=asked.system_prompt,
            )
        try:
            return self.flush(snapshot.session_id, cancelled=cancelled)
        except CallCancelled:
            raise
        except (MemoryServiceError, IndexerError, OSError) as error:
            return _report(reason="the flush failed", degraded=[f"flush: {error}"])

    def prompt(self, snapshot: SessionSnapshot) -> FlushPrompt:
        """Flush prompt for the agent."""
        table = snapshot.options.flush
        asked = agent_prompt(self._services.now().date(), prompt=table.prompt, system_prompt=table.system_prompt)
        return FlushPrompt(prompt=asked.prompt, system_prompt=asked.system_prompt)

    def flush(
        self, session_id: str, *, reply: str | None = None, cancelled: Callable[[], bool] = not_cancelled
    ) -> Flush:
        """Write down what the messages since the last flush leave behind.

        Args:
            session_id: The session.
            reply: What the agent answered to the prompt; None lets the service find the memories.
            cancelled: Asked while a model works.

        Raises:
            NotFound: There is no such session.
            UpstreamFailed: The model failed, and rules may not stand in for it.
            StorageFailed: The disk did not take a memory; what was written before it stays, and is not written again.
        """
        services = self._services
        with services.alone(session_id):
            snapshot = services.snapshot(session_id)
            stretch = _stretch(snapshot.state)
            if not stretch and reply is None:
                return _report(reason="nothing was said since the last flush")
            intent = Intent(
                work="flush", workspace=services.workspace, session_id=session_id, fields={"messages": len(stretch)}
            )
            verdict = services.shared.hooks.ask(intent)
            if verdict.refused is not None:
                raise Conflict(f"A hook refused the flush: {verdict.refused.reason}")
            report, spent = _report(), Spent()
            try:
                # What a message asked to remember is remembered by now.
                said = [each for each in stretch if not _words_to_keep(each.message)]
                found = self._found(snapshot, said, reply, verdict.instructions, cancelled, spent)
                report = self._written(snapshot, stretch, found)
            finally:
                self._tell(session_id, report, spent)
            counted = {
                "calls": spent.requests,
                "input_tokens": spent.input_tokens,
                "output_tokens": spent.output_tokens,
            }
            return report.model_copy(update=counted)

    def _tell(self, session_id: str, report: Flush, spent: Spent) -> None:
        """Say what was done; of a flush that failed, the calls that were made for it."""
        if report.method == "none" and not spent.requests:
            return
        shared = self._services.shared
        event = shared.events.publish(
            self._services.workspace,
            "flush",
            session_id,
            method=report.method,
            written=len(report.written),
            duplicates=report.duplicates,
            path=report.path,
            calls=spent.requests,
            failed_calls=spent.failed,
        )
        shared.hooks.tell("flush", event)

    def _found(
        self,
        snapshot: SessionSnapshot,
        stretch: Sequence[Numbered],
        reply: str | None,
        instructions: str,
        cancelled: Callable[[], bool],
        spent: Spent,
    ) -> _Found:
        if reply is not None:
            if is_silent(reply):
                return _Found(candidates=(), method="agent", reason="the agent has nothing to note")
            return _Found(candidates=tuple(facts_of_reply(reply, stretch)), method="agent", reason="the agent's notes")
        model, mode = self._services.shared.models.memories, snapshot.options.flush.mode
        if mode == "model" and model is None:
            raise InvalidRequest("flush.mode is model, and no llm_model is set. Set one, or flush.mode = extractive.")
        if model is None or mode == "extractive":
            return self._by_rules(snapshot.state, stretch)
        return self._by_model(model, snapshot, stretch, instructions, cancelled, spent)

    def _by_model(
        self,
        model: ChatModel,
        snapshot: SessionSnapshot,
        stretch: Sequence[Numbered],
        instructions: str,
        cancelled: Callable[[], bool],
        spent: Spent,
    ) -> _Found:
        from memory_service.flush.model import extract_facts

        dropped: list[Candidate] = []
        try:
            candidates = extract_facts(
                stretch,
                model,
                instructions=instructions,
                fallbacks=self._services.shared.models.fallbacks,
                timeout_seconds=self._services.shared.settings.llm_timeout_seconds,
                cancelled=cancelled,
                spent=spent,
                dropped=dropped,
            )
        except UpstreamFailed as error:
            if snapshot.options.flush.mode == "model":
                raise
            found = self._by_rules(snapshot.state, stretch)
            return _Found(
                candidates=found.candidates,
                method="extractive",
                reason=found.reason,
                degraded=(
                    *found.degraded,
                    f"flush: the model failed ({error.kind}); rules found the memories. {error}",
                ),
            )
        if not candidates and not dropped:
            return _Found(candidates=(), method="model", reason=f"{model.name} found nothing to note")
        found = self._lasting(candidates, f"found by {model.name}")
        if not dropped:
            return found
        told = (
            f"flush: {len(dropped)} of the facts that {model.name} found were dropped: their messages do not hold them"
        )
        return replace(found, degraded=(*found.degraded, told))

    def _lasting(self, candidates: Sequence[Candidate], reason: str) -> _Found:
        """Facts that a model found, without those of the moment."""
        from memory_service.flush.judged import without_momentary

        judge = make_talk_judge(self._services.shared.settings)
        if judge is None:
            return _Found(candidates=tuple(candidates), method="model", reason=reason)
        try:
            kept = without_momentary(candidates, judge)
        except (IndexerError, DamagedWeights) as error:
            degraded = (f"flush: the judge of what lasts is missing, so that nothing was dropped. {error}",)
            return _Found(candidates=tuple(candidates), method="model", reason=reason, degraded=degraded)
        dropped = len(candidates) - len(kept)
        reason += f"; {dropped} of the moment were dropped" if dropped else ""
        return _Found(candidates=tuple(kept), method="model", reason=reason)

    def _by_rules(self, state: SessionState, stretch: Sequence[Numbered]) -> _Found:
        find = partial(
            find_candidates,
            stretch,
            zone=self._services.now().tzinfo or dt.UTC,
            before=state.between(1, state.flushed_to),
        )
        judge, degraded = make_talk_judge(self._services.shared.settings), ""
        if judge is None and not state.flushed_to:
            degraded = RULES_ALONE
        try:
            candidates = tuple(find(judge=judge))
        except (IndexerError, DamagedWeights) as error:
            candidates, degraded = tuple(find()), f"flush: the judge of what lasts is missing. {error}"
        found = f"{len(candidates)} facts found" if candidates else "nothing was found to note"
        return _Found(
            candidates=candidates, method="extractive", reason=found, degraded=(degraded,) if degraded else ()
        )

    def _written(self, snapshot: SessionSnapshot, stretch: Sequence[Numbered], found: _Found) -> Flush:
        session_id = snapshot.session_id
        drafts = [
            entry_draft(
                candidate.text,
                origin=candidate.origin,
                session_id=session_id,
                messages=(candidate.seqs[0], candidate.seqs[-1]) if candidate.seqs else None,
                date=_day_of(candidate, self._services.now().date()),
            )
            for candidate in found.candidates
        ]
        # Of a session that was deleted meanwhile nothing is written any more.
        kept, missing = self._services.longterm.remember_all(
            drafts, during=lambda: snapshot.session.held(snapshot.state)
        )
        written = [
            FlushedMemory(
                memory_id=entry.memory_id,
                text=candidate.text,
                path=entry.path,
                start_line=entry.start_line,
                end_line=entry.end_line,
            )
            for entry, candidate in zip(kept, found.candidates, strict=True)
            if entry is not None and not entry.duplicate
        ]
        messages = (stretch[0].seq, stretch[-1].seq) if stretch else None
        if messages is not None:
            mark = FlushRecord(
                from_seq=messages[0],
                to_seq=messages[1],
                method=found.method,
                written=len(written),
                reason=found.reason,
            )
            snapshot.session.note([mark], snapshot.state)
        return _report(
            path=written[-1].path if written else None,
            written=written,
            duplicates=len(drafts) - len(written),
            reason=found.reason,
            method=found.method,
            messages=messages,
            degraded=[*found.degraded, *missing],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    candidates: tuple[Candidate, ...]
    method: FlushMethod
    reason: str
    degraded: tuple[str, ...] = ()


def _report(**fields: object) -> Flush:
    nothing: dict[str, object] = {
        "mode": "service",
        "path": None,
        "written": [],
        "duplicates": 0,
        "method": "none",
        "messages": None,
    }
    return Flush.model_validate({**nothing, "reason": "", **fields})


def _day_of(candidate: Candidate, today: dt.date) -> dt.date | None:
    """The day whose file a memory belongs to: the one on which it was said; None for today's."""
    return candidate.date if candidate.date and candidate.date < today else None


def _stretch(state: SessionState) -> tuple[Numbered, ...]:
    """Messages since the last flush."""
    return tuple(each for each in state.since(state.flushed_to + 1) if not is_system(each.message))


# Memories that a message asks for outright


def _words_to_keep(message: Message) -> str:
    """The words that a message of the user asks to remember; empty if it is no such command."""
    return words_to_keep(own_text_of(message)) if message["role"] == "user" else ""


def remember_asked(
    services: SessionServices, session_id: str, messages: Sequence[object], appended: AppendedMessages
) -> list[str]:
    """Remember what messages that were just appended ask to remember.

    Args:
        services: The sessions of the workspace.
        session_id: The session.
        messages: As they came.
        appended: Where they stand in its log.

    Returns:
        What could not be kept.
    """
    if appended.replayed or not any(map(_may_ask, messages)):
        return []
    failures, today = list[str](), services.now().date()
    for each in services.session(session_id).state().since(appended.first_seq):
        words = _words_to_keep(each.message) if each.seq <= appended.last_seq else ""
        if not words:
            continue
        moment = said_moment(each)
        said = moment.astimezone(services.now().tzinfo).date() if moment else today
        try:
            draft = entry_draft(
                words,
                origin="user",
                session_id=session_id,
                messages=(each.seq, each.seq),
                date=said if said < today else None,
            )
            stored = services.longterm.remember(draft)
            failures += [f"memory: {missing}" for missing in stored.degraded]
        except MemoryServiceError as error:
            failures.append(f"memory: log:{each.seq} asks to remember something, and that failed. {error}")
    return failures


def _may_ask(message: object) -> bool:
    """False for a message that surely is no command; what is read of the others decides."""
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return False
    told = str(message.get("content"))
    return "/remember" in told.lower() or "/记住" in told or "/記住" in told

"""The flush of the sessions of one workspace: when it is due, who finds the memories, and that they are kept once.

Invariants: the service alone writes, and what it writes is found by the next search; a stretch is searched once, and a
fact is stored once; what fails leaves the stretch for the next flush, and never keeps a session from being compacted.
What a user's message `/remember X` asks for is written as soon as it is appended, in the words behind the command.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
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
from memory_service.messages.shapes import Message, is_system, own_text_of
from memory_service.messages.sizes import Numbered
from memory_service.runtime.base import RULES_ALONE
from memory_service.runtime.models import make_talk_judge
from memory_service.schemas.compaction import Flush, FlushedMemory, FlushPrompt
from memory_service.sessions.records import FlushRecord
from memory_service.text.recall import words_to_keep
from memory_service.text.sentence_judge import DamagedWeights
from memory_service.text.speech import said_moment

if TYPE_CHECKING:
    from memory_service.runtime.session import SessionState
    from memory_service.runtime.session_services import SessionRuntime, SessionSnapshot
    from memory_service.schemas.entries import StoredMemory
    from memory_service.schemas.messages import AppendedMessages

FlushMethod = Literal["agent", "model", "extractive", "none"]
_BYTES_PER_TOKEN = 4


class Flushes:
    """Flushes the sessions of one workspace."""

    def __init__(self, services: SessionRuntime) -> None:
        self._services = services

    def due(self, snapshot: SessionSnapshot, tokens: int, budget: ContextBudget) -> str:
        """Reason why a flush is due; empty if it is off, was done for this cycle, or there is room."""
        table, state = snapshot.options.flush, snapshot.state
        fresh = state.since(state.flushed_to + 1)
        if table.mode == "off" or not fresh:
            return ""
        grown_count = sum(message.tokens for message in fresh) * _BYTES_PER_TOKEN
        if table.force_bytes and grown_count >= table.force_bytes:
            return f"the log has grown by about {grown_count:,} bytes since the last flush"
        if tokens < budget.soft_tokens or state.flushed_round == state.head.rounds:
            return ""
        return f"{tokens:,} tokens of {budget.soft_tokens:,} before a compaction"

    def is_due(self, snapshot: SessionSnapshot) -> bool:
        """True if flushes are on, and something was said since the last one."""
        return snapshot.options.flush.mode != "off" and bool(_stretch(snapshot.state))

    def before(self, snapshot: SessionSnapshot, *, hard: bool, cancelled: Callable[[], bool] = not_cancelled) -> Flush:
        """The flush before a compaction: the agent is asked while there is time; after that the service does it."""
        if snapshot.options.flush.mode == "agent" and not hard:
            prompt = self.prompt(snapshot)
            return _report(
                mode="agent",
                reason="the agent is asked for memories",
                method="agent",
                prompt=prompt.prompt,
                system_prompt=prompt.system_prompt,
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
        prompt = agent_prompt(self._services.now().date(), prompt=table.prompt, system_prompt=table.system_prompt)
        return FlushPrompt(prompt=prompt.prompt, system_prompt=prompt.system_prompt)

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
            report, spending = _report(), Spent()
            try:
                # What a message asked to remember is remembered by now.
                messages = [message for message in stretch if not _words_to_keep(message.message)]
                entry = self._find_facts(snapshot, messages, reply, verdict.instructions, cancelled, spending)
                report = self._write(snapshot, stretch, entry)
            finally:
                self._tell(session_id, report, spending)
            counted_fields = {
                "calls": spending.requests,
                "input_tokens": spending.input_tokens,
                "output_tokens": spending.output_tokens,
            }
            return report.model_copy(update=counted_fields)

    def _tell(self, session_id: str, report: Flush, spending: Spent) -> None:
        """Say what was done; of a flush that failed, the calls that were made for it."""
        if report.method == "none" and not spending.requests:
            return
        services = self._services.shared
        event = services.events.publish(
            self._services.workspace,
            "flush",
            session_id,
            method=report.method,
            written=len(report.written),
            duplicates=report.duplicates,
            path=report.path,
            calls=spending.requests,
            failed_calls=spending.failed,
        )
        services.hooks.tell("flush", event)

    def _find_facts(
        self,
        snapshot: SessionSnapshot,
        stretch: Sequence[Numbered],
        reply: str | None,
        instructions: str,
        cancelled: Callable[[], bool],
        spending: Spent,
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
        return self._by_model(model, snapshot, stretch, instructions, cancelled, spending)

    def _by_model(
        self,
        model: ChatModel,
        snapshot: SessionSnapshot,
        stretch: Sequence[Numbered],
        instructions: str,
        cancelled: Callable[[], bool],
        spending: Spent,
    ) -> _Found:
        from memory_service.flush.model import extract_facts

        rejects: list[Candidate] = []
        try:
            candidates = extract_facts(
                stretch,
                model,
                instructions=instructions,
                fallbacks=self._services.shared.models.fallbacks,
                timeout_seconds=self._services.shared.settings.llm_timeout_seconds,
                cancelled=cancelled,
                spending=spending,
                candidates=rejects,
            )
        except UpstreamFailed as error:
            if snapshot.options.flush.mode == "model":
                raise
            entry = self._by_rules(snapshot.state, stretch)
            return _Found(
                candidates=entry.candidates,
                method="extractive",
                reason=entry.reason,
                degraded=(
                    *entry.degraded,
                    f"flush: the model failed ({error.kind}); rules found the memories. {error}",
                ),
            )
        if not candidates and not rejects:
            return _Found(candidates=(), method="model", reason=f"{model.name} found nothing to note")
        entry = self._lasting(candidates, f"found by {model.name}")
        if not rejects:
            return entry
        text = (
            f"flush: {len(rejects)} of the facts that {model.name} found were dropped: their messages do not hold them"
        )
        return replace(entry, degraded=(*entry.degraded, text))

    def _lasting(self, candidates: Sequence[Candidate], reason: str) -> _Found:
        """Facts that a model found, without those of the moment."""
        from memory_service.flush.candidates import without_momentary

        judge = make_talk_judge(self._services.shared.settings)
        if judge is None:
            return _Found(candidates=tuple(candidates), method="model", reason=reason)
        try:
            kept_candidates = without_momentary(candidates, judge)
        except (IndexerError, DamagedWeights) as error:
            degraded = (f"flush: the judge of what lasts is missing, so that nothing was dropped. {error}",)
            return _Found(candidates=tuple(candidates), method="model", reason=reason, degraded=degraded)
        dropped_count = len(candidates) - len(kept_candidates)
        reason += f"; {dropped_count} of the moment were dropped" if dropped_count else ""
        return _Found(candidates=tuple(kept_candidates), method="model", reason=reason)

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
        text = f"{len(candidates)} facts found" if candidates else "nothing was found to note"
        return _Found(candidates=candidates, method="extractive", reason=text, degraded=(degraded,) if degraded else ())

    def _write(self, snapshot: SessionSnapshot, stretch: Sequence[Numbered], found: _Found) -> Flush:
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
        messages = (stretch[0].seq, stretch[-1].seq) if stretch else None

        def write(append: Callable[[], Sequence[StoredMemory]]) -> Sequence[StoredMemory]:
            """Stores the memories and the record of that, in this order, or together where the storage can."""
            with self._services.logs.unit():
                # Of a session that was deleted meanwhile nothing is written any more.
                with snapshot.session.hold(snapshot.state) if drafts else nullcontext():
                    entries = append()
                if messages is not None:
                    mark = FlushRecord(
                        from_seq=messages[0],
                        to_seq=messages[1],
                        method=found.method,
                        written=sum(not entry.duplicate for entry in entries),
                        reason=found.reason,
                    )
                    snapshot.session.note([mark], snapshot.state)
            return entries

        memories, missing = self._services.longterm.remember_all(drafts, write=write)
        written_memories = [
            FlushedMemory(
                memory_id=entry.memory_id,
                text=candidate.text,
                path=entry.path,
                start_line=entry.start_line,
                end_line=entry.end_line,
            )
            for entry, candidate in zip(memories, found.candidates, strict=True)
            if entry is not None and not entry.duplicate
        ]
        return _report(
            path=written_memories[-1].path if written_memories else None,
            written=written_memories,
            duplicates=len(drafts) - len(written_memories),
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
    no_fields: dict[str, object] = {
        "mode": "service",
        "path": None,
        "written": [],
        "duplicates": 0,
        "method": "none",
        "messages": None,
    }
    return Flush.model_validate({**no_fields, "reason": "", **fields})


def _day_of(candidate: Candidate, today: dt.date) -> dt.date | None:
    """The day whose file a memory belongs to: the one on which it was said; None for today's."""
    return candidate.date if candidate.date and candidate.date < today else None


def _stretch(state: SessionState) -> tuple[Numbered, ...]:
    """Messages since the last flush."""
    return tuple(message for message in state.since(state.flushed_to + 1) if not is_system(message.message))


# Memories that a message asks for outright


def _words_to_keep(message: Message) -> str:
    """The words that a message of the user asks to remember; empty if it is no such command."""
    return words_to_keep(own_text_of(message)) if message["role"] == "user" else ""


def remember_asked(
    services: SessionRuntime, session_id: str, messages: Sequence[object], appended_messages: AppendedMessages
) -> list[str]:
    """Remember what messages that were just appended ask to remember.

    Args:
        services: The sessions of the workspace.
        session_id: The session.
        messages: As they came.
        appended_messages: Where they stand in its log.

    Returns:
        What could not be kept.
    """
    if appended_messages.replayed or not any(map(_may_ask, messages)):
        return []
    failures, today = list[str](), services.now().date()
    for message in services.session(session_id).state().since(appended_messages.first_seq):
        words = _words_to_keep(message.message) if message.seq <= appended_messages.last_seq else ""
        if not words:
            continue
        moment = said_moment(message)
        date = moment.astimezone(services.now().tzinfo).date() if moment else today
        try:
            draft = entry_draft(
                words,
                origin="user",
                session_id=session_id,
                messages=(message.seq, message.seq),
                date=date if date < today else None,
            )
            memory = services.longterm.remember(draft)
            failures += [f"memory: {missing}" for missing in memory.degraded]
        except MemoryServiceError as error:
            failures.append(f"memory: log:{message.seq} asks to remember something, and that failed. {error}")
    return failures


def _may_ask(message: object) -> bool:
    """False for a message that surely is no command; what is read of the others decides."""
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return False
    text = str(message.get("content"))
    return "/remember" in text.lower() or "/记住" in text or "/記住" in text

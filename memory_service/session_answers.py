"""Owns the way from the service's values about sessions to the shapes on the wire. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from memory_service import answers
from memory_service.compaction_schemas import (
    CompactedMessages,
    CompactionReceipt,
    CompactionStep,
    Flush,
    FlushedMemory,
    LedgerEntry,
    PromptTokens,
    Recall,
    Recovery,
    SessionContext,
)
from memory_service.flush.prompts import AgentPrompt
from memory_service.messages import to_openai
from memory_service.session_schemas import (
    AppendedMessages,
    ContextWindow,
    ErasedSession,
    FoundMessage,
    FoundMessages,
    ListedSession,
    Messages,
    Pin,
    Pins,
    Session,
    Sessions,
)
from memory_service.shortterm import contexts, flushes, overflows, receipts, told
from memory_service.shortterm.prompt import PromptTokens as Sizes
from memory_service.shortterm.recalls import FoundTalk


def session(found: told.SessionSummary) -> Session:
    """A session as it stands."""
    window = found.window
    return Session(
        session_id=found.session_id,
        model=found.model,
        settings=dict(found.settings),
        messages=found.messages,
        last_seq=found.last_seq,
        tokens=found.tokens,
        pressure=found.pressure,
        context_window=ContextWindow(
            tokens=window.tokens,
            source=window.source,
            considered=dict(window.considered),
            problem=window.problem,
            message=window.message,
        ),
        preset=found.preset,
        numbers=dict(found.numbers),
        compactions=found.compactions,
        flushed_to=found.flushed_to,
        pins=found.pins,
        size_bytes=found.size_bytes,
        last_activity=found.last_activity,
        degraded=[f"log: {message}" for message in found.repairs],
    )


def sessions(found: Iterable[told.ListedSession]) -> Sessions:
    """All sessions of a workspace."""
    listed = [ListedSession.model_validate(dataclasses.asdict(each)) for each in found]
    unread = [each.session_id for each in listed if each.last_seq is None and each.size_bytes]
    return Sessions(
        sessions=listed,
        degraded=[f"log: {name} does not end with a record of this service. Read it to see why." for name in unread],
    )


def erased(made: told.ErasedSession) -> ErasedSession:
    """A session that was erased."""
    return ErasedSession(session_id=made.session_id, erased=answers.erased(made.erased), degraded=list(made.degraded))


def appended(made: told.AppendedMessages, missing: Sequence[str] = ()) -> AppendedMessages:
    """Where messages stand in the log."""
    return AppendedMessages.model_validate(
        {**dataclasses.asdict(made), "degraded": [*made.degraded, *missing]},
    )


def messages(found: told.Transcript, wire: str, *, numbered: bool = False) -> Messages:
    """Messages of a session; with the number of each if they are of its log."""
    return Messages(
        messages=_plain(found.messages),
        seqs=list(found.seqs) if numbered else None,
        system=system_of(found, wire),
        degraded=list(found.degraded),
    )


def system_of(found: told.Transcript, wire: str) -> str | list[dict[str, object]] | None:
    """The system prompt that stands beside messages; None on a wire where it stands among them."""
    if wire != "anthropic":
        return None
    return found.system if isinstance(found.system, str) else _plain(_parts(found.system))


def pin(made: told.PinnedItem) -> Pin:
    """A pin."""
    return Pin(pin_id=made.pin_id, text=made.text, seq=made.seq)


def pins(found: Iterable[told.PinnedItem]) -> Pins:
    """All pins of a session."""
    return Pins(pins=[pin(each) for each in found])


def found_messages(found: FoundTalk) -> FoundMessages:
    """What was said about something."""
    return FoundMessages(
        results=[
            FoundMessage(seq=hit.seq, role=hit.role, text=hit.text, score=round(hit.score, 6)) for hit in found.hits
        ],
        degraded=list(found.degraded),
    )


def receipt(made: receipts.CompactionReceipt) -> CompactionReceipt:
    """The record of a compaction."""
    fields = {
        field.name: getattr(made, field.name)
        for field in dataclasses.fields(made)
        if field.name not in ("steps", "ledger", "messages", "audit", "continue_note")
    }
    return CompactionReceipt(
        **fields,
        ratio=made.ratio,
        steps=[CompactionStep.model_validate(dataclasses.asdict(step)) for step in made.steps],
        ledger=[LedgerEntry.model_validate(entry) for entry in made.ledger],
        audit=dict(made.audit) if made.audit is not None else None,
        messages=to_openai(made.messages) if made.messages is not None else None,
    )


def flush(made: flushes.FlushReport) -> Flush:
    """What a flush did, or what the agent is asked for."""
    asked: AgentPrompt | None = made.prompt
    return Flush(
        mode="agent" if asked else "service",
        path=made.path,
        written=[FlushedMemory.model_validate(dataclasses.asdict(memory)) for memory in made.written],
        duplicates=made.duplicates,
        reason=made.reason,
        method=made.method,
        messages=made.messages,
        prompt=asked.prompt if asked else None,
        system_prompt=asked.system_prompt if asked else None,
        calls=made.calls,
        input_tokens=made.input_tokens,
        output_tokens=made.output_tokens,
        degraded=list(made.degraded),
    )


def prompt_tokens(sizes: Sizes) -> PromptTokens:
    """What each part of a prompt takes."""
    return PromptTokens.model_validate(dataclasses.asdict(sizes))


def context(made: contexts.SessionContext, sent: told.Transcript, wire: str, *, fusion: str) -> SessionContext:
    """A prompt, and how it came about."""
    return SessionContext(
        messages=_plain(sent.messages),
        system=system_of(sent, wire),
        tokens=prompt_tokens(made.prompt.tokens),
        receipt=answers.receipt(made.receipt, fusion=fusion) if made.receipt else None,
        recall=Recall.model_validate(dataclasses.asdict(made.recall)),
        compaction=receipt(made.compaction) if made.compaction else None,
        flush=flush(made.flush) if made.flush else None,
        command=made.command,
        degraded=[*made.degraded, *sent.degraded],
    )


def recovery(made: overflows.Recovery, sent: told.Transcript, wire: str) -> Recovery:
    """What to do after a provider has refused a prompt."""
    return Recovery.model_validate(
        {
            "action": made.action,
            "messages": _plain(sent.messages),
            "system": system_of(sent, wire),
            "reason": made.reason,
            "kind": made.kind,
            "remedy": made.remedy,
            "retry_after_seconds": made.retry_after_seconds,
            "learned_window": made.learned_window,
            "tokens": prompt_tokens(made.context.prompt.tokens) if made.context else None,
            "compaction": receipt(made.compaction) if made.compaction else None,
            "degraded": list(made.degraded),
        }
    )


def compacted(made: receipts.CompactionReceipt, sent: told.Transcript, wire: str) -> CompactedMessages:
    """Messages that fit, and how that came about."""
    return CompactedMessages(
        messages=_plain(sent.messages),
        system=system_of(sent, wire),
        receipt=receipt(made),
        degraded=list(made.degraded),
    )


def _plain(found: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    return [dict(each) for each in found]


def _parts(system: object) -> list[Mapping[str, object]]:
    return [part for part in system if isinstance(part, Mapping)] if isinstance(system, list) else []

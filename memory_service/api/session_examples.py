"""Owns the examples of sessions in the API's documentation, checked against their shapes when made."""

from __future__ import annotations

import datetime as dt
import json

from memory_service import compaction_schemas as work
from memory_service import session_schemas as schemas
from memory_service.api import examples
from memory_service.schemas import Erased

_WHEN = dt.datetime(2026, 11, 20, 14, 32, tzinfo=dt.UTC)
_ID = "support-42"
_FACT = "Deploys go out on Tuesdays after the 10:00 stand-up."
_SUMMARY = f"## Decisions\n- {_FACT} (log:4)\n\n## Open\n- Who is on call in week 48?"
_CHECKPOINT = f"[Summary of messages 1 to 24]\n{_SUMMARY}"
_MEMORY = examples.CONTEXT.block

MESSAGE = {"role": "user", "content": "When do we deploy?"}

SESSION = schemas.Session(
    session_id=_ID,
    model="gpt-4o",
    settings={"compaction": {"preset": "default"}},
    messages=31,
    last_seq=34,
    tokens=5_120,
    pressure="ok",
    context_window=schemas.ContextWindow(
        tokens=128_000,
        source="model",
        considered={"session": None, "settings": None, "model": 128_000, "preset": None, "default": 128_000},
        problem="",
        message="",
    ),
    preset="default",
    numbers={"keep_most_tokens": 20_000, "target_share": 0.5, "trigger_share": 0.9},
    compactions=1,
    flushed_to=24,
    pins=1,
    size_bytes=48_211,
    last_activity=_WHEN.isoformat(),
)
SESSIONS = schemas.Sessions(
    sessions=[schemas.ListedSession(session_id=_ID, last_activity=_WHEN, last_seq=34, size_bytes=48_211)]
)
ERASED = schemas.ErasedSession(
    session_id=_ID, erased=Erased(passages=12, checked=["files", "rows", "full text", "vectors"])
)
APPENDED = schemas.AppendedMessages(first_seq=35, last_seq=36, tokens=5_301, source="usage", pressure="ok")
MESSAGES = schemas.Messages(
    messages=[{"role": "user", "content": _CHECKPOINT}, {"role": "assistant", "content": "Go on."}, MESSAGE]
)
FOUND = schemas.FoundMessages(results=[schemas.FoundMessage(seq=4, role="user", text=_FACT, score=3.1)])
AWAITED = schemas.AwaitedCalls(call_ids=["call_8fA3"])
TRIMMED = schemas.Trimmed(backup="support-42.jsonl.20261120T143200.bak")
RESTORED = schemas.Restored(session_id=_ID)
IDLE = schemas.Idle(idle=True)
PIN = schemas.Pin(pin_id="p0123456789ab", text="Never deploy on Fridays.")
PINS = schemas.Pins(pins=[PIN])
REMOVED_PIN = schemas.RemovedPin(pin_id="p0123456789ab")
EVENT = (
    "id: 1795185120000007\nevent: compaction_end\ndata: "
    + json.dumps(
        {
            "id": 1795185120000007,
            "at": _WHEN.isoformat(),
            "kind": "compaction_end",
            "session_id": _ID,
            "fields": {"trigger": "threshold", "outcome": "summary", "tokens_before": 98_304, "tokens_after": 21_504},
        }
    )
    + "\n\n"
)

RECEIPT = work.CompactionReceipt(
    compaction_id="c25",
    applied=True,
    active=True,
    mode="apply",
    stage="summary",
    reason="98,304 tokens of 96,000",
    preset="default",
    trigger="threshold",
    tokens_before=98_304,
    tokens_after=21_504,
    ratio=0.2188,
    target_tokens=24_000,
    first_kept=25,
    covered=(1, 24),
    covered_messages=24,
    cleared=[],
    stripped=[],
    steps=[work.CompactionStep(name="cold_results", tokens_before=98_304, tokens_after=90_112, count=3)],
    summary=_SUMMARY,
    method="model",
    model="gpt-4o-mini",
    prompt_version="summary-1",
    calls=1,
    input_tokens=61_400,
    output_tokens=820,
    duration_ms=4_210,
    ledger=[work.LedgerEntry(kind="file", text="deploy/cron.yaml", seqs=[9, 11])],
    audit={"ok": True},
    notes=[],
    overrides={},
    created_at=_WHEN.isoformat(),
    window_tokens=128_000,
    window_source="model",
)
COMPACTIONS = work.Compactions(compactions=[RECEIPT])
FLUSHED = work.Flush(
    mode="service",
    path="memory/2026-11-20.md",
    written=[work.FlushedMemory(memory_id="m0123456789ab", text=_FACT, path="memory/2026-11-20.md")],
    duplicates=1,
    reason="2 facts found by rules",
    method="extractive",
    messages=(1, 24),
)
FLUSH_PROMPT = work.FlushPrompt(
    prompt="Before older messages are compacted: note what has to be remembered beyond this conversation.",
    system_prompt="This turn is for memory alone.",
)
_TOKENS = work.PromptTokens(system=12, memory=52, summary=410, tail=4_650, total=5_124, window=128_000)
_PROMPT = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": _CHECKPOINT},
    {"role": "assistant", "content": "Go on."},
    {"role": "user", "content": _MEMORY},
    MESSAGE,
]
CONTEXT = work.SessionContext(
    messages=_PROMPT,
    tokens=_TOKENS,
    receipt=examples.RECEIPT,
    recall=work.Recall(searched=True, query="When do we deploy?", reason="the message asks a question"),
    compaction=None,
    flush=None,
)
RECOVERY = work.Recovery(
    action="retry",
    messages=_PROMPT,
    reason="The prompt was too long; it was compacted (1 of 3).",
    kind="token_overflow",
    remedy="compact",
    retry_after_seconds=None,
    learned_window=8_192,
    tokens=_TOKENS,
    compaction=RECEIPT,
)
COMPACTED = work.CompactedMessages(messages=_PROMPT[1:3], receipt=RECEIPT)

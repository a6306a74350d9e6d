"""Owns the conversation of the demo: the recorded session, said again message by message in a small window.

Invariants: what an agent does is done here and nothing else: append, context; a message keeps the moment at which it
was said; each compaction is taken back once, to see that the view comes back, and made again.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memory_service.cli.demo.story import Compacted, Flushed, Moment, Replay
from memory_service.errors import NotFound
from memory_service.sample import SESSION_ID, recorded_session

if TYPE_CHECKING:
    from memory_service.service import MemoryService
    from memory_service.sessions.records import Message
    from memory_service.shortterm.contexts import SessionContext
    from memory_service.shortterm.flushes import FlushReport
    from memory_service.shortterm.memory import ShortTermMemory
    from memory_service.shortterm.receipts import CompactionReceipt

WORKSPACE = "default"
WINDOW_TOKENS = 8_192
PROMPT = "You are the assistant at the owner's desk of a small plant shop. The answer comes first, in five lines."
PIN = "Never ship plants when it is below 5 °C at the destination."
_MEMORY_TOKENS = 400
_ENTRIES = 4
# What a reader of the story wants to see of a checkpoint: so many lines of its sections, the newest of the last two.
_RULES, _DECISIONS, _GOALS = slice(0, 3), slice(-1, None), slice(-1, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A message of the recording, and when it was said."""

    at: dt.datetime
    message: Message

    @property
    def role(self) -> str:
        """Who said it."""
        return str(json.loads(self.message.text)["role"])


def recording() -> list[Line]:
    """The messages of the recorded session.

    Raises:
        NotFound: The installation lacks it, or it cannot be read.
    """
    from memory_service.sessions.log import JsonlLog
    from memory_service.sessions.records import Message

    path = recorded_session()
    lines = [
        Line(at=dt.datetime.fromisoformat(record.ts), message=Message(text=record.body.text))
        for record in JsonlLog(path).read()
        if isinstance(record.body, Message)
    ]
    if not lines:
        raise NotFound(f"The recorded session at {path} holds no message. Reinstall memory-service.")
    return lines


def replayed(service: MemoryService, folder: Path, watch: Callable[[Moment], None]) -> Replay:
    """Say the recorded conversation again.

    Args:
        service: Works on a copy of the sample.
        folder: The workspace of that copy.
        watch: Is told of every prompt.
    """
    return _Player(service, folder, recording(), watch).play()


class _Player:
    """One conversation while it is said."""

    def __init__(
        self, service: MemoryService, folder: Path, lines: Sequence[Line], watch: Callable[[Moment], None]
    ) -> None:
        from memory_service.sessions.log import JsonlLog

        self._service = service
        self._folder = folder
        self._sessions: ShortTermMemory = service.sessions(WORKSPACE)
        self._lines = lines
        self._watch = watch
        self._said_at = lines[0].at
        # `talks.append` would note the present moment, and the memories would speak of the wrong days.
        self._log = JsonlLog(folder / "sessions" / f"{SESSION_ID}.jsonl", now=lambda: self._said_at)
        self._flushes: list[Flushed] = []
        self._compactions: list[Compacted] = []
        self._contexts = self._peak = 0
        self._slowest = 0.0

    def play(self) -> Replay:
        begun = time.perf_counter()
        talks = self._sessions.talks
        talks.create(SESSION_ID, context_window=WINDOW_TOKENS)
        for at, line in enumerate(self._lines):
            if line.role == "assistant":
                self._prompt(at)
            self._said_at = line.at
            self._log.append([line.message])
            if PIN.rstrip(".").lower() in line.message.text.lower() and not talks.summary(SESSION_ID).pins:
                talks.pin(SESSION_ID, text=PIN)
        return self._told(time.perf_counter() - begun)

    def _prompt(self, said: int) -> None:
        """What an agent does before each answer of its model."""
        before = self._view()
        made = self._context()
        events = list[str]()
        if made.flush is not None and made.flush.path:
            self._flushes.append(self._flushed(made.flush, said))
            events.append(f"flush: {len(made.flush.written)} memories")
        if made.compaction is not None:
            done, made = self._undone_and_again(made.compaction, before, said)
            self._compactions.append(done)
            events.append(f"compaction: {done.tokens_before:,} -> {done.tokens_after:,}")
        tokens = made.prompt.tokens
        self._peak = max(self._peak, tokens.total)
        self._watch(
            Moment(
                message=said,
                messages=len(self._lines),
                tokens=tokens.total,
                window=tokens.window,
                event=", ".join(events),
            )
        )

    def _context(self) -> SessionContext:
        from memory_service.shortterm.contexts import ContextCall

        begun = time.perf_counter()
        made = self._sessions.context(
            SESSION_ID, ContextCall(system_prompt=PROMPT, memory_budget_tokens=_MEMORY_TOKENS)
        )
        self._contexts += 1
        self._slowest = max(self._slowest, time.perf_counter() - begun)
        return made

    def _undone_and_again(
        self, receipt: CompactionReceipt, before: bytes, said: int
    ) -> tuple[Compacted, SessionContext]:
        self._sessions.compactions.undo(SESSION_ID, receipt.compaction_id or "")
        is_equal = self._view() == before
        again = self._context()
        kept = again.compaction or receipt
        done = Compacted(
            compaction_id=kept.compaction_id or "",
            message=said,
            tokens_before=kept.tokens_before,
            tokens_after=kept.tokens_after,
            covered_messages=kept.covered_messages,
            view_bytes=len(before),
            undo_is_equal=is_equal,
            duration_ms=kept.duration_ms,
        )
        return done, again

    def _flushed(self, report: FlushReport, said: int) -> Flushed:
        from indexer import SearchFilter

        path = report.path or ""
        text = (self._folder / path).read_text("utf-8")
        first = report.written[0].text
        hits = self._service.search(WORKSPACE, first, limit=5, kept=SearchFilter(sources=("memory",))).hits
        found = next((hit for hit in hits if hit.path == path and first in hit.passage.text), None)
        return Flushed(
            message=said,
            path=path,
            written=len(report.written),
            duplicates=report.duplicates,
            entries=tuple(_entries(text, [memory.memory_id for memory in report.written[:_ENTRIES]])),
            found=f"{path}:{found.passage.start_line}" if found else "",
        )

    def _view(self) -> bytes:
        view = self._sessions.talks.model_view(SESSION_ID)
        return json.dumps(view.messages, ensure_ascii=False).encode()

    def _told(self, seconds: float) -> Replay:
        from memory_service.messages import message_tokens, read_messages

        texts = [line.message.text for line in self._lines]
        logged = [json.dumps(each, ensure_ascii=False) for each in self._sessions.talks.log_view(SESSION_ID).messages]
        view = self._sessions.talks.model_view(SESSION_ID).messages
        return Replay(
            session_id=SESSION_ID,
            first_day=str(self._lines[0].at.date()),
            last_day=str(self._lines[-1].at.date()),
            messages=len(texts),
            tokens=sum(map(message_tokens, read_messages([json.loads(text) for text in texts]))),
            window=WINDOW_TOKENS,
            contexts=self._contexts,
            peak_tokens=self._peak,
            slowest_ms=round(self._slowest * 1000),
            seconds=round(seconds, 2),
            flushes=tuple(self._flushes),
            compactions=tuple(self._compactions),
            logged_messages=len(logged),
            log_is_equal=logged == [json.dumps(json.loads(text), ensure_ascii=False) for text in texts],
            kept=tuple(_kept(str(view[0].get("content", "")))),
        )


def _entries(text: str, memory_ids: Sequence[str]) -> Iterator[str]:
    """Memories as they stand in their file: the comment of each, and its lines."""
    lines = text.splitlines()
    for memory_id in memory_ids:
        at = next((at for at, line in enumerate(lines) if f"memory id={memory_id} " in line), None)
        if at is not None:
            yield "\n".join(lines[at : at + 2])


def _kept(checkpoint: str) -> Iterator[str]:
    """Lines of a checkpoint that say what it is good for."""
    summary, _, ledger = checkpoint.partition("<ledger>")
    yield from (f"rule      {line}" for line in _section(ledger, "## Rules")[_RULES])
    yield from (f"decision  {line}" for line in _section(ledger, "## Decisions")[_DECISIONS])
    yield from (f"goal      {line}" for line in _section(summary, "## Goal")[_GOALS])


def _section(text: str, heading: str) -> list[str]:
    """The list items below a heading."""
    below = text.partition(f"{heading}\n")[2].partition("\n#")[0]
    return [line[2:] for line in below.splitlines() if line.startswith("- ")]

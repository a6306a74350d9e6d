"""Lines that show sessions, compactions and flushes in a terminal. Pure: nothing is printed here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from memory_service.cli.columns import columns, fit_to_cells
from memory_service.cli.output import bar, indent_lines, one_line, printable, size, table

if TYPE_CHECKING:
    from memory_service.config import Settings
    from memory_service.schemas.compaction import CompactionReceipt, Flush, FlushedMemory, PromptMeasure, SessionContext
    from memory_service.schemas.messages import FoundMessage, Pin
    from memory_service.schemas.sessions import ListedSession, Session
    from memory_service.service import MemoryService, SessionDetails


_PRESSURES = {"ok": "green", "soft": "yellow", "hard": "red"}
_NAMED = 12
_TITLE_CELLS = 32
# Who wrote a summary that no model wrote, where it is not the rules.
_WRITERS = {"engine": "the context engine", "hook": "a hook"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session in a list; None for what an unreadable log does not tell, with the reason in `problem`."""

    session_id: str
    last_activity: dt.datetime
    messages: int | None
    last_seq: int | None
    tokens: int | None
    pressure: str | None
    window_tokens: int | None
    model: str | None
    size_bytes: int
    problem: str = ""
    title: str = ""


def row_of(service: MemoryService, workspace: str, listed: ListedSession) -> SessionRow:
    """A session with the size of its log."""
    from memory_service.errors import MemoryServiceError

    session_status, problem = None, ""
    try:
        session_status = service.session_status(workspace, listed.session_id)
    except MemoryServiceError as error:
        problem = str(error)
    return SessionRow(
        session_id=listed.session_id,
        last_activity=listed.last_activity,
        messages=session_status.messages if session_status else None,
        last_seq=session_status.last_seq if session_status else listed.last_seq,
        tokens=session_status.tokens if session_status else None,
        pressure=session_status.pressure if session_status else None,
        window_tokens=session_status.context_window.tokens if session_status else None,
        model=session_status.model if session_status else None,
        size_bytes=listed.size_bytes,
        problem=problem,
        title=session_status.title if session_status else "",
    )


def session_table(rows: Sequence[SessionRow], settings: Settings) -> Iterator[str]:
    """One line for each session."""
    is_titled = any(row.title for row in rows)
    head = ("SESSION", "LAST ACTIVITY", "MESSAGES", "TOKENS", "PRESSURE", "SIZE", *(["TITLE"] if is_titled else []))
    cells = [
        (
            row.session_id,
            _local_time(row.last_activity, settings),
            _number(row.messages),
            _number(row.tokens),
            row.pressure or "?",
            size(row.size_bytes),
            *([one_line(row.title, _TITLE_CELLS)] if is_titled else []),
        )
        for row in rows
    ]
    for at, line in enumerate(table(head, cells, right=(2, 3, 5))):
        pressure = rows[at - 1].pressure if at else None
        yield click.style(line, dim=not at, fg=_PRESSURES[pressure] if pressure in ("soft", "hard") else None)


def _local_time(moment: dt.datetime, settings: Settings) -> str:
    """A moment in the configured timezone."""
    from zoneinfo import ZoneInfo

    zone = None if settings.timezone == "local" else ZoneInfo(settings.timezone)
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"


def session_head(session: Session, details: SessionDetails, settings: Settings) -> Iterator[str]:
    """Lines for the status of a session."""
    flushed_text = f"up to message {session.flushed_to} of {details.last_message}" if session.flushed_to else "none yet"
    newest = f", newest {details.newest_compaction}" if details.newest_compaction else ""
    repairs = "; ".join(line.removeprefix("log: ") for line in session.degraded)
    rows = [
        ("session", f"{click.style(session.session_id, bold=True)}  {_activity(session, settings)}"),
        *([("title", printable(session.title))] if session.title else []),
        ("model", f"{session.model or 'not known'}, preset {session.preset}"),
        ("window", f"{session.context_window.tokens:,} tokens, from: {session.context_window.source}"),
        *_use(session, details),
        ("messages", _messages(session, details)),
        ("compactions", f"{session.compactions}{newest}{f', {details.undone} undone' if details.undone else ''}"),
        ("flushes", f"{details.flushes}, {flushed_text}" if details.flushes else flushed_text),
        ("pins", str(session.pins)),
        ("repairs", repairs or "none"),
    ]
    yield from columns(rows)


def _activity(session: Session, settings: Settings) -> str:
    written_size = size(session.size_bytes)
    if not session.last_activity:
        return written_size
    return f"{_local_time(dt.datetime.fromisoformat(session.last_activity), settings)}, {written_size}"


def _use(session: Session, details: SessionDetails) -> Iterator[tuple[str, str]]:
    pressure, window = click.style(session.pressure, fg=_PRESSURES[session.pressure]), session.context_window
    if details.marks is None:
        yield "view", f"{session.tokens:,} tokens, {pressure}: {window.message}"
        return
    if window.problem == "warn":
        yield "", click.style(window.message, fg="yellow")
    target, soft, hard = details.marks
    shown_bar = bar(session.tokens, details.marks, details.usable_tokens)
    yield "view", f"{shown_bar} {session.tokens:,} tokens, {pressure}"
    yield (
        "",
        f"flush from {soft:,}, compaction from {hard:,} down to {target:,}, usable {details.usable_tokens:,}",
    )


def _messages(session: Session, details: SessionDetails) -> str:
    lost_text = f", {details.unreadable} cannot be read" if details.unreadable else ""
    if not session.messages:
        return f"0{lost_text}"
    shown_text = f"{details.in_view:,} of them in view, from number {details.first_shown} on"
    return f"{session.messages:,}, {shown_text}{lost_text}"


def receipt_lines(receipt: CompactionReceipt, *, summary: bool = False) -> Iterator[str]:
    """Lines for a compaction, or for the plan of one.

    Args:
        receipt: Its receipt.
        summary: Show the text of the summary.
    """
    if receipt.stage == "none" and not receipt.applied:
        yield f"nothing to do: {receipt.reason}"
        return
    if receipt.steps:
        rows = [
            (step.name, *_tokens(step.tokens_before, step.tokens_after), _number(step.count)) for step in receipt.steps
        ]
        yield from (f"  {line}" for line in table(("STEP", "BEFORE", "AFTER", "COUNT"), rows, right=(1, 2, 3)))
    yield from columns(_covering(receipt))
    if summary and receipt.summary:
        yield from (f"  | {line}".rstrip() for line in printable(receipt.summary).split("\n"))
    yield _outcome(receipt)


def _covering(receipt: CompactionReceipt) -> Iterator[tuple[str, str]]:
    yield "stage", f"{receipt.stage} ({receipt.preset}, {receipt.trigger}): {receipt.reason}"
    if receipt.covered:
        yield "covers", f"messages {_range(receipt.covered)}, {receipt.covered_messages} of them new to the summary"
    yield "keeps", f"from message {receipt.first_kept} on" if receipt.first_kept else "every message in its place"
    if receipt.cleared:
        yield "clears", f"results {_list_seqs(receipt.cleared)}"
    if receipt.stripped:
        yield "strips", f"media of {_list_seqs(receipt.stripped)}"
    if receipt.method != "none":
        calls = f", {receipt.calls} calls: {receipt.input_tokens:,} tokens in, {receipt.output_tokens:,} out"
        writer = receipt.model or _WRITERS.get(receipt.method, "rules")
        yield "summary", f"by {writer} ({receipt.method}){calls if receipt.calls else ''}"
    if receipt.ledger:
        yield "ledger", f"{len(receipt.ledger)} exact things added"
    for note in receipt.notes:
        yield "note", note


def _outcome(receipt: CompactionReceipt) -> str:
    before, after = _tokens(receipt.tokens_before, receipt.tokens_after)
    sizes = f"{before} -> {after} tokens ({receipt.ratio:.0%})"
    if receipt.applied:
        name, compaction_id = receipt.compaction_id, receipt.compaction_id and not receipt.active
        return f"compacted {name or 'by the context engine'}: {sizes}{', undone' if compaction_id else ''}"
    target = f"; target {receipt.target_tokens:,}" if receipt.target_tokens else ""
    return f"{'planned' if receipt.mode == 'plan' else 'would be'}: {sizes}{target}. Nothing was changed."


def compaction_table(receipts: Sequence[CompactionReceipt], settings: Settings) -> Iterator[str]:
    """One line for each compaction."""
    head = ("ID", "WHEN", "STAGE", "TRIGGER", "PRESET", "SUMMARY", "BEFORE", "AFTER", "KEEPS FROM", "STATE")
    rows = [
        (
            receipt.compaction_id or "",
            _local_time(dt.datetime.fromisoformat(receipt.created_at), settings) if receipt.created_at else "",
            receipt.stage,
            receipt.trigger,
            receipt.preset,
            receipt.method,
            *_tokens(receipt.tokens_before, receipt.tokens_after),
            str(receipt.first_kept or ""),
            "active" if receipt.active else "undone",
        )
        for receipt in receipts
    ]
    yield from table(head, rows, right=(6, 7, 8))


def prompt_table(prompts: Sequence[PromptMeasure], settings: Settings) -> Iterator[str]:
    """One line for each prompt: what each part takes."""
    parts = ("system", "tools", "pins", "summary", "memory", "tail", "free")
    rows = [
        (
            _local_time(prompt.created_at, settings),
            *(f"{getattr(prompt, part):,}" for part in parts),
            f"{prompt.cached_prefix_tokens:,}",
            prompt.receipt_id or "",
        )
        for prompt in prompts
    ]
    head = ("WHEN", *(part.upper() for part in parts), "CACHED", "RECEIPT")
    yield from table(head, rows, right=tuple(range(1, 9)))


def citation_of(memory: FlushedMemory) -> str:
    """Path and lines of a flushed memory."""
    from memory_service.home import citation

    return citation(memory.path, memory.start_line, memory.end_line)


def flush_lines(report: Flush, cells: int) -> Iterator[str]:
    """Lines for a flush: memories and their places.

    Args:
        report: The flush.
        cells: Width of the terminal.
    """
    for memory in report.written:
        where = click.style(citation_of(memory), fg="cyan")
        yield f"{memory.memory_id}  {where}  {one_line(memory.text, max(cells - 50, 20))}"
    known_text = f", {report.duplicates} known before" if report.duplicates else ""
    searched_text = f" in messages {_range(report.messages)}" if report.messages else ""
    if not report.written:
        yield f"nothing written{searched_text}{known_text}: {report.reason}"
        return
    yield f"{len(report.written)} written{known_text}{searched_text}: {report.reason} ({report.method})"


def context_line(made: SessionContext) -> str:
    """Size of a prompt, and how it was made."""
    sizes = made.tokens
    texts = [
        f"{sizes.total:,} of {sizes.window:,} tokens: system {sizes.system:,}, memory {sizes.memory:,}, "
        f"summary {sizes.summary:,}, tail {sizes.tail:,}",
        *([f"the first {made.cached_prefix_tokens:,} as in the last prompt"] if made.cached_prefix_tokens else ()),
        f"receipt {made.receipt.receipt_id}" if made.receipt else f"no recall: {made.recall.reason}",
    ]
    if made.flush:
        texts.append(f"flushed first: {len(made.flush.written)} memories")
    if made.compaction:
        texts.append(f"compacted first: {made.compaction.compaction_id}")
    return "; ".join(texts)


def found_lines(hits: Sequence[FoundMessage], first_shown: int) -> Iterator[str]:
    """Lines for the hits of a search in a session.

    Args:
        hits: The best first.
        first_shown: The first message that is still in view.
    """
    for number, hit in enumerate(hits, 1):
        where = "" if hit.seq >= first_shown else "  compacted"
        yield f"{number}. {click.style(f'log:{hit.seq}', fg='cyan')}  {hit.role}{where}"
        yield indent_lines(printable(hit.text))


def pin_lines(pins: Sequence[Pin], cells: int) -> Iterator[str]:
    """One line for each pin."""
    for pin in pins:
        of = f"(log:{pin.seq}) " if pin.seq is not None else ""
        yield fit_to_cells(f"{pin.pin_id}  {of}{one_line(pin.text, cells)}", cells)


def _tokens(before: int, after: int) -> tuple[str, str]:
    return f"{before:,}", f"{after:,}"


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _range(ends: tuple[int, int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}-{ends[1]}"


def _list_seqs(seqs: Sequence[int]) -> str:
    rest = len(seqs) - _NAMED
    return ", ".join(map(str, seqs[:_NAMED])) + (f" and {rest} more" if rest > 0 else "")

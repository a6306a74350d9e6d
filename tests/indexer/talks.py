"""Session logs for tests, written with the service's own code: the format is its, and tests notice when it changes."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from memory_service.sessions.codec import draft_record, encode
from memory_service.sessions.records import Body, MessageRecord, SessionHeader
from memory_service.storage.files.jsonl_log import JsonlLog

NOON = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)


def message(content: object, role: str = "user", **fields: object) -> MessageRecord:
    return MessageRecord(text=json.dumps({"role": role, "content": content, **fields}, ensure_ascii=False))


def turns(*contents: object) -> list[MessageRecord]:
    """Messages of user and assistant in turn."""
    return [message(content, ("user", "assistant")[at % 2]) for at, content in enumerate(contents)]


def batches(*parts: Sequence[Body], at: dt.datetime = NOON, step: dt.timedelta = dt.timedelta(0)) -> list[bytes]:
    """The lines of a log, a header first; each batch is `step` later than the one before."""
    return list(_lines(([SessionHeader(session_id="talk")], *parts), at, step))


def _lines(parts: Sequence[Sequence[Body]], at: dt.datetime, step: dt.timedelta) -> Iterator[bytes]:
    first = 1
    for number, bodies in enumerate(parts):
        ts = (at + max(0, number - 1) * step).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
        for seq, body in enumerate(bodies, first):
            yield encode(draft_record(body), seq=seq, ts=ts, batch=len(bodies) if seq == first else 1)
        first += len(bodies)


def log_of(*bodies: Body, at: dt.datetime = NOON) -> bytes:
    """A log with one batch for each record."""
    return b"".join(batches(*([body] for body in bodies), at=at))


def write_log(root: Path, *contents: object, session_id: str = "talk", at: dt.datetime = NOON) -> JsonlLog:
    """Appends messages to a real log in a workspace, as one batch."""
    folder = root / "sessions"
    folder.mkdir(exist_ok=True)
    log = JsonlLog(folder / f"{session_id}.jsonl", now=lambda: at)
    log.append(turns(*contents))
    return log

"""Steps that tests of session logs share, whatever engine keeps the logs."""

from __future__ import annotations

import json

from memory_service.runtime.log_changes import begin_log
from memory_service.runtime.session import OpenSession
from memory_service.sessions.records import Body, MessageRecord, SessionHeader, compact_json
from memory_service.storage.logs import LogStore, SessionLog


def begin(logs: LogStore, session_id: str) -> SessionLog:
    """Begins the log of a session."""
    return begin_log(logs, SessionHeader(session_id=session_id))


def trim(log: SessionLog, keep_last: int) -> str:
    """Trims a log as a session does."""
    return OpenSession(log).trim(keep_last)


def said(text: str) -> MessageRecord:
    """A message of the user."""
    return MessageRecord(text=compact_json({"role": "user", "content": text}))


def bodies(log: SessionLog) -> list[Body]:
    """What all records say."""
    return [record.body for record in log.read()]


def seqs(log: SessionLog) -> list[int]:
    """The numbers of all records."""
    return [record.seq for record in log.read()]


def texts(log: SessionLog) -> list[str]:
    """The contents of all messages."""
    return [json.loads(body.text)["content"] for body in bodies(log) if isinstance(body, MessageRecord)]


def header(log: SessionLog) -> SessionHeader | None:
    """The last header, which counts."""
    return next((body for body in reversed(bodies(log)) if isinstance(body, SessionHeader)), None)


def kinds(log: SessionLog) -> list[str]:
    """The kinds of the faults that were found."""
    return [repair.kind for repair in log.status().repairs]

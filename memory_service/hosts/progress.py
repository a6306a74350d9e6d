"""Progress of the conversations of hosts: how far each transcript was read, and to which memory it belongs.

One small file for each conversation, `<home>/.hosts/<session>.json`. Invariants: who changes it holds its lock, in this
process and in all others; it is replaced in one step. Faults of hooks are lines of `<home>/hooks.log`, without a word
of what was said.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memory_service.disk import WriteLock, current_signature, replace_durably, storage_errors
from memory_service.hosts.transcripts import TranscriptPlace

LOG_NAME = "hooks.log"
_FOLDER = ".hosts"
_MOST_LOG_BYTES = 1024 * 1024
_MOST_LINE_CHARS = 500


@dataclass(slots=True, kw_only=True)
class Progress:
    """State of a conversation.

    Attributes:
        workspace: Whose memory it has, from its first event on, wherever the agent goes.
        transcript: Path that was read from.
        place: How far.
        until: End of the stretch that is being stored; 0 for none. After a crash that same stretch is stored again,
            by the same key, so nothing stands there twice.
        again: True while a file is read whose beginning may have been stored before, as that of one that was replaced.
        rules: Digest of each file of rules, and its pins; none before the session has a message.
        told: True if the agent was given its memory since the conversation began or was compacted.
        message_ids: Ids of messages that events brought.
        asked: Ids of the last calls of tools that asked the memory: their results are not kept.
        forgotten: Number of the last message that the host has compacted: none up to it is in its view.
    """

    workspace: str = ""
    transcript: str = ""
    place: TranscriptPlace = field(default_factory=TranscriptPlace)
    until: int = 0
    again: bool = False
    rules: dict[str, list[str]] = field(default_factory=dict)
    told: bool = False
    message_ids: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    forgotten: int = 0


class ProgressFile:
    """The progress of one conversation on disk.

    Args:
        home: The home of the service.
        session_id: Of the conversation.
    """

    def __init__(self, home: Path, session_id: str) -> None:
        self._path = home / _FOLDER / f"{session_id}.json"
        self._lock = WriteLock(self._path.with_suffix(".lock"))

    @contextmanager
    def held(self) -> Iterator[Progress]:
        """The progress, for one at a time; what was changed in it is kept, even when the work fails.

        Raises:
            StorageFailed: Another hook of the conversation took too long, or the disk cannot be used.
        """
        with self._lock.held():
            progress = self._read()
            before = copy.deepcopy(progress)
            try:
                yield progress
            finally:
                if progress != before:
                    self.keep(progress)

    def keep(self, progress: Progress) -> None:
        """Write it down now; the lock is held."""
        raw = json.dumps(dataclasses.asdict(progress), ensure_ascii=False).encode()
        with storage_errors(self._path.name):
            replace_durably(self._path, raw, expected=current_signature(self._path))

    def _read(self) -> Progress:
        try:
            known = json.loads(self._path.read_bytes())
            place = TranscriptPlace(**known.pop("place"))
            return Progress(place=place, **known)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            # None yet, or of another version: the worst that comes of it is a stretch that is read again.
            return Progress()


def note_faults(home: Path, host: str, event: str, faults: tuple[str, ...]) -> None:
    """Append a line for each fault to the log of the home; a log that cannot be written loses them."""
    log = home / LOG_NAME
    moment = dt.datetime.now().astimezone().isoformat(timespec="seconds")
    lines = "".join(f"{moment} {host} {event or '-'}: {_one_line(fault)}\n" for fault in faults)
    with suppress(OSError):
        home.mkdir(parents=True, exist_ok=True)
        if log.exists() and log.stat().st_size > _MOST_LOG_BYTES:
            os.replace(log, log.with_suffix(".log.1"))
        with log.open("a", encoding="utf-8", errors="backslashreplace") as opened:
            opened.write(lines)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_LINE_CHARS else f"{line[: _MOST_LINE_CHARS - 1]}…"

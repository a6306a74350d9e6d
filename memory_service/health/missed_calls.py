"""Calls of the gateway that memory could not work on: one line of `<home>/gateway.log` for each conversation.

Any process reads them: `status` and `doctor` tell of those of the last day. A reason names parts and fields, and has no
word of what was said.

Invariants: a conversation and a part of memory have one line in a process; a log that cannot be written loses lines and
disturbs nobody; of a long log the older half is set aside.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from indexer.common import LRU
from memory_service.home import make_home

GATEWAY_LOG: Final = "gateway.log"
RECENT_DAYS: Final = 1
_MOST_LOG_BYTES = 256 * 1024
_MOST_LINE_CHARS = 500
_KNOWN = 4_096
# What every prompt of a workspace lacks is told by other checks.
_OF_CALLS = ("session:", "answer:", "compaction:")


@dataclass(frozen=True, slots=True)
class MissedCall:
    """A line of the log.

    Attributes:
        at: When it was written, in the zone of the machine.
        workspace: Whose memory.
        conversation: The session; else a digest of how the call begins.
        reason: "part: reason".
    """

    at: dt.datetime
    workspace: str
    conversation: str
    reason: str


class MissedCalls:
    """The log of a home.

    Args:
        home: The folder.
    """

    def __init__(self, home: Path) -> None:
        self._log = home / GATEWAY_LOG
        self._home = home
        self._cache: LRU[tuple[str, str, str], bool] = LRU(_KNOWN)

    def note(self, workspace: str, conversation: str, reasons: Iterable[str]) -> list[str]:
        """Write down what is new of a conversation; gives that."""
        fresh = list[str]()
        for reason in reasons:
            key = (workspace, conversation, reason.partition(":")[0])
            if reason.startswith(_OF_CALLS) and not self._cache.get(key):
                self._cache[key] = True
                fresh.append(reason)
        if fresh:
            moment = dt.datetime.now().astimezone().isoformat(timespec="seconds")
            self._append("".join(f"{moment} {workspace} {conversation} {_one_line(reason)}\n" for reason in fresh))
        return fresh

    def recent(self, workspace: str, now: dt.datetime) -> list[MissedCall]:
        """The lines of a workspace of the last day, oldest first."""
        try:
            text = self._log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        calls = (_read(line) for line in text.splitlines())
        since = now - dt.timedelta(days=RECENT_DAYS)
        return [call for call in calls if call and call.workspace == workspace and call.at >= since]

    def _append(self, lines: str) -> None:
        with suppress(OSError):
            make_home(self._home)
            if self._log.exists() and self._log.stat().st_size > _MOST_LOG_BYTES:
                os.replace(self._log, self._log.with_suffix(".log.1"))
            with open(self._log, "ab", opener=_open_own) as log:
                log.write(lines.encode("utf-8", "backslashreplace"))


def _open_own(path: str, flags: int) -> int:
    """Opens a file that only its owner can read; a link is not followed."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def missed_calls_note(calls: Iterable[MissedCall]) -> str:
    """One sentence for calls that were missed; empty for none."""
    calls = list(calls)
    if not calls:
        return ""
    conversations = {call.conversation for call in calls}
    count = f"{len(conversations)} conversation{'s' if len(conversations) > 1 else ''}"
    return f"in the last day {count} went on in part without memory; the last, {calls[-1].at:%H:%M}: {calls[-1].reason}"


def _read(line: str) -> MissedCall | None:
    try:
        moment, workspace, conversation, reason = line.split(" ", 3)
        return MissedCall(dt.datetime.fromisoformat(moment), workspace, conversation, reason)
    except ValueError:
        return None


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_LINE_CHARS else f"{line[: _MOST_LINE_CHARS - 1]}…"

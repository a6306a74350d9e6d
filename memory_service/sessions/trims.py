"""Owns what a trim leaves of a log, and what is needed to take it back: lines in, lines out. Pure.

Invariants: a line that stays is the same, byte for byte, and keeps its number; taking a trim back loses nothing
that was appended since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import dropwhile

from memory_service.sessions.lines import decode, stamp
from memory_service.sessions.records import Trimmed

# All other kinds are what a view is built on: without its pins and its compaction it would be another one. What was
# flushed is not flushed again, and what was sent with an idempotency key is not taken twice.
_GOES = frozenset({"message", "usage"})
_ASIDE = re.compile(r"\.(?:bak|torn)(?:-[1-9][0-9]{0,8})?")


def kept_lines(
    read: Callable[[], Iterable[bytes]], keep_last: int, also: Collection[int] = ()
) -> tuple[list[bytes], int]:
    """The lines that stay when the last `keep_last` do, and how many go.

    Args:
        read: Gives the whole lines of the log, from the first on each time.
        keep_last: How many stay whatever they are.
        also: Messages that stay, however old.
    """
    count = sum(1 for _ in read())
    border = max(0, count - keep_last)
    kept = [line for at, line in enumerate(read()) if at >= border or _stays(line, also)]
    return kept, count - len(kept)


def _stays(line: bytes, also: Collection[int]) -> bool:
    place = stamp(line)
    return place is not None and (place.kind not in _GOES or place.seq in also)


def last_seq(lines: Iterable[bytes]) -> int:
    """The highest number of some lines; 0 if none has one."""
    return max((place.seq for line in lines if (place := stamp(line))), default=0)


def newer(lines: Iterable[bytes], seq: int) -> Iterator[bytes]:
    """The lines from the first one on that was written after the record `seq`."""
    return dropwhile(lambda line: (place := stamp(line)) is None or place.seq <= seq, lines)


def backups(lines: Iterable[bytes], name: str) -> list[str]:
    """The files that the trims of the log `name` left, newest first; some may be gone."""
    found = list[str]()
    for line in lines:
        place = stamp(line)
        if place is None or place.kind != "trimmed":
            continue
        with suppress(ValueError):  # of a line that was damaged nobody knows the file
            body = decode(line).record.body
            if isinstance(body, Trimmed) and is_aside(body.backup, name):
                found.append(body.backup)
    return found[::-1]


def is_aside(file: str, name: str) -> bool:
    """Whether a file was put beside the log `name` by a trim or a repair."""
    return file.startswith(name) and _ASIDE.fullmatch(file, len(name)) is not None

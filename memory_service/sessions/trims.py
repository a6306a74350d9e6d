"""Owns what a trim leaves of a log, and how it is taken back: bytes in, bytes out. Pure.

Invariants: a line that stays is the same, byte for byte, and keeps its number; taking a trim back loses nothing
that was appended since.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_service.sessions.lines import decode, stamp
from memory_service.sessions.records import Trimmed

# All other kinds are what a view is built on: without its pins and its compaction it would be another one.
_GOES = frozenset({"message", "usage"})
_ASIDE = re.compile(r"\.(?:bak|torn)(?:-[1-9][0-9]{0,8})?")


def kept_lines(raw: bytes, keep_last: int) -> tuple[list[bytes], int]:
    """The lines that stay when the last `keep_last` do, and how many go."""
    lines = _lines(raw)
    border = max(0, len(lines) - keep_last)
    kept = [line for line in lines[:border] if (place := stamp(line)) is not None and place.kind not in _GOES]
    kept += lines[border:]
    return kept, len(lines) - len(kept)


def restored(backup: bytes, raw: bytes) -> bytes:
    """The log as it was before a trim, and what was appended since."""
    last = max((place.seq for line in _lines(backup) if (place := stamp(line))), default=0)
    lines = _lines(raw)
    newer = next((at for at, line in enumerate(lines) if (place := stamp(line)) and place.seq > last), len(lines))
    return backup + b"".join(lines[newer:])


def backups(raw: bytes, name: str) -> Iterator[str]:
    """The files that the trims of the log `name` left, newest first; some may be gone."""
    for line in reversed(_lines(raw)):
        place = stamp(line)
        if place is not None and place.kind == "trimmed":
            body = decode(line).record.body
            if isinstance(body, Trimmed) and is_aside(body.backup, name):
                yield body.backup


def is_aside(file: str, name: str) -> bool:
    """Whether a file was put beside the log `name` by a trim or a repair."""
    return file.startswith(name) and _ASIDE.fullmatch(file, len(name)) is not None


def _lines(raw: bytes) -> list[bytes]:
    """The whole lines, with their ends; nothing but LF ends one."""
    return [line + b"\n" for line in raw.split(b"\n")[:-1]]

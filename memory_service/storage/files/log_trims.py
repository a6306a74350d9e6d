"""Trims of a log on files: the lines that they leave, and the files beside the log that have those which they took.

Invariants: a trim is lines in, lines out: a line that stays is the same, byte for byte, and keeps its number; taking a
trim back loses nothing that was appended since.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path

from indexer.common import lazy_regex
from memory_service.errors import InvalidRequest
from memory_service.sessions.codec import decode, draft_record, encode, stamp
from memory_service.sessions.records import TrimRecord
from memory_service.storage.files import disk

_ASIDE = lazy_regex(r"\.(?:bak|torn)(?:-[1-9][0-9]{0,8})?")


def trim_lines(lines: Iterable[bytes], keep: Collection[int]) -> tuple[list[bytes], int]:
    """The lines of some records, and how many other lines there are."""
    kept_chunks, gone_count = list[bytes](), 0
    for line in lines:
        if (place := stamp(line)) and place.seq in keep:
            kept_chunks.append(line)
        else:
            gone_count += 1
    return kept_chunks, gone_count


def outline(lines: Iterable[bytes]) -> dict[int, str]:
    """The kinds of the records of some lines, by their numbers."""
    return {place.seq: place.kind for line in lines if (place := stamp(line))}


def lines_after(lines: Iterable[bytes], seq: int) -> Iterator[bytes]:
    """The lines from the first one on that was written after the record `seq`."""
    return dropwhile(lambda line: (place := stamp(line)) is None or place.seq <= seq, lines)


def backups(lines: Iterable[bytes], name: str) -> list[tuple[int, str]]:
    """The files that the trims of the log `name` left, and the numbers of these, newest first; some may be gone."""
    texts = list[tuple[int, str]]()
    for line in lines:
        place = stamp(line)
        if place is None or place.kind != "trimmed":
            continue
        with suppress(ValueError):  # of a line that was damaged nobody knows the file
            body = decode(line).record.body
            if isinstance(body, TrimRecord) and is_put_aside(body.backup, name):
                texts.append((place.seq, body.backup))
    return texts[::-1]


def lines_put_aside(lines: Iterable[bytes], path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """The lines that each trim took from a log, if it can be taken back, and its number; the newest first.

    Args:
        lines: Those of the log.
        path: The log.
    """
    state, names = list(lines), set[str]()
    while True:
        there = (
            (seq, name)
            for seq, name in backups(state, path.name)
            if name not in names and path.with_name(name).is_file()
        )
        seq, name = next(there, (0, ""))
        if not name:
            return
        names.add(name)
        with disk.open_no_follow(path.with_name(name)) as descriptor:
            earlier = list(disk.whole_lines(descriptor))
        here = outline(state)
        yield seq, [line for line in earlier if (place := stamp(line)) and place.seq not in here]
        state = [*earlier, *lines_after(state, max(outline(earlier), default=0))]


def lines_with_backups(
    own: Mapping[int, bytes], trims: Iterable[tuple[int, Mapping[int, bytes]]], name: str
) -> tuple[list[bytes], list[tuple[str, list[bytes]]]]:
    """The lines of a log, and the files beside it by which its trims can be taken back: the reverse of the above.

    Args:
        own: The lines of the log, by number.
        trims: The number of each trim and the lines that it took, the newest first.
        name: The log.

    Raises:
        InvalidRequest: The record of a trim is missing.
    """
    every, states, seqs = dict(own), list[tuple[int, set[int]]](), set(own)
    for trim_seq, lines in trims:
        earlier = {seq for seq in seqs if seq < trim_seq}.union(lines)
        every = {**lines, **every}
        states.append((trim_seq, earlier))
        seqs = earlier.union(seq for seq in seqs if seq >= trim_seq)
    files = list[str]()
    for trim_seq, _ in states:
        record = decode(every[trim_seq]).record if trim_seq in every else None
        if record is None or not isinstance(record.body, TrimRecord):
            raise InvalidRequest(f"Record {trim_seq} is none of a trim. Give each trim its own record.")
        file = record.body.backup
        if not is_put_aside(file, name) or file in files:
            names = (f"{name}.bak-{number}" for number in itertools.count(2))
            file = next(free for free in names if free not in files)
        files.append(file)
        every[trim_seq] = encode(draft_record(replace(record.body, backup=file)), seq=trim_seq, ts=record.ts)
    sides = [(file, [every[seq] for seq in sorted(earlier)]) for file, (_, earlier) in zip(files, states, strict=True)]
    return [every[seq] for seq in sorted(own)], sides


def is_put_aside(file: str, name: str) -> bool:
    """True if a file was put beside the log `name` by a trim or a repair."""
    return file.startswith(name) and _ASIDE.fullmatch(file, len(name)) is not None

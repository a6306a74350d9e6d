"""What was just said in sessions, ranked by its words (rank-bm25) as long as the index does not have it.

Invariants: of a log only the end is read, and of many logs only the newest, so that no search waits for it; what the
index has already, or a filter leaves out, is not found.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from indexer import Hit, Passage, SearchFilter
from indexer.documents.openclaw import is_openclaw
from indexer.documents.transcripts import split_transcript
from indexer.stores.base import KnownPassage
from memory_service.files import opened
from memory_service.messages import numbered
from memory_service.sessions.lexical import LiveSearch

# A megabyte is ranked within .2 s.
_LOGS = 16
_END_BYTES = 64 * 1024


def newest_logs(root: Path, paths: Collection[str], kept: SearchFilter) -> list[str]:
    """Of some logs those that are looked at: the ones last written that a filter leaves, the newest last."""
    changed = dict[str, float]()
    for path in paths:
        if path.startswith(kept.path_prefix):
            with suppress(OSError):
                changed[path] = (root / path).stat().st_mtime
    return sorted(changed, key=lambda path: changed[path])[-_LOGS:]


def just_said(
    root: Path, logs: Sequence[str], known: Collection[KnownPassage], query: str, *, limit: int, kept: SearchFilter
) -> list[Hit]:
    """The messages at the end of some logs that have words of a query and are not in the index, best first.

    Args:
        root: The folder of the workspace.
        logs: Their paths in it.
        known: What the index has of them.
        query: What to look for.
        limit: The most hits.
        kept: Which messages may be found.
    """
    told = {(each.passage.start_line, each.passage.text) for each in known}
    behind = 1 + max((each.ordinal for each in known), default=-1)
    waiting = [
        (path, behind + place, passage)
        for path in logs
        for place, passage in enumerate(_passages(root / path))
        if (passage.start_line, passage.text) not in told and _is_kept(path, passage, kept)
    ]
    messages = [numbered({"role": "user", "content": each.text}, at) for at, (*_, each) in enumerate(waiting)]
    found = LiveSearch.of(messages, upto=len(messages)).search(query, limit=limit)
    return [_hit(*waiting[live.seq], snippet=live.text, score=live.score) for live in found]


def beside(hits: Sequence[Hit], said: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
    """The hits of the index with what was just said between them, rank by rank.

    Scores of two rankings cannot be compared: what was just said gets the score of the hit of its own rank, and stands
    before it as the newer of two equals.
    """
    there = {(hit.path, hit.passage.start_line) for hit in hits}
    new = [hit for hit in said if (hit.path, hit.passage.start_line) not in there]
    merged, score = list[Hit](), None
    for old, fresh in zip_longest(hits, new):
        score = old.score if old else score
        if fresh:
            worth = fresh.score if score is None else score
            merged.append(replace(fresh, score=worth, signals={"just_said": worth}))
        if old:
            merged.append(old)
    return tuple(merged[:limit])


def _hit(path: str, ordinal: int, passage: Passage, *, snippet: str, score: float) -> Hit:
    return Hit(
        path=path,
        source="sessions",
        passage=passage,
        ordinal=ordinal,
        snippet=snippet,
        score=score,
        text_score=score,
        vector_score=None,
    )


def _passages(log: Path) -> Iterator[Passage]:
    """Those at the end of a log, as the index will hold them."""
    with suppress(OSError), opened(log) as descriptor:
        start = max(0, os.fstat(descriptor).st_size - _END_BYTES)
        os.lseek(descriptor, start, os.SEEK_SET)
        raw = os.read(descriptor, _END_BYTES)
        if start:
            raw = raw[raw.find(b"\n") + 1 :]
        # Its messages are numbered by their lines, which the end alone does not tell.
        if not (start and is_openclaw(raw)):
            yield from split_transcript(raw)


def _is_kept(path: str, passage: Passage, kept: SearchFilter) -> bool:
    """As the index filters; the source and the path are those of all that is looked at."""
    day = passage.date
    if (kept.since or kept.until) and day is None:
        return False
    if day and ((kept.since and day < kept.since) or (kept.until and day > kept.until)):
        return False
    return not any(
        out.path == path and out.start_line <= passage.start_line and passage.end_line <= out.end_line
        for out in kept.without
    )

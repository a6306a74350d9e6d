"""Owns what a sync has to do: disk compared with index, and a file's passages with those it had. Pure.

Invariants: a passage that stands word for word in the index keeps its key and its vector, whatever moved
around it; a path that cannot be seen is never planned as removed.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from indexer import analysis
from indexer.files.sources import Scan, SourceFile
from indexer.stores.base import FileState, KnownPassage
from indexer.types import FileFailure, Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPlan:
    """What a sync would do, by path.

    Attributes:
        suspects: Files that look changed; reading them may show that they are not.
        unsure: Files that look unchanged, but were read within the grain of the clock after a change.
        unchanged: How many files need no look.
    """

    added: tuple[SourceFile, ...]
    suspects: tuple[SourceFile, ...]
    unsure: tuple[SourceFile, ...]
    removed: tuple[str, ...]
    unchanged: int
    failures: tuple[FileFailure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageDiff:
    """How the passages of a file differ from those the index knows of it."""

    inserted: tuple[tuple[int, Passage], ...]
    moved: tuple[tuple[int, int, Passage], ...]
    removed: tuple[KnownPassage, ...]


def plan_sync(
    scan: Scan,
    states: dict[str, FileState],
    *,
    wanted: Callable[[str], bool] | None = None,
) -> SyncPlan:
    """Compare what is on disk with what is in the index.

    Args:
        scan: What is on disk.
        states: What is in the index; of files that the scan found unchanged nothing is needed.
        wanted: Which paths to look at; all, unless given.
    """
    added, suspects, unsure, still_failing, unchanged = [], [], [], list[FileFailure](), scan.unchanged
    for path, file in scan.files.items():
        state = states.get(path)
        if wanted is not None and not wanted(path):
            continue
        if state is None:
            added.append(file)
        elif state.partial or not file.looks_like(state):
            suspects.append(file)
        elif not state.settled:
            unsure.append(file)
        elif state.failure:
            still_failing.append(FileFailure(path=path, reason=state.failure))
        else:
            unchanged += 1
    missing = (path for path in states.keys() - scan.files.keys() if wanted is None or wanted(path))
    return SyncPlan(
        added=tuple(sorted(added)),
        suspects=tuple(sorted(suspects)),
        unsure=tuple(sorted(unsure)),
        removed=tuple(sorted(scan.gone(missing))),
        unchanged=unchanged,
        failures=(*scan.failures, *sorted(still_failing, key=attrgetter("path"))),
    )


def compare(passages: Sequence[Passage], known: Sequence[KnownPassage], *, first: int = 0) -> PassageDiff:
    """Match the passages of a file with those that the index knows, by what they say, in order.

    Args:
        passages: What the file says now.
        known: What the index holds of it.
        first: How many passages of the file come before both, and stay as they are.
    """
    if not known:
        return PassageDiff(inserted=tuple(enumerate(passages, first)), moved=(), removed=())
    waiting: dict[object, list[KnownPassage]] = defaultdict(list)
    for stored in reversed(known):
        waiting[_identity(stored.passage, stored.text_hash)].append(stored)
    inserted, moved, kept = [], [], set()
    for ordinal, passage in enumerate(passages, first):
        same = waiting.get(_identity(passage, text_hash(passage.text)))
        if not same:
            inserted.append((ordinal, passage))
            continue
        stored = same.pop()
        kept.add(stored.key)
        if (stored.ordinal, stored.passage) != (ordinal, passage):
            moved.append((stored.key, ordinal, passage))
    removed = tuple(stored for stored in known if stored.key not in kept)
    return PassageDiff(inserted=tuple(inserted), moved=tuple(moved), removed=removed)


def text_hash(text: str) -> bytes:
    """What a text is recognised by: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def passage_terms(passage: Passage) -> tuple[str, ...]:
    """The terms that a passage is found by: its own, those of the title that it opens, and the parts of names."""
    lexical = f"{passage.heading[-1]}\n{passage.text}" if passage.opens_section else passage.text
    return (*analysis.index_terms(lexical), *analysis.identifier_parts(lexical))


def _identity(passage: Passage, hashed: bytes) -> object:
    # What the terms or the vector's filter columns are made of; the rest is a place and may change.
    return hashed, passage.heading[-1] if passage.opens_section else "", passage.date

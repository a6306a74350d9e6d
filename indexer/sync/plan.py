"""Plan of a sync: the files on disk compared with the index, and the passages of a file with its former ones.

Invariants: stat only, no content is read; if only files are named, no others are looked at; a passage with the same
text keeps its key and its vector, whatever moved around it; a path that cannot be seen is never planned as removed.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter

from indexer.errors import SourceMissing
from indexer.language.breadcrumbs import breadcrumb, embedded_text
from indexer.sources.base import Scan, Source, SourceFile, with_folders
from indexer.stores.base import FileState, IndexStore, StoredPassage
from indexer.types import FileFailure, Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPlan:
    """Work of a sync, by path.

    Attributes:
        suspects: Files that look changed; reading them may show that they are not.
        unsure: Files that look unchanged, but were read within the resolution of the clock after a change.
        unchanged: Number of files without work.
    """

    added: tuple[SourceFile, ...]
    suspects: tuple[SourceFile, ...]
    unsure: tuple[SourceFile, ...]
    removed: tuple[str, ...]
    unchanged: int
    failures: tuple[FileFailure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageDiff:
    """Differences between the passages of a file and those in the index."""

    inserted: tuple[tuple[int, Passage], ...]
    moved: tuple[tuple[int, int, Passage], ...]
    removed: tuple[StoredPassage, ...]


def _plan_sync(
    scan: Scan,
    states: dict[str, FileState],
    is_settled: Callable[[FileState], bool],
    *,
    wanted: Callable[[str], bool] | None = None,
) -> SyncPlan:
    """Compare a scan with the index.

    Args:
        scan: The files of the source.
        states: The files in the index; those that the scan found unchanged may be missing.
        is_settled: See `Source`.
        wanted: Tells which paths to look at; None is all.
    """
    added_value, suspects, unsure, still_failing, unchanged_count = [], [], [], list[FileFailure](), scan.unchanged
    for path, file in scan.files.items():
        state = states.get(path)
        if wanted is not None and not wanted(path):
            continue
        if state is None:
            added_value.append(file)
        elif state.partial or not file.looks_like(state):
            suspects.append(file)
        elif not is_settled(state):
            unsure.append(file)
        elif state.failure:
            still_failing.append(FileFailure(path=path, reason=state.failure))
        else:
            unchanged_count += 1
    missing = (path for path in states.keys() - scan.files.keys() if wanted is None or wanted(path))
    return SyncPlan(
        added=tuple(sorted(added_value)),
        suspects=tuple(sorted(suspects)),
        unsure=tuple(sorted(unsure)),
        removed=tuple(sorted(scan.removals(missing))),
        unchanged=unchanged_count,
        failures=(*scan.failures, *scan.misnamed, *sorted(still_failing, key=attrgetter("path"))),
    )


def compare(
    passages: Sequence[Passage], known_passages: Sequence[StoredPassage], *, path: str, first: int = 0
) -> PassageDiff:
    """Match the passages of a file with those in the index, by their text and where they stand, in order.

    Args:
        passages: The passages now.
        known_passages: The passages in the index.
        path: Path of the file.
        first: Number of passages before both, which stay as they are.
    """
    if not known_passages:
        return PassageDiff(inserted=tuple(enumerate(passages, first)), moved=(), removed=())
    waiting: dict[object, list[StoredPassage]] = defaultdict(list)
    for stored_passage in reversed(known_passages):
        waiting[_identity(stored_passage.passage, stored_passage.text_hash)].append(stored_passage)
    inserted_value, moved_value, matched_value = [], [], set()
    for ordinal, passage in enumerate(passages, first):
        same = waiting.get(_identity(passage, text_hash(embedded_text(passage, path))))
        if not same:
            inserted_value.append((ordinal, passage))
            continue
        stored_passage = same.pop()
        matched_value.add(stored_passage.key)
        if (stored_passage.ordinal, stored_passage.passage) != (ordinal, passage):
            moved_value.append((stored_passage.key, ordinal, passage))
    removed_passages = tuple(stored for stored in known_passages if stored.key not in matched_value)
    return PassageDiff(inserted=tuple(inserted_value), moved=tuple(moved_value), removed=removed_passages)


def text_hash(text: str) -> bytes:
    """Hash of a text: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _identity(passage: Passage, hashed_raw: bytes) -> object:
    # What the terms or the vector's filter columns are made of; the rest is a place and may change.
    above = breadcrumb(passage.heading), passage.heading[-1:] if passage.opens_section else ()
    row = (passage.columns, passage.text) if passage.columns else ()
    return hashed_raw, above, row, passage.date


Planned = tuple[SyncPlan, dict[str, FileState]]


class SyncPlanner:
    """Planner of syncs.

    Args:
        source: The files.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def plan(self, store: IndexStore, paths: Collection[str], *, missing_ok: bool) -> Planned:
        """The plan of a sync, and the states compared; if only files are named, no others are looked at."""
        # Nearly all files are as they were known, and none of their states is fetched.
        known_file_versions = {} if paths else store.file_versions()
        scan = self._source.scan(known_file_versions, paths)
        if paths:
            states = store.file_states(None if scan.whole else paths)
        else:
            states = store.file_states(known_file_versions.keys())
        if not missing_ok:
            _require(paths, scan, states)
        wanted = _below(paths) if paths else None
        return _plan_sync(scan, states, self._source.is_settled, wanted=wanted), states


def failures(plan: SyncPlan, states: dict[str, FileState]) -> tuple[FileFailure, ...]:
    """Folders that cannot be read and files that cannot be indexed, each once."""
    files = (FileFailure(path=state.path, reason=state.failure) for state in states.values() if state.failure)
    return tuple({failure.path: failure for failure in (*plan.failures, *files)}.values())


def _require(paths: Collection[str], scan: Scan, states: dict[str, FileState]) -> None:
    """Raise `SourceMissing` if nothing is known at one of the paths."""
    there = {place for path in (*scan.files, *states) for place in with_folders(path)}
    missing = scan.removals(path for path in paths if path.rstrip("/") not in there)
    if missing:
        raise SourceMissing(
            f"There is no memory file, session log or folder {missing[0]!r}. "
            "Run `memory-service status` to see what there is."
        )


def _below(folders: Collection[str]) -> Callable[[str], bool]:
    """Test for paths that are one of some files and folders, or below one."""
    named_texts = {folder.rstrip("/") for folder in folders}
    return lambda path: not named_texts.isdisjoint(with_folders(path))

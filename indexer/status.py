"""Owns how an index stands: what it holds, what it was made with, what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from indexer.rebuild import RebuildState
from indexer.stores.base import StoreCounts
from indexer.types import FileFailure, Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """How an index stands.

    Attributes:
        stored: What it was made with; None before the first sync.
        current: What a sync would make it with now.
        pending: Files that were added, changed or removed since the last sync.
        failed: Files that could not be indexed.
        rebuild: How far a rebuild is that runs, or was interrupted.
        problem: Why the model cannot be used, as far as that shows without using it; empty where nothing is known.
        packed: Passages of the packed part, which is searched by compact codes first; 0 for a small index.
        slow: Why the index is not packed although it is large; empty where it is, or need not be.
    """

    counts: StoreCounts | None
    stored: Fingerprint | None
    current: Fingerprint
    pending: int
    failed: tuple[FileFailure, ...]
    rebuild: RebuildState | None = None
    problem: str = ""
    packed: int = 0
    slow: str = ""

    @property
    def unembedded(self) -> int:
        """Passages that lack a vector which the model should have made."""
        counts = self.counts
        return counts.passages - counts.embedded if counts and (self.current.model or self.problem) else 0

    @property
    def outdated(self) -> str:
        """Why the index should be made anew, and what to do; empty where it is what a sync would make."""
        if self.stored is None or not outdated(self.stored, self.current):
            return ""
        if self.rebuild and self.rebuild.running and self.rebuild.current:
            share = f"{self.rebuild.share:.0%} of the files are done"
            return f"{_difference(self.stored, self.current)}, and is being made anew: {share}. Wait for that."
        return outdated(self.stored, self.current)


def outdated(stored: Fingerprint, current: Fingerprint) -> str:
    """Why an index should be made anew, and how; empty where it need not, as one of words takes any model's vectors."""
    if not stored.model:
        current = replace(current, model="", dimensions=0)
    if stored == current:
        return ""
    difference = _difference(stored, current)
    return f"{difference}. Run `memory-service reindex --full` to build it anew; no memory is lost."


def _difference(stored: Fingerprint, current: Fingerprint) -> str:
    if stored.model == current.model and 0 < current.dimensions != stored.dimensions:
        now = f"{current.model} gives {current.dimensions:,} now"
        what = f"made of vectors of {stored.dimensions:,} numbers, and {now}"
    elif stored.model != current.model:
        what = f"made with the model {stored.model or 'none'}, and {current.model or 'none'} is configured"
    else:
        what = "made by another version"
    return f"The index was {what}"

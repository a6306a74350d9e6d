"""Owns what one search reads: a store at one moment, and what of it is in memory.

Invariants: a passage is in the corpus or stands in the packed segment, never in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from indexer.documents.greetings import greeted_speakers
from indexer.engine.corpus import Corpus, Mask
from indexer.engine.matrix import Matrix
from indexer.engine.recent import Recent
from indexer.engine.segment import Segment
from indexer.stores.base import IndexStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The packed part of an index.

    Attributes:
        standing: Rows of the segment that nothing has replaced; None for all.
        recent: The words of what was written since.
    """

    segment: Segment
    standing: Mask | None
    recent: Recent


@dataclass(frozen=True, kw_only=True)
class View:
    """What one search reads: a store within a read, and what of it is in memory.

    Attributes:
        corpus: The passages that are not packed, of a small index all.
        matrix: Their vectors, where they are in memory.
        packed: The others, where the index is large.
    """

    store: IndexStore
    corpus: Corpus
    matrix: Matrix | None
    packed: Packed | None = None

    def __len__(self) -> int:
        """Number of passages; those that were replaced since the packing count too."""
        return len(self.corpus) + (len(self.packed.segment) if self.packed else 0)

    @property
    def speakers(self) -> dict[int, str]:
        """Names of the labels that occur, by number."""
        if not self.packed:
            return self.corpus.speakers
        names, occurring = self.corpus.label_names, {*self.corpus.speakers, *self.packed.segment.speakers}
        return {label: names[label] for label in occurring if label in names}

    @cached_property
    def greeted(self) -> dict[str, frozenset[int]]:
        """Names, folded, that speakers are greeted by, and the numbers of the labels of those speakers."""
        names = self.corpus.label_names
        packed = self.packed.segment.greetings.named(names, self.packed.standing) if self.packed else ()
        return greeted_speakers(chain(packed, self.corpus.greetings.named(names)))

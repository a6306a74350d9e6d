"""Owns the choice of lines within a budget: the best first, and no two that say the same.

Invariants: pure; deterministic; the lines taken never take more than the budget, headings included; an embedder is
asked once, for a bounded number of texts, and never needed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from indexer.analysis import query_terms
from indexer.embeddings.base import Embedder
from memory_service.compaction.outline import Line, Section, heading_size
from memory_service.text.similarity import groups_of, read_fact
from memory_service.tokens import quarters

MAX_CANDIDATES = 200
# How much of a line's score stands whether or not it is new.
# Source: facts that survive five rounds at 800 tokens, 0.1 to 0.4 are alike, and 0.1 repeats least (our measurement).
KNOWN_SHARE = 0.1

Novelty = Callable[[int, Sequence[int]], float]


@dataclass(slots=True, kw_only=True)
class Basket:
    """Lines taken so far, within a budget in quarters of a token."""

    budget: int
    lines: list[Line] = field(default_factory=list)
    used: int = 0
    _sections: set[Section] = field(default_factory=set)
    _taken: set[tuple[str, str]] = field(default_factory=set)

    def cost(self, line: Line) -> int:
        """What taking a line would take of the budget."""
        return line.size + (0 if line.section in self._sections else heading_size(line.section))

    def take(self, line: Line, limit: int | None = None) -> bool:
        """Takes a line if it fits, also within a limit of its own; a text is taken once.

        Returns:
            Whether it was taken.
        """
        cost = self.cost(line)
        key = (line.purpose, line.text)
        if cost > min(self.budget - self.used, self.budget if limit is None else limit) or key in self._taken:
            return False
        self._sections.add(line.section)
        self._taken.add(key)
        self.lines.append(line)
        self.used += cost
        return True

    def fill(self, lines: Iterable[Line], limit: int | None = None) -> None:
        """Takes lines in their order as long as they fit, all together within a limit of their own."""
        start = self.used
        for line in lines:
            self.take(line, None if limit is None else limit - (self.used - start))


def best_first(lines: Iterable[Line]) -> list[Line]:
    """Lines by score; of equals the earlier one."""
    return sorted(lines, key=lambda line: (-line.score, line.seq, line.place))


def diverse(lines: Sequence[Line], *, embedder: Embedder | None = None) -> list[Line]:
    """The best lines by score for their length, each weighed by what the ones before it do not say.

    Args:
        lines: All there are; the `MAX_CANDIDATES` best are looked at.
        embedder: Judges likeness by meaning; without it, by terms.

    Raises:
        EmbeddingError: From the embedder.
    """
    candidates = best_first(lines)[:MAX_CANDIDATES]
    if len(candidates) < 2:
        return candidates
    values = [line.score / (20 + quarters(line.text)) ** 0.5 for line in candidates]
    novelty = _by_terms(candidates) if embedder is None else _by_meaning(candidates, embedder)
    # What a line adds only falls as others are taken, so that most need not be weighed again.
    heap = [(-value, index, 0) for index, value in enumerate(values)]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        _, index, weighed = heapq.heappop(heap)
        if weighed == len(order):
            order.append(index)
            continue
        value = values[index] * (KNOWN_SHARE + (1 - KNOWN_SHARE) * novelty(index, order))
        heapq.heappush(heap, (-value, index, len(order)))
    return [candidates[index] for index in order]


def _by_terms(lines: Sequence[Line]) -> Novelty:
    terms = [frozenset(query_terms(line.text)) for line in lines]
    covered: set[str] = set()
    seen = 0

    def novelty(index: int, order: Sequence[int]) -> float:
        nonlocal seen
        for taken in order[seen:]:
            covered.update(terms[taken])
        seen = len(order)
        return len(terms[index] - covered) / max(len(terms[index]), 1)

    return novelty


def _by_meaning(lines: Sequence[Line], embedder: Embedder) -> Novelty:
    vectors = embedder.embed_documents([line.text for line in lines])
    likeness: list[list[float]] = (vectors @ vectors.T).tolist()
    nearest = [0.0] * len(lines)
    weighed = [0] * len(lines)

    def novelty(index: int, order: Sequence[int]) -> float:
        row = likeness[index]
        nearest[index] = max(nearest[index], max((row[taken] for taken in order[weighed[index] :]), default=0.0))
        weighed[index] = len(order)
        return 1 - nearest[index]

    return novelty


def each_once(lines: Sequence[Line]) -> list[Line]:
    """Of lines that say the same, the last, in order; looks at the `MAX_CANDIDATES` best."""
    ordered = sorted(best_first(lines)[:MAX_CANDIDATES], key=lambda line: (line.seq, line.place))
    groups = groups_of([read_fact(line.text) for line in ordered])
    return [ordered[at] for at in sorted(group[-1] for group in groups)]

"""The measuring of a workspace's own index: how fast it answers, how right its fast path is, how fast it is made.

Invariants: the workspace is read, and nothing in it is written but the packed part of a large index, as a search
would; what is indexed to measure that stands in a temporary folder; no question is asked twice, so that each is
embedded.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from indexer import (
    Embedder,
    Index,
    IndexerError,
    LanguageChoice,
    Mode,
    SourceMissing,
    StoreOutdated,
    SyncCancelled,
    SyncProgress,
)

RECALL_LIMIT = 10
# A question is about so long.
_WORDS = 8
_QUERY_CHARS = 60
_SAMPLED = 500
_WARMING = 5
# The exact search of a million passages takes a second or two.
_RECALL_SAMPLES = 50
_RECALL_SCANNED = 10_000_000
_BARE_TEXTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """Milliseconds that a stage of a search took: in the middle, and all but the slowest of a hundred."""

    name: str
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Measured speeds and recall.

    Attributes:
        packed: Passages that are searched by compact codes first; 0 where all are looked at for every question.
        mode: What searches went by.
        searches: How many were made, one after another.
        stages: The whole search first, then its parts in their order.
        recall: Share of the ten exact nearest passages, told by sqlite-vec, that a search finds too; None where there
            are no vectors.
        indexed: Passages that were indexed anew to measure it.
        indexing_per_second: Of those, how many a second; None where there are none.
        embedding_per_second: How many of the same texts the model alone takes in a second; None without a model.
        degraded: Parts that were missing, each "part: why and what to do".
    """

    passages: int
    packed: int
    mode: Mode
    searches: int
    searches_per_second: float
    stages: tuple[StageTimes, ...]
    recall: float | None
    indexed: int
    indexing_per_second: float | None
    embedding_per_second: float | None
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Searches:
    count: int
    per_second: float
    stages: tuple[StageTimes, ...]
    mode: Mode
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Indexing:
    passages: int = 0
    per_second: float | None = None
    embedding_per_second: float | None = None
    degraded: tuple[str, ...] = ()


def measure(
    index: Index,
    another: Callable[[Path], Index],
    embedder: Embedder | LanguageChoice | None,
    *,
    seconds: float,
    told: Callable[[str], None] = lambda _: None,
) -> Benchmark:
    """Measure a workspace.

    Args:
        index: Its index.
        another: Makes an index of the same files, kept in a folder.
        embedder: The model in use, or the two that are chosen from; None for none.
        seconds: How long to search, and how long to index, each.
        told: Hears what is being measured.

    Raises:
        SourceMissing: There is nothing to ask about.
        StoreOutdated: Another version made the index.
        IndexerError: The index cannot be read.
    """
    told("making ready")
    passages = _passages(index)
    unpacked = index.pack()
    told("searching")
    searched = _searched(index, index.sampled_texts(_SAMPLED), seconds)
    told("comparing with the exact nearest")
    samples = min(_RECALL_SAMPLES, max(1, _RECALL_SCANNED // passages))
    recall = index.recall(limit=RECALL_LIMIT, samples=samples) if searched.mode != "text" else None
    told("indexing")
    if isinstance(embedder, LanguageChoice):
        embedder = index.embedder
    made = _indexed(another, embedder, seconds)
    return Benchmark(
        passages=passages,
        packed=index.status().packed,
        mode=searched.mode,
        searches=searched.count,
        searches_per_second=round(searched.per_second, 2),
        stages=searched.stages,
        recall=recall,
        indexed=made.passages,
        indexing_per_second=made.per_second,
        embedding_per_second=made.embedding_per_second,
        degraded=tuple(dict.fromkeys((*unpacked, *searched.degraded, *made.degraded))),
    )


def _passages(index: Index) -> int:
    status = index.status()
    if status.stored and status.counts is None:
        raise StoreOutdated(index.outdated())
    if status.counts is None or not status.counts.passages:
        raise SourceMissing(
            f"There is nothing to measure: the index of {index.root} holds no passage. "
            "Write a memory, or run `memory-service reindex`."
        )
    return status.counts.passages


def questions(texts: Sequence[str]) -> Iterator[str]:
    """Some words of one text after another, for ever, never the same twice."""
    chance, asked = random.Random(0), set[str]()
    while True:
        words = chance.choice(texts).split()
        first = chance.randrange(max(1, len(words) - _WORDS + 1))
        stretch = " ".join(words[first : first + _WORDS])
        # Text without spaces is cut anywhere.
        begin = chance.randrange(max(1, len(stretch) - _QUERY_CHARS + 1))
        question = stretch[begin : begin + _QUERY_CHARS].strip()
        number = len(asked)
        while not question or question in asked:
            # A text may be that number.
            question, number = f"{question} {number}".strip(), number + 1
        asked.add(question)
        yield question


def _searched(index: Index, texts: Sequence[str], seconds: float) -> _Searches:
    asked = questions(texts)
    for _ in range(_WARMING):
        index.search(next(asked), limit=RECALL_LIMIT)
    laps: dict[str, list[float]] = {"whole": []}
    started = time.perf_counter()
    while True:
        question = next(asked)
        began = time.perf_counter()
        found = index.search(question, limit=RECALL_LIMIT)
        ended = time.perf_counter()
        laps["whole"].append((ended - began) * 1000)
        for name, lap_ms in found.stages_ms.items():
            laps.setdefault(name, []).append(lap_ms)
        if ended - started >= seconds:
            break
    return _Searches(
        count=len(laps["whole"]),
        per_second=1000 / statistics.fmean(laps["whole"]),
        stages=tuple(_stage(name, values) for name, values in laps.items()),
        mode=found.mode,
        degraded=found.degraded,
    )


def _stage(name: str, laps_ms: Sequence[float]) -> StageTimes:
    ordered = sorted(laps_ms)
    slowest = ordered[-1 - len(ordered) // 100]
    return StageTimes(name=name, p50_ms=round(statistics.median(ordered), 3), p99_ms=round(slowest, 3))


def _indexed(another: Callable[[Path], Index], embedder: Embedder | None, seconds: float) -> _Indexing:
    """Index for a while, then have the model alone embed what was indexed."""
    passages, texts = 0, list[str]()

    def count(progress: SyncProgress) -> None:
        nonlocal passages
        passages = progress.passages

    with tempfile.TemporaryDirectory() as name:
        index = another(Path(name))
        try:
            started = time.perf_counter()
            ends, degraded = started + seconds, tuple[str, ...]()
            with suppress(SyncCancelled):
                degraded = index.sync(on_progress=count, cancelled=lambda: time.perf_counter() > ends).degraded
            took = time.perf_counter() - started
            if embedder and passages:
                texts = index.sampled_texts(_BARE_TEXTS)
        finally:
            index.close()
    if not passages:
        return _Indexing(degraded=degraded)
    indexed = _Indexing(passages=passages, per_second=round(passages / took, 2), degraded=degraded)
    return _beside(indexed, embedder, texts) if embedder and texts else indexed


def _beside(indexed: _Indexing, embedder: Embedder, texts: Sequence[str]) -> _Indexing:
    """Copy of the measurement with the speed of the model alone."""
    # Another text than was indexed: that one's vector is still at hand.
    others = [f"{text} ." for text in texts]
    started = time.perf_counter()
    degraded, rate = indexed.degraded, None
    try:
        embedder.embed_documents(others)
        rate = round(len(others) / (time.perf_counter() - started), 2)
    except IndexerError as error:
        degraded = (*degraded, f"vector: {error}")
    return _Indexing(
        passages=indexed.passages, per_second=indexed.per_second, embedding_per_second=rate, degraded=degraded
    )

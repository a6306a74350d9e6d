"""Measures of a workspace's own index on its own passages: how fast it answers, and how right its fast path is.

Invariants: nothing is written but the packed part of a large index, as a search would; no question is asked twice, so
that each is embedded.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

from indexer import recall, sampled_texts

if TYPE_CHECKING:
    from indexer import Index

Measure = tuple[str, dict[str, float]]
NOTHING = "the index holds no passage, so there is nothing to measure"
_LIMIT = 10
# A question is about so long.
_WORDS, _QUERY_CHARS = 8, 60
_SAMPLED = 500
_WARMING, _SEARCHES, _SECONDS = 5, 200, 5.0
# The exact search of a million passages takes a second or two.
_RECALL_SAMPLES, _RECALL_SCANNED = 50, 10_000_000


def measure_searches(index: Index) -> Measure:
    """The time that searches take one after another, the middle one and all but the slowest of a hundred.

    Raises:
        StoreError: The index cannot be read.
    """
    problems = index.pack()
    with index.reader() as view:
        texts = sampled_texts(view, _SAMPLED)
    if not texts:
        return NOTHING, {}
    asked_questions, laps = questions(texts), defaultdict[str, list[float]](list)
    for _ in range(_WARMING):
        index.search(next(asked_questions), limit=_LIMIT)
    started_time = time.perf_counter()
    while len(laps[""]) < _SEARCHES and time.perf_counter() - started_time < _SECONDS:
        question, began = next(asked_questions), time.perf_counter()
        results = index.search(question, limit=_LIMIT)
        for name, lap_ms in {"": (time.perf_counter() - began) * 1000, **results.stages_ms}.items():
            laps[name].append(lap_ms)
    figures = {"searches": float(len(laps[""])), "searches_per_second": 1000 / statistics.fmean(laps[""])}
    for name, values in laps.items():
        stage, ordered_values = f"{name}_".lstrip("_"), sorted(values)
        figures[f"{stage}p50_ms"] = statistics.median(ordered_values)
        figures[f"{stage}p99_ms"] = ordered_values[-1 - len(ordered_values) // 100]
    stages = ", ".join(f"{name} {figures[f'{name}_p50_ms']:.2f}" for name in laps if name)
    times = f"p50 {figures['p50_ms']:.2f} ms, p99 {figures['p99_ms']:.2f} ms ({stages})"
    missing = "".join(f"; {problem.removesuffix('.')}" for problem in dict.fromkeys((*problems, *results.degraded)))
    return f"{len(laps['']):,} {results.mode} searches: {times}{missing}", figures


def measure_recall(index: Index) -> Measure:
    """The share of the ten exact nearest passages, told by sqlite-vec, that a search finds too.

    Raises:
        StoreError: The index cannot be read.
    """
    status = index.status()
    passages = status.counts.passages if status.counts else 0
    if not passages:
        return NOTHING, {}
    with index.reader() as view:
        share = recall(view, limit=_LIMIT, samples=min(_RECALL_SAMPLES, max(1, _RECALL_SCANNED // passages)))
    text = f"{status.packed:,} packed" if status.packed else "all looked at for every question"
    counts = {"passages": float(passages), "packed": float(status.packed)}
    if share is None:
        return f"{passages:,} passages without vectors, found by words alone", counts
    return f"{share:.3f} of the exact nearest {_LIMIT} of {passages:,} passages, {text}", {**counts, "recall": share}


def questions(texts: Sequence[str]) -> Iterator[str]:
    """Some words of one text after another, for ever, never the same twice."""
    chance, asked_keys = random.Random(0), set[str]()
    for number in count():
        words = chance.choice(texts).split()
        first = chance.randrange(max(1, len(words) - _WORDS + 1))
        stretch = " ".join(words[first : first + _WORDS])
        # Text without spaces is cut anywhere.
        begin = chance.randrange(max(1, len(stretch) - _QUERY_CHARS + 1))
        question = stretch[begin : begin + _QUERY_CHARS].strip()
        while not question or question in asked_keys:
            question = f"{question} {number}".strip()
        asked_keys.add(question)
        yield question

"""Owns the numbers for Prometheus.

Invariants: one registry per app; labels come from small fixed sets: no path, no workspace, no text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_TOKENS = (0, 100, 250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000)
_PARTS = frozenset({"vector", "index", "receipt"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class Metrics:
    """The numbers of one app.

    Args:
        running_operations: Tells how many operations run when the numbers are read.
    """

    def __init__(self, running_operations: Callable[[], int]) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        labels = ("method", "route", "status")
        self._requests = Counter("memory_service_requests", "Requests answered.", labels, registry=registry)
        self._request_seconds = Histogram(
            "memory_service_request_seconds", "Time to answer.", labels[:2], buckets=_SECONDS, registry=registry
        )
        self._search_seconds = Histogram(
            "memory_service_search_seconds", "Time of a search.", buckets=_SECONDS, registry=registry
        )
        self._context_seconds = Histogram(
            "memory_service_context_seconds", "Time to make a context.", buckets=_SECONDS, registry=registry
        )
        self._injected_tokens = Histogram(
            "memory_service_injected_tokens", "Tokens of a context's block.", buckets=_TOKENS, registry=registry
        )
        self._memories_written = Counter("memory_service_memories_written", "Memories written.", registry=registry)
        self._degraded = Counter(
            "memory_service_degraded_answers", "Answers that a part was missing from.", ("part",), registry=registry
        )
        running = Gauge("memory_service_operations_running", "Reindex operations queued or running.", registry=registry)
        running.set_function(running_operations)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        named = method if method in _METHODS else "other"
        self._requests.labels(named, route, str(status)).inc()
        self._request_seconds.labels(named, route).observe(seconds)

    def searched(self, seconds: float) -> None:
        """Count a search."""
        self._search_seconds.observe(seconds)

    def injected(self, seconds: float, tokens: int) -> None:
        """Count a context."""
        self._context_seconds.observe(seconds)
        self._injected_tokens.observe(tokens)

    def remembered(self) -> None:
        """Count a memory that was written."""
        self._memories_written.inc()

    def missed(self, degraded: Iterable[str]) -> None:
        """Count the parts that were missing from an answer, each "part: reason"."""
        for part in {reason.partition(":")[0] for reason in degraded}:
            self._degraded.labels(part if part in _PARTS else "other").inc()

    def exposition(self) -> bytes:
        """All numbers in the text format of Prometheus."""
        return generate_latest(self._registry)

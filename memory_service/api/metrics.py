"""Metrics for Prometheus.

Invariants: one registry per app; labels come from small fixed sets: no path, no workspace, no text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import get_args

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from memory_service.api.admission import RULES, WorkQueues
from memory_service.errors import codes
from memory_service.schemas.compaction import Stage
from memory_service.schemas.sessions import EventField, SessionEvent

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_TOKENS = (0, 100, 250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000)
_COMPACTION_SECONDS = (0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_VIEW_TOKENS = (0, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 1_000_000)
_RATIOS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_PARTS = frozenset(
    "vector index relevance rerank recall memory prompt prompts receipt window log messages compaction flush engine "
    "hooks session answer".split()
)
_TRIGGERS = frozenset({"manual", "threshold", "overflow", "cache_ttl", "safeguard"})
_WRITERS = frozenset({"model", "extractive", "note", "none", "agent", "engine", "hook"})
_OUTCOMES = codes() | set(get_args(Stage))
_REMEDIES = frozenset({"compact", "truncate", "strip_media", "drop_thinking", "wait", "give_up"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class Metrics:
    """Metrics of one app.

    Args:
        running_operations: Gives the number of running operations when the metrics are read.
        reader_failures: Gives the failures of the readers of meaning, by reader, likewise.
    """

    def __init__(self, running_operations: Callable[[], int], reader_failures: Callable[[], Mapping[str, int]]) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_ReaderFailures(reader_failures))
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
        self._queue_waiting = Gauge(
            "memory_service_queue_waiting", "Requests that wait in line, by kind.", ("kind",), registry=registry
        )
        self._queue_working = Gauge(
            "memory_service_queue_working", "Requests that are worked on, by kind.", ("kind",), registry=registry
        )
        self._refused = Counter(
            "memory_service_queue_refused", "Requests refused as too many waited.", ("kind",), registry=registry
        )
        self._add_sessions(registry)
        running = Gauge("memory_service_operations_running", "Reindex operations queued or running.", registry=registry)
        running.set_function(running_operations)

    def _add_sessions(self, registry: CollectorRegistry) -> None:
        self._messages = Counter("memory_service_sessions_messages", "Messages appended.", registry=registry)
        self._prompt_tokens = Counter(
            "memory_service_prompt_tokens", "Tokens of the prompts of sessions.", registry=registry
        )
        self._cached_tokens = Counter(
            "memory_service_prompt_cached_tokens",
            "Of these, those that begin a prompt as they began the last one of its session.",
            registry=registry,
        )
        self._compactions = Counter(
            "memory_service_compactions",
            "Compactions tried, by why, by who wrote the summary, and by how far they went or why not.",
            ("trigger", "method", "outcome"),
            registry=registry,
        )
        self._compaction_seconds = Histogram(
            "memory_service_compaction_seconds", "Time of a compaction.", buckets=_COMPACTION_SECONDS, registry=registry
        )
        self._tokens_before = Histogram(
            "memory_service_compaction_tokens_before", "Tokens of a view.", buckets=_VIEW_TOKENS, registry=registry
        )
        self._tokens_after = Histogram(
            "memory_service_compaction_tokens_after", "The same after it.", buckets=_VIEW_TOKENS, registry=registry
        )
        self._ratio = Histogram(
            "memory_service_compaction_ratio", "Tokens after by tokens before.", buckets=_RATIOS, registry=registry
        )
        self._model_calls = Counter(
            "memory_service_model_calls",
            "Requests to a model, further tries included, by what for and by whether they were answered.",
            ("purpose", "outcome"),
            registry=registry,
        )
        self._pruned = Counter(
            "memory_service_pruned", "Tool results and media that gave way to a line.", registry=registry
        )
        self._flushed = Counter(
            "memory_service_flush_written", "Memories that flushes wrote.", ("method",), registry=registry
        )
        self._overflows = Counter(
            "memory_service_overflow", "Refused prompts, by what was done.", ("remedy",), registry=registry
        )

    def watch_queues(self, queues: WorkQueues) -> None:
        """Show the queues of the server whenever the metrics are read."""
        for kind in RULES:
            self._queue_waiting.labels(kind).set_function(partial(getattr, queues.of(kind), "waiting"))
            self._queue_working.labels(kind).set_function(partial(getattr, queues.of(kind), "working"))
            self._refused.labels(kind)

    def count_refusal(self, kind: str) -> None:
        """Count a request that a queue refused."""
        self._refused.labels(kind).inc()

    def count_request(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a request; one without a duration of its own, such as a stream, with None."""
        named_method = method if method in _METHODS else "other"
        self._requests.labels(named_method, route, str(status)).inc()
        if seconds is not None:
            self._request_seconds.labels(named_method, route).observe(seconds)

    def count_search(self, seconds: float) -> None:
        """Count a search."""
        self._search_seconds.observe(seconds)

    def count_context(self, seconds: float, tokens: int) -> None:
        """Count a context."""
        self._context_seconds.observe(seconds)
        self._injected_tokens.observe(tokens)

    def count_memory(self) -> None:
        """Count a memory that was written."""
        self._memories_written.inc()

    def count_messages(self, messages: int) -> None:
        """Count messages of sessions."""
        self._messages.inc(messages)

    def count_prompt(self, tokens: int, cached_prefix_tokens: int) -> None:
        """Count the prompt of a session."""
        self._prompt_tokens.inc(tokens)
        self._cached_tokens.inc(cached_prefix_tokens)

    def count_compaction(self, event: SessionEvent) -> None:
        """Count a compaction by the event at its end."""
        fields = event.fields
        self._compactions.labels(
            _label_of(fields.get("trigger"), _TRIGGERS),
            _label_of(fields.get("method"), _WRITERS),
            _label_of(fields.get("outcome"), _OUTCOMES),
        ).inc()
        self._compaction_seconds.observe(_number(fields.get("duration_ms")) / 1000)
        self._pruned.inc(_number(fields.get("pruned")))
        self._count_calls("summary", fields)
        if fields.get("compaction_id"):
            before, after = _number(fields.get("tokens_before")), _number(fields.get("tokens_after"))
            self._tokens_before.observe(before)
            self._tokens_after.observe(after)
            self._ratio.observe(after / before if before else 1.0)

    def count_flush(self, event: SessionEvent) -> None:
        """Count the memories of a flush, by its event."""
        self._flushed.labels(_label_of(event.fields.get("method"), _WRITERS)).inc(_number(event.fields.get("written")))
        self._count_calls("memories", event.fields)

    def _count_calls(self, purpose: str, fields: Mapping[str, EventField]) -> None:
        calls, failed_value = _number(fields.get("calls")), _number(fields.get("failed_calls"))
        self._model_calls.labels(purpose, "answered").inc(max(calls - failed_value, 0))
        self._model_calls.labels(purpose, "failed").inc(failed_value)

    def count_recovery(self, remedy: str) -> None:
        """Count a recovery after a provider had refused a prompt."""
        self._overflows.labels(_label_of(remedy, _REMEDIES)).inc()

    def count_degraded(self, degraded: Iterable[str]) -> None:
        """Count the parts that were missing from an answer, each "part: reason"."""
        for part in {reason.partition(":")[0] for reason in degraded}:
            self._degraded.labels(part if part in _PARTS else "other").inc()

    def exposition(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class _ReaderFailures(Collector):
    """Counter of the process, whose numbers are kept elsewhere."""

    def __init__(self, counts: Callable[[], Mapping[str, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The numbers as they are now."""
        family = CounterMetricFamily(
            "memory_service_reader_failures",
            "Texts that went without facts, days, names or the like, as their reader failed.",
            labels=("reader",),
        )
        for reader, count in self._counts().items():
            family.add_metric((reader,), count)
        yield family


def _label_of(value: EventField, labels: frozenset[str]) -> str:
    return value if isinstance(value, str) and value in labels else "other"


def _number(value: EventField) -> float:
    return float(value) if isinstance(value, int | float) else 0.0

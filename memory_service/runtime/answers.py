"""Wire shapes of the service's values, for the HTTP API and for `--json`, and the counts that providers send. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from indexer import FileFailure as IndexFailure
from indexer import (
    Fingerprint,
    Hit,
    IndexerError,
    IndexStatus,
    QueryInvalid,
    RebuildState,
    SourceMissing,
    SyncPlan,
    SyncReport,
    WatchState,
)
from indexer import SearchResults as Found
from indexer import Statement as Stated
from indexer.language import FAILURES
from memory_service import schemas
from memory_service.config import Settings
from memory_service.errors import InvalidRequest, NotFound, StorageFailed
from memory_service.home import citation
from memory_service.memories.block import is_relevant
from memory_service.messages.sizes import Usage
from memory_service.schemas.sessions import UsageReport

_Item = TypeVar("_Item", bound=schemas.ReceiptItem)


def _shown_score(raw: float, fusion: str) -> float:
    """A rank score as people see it: 0 to 1. Sums of deviations are squeezed, the others are cut at both ends."""
    if fusion != "evidence":
        return round(max(0.0, min(1.0, raw)), 6)
    return round(1 / (1 + math.exp(-max(-60.0, min(60.0, raw)) / 4)), 6)


def usage_of(report: UsageReport | None, model: str | None = None, finish_reason: str | None = None) -> Usage | None:
    """The counts of a provider, whatever its names for them; None if it counted nothing and told nothing.

    Source: OpenAI API reference, "Chat completions", `usage`: `prompt_tokens` hold the cached ones, and so do the
    `input_tokens` of "Responses", which come with `input_tokens_details`. Anthropic API, "Messages": `input_tokens`
    do not hold those that were read from or written to the cache. litellm sends `prompt_tokens` that hold both.
    """
    if report is None or (report.prompt_tokens is None and report.input_tokens is None):
        return Usage(input_tokens=0, model=model, finish_reason=finish_reason) if finish_reason else None
    details = report.prompt_tokens_details or report.input_tokens_details
    count = (details.cached_tokens if details else None) or report.cache_read_input_tokens
    read = count or report.cache_read_tokens or 0
    write = report.cache_creation_input_tokens or report.cache_write_tokens or 0
    whole = report.prompt_tokens if report.prompt_tokens is not None else report.input_tokens or 0
    cached_count = read + write if report.prompt_tokens is not None else read if report.input_tokens_details else 0
    output = report.completion_tokens if report.completion_tokens is not None else report.output_tokens
    return Usage(
        input_tokens=max(whole - cached_count, 0),
        output_tokens=output or 0,
        cache_read_tokens=read,
        cache_write_tokens=write,
        model=model,
        finish_reason=finish_reason,
    )


# Where some are left out, so many of the best are looked at: relevance does not fall with every place, nor does the
# score where memories go first.
_LOOKED_AT = 100


def looked_at(limit: int, min_score: float | None, min_relevance: float) -> int:
    """How many results are looked at, for those that a search shall give."""
    return max(limit, _LOOKED_AT) if min_relevance > 0 or min_score is not None else limit


def search_results(
    results: Found,
    *,
    limit: int,
    fusion: str,
    min_score: float | None,
    min_relevance: float,
    explain: bool,
    took_ms: float,
) -> schemas.SearchResults:
    """Search results as the API answers them: the best of those that have enough."""
    hits = [hit for hit in results.hits if is_relevant(hit.relevance, min_relevance)]
    shown_pairs = [(hit, _shown_score(hit.score, fusion)) for hit in hits]
    kept_pairs = [(hit, score) for hit, score in shown_pairs if min_score is None or score >= min_score]
    return schemas.SearchResults(
        results=[_result(hit, score, explain) for hit, score in kept_pairs[:limit]],
        mode=results.mode,
        degraded=list(results.degraded),
        took_ms=round(took_ms, 3),
    )


def _result(hit: Hit, score: float, explain: bool) -> schemas.SearchResult:
    passage = hit.passage
    return schemas.SearchResult(
        path=hit.path,
        start_line=passage.start_line,
        end_line=passage.end_line,
        text=hit.snippet,
        heading=list(passage.heading),
        columns=passage.columns,
        date=passage.date,
        days=list(hit.days),
        source=hit.source,
        role=passage.role,
        origin=passage.role if passage.noted else None,
        memory_id=hit.memory_id,
        score=score,
        relevance=hit.relevance,
        text_score=round(hit.text_score, 6),
        vector_score=None if hit.vector_score is None else round(hit.vector_score, 6),
        citation=citation(hit.path, passage.start_line, passage.end_line),
        signals={name: round(part, 6) for name, part in hit.signals.items()} if explain else None,
        replaced_by=_statement(hit.replaced_by) if hit.replaced_by else None,
        replaces=[_statement(statement) for statement in hit.replaces],
        history=[_statement(statement) for statement in hit.history],
    )


def _statement(statement: Stated) -> schemas.Statement:
    return schemas.Statement(
        path=statement.path,
        start_line=statement.start_line,
        end_line=statement.end_line,
        citation=citation(statement.path, statement.start_line, statement.end_line),
        date=statement.date,
        about=statement.about,
        text=statement.text,
        current=statement.current,
    )


def receipt(receipt: schemas.Receipt, *, fusion: str) -> schemas.Receipt:
    """A receipt as it is stored, with scores as people see them."""
    shown_fields = {
        "included": _with_shown_scores(receipt.included, fusion),
        "omitted": _with_shown_scores(receipt.omitted, fusion),
    }
    return receipt.model_copy(update=shown_fields)


def _with_shown_scores(items: Iterable[_Item], fusion: str) -> list[_Item]:
    return [item.model_copy(update={"score": _shown_score(item.score, fusion)}) for item in items]


def reindex_report(report: SyncReport) -> schemas.ReindexReport:
    """Report of a reindex."""
    return schemas.ReindexReport.model_validate(
        {**dataclasses.asdict(report), "seconds": round(report.seconds, 3), "degraded": list(report.degraded)}
    )


def status(
    workspace: str,
    status: IndexStatus,
    settings: Settings,
    *,
    degraded: Iterable[str] = (),
    watch_state: WatchState | None = None,
) -> schemas.Status:
    """Status of a workspace, with failures beside those of the index."""
    counts = status.counts
    passages, embedded_count = (counts.passages, counts.embedded) if counts else (0, 0)
    return schemas.Status(
        workspace=workspace,
        files=counts.files if counts else 0,
        passages=passages,
        embedded=embedded_count,
        coverage=round(embedded_count / passages, 4) if passages and status.current.model else 1.0,
        dirty=status.pending,
        syncing=status.syncing is not None,
        sync_done=status.syncing.passages if status.syncing else None,
        sync_total=status.syncing.total_passages if status.syncing else None,
        failed=failures(status.failed),
        index_bytes=counts.size_bytes if counts else 0,
        updated_at=counts.updated_at if counts else None,
        embedding_model=settings.embedding_model,
        embedding_choice=_choice(status),
        fingerprint=_fingerprint(status.stored) if status.stored else None,
        current_fingerprint=_fingerprint(status.current),
        timezone=settings.timezone,
        rebuild=_rebuild(status.rebuild) if status.rebuild else None,
        watching=schemas.Watching(mode=watch_state.mode, reason=watch_state.reason) if watch_state else None,
        reader_failures=reader_failures(),
        degraded=[*_degraded_parts(status), *degraded],
    )


def _choice(status: IndexStatus) -> str | None:
    """The model that was chosen, and why; None where the settings name one."""
    if status.choice and status.moving:
        how = "by a server in the background, or by the next command that searches after a change"
        return f"{status.choice}. The index answers with the other model until it is made anew: {how}"
    return status.choice or None


def reader_failures() -> dict[str, int]:
    """How often each reader of meaning has failed in this process."""
    return dict(FAILURES.counts())


def failures(failures: Iterable[IndexFailure]) -> list[schemas.FileFailure]:
    """Files that could not be indexed."""
    return [schemas.FileFailure(path=failure.path, reason=failure.reason) for failure in failures]


def _degraded_parts(found: IndexStatus) -> Iterable[str]:
    if found.problem:
        yield f"vector: {found.problem}"
    if found.unembedded and not found.outdated and found.counts:
        count = f"{found.unembedded:,} of {found.counts.passages:,}"
        yield f"vector: {count} passages have no vector yet. They get one when they are searched and the model answers."
    if found.outdated:
        yield f"index: {found.outdated}"
    elif found.unread:
        yield found.unread
    if found.slow:
        yield found.slow
    rebuild = found.rebuild
    if rebuild and not rebuild.running:
        purpose = "go on with it" if rebuild.current else "begin anew, as it was for another model or version"
        yield f"index: a rebuild was interrupted ({rebuild.name}). Run `memory-service reindex --full` to {purpose}."


def _rebuild(rebuild_state: RebuildState) -> schemas.Rebuild:
    return schemas.Rebuild(
        state="running" if rebuild_state.running else "interrupted" if rebuild_state.current else "outdated",
        file=rebuild_state.name,
        files=rebuild_state.files,
        total_files=rebuild_state.total_files,
        share=round(rebuild_state.share, 4),
        passages=rebuild_state.passages,
        embedded=rebuild_state.embedded,
        bytes=rebuild_state.size_bytes,
    )


def _fingerprint(fingerprint: Fingerprint) -> schemas.ModelFingerprint:
    return schemas.ModelFingerprint(
        model=fingerprint.model,
        dimensions=fingerprint.dimensions,
        rules=fingerprint.rules,
        schema_version=fingerprint.schema,
    )


def planned_report(plan: SyncPlan) -> schemas.ReindexReport:
    """Planned reindex in the shape of a report."""
    return schemas.ReindexReport(
        added=len(plan.added),
        changed=len(plan.suspects),
        removed=len(plan.removed),
        unchanged=plan.unchanged + len(plan.unsure),
        failed=failures(plan.failures),
        embedded=0,
        reused=0,
        seconds=0.0,
    )


@contextmanager
def translate_errors() -> Iterator[None]:
    """Errors of the index, as those of the service."""
    try:
        yield
    except QueryInvalid as error:
        raise InvalidRequest(str(error)) from error
    except SourceMissing as error:
        raise NotFound(str(error)) from error
    except IndexerError as error:
        raise StorageFailed(str(error)) from error

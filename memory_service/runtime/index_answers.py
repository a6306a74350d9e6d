"""Status of an index, reports of its syncs and errors of its library, as the API answers them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from indexer import FileFailure as IndexFailure
from indexer import (
    Fingerprint,
    IndexerError,
    IndexStatus,
    QueryInvalid,
    RebuildState,
    SourceMissing,
    SyncPlan,
    SyncReport,
    WatchState,
)
from indexer.language import FAILURES
from memory_service import schemas
from memory_service.config import Settings
from memory_service.errors import InvalidRequest, NotFound, StorageFailed


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

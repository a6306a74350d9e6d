"""Reports of the changes of one workspace, each indexed when it is seen: `reindex --watch`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from indexer import IndexerError, SyncPlan, SyncReport
from memory_service.runtime import index_answers
from memory_service.schemas.status import ReindexReport

if TYPE_CHECKING:
    from indexer import Index


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncedChange:
    """Sync of one or several changes.

    Attributes:
        paths: The files that looked changed.
        failure: Why it could not be; then there is no report.
    """

    paths: tuple[str, ...]
    report: ReindexReport
    failure: str = ""


def follow(
    index: Index,
    on_followed: Callable[[SyncedChange], None],
    stop: threading.Event,
    *,
    only: Sequence[str] = (),
) -> None:
    """Index what changes, until told to stop.

    Args:
        index: What to keep up to date.
        on_followed: Told of every change after it was indexed.
        stop: Ends it.
        only: Files or folders to look at; all, unless given.
    """
    text = ""

    def index_changes(paths: Collection[str]) -> float:
        nonlocal text
        started_time = time.monotonic()
        texts, failure = tuple[str, ...](), ""
        named_paths = [path for path in paths if _is_within(path, only)]
        if paths and not named_paths:
            return 0.0
        try:
            plan = index.plan(named_paths or only, missing_ok=True)
            looked_seconds, texts = time.monotonic() - started_time, _to_do(plan)
            report = index.sync(texts, missing_ok=True, cancelled=stop.is_set) if texts else SyncReport()
        except IndexerError as error:
            looked_seconds, failure, report = time.monotonic() - started_time, str(error), SyncReport()
        if (texts and not failure and _did(report)) or failure != text:
            on_followed(SyncedChange(paths=texts, report=index_answers.reindex_report(report), failure=failure))
        text = failure
        return looked_seconds

    index.source.watch(index_changes, stop)


def _to_do(plan: SyncPlan) -> tuple[str, ...]:
    return (*(file.path for file in (*plan.added, *plan.suspects, *plan.unsure)), *plan.removed)


def _did(report: SyncReport) -> bool:
    return bool(report.added or report.changed or report.removed or report.failed)


def _is_within(path: str, only: Sequence[str]) -> bool:
    return not only or any(path == text or path.startswith(text.rstrip("/") + "/") for text in only)

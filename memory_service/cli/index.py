"""Command of the index: reindex, once or with --watch."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING

import click

from memory_service.cli.options import Place, with_place
from memory_service.cli.output import emit_json, progress_bar, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_service.schemas.status import ReindexReport
    from memory_service.service import MemoryService, SyncedChange


_NAMED_PATHS = 3


def _keep_following(place: Place, service: MemoryService, paths: Sequence[str]) -> None:
    """Print each change as it is indexed; returns when the person ends it."""

    def show(followed: SyncedChange) -> None:
        if place.as_json:
            click.echo(_json_line(followed))
        else:
            _print_line(followed)

    if not place.as_json:
        click.secho("watching for changes; Ctrl-C ends it", dim=True, err=True)
    try:
        service.follow(place.workspace, show, threading.Event(), paths)
    except KeyboardInterrupt:
        # Asked for, and what was indexed is stored.
        return


def _json_line(followed: SyncedChange) -> str:
    fields = {"paths": followed.paths, **followed.report.model_dump(mode="json")} | (
        {"error": followed.failure} if followed.failure else {}
    )
    return json.dumps(fields, ensure_ascii=False)


def _print_line(followed: SyncedChange) -> None:
    if followed.failure:
        click.secho(f"failed: {followed.failure}", fg="red", err=True)
        return
    report = followed.report
    shown_text = ", ".join(followed.paths[:_NAMED_PATHS])
    more = len(followed.paths) - _NAMED_PATHS
    named_text = f"{shown_text} and {more} more" if more > 0 else shown_text
    if not followed.paths:
        click.secho("watching again", dim=True, err=True)
        return
    counts = f"+{report.added} ~{report.changed} -{report.removed}"
    click.echo(f"{named_text}  {counts}  {report.seconds * 1000:.0f} ms")
    for failure in report.failed:
        click.secho(f"failed: {failure.path}: {failure.reason}", fg="red", err=True)
    warn(report.degraded)


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--full", is_flag=True, help="Make the index anew, beside the one in use.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--watch", is_flag=True, help="Stay, and index what changes; a line for each. Ctrl-C ends it.")
@with_place
def reindex(place: Place, paths: tuple[str, ...], full: bool, dry_run: bool, watch: bool) -> None:
    """Bring the index up to date with the Markdown files. PATHS are files or folders; all, unless given.

    Only what changed is read, and only new passages are embedded. Stop it at any time: the next run goes
    on from there. After a change of model the index is made anew; until that is done, the old one answers.
    """
    if watch and dry_run:
        raise click.UsageError("--watch and --dry-run exclude each other.")
    with place.service() as service:
        if dry_run:
            report = service.plan(place.workspace, paths)
        else:
            with progress_bar() as show:
                report = service.reindex(place.workspace, paths, full=full, on_progress=show)
        _show(place, report, dry_run=dry_run, one_line=watch)
        if watch:
            _keep_following(place, service, paths)
    if report.failed and not watch:
        sys.exit(1)


def _show(place: Place, report: ReindexReport, *, dry_run: bool, one_line: bool) -> None:
    if place.as_json and one_line:
        click.echo(report.model_dump_json())
    elif place.as_json:
        emit_json(report)
    else:
        _print_report(report, dry_run)
    warn(report.degraded)


def _print_report(report: ReindexReport, dry_run: bool) -> None:
    counts = ", ".join(f"{getattr(report, name)} {name}" for name in ("added", "changed", "removed", "unchanged"))
    kind = "would be: " if dry_run else ""
    work = "" if dry_run else f"; {report.embedded} passages embedded in {report.seconds:.1f} s"
    click.echo(f"{kind}{counts}, {len(report.failed)} failed{work}")
    for failure in report.failed:
        click.secho(f"failed: {failure.path}: {failure.reason}", fg="red", err=True)

"""The commands about the index: reindex, status, doctor."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from memory_service.cli.following import keep_following
from memory_service.cli.options import Place, placed
from memory_service.cli.output import columns, emit_json, warn

if TYPE_CHECKING:
    from indexer.types import SyncProgress
    from memory_service.schemas import Rebuild, ReindexReport, Status


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--full", is_flag=True, help="Make the index anew, beside the one in use.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--watch", is_flag=True, help="Stay, and index what changes; a line for each. Ctrl-C ends it.")
@placed
def reindex(place: Place, paths: tuple[str, ...], full: bool, dry_run: bool, watch: bool) -> None:
    """Bring the index up to date with the Markdown files. PATHS are files or folders; all, unless given.

    Only what changed is read, and only new passages are embedded. Stop it at any time: the next run goes
    on from there. After a change of model the index is made anew; until that is done, the old one answers.
    """
    from memory_service import answers

    if watch and dry_run:
        raise click.UsageError("--watch and --dry-run exclude each other.")
    with place.service() as service:
        if dry_run:
            plan = service.plan(place.workspace, paths)
            report = answers.planned_report(plan)
        else:
            with _progress_bar() as show:
                report = answers.reindex_report(service.reindex(place.workspace, paths, full=full, on_progress=show))
        _show(place, report, dry_run=dry_run, one_line=watch)
        if watch:
            keep_following(place, service, paths)
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
    told = "would be: " if dry_run else ""
    work = "" if dry_run else f"; {report.embedded} passages embedded in {report.seconds:.1f} s"
    click.echo(f"{told}{counts}, {len(report.failed)} failed{work}")
    for failure in report.failed:
        click.secho(f"failed: {failure.path}: {failure.reason}", fg="red", err=True)


@contextmanager
def _progress_bar() -> Iterator[Callable[[SyncProgress], None] | None]:
    """A bar on stderr with rate and time left, where a person is looking."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    shown = [
        TextColumn("indexing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("files  {task.fields[rate]} passages/s  time left"),
        # On a narrow terminal the path gives way, not the time.
        TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
        TextColumn("{task.fields[path]}", style="dim"),
    ]
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("indexing", total=None, rate=0, path="")

        def show(progress: SyncProgress) -> None:
            elapsed = bar.tasks[task].elapsed or 0
            rate = round(progress.passages / elapsed) if elapsed > 0.1 else 0
            bar.update(task, total=progress.total, completed=progress.done, rate=rate, path=progress.path)

        yield show


@click.command()
@placed
def status(place: Place) -> None:
    """Show how the workspace stands.

    Counts, coverage, changed files, sizes, model.
    """
    from memory_service import answers

    with place.service() as service:
        problems = service.engine_problems(place.workspace)
        watched = service.watch_state(place.workspace)
        found = answers.status(
            place.workspace, service.status(place.workspace), service.settings, degraded=problems, watched=watched
        )
        folder = service.settings.home / place.workspace
    if place.as_json:
        emit_json(found)
        return
    rows = [
        ("workspace", f"{found.workspace}  ({folder})"),
        ("files", f"{found.files} indexed, {found.dirty} changed since, {len(found.failed)} failed"),
        (
            "passages",
            f"{found.passages}, {found.coverage:.0%} with a vector"
            if found.current_fingerprint.model
            else f"{found.passages}, no vectors",
        ),
        ("index", _index_row(found)),
        *([("rebuild", _rebuild_row(found.rebuild))] if found.rebuild else []),
        ("model", found.embedding_model),
        ("timezone", found.timezone),
        ("watching", f"{watched.mode}{f'; {watched.reason}' if watched.reason else ''}"),
    ]
    for line in columns(rows):
        click.echo(line)
    for failure in found.failed:
        click.secho(f"failed: {failure.path}: {failure.reason}", fg="red", err=True)
    warn(found.degraded)


def _index_row(found: Status) -> str:
    if found.updated_at:
        return f"{found.index_bytes / 1e6:.1f} MB, updated {found.updated_at:%Y-%m-%d %H:%M} UTC"
    return "not readable by this version" if found.fingerprint else "none yet; run `memory-service reindex`"


def _rebuild_row(rebuild: Rebuild) -> str:
    state = "running" if rebuild.state == "running" else "interrupted"
    size = f"{rebuild.bytes / 1e6:.1f} MB"
    return f"{state} at {rebuild.share:.0%}; {rebuild.passages} passages in {rebuild.file} ({size})"


@click.command()
@placed
def doctor(place: Place) -> None:
    """Check every part by using it.

    Each line says ok, or what is wrong and what mends it.
    """
    import json

    from memory_service import schemas

    findings = []
    with place.service() as service:
        for finding in service.examine(place.workspace):
            findings.append(
                schemas.Check(name=finding.name, ok=finding.ok, detail=finding.detail, remedy=finding.remedy)
            )
            if not place.as_json:
                mark = click.style("ok   ", fg="green") if finding.ok else click.style("WRONG", fg="red")
                click.echo(f"{mark} {finding.name}: {finding.detail}{f'. {finding.remedy}' if finding.remedy else ''}")
    if place.as_json:
        click.echo(json.dumps({"checks": [finding.model_dump() for finding in findings]}, ensure_ascii=False, indent=2))
    if not all(finding.ok for finding in findings):
        sys.exit(1)

"""Commands of the index: reindex (once or with --watch), status, doctor."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_service.cli.columns import columns
from memory_service.cli.options import Place, examples, with_place
from memory_service.cli.output import emit_json, emit_value, progress_bar, warn
from memory_service.cli.warm import found_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_service.schemas.status import Check, Operation, Rebuild, ReindexReport, Status, Watching
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


def _status_place(place: Place, service: MemoryService) -> Place:
    """Where status looks: at the project that it is called in, if that has a workspace and no other one was named."""
    from memory_service.hosts.projects import project_of

    if place.workspace_named:
        return place
    own = project_of(os.getcwd()).workspace_in(service.settings.home)
    return dataclasses.replace(place, workspace=own) if service.has_workspace(own) else place


@click.command(epilog=examples("operations", "operations --cancel op-0123456789abcdef"))
@click.option("--cancel", metavar="ID", help="Stop this one; what it has written stays.")
@with_place
def operations(place: Place, cancel: str | None) -> None:
    """List or cancel what runs in the background.

    These are the reindexes of the last day, of every server on the home.
    """
    from memory_service.schemas import OperationList

    with place.service() as service:
        if cancel:
            listing = OperationList(operations=[service.cancel(place.workspace, cancel)])
        else:
            listing = OperationList(operations=service.operations(place.workspace))
    if place.as_json:
        emit_json(listing)
        return
    if not listing.operations:
        click.echo(f"no operations in {place}", err=True)
    for line in columns((operation.operation_id, _operation_row(operation)) for operation in listing.operations):
        click.echo(line)


def _operation_row(operation: Operation) -> str:
    left = f", {operation.eta_seconds:.0f} s left" if operation.is_open and operation.eta_seconds is not None else ""
    began = f"{operation.created_at:%Y-%m-%d %H:%M} UTC" if operation.created_at else ""
    shown_text = f"{operation.state}  {operation.done} of {operation.total} passages{left}"
    return "  ".join(filter(None, (shown_text, began, operation.error)))


@click.command(epilog=examples("status", "status --follow"))
@click.option("--follow", is_flag=True, help="Stay, and print a line for each change. Ctrl-C ends it.")
@with_place
def status(place: Place, follow: bool) -> None:
    """Show how the workspace stands.

    Counts, coverage, changed files, sizes, model. In the folder of a coding agent's project it is the
    project's own workspace, unless --workspace names another.
    """
    with place.service() as service:
        place = _status_place(place, service)
        if follow:
            _print_events(place, service)
            return
        status, other_joins = service.status(place.workspace), service.other_homes()
        stored_in = os.path.join(service.storage.place, place.workspace)
    server = found_server(service.settings.home, place.workspace)
    if place.as_json:
        emit_value({**status.model_dump(mode="json"), "server": server and server._asdict()})
        return
    rows = [
        ("workspace", f"{status.workspace}  ({stored_in})"),
        ("files", f"{status.files} indexed, {status.dirty} changed since, {len(status.failed)} failed"),
        (
            "passages",
            f"{status.passages}, {status.coverage:.0%} with a vector"
            if status.current_fingerprint.model
            else f"{status.passages}, no vectors",
        ),
        ("index", _index_row(status)),
        *([("syncing", f"{status.sync_done} of {status.sync_total} passages")] if status.syncing else []),
        *([("rebuild", _rebuild_row(status.rebuild))] if status.rebuild else []),
        ("model", status.embedding_model + (f": {status.embedding_choice}" if status.embedding_choice else "")),
        ("timezone", status.timezone),
        ("watching", _watching_row(status.watching)),
        ("server", str(server or "none on this home")),
        *((f"{reader} failed", f"{count} times") for reader, count in status.reader_failures.items()),
    ]
    for line in columns(rows):
        click.echo(line)
    for failure in status.failed:
        click.secho(f"failed: {failure.path}: {failure.reason}", fg="red", err=True)
    for other_join in other_joins:
        click.secho(f"another home: {other_join}", fg="yellow", err=True)
    warn(status.degraded)


def _print_events(place: Place, service: MemoryService) -> None:
    """Print what changes in the workspace, until the person ends it."""
    try:
        with service.workspace_events(place.workspace) as events:
            for event in events:
                # A person who follows reads each line as it comes.
                if place.as_json:
                    click.echo(event.model_copy(update={"fields": dict(event.fields)}).model_dump_json())
                else:
                    fields = {"session": event.session_id or None, **event.fields}
                    words = " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
                    click.echo(f"{event.at:%H:%M:%S}  {event.kind}  {words}".rstrip())
    except KeyboardInterrupt:
        return


def _index_row(found: Status) -> str:
    if found.updated_at:
        return f"{found.index_bytes / 1e6:.1f} MB, updated {found.updated_at:%Y-%m-%d %H:%M} UTC"
    if found.fingerprint and found.fingerprint.schema_version != found.current_fingerprint.schema_version:
        return "not readable by this version"
    return "none yet; run `memory-service reindex`"


def _watching_row(watching: Watching | None) -> str:
    return "; ".join(filter(None, (watching.mode, watching.reason))) if watching else ""


def _rebuild_row(rebuild: Rebuild) -> str:
    state = "running" if rebuild.state == "running" else "interrupted"
    size = f"{rebuild.bytes / 1e6:.1f} MB"
    return f"{state} at {rebuild.share:.0%}; {rebuild.passages} passages in {rebuild.file} ({size})"


@click.command()
@click.option("--measure", is_flag=True, help="Measure the index too: times of searches, recall against the exact.")
@with_place
def doctor(place: Place, measure: bool) -> None:
    """Check every part by using it.

    Each line says ok, or what is wrong and what mends it. Measured is with words of the workspace's own passages; a
    model of a provider is asked too, which may cost money. Of a search's time the line `speed` tells the parts: view
    (see what has changed), words (look the question's up), embed (its vector), rank, fetch (read the passages), rerank.
    """
    checks = []
    with place.service() as service:
        own = service.examine(place.workspace, measures=measure)
        beside = _server_checks(service.settings.home, place.workspace)
        for check in chain(own, _home_checks(service), beside):
            checks.append(check)
            if not place.as_json:
                mark = click.style("ok   ", fg="green") if check.ok else click.style("WRONG", fg="red")
                click.echo(f"{mark} {check.name}: {check.detail}{f'. {check.remedy}' if check.remedy else ''}")
    if place.as_json:
        emit_value({"checks": checks})
    if not all(check.ok for check in checks):
        sys.exit(1)


def _home_checks(service: MemoryService) -> Iterator[Check]:
    """Other homes that have what this one lacks: most people mean to have one."""
    from memory_service.schemas.status import Check

    for other_join in service.other_homes():
        detail, _, remedy = str(other_join).partition(". ")
        yield Check(name="another home", ok=True, detail=detail, remedy=remedy)


def _server_checks(home: Path, workspace: str) -> Iterator[Check]:
    """The server that runs beside the command; one that commands cannot use costs their speed alone."""
    from memory_service._version import __version__
    from memory_service.schemas.status import Check

    if server := found_server(home, workspace):
        remedy = "" if server.version == __version__ else "Restart it with this version."
        yield Check(name="server", ok=not remedy, detail=str(server), remedy=remedy)

"""Commands that say how a workspace stands: status, operations, doctor; and the settings."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_service.cli.columns import columns
from memory_service.cli.options import Place, examples, with_place
from memory_service.cli.output import emit_json, emit_value, warn
from memory_service.cli.warm import found_server

if TYPE_CHECKING:
    from memory_service.schemas.status import Check, Operation, Rebuild, Status, Watching
    from memory_service.service import MemoryService


def _status_place(place: Place, service: MemoryService) -> Place:
    """Where status looks: at the project that it is called in, if that has a workspace and no other one was named."""
    from memory_service.hosts.projects import project_of

    if place.workspace_named:
        return place
    own = project_of(os.getcwd()).workspace_for(service.settings)
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


@click.command()
@with_place
def settings(place: Place) -> None:
    """List the settings, each with where it is from; no secrets."""
    with place.service() as service:
        listing = service.setting_values()
    if place.as_json:
        emit_json(listing)
        return
    for line in columns(
        (setting.name, f"{setting.value or '-'}  ({' '.join(filter(None, (setting.origin, setting.place)))})")
        for setting in listing.settings
    ):
        click.echo(line)


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

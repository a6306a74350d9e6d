"""Commands of the agents that use the memory: connect, disconnect, hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli.options import Place, examples, with_place
from memory_service.cli.output import emit_json, emit_value, warn
from memory_service.hosts import HOSTS, HostName

if TYPE_CHECKING:
    from memory_service.hosts.connect import HostConnection, HostTarget


def _with_target(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says whose settings are meant."""
    command = click.option("--dry-run", is_flag=True, help="Show the changes as a diff, and write nothing.")(command)
    command = click.option(
        "--project/--user", default=False, help="The settings of the project here, or your own.  [default: --user]"
    )(command)
    command = click.argument("host", type=click.Choice(HOSTS), metavar="HOST")(command)
    return with_place(command, workspace_shown="one of each project")


@click.command(
    epilog=examples("connect claude-code", "connect cursor --project", "connect codex --home ~/notes --dry-run")
)
@click.option(
    "--url",
    envvar="MEMORY_SERVICE_URL",
    default="",
    help="Address of the server that plugins call (opencode, openclaw).",
)
@_with_target
def connect(place: Place, host: HostName, project: bool, dry_run: bool, url: str) -> None:
    """Connect a coding agent, in its own settings.

    HOST is claude-code, codex, cursor, opencode or openclaw. It gets hooks, tools and a skill: then it
    recalls by itself, and what is said in it is stored. Your settings keep every other byte, comments
    too, and a second time changes nothing.

    A file that is a link, read-only or not valid is left alone: then nothing is written, and you are
    told which.

    Memories are kept in ~/.memory-service, apart for each project; --home and --workspace choose
    otherwise.
    """
    from memory_service.cli.warm import checked_address
    from memory_service.hosts.connect import connect as run

    if url:
        checked_address(url, "The address of the server")
    _print(place, run(host, _target(place, project, url), dry_run=dry_run))


@click.command(epilog=examples("disconnect claude-code", "disconnect cursor --project"))
@_with_target
def disconnect(place: Place, host: HostName, project: bool, dry_run: bool) -> None:
    """Take the memory out of a coding agent's settings.

    HOST is claude-code, codex, cursor, opencode or openclaw. All else in its settings stays as it is, and so do the
    memories.
    """
    from memory_service.hosts.connect import disconnect as run

    _print(place, run(host, _target(place, project), dry_run=dry_run))


@click.command()
@with_place
def hosts(place: Place) -> None:
    """List the coding agents that are connected.

    Behind them stand the last faults of their hooks.
    """
    with place.service() as service:
        found_hosts = service.connected_hosts()
    if place.as_json:
        emit_json(found_hosts)
        return
    if not found_hosts.hosts:
        click.echo("no coding agent is connected on this machine", err=True)
    for host in found_hosts.hosts:
        click.echo(f"{host.host}  ({host.project or 'user'})")
        for file in host.files:
            click.echo(f"  {file}")
    for line in found_hosts.log:
        click.echo(line)
    warn(found_hosts.degraded)


def _target(place: Place, project: bool, url: str = "") -> HostTarget:
    from memory_service.hosts.connect import HostTarget

    return HostTarget(
        scope="project" if project else "user",
        folder=Path.cwd(),
        home=place.home,
        workspace="" if place.workspace == "default" else place.workspace,
        url=url,
    )


def _print(place: Place, done: HostConnection) -> None:
    if place.as_json:
        emit_value(done)
    elif done.dry_run:
        diffs = "".join(file.diff for file in done.files)
        click.echo(diffs or "nothing to change", nl=not diffs)
    else:
        _print_work(done)
    for note in () if place.as_json else done.notes:
        click.echo(f"note: {note}", err=True)


def _print_work(done: HostConnection) -> None:
    """Print the files, each with what was done to it, and what a person may want to know then."""
    has_changed = any(file.action != "unchanged" for file in done.files)
    # A second connection and a second way back are no faults.
    words = ("connected", "already connected") if done.connected else ("disconnected", "was not connected")
    click.echo(f"{words[not has_changed]}  {done.host}  ({done.scope})")
    for file in done.files:
        click.echo(f"  {file.action:<9}  {file.path}{f'  ({file.note})' if file.note else ''}")
    if done.connected:
        where = " --project" if done.scope == "project" else ""
        click.echo(f"  memories   {done.memories}")
        click.echo(f"  see it     {done.see}")
        click.echo(f"  undo       memory-service disconnect {done.host}{where}")

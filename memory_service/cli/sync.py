"""Command `sync`: a folder of one's own in step with a workspace of a server."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_service.cli.options import Place, examples, named_url, with_place, with_server
from memory_service.cli.output import printable

if TYPE_CHECKING:
    from memory_service.errors import MemoryServiceError
    from memory_service.sync import SyncReport, WorkspaceSync

# Words for steps that would be taken, and for those that were.
_WORDS = {
    "upload": ("send", "sent"),
    "create": ("send new", "sent new"),
    "download": ("take", "taken"),
    "restore": ("take back", "taken back"),
    "merge": ("merge", "merged"),
    "conflict": ("conflict", "conflict"),
    "delete_here": ("remove here", "removed here"),
    "delete_there": ("erase there", "erased there"),
}
_POLL_SECONDS = 5.0
# From so many files on, a terminal shows how far the work is.
_SHOWN_FROM = 20
_MOST_NAMED = 10


@click.command(
    epilog=examples(
        "sync ~/notes/team --workspace team --url https://memory.example.com",
        "sync ~/notes/team --workspace team --watch",
        "sync ~/notes/team --workspace team --dry-run",
    )
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@with_server
@click.option("--watch", is_flag=True, help="Stay, and sync what changes on either side. Ctrl-C ends it.")
@click.option("--delete", "deletes", is_flag=True, help="Erase on the server what is missing in FOLDER.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@with_place
def sync(
    place: Place, folder: Path, url: str | None, api_key: str | None, watch: bool, deletes: bool, dry_run: bool
) -> None:
    """Sync a folder of your own with a workspace, anywhere.

    FOLDER gets MEMORY.md, USER.md and memory/ of the workspace. Edit them with any editor, and sync again: what
    changed on one side goes to the other, what changed on both is merged. Where that cannot be, the server's text
    stays, and yours lies beside it as NAME.conflict.md; the exit code is 1 then, and for files that failed.

    A file that is missing in FOLDER comes back, unless --delete erases it on the server.
    """
    from memory_service.sync import WorkspaceSync

    if watch and dry_run:
        raise click.UsageError("--watch and --dry-run exclude each other.")
    with WorkspaceSync(
        folder, url=_address(place, url), workspace=place.workspace, api_key=api_key or None, deletes=deletes
    ) as work:
        if dry_run:
            report = work.plan()
        else:
            with _progress() as show:
                report = work.run(show)
        _show(place, report, one_line=watch)
        if watch:
            _watch(place, work, folder)
        elif not dry_run and not report.is_clean:
            sys.exit(1)


def _address(place: Place, url: str | None) -> str:
    """The address of the server: the one that was named, else that of the home.

    Raises:
        InvalidRequest: There is none.
    """
    from memory_service.errors import InvalidRequest
    from memory_service.home import home_of, server_of

    if address := named_url(place, url):
        return address
    home = home_of(place.home)
    server = server_of(home)
    if server is None or not server.works_for(home):
        raise InvalidRequest(
            f"No server runs on {home}. Start one with `memory-service serve`, or name one with --url."
        )
    return server.url


@contextmanager
def _progress() -> Iterator[Callable[[int, int], object]]:
    """A bar on a terminal, where there is much to do."""
    if not sys.stderr.isatty():
        yield lambda done_number, total: None
        return

    def show(done: int, total: int) -> None:
        if total >= _SHOWN_FROM:
            click.echo(f"\rsyncing {done:,} of {total:,} files", nl=done == total, err=True)

    yield show


def _watch(place: Place, work: WorkspaceSync, folder: Path) -> None:
    """Sync what changes, with a line for each; returns when the person ends it."""
    from memory_service.sync import keep_in_sync

    failures = [""]

    def tell(report: SyncReport) -> None:
        failures.append("")
        if report.steps or report.conflicts:
            _show(place, report, one_line=True)

    def fail(error: MemoryServiceError) -> None:
        if str(error) != failures[-1]:
            click.secho(f"failed, and tried again: {error}", fg="red", err=True)
        failures.append(str(error))

    if not place.as_json:
        click.secho("watching both sides; Ctrl-C ends it", dim=True, err=True)
    try:
        keep_in_sync(work, folder, poll_seconds=_POLL_SECONDS, on_report=tell, on_failure=fail, stop=threading.Event())
    except KeyboardInterrupt:
        # Asked for, and what was done is noted.
        return


def _show(place: Place, report: SyncReport, *, one_line: bool) -> None:
    if place.as_json:
        click.echo(json.dumps(_fields(report), ensure_ascii=False, indent=None if one_line else 2))
        return
    at = 0 if report.dry_run else 1
    copies = {copy.path: copy.copy for copy in report.conflicts}
    for step in report.steps:
        beside = f"  yours: {copies[step.path]}" if step.path in copies else ""
        click.echo(printable(f"{_WORDS[step.action][at]:<12}  {step.path}{beside}"))
    for trouble in report.left_out[:_MOST_NAMED]:
        word, colour = ("failed", "red") if trouble.is_failure else ("left out", "yellow")
        click.secho(printable(f"{word}: {trouble.reason}"), fg=colour, err=True)
    if (more := len(report.left_out) - _MOST_NAMED) > 0:
        click.secho(f"and {more} more, which --json names", fg="yellow", err=True)
    if report.unresolved and not one_line:
        names = ", ".join(report.unresolved[:_MOST_NAMED])
        click.secho(printable(f"still to be looked through: {names}. Remove them then."), fg="yellow", err=True)
    click.secho(_summary(report), dim=True, err=True)


def _summary(report: SyncReport) -> str:
    at = 0 if report.dry_run else 1
    counts = Counter(_WORDS[step.action][at] for step in report.steps)
    parts = [f"{count:,} {word}" for word, count in counts.items()] + [f"{report.unchanged:,} unchanged"]
    return f"{'would be: ' if report.dry_run else ''}{', '.join(parts)}; {report.seconds:.1f} s"


def _fields(report: SyncReport) -> dict[str, object]:
    counts = Counter[str](step.action for step in report.steps)
    return {
        "workspace": report.workspace,
        "url": report.url,
        "folder": report.folder,
        "dry_run": report.dry_run,
        "counts": {action: counts[action] for action in _WORDS} | {"unchanged": report.unchanged},
        "steps": [{"path": step.path, "action": step.action} for step in report.steps],
        "conflicts": [{"path": copy.path, "copy": copy.copy} for copy in report.conflicts],
        "unresolved": report.unresolved,
        "left_out": [
            {"path": trouble.path, "reason": trouble.reason, "failed": trouble.is_failure}
            for trouble in report.left_out
        ],
        "seconds": report.seconds,
    }

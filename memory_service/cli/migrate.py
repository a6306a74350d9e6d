"""The command that brings the tables of a database to this version, and moves a home between files and a database."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

import click

from memory_service.cli.options import Place, examples, with_place
from memory_service.cli.output import emit_value, printable, size, table

if TYPE_CHECKING:
    from memory_service.config import Settings


@click.command(
    epilog=examples(
        "migrate",
        "migrate --from ~/.memory-service --to postgresql://memory@db.example.com/memory",
        "migrate --from postgresql://memory@db.example.com/memory --to ~/backup --json",
    )
)
@click.option("--from", "source", default="", help="Move a home that is here: a folder, or an address postgresql://…")
@click.option("--to", "target", default="", help="Move it there, where nothing is yet.")
@click.option("--rewrite", is_flag=True, help="Take what was erased out of the database's files now.")
@with_place
def migrate(place: Place, source: str, target: str, *, rewrite: bool) -> None:
    """Bring the database up to date, or move a home.

    The database is the one that database_url names. The role needs the rights to make and change tables; servers of the
    version before go on meanwhile. One that is up to date stays as it is.

    With --rewrite, the tables that hold what is remembered are rewritten, so that nothing of what was erased is left in
    their files; each is locked meanwhile. Without it, servers do that within a day.

    With --from or --to, everything that is kept is copied from one place to the other, read again there and compared;
    the one that is not named is the home at hand. Stop the servers first. The source is only read. A move that was
    broken off goes on with the same command; one that is done is only compared. The exit code is 1 if the two differ.
    """
    from memory_service.config import load_settings
    from memory_service.home import home_of

    settings = load_settings(home=home_of(place.home))
    if source or target:
        _move(place, settings, source, target)
        return
    from memory_service.service import migrate_storage, rewrite_storage

    if rewrite:
        rewritten = rewrite_storage(settings)
        if place.as_json:
            emit_value({"database": rewritten.database, "tables": rewritten.steps})
        else:
            click.echo(f"rewritten in {rewritten.database}: {', '.join(rewritten.steps)}")
        return
    migration = migrate_storage(settings)
    if place.as_json:
        emit_value(migration._asdict())
        return
    for step in migration.steps:
        click.echo(step)
    summary = f"{len(migration.steps)} steps applied" if migration.steps else "up to date, nothing was done"
    click.echo(f"the tables of {migration.database}: {summary}", err=True)


def _move(place: Place, settings: Settings, source: str, target: str) -> None:
    """Move a home, and print what was moved."""
    from memory_service.service import move_storage

    move = move_storage(settings, source, target, progress=_show_progress)
    if place.as_json:
        emit_value({"complete": move.is_complete, **dataclasses.asdict(move)})
    else:
        rows = [
            (
                part.workspace or "(the home)",
                part.part.value,
                f"{part.items:,}",
                size(part.size_bytes),
                f"{part.copied_items:,}",
                part.sha256[:12],
                "equal" if part.is_equal else "DIFFERS",
            )
            for part in move.parts
        ]
        for line in table(("workspace", "part", "items", "size", "copied", "sha256", "target"), rows, right=(2, 3, 4)):
            click.echo(line)
        for change in move.changes:
            click.echo(f"changed meanwhile: {printable(change)}", err=True)
        for item in move.remains:
            click.echo(f"stays there: {printable(item)}", err=True)
        done = "was moved before and is equal" if move.was_finished else "is moved, and equal"
        click.echo(
            f"{move.source} {done}: {move.target}"
            if move.is_complete
            else f"{move.source} is not moved: {move.target} is not equal. Keep others away from both, and try again.",
            err=True,
        )
    if not move.is_complete:
        sys.exit(1)


def _show_progress(workspace: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        ending = "" if done + 1 < total else "\n"
        click.echo(f"\r{workspace or 'the home'}: {done + 1:,} of {total:,}{ending}", nl=False, err=True)

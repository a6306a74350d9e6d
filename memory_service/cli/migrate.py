"""The command that brings the tables of a database to this version."""

from __future__ import annotations

import click

from memory_service.cli.options import Place, examples, with_place
from memory_service.cli.output import emit_value


@click.command(epilog=examples("migrate", "migrate --json"))
@with_place
def migrate(place: Place) -> None:
    """Bring the tables of the database to this version.

    The database is the one that database_url names. The role needs the rights to make and change tables; servers of the
    version before go on meanwhile. One that is up to date stays as it is.
    """
    from memory_service.config import load_settings
    from memory_service.home import home_of
    from memory_service.service import migrate_storage

    migration = migrate_storage(load_settings(home=home_of(place.home)))
    if place.as_json:
        emit_value(migration._asdict())
        return
    for step in migration.steps:
        click.echo(step)
    summary = f"{len(migration.steps)} steps applied" if migration.steps else "up to date, nothing was done"
    click.echo(f"the tables of {migration.database}: {summary}", err=True)

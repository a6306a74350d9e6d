"""Command of facts: those whose value has changed, each with all its values."""

from __future__ import annotations

import click

from memory_service.cli.options import Place, examples, with_place
from memory_service.cli.output import emit_json, indent_lines, one_line

_SHOWN_CELLS = 200


@click.command(epilog=examples("facts", "facts --limit 5 --json"))
@click.option("--limit", "-n", type=click.IntRange(1, 500), default=50, show_default=True, help="Most facts.")
@with_place
def facts(place: Place, limit: int) -> None:
    """List facts that have changed, each with its values.

    Two things that are taken for one are told apart by a line in a file: Not the same: "WORDS" and "WORDS".
    """
    with place.memory(embeds=False, waits=True) as service:
        listing = service.changed_facts(place.workspace, limit=limit)
    if place.as_json:
        emit_json(listing)
        return
    if not listing.facts:
        click.echo(f"no facts that changed in {place}", err=True)
    for fact in listing.facts:
        click.echo(click.style(fact.about, fg="cyan"))
        for value in fact.values:
            mark = "*" if value.current else " "
            day = f"{value.date}  " if value.date else ""
            click.echo(indent_lines(f"{mark} {day}{one_line(value.text, _SHOWN_CELLS)}  {value.citation}"))

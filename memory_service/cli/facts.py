"""Commands of facts: those whose value has changed, each with all its values, and statements that are told apart."""

from __future__ import annotations

import click

from memory_service.cli.options import Place, examples, with_place
from memory_service.cli.output import emit_json, emit_memory, indent_lines, one_line

_SHOWN_CELLS = 200


@click.command(epilog=examples("facts", "facts --limit 5 --json"))
@click.option("--limit", "-n", type=click.IntRange(1, 500), default=50, show_default=True, help="Most facts.")
@with_place
def facts(place: Place, limit: int) -> None:
    """List facts that have changed, each with its values.

    Two things that are taken for one are told apart by `distinguish`.
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


@click.command(epilog=examples('distinguish "Ana lives in Lisbon" "Ana moved to Porto"'))
@click.argument("first")
@click.argument("second")
@with_place
def distinguish(place: Place, first: str, second: str) -> None:
    """Say that two statements are not about the same thing.

    FIRST and SECOND are words of the one and of the other, as `facts` prints them. From then on none replaces the
    other: today's file has a line that says so, Not the same: "FIRST" and "SECOND", and whoever removes it takes it
    back.
    """
    with place.memory() as service:
        memory = service.distinguish(place.workspace, first, second)
    emit_memory(memory, "distinguished", as_json=place.as_json)

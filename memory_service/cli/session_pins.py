"""The commands that find and keep what was said in a session: search, pin, pins, unpin."""

from __future__ import annotations

import shutil

import click

from memory_service.cli.options import Place, examples, placed
from memory_service.cli.output import emit_json, warn


@click.command(
    epilog=examples('sessions search support-42 "tax rate Vienna"', 'sessions search support-42 "改签 云南"')
)
@click.argument("session_id")
@click.argument("query")
@click.option("--limit", "-n", type=click.IntRange(1, 100), default=10, show_default=True, help="Most messages.")
@placed
def search(place: Place, session_id: str, query: str, limit: int) -> None:
    """Find what was said in one session. What was compacted is found as well; words decide.

    `memory-service search --source sessions` finds by meaning too, in all sessions that are indexed.
    """
    from memory_service import session_answers
    from memory_service.cli.session_output import found_lines

    with place.sessions() as sessions:
        found = sessions.search(session_id, query, limit=limit)
        first_shown = sessions.look(session_id).view().first_seq
    if place.as_json:
        emit_json(session_answers.found_messages(found))
    elif found.hits:
        click.echo("\n".join(found_lines(found.hits, first_shown)))
    else:
        click.echo("nothing found", err=True)
    warn(found.degraded)


@click.command(
    epilog=examples('sessions pin support-42 "Never deploy on Fridays."', "sessions pin support-42 --seq 17")
)
@click.argument("session_id")
@click.argument("text", required=False)
@click.option("--seq", type=click.IntRange(min=1), metavar="N", help="Pin the message of this number instead.")
@placed
def pin(place: Place, session_id: str, text: str | None, seq: int | None) -> None:
    """Keep TEXT or a message word for word in every view. No compaction takes it away."""
    if (text is None) == (seq is None):
        raise click.UsageError("Give a text or --seq, and not both.")
    from memory_service import session_answers

    with place.sessions() as sessions:
        kept = sessions.talks.pin(session_id, text=text, seq=seq)
    if place.as_json:
        emit_json(session_answers.pin(kept))
    else:
        click.echo(f"pinned  {kept.pin_id}")


@click.command(epilog=examples("sessions pins support-42"))
@click.argument("session_id")
@placed
def pins(place: Place, session_id: str) -> None:
    """List the pins of a session, oldest first."""
    from memory_service import session_answers
    from memory_service.cli.session_output import pin_lines

    with place.sessions() as sessions:
        kept = sessions.talks.pins(session_id)
    if place.as_json:
        emit_json(session_answers.pins(kept))
    elif kept:
        click.echo("\n".join(pin_lines(kept, shutil.get_terminal_size((100, 24)).columns)))
    else:
        click.echo("no pins", err=True)


@click.command(epilog=examples("sessions unpin support-42 p0a1b2c3d4e5"))
@click.argument("session_id")
@click.argument("pin_id")
@placed
def unpin(place: Place, session_id: str, pin_id: str) -> None:
    """Keep a pin no longer. PIN_ID is as `sessions pins` lists it."""
    from memory_service.session_schemas import RemovedPin

    with place.sessions() as sessions:
        sessions.talks.unpin(session_id, pin_id)
    if place.as_json:
        emit_json(RemovedPin(pin_id=pin_id, degraded=[]))
    else:
        click.echo(f"unpinned  {pin_id}")

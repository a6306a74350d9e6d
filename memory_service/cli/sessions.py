"""The group `sessions`, with the commands about whole sessions: list, create, trim, restore, delete.

The others are in the files beside it: `session_messages`, `session_work`, `session_pins`.
"""

from __future__ import annotations

import click

from memory_service.cli.options import Place, examples, placed
from memory_service.cli.output import emit_json, emit_value, warn
from memory_service.cli.session_messages import append, context, show
from memory_service.cli.session_pins import pin, pins, search, unpin
from memory_service.cli.session_work import compact, compactions, flush, undo
from memory_service.sessions.records import TRIM_KEEP_LAST

_LISTED = 50


@click.command(
    "list", epilog=examples("sessions list", "sessions list --limit 5", "sessions list --workspace shop --json")
)
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), help=f"Most sessions.  [default: {_LISTED}; all with --json]"
)
@placed
def list_sessions(place: Place, limit: int | None) -> None:
    """List the sessions, the last active first.

    TOKENS is what a model would see of the session now. PRESSURE says how full its window is: soft asks for a
    flush, hard for a compaction.
    """
    from memory_service.cli.session_output import row_of, session_table

    with place.service() as service:
        sessions, settings = service.sessions(place.workspace), service.settings
        listed = sessions.talks.listed()
        most = limit or (len(listed) if place.as_json else _LISTED)
        rows = [row_of(sessions, each) for each in listed[:most]]
    if place.as_json:
        emit_value({"sessions": rows, "total": len(listed)})
    elif rows:
        click.echo("\n".join(session_table(rows, settings)))
    else:
        click.echo("no sessions", err=True)
    if len(listed) > len(rows):
        click.echo(f"({len(rows)} of {len(listed)}; more with --limit)", err=True)
    warn(f"{row.session_id}: {row.problem}" for row in rows if row.problem)


@click.command(
    epilog=examples(
        "sessions create support-42 --model gpt-4o",
        "sessions create support-43 --context-window 32000 --preset openclaw",
    )
)
@click.argument("session_id", required=False)
@click.option("--model", help="The model that the agent uses; it tells the window.")
@click.option(
    "--context-window", type=click.IntRange(min=1), help="Tokens of that model, where its name does not tell."
)
@click.option("--preset", help="How it is compacted: default, openclaw, turns, ponybunny or opencode.")
@placed
def create(
    place: Place, session_id: str | None, model: str | None, context_window: int | None, preset: str | None
) -> None:
    """Begin a session. Without SESSION_ID it gets one.

    Appending to a session begins it as well; this is for one that has its own model, window or preset.
    """
    from memory_service import session_answers
    from memory_service.sessions.records import Json
    from memory_service.shortterm.options import preset_named

    settings: dict[str, Json] = {"compaction": {"preset": preset_named(preset).name}} if preset else {}
    with place.sessions(make=True) as sessions:
        made = sessions.talks.create(session_id, model=model, context_window=context_window, settings=settings)
    if place.as_json:
        emit_json(session_answers.session(made))
    else:
        click.echo(f"created  {made.session_id}  {made.window.tokens:,} tokens, preset {made.preset}")


@click.command(epilog=examples("sessions trim support-42", "sessions trim support-42 --keep 200"))
@click.argument("session_id")
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    default=TRIM_KEEP_LAST,
    show_default=True,
    metavar="N",
    help="So many of its last lines stay.",
)
@placed
def trim(place: Place, session_id: str, keep: int) -> None:
    """Shorten a log to its last lines; `restore` takes it back.

    Pins and compactions stay, so the summary still stands for what went. The whole log stays beside it in a file.
    """
    with place.sessions() as sessions:
        before = sessions.look(session_id)
        backup = sessions.talks.trim(session_id, keep)
        after = sessions.look(session_id)
    gone = len(before.state.messages) - len(after.state.messages)
    if place.as_json:
        emit_value({"session_id": session_id, "backup": backup, "messages": len(after.state.messages), "removed": gone})
    else:
        click.echo(f"trimmed  {session_id}  {gone} messages moved to sessions/{backup}")


@click.command(epilog=examples("sessions restore support-42"))
@click.argument("session_id")
@placed
def restore(place: Place, session_id: str) -> None:
    """Take the last trim of a session back. What was said since stays."""
    with place.sessions() as sessions:
        sessions.talks.restore(session_id)
        messages = len(sessions.look(session_id).state.messages)
    if place.as_json:
        emit_value({"session_id": session_id, "messages": messages})
    else:
        click.echo(f"restored  {session_id}  {messages} messages")


@click.command(epilog=examples("sessions delete support-42", "sessions delete support-42 --yes"))
@click.argument("session_id")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@placed
def delete(place: Place, session_id: str, yes: bool) -> None:
    """Erase a session, from the disk and from the index. Memories that were flushed from it stay.

    It asks first. This cannot be taken back.
    """
    from memory_service import answers, session_answers

    with place.sessions() as sessions:
        messages = len(sessions.look(session_id).state.messages) if not yes else 0
        if not yes:
            click.confirm(f"Erase the session {session_id} with {messages} messages?", abort=True, err=True)
        done = sessions.talks.delete(session_id)
    if place.as_json:
        emit_json(session_answers.erased(done))
    else:
        click.echo(f"deleted  {session_id}")
        click.echo(answers.erased_line(done.erased))
    warn(done.degraded)


class _InOrder(click.Group):
    """Lists its commands as they are given: what is needed first stands first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


sessions = _InOrder(
    "sessions",
    commands={
        "list": list_sessions,
        "show": show,
        "create": create,
        "append": append,
        "context": context,
        "search": search,
        "compact": compact,
        "compactions": compactions,
        "undo": undo,
        "flush": flush,
        "pin": pin,
        "pins": pins,
        "unpin": unpin,
        "trim": trim,
        "restore": restore,
        "delete": delete,
    },
    help="""Look at conversations, compact them, take that back.

    A session is one conversation: a log that nothing is taken from, in <home>/<workspace>/sessions/<id>.jsonl, and
    the view of it that a model sees. A compaction puts a summary in the place of the view's old messages; a flush
    writes what is worth remembering to today's Markdown file first.

    \b
    See it:    memory-service sessions list
               memory-service sessions show support-42
    Try it:    memory-service sessions compact support-42 --plan
    Do it:     memory-service sessions compact support-42
    Undo it:   memory-service sessions undo support-42
    """,
)

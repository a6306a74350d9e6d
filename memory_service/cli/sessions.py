"""The group `sessions`: sessions themselves, their messages, searches and pins; `session_work` has the rest."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from importlib import import_module
from typing import IO, TYPE_CHECKING

import click

from memory_service.cli.options import SHARE, Place, examples, session_argument, with_place
from memory_service.cli.output import emit_json, emit_value, erased_line, printable, warn
from memory_service.home import id_of_title, is_title

if TYPE_CHECKING:
    from memory_service.schemas.compaction import SessionContext
    from memory_service.schemas.memories import Order
    from memory_service.schemas.messages import Wire
    from memory_service.schemas.sessions import ViewName
    from memory_service.service import MemoryService, ShownMessage


@click.command(
    epilog=examples('sessions search support-42 "tax rate Vienna"', 'sessions search support-42 "改签 云南"')
)
@session_argument
@click.argument("query")
@click.option("--limit", "-n", type=click.IntRange(1, 100), default=10, show_default=True, help="Most messages.")
@with_place
def search(place: Place, session_id: str, query: str, limit: int) -> None:
    """Find what was said in one session. What was compacted is found as well; words decide.

    `memory-service search --source sessions` finds by meaning too, in all sessions that are indexed.
    """
    from memory_service.cli.session_output import found_lines

    with place.service() as service:
        messages = service.session_search(place.workspace, session_id, query, limit)
        first_shown = service.session_details(place.workspace, session_id).first_shown
    if place.as_json:
        emit_json(messages)
    elif messages.results:
        click.echo("\n".join(found_lines(messages.results, first_shown)))
    else:
        click.echo("nothing found", err=True)
    warn(messages.degraded)


@click.command(
    epilog=examples('sessions pin support-42 "Never deploy on Fridays."', "sessions pin support-42 --seq 17")
)
@session_argument
@click.argument("text", required=False)
@click.option("--seq", type=click.IntRange(min=1), metavar="N", help="Pin the message of this number instead.")
@with_place
def pin(place: Place, session_id: str, text: str | None, seq: int | None) -> None:
    """Keep TEXT or a message word for word in every view. No compaction takes it away."""
    if (text is None) == (seq is None):
        raise click.UsageError("Give a text or --seq, and not both.")
    with place.service() as service:
        pin = service.pin(place.workspace, session_id, text, seq=seq)
    if place.as_json:
        emit_json(pin)
    else:
        click.echo(f"pinned  {pin.pin_id}")


@click.command(epilog=examples("sessions pins support-42"))
@session_argument
@with_place
def pins(place: Place, session_id: str) -> None:
    """List the pins of a session, oldest first."""
    from memory_service.cli.session_output import pin_lines

    with place.service() as service:
        pins = service.pins(place.workspace, session_id)
    if place.as_json:
        emit_json(pins)
    elif pins.pins:
        click.echo("\n".join(pin_lines(pins.pins, shutil.get_terminal_size((100, 24)).columns)))
    else:
        click.echo("no pins", err=True)


@click.command(epilog=examples("sessions unpin support-42 p0a1b2c3d4e5"))
@session_argument
@click.argument("pin_id")
@with_place
def unpin(place: Place, session_id: str, pin_id: str) -> None:
    """Keep a pin no longer. PIN_ID is as `sessions pins` lists it."""
    with place.service() as service:
        pin = service.unpin(place.workspace, session_id, pin_id)
    if place.as_json:
        emit_json(pin)
    else:
        click.echo(f"unpinned  {pin_id}")


_SHOWN = 40
_WIRES = click.Choice(["openai", "anthropic", "mistral"])


@click.command(
    epilog=examples(
        "sessions show support-42",
        "sessions show support-42 --view log --since 120",
        "sessions show support-42 --view log --json > everything.json",
        "sessions show support-42 --raw 17",
    )
)
@session_argument
@click.option(
    "--view",
    type=click.Choice(["model", "log"]),
    default="model",
    show_default=True,
    help="What the model sees, or everything ever said.",
)
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), help=f"Most messages.  [default: the newest {_SHOWN}; all with --json]"
)
@click.option("--since", type=click.IntRange(min=0), metavar="SEQ", help="Only messages behind this number.")
@click.option("--full", is_flag=True, help="Print texts and calls whole.")
@click.option("--raw", type=click.IntRange(min=1), metavar="SEQ", help="Print one message, byte for byte as it came.")
@click.option(
    "--wire",
    type=_WIRES,
    default="openai",
    show_default=True,
    help="Shape of the model's view with --json.",
)
@with_place
def show(
    place: Place,
    session_id: str,
    view: ViewName,
    limit: int | None,
    since: int | None,
    full: bool,
    raw: int | None,
    wire: Wire,
) -> None:
    """Show how a session stands, and its messages.

    Each message has its number in the log before it; "-" is what the service put there. The checkpoint stands for
    what was compacted, and a cleared result names the message that has it, such as log:12.
    """
    workspace = place.workspace
    with place.service() as service:
        if raw is not None:
            _emit_raw(service.message(workspace, session_id, raw))
        elif place.as_json:
            _emit_messages(service, workspace, session_id, view, limit, since, wire)
        else:
            from memory_service.cli.session_output import session_head

            session, details = (
                service.session_status(workspace, session_id),
                service.session_details(workspace, session_id),
            )
            click.echo("\n".join(session_head(session, details, service.settings)))
            _echo_messages(service.shown_messages(workspace, session_id, view), limit, since, full)


def _echo_messages(spoken: list[ShownMessage], limit: int | None, since: int | None, full: bool) -> None:
    from memory_service.cli.transcripts import newest_messages, transcript_lines

    chosen_messages = newest_messages(spoken, limit or (None if full else _SHOWN), since)
    if chosen_messages:
        click.echo()
    for line in transcript_lines(chosen_messages, cells=shutil.get_terminal_size((100, 24)).columns, full=full):
        click.echo(line)
    if len(chosen_messages) < len(newest_messages(spoken, None, since)):
        click.echo(f"({len(chosen_messages)} of {len(spoken)} messages; more with --limit, or --since SEQ)", err=True)


def _emit_messages(
    service: MemoryService,
    workspace: str,
    session_id: str,
    view: ViewName,
    limit: int | None,
    since: int | None,
    wire: Wire,
) -> None:
    """Head and messages as JSON: those of the log exactly as they came."""
    session = service.session_status(workspace, session_id).model_dump(mode="json")
    if view == "model":
        if limit or since is not None:
            raise click.UsageError(
                "With --json the model's view is whole: a part of it is no valid list. Use --view log."
            )
        messages = service.messages(workspace, session_id, format=wire)
        emit_value({"session": session, "view": view, "system": messages.system, "messages": messages.messages})
        return
    if limit and since is None:
        seqs = sorted({message.seq or 0 for message in service.shown_messages(workspace, session_id, "log")})
        since = seqs[-limit] - 1 if len(seqs) > limit else 0
    logged_messages = service.messages(workspace, session_id, "log", since_seq=since or 0, limit=limit)
    emit_value({"session": session, "view": view, "messages": logged_messages.messages, "seqs": logged_messages.seqs})


def _emit_raw(text: str) -> None:
    click.echo(text.encode("utf-8", "surrogatepass"), nl=sys.stdout.isatty())


@click.command(
    epilog=examples(
        "sessions append support-42 --file messages.jsonl",
        """sessions append support-42 --file - <<< '{"role": "user", "content": "When do we deploy?"}'""",
    )
)
@click.argument("session_id", metavar="SESSION_ID")
@click.option(
    "--file",
    "-f",
    "source",
    type=click.File("rb"),
    required=True,
    help="JSON list, JSON lines or one object, in OpenAI's or Anthropic's shape; \"-\" is standard input.",
)
@click.option("--model", help="The model that the session is with, if this begins it.")
@click.option("--key", help="Idempotency key: the same key again appends nothing again.")
@with_place
def append(place: Place, session_id: str, source: IO[bytes], model: str | None, key: str | None) -> None:
    """Append messages from a file. This begins the session if it is not there.

    They are on disk when the command ends. All are appended, or none if one cannot be read. SESSION_ID may be a title,
    such as "客服 42": the session gets an id that is made from it, and keeps the title.
    """
    from memory_service.cli.transcripts import batches_of, decode_text, messages_in

    batches = batches_of(messages_in(decode_text(source.read())))
    with place.service() as service:
        if is_title(session_id):
            session_id = _session_of_title(service, place.workspace, session_id, model)
        done_messages = [
            service.append(place.workspace, session_id, batch, model=model, key=f"{key}/{at}" if key and at else key)
            for at, batch in enumerate(batches)
        ]
    first, last = done_messages[0], done_messages[-1]
    degraded = [line for messages in done_messages for line in messages.degraded]
    if place.as_json:
        emit_json(last.model_copy(update={"first_seq": first.first_seq, "degraded": degraded}))
    else:
        click.echo(
            f"appended  {first.first_seq}-{last.last_seq}  "
            f"the view takes {last.tokens:,} tokens ({last.source}), {last.pressure}"
        )
    warn(degraded)


@click.command(
    epilog=examples(
        "sessions context support-42",
        'sessions context support-42 "when do we deploy?" --system-prompt "You are the shop\'s assistant."',
        "sessions context support-42 --json | jq .messages",
    )
)
@session_argument
@click.argument("query", required=False)
@click.option(
    "--budget-tokens",
    "-b",
    type=click.IntRange(min=0),
    default=2000,
    show_default=True,
    help="Most tokens of memories.",
)
@click.option("--system-prompt", default="", help="Stands before everything.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Longest prompt.  [default: what the window allows]")
@click.option("--auto/--no-auto", default=True, show_default=True, help="Flush and compact first, if that is due.")
@click.option(
    "--order",
    type=click.Choice(["score", "memory_first"]),
    help="The best first, or memories before sessions.  [default: the preset's]",
)
@click.option(
    "--min-relevance",
    type=SHARE,
    help="Leave out memories less relevant than this.  [default: the setting recall.min_relevance]",
)
@click.option("--wire", type=_WIRES, default="openai", show_default=True, help="Shape of the messages with --json.")
@with_place
def context(
    place: Place,
    session_id: str,
    query: str | None,
    budget_tokens: int,
    system_prompt: str,
    max_tokens: int | None,
    auto: bool,
    order: Order | None,
    min_relevance: float | None,
    wire: Wire,
) -> None:
    """Print what to send to the model. System prompt, session and memories fit its window.

    Memories are recalled for QUERY; without one the last message of the user decides. If it is due, the session is
    flushed and compacted first. What each part takes is told on stderr.
    """
    from memory_service.schemas import SessionContextRequest, make_request

    request = make_request(
        SessionContextRequest,
        query=query,
        system_prompt=system_prompt,
        memory_budget_tokens=budget_tokens,
        max_tokens=max_tokens,
        auto=auto,
        order=order,
        min_relevance=min_relevance,
        format=wire if place.as_json else "openai",
    )
    with place.service() as service:
        session_context = service.session_context(place.workspace, session_id, request)
    if place.as_json:
        emit_json(session_context)
    else:
        _echo_context(session_context)
    warn(session_context.degraded)


def _echo_context(made: SessionContext) -> None:
    from memory_service.cli.session_output import context_line
    from memory_service.cli.transcripts import transcript_lines
    from memory_service.service import shown_prompt

    for line in transcript_lines(shown_prompt(made.messages), cells=100, full=True):
        click.echo(line)
    click.secho(context_line(made), dim=True, err=True)


_LISTED = 50


@click.command(
    "list", epilog=examples("sessions list", "sessions list --limit 5", "sessions list --workspace shop --json")
)
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), help=f"Most sessions.  [default: {_LISTED}; all with --json]"
)
@with_place
def list_sessions(place: Place, limit: int | None) -> None:
    """List the sessions, the last active first.

    TOKENS is what a model would see of the session now. PRESSURE says how full its window is: soft asks for a
    flush, hard for a compaction.
    """
    from memory_service.cli.session_output import row_of, session_table

    with place.service() as service:
        sessions, settings = service.list_sessions(place.workspace).sessions, service.settings
        most = limit or (len(sessions) if place.as_json else _LISTED)
        rows = [row_of(service, place.workspace, session) for session in sessions[:most]]
    if place.as_json:
        emit_value({"sessions": rows, "total": len(sessions)})
    elif rows:
        click.echo("\n".join(session_table(rows, settings)))
    else:
        click.echo("no sessions", err=True)
    if len(sessions) > len(rows):
        click.echo(f"({len(rows)} of {len(sessions)}; more with --limit)", err=True)
    warn(f"{row.session_id}: {row.problem}" for row in rows if row.problem)


def _session_of_title(service: MemoryService, workspace: str, title: str, model: str | None) -> str:
    """The id of the session of a title, which is begun if it is not there."""
    from memory_service.errors import Conflict
    from memory_service.schemas import NewSession, make_request

    with suppress(Conflict):
        service.create_session(workspace, make_request(NewSession, title=title, model=model))
    return id_of_title(title)


@click.command(
    epilog=examples(
        "sessions create support-42 --model gpt-4o",
        "sessions create support-43 --context-window 32000 --preset openclaw",
    )
)
@click.argument("session_id", required=False)
@click.option("--title", default="", help="Its name for people; without SESSION_ID, the id is made from it.")
@click.option("--model", help="The model that the agent uses; it tells the window.")
@click.option(
    "--context-window", type=click.IntRange(min=1), help="Tokens of that model, where its name does not tell."
)
@click.option("--preset", help="How it is compacted: default, openclaw, turns, ponybunny or opencode.")
@with_place
def create(
    place: Place,
    session_id: str | None,
    title: str,
    model: str | None,
    context_window: int | None,
    preset: str | None,
) -> None:
    """Begin a session. Without SESSION_ID it gets one; where that is a title, one that is made from it.

    Appending to a session begins it as well; this is for one that has its own model, window or preset.
    """
    from memory_service.schemas import NewSession, make_request
    from memory_service.service import preset_settings

    is_named_by_title = session_id is not None and is_title(session_id)
    request = make_request(
        NewSession,
        session_id=None if is_named_by_title else session_id,
        title=title or (session_id if is_named_by_title else ""),
        model=model,
        context_window=context_window,
        settings=preset_settings(preset),
    )
    with place.service() as service:
        session = service.create_session(place.workspace, request)
    if place.as_json:
        emit_json(session)
    else:
        text = f"{session.session_id}  {printable(session.title)}".rstrip()
        click.echo(f"created  {text}  {session.context_window.tokens:,} tokens, preset {session.preset}")


@click.command(epilog=examples("sessions trim support-42", "sessions trim support-42 --keep 200"))
@session_argument
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    metavar="N",
    help="So many of its last lines stay.",
)
@with_place
def trim(place: Place, session_id: str, keep: int) -> None:
    """Shorten a log to its last lines; `restore` takes it back.

    Pins and compactions stay, so the summary still stands for what went. The whole log stays beside it in a file.
    """
    with place.service() as service:
        before = service.session_status(place.workspace, session_id).messages
        backup = service.trim(place.workspace, session_id, keep).backup
        after = service.session_status(place.workspace, session_id).messages
    gone_count = before - after
    if place.as_json:
        emit_value({"session_id": session_id, "backup": backup, "messages": after, "removed": gone_count})
    else:
        click.echo(f"trimmed  {session_id}  {gone_count} messages moved to sessions/{backup}")


@click.command(epilog=examples("sessions restore support-42"))
@session_argument
@with_place
def restore(place: Place, session_id: str) -> None:
    """Take the last trim of a session back. What was said since stays."""
    with place.service() as service:
        service.restore(place.workspace, session_id)
        messages = service.session_status(place.workspace, session_id).messages
    if place.as_json:
        emit_value({"session_id": session_id, "messages": messages})
    else:
        click.echo(f"restored  {session_id}  {messages} messages")


@click.command(epilog=examples("sessions delete support-42", "sessions delete support-42 --yes"))
@session_argument
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@with_place
def delete(place: Place, session_id: str, yes: bool) -> None:
    """Erase a session, from the disk and from the index. Memories that were flushed from it stay.

    It asks first. This cannot be taken back.
    """
    with place.service() as service:
        if not yes:
            messages = service.session_status(place.workspace, session_id).messages
            click.confirm(f"Erase the session {session_id} with {messages} messages?", abort=True, err=True)
        done_delete_session = service.delete_session(place.workspace, session_id)
    if place.as_json:
        emit_json(done_delete_session)
    else:
        click.echo(f"deleted  {session_id}")
        click.echo(erased_line(done_delete_session.erased))
    warn(done_delete_session.degraded)


_WORK = ("compact", "compactions", "prompts", "undo", "flush", "branch")
_HERE: dict[str, click.Command] = {
    "list": list_sessions,
    "show": show,
    "create": create,
    "append": append,
    "context": context,
    "search": search,
    "pin": pin,
    "pins": pins,
    "unpin": unpin,
    "trim": trim,
    "restore": restore,
    "delete": delete,
}


class _SessionCommands(click.Group):
    """Group that lists its commands with the first needed first; those of `session_work` are loaded when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = list(_HERE)
        at = names.index("pin")
        return [*names[:at], *_WORK, *names[at:]]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _WORK:
            return _HERE.get(cmd_name)
        command: click.Command = getattr(import_module("memory_service.cli.session_work"), cmd_name)
        return command


sessions = _SessionCommands(
    "sessions",
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

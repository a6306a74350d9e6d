"""The commands about what is said in a session: show, append, context."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from typing import IO, TYPE_CHECKING

import click

from memory_service.cli.options import Place, examples, placed
from memory_service.cli.output import emit_json, emit_value, warn

if TYPE_CHECKING:
    from memory_service.cli.transcripts import Spoken
    from memory_service.schemas import Order
    from memory_service.shortterm.contexts import SessionContext
    from memory_service.shortterm.memory import ShortTermMemory
    from memory_service.shortterm.told import Wire

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
@click.argument("session_id")
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
@placed
def show(
    place: Place,
    session_id: str,
    view: str,
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
    with place.service() as service:
        sessions = service.sessions(place.workspace)
        if raw is not None:
            _emit_raw(sessions.talks.message(session_id, raw))
        elif place.as_json:
            _emit_messages(sessions, session_id, view, limit, since, wire)
        else:
            from memory_service.cli.session_output import head

            summary, look = sessions.talks.summary(session_id), sessions.look(session_id)
            click.echo("\n".join(head(summary, look, service.settings)))
            _echo_messages(_spoken(sessions, session_id, view), limit, since, full)


def _spoken(sessions: ShortTermMemory, session_id: str, view: str) -> list[Spoken]:
    from memory_service.cli.transcripts import spoken_in_log, spoken_in_view

    look = sessions.look(session_id)
    return spoken_in_log(look) if view == "log" else spoken_in_view(look)


def _echo_messages(spoken: list[Spoken], limit: int | None, since: int | None, full: bool) -> None:
    from memory_service.cli.transcripts import newest, told

    chosen = newest(spoken, limit or (None if full else _SHOWN), since)
    if chosen:
        click.echo()
    for line in told(chosen, cells=shutil.get_terminal_size((100, 24)).columns, full=full):
        click.echo(line)
    if len(chosen) < len(newest(spoken, None, since)):
        click.echo(f"({len(chosen)} of {len(spoken)} messages; more with --limit, or --since SEQ)", err=True)


def _emit_messages(
    sessions: ShortTermMemory, session_id: str, view: str, limit: int | None, since: int | None, wire: Wire
) -> None:
    """Head and messages as JSON: those of the log exactly as they came."""
    from memory_service import session_answers

    session = session_answers.session(sessions.talks.summary(session_id)).model_dump(mode="json")
    if view == "model":
        if limit or since is not None:
            raise click.UsageError(
                "With --json the model's view is whole: a part of it is no valid list. Use --view log."
            )
        shown = session_answers.messages(sessions.talks.model_view(session_id, wire=wire), wire)
        emit_value({"session": session, "view": view, "system": shown.system, "messages": shown.messages})
        return
    if limit and since is None:
        said = sorted({each.seq for each in sessions.look(session_id).state.messages})
        since = said[-limit] - 1 if len(said) > limit else 0
    logged = sessions.talks.log_view(session_id, since_seq=since or 0, limit=limit)
    emit_value({"session": session, "view": view, "messages": logged.messages, "seqs": logged.seqs})


def _emit_raw(text: str) -> None:
    click.echo(text.encode("utf-8", "surrogatepass"), nl=sys.stdout.isatty())


@click.command(
    epilog=examples(
        "sessions append support-42 --file messages.jsonl",
        """sessions append support-42 --file - <<< '{"role": "user", "content": "When do we deploy?"}'""",
    )
)
@click.argument("session_id")
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
@placed
def append(place: Place, session_id: str, source: IO[bytes], model: str | None, key: str | None) -> None:
    """Append messages from a file. This begins the session if it is not there.

    They are on disk when the command ends. All are appended, or none if one cannot be read.
    """
    from memory_service import session_answers
    from memory_service.cli.message_files import batches_of, decoded, messages_in

    batches = batches_of(messages_in(decoded(source.read())))
    with place.sessions(make=True) as sessions:
        done = [
            sessions.append(session_id, batch, model=model, key=f"{key}/{at}" if key and at else key)
            for at, batch in enumerate(batches)
        ]
    first, last = done[0], done[-1]
    degraded = tuple(line for each in done for line in each.degraded)
    if place.as_json:
        emit_json(session_answers.appended(replace(last, first_seq=first.first_seq, degraded=degraded)))
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
@click.argument("session_id")
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
@click.option("--wire", type=_WIRES, default="openai", show_default=True, help="Shape of the messages with --json.")
@placed
def context(
    place: Place,
    session_id: str,
    query: str | None,
    budget_tokens: int,
    system_prompt: str,
    max_tokens: int | None,
    auto: bool,
    order: Order | None,
    wire: Wire,
) -> None:
    """Print what to send to the model. System prompt, session and memories fit its window.

    Memories are recalled for QUERY; without one the last message of the user decides. If it is due, the session is
    flushed and compacted first. What each part takes is told on stderr.
    """
    from memory_service import session_answers
    from memory_service.shortterm.contexts import ContextCall

    call = ContextCall(
        query=query,
        system_prompt=system_prompt,
        memory_budget_tokens=budget_tokens,
        max_tokens=max_tokens,
        auto=auto,
        order=order,
    )
    with place.service() as service:
        sessions = service.sessions(place.workspace)
        made = sessions.context(session_id, call)
        sent = sessions.sent(session_id, made.prompt.messages, wire)
        fusion = service.settings.ranking.fusion
    if place.as_json:
        emit_json(session_answers.context(made, sent, wire, fusion=fusion))
    else:
        _echo_context(made)
    warn(made.degraded)


def _echo_context(made: SessionContext) -> None:
    from memory_service.cli.session_output import context_line
    from memory_service.cli.transcripts import Spoken, told

    for line in told([Spoken(seq=None, message=each) for each in made.prompt.messages], cells=100, full=True):
        click.echo(line)
    click.secho(context_line(made), dim=True, err=True)

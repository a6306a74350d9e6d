"""Commands that work on a session: compact, compactions, undo, flush, branch; and the sizes of its prompts."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import click

from memory_service.cli.options import Place, examples, session_argument, with_place
from memory_service.cli.output import announce_work, emit_json, emit_value, printable, warn

if TYPE_CHECKING:
    from memory_service.schemas.compaction import CompactionMode, CompactionReceipt


def _numbers(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, object]:
    """Overrides of a command line: numbers, true, false and null as in JSON, else texts."""
    fields: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} has no value. Write NAME=VALUE, such as keep_turns=3.")
        try:
            fields[name.strip()] = json.loads(value)
        except ValueError:
            fields[name.strip()] = value
    return fields


@click.command(
    epilog=examples(
        "sessions compact support-42 --plan",
        "sessions compact support-42 --preview",
        'sessions compact support-42 --instructions "Keep every order number."',
        "sessions compact support-42 --plan --override keep_most_tokens=4000",
        "sessions compact support-42 --preset openclaw --target-tokens 8000",
    )
)
@session_argument
@click.option("--plan", "mode", flag_value="plan", help="Say what would be done; no model is called.")
@click.option("--preview", "mode", flag_value="preview", help="Write the summary and show it; change nothing.")
@click.option("--preset", help="default, openclaw, turns, ponybunny or opencode.  [default: the session's]")
@click.option("--instructions", metavar="TEXT", help="What the summary should look at.")
@click.option(
    "--target-tokens", type=click.IntRange(min=1), help="What the view should come to.  [default: the preset's]"
)
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_numbers,
    help="Another number than the preset's, such as keep_turns=3; may be repeated.",
)
@click.option("--force", is_flag=True, help="Compact although there is room, or although it gains little.")
@with_place
def compact(
    place: Place,
    session_id: str,
    mode: CompactionMode | None,
    preset: str | None,
    instructions: str | None,
    target_tokens: int | None,
    overrides: dict[str, object],
    force: bool,
) -> None:
    """Put a summary in the place of old messages. How much stays is as the preset wants.

    The log keeps every message, and `undo` brings the view back as it was. Cheap steps come first: doubles, old
    results, media. The table shows what each of them leaves.
    """
    from memory_service.schemas import CompactRequest, make_request

    request = make_request(
        CompactRequest,
        mode=mode or "apply",
        preset=preset,
        overrides=overrides,
        instructions=instructions,
        target_tokens=target_tokens,
        force=force,
    )
    announce_work("compacting")
    with place.service() as service:
        receipt = service.compact(place.workspace, session_id, request)
    _print_receipt(place, receipt, summary=request.mode == "preview")


def _print_receipt(place: Place, receipt: CompactionReceipt, *, summary: bool) -> None:
    from memory_service.cli.session_output import receipt_lines

    if place.as_json:
        emit_json(receipt)
    else:
        click.echo("\n".join(receipt_lines(receipt, summary=summary)))
    warn(receipt.degraded)


@click.command(epilog=examples("sessions compactions support-42", "sessions compactions support-42 c121"))
@session_argument
@click.argument("compaction_id", required=False)
@with_place
def compactions(place: Place, session_id: str, compaction_id: str | None) -> None:
    """List the compactions of a session. The newest stands first; COMPACTION_ID shows one with its summary."""
    from memory_service.cli.session_output import compaction_table

    with place.service() as service:
        if compaction_id:
            _print_receipt(place, service.compaction(place.workspace, session_id, compaction_id), summary=True)
            return
        compactions, settings = service.compactions(place.workspace, session_id), service.settings
    if place.as_json:
        emit_json(compactions)
    elif compactions.compactions:
        click.echo("\n".join(compaction_table(compactions.compactions, settings)))
    else:
        click.echo("no compactions", err=True)


@click.command(epilog=examples("sessions prompts support-42", "sessions prompts support-42 --json"))
@session_argument
@with_place
def prompts(place: Place, session_id: str) -> None:
    """List the sizes of the last prompts of a session. Each part is in tokens; the newest prompt stands last."""
    from memory_service.cli.session_output import prompt_table

    with place.service() as service:
        measures, settings = service.prompts(place.workspace, session_id), service.settings
    if place.as_json:
        emit_json(measures)
    elif measures.prompts:
        click.echo("\n".join(prompt_table(measures.prompts, settings)))
    else:
        click.echo("no prompts", err=True)


@click.command(epilog=examples("sessions undo support-42", "sessions undo support-42 c121"))
@session_argument
@click.argument("compaction_id", required=False)
@with_place
def undo(place: Place, session_id: str, compaction_id: str | None) -> None:
    """Bring back the exact view before a compaction. It is the newest, unless COMPACTION_ID names another.

    Compactions that were built on it go with it. What was said since stays.
    """
    with place.service() as service:
        receipt = service.undo(place.workspace, session_id, compaction_id)
    before, after = receipt.view_tokens_before, receipt.view_tokens_after
    if place.as_json:
        emit_value({**receipt.model_dump(mode="json"), "view_tokens_before": before, "view_tokens_after": after})
    else:
        click.echo(f"undone  {receipt.compaction_id}  {before:,} -> {after:,} tokens")


@click.command(epilog=examples("sessions branch support-42 12", 'sessions branch support-42 12 --title "With a queue"'))
@session_argument
@click.argument("seq", type=click.IntRange(min=1))
@click.option("--title", default="", help="Its name for people; without --id, the id is made from it.")
@click.option("--id", "branch_id", metavar="ID", help="Its id.  [default: made from the title, or from SEQ]")
@with_place
def branch(place: Place, session_id: str, seq: int, title: str, branch_id: str | None) -> None:
    """Begin a session as another one does. It has all messages up to SEQ; the other one stays as it is.

    Compactions and pins of until then are in both. The same again gives the same branch.
    """
    from memory_service.schemas import NewBranch, make_request

    request = make_request(NewBranch, seq=seq, session_id=branch_id, title=title)
    with place.service() as service:
        session = service.branch(place.workspace, session_id, request)
    if place.as_json:
        emit_json(session)
    else:
        text = f"{session.session_id}  {printable(session.title)}".rstrip()
        click.echo(f"branched  {text}  {session.messages} messages, {session.tokens:,} tokens")


@click.command(epilog=examples("sessions flush support-42", "sessions flush support-42 --json"))
@session_argument
@with_place
def flush(place: Place, session_id: str) -> None:
    """Write memories of a session to today's file. Only what was said since the last flush is searched for them.

    Each is found by the next search. What is known already is not written again.
    """
    from memory_service.cli.session_output import citation_of, flush_lines

    announce_work("looking for memories")
    with place.service() as service:
        report = service.flush(place.workspace, session_id)
    if place.as_json:
        written_fields = [{**memory.model_dump(), "citation": citation_of(memory)} for memory in report.written]
        emit_value({**report.model_dump(mode="json"), "written": written_fields})
    else:
        click.echo("\n".join(flush_lines(report, shutil.get_terminal_size((100, 24)).columns)))
    warn(report.degraded)

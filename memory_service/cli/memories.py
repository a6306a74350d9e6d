"""The commands that write and read memory files: remember, forget, get."""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING

import click

from memory_service.cli.options import DAY, Place, placed
from memory_service.cli.output import emit_json, warn

if TYPE_CHECKING:
    from memory_service.pages import Origin


@click.command()
@click.argument("text")
@click.option("--tag", "tags", multiple=True, help="Appended as #tag; may be given several times.")
@click.option("--date", type=DAY, help="The day it belongs to.  [default: today]")
@click.option(
    "--origin", type=click.Choice(["user", "agent", "tool"]), default="user", show_default=True, help="Who says so."
)
@click.option("--session", "session_id", help="The conversation it comes from.")
@placed
def remember(
    place: Place, text: str, tags: tuple[str, ...], date: dt.datetime | None, origin: Origin, session_id: str | None
) -> None:
    """Append a memory to the file of its day. TEXT may be "-": then it is read from standard input.

    It is on disk and searchable when the command ends. The same text on the same day is stored once.
    """
    from memory_service import answers
    from memory_service.memories import NewMemory

    words = _standard_input() if text == "-" else text
    day = date.date() if date else None
    with place.service() as service:
        done = service.remember(
            place.workspace, NewMemory(text=words, tags=tags, date=day, origin=origin, session_id=session_id)
        )
    stored = answers.stored_memory(done.value, done.degraded)
    if place.as_json:
        emit_json(stored)
    else:
        where = answers.citation(stored.path, stored.start_line, stored.end_line)
        click.echo(f"{'already there' if stored.duplicate else 'remembered'}  {stored.memory_id}  {where}")
    warn(stored.degraded)


def _standard_input() -> str:
    from memory_service.errors import InvalidRequest

    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest("What came on standard input is not UTF-8. Convert it first, as with iconv.") from None


@click.command()
@click.argument("memory_id")
@placed
def forget(place: Place, memory_id: str) -> None:
    """Erase a memory from its file and from the index. MEMORY_ID stands in the comment above it."""
    from memory_service import answers

    with place.service() as service:
        done = service.forget(place.workspace, memory_id)
    if place.as_json:
        emit_json(answers.forgotten(done.value, done.degraded))
    else:
        click.echo(f"forgotten  {memory_id}  {', '.join(done.value.paths)}")
        click.echo(answers.erased_line(done.value.erased))
    warn(done.degraded)


@click.command()
@click.argument("path")
@click.option("--start-line", type=click.IntRange(min=1), default=1, show_default=True, help="First line.")
@click.option("--lines", type=click.IntRange(min=1), help="How many lines.  [default: all, at most 2000]")
@placed
def get(place: Place, path: str, start_line: int, lines: int | None) -> None:
    """Print lines of a memory file.

    PATH is relative to the workspace, such as MEMORY.md or memory/2026-11-20.md, or as a hit names a file of an extra
    folder, such as @docs/guide.rst.
    """
    from memory_service import answers

    with place.service() as service:
        found = service.read_file(place.workspace, path, start_line=start_line, lines=lines)
    if place.as_json:
        emit_json(answers.file_text(found))
        return
    click.echo(found.text, nl=not found.text.endswith("\n"))
    if found.next_start_line:
        click.echo(
            f"(line {found.end_line} of {found.total_lines}; go on with --start-line {found.next_start_line})", err=True
        )

"""Commands of entries: list them, change one, forget what an id, a citation or words name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli.options import Place, day_option, examples, with_place, with_tags
from memory_service.cli.output import emit_json, erased_line, indent_lines, one_line, warn, written_input

if TYPE_CHECKING:
    from memory_service.schemas import ForgottenMemory, MemoryEntry, Origin, Removal

_SHOWN_CELLS = 200


@click.command()
@with_tags
@click.option(
    "--origin",
    type=click.Choice(["user", "agent", "assistant", "tool"]),
    help="Only somebody's word; what was written by hand is the user's.",
)
@click.option("--session", "session_id", help="Only what was taken from this session.")
@day_option("--since", "Only entries of this day or later.")
@day_option("--until", "Only entries of this day or earlier.")
@click.option("--path", help="Only entries of this file.")
@click.option("--limit", "-n", type=click.IntRange(1, 500), default=50, show_default=True, help="Most entries.")
@click.option("--cursor", help="Go on where the list before this one ended.")
@with_place
def entries(place: Place, **options: Any) -> None:
    """List entries, the newest first, each with its id.

    Entries are list items of dated files, and what stands below the comment of an entry in any file.
    """
    with place.memory(embeds=False) as service:
        entries = service.entries(place.workspace, **options)
    if place.as_json:
        emit_json(entries)
        return
    if not entries.entries:
        click.echo(f"no entries in {place}", err=True)
    for entry in entries.entries:
        _print_entry(entry)
    if entries.next_cursor:
        click.echo(f"(go on with --cursor {entries.next_cursor})", err=True)


def _print_entry(entry: MemoryEntry) -> None:
    text = "" if entry.role == "user" else f"  ({entry.role})"
    session = f"  {entry.session_id}" if entry.session_id else ""
    click.echo(f"{click.style(entry.memory_id, fg='cyan')}  {entry.citation}{text}{session}")
    click.echo(indent_lines(entry.text))


@click.command(
    epilog=examples(
        'edit m0123456789ab "Deploys go out on Wednesdays."',
        "edit memory/2026-11-20.md#L14 --tag ops",
        "edit m0123456789ab",
    )
)
@click.argument("memory")
@click.argument("text", required=False)
@click.option(
    "--tag", "tags", multiple=True, help="A tag at its end, instead of those it has; may be given several times."
)
@click.option("--no-tags", is_flag=True, help="Take the tags at its end away.")
@click.option(
    "--origin", type=click.Choice(["user", "agent", "tool"]), default="user", show_default=True, help="Who changes it."
)
@click.option("--etag", help="Only if it is still the text of this etag, which --json shows.")
@with_place
def edit(
    place: Place, memory: str, text: str | None, tags: Sequence[str], no_tags: bool, origin: Origin, etag: str | None
) -> None:
    """Change an entry; it keeps its id, day and place.

    MEMORY is its id, or where it stands, such as memory/2026-11-20.md#L14.

    TEXT may be "-": then it is read from standard input. Without it, and without tags, an editor opens.
    """
    if tags and no_tags:
        raise click.UsageError("--tag and --no-tags exclude each other.")
    own = [] if no_tags else list(tags) or None
    words = written_input() if text == "-" else text
    with place.memory() as service:
        # By its place, it is the entry that stands there now; in an editor, the one that was shown.
        memory_entry = service.entry(place.workspace, memory)
        if words is None and own is None:
            words, etag = _edit_text(memory_entry.text), memory_entry.etag
            if words is None:
                click.echo("nothing was changed", err=True)
                return
            own = None if _has_tags(words) else []
        entry = service.edit(
            place.workspace, memory_entry.memory_id, text=words, tags=own, origin=origin, etag=etag or memory_entry.etag
        )
    if place.as_json:
        emit_json(entry)
    else:
        click.echo(f"changed  {entry.memory_id}  {entry.citation}")
        click.echo(indent_lines(entry.text))
    warn(entry.degraded)


def _edit_text(text: str) -> str | None:
    """The text as a person leaves it in an editor; None if it is the same or none."""
    if not _is_asked():
        raise click.UsageError("Give the new TEXT, --tag or --no-tags: there is no terminal to edit in.")
    edit = click.edit(text + "\n", extension=".md")
    return None if edit is None or not edit.strip() or edit.strip() == text.strip() else edit


def _has_tags(text: str) -> bool:
    return text.split()[-1].startswith("#")


@click.command(
    epilog=examples(
        "forget m0123456789ab",
        "forget memory/2026-11-20.md#L14-L15 --dry-run",
        'forget --search "spare key"',
    )
)
@click.argument("memory", required=False)
@click.option("--search", "query", help="Words that stand in it, instead of its id or place.")
@click.option("--dry-run", is_flag=True, help="Erase nothing, show what would go.")
@click.option("--yes", is_flag=True, help="Ask nothing: forget all that have the words.")
@with_place
def forget(place: Place, memory: str | None, query: str | None, dry_run: bool, yes: bool) -> None:
    """Erase MEMORY from its file and from the index.

    MEMORY is the id of an entry; or where it stands, as a result cites it: lines of a file, a file, or a message of a
    session. An entry goes whole. With --search, what has the words is shown, and goes when you say so.
    """
    if (memory is None) == (query is None):
        raise click.UsageError("Give what is to be forgotten, or --search with words of it.")
    with place.memory() as service:
        if query is None or dry_run:
            memories = [service.forget(place.workspace, memory, query=query, dry_run=dry_run)]
        else:
            shown_memory = service.forget(place.workspace, query=query, dry_run=True)
            ids = _choose_removals(place, shown_memory, yes=yes)
            if ids is None:
                # The words have to name one memory; if they do not, this says so.
                memories = [service.forget(place.workspace, query=query)]
            else:
                memories = [service.forget(place.workspace, text) for text in ids]
    for forgotten_memory in memories:
        _print_forgotten(place, forgotten_memory)
    if not memories:
        click.echo("nothing was forgotten", err=True)


def _print_forgotten(place: Place, forgotten: ForgottenMemory) -> None:
    if place.as_json:
        emit_json(forgotten)
    elif forgotten.dry_run:
        _print_removals(forgotten.removed)
        if forgotten.named not in (None, 1):
            click.echo(f"{forgotten.named or 'no'} memories have these words: nothing would go", err=True)
    else:
        names = [removal.memory_id or removal.citation for removal in forgotten.removed]
        click.echo(f"forgotten  {', '.join(dict.fromkeys(names)) or forgotten.path}  {', '.join(forgotten.paths)}")
        click.echo(erased_line(forgotten.erased))
    warn(forgotten.degraded)


def _choose_removals(place: Place, shown: ForgottenMemory, *, yes: bool) -> list[str] | None:
    """The memories that a person chooses of those that come into question; None where nobody is asked."""
    named_count = shown.named or 0
    names = [removal.memory_id or removal.citation for removal in shown.removed]
    if place.as_json or (named_count == 1 and (yes or not _is_asked())):
        return None
    if yes and named_count:
        return names[:named_count]
    _print_removals(shown.removed, err=True)
    if not names or not _is_asked():
        return None
    if named_count == 1:
        return names if click.confirm("Forget it?", err=True) else []
    kind = "These have the words" if named_count else "None has the words, these are the nearest"
    answer = click.prompt(f"{kind}. Which are to be forgotten (numbers, or none)?", default="none", err=True)
    numbers = [int(part) for part in answer.replace(",", " ").split() if part.isdecimal()]
    return [names[number - 1] for number in dict.fromkeys(numbers) if 1 <= number <= len(names)]


def _print_removals(removals: Sequence[Removal], *, err: bool = False) -> None:
    for number, removal in enumerate(removals, 1):
        text = "" if removal.role == "user" else f"  ({removal.role})"
        where = click.style(removal.citation, fg="cyan")
        click.echo(f"{number}. {where}{f'  {removal.memory_id}' if removal.memory_id else ''}{text}", err=err)
        click.echo(indent_lines(one_line(removal.text or "", _SHOWN_CELLS)), err=err)


def _is_asked() -> bool:
    """True if a person sits at a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()

"""Commands of memories: remember, get, history, search, context."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli.options import (
    Place,
    day_option,
    examples,
    with_filters,
    with_min_relevance,
    with_order,
    with_place,
    with_wait,
)
from memory_service.cli.output import (
    emit_json,
    emit_memory,
    emit_value,
    has_word,
    indent_lines,
    nothing_relevant,
    pending_lines,
    relevance_counts,
    relevance_mark,
    size,
    warn,
    written_input,
)

if TYPE_CHECKING:
    from memory_service.cli.warm import ServerMemory
    from memory_service.schemas.memories import (
        ErasedVersions,
        Origin,
        SearchResult,
        SearchResults,
        Statement,
    )
    from memory_service.service import MemoryService


@click.command()
@click.argument("text")
@click.option("--tag", "tags", multiple=True, help="Appended as #tag; may be given several times.")
@day_option("--date", "The day it belongs to.  [default: today]")
@click.option(
    "--origin", type=click.Choice(["user", "agent", "tool"]), default="user", show_default=True, help="Who says so."
)
@click.option("--session", "session_id", help="The conversation it comes from.")
@with_place
def remember(
    place: Place, text: str, tags: tuple[str, ...], date: dt.date | None, origin: Origin, session_id: str | None
) -> None:
    """Append a memory to the file of its day. TEXT may be "-": then it is read from standard input.

    It is on disk and searchable when the command ends. The same text on the same day is stored once.
    """
    words = written_input() if text == "-" else text
    with place.memory() as service:
        memory = service.remember(place.workspace, words, tags=tags, date=date, origin=origin, session_id=session_id)
    emit_memory(memory, "remembered", as_json=place.as_json)


@click.command()
@click.argument("path")
@click.option("--start-line", type=click.IntRange(min=1), default=1, show_default=True, help="First line.")
@click.option("--lines", type=click.IntRange(min=1), help="How many lines.  [default: all, at most 2000]")
@with_place
def get(place: Place, path: str, start_line: int, lines: int | None) -> None:
    """Print lines of a memory file.

    PATH is relative to the workspace, such as MEMORY.md or memory/2026-11-20.md, or as a hit names a file of an extra
    folder, such as @docs/guide.rst.
    """
    with place.memory(embeds=False) as service:
        page = service.get(place.workspace, path, start_line, lines)
    if place.as_json:
        emit_json(page)
        return
    if start_line > max(page.total_lines, 1):
        click.echo(f"(the file ends with line {page.total_lines})", err=True)
        return
    click.echo(page.text, nl=not page.text.endswith("\n"))
    if page.next_start_line:
        click.echo(
            f"(line {page.end_line} of {page.total_lines}; go on with --start-line {page.next_start_line})",
            err=True,
        )


@click.command(
    epilog=examples(
        "history MEMORY.md", "history MEMORY.md --show 1f2e3d4c5b6a7988", "history memory/2026-11-20.md --erase"
    )
)
@click.argument("file")
@click.option("--show", "version", metavar="ID", help="Print a version instead.")
@click.option("--erase", is_flag=True, help="Erase the versions; the file stays.")
@with_place
def history(place: Place, file: str, version: str | None, *, erase: bool) -> None:
    """List the earlier versions of FILE, a memory file.

    They are what edits took the place of, at most 100 of 90 days; an append loses nothing, and makes none. A database
    keeps them; of files in a folder there are none, as git does that. What is forgotten goes from them by itself; what
    was edited out stays until --erase.
    """
    if erase and version is not None:
        raise click.UsageError("Give --show or --erase, one of both.")
    with place.memory(embeds=False) as service:
        if version is not None:
            text = _version_text(service, place.workspace, file, version)
            if place.as_json:
                emit_value({"path": file, "version_id": version, "text": text})
            else:
                click.echo(text, nl=False)
            return
        if erase:
            erased = service.erase_versions(place.workspace, file)
            emit_json(erased) if place.as_json else _print_erased_versions(erased)
            return
        answer = service.versions(place.workspace, file)
    if place.as_json:
        emit_json(answer)
        return
    for row in answer.versions:
        at = dt.datetime.fromisoformat(str(row.replaced_at))
        click.echo(f"{click.style(row.version_id, fg='cyan')}  until {at:%Y-%m-%d %H:%M:%S} UTC  {size(row.bytes)}")
    if not answer.has_history:
        click.echo("no history is kept of files in a folder: use git there, or a database", err=True)
    elif not answer.versions:
        click.echo(f"no edit took anything out of {answer.path}", err=True)


def _version_text(service: MemoryService | ServerMemory, workspace: str, file: str, version: str) -> str:
    parts, start = list[str](), 1
    while start:
        page = service.get(workspace, file, start, version=version)
        parts.append(page.text)
        start = page.next_start_line or 0
    return "".join(parts)


def _print_erased_versions(erased: ErasedVersions) -> None:
    click.echo(f"erased {erased.versions} earlier version{'' if erased.versions == 1 else 's'} of {erased.path}")
    for line in pending_lines(erased.pending):
        click.echo(line)


@click.command()
@click.argument("query")
@click.option("--limit", "-n", type=click.IntRange(1, 200), default=6, show_default=True, help="Most results.")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "text", "vector"]),
    default="hybrid",
    show_default=True,
    help="Words, meaning, or both.",
)
@click.option("--explain", is_flag=True, help="Show relevance and score as numbers, and what every signal added.")
@click.option("--history", is_flag=True, help="Show all values that a fact has had, with their days.")
@with_min_relevance
@with_order
@with_wait
@with_place
@with_filters
def search(place: Place, query: str, wait: bool, **options: Any) -> None:
    """Find the passages that answer QUERY, with file and lines.

    What changed on disk is indexed first. Stop that at any time: the next command goes on from there. How likely a
    passage bears on QUERY stands beside it in a word: relevant, likely, maybe or unlikely.
    """
    with place.memory(waits=wait) as service:
        answer = service.search(place.workspace, query, **options)
    if place.as_json:
        emit_json(answer)
        return
    if not answer.results:
        click.echo(f"nothing found in {place}", err=True)
    elif nothing_relevant(result.relevance for result in answer.results) and not any(
        has_word(result.text, query) for result in answer.results
    ):
        click.secho(f"nothing relevant in {place}; the nearest:", fg="yellow", err=True)
    _print_results(answer, query)
    warn(answer.degraded)


def _print_results(answer: SearchResults, query: str) -> None:
    for number, result in enumerate(answer.results, 1):
        text = "" if result.role == "user" else f"({result.role})"
        title = " › ".join(result.heading)
        where = click.style(result.citation, fg="cyan")
        shown_id = result.memory_id and click.style(result.memory_id, dim=True)
        mark = relevance_mark(result.relevance, named=has_word(result.text, query))
        parts = (where, mark, text, shown_id, title and click.style(title, dim=True))
        click.echo(f"{number}. {'  '.join(filter(None, parts))}")
        if result.columns:
            click.secho(indent_lines(result.columns), dim=True)
        click.echo(indent_lines(result.text))
        if result.days:
            click.secho(f"~ on {len(result.days)} days: {', '.join(map(str, result.days))}", dim=True)
        # Text of a memory is never at the beginning of a line: no text can look like this.
        for line in _changes(result):
            click.secho(f"~ {line}", fg="yellow")
        if result.signals is not None:
            _print_signals(result, result.signals)


def _print_signals(result: SearchResult, signals: Mapping[str, float]) -> None:
    for name, value in (("relevance", result.relevance), ("score", result.score)):
        if value is not None:
            click.secho(f"     {name:<10}  {value:.3f}", dim=True)
    for name, part in signals.items():
        click.secho(f"     {name:<10} {part:+.3f}", dim=True)


def _changes(result: SearchResult) -> Iterator[str]:
    """Lines on what a result has replaced, what has replaced it, and how the fact changed."""
    if result.replaced_by:
        day = f"{result.date}; " if result.date else ""
        yield f"({day}since replaced: {result.replaced_by.citation})"
    if result.replaces:
        yield f"(replaces {', '.join(_with_date(replace) for replace in result.replaces)})"
    for past in result.history:
        yield f"  {'->' if past.current else '  '} {_with_date(past)}: {indent_lines(past.text).strip()}"


def _with_date(stated: Statement) -> str:
    return f"{stated.citation}, {stated.date}" if stated.date else stated.citation


@click.command()
@click.argument("query")
@click.option("--budget-tokens", "-b", type=click.IntRange(min=0), default=2000, show_default=True, help="Most tokens.")
@click.option("--system-prompt", default="", help="Print the block behind this prompt.")
@click.option(
    "--min-gain",
    type=click.FloatRange(0, 100),
    default=0.0,
    show_default=True,
    help="Least chance of an answer that a passage adds for 100 tokens; 0 fills the budget.",
)
@with_min_relevance
@with_order
@with_wait
@with_place
@with_filters
def context(place: Place, query: str, budget_tokens: int, wait: bool, **options: Any) -> None:
    """Print the block of memories for a prompt about QUERY.

    What went in, how relevant it is and at which cost, is told on stderr.
    """
    with place.memory(waits=wait) as service:
        answer = service.context(place.workspace, query, budget_tokens=budget_tokens, **options)
    if place.as_json:
        emit_json(answer)
        return
    if answer.system_prompt:
        click.echo(answer.system_prompt)
    receipt = answer.receipt
    relevances = [item.relevance for item in receipt.included]
    text = (
        f"{len(relevances)} in{relevance_counts(relevances)}, {receipt.omitted_count} left out; "
        f"{answer.tokens} of {budget_tokens} tokens"
    )
    if nothing_relevant(relevances) and not has_word(answer.block, query):
        text = f"nothing relevant in {place}: --min-relevance 0.01 leaves these out; {text}"
    click.secho(f"{receipt.reason or text}; receipt {receipt.receipt_id}", dim=True, err=True)
    warn(answer.degraded)

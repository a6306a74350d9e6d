"""The commands that find memories: search, context."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from memory_service.cli.options import Place, filtered, ordered, placed
from memory_service.cli.output import emit_json, indented, warn

if TYPE_CHECKING:
    from indexer import Mode, SearchFilter
    from memory_service.schemas import Order, SearchResults


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
@click.option("--explain", is_flag=True, help="Show what every signal added to each score.")
@ordered
@placed
@filtered
def search(place: Place, query: str, limit: int, mode: Mode, explain: bool, order: Order, kept: SearchFilter) -> None:
    """Find the passages that answer QUERY, with file and lines."""
    from memory_service import answers

    with place.service() as service:
        started = time.perf_counter()
        found = service.search(place.workspace, query, limit=limit, mode=mode, kept=kept, explain=explain, order=order)
        took_ms = (time.perf_counter() - started) * 1000
        fusion = service.settings.ranking.fusion
    answer = answers.search_results(found, fusion=fusion, min_score=None, explain=explain, took_ms=took_ms)
    if place.as_json:
        emit_json(answer)
        return
    _print_results(answer)
    warn(answer.degraded)


def _print_results(answer: SearchResults) -> None:
    if not answer.results:
        click.echo("nothing found", err=True)
    for number, result in enumerate(answer.results, 1):
        where = click.style(result.citation, fg="cyan")
        title = click.style(" › ".join(result.heading), dim=True)
        click.echo(f"{number}. {where}  {result.score:.2f}  {title}".rstrip())
        click.echo(indented(result.text))
        for name, part in (result.signals or {}).items():
            click.secho(f"     {name:<10} {part:+.3f}", dim=True)


@click.command()
@click.argument("query")
@click.option("--budget-tokens", "-b", type=click.IntRange(min=0), default=2000, show_default=True, help="Most tokens.")
@click.option("--system-prompt", default="", help="Print the block behind this prompt.")
@ordered
@placed
@filtered
def context(place: Place, query: str, budget_tokens: int, system_prompt: str, order: Order, kept: SearchFilter) -> None:
    """Print the block of memories for a prompt about QUERY.

    What went in, at which cost, is told on stderr.
    """
    from memory_service import answers

    with place.service() as service:
        made = service.context(place.workspace, query, budget_tokens=budget_tokens, kept=kept, order=order)
        fusion = service.settings.ranking.fusion
    answer = answers.context(made, system_prompt=system_prompt, fusion=fusion)
    if place.as_json:
        emit_json(answer)
        return
    if answer.system_prompt:
        click.echo(answer.system_prompt)
    receipt = answer.receipt
    told = f"{len(receipt.included)} in, {receipt.omitted_count} left out; {answer.tokens} of {budget_tokens} tokens"
    click.secho(f"{receipt.reason or told}; receipt {receipt.receipt_id}", dim=True, err=True)
    warn(answer.degraded)

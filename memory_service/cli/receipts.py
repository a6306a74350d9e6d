"""Command of receipts: what went into the last prompts, and what stayed out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memory_service.cli.options import Place, examples, with_place
from memory_service.cli.output import emit_json, indent_lines, one_line

if TYPE_CHECKING:
    from memory_service.schemas import Receipt

_SHOWN_CELLS = 80


@click.command(epilog=examples("receipts --limit 5", "receipts --session support-42 --json"))
@click.option("--session", "session_id", help="Only receipts of this session.")
@click.option("--limit", "-n", type=click.IntRange(1, 500), default=20, show_default=True, help="Most receipts.")
@with_place
def receipts(place: Place, session_id: str | None, limit: int) -> None:
    """List what went into the last prompts, and what stayed out."""
    with place.memory(embeds=False) as service:
        listing = service.receipts(place.workspace, session_id=session_id, limit=limit)
    if place.as_json:
        emit_json(listing)
        return
    if not listing.receipts:
        click.echo(f"no receipts in {place}", err=True)
    for receipt in listing.receipts:
        _print_receipt(receipt)


def _print_receipt(receipt: Receipt) -> None:
    session = f"  {receipt.session_id}" if receipt.session_id else ""
    sizes = f"{receipt.tokens} of {receipt.budget_tokens} tokens"
    query = one_line(receipt.query, _SHOWN_CELLS)
    click.echo(f"{click.style(receipt.receipt_id, fg='cyan')}  {sizes}{session}  {query}")
    for item in receipt.included:
        click.echo(indent_lines(f"in   {item.path}#L{item.start_line}-L{item.end_line}  {item.tokens} tokens"))
    for item in receipt.omitted:
        click.echo(indent_lines(f"out  {item.path}#L{item.start_line}-L{item.end_line}  {item.reason}"))
    if receipt.reason:
        click.echo(indent_lines(receipt.reason))

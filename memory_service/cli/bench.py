"""The command that measures a workspace's own index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from memory_service.cli.options import Place, placed
from memory_service.cli.output import columns, emit_value, warn, working

if TYPE_CHECKING:
    from memory_service.benchmark import Benchmark


@click.command()
@click.option(
    "--seconds",
    type=click.IntRange(1, 3600),
    default=5,
    show_default=True,
    help="How long to search, and how long to index.",
)
@placed
def bench(place: Place, seconds: int) -> None:
    """Measure the searching and indexing of this workspace.

    Questions are words of its own passages, none asked twice. What a search finds by vector
    is compared with the exact nearest passages as sqlite-vec tells them. Files are indexed anew into a
    temporary folder; the workspace stays as it is. A model of a provider is asked too, which may cost money.

    Stages: view (see what has changed), words (look the question's up), embed (its vector), rank, fetch (read
    the passages), rerank (where rerank_model is set).
    """
    with place.service() as service:
        measured = service.bench(place.workspace, seconds=seconds, told=working)
    if place.as_json:
        emit_value(measured)
    else:
        for line in columns(_rows(measured)):
            click.echo(line)
    warn(measured.degraded)


def _rows(measured: Benchmark) -> Iterator[tuple[str, str]]:
    packed = f"{measured.packed:,} packed" if measured.packed else "all looked at for every question"
    yield "passages", f"{measured.passages:,}, {packed}"
    rate = f"{measured.searches_per_second:,.0f} a second"
    yield "searches", f"{rate}, {measured.mode} ({measured.searches:,} made, one after another)"
    for stage in measured.stages:
        yield f"  {stage.name}", f"p50 {stage.p50_ms:7.2f} ms   p99 {stage.p99_ms:7.2f} ms"
    if measured.recall is not None:
        yield "recall@10", f"{measured.recall:.3f} of the exact nearest"
    if measured.indexing_per_second is not None:
        yield "indexing", f"{measured.indexing_per_second:,.0f} passages a second ({measured.indexed:,} made)"
    if measured.embedding_per_second is not None:
        yield "model alone", f"{measured.embedding_per_second:,.0f} passages a second"

"""Commands for the home: which workspaces it has, and another home joined to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_service.cli.options import Place, examples, with_place
from memory_service.cli.output import emit_value

if TYPE_CHECKING:
    import datetime as dt


@click.command()
@with_place
def workspaces(place: Place) -> None:
    """List the workspaces of the home.

    Files, sessions, last change, and the folder of the coding agent's project that each is of.
    """
    with place.service() as service:
        summaries, home = service.workspace_summaries(), service.settings.place
    if place.as_json:
        emit_value({"home": home, "workspaces": summaries})
        return
    if not summaries:
        click.echo(f"no workspace in {home} yet; a first memory makes one", err=True)
    rows = [
        (
            summary.workspace,
            _count_of(summary.memory_files, "file"),
            _count_of(summary.sessions, "session"),
            _local(summary.modified_at),
        )
        for summary in summaries
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, each_summary in zip(rows, summaries, strict=True):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join((*cells, each_summary.project or "")).rstrip())


@click.command(epilog=examples("join ~/project/data --dry-run", "join ~/project/data"))
@click.argument("other", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Say what would be copied, and do nothing.")
@with_place
def join(place: Place, other: Path, dry_run: bool) -> None:
    """Copy what another home has and this one lacks.

    All workspaces of the home OTHER are looked at. Nothing of OTHER is changed, and no file here is replaced: one that
    differs is copied beside the one here.
    """
    with place.service() as service:
        join = service.join(other.absolute(), dry_run=dry_run)
    if place.as_json:
        emit_value(join)
        return
    for file in join.missing:
        renamed_text = f"  as {file.target}" if file.state == "renamed" else ""
        click.echo(f"{file.workspace}/{file.path}{renamed_text}")
    done_kind = "would be copied" if dry_run else "copied"
    there = len(join.files) - len(join.missing)
    click.echo(f"{_count_of(len(join.missing), 'file')} {done_kind} into {join.home}, {there} there already", err=True)


def _count_of(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _local(moment: dt.datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"

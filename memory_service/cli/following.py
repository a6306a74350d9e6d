"""Owns what `reindex --watch` prints: one line for each change that was indexed, until Ctrl-C."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import click

from memory_service.cli.output import warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_service.cli.options import Place
    from memory_service.service import MemoryService
    from memory_service.watching import Followed

_NAMED_PATHS = 3


def keep_following(place: Place, service: MemoryService, paths: Sequence[str]) -> None:
    """Print what is indexed as it changes; returns when the person ends it."""

    def show(followed: Followed) -> None:
        if place.as_json:
            click.echo(_json_line(followed))
        else:
            _print_line(followed)

    if not place.as_json:
        click.secho("watching for changes; Ctrl-C ends it", dim=True, err=True)
    try:
        service.follow(place.workspace, show, threading.Event(), paths)
    except KeyboardInterrupt:
        # Asked for, and what was indexed is stored.
        return


def _json_line(followed: Followed) -> str:
    from memory_service import answers

    report = answers.reindex_report(followed.report).model_dump(mode="json")
    told = {"paths": followed.paths, **report} | ({"error": followed.failure} if followed.failure else {})
    return json.dumps(told, ensure_ascii=False)


def _print_line(followed: Followed) -> None:
    if followed.failure:
        click.secho(f"failed: {followed.failure}", fg="red", err=True)
        return
    report = followed.report
    shown = ", ".join(followed.paths[:_NAMED_PATHS])
    more = len(followed.paths) - _NAMED_PATHS
    named = f"{shown} and {more} more" if more > 0 else shown
    counts = f"+{report.added} ~{report.changed} -{report.removed}"
    click.echo(f"{named}  {counts}  {report.seconds * 1000:.0f} ms")
    for failure in report.failed:
        click.secho(f"failed: {failure.path}: {failure.reason}", fg="red", err=True)
    warn(report.degraded)

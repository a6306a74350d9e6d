"""Owns what a command prints: results on stdout, everything else on stderr, JSON where it was asked for."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import BaseModel

    from memory_service.errors import MemoryServiceError


def emit_json(answer: BaseModel) -> None:
    """Print an answer as JSON."""
    click.echo(answer.model_dump_json(indent=2))


def emit_value(answer: object) -> None:
    """Print what consists of more than one answer as JSON."""
    click.echo(json.dumps(answer, ensure_ascii=False, indent=2, default=_plain))


def _plain(value: object) -> object:
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (dt.datetime, dt.date)):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON.")


def warn(lines: Iterable[str]) -> None:
    """Name what was missing, on stderr."""
    for line in lines:
        click.secho(f"degraded: {line}", fg="yellow", err=True)


def working(what: str) -> None:
    """Say on stderr that something may take a while, where a person is looking."""
    if sys.stderr.isatty():
        click.secho(f"{what} …", dim=True, err=True)


def failed(error: MemoryServiceError) -> int:
    """Tell an error in one line on stderr; gives the exit code."""
    if "--json" in sys.argv[1:]:
        click.echo(json.dumps({"error": {"code": error.code, "message": str(error)}}, ensure_ascii=False), err=True)
    else:
        click.secho(f"error: {error}", fg="red", err=True)
    return 1


def indented(text: str, by: str = "   ") -> str:
    """A text with every line set in."""
    return "\n".join(by + line for line in text.splitlines())


def columns(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Names and values in two columns."""
    listed = list(rows)
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        yield f"{name:<{width}}  {value}"

"""Owns what a command prints: results on stdout, everything else on stderr, JSON where it was asked for."""

from __future__ import annotations

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


def warn(lines: Iterable[str]) -> None:
    """Name what was missing, on stderr."""
    for line in lines:
        click.secho(f"degraded: {line}", fg="yellow", err=True)


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

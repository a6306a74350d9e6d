"""The command demo: all of the service on the bundled sample."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from memory_service.cli.output import emit_value


@click.command()
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Leave the sample in this empty folder.")
@click.option(
    "--language", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Of story and sample."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines: every number of the story.")
def demo(keep: Path | None, language: str, as_json: bool) -> None:
    """Tell the whole story on a bundled sample.

    A recorded conversation outgrows a small window: its memories are flushed to a dated file, it is compacted, and a
    later question is answered from memory, within a budget. Works on a copy; needs no key and no network.
    """
    from memory_service.cli.demo.output import JsonProgress, TextOutput, next_steps
    from memory_service.cli.demo.run import run_demo
    from memory_service.cli.demo.text.stories import STORIES

    with _home(keep) as home:
        story = STORIES[language]
        made = run_demo(home, JsonProgress() if as_json else TextOutput(story), story, kept=keep is not None)
    if as_json:
        emit_value(made)
    else:
        next_steps(story, f" --home {shlex.quote(str(keep))}" if keep else "")


@contextmanager
def _home(keep: Path | None) -> Iterator[Path]:
    if keep:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="memory-demo-") as name:
        yield Path(name)

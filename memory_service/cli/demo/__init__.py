"""The command demo: all of the service on the bundled sample."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from memory_service.cli.output import emit_value, indent_lines


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
    from memory_service.cli.demo.run import run_demo
    from memory_service.cli.demo.story import Telling, story_in

    telling = Telling(story_in(language), prints=not as_json)
    begun_time = time.perf_counter()
    with _home(keep) as home:
        run_demo(home, telling)
    if as_json:
        emit_value({"lines": telling.figures, "seconds": time.perf_counter() - begun_time, "home": str(keep or "")})
    else:
        _next_steps(telling.story.lines, f" --home {shlex.quote(str(keep))}" if keep else "")


def _next_steps(words: Mapping[str, str], home_option: str) -> None:
    """Print commands to go on with."""
    click.echo()
    click.secho(words["own"], bold=True)
    click.echo(indent_lines(f'memory-service remember "…"{home_option}'))
    click.echo(indent_lines(f"memory-service serve{home_option}     {words['serve']}\n{words['python']}"))
    code = (
        f'session = MemoryClient("http://127.0.0.1:8765").session("support-42")   {words["imported"]}',
        'session.append({"role": "user", "content": "…"})',
        f'session.context(system_prompt="…").messages                            {words["sent"]}',
    )
    click.echo(indent_lines("\n".join(code), "     "))


@contextmanager
def _home(keep: Path | None) -> Iterator[Path]:
    if keep:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="memory-demo-") as name:
        yield Path(name)

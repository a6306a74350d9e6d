"""The command that tells the whole story on the bundled sample: demo."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_service.cli.output import indented

if TYPE_CHECKING:
    from memory_service.service import MemoryService

_WORKSPACE = "default"
_BUDGET_TOKENS = 220
_PROMPT = "You are the shop's assistant."
_QUESTIONS = (
    ("What caused the wrong tax rate for people in Vienna?", "the note says neither Vienna nor wrong"),
    ("when do we deploy?", "the rule, and the note that says since when and why"),
    ("去云南的行程改到几号了？", "Chinese, which no space divides into words"),
)
_NEWS = "The courier picks up at 15:30 from Monday on, half an hour earlier."


@click.command()
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Leave the sample in this empty folder.")
def demo(keep: Path | None) -> None:
    """Tell the whole story on a bundled sample.

    Notes in, search, memory in a prompt, within a budget. Works on a copy; needs no key and no network.
    """
    from memory_service.sample import copy_sample
    from memory_service.service import MemoryService

    with _home(keep) as home:
        folder = copy_sample(home)
        with MemoryService.open(home) as service:
            _show_files(folder)
            _index(service)
            _search(service)
            memory_id = _remember(service, folder)
            _inject(service)
            _forget(service, memory_id)
    _next_steps(keep)


@contextmanager
def _home(keep: Path | None) -> Iterator[Path]:
    if keep:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="memory-demo-") as name:
        yield Path(name)


def _step(number: int, title: str, told: str) -> None:
    click.echo()
    click.secho(f"{number}. {title}", bold=True)
    click.secho(indented(told), dim=True)


def _show_files(folder: Path) -> None:
    files = sorted(folder.rglob("*.md"))
    _step(
        1,
        "An agent's memory is a folder of Markdown",
        "Read it, edit it, put it under version control. This one belongs to a small plant shop.",
    )
    names = [path.relative_to(folder).as_posix() for path in files]
    click.echo(indented(f"{names[0]}  {names[1]}  {names[2]}  …  {names[-1]}   ({len(names)} files)"))
    last = files[-1].read_text("utf-8").splitlines()
    click.echo(indented("\n".join(last[2:9]), "   │ "))


def _index(service: MemoryService) -> None:
    _step(
        2,
        "reindex",
        "Every list item, paragraph and table row becomes a passage: words and a vector in one SQLite file.",
    )
    report = service.reindex(_WORKSPACE)
    click.echo(
        indented(
            f"{report.added} files, {report.embedded} passages embedded in {report.seconds:.1f} s, on this machine"
        )
    )
    again = service.reindex(_WORKSPACE)
    click.echo(indented(f"again: {again.unchanged} files unchanged, none read, {again.seconds * 1000:.0f} ms"))


def _search(service: MemoryService) -> None:
    from memory_service.answers import citation

    _step(3, "search", "Words and meaning together; every result names its file and lines.")
    for question, remark in _QUESTIONS:
        click.echo(indented(f"{click.style(question, fg='green')}   ({remark})"))
        for hit in service.search(_WORKSPACE, question, limit=2).hits:
            where = citation(hit.path, hit.passage.start_line, hit.passage.end_line)
            click.echo(indented(f"{click.style(where, fg='cyan')}  {hit.snippet}", "     "))


def _remember(service: MemoryService, folder: Path) -> str:
    from memory_service.memories import NewMemory

    _step(4, "remember", "Appended to today's file, on disk before the answer, found by the very next search.")
    entry = service.remember(_WORKSPACE, NewMemory(text=_NEWS, tags=("shipping",), origin="user")).value
    lines = (folder / entry.path).read_text("utf-8").splitlines()
    click.echo(
        indented(f"{entry.path}\n" + "\n".join(f"│ {line}" for line in lines[entry.start_line - 3 : entry.end_line]))
    )
    return entry.memory_id


def _inject(service: MemoryService) -> None:
    question = "When does the courier come, and on which days may live plants leave?"
    made = service.context(_WORKSPACE, question, budget_tokens=_BUDGET_TOKENS)
    receipt = made.receipt
    _step(
        5,
        "context",
        f"What the prompt about a question gets: never more than the budget, here {_BUDGET_TOKENS} tokens.",
    )
    click.echo(indented(click.style(question, fg="green")))
    click.echo(indented(f"{_PROMPT}\n\n{made.block}", "   │ "))
    click.echo(
        indented(f"{receipt.tokens} of {receipt.budget_tokens} tokens, wrapper included. Receipt {receipt.receipt_id}:")
    )
    for item in receipt.included[:3]:
        click.echo(indented(f"in   {item.path} lines {item.start_line}-{item.end_line}, {item.tokens} tokens", "     "))
    click.echo(indented(f"…    {len(receipt.included)} in, {receipt.omitted_count} out, such as", "     "))
    for item in receipt.omitted[:1]:
        click.echo(indented(f"out  {item.path} line {item.start_line}: {item.reason}", "     "))


def _forget(service: MemoryService, memory_id: str) -> None:
    _step(6, "forget", "Erased from the file and from the index, down to the bytes on disk.")
    gone = service.forget(_WORKSPACE, memory_id).value
    left = [
        hit for hit in service.search(_WORKSPACE, "courier picks up at 15:30", limit=50).hits if _NEWS in hit.snippet
    ]
    click.echo(indented(f"{gone.memory_id} is gone from {gone.path}; a search finds {len(left)} of it"))


def _next_steps(keep: Path | None) -> None:
    home = f" --home {shlex.quote(str(keep))}" if keep else ""
    click.echo()
    click.secho("Your own notes:", bold=True)
    click.echo(indented(f'memory-service remember "…"{home}'))
    click.echo(indented(f'memory-service search "…"{home}'))
    click.echo(indented(f"memory-service serve{home}     # HTTP API, documentation at http://127.0.0.1:8765/docs"))

"""Output of commands: results on stdout, everything else on stderr, JSON where it was asked for."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from memory_service.cli.columns import _JOINER, fit_to_cells, pad_text, width

if TYPE_CHECKING:
    from pydantic import BaseModel

    from memory_service.errors import MemoryServiceError
    from memory_service.schemas import StoredMemory
    from memory_service.schemas.base import Erased, PendingErasure
    from memory_service.service import SyncProgress


def emit_json(answer: BaseModel) -> None:
    """Print an answer as JSON."""
    click.echo(answer.model_dump_json(indent=2))


def emit_value(answer: object) -> None:
    """Print several answers as one JSON value."""
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
    """Name missing parts, on stderr."""
    for line in lines:
        click.secho(f"degraded: {line}", fg="yellow", err=True)


def emit_memory(memory: StoredMemory, done: str, *, as_json: bool) -> None:
    """Print a memory that was stored, and what was done with these words; as JSON if wanted."""
    from memory_service.home import citation

    if as_json:
        emit_json(memory)
    else:
        where = citation(memory.path, memory.start_line, memory.end_line)
        click.echo(f"{'already there' if memory.duplicate else done}  {memory.memory_id}  {where}")
    warn(memory.degraded)


def announce_work(what: str) -> None:
    """Say on stderr that something may take a while, on a terminal."""
    if sys.stderr.isatty():
        click.secho(f"{what} …", dim=True, err=True)


def wanted_colour() -> bool | None:
    """False if the person wants none (no-color.org) or the terminal shows none; None leaves it to the terminal."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def print_error(error: MemoryServiceError) -> int:
    """Print an error in one line on stderr; gives the exit code."""
    if "--json" in sys.argv[1:]:
        click.echo(json.dumps({"error": {"code": error.code, "message": str(error)}}, ensure_ascii=False), err=True)
    else:
        click.secho(f"error: {error}", fg="red", err=True, color=wanted_colour())
    return 1


class Indexed(NamedTuple):
    """Progress of indexing.

    Attributes:
        passages: Number of passages done.
        total_passages: Number of all, as far as it is known; 0 where nothing is.
        path: The file at hand; empty where that is not told.
    """

    passages: int
    total_passages: int
    path: str = ""


# A terminal that is narrower has no room for a bar.
_BAR_CELLS = 70
INDEXED_FIRST = "indexing {} passages first; it may be stopped, and goes on with the next command (--no-wait: not now)"
# Fewer passages are done before anybody asks what is being done.
_TOLD_PASSAGES = 100


@contextmanager
def progress_bar(told: str = "") -> Iterator[Callable[[Indexed | SyncProgress], None]]:
    """Progress on stderr: a bar with rate and time left on a terminal that can move its cursor.

    Args:
        told: What is told once, with the number of passages in the place of {}, where there can be no bar and there is
            more than a little to do; empty for nothing.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _told_once(told)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    console = Console(stderr=True)
    is_wide = console.width >= _BAR_CELLS
    numbers = MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=11 if is_wide else 7))
    left = TimeRemainingColumn(compact=not is_wide, table_column=Column(no_wrap=True, min_width=7 if is_wide else 5))
    # On a narrow terminal the path gives way, then the bar, not the numbers.
    shown_value = (
        [
            TextColumn("indexing"),
            BarColumn(bar_width=16),
            numbers,
            TextColumn("passages  {task.fields[rate]}/s  time left"),
            left,
            TextColumn("{task.fields[path]}", style="dim"),
        ]
        if is_wide
        else [TextColumn("indexing"), numbers, TextColumn("passages"), left]
    )
    with Progress(*shown_value, console=console, transient=True) as bar:
        task = bar.add_task("indexing", total=None, rate=0, path="")

        def show(progress: Indexed | SyncProgress) -> None:
            elapsed_value = bar.tasks[task].elapsed or 0
            rate = round(progress.passages / elapsed_value) if elapsed_value > 0.1 else 0
            total = progress.total_passages or None
            bar.update(task, total=total, completed=progress.passages, rate=rate, path=progress.path)

        yield show


def _told_once(told: str) -> Callable[[Indexed | SyncProgress], None]:
    waiting = [told] if told else []

    def show(progress: Indexed | SyncProgress) -> None:
        left = progress.total_passages - progress.passages
        if waiting and left >= _TOLD_PASSAGES:
            click.secho(waiting.pop().format(f"{left:,}"), dim=True, err=True)

    return show


def erased_line(proof: Erased | None) -> str:
    """Proof of an erasure as one line of text."""
    if proof is None:
        return "the index could not be read, so nothing was looked for"
    passages = f"{proof.passages} passage{'' if proof.passages == 1 else 's'}"
    text = f"erased {passages}; looked for in {', '.join(proof.checked)}: nothing left"
    return "\n".join([text, *pending_lines(proof.pending)])


def pending_lines(places: Iterable[PendingErasure]) -> Iterator[str]:
    """Lines on where something that was erased is still."""
    for pending in places:
        # A server's answer that was read without its model has the time as text.
        until = dt.datetime.fromisoformat(str(pending.until)) if pending.until else None
        limit = f"; gone by {until:%Y-%m-%d %H:%M %Z}" if until else ""
        yield f"still in {pending.place}{limit}"


# Relevance in words, from what it begins: of the passages that answer a question about the sample, one in twenty has
# less than the least of them, and of questions that nothing there answers most have no passage that has as much.
_RELEVANCE = ((0.5, "relevant", "green"), (0.1, "likely", "green"), (0.01, "maybe", "yellow"))
_UNLIKELY = "unlikely"


def _relevance_word(relevance: float | None) -> str:
    """A relevance in a word; empty where none is known."""
    if relevance is None:
        return ""
    return next((word for least, word, _ in _RELEVANCE if relevance >= least), _UNLIKELY)


def has_word(text: str, query: str) -> bool:
    """True if a question is one word or one character, and a text has it; letters of ASCII count as whole words."""
    word, text = query.strip().casefold(), text.casefold()
    if len(word.split()) != 1:
        return False
    if word.isascii() and word.isalnum():
        return re.search(rf"\b{word}\b", text, re.ASCII) is not None
    return word in text


def relevance_mark(relevance: float | None, *, named: bool = False) -> str:
    """The same, in a colour for each word.

    Args:
        relevance: The relevance of a passage.
        named: Whether the passage has the one word of the question, so that it is not called unlikely.
    """
    word = _relevance_word(relevance)
    if named and word == _UNLIKELY:
        word = _RELEVANCE[-1][1]
    colour = next((colour for _, known_text, colour in _RELEVANCE if known_text == word), "red")
    return word and click.style(word, fg=colour)


def relevance_counts(known: Iterable[float | None]) -> str:
    """The number of passages of each word, as ` (2 relevant, 1 maybe)`; empty where none is known."""
    words = Counter(map(_relevance_word, known))
    counts = [f"{words[word]} {word}" for word in (*(word for _, word, _ in _RELEVANCE), _UNLIKELY) if words[word]]
    return f" ({', '.join(counts)})" if counts else ""


def nothing_relevant(known: Iterable[float | None]) -> bool:
    """True if there are passages, and all of them are unlikely to bear on the question."""
    words = {_relevance_word(relevance) for relevance in known}
    return words == {_UNLIKELY}


# A memory has 100,000 characters at most.
_MOST_INPUT_BYTES = 512 * 1024


def written_input() -> str:
    """A memory that comes on standard input.

    Raises:
        InvalidRequest: It is no UTF-8.
        TooLarge: It is longer than a memory may be; it may have no end.
    """
    from memory_service.errors import InvalidRequest, TooLarge

    # A longer text would be refused by the memory, which counts characters.
    read = sys.stdin.buffer.read(_MOST_INPUT_BYTES + 1)
    if len(read) > _MOST_INPUT_BYTES:
        raise TooLarge(
            f"More than {_MOST_INPUT_BYTES:,} bytes came on standard input, and a memory is shorter. Nothing was "
            "stored. Write a long text to a file below memory/, which is indexed too."
        )
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest("What came on standard input is not UTF-8. Convert it first, as with iconv.") from None


def indent_lines(text: str, by: str = "   ") -> str:
    """A text with every line indented."""
    return "\n".join(by + line for line in text.splitlines())


# What a terminal obeys instead of showing it, and what turns the direction of what is shown.
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UNITS = ("B", "kB", "MB", "GB")


def printable(text: str) -> str:
    """A text without control characters for a terminal; lines stay lines."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(char if char == "\n" or char.isprintable() else _visible_char(char) for char in text.expandtabs(4))


def _visible_char(char: str) -> str:
    if char == "\r":
        return ""
    if char == _JOINER or char in "\u200b\ufeff":
        return char
    if unicodedata.category(char) in _UNSHOWN:
        return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"
    return char


def one_line(text: str, cells: int) -> str:
    """Beginning of a text on one line."""
    return fit_to_cells(printable(" ".join(text[: 8 * cells].split())), cells)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> Iterator[str]:
    """Lines of a table.

    Args:
        head: Names of the columns.
        rows: As many cells each.
        right: Right-aligned columns, such as numbers.
    """
    listed_texts, numbers = [head, *rows], frozenset(right)
    widths = [max(width(row[at]) for row in listed_texts) for at in range(len(head))]
    for row in listed_texts:
        cells = (pad_text(cell, widths[at], right=at in numbers) for at, cell in enumerate(row))
        yield "  ".join(cells).rstrip()


def bar(tokens: int, marks: Sequence[int], whole: int, *, cells: int = 40) -> str:
    """A gauge, as `[#####....|...|..]`.

    Args:
        tokens: The filled part.
        marks: Thresholds within it.
        whole: The whole bar.
        cells: Its length.
    """
    line = ["."] * cells
    for mark in marks:
        line[_place(mark, whole, cells - 1)] = "|"
    used_count = min(-(-tokens * cells // max(whole, 1)), cells)
    for at in range(used_count):
        line[at] = "#" if line[at] == "." else "+"
    return f"[{''.join(line)}]"


def _place(tokens: int, whole: int, last: int) -> int:
    return max(0, min(tokens * (last + 1) // max(whole, 1), last))


def size(bytes_: int) -> str:
    """A size in bytes, for people."""
    value, unit = float(bytes_), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{bytes_} B"

"""Output of the demo: text on stdout, or for `--json` progress on stderr."""

from __future__ import annotations

import sys

import click

from memory_service.cli.demo.run import WINDOW_TOKENS, AnsweredQuestion, DemoOutput, Moment, Notes, Reindexed, Replay
from memory_service.cli.output import indented

_BAR = 32
_EVERY = 10
_WIDE = 150


class TextOutput(DemoOutput):
    """Text for each finished step."""

    def __init__(self) -> None:
        self._shown = self._recalls = self._passages = 0

    def notes(self, notes: Notes) -> None:
        """Step 1, and the announcement of step 2."""
        _step(1, "files and index", "An agent's memory is Markdown that people read and edit. This is a plant shop's.")
        names = notes.files
        self._passages = notes.passages
        _line(f"{names[0]}  {names[1]}  {names[2]}  …  {names[-1]}   ({len(names)} files)")
        click.echo(indented("\n".join(notes.excerpt), "   │ "))
        _line(
            f"reindex: {notes.passages} passages, words and vectors, in {notes.index_ms / 1000:.1f} s on this machine"
        )
        _line(f"reindex again: nothing changed, no file is read, {notes.again_ms} ms")
        _step(
            2,
            "conversation",
            "The shop's assistant at work with its owner, recorded. Every message is appended to the session's log,\n"
            f"and before each answer the service is asked for the prompt: it has to fit {WINDOW_TOKENS:,} tokens.",
        )

    def moment(self, moment: Moment) -> None:
        """A line for every few messages, and for every event."""
        if not moment.event and moment.message < self._shown + _EVERY:
            return
        self._shown = moment.message - moment.message % _EVERY
        filled = round(_BAR * moment.tokens / moment.window)
        bar = "█" * filled + "░" * (_BAR - filled)
        event = click.style(f"  {moment.event}", fg="yellow") if moment.event else ""
        _line(f"message {moment.message:>3}  {bar}  {moment.tokens:>5,} tokens{event}")

    def replay(self, replay: Replay, reindexed: Reindexed) -> None:
        """Steps 3 to 5."""
        _line(
            f"{replay.messages} messages, {replay.tokens:,} tokens, said from {replay.first_day} to {replay.last_day}; "
            f"largest prompt {replay.peak_tokens:,} of {replay.window:,}"
        )
        _flush(replay)
        _reindex(reindexed, self._passages)
        _compaction(replay)

    def recall(self, recall: AnsweredQuestion, pin: str) -> None:
        """Steps 6 and 7."""
        self._recalls += 1
        if self._recalls == 1:
            told = "A later question about something said early. The window has forgotten it; memory has not."
            _step(6, "context", told)
        else:
            told = "What was pinned when it was said stays in every prompt, word for word. Chinese needs no setting."
            _step(7, "pins, and another language", told)
            _line(f"{'in view' if recall.has_pin else 'NOT in view'}: {pin}")
        _line(click.style(recall.question, fg="green"))
        click.echo(indented(recall.block, "   │ "))
        _line(f"{recall.tokens} of {recall.budget_tokens} tokens, wrapper included; receipt {recall.receipt_id}:")
        for source in recall.sources[:3]:
            where = f"{source.path} lines {source.start_line}-{source.end_line}"
            click.echo(indented(f"in   {where}, {source.tokens} tokens", "     "))
        click.echo(indented(f"…    {len(recall.sources)} in, {recall.omitted} out", "     "))
        where = "was in view already" if recall.is_in_view else "stands nowhere else in the prompt"
        _line(f"the answer {where}; the whole prompt: {recall.prompt_tokens:,} of {recall.window:,} tokens")


class JsonProgress(DemoOutput):
    """Progress on stderr, on a terminal."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()

    def moment(self, moment: Moment) -> None:
        """Overwrite the progress line."""
        if self._is_watched:
            click.echo(f"\rmessage {moment.message} of {moment.messages}", nl=False, err=True)

    def replay(self, replay: Replay, reindexed: Reindexed) -> None:
        """Remove the progress line."""
        if self._is_watched:
            click.echo("\r\x1b[K", nl=False, err=True)


def next_steps(home_option: str) -> None:
    """Commands to go on with."""
    click.echo()
    click.secho("Your own:", bold=True)
    _line(f'memory-service remember "…"{home_option}')
    _line(f"memory-service serve{home_option}     # HTTP API, documentation at http://127.0.0.1:8765/docs")
    _line("In Python, beside it:")
    code = (
        'session = MemoryClient("http://127.0.0.1:8765").session("support-42")   # from memory_service',
        'session.append({"role": "user", "content": "…"})',
        'session.context(system_prompt="…").messages                            # what to send to your model',
    )
    click.echo(indented("\n".join(code), "     "))


def _flush(replay: Replay) -> None:
    _step(3, "flush", "Before a window is full, what is worth keeping is written to today's file, without any model.")
    written = sum(flush.written for flush in replay.flushes)
    _line(f"{written} memories in {len(replay.flushes)} flushes. Of the first, as they stand in the file:")
    for flush in replay.flushes[:1]:
        _line(click.style(flush.path, fg="cyan"))
        for entry in flush.entries:
            click.echo(indented(entry, "   │ "))
        if flush.found:
            _line(f"found by the very next search at {flush.found}")


def _reindex(reindexed: Reindexed, before: int) -> None:
    _step(4, "reindex", "Memories and conversation go into the same index, while it is talked.")
    files = "file" if reindexed.changed == 1 else "files"
    _line(f"{before} passages before the conversation, {reindexed.passages} now")
    _line(
        f"reindex: {reindexed.changed} {files} to catch up with, passages to embed: {reindexed.embedded}; "
        f"{reindexed.took_ms} ms"
    )


def _compaction(replay: Replay) -> None:
    told = "Old messages give way to a checkpoint. The log keeps all of them, and every compaction can be undone."
    _step(5, "compaction", told)
    for done in replay.compactions:
        _line(
            f"{done.compaction_id:<5} {done.tokens_before:>5,} -> {done.tokens_after:>5,} tokens, "
            f"{done.covered_messages} messages, {done.duration_ms} ms; undo gave the view before, "
            f"{done.view_bytes:,} bytes, {'all equal' if done.undo_is_equal else 'NOT EQUAL'}"
        )
    _line("the checkpoint keeps, among others:")
    for kept in replay.kept:
        click.echo(indented(kept if len(kept) <= _WIDE else f"{kept[: _WIDE - 1]}…", "   │ "))
    equal = "byte for byte" if replay.log_is_equal else "NOT EQUAL"
    _line(f"the log has {replay.logged_messages} of {replay.messages} messages, {equal}")


def _step(number: int, title: str, told: str) -> None:
    click.echo()
    click.secho(f"{number}. {title}", bold=True)
    click.secho(indented(told), dim=True)


def _line(text: str) -> None:
    click.echo(indented(text))

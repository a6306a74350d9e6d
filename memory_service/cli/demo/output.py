"""Output of the demo: text on stdout, or for `--json` progress on stderr."""

from __future__ import annotations

import sys

import click

from memory_service.cli.demo.run import AnsweredQuestion, DemoOutput, Moment, Notes, Reindexed, Replay
from memory_service.cli.demo.text.stories import Story
from memory_service.cli.output import indented

_BAR = 32
_EVERY = 10
_WIDE = 150


class TextOutput(DemoOutput):
    """Text for each finished step, in the words of a story."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._shown = self._recalls = self._passages = 0

    def notes(self, notes: Notes) -> None:
        """Step 1, and the announcement of step 2."""
        names, story = notes.files, self._story
        _step(1, story)
        self._passages = notes.passages
        _line(story.files.format(first="  ".join(names[:3]), last=names[-1], count=len(names)))
        click.echo(indented("\n".join(notes.excerpt), "   │ "))
        _line(story.reindex.format(passages=notes.passages, seconds=notes.index_ms / 1000))
        _line(story.again.format(ms=notes.again_ms))
        _step(2, story)

    def moment(self, moment: Moment) -> None:
        """A line for every few messages, and for every event."""
        if not moment.event and moment.message < self._shown + _EVERY:
            return
        self._shown = moment.message - moment.message % _EVERY
        filled = round(_BAR * moment.tokens / moment.window)
        bar = "█" * filled + "░" * (_BAR - filled)
        event = click.style(f"  {moment.event}", fg="yellow") if moment.event else ""
        _line(self._story.message.format(at=moment.message, bar=bar, tokens=moment.tokens) + event)

    def replay(self, replay: Replay, reindexed: Reindexed) -> None:
        """Steps 3 to 5."""
        _line(
            self._story.told.format(
                messages=replay.messages,
                tokens=replay.tokens,
                first=replay.first_day,
                last=replay.last_day,
                peak=replay.peak_tokens,
                window=replay.window,
            )
        )
        _flush(replay, self._story)
        _reindex(reindexed, self._passages, self._story)
        _compaction(replay, self._story)

    def recall(self, recall: AnsweredQuestion, pin: str) -> None:
        """Steps 6 and 7."""
        story = self._story
        self._recalls += 1
        _step(5 + self._recalls, story)
        if self._recalls > 1:
            _line((story.in_view if recall.has_pin else story.not_in_view).format(pin=pin))
        _line(click.style(recall.question, fg="green"))
        click.echo(indented(recall.block, "   │ "))
        sizes = {"tokens": recall.tokens, "budget": recall.budget_tokens, "receipt": recall.receipt_id}
        _line(story.block.format(**sizes))
        for source in recall.sources[:3]:
            lines = {"first": source.start_line, "last": source.end_line, "tokens": source.tokens}
            click.echo(indented(story.source.format(path=source.path, **lines), "     "))
        click.echo(indented(story.sources.format(included=len(recall.sources), omitted=recall.omitted), "     "))
        where = story.answer_in_view if recall.is_in_view else story.answer_in_block
        _line(where + story.whole.format(tokens=recall.prompt_tokens, window=recall.window))


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


def next_steps(story: Story, home_option: str) -> None:
    """Commands to go on with."""
    click.echo()
    click.secho(story.own, bold=True)
    _line(f'memory-service remember "…"{home_option}')
    _line(f"memory-service serve{home_option}     {story.serve}")
    _line(story.python)
    code = (
        f'session = MemoryClient("http://127.0.0.1:8765").session("support-42")   {story.imported}',
        'session.append({"role": "user", "content": "…"})',
        f'session.context(system_prompt="…").messages                            {story.sent}',
    )
    click.echo(indented("\n".join(code), "     "))


def _flush(replay: Replay, story: Story) -> None:
    _step(3, story)
    written = sum(flush.written for flush in replay.flushes)
    _line(story.flushed.format(written=written, count=len(replay.flushes)))
    for flush in replay.flushes[:1]:
        _line(click.style(flush.path, fg="cyan"))
        for entry in flush.entries:
            click.echo(indented(entry, "   │ "))
        if flush.found:
            _line(story.found.format(place=flush.found))


def _reindex(reindexed: Reindexed, before: int, story: Story) -> None:
    _step(4, story)
    files = story.file if reindexed.changed == 1 else story.files_word
    _line(story.before_after.format(before=before, after=reindexed.passages))
    caught_up = {"count": reindexed.changed, "embedded": reindexed.embedded, "ms": reindexed.took_ms}
    _line(story.caught_up.format(files=files, **caught_up))


def _compaction(replay: Replay, story: Story) -> None:
    _step(5, story)
    for done in replay.compactions:
        _line(
            story.compacted.format(
                id=done.compaction_id,
                before=done.tokens_before,
                after=done.tokens_after,
                covered=story.covered.format(count=done.covered_messages) if done.covered_messages else story.cleared,
                ms=done.duration_ms,
                bytes=done.view_bytes,
                equal=story.equal if done.undo_is_equal else story.not_equal,
            )
        )
    _line(story.keeps)
    for kept in replay.kept:
        click.echo(indented(kept if len(kept) <= _WIDE else f"{kept[: _WIDE - 1]}…", "   │ "))
    equal = story.byte_for_byte if replay.log_is_equal else story.not_equal
    _line(story.log.format(logged=replay.logged_messages, messages=replay.messages, equal=equal))


def _step(number: int, story: Story) -> None:
    title, told = story.steps[number - 1]
    click.echo()
    click.secho(f"{number}. {title}", bold=True)
    click.secho(indented(told.format(window=story.window_tokens)), dim=True)


def _line(text: str) -> None:
    click.echo(indented(text))

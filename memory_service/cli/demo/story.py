"""The stories of the demo, a file of `stories/` each, and how one is told: lines for people, figures for machines.

Invariants: each story has the same steps and lines as the others; whatever a line is made of is a figure too.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from memory_service.cli.output import indent_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One story, on the sample of its language.

    Attributes:
        window_tokens: The model's window.
        prompt: The system prompt of the agent.
        pin: The rule that is pinned when it is said.
        said_pin: The words by which that is known in the conversation.
        questions: Two, each with words that answer it.
        steps: Title and introduction of each.
        kept: What stands before lines of a checkpoint, and the heading that they are below: rules, decisions, goals.
        lines: All others, by name; what is in braces is filled in.
    """

    language: str
    window_tokens: int
    prompt: str
    pin: str
    said_pin: str
    questions: Sequence[Sequence[str]]
    steps: Sequence[Sequence[str]]
    kept: Sequence[Sequence[str]]
    lines: Mapping[str, str]


def story_in(language: str) -> Story:
    """The story in a language, named by its code."""
    text = (Path(__file__).parent / "stories" / f"{language}.toml").read_text("utf-8")
    return Story(language=language, **tomllib.loads(text))


class Telling:
    """The telling of a story, line by line as it happens.

    Args:
        story: The story.
        prints: Whether it is printed; else a terminal is shown how far it is.

    Attributes:
        figures: Of each line its name and the values that it is made of.
    """

    def __init__(self, story: Story, *, prints: bool) -> None:
        self.story = story
        self.figures = list[dict[str, object]]()
        self._prints = prints
        self._is_watched = not prints and sys.stderr.isatty()
        self._steps = iter(enumerate(story.steps, 1))

    def step(self) -> None:
        """Begin the next step."""
        number, (title, text) = next(self._steps)
        if self._prints:
            click.echo()
            click.secho(f"{number}. {title}", bold=True)
            click.secho(indent_lines(text.format(window=self.story.window_tokens)), dim=True)

    def note(self, name: str, **figures: object) -> None:
        """Note figures that no line shows."""
        self.figures.append({"line": name, **figures})

    def line(self, name: str, *, by: str = "   ", event: str = "", **figures: object) -> None:
        """Tell the line of that name, and behind it what happened there."""
        self.note(name, **figures, **({"event": event} if event else {}))
        style = click.style(f"  {event}", fg="yellow") if event else ""
        self._echo(self.story.lines[name].format(**figures) + style, by)

    def text(self, text: str, *, by: str = "   ", colour: str | None = None) -> None:
        """Tell what is not of the story's own words."""
        self._echo(click.style(text, fg=colour) if colour else text, by)

    def quote(self, text: str) -> None:
        """Show a text as it stands somewhere."""
        self._echo(text, "   │ ")

    def progress(self, done: int, whole: int) -> None:
        """Show on a terminal how many messages are said; at the end of them the line is removed."""
        if self._is_watched:
            click.echo("\r\x1b[K" if done == whole else f"\rmessage {done} of {whole}", nl=False, err=True)

    def _echo(self, text: str, by: str) -> None:
        if self._prints:
            click.echo(indent_lines(text, by))

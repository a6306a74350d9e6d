"""Coverage of a summary: which messages of whom it stands for, and from when, as the summary says it and as it is read.

Invariants: what is written is read back; the coverage of an earlier summary is added to.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_service.messages.shapes import is_system
from memory_service.messages.sizes import Numbered
from memory_service.text.sentences import media_labels
from memory_service.text.texts import TEXTS, Texts, pattern_of

if TYPE_CHECKING:
    pass


_COUNTS = ("user", "assistant", "tool")


_TIME = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Messages that a summary stands for.

    Attributes:
        first: Number of the first message.
        last: Number of the last message.
        media: How many images and other files came with them.
        since: When the first was appended, as `YYYY-MM-DD hh:mm`; empty if that is not known.
        until: When the last was appended.
    """

    first: int
    last: int
    user: int
    assistant: int
    tool: int
    media: int = 0
    since: str = ""
    until: str = ""

    def render(self, texts: Texts) -> str:
        """The line as it is written in a language."""
        media = texts.coverage_media.format(media=self.media) if self.media else ""
        times = texts.coverage_times.format(since=self.since, until=self.until) if self.since and self.until else ""
        counts = {"user": self.user, "assistant": self.assistant, "tool": self.tool}
        return texts.coverage.format(first=self.first, last=self.last, **counts) + media + times

    def __add__(self, later: Coverage) -> Coverage:
        """Both together."""
        return Coverage(
            first=min(self.first, later.first),
            last=max(self.last, later.last),
            user=self.user + later.user,
            assistant=self.assistant + later.assistant,
            tool=self.tool + later.tool,
            media=self.media + later.media,
            since=self.since or later.since,
            until=later.until or self.until,
        )


def read_coverage(text: str) -> Coverage | None:
    """Coverage that a written line states; None for any other text."""
    return next((coverage for texts in TEXTS.values() if (coverage := _coverage_in(text, texts))), None)


def _coverage_in(text: str, texts: Texts) -> Coverage | None:
    counts = pattern_of(texts.coverage, first=r"\d{1,18}", last=r"\d{1,18}", **dict.fromkeys(_COUNTS, r"\d{1,9}"))
    match = counts.match(text)
    if match is None:
        return None
    at, media, times = match.end(), 0, ("", "")
    if added_match := pattern_of(texts.coverage_media, media=r"\d{1,9}").match(text, at):
        at, media = added_match.end(), int(added_match["media"])
    if told_match := pattern_of(texts.coverage_times, since=_TIME, until=_TIME).match(text, at):
        at, times = told_match.end(), (told_match["since"], told_match["until"])
    first, last, user, assistant, tool = (int(match[name]) for name in ("first", "last", *_COUNTS))
    coverage = Coverage(
        first=first, last=last, user=user, assistant=assistant, tool=tool, media=media, since=times[0], until=times[1]
    )
    return coverage if at == len(text) else None


def coverage_of(messages: Sequence[Numbered]) -> Coverage | None:
    """Coverage of some messages; None if there are none but system messages."""
    counted_messages = [item for item in messages if not is_system(item.message)]
    if not counted_messages:
        return None
    roles = Counter(item.message["role"] for item in counted_messages)
    times = [item.at[:16].replace("T", " ") for item in counted_messages if _is_time(item.at)]
    return Coverage(
        first=min(item.seq for item in counted_messages),
        last=max(item.seq for item in counted_messages),
        user=roles["user"],
        assistant=roles["assistant"],
        tool=roles["tool"],
        media=sum(len(media_labels(item.message)) for item in counted_messages),
        since=times[0] if times else "",
        until=times[-1] if times else "",
    )


def _is_time(at: str) -> bool:
    return re.match(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|$)", at) is not None

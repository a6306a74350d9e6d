"""Owns the one line of a summary that says what it stands for: which messages, whose, from when to when. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.compaction.sentences import media_labels
from memory_service.messages import Numbered, is_system

_LINE = re.compile(
    r"log:(\d{1,18})-(\d{1,18}) has the originals: (\d{1,9}) user, (\d{1,9}) assistant, (\d{1,9}) tool messages"
    r"(?:, (\d{1,9}) \[media\])?(?:, (\d{4}-\d\d-\d\d(?: \d\d:\d\d)?) to (\d{4}-\d\d-\d\d(?: \d\d:\d\d)?))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What a summary stands for.

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

    def __str__(self) -> str:
        """The line as it is written."""
        media = f", {self.media} [media]" if self.media else ""
        times = f", {self.since} to {self.until}" if self.since and self.until else ""
        counts = f"{self.user} user, {self.assistant} assistant, {self.tool} tool messages"
        return f"log:{self.first}-{self.last} has the originals: {counts}{media}{times}"

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
    """What a written line says; None for any other text."""
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    first, last, user, assistant, tool, media = (int(group or 0) for group in match.groups()[:6])
    since, until = match[7] or "", match[8] or ""
    return Coverage(
        first=first, last=last, user=user, assistant=assistant, tool=tool, media=media, since=since, until=until
    )


def coverage_of(messages: Sequence[Numbered]) -> Coverage | None:
    """What messages there are; None if there are none but system messages."""
    counted = [item for item in messages if not is_system(item.message)]
    if not counted:
        return None
    roles = Counter(item.message["role"] for item in counted)
    times = [item.at[:16].replace("T", " ") for item in counted if _is_time(item.at)]
    return Coverage(
        first=min(item.seq for item in counted),
        last=max(item.seq for item in counted),
        user=roles["user"],
        assistant=roles["assistant"],
        tool=roles["tool"],
        media=sum(len(media_labels(item.message)) for item in counted),
        since=times[0] if times else "",
        until=times[-1] if times else "",
    )


def _is_time(at: str) -> bool:
    return re.match(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|$)", at) is not None

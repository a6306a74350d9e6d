"""Owns the view as a compaction is planned on it. A plain value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from memory_service.messages import Numbered


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A view as a plan is made for it; sizes in tokens by estimate.

    Attributes:
        tail: The messages below the checkpoint as they are shown.
        fixed_tokens: What no compaction changes: system messages and pins.
        summary_tokens: What the rest of the checkpoint takes now: summary, ledger, request, and its frame.
        request_tokens: Of that, the last request of the user, if it is not in the tail.
        most_request_tokens: The most that a request takes in a checkpoint; a longer one is shortened.
        settled: Whether nothing was said since the last summary.
        live: Ids of tool calls that still run.
        protected: Messages whose results and media stay: those that are pinned.
        cleared: What was cleared before, by message; the tail shows it so.
        stripped: Messages whose media were stripped before.
        said_tokens: What each result of a tool took when it came, by message.
        last_used_at: When a model last saw the view, for the age of a provider's cache; None if that is not known.
    """

    tail: tuple[Numbered, ...]
    fixed_tokens: int
    summary_tokens: int
    now: dt.datetime
    request_tokens: int = 0
    most_request_tokens: int = 4_000
    settled: bool = False
    live: frozenset[str] = frozenset()
    protected: frozenset[int] = frozenset()
    cleared: Mapping[int, str] = field(default_factory=dict)
    stripped: frozenset[int] = frozenset()
    last_used_at: dt.datetime | None = None
    said_tokens: Mapping[int, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """The whole view."""
        return self.fixed_tokens + self.summary_tokens + sum(each.tokens for each in self.tail)

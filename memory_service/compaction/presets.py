"""Owns the presets: the same machine set to work as each of five systems does, as plain values.

| preset      | begins                  | keeps                        | summary                        |
|-------------|-------------------------|------------------------------|--------------------------------|
| default     | 90 % of what is usable  | a quarter, 2,000 to 20,000   | updated section by section     |
| openclaw    | window less reserve     | 20,000 tokens                | rolling over chunks, two parts |
| turns       | 75 % of the window      | the last 6 turns             | plain text, by the assistant   |
| ponybunny   | 80 % of the window      | 5 to 100 messages            | parts at once, merged          |
| opencode    | all that is usable      | 2 turns, 2,000 to 8,000      | updated section by section     |

Invariants: a preset is a value and does nothing; `default` is what measures best, the others are what their systems do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from memory_service.budget import DEFAULT, OPENCLAW, OPENCODE, PONYBUNNY, TURNS, Thresholds
from memory_service.compaction.bounds import CountFromZero, Share, Switch, Tokens
from memory_service.compaction.cheap import PruningMode
from memory_service.compaction.cut import KeepRules
from memory_service.compaction.guard import GuardRules
from memory_service.compaction.prompts import OPENCODE_HEADINGS
from memory_service.compaction.steps import PruningRules
from memory_service.compaction.stubs import OLD_CLEARED, TRUNCATED
from memory_service.compaction.summary_rules import SummaryRules
from memory_service.schemas import Order

Fallback = Literal["extractive", "note", "last_turns", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRules:
    """What is tried when a provider refuses a prompt for its size.

    Attributes:
        attempts: Compactions in a row, before anything else is tried.
        truncates: Whether oversized results are cut after that, once.
        on_length: Whether an answer that was cut at its end is a reason to compact before the next prompt.
        replays: Whether the last request is put again behind the summary, its media as labels, with a note to go on.
    """

    attempts: CountFromZero = 3
    truncates: Switch = True
    on_length: bool = False
    replays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRules:
    """How memories are put into a prompt.

    Attributes:
        most_tokens: The most that they may take, whatever is asked for; None for no limit.
        order: Whether memories go before what was said in sessions, where a request does not say.
    """

    most_tokens: Tokens | None = None
    order: Order = "score"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """How sessions are compacted.

    Attributes:
        thresholds: When, and how small it gets.
        keep: What stays word for word.
        summary: How a model writes the summary.
        fallback: What stands in for it when the model fails: a summary by rules, a note on how much there was, the
            last turns alone, or nothing: the session stays as it was, and the caller gets the error.
        pruning_mode: What is pruned before anything is summarised.
        role: Whose message the summary is shown as.
        auto: Whether a context compacts by itself where that is due; else only who asks for it does. Source: seed 004,
            `compaction.auto`.
        checkpoint_share: Of the target, what summary and ledger may take together.
        least_summary_tokens: A summary may be so long, however little it stands for.
        most_summary_tokens: And no longer than this, where no share of the window is set.
        summary_share: Of the window, the longest summary. Source: seed 003, 4.1.
        emergency_summary_share: The same after an overflow; None for the same as else. Source: seed 003, 4.3.
        max_history_share: Of the window, what is summarised at once: the oldest half of more than that is summarised
            before the rest, again and again. None for everything. Source: seed 000, 2.4 and 4.2.
        safeguard: Whether summaries have the five sections of OpenClaw's safeguard, and what a context compacts by
            itself has `safeguard` for its trigger. Source: seed 000, 1 and 6, `mode`.
        ledger_share: Of the summary's size, what the ledger may take beside it.
        request_share: Of what is usable, what a request of the user may take in a checkpoint.
        summariser_window_tokens: The window of a model of which nothing is known.
    """

    name: str
    thresholds: Thresholds = DEFAULT
    keep: KeepRules = field(default_factory=KeepRules)
    summary: SummaryRules = field(default_factory=SummaryRules)
    fallback: Fallback = "extractive"
    pruning: PruningRules = field(default_factory=PruningRules)
    pruning_mode: PruningMode = "to_target"
    guard: GuardRules = field(default_factory=GuardRules)
    recovery: RecoveryRules = field(default_factory=RecoveryRules)
    recall: RecallRules = field(default_factory=RecallRules)
    role: Literal["user", "assistant"] = "user"
    auto: Switch = True
    checkpoint_share: Share = 0.35
    least_summary_tokens: Tokens = 200
    most_summary_tokens: Tokens = 4_000
    summary_share: Share | None = None
    emergency_summary_share: Share | None = None
    max_history_share: Share | None = None
    safeguard: Switch = False
    ledger_share: Share = 0.6
    request_share: Share = 0.25
    summariser_window_tokens: Tokens = 32_000

    def longest_summary(self, window_tokens: int, *, emergency: bool = False) -> int:
        """The longest summary for a window, in tokens."""
        share = self.emergency_summary_share if emergency else None
        share = share or self.summary_share
        return self.most_summary_tokens if share is None else max(self.least_summary_tokens, int(share * window_tokens))

    def ledger_tokens(self, summary_tokens: int) -> int:
        """The longest ledger beside a summary of a size."""
        return int(summary_tokens * self.ledger_share)

    def request_tokens(self, usable_tokens: int) -> int:
        """The longest request that a checkpoint carries word for word."""
        return int(usable_tokens * self.request_share)


# Source: seeds 000 and 002: the 20,000 newest tokens stay; two parts merged; a text note when all else fails.
_OPENCLAW = Preset(
    name="openclaw",
    thresholds=OPENCLAW,
    keep=KeepRules(share=0.5, least_tokens=0, most_tokens=20_000),
    summary=SummaryRules(style="rolling", headings=(), keep_partial=True),
    fallback="note",
    max_history_share=0.5,
    # Source: seed 002, 13.4: cut with a notice, or taken out whole; it names no number for the second.
    guard=GuardRules(clear_share=0.5, notice=TRUNCATED),
    pruning_mode="cache_ttl",
    recovery=RecoveryRules(attempts=3, truncates=True),
)

# Source: seed 001: the last 6 turns stay, the summary is the assistant's, what else is missing are the last turns.
_TURNS = Preset(
    name="turns",
    thresholds=TURNS,
    keep=KeepRules(share=1.0, least_tokens=0, most_tokens=None, turns=6),
    summary=SummaryRules(style="plain", headings=()),
    fallback="last_turns",
    pruning_mode="off",
    recovery=RecoveryRules(attempts=2, truncates=False, on_length=True),
    role="assistant",
)

# Source: seed 003: messages kept by the size of the window, two after an error; parts at once, summarised again.
_PONYBUNNY = Preset(
    name="ponybunny",
    thresholds=PONYBUNNY,
    keep=KeepRules(
        share=1.0,
        least_tokens=0,
        most_tokens=None,
        messages_by_window=((16_000, 5), (32_000, 10), (64_000, 20), (128_000, 50), (200_000, 100)),
        emergency_messages=2,
    ),
    summary=SummaryRules(
        style="parts",
        headings=(),
        concurrent=True,
        merge_by_model=False,
        condense=True,
        attempts=3,
    ),
    fallback="note",
    summary_share=0.30,
    emergency_summary_share=0.20,
    pruning_mode="off",
    recovery=RecoveryRules(attempts=3, truncates=False),
    recall=RecallRules(most_tokens=10_000, order="memory_first"),
)

# Source: seed 004: two turns within 2,000 to 8,000 tokens stay, tools say 2,000 characters; no fallback: an error.
_OPENCODE = Preset(
    name="opencode",
    thresholds=OPENCODE,
    keep=KeepRules(share=0.25, least_tokens=2_000, most_tokens=8_000, turns=2),
    # No margin: the model of the session reads all that it was just sent, and says so itself if that is too much.
    summary=SummaryRules(style="sections", headings=OPENCODE_HEADINGS, safety=1.0),
    fallback="none",
    guard=GuardRules(max_chars=2_000),
    pruning=PruningRules(placeholder=OLD_CLEARED),
    pruning_mode="budget",
    recovery=RecoveryRules(attempts=1, truncates=False, replays=True),
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {preset.name: preset for preset in (Preset(name="default"), _OPENCLAW, _TURNS, _PONYBUNNY, _OPENCODE)}
)

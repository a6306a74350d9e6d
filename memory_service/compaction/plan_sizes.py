"""The sizes that a plan of a compaction goes by: what fits, where the preset cuts, what a checkpoint will take. Pure.

Invariants: tokens are as the view is estimated; nothing here depends on how far a plan has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from memory_service.compaction.budget import ContextBudget
from memory_service.compaction.cut import cut_by_count, cut_by_tokens, cut_by_turns, halving_cut, turns_of
from memory_service.compaction.users_request import is_request
from memory_service.messages.sizes import Numbered

if TYPE_CHECKING:
    from memory_service.compaction.presets import Preset
    from memory_service.compaction.snapshot import Snapshot

CompactionTrigger = Literal["manual", "threshold", "overflow", "cache_ttl", "safeguard"]

# Less than this is no progress: the next message would ask for a compaction again.
LEAST_PROGRESS = 0.05
# What a summary may take of what it stands for. Source: ours; Hermes takes a fifth, which after twenty rounds makes the
# log a tenth larger.
_SUMMARY_SHARE = 0.125
# Of what a compaction begins at, what the view may take where turns or messages are counted: there has to be room for
# the conversation to go on.
_COUNTED_SHARE = 0.95


class PlanSizes:
    """Sizes of one view for one compaction.

    Args:
        snapshot: The view as it is.
        preset: How to go about it.
        budget: What fits.
        trigger: Why.
        force: Whether nothing has to ask for it.
        target_tokens: What the view should come to, if not the preset's target.

    Attributes:
        usable: Most tokens of the view.
        target: What it should come to.
        before: What it takes.
        counts: Whether as many turns or messages stay as the preset counts.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        preset: Preset,
        budget: ContextBudget,
        trigger: CompactionTrigger,
        force: bool,
        target_tokens: int | None,
    ) -> None:
        self._snapshot, self._preset, self._budget = snapshot, preset, budget
        self._trigger, self._force = trigger, force
        # The view is estimated, the budget is not.
        self.usable = int(budget.usable_tokens / budget.scale)
        target = target_tokens or (budget.emergency_target_tokens if trigger == "overflow" else budget.target_tokens)
        self.target = min(int(target / budget.scale), self.usable)
        self.before = snapshot.tokens
        # Who names a target wants that, and no count.
        self.counts = preset.keep.counts and target_tokens is None

    def ceiling(self) -> int:
        """Most tokens of the view with the turns or messages that the preset counts."""
        return min(int(_COUNTED_SHARE * self.hard()), int(self.before * (1 - LEAST_PROGRESS)))

    def first_cut(self, tail: Sequence[Numbered], keep_tokens: int) -> int:
        """Where the preset cuts."""
        keep, live = self._preset.keep, self._snapshot.live
        count = keep.last_messages(self._budget.window.tokens, emergency=self._trigger == "overflow")
        by_count = cut_by_count(tail, count, live=live) if count is not None else 0
        by_turns = cut_by_turns(tail, keep.turns, live=live) if keep.turns is not None else 0
        by_tokens = cut_by_tokens(tail, keep_tokens, live=live) if keep.most_tokens is not None else 0
        return max(by_count, by_turns, by_tokens)

    def dropped_upto(self, messages: Sequence[Numbered]) -> int:
        """The last of the oldest messages that are more than may be summarised at once."""
        share = self._preset.max_history_share
        count = 0 if share is None else halving_cut(messages, int(share * self.window()))
        return messages[count - 1].seq if count else 0

    def count_notes(self, tail: Sequence[Numbered], at: int) -> tuple[tuple[str, ...], str]:
        """Notes where more, and where fewer turns or messages stay than the preset counts."""
        if not self.counts:
            return (), ""
        keep = self._preset.keep
        first = self.first_cut(tail, keep.tokens(self.usable))
        count = keep.last_messages(self._budget.window.tokens, emergency=self._trigger == "overflow")
        kept_count = len(tail) - at if count is not None else sum(begin >= at for begin in turns_of(tail))
        wanted_count, unit = (count, "messages") if count is not None else (keep.turns, "turns")
        if at == first:
            more = count is not None and kept_count > count and keep.turns is None
            why = "calls of tools and their results are not parted"
            return ((f"{kept_count} messages stay instead of {wanted_count}: {why}.",) if more else ()), ""
        why = "all there is does not fit" if first == 0 else "more would leave too little of the window to go on"
        return (), f"{kept_count} of {wanted_count} {unit} stay: {why}."

    def request_tokens(self, at: int, tail: Sequence[Numbered]) -> int:
        """Size of the last request if it has to stand in the checkpoint when it is cut at a place."""
        for place in range(len(tail) - 1, -1, -1):
            if is_request(tail[place].message):
                return tail[place].tokens if place < at else 0
        return self._snapshot.whole_request_tokens or self._snapshot.request_tokens

    def of_checkpoint(self, messages: Sequence[Numbered]) -> tuple[int, int]:
        """Expected sizes of summary and ledger: in proportion to what they stand for, and within the target."""
        share = self._preset.checkpoint_share
        size = sum(message.tokens for message in messages) + self._snapshot.summary_tokens
        most = max(self._preset.least_summary_tokens, int(self.target * share))
        tokens = max(self._preset.least_summary_tokens, int(size * _SUMMARY_SHARE))
        summary = min(tokens, self._longest(), most)
        return summary, self._preset.ledger_tokens(min(summary, self._preset.most_summary_tokens))

    def _longest(self) -> int:
        return self._preset.longest_summary(self.window(), emergency=self._trigger == "overflow")

    def longest_summary(self, expected_tokens: int, rest_tokens: int) -> int:
        """How long the summary may be: as long as is expected, or up to its share of the window where that has one."""
        if self._preset.summary_share is None:
            return expected_tokens
        limit = self.ceiling() if self.counts else self.target
        return max(expected_tokens, min(self._longest(), limit - rest_tokens))

    def hard(self) -> int:
        """Size from which a view has to be compacted."""
        return int(self._budget.hard_tokens / self._budget.scale)

    def window(self) -> int:
        """Size of the window."""
        return int(self._budget.window.tokens / self._budget.scale)

    def is_hard(self) -> bool:
        """True if the view does not fit, or the provider says so."""
        return self.is_refused() or self.before > self.usable

    def is_refused(self) -> bool:
        """True if the provider refused the prompt; who forces a compaction for that has an answer that was cut."""
        return self._trigger == "overflow" and not self._force

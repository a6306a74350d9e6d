"""Owns the plan of a compaction: what is cleared, what is covered, what stays, and what that comes to. Pure.

```
cheap steps (duplicates, old results, media)  ->  fits?  ->  stage "prune"
cut, then smaller cuts, then within the turn  ->  fits?  ->  stage "summary"
the newest unit itself cut down               ->  fits?  ->  stage "hard", else Incompressible
```
Invariants: no model is called; a plan that would not shrink the view by a twentieth is none; the same snapshot gives
the same plan; what is newly covered is in `covered` or `prefix`, from the last cut on: nothing falls between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from memory_service.budget import ContextBudget
from memory_service.compaction.cheap import Cheap, CheapWish, cheapened, squeezed
from memory_service.compaction.checkpoint import frame_tokens, is_request
from memory_service.compaction.cut import covered_by, cut_by_count, cut_by_tokens, cut_by_turns, waits
from memory_service.compaction.presets import Preset
from memory_service.compaction.snapshot import Snapshot
from memory_service.compaction.steps import Given
from memory_service.errors import Incompressible
from memory_service.messages import Numbered, is_tool_result
from memory_service.messages.sizes import MESSAGE_TOKENS

Stage = Literal["none", "prune", "summary", "hard"]
CompactionTrigger = Literal["manual", "threshold", "overflow", "cache_ttl", "safeguard"]

# Less than this is no progress: the next message would ask for a compaction again.
LEAST_PROGRESS = 0.05
# A tail that does not fit even where there is room for it is tried at these shares of the tokens that should stay.
_SMALLER = (0.25, 0.0)
# What a summary may take of what it stands for. Source: ours; Hermes takes a fifth, which after twenty rounds makes the
# log a tenth larger.
_SUMMARY_SHARE = 0.125
# What says that a part of a request is left out.
_NOTICE_TOKENS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the ladder that was tried, and what the view comes to behind it."""

    name: str
    tokens_before: int
    tokens_after: int
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a compaction would do.

    Attributes:
        stage: `none` says that there is nothing to do, and `reason` why.
        cleared: The text that will stand for a tool result, by message; only what is new.
        stripped: Messages whose media give way to a label; only those that are new.
        tail_start: The first message that stays word for word; 0 at the stage `prune`.
        covered: What the summary has to stand for, beside the one before it, as the view showed it.
        prefix: The first half of the turn whose second half stays.
        summary_tokens: The longest summary that fits.
        tokens_after: With a summary of that size.
    """

    stage: Stage
    reason: str
    tokens_before: int
    tokens_after: int
    target_tokens: int
    steps: tuple[Step, ...] = ()
    cleared: Mapping[int, str] = field(default_factory=dict)
    stripped: tuple[int, ...] = ()
    tail_start: int = 0
    covered: tuple[Numbered, ...] = ()
    prefix: tuple[Numbered, ...] = ()
    summary_tokens: int = 0
    ledger_tokens: int = 0


def plan_compaction(
    snapshot: Snapshot,
    preset: Preset,
    budget: ContextBudget,
    *,
    trigger: CompactionTrigger = "manual",
    force: bool = False,
    target_tokens: int | None = None,
) -> Plan:
    """Plan a compaction.

    Args:
        snapshot: The view as it is.
        preset: How to go about it.
        budget: What fits.
        trigger: Why; at `threshold` nothing happens below it, and pruning may be all that is needed.
        force: Compact although nothing asks for it.
        target_tokens: What the view should come to, if not the preset's target.

    Raises:
        Incompressible: What cannot be compacted is larger than the window can take.
    """
    return _Planner(snapshot, preset, budget, trigger, force, target_tokens).plan()


class _Planner:
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
        self._usable = int(budget.usable_tokens / budget.scale)
        target = target_tokens or (budget.emergency_target_tokens if trigger == "overflow" else budget.target_tokens)
        self._target = min(int(target / budget.scale), self._usable)
        self._before = snapshot.tokens
        self._lower = target_tokens is not None and self._before > self._target
        self._steps = list[Step]()

    def plan(self) -> Plan:
        if not self._snapshot.tail:
            return self._none("The view has no messages that could be compacted.")
        if self._trigger in ("threshold", "safeguard") and not self._force and self._before < self._hard():
            return self._none(f"The view takes {self._before} tokens, compaction begins at {self._hard()}.")
        if self._is_settled():
            return self._none("Nothing was said since the last compaction.")
        asked = self._force or self._trigger == "manual"
        # Who asks for a summary gets one; what it will cover need not be pruned first.
        prunes = self._trigger == "cache_ttl" or ((self._is_hard() or not asked) and self._may_suffice())
        pruned = self._cheapened() if prunes else Cheap(tail=self._snapshot.tail)
        self._steps += [
            Step(name=step.name, tokens_before=step.tokens_before, tokens_after=step.tokens_after, count=step.count)
            for step in pruned.steps
        ]
        after = self._before - pruned.gain
        if not asked and pruned.gain and after <= self._target:
            return self._pruned(pruned, after)
        if self._trigger == "cache_ttl" and not self._force:
            return self._pruned(pruned, after) if pruned.gain else self._none("Nothing is old enough to be pruned.")
        made = self._summarised(pruned)
        if made is not None:
            return made
        if pruned.gain >= self._before * LEAST_PROGRESS:
            return self._pruned(pruned, after)
        self._check_fits(after)
        return self._none("There is nothing left to compact: what stays is all there is.")

    def _is_settled(self) -> bool:
        """Whether the same was done already: what a summary has left is not summarised again without news."""
        wanted = self._force or self._lower or self._trigger == "overflow"
        return self._snapshot.settled and not wanted and self._before <= self._usable

    def _may_suffice(self) -> bool:
        """Whether the view would be small enough if all results and media were gone."""
        gone = sum(
            each.tokens
            for each in self._snapshot.tail
            if is_tool_result(each.message) or isinstance(each.message.get("content"), list)
        )
        return self._before - gone <= self._target

    def _cheapened(self) -> Cheap:
        snapshot, preset = self._snapshot, self._preset
        wish = CheapWish(
            mode=preset.pruning_mode,
            tokens=self._before,
            target_tokens=self._target,
            usable_tokens=self._usable,
            window_tokens=self._budget.window.tokens,
            now=snapshot.now,
            last_used_at=snapshot.last_used_at,
            hard=self._is_hard(),
        )
        given = Given(
            protected=snapshot.protected,
            already=snapshot.cleared,
            stripped=snapshot.stripped,
            pending=snapshot.live,
            said_tokens=snapshot.said_tokens,
        )
        return cheapened(snapshot.tail, preset.pruning, wish, given)

    def _summarised(self, pruned: Cheap) -> Plan | None:
        """The plan with the largest tail that fits; the smallest one if none does; None if nothing is covered."""
        best: Plan | None = None
        for at in self._cuts(pruned.tail):
            if at == 0 or (best is not None and best.tail_start == _seq_at(pruned.tail, at)):
                continue
            best = self._cut_plan(pruned, at)
            if best.tokens_after <= self._target:
                break
        if best is not None and best.tokens_after <= self._usable:
            return best if best.tokens_after <= self._before * (1 - LEAST_PROGRESS) else None
        return self._hard_plan(pruned, best)

    def _cuts(self, tail: Sequence[Numbered]) -> Iterator[int]:
        """Where to cut, the largest tail first; each is asked for when the one before was too large."""
        live, keep = self._snapshot.live, self._preset.keep.tokens(self._usable)
        first = self._first_cut(tail, keep)
        yield first
        kept = sum(each.tokens for each in tail[first:])
        room = self._target - self._snapshot.fixed_tokens - sum(self._checkpoint_sizes(tail))
        # The request may have to stand in the checkpoint, which takes of the same room.
        less = room - self._frame(len(tail), tail)
        # Where messages or turns are counted, what was kept first may be more than `keep`, or less.
        for tokens in sorted((room, less, keep, *(int(keep * share) for share in _SMALLER)), reverse=True):
            if tokens < kept:
                yield cut_by_tokens(tail, max(tokens, 0), live=live)

    def _first_cut(self, tail: Sequence[Numbered], keep_tokens: int) -> int:
        """Where the preset cuts."""
        keep, live = self._preset.keep, self._snapshot.live
        count = keep.last_messages(self._budget.window.tokens, emergency=self._trigger == "overflow")
        by_count = cut_by_count(tail, count, live=live) if count is not None else 0
        by_turns = cut_by_turns(tail, keep.turns, live=live) if keep.turns is not None else 0
        by_tokens = cut_by_tokens(tail, keep_tokens, live=live) if keep.most_tokens is not None else 0
        return max(by_count, by_turns, by_tokens)

    def _cut_plan(self, pruned: Cheap, at: int) -> Plan:
        covered, prefix = covered_by(pruned.tail, at)
        summary, ledger = self._checkpoint_sizes(covered + prefix)
        tail = sum(each.tokens for each in pruned.tail[at:])
        after = self._snapshot.fixed_tokens + summary + ledger + self._frame(at, pruned.tail) + tail
        self._steps.append(
            Step(
                name="split_turn" if prefix else "summary",
                tokens_before=self._before - pruned.gain,
                tokens_after=after,
                count=at,
            )
        )
        kept = {each.seq for each in pruned.tail[at:]}
        return self._made(
            "summary",
            f"{len(covered) + len(prefix)} messages give way to a summary of at most {summary} tokens.",
            after,
            cleared={seq: text for seq, text in pruned.cleared.items() if seq in kept},
            stripped=tuple(seq for seq in pruned.stripped if seq in kept),
            tail_start=_seq_at(pruned.tail, at),
            covered=covered,
            prefix=prefix,
            summary_tokens=summary,
            ledger_tokens=ledger,
        )

    def _hard_plan(self, pruned: Cheap, best: Plan | None) -> Plan | None:
        """The newest unit is larger than what is left for it: its results are cut down, or it is covered too."""
        at = _place_of(pruned.tail, best.tail_start) if best is not None else 0
        covered, prefix = covered_by(pruned.tail, at)
        summary, ledger = self._checkpoint_sizes(covered + prefix)
        room = self._usable - self._snapshot.fixed_tokens - summary - ledger - self._frame(at, pruned.tail)
        cut = squeezed(pruned.tail[at:], room, protected=tuple(self._snapshot.protected))
        after = self._usable - room + sum(each.tokens for each in cut.tail)
        if sum(each.tokens for each in cut.tail) > room:
            at, cut = len(pruned.tail), Cheap(tail=())
            covered, prefix = covered_by(pruned.tail, at)
            summary, ledger = self._checkpoint_sizes(covered + prefix)
            all_gone = self._snapshot.fixed_tokens + summary + ledger + self._frame(at, pruned.tail)
            running = waits(pruned.tail, self._snapshot.live)
            if not _ends_with_user(pruned.tail) or running or all_gone > self._usable:
                self._check_fits(after)
                return None
            after = all_gone
        self._steps.append(Step(name="hard", tokens_before=self._before, tokens_after=after, count=len(cut.cleared)))
        kept = {each.seq for each in pruned.tail[at:]}
        return self._made(
            "hard",
            "The newest messages alone are larger than the window; they are cut down, the originals stay in the log.",
            after,
            cleared={seq: text for seq, text in {**pruned.cleared, **cut.cleared}.items() if seq in kept},
            stripped=tuple(seq for seq in (*pruned.stripped, *cut.stripped) if seq in kept),
            tail_start=_seq_at(pruned.tail, at),
            covered=covered,
            prefix=prefix,
            summary_tokens=summary,
            ledger_tokens=ledger,
        )

    def _frame(self, at: int, tail: Sequence[Numbered]) -> int:
        """What the checkpoint takes beside summary, ledger and pins when it is cut at a place."""
        asked = [place for place, each in enumerate(tail) if is_request(each.message)]
        request = self._snapshot.request_tokens
        if asked:
            most = self._snapshot.most_request_tokens + _NOTICE_TOKENS
            request = min(tail[asked[-1]].tokens, most) if asked[-1] < at else 0
        return frame_tokens() + MESSAGE_TOKENS + request

    def _checkpoint_sizes(self, covered: Sequence[Numbered]) -> tuple[int, int]:
        """The longest summary and ledger: in proportion to what they stand for, and within the target."""
        share = self._preset.checkpoint_share
        size = sum(each.tokens for each in covered) + self._snapshot.summary_tokens
        most = max(self._preset.least_summary_tokens, int(self._target * share))
        wanted = max(self._preset.least_summary_tokens, int(size * _SUMMARY_SHARE))
        summary = min(wanted, self._preset.most_summary_tokens, most)
        return summary, self._preset.ledger_tokens(summary)

    def _pruned(self, pruned: Cheap, after: int) -> Plan:
        count = len(pruned.cleared) + len(pruned.stripped)
        return self._made(
            "prune",
            f"{count} old results or media give way to stubs; no summary is needed.",
            after,
            cleared=pruned.cleared,
            stripped=pruned.stripped,
        )

    def _none(self, reason: str) -> Plan:
        return self._made("none", reason, self._before)

    def _made(
        self,
        stage: Stage,
        reason: str,
        after: int,
        *,
        cleared: Mapping[int, str] | None = None,
        stripped: tuple[int, ...] = (),
        tail_start: int = 0,
        covered: tuple[Numbered, ...] = (),
        prefix: tuple[Numbered, ...] = (),
        summary_tokens: int = 0,
        ledger_tokens: int = 0,
    ) -> Plan:
        return Plan(
            stage=stage,
            reason=reason,
            tokens_before=self._before,
            tokens_after=after,
            target_tokens=self._target,
            steps=tuple(self._steps),
            cleared=cleared or {},
            stripped=stripped,
            tail_start=tail_start,
            covered=covered,
            prefix=prefix,
            summary_tokens=summary_tokens,
            ledger_tokens=ledger_tokens,
        )

    def _check_fits(self, after: int) -> None:
        if after <= self._usable:
            return
        last = self._snapshot.tail[-1].tokens if self._snapshot.tail else 0
        parts = {
            "system": self._budget.overhead_tokens,
            "pins": self._snapshot.fixed_tokens,
            "summary": self._snapshot.summary_tokens,
            "last_unit": last,
        }
        raise Incompressible(
            f"The view takes {after} tokens and {self._usable} fit, and nothing is left to compact: "
            + ", ".join(f"{name} {tokens}" for name, tokens in sorted(parts.items(), key=lambda part: -part[1]))
            + ". Shorten the largest part, or use a model with a larger window.",
            parts=dict(sorted(parts.items(), key=lambda part: -part[1])),
        )

    def _hard(self) -> int:
        return int(self._budget.hard_tokens / self._budget.scale)

    def _is_hard(self) -> bool:
        return self._trigger == "overflow" or self._before > self._usable


def _seq_at(tail: Sequence[Numbered], at: int) -> int:
    return tail[at].seq if at < len(tail) else tail[-1].seq + 1


def _place_of(tail: Sequence[Numbered], seq: int) -> int:
    return next((at for at, each in enumerate(tail) if each.seq >= seq), len(tail))


def _ends_with_user(tail: Sequence[Numbered]) -> bool:
    return bool(tail) and tail[-1].message["role"] == "user"

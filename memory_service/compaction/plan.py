"""The plan of a compaction: what is cleared, what is covered, what stays, and what that comes to. Pure.

```
cheap steps (duplicates, old results, media)  ->  fits?  ->  stage "prune"
cut, then smaller cuts, then within the turn  ->  fits?  ->  stage "summary"
a shorter summary, then a shorter request     ->  fits?  ->  stage "summary"
the newest unit itself cut down               ->  fits?  ->  stage "hard", else Incompressible
```
Invariants: no model is called; a plan that would not shrink the view by a twentieth is none; the same snapshot gives
the same plan; what is newly covered is in `covered` or `prefix`, from the last cut on: nothing falls between; the last
request and the newest unit are cut only where they do not fit beside the shortest summary, and `cuts` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from memory_service.compaction.budget import ContextBudget
from memory_service.compaction.checkpoint import frame_tokens
from memory_service.compaction.cut import (
    covered_by,
    cut_by_tokens,
    has_running_call,
    largest_counted_cut,
)
from memory_service.compaction.plan_sizes import LEAST_PROGRESS, CompactionTrigger, PlanSizes
from memory_service.compaction.presets import Fallback, Preset
from memory_service.compaction.prune_steps import PriorPruning
from memory_service.compaction.pruning import PruningOutcome, PruningRequest, prune, truncate_results
from memory_service.compaction.summary import read_upto, without_tools
from memory_service.errors import Incompressible
from memory_service.messages.shapes import is_system, is_tool_result
from memory_service.messages.sizes import MESSAGE_TOKENS, Numbered
from memory_service.schemas.compaction import CompactionStep

if TYPE_CHECKING:
    from memory_service.compaction.snapshot import Snapshot
    from memory_service.compaction.view import Conversation

    pass

if TYPE_CHECKING:
    from memory_service.compaction.presets import Fallback, Preset
    from memory_service.compaction.snapshot import Snapshot

_Stage = Literal["none", "prune", "summary", "hard"]

# A tail that does not fit even where there is room for it is tried at these shares of the tokens that should stay.
_SMALLER = (0.25, 0.0)
# What says that a part of a request is left out.
_NOTICE_TOKENS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Plan of a compaction.

    Attributes:
        stage: `none` says that there is nothing to do, and `reason` why.
        cleared: The text that will stand for a tool result, by message; only what is new.
        stripped: Messages whose media give way to a label; only those that are new.
        tail_start: The first message that stays word for word; 0 at the stage `prune`.
        covered: What the summary has to stand for, beside the one before it, as the view showed it.
        prefix: The first half of the turn whose second half stays.
        dropped_upto: The last of the covered messages that are summarised before the others; 0 for none.
        toolless_upto: The last message that is shown without its tools; 0 for none.
        summary_tokens: The longest summary that fits.
        summary_expected_tokens: What of it is in `tokens_after`.
        ledger_limit_tokens: The longest ledger that fits, where that is less than a view shows; None for that.
        whole_request: Whether the last request stands in the checkpoint however long it is.
        tokens_after: With a summary of the size that is expected.
        notes: Which numbers of the preset gave way, and why; each a sentence for the receipt.
        fewer: The same where fewer turns or messages stay than it counts; empty for none.
        cuts: What of the newest messages is not shown in full, and why; the same.
    """

    stage: _Stage
    reason: str
    tokens_before: int
    tokens_after: int
    target_tokens: int
    steps: tuple[CompactionStep, ...] = ()
    cleared: Mapping[int, str] = field(default_factory=dict)
    stripped: tuple[int, ...] = ()
    tail_start: int = 0
    covered: tuple[Numbered, ...] = ()
    prefix: tuple[Numbered, ...] = ()
    dropped_upto: int = 0
    toolless_upto: int = 0
    summary_tokens: int = 0
    summary_expected_tokens: int = 0
    ledger_tokens: int = 0
    ledger_limit_tokens: int | None = None
    whole_request: bool = False
    notes: tuple[str, ...] = ()
    fewer: str = ""
    cuts: tuple[str, ...] = ()

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Sentences on all that is shown shorter, or fewer, than it should be."""
        return (*self.cuts, self.fewer) if self.fewer else self.cuts


def plan_compaction(
    snapshot: Snapshot,
    preset: Preset,
    budget: ContextBudget,
    *,
    trigger: CompactionTrigger = "manual",
    force: bool = False,
    target_tokens: int | None = None,
    fallback: Fallback | None = None,
) -> Plan:
    """Plan a compaction.

    Args:
        snapshot: The view as it is.
        preset: How to go about it.
        budget: What fits.
        trigger: Why; at `threshold` nothing happens below it, and pruning may be all that is needed.
        force: Compact although nothing asks for it.
        target_tokens: What the view should come to, if not the preset's target.
        fallback: What stands in for a model's summary, if not the preset's; `last_turns` leaves tools out also where
            the view would be over its target.

    Raises:
        Incompressible: What cannot be compacted is larger than the window can take.
    """
    return _Planner(snapshot, preset, budget, trigger, force, target_tokens, fallback or preset.fallback).plan()


class _Planner:
    def __init__(
        self,
        snapshot: Snapshot,
        preset: Preset,
        budget: ContextBudget,
        trigger: CompactionTrigger,
        force: bool,
        target_tokens: int | None,
        fallback: Fallback,
    ) -> None:
        self._snapshot, self._preset, self._budget = snapshot, preset, budget
        self._trigger, self._force, self._fallback = trigger, force, fallback
        self._sizes = sizes = PlanSizes(snapshot, preset, budget, trigger, force, target_tokens)
        self._usable, self._target, self._before = sizes.usable, sizes.target, sizes.before
        self._counts = sizes.counts
        self._lower = target_tokens is not None and self._before > self._target
        self._steps = list[CompactionStep]()
        self._whole = True  # the last request, until it turns out that it does not fit

    def plan(self) -> Plan:
        if not self._snapshot.tail:
            return self._no_plan("The view has no messages that could be compacted.")
        if self._trigger in ("threshold", "safeguard") and not self._force and self._before < self._sizes.hard():
            return self._no_plan(f"The view takes {self._before} tokens, compaction begins at {self._sizes.hard()}.")
        if self._is_settled():
            return self._no_plan("Nothing was said since the last compaction.")
        is_asked = self._force or self._trigger == "manual"
        # Who asks for a summary gets one; what it will cover need not be pruned first.
        prunes = self._trigger == "cache_ttl" or ((self._sizes.is_hard() or not is_asked) and self._may_suffice())
        outcome = self._prune() if prunes else PruningOutcome(tail=self._snapshot.tail)
        self._steps += outcome.steps
        after = self._before - outcome.gain
        if not is_asked and outcome.gain and after <= self._target:
            return self._prune_plan(outcome, after)
        if self._trigger == "cache_ttl" and not self._force:
            return (
                self._prune_plan(outcome, after)
                if outcome.gain
                else self._no_plan("Nothing is old enough to be pruned.")
            )
        plan = self._summary_plan(outcome)
        if plan is not None:
            return plan
        if outcome.gain >= self._before * LEAST_PROGRESS:
            return self._prune_plan(outcome, after)
        self._check_fits(after)
        if self._keeps_all(outcome.tail):
            return self._no_plan("There is nothing to compact: all there is, is what the preset keeps.")
        return self._no_plan("There is nothing left to compact: what stays is all there is.")

    def _is_settled(self) -> bool:
        """True if these messages were summarised before and nothing came since."""
        is_wanted = self._force or self._lower or self._trigger == "overflow"
        return self._snapshot.settled and not is_wanted and self._before <= self._usable

    def _may_suffice(self) -> bool:
        """True if the view would be small enough without any results and media."""
        gone_count = sum(
            message.tokens
            for message in self._snapshot.tail
            if is_tool_result(message.message) or isinstance(message.message.get("content"), list)
        )
        return self._before - gone_count <= self._target

    def _prune(self) -> PruningOutcome:
        snapshot, preset = self._snapshot, self._preset
        pruning_request = PruningRequest(
            mode=preset.pruning_mode,
            tokens=self._before,
            target_tokens=self._target,
            usable_tokens=self._usable,
            window_tokens=self._budget.window.tokens,
            now=snapshot.now,
            # What is compacted is new to the provider in any case.
            last_used_at=snapshot.last_used_at if self._trigger == "cache_ttl" else None,
            hard=self._sizes.is_hard(),
        )
        given_pruning = PriorPruning(
            protected=snapshot.protected,
            already=snapshot.cleared,
            stripped=snapshot.stripped,
            pending=snapshot.live,
            said=snapshot.said,
            texts=snapshot.texts,
        )
        return prune(snapshot.tail, preset.pruning, pruning_request, given_pruning)

    def _summary_plan(self, outcome: PruningOutcome) -> Plan | None:
        """The plan with the largest tail that fits; the smallest one if none does; None if nothing is covered."""
        if self._keeps_all(outcome.tail):
            return None
        best = self._best(outcome)
        if best is not None and best.tokens_after > self._usable:
            best = self._shrink_summary(outcome, best)
        if best is not None and best.whole_request and self._sizes.is_refused() and best.tokens_after > self._target:
            # It fits by estimate, and the provider says that it does not.
            self._whole = False
            best = self._best(outcome)
        if best is None or best.tokens_after > self._usable:
            # What fits is left as it is, unless the provider says that it does not.
            return self._cut_down(outcome) if self._sizes.is_hard() else None
        return best if best.tokens_after <= self._before * (1 - LEAST_PROGRESS) else None

    def _keeps_all(self, tail: Sequence[Numbered]) -> bool:
        """True if the turns or messages that the preset counts are all there are, and there is room for them."""
        if not self._counts or self._sizes.is_hard() or self._before >= self._sizes.hard():
            return False
        return self._sizes.first_cut(tail, self._preset.keep.tokens(self._usable)) == 0

    def _best(self, outcome: PruningOutcome) -> Plan | None:
        """The plan with the largest tail that comes below its limit; with the smallest one, if none does."""
        best: Plan | None = None
        for at, limit in self._cuts(outcome.tail):
            if at == 0 or (best is not None and best.tail_start == _seq_at(outcome.tail, at)):
                continue
            best = self._cut_plan(outcome, at)
            if best.tokens_after > self._target and self._fallback == "last_turns":
                best = self._without_tools(outcome, at, best)
            if best.tokens_after <= limit:
                break
        return best

    def _shrink_summary(self, outcome: PruningOutcome, plan: Plan) -> Plan:
        """The same cut with so short a summary that it fits; as it was, if not even the shortest one does."""
        least = self._preset.least_summary_tokens
        rest = plan.tokens_after - plan.summary_expected_tokens - plan.ledger_tokens
        room = self._usable - rest
        if room < least:
            return plan
        ledger = self._preset.ledger_tokens(int(room / (1 + self._preset.ledger_share)))
        ledger = min(plan.ledger_tokens, ledger, room - least)
        summary = min(plan.summary_expected_tokens, room - ledger)
        return replace(
            plan,
            reason=_summary_reason(len(plan.covered) + len(plan.prefix), summary),
            tokens_after=rest + summary + ledger,
            summary_tokens=summary,
            summary_expected_tokens=summary,
            ledger_tokens=ledger,
            ledger_limit_tokens=ledger,
        )

    def _cut_down(self, outcome: PruningOutcome) -> Plan | None:
        """The plan that shortens the last request, or the newest unit, since not even they fit."""
        self._whole = False
        best = self._best(outcome)
        if best is not None and best.tokens_after <= self._usable:
            return best if best.tokens_after <= self._before * (1 - LEAST_PROGRESS) else None
        cut_down = self._hard_plan(outcome, best)
        # A view that fits is not made larger.
        grows = cut_down is not None and self._usable >= self._before <= cut_down.tokens_after
        return None if grows else cut_down

    def _cuts(self, tail: Sequence[Numbered]) -> Iterator[tuple[int, int]]:
        """Where to cut, the largest tail first, each with what the view may take with it.

        Each is asked for when the one before was too large.
        """
        live, keep = self._snapshot.live, self._preset.keep.tokens(self._usable)
        first = self._sizes.first_cut(tail, keep)
        yield first, self._sizes.ceiling() if self._counts else self._target
        sizes = sum(self._sizes.of_checkpoint(tail))
        if self._counts:
            # Fewer turns or messages than are counted, but as many as there is room for.
            room = self._sizes.ceiling() - self._snapshot.fixed_tokens - self._frame(0, tail)
            turns = self._preset.keep.turns is not None
            for taken_count in (sum(self._sizes.of_checkpoint(tail[: first + 1])), sizes):
                fewer = largest_counted_cut(tail, first, room - taken_count, by_turns=turns, live=live)
                if fewer is not None:
                    yield fewer, self._sizes.ceiling()
        kept_count = sum(message.tokens for message in tail[first:])
        room = self._target - self._snapshot.fixed_tokens - sizes
        # The request may have to stand in the checkpoint, which takes of the same room.
        less = room - self._frame(len(tail), tail)
        # Where messages or turns are counted, what was kept first may be more than `keep`, or less.
        for tokens in sorted((room, less, keep, *(int(keep * share) for share in _SMALLER)), reverse=True):
            if tokens < kept_count:
                yield cut_by_tokens(tail, max(tokens, 0), live=live), self._target

    def _cut_plan(self, outcome: PruningOutcome, at: int, *, toolless_upto: int = 0) -> Plan:
        messages, prefix = covered_by(outcome.tail, at)
        tail = self._visible_tail(outcome.tail[at:], toolless_upto)
        fixed_count = self._snapshot.fixed_tokens + self._frame(at, outcome.tail, toolless=toolless_upto > 0)
        rest = fixed_count + sum(message.tokens for message in tail)
        plan = self._covering("summary", outcome, at, rest, (messages, prefix), toolless_upto=toolless_upto)
        self._steps.append(
            CompactionStep(
                name="last_turns" if toolless_upto else "split_turn" if prefix else "summary",
                tokens_before=self._before - outcome.gain,
                tokens_after=plan.tokens_after,
                count=at,
            )
        )
        return replace(plan, steps=tuple(self._steps))

    def _without_tools(self, outcome: PruningOutcome, at: int, plan: Plan) -> Plan:
        """The same cut, what stays without its tools, if that takes less."""
        upto = read_upto(outcome.tail)
        if upto < plan.tail_start:
            return plan
        new_plan = self._cut_plan(outcome, at, toolless_upto=upto)
        return new_plan if new_plan.tokens_after < plan.tokens_after else plan

    def _visible_tail(self, tail: Sequence[Numbered], toolless_upto: int) -> Sequence[Numbered]:
        if not toolless_upto:
            return tail
        return without_tools(tail, toolless_upto, live=self._snapshot.live, pinned_numbers=self._snapshot.protected)

    def _hard_plan(self, outcome: PruningOutcome, best: Plan | None) -> Plan | None:
        """The newest unit is larger than what is left for it: its results are cut down, or it is covered too."""
        at = _place_of(outcome.tail, best.tail_start) if best is not None else 0
        parts = covered_by(outcome.tail, at)
        number = self._snapshot.fixed_tokens + self._frame(at, outcome.tail)
        room = self._usable - number - sum(self._sizes.of_checkpoint(parts[0] + parts[1]))
        numbers, texts = tuple(self._snapshot.protected), self._snapshot.texts
        cut_outcome = truncate_results(outcome.tail[at:], room, protected_numbers=numbers, texts=texts)
        left = sum(message.tokens for message in cut_outcome.tail)
        if left > room:
            cut_down = self._usable - room + left
            at, cut_outcome = len(outcome.tail), PruningOutcome(tail=())
            parts, left = covered_by(outcome.tail, at), 0
            number = self._snapshot.fixed_tokens + self._frame(at, outcome.tail)
            all_gone = number + sum(self._sizes.of_checkpoint(parts[0] + parts[1]))
            running = has_running_call(outcome.tail, self._snapshot.live)
            if not _ends_with_user(outcome.tail) or running or all_gone > self._usable:
                self._check_fits(cut_down)
                return None
        this_outcome = replace(
            outcome,
            cleared={**outcome.cleared, **cut_outcome.cleared},
            stripped=(*outcome.stripped, *cut_outcome.stripped),
        )
        plan = self._covering("hard", this_outcome, at, number + left, parts)
        if cut_outcome.cleared:
            seqs = ", ".join(f"log:{seq}" for seq in sorted(cut_outcome.cleared))
            plan = replace(plan, cuts=(*plan.cuts, f"Results of tools were cut down, as they do not fit: {seqs}."))
        step = CompactionStep(
            name="hard", tokens_before=self._before, tokens_after=plan.tokens_after, count=len(cut_outcome.cleared)
        )
        return replace(plan, steps=(*plan.steps, step))

    def _covering(
        self,
        stage: Literal["summary", "hard"],
        outcome: PruningOutcome,
        at: int,
        rest_tokens: int,
        parts: tuple[tuple[Numbered, ...], tuple[Numbered, ...]],
        *,
        toolless_upto: int = 0,
    ) -> Plan:
        """The plan that covers what stands before a place; `rest_tokens` is the view without summary and ledger."""
        messages, prefix = parts
        expected_count, ledger = self._sizes.of_checkpoint(messages + prefix)
        after = rest_tokens + expected_count + ledger
        summary = self._sizes.longest_summary(expected_count, after - expected_count)
        kept_seqs = {message.seq for message in outcome.tail[at:]}
        reason = _summary_reason(len(messages) + len(prefix), summary)
        if stage == "hard":
            reason = (
                "The newest messages alone are larger than what can be used of the window; they are cut down, "
                "the originals stay in the log."
            )
        request_tokens = self._sizes.request_tokens(at, outcome.tail)
        counted_texts, fewer = self._sizes.count_notes(outcome.tail, at)
        # As long as what was decided, up to what a view shows, if there is room for that.
        limit = ledger + max(0, self._usable - after)
        return replace(
            self._make_plan(stage, reason, after),
            cleared={seq: text for seq, text in outcome.cleared.items() if seq in kept_seqs},
            stripped=tuple(seq for seq in outcome.stripped if seq in kept_seqs),
            tail_start=_seq_at(outcome.tail, at),
            covered=messages,
            prefix=prefix,
            dropped_upto=self._sizes.dropped_upto(messages),
            toolless_upto=toolless_upto,
            summary_tokens=summary,
            summary_expected_tokens=expected_count,
            ledger_tokens=ledger,
            ledger_limit_tokens=limit if limit < self._snapshot.most_ledger_tokens else None,
            whole_request=self._whole and request_tokens > self._snapshot.most_request_tokens,
            notes=counted_texts,
            fewer=fewer,
            cuts=self._request_cuts(at, outcome.tail),
        )

    def _frame(self, at: int, tail: Sequence[Numbered], *, toolless: bool = False) -> int:
        """Size of the checkpoint beside summary, ledger and pins when it is cut at a place."""
        request = self._sizes.request_tokens(at, tail)
        if not self._whole:
            request = min(request, self._snapshot.most_request_tokens + _NOTICE_TOKENS)
        return frame_tokens(toolless=toolless) + MESSAGE_TOKENS + request

    def _request_cuts(self, at: int, tail: Sequence[Numbered]) -> tuple[str, ...]:
        """Sentence that names a last request which is shortened."""
        size, most = self._sizes.request_tokens(at, tail), self._snapshot.most_request_tokens
        if self._whole or size <= most:
            return ()
        return (
            f"The user's last request is shortened to {most} of {size} tokens, as it does not fit; the log has it.",
        )

    def _prune_plan(self, outcome: PruningOutcome, after: int) -> Plan:
        count = len(outcome.cleared) + len(outcome.stripped)
        reason = f"{count} old results or media give way to stubs; no summary is needed."
        return replace(self._make_plan("prune", reason, after), cleared=outcome.cleared, stripped=outcome.stripped)

    def _no_plan(self, reason: str) -> Plan:
        return self._make_plan("none", reason, self._before)

    def _make_plan(self, stage: _Stage, reason: str, after: int) -> Plan:
        return Plan(
            stage=stage,
            reason=reason,
            tokens_before=self._before,
            tokens_after=after,
            target_tokens=self._target,
            steps=tuple(self._steps),
        )

    def _check_fits(self, after: int) -> None:
        if after <= self._usable:
            return
        parts = {
            "system": self._budget.overhead_tokens,
            "pins": self._snapshot.fixed_tokens,
            "summary": self._snapshot.summary_tokens,
            "last_unit": self._snapshot.tail[-1].tokens if self._snapshot.tail else 0,
        }
        ordered_parts = dict(sorted(parts.items(), key=lambda part: -part[1]))
        raise Incompressible(
            f"The view takes {after} tokens and {self._usable} fit, and nothing is left to compact: "
            + ", ".join(f"{name} {tokens}" for name, tokens in ordered_parts.items())
            + ". Shorten the largest part, or use a model with a larger window.",
            parts=ordered_parts,
        )


def _summary_reason(count: int, tokens: int) -> str:
    return f"{count} messages give way to a summary of at most {tokens} tokens."


def _seq_at(tail: Sequence[Numbered], at: int) -> int:
    return tail[at].seq if at < len(tail) else tail[-1].seq + 1


def _place_of(tail: Sequence[Numbered], seq: int) -> int:
    return next((at for at, message in enumerate(tail) if message.seq >= seq), len(tail))


def _ends_with_user(tail: Sequence[Numbered]) -> bool:
    return bool(tail) and tail[-1].message["role"] == "user"


def original_messages(state: Conversation, plan: Plan) -> tuple[tuple[Numbered, ...], tuple[Numbered, ...]]:
    """Original messages that a plan covers, also where the view shows a placeholder or leaves tools out."""
    if not (plan.covered or plan.prefix):
        return (), ()
    between = state.between(state.head.tail_start, plan.tail_start - 1)
    split = plan.prefix[0].seq if plan.prefix else plan.tail_start
    talk = [message for message in between if not is_system(message.message)]
    return tuple(item for item in talk if item.seq < split), tuple(item for item in talk if item.seq >= split)

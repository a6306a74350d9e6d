"""Pruning pipeline: each step in turn, measured behind it, until the view is small enough. Pure.

Invariants: linear; messages stay whole and in order, only texts of results and media change; what a step takes out, no
later step counts again; nothing that is pinned or still runs is touched; a step never makes a view larger, and applying
it again gains nothing. Of media the oldest go first, all of a message or none; each label names its handle.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from memory_service.compaction.duplicates import duplicates
from memory_service.compaction.prune_steps import (
    CHARS_PER_TOKEN,
    NO_PRIOR_PRUNING,
    PriorPruning,
    Pruned,
    PruningDraft,
    PruningMode,
    PruningRules,
    ToolResult,
    pruned_view,
    results_of,
    said_at,
    view_tokens,
)
from memory_service.messages.shapes import is_tool_result, media_parts_of, text_of
from memory_service.messages.sizes import Numbered, number_message
from memory_service.schemas.compaction import CompactionStep
from memory_service.text.placeholders import is_cleared, payload_bytes, shorten_result, too_large_text
from memory_service.text.texts import ENGLISH, Texts


def _cache_ttl(
    messages: Sequence[Numbered],
    rules: PruningRules,
    *,
    window_tokens: int,
    tokens: int,
    now: datetime,
    last_used_at: datetime | None,
    prior: PriorPruning = NO_PRIOR_PRUNING,
) -> Pruned:
    """Shortens, then clears old results once the provider's prompt cache is cold, when it costs nothing to do so.

    Args:
        messages: The view, in order.
        rules: See there.
        window_tokens: The model's whole context window.
        tokens: What the view takes of it now, all that is sent with it included.
        now: With a timezone, as `last_used_at`.
        last_used_at: When the provider was last called with this view; None if that is not known.
        prior: What is settled before.

    Returns:
        The step; empty with a note if it is not the time for it.
    """
    draft = PruningDraft(rules, prior, tokens)
    latest = now - timedelta(seconds=rules.ttl_seconds)
    if not rules.by_result and last_used_at is not None and last_used_at > latest:
        return draft.no_decisions("The provider's prompt cache is still warm.")
    if not rules.by_result and tokens < rules.soft_trim_ratio * window_tokens:
        return draft.no_decisions(f"{tokens:,} tokens are too few to prune in a window of {window_tokens:,}.")
    results = _between_first_user_and_last_replies(messages, rules, results_of(messages, rules, prior))
    if rules.by_result:
        expired_results = [
            each_result
            for each_result in results
            if (moment_of(each_result.numbered) or last_used_at or _LONG_AGO) <= latest
        ]
        return _each_by_itself(draft, expired_results, rules, window_tokens)
    trims = sum(draft.trim(result) for result in results if not media_parts_of(result.numbered.message))
    return _with_note(draft, trims, _clear_while_full(draft, results, rules, window_tokens))


def budget(messages: Sequence[Numbered], rules: PruningRules, *, prior: PriorPruning = NO_PRIOR_PRUNING) -> Pruned:
    """Clears what is older than the newest output of tools that is protected, if that gains much.

    The walk back leaves the last turns alone, counts what tools said before them, and ends where a result was
    cleared before.
    """
    draft = PruningDraft(rules, prior, view_tokens(messages, prior))
    before = _start_of_last_turns(messages, rules.protect_turns)
    cleared_at = max((at for at in range(before) if _was_cleared(messages[at], prior)), default=-1)
    total, gain, old = 0, 0, list[ToolResult]()
    for result in reversed(results_of(messages, rules, prior)):
        if cleared_at < result.at < before:
            # As the tool said it: a result that is shown cut counts in full. Source: seed 004, strategy 2.
            token = max(result.tokens, prior.said.get(said_at(result.numbered), result.numbered).tokens)
            total += token
            if total > rules.protect_tokens:
                gain += token
                old.append(result)
    if gain <= rules.budget_gain_tokens:
        return draft.no_decisions(f"Clearing would gain {gain:,} tokens; {rules.budget_gain_tokens:,} are not enough.")
    return _with_note(draft, 0, sum(draft.clear(result) for result in reversed(old)))


def _to_target(
    messages: Sequence[Numbered],
    rules: PruningRules,
    *,
    tokens: int,
    target_tokens: int,
    window_tokens: int,
    usable_tokens: int | None = None,
    force: bool = False,
    prior: PriorPruning = NO_PRIOR_PRUNING,
) -> Pruned:
    """Shortens old results, then clears them, oldest first, until the view is small enough.

    Args:
        messages: The view, in order.
        rules: See there.
        tokens: What the view takes of the window now, all that is sent with it included.
        target_tokens: What it should take.
        window_tokens: The model's whole context window.
        usable_tokens: What is left of it for a view; the whole window if not given.
        force: Whether any gain is worth it: after an overflow, or when the cache is cold anyway.
        prior: What is settled before.

    Returns:
        The step; empty with a note if the gain would not be worth the provider's prompt cache.
    """
    draft = PruningDraft(rules, prior, tokens)
    if tokens <= target_tokens:
        return draft.no_decisions()
    usable = window_tokens if usable_tokens is None else usable_tokens
    newest = min(rules.protect_tokens, int(rules.protect_share * usable))
    before = _start_of_newest(messages, newest)
    results = [result for result in results_of(messages, rules, prior) if result.at < before]
    trims, clears = _trimmed_then_cleared(draft, results, rules, target_tokens)
    gain, least_gain = tokens - draft.tokens, _least_gain(rules, tokens, window_tokens)
    if not force and gain < least_gain:
        return draft.no_decisions(f"Pruning would gain {gain:,} tokens; it is done from {least_gain:,} on.")
    return _with_note(draft, trims, clears)


def _trimmed_then_cleared(
    draft: PruningDraft, results: Sequence[ToolResult], rules: PruningRules, target_tokens: int
) -> tuple[int, int]:
    """Shortens all if it must, then clears the oldest; returns how many of each.

    What will be cleared is not shortened first: the sizes tell beforehand where clearing ends.
    """
    rest = sum(map(draft.trim_gain, results))
    clears = 0
    for result in results if rules.hard_clear else ():
        if draft.tokens - rest <= target_tokens:
            break
        rest -= draft.trim_gain(result)
        clears += draft.clear(result)
    trims = 0
    for result in results:
        if draft.tokens <= target_tokens:
            break
        trims += draft.trim(result)
    return trims, clears


def _between_first_user_and_last_replies(
    messages: Sequence[Numbered], rules: PruningRules, results: Sequence[ToolResult]
) -> list[ToolResult]:
    """Without what a session starts with, what the last replies need, and the newest images."""
    roles = [message.message["role"] for message in messages]
    first = roles.index("user") if "user" in roles else len(roles)
    replies = [at for at, role in enumerate(roles) if role == "assistant"]
    keep = rules.keep_last_assistants
    if len(replies) < keep:
        return []
    last = replies[-keep] if keep > 0 else len(roles)
    ats = [at for at, message in enumerate(messages) if roles[at] == "tool" and media_parts_of(message.message)]
    newest = frozenset(ats[-rules.keep_image_results :] if rules.keep_image_results > 0 else ())
    return [result for result in results if first < result.at < last and result.at not in newest]


def _clear_while_full(
    draft: PruningDraft, results: Sequence[ToolResult], rules: PruningRules, window_tokens: int
) -> int:
    """Clears the oldest results until the view is below its ratio; returns how many."""
    prunable = sum(map(draft.size, results))
    if not rules.hard_clear or prunable * CHARS_PER_TOKEN < rules.min_prunable_chars:
        return 0
    clears = 0
    for result in results:
        if draft.tokens < rules.hard_clear_ratio * window_tokens:
            break
        clears += draft.clear(result)
    return clears


def _each_by_itself(
    draft: PruningDraft, results: Sequence[ToolResult], rules: PruningRules, window_tokens: int
) -> Pruned:
    trims = clears = 0
    for result in results:
        if rules.hard_clear and result.tokens > rules.hard_clear_ratio * window_tokens:
            clears += draft.clear(result)
        elif not media_parts_of(result.numbered.message):
            trims += draft.trim(result)
    return _with_note(draft, trims, clears)


def moment_of(message: Numbered) -> datetime | None:
    """When a message came; None if that is not known."""
    try:
        at = datetime.fromisoformat(message.at)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def _start_of_last_turns(messages: Sequence[Numbered], turns: int) -> int:
    """The position of the user message that so many turns begin with; 0 if there are fewer."""
    if turns <= 0:
        return len(messages)
    for at in range(len(messages) - 1, -1, -1):
        turns -= messages[at].message["role"] == "user"
        if turns == 0:
            return at
    return 0


def _start_of_newest(messages: Sequence[Numbered], tokens: int) -> int:
    """The position of the oldest of the newest messages that fit in so many tokens.

    They are counted at the size they came with: what was cleared since does not let older ones in.
    """
    total = 0
    for at in range(len(messages) - 1, -1, -1):
        total += messages[at].tokens
        if total > tokens:
            return at + 1
    return 0


def _was_cleared(message: Numbered, prior: PriorPruning) -> bool:
    text = prior.already.get(message.seq)
    return text is not None and is_cleared(text, message.seq)


def _least_gain(rules: PruningRules, tokens: int, window_tokens: int) -> int:
    """Least gain of a step, in tokens."""
    least = min(rules.min_gain_tokens, int(rules.min_gain_share * window_tokens))
    return max(least, int(rules.min_gain_share * tokens))


def _with_note(draft: PruningDraft, trims: int, clears: int) -> Pruned:
    return draft.decisions(
        f"{trims} old results were shortened." if trims else "", f"{clears} old results were cleared." if clears else ""
    )


_LONG_AGO = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def media(messages: Sequence[Numbered], *, hard: bool = False, prior: PriorPruning = NO_PRIOR_PRUNING) -> Pruned:
    """Strips media that are older than the newest message of the user that has any.

    Args:
        messages: The view, in order.
        hard: Strip all of them, the newest too, as before a request that was too large is made again.
        prior: What is settled before.
    """
    held_numbers = _with_media(messages, prior)
    if hard:
        return _strip_media(messages, held_numbers, prior)
    newest = max((at for at in held_numbers if messages[at].message["role"] == "user"), default=0)
    return _strip_media(messages, [at for at in held_numbers if at < newest], prior)


def media_to_bytes(messages: Sequence[Numbered], limit_bytes: int, *, prior: PriorPruning = NO_PRIOR_PRUNING) -> Pruned:
    """Strips the oldest media until the rest is within a size.

    Args:
        messages: The view, in order.
        limit_bytes: The most that the media of a request may take, as base64. After a refusal for its size, half of
            what `media_bytes` gives; the next time half of that.
        prior: What is settled before.
    """
    total = media_bytes(messages, prior=prior)
    gone_numbers: list[int] = []
    for at in _with_media(messages, prior):
        if total <= limit_bytes:
            break
        if size := _bytes_of(messages[at]):
            total -= size
            gone_numbers.append(at)
    return _strip_media(messages, gone_numbers, prior)


def media_bytes(messages: Sequence[Numbered], *, prior: PriorPruning = NO_PRIOR_PRUNING) -> int:
    """Size of the media of a view in a request, in bytes; those that are only referred to take none."""
    return sum(
        _bytes_of(message)
        for message in messages
        if not isinstance(message.message.get("content"), str) and message.seq not in prior.stripped
    )


def _with_media(messages: Sequence[Numbered], prior: PriorPruning) -> list[int]:
    return [
        at
        for at, message in enumerate(messages)
        if not isinstance(message.message.get("content"), str)
        and message.seq not in prior.stripped
        and message.seq not in prior.protected
        and media_parts_of(message.message)
    ]


def _bytes_of(message: Numbered) -> int:
    return sum(map(payload_bytes, media_parts_of(message.message)))


def _strip_media(messages: Sequence[Numbered], gone_numbers: Sequence[int], prior: PriorPruning) -> Pruned:
    before = view_tokens(messages, prior)
    numbers = tuple(messages[at].seq for at in gone_numbers)
    touched_messages = [messages[at] for at in gone_numbers]
    number = view_tokens(touched_messages, prior)
    labelled_count = sum(
        message.tokens for message in pruned_view(touched_messages, prior.already, numbers, prior.texts)
    )
    note = (f"Media of {len(numbers)} messages were replaced by labels.",) if numbers else ()
    return Pruned(stripped=numbers, tokens_before=before, tokens_after=before - number + labelled_count, notes=note)


_SQUEEZE_TRIES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PruningOutcome:
    """Result of the pipeline.

    Attributes:
        tail: The messages behind them.
        cleared: The text that stands for a result, by message.
        stripped: Messages whose media give way to labels.
        gain: Tokens saved.
    """

    tail: tuple[Numbered, ...]
    cleared: Mapping[int, str] = field(default_factory=dict)
    stripped: tuple[int, ...] = ()
    gain: int = 0
    steps: tuple[CompactionStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PruningRequest:
    """Target of the pipeline; tokens by estimate.

    Attributes:
        tokens: What the whole view takes.
        target_tokens: Enough is done below this.
        hard: The view was refused, or does not fit: any gain counts.
    """

    mode: PruningMode
    tokens: int
    target_tokens: int
    usable_tokens: int
    window_tokens: int
    now: dt.datetime
    last_used_at: dt.datetime | None = None
    hard: bool = False


def prune(
    tail: Sequence[Numbered], rules: PruningRules, pruning_request: PruningRequest, prior: PriorPruning
) -> PruningOutcome:
    """Take out what is old, double, or media, as the mode wants it."""
    work = _Work(tail, pruning_request, prior, _sharing(tail))
    if pruning_request.mode == "off":
        return work.outcome()
    if pruning_request.mode == "cache_ttl":
        work.take(
            "cache_ttl",
            _cache_ttl(
                tail,
                rules,
                window_tokens=pruning_request.window_tokens,
                tokens=pruning_request.tokens,
                now=pruning_request.now,
                last_used_at=pruning_request.last_used_at,
                prior=work.of_results(),
            ),
        )
    elif pruning_request.mode == "budget":
        work.take("budget", budget(tail, rules, prior=work.of_results()))
    else:
        work.take("duplicates", duplicates(tail, rules, prior=work.of_results()))
        work.take(
            "old_results",
            _to_target(
                tail,
                rules,
                tokens=work.tokens,
                target_tokens=pruning_request.target_tokens,
                window_tokens=pruning_request.window_tokens,
                usable_tokens=pruning_request.usable_tokens,
                force=pruning_request.hard,
                prior=work.of_results(),
            ),
        )
    if work.tokens > pruning_request.target_tokens:
        work.take("media", media(tail, hard=pruning_request.hard, prior=work.prior))
    return work.outcome()


def truncate_results(
    tail: Sequence[Numbered], room_tokens: int, *, protected_numbers: Sequence[int] = (), texts: Texts = ENGLISH
) -> PruningOutcome:
    """Cut every result to the largest size at which the messages fit; to a few words if none does.

    Results that share a number can only be cut to one text for all of them: that is done where the rest is not enough.
    """
    sharing = _sharing(tail) - {*protected_numbers}
    done_outcome = _truncate_results(tail, room_tokens, {*protected_numbers, *sharing}, texts)
    if not sharing or sum(message.tokens for message in done_outcome.tail) <= room_tokens:
        return done_outcome
    placed_values = {seq: too_large_text(seq, texts) for seq in sharing}
    done_outcome = _truncate_results(
        pruned_view(tail, placed_values), room_tokens, {*protected_numbers, *sharing}, texts
    )
    return replace(done_outcome, cleared={**placed_values, **done_outcome.cleared})


def _truncate_results(
    tail: Sequence[Numbered], room_tokens: int, protected_numbers: Collection[int], texts: Texts
) -> PruningOutcome:
    results = [message for message in tail if is_tool_result(message.message) and message.seq not in protected_numbers]
    fixed_count = sum(message.tokens for message in tail) - sum(message.tokens for message in results)
    low, high = 200, max((len(text_of(message.message)) * 4 for message in results), default=200)
    for _ in range(_SQUEEZE_TRIES):
        middle = (low + high) // 2
        if fixed_count + sum(_shorten_item(message, middle, texts).tokens for message in results) <= room_tokens:
            low = middle
        else:
            high = middle
    cleared_values = {
        message.seq: text_of(_shorten_item(message, low, texts).message)
        for message in results
        if _shorten_item(message, low, texts) is not message
    }
    return PruningOutcome(tail=tuple(pruned_view(tail, cleared_values)), cleared=cleared_values)


def _shorten_item(each_message: Numbered, limit_chars: int, texts: Texts) -> Numbered:
    message = shorten_result(each_message.message, limit_chars, each_message.seq, texts=texts)
    return (
        each_message if message is each_message.message else number_message(message, each_message.seq, each_message.at)
    )


def _sharing(tail: Sequence[Numbered]) -> frozenset[int]:
    """The numbers that several results have: one message of Anthropic's holds all results of a turn.

    A text stands for a number, so one that is made for one of these results would stand for the others too.
    """
    counts = Counter(message.seq for message in tail if is_tool_result(message.message))
    return frozenset(seq for seq, count in counts.items() if count > 1)


class _Work:
    def __init__(
        self, tail: Sequence[Numbered], pruning_request: PruningRequest, prior: PriorPruning, sharing: frozenset[int]
    ) -> None:
        self._tail, self._before, self._sharing = tail, pruning_request.tokens, sharing
        self._steps = list[CompactionStep]()
        self._cleared = dict[int, str]()
        self._stripped = list[int]()
        self.tokens, self.prior = pruning_request.tokens, prior

    def of_results(self) -> PriorPruning:
        """Prior changes without media, for steps that put a text for a result."""
        return replace(self.prior, protected=self._sharing.union(self.prior.protected))

    def take(self, name: str, step: Pruned) -> None:
        if not (step.cleared or step.stripped):
            return
        after = self.tokens - step.gain_tokens
        count = len({*step.cleared, *step.stripped})
        self._steps.append(CompactionStep(name=name, tokens_before=self.tokens, tokens_after=after, count=count))
        self.tokens, self.prior = after, self.prior.after(step)
        self._cleared.update(step.cleared)
        self._stripped += step.stripped

    def outcome(self) -> PruningOutcome:
        stripped_numbers = tuple(sorted(set(self._stripped)))
        tail = pruned_view(self._tail, self._cleared, stripped_numbers, self.prior.texts) if self._steps else self._tail
        return PruningOutcome(
            tail=tuple(tail),
            cleared=self._cleared,
            stripped=stripped_numbers,
            gain=self._before - self.tokens,
            steps=tuple(self._steps),
        )

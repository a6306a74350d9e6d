"""Owns pruning by size and age: which old tool results are shortened or cleared, and when that pays.

Invariants: pure and linear; messages stay whole and in their order, only the texts of results change; a step never
makes a view larger, and applying it again gains nothing. What is left alone in every case: see `steps`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from memory_service.compaction.steps import (
    CHARS_PER_TOKEN,
    NOTHING_GIVEN,
    Draft,
    Given,
    Pruned,
    PruningRules,
    Result,
    results_of,
    view_tokens,
)
from memory_service.compaction.stubs import is_cleared
from memory_service.messages import Numbered, media_parts_of


def cache_ttl(
    messages: Sequence[Numbered],
    rules: PruningRules,
    *,
    window_tokens: int,
    tokens: int,
    now: datetime,
    last_used_at: datetime | None,
    given: Given = NOTHING_GIVEN,
) -> Pruned:
    """Shortens, then clears old results once the provider's prompt cache is cold, when it costs nothing to do so.

    Args:
        messages: The view, in order.
        rules: See there.
        window_tokens: The model's whole context window.
        tokens: What the view takes of it now, all that is sent with it included.
        now: With a timezone, as `last_used_at`.
        last_used_at: When the provider was last called with this view; None if never.
        given: What is settled before.

    Returns:
        The step; empty with a note if it is not the time for it.
    """
    draft = Draft(rules, given, tokens)
    latest = now - timedelta(seconds=rules.ttl_seconds)
    if not rules.by_result and last_used_at is not None and last_used_at > latest:
        return draft.dropped("The provider's prompt cache is still warm.")
    if not rules.by_result and tokens < rules.soft_trim_ratio * window_tokens:
        return draft.dropped(f"{tokens:,} tokens are too few to prune in a window of {window_tokens:,}.")
    found = _between_first_user_and_last_replies(messages, rules, results_of(messages, rules, given))
    if rules.by_result:
        expired = [result for result in found if _since(result.numbered, last_used_at) <= latest]
        return _each_by_itself(draft, expired, rules, window_tokens)
    trims = sum(draft.trim(result) for result in found if not media_parts_of(result.numbered.message))
    return _said(draft, trims, _clear_while_full(draft, found, rules, window_tokens))


def budget(messages: Sequence[Numbered], rules: PruningRules, *, given: Given = NOTHING_GIVEN) -> Pruned:
    """Clears what is older than the newest output of tools that is protected, if that gains much.

    The walk back leaves the last turns alone, counts what tools said before them, and ends where a result was
    cleared before.
    """
    draft = Draft(rules, given, view_tokens(messages, given))
    before = _start_of_last_turns(messages, rules.protect_turns)
    cleared = max((at for at in range(before) if _was_cleared(messages[at], given)), default=-1)
    total, gain, old = 0, 0, list[Result]()
    for result in reversed(results_of(messages, rules, given)):
        if cleared < result.at < before:
            # As the tool said it: a result that is shown cut counts in full. Source: seed 004, strategy 2.
            said = max(result.tokens, given.said_tokens.get(result.numbered.seq, 0))
            total += said
            if total > rules.protect_tokens:
                gain += said
                old.append(result)
    if gain <= rules.budget_gain_tokens:
        return draft.dropped(f"Clearing would gain {gain:,} tokens; {rules.budget_gain_tokens:,} are not enough.")
    return _said(draft, 0, sum(draft.clear(result) for result in reversed(old)))


def to_target(
    messages: Sequence[Numbered],
    rules: PruningRules,
    *,
    tokens: int,
    target_tokens: int,
    window_tokens: int,
    usable_tokens: int | None = None,
    force: bool = False,
    given: Given = NOTHING_GIVEN,
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
        given: What is settled before.

    Returns:
        The step; empty with a note if the gain would not be worth the provider's prompt cache.
    """
    draft = Draft(rules, given, tokens)
    if tokens <= target_tokens:
        return draft.dropped()
    usable = window_tokens if usable_tokens is None else usable_tokens
    newest = min(rules.protect_tokens, int(rules.protect_share * usable))
    before = _start_of_newest(messages, newest)
    found = [result for result in results_of(messages, rules, given) if result.at < before]
    trims, clears = _trimmed_then_cleared(draft, found, rules, target_tokens)
    gain, wanted = tokens - draft.tokens, _least_gain(rules, tokens, window_tokens)
    if not force and gain < wanted:
        return draft.dropped(f"Pruning would gain {gain:,} tokens; it is done from {wanted:,} on.")
    return _said(draft, trims, clears)


def _trimmed_then_cleared(
    draft: Draft, found: Sequence[Result], rules: PruningRules, target_tokens: int
) -> tuple[int, int]:
    """Shortens all if it must, then clears the oldest; returns how many of each.

    What will be cleared is not shortened first: the sizes tell beforehand where clearing ends.
    """
    rest = sum(map(draft.trim_gain, found))
    clears = 0
    for result in found if rules.hard_clear else ():
        if draft.tokens - rest <= target_tokens:
            break
        rest -= draft.trim_gain(result)
        clears += draft.clear(result)
    trims = 0
    for result in found:
        if draft.tokens <= target_tokens:
            break
        trims += draft.trim(result)
    return trims, clears


def _between_first_user_and_last_replies(
    messages: Sequence[Numbered], rules: PruningRules, found: Sequence[Result]
) -> list[Result]:
    """Without what a session starts with, what the last replies need, and the newest images."""
    roles = [each.message["role"] for each in messages]
    first = roles.index("user") if "user" in roles else len(roles)
    replies = [at for at, role in enumerate(roles) if role == "assistant"]
    keep = rules.keep_last_assistants
    if len(replies) < keep:
        return []
    last = replies[-keep] if keep > 0 else len(roles)
    pictured = [at for at, each in enumerate(messages) if roles[at] == "tool" and media_parts_of(each.message)]
    newest = frozenset(pictured[-rules.keep_image_results :] if rules.keep_image_results > 0 else ())
    return [result for result in found if first < result.at < last and result.at not in newest]


def _clear_while_full(draft: Draft, found: Sequence[Result], rules: PruningRules, window_tokens: int) -> int:
    """Clears the oldest results until the view is below its ratio; returns how many."""
    prunable = sum(map(draft.size, found))
    if not rules.hard_clear or prunable * CHARS_PER_TOKEN < rules.min_prunable_chars:
        return 0
    clears = 0
    for result in found:
        if draft.tokens < rules.hard_clear_ratio * window_tokens:
            break
        clears += draft.clear(result)
    return clears


def _each_by_itself(draft: Draft, found: Sequence[Result], rules: PruningRules, window_tokens: int) -> Pruned:
    trims = clears = 0
    for result in found:
        if rules.hard_clear and result.tokens > rules.hard_clear_ratio * window_tokens:
            clears += draft.clear(result)
        elif not media_parts_of(result.numbered.message):
            trims += draft.trim(result)
    return _said(draft, trims, clears)


def _since(each: Numbered, otherwise: datetime | None) -> datetime:
    """When a result came; if that is not known, when the view was last used."""
    try:
        at = datetime.fromisoformat(each.at)
    except ValueError:
        at = None
    return at if at is not None and at.tzinfo is not None else otherwise or _LONG_AGO


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


def _was_cleared(each: Numbered, given: Given) -> bool:
    text = given.already.get(each.seq)
    return text is not None and is_cleared(text, each.seq)


def _least_gain(rules: PruningRules, tokens: int, window_tokens: int) -> int:
    """What a step must gain, in tokens."""
    least = min(rules.min_gain_tokens, int(rules.min_gain_share * window_tokens))
    return max(least, int(rules.min_gain_share * tokens))


def _said(draft: Draft, trims: int, clears: int) -> Pruned:
    return draft.done(
        f"{trims} old results were shortened." if trims else "", f"{clears} old results were cleared." if clears else ""
    )


_LONG_AGO = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

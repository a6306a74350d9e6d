"""The last turns without their tools: what was said stays, and calls, results, reasoning and empty messages go. Pure.

Source: seed 001, 5.3. The messages stay in the log; the checkpoint says up to where their tools are left out.
Invariants: what the model has not read, a call that still runs, and what is pinned stay, each with its results.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory_service.compaction.steps import unread_from
from memory_service.messages import (
    Message,
    Numbered,
    is_empty,
    is_system,
    is_tool_result,
    numbered,
    tool_calls_of,
    without_thinking,
)


def read_upto(messages: Sequence[Numbered]) -> int:
    """The last number of what the model has read, whose tools may be left out; 0 for nothing."""
    at = unread_from(messages)
    return messages[at].seq - 1 if at > 0 else 0


def without_tools(
    messages: Sequence[Numbered], upto: int, *, live: Collection[str] = (), pinned: Collection[int] = ()
) -> list[Numbered]:
    """The messages up to a number without their tools, and those behind it as they are."""
    kept = _kept_calls(messages, upto, live, pinned)
    shown = [each if each.seq > upto or each.seq in pinned else _said(each, kept) for each in messages]
    return [each for each in shown if each is not None]


def _kept_calls(messages: Sequence[Numbered], upto: int, live: Collection[str], pinned: Collection[int]) -> set[str]:
    """Ids of the calls that stay; calls of one message stay together."""
    kept = {*live, *(each.message.get("tool_call_id", "") for each in messages if each.seq in pinned)}
    for each in messages:
        ids = {call["id"] for call in tool_calls_of(each.message)}
        if each.seq > upto or each.seq in pinned or not kept.isdisjoint(ids):
            kept |= ids
    return kept


def _said(each: Numbered, kept: Collection[str]) -> Numbered | None:
    """A message without its tools; None if nothing is left of it."""
    message = each.message
    if is_system(message):
        return each
    if is_tool_result(message):
        return each if message.get("tool_call_id") in kept else None
    calls = tool_calls_of(message)
    if calls and calls[0]["id"] in kept:
        return each
    said = without_thinking(_without_calls(message) if calls else message)
    if is_empty(said):
        return None
    return each if said is message else numbered(said, each.seq, each.at)


def _without_calls(message: Message) -> Message:
    said = message.copy()
    said.pop("tool_calls", None)
    return said

"""Request and result of a summary, whoever writes it; the last turns without tools. Pure.

Invariants: a request holds all that may be in the summary; a summary says how it was made. Of last turns what was said
stays; what the model has not read, a call that still runs, and what is pinned stay too, each with its results.

Source: seed 001, 5.3, for turns without tools.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from memory_service.compaction.prune_steps import unread_from
from memory_service.messages.shapes import Message, is_empty, is_system, is_tool_result, tool_calls_of, without_thinking
from memory_service.messages.sizes import Numbered, number_message
from memory_service.schemas.compaction import IdentifierPolicy, LedgerEntry
from memory_service.text.sentence_kinds import BY_PATTERNS, SentenceKinds

Method = Literal["model", "extractive", "note", "hook"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """Messages to be summarised, and the longest result.

    Attributes:
        messages: What the view is about to lose, in order, whole units.
        dropped: How many of them, the oldest, are summarised before the others, which go on from that.
        prefix: The first half of the turn whose second half stays, if a turn is split; it follows `messages`.
        previous: The summary that the new one takes the place of; empty for the first.
        ledger: What code keeps word for word beside the summary.
        target_tokens: The longest summary wanted.
        instructions: What the caller wants it to look at.
        identifier_policy: What becomes of ids, paths and the like; `strict` is another name for `preserve`.
        identifier_instructions: The caller's own words for that, with the policy `custom`.
        prompt: What a model is asked in the place of the preset's words; empty for those.
        language: Of the talk, which headings and labels are in.
        kinds: The kinds of the sentences of the messages.
    """

    messages: tuple[Numbered, ...]
    dropped: int = 0
    prefix: tuple[Numbered, ...] = ()
    previous: str = ""
    ledger: tuple[LedgerEntry, ...] = ()
    target_tokens: int = 2_000
    instructions: str = ""
    identifier_policy: IdentifierPolicy = "preserve"
    identifier_instructions: str = ""
    prompt: str = ""
    language: str = "en"
    kinds: SentenceKinds = BY_PATTERNS


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptReading:
    """How the prompts for a summary differed from the messages.

    Attributes:
        inserted_texts: What the service wrote into them itself: notes for what was left out or cut, labels of media.
        unread_seqs: Messages that no prompt held, since they were too large.
    """

    inserted_texts: tuple[str, ...] = ()
    unread_seqs: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary.

    Attributes:
        text: Markdown.
        method: `note` says only how much was there.
        model: The model that wrote it, None for rules.
        prompt_version: Of the prompts or rules that it was made with.
        calls: Requests to a model.
        input_tokens: What the provider counted for all calls together.
        output_tokens: The same for its answers.
        chunk_ratio: The share of the model's window that a chunk took; None where no model wrote it.
        parts: Into how many parts the messages were divided for the model; 0 where no model wrote it.
        notes: What went differently than asked, each a sentence for the receipt.
        unread: First and last number of messages that are not in it, since a call failed.
        sparse: Whether the model wrote it without the headings that were asked for.
    """

    text: str
    method: Method
    prompt_version: str
    model: str | None = None
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    notes: tuple[str, ...] = ()
    unread: tuple[tuple[int, int], ...] = ()
    sparse: bool = False
    chunk_ratio: float | None = None
    parts: int = 0


def read_upto(messages: Sequence[Numbered]) -> int:
    """The last number of what the model has read, whose tools may be left out; 0 for nothing."""
    at = unread_from(messages)
    return messages[at].seq - 1 if at > 0 else 0


def without_tools(
    messages: Sequence[Numbered], upto: int, *, live: Collection[str] = (), pinned_numbers: Collection[int] = ()
) -> list[Numbered]:
    """The messages up to a number without their tools, and those behind it as they are."""
    keys = _kept_calls(messages, upto, live, pinned_numbers)
    shown_messages = [
        message if message.seq > upto or message.seq in pinned_numbers else _without_tools(message, keys)
        for message in messages
    ]
    return [each_message for each_message in shown_messages if each_message is not None]


def _kept_calls(messages: Sequence[Numbered], upto: int, live: Collection[str], numbers: Collection[int]) -> set[str]:
    """Ids of the calls that stay; calls of one message stay together."""
    keys = {*live, *(message.message.get("tool_call_id", "") for message in messages if message.seq in numbers)}
    for each_message in messages:
        ids = {call["id"] for call in tool_calls_of(each_message.message)}
        if each_message.seq > upto or each_message.seq in numbers or not keys.isdisjoint(ids):
            keys |= ids
    return keys


def _without_tools(each_message: Numbered, kept_texts: Collection[str]) -> Numbered | None:
    """A message without its tools; None if nothing is left of it."""
    message = each_message.message
    if is_system(message):
        return each_message
    if is_tool_result(message):
        return each_message if message.get("tool_call_id") in kept_texts else None
    calls = tool_calls_of(message)
    if calls and calls[0]["id"] in kept_texts:
        return each_message
    said_message = without_thinking(_without_calls(message) if calls else message)
    if is_empty(said_message):
        return None
    return each_message if said_message is message else number_message(said_message, each_message.seq, each_message.at)


def _without_calls(message: Message) -> Message:
    copy = message.copy()
    copy.pop("tool_calls", None)
    return copy

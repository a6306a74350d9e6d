"""Owns what a summary is asked with and what it is: the same values whether a model or rules write it. Pure.

Invariants: a request holds all that may be in the summary; a summary says how it was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memory_service.messages import Numbered
from memory_service.sessions.records import LedgerEntry

Method = Literal["model", "extractive", "note", "hook"]
IdentifierPolicy = Literal["preserve", "strict", "anonymize", "off", "custom"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """What is to be summarised, and how long the result may be.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the prompts for a summary differed from the messages.

    Attributes:
        inserted: What the service wrote into them itself: notes for what was left out or cut, labels of media.
        unread: Messages that no prompt held, since they were too large.
    """

    inserted: tuple[str, ...] = ()
    unread: frozenset[int] = frozenset()


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
        notes: What went differently than asked, each a sentence for the receipt.
    """

    text: str
    method: Method
    prompt_version: str
    model: str | None = None
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    notes: tuple[str, ...] = ()

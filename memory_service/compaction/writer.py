"""Owns one accepted text of a model: the prompt that fits its window, the answer that is judged, and asked for anew.

Invariants: no prompt is sent that does not fit the window by estimate; nothing is returned that was not accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memory_service.compaction.calls import Calls, failure
from memory_service.compaction.prompts import Brief, condense_prompt, merge_prompt, with_reasons
from memory_service.compaction.summary_rules import SummaryRules
from memory_service.compaction.transcript import Entry, omitted, omitted_note, transcript
from memory_service.compaction.verdict import Verdict, beginning, clipped, verdict_on
from memory_service.errors import SummaryFailed
from memory_service.llm.base import ChatMessage
from memory_service.tokens import count_tokens

# Source: Hermes wants a fifth of what is summarised; less than this is too little for any conversation.
WANTED_SHARE = 0.2
LEAST_WANTED_TOKENS = 500
CONDENSE_TRIES = 2
_ANSWER_MARGIN = 1.5
_SAYINGS = {
    "empty": "it wrote nothing",
    "truncated": "its answer was cut off",
    "tool_call": "it called a tool",
    "content_filter": "its answer was withheld by a content filter",
    "headings": "its answer lacks sections that were asked for",
    "too_long": "its answer is too long",
    "ungrounded": "its answer says what its source does not, or leaves out what must stay",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is written from messages.

    Attributes:
        prompt: Makes the prompt from a conversation, a brief and what was written before.
        brief: How it is to be written; its target is the longest that is taken.
    """

    prompt: Callable[[str, Brief, str], list[ChatMessage]]
    brief: Brief


class Writer:
    """Writes texts within the bounds of one summary.

    Args:
        calls: What may be spent.
        rules: How the preset summarises.

    Attributes:
        omissions: The notes for messages that were too large, in order, each with the number of its message.
        notes: What went differently than asked.
    """

    def __init__(self, calls: Calls, rules: SummaryRules) -> None:
        self.calls, self.rules = calls, rules
        self.omissions: dict[str, int] = {}
        self.notes: list[str] = []

    def room(self, task: Task, previous: str, reasons: Sequence[str] = ()) -> int:
        """Tokens, with their safety margin, that a conversation may take in one call; may be negative."""
        prompt = with_reasons(task.prompt("", task.brief, previous), reasons)
        return self.calls.window_tokens - self._answer_tokens(task.brief) - prompt_tokens(prompt)

    def read(self, task: Task, entries: Sequence[Entry], previous: str, reasons: Sequence[str] = ()) -> str:
        """What is written from a chunk and what was written before it."""
        size = sum(entry.tokens for entry in entries)
        wanted = max(LEAST_WANTED_TOKENS, int(size * WANTED_SHARE) + count_tokens(previous))
        brief = replace(task.brief, target_tokens=min(task.brief.target_tokens, wanted))
        return self._written(task.prompt(transcript(entries), brief, previous), task.brief, reasons)

    def merged(self, partials: Sequence[str], brief: Brief, previous: str = "", reasons: Sequence[str] = ()) -> str:
        """One text for several; halves are merged first where all do not fit the window."""
        prompt = with_reasons(merge_prompt(partials, brief, previous=previous), reasons)
        if self._fits(prompt, brief) or len(partials) < 3:
            return self._written(prompt, brief, ())
        middle = len(partials) // 2
        halves = [self.merged(half, brief) for half in (partials[:middle], partials[middle:])]
        return self.merged(halves, brief, previous, reasons)

    def condensed(self, text: str, brief: Brief) -> str:
        """A text within its target: summarised again where the rules say so, and cut where it stays too long."""
        for _ in range(CONDENSE_TRIES if self.rules.condense else 0):
            if count_tokens(text) <= brief.target_tokens:
                break
            prompt = condense_prompt(text, brief)
            if not self._fits(prompt, brief):
                break
            shorter = self._written(prompt, brief, ())
            if count_tokens(shorter) >= count_tokens(text):
                break
            text = shorter
        return self.cut(text, brief.target_tokens)

    def cut(self, text: str, cap_tokens: int) -> str:
        """A text without the lines that are over a size."""
        if count_tokens(text) <= cap_tokens:
            return text
        self.notes.append("Lines of the summary were left out for its length.")
        return clipped(text, cap_tokens) or beginning(text, cap_tokens)

    def omit(self, entry: Entry) -> Entry:
        """A note in the place of a message that is too large."""
        self.omissions[omitted_note(entry)] = entry.seq
        return omitted(entry)

    def _written(self, prompt: list[ChatMessage], brief: Brief, reasons: Sequence[str]) -> str:
        told = tuple(reasons)
        kind, verdict = "", Verdict()
        for _ in range(self.rules.retries + 1):
            asked = with_reasons(prompt, told)
            if not self._fits(asked, brief):
                raise too_large(prompt_tokens(asked), self.calls.window_tokens)
            cap = None if self.rules.condense else brief.target_tokens
            verdict = verdict_on(self.calls.ask(asked), headings=brief.headings, cap_tokens=cap)
            kind = verdict.kind
            if not kind:
                if verdict.clipped:
                    self.notes.append("Lines of the summary were left out for its length.")
                return verdict.text
            if kind == "content_filter":
                break
            told = (*reasons, verdict.reason)
        if kind == "too_long":
            # The history is not lost for the length of what stands for it.
            return self.cut(verdict.too_long, brief.target_tokens)
        raise refused(kind)

    def _fits(self, prompt: Sequence[ChatMessage], brief: Brief) -> bool:
        return prompt_tokens(prompt) + self._answer_tokens(brief) // 2 <= self.calls.window_tokens

    def _answer_tokens(self, brief: Brief) -> int:
        """What is kept free for the answer. No limit is sent: a model that thinks would spend it on thoughts."""
        wanted = max(LEAST_WANTED_TOKENS, int(brief.target_tokens * _ANSWER_MARGIN))
        return min(wanted, self.calls.window_tokens // 4)


def prompt_tokens(prompt: Sequence[ChatMessage]) -> int:
    """Size of a prompt by estimate."""
    return sum(count_tokens(message["content"]) + 4 for message in prompt)


def refused(kind: str) -> SummaryFailed:
    """The error for an answer that was refused as often as one was asked for."""
    return SummaryFailed(failure(_SAYINGS[kind], "try again, or set another llm_model"), kind=kind)


def too_large(tokens: int, window_tokens: int) -> SummaryFailed:
    """The error for what does not fit the summariser's window."""
    what = f"a request of about {tokens:,} tokens is more than its window of {window_tokens:,} takes"
    return SummaryFailed(failure(what, "set a model with a larger window, or another preset"), kind="token_overflow")

"""Owns what is asked for in a conversation: first, last, and what still waits for an answer.

Invariants: pure; linear; a reply is an assistant message with words and without calls; whatever was asked before it
counts as answered, since nothing but reading it could tell otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from indexer.analysis import query_terms
from memory_service.compaction.outline import ASSISTANT, LATEST, USER, Line
from memory_service.compaction.sentences import Sentence
from memory_service.compaction.wording import Kind
from memory_service.compaction.worth import worth
from memory_service.messages import Message, Numbered, is_tool_result, text_of, tool_calls_of

Judged = tuple[Sentence, tuple[Kind, float]]
# Rules and decisions have their own sections; where nothing is asked, another sentence says what it is about.
_RANKS = {Kind.ASK: 3, Kind.QUESTION: 2, Kind.RULE: 0, Kind.DECISION: 0}
_BINDING = (Kind.RULE, Kind.DECISION)
_ASKING = (Kind.ASK, Kind.QUESTION)
_ANSWERED_SHARE = 0.4
_REPLY_CHARS = 2_000
_BARE_WORDS, _BARE_CHARS = 7, 40
_BARE = re.compile(r"\b(?:it|this|that|them|these|those|why|how)\b|[这那]个|回一下|看一下|怎么办|为什么")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """What is asked for.

    Attributes:
        first: The first real ask; None if there is none.
        latest: The one that counts now.
        waiting: Those without an answer, the user's and the assistant's.
        replied: Whether the assistant replied at all.
        heard: Whether the user said anything.
        terms: Those of all replies, if asked for.
    """

    first: Sentence | None
    latest: Sentence | None
    waiting: tuple[Sentence, ...]
    replied: bool
    heard: bool
    terms: frozenset[str]

    def answers(self, line: Line) -> bool:
        """Whether an ask of an earlier summary has its answer."""
        if line.label in (USER, LATEST):
            return self.replied
        if line.label == ASSISTANT:
            return self.heard
        asked = query_terms(line.text)
        return sum(term in self.terms for term in asked) > _ANSWERED_SHARE * len(asked)


def asks_of(said: Sequence[tuple[Numbered, Sequence[Judged]]], *, with_terms: bool) -> Asks:
    """What is asked for.

    Args:
        said: The messages with their judged sentences.
        with_terms: Whether an earlier summary has asks that do not say whose they are.
    """
    waiting: list[Sentence] = []
    offered: list[Sentence] = []
    spoken: list[Sequence[Judged]] = []
    replies: list[str] = []
    last: Sentence | None = None  # What was said last waits for an answer even if it asks for nothing.
    replied = False
    for item, judged in said:
        if item.message["role"] == "user":
            offered = []
            spoken.append(judged)
            waiting += _asked(judged)
            last = judged[0][0] if judged and not _asked(judged) else None
        elif is_reply(item.message):
            waiting, last = [], None
            replied = True
            replies += [text_of(item.message)[:_REPLY_CHARS]] if with_terms else []
            offered = [sentence for sentence, kind in judged if kind[0] is Kind.QUESTION]
    real = [judged for judged in spoken if judged]
    return Asks(
        first=_main(next((judged for judged in real if _asked(judged)), real[0] if real else ())),
        latest=_main(next((judged for judged in reversed(real) if _instructs(judged)), ()), latest=True),
        waiting=(*waiting, *([last] if last else ()), *offered),
        replied=replied,
        heard=bool(spoken),
        terms=frozenset(term for reply in replies for term in query_terms(reply)),
    )


def is_reply(message: Message) -> bool:
    """Whether a message is the assistant's and says something without going on to call a tool."""
    if is_tool_result(message) or message["role"] != "assistant" or tool_calls_of(message):
        return False
    return bool(text_of(message).strip())


def _asked(judged: Sequence[Judged]) -> list[Sentence]:
    return [sentence for sentence, kind in judged if kind[0] in _ASKING]


def _instructs(judged: Sequence[Judged]) -> bool:
    return bool(_asked(judged)) or any(kind in _BINDING and sure == 1 for _, (kind, sure) in judged)


def _main(judged: Sequence[Judged], *, latest: bool = False) -> Sentence | None:
    """The ask that a message is about: an order before a question, and of those the most particular."""
    if not _asked(judged):
        # What was ordered without asking is what it is about.
        judged = [one for one in judged if one[1][0] in _BINDING] if latest else judged
    ranked = sorted(judged, key=lambda one: (-_rank(one[1][0]), -worth(one[0].text), one[0].place))
    if ranked and _rank(ranked[0][1][0]) and _is_bare(ranked[0][0].text):
        # "Can you find out why?" asks for what the message began with.
        return min((sentence for sentence, _ in judged), key=lambda sentence: sentence.place)
    return ranked[0][0] if ranked else None


def _is_bare(text: str) -> bool:
    """Whether an ask names nothing that it is about."""
    return len(text.split()) <= _BARE_WORDS and len(text) <= _BARE_CHARS and _BARE.search(text.lower()) is not None


def _rank(kind: Kind) -> int:
    return _RANKS.get(kind, 1)

"""Owns how much a statement is worth keeping: a number from the marks of its wording. Pure.

Invariants: higher is better; the same words get the same worth whoever says them, but for the role: what an
assistant says without a name is kept only if it brings a fact.

Source: a logistic regression on whether a turn of a long talk between two people is asked for later, each talk judged
by what was learned from the others (area under the curve .82 to .89); rounded by hand. Marks of work (decision, rule,
identifier, outcome) hardly occur there and were weighed by judgement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from memory_service.flush.wording import Mark

BIAS = -3.2
LENGTH = 0.9  # for the logarithm of the number of content words
ANSWER = 2.2  # it answers a question
ANSWER_LENGTH = -0.4  # of which long answers need less
PICTURE = 0.6
WEIGHTS: dict[Mark, float] = {
    "time": 1.3,
    "number": 0.4,
    "identifier": 0.8,
    "quote": 0.9,
    "name": 0.35,
    "decision": 0.8,
    "rule": 0.5,
    "preference": 0.4,
    "plan": 0.1,
    "event": 0.2,
    "outcome": 0.4,
    "open": 0.4,
    "relation": 0.2,
    "other": -0.25,
    "applause": -0.25,
    "feeling": -0.2,
}
FACTS: frozenset[Mark] = frozenset(WEIGHTS) - {"other", "applause", "feeling"}


def worth_of(marks: Mapping[Mark, int], content: int, *, answers: bool = False, picture: bool = False) -> float:
    """The worth of one or more statements, as a log-odds.

    Args:
        marks: See `marks_of`.
        content: How many content words they have.
        answers: Whether they follow a question.
        picture: Whether they come with a picture.
    """
    length = math.log1p(content)
    worth = BIAS + LENGTH * length + sum(WEIGHTS[mark] * count for mark, count in marks.items())
    if answers:
        worth += ANSWER + ANSWER_LENGTH * length
    return worth + PICTURE * picture


def chance(worth: float) -> float:
    """A worth as a number from 0 to 1."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, worth))))

"""Retelling: a note of an assistant's words that says no more than a memory does. Pure.

An assistant repeats what it was given: "As I remember, deploys are on Tuesdays", 「我记得您住在上海」. Kept as a note,
that would stand beside the memory as a second fact. What a user says again is no retelling: people confirm things.

Invariants: when in doubt a note is news. Each clause of it has to have its words, in their order, within one clause of
the memory; what it leaves out there is no negation, condition or time that is over; and whoever is meant by "I" and
"you" is spoken of in the memory. So another value, another order and another speaker are news.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from indexer.common import lazy_regex
from indexer.language import ANY, ornament
from memory_service.text.similarity import read_fact
from memory_service.text.texts import in_every_language


def _asked_in_note(before: str, after: str) -> str:
    """The question of a note in a group, between what stands around it."""
    return f"{re.escape(before)}([^{after[:1]}]*){re.escape(after)}"


_QUESTIONS = "|".join(_asked_in_note(*text.split("{question}")) for text in in_every_language("noted_question"))
_NOTE = lazy_regex(
    rf"(?:{ANY.recall.assistants})(?: ?[(（]\d{{4}}-\d{{2}}-\d{{2}}[)）])?(?:{_QUESTIONS})?[:：]\s*(?P<body>.*)",
    re.IGNORECASE | re.DOTALL,
)
_ASSISTANTS_NOTE = lazy_regex(rf"\W*(?:{ANY.recall.assistants})\b", re.IGNORECASE)
_RECALLING = lazy_regex(ANY.recall.recalling, re.IGNORECASE)
_CLAUSE = lazy_regex(rf"[,;!?，；。！？\n]+|\.(?=\s|$)|[:：](?=\s|[^\d\s/])|{ANY.sameness.clause_joints}")
_USER: Final = frozenset({"user"})
_SELF, _OTHER = ANY.sameness.speakers, ANY.sameness.listeners
_EMPTY = _SELF | _OTHER | ANY.sameness.empty
# Words that may not be left out.
_TURNING = ANY.sameness.turning
_LEAST_WORDS: Final = 2
# So much of a word tells it, whatever its ending.
_STEM_CHARS: Final = 5


def retold_words(note: str) -> str:
    """The words of an assistant in a note, without those that say that it remembers; empty for other notes."""
    match = _NOTE.fullmatch(note)
    return _RECALLING.sub("", match["body"], count=1) if match else ""


def _retells(note: str, memory: str) -> bool:
    """True if a note of an assistant's words says nothing that a memory does not."""
    words, match = retold_words(note), _NOTE.fullmatch(note)
    clauses = [clause for clause in map(_Clause, _CLAUSE.split(words)) if clause.words]
    if match is None or sum(len(clause.words) for clause in clauses) < _LEAST_WORDS:
        return False
    told_clauses = [_Clause(text) for text in _CLAUSE.split(memory)]
    by_user = not _ASSISTANTS_NOTE.match(memory)
    keys = {person for clause in told_clauses for person in clause.persons(by_user=by_user)}
    if asked_text := next(filter(None, match.groups()[:-1]), ""):
        # A short answer says what it is about only in its question.
        stems = {word[:_STEM_CHARS] for clause in told_clauses for word in clause.words}
        if stems.isdisjoint(word[:_STEM_CHARS] for word in _Clause(asked_text).words):
            return False
    return all(
        any(clause.is_within(other_clause) for other_clause in told_clauses) and clause.persons(by_user=False) <= keys
        for clause in clauses
    )


def retells_any(note: str, memories: Iterable[str]) -> bool:
    """True if a note retells one of some memories; what cannot be read retells nothing."""
    return any(ornament("similarity", False, _retells, note, memory) for memory in memories)


class _Clause:
    """A clause by its words: those that say something, in order."""

    def __init__(self, text: str) -> None:
        self._all = tuple(word for word in read_fact(text).tokens if word not in ("", "?"))
        self.words = tuple(_singular(word) for word in self._all if word not in _EMPTY)

    def persons(self, *, by_user: bool) -> frozenset[str]:
        """Who is spoken of: the user, the assistant."""
        own, other_kind = ("user", "assistant") if by_user else ("assistant", "user")
        value = [(own, _SELF), (other_kind, _OTHER), ("user", _USER)]
        return frozenset(person for person, words in value if not words.isdisjoint(self._all))

    def is_within(self, other_clause: _Clause) -> bool:
        """True if another clause has the words in this order, and nothing beside them that turns what they say."""
        left = _left_out(self.words, other_clause.words)
        return left is not None and _TURNING.isdisjoint(left)


def _left_out(words: Sequence[str], other_texts: Sequence[str]) -> list[str] | None:
    """Those of some words that others, in order, do not have; None if they are no part of them."""
    left, at = list[str](), 0
    for word in other_texts:
        if at < len(words) and word == words[at]:
            at += 1
        else:
            left.append(word)
    return left if at == len(words) else None


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and word not in _TURNING else word

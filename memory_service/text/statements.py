"""Sentence classifier: rules, decisions, promises, questions, outcomes, failures. Pure.

Invariants: linear; what is found is quoted, never reworded; a kind decides only where a sentence stands and how much it
is worth; what a tool prints is never a rule, a decision or an ask. English and Chinese have the same rules; in other
languages a sentence is a fact.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from indexer.common import COMMON_HAN, lazy_regex
from indexer.language import (
    ANY,
    LanguagePattern,
    asks,
    has_failed,
    is_error_line,
    is_exit_only,
    is_reported,
    names_outcome,
    typed_text,
)
from memory_service.text.sentences import (
    STATEMENT_CHARS,
    Sentence,
    single_line,
    split_sentences,
)

# Patterns run over lower case and begin with letters, which is what the engine skips ahead by; what has to stand
# before them is looked at afterwards.
_ORDER_START = lazy_regex(rf"(?:^|[.!?,;:—–\n(*-]\s{{0,3}}|\b(?:{ANY.statements.order_starts})\s)\Z")
_RULE = lazy_regex(rf"(?:{ANY.statements.rules})|(?P<clause>{ANY.statements.orders})")
_STANDING = lazy_regex(ANY.statements.standing)
_RULE_HINTS = ANY.statements.rule_hints
_DECISION = lazy_regex(ANY.statements.decisions)
_DECISION_HINTS = ANY.statements.decision_hints
# A proposal, or the question whether, decides nothing.
_UNDECIDED = lazy_regex(ANY.statements.undecided)
# Of a rule: what others ask is none.
_ASKED = lazy_regex(ANY.statements.asked)
_DUE = lazy_regex(ANY.statements.due)
_DUE_HINTS = ANY.statements.due_hints
_HAN = lazy_regex(f"[{COMMON_HAN}]")
_DECIDING = lazy_regex(f"(?i){ANY.statements.deciding}")
_QUESTION_END = ("?", "？", *ANY.statements.question_ends)
# "Book nothing before I say so, ok?" asks nothing.
_TAG = lazy_regex(rf"(?i)[,，]\s?(?:{ANY.statements.tags})[?？]\Z")
_REQUEST = lazy_regex(f"(?i){ANY.statements.requests}")
_IMPERATIVE = lazy_regex(f"(?i){ANY.statements.imperatives}")
_YES = lazy_regex(f"(?ix){ANY.statements.yes}")
_NO = lazy_regex(f"(?ix){ANY.statements.no}")
_NAME = lazy_regex(f"(?i){ANY.statements.names}")


def rules_of(text: str) -> list[str]:
    """The sentences in which a user says what must or must not be done."""
    texts = _find_sentences(text, _RULE, _RULE_HINTS)
    return [rule for rule in texts if not _ASKED.search(rule.lower())]


def decisions_of(text: str) -> list[str]:
    """The sentences that decide something."""
    texts = _find_sentences(text, _DECISION, _DECISION_HINTS)
    return [decision for decision in texts if not _UNDECIDED.search(decision.lower())]


def speaks_of_deciding(text: str) -> bool:
    """True if a text has the very word: "decided", "decision", "决定"."""
    return _DECIDING.search(text) is not None


def promises_of(text: str) -> list[str]:
    """The sentences that promise or demand something for a day or an hour."""
    return _find_sentences(text, _DUE, _DUE_HINTS)


def is_promise(sentence: str) -> bool:
    """True if a sentence promises or demands something for a day or an hour; a question does not."""
    return _may_have(sentence, _DUE_HINTS) and _place(sentence, _DUE) >= 0 and not _asks(sentence)


def is_standing(rule: str) -> bool:
    """True if a rule holds for all that comes, and not only for what is being done."""
    return _STANDING.search(rule.lower()) is not None


def names_of(text: str) -> list[str]:
    """Names by which people introduce themselves."""
    lowered_text = text.lower()
    is_hinted = "my name" in lowered_text or "call me" in lowered_text or "i am called" in lowered_text or "我" in text
    return [single_line(match[0], 80) for match in _NAME.finditer(text)] if is_hinted else []


def ask_of(text: str) -> str:
    """Request of a user's message: its last question, else its request; empty if it asks for nothing."""
    sentences = _sentences(text[-4_000:])
    questions = [sentence for sentence in sentences if _asks(sentence)]
    if questions:
        return questions[-1]
    return next((sentence for sentence in sentences if _REQUEST.search(sentence) or _IMPERATIVE.match(sentence)), "")


def is_order(sentence: str) -> bool:
    """True if a sentence tells somebody to do something, now and once."""
    return _IMPERATIVE.match(sentence) is not None


def question_of(text: str) -> str:
    """The last question of a text, near its end; empty if there is none."""
    end = text[-1_500:]
    if not any(mark in end for mark in _QUESTION_END):
        return ""
    questions = [sentence for sentence in _sentences(end)[-6:] if _asks(sentence)]
    return questions[-1] if questions else ""


def is_yes(text: str) -> bool:
    """True if a user's message says yes to something."""
    head = text[:400]
    return bool(_YES.search(head)) and not _NO.match(head)


def is_no(text: str) -> bool:
    """True if a user's message says no to something."""
    return bool(_NO.match(text[:400]))


def _may_have(text: str, hints: tuple[str, ...]) -> bool:
    """True if a text may have the words of a pattern: if it has Chinese, or one of some words in small letters."""
    if not text.isascii() and _HAN.search(text):
        return True
    lowered_text = text.lower()
    # Not `any` of a generator: it takes half as long, and most sentences come through here.
    for hint in hints:
        if hint in lowered_text:
            return True
    return False


def _asks(sentence: str) -> bool:
    bare = sentence.rstrip("\"'”’)） ")
    return bare.endswith(_QUESTION_END) and not _TAG.search(bare[-12:])


def _sentences(text: str) -> list[str]:
    return [single_line(sentence) for line in text.splitlines() for sentence in split_sentences(line)]


def _find_sentences(text: str, pattern: re.Pattern[str], hints: tuple[str, ...]) -> list[str]:
    """The sentences in which a pattern is found, each once; no questions, and nothing that others say."""
    if not _may_have(text, hints) or pattern.search(text.lower()) is None:
        return []
    fields: dict[str, None] = {}
    for line in typed_text(text).splitlines():
        for whole in split_sentences(line):
            at = _place(whole, pattern)
            if at < 0 or _asks(whole) or is_reported(whole):
                continue
            # Of an endless line, what stands around the words.
            start = 0 if at < STATEMENT_CHARS - 40 else _last_border(whole, at - STATEMENT_CHARS // 2, at)
            fields[single_line(whole[start:].strip(" \t-*>#•"))] = None
    return list(fields)


def _place(sentence: str, pattern: re.Pattern[str]) -> int:
    """Position of a pattern in a sentence; -1 if not found."""
    text = sentence.lower()
    text = text if len(text) == len(sentence) else sentence  # a few letters take more room in lower case
    return next((match.start() for match in pattern.finditer(text) if _stands_free(text, match)), -1)


def _stands_free(text: str, match: re.Match[str]) -> bool:
    """True if a match begins a word, and where it is an order, a clause."""
    start = match.start()
    if start and text[start - 1].isascii() and text[start - 1].isalnum() and text[start].isascii():
        return False
    if not any(match.groupdict().values()):
        return True
    return bool(_ORDER_START.search(text, max(0, start - 12), start))


def _last_border(text: str, start: int, end: int) -> int:
    return max(text.rfind(mark, start, end) for mark in " ，；、\t") + 1 or start


class Kind(Enum):
    """Kind of a sentence."""

    RULE = "rule"
    DECISION = "decision"
    DONE = "done"
    PLAN = "plan"
    FAILURE = "failure"
    ASK = "ask"
    QUESTION = "question"
    FACT = "fact"
    EMPTY = "empty"


_WORD = lazy_regex(r"[a-zß-ÿ]+(?:['’][a-z]+)?")

# Words that the patterns below need: most sentences have none, so that no pattern has to run.
_STRONG_RULE = LanguagePattern(lambda each: each.statements.strong_rules, lambda each: each.statements.rule_words)
_WEAK_RULE = LanguagePattern(lambda each: each.statements.weak_rules, lambda each: each.statements.rule_words)
_DECISION_WORDING = LanguagePattern(
    lambda each: each.statements.decision_wordings, lambda each: each.statements.decision_words
)
_DONE = LanguagePattern(lambda each: each.statements.done)
_DONE_FIRST = lazy_regex(ANY.statements.done_first)
_NOT_DONE = lazy_regex(ANY.statements.not_done)
_PLAN = lazy_regex(ANY.statements.plans)
_ASK_START = LanguagePattern(lambda each: each.statements.asks)
_EMPTY = lazy_regex(rf"^\W*(?:{ANY.statements.empty})\W*$|{ANY.statements.empty_sentences}")
_HEDGE = LanguagePattern(lambda each: each.statements.offers, lambda each: each.statements.offer_words)


# What only leads over to what follows.
_LEAD_CHARS, _KEPT_SENTENCES = 80, 4096


def kind_of(sentence: Sentence) -> tuple[Kind, float]:
    """Kind of a sentence, and the certainty of its wording: 1 is clear, 0.5 is a guess."""
    if sentence.voice != "tool":
        return _of_words(sentence.text, sentence.voice == "user", sentence.quoted)
    return _of_tool(sentence, sentence.text.lower())


# A sentence is read at the flush, for the summary, and again at the next compaction.
@lru_cache(_KEPT_SENTENCES)
def _of_words(text: str, is_user: bool, is_quoted: bool) -> tuple[Kind, float]:
    lower = text.lower()
    words = frozenset(_WORD.findall(lower))
    if _is_empty(text, lower, words):
        return Kind.EMPTY, 0.0
    is_asked = asks(text)
    if is_quoted:
        return (Kind.FACT, 0.6) if is_user and not is_asked else (Kind.EMPTY, 0.0)
    if not is_asked and is_error_line(lower):
        return Kind.FAILURE, 1.0
    if is_user and (rule := _rule(lower, words)) and not (is_asked and rule < 1):
        return Kind.RULE, rule
    if is_asked:
        return Kind.QUESTION, 1.0
    if _DECISION_WORDING.is_in(lower, words):
        return Kind.DECISION, 1.0
    if is_user and (is_order(text) or _ASK_START.begins(lower)):
        return Kind.ASK, 1.0
    return _of_work(lower, own=not is_user)


def _is_empty(text: str, lower: str, words: frozenset[str]) -> bool:
    if (text[-1] in ":：" and len(text) <= _LEAD_CHARS) or not any(map(str.isalnum, text)):
        return True
    if len(text) < 60 and _EMPTY.search(lower):
        return True
    return _HEDGE.is_in(lower, words)


def _rule(lower: str, words: frozenset[str]) -> float:
    return 1.0 if _STRONG_RULE.is_in(lower, words) else 0.5 if _WEAK_RULE.is_in(lower, words) else 0.0


def _of_work(lower: str, *, own: bool) -> tuple[Kind, float]:
    failed = has_failed(lower)
    is_done = _DONE.is_in(lower) and not _NOT_DONE.search(lower)
    # "Fixed the failing test" is done; "the fix failed again" is not.
    if is_done and not (failed and not _DONE_FIRST.match(lower) and not lower.startswith("i ")):
        return Kind.DONE, 1.0 if own else 0.6
    if failed:
        return Kind.FAILURE, 1.0 if own else 0.8
    if own and _PLAN.search(lower):
        return Kind.PLAN, 1.0
    return Kind.FACT, 1.0


def _of_tool(sentence: Sentence, lower: str) -> tuple[Kind, float]:
    empty = _is_empty(sentence.text, lower, frozenset(_WORD.findall(lower)))
    if empty or len(sentence.text) > 200 or is_exit_only(lower):
        return Kind.EMPTY, 0.0
    if names_outcome(lower):
        bad = sentence.failed or has_failed(lower)
        exit_zero = "exit code 0" in lower or "exit code: 0" in lower
        return (Kind.FAILURE, 0.9) if bad and not exit_zero else (Kind.DONE, 0.6)
    if sentence.failed and sentence.place < 3:
        return Kind.FAILURE, 0.7
    return Kind.EMPTY, 0.0


# --- the will of others -------------------------------------------------------------------------------------------

# An assistant that says "The user allowed everything" binds nobody: only the user's own words do.
_WILL = lazy_regex(f"(?ix){ANY.statements.wills}")
_CONDITION = lazy_regex(f"(?i){ANY.statements.conditions}")


def reports_will(sentence: str) -> bool:
    """True if a sentence says that somebody has allowed, decided or demanded something, or lays down a rule."""
    if sentence.rstrip("\"'”’)） ").endswith(("?", "？", "吗", "呢")):
        return False
    return any(
        not _CONDITION.search(sentence, max(0, match.start() - 80), match.start()) for match in _WILL.finditer(sentence)
    )


def lays_down(sentence: str) -> bool:
    """True if a sentence reports somebody's will, or is a rule: only a user's own words may be kept as such."""
    return reports_will(sentence) or bool(rules_of(sentence))

"""Statements that are made again with another value: "I commute by bus", "I commute by bike now". Pure.

Two sentences are compared word by word, without their words of change. What they share at their beginning and at
their end is what they tell of, what stands between is the value. With a word of change in the later one ("now",
「现在」) it is enough that both begin alike as far as their verb; without one the sentences have to be the same but for
one value. Two amounts, days or hours have to be of one unit: a price a day is none a month.

Invariants: nothing is told by likeness of meaning; what a verb may take several of at a time ("have", "speak",
「有」) and what was done once ("met", 「去过」) is no value that another ends, nor is a scope ("for adults"); a
language without words for this (`Restatements`) is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.language.facts import hedges_of, sentences_with_changes
from indexer.language.facts_clause import is_nobody
from indexer.language.tables import ANY

_MOST_SENTENCES = 12
_MOST_WORDS = 40
_NUMERALS = ANY.restatements.numerals
_HAN = lazy_regex("[\u4e00-\u9fff]")
# An ordinal, an hour, a number, a character, a word of another script, a sign of an amount.
_WORD = lazy_regex(
    rf"{ANY.restatements.counts}|[{_NUMERALS}]+|[\u4e00-\u9fff]"
    r"|[^\W\u4e00-\u9fff]+(?:['’.:,/@#+_-][^\W\u4e00-\u9fff]+)*|[$€£¥#%]"
)
_ARTICLES = ANY.restatements.articles
_CHANGE = lazy_regex(rf"\b(?:{ANY.clauses.changes})\b|{ANY.clauses.changes_within}", re.IGNORECASE)
_ONE_WITHIN = lazy_regex(ANY.restatements.one_within)
# In "the second drawer" they say which one; the facts know them as words of company and of the past.
_WHICH = ANY.restatements.which
# Of grammar alone: a sentence that shares no other word tells of nothing.
_GRAMMAR = ANY.nouns.grammar
_PRONOUNS = ANY.restatements.speakers
_BE, _BE_WITHIN = ANY.restatements.be, ANY.restatements.be_within
_ADVERBS = ANY.restatements.adverbs
_IMPERATIVES = ANY.restatements.imperatives
# Of whom or what they tell was said before, or is the one who listens; and what opens a plan.
_ELSEWHERE = ANY.restatements.elsewhere
# "Runs on", "works with": of several too, but for numbers.
_SEVERAL_BEHIND = ANY.restatements.several_behind
_OF_RUNNING = ANY.restatements.running
_VERBS = ANY.restatements.verbs
_SEVERAL = ANY.restatements.several
# Where something is: "hangs behind the boiler", "is in the drawer" say the same of it.
_AT = "@at"
_POSITION = ANY.restatements.positions
_PLACED = ANY.restatements.placed
_PLACE = ANY.restatements.places
_MANNERS = ANY.restatements.manners
_PREPOSITIONS = _PLACE | _MANNERS | ANY.restatements.directions
# What stands behind one of these says of what a value holds, and is none itself.
_SCOPES = ANY.restatements.scopes
_DEFINITE = ANY.restatements.definite
# Where nothing is, though it stands behind "in the".
_BEFORE_PLACE = ANY.restatements.before_place
_NO_PLACE = ANY.restatements.no_places
_HOURS = ANY.restatements.hours
_DAYS = ANY.restatements.days
_VERBS_WITHIN = ANY.restatements.verbs_within
_VERB_WITHIN = lazy_regex(f"(?:{_VERBS_WITHIN})$")
# What somebody is like or where they are from: that holds beside what else they are.
_DESCRIBES_WITHIN = lazy_regex(ANY.restatements.describes_within)
_VERBS_BEHIND_WITHIN = lazy_regex(f"(?:{ANY.restatements.long_verbs_within}|{_VERBS_WITHIN})+$")
_VERB_SOMEWHERE_WITHIN = lazy_regex(_VERBS_WITHIN)
# Before a verb in the midst of a sentence: 「一个使用…」.
_RELATIVE_WITHIN = lazy_regex(ANY.restatements.relative_within)
_SEVERAL_WITHIN = lazy_regex(ANY.restatements.several_within)
_LIKED_WITHIN = lazy_regex(ANY.restatements.liked_within)
_DONE_WITHIN = re.compile(ANY.restatements.done_within)
_DEGREE_WITHIN = re.compile(ANY.restatements.degrees_within)
_AT_WITHIN = lazy_regex(ANY.restatements.at_within)
_PLACED_WITHIN = ANY.restatements.placed_within
_INSIDE_WITHIN = lazy_regex(ANY.restatements.inside_within)
_ORDINALS = ANY.restatements.ordinals
_DAY_SIGNS = ANY.restatements.day_signs
_NUMBER_SIGNS = frozenset(_NUMERALS)
_LEAST_SHARED, _SAME_SENTENCE = 3, 0.5
_MOST_VALUE = 5
_LEAST_WITHIN, _LEAST_SAME_WITHIN, _SAME_WITHIN, _SOME_WITHIN, _MOST_VALUE_WITHIN = 3, 5, 0.5, 0.3, 14


# Of the words of the shorter of two texts, how many the other has at least, where one says again what the other said.
LEAST_SHARED = 0.3


class Sentence(NamedTuple):
    """A sentence as it is compared.

    Attributes:
        words: In small letters, without articles and words of change; characters of Chinese.
        written: The same as they are written, with articles.
        changes: True if it has a word of change.
        hedges: Its words of doubt, condition and company, in order.
        is_unspaced: True if it has characters of a script without spaces.
    """

    words: tuple[str, ...]
    written: tuple[str, ...]
    changes: bool
    hedges: tuple[str, ...]
    is_unspaced: bool


@lru_cache(maxsize=8_192)
def words_in(text: str) -> frozenset[str]:
    """The words of a text in small letters, and its Chinese characters."""
    return frozenset(_WORD.findall(text.lower()))


@lru_cache(maxsize=8_192)
def sentences_of(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text that state something."""
    sentences = list[Sentence]()
    for plain, changes in sentences_with_changes(text)[:_MOST_SENTENCES]:
        said_text = _CHANGE.sub(" ", plain)
        is_unspaced = _HAN.search(said_text) is not None
        if is_unspaced:
            said_text = _ONE_WITHIN.sub("", _AT_WITHIN.sub(_PLACED_WITHIN, said_text))
        written_matches = tuple(_WORD.findall(said_text))
        words = tuple(word.lower().replace("’", "'") for word in written_matches if word.lower() not in _ARTICLES)
        if 2 < len(words) <= _MOST_WORDS * (1 + is_unspaced):
            words = words if is_unspaced else _unify_positions(words)
            sentences.append(
                Sentence(
                    words,
                    written_matches,
                    changes,
                    tuple(hedge for hedge in hedges_of(plain) if hedge not in _WHICH),
                    is_unspaced,
                )
            )
    return tuple(sentences)


def _unify_positions(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a sentence, with one sign for all verbs that say where a thing is."""
    for at, word in enumerate(words[:-1]):
        if word in _POSITION and at:
            end = at + 1 + (words[at + 1] in _PLACED)
            if end < len(words) and words[end] in _PLACE:
                return (*words[:at], _AT, *words[end:])
    return words


@lru_cache(maxsize=8_192)
def restating(older: str, newer: str) -> Sentence | None:
    """The sentence of the later text that says again, with another value, what one of the earlier text said.

    Returns:
        The sentence; None for none.
    """
    return next((new for old, new in _pairs(older, newer) if _differ_in_value(old, new)), None)


def _pairs(older: str, newer: str) -> Iterator[tuple[Sentence, Sentence]]:
    return ((old, new) for new in sentences_of(newer) for old in sentences_of(older) if _comparable(old, new))


def _comparable(old: Sentence, new: Sentence) -> bool:
    return (
        old.is_unspaced == new.is_unspaced
        and old.hedges == new.hedges
        and old.words != new.words
        # No value stands before the verb.
        and (old.words[:2] == new.words[:2] or (old.words[0] == new.words[0] and old.words[0] in _IMPERATIVES))
    )


def _differ_in_value(old: Sentence, new: Sentence) -> bool:
    first, last = _shared_ends(old.words, new.words)
    beginning, ending = new.words[:first], new.words[len(new.words) - last :]
    values = old.words[first : len(old.words) - last], new.words[first : len(new.words) - last]
    if not all(values) or not beginning or _unit_of(values[0]) != _unit_of(values[1]):
        return False
    read = _unspaced_value if new.is_unspaced else _spaced_value
    return read(old, new, beginning, ending, values)


def _shared_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many words two sentences share at their beginning, and how many of the others at their end."""
    least = min(len(old), len(new))
    first = next((at for at in range(least) if old[at] != new[at]), least)
    last = next((at for at in range(least - first) if old[-1 - at] != new[-1 - at]), least - first)
    return first, last


def _unit_of(value: Sequence[str]) -> tuple[str, ...]:
    """The unit of an amount, a day or an hour; nothing for another value."""
    kinds = tuple(_kind_of(word) for word in value)
    if not any(kinds):
        return ()
    return tuple(dict.fromkeys(kind or word for kind, word in zip(kinds, value, strict=True) if word not in _HOURS))


def _kind_of(word: str) -> str:
    if word.startswith(_ORDINALS):
        return ""
    if any(map(str.isdigit, word)) or not _NUMBER_SIGNS.isdisjoint(word):
        return "@number"
    return "@day" if word in _DAYS or word in _DAY_SIGNS else ""


_Values = tuple[tuple[str, ...], tuple[str, ...]]


def _spaced_value(
    old: Sentence, new: Sentence, beginning: tuple[str, ...], ending: tuple[str, ...], values: _Values
) -> bool:
    before = beginning[-1]
    kinds = {_kind_of(word) for word in values[0]}
    numbers, days = "@number" in kinds, "@day" in kinds
    has_number = any(map(str.isdigit, "".join(beginning)))
    is_stated = any(_is_verb(beginning, at) for at in range(len(beginning))) and _ELSEWHERE.isdisjoint(beginning)
    if not is_stated or (before in _SCOPES and (has_number or not numbers)):
        return False
    if _is_one_of_several(beginning, numbers=numbers):
        return False
    if len(beginning) > 1 and before in _SEVERAL_BEHIND and beginning[-2] in _OF_RUNNING and not numbers and not ending:
        return False
    telling = [word for word in (*beginning, *ending) if word not in _GRAMMAR and word != _AT]
    if _AT in beginning[-2:] and not (numbers or days):
        is_thing = new.written[0].lower() in _DEFINITE or beginning[0] in _PRONOUNS
        if not (is_thing and telling and _has_place(old) and _has_place(new)):
            return False
        if not ending:
            return True
    elif not _go_together(*values):
        return False
    if before in _BE and not ending and not (numbers or days):
        return len(telling) >= _LEAST_SHARED and _is_described(old) and _is_described(new)
    if any(value[0].endswith(_ADVERBS) for value in values):
        return False
    longest = max(map(len, values))
    if new.changes and (len(telling) >= 2 or beginning[0] in _PRONOUNS) and longest <= 2 * _MOST_VALUE:
        return True
    if longest > _MOST_VALUE or len(telling) < _LEAST_SHARED - (numbers or days):
        return False
    if not (ending or numbers or days or before in _PREPOSITIONS):
        return False
    if has_number and not numbers and (before in _PREPOSITIONS or days):
        # "Opens at 9 on Mondays": the day says of what the hour holds.
        return False
    shared_count = len(beginning) + len(ending)
    return shared_count >= _SAME_SENTENCE * len(new.words) and shared_count >= _SAME_SENTENCE * len(old.words)


def _is_one_of_several(beginning: Sequence[str], *, numbers: bool) -> bool:
    """True if the value is what a verb may take several of: "we support …", but not "I take 50 mg"."""
    at = next((at for at in range(len(beginning) - 1, 0, -1) if beginning[at] in _SEVERAL), 0)
    object_ = beginning[at + 1 :]
    if not at or not _PREPOSITIONS.isdisjoint(object_):
        return False
    return not (object_[0] in _DEFINITE and len(object_) > 1 if object_ else numbers)


def _is_verb(words: Sequence[str], at: int) -> bool:
    word = words[at]
    if at == 0:
        # "Use tabs for indentation": the user tells what to do.
        return word in _IMPERATIVES
    return word in _BE or word == _AT or word in _VERBS


def _has_place(sentence: Sentence) -> bool:
    """True if what stands at the end of a sentence is a place: "in the drawer", "in Lisbon"."""
    end = next((at for at in range(1, len(sentence.written)) if sentence.written[at].lower() in _PLACE), 0)
    place = sentence.written[end + 1 :]
    while place and place[0].lower() in _BEFORE_PLACE:
        place = place[1:]
    is_named = bool(place) and (place[0].lower() in _DEFINITE or place[0][:1].isupper() or not place[0].isalpha())
    return (
        bool(end)
        and is_named
        and _NO_PLACE.isdisjoint(word.lower() for word in place)
        and _DAYS.isdisjoint(word.lower() for word in place)
    )


def _is_described(sentence: Sentence) -> bool:
    """True if a sentence says of one thing which other it is: "the hint for … is the name of …"."""
    written_texts = [word.lower() for word in sentence.written]
    be = next((at for at, word in enumerate(written_texts) if word in _BE), 0)
    return written_texts[0] in _DEFINITE and be + 2 < len(written_texts) and written_texts[be + 1] in _DEFINITE


def _go_together(old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    """False for values that are put with prepositions of two kinds: "listens on port 80", "listens to events"."""
    leads = {value[0] for value in (old, new) if value[0] in _PREPOSITIONS or value[0] in _SCOPES}
    return len(leads) < 2 or leads <= _MANNERS


def _unspaced_value(
    old: Sentence, new: Sentence, beginning: tuple[str, ...], ending: tuple[str, ...], values: _Values
) -> bool:
    before, behind = "".join(beginning), "".join(ending)
    if before.endswith(_BE_WITHIN) and any(_DESCRIBES_WITHIN.search("".join(value)) for value in values):
        return False
    if is_nobody(_VERBS_BEHIND_WITHIN.sub("", before)) or _RELATIVE_WITHIN.search(before):
        return False
    if len(beginning) < 2 or max(map(len, values)) > _MOST_VALUE_WITHIN or _DEGREE_WITHIN.search(before):
        return False
    numbers = "@number" in map(_kind_of, values[0])
    if _VERB_WITHIN.search(before) is None and not (numbers and _VERB_SOMEWHERE_WITHIN.search(before + behind)):
        return False
    several = _SEVERAL_WITHIN.search(before) is not None or _LIKED_WITHIN.search(before) is not None
    if several and not numbers and not (new.changes and _LIKED_WITHIN.search(before)):
        return False
    number, longest = len(beginning) + len(ending), max(len(old.words), len(new.words))
    telling = [word for word in (*beginning, *ending) if word not in _GRAMMAR]
    if new.changes:
        return (
            number >= _LEAST_WITHIN - (before[-1] == _PLACED_WITHIN)
            and number >= _SOME_WITHIN * longest
            and bool(telling)
        )
    if _DONE_WITHIN.search("".join(old.words) + "".join(new.words)):
        return False
    if before[-1] == _PLACED_WITHIN and behind and _INSIDE_WITHIN.match(behind) is None:
        # Where somebody does something may be several places.
        return False
    return number >= _LEAST_SAME_WITHIN - numbers and number >= _SAME_WITHIN * longest and len(telling) > 1

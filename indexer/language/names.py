"""Names of speakers, in front of what they say and in a question: label, part of it, misspelling, name in a greeting.

A speaker is named by a label, a part of it, a misspelling, or a name that others greet them by: when Elise says "Hey
Kate!" three times in a talk of two, the other one is Kate.

Invariants: pure; a name that is also a word counts only where it is written as a name; what may mean two speakers
counts for both; only the beginning of a message counts as a greeting, and only where exactly two speak.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import COMMON_HAN
from indexer.language.dates import leading_stamp
from indexer.language.tables import ANY
from indexer.language.terms import STOP_WORDS, fold, has_unspaced, index_terms

_LABELS = ANY.labels.notes | ANY.labels.addresses
_SPEAKER = lazy_regex(
    r"(?:\*\*|__)?([^\W\d_][^:：*\n.,;!?。，；！？、…()\[\]]{0,31})(?:(?:\*\*|__)[:：]|[:：](?:\*\*|__)|：|:(?=\s|$))"
)

# Source: real chats that nothing was tuned on, where same first letter and .7 found who was meant, and nobody else. In
# a name of three letters one wrong letter gives .67.
_ALIKE, _ALIKE_SHORT = 0.7, 0.65
_WORD = lazy_regex(r"[^\W\d_]+")
_OPENING = lazy_regex(r"(?:^|[.!?。！？:：\n]\s*)[\W_]*$")
_GENITIVE = lazy_regex(r"['’]s?\b")
# Names that are words, or months, as well.
_WORDS = STOP_WORDS | ANY.names.words
_NO_PARTS = ANY.names.no_parts
_TITLES = ANY.names.titles_within
_FAMILIAR, _PET_SIGNS = ANY.names.familiar, ANY.names.pet_signs
_COMPOUND_SURNAMES = ANY.names.long_surnames
_WORDS_WITHIN = ANY.names.words_within


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Speakers that a question names.

    Attributes:
        labels: Numbers of their labels.
        words: The words of the question that name them, folded.
    """

    labels: frozenset[int] = frozenset()
    words: frozenset[str] = frozenset()


NOBODY = Named()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """A word of a question.

    Attributes:
        capital: True for a capital, and for every word of a question that has none.
        marked: True if the capital marks a name rather than the beginning of a sentence.
    """

    folded: str
    capital: bool
    marked: bool


def speaker_of(text: str) -> str | None:
    """The speaker, if a text begins "Name: "; None if nobody is named."""
    if text.find(":", 1, 40) < 0 and text.find("：", 1, 40) < 0:
        return None
    match = _SPEAKER.match(text)
    if match is None:
        return None
    name = match[1].strip()
    return None if name.casefold() in _LABELS or len(name.split()) > 4 else name


def named_speakers(
    speakers: Mapping[int, str],
    question: str,
    *,
    occurs: Callable[[str], bool] = lambda _: True,
    greeted_fields: Mapping[str, frozenset[int]] | None = None,
) -> Named:
    """The speakers that a question names.

    Args:
        speakers: Their labels, by number.
        question: The question.
        occurs: Tells if a term is in the index at all. One that is, is no misspelling of a name.
        greeted_fields: Names that speakers are greeted by, folded, and their labels.
    """
    if not speakers:
        return NOBODY
    words = list(_words(question))
    whole = _whole(speakers, question, words)
    taken_parts = {part for label in whole for part in _WORD.findall(fold(speakers[label]))}
    numbers, used_items = set(whole), set(taken_parts)
    parts, greeted_fields = _parts(speakers), greeted_fields or {}
    for word in words:
        if word.folded in taken_parts:
            continue
        meant_numbers = _meant_labels(word, parts, occurs, greeted_fields)
        if meant_numbers:
            numbers |= meant_numbers
            used_items.add(word.folded)
    if has_unspaced(question):
        numbers |= _parts_within(speakers, question, whole)
        numbers |= _greeted_within(greeted_fields, question)
    return Named(labels=frozenset(numbers), words=frozenset(used_items))


def _words(question: str) -> Iterator[_Word]:
    plain = question.islower()
    for match in _WORD.finditer(question):
        capital = match[0][0].isupper()
        opening = _OPENING.search(question, 0, match.start()) is not None
        genitive = _GENITIVE.match(question, match.end()) is not None
        yield _Word(folded=fold(match[0]), capital=capital or plain, marked=capital and (genitive or not opening))


def _whole(speakers: Mapping[int, str], question: str, words: list[_Word]) -> set[int]:
    """Speakers whose whole label is in the question."""
    folded_text = f" {''.join(c if c.isalnum() else ' ' for c in fold(question))} "
    marked_keys = {word.folded for word in words if word.marked}
    return {
        label
        for label, name in speakers.items()
        if _stands(fold(name), folded_text) and (fold(name) not in _WORDS or fold(name) in marked_keys)
    }


def _stands(name: str, question: str) -> bool:
    if len(name) == 1 and has_unspaced(name):
        return _is_addressed(name, question)
    # A name in an unspaced script has no spaces around it in a sentence.
    return name in question if has_unspaced(name) else f" {name} " in question


def _is_addressed(surname: str, question: str) -> bool:
    """True if a surname is used as one: 老王, 小王, 王先生; 王 alone is a word like others."""
    return re.search(f"[{_FAMILIAR}]{re.escape(surname)}|{re.escape(surname)}(?:{_TITLES})", question) is not None


def _parts(speakers: Mapping[int, str]) -> dict[str, frozenset[int]]:
    """The words of all labels, each with the labels that have it."""
    parts = dict[str, frozenset[int]]()
    for label, name in speakers.items():
        for part in _WORD.findall(fold(name)):
            if len(part) > 1 and part not in _NO_PARTS and not has_unspaced(part):
                parts[part] = parts.get(part, frozenset()) | {label}
    return parts


def _meant_labels(
    word: _Word,
    parts: Mapping[str, frozenset[int]],
    occurs: Callable[[str], bool],
    greeted_fields: Mapping[str, frozenset[int]],
) -> frozenset[int]:
    exact = parts.get(word.folded) or (greeted_fields.get(word.folded) if word.capital else None)
    if exact:
        return exact if word.folded not in _WORDS or word.marked else frozenset()
    if not word.marked or word.folded in _WORDS or len(word.folded) < 3:
        return frozenset()
    known_fields = {**greeted_fields, **parts}
    alike = {part: share for part in known_fields if (share := _likeness(word.folded, part)) > 0}
    if occurs(word.folded):
        alike = {part: share for part, share in alike.items() if index_terms(part) == index_terms(word.folded)}
    best = max(alike.values(), default=0.0)
    return frozenset[int]().union(*(known_fields[part] for part, share in alike.items() if share >= best - 0.1))


def _likeness(word: str, part: str) -> float:
    """Similarity of a word and a part of a name, as a misspelling; 0 if it is none."""
    if word[0] != part[0] or part in _WORDS or len(part) < 3:
        return 0.0
    share = SequenceMatcher(None, word, part, autojunk=False).ratio()
    return share if share >= (_ALIKE_SHORT if len(part) == 3 else _ALIKE) else 0.0


def _parts_within(speakers: Mapping[int, str], question: str, whole: set[int]) -> set[int]:
    """Speakers of whose label a part is in the question: 小明 or 老王 of 王小明."""
    rest = question
    for label in whole:
        rest = rest.replace(speakers[label], " ")
    return {
        label
        for label, name in speakers.items()
        if label not in whole and _is_unspaced_name(name) and _has_part(name, rest)
    }


def _greeted_within(greeted_fields: Mapping[str, frozenset[int]], question: str) -> set[int]:
    names = (name for name in greeted_fields if has_unspaced(name) and name not in _WORDS_WITHIN and name in question)
    return {label for name in names for label in greeted_fields[name]}


def _is_unspaced_name(name: str) -> bool:
    return 2 <= len(name) <= 4 and all(has_unspaced(c) for c in name) and name[0] not in _FAMILIAR


def _has_part(name: str, question: str) -> bool:
    surname = 2 if name.startswith(_COMPOUND_SURNAMES) and len(name) > 2 else 1
    given_name = name[surname:]
    if len(given_name) > 1 and given_name not in _WORDS_WITHIN and given_name in question:
        return True
    return _is_addressed(name[:surname], question) or any(f"{sign}{given_name[-1]}" in question for sign in _PET_SIGNS)


# Once or twice it may be somebody else who is greeted.
_GREETINGS = 3
_GREETED_CHARS = 160
_SAID_BY = lazy_regex(r"(?:\*\*|__)?[^\W\d_][^:：\n.,;!?]{0,31}(?:\*\*|__)?[:：](?:\*\*|__)?\s*")
_NAME, _NAME_WITHIN = r"[^\W\d_][^\W\d_'’-]+", f"[{COMMON_HAN}]{{2,4}}?"
_END = r"\s*(?:[!,.?;:~…！，。？；：～—–-]|[^\w\s'’]|$)"
_GREETING = lazy_regex(
    rf"""(?:(?:{ANY.names.cries})\b[\s,]*)?
    (?:{ANY.names.greetings})(?:[ ](?:{ANY.names.greeting_ends}))?(?:,\s*|\s+)(?P<name>{_NAME}){_END}""",
    re.IGNORECASE | re.VERBOSE,
)
_HELLO_WITHIN, _PARTICLES = f"(?:{ANY.names.hellos_within})", f"(?:{ANY.names.greeting_particles})"
_GREETING_WITHIN = lazy_regex(
    rf"(?:{_HELLO_WITHIN}{_PARTICLES}?[，,\s]*|(?:{ANY.names.addresses_within})[，,\s]+)"
    rf"(?P<name>{_NAME}?|{_NAME_WITHIN}){_PARTICLES}?{_END}"
    rf"|(?P<first>{_NAME_WITHIN})[，,\s]+{_HELLO_WITHIN}{_END}"
)
# What is said to anybody.
_ANYBODY = STOP_WORDS | ANY.names.anybody
_NO_NAME_WITHIN = lazy_regex(ANY.names.no_names_within)


def greeted_name(text: str) -> str:
    """The name that a passage greets at its beginning, folded: "Elise: Hey Kate! …"; empty without one."""
    head = text[:_GREETED_CHARS]
    stamp = leading_stamp(head)
    at = stamp.end if stamp else 0
    said_by = _SAID_BY.match(head, at)
    at = said_by.end() if said_by else at
    match = _GREETING.match(head, at) or _GREETING_WITHIN.match(head, at)
    name = next((name for name in match.groups() if name), "") if match else ""
    return fold(name) if _is_name(name) else ""


def _is_name(name: str) -> bool:
    if has_unspaced(name):
        return _NO_NAME_WITHIN.search(name) is None
    # Two letters are a cry as often ("Hey Yo!"), and of two who are called Jo one is seldom meant.
    return len(name) > 2 and name[0].isupper() and fold(name) not in _ANYBODY


def greeted_speakers(greetings: Iterable[tuple[int, int, str]]) -> dict[str, frozenset[int]]:
    """Names, each with the labels of those who are greeted by it often enough.

    A name by which two greet each other is neither's: it is a general word, or somebody else's.

    Args:
        greetings: Number of the speaker's label, of the only other one's, and the name, folded.
    """
    counts = Counter(greetings)
    given_counts = Counter[tuple[int, str]]()
    for (speaker, other_number, name), count in counts.items():
        if (other_number, speaker, name) not in counts:
            given_counts[other_number, name] += count
    fields = defaultdict[str, frozenset[int]](frozenset)
    for (other_number, name), count in given_counts.items():
        if count >= _GREETINGS:
            fields[name] |= {other_number}
    return dict(fields)

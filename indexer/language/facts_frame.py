"""Facts of a clause: by the readers of its language, and by its frame where no wording reads it. Pure; linear.

A language has readers of its own, or the plain ones of its wordings. A frame is what two clauses say alike, word for
word. Clauses that are the same but for a number, a day or an hour at their end tell one thing, and the later one holds
if a word of change comes with it: "The API allows 60 requests a minute", "The API now allows 100 requests a minute". A
clause that comes again with "no longer" has ended: "We meet in the blue room", "We no longer meet in the blue room".

Invariants: without a word of change a frame replaces nothing; words that a change alone brings with it, and those of
grammar, tell no difference; any other word does, and so do the titles above.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.language.base import Language
from indexer.language.fact_tables import FactTable
from indexer.language.fact_words import ME, WE, is_day, is_time, leads_with_day, leads_with_time, value_of
from indexer.language.facts_clause import Claim, Clause, Parts, Reading, Wording, Wordings, end_claims
from indexer.language.languages import has_words_of, language_of
from indexer.language.tables import ANY, LANGUAGES
from indexer.language.terms import index_terms, simplify

_MOST_NAME_WORDS = 4


class _Reader(NamedTuple):
    """The reader of a language.

    Attributes:
        language: Its name.
        is_spaced: True if words stand apart in it.
        claims_of: Gives the claims of a clause.
        ended_in: Gives the statement that a text tells the end of; empty for none.
    """

    language: str
    is_spaced: bool
    claims_of: Callable[[Clause], Iterator[Claim]]
    ended_in: Callable[[str], str]


@cache
def _all_readers() -> tuple[_Reader, ...]:
    return tuple(_reader(language, language.facts) for language in LANGUAGES if language.facts)


def _reader(language: Language, table: FactTable) -> _Reader:
    if table.readings:
        return _Reader(language.name, language.is_spaced, *table.readings())
    plain = _PlainReader(table, language.clauses.no_longer)
    return _Reader(language.name, language.is_spaced, plain.claims_of, plain.ended_in)


# A clause is read as a whole, and then by its wordings.
@lru_cache(maxsize=64)
def _readers(text: str) -> tuple[_Reader, ...]:
    """Readers of the languages that a text may be in; the first one does not read what is told to be in another."""
    first, *readers = _all_readers()
    may_be = [
        reader for reader in readers if (has_words_of if reader.is_spaced else _is_unspaced)(text, reader.language)
    ]
    is_told = language_of(text) in {each_reader.language for each_reader in may_be if each_reader.is_spaced}
    return (*(() if is_told else (first,)), *may_be)


def _is_unspaced(text: str, _: str) -> bool:
    return not text.isascii()


def claims_of(clause: Clause) -> Iterator[Claim]:
    """Claims of a clause, by the readers of the languages that it may be in."""
    for reader in _readers(clause.text):
        yield from reader.claims_of(clause)


def ended_in(text: str) -> str:
    """The statement that a text tells the end of, without the words that say so; empty for none."""
    has_han = _HAN.search(text) is not None
    texts = (reader.ended_in(text) for reader in _readers(text) if reader.is_spaced is not has_han)
    return next(filter(None, texts), "")


class _PlainReader:
    """The reader of a language that has wordings, and no readings of its own.

    Args:
        table: The wordings, and how the language is written.
        no_longer: Pattern of the words that say that something has ended; what its group finds is of the statement.
    """

    def __init__(self, table: FactTable, no_longer: str) -> None:
        self._no_longer = lazy_regex(no_longer or "(?!)", re.IGNORECASE)
        self._table = Wordings(table.wordings, table.script)
        self._readings: dict[str, Reading] = {
            "attribute": _attribute,
            "when": _time_claims,
            "use": _taste_claims,
            "prefer": _taste_claims,
            "on": _habit,
            "is": _state,
        }

    def claims_of(self, clause: Clause) -> Iterator[Claim]:
        """Claims of a clause."""
        if denied_text := self.ended_in(clause.text):
            yield from end_claims(self._claims_of(dataclasses.replace(clause, text=denied_text)))
        else:
            yield from self._claims_of(clause)

    def ended_in(self, text: str) -> str:
        """The statement that a text tells the end of, without the words that say so; empty for none."""
        match = self._no_longer.search(text)
        return " ".join(f"{text[: match.start()]}{match[1]}{text[match.end() :]}".split()) if match else ""

    def _claims_of(self, clause: Clause) -> Iterator[Claim]:
        text, claimed_keys = clause.text, set[str]()
        be = self._table.place_of_be(text)
        for wording in self._table.among(self._table.words_of(text.lower())):
            reading, _, named_text = wording.relation.partition(":")
            if reading not in claimed_keys and (match := wording.found_in(text, be)):
                parts = {name: part for name, part in match.groupdict().items() if part}
                parts.setdefault("s", text[: match.start()])
                for claim in self._readings.get(reading, _attribute_claims)(
                    clause, wording, named_text or reading, parts
                ):
                    claimed_keys.add(reading)
                    yield claim


def _attribute(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    """An attribute that is named, and its value."""
    changes = wording.changes or clause.is_new(parts["n"])
    if attribute := clause.attribute_of(parts["n"]):
        yield from clause.holds(*attribute, parts["v"], changes=changes)
    else:
        yield from clause.by_sort(parts["n"], parts["v"], changes=changes)


def _time_claims(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    """The day or the hour of what takes place."""
    day = leads_with_day(parts["v"])
    if (day or leads_with_time(parts["v"])) and (subject := clause.subject_of(parts["n"])):
        yield from clause.holds(subject, "day" if day else "time", parts["v"], changes=wording.changes)


def _attribute_claims(clause: Clause, wording: Wording, attribute: str, parts: Parts) -> Iterator[Claim]:
    """An attribute of a subject that a verb tells, and the value that it had before."""
    subject = clause.subject_of(parts["s"])
    if subject is None or is_day(parts["v"]) or is_time(parts["v"]):
        return
    yield from clause.holds(subject, attribute, parts["v"], changes=wording.changes, single=wording.single)
    if former := value_of(parts.get("f", ""))[0]:
        yield clause.toggle(subject, attribute, former, on=False)


def _taste_claims(clause: Clause, wording: Wording, relation: str, parts: Parts) -> Iterator[Claim]:
    """Something that is used or preferred."""
    if subject := clause.subject_of(parts["s"]):
        we = frozenset({WE}) if relation == "use" and subject & {ME, WE} else subject
        yield from clause.tastes(we, relation, parts["v"], changes=wording.changes)


def _habit(clause: Clause, _wording: Wording, verb: str, parts: Parts) -> Iterator[Claim]:
    """Habits and possessions, of which there may be many."""
    subject, value = clause.subject_of(parts["s"]), value_of(parts["v"])[0]
    if subject and value and len(value.split()) <= _MOST_NAME_WORDS:
        yield clause.claim(subject, f"{verb}={value}", "on")


def _state(clause: Clause, wording: Wording, named_text: str, parts: Parts) -> Iterator[Claim]:
    """A state that a wording stands for."""
    attribute, _, value = named_text.partition("=")
    if subject := clause.subject_of(parts["s"]):
        yield clause.claim(subject, attribute, value, changes=wording.changes)
        yield clause.toggle(subject, attribute, value, on=True, changes=wording.changes)


# How the things of these claims end.
_SLOT, _BY, _BEING, _WHOLE = "slot", "by", "being", "said=so"
# What they are about, as people read it.
FRAMES = {
    _SLOT: "its amount, day or hour",
    _BY: "by whom or where",
    _BEING: "what it is",
    _WHOLE: "whether it holds",
}
_MOST_CHARS = 100
_MOST_WORDS = 10
_MOST_CHARS_BEHIND = 24
_HAN = lazy_regex("[\u4e00-\u9fff]")
# Of whom they tell depends on what was said before.
_SOMEBODY = lazy_regex(ANY.clauses.somebody, re.IGNORECASE)
# A number with its sign, a weekday or a month, and such beside each other: "3 June", "$2,650", "7:15 am".
_SLOTS = lazy_regex(
    rf"(?<![\w.#-])(?:[$€£¥]?\d[\w.,:/%-]*|{ANY.frames.days})(?: (?:\d[\w.,:/%-]*|{ANY.frames.of_days}))*(?![\w-])",
    re.IGNORECASE,
)
_FORMER = lazy_regex(
    rf"\s*[(,;].*$|\s+(?:{ANY.frames.former})\s+\S+(?:\s+\S+)?$|{ANY.frames.from_former}",
    re.IGNORECASE,
)
_CHANGED = lazy_regex(
    rf"\b(?:{ANY.frames.changed})\b",
    re.IGNORECASE,
)
_SOMEBODY_CHANGED = lazy_regex(ANY.frames.somebody_changed, re.IGNORECASE)
_NOW = lazy_regex(
    rf"\b(?:{ANY.frames.now})\b",
    re.IGNORECASE,
)
_LIGHT = ANY.frames.light
_GRAMMAR = ANY.frames.grammar
_ARTICLES, _PLACES = ANY.frames.articles, ANY.frames.places

_SLOTS_WITHIN = lazy_regex(ANY.frames.slots_within)
_CHANGED_WITHIN = lazy_regex(ANY.frames.changed_within)
_REACHED_WITHIN = lazy_regex(ANY.frames.reached_within)
_LIGHT_WITHIN = lazy_regex(ANY.frames.light_within)
# A number that says which one, where it opens a clause: 「4路车」. Behind one of these it is a value: 「坐14号工位」.
_COUNTERS_WITHIN = lazy_regex(ANY.frames.counters_within)
_LEADS_WITHIN = lazy_regex(ANY.frames.leads_within)
_MOST_BEHIND_WITHIN = 8


def framed_claims(clause: Clause, *, changes: bool, denied_statement: Callable[[str], str]) -> Iterator[Claim]:
    """Claims of a clause as a whole.

    Args:
        clause: The clause.
        changes: True if it has a word of change itself, and not only the clause before.
        denied_statement: Gives the statement that a text tells the end of; empty for none.
    """
    text = clause.text
    if not 5 <= len(text) <= _MOST_CHARS or _SOMEBODY.search(text):
        return
    if _HAN.search(text):
        denied_text, slot = denied_statement(text), _slot_within(clause, changes)
        whole = _chars_of(denied_text or text)
    else:
        denied_text, slot = denied_statement(text), _slot(clause, changes)
        whole = _words_of(denied_text or text, _GRAMMAR)
    if 2 <= len(whole) <= _MOST_WORDS + 14 * (not text.isascii()):
        yield _claim(clause, whole, _WHOLE, "off" if denied_text else "on", changes=bool(denied_text))
    if denied_text:
        return
    if slot:
        yield slot
    else:
        yield from _parts(clause, changes)


def is_frame(thing: str) -> bool:
    """True if a thing is of these claims: of them only one that changes is worth reading the others for."""
    return thing.rpartition("|")[2] in FRAMES


def _claim(clause: Clause, words: list[str], attribute: str, value: str, *, changes: bool) -> Claim:
    about = sorted(words) + [f"/{word}" for word in sorted(clause.topic | (clause.speaker - {ME}))]
    thing = f"{' '.join(about)}|{attribute}"
    return Claim(thing, value, changes, attribute == _WHOLE, clause.day, frozenset())


# By whom or what something is done, or where a thing is: "Invoices are now sent by Milan". Where somebody is may be
# several places.
_DONE = lazy_regex(
    ANY.frames.done,
    re.IGNORECASE,
)
_OF_THINGS = lazy_regex(ANY.frames.of_things, re.IGNORECASE)
_DONE_WITHIN = lazy_regex(ANY.frames.done_within)
_BEING_WITHIN = lazy_regex(ANY.frames.being_within)
# 「转换为」 is no change of what is turned.
_SOMEBODY_WITHIN = lazy_regex(ANY.frames.somebody_within)


def _parts(clause: Clause, changes: bool) -> Iterator[Claim]:
    """Claims with a value in one place that is no number."""
    if match := _DONE.match(clause.text):
        places = match["by"].lower() in _PLACES
        if len(match["v"].split()) <= 4 and (
            not places or match["be"].lower() == "are" or _OF_THINGS.match(match["s"])
        ):
            words = _words_of(f"{match['s']} {match['done']} ", _LIGHT)
            yield _claim(clause, [*words, match["by"].lower()], _BY, match["v"].lower(), changes=changes)
    elif match := _DONE_WITHIN.match(clause.text):
        words = _chars_of(match["s"] + match["done"])
        yield _claim(clause, words, _BY, match["v"], changes=changes)
    elif (match := _BEING_WITHIN.match(clause.text)) and not _SOMEBODY_WITHIN.search(match["s"]):
        yield _claim(clause, _chars_of(match["s"]), _BEING, match["v"], changes=match["turned"] is not None)


def _words_of(text: str, dropped_keys: frozenset[str]) -> list[str]:
    plain = " ".join(word for word in re.findall(r"[^\s,;:!?\"“”()]+", text.lower()) if word not in dropped_keys)
    return index_terms(plain.replace("'s", "").replace("’s", ""))


def _slot(clause: Clause, changes: bool) -> Claim | None:
    text = _FORMER.sub("", clause.text)
    has_changed = changes or _CHANGED.search(text) is not None
    *_, match = (None, *_SLOTS.finditer(text))
    if match is None:
        return None
    before, behind = text[: match.start()], text[match.end() :]
    if _NOW.match(behind.strip()) and len(behind.split()) > 1:
        return None
    behind = _NOW.sub("", behind)
    if len(behind) > _MOST_CHARS_BEHIND or len(behind.split()) > 3:
        return None
    before = _NOW.sub("", _SOMEBODY_CHANGED.sub("", before))
    if len([word for word in before.lower().split() if word not in _ARTICLES]) < 2:
        return None
    words = _words_of(_CHANGED.sub(" ", f"{before} {behind}"), _LIGHT)
    if not 0 < len(words) <= _MOST_WORDS:
        return None
    return _claim(clause, words, _SLOT, " ".join(match[0].lower().replace(",", "").split()), changes=has_changed)


def _chars_of(text: str) -> list[str]:
    return [*_LIGHT_WITHIN.sub("", simplify(text))]


def _slot_within(clause: Clause, changes: bool) -> Claim | None:
    text = re.sub(r"[(（].*$|(?<=\d),(?=\d{3})", "", clause.text)
    *_, match = (None, *_SLOTS_WITHIN.finditer(text))
    if match is None:
        return None
    before, behind = text[: match.start()], text[match.end() :]
    rest = _LIGHT_WITHIN.sub("", simplify(behind))
    head = _LIGHT_WITHIN.sub("", simplify(before))
    if len(head) < 2 or len(rest) > _MOST_BEHIND_WITHIN or before.endswith(ANY.restatements.ordinals):
        return None
    if _COUNTERS_WITHIN.match(behind) and not _LEADS_WITHIN.search(before):
        return None
    has_changed = changes or _CHANGED_WITHIN.search(text) is not None or _REACHED_WITHIN.match(text) is not None
    return _claim(clause, [*head, *rest], _SLOT, match[0], changes=has_changed)

"""Readers of the facts of clauses: those of a language's own, else the plain ones of its wordings. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.language.base import FactTable, Language
from indexer.language.fact_wordings import Wording, Wordings
from indexer.language.fact_words import ME, WE, is_day, is_time, leads_with_day, leads_with_time, value_of
from indexer.language.facts_clause import Claim, Clause, Parts, Reading, end_claims
from indexer.language.languages import has_words_of, language_of
from indexer.language.tables import LANGUAGES

_MOST_WORDS = 4


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


def _readers(text: str) -> Iterator[_Reader]:
    """Readers of the languages that a text may be in; the first one does not read what is told to be in another."""
    first, *readers = _all_readers()
    may_be = [
        reader for reader in readers if (has_words_of if reader.is_spaced else _is_unspaced)(text, reader.language)
    ]
    if language_of(text) not in {each_reader.language for each_reader in may_be if each_reader.is_spaced}:
        yield first
    yield from may_be


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


_HAN = lazy_regex("[\u4e00-\u9fff]")


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
    if subject and value and len(value.split()) <= _MOST_WORDS:
        yield clause.claim(subject, f"{verb}={value}", "on")


def _state(clause: Clause, wording: Wording, named_text: str, parts: Parts) -> Iterator[Claim]:
    """A state that a wording stands for."""
    attribute, _, value = named_text.partition("=")
    if subject := clause.subject_of(parts["s"]):
        yield clause.claim(subject, attribute, value, changes=wording.changes)
        yield clause.toggle(subject, attribute, value, on=True, changes=wording.changes)

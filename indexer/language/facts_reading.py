"""Readers of the facts of clauses: those of a language's own, else the plain ones of its wordings. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.language.base import FactTable
from indexer.language.fact_wordings import Wording, Wordings
from indexer.language.fact_words import is_day, is_time, leads_with_day, leads_with_time, value_of
from indexer.language.facts_clause import Claim, Clause, Parts, Reading, ended
from indexer.language.tables import ANY, LANGUAGES

_NO_LONGER = lazy_regex(ANY.clauses.no_longer, re.IGNORECASE)


class _Reader(NamedTuple):
    """The reader of a language.

    Attributes:
        is_spaced: True if words stand apart in the language.
        claims_of: Gives the claims of a clause.
        ended_in: Gives the statement that a text tells the end of; empty for none.
    """

    is_spaced: bool
    claims_of: Callable[[Clause], Iterator[Claim]]
    ended_in: Callable[[str], str]


@cache
def _readers() -> tuple[_Reader, ...]:
    return tuple(_reader(each.facts, each.is_spaced) for each in LANGUAGES if each.facts)


def _reader(table: FactTable, is_spaced: bool) -> _Reader:
    if table.readings:
        return _Reader(is_spaced, *table.readings())
    plain = _PlainReader(table)
    return _Reader(is_spaced, plain.claims_of, plain.ended_in)


def claims_of(clause: Clause) -> Iterator[Claim]:
    """Claims of a clause, by the readers of all languages that it may be in."""
    spaced = clause.text.isascii()
    for reader in _readers():
        if reader.is_spaced or not spaced:
            yield from reader.claims_of(clause)


def ended_in(text: str) -> str:
    """The statement that a text tells the end of, without the words that say so; empty for none."""
    has_han = _HAN.search(text) is not None
    found = (reader.ended_in(text) for reader in _readers() if reader.is_spaced is not has_han)
    return next(filter(None, found), "")


_HAN = lazy_regex("[\u4e00-\u9fff]")


class _PlainReader:
    """The reader of a language that has wordings, and no readings of its own.

    Args:
        table: The wordings, and how the language is written.
    """

    def __init__(self, table: FactTable) -> None:
        self._table = Wordings(table.wordings, table.script)
        self._readings: dict[str, Reading] = {"attribute": _attribute, "when": _timed}

    def claims_of(self, clause: Clause) -> Iterator[Claim]:
        """Claims of a clause."""
        if denied := self.ended_in(clause.text):
            yield from ended(self._stated(dataclasses.replace(clause, text=denied)))
        else:
            yield from self._stated(clause)

    def ended_in(self, text: str) -> str:
        """The statement that a text tells the end of, without the words that say so; empty for none."""
        without = _NO_LONGER.sub(" ", text)
        return " ".join(without.split()) if without != text else ""

    def _stated(self, clause: Clause) -> Iterator[Claim]:
        text, claimed = clause.text, set[str]()
        be = self._table.place_of_be(text)
        for wording in self._table.among(self._table.words_of(text.lower())):
            reading, _, named = wording.relation.partition(":")
            if reading not in claimed and (match := wording.found_in(text, be)):
                parts = {name: part for name, part in match.groupdict().items() if part}
                parts.setdefault("s", text[: match.start()])
                for claim in self._readings.get(reading, _held)(clause, wording, named or reading, parts):
                    claimed.add(reading)
                    yield claim


def _attribute(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    """An attribute that is named, and its value."""
    changes = wording.changes or clause.is_new(parts["n"])
    if found := clause.attribute_of(parts["n"]):
        yield from clause.holds(*found, parts["v"], changes=changes)
    else:
        yield from clause.by_sort(parts["n"], parts["v"], changes=changes)


def _timed(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    """The day or the hour of what takes place."""
    day = leads_with_day(parts["v"])
    if (day or leads_with_time(parts["v"])) and (subject := clause.subject_of(parts["n"])):
        yield from clause.holds(subject, "day" if day else "time", parts["v"], changes=wording.changes)


def _held(clause: Clause, wording: Wording, attribute: str, parts: Parts) -> Iterator[Claim]:
    """An attribute of a subject that a verb tells, and the value that it had before."""
    subject = clause.subject_of(parts["s"])
    if subject is None or is_day(parts["v"]) or is_time(parts["v"]):
        return
    yield from clause.holds(subject, attribute, parts["v"], changes=wording.changes, single=wording.single)
    if former := value_of(parts.get("f", ""))[0]:
        yield clause.turned(subject, attribute, former, on=False)

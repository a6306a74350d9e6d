"""A clause that facts are read from: its wordings, and the claims that the rules of both languages make of it. Pure.

A line of a table of wordings has a relation and a wording: `location!  S ~moved/relocated [from F] to/into V`. In it

- `S`, `V`, `F`, `O`, `N` are parts to read: a subject, its value, its former value, a thing, a noun phrase that names
  an attribute; each stands at most once;
- `a/b` are words of which one stands, `walk(s)` has an ending or none, `in_charge` is two words, `[...]` may miss;
- `V=a/b` is a value that is one of several words;
- `~` is before the word that the wording is looked up by; without it that is the first word;
- `?a/b` at the end are other words to look it up by;
- `be` and `have` are their forms, and "now", "just" and other adverbs may stand between any two;
- `!` behind a relation says that the wording tells of a change, `?` that there may be several at a time.

Only wordings whose word stands in a clause are tried, so that another line costs other clauses nothing.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.language.fact_tables import Script
from indexer.language.fact_words import (
    ATTRIBUTES,
    CHOSEN,
    ME,
    NEEDS_SUBJECT,
    OF_PERSON,
    ONE_OF,
    SEVERAL,
    WE,
    is_day,
    is_holder,
    is_time,
    is_written_as_name,
    kind_of,
    leads_with_day,
    leads_with_time,
    sort_of,
    value_of,
    words_of,
)
from indexer.language.tables import ANY

_ENDING = re.compile(r"\((\w+)\)")


class Wording(NamedTuple):
    """A line of a table.

    Attributes:
        relation: What it claims of.
        changes: True if it tells of a change.
        single: False if a subject can have several of them, so that only a change ends one.
        pattern: Finds it in a clause; its groups are the parts, and the subject stands before it.
        is_behind_be: True if it begins with a form of "be", which is looked for once for all of those.
    """

    relation: str
    changes: bool
    single: bool
    pattern: re.Pattern[str]
    is_behind_be: bool

    def found_in(self, text: str, be: int) -> re.Match[str] | None:
        """The wording in a text in which the first form of "be" is at a place, -1 for none."""
        if not self.is_behind_be:
            return self.pattern.search(text)
        return self.pattern.match(text, be) if be >= 0 else None


class Wordings:
    """A table of wordings.

    Args:
        lines: The table.
        script: How its language is written.
    """

    def __init__(self, lines: str, script: Script) -> None:
        self._script = script
        self._be = lazy_regex(rf"\b(?:{'|'.join(script.forms.get('be', ()))})\b|{script.contracted}", re.IGNORECASE)
        self._wordings = list[Wording]()
        self._of_unit = dict[str, list[int]]()
        for line in _with_words(lines).splitlines():
            relation, _, wording = line.partition(" ")
            if not wording or line.startswith("@"):
                continue
            for unit in _looked_up_by(wording, script):
                self._of_unit.setdefault(unit, []).append(len(self._wordings))
            name = relation.rstrip("!?")
            marks = relation[len(name) :]
            self._wordings.append(
                Wording(
                    name, "!" in marks, "?" not in marks, _pattern(wording, script), wording.split()[:2] == ["S", "be"]
                )
            )
        self._units = frozenset(self._of_unit)

    def place_of_be(self, text: str) -> int:
        """Where the first form of "be" begins in a text; -1 for nowhere."""
        match = self._be.search(text)
        return match.start() if match else -1

    def words_of(self, text: str) -> list[str]:
        """The words of a text in small letters by which wordings can be looked up, and others."""
        return self._script.units.findall(text)

    def among(self, words: Iterable[str]) -> Iterator[Wording]:
        """Wordings that are looked up by one of some words, in the order of the table."""
        intersection = self._units.intersection(words)
        for number in sorted({number for unit in intersection for number in self._of_unit[unit]}):
            yield self._wordings[number]


def _with_words(lines: str) -> str:
    """A table with the words that its lines name in braces."""
    named_fields = dict[str, str]()
    for line in lines.splitlines():
        if line.startswith("@"):
            name, _, words = line[1:].partition(" ")
            named_fields[name] = "/".join(part for part in (named_fields.get(name), words) if part)
    return lines.format(**named_fields)


def _pattern(wording: str, script: Script) -> re.Pattern[str]:
    names = [name for name in wording.split() if not name.startswith("?")]
    regex = ""
    for place, name in enumerate(names):
        opens, closes = "(?:" if name.startswith("[") else "", ")?" if name.endswith("]") else ""
        regex += opens + _part(name.strip("[]~"), script, not regex, place == len(names) - 1) + closes
    return lazy_regex(regex + script.end, re.IGNORECASE)


def _part(name: str, script: Script, is_first: bool, is_last: bool) -> str:
    """One word of a wording as a regular expression, with what may stand before it."""
    if is_first and name in script.firsts:
        return script.firsts[name]
    if name in script.parts:
        return script.gap + (script.lasts if is_last else script.parts)[name]
    gap = script.first_gap if is_first else script.gap
    if name.startswith("V="):
        return f"{gap}(?P<v>{name[2:].replace('/', '|')}){script.word_end}"
    words = f"{gap}(?:{'|'.join(sorted(_spelt(name, script), key=len, reverse=True))}){script.word_end}"
    return f"(?:{words}|{script.contracted})" if "be" in name.split("/") and script.contracted else words


def _spelt(name: str, script: Script) -> Iterator[str]:
    """The spellings of alternatives: "work(s)/is_on" is "work", "works" and "is on"."""
    for word in name.replace("_", r"\s+").split("/"):
        if word in script.forms:
            yield from script.forms[word]
            continue
        yield _ENDING.sub("", word)
        if "(" in word:
            yield _ENDING.sub(r"\1", word)


def _looked_up_by(wording: str, script: Script) -> set[str]:
    """The words of which a clause in this wording has one: the longest of each alternative, or its first sign."""
    names = wording.split()
    if names[-1].startswith("?"):
        return set(names[-1][1:].split("/"))
    plain = [name for name in names if name not in script.parts and name != "S" and not name.startswith("[")]
    chosen_text = next((name for name in plain if name.startswith("~")), plain[0]).lstrip("~").removeprefix("V=")
    contractions = set(script.contractions) if "be" in chosen_text.split("/") else set[str]()
    return contractions | {
        max(script.units.findall(word.replace(r"\s", " ")), key=len) for word in _spelt(chosen_text, script)
    }


_PRONOUNS = ANY.nouns.pronouns
_THEIRS = lazy_regex(rf"({'|'.join(ANY.nouns.owners)})\s+(?=\S)", re.IGNORECASE)
_OWNERS = ANY.nouns.owners
_FORMER = lazy_regex(ANY.nouns.former, re.IGNORECASE)
_NEW = lazy_regex(ANY.nouns.new, re.IGNORECASE)
_OF = lazy_regex(rf"^(?P<a>.+?)\s+(?P<by>{ANY.nouns.of})\s+(?P<s>.+)$", re.IGNORECASE)
_A_NOUN = lazy_regex(ANY.nouns.indefinite, re.IGNORECASE)
_MOST_VALUE_CHARS = 48
# Attributes that a day or an hour may be said of; where another noun has one, it is the thing that takes place then.
TIMELY = frozenset("day time deadline birthday cadence status interval length hours".split())
_SEVERAL_WITHIN = ANY.nouns.several_within
_FAVOURITES_WITHIN = ANY.nouns.favourites_within
_FAVOURITE = ANY.nouns.favourites
_ARTICLE = lazy_regex(rf"^(?:{ANY.nouns.articles})\s+", re.IGNORECASE)
_DEFINITE = lazy_regex(ANY.nouns.definite, re.IGNORECASE)
_IDENTIFIER = lazy_regex(r"\w+(?:[_.]\w+)+|[a-z]+[A-Z]\w*")
_FILLER = lazy_regex(
    ANY.clauses.fillers,
    re.IGNORECASE,
)


class Claim(NamedTuple):
    """A value of a thing.

    Attributes:
        thing: Words of the subject, sorted, "|", and the attribute.
        value: The value, folded; "on" or "off" of a thing that is one value.
        changes: True if its words say that it is new.
        single: True if the thing has one value at a time; else only a claim that `changes` ends another.
        day: The day that it says it holds from; None where it says none.
        subject: Words of the subject.
        is_borrowed: True if the clause does not name whom or what it tells of: that stands above it, if anywhere.
    """

    thing: str
    value: str
    changes: bool
    single: bool
    day: dt.date | None
    subject: frozenset[str]
    is_borrowed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A clause to read.

    Attributes:
        text: The clause.
        subject: Words of the subject of the clause before; empty for none.
        topic: Words of the titles above it.
        speaker: Words for whoever says "I".
        changes: True if a word says that something is new.
        day: The day that it says it holds from.
        owner: Words of the record, item or label that a line of a key and a value belongs to; empty for none.
    """

    text: str
    subject: frozenset[str]
    topic: frozenset[str]
    speaker: frozenset[str]
    changes: bool
    day: dt.date | None
    owner: frozenset[str] = frozenset()

    @property
    def place(self) -> frozenset[str]:
        """Words of what the clause belongs to: its record, else the titles above it."""
        return self.owner or self.topic

    def subject_of(self, text: str) -> frozenset[str] | None:
        """Words of a subject as it is written; None if it is none that could be met again."""
        plain = text.strip(" ,:：，\"'“”")
        while filler := _FILLER.search(plain):
            plain = plain[: filler.start()].strip(" ,")
        lowered_text = plain.casefold()
        if not lowered_text:
            return self.owner or self.subject or self.topic or self.speaker or None
        if lowered_text in _PRONOUNS:
            standing = _PRONOUNS[lowered_text]
            return frozenset({standing}) if standing == WE else (self.subject or self.place or frozenset({standing}))
        words = words_of(plain) | self._owner(plain)
        if len(plain) > 60 or not 0 < len(words) <= 6 or _FORMER.search(plain):
            return None
        return self._for_speaker(words)

    def _owner(self, noun: str) -> frozenset[str]:
        """Words for "his" or "her" at the beginning of a noun phrase, which is never whoever speaks."""
        theirs = _THEIRS.match(noun)
        return self.subject or self.place or frozenset({_OWNERS[theirs[1].casefold()]}) if theirs else frozenset()

    def spoken_words(self, text: str) -> frozenset[str]:
        """Words of a text, with the speaker's for "I"."""
        return self._for_speaker(words_of(text))

    def _for_speaker(self, words: frozenset[str]) -> frozenset[str]:
        return (words - {ME}) | self.speaker if ME in words else words

    def attribute_of(self, text: str) -> tuple[frozenset[str], str] | None:
        """Subject and attribute that a noun phrase names; None if it names no attribute with one value."""
        plain = text.strip(" ,:：\"'“”*-").replace("’", "'")
        if not plain or len(plain) > 70 or _FORMER.search(plain):
            return None
        plain = re.sub(r"[()（）]", " ", plain)
        for subject, noun in _readings(plain):
            attribute, rest = _head(noun)
            if attribute:
                words = words_of(f"{rest} {subject}") if f"{rest}{subject}".strip() else frozenset()
                pronoun = _PRONOUNS.get(subject.strip().casefold())
                words = words - words_of(subject) | {pronoun} if pronoun and pronoun != WE else words
                words = self._for_speaker(words - _FAVOURITE if attribute in CHOSEN else words) | self._owner(plain)
                if len(words) > 6:
                    return None
                place = self.place
                if not words and not place and not self.speaker:
                    return None
                if not words and not place and attribute in OF_PERSON:
                    return self.speaker, attribute
                if not words and not place and attribute in NEEDS_SUBJECT and " " not in noun.strip():
                    return None
                return words or place, attribute
        return None

    def is_new(self, noun: str) -> bool:
        """True if a noun phrase says that what it names is new."""
        return _NEW.search(noun.strip()) is not None

    def claim(
        self, subject: frozenset[str], attribute: str, value: str, *, changes: bool = False, single: bool = True
    ) -> Claim:
        """A claim of this clause."""
        thing = f"{' '.join(sorted(subject))}|{attribute}"
        return Claim(thing, value, self.changes or changes, single, self.day, subject)

    def holds(
        self, subject: frozenset[str], attribute: str, text: str, *, changes: bool = False, single: bool = True
    ) -> Iterator[Claim]:
        """That a subject has a value of an attribute, as it is written."""
        timely = attribute in ("day", "time", "deadline", "birthday", "cadence")
        value, corrects = value_of(text, keeps_days=timely)
        if not value:
            return
        new = changes or corrects
        if attribute in ("day", "time", "deadline"):
            # A day and an hour hold beside each other: both are claims of their own.
            if is_day(value) or attribute == "deadline":
                yield self.claim(subject, "deadline" if attribute == "deadline" else "day", value, changes=new)
            elif is_time(value) or attribute == "time":
                yield self.claim(subject, "time", value, changes=new)
            return
        yield self.claim(subject, attribute, value, changes=new, single=single)
        yield self.toggle(subject, attribute, value, on=True, changes=new)

    def by_sort(
        self, noun: str, text: str, *, changes: bool = False, is_key: bool = False, is_set: bool = False
    ) -> Iterator[Claim]:
        """That something has a value of which the sort is known, as an attribute that has no name of its own.

        Args:
            noun: The thing, as it is written.
            text: The value, as it is written.
            changes: True if its words say that it is new.
            is_key: The noun stands before a colon.
            is_set: Words say that the thing is a setting.
        """
        if len(text) > _MOST_VALUE_CHARS:
            return
        value, corrects = value_of(text)
        subject = self.subject_of(_ARTICLE.sub("", noun.strip())) if value else None
        if not subject:
            return
        if is_key and not subject & {ME, WE}:
            # What stands before a colon is named by what it belongs to, as each record has the same keys.
            subject |= self.place
        new = changes or corrects
        definite = (not is_key or new) and _DEFINITE.search(noun) is not None
        sort, value = sort_of(value)
        if (definite or (is_key and len(subject) > 1)) and (leads_with_day(value) or leads_with_time(value)):
            yield from self.holds(subject, "day" if leads_with_day(value) else "time", text, changes=new)
        elif sort:
            # What stands before a colon may be of a list: only a word of change ends one.
            yield self.claim(
                subject, sort, value, changes=new, single=not is_key or not sort.startswith(("amount", "price"))
            )
            if sort in CHOSEN and new:
                we = frozenset({WE}) if subject & {ME, WE} else subject
                yield self.claim(we, f"use {sort}", value, changes=True, single=False)
            if not sort.startswith("amount"):
                yield self.toggle(subject, sort, value, on=True, changes=new)
            if sort in CHOSEN and definite and is_written_as_name(text) and _last_word(noun) not in SEVERAL:
                yield self.claim(subject, "who", value, changes=new)
        elif len(value) <= 8 and is_holder(noun):
            yield self.claim(subject, "who", value, changes=new)
        elif (is_key or is_set) and (is_set or _IDENTIFIER.fullmatch(noun.strip())):
            yield self.claim(subject, "setting", value, changes=new)
            if _is_short_unspaced(noun, value):
                yield self.claim(subject, "what", value, changes=new, single=False)
        elif definite and is_written_as_name(text) and _last_word(noun) not in SEVERAL:
            yield self.claim(subject, "who", value, changes=new)
        elif definite and (_A_NOUN.match(text) or _is_short_unspaced(noun, value)) and len(text.split()) <= 4:
            yield self.claim(subject, "what", value, changes=new, single=False)

    def toggle(self, subject: frozenset[str], attribute: str, value: str, *, on: bool, changes: bool = False) -> Claim:
        """That one value of an attribute holds, or does so no longer."""
        return self.claim(subject, f"{attribute}={value}", "on" if on else "off", changes=changes or not on)

    def tastes(
        self, subject: frozenset[str], relation: str, text: str, purpose: str = "", *, changes: bool = False
    ) -> Iterator[Claim]:
        """That a subject uses or prefers something, of several that it may: a new one ends another of its kind."""
        value, corrects = value_of(text)
        if not value or len(value.split()) > 5:
            return
        new = changes or corrects
        yield self.toggle(subject, relation, value, on=True, changes=new)
        if purpose and (words := words_of(purpose)):
            yield self.toggle(subject | words, relation, value, on=True, changes=new)
            yield self.claim(subject | words, relation, value, changes=new, single=relation == "prefer")
        elif kind := kind_of(value):
            yield self.claim(subject, f"{relation} {kind}", value, changes=new, single=False)


def end_claims(claims: Iterable[Claim]) -> Iterator[Claim]:
    """Denials of a clause, by what it would claim: the narrowest, as what ends for one purpose goes on for others."""
    turned_claims = [claim for claim in claims if "=" in claim.thing and claim.value == "on"]
    for claim in turned_claims:
        attribute = claim.thing.partition("|")[2]
        if not any(
            claim.subject < other_claim.subject and other_claim.thing.endswith(f"|{attribute}")
            for other_claim in turned_claims
        ):
            yield claim._replace(value="off", changes=True)


_NOBODY = lazy_regex(ANY.nouns.nobody)


def is_nobody(noun: str) -> bool:
    """True for what stands before a verb and names nobody and nothing: 「这里介绍如何」, 「考古学家」."""
    return _NOBODY.search(noun) is not None and not (noun[0] in "这那" and "的" in noun)


def _is_short_unspaced(noun: str, value: str) -> bool:
    """True for 「我的车」 and 「斯柯达」, but not for one of several or for what something is like."""
    fits = "的" in noun and len(value) <= 8
    return fits and not value.endswith("的") and not noun.endswith(_SEVERAL_WITHIN)


def _last_word(noun: str) -> str:
    return noun.casefold().split()[-1].strip("'’s")


def _readings(noun: str) -> Iterator[tuple[str, str]]:
    """Ways to part a noun phrase into a subject and an attribute."""
    if match := _OF.match(noun):
        yield match["s"], match["a"]
        if match["by"] in ("at", "in"):
            return
    if "'" in noun:
        subject, mark, rest = noun.rpartition("'s ")
        if not mark:
            subject, mark, rest = noun.rpartition("s' ")
        if mark:
            yield subject, rest
    if "的" in noun:
        subject, _, rest = noun.rpartition("的")
        yield subject, rest
    yield "", noun


def _head(noun: str) -> tuple[str, str]:
    """The attribute at the end of a noun phrase, and the words before it; empty if it has none."""
    lowered_text = noun.casefold().strip()
    words = lowered_text.split()
    for size in (3, 2, 1):
        if len(words) >= size and (attribute := ATTRIBUTES.get(" ".join(words[-size:]))):
            return attribute, " ".join(words[:-size])
    if not lowered_text.isascii():
        for size in range(min(6, len(lowered_text)), 1, -1):
            # Words in Latin letters have borders: "Ríos" names no system.
            if (attribute := ATTRIBUTES.get(lowered_text[-size:])) and not lowered_text[-size:].isascii():
                return attribute, lowered_text[:-size]
    chosen_word = next((word for word in words[:-1] if word in ONE_OF), "")
    if chosen_word:
        return f"favourite {words[-1]}" if chosen_word.startswith("favo") else words[-1], " ".join(
            word for word in words[:-1] if not word.startswith("favo")
        )
    mark = next((mark for mark in _FAVOURITES_WITHIN if mark in lowered_text), "")
    if mark and len(lowered_text) > len(mark):
        before, _, after = lowered_text.partition(mark)
        return f"favourite {after}", before
    return "", ""


# Parts of a wording by their small letters, and what a relation reads in them; its own name comes with it.
Parts = dict[str, str]
Reading = Callable[[Clause, Wording, str, Parts], Iterator[Claim]]

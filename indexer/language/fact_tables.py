"""The words of a language that facts are read by: clauses, nouns, values, frames, statements made again, wordings.

Invariants: those of `base`; a field "within" is for a language without spaces, and its pattern is found anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

# Gives the claims of a clause; gives the statement that a text tells the end of, empty for none.
Readings: TypeAlias = tuple[Callable[..., Any], Callable[[str], str]]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Clauses:
    """Words of clauses that facts are read from."""

    clause_ends: str = ""  # borders of clauses
    reported_or_asked: str = ""  # words of a clause that asks, or repeats what was said
    corrections: str = ""  # words with which a correction begins
    openings: str = ""  # words that open a clause, with a blank behind them
    joined_openings: str = ""  # words that open a clause and need no blank
    as_of: str = ""  # words with the day that a clause holds from
    in_year: str = ""  # words with the year that a clause tells of
    now: str = ""  # words of change
    not_same: str = ""  # words that say that two entries are not the same
    speaks: str = ""  # beginnings of clauses of the one who speaks
    genitives: str = ""  # words between a thing and whose it is
    turns: str = ""  # names of those who speak in a transcript
    former: str = ""  # words before a former value, behind a comma
    former_words: str = ""  # words for a former value at the end
    somebody: str = ""  # words whose meaning stands in another clause
    of_value: str = ""  # words in brackets that say of a value when it holds, or what it was
    change_logs: str = ""  # names of files and titles of changes
    no_longer: str = ""  # words that say that something has ended, which are no words of the statement
    hedges: str = ""  # words of doubt, of a condition, of what holds beside it, or of another time
    hedges_within: str = ""  # the same in a language without spaces
    between: str = ""  # words between two entries that are not the same
    between_within: str = ""  # the same in a language without spaces
    changes: str = ""  # words of change that a sentence may have more than another of the same
    changes_within: str = ""  # the same in a language without spaces
    conjunctions: str = ""  # words that join another clause
    conjunctions_within: str = ""  # the same in a language without spaces
    item_numerals: str = ""  # numbers of an item of a list, in a script with signs of its own
    item_numbers: str = ""  # the same, with the signs around them
    hour_ends: str = ""  # words behind an hour
    asks: str = ""  # first words of a clause that asks or reminds
    hedges_written: str = ""  # hedges that are other words with a capital
    changed_within: str = ""  # words with which a hedge tells of a former value
    leads: str = ""  # whom or what a clause tells of, in a group
    leads_within: str = ""  # the same in a language without spaces
    speakers_within: str = ""  # words for the one who speaks
    third_person: str = ""  # first words of a clause that tells of somebody else, whom it does not name
    only_new: str = ""  # first words of a clause that tells only what is new
    joints: str = ""  # words before a clause that goes on with the one before
    of_before: str = ""  # first words of a clause that tells of what stands before it
    roles: frozenset[str] = frozenset()  # labels of the one who speaks that are no name
    fillers: str = ""  # words at the end of a noun phrase that are of the verb behind it


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Nouns:
    """Words of noun phrases."""

    former: str = ""  # words of a noun phrase for another one than the present
    new: str = ""  # words of a noun phrase for a new one
    definite: str = ""  # words of a noun phrase that means one thing
    me: frozenset[str] = frozenset()  # words for whoever speaks
    pronouns: Mapping[str, str] = field(default_factory=dict)  # each with the sign of `fact_words` for whom it means
    stop_words: frozenset[str] = frozenset()  # words that do not tell which subject is meant
    of: str = ""  # words between an attribute and its subject
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # nouns, by the attribute
    kinds: Mapping[str, str] = field(default_factory=dict)  # tools and tastes of one kind, by the kind
    one_at_a_time: Mapping[str, str] = field(default_factory=dict)  # words of which one holds, by their sort
    nobody: str = ""  # what stands before a verb and names nobody and nothing
    one_of: frozenset[str] = frozenset()  # words with which any noun has one value
    classes: frozenset[str] = frozenset()  # words that say what a thing is, not which
    issues: frozenset[str] = frozenset()  # the same, but where a number follows
    money: frozenset[str] = frozenset()  # units of money
    no_values: frozenset[str] = frozenset()  # words that are no value
    generic: frozenset[str] = frozenset()  # words of titles that tell nothing of what stands below
    grammar: frozenset[str] = frozenset()  # words of grammar alone
    names: frozenset[str] = frozenset()  # keys of a record under which a name stands
    first_person: Mapping[str, str] = field(default_factory=dict)  # words for who listens, as those would say them
    several: frozenset[str] = frozenset()  # words for one of several
    described: str = ""  # what somebody is, though it is written as a name
    holders_within: str = ""  # noun phrases that name somebody by what they are for somebody
    class_ends: tuple[str, ...] = ()  # see `classes`, at the end of a word
    particles: str = ""  # signs around a word that are none of it
    tickets: str = ""  # words before the number of a ticket
    owners: Mapping[str, str] = field(default_factory=dict)  # words for whose something is, as `pronouns`
    indefinite: str = ""  # words before a noun that means one of several
    several_within: tuple[str, ...] = ()  # see `several`
    favourites: frozenset[str] = frozenset()  # words of `one_of` that stand for liking
    articles: str = ""  # words before a noun that are none of its name
    favourites_within: tuple[str, ...] = ()  # see `favourites`


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Values:
    """Words of values."""

    least_or_most: str = ""  # words before an amount
    numerals: str = ""  # numbers in words
    scales: str = ""  # words that make a number larger
    per: str = ""  # words between an amount and its period
    periods: str = ""  # words of a period, each in a group
    corrects: str = ""  # words behind a value, with what does not hold
    fresh: str = ""  # words before a value that say that it is new
    lead: str = ""  # words before a value that say nothing of it
    days: str = ""  # words of a day
    hours: str = ""  # words of an hour
    before_day: str = ""  # words that may stand before a day
    day_signs: str = ""  # signs behind the number of a day
    late: str = ""  # words behind a value that say when it holds
    cuts: str = ""  # words with which a value is over
    about: str = ""  # words before a number that is not exact
    about_within: str = ""  # the same in a language without spaces
    about_behind: str = ""  # words behind such a number
    durations: str = ""  # units of a duration of several parts
    each: str = ""  # words for each of a period, before an amount
    asides: str = ""  # words behind a value that say what it is for
    versions: str = ""  # words before the number of a version
    of: str = ""  # words between an amount and what it is of
    titles: tuple[str, ...] = ()  # titles behind which a dot ends no value
    months: str = ""  # beginnings of the names of months before the number of a day
    when: str = ""  # words of time behind a value
    denials: tuple[str, ...] = ()  # first words of what is no value
    not_yet: tuple[str, ...] = ()  # signs before what is not so yet
    done_signs: str = ""  # the sign behind what is done, of one language
    duration_joints: str = ""  # words between the parts of a duration


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Frames:
    """Words of clauses that are compared as a whole."""

    days: str = ""  # words of a day that is a value
    of_days: str = ""  # words behind the number of a day or an hour
    former: str = ""  # words before a former value at the end
    from_former: str = ""  # words with a former value before the new one
    changed: str = ""  # words of change of a value
    somebody_changed: str = ""  # first words that tell who changed a value
    now: str = ""  # words that say when something holds
    light: frozenset[str] = frozenset()  # words of grammar, and verbs that only tell that there is an amount
    grammar: frozenset[str] = frozenset()  # words of grammar alone
    slots_within: str = ""  # numbers, days and hours in a language without spaces
    changed_within: str = ""  # see `changed`
    reached_within: str = ""  # a clause that tells what a value has come to
    light_within: str = ""  # words that tell no difference
    counters_within: str = ""  # words behind a number that says which one
    leads_within: str = ""  # words behind which such a number is a value
    done: str = ""  # by whom or where what is done, in groups s, be, done, by and v; of one language
    of_things: str = ""  # first words of a noun phrase for a thing
    done_within: str = ""  # the same in a language without spaces, in groups s, v and done
    being_within: str = ""  # what something is, in groups s, turned and v
    somebody_within: str = ""  # words for somebody, of whom that tells nothing
    places: frozenset[str] = frozenset()  # words between what is done and where
    articles: frozenset[str] = frozenset()  # words before a noun


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Restatements:
    """Words of sentences that say again, with another value, what another said."""

    numerals: str = ""  # signs of numbers, of one language
    counts: str = ""  # ordinals and hours in such signs
    articles: frozenset[str] = frozenset()  # words that are left out
    one_within: str = ""  # words for one of something, which are left out
    which: frozenset[str] = frozenset()  # words that say which one, though facts know them as hedges
    speakers: frozenset[str] = frozenset()  # words for those who speak
    be: frozenset[str] = frozenset()  # forms of the verb that says what something is
    imperatives: frozenset[str] = frozenset()  # orders that state what is so
    elsewhere: frozenset[str] = frozenset()  # words for what was told before, for who listens, and of plans
    verbs: frozenset[str] = frozenset()  # verbs of what is so for some time
    several: frozenset[str] = frozenset()  # verbs of which there may be several at a time
    several_behind: frozenset[str] = frozenset()  # words behind verbs of running, of which there may be several
    running: frozenset[str] = frozenset()  # verbs of running
    positions: frozenset[str] = frozenset()  # verbs that say where something is
    placed: frozenset[str] = frozenset()  # words behind those
    places: frozenset[str] = frozenset()  # words before a place
    manners: frozenset[str] = frozenset()  # words before how or as what something is
    directions: frozenset[str] = frozenset()  # words before where to or from, or until when
    before_place: frozenset[str] = frozenset()  # words that may stand between those and a place
    scopes: frozenset[str] = frozenset()  # words before what a value holds of
    definite: frozenset[str] = frozenset()  # words before one thing that is known
    no_places: frozenset[str] = frozenset()  # words for no place, though they stand where one could
    hours: frozenset[str] = frozenset()  # words behind an hour
    days: frozenset[str] = frozenset()  # names of days and months
    verbs_within: str = ""  # verbs, also before the value at an end
    describes_within: str = ""  # words of what somebody is like or where they are from
    long_verbs_within: str = ""  # verbs that begin with others
    relative_within: str = ""  # words before a verb in the midst of a sentence
    several_within: str = ""  # see `several`
    liked_within: str = ""  # words of what one likes to use
    done_within: str = ""  # words of what was done once
    degrees_within: str = ""  # words of a degree
    at_within: str = ""  # words that say where something is
    inside_within: str = ""  # words behind a place
    placed_within: str = ""  # the word that takes the place of those, of one language
    day_signs: frozenset[str] = frozenset()  # signs of a day
    ordinals: tuple[str, ...] = ()  # signs before an ordinal
    adverbs: tuple[str, ...] = ()  # ends of adverbs
    be_within: tuple[str, ...] = ()  # words that say what something is


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Script:
    """How a language is written.

    Attributes:
        gap: What may stand between two parts.
        first_gap: What may stand before the first word, where no part is read before it.
        word_end: What may stand behind a word.
        parts: The parts of a wording; those of `firsts` and `lasts` instead at its beginning and end.
        end: What may stand behind the last part.
        units: What a text is cut into to look wordings up.
        forms: Forms of words that a wording names by one, such as "be" and "have".
        contracted: Pattern of the contracted forms of "be"; empty for none.
        contractions: Units of a text with such a form.
    """

    gap: str
    first_gap: str
    word_end: str
    parts: dict[str, str]
    firsts: dict[str, str]
    lasts: dict[str, str]
    end: str
    units: re.Pattern[str]
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    contracted: str = "(?!)"
    contractions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FactTable:
    """Wordings of facts, and how they are read.

    Attributes:
        wordings: Lines in the notation of `indexer.language.facts_clause`.
        script: How the language is written.
        readings: Gives the readings of its own; None for the plain ones.
    """

    wordings: str
    script: Script
    readings: Callable[[], Readings] | None = None

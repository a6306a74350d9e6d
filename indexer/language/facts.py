"""Facts that a text states of a subject: what has one value at a time, and what a word of change ends. Pure; linear.

A claim is a value of a thing. The thing is the words of its subject and an attribute, or the subject and one value
("uses vim"), which is on or off. Two claims of one thing contradict each other if their values differ, and the thing
has one value at a time or the later one has a word of change: "now", "no longer", "moved to", 「改为」.

Lists of people, servers or offers have the same keys again and again: "Phone: …" tells of whoever stands before it.
That may be a label in the same line ("Van – price: 9000 €", "| Oven | Cost: 1141 € |", "web01: Port: 8080"), the line
that a block begins with ("Mia Berg", "Name: Mia Berg", "[web01]"), or something in brackets behind the value.

Invariants: questions, plans, conditions, what was once, and what holds beside something else ("also") claim nothing;
nothing is told by likeness; a long text is read as far as `_MOST_CHARS`; a number of a list, a day and an hour are no
label; titles of versions ("## 2.0") and files of changes have the newest first, so that nothing in them tells what
holds now.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.language.dates import day_of_name, full_day, heading_day, leading_day
from indexer.language.fact_words import ME, WE, words_of
from indexer.language.facts_clause import Claim, Clause
from indexer.language.facts_frame import claims_of, ended_in, framed_claims, is_frame
from indexer.language.tables import ANY
from indexer.types import EVERGREEN

# The number of a list item, which names nothing: "6、", "(1)", "3)", "Step 2:".
LIST_NUMBER = lazy_regex(
    rf"^(?:[(（\[]?(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{1,4}}|{ANY.clauses.item_numerals})[)）\]]\s*|\d{{1,3}}[.．]\s+"
    rf"|\d{{1,3}}[、．]\s*|[①-⓿❶-➓]\s*|{ANY.clauses.item_numbers}|[#№]\s?\d{{1,3}}[:.]\s+)+(?=\S)"
)
_KEY = r"[^:：=→\n]{1,60}?\s*(?:[:：=→]|->|=>)(?!//)"
KEYED = lazy_regex(rf"^\s*{_KEY}\s*\S")
_LABELLED = lazy_regex(rf"^\s*(?P<label>[^:：=→\n]{{1,40}}?)\s*(?:[:：→]\s+|：|->\s*|=>\s*|/\s+)(?={_KEY}\s*\S)")
_NO_LABEL = lazy_regex(rf"[\W\d_]*(?:{ANY.clauses.hour_ends}|h)?[\W\d_]*", re.IGNORECASE)
_SENTENCE = lazy_regex(r"[.!?。！？;；]\s*\S|[,，].*[,，]|[。！？?!;；]$")
_MOST_LABEL_CHARS, _MOST_LABEL_WORDS = 60, 6
_BRACKETS = lazy_regex(r"[(（](?P<aside>[^()（）]{1,40})[)）]\s*[.。]?$")
# In brackets behind a value: when it holds, or what it was, and not of whom it is.
_OF_VALUE = lazy_regex(rf"\W*(?:[\d\W]+(?:\w{{0,3}}\W*)?$|{ANY.clauses.of_value})", re.IGNORECASE)
_VERSION_TITLE = lazy_regex(
    r"(?:\W*(?:version|release|v)\W*)?\[?v?\d+\.\d+(?:\.\w+)*(?:[-+]\w[\w.]*)?\]?(?:\W.*)?|\W*unreleased\W*",
    re.IGNORECASE,
)
_HOUR = lazy_regex(r"(?:[01]?\d|2[0-3])[.:][0-5]\d(?:\D.*)?")
_CHANGES_FILE = lazy_regex(f"(?:{ANY.clauses.change_logs})", re.IGNORECASE)


@lru_cache(maxsize=1_024)
def _is_newest_first(heading: tuple[str, ...], path: str) -> bool:
    """True for what stands in a list of changes, of which the newest stand first."""
    if path and _CHANGES_FILE.fullmatch(PurePosixPath(path).stem):
        return True
    return any(
        _CHANGES_FILE.fullmatch(title.strip()) or (_VERSION_TITLE.fullmatch(title) and not _HOUR.fullmatch(title))
        for title in heading
    )


def label_before(text: str) -> tuple[str, str]:
    """The label before a line of a key and a value, and the line without it: "web01", "Port: 8080"."""
    match = _LABELLED.match(text)
    return (match["label"], text[match.end() :]) if match and is_label(match["label"]) else ("", text)


def is_label(text: str) -> bool:
    """True for a few words that make no sentence and have no key."""
    plain = text.strip(" \t*_:：-–—|>[]")
    return (
        0 < len(plain) <= _MOST_LABEL_CHARS
        and len(plain.split()) <= _MOST_LABEL_WORDS
        and _NO_LABEL.fullmatch(plain) is None
        and _SENTENCE.search(plain) is None
        and KEYED.match(plain) is None
    )


def _words_of_label(text: str) -> frozenset[str]:
    """The words of a label; empty where there are too many for one."""
    words = words_of(LIST_NUMBER.sub("", text.strip(" \t*_:：-–—|>[]")))
    return words if len(words) <= _MOST_LABEL_WORDS else frozenset()


def first_line(text: str) -> tuple[str, frozenset[str]]:
    """The line that a block of keys and values begins with, and the words that the others belong to; empty for none."""
    first, line_break, rest = text.partition("\n")
    if not line_break or not any(KEYED.match(line) for line in rest.split("\n")[:40]):
        return "", frozenset()
    if is_label(first):
        return first, _words_of_label(first)
    if KEYED.match(first):
        return first, _words_of_label(re.split(r"[:：=→]|->|=>", first, maxsplit=1)[1])
    return "", frozenset()


def _names_another(text: str) -> bool:
    """True if brackets behind a value name whom or what it is of: "Phone: 0664 111 (Mia)"."""
    match = _BRACKETS.search(text)
    return match is not None and _OF_VALUE.match(match["aside"]) is None


def caption(above: Iterable[str]) -> frozenset[str]:
    """Words of whatever a line of a key and a value belongs to, by the lines above it, the nearest first.

    Those are the nearest labels, one above the other, or the value of the nearest key "Name".
    """
    words = frozenset[str]()
    for text in above:
        if is_label(text):
            words |= _words_of_label(text)
            continue
        if words or not KEYED.match(text):
            break
        key, value = re.split(r"[:：=→]|->|=>", text, maxsplit=1)
        if key.strip().casefold() in ANY.nouns.names:
            return _words_of_label(value)
    return words


# Version of these rules: an index whose passages were read with others is read again.
FACT_RULES = "facts-8"
# As `degraded` says that the passages of an index were read with other rules, or with none.
UNREAD_FACTS = (
    "facts: the index was read with other rules for facts that change, so that replaced values may stand unmarked. "
    "The next reindex of a home that can be written to reads them again."
)
_MOST_CHARS = 2_000
_MOST_CLAUSES = 40
_MARKUP = lazy_regex(r"\*\*|__|`|~~|(?<=\s)\*(?=\S)|(?<=\S)\*(?=\s|$)|^\*|^\[[ xX]\]\s*|^#+\s+")
_MARKS = frozenset("*_`~[#")
_LINK = lazy_regex(r"\[([^\]]+)\]\([^)]*\)")
_SPLIT = lazy_regex(
    rf"[;；。！\n]+|(?<=[？?])|\s[—–]\s|\s\|\s|[，](?=\S)|,(?=[\u4e00-\u9fff])|{ANY.clauses.clause_ends}"
)
_QUESTION = lazy_regex(rf"[?？]\s*$|{ANY.clauses.reported_or_asked}")
_ASKS = lazy_regex(
    rf"^(?:{ANY.clauses.asks})\b(?!:)",
    re.IGNORECASE,
)
# Not the case, not yet, no longer, only at times, or beside something else.
_HEDGED = lazy_regex(rf"\b(?:{ANY.clauses.hedges})\b")
_HEDGED_WRITTEN = lazy_regex(rf"\b(?:{ANY.clauses.hedges_written})\b")
_HEDGED_WITHIN = lazy_regex(ANY.clauses.hedges_within)
_FROM_FORMER = lazy_regex(ANY.clauses.changed_within)
_CORRECTION = lazy_regex(
    rf"^(?:\W{{0,3}}(?:{ANY.clauses.corrections})\s*(?:\([^)]{{1,20}}\))?[:：,，—–-]?\s*)+(?=\S)",
    re.IGNORECASE,
)
_OPENING = lazy_regex(
    rf"^(?:(?:{ANY.clauses.openings})[:：,，]?\s+|{ANY.clauses.joined_openings})(?=\S)",
    re.IGNORECASE,
)
_AS_OF = lazy_regex(ANY.clauses.as_of)
_DATE_SIGN = lazy_regex(f"{ANY.days.year_signs}|{ANY.days.month_signs}")
_DAY_SIGNS = ANY.days.day_signs
# Told of a year before the one of the note, a change is history: others may have come since.
_IN_YEAR = lazy_regex(ANY.clauses.in_year)
# What the two patterns above need, and most texts have not.
_YEAR_DIGITS = lazy_regex(r"\d\d\d\d")
_NOW = lazy_regex(ANY.clauses.now)
_GENERIC = ANY.nouns.generic
_NO_TOPIC = frozenset(
    "memory user readme notes index todo inbox agents claude soul identity tools facts log journal".split()
)
# The number of a chapter, which names nothing; "Bug 13" is named by its own.
_ORDINAL = lazy_regex(r"^\s*(?:\d+(?:\.\d+)*[.)、:：]?\s+|\d+[.)、])|\b(?:19|20)\d\d\b")
_CODE = lazy_regex(r"[\w]+", re.UNICODE)
_TICKET = lazy_regex(rf"(?:{ANY.nouns.tickets})\W{{0,2}}[\w-]*\d|#\d", re.IGNORECASE)
_NOT_SAME = lazy_regex(rf"^\W*(?:{ANY.clauses.not_same})\s*[:：]\s*(?P<both>.+)$", re.IGNORECASE)
_BETWEEN = lazy_regex(
    rf"\s+(?:{ANY.clauses.between}|/|\||&|<>)\s+|\s*(?:{ANY.clauses.between_within}|，|、|；|;)\s*(?=[\"“「『'‘]"
    r"|[\w/.-]+#L)|(?<=[\"”」』])\s*[,/&]?\s*"
    r"(?=[\"“「『])"
)
_PARTING = lazy_regex('[\n"“”「」『』]+')
_CITED = lazy_regex(r"^(?P<path>[\w@][^\s#]*)#L?(?P<line>\d{1,18})(?!\d)")
_QUOTED = "\"'“”‘’「」『』《》` .。"


class NotSame(NamedTuple):
    """Two entries that a person says are not the same thing; each is a path with a line, or words of the entry."""

    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Claims of a passage, and the pairs of which it says that they are not the same."""

    claims: tuple[Claim, ...] = ()
    not_same: tuple[NotSame, ...] = ()


_NOTHING = Facts()
# Of whom or what a clause tells, for one behind it that names nobody: "my sister moved out and lives in Bonn".
_LEAD = lazy_regex(ANY.clauses.leads)
_GROUP = frozenset({WE})
_ROLES = ANY.clauses.roles
# The same where the clause behind a comma often names nobody: 「奶奶换号了，新电话是…」. Behind any other such a clause
# tells of somebody who is not known.
_LEAD_WITHIN = lazy_regex(ANY.clauses.leads_within)
_HAN = lazy_regex("[\u4e00-\u9fff]")
_OF_ME = lazy_regex(ANY.clauses.speakers_within)
_SPEAKS = lazy_regex(ANY.clauses.speaks)
# "…, now lives in Bonn": not whoever says "I".
_THIRD = lazy_regex(ANY.clauses.third_person)
_ONLY_NEW = lazy_regex(ANY.clauses.only_new)
_JOINS = lazy_regex(rf"\s*[,，、]|\s+(?:{ANY.clauses.joints})\b")


# As many as one state of an index has at hand: after a write the next one need not read them again.
@lru_cache(maxsize=8_192)
def facts_of(text: str, heading: tuple[str, ...] = (), label: str | None = None, path: str = "") -> Facts:
    """The facts of a passage.

    Args:
        text: The passage.
        heading: Titles above it.
        label: Its speaker.
        path: Its file; what is no Markdown, text or session log claims nothing.
    """
    if not _is_prose(path):
        return _NOTHING
    text = _without_marks(text[:_MOST_CHARS])
    if match := _NOT_SAME.match(text):
        return Facts(not_same=_pairs(match["both"]))
    if _is_newest_first(heading, path):
        return _NOTHING
    topic = topic_of(heading, path)
    claims = dict[tuple[str, str], Claim]()
    year = _year_of(heading, path) if _YEAR_DIGITS.search(text) and _IN_YEAR.search(text) else 0
    for claim in _claims(text, topic, label, year):
        claims.setdefault((claim.thing, claim.value), claim)
    return Facts(claims=tuple(claims.values())) if claims else _NOTHING


@lru_cache(maxsize=8_192)
def thing_number(thing: str) -> int:
    """A thing as a number of 63 bits, as it is stored."""
    return int.from_bytes(hashlib.blake2b(thing.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1


NOT_SAME = "not the same"


def things_of(facts: Facts) -> tuple[int, ...]:
    """The things that a passage is found by."""
    things = [claim.thing for claim in facts.claims] + ([NOT_SAME] if facts.not_same else [])
    things += [change_of(claim.thing) for claim in facts.claims if claim.changes and is_frame(claim.thing)]
    return tuple(dict.fromkeys(map(thing_number, things)))


def change_of(thing: str) -> str:
    """As which thing the changes of one that is a frame are found."""
    return f"{thing}!"


def _is_prose(path: str) -> bool:
    if not path or path.startswith(("memory/", "sessions/")) or path in EVERGREEN:
        return True
    return path.lower().endswith((".md", ".markdown", ".txt", ".mdx"))


def _pairs(text: str) -> tuple[NotSame, ...]:
    parts = [part.strip(_QUOTED) for part in _BETWEEN.split(text)]
    parts = [part for part in parts if part]
    return tuple(NotSame(parts[i], parts[j]) for i in range(len(parts[:8])) for j in range(i + 1, len(parts[:8])))


def not_same_line(first: str, second: str) -> str:
    """The line by which a person says that two statements are not about the same thing; `facts_of` reads it."""
    return f'Not the same: "{_longest_part(first)}" and "{_longest_part(second)}"'


def _longest_part(text: str) -> str:
    """The longest words of a statement between what would part the line."""
    parts = [part.strip(_QUOTED) for part in _PARTING.split(_BETWEEN.sub("\n", _without_marks(text)))]
    return max(parts, key=len)


def is_named(reference: str, path: str, first: int, last: int, text: str) -> bool:
    """True if a reference of `NotSame` means a passage: by its path and a line of it, or by words of it."""
    if match := _CITED.match(reference):
        return path == match["path"] and first <= int(match["line"]) <= last
    return _plain(reference) in _plain(text)


def _plain(text: str) -> str:
    return "".join(_CODE.findall(text.casefold()))


@lru_cache(maxsize=1_024)
def topic_of(heading: tuple[str, ...], path: str) -> frozenset[str]:
    """Words of the titles and of the file's name that tell what the lines below are about."""
    words = set[str]()
    for title in heading:
        if heading_day(title) is None and not re.fullmatch(r"[\d:.\-/ ]+(?:[ap]m)?", title.strip()):
            words |= {word for word in words_of(_ORDINAL.sub("", title)) if word not in _GENERIC}
    stem = PurePosixPath(path).stem
    if path and not path.startswith("sessions/") and day_of_name(path) is None and stem.lower() not in _NO_TOPIC:
        words |= {word for word in words_of(re.sub(r"[_\-.]+", " ", stem)) if word not in _GENERIC}
    return frozenset(words)


def _year_of(heading: tuple[str, ...], path: str) -> int:
    """The year in which a passage was written, by its titles and its file's name; 0 where they tell none."""
    days = (*(heading_day(title) for title in reversed(heading)), day_of_name(path))
    return next((day.year for day in days if day is not None), 0)


def _speaker_of(text: str, label: str | None) -> tuple[frozenset[str], str]:
    """Words for whoever says a text by its label, and the text without it."""
    if not label or _is_key(label):
        return frozenset({ME}), text
    if text.casefold().startswith(label.casefold()):
        text = text[len(label) :].lstrip(":： ")
    return frozenset({ME}) if label.casefold() in _ROLES else words_of(label), text


def _without_opening(text: str) -> tuple[str, bool]:
    """A clause without the words that open it, and True if they say that it corrects something."""
    correction = _CORRECTION.match(text)
    text = text[correction.end() :] if correction else text
    while opening := _OPENING.match(text):
        text = text[opening.end() :]
    return text, correction is not None


def _claims(text: str, topic: frozenset[str], label: str | None, year: int) -> Iterator[Claim]:
    speaker, text = _speaker_of(text, label)
    keys = speaker - {ME}
    before: frozenset[str] = frozenset()
    sentence_changes = False
    lead, ours = "", False
    since: dt.date | None = None
    first, record = first_line(text)
    record = record - _GENERIC
    for goes_on, plain, label in _clauses(text):
        day, said_text = _day_of(plain)
        # A date of its own before a comma is that of the clause behind it.
        day = day or (since if goes_on else None)
        since = day if not said_text else None
        if not said_text:
            continue
        is_unspaced = not said_text.isascii() and _HAN.search(said_text) is not None
        is_unnamed = _OF_ME.search(said_text) is None if is_unspaced else _THIRD.match(said_text) is not None
        nobody = goes_on and not ours and is_unnamed
        if nobody and lead and _ONLY_NEW.match(said_text):
            said_text, nobody = lead + said_text, False
        said_text, corrects = _without_opening(said_text)
        if _OF_BEFORE.match(said_text):
            continue
        if _is_open(said_text) or (year and _is_before(said_text, year)):
            continue
        changes = corrects or _NOW.search(said_text) is not None
        said_text = LIST_NUMBER.sub("", said_text)
        named_text, said_text = label_before(said_text) if label is None else (label, said_text)
        if named_text and _is_key(named_text):
            named_text, said_text = "", f"{named_text}: {said_text}"
        is_key = KEYED.match(said_text) is not None
        owner = frozenset[str]()
        if is_key:
            owner = (_words_of_label(named_text) - _GENERIC) or (frozenset() if plain == first else record) or keys
        clause = Clause(
            text=said_text,
            subject=before,
            topic=topic,
            speaker=before if nobody else speaker,
            changes=changes or sentence_changes,
            day=day,
            owner=owner,
        )
        sentence_changes = changes
        found_match = (_LEAD_WITHIN if is_unspaced else _LEAD).match(said_text)
        lead = found_match[found_match.lastindex or 0] if found_match else ""
        if not before and (lead or _SPEAKS.match(said_text)):
            before = clause.subject_of(lead) or before if lead else speaker
        for claim in framed_claims(clause, changes=changes, denied_statement=ended_in):
            yield claim._replace(is_borrowed=is_key)
        for claim in claims_of(clause):
            ours = claim.subject >= _GROUP
            before = before if ours else claim.subject or before
            is_borrowed = (is_key and not _GENITIVE.search(said_text)) or _is_elsewhere(claim, said_text)
            if is_borrowed and (
                _names_another(said_text) or (is_key and not claim.changes and claim.thing.endswith("|name"))
            ):
                continue
            yield claim._replace(is_borrowed=is_borrowed)


def _is_before(text: str, year: int) -> bool:
    """True if a clause tells of a year before another."""
    return any(int(match[match.lastindex or 0]) < year for match in _IN_YEAR.finditer(text))


_GENITIVE = lazy_regex(f"^[^:：=→]*(?:{ANY.clauses.genitives})", re.IGNORECASE)


def _is_elsewhere(claim: Claim, text: str) -> bool:
    """True if a clause does not name whom or what a claim of it is about."""
    if claim.subject & {ME, WE} and (_SPEAKS.match(text) or _OF_ME.search(text)):
        return False
    return bool(claim.thing[0] != "|" or claim.subject) and claim.subject.isdisjoint(words_of(text))


def sentences_with_changes(text: str) -> list[tuple[str, bool]]:
    """The first clause of each sentence that asks nothing, without its opening, and True for a word of change in it."""
    pairs = list[tuple[str, bool]]()
    for goes_on, plain, _ in _clauses(_without_marks(text[:_MOST_CHARS])):
        if goes_on:
            # Of whom or what it tells stands in the clause before.
            continue
        _, said_text = _day_of(plain)
        said_text, corrects = _without_opening(said_text)
        if said_text and not _asks(said_text):
            pairs.append((said_text, corrects or _NOW.search(said_text) is not None))
    return pairs


def hedges_of(text: str) -> tuple[str, ...]:
    """Words of a clause that hold it back: of doubt, of a condition, of what holds beside it, or of another time."""
    lowered_text = text.lower()
    return (
        *(match[0] for match in _HEDGED.finditer(lowered_text)),
        *(match[0] for match in _HEDGED_WITHIN.finditer(lowered_text)),
    )


def _is_key(label: str) -> bool:
    """True if what stands before a colon in several lines names an attribute or a ticket, and nobody who speaks."""
    plain = Clause(text="", subject=frozenset(), topic=frozenset("?"), speaker=frozenset(), changes=False, day=None)
    return plain.attribute_of(label) is not None or _TICKET.match(label) is not None


_TAG = lazy_regex(r"</?[A-Za-z][^<>\n]{0,200}>")
_TURN = lazy_regex(rf"^[ \t]*(?:{ANY.clauses.turns})[:：][ \t]*", re.IGNORECASE | re.MULTILINE)
_FIELD = lazy_regex(r"[{}\[\]]|\"\s*[:,]\s*\"?|(?<=[{,\s])\"|\"(?=[},\s]|$)")


def _without_marks(text: str) -> str:
    """A text whose sentences stand on lines of their own, without tags, fields of JSON and names of turns."""
    if "<" in text:
        text = _TAG.sub("\n", text)
    if text.startswith(("{", "[")) and '"' in text:
        text = _FIELD.sub("\n", text)
    return _TURN.sub("", text) if ":" in text or "：" in text else text


def _clauses(text: str) -> Iterator[tuple[bool, str, str | None]]:
    """The clauses of a text.

    Returns:
        Of each, whether it goes on with the sentence of the one before; itself; the label that its line begins with,
        before a dash or a bar, None for none.
    """
    plain = text if _MARKS.isdisjoint(text) else _MARKUP.sub("", _LINK.sub(r"\1", text))
    begin, goes_on, number, label = 0, False, 0, None
    marks = (match for match in _SPLIT.finditer(plain) if not _within_day(plain, match.start(), match.end()))
    for end, behind, mark in (*((m.start(), m.end(), m[0]) for m in marks), (len(plain),) * 2 + ("",)):
        part = plain[begin:end].strip(" \t-*•>|")
        if 3 <= len(part) <= 160 and number < _MOST_CLAUSES:
            number += 1
            yield goes_on, part.rstrip(".。"), label
        if "\n" in mark:
            label = None
        elif label is None and _BAR.fullmatch(mark) and is_label(part):
            label = part
        begin, goes_on = behind, bool(mark) and _JOINS.match(mark) is not None


def _within_day(text: str, start: int, end: int) -> bool:
    """True for a blank between the number of a day and its month: "am 4. Mai"."""
    return text[start - 1 : start] == "." and text[start - 2].isdecimal() and _MONTH.match(text, end) is not None


_MONTH = lazy_regex(rf"(?:{'|'.join({name for names in ANY.days.months for name in names.split()})})\b", re.IGNORECASE)
# Of whom a clause tells stands before it: 「孙志宏是我的同事，其年龄是39岁」.
_OF_BEFORE = lazy_regex(ANY.clauses.of_before)
_BAR = lazy_regex(r"\s[—–|]\s")


def _asks(text: str) -> bool:
    """True if a clause asks, or repeats what somebody said."""
    is_marked = not text.isascii() or '"' in text or "?" in text
    return (is_marked and _QUESTION.search(text) is not None) or _ASKS.match(text) is not None


def _is_open(text: str) -> bool:
    """True if a clause asks, or says nothing of what is the case now."""
    if _asks(text):
        return True
    lowered_text = text.lower()
    if _HEDGED.search(_without_aside(lowered_text)) or _HEDGED_WRITTEN.search(text):
        return True
    if text.isascii():
        return False
    return _HEDGED_WITHIN.search(_without_aside(text)) is not None and _FROM_FORMER.search(text) is None


_ASIDE = lazy_regex(rf"[(（][^)）]*[)）]|[,，]\s*(?:{ANY.clauses.former}).*$|{ANY.clauses.former_words}")


_ASIDE_MARKS = frozenset("(（,，")


def _without_aside(text: str) -> str:
    return text if _ASIDE_MARKS.isdisjoint(text) and "ly " not in text else _ASIDE.sub("", text)


def _day_of(text: str) -> tuple[dt.date | None, str]:
    """The day that a clause says it holds from, and the clause without it."""
    if day_and_end := leading_day(text):
        day, end = day_and_end
        return day, text[end:]
    if _YEAR_DIGITS.search(text) and (since := _AS_OF.search(text)):
        return full_day(_DATE_SIGN.sub("-", since[since.lastindex or 0]).rstrip(_DAY_SIGNS)), (
            text[: since.start()] + text[since.end() :]
        ).strip()
    return None, text

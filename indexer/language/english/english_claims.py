"""Facts in English clauses: what the wordings of `english_wordings` claim. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Set
from functools import cache

from indexer.common.patterns import lazy_regex
from indexer.language.english.english_nouns import DESCRIPTIONS, JOBS, NO_EMPLOYER, ROLE_OF, STATE, TITLES
from indexer.language.english.english_wordings import ENGLISH_SCRIPT, ENGLISH_WORDINGS
from indexer.language.fact_words import (
    ME,
    WE,
    is_day,
    is_time,
    is_tool,
    is_written_as_name,
    kind_of,
    leads_with_day,
    leads_with_time,
    sort_of,
    value_of,
    words_of,
)
from indexer.language.facts_clause import TIMELY, Claim, Clause, Parts, Reading, Wording, Wordings, end_claims

_I = re.IGNORECASE
_NOT = r"(?:n['’]t| not) "
_KEY_MARKS = frozenset(":：=→")
_KEY = lazy_regex(r"^(?P<n>[^:：=→\n]{2,70}?)\s*(?:(?<!\d)[:：]|[:：](?!\d)|[=→]|->|=>)\s*(?P<v>\S.*)$")
_GOT_NEW = lazy_regex(r"^(?!(?:I|we) )(\S+(?: \S+)?) (?:has|have|got) an? new ", _I)
_WE_GOT = lazy_regex(r"^(?:I|we)(?:['’]ve)? (?:have|got) an? new ", _I)
_ARTICLES = lazy_regex(r"^(?:an?|the|any|his|her|my|our)\s+", _I)
_ARTICLE = lazy_regex(r"^(?:the|our|my)\s+", _I)
_OVER = lazy_regex(r"\s+(?:over|instead of|rather than|more than)\s+(?P<w>[^,;]{1,40})$|\s+to\s+(?P<x>[\w.-]+)$", _I)
_PURPOSE = lazy_regex(r"\s+(?:for|as (?:the|our|my|her|his|a|an)|when|while|on)\s+(?P<y>[\w' -]{2,40})$", _I)
_INSTEAD = lazy_regex(
    r"(?:,|\s)\s*(?:instead of|rather than|not|in place of|and not|no longer)\s+(?P<w>[^,;]{1,40}?)(?: any ?more)?$", _I
)
_NO_LONGER = lazy_regex(
    rf"^(?P<s>.*?)\s*\bno longer\s+(?P<a>\S.*)$"
    rf"|^(?P<t>.*?)\s*\b(?:does|do|has|have|(?P<be>is|are|am)){_NOT}(?P<b>\S.*?)\s+any ?(?:more|longer)\b"
    r"|^(?P<u>.*?)\s*(?:\b(?:has|have)|['’]ve)?\s*\b(?:stopped|quit|gave up|given up)\s+(?P<c>\S.*)$",
    _I,
)
_LIKED = lazy_regex(r"^(?:drinking|eating|having|playing) (?=\S)|^(?:an?|the)\s+", _I)
_ENDS = frozenset("longer anymore more stopped quit up".split())
_FORMS_OF_BE = frozenset({"is", "are", "am", "was", "were"})
_IS_STATE = lazy_regex(
    rf"^(?P<s>.{{2,60}}?)(?:\s+(?:is|are|was|were|has been|have been|got|remains)|['’]s)(?:\s+"
    rf"(?:now|already|finally|officially|still|currently|just|back))*"
    rf"\s+(?P<v>{STATE})(?=$|\s+(?:now|again|today|yesterday|on|in|to|by|at|last|this|since|as"
    rf"|with|after|for)\b|[,.(!])",
    _I,
)
_STATE_WORDS = frozenset(re.findall(r"\w+", STATE)) - {"in", "on", "off", "not", "up", "and", "out"}
_BARE_STATE = lazy_regex(
    rf"^(?P<s>(?:pr|issue|ticket|bug|task|mr|story|#)\W{{0,2}}[\w#-]*\d+)\s*(?:[:–—-]|→|->)?\s*(?P<v>{STATE})$", _I
)
_PROMOTED = lazy_regex(
    rf"^(?P<s>.{{1,40}}?)\s+(?:was |got |has been |were )?(?:promoted to|became|is now|are now|now works? as)\s+"
    rf"(?:an? |the |our |my )?(?P<v>[\w -]{{0,30}}\b(?:{JOBS})\b(?: of [\w ]{{2,30}})?)",
    _I,
)
_PROMOTES = frozenset({"promoted", "became", "now"})
_JOB_WORDS = frozenset(JOBS.split("|"))
_IS_ROLE = lazy_regex(
    r"^(?P<s>[A-Z]\w+(?: [A-Z]\w+)?|I|the user|user)(?:\s+(?:is|am|works? as)|['’](?:s|m))\s+(?:currently )?"
    rf"(?:an? |the |our )?(?P<v>[\w -]{{0,30}}\b(?:{JOBS})\b(?: of [\w ]{{2,30}})?)(?: now| again)?$"
)
_DENIES = lazy_regex(
    r"\b(?:(?:do|does|did)(?:n['’]t| not)|(?P<be>is|are|am)(?:n['’]t|(?<!, is)(?<!and is) not))\s+(?P<rest>\S.*)$"
    r"|\b(?:was|were|has|have|had|ca|wo|should)n['’]t\b|(?<!, )(?<!and )(?<!\()\b"
    r"(?:was|has|have|['’]s) not\b|\b(?:cannot|never|neither|nor)\b",
    _I,
)
_DENIALS = frozenset({"t", "not", "cannot", "never", "neither", "nor"})
_INDEFINITE = lazy_regex(r"^(?:an?|some|his|her|their|my|our|another|different|bigger|smaller|new)\b", _I)


def english_claims(clause: Clause) -> Iterator[Claim]:
    """Claims of an English clause."""
    words = frozenset(_table().words_of(clause.text.lower()))
    if words & _ENDS and (match := _NO_LONGER.match(clause.text)):
        yield from _ends(clause, match)
    elif not words & _DENIALS or (denial := _DENIES.search(clause.text)) is None:
        yield from _claims_of(clause, words)
    elif denial["rest"] and _PURPOSE.search(clause.text) is None:
        text = f"{clause.text[: denial.start()]} {denial['be'] or ''} {_ARTICLES.sub('', denial['rest'])}".strip()
        yield from _ended_of(dataclasses.replace(clause, text=text))


def ended_in_english(text: str) -> str:
    """The statement that a clause tells the end of, without the words that say so; empty for none."""
    lowered_text = text.lower()
    if not any(word in lowered_text for word in _ENDS) or (match := _NO_LONGER.match(text)) is None:
        return ""
    before = next(part for part in (match["s"], match["t"], match["u"]) if part is not None)
    return f"{before} {match['be'] or ''} {match['a'] or match['b'] or match['c']}"


def _claims_of(clause: Clause, words: Set[str]) -> Iterator[Claim]:
    text = clause.text
    claimed_keys = set[str]()
    be = _table().place_of_be(text) if words & _FORMS_OF_BE or "'" in text or "’" in text else -1
    noted_text = _WE_GOT.sub("my new ", _GOT_NEW.sub(r"\1's new ", text)) if "new" in words else text
    if not _KEY_MARKS.isdisjoint(text) and (key := _KEY.match(noted_text)):
        for claim in _key_claims(clause, key["n"], key["v"]):
            claimed_keys.add("attribute")
            yield claim
    for wording in _table().among(words):
        reading, _, role = wording.relation.partition(":")
        if reading not in claimed_keys and (match := wording.found_in(text, be)) and not _is_past(wording, match):
            parts = {name: part for name, part in match.groupdict().items() if part}
            parts.setdefault("s", text[: match.start()])
            for claim in _READINGS.get(reading, _attribute_claims)(clause, wording, role or reading, parts):
                claimed_keys.add(reading)
                yield claim
    if words & _STATE_WORDS:
        yield from _state(clause)
    yield from _role(clause, words)
    if words & _TIMES and (often := _OFTEN.match(text)):
        yield clause.claim(clause.spoken_words(often["s"]), "cadence", " ".join(often["v"].lower().split()))


_WAS = lazy_regex(r"\b(?:was|were)\b", _I)
_RESULT = lazy_regex(r"\b(?!based|located|employed|headquartered)(?:\w+ed|set|led|run|given|taken)\b", _I)


def _is_past(wording: Wording, match: re.Match[str]) -> bool:
    """True if a clause tells how something was, and not what came of a deed: "was at 10", but "was deployed to Fly"."""
    if wording.changes or _WAS.search(match.string) is None:
        return False
    start, end = match.span()
    spans = sorted(match.span(name) for name, part in match.groupdict().items() if part is not None)
    text = " ".join(match.string[:start].split()[-2:])
    for first, last in spans:
        text, start = f"{text} {match.string[start:first]}", last
    text = f"{text} {match.string[start:end]}"
    return _WAS.search(text) is not None and _RESULT.search(text) is None


@cache
def _table() -> Wordings:
    return Wordings(ENGLISH_WORDINGS, ENGLISH_SCRIPT)


def _bare(noun: str) -> str:
    return _ARTICLE.sub("", noun)


def _key_claims(clause: Clause, noun: str, text: str) -> Iterator[Claim]:
    """A line of a key and a value: "Owner: Kim"."""
    plain = _CHANGED_KEY.sub("", noun)
    new = plain != noun or clause.is_new(noun)
    if attribute := clause.attribute_of(plain):
        yield from clause.holds(*attribute, text, changes=new)
        if (kind := kind_of(value_of(text)[0])) and attribute[1] != "name":
            yield from _tool_of(clause, text, kind)
    else:
        yield from clause.by_sort(plain, text, changes=new, is_key=True)


def _attribute(clause: Clause, wording: Wording, role: str, parts: Parts) -> Iterator[Claim]:
    """An attribute that is named: "the port of staging is 8080", "the launch was pushed to May 3"."""
    noun, text = _GOT_NEW.sub(r"\1's new ", parts["n"]), parts["v"]
    if parts.get("s", "").strip() and (own := _OWN.match(noun)):
        noun = f"{parts['s'].strip()}'s {noun[own.end() :]}"
    if (scope := _SCOPE.match(text)) and not is_day(text) and not is_time(text):
        # An amount holds where it is said of: "21 degrees in the kitchen", "30 euros for adults".
        noun, text = f"{noun} {scope['of']}", scope["v"]
    if value_of(text)[0] in DESCRIPTIONS:
        return
    if _DENIED.match(text) or _OF_DOING.match(text):
        return
    changes = wording.changes or clause.is_new(noun)
    on_day = (wording.changes or role == "on") and (leads_with_day(text) or leads_with_time(text))
    if (attribute := clause.attribute_of(noun)) and (not on_day or attribute[1] in TIMELY):
        if attribute[1] not in _WITH_PLACES and _OF_PLACE.match(text):
            return
        yield from clause.holds(*attribute, text, changes=changes)
        if attribute[1] != "name" and is_tool(text):
            yield from _tool_of(clause, text, kind_of(value_of(text)[0]))
    elif on_day:
        if subject := clause.subject_of(_bare(noun)):
            yield from clause.holds(subject, "day" if leads_with_day(text) else "time", text, changes=wording.changes)
    else:
        yield from clause.by_sort(
            noun, _AT.sub("", text), changes=changes, is_set=role == "set" or _SET_TO.search(clause.text) is not None
        )


def _tool_of(clause: Clause, text: str, kind: str) -> Iterator[Claim]:
    value, corrects = value_of(text)
    if value and " " not in kind and kind != value.split()[-1]:
        yield clause.toggle(frozenset({WE}), "use", value, on=True, changes=corrects)


def _attribute_claims(clause: Clause, wording: Wording, attribute: str, parts: Parts) -> Iterator[Claim]:
    """An attribute of a subject that a verb tells, and the value that it had before."""
    text = parts["v"]
    accepted = _VALUES.get(attribute)
    if accepted is not None and not (text := accepted(text, clause.text, wording.changes)):
        return
    if "o" in parts:
        yield from _held_by(clause, attribute, parts["o"], text, changes=wording.changes or "f" in parts)
        return
    subject = clause.subject_of(parts["s"] if attribute in _OF_PERSON else _bare(parts["s"]))
    if subject is None:
        return
    attribute = "address" if attribute == "location" and text[0].isdigit() else attribute
    if attribute == "price" and (scope := _SCOPE.match(text)):
        subject, text = subject | words_of(scope["of"]), scope["v"]
    # Who learns something now may have begun beside another.
    beside = attribute == "learning" and _INSTEAD_OF.search(clause.text) is None
    for claim in clause.holds(subject, attribute, text, changes=wording.changes, single=wording.single):
        yield claim._replace(changes=claim.changes and not beside)
    if "f" in parts:
        yield from _end_claims(clause, subject, attribute, parts["f"])


def _held_by(clause: Clause, attribute: str, thing: str, holder: str, *, changes: bool) -> Iterator[Claim]:
    if _INDEFINITE_THING.match(thing) or (changes and holder[0].islower() and attribute == "owner"):
        return
    subject = clause.subject_of(_bare(value_of(thing)[0] or thing))
    name = holder.strip()
    keys = clause.subject_of(name)
    if subject and keys and len(name.split()) <= 6:
        value = " ".join(sorted(keys)) if name.casefold() in ("i", "me") else value_of(name)[0]
        if value:
            yield clause.claim(subject, attribute, value, changes=changes)
            yield clause.toggle(subject, attribute, value, on=True, changes=changes)


def _holder(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    """Somebody as the holder of a role: "Kim is the owner of billing", "Wen is release manager again"."""
    match = _ROLE_OF.match(parts["n"])
    if match and (parts["v"][0].isupper() or parts["v"].casefold() in ("i", "user", "the user")):
        word = match["role"].casefold()
        thing = f"{match['before']} {match['o'] or ''}".strip()
        if thing or clause.topic or word in ("ceo", "cto", "cfo", "coo"):
            yield from _held_by(
                clause, ROLE_OF.get(word, word), thing, parts["v"], changes=wording.changes or clause.is_new(parts["n"])
            )


def _end_claims(clause: Clause, subject: frozenset[str], attribute: str, text: str) -> Iterator[Claim]:
    if value := value_of(text)[0]:
        yield clause.toggle(subject, attribute, value, on=False)


def _left(clause: Clause, _wording: Wording, role: str, parts: Parts) -> Iterator[Claim]:
    """A firm or a town that somebody left, or something that somebody hates."""
    subject, text = clause.subject_of(parts["s"]), parts["v"]
    if subject and (text[0].isupper() or role != "ended"):
        for attribute in ("employer", "location") if role == "ended" else (role,):
            yield from _end_claims(clause, subject, attribute, text)


def _with_aside(text: str) -> tuple[str, str, str]:
    """Something used or preferred, its purpose, and what it is used instead of."""
    rest, purpose, other_text = text.rstrip(" ."), "", ""
    for _ in range(2):
        for pattern in (_INSTEAD, _OVER):
            if match := pattern.search(rest):
                rest, other_text = rest[: match.start()], match["w"] or match["x"]
        if match := _PURPOSE.search(rest):
            rest, purpose = rest[: match.start()], match["y"]
    return rest, purpose, other_text


def _prefers(clause: Clause, _wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    subject = clause.subject_of(parts["s"])
    if not subject or _NO_TASTE.match(parts["v"]):
        return
    rest, purpose, other_text = _with_aside(parts["v"])
    yield from clause.tastes(subject, "prefer", rest, purpose, changes=bool(other_text and clause.changes))
    if other_text:
        yield from _end_claims(clause, subject, "prefer", other_text)


def _user(clause: Clause, before: str) -> frozenset[str] | None:
    """Whoever uses something; the person and the group are one."""
    subject = clause.subject_of(before)
    if subject is None:
        return None
    return frozenset({WE}) if subject & {ME, WE} or not before.strip() else subject


def _uses(clause: Clause, _wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    subject = _user(clause, parts["s"])
    if not subject:
        return
    rest, purpose, other_text = _with_aside(parts["v"])
    yield from clause.tastes(subject, "use", rest, purpose, changes=bool(other_text))
    if purpose:
        # Something new for one purpose ends nothing that is used for another.
        alike = clause.tastes(subject, "use", rest, changes=bool(other_text))
        yield from (claim if other_text else claim._replace(changes=False) for claim in alike)
    if other_text:
        yield from _end_claims(clause, subject, "use", other_text)


def _switch_claims(clause: Clause, _wording: Wording, role: str, parts: Parts) -> Iterator[Claim]:
    """A tool that took the place of another."""
    former, new, part = parts.get("f", ""), parts.get("v", ""), parts.get("o", "")
    if not former and " from " in new:
        new, _, former = new.partition(" from ")
    subject = _user(clause, parts["s"])
    if subject is None or is_day(new) or is_time(new) or (part and clause.attribute_of(part) is not None):
        return
    new, _, purpose = new.partition(" for ")
    if role == "tool" and not is_tool(new) and not is_tool(former):
        return
    if "n" in parts and (pair := clause.attribute_of(parts["n"])):
        yield from clause.holds(*pair, new, changes=True)
    if new:
        yield from clause.tastes(subject, "use", new, changes=True)
        if purpose:
            yield from clause.tastes(subject, "use", new, purpose, changes=True)
    if former:
        yield from _end_claims(clause, subject, "use", former.removeprefix("using "))
    if former and not new and (keys := clause.subject_of(parts["s"])):
        for attribute in _GIVEN_UP:
            yield from _end_claims(clause, keys, attribute, former)


def _ends(clause: Clause, match: re.Match[str]) -> Iterator[Claim]:
    """Facts that hold no more, by what the clause would claim without its "no longer"."""
    before = next(part for part in (match["s"], match["t"], match["u"]) if part is not None)
    rest = match["a"] or match["b"] or match["c"]
    text = f"{before} {match['be'] or ''} {_ARTICLES.sub('', rest)}".strip()
    claims = [*_ended_of(dataclasses.replace(clause, text=text))]
    yield from claims
    subject = clause.subject_of(before)
    value = value_of(_ARTICLES.sub("", rest))[0]
    if not claims and subject and value and len(value.split()) <= 3:
        for attribute in ("status", "role", *_GIVEN_UP):
            yield clause.toggle(subject, attribute, value, on=False)


def _ended_of(clause: Clause) -> Iterator[Claim]:
    """The values that a clause would claim, as what does not hold."""
    yield from end_claims(_claims_of(clause, frozenset(_table().words_of(clause.text.lower()))))


def _habit(clause: Clause, _wording: Wording, verb: str, parts: Parts) -> Iterator[Claim]:
    """Habits and possessions, of which there may be many; only "no longer" ends one."""
    subject = clause.subject_of(parts["s"])
    if not subject or len(parts["s"]) > 40 or re.match(r"been |to |not ", parts["v"]):
        return
    rest, _, other_text = _with_aside(parts["v"]) if "," in parts["v"] else (parts["v"], "", "")
    value, _ = value_of(_LIKED.sub("", rest))
    sort = sort_of(value)[0]
    yield from _end_claims(clause, subject, verb, other_text.removeprefix("to "))
    if sort.startswith("amount") and sort != "amount":
        yield clause.claim(subject, sort, value)
    elif value and len(value.split()) <= 4:
        yield clause.claim(subject, f"{verb}={value}", "on")


def _state(clause: Clause) -> Iterator[Claim]:
    match = _BARE_STATE.match(clause.text) or _IS_STATE.match(clause.text)
    if match and clause.attribute_of(match["s"]) is None and (subject := clause.subject_of(_bare(match["s"]))):
        yield from clause.holds(subject, "status", match["v"])


def _rename_claims(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    former, text = parts.get("f") or parts["o"], parts["v"]
    if _ONE_OF_SEVERAL.search(former):
        return
    renames = wording.changes or clause.changes
    if "o" in parts:
        subject = clause.subject_of(_bare(former))
        if subject and len(text.split()) <= 6:
            yield from clause.holds(subject, "name", text, changes=renames)
    old, name = words_of(former), value_of(text)[0]
    if renames and old and name and len(old) <= 6:
        yield clause.claim(old, "name", name, changes=True)
        yield clause.claim(frozenset(), f"name={' '.join(sorted(old))}", "off", changes=True)
        yield clause.claim(frozenset(), f"name={' '.join(sorted(words_of(name)))}", "on")


def _role(clause: Clause, words: Set[str]) -> Iterator[Claim]:
    if words.isdisjoint(_JOB_WORDS):
        return
    match = _PROMOTED.match(clause.text) if words & _PROMOTES else None
    held_match = match or _IS_ROLE.match(clause.text)
    if held_match and (subject := clause.subject_of(held_match["s"])) and (value := value_of(held_match["v"])[0]):
        yield clause.claim(subject, "role", value, changes=match is not None, single=False)


def _place(text: str, whole: str, has_moved: bool) -> str:
    value = re.sub(r"\s+from\s+.*$", "", re.sub(r"^the (?=[a-z])", "a ", text))
    if _INDEFINITE.match(value) or is_day(value) or is_time(value) or (has_moved and not _is_name(value, whole)):
        return ""
    return value


def _firm(text: str, whole: str, has_moved: bool) -> str:
    value = re.sub(r"\s+(?:as|in)\s+.*$", "", text)
    if has_moved:
        return value if value[0].isupper() or value[0].isdigit() or _is_name(value, whole) else ""
    known_text = value_of(value)[0]
    fits = _is_name(value, whole) and known_text not in NO_EMPLOYER and not is_time(value) and not is_day(value)
    return value if fits else ""


def _is_name(value: str, text: str) -> bool:
    """True if a value is written as a name, as far as the writer uses capitals."""
    return not value[0].islower() or value.startswith("the ") or not any(map(str.isupper, text[1:]))


def _matching(pattern: str) -> Callable[[str, str, bool], str]:
    """The part of a value that a pattern finds at its beginning, or nothing."""
    compiled_pattern = lazy_regex(pattern, _I)

    def find(text: str, _whole: str, has_moved: bool) -> str:
        match = compiled_pattern.match(text)
        return (match.groupdict().get("v") or text) if match else ""

    return find


_INSTEAD_OF = lazy_regex(r"\b(?:instead|switched|dropped|quit|stopped)\b", _I)
_THE = lazy_regex(r"the \w+(?: (?:now|again))?$")
_VALUES: dict[str, Callable[[str, str, bool], str]] = {
    "location": _place,
    "employer": _firm,
    "price": _matching(r"(?:(?:only|about|around) )?(?:\S*[\d$€£¥]|free\b)"),
    "port": _matching(r"(?:port\s+)?:?\d"),
    "plan": _matching(r"(?:the |an? |our )?(?P<v>[\w -]{2,30}?)\s+(?:plan|tier|subscription|edition|package)\b"),
    "grade": _matching(
        r"(?P<v>kindergarten|preschool|(?:\w+ )?grade(?: \d+)?|year \d+|(?:middle|high|primary|elementary) school)\b"
    ),
    "place": lambda text, whole, has_moved: (
        "" if (text[0].islower() and not _THE.match(text)) or is_day(text) or is_time(text) else text
    ),
    "length": _matching(r"(?P<v>(?:\d|one|two|three|four|five|six|seven|eight|nine|ten|twelve)\S*\s+\w+)"),
    "who": lambda text, whole, has_moved: text if is_written_as_name(text) else "",
    "learning": _matching(r"(?P<v>\S.*?)(?:\s+(?:at|in|with|on|from)\s.*)?$"),
    "floor": _matching(r"(?P<v>(?:the )?\w+)"),
    "subject": _matching(r"(?P<v>\S.*?)(?:\s+(?:at|in|with)\s.*)?$"),
    "height": _matching(r"(?P<v>\d\S*\s+\w+)"),
    "age": _matching(r"(?P<v>\d{1,3})(?:\s+years?\b|$)"),
}
# What somebody can give up, drop or quit, as it is named alone.
_GIVEN_UP = ("diet", "play", "learning", "subject", "take", "drink", "eat", "attend")
_OF_PERSON = frozenset({"location", "employer", "diet", "age"})
_ROLE_OF = lazy_regex(
    r"(?:the\s+)?(?:new\s+|current\s+)?(?P<before>(?!an?\b|his\b|her\b|their\b|one\b)[\w -]{0,40}?)\b"
    rf"(?P<role>{TITLES})(?:\s+(?:of|for|on|at)\s+(?P<o>\S.{{0,40}}))?(?:\s+(?:again|now))*[. ]*$",
    _I,
)
_SET_TO = lazy_regex(r"\w \w+ (?:(?:is|was|were|has been|got) )?(?:set|reset|switched|changed|flipped) to\b", _I)
_AT = lazy_regex(r"^(?:at|on) (?=version\b|v?\d|[$€£¥])", _I)
_OWN = lazy_regex(r"(?:its|their|his|her)\s+", _I)
# What is done with a thing, how it is or where, and no value of it: "the password is stored in the safe".
_OF_DOING = lazy_regex(
    r"\w+(?:able|ible)\b|(?:called|known|kept|made|about)\s"
    r"|(?!based|delayed|blocked|postponed|paused)\w+ed (?:in|on|at|by|from|with|as|via|over)\b"
    r"|\S+ \w+ (?:long|wide|tall|old|deep|away|late|early)$",
    _I,
)
_SCOPE = lazy_regex(
    r"(?P<v>\S*\d\S*(?: (?!in|for|on|at)\w+)?)\s+"
    r"(?P<of>(?:in|for|on|at) (?!now\b|average|total|most|least|all\b)\w[\w ]{1,30})$",
    _I,
)
_OF_PLACE = lazy_regex(r"(?:in|on|at|under|behind|from|with|inside|within|near|by|for)\s+(?![$€£¥\d])", _I)
_WITH_PLACES = frozenset(
    "location status day time deadline address room school role department birthday cadence".split()
)
_CHANGED_KEY = lazy_regex(
    r"\s+(?:has |was )?(?:changed|updated|moved|raised|lowered|increased|decreased|renamed|now|new)$", _I
)
_ONE_OF_SEVERAL = lazy_regex(r"\b(?:an?|one|two|three|some|another|has|have|had|own|owns|with)\b", _I)
_DENIED = lazy_regex(r"(?:not|n['’]t|never|no longer)\b", _I)
_NO_TASTE = lazy_regex(r"(?:to|not|that|if)\s", _I)
_INDEFINITE_THING = lazy_regex(r"(?:an?|two|three|some|his|her|their|many|is|are|was|were)\s", _I)


def _time_claims(clause: Clause, wording: Wording, role: str, parts: Parts) -> Iterator[Claim]:
    """Something that has its day or hour: "the stand-up starts at 9:30"."""
    before, text = parts["s"], parts["v"]
    on_hour = role in ("at", "open", "close") and _HOUR.match(text) is not None
    if (
        not (on_hour or leads_with_day(text) or leads_with_time(text))
        or len(text.split()) > 6
        or ((attribute := clause.attribute_of(before)) is not None and attribute[1] in TIMELY)
    ):
        return
    if subject := clause.subject_of(_bare(before)):
        subject = subject if role in ("at", "when") else subject | {role}
        for claim in clause.holds(subject, "day" if is_day(text) else "time", text, changes=wording.changes):
            # On Mondays and on Thursdays: both may hold.
            yield claim._replace(single=wording.single and _EACH_WEEK.search(text) is None)


def _deploy_claims(clause: Clause, _wording: Wording, role: str, parts: Parts) -> Iterator[Claim]:
    value = parts["v"]
    if (
        (role != "tool" or is_tool(value))
        and not is_day(value)
        and not is_time(value)
        and (words := clause.subject_of(parts["s"]))
    ):
        yield from clause.holds(words - {WE, ME} | {"deploy"}, "target", value)
        if is_tool(value):
            yield clause.toggle(frozenset({WE}), "use", value_of(value)[0], on=True)


def _contact(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    if subject := clause.subject_of(parts["s"]):
        yield from clause.holds(subject, "email" if "@" in parts["v"] else "phone", parts["v"], changes=wording.changes)


def _version_claims(clause: Clause, wording: Wording, role: str, parts: Parts) -> Iterator[Claim]:
    thing = parts["o"]
    match = _NUMBERED.match(parts["v"])
    if match and _PRODUCT.fullmatch(thing) and words_of(thing) and not is_day(thing) and thing.lower() not in _COUNTED:
        place = parts["v"][match.end() :].lstrip()
        is_place = re.match(r"(?:in|on) (?:the )?\w+$", place) and not is_day(place)
        where = words_of(place) if is_place else frozenset[str]()
        holder = clause.subject_of(_bare(parts["s"])) if role == "of" else None
        if holder and not holder & {ME, WE}:
            # Two machines run two versions; only where it was brought up itself has it another.
            yield clause.claim(holder | words_of(thing), "version", match["v"], changes=wording.changes)
            yield clause.claim(words_of(thing), "version", match["v"], single=False)._replace(changes=False)
        else:
            yield clause.claim(words_of(thing) | where, "version", match["v"], changes=wording.changes)


def _is(clause: Clause, wording: Wording, role: str, parts: Parts) -> Iterator[Claim]:
    """A state that a wording stands for: "Ana got married"."""
    attribute, _, value = role.partition("=")
    for name in _AND.split(parts["s"])[:2]:
        if subject := clause.subject_of(_bare(name)):
            yield clause.claim(subject, attribute, value, changes=wording.changes)


_TIMES = frozenset({"times", "once", "twice", "every"})
_OFTEN = lazy_regex(
    r"^(?P<s>\S.{2,60}?)\s+(?P<v>(?:once|twice|(?:\d+|three|four|five|six|seven|eight|nine|ten) times)"
    r"\s+(?:an?|per|every|each)\s+\w+|every (?:\d+|two|three|four|five|six|ten) (?:minute|hour|day|night|week|month"
    r"|year)s)(?:\s+(?:now|these days|again))?$",
    _I,
)
_EACH_WEEK = lazy_regex(r"days\b|\bevery\b|\beach\b", _I)
_HOUR = lazy_regex(r"\d{1,2}(?=$|\s+(?:now|again)\b)")


def _name(clause: Clause, wording: Wording, role: str, parts: Parts) -> Iterator[Claim]:
    if subject := clause.speaker if role == "me" else clause.subject_of(parts["s"]):
        yield from clause.holds(subject, "name", parts["v"], changes=wording.changes)


def _language_claims(clause: Clause, wording: Wording, role: str, parts: Parts) -> Iterator[Claim]:
    """The language that somebody wants to be answered in; as a bidding only at the beginning of a clause."""
    if role != "me":
        yield from _attribute_claims(clause, wording, "language", parts)
    elif clause.speaker and not parts["s"].strip():
        yield from clause.holds(clause.speaker, "language", parts["v"])


_AND = lazy_regex(r"\s+and\s+|\s*&\s*", _I)
_NUMBERED = lazy_regex(r"v?(?P<v>\d+(?:\.\d+)*)\b(?=$|\s+(?:now|in|on|since)|[.,(])")
_PRODUCT = lazy_regex(r"[A-Za-z][\w.+#-]{1,20}")
_COUNTED = frozenset("port line page version day step level".split())

_READINGS: dict[str, Reading] = {
    "attribute": _attribute,
    "ended": _left,
    "prefer": _prefers,
    "use": _uses,
    "switched": _switch_claims,
    "renamed": _rename_claims,
    "called": _rename_claims,
    "succeeded": _switch_claims,
    "holder": _holder,
    "name": _name,
    "language": _language_claims,
    "on": _habit,
    "when": _time_claims,
    "target": _deploy_claims,
    "contact": _contact,
    "version": _version_claims,
    "is": _is,
}

"""Facts in English clauses: homes, employers, owners, prices, days, states, names, tools, tastes. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from indexer.text import lazy_regex
from indexer.text.fact_words import (
    DIETS,
    JOBS,
    LEMMAS,
    ME,
    MOVES,
    NO_EMPLOYER,
    ROLE_OF,
    STATE,
    TITLES,
    WE,
    is_day,
    is_time,
    is_tool,
    kind_of,
    value_of,
    words_of,
)
from indexer.text.facts_clause import Claim, Clause

_I = re.IGNORECASE
_ON = (
    r"(?: (?:back|over|away|house|home|on|out|up|down|again|entirely|fully|completely|everything"
    r"|offices?|officially|now|permanently))*"
)
_ONLY_NOW = r"(?: (?:now|currently|presently|officially))?"
_NOT = r"(?:n['’]t| not) "
_KEY = lazy_regex(r"^(?P<np>[^:：=→\n]{2,70}?)\s*(?:[:：=→]|->|=>)\s*(?P<v>\S.*)$")
_IS = lazy_regex(
    r"^(?P<np>.{2,70}?)(?:\s+(?:is|are|equals|remains|has become|became)|['’]s(?= now\b))\s+(?P<v>\S.*)$", _I
)
_GOT_NEW = lazy_regex(r"^(\S+(?: \S+)?) (?:has|have|got) an? new ", _I)
_PASSIVE = lazy_regex(
    rf"^(?P<np>.{{2,60}}?)\s+(?:(?:has|have|was|were|is|are|been|being|got|gets|will be|now|just"
    rf"|recently|officially)\s+)*"
    rf"(?P<verb>{MOVES}){_ON}(?:\s+from\s+(?P<f>.{{1,40}}?))?\s+(?:to|into|until|till|at)\s+(?P<v>\S.*)$",
    _I,
)
_ACTIVE = lazy_regex(
    rf"^(?P<who>i|we|they|he|she|[A-Z][\w-]+(?: [A-Z][\w-]+)?)(?:['’]ve|\s+(?:have|has|just|recently"
    rf"|now))*\s+(?P<verb>{MOVES})\s+"
    rf"(?P<np>.{{2,50}}?){_ON}(?:\s+from\s+(?P<f>.{{1,40}}?))?\s+to\s+(?P<v>\S.*)$",
    _I,
)
_LIVES = lazy_regex(
    rf"\b(?:lives?|living|resides?|residing|based|located|headquartered){_ON}{_ONLY_NOW} (?:in|at|out of)\s+(?=\S)", _I
)
_MOVED = lazy_regex(rf"\b(?:moved|relocated|moving|moves){_ON}(?: from (?P<f>[^,]{{1,40}}?))? (?:to|into)\s+(?=\S)", _I)
_WORKS = lazy_regex(rf"\b(?:works?|working|employed){_ONLY_NOW} (?:at|for|by)\s+(?=\S)", _I)
_JOINED = lazy_regex(
    r"\b(?:joined|started(?: working| work| a (?:new )?job)? at|got a (?:new )?job at|(?:was"
    r" |got )?hired (?:by|at)|(?:is|are|am|['’]s|['’]m) now at"
    r"|now at|switched jobs to|changed jobs to|left (?P<f>[A-Z]\w*(?: [A-Z]\w*)?) (?:for|to join"
    r"|and joined))\s+(?=[A-Z0-9])"
)
_LEFT = lazy_regex(
    r"\b(?:left|quit|resigned from)\s+(?P<v>[A-Z][\w.&-]*(?: [A-Z][\w.&-]*)?)\s*(?=$|[.,]|last"
    r"|this|in\b|on\b|and\b|yesterday)"
)
_OWNS = lazy_regex(
    r"^(?P<s>.{1,40}?)\s+(?:now |currently |officially )?(?P<verb>owns|maintains|leads|manages"
    r"|took over|takes over|has taken over|is (?:now )?responsible for"
    r"|is (?:now )?in charge of|is taking over)\s+(?P<o>(?!an? |two |three |some |his |her |their |many )\S.*)$",
    _I,
)
_OWNED = lazy_regex(
    r"^(?P<o>.{2,50}?)\s+(?:is|are|was|will be)?\s*(?:now |currently )?(?P<verb>owned|maintained"
    r"|led|managed|taken over|handled) by\s+(?P<v>\S.*)$",
    _I,
)
_HANDED = lazy_regex(
    rf"^(?:(?P<who>.{{1,30}}?) )?(?:handed|passed|transferred|reassigned|gave)(?: over| off)?"
    rf"(?: ownership of)? (?P<o>.{{2,50}}?)(?: ownership)?{_ON} to\s+(?P<v>\S.*)$",
    _I,
)
_HOLDS = lazy_regex(
    rf"^(?P<v>.{{1,40}}?)\s*(?:\b(?:is|became|becomes|was (?:made|named|appointed))|['’]s)\s+"
    rf"(?:now\s+)?(?:the\s+)?(?:new\s+|current\s+)?(?P<role>{TITLES})"
    r"\s+(?:of|for|on|at)\s+(?P<o>\S.*)$",
    _I,
)
_COSTS = lazy_regex(
    r"\b(?:costs?|(?:is|are) priced at|sells? for|retails? (?:for|at)|goes for)(?: now| only"
    r"| about| around)?\s+(?=\S*[\d$€£¥]|free\b)",
    _I,
)
_DUE = lazy_regex(r"\s*(?:\b(?:is|are)|['’]s)(?: now)? due(?: on| by| at)?\s+(?=\S)", _I)
_ON_PORT = lazy_regex(
    r"\b(?:runs?|running|listens?|listening|serves?|served|available|is|are|moved|starts?)(?:"
    r" now)? (?:on|to) port\s+(?=:?\d)",
    _I,
)
_MEETS = lazy_regex(
    r"\s*\b(?:(?:is|are|starts?|begins?|meets?|happens?|takes place|runs?|held|scheduled|opens?"
    r"|departs?|leaves|arrives?)(?: now| held| scheduled| set)?"
    r"(?: every| each)?(?: on| at| for| in)|(?:meets?|happens?|takes place)(?: now)? every)\s+(?=\S)",
    _I,
)
_MEETS_ON = lazy_regex(
    r"\s*\b(?:is|are)(?: now)?\s+(?=(?:every |each )?(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b)", _I
)
_PREFERS = lazy_regex(r"\b(?:prefers?|favou?rs|would rather have)\s+(?!to\s|not\s|that\s|if\s)(?=\S)", _I)
_OVER = lazy_regex(r"\s+(?:over|instead of|rather than|more than)\s+(?P<w>[^,;]{1,40})$|\s+to\s+(?P<x>[\w.-]+)$", _I)
_PURPOSE = lazy_regex(r"\s+(?:for|as (?:the|our|my|her|his|a|an)|when|while|on)\s+(?P<y>[\w' -]{2,40})$", _I)
_USES = lazy_regex(
    r"(?:^|(?<=\s)|(?<=['’]re )|(?<=['’]m ))(?:uses?|using|runs? on|relies on|rely on|standardi[sz]ed"
    r" on|settled on|chose|adopted)\s+(?=\S)",
    _I,
)
_INSTEAD = lazy_regex(
    r"(?:,|\s)\s*(?:instead of|rather than|not|in place of|and not|no longer)\s+(?P<w>[^,;]{1,40}?)(?: any ?more)?$", _I
)
_SWITCHED = lazy_regex(
    rf"\b(?:switch(?:ed|ing|es)?|migrat(?:ed|ing|es)|mov(?:ed|ing)|chang(?:ed|ing)|transition"
    rf"(?:ed|ing)|convert(?:ed|ing)|went|ported|swapped){_ON}"
    r"(?:\s+(?P<what>(?:the |our |my |from )?[\w -]{2,30}?))??(?:\s+from\s+(?P<f>[^,]{1,40}?))?\s+"
    r"(?:back\s+|over\s+)?(?:to|onto)\s+(?P<v>\S.*)$",
    _I,
)
_REPLACED = lazy_regex(
    r"\b(?:replac(?:ed|es|ing)|swap(?:ped|s)(?: out)?|exchanged|substituted)\s+(?P<f>[^,]{1,40}?)\s+"
    r"(?:with|by|for)\s+(?P<v>\S.*)$",
    _I,
)
_WAS_REPLACED = lazy_regex(
    r"^(?P<f>.{1,40}?)\s+(?:was|were|is|are|has been|have been|got|gets)\s+(?:now\s+)?(?:replaced"
    r"|superseded|swapped(?: out)?)\s+(?:with|by|for)\s+(?P<v>\S.*)$",
    _I,
)
_REPLACES = lazy_regex(
    r"^(?P<v>.{1,40}?)\s+(?:replaces|replaced|has replaced|succeeds|succeeded)\s+(?P<f>[^,]{1,40}?)"
    r"(?:\s+as\s+(?P<np>.+))?$",
    _I,
)
_DROPPED = lazy_regex(
    r"\b(?:ditched|dropped|abandoned|retired|got rid of|gave up on|moved (?:away )?from|migrated"
    r" (?:away )?from)\s+(?P<f>(?:(?! to )[^,]){1,40}?)\s*"
    r"(?:(?:,?\s*(?:in favou?r of|and (?:now )?(?:use|using|switched to|moved to)|for)\s+)(?P<v>\S.*))?$",
    _I,
)
_NO_LONGER = lazy_regex(
    rf"^(?P<s>.*?)\s*(?:\b(?:is|are|am)|['’](?:s|m|re))?\s*\bno longer\s+(?P<a>\S.*)$"
    rf"|^(?P<t>.*?)\s*\b(?:does|do|is|are|am|has|have){_NOT}(?P<b>\S.*?)\s+any ?(?:more|longer)\b"
    r"|^(?P<u>.*?)\s*(?:\b(?:has|have)|['’]ve)?\s*\b(?:stopped|quit|gave up|given up)\s+(?P<c>\S.*)$",
    _I,
)
_ENDS = ("no longer", "anymore", "any more", "any longer", "stopped", "quit", "gave up", "given up")
_DOES = lazy_regex(
    r"^(?P<verb>uses?|using|drinks?|drinking|eats?|eating|likes?|liking|loves?|enjoys?|plays?"
    r"|playing|ha(?:s|ve|ving)|smok(?:es?|ing)"
    r"|owns?|owning|drives?|driving|speaks?|supports?|supporting|attends?|attending|prefers?"
    r"|takes?|taking|liv(?:es?|ing) (?:in|at)"
    r"|based (?:in|at)|work(?:s|ing)? (?:at|for)|employed (?:at|by)|at|in|the owner of|responsible"
    r" for|in charge of)\s+(?P<o>\S.*)$",
    _I,
)
_HABIT = lazy_regex(
    r"^(?P<s>.{1,40}?)\s+(?P<verb>drinks?|eats?|likes?|loves?|enjoys?|plays?|has|have|smokes?"
    r"|drives?|speaks?|supports?|attends?|takes?)\s+"
    r"(?P<o>(?!been|to |not )\S.{1,40})$",
    _I,
)
_IS_STATE = lazy_regex(
    rf"^(?P<s>.{{2,60}}?)(?:\s+(?:is|are|was|were|has been|have been|got|remains)|['’]s)(?:\s+"
    rf"(?:now|already|finally|officially|still|currently|just|back))*"
    rf"\s+(?P<v>{STATE})(?=$|\s+(?:now|again|today|yesterday|on|in|to|by|at|last|this|since|as"
    rf"|with|after|for)\b|[,.(!])",
    _I,
)
_BARE_STATE = lazy_regex(
    rf"^(?P<s>(?:pr|issue|ticket|bug|task|mr|story|#)\W{{0,2}}[\w#-]*\d+)\s*(?:[:–—-]|→|->)?\s*(?P<v>{STATE})$", _I
)
_CALLED = lazy_regex(
    r"^(?P<s>.{1,50}?)\s*(?:\b(?:is|are|was|were|has been|have been|got|goes)|['’]s|\b)\s*(?P<now>now |officially )*"
    r"(?P<verb>called|named|known as|goes by|renamed(?: to| as| into)?|rebranded(?: to| as)?)\s+(?P<v>\S.*)$",
    _I,
)
_RENAME = lazy_regex(r"\brenam(?:ed|es|ing|e)\s+(?P<f>.{1,50}?)\s+(?:to|as|into|→|->)\s+(?P<v>\S.*)$", _I)
_DEPLOYS = lazy_regex(
    r"\b(?:deploy(?:s|ed|ing)?|hosted|hosting|host|ship|ships|publish(?:es|ed)?)(?: now)? (?:to|on|at|with)\s+(?=\S)",
    _I,
)
_DIET = lazy_regex(
    rf"^(?P<s>.{{1,40}}?)(?:\s+(?:is|am|are|became|went|turned)|['’](?:s|m|re))(?:\s+now)?(?:\s+an?)?\s+"
    rf"(?P<v>{DIETS})\b",
    _I,
)
_AGED = lazy_regex(
    r"^(?P<s>.{1,40}?)(?:\s+(?:is|am|are|turned)|['’](?:s|m|re))(?:\s+now)?\s+(?P<v>\d{1,3})(?:\s+years? old|$)", _I
)
_REACHED = lazy_regex(r"^(?P<s>.{1,40}?)\s+can be reached (?:now )?(?:at|on|under)\s+(?P<v>\S.*)$", _I)
_AT_VERSION = lazy_regex(
    r"\b(?:run|runs|running|use|uses|using|on|upgraded(?: from [\w.]+)?(?: to)?|updated to|moved"
    r" to|downgraded to|pinned to)\s+(?P<s>[A-Za-z][\w.+#-]{1,20})\s+(?:to\s+)?v?(?P<v>\d+(?:\.\d+)*)\b"
    r"(?=$|\s+(?:now|in|on|since)|[.,(])",
    _I,
)
_PROMOTED = lazy_regex(
    rf"^(?P<s>.{{1,40}}?)\s+(?:was |got |has been |were )?(?:promoted to|became|is now|are now|now works? as)\s+"
    rf"(?:an? |the |our |my )?(?P<v>[\w -]{{0,30}}\b(?:{JOBS})\b(?: of [\w ]{{2,30}})?)",
    _I,
)
_IS_ROLE = lazy_regex(
    r"^(?P<s>[A-Z]\w+(?: [A-Z]\w+)?|I|the user|user)(?:\s+(?:is|am|works? as)|['’](?:s|m))\s+(?:currently )?"
    rf"(?:an? |the |our )?(?P<v>[\w -]{{0,30}}\b(?:{JOBS})\b(?: of [\w ]{{2,30}})?)$"
)
_DENIES = lazy_regex(
    r"\b(?:do|does|did|is|are|was|were|has|have|had|ca|wo|should)n['’]t\b|(?<!, )(?<!and )(?<!\()\b"
    r"(?:is|are|am|do|does|did|was|has|have|['’]s) not\b|\b(?:cannot|never|neither|nor)\b",
    _I,
)
_INDEFINITE = lazy_regex(r"^(?:an?|some|his|her|their|my|our|another|different|bigger|smaller|new)\b", _I)


def english_claims(clause: Clause) -> Iterator[Claim]:
    """Claims of an English clause."""
    lowered = clause.text.lower()
    if any(word in lowered for word in _ENDS) and _NO_LONGER.match(clause.text):
        yield from _stopped(clause)
    elif _DENIES.search(clause.text) is None:
        for words, rule in _RULES:
            if any(word in lowered for word in words):
                yield from rule(clause)


def _written(clause: Clause) -> Iterator[Claim]:
    """Lines of a key and a value, and sentences about an attribute: "Owner: Kim", "the port of staging is 8080"."""
    text = _GOT_NEW.sub(r"\1's new ", clause.text)
    for pattern in (_KEY, _IS):
        if match := pattern.match(text):
            found = clause.attribute_of(match["np"])
            if found and not re.match(r"(?:not|n['’]t|never|no longer)\b", match["v"], _I):
                yield from clause.holds(*found, match["v"], changes=clause.is_new(match["np"]))
                if pattern is _KEY and (kind := kind_of(value_of(match["v"])[0])) and found[1] != "name":
                    yield from _tool_of(clause, match["v"], kind)
                return


def _tool_of(clause: Clause, text: str, kind: str) -> Iterator[Claim]:
    value, corrects = value_of(text)
    if " " not in kind and kind != value.split()[-1]:
        yield clause.turned(frozenset({WE}), "use", value, on=True, changes=corrects)


def _moved_value(clause: Clause) -> Iterator[Claim]:
    """An attribute that was changed, or something that was moved to another day: "the launch was pushed to May 3"."""
    for pattern in (_PASSIVE, _ACTIVE):
        match = pattern.match(clause.text)
        if not match:
            continue
        noun, value = match["np"], match["v"]
        found = clause.attribute_of(noun)
        if found:
            yield from clause.holds(*found, value, changes=True)
            return
        subject = clause.subject_of(re.sub(r"^(?:the|our|my)\s+", "", noun, flags=_I))
        if subject and match["verb"].lower().startswith(("handed", "transferred", "reassigned")) and value[0].isupper():
            yield from clause.holds(subject, "owner", value, changes=True)
            return
        if subject and (is_day(value) or is_time(value)):
            yield from clause.holds(subject, "day" if is_day(value) else "time", value, changes=True)
            return
        if subject and re.match(r"[$€£¥]?\d", value) and not match["verb"].lower().startswith(("moved", "went")):
            amount = bool(re.match(r"[$€£¥]", value) or re.search(r"\b(?:usd|eur|dollars|euros)\b", value, _I))
            yield from clause.holds(subject, "price" if amount else "version", value, changes=True)
            return


def _lives(clause: Clause) -> Iterator[Claim]:
    text = clause.text
    match = _LIVES.search(text) or _MOVED.search(text)
    if not match:
        return
    value, moved = text[match.end() :], "f" in match.re.groupindex
    subject = clause.subject_of(text[: match.start()])
    value = re.sub(r"^the (?=[a-z])", "a ", value)
    if subject is None or _INDEFINITE.match(value) or is_day(value) or is_time(value):
        return
    if moved and not _is_name(value, text):
        return
    value = re.sub(r"\s+from\s+.*$", "", value)
    yield from clause.holds(subject, "location", value, changes=moved)
    if moved and match["f"]:
        yield from _ended(clause, subject, "location", match["f"])


def _is_name(value: str, text: str) -> bool:
    """True if a value is written as a name, as far as the writer uses capitals."""
    return not value[0].islower() or value.startswith("the ") or not any(map(str.isupper, text[1:]))


def _works(clause: Clause) -> Iterator[Claim]:
    text = clause.text
    if match := _JOINED.search(text):
        subject = clause.subject_of(text[: match.start()])
        if subject and " for " not in text[match.end() :]:
            yield from clause.holds(subject, "employer", _before_as(text[match.end() :]), changes=True)
            if match["f"]:
                yield from _ended(clause, subject, "employer", match["f"])
    elif match := _WORKS.search(text):
        subject, value = clause.subject_of(text[: match.start()]), _before_as(text[match.end() :])
        known = value_of(value)[0]
        if subject and _is_name(value, text) and known not in NO_EMPLOYER and not is_time(value) and not is_day(value):
            yield from clause.holds(subject, "employer", value)
    elif (match := _LEFT.search(text)) and (subject := clause.subject_of(text[: match.start()])):
        yield from _ended(clause, subject, "employer", match["v"])
        yield from _ended(clause, subject, "location", match["v"])


def _before_as(text: str) -> str:
    return re.sub(r"\s+(?:as|in)\s+.*$", "", text)


def _ended(clause: Clause, subject: frozenset[str], attribute: str, text: str) -> Iterator[Claim]:
    value, _ = value_of(text)
    if value:
        yield clause.turned(subject, attribute, value, on=False)


def _owns(clause: Clause) -> Iterator[Claim]:
    text = clause.text
    if match := _HOLDS.match(text):
        yield from _held_by(clause, match["o"], match["role"].lower(), match["v"], changes=False)
    elif match := _OWNED.match(text):
        yield from _held_by(
            clause, match["o"], match["verb"].lower(), match["v"], changes=match["verb"].startswith("taken")
        )
    elif match := _OWNS.match(text):
        thing, _, former = match["o"].partition(" from ")
        takes = "tak" in match["verb"] or "took" in match["verb"]
        yield from _held_by(clause, thing, match["verb"].lower(), match["s"], changes=takes or bool(former))
    elif (match := _HANDED.match(text)) and match["v"][:1].isupper():
        yield from _held_by(clause, match["o"], "owner", match["v"], changes=True)


def _held_by(clause: Clause, thing: str, word: str, holder: str, *, changes: bool) -> Iterator[Claim]:
    subject = clause.subject_of(re.sub(r"^(?:ownership of )?(?:the |our )?", "", value_of(thing)[0] or thing, flags=_I))
    name = holder.strip()
    who = clause.subject_of(name)
    if subject and who and len(name.split()) <= 6:
        value = " ".join(sorted(who)) if name.casefold() in ("i", "me") else value_of(name)[0]
        if value:
            attribute = ROLE_OF.get(word, "owner" if word not in TITLES.split("|") else word)
            yield clause.claim(subject, attribute, value, changes=changes)
            yield clause.turned(subject, attribute, value, on=True, changes=changes)


def _measured(clause: Clause) -> Iterator[Claim]:
    """Prices, days, ports and contacts that a verb tells."""
    text = clause.text
    for pattern, attribute in ((_COSTS, "price"), (_DUE, "deadline"), (_ON_PORT, "port"), (_DEPLOYS, "target")):
        if match := pattern.search(text):
            value, before = text[match.end() :], text[: match.start()]
            if attribute == "target":
                if not is_day(value) and not is_time(value) and (words := clause.subject_of(before)):
                    yield from clause.holds(words - {WE, ME} | {"deploy"}, "target", value)
                    if is_tool(value):
                        yield clause.turned(frozenset({WE}), "use", value_of(value)[0], on=True)
                return
            subject = clause.subject_of(re.sub(r"^(?:the|our|my)\s+", "", before, flags=_I))
            if subject:
                yield from clause.holds(subject, attribute, value)
            return
    if match := _REACHED.match(text):
        if subject := clause.subject_of(match["s"]):
            yield from clause.holds(subject, "email" if "@" in match["v"] else "phone", match["v"])
        return
    match = _MEETS.search(text) or _MEETS_ON.search(text)
    if match and (is_day(text[match.end() :]) or is_time(text[match.end() :])):
        yield from _timed(clause, text[: match.start()], text[match.end() :])


def _timed(clause: Clause, before: str, value: str) -> Iterator[Claim]:
    if clause.attribute_of(before) is not None:
        return
    subject = clause.subject_of(re.sub(r"^(?:the|our|my)\s+", "", before, flags=_I))
    if subject and len(value.split()) <= 6:
        yield from clause.holds(subject, "day" if is_day(value) else "time", value)


def _prefers(clause: Clause) -> Iterator[Claim]:
    match = _PREFERS.search(clause.text)
    if not match:
        return
    subject = clause.subject_of(clause.text[: match.start()])
    if not subject:
        return
    rest, purpose, other = clause.text[match.end() :].rstrip(" ."), "", ""
    for _ in range(2):
        if found := _PURPOSE.search(rest):
            rest, purpose = rest[: found.start()], found["y"]
        if found := _OVER.search(rest):
            rest, other = rest[: found.start()], found["w"] or found["x"]
    yield from clause.tastes(subject, "prefer", rest, purpose, changes=bool(other and clause.changes))
    if other and (value := value_of(other)[0]):
        yield clause.turned(subject, "prefer", value, on=False)


def _user(clause: Clause, before: str) -> frozenset[str] | None:
    """Whoever uses something; the person and the group are one."""
    subject = clause.subject_of(before)
    if subject is None:
        return None
    return frozenset({WE}) if subject & {ME, WE} or not before.strip() else subject


def _uses(clause: Clause) -> Iterator[Claim]:
    match = _USES.search(clause.text)
    if not match:
        return
    subject = _user(clause, clause.text[: match.start()])
    if not subject:
        return
    rest, purpose, other = clause.text[match.end() :].rstrip(" ."), "", ""
    for _ in range(2):
        if found := _INSTEAD.search(rest):
            rest, other = rest[: found.start()], found["w"]
        if found := _PURPOSE.search(rest):
            rest, purpose = rest[: found.start()], found["y"]
    yield from clause.tastes(subject, "use", rest, purpose, changes=bool(other))
    if purpose:
        # Something new for one purpose ends nothing that is used for another.
        alike = clause.tastes(subject, "use", rest, changes=bool(other))
        yield from (claim if other else claim._replace(changes=False) for claim in alike)
    if other:
        yield from _ended(clause, subject, "use", other)


def _switched(clause: Clause) -> Iterator[Claim]:
    text = clause.text
    for pattern in (_WAS_REPLACED, _REPLACED, _DROPPED, _SWITCHED, _REPLACES):
        match = pattern.search(text)
        if not match:
            continue
        groups = match.groupdict()
        before = "" if pattern in (_WAS_REPLACED, _REPLACES) else text[: match.start()]
        subject = _user(clause, before)
        former, new = groups.get("f") or "", groups.get("v") or ""
        if not former and " from " in new:
            new, _, former = new.partition(" from ")
        if subject is None or is_day(new) or is_time(new) or clause.attribute_of(groups.get("what") or "") is not None:
            return
        new, _, purpose = new.partition(" for ")
        if (
            pattern is _SWITCHED
            and not re.match("switch|migrat", match[0], _I)
            and not is_tool(new)
            and not is_tool(former)
        ):
            return
        if groups.get("np"):
            yield from _succeeded(clause, groups["np"], new)
        yield from clause.tastes(subject, "use", new, changes=True)
        if purpose:
            yield from clause.tastes(subject, "use", new, purpose, changes=True)
        if former:
            yield from _ended(clause, subject, "use", former.removeprefix("using "))
        return


def _succeeded(clause: Clause, noun: str, holder: str) -> Iterator[Claim]:
    """Holder of a role, as in: Lee replaced Kim as owner of billing."""
    if found := clause.attribute_of(noun):
        yield from clause.holds(*found, holder, changes=True)


def _stopped(clause: Clause) -> Iterator[Claim]:
    """Facts that hold no more: "I no longer use vim"."""
    match = _NO_LONGER.match(clause.text)
    if not match:
        return
    rest = match["a"] or match["b"] or match["c"]
    before = match["s"] or match["t"] or match["u"] or ""
    subject = clause.subject_of(before)
    done = _DOES.match(rest)
    if subject is None:
        return
    if not done:
        value, _ = value_of(re.sub(r"^an?\s+", "", rest))
        if value and len(value.split()) <= 3:
            for attribute in ("status", "diet", "role"):
                yield clause.turned(subject, attribute, value, on=False)
        return
    verb = done["verb"].lower()
    lemma = next((lemma for stem, lemma in LEMMAS.items() if verb.startswith(stem)), re.sub("(?:ing|s)$", "", verb))
    thing = re.sub(r"^(?:an?|the|any|his|her|my|our)\s+", "", done["o"], flags=_I)
    if lemma in ("owner", "own"):
        yield from _disowned(clause, subject, before, thing)
    if lemma == "use":
        subject = _user(clause, before) or subject
    yield from _ended(clause, subject, lemma, thing)
    if lemma in ("drink", "eat", "play"):
        yield from _ended(clause, subject, "like", thing)


def _disowned(clause: Clause, holder: frozenset[str], before: str, thing: str) -> Iterator[Claim]:
    owned = clause.subject_of(value_of(thing)[0])
    name = value_of(before)[0] or " ".join(sorted(holder))
    if owned and name:
        yield clause.turned(owned, "owner", name, on=False)


def _habit(clause: Clause) -> Iterator[Claim]:
    """Habits and possessions, of which there may be many; only "no longer" ends one."""
    match = _HABIT.match(clause.text)
    if not match or not (subject := clause.subject_of(match["s"])):
        return
    verb = match["verb"].lower()
    lemma = next((lemma for stem, lemma in LEMMAS.items() if verb.startswith(stem)), verb.removesuffix("s"))
    value, _ = value_of(re.sub(r"^(?:an?|the)\s+", "", match["o"], flags=_I))
    if value and len(value.split()) <= 4:
        yield clause.claim(subject, f"{lemma}={value}", "on")


def _state(clause: Clause) -> Iterator[Claim]:
    match = _BARE_STATE.match(clause.text) or _IS_STATE.match(clause.text)
    if match and clause.attribute_of(match["s"]) is None:
        noun = re.sub(r"^(?:the|our|my)\s+", "", match["s"], flags=_I)
        if subject := clause.subject_of(noun):
            yield from clause.holds(subject, "status", match["v"])
    if (match := _DIET.match(clause.text)) and (subject := clause.subject_of(match["s"])):
        yield from clause.holds(subject, "diet", match["v"])
    if (match := _AGED.match(clause.text)) and (subject := clause.subject_of(match["s"])):
        if clause.attribute_of(match["s"]) is None and len(subject) <= 2 and (match["s"][0].isupper() or ME in subject):
            yield from clause.holds(subject, "age", match["v"])


def _named(clause: Clause) -> Iterator[Claim]:
    text = clause.text
    if match := _RENAME.search(text):
        yield from _renamed(clause, match["f"], match["v"])
    elif match := _CALLED.match(text):
        renames = bool(match["now"]) or match["verb"].lower().startswith(("rename", "rebrand")) or clause.changes
        subject = clause.subject_of(re.sub(r"^(?:the|our|my)\s+(?=\S)", "", match["s"], flags=_I))
        if subject and len(match["v"].split()) <= 6:
            yield from clause.holds(subject, "name", match["v"], changes=renames)
        if renames:
            yield from _renamed(clause, match["s"], match["v"])


def _renamed(clause: Clause, former: str, new: str) -> Iterator[Claim]:
    old, name = words_of(former), value_of(new)[0]
    if old and name and len(old) <= 6:
        yield clause.claim(old, "name", name, changes=True)
        yield clause.claim(frozenset(), f"name={' '.join(sorted(old))}", "off", changes=True)
        yield clause.claim(frozenset(), f"name={' '.join(sorted(words_of(name)))}", "on")


def _versioned(clause: Clause) -> Iterator[Claim]:
    match = _AT_VERSION.search(clause.text)
    if (
        match
        and not is_day(match["s"])
        and match["s"].lower() not in ("port", "line", "page", "version", "day", "step", "level")
    ):
        upgraded = re.match(r"up|down|mov", match[0], _I) is not None
        yield clause.claim(words_of(match["s"]), "version", match["v"], changes=upgraded)


def _role(clause: Clause) -> Iterator[Claim]:
    match = _PROMOTED.match(clause.text)
    held = match or _IS_ROLE.match(clause.text)
    if held and (subject := clause.subject_of(held["s"])) and (value := value_of(held["v"])[0]):
        yield clause.claim(subject, "role", value, changes=match is not None, single=False)


_RULES: tuple[tuple[tuple[str, ...], Callable[[Clause], Iterator[Claim]]], ...] = (
    ((":", "：", "=", "→", "->", " is ", " are ", "'s now", "’s now", "equals", "remains", "becom",
      "became"), _written),
    ((" to ", " until ", " till ", " at ", " into "), _moved_value),
    (("liv", "resid", "based", "located", "headquarter", "moved", "moving", "moves", "relocated"), _lives),
    (("work", "employed", "joined", "started", "new job", "got a job", "hired", "now at", "jobs to", "left", "quit",
      "resigned"), _works),
    (("own", "maintain", "lead", "led by", "manage", "took over", "takes over", "taken over", "taking over",
      "responsible", "in charge", "handed", "passed", "transferred", "reassigned", "gave", " of ", " for ",
      "handled by"), _owns),
    (("cost", "priced", "sell", "retail", "goes for", " due", " port ", "deploy", "host", "ship", "publish", "reached",
      " is ", " are ", "'s ", "start", "begin", "meet", "happen", "takes place", "run", "held", "open", "depart",
      "leave",      "arrive"), _measured),
    (("prefer", "favor", "favour", "would rather"), _prefers),
    (("use", "using", "runs on", "rel", "standardi", "settled on", "chose", "adopted"), _uses),
    (("switch", "migrat", "mov", "chang", "transition", "convert", "went", "ported", "swap", "replac", "exchanged",
      "substituted", "superseded", "succe", "ditched", "dropped", "abandoned", "retired", "got rid",
      "gave up"), _switched),
    (("drink", "eat", "like", "love", "enjoy", "play", "has ", "have ", "smoke", "drive", "speak", "support", "attend",
      "take"), _habit),
    ((" is ", " are ", " was ", " were ", " been ", " got ", "remains", "'s ", "’s ", "i'm", "i am", "became", "turned",
      "went", "pr", "issue", "ticket", "bug", "task", "mr", "story", "#"), _state),
    (("call", "named", "known as", "goes by", "renam", "rebrand"), _named),
    (("run", "use", "using", " on ", "on ", "upgraded", "updated", "moved", "downgraded", "pinned"), _versioned),
    (("promoted", "became", " now ", " is ", " am ", "i'm", "works as", "'s "), _role),
)  # fmt: skip

"""Words of facts of English: data alone."""

from indexer.language.fact_tables import Frames, Values

_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"


ENGLISH_VALUES = Values(
    least_or_most=("at least|at most|up to|about|around"),
    numerals=(r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"),
    scales=("k|m|bn"),
    per=("per|a|an"),
    periods=(
        r"(?:/|\b(?:per|an?|each|every)) ?(minute|hour|day|night|week|month|quarter|year|person|user|seat|head"
        "|kg|kilo|liter|litre)"
    ),
    corrects=(
        r"\s*[,(（，]?\s*\b(?:was|were|formerly|previously|before (?:it was|that)|used to be|instead of"
        r"|rather than|in place of|no longer|not|up from|down from|replacing|changed from|moved from)\b.*$"
    ),
    fresh=("now|at present|from now on|already|officially|back (?:to|in|at)"),
    lead=("currently|actually|only|just|set to|still|probably the|the"),
    days=(
        r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?s?\b|\b\d{1,2}(?:st|nd|rd"
        rf"|th)? (?:of )?(?:{_MONTHS})|\btomorrow\b|\b(?:{_MONTHS}|january|february|march|april|june|july|august"
        r"|september|october|november|december)\b|\bq[1-4]\b|\bnext (?:week|month|year|quarter)\b|\bweekend"
    ),
    hours=(r"\b\d{1,2} ?(?:am|pm|a\.m|p\.m|o['’]clock)\b|\bnoon\b|\bmidnight\b"),
    before_day=("the|next|this|every|each|early|late|mid|end of|around|about|on|at|by|half past|week of|of"),
    day_signs=("st|nd|rd|th"),
    late=(
        "now|again|instead|for now|from now on|going forward|these days|nowadays|any ?more|already|at the moment"
        "|once more"
    ),
    cuts=(
        "because|since|as of|after|so that|until further|thanks to|due to|starting|effective|according to|per our|which"
        "|who|where|while|although|though|but"
    ),
    about=(
        r"about|around|approx\.?|approximately|roughly|ca\.?|circa|nearly|almost|over|under|some|more than|less than"
        "|at least|at most|up to|close to|just over|just under|well over"
    ),
    about_behind=r"\bor so\b|\bodd\b|\bish\b",
    durations="hrs?|hours?|min|mins|minutes?|secs?|seconds?",
    asides="to|with|from|for",
    versions="version",
    of="of",
    titles=(r"\b[DMdm]r", r"\b[Mm]s", r"\bMrs", r"\b[Ss]t"),
    months="jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec",
    when=(
        r"today|yesterday|recently|currently|tonight|(?:last|this|next|past) \w+|earlier this \w+|(?:a"
        r"|two|three|\d+) \w+ ago|(?:in|on|since|from|by) (?:early |late |mid[- ])?(?:(?:jan|feb|mar"
        r"|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*|\d{4}\S*|q[1-4]|\w+day)\b.*|(?:on|since|from) \d\S*"
    ),
    denials=("not ", "n't "),
    duration_joints="and",
)

ENGLISH_FRAMES = Frames(
    days=(
        "(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?|(?:january|february|march"
        r"|april|may|june|july|august|september|october|november|december)(?= \d|[ ,]*$)"
    ),
    of_days=(
        "(?:of )?(?:january|february|march|april|may|june|july|august|september|october|november"
        "|december)|am|pm|o['’]clock"
    ),
    former="(?:up|down) from|instead of|rather than|not|was|were",
    from_former=r"\bfrom [$€£¥]?\d\S*\s+(?=(?:up |down )?to\b)",
    changed=(
        "rose|risen|raised?|increased|lowered|decreased|dropped|fell|fallen|cut|reduced|extended"
        "|shortened|bumped|climbed|grew|grown|shrank|doubled|halved|pushed|moved|shifted|postponed"
        "|delayed|deferred|upgraded|changed|set|(?:went|goes|gone) (?:up |down |back )?to|(?:up|down"
        "|back) (?:at|to)"
    ),
    somebody_changed=r"^(?:i|we) (?:have |['’]ve )?(?=\w+(?:ed|ut|et)\b)",
    now=(
        "now|currently|nowadays|these days|from now on|going forward|henceforth|today|already|just"
        "|recently|finally|only"
    ),
    light=frozenset(
        "a an the of to at in on for by from until till as and is are am was were be been being"
        " has have had do does did up down back will go goes went gone take takes took last lasts"
        " need needs run runs get gets cost costs stand stands come comes become becomes became".split()
    ),
    grammar=frozenset(
        "a an the of to at in on for by is are am was were be been has have do does did our we us".split()
    ),
    done=(
        r"^(?P<s>\S.{1,50}?) (?P<be>is|are) (?:now )?(?P<done>\w+(?:ed|en|ung|ept|ent|elt|old|ade|un"
        r"|et|ut|id)) (?P<by>by|from|via|through|with|using|in|at|on) (?P<v>\S.{0,40}?)(?: now"
        "| these days)?$"
    ),
    of_things="(?:the|our|my) ",
    places=frozenset("in at on with".split()),
    articles=frozenset("the a an our my".split()),
)

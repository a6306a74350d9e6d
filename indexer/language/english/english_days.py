"""English words of days: data alone."""

from indexer.language.base import Days

_MONTHS = "january february march april may june july august september october november december"
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_SHIFT = r"(?:(?:the |this )?(?P<shift>last|previous|coming|upcoming|next)|this)"
_WEEKDAY_SHIFT = _SHIFT.replace("last|", "last|past|")
# Short forms are written with a capital only: "sat" and "sun" are words.
_WEEKDAY = (
    rf"(?P<weekday>(?i:{_WEEKDAYS.replace(' ', '|')})|(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b\.?(?!\s[A-Z]))(?!\w)"
)
_PART_OF_DAY = r"(?:['’]s)?(?: morning| afternoon| evening| night)?"
# Of "the last week of May" today does not tell.
_NOT_OF = f"(?! of | in (?:{'|'.join(name[:3] for name in _MONTHS.split())}))"
_COUNTS = (
    {
        word: (at, at)
        for at, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
    }
    | dict.fromkeys(("a", "an"), (1, 1))
    | dict.fromkeys(("a couple of", "a couple", "couple of"), (2, 2))
    | dict.fromkeys(("a few", "few", "several"), (2, 6))
)
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_UNIT = "(?P<unit>day|night|week|fortnight|month|year|hour|minute)"

_TIME_UNITS = frozenset(
    "second seconds minute minutes hour hours day days night nights week weeks month months"
    " quarter quarters year years decade decades century morning mornings afternoon afternoons"
    " evening evenings summer winter spring autumn fall semester".split()
)
_TIME_UNIT = "(?:" + "|".join(sorted(_TIME_UNITS, reverse=True)) + r")\b"

ENGLISH_DAYS = Days(
    months=(_MONTHS,),
    lone_months={name: at for at, name in enumerate(_MONTHS.split(), 1)}
    | {name[:3]: at for at, name in enumerate(_MONTHS.split(), 1)}
    | {"sept": 9},
    weekdays={name[:size]: at for at, name in enumerate(_WEEKDAYS.split()) for size in (len(name), 3, 4, 5)},
    shifts={"last": -1, "past": -1, "previous": -1, "coming": 1, "upcoming": 1, "next": 1},
    counts=_COUNTS,
    units={"day": "day", "night": "day", "week": "week", "fortnight": "fortnight", "month": "month", "year": "year"},
    relative=(
        (r"(?i:\bthe day before yesterday\b)", "-2"),
        (r"(?i:(?<!before )\byesterday\b|\blast night\b)", "-1"),
        (r"(?i:\b(?:today|this (?:morning|afternoon|evening)|tonight)\b)", "0"),
        (r"(?i:(?<!after )\btomorrow\b)", "1"),
        (r"(?i:\bthe day after tomorrow\b)", "2"),
        (rf"\b(?i:{_WEEKDAY_SHIFT}) {_WEEKDAY}", "weekday"),
        (rf"\b{_WEEKDAY}{_PART_OF_DAY}(?: of)? (?i:{_SHIFT}) week\b", "day of week"),
        (rf"(?i:\b{_SHIFT} weekend\b)", "weekend"),
        (rf"(?i:\b{_SHIFT} week\b{_NOT_OF})", "week"),
        (rf"(?i:\b(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)? (?:of )?{_SHIFT} month\b)", "day of month"),
        (rf"(?i:\b{_SHIFT} month\b{_NOT_OF})", "month"),
        (rf"(?i:\b{_COUNT} {_UNIT}s? ago\b)", "ago"),
        (rf"(?i:\b(?:last|past) {_COUNT} {_UNIT}s?\b)", "until now"),
        (rf"(?i:\bpast(?P<count>) {_UNIT}\b)", "until now"),
    ),
    shifted_years=(rf"(?i:\b{_SHIFT} year\b(?! of ))",),
    bare_weekdays=(rf"\bon {_WEEKDAY}|\b(?:over|on|at) the weekend\b",),
    past="did|was|were|had|happened|said|went",
    latest="recently|lately|latest|newest|most recent|these days|last time",
    happening="happen(?:s|ed|ing)?|going on|went on|took place|take place",
    ordinal_ends="st|nd|rd|th",
    of_month="of",
    leads=r"as\ of|since|effective(?:\ (?:from|as\ of))?|starting|beginning|from|on|by|for|in",
    onwards="onwards?|on",
    near=(
        "today|tonight|tomorrow|yesterday|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:last|next|this) (?:week|month)"
        r"|days? ago|in \w+ days?"
    ),
    short_weekdays="Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun",
    clock_joints="on",
    articles="the",
    ambiguous_months=frozenset("may march mar".split()),
    time_words=frozenset(
        "yesterday today tomorrow tonight ago recently lately weekend weekends weekday weekdays"
        " noon midnight fortnight tues thurs".split()
    ),
    time_units=_TIME_UNITS,
    time_companions=frozenset(
        "last past next this previous coming following that same other earlier later few several"
        " couple before after from back in during over by since until at year years".split()
    ),
    hour_words=frozenset("am pm m".split()),
    time_phrases=(
        r"\b(?:last|past|next|this|previous|coming|following|that|same|other|earlier|later)[ -]"
        rf"(?:\w{{1,12}} (?:of )?)?{_TIME_UNIT}"
        rf"|\b(?:few|several|couple|couple of)[ ]{_TIME_UNIT}"
        r"|\b(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|decades?|night|morning|evening)"
        r" (?:later|earlier|before|after|from now|back)\b"
        r"|\b(?:in|during|over|by|since|until|before|after)(?: the)?(?: early| late)?"
        r" (?:morning|afternoon|evening|night|summer|winter|spring|autumn|fall)s?\b"
        r"|\b(?:at night|years? of (?:19|20)\d\d)\b"
    ),
    calendar_leads=("in|on|of|by|from|last|next|this|since|until|till|before|after|during|through|early|late|mid"),
    before_months="in|on|of|since|until|by|during|last|next|this|early|late|mid|before|after",
    day_joints="and|or|to",
    short_leads="on",
    title_words=frozenset("mon tue tues wed thu thur thurs fri sat sun st nd rd th".split()),
)

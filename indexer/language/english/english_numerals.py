"""English words of numbers and of times of day: data alone."""

from indexer.language.base import Numerals

_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"

ENGLISH_NUMERALS = Numerals(
    first_twelve=("one two three four five six seven eight nine ten eleven twelve",),
    others={"noon": 12},
    teens={word: at for at, word in enumerate(_TEENS.split(), 13)},
    tens={word: 10 * at for at, word in enumerate(_TENS.split(), 2)},
    scales={
        "hundred": 100,
        "thousand": 1_000,
        "million": 1_000_000,
        "billion": 1_000_000_000,
        "dozen": 12,
        "score": 20,
    },
    single={"zero": 0, "a": 1, "an": 1, "once": 1, "twice": 2, "half": 0.5, "hundred": 100, "thousand": 1_000},
    noon="noon|midday|midnight",
    clock_hints=(
        r"past|to|after|before|half|clock|noon|midday|midnight|h\b|\dh|hours|hrs|\d\.[0-5]\d"
        r"|[-\s](?:ten|fifteen|thirty|forty|fifty|twenty)"
    ),
    day_leads="the|on",
    day_ends="st|nd|rd|th",
    shares="(?: out)? of (?:the )?",
    minute_words={
        "quarter": 15,
        "a quarter": 15,
        "half": 30,
        "five": 5,
        "ten": 10,
        "twenty": 20,
        "twenty-five": 25,
        "twenty five": 25,
    },
    minute_units="minutes?|mins?",
    minute_ways={"past": 1, "after": 1, "to": -1, "before": -1, "till": -1, "until": -1},
    half_hours="half",
    full_hours="o['’]?clock",
    minutes_behind=(
        r"oh[\s-]five|ten|fifteen|twenty|twenty[\s-]five|thirty|thirty[\s-]five|forty|forty[\s-]five"
        r"|fifty|fifty[\s-]five"
    ),
    no_hours="percent|seconds?|minutes?|days?",
    day_hours="hours|hrs",
    articles="an?",
    joints="and",
    halves=frozenset(("half",)),
)

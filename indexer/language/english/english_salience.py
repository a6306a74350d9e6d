"""English words of what is worth keeping: data alone."""

from indexer.language.base import Salience

_MARKS = {
    "number": """
        two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred thousand million
        dozen twice half couple
    """,
    "decision": """
        decided decide decision decisions agreed chose chosen approved settled switched switching switch adopted
        instead picked confirmed rejected selected
    """,
    "rule": """
        always never must mustn't shouldn't cannot required requires policy rule rules forbidden ensure avoid only
        mandatory don't prohibited convention
    """,
    "preference": """
        prefer prefers preferred favorite favourite fave faves favorites favourites enjoy enjoys hate hates dislike
        dislikes allergic allergy vegetarian vegan fan rather usually
    """,
    "plan": """
        plan plans planning going gonna will i'll we'll deadline due scheduled schedule upcoming tomorrow todo
        remind promise promised intend aim goal goals hoping want wants budget
    """,
    "event": """
        went got bought made started joined finished visited took won lost signed moved met adopted found tried
        learned saw came gave had began built wrote ran sold paid broke quit left hired passed accepted applied
        attended organized organised volunteered participated created painted played watched cooked baked hiked
        travelled traveled graduated launched opened received booked ordered spent hosted completed published
        submitted taught grew caught drove flew planted named called been new first since ago born married engaged
        divorced retired works work lives live
    """,
    "outcome": """
        fixed failed fails error errors bug cause caused because deployed merged created released migrated crashed
        resolved upgraded installed configured enabled disabled removed renamed reverted measured limit default runs
        uses
    """,
    "open": "blocked pending unclear unresolved waiting unknown undecided outstanding missing",
    "relation": """
        mom dad mum mother father brother sister son daughter wife husband kid kids child children friend friends
        boss colleague colleagues family dog dogs cat cats pet pets partner grandma grandpa grandmother grandfather
        aunt uncle cousin nephew niece neighbor neighbour girlfriend boyfriend fiance puppy baby parents roommate
        customer client manager doctor teacher coach team
    """,
    "other": "you your you're you've you'll yours u ya you'd yourself",
    "applause": """
        great awesome amazing cool wow nice glad proud sounds thanks thank congrats congratulations appreciate
        wonderful fantastic incredible inspiring luck agree totally definitely absolutely lovely beautiful looks
        sweet bet happy impressive brave adorable cute gorgeous stunning yeah yay rock welcome kind wish
    """,
    "feeling": """
        support positive journey joy passion passionate dedication motivated motivating inspire inspired inspires
        hard difference impact strength strong keep believe together moments special important memories peace
        rewarding fulfilling growth meaningful life dreams bond connection experience feel feeling feels felt really
        makes make
    """,
}

ENGLISH_SALIENCE = Salience(
    introduced=(
        r"\b(?i:my (?:full |last |first )?name(?:['’]s| is))|\b(?i:call me )[A-Z]|\b(?i:i(?:['’]m"
        r"| am) )[A-Z][a-z]+|\b(?i:this is )[A-Z][a-z]+ (?:from|here|speaking)|\b(?:is called|named) "
    ),
    introductions=("name", "call", "i'm", "i’m", "i am", "this is"),
    personal=frozenset(
        "my our i'm i’m birthday deadline address phone located owner contact budget due stored live lives allergic "
        "named".split()
    ),
    stressed=frozenset("remember fyi important importantly btw reminder".split()),
    stressed_phrases=("note that", "keep in mind", "by the way", "for the record"),
    mark_words={mark: frozenset(words.split()) for mark, words in _MARKS.items()},
)

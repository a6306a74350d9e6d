"""English words before a colon, and of units: data alone."""

from indexer.language.base import Labels, PersonNames, Units

_IS = r"(?:is|are|was|were|['’]s|do|does|did|can|could)"
# The more special stand first: "where did I buy" before "where".
_ASKING = {
    "shop": (
        rf"\bwhere {_IS}\b.*\b(?:buy|bought|get|got|purchase[ds]?|order(?:ed)?|come from)\b"
        r"|\b(?:which|what) (?:shop|store)|\bwho sold\b"
    ),
    "employer": r"\bwork(?:s|ing|ed)? (?:for|at)\b|\bemploy(?:s|ed)\b|\bwhere (?:does|do|did)\b.*\bwork\b",
    "job": (r"\bfor a living\b|\bprofession\b|\bwhat (?:does|do|did)\b.*\bdo\W*$|\bwhat(?: is|'s|’s)\b.*\bjob\b"),
    "home": rf"\bwhere {_IS}\b.*\b(?:lives?|living|resides?)\b",
    "origin": rf"\bwhere {_IS}\b.*\bfrom\b",
    "place": rf"\bwhere {_IS}\b|\b(?:in|on) (?:which|what) (?:room|place|shelf|drawer|box)\b",
    "price": r"\bhow much\b.*\b(?:costs?|pay|paid|spend|spent|is|are|was|were)\b|\bhow expensive\b",
    "birth": r"\bhow old\b|\bwhen (?:was|were|is)\b.*\bborn\b",
    "brand": r"\bwho (?:made|makes|built|produced)\b|\b(?:which|what) (?:brand|make|maker|manufacturer)\b",
    "contact": r"\bhow (?:can|do|could|should) (?:i|we|you) (?:reach|contact|call|phone)\b",
    "size": r"\bhow (?:big|large|tall|high|wide|long)(?: is| are|'s)\b",
    "weight": r"\bhow heavy\b|\bhow much (?:does|do|did)\b.*\bweigh\b",
    "owner": r"\bwho owns\b|\bwhose\b|\bwho (?:does|do)\b.*\bbelong\b",
    "lead": (
        r"\bwho (?:is|['’]s|are) (?:responsible|in charge)\b"
        r"|\bwho (?:looks after|takes care of|maintains|runs|leads|manages)\b"
    ),
    "spouse": r"\bwho (?:is|['’]s|was)\b.*\bmarried to\b",
}
_ANSWERS = {
    "shop": "bought purchased shop store seller vendor dealer supplier retailer source",
    "employer": "employer company firm organisation organization workplace works employed",
    "job": "job role position profession occupation title work",
    "home": "lives home city town address residence resides based",
    "origin": "from origin hometown birthplace nationality country",
    "place": """
        location located place room stands stand stored kept lies hangs sits shelf drawer box position address where
    """,
    "price": "cost costs price paid rent fee rate amount",
    "birth": "born birthday birthdate birth age built",
    "brand": "brand maker make manufacturer model producer builder",
    "contact": "phone telephone tel mobile cell email mail contact",
    "size": "size dimensions height width length area measurements",
    "weight": "weight weighs",
    "owner": "owner owned belongs",
    "lead": "owner responsible lead leader maintainer manager contact head",
    "spouse": "spouse wife husband partner married",
}

ENGLISH_LABELS = Labels(
    notes=frozenset(
        "note notes todo fixme nb ps warning caution tip hint important update edit example http https".split()
    ),
    addresses=frozenset("ftp mailto".split()),
    remarks=frozenset(
        "error rule result task goal question answer observation thought action input output step status summary "
        "remember fyi".split()
    ),
    subjects=frozenset(
        """
        action actions agenda answer assistant background bug cause caution changes conclusion context date deadline
        decision decisions details edit error example expected fact fix fyi goal hint idea important info input
        issue issues key link log logs message name next note notes option output password path plan problem ps
        question reason remember reminder request requirement requirements result results rule rules secret solution
        status step steps subject summary task tasks time tip title todo token update url usage user version warning
        """.split()
    ),
    asking=_ASKING,
    answers={kind: frozenset(words.split()) for kind, words in _ANSWERS.items()},
)

ENGLISH_UNITS = Units(
    times={
        0.001: "msec|millisecond|milliseconds",
        1: "sec|secs|second|seconds",
        60: "min|mins|minute|minutes",
        3_600: "hr|hrs|hour|hours",
        86_400: "day|days",
        604_800: "week|weeks",
        2_592_000: "month|months",
        31_536_000: "year|years",
    },
    sizes={1: "bytes|byte"},
    counts={1e3: "thousand", 1e6: "million", 1e9: "billion"},
    money={"eur": "euro|euros", "usd": "dollar|dollars", "cny": "yuan"},
    others={
        "%": "percent|pct",
        "token": "token|tokens",
        "char": "char|chars|character|characters",
        "row": "row|rows",
        "user": "user|users",
        "request": "request|requests",
        "connection": "connection|connections",
    },
)

ENGLISH_NAMES = PersonNames(
    words=frozenset(
        "amber angel april art ash august autumn bill bishop brook buck chance chase chip clay"
        " cliff crystal dale dawn dean don drew eve faith fern flora ford forest frank ginger"
        " grace grant guy harmony heather holly hope iris ivy jade jasmine jewel joy june justice"
        " kit lance lane lily mark max may melody mercy miles misty nick olive opal page pat"
        " patience pearl penny peg pierce poppy porter ray reed rich river robin rock rod rose"
        " rowan ruby rusty sage sally sandy sky skip sonny star stone sue summer tab trinity trip"
        " violet wayne will winter young anger baker black brown bush cook cross fields fox gray"
        " green hall hill king lake long love moon park price rice short small smith snow walker"
        " ward west white wolf wood woods".split()
    ),
    anybody=frozenset(
        "again all alexa amigo amigos angel anyway babe baby beautiful boss bro brother bud buddy"
        " champ chef chief coach crew dad daddy darling dear dearest doc doctor dude everybody"
        " everyone fam fella fellas folks friend friends gang gentlemen girl girls google gorgeous"
        " gosh grandma grandpa guys handsome hey hi hello hon honey kids ladies lady love lovely"
        " madam man mate mom mommy morning mum neighbor neighbour night pal partner people"
        " professor siri sir sis sister son star stranger sunshine sweetheart sweetie team thanks"
        " there today tomorrow tonight user welcome world wow yeah yes yo assistant friday monday"
        " saturday sunday thursday tuesday wednesday".split()
    ),
    no_parts=frozenset("mr mrs ms miss dr prof sir the of and bin jr sr".split()),
    cries="oh|aw|aww|wow",
    greetings=(
        "hey|hi|hello|hiya|dear|(?:good[ ])?(?:morning|afternoon|evening|night)|thanks|thank[ ]you"
        "|bye|welcome(?:[ ]back)?"
    ),
    greeting_ends="there|again|so[ ]much|a[ ]lot|a[ ]bunch",
    no_capitals=frozenset(
        "user assistant the this that these those when where while after before since until with"
        " without from then there they their his her its our your not never always please deploys"
        " deploy monday tuesday wednesday thursday friday saturday sunday january february march"
        " april may june july august september october november december english german french"
        " spanish italian portuguese dutch swedish polish russian turkish japanese korean chinese".split()
    ),
)

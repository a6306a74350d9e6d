"""Words of facts of English: data alone."""

from indexer.language.fact_tables import Clauses, Frames, Values

_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"

ENGLISH_CLAUSES = Clauses(
    clause_ends=(
        r"(?<=[.!?])(?<!\b[DM]r\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)[\""
        r"'”’)]?\s+(?=["
        r"\""
        r"'“(\[]?[A-Z0-9\u4e00-\u9fff])|,?\s+(?:but|and|so|then)\s+(?=(?:(?:I|we|she|he|they|it) )?(?:now"
        "|no longer|currently|instead|(?:works?|lives?|uses?|prefers?|moved|joined|switched|owns?|costs?|drives?"
        r"|stud(?:y|ies)|plays?|is|are|am)\b))|,\s+(?=[A-Z][a-z]+ (?:is|took|takes|now|has)\b)|,\s+(?=(?:now"
        r"|currently|she|he|they|I|we|it|no longer)\b)|,\s+(?=(?:my|our|his|her|their|the) (?:[\w-]+ ){1,3}(?:is"
        r"|are) now\b)|(?:,|,? and)\s+(?=(?:my|our|his|her|their) [\w-]+ is\b)"
    ),
    reported_or_asked=(
        r"[\"”」],?\s*(?:said|says|asked|joked|claimed|wrote)\b|\b(?:said|says|joked|claimed|wrote)[,:]?\s*[\"“]"
    ),
    corrections=(
        "change of plans?|plans? changed|correction|corrected|update[ds]?|edit(?:ed)?|errat(?:um|a)|fix"
        "|change[ds]?|news|rename[ds]?|actually|from now on|going forward|henceforth|as of (?:now|today)"
    ),
    openings=(
        "please|so|well|ok|okay|fyi|btw|note|heads[- ]up|reminder|fact|good news|also note|and|but|then|remember"
        r"|today|yesterday|recently|last \w+|this \w+|decided|decision|since \w+"
    ),
    as_of=(r"\b(?:as of|since|effective|from|on)\s+(\d{4}-\d{2}-\d{2})\b,?"),
    in_year=(r"\b(?:in|until|till) ((?:19|20)\d\d)\b"),
    now=(
        r"\b(?:now|no longer|any ?more|instead|nowadays|these days|from now on|going forward|henceforth"
        r"|correction|starting)\b"
    ),
    not_same=("not the same(?: thing)?|both (?:are true|hold)|different things"),
    speaks=(r"(?:.*\s)?(?:I|[Ww]e|[Mm]y|[Oo]ur)\b"),
    genitives=(r"\b(?:of|for)\b|['’]s\b"),
    turns=("user|human|assistant|ai|system|tool|q|a"),
    former=("was|formerly|previously|before|not"),
    former_words=(r"\b(?:formerly|previously) \w+$"),
    somebody=(r"\b(?:he|she|it|they|him|her|his|their|its|this|that|these|those|there|you|your|one)\b"),
    of_value=(
        "was|were|formerly|previously|before|since|from|as of|until|till|now|new|currently|updated|changed|about"
        r"|approx|ca|per|incl\w*|excl\w*|not|no longer|instead|up|down|starting|effective|confirmed|tbc|see"
        r"|used to|old|replac\w+|moved"
    ),
    change_logs=("change[-_ ]?log|changes|history|releases?|release[-_ ]?notes|news"),
    hedges=(
        r"if|would|could|might|maybe|perhaps|possibly|probably|consider\w*|thinking (?:of|about)|wonder\w*"
        r"|plan(?:s|ned)? to|planning|wants? to|would like|hop(?:es?|ing) to|wish\w*|should|unless|whether"
        r"|used to|formerly|previously|originally|initially|back then|at the time|suppose|imagine|e\.g|propos\w+"
        r"|suggest\w*|discuss\w*|decide (?:if|on)|not sure|rumou?r|also|too|as well|another|second(?:ary)?"
        "|additionally|besides|either|sometimes|occasionally|part[- ]time|on weekends|in (?:summer|winter"
        "|the (?:summer|winter|morning|afternoon|evening))|during|when (?:i|we|she|he|they) (?:was|were)"
        r"|as a (?:child|kid|student|teenager)|tried|trying|try|evaluat\w+|test(?:ed|ing)|learned|almost|nearly"
        r"|never|every other|alternat\w+|visiting|visited|temporarily|(?<!years )(?<!year )old|former|previous"
        r"|fallback|draft of|backup (?:\w+ )?(?:phone|number|email|address|server|host|owner|contact|editor"
        "|database|plan)"
    ),
    between=r"and|vs\.?",
    changes=("now|currently|nowadays|these days|from now on|going forward|henceforth|already|any ?more|instead"),
    conjunctions="because|since|so|but|while|whereas|although|though|if|unless|when|which",
    hour_ends="[ap]m",
    asks=(
        "what|where|who|whose|when|which|how|why|do|does|did|is|are|can|could|will|should|has|have"
        "|todo|ask|remind|remember to|check|verify|confirm|find out"
    ),
    hedges_written="may",
    leads=(
        "((?:[Mm]y|[Oo]ur|[Tt]he|[Hh]is|[Hh]er|[Tt]heir) [a-z]+|[A-Z][a-z]+)(?= (?:[a-z]+ed|left|got"
        r"|gave|sold|bought|took|quit|lost|had|is|has)\b)"
    ),
    third_person=r"(?:now |currently |then )?(?:is|has|[a-z]{3,}s)\b",
    joints="and|but|so|then",
    roles=frozenset("user human assistant".split()),
    fillers=(
        r"(?:^|\s+)(?:has|have|had|is|are|am|was|were|be|been|being|got|gets|will|just|recently"
        "|finally|now|currently|officially|already|still|really|actually|then|both|all|['’](?:ve|s|m"
        "|re|d|ll))$|['’](?:ve|s|m|re|d|ll)$"
    ),
)


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

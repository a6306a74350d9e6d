"""Words of clauses of English: data alone."""

from indexer.language.fact_tables import Clauses

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

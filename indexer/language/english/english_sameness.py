"""English words by which two sentences say the same: data alone."""

from indexer.language.base import Sameness

_SAID = "said|says|stated|states|mentioned|mentions|noted|notes|reported|reports|explained|wrote|pointed out|added"
_WEEKDAYS = {
    short: day
    for day, shorts in {
        "monday": "mon", "tuesday": "tue tues", "wednesday": "wed", "thursday": "thu thur thurs", "friday": "fri",
        "saturday": "sat", "sunday": "sun",
    }.items()
    for short in shorts.split()
}  # fmt: skip
_MONTHS = dict(
    zip(
        "jan feb mar apr jun jul aug sep sept oct nov dec".split(),
        "january february march april june july august september september october november december".split(),
        strict=True,
    )
)
_SAME_WORDS = {
    **_WEEKDAYS, **_MONTHS, "cannot": "can not", "cant": "can not", "dont": "do not", "doesnt": "does not",
    "didnt": "did not", "isnt": "is not", "arent": "are not", "wasnt": "was not", "wont": "will not",
    "can't": "can not", "won't": "will not", "shan't": "shall not", "ain't": "is not", "let's": "let us",
    "okay": "ok",
}  # fmt: skip
ENGLISH_SAMENESS = Sameness(
    asked_notes=(r", asked \"[^\"\n]{1,100}\""),
    decided=(r"(?:the user|we|i) (?:have |has )?(?:decided|agreed|confirmed|asked|wants) that (?=\S)"),
    oneself=(r"\b(?:i|me|my|mine|myself|you|your|yours)\b"),
    no_subject=(
        r"(?:\w+ed|am|was|been|bought|went|got|had|have|has|made|took|saw|met|left|lost|won|found|felt|ate|drank"
        "|gave|grew|began|built|wrote|ran|sold|paid|broke|quit|loves?|likes?|hates?|prefers?|wants?|needs?"
        "|lives?|works?|enjoys?|owns?|plays?|drinks?|eats?|studies|allergic|afraid|tired|happy|sorry|glad|born"
        "|pregnant|vegetarian|vegan|from|going|moving|working|living|planning|thinking|looking|trying|learning"
        "|reading|getting|having|starting|feeling|making|staying|hoping|buying|never|not|no|just|always|usually"
        "|used)"
    ),
    negations=(
        "(?:^| )(?:not|no|never|none|nobody|nothing|neither|nor|without|unless|except|only|if|former|formerly"
        "|stop|stopped|cancel|cancelled|canceled|deprecated|obsolete|instead|longer|false|wrong|untrue|doubt"
        "|maybe|perhaps|rejected|avoid)(?= |$)"
    ),
    frames=(
        "(?:(?:the |our )?(?:user|human|assistant|agent|bot)|i) (?:(?:has|have|also|just"
        rf"|already) )?(?:(?:{_SAID}) that\b|(?:said|says|wrote|mentioned|noted|stated)\b[,:]?(?! (?:to|no\b))"
        r"|told (?:me|us|you|the (?:user|assistant|agent))(?: that\b|[,:]))[,:]? (?=\S)"
        r"|(?:please )?(?:(?:remember|note|keep in mind|be aware|bear in mind)(?: that\b|:|,)|(?:reminder|note"
        r"|fyi|nb):) (?=\S)|(?:according to (?:the )?user|for the record|just so you know|by the way|btw|please"
        r"|ok|okay|yes|yeah|right|well|sure|also|so|and)(?:,|:) (?=\S)"
    ),
    topics=frozenset(
        """
    action address agenda alternative api app backend backup branch budget bug build cause ci client cloud config
    context database date deadline decision default dev development domain email end endpoint env environment
    error example exception file fix frontend goal host id idea important info issue key language limit link local
    location mobile model name next note open option owner path phone plan policy port preference prod production
    project question qa reason release reminder repo requirement result risk rule sandbox schedule server service
    solution staging start status step subject summary task team test testing time tip title todo token topic
    update url version warning web website abandoned avoid cancelled canceled declined deprecated disabled done
    draft false former maybe never no not obsolete old outdated planned previously proposed rejected unclear
    unconfirmed untrue was wrong
    """.split()
    ),
    movable=frozenset(
        "on in at with by during for since until before after when if today tomorrow yesterday every next last mo"
        "nday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays sat"
        "urdays sundays".split()
    ),
    swapped=frozenset("on in at with by during for since until".split()),
    fixed=frozenset("and or but not no never only while because than nor unless except without then".split()),
    no_names=frozenset("he she they it we you who nobody someone somebody everyone this that user the".split()),
    users=frozenset("client customer human user".split()),
    assistants=frozenset("agent ai assistant bot".split()),
    personal=frozenset("i me mine my myself our ours ourselves us we you your yours".split()),
    turning=frozenset(
        "avoid before but cancel canceled cancelled deprecated doubt except false former formerly from had "
        "if instead longer maybe neither never no nobody none nor not nothing obsolete once only originally "
        "perhaps previously rejected stop stopped till unless until untrue used was were without wrong".split()
    ),
    speakers=frozenset("i me my mine myself".split()),
    listeners=frozenset("you your yours yourself".split()),
    empty=frozenset(
        "we us our ours they their is are am be being 's do does will that this it there so then and also as well go "
        "goes".split()
    ),
    day_leads="on|said on|at",
    named_reports=(
        r"(?P<name>[A-Z][\w'’-]{1,23}(?: [A-Z][\w'’-]{1,23})?)"
        rf" (?:(?:{_SAID}) that|(?:said|says|wrote)[:,]) (?=\S)"
    ),
    same_words=_SAME_WORDS,
    shortened={"n't": "not", "'s": "is", "'re": "are", "'ll": "will", "'ve": "have", "'m": "am", "'d": "would"},
    unsaid=frozenset("a an the please also".split()),
    assistants_named="assistant|agent|bot",
    clause_joints=" and (?=(?:my|your|the|our|i|you|we) )",
)

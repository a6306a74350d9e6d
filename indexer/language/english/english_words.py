"""Words of English: data alone."""

from indexer.language.base import Replies, Sections

ENGLISH_REPLIES = Replies(
    option_words=("[Oo]ption|OPTION|Variant[e]?|Plan"),
    or_words=(r"\s+(?:or|oder|ou|o)\b"),
    or_labels=(r"(?:[,;]|\s+or\b)\s*[A-H1-9][.:]\s"),
    assents=(
        "yes|yep|yeah|yup|sure|ok|okay|okey|k|kk|good|very good|great|perfect|nice|excellent|awesome|wonderful"
        "|brilliant|lovely|fine|fine by me|fine with me|cool|exactly|right|correct|agreed|deal|sold|approved"
        "|confirmed|accepted|works|works for me|that works|that is good|that's good|all good|looks good"
        "|looks great|looks good to me|sounds good|sounds great|sounds right|good idea|good plan|lgtm|sgtm"
        "|ship it|go for it|go|go on|go ahead|proceed|please do|please go ahead|do it|do that|do so|make it so"
        "|of course|absolutely|definitely|certainly|by all means|as you say|as you suggest|i agree|i approve"
        "|i confirm|be my guest|why not|alright|all right|aye|y|\\+1|yes please|great thanks|good thanks"
        "|perfect thanks|thanks good|happy with that|i like it|i'm happy with that"
    ),
    refusals=(
        "(?:i['’]?m|i am|we are|we['’]re)\\s(?:very |so |really |truly )?(?:sorry|afraid|unable|not able"
        "|not allowed)|(?:very |so )?sorry\\b|(?:my |i )?apolog|i\\s(?:can['’]?t|cannot|can not|won['’]?t"
        "|will not|could ?n['’]?t|must decline)\\b|i\\s(?:do not|don['’]?t)\\s(?:have|see|know what|understand)\\b"
        "|as an? (?:ai|large language|language) |unable to\\b|there (?:is|was) (?:no|not enough"
        "|nothing)\\b.{0,40}(?:conversation|summar|record|messages|content)|no (?:conversation|content|messages"
        "|text)\\b|please (?:provide|share|paste|send)\\b|(?:can|could|would) you (?:please )?(?:provide|share"
        "|paste|clarify|tell me)\\b|(?:how|what) (?:can|may|would|should) (?:i|you)\\b.{0,40}\\?|this (?:request"
        "|content|conversation) (?:violates|goes)"
    ),
    denials="no|nope|nah|not yet|no thanks|no,? thank you|don['’]t|do not|stop|cancel(?: it| that)?",
    go_on=(
        "continue|continuing|go on|carry on|keep going|keep at it|keep it going|resume|retry|try again"
        "|try it again|again|pick up(?: from)? where you (?:left off|stopped)|go|proceed|move on|onwards?|next"
    ),
    go_on_ends=(
        "please|now|then|on|again|working|from (?:here|there|where you (?:left off|stopped|were|are))"
        "|where you (?:left off|stopped|were)|(?:with|on) (?:it|that|this|the (?:task|work|job|rest|plan))"
        "|(?:with |on )?your (?:work|task)|the (?:task|work)|until (?:it is|you are|it['’]s|you['’]re"
        "|everything is)? ?(?:done|finished|complete)"
    ),
    go_on_leads="ok|okay|yes|yeah|right|good|great|fine|thanks|thank you|please|pls|now|and|so|just|you can",
    thanks="thanks|thank you|please|then|so|now",
    all_options="both(?: of them)?|all(?: of (?:them|these|the above))?|the lot",
    ordinals={1: "first|1st|former", 2: "second|2nd", 3: "third|3rd", 4: "fourth|4th", -1: "last|latter|final"},
    before_label=(
        "ok|okay|yes|let['’]?s|i['’]?d|i|would|will|want|we|prefer|choose|chose|pick|select|take|use|try|do|go|going|with"
        "|for|say|please|the|number|no|nr|option|choice|variant|version|plan|answer|and|or"
    ),
    after_label="please|one|ones|option|choice|then|thanks|thank you|it is",
    and_words="and",
    but_words="but|and|with|without",
    refusal_leads="well|hi|hello|hmm|unfortunately|regrettably",
)


ENGLISH_SECTIONS = Sections(
    names={
        "goal": (
            "goal|goals|objective|objectives|aim|purpose|task|the task|main task|primary request|request|user goal"
            "|intent|what the user wants|mission|overview"
        ),
        "constraints": (
            "user constraints|constraints|constraints and preferences|constraints and rules|constraints rules|rules"
            "|user rules|preferences|user preferences|requirements|restrictions|limits|guidelines|user requirements"
        ),
        "decisions": "decisions|decision|key decisions|decisions made|agreements|choices",
        "progress": "progress|status|state|current state|current status|work state|work status",
        "done": (
            "done|completed|finished|accomplished|accomplishments|what was done|work done|work completed|results"
            "|solved|resolved|completed work|completed tasks"
        ),
        "in progress": "in progress|ongoing|current work|currently|active|work in progress|wip|underway|working on",
        "failed": (
            "failed attempts|failed|failures|errors|errors and fixes|tried and failed|what failed|what did not work"
            "|unsuccessful attempts|dead ends|problems|issues"
        ),
        "blocked": "blocked|blockers|blocking|waiting|on hold|stuck",
        "asks": (
            "open asks|open questions|pending user asks|pending asks|questions|unanswered|unanswered questions"
            "|pending|outstanding questions|pending questions|open requests"
        ),
        "todos": (
            "open todos|todos|todo|to do|to do list|remaining|remaining work|remaining tasks|open tasks|pending tasks"
            "|tasks|backlog"
        ),
        "next": "next step|next steps|next|next move|next action|next actions|what is next|what s next|upcoming|plan",
        "files": "relevant files|files|files and code|important files|key files|modified files|file list|files touched",
        "identifiers": "exact identifiers|identifiers|ids|references|exact values",
        "context": (
            "context|critical context|important context|background|facts|key facts|important details|details|notes"
            "|info|information|important information|additional context|technical context|key information"
            "|technical concepts|summary|lookup hints"
        ),
    },
    headings={
        "TURN": "this turn",
        "RULES": r"constraint|preference|\brules?\b|requirement",
        "DECISIONS": "decision|decided",
        "OPEN": "open ask|open todo|open question|pending|unanswered",
        "FAILED": "fail|error|blocked",
        "PLANS": "in progress|active|next|current state|current work|remaining|todo",
        "DONE": r"\bdone\b|completed|accomplished|progress",
        "GOAL": r"\bgoals?\b|objective|request",
        "CONTEXT": r"\bcontext\b(?<!critical context)",
    },
)

"""English words of statements: questions, outcomes, rules, decisions and orders: data alone."""

from indexer.language.base import Outcomes, Questions, Statements

_ORDER_VERBS = (
    "accept|add|analy[sz]e|answer|apply|approve|archive|ask|book|bring|build|bump|buy|call|cancel|change|check"
    "|clean|close|commit|compare|configure|confirm|continue|convert|copy|count|create|cut|debug|delete|deploy"
    "|describe|design|disable|document|draft|drop|enable|explain|export|fetch|find|finish|fix|format|forward"
    "|generate|get|give|go|hold|ignore|implement|import|install|investigate|invite|join|keep|leave|let|list|log"
    "|look|make|mark|measure|merge|migrate|move|note|offer|open|order|pay|pick|pin|plan|port|post|prepare|print"
    "|publish|push|put|read|rebase|refactor|refund|reject|remind|remove|rename|replace|reply|reproduce|reserve"
    "|reset|restart|restore|retry|return|revert|review|rewrite|run|save|say|schedule|search|send|set|ship|show"
    "|skip|sort|split|start|stop|store|suggest|summari[sz]e|switch|take|tell|test|translate|try|turn|undo|update"
    "|upgrade|upload|use|verify|wait|wire|wrap|write"
)

ENGLISH_OUTCOMES = Outcomes(
    exit_words=(r"\bexit(?:ed)?(?:[ _-]?with)?(?:[ _-]?(?:code|status))?|\breturn[ _-]?code"),
    command_exit_words=("exit(?:ed)?(?: with)?[ _]?(?:code|status)?|return[ _]?code"),
    failure_starts=(
        r"[\w.]{0,60}(?:Error|Exception|Panic)\b|[Ee]rror\b|ERROR\b|FAILED\b|FATAL\b|[Ff]atal:|panic:|E[ ]{3}"
        r"|npm[ ]ERR!|[Ff]ailed\b|[Pp]ermission[ ]denied|Traceback"
    ),
    failure_lines=(
        r"^[^\n:]{1,80}:[^\n]{0,80}(?:command[ ]not[ ]found|[Nn]o[ ]such[ ]file|[Pp]ermission[ ]denied"
        r"|[Cc]onnection[ ]refused)[^\n]{0,120}"
    ),
    no_failures=(r"\b(?:0|no) (?:errors?|failed|failures?)\b"),
    error_pages=(
        r"[\w.]{0,40}(?:error|exception)\b[^\n]{0,40}[:：]|(?:error|exception|traceback|fatal|http) ?[:(\d]"
        "|(?:request|connection|upstream|call) (?:failed|timed out|error)|(?:rate limit|quota|context length"
        "|maximum context|too many requests|internal server error|service unavailable|bad gateway|overloaded"
        r"|insufficient)\b|(?:i'?m|i am|we'?re) (?:very )?(?:sorry|unable)|sorry,|i (?:can(?:'t|not)"
        r"|could ?n[o']t)\b"
    ),
    not_failed=(r"\b(?:0|no|without|zero) (?:errors?|fail(?:ures?|ed)?|exceptions?|warnings?)\b"),
    error_lines=(
        r"^(?:error|fatal|warn(?:ing)?|panic|e {2}|npm err!|err!|\[(?:error|warn|fatal)|traceback"
        r"|\d{4}-\d\d-\d\d[t ]\d\d:)|^\W*\w*(?:error|exception)\b ?[:：(]"
    ),
    outcomes=(
        r"\b\d+ (?:tests? )?(?:passed|failed|errors?|warnings?|failures?)\b|\bexit(?:ed)?(?: with)?(?: code"
        r"| status)?[ :=]+\d|\bbuild (?:succe|fail)|\b(?:succeeded|successful(?:ly)?|deployed|published)\b"
        r"|\w*(?:error|exception)\b ?:"
    ),
    exit_only=("exit(?:ed)?(?: with)?(?: code| status)?|return code"),
    fine=("ok|okay|done|yes|true|success|successful|successfully|succeeded|accepted|complete|completed|finished"),
    deeds=(
        "sent|saved|stored|updated|created|deleted|removed|written|added|delivered|received|applied|queued"
        "|scheduled|acknowledged|posted|moved|copied|renamed"
    ),
    seconds=("s|ms|seconds"),
)

ENGLISH_QUESTIONS = Questions(
    asking_when=(
        r"^\W*(?:(?:and|so|but|ok|okay|hey|well|then|also|please|remind me|tell me|(?:do|did|can"
        r"|could) you \w+(?: me)?),? )*(?:since |until |till |by |from |around |exactly )?(?:when"
        r"|when's)\b(?! (?:i|you|we|they|he|she|it)\b)|\bwhen(?:'s|’s| exactly)? (?:did|do|does|is|are|was|were"
        r"|will|would|has|have|had|should|shall|can|could)\b|\b(?:since|until|by) when\b|\bwhen\W*$|\b(?:what"
        "|which)(?:'s|’s| is| was| are| were)?(?: the)?(?: exact| approximate)? (?:dates?|days?(?!-)|months?"
        r"|years?|time(?![ -]?zone)|week|weekday|weekend|season|decade|century|hour)\b|\bhow (?:long|soon"
        r"|recently)\b|\bhow many (?:days|weeks|months|years|hours|minutes)\b"
    ),
    requests=(
        r"\W*(?:(?:ok(?:ay)?|so|now|then|and|also|great|thanks|hi|hey|hello|well|good"
        r"|next)\b[,.!:]?\s+){0,3}(?:please|pls|(?:can|could|would|will) you|let['’]?s|let me|help me|i(?: want"
        "| need|['’]d like| would like) (?:you )?to|tell|show|find|check|look|explain|write|fix|add|run|make"
        "|create|search|read|open|list|give|help|summari[sz]e|implement|refactor|rename|remove|delete|change"
        "|install|review|describe|remind|draft|translate|go|try|continue|build|generate|compare|investigate"
        "|analy[sz]e|debug|print|fetch|move|convert|replace|update|set up|clean|what|where|when|who|why|how"
        r"|which|is|are|do|does|did)\b(?!['’]s\b)(?!:)"
    ),
)

ENGLISH_STATEMENTS = Statements(
    standing=(
        r"\b(?:never|always|from now on|in future|in the future|at all times|no matter what"
        r"|under no circumstances|must|(?:rule|policy)(?! is for)|whenever|such an?)\b"
    ),
    undecided=(
        r"\b(?:suggest|recommend|propose|would you|should we|could|whether|might|perhaps|maybe|i['’]d|i would)\b"
    ),
    asked=(r"\b(?:asks?|asked|wonders?) (?:\w+ ){0,3}(?:whether|if)\b"),
    deciding=(r"\bdeci(?:ded|sion)\b"),
    tags=("ok|okay|right|please|agreed|alright"),
    requests=(
        r"^(?:\W{0,3})(?:please|can you|could you|would you|will you|i need you to|i want you to|help me|(?:now"
        r"|next|then|also|ok|so),? (?:please )?[a-z]+\b)|\bplease\b"
    ),
    imperatives=(
        "^(?:(?:ok|okay|and|then|now|next|also|so|please|yes|good|great|right|first"
        rf"|thanks)\b[,.:! ]*)*(?:{_ORDER_VERBS})\b(?! (?:is|was|are|were|has|will)\b|\w*[:：])"
    ),
    yes=(
        r"(?:^|[.!。！\n,，]\s{0,3})(?:yes|yep|yeah|sure|ok|okay|confirmed?|agreed?|approved?|correct|go\s+ahead"
        r"|do\s+it|sounds\s+good|looks\s+good|lgtm|please\s+do|fine|i\s+(?:confirm|agree|approve))\b"
    ),
    no=(r"^\s{0,3}(?:no|nope|stop|cancel|don['’]?t|do\s+not|not\s+yet|wait|rejected?|denied)\b"),
    names=(r"\b(?:my name is|call me|i am called|my name['’]s)\s+[^\s,.!?;]{2,40}"),
    not_done=(
        r"\b(?:not|never|nothing|n['’]t|yet|will be|to be|should be|once|when|until|if|before|unless|almost)\b"
        r"|n['’]t\b"
    ),
    empty=("ok"),
    empty_sentences=(
        r"^\W*(?:(?:ok|okay|yes|yep|yeah|no|nope|sure|thanks?|thank you|great|perfect|cool|nice|good|fine"
        "|question|point|idea|call|catch|job|work|hi|hello|hey|got it|sounds good|will do|of course"
        "|you['’]re welcome|no problem|understood|noted|right|alright|awesome|done|so much|very much|for that"
        r"|morning|evening|afternoon|day|there|well|lovely|ha(?:ha)*|wow|let me know)\b\W*)+$"
    ),
    offers=(r"\b(?:let me know|feel free|happy to help|hope this helps|anything else)\b"),
    conditions=(
        r"\b(?:if|whether|when|once|unless|until|in case|should|shall|would you|do you|did you|may i|can i|could"
        r"|let me know)\b[^.!?]{0,60}\Z"
    ),
    user_words=(r"\b(?:user|customer|client|owner)\b"),
    consents=(
        r"\b(?:user|customer|client|owner|they|he|she)\s+(?:(?:has|have|had|already|explicitly|also|then|later"
        r"|clearly)\s+){0,3}(?:confirmed|agreed|approved|accepted|consented|authori[sz]ed|signed\s+off"
        r"|gave\s+(?:\w+\s+){0,2}(?:go-ahead|permission|approval|consent))|\b(?:confirmed|agreed|approved"
        r"|accepted|authori[sz]ed)\s+by\s+(?:the\s+)?(?:user|customer|client|owner)|\bwith\s+(?:the\s+)?(?:user"
        r"|customer|client)['’]s\s+(?:approval|consent|permission|agreement)|\b(?:user|customer)\s+(?:approval"
        r"|consent|confirmation)\s+(?:was\s+)?(?:given|received|obtained)"
    ),
    only_asked=(
        r"\b(?:if|until|once|unless|when|whether|after|before|wait(?:ing)?(?:\s+for)?|await(?:ing|s)?|needs?|not"
        r"|never|hasn['’]?t)\b[^.;]{0,24}\Z"
    ),
)

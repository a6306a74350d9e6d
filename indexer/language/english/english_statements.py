"""English words of statements: questions, rules, decisions and orders: data alone."""

from indexer.language.base import Questions, Statements

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

_WHEN = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|tue|wed|thu|fri|sat|sun)\b|tomorrow|tonight|today"
    r"|noon|midnight|easter|christmas|new\syear|end\sof|eod|next\s(?:week|month|year)|the\s\d|[01]?\d:[0-5]\d"
    r"|2[0-3]:[0-5]\d|\d{1,2}\s?[ap]\.?m|20\d\d-|\d{1,2}(?:st|nd|rd|th)?\.?\s(?:of\s)?(?:jan|feb|mar|apr|may|jun"
    "|jul|aug|sep|oct|nov|dec)|(?:january|february|march|april|june|july|august|september|october|november"
    r"|december)\b|may\s\d)"
)
_AT = (
    r"(?:^|[,;:.—–(\""
    r"'“‘-] ?|\b(?:and|but|so|please|also|then|rule|should|must|to|we|you|i|they|will) )"
)
_WHOSE_WILL = (
    r"(?:(?:the|our|my|your|this)\s+)?(?:(?:\w+\s+)?(?:users?|customers?|clients?|owners?|operators?|admins?"
    r"|administrators?|humans?|boss|bosses|managers?|principal|team|account\s+holder)|you|everyone|everybody"
    r"|both\s+of\s+us|all\s+of\s+us)"
)
_ADVERBS = (
    "(?:(?:has|have|had|['’]ve|['’]s|already|explicitly|also|then|later|clearly|just|now|always|really|generally"
    r"|fully|all|both|never|only|would|does|do|did|not|don['’]t|doesn['’]t|didn['’]t|no\s+longer|recently"
    r"|previously|expressly|verbally|hereby|unanimously)\s+){0,4}"
)
_WILLED = (
    "(?:allow(?:s|ed)?|permit(?:s|ted)?|authori[sz]e[sd]?|approve[sd]?|decide[sd]?|agree[sd]?|wants?|wanted"
    r"|prefers?|preferred|wish(?:es|ed)?|ask(?:s|ed)\s+(?:me|us|for|that|to|not)|requests?|requested|requires?"
    r"|required|insists?|insisted|instruct(?:s|ed)|told\s+(?:me|us)|tells\s+(?:me|us)|said|says|stated|states"
    r"|confirm(?:s|ed)|accept(?:s|ed)|consent(?:s|ed)|grant(?:s|ed)|ok['’]?(?:ed|d)|okayed|sign(?:s|ed)\s+off"
    r"|(?:gave|gives?|given)\s+(?:\w+\s+){0,4}(?:permission|approval|consent|light|go-ahead|carte\s+blanche|hand"
    "|access|authori[sz]ation|mandate|leave|blessing|rule|instructions?|orders?|word)|waive[sd]?|expects?"
    "|expected|demand(?:s|ed)|chose|chosen|chooses|settled|opted|(?:is|are|was|were|['’]s"
    r"|['’]re)\s+(?:\w+\s+)?(?:fine|ok|okay|happy|comfortable|cool|good|aligned|on\s+board|in\s+(?:favou?r"
    r"|agreement))\s+(?:with|to|if|of|that|on)|(?:has|have|had|raised)\s+no\s+objections?|mind|let(?:s)?\s+(?:me"
    r"|us)|mandate[sd]?|order(?:s|ed)\s+(?:me|us|that|to)|trusts?|trusted|likes?\s+(?:me|us|it)|forb(?:ids|ade"
    r"|idden)|bann?ed|ruled|set\s+(?:the|a|this)\s+(?:\w+\s+)?(?:rule|policy)|(?:has|have|had)\s+(?:a\s+"
    r"|the\s+)?(?:\w+\s+)?(?:rule|preference|policy))"
)
_DECIDED = (
    "(?:decided|agreed|chose|chosen|settled|approved|opted|concluded|determined|resolved|allowed|permitted|established)"
)
_DONE = (
    r"\b(?:done|fixed|implemented|completed?|finished|deployed|merged|released|shipped|resolved|solved|succeeded"
    r"|successful(?:ly)?|all tests pass|(?:\d+|tests?|checks?|suite|ci) (?:now )?pass(?:ed|es)?|passed|works now"
    "|now works|(?:i|we|i['’]ve|we['’]ve|have|has|is|are|was|were)(?: now| been| just| already| also)* (?:added"
    "|created|updated|wrote|written|renamed|removed|moved|migrated|refactored|set up|configured|replaced|booked"
    "|sent|saved|published|pushed|committed|installed|changed|ran|rewrote|bumped|closed|verified|confirmed"
    "|generated|restored|enabled|disabled)|^(?:added|created|updated|wrote|renamed|removed|moved|migrated"
    "|refactored|configured|replaced|booked|sent|saved|published|pushed|committed|installed|changed|closed"
    r"|verified|confirmed|enabled|disabled))\b"
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
    of_asker="i|me|my|mine|myself|we|us|our|ours|ourselves",
    of_assistant=(
        r"\b(?:did|had|have|were|what|which|how|when|why|where|whether)\b[^.?!\n]{0,60}\byou(?:['’]ve|['’]d)?\b"
        r"[^.?!\n]{0,24}\b(?:sa(?:y|id)|tell|told|suggest\w{0,3}|recommend\w{0,3}|advis\w{1,3}|propos\w{1,3}"
        r"|explain\w{0,3}|mention\w{0,3}|write|wrote|written|g[ai]ve|given|answer\w{0,3}|repl(?:y|ied)|list|listed"
        r"|outline|outlined|provide|provided)\b"
        r"|\byou (?:said|told|suggested|recommended|advised|proposed|explained|mentioned|wrote|gave|answered|listed)\b"
        r"|\byour (?:own )?(?:advice|answers?|suggestions?|recommendations?|repl(?:y|ies)|proposals?|explanations?)\b"
    ),
    overview=r"summar\w{1,6}|overview|recap",
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
    rules=(
        r"please\s[^.!?;\n]{1,60}\balways\b|only\s(?:after|once|when|if|with)\b|nothing\s(?:before|until"
        r"|without|unless)\b|must(?!\shave\b|\sbe\s(?:a|an|the|some)\b)(?:n['’]?t)?\b|may\snot\b|not\sallowed\b"
        r"|forbidden\b|prohibited\b|required\sto\b|under\sno\scircumstances\b|no\smatter\swhat\b"
        r"|at\sall\stimes\b|without\s(?:asking|my)\b|from\snow\son\b|in\s(?:the\s)?future\b|no\smore\sthan\b"
        r"|such\san?\b|whenever\b"
    ),
    orders=(
        r"(?:never(?!\smind)|always(?!\s(?:happy|glad|nice|good|great|fun|welcome|an?|the|been)\b)|avoid"
        r"|make\ssure|ensure|only|do\snot|don['’]?t(?!\s(?:worry|know|think|mind|care|remember|understand|see"
        "|have|get|bother|want|like"
        r'|need)\b))\s[a-z`"'
        r"']|(?:no\s[a-z]+,?\splease\b)|(?:no\s(?!problem|worr|idea|need|one\b|doubt|way\b|longer|matter|rush"
        r"|hurry|question|chance|wonder|reason)[a-z]+(?:\s(?!is\b|are\b|was\b|were\b)[a-z0-9]+){0,3}\s(?:before"
        r"|after|until|without|on|in|at|for|during|unless)\b)"
    ),
    order_starts=("please|you|should|must|and|but|we|so|to|can|ok|also"),
    rule_hints=(
        "never",
        "always",
        "avoid",
        "make sure",
        "ensure",
        "only ",
        "do not",
        "don't",
        "don’t",
        "dont ",
        "must",
        "may not",
        "not allowed",
        "forbidden",
        "prohibited",
        "required to",
        "no circumstances",
        "no matter",
        "all times",
        "without ",
        "no ",
        "nothing ",
        "from now on",
        "future",
        "no more than",
        "at most",
        "such a",
        "whenever",
        "rule",
    ),
    decisions=(
        r"(?:decided|agreed\s+(?:to|on|that)|we(?:['’]ll|\s+will|\s+are\s+going\s+to)\s+(?:use|go|keep|stick"
        r"|switch|ship|drop|stay|move|start|deploy|adopt|store|run)|let['’]?s\s+(?:use|go|keep|stick|switch|do"
        r"|drop|ship|stay|take|start|move|call|make)|going\s+with|go\s+with|decision|settled\s+on|chose"
        r"|switch(?:ed|ing)?\s+to|instead\s+of(?=\s+\D)|stays?\s+(?:at|as|on|with)|say\s+yes\s+to|we['’]?(?:ve"
        r"|\s+have)?\s+moved\s+\w+(?:\s\w+)?\s+to)\b"
    ),
    decision_hints=(
        "decided",
        "agreed",
        "we'll",
        "we’ll",
        "we will",
        "going to",
        "let's",
        "let’s",
        "lets ",
        "go with",
        "going with",
        "decision",
        "settled on",
        " chose",
        "switch",
        "instead of",
        "stay",
        "say yes",
        "moved",
    ),
    due=(
        rf"\b(?:by|before|until|till|due|deadline|no\slater\sthan|expires?|ends?|remind)\b[^.;!?\n]{{0,24}}?\b{_WHEN}"
        r"|\b(?:i|we)(?:['’]ll|\swill|\sdo|\ssend|\scall|\swrite|\sbook|\sremind)\b[^.;!?\n]{0,80}?\b(?:on"
        rf"|by|before|until|at|in|next|this)\s[^.;!?\n]{{0,12}}?{_WHEN}|\b(?:i['’]ll|i\swill"
        r"|remind\sme|i\sremind)\b[^.;!?\n]{0,80}\b(?:tomorrow|tonight|later\stoday|next\sweek)\b"
    ),
    due_hints=(
        "by ",
        "before",
        "until",
        "till",
        "due",
        "deadline",
        "no later",
        "expire",
        "ends ",
        "remind",
        "'ll ",
        "’ll ",
        "i will",
        "we will",
        "i do ",
        "we do ",
        "i send",
        "we send",
        "i call",
        "i book",
        "i write",
    ),
    rule_words=frozenset(
        "never always must mustn't mustn’t don't don’t do ensure sure now circumstances only avoid prefer prefers "
        "rather preferred preference favourite favorite most least more less allowed forbidden required "
        "requirement requirements rule rules policy stick keep should shouldn't shouldn’t need needs have has "
        "limit insist want please use without cannot can't can’t hate love like no nothing future such always "
        "allergic vegetarian vegan".split()
    ),
    strong_rules=(
        rf"{_AT}(?:never|always)\b(?! (?:got?|gets?|gotten|see|saw|seen|had|have|been|tried|used|did|worked"
        rf"|thought|heard|knew|know|found|felt|was|were|mind|wonder(?:ed)?)\b)|{_AT}(?:do not"
        r"|don['’]?t)\b(?! (?:worry|know|think|see|understand|have|need|care|mind|get|want|like|believe|remember"
        r"|recall|seem|work)\b)|\bmust(?:n['’]t| not)?\b(?! (?:have been|be (?:a|the|some)))|\b(?:make|be"
        r"|making) (?:very )?sure\b|\b(?:from now on|under no circumstances|at all times|no matter what"
        r"|hard rule|not allowed|forbidden|i insist)\b|(?<!ever )\b(?:i|we|i['’]d|we['’]d|users?|she|he"
        r"|they) (?:\w+ )?prefers?\b|(?:^|\b(?:and|but|please|also|then)[ ,]+)prefer\b"
        r"|\bmy (?:\w+ )?(?:preference|preferred|rule|policy)\b|\b(?:i|we)['’]d rather\b|\bi (?:don['’]t"
        r"|do not) want\b|(?:^|\b(?:and|but|please|also) )(?:avoid|ensure)\b|\bonly (?:ever|use|with|after|once"
        r"|when|if)\b|\bno more than\b|\bin (?:the )?future\b|\bsuch an?\b|\bnothing (?:before|until|without"
        r"|unless)\b|\bno [a-z]+,? please\b|\bplease (?:[^\s.!?]+ ){1,9}always\b|(?:^|please |, )no (?!problem"
        r"|worr|idea|need|one\b|doubt|way\b|longer|matter|rush|hurry|question|chance|wonder"
        r"|reason)[a-z]+(?: (?!is\b|are\b|was\b|were\b)[a-z0-9]+){0,3} (?:before|after|until|without|on|in|at"
        r"|for|during|unless)\b|(?:^|\b(?:and|please|the|our) )(?:rule|policy|requirements?"
        r"|constraint)s?\b ?(?:is\b(?! for)|:|that|-)"
    ),
    weak_rules=(
        r"\bshould(?:n['’]t| not)?\b|\bat (?:most|least)\b|\brequire[ds]?\b|\bstick (?:to|with)\b|\bkeep (?:it"
        r"|the|all|to)\b|\b(?:needs?|has|have) to (?:be|stay|remain|work|support|run|fit)\b|\bplease (?:use|keep"
        r"|write|answer|reply)\b|\blimit(?:ed)? (?:to|of|is)\b|\b(?:favou?rite|preference)\b"
        r"|\bwithout (?:any )?\w+ing\b|\b(?:can(?:no|['’])t) (?:use|change|touch|exceed|be changed)\b"
        r"|\bi (?:really |absolutely )?(?:hate|love)\b(?! (?:it|this|that|these|those|them|how|what|when|you"
        r"|your)\b)|\b(?:allergic|vegetarian|vegan)\b|\b(?:i|we|she|he|they) can['’]?t (?:stand|eat|drink|walk"
        r"|take|have|come|do)\b"
    ),
    decision_wordings=(
        r"\b(?:decid(?:ed|ing)|(?:we|i) decide|decision|agreed|chos[ei]n?|choose|settled on|approved|signed off"
        "|opt(?:ed)? (?:for|to)|(?:go|going|went|stick|sticking) with|we(?:['’]ll| will| shall) (?:use|go|keep"
        "|take|switch|move|do|ship|drop)|(?:i['’]ll|i will|let['’]s|lets) (?:use|go with|keep|switch|stick)"
        "|switch(?:ed|ing)? (?:to|from)|the plan is|final (?:call|choice|answer)|in favou?r of|ruled out|(?:we|i"
        r"|they|was|were|been) rejected)\b"
    ),
    decision_words=frozenset(
        "decided deciding decide decision agreed chose chosen choose settled approved signed opt opted go going w"
        "ent stick sticking we we'll we’ll i'll i’ll let's let’s lets i will switch switched switching plan final"
        " favor favour ruled was were been they rejected".split()
    ),
    done=_DONE,
    done_first=_DONE,
    plans=(
        r"\b(?:working on|in progress|currently|next(?: step| up|,|:)|i['’]ll|i will|we['’]ll|we will|let me"
        "|i['’]m going to|going to|remaining|still (?:need|have|to|missing|open)|left to do|wip|started|starting"
        r"|to ?do|not yet|pending|blocked)\b"
    ),
    asks=(
        r"^\W*(?:(?:hi|hey|hello|ok|okay|so|now|then|and|also|next|great|thanks|good)\b[,.! ]*)*(?:please"
        "|can you|could you|would you|will you|help|i need|i want|i['’]d like|i would like|we need|we want"
        "|let['’]s|lets|your task|the (?:task|goal)|add|fix|write|implement|make|create|change|update|deploy"
        "|check|look|find|show|explain|run|build|refactor|remove|delete|rename|test|investigate|review|set up"
        "|move|migrate|translate|summari[sz]e|plan|prepare|book|draft|compare|give|tell|list|try|continue|debug"
        "|design|analy[sz]e|convert|generate|install|open|read|search|send|suggest|verify|replace|merge"
        r"|reproduce|document|configure|port)\b"
    ),
    offer_words=frozenset("know feel happy hope anything".split()),
    wills=(
        rf"\b{_WHOSE_WILL}\s*{_ADVERBS}{_WILLED}\b|\b(?:they|he|she)\s*{_ADVERBS}(?:allow|permit|authori[sz]e"
        r"|approve|(?:is|are|was|were|['’]re)\s+(?:fine|ok)\s+with|g[ai]ve\s+(?:\w+\s+)?permission|signed\s+off)"
        rf"|\b(?:we|the\s+two\s+of\s+us)\s*{_ADVERBS}{_DECIDED}\b|\b(?:was|were|is|are|been"
        r"|it['’]s)\s+(?:\w+\s+){0,2}?(?:allowed|permitted|authori[sz]ed|agreed|decided|waived|mandated"
        r"|pre-?approved|green-?lit|okayed)\b|(?:^\W*users?|\b(?:the|our|this)\s+(?:users?"
        r"|owners?))\b(?:,[^,]{0,30},|,)?\s+(?:would|needs?|needed|has|have|had|likes?|loves?|hates?|is|was|will"
        r"|must|should|can|cannot|may|also)\b|\bi(?:['’]m|['’]ve|\s+am|\s+was|\s+have"
        r"|\s+had)(?:\s+been)?\s+(?:\w+\s+)?(?:allowed|permitted|authori[sz]ed|instructed|told|ordered|granted"
        r"|cleared|given)\b|\bit(?:['’]s|\s+is|\s+was|\s+has)(?:\s+been)?\s+(?:approved|settled)\b"
        r"|^\W*confirmed:|\b(?:approved|confirmed|granted|cleared|accepted|signed\s+off|requested|demanded"
        rf"|set)\s+by\s+{_WHOSE_WILL}\b|\b(?:permission|approval|consent|authori[sz]ation|go-ahead|green\s+light"
        r"|clearance|blanket\s+\w+|full\s+access|carte\s+blanche|free\s+rein|agreement)\b[^.!?]{0,40}\b(?:was|is"
        r"|has|have|were|given|granted|received|obtained|got|place|applies|stands)\b|\b(?:have|has|had|got"
        r"|received|obtained|with|per|by|under|on|at|following)\s+(?:the\s+|your\s+|a\s+|full\s+|explicit\s+"
        r"|standing\s+|blanket\s+|user(?:['’]s)?\s+|customer(?:['’]s)?\s+){1,4}(?:permission|approval|consent"
        r"|go-ahead|green\s+light|authori[sz]ation|instructions?|request|orders?|wish(?:es)?|decision|preference"
        rf"|mandate)\b|\b(?:according\s+to|as\s+per)\s+{_WHOSE_WILL}\b|\bon\s+behalf\s+of\s+{_WHOSE_WILL}\b"
        r"|\b(?:user|customer|client|owner|your)(?:['’]s)?\s+(?:\w+\s+)?(?:decision|preference|rule|permission"
        r"|wish|policy|instruction|approval|consent|choice)s?\b|^\W*(?:user\s+|standing\s+|new\s+)?(?:decision"
        "|rule|permission|preference|policy|agreement|agreed|decided|approved|allowed|permitted|constraint"
        r"|instruction)s?\b[^.:!?]{0,20}:|\bno\s+(?:need\s+(?:to\s+ask|for\s+(?:\w+\s+)?(?:confirmation|approval"
        r"|permission))|confirmation|approval|permission)\b|\bwithout\s+(?:asking|confirmation|approval"
        r"|permission|checking)\b"
    ),
    consent_words=frozenset(
        "user customer client that this with have been were will would should could their them"
        " they then than from into already explicitly also confirmed confirm agreed agree approved"
        " approve accepted accept plan shall want please".split()
    ),
)

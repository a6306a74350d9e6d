"""English set phrases, words of what is worth keeping, and of what is the same: data alone."""

from indexer.language.base import Phrases, Recall, Salience, Sameness

ENGLISH_PHRASES = Phrases(
    relative_times=(
        r"\b(?:yesterday|today|tonight|tomorrow|ago|recently|lately|currently|(?<!from )now|soon|upcoming"
        r"|earlier|(?:last|next|this|past|coming|previous|the other) (?:\w{1,12} )?(?:day|night|week|weekend"
        "|month|year|quarter|summer|winter|spring|fall|autumn|morning|afternoon|evening|mon|tue|wed|thu|fri|sat"
        "|sun|january|february|march|april|may|june|july|august|september|october|november|december)[a-z]{0,8}"
        r"|(?:on|by|until|since) (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    ),
    pointing=(
        "(?:it|it's|its|that|that's|this|they|they're|he|she|he's|she's|those|these|them|there|same|one|both|so"
        r"|because|but|and|plus|also|then)\b"
    ),
    joints=(r"(?:and|but|also|then|oh|one more|now)\b[,:]? (?=\w)"),
    narration=(
        "(?:(?:ok|okay|now|first|next|then|great|good|perfect|alright)[,.]? )?(?:let me|let's (?:see|look|check"
        "|try|start|run)|i'll (?:now|first|start|begin|check|look|read|run|try|take|search|go|use|need|also|open"
        "|have|update|fix|add|help|do|make|write|create)|i (?:will|can|am going to|need to|should|see|now"
        "|have the)|i'm (?:going to|now|checking|looking|running|reading)|looking at|checking|reading|running"
        "|searching|continuing|proceeding|moving on|starting with|on it|working on it|one moment|hold on"
        "|now,? (?:i|we|for|to)|here(?:'s| is| are)|below is|would you like|feel free|happy to|hope this"
        r"|if you(?:'d)?|as an ai|you can)\b"
    ),
    pleasantries=(
        "(?:good ?bye|bye|see (?:you|ya)|take care|stay (?:safe|strong|positive)|talk (?:to you |later|soon)"
        "|have (?:a )?(?:fun|great|good|nice|safe|blast)|good (?:luck|night|to (?:see|hear|talk))|(?:great|nice"
        "|good|lovely) (?:to (?:see|hear|chat|talk|meet)|hearing|seeing|talking|chatting)|keep (?:it up|up|going"
        "|at it|pushing|shining)|let's (?:keep|catch up)|long time|hope (?:you|all|everything)|thanks|thank you"
        "|you're welcome|let me know|can't wait to (?:hear|see)|i'm (?:so |really |always )?(?:glad|happy|proud"
        "|here) (?:for|of|you|to hear)|i'm rooting|congrat|cheers|(?:i'm )?(?:always |more than )?(?:happy"
        "|glad) to help|no (?:worries|problem)|my pleasure|anytime|wish(?:ing)? you|best of luck|your (?:support"
        r"|kind|words))\b[^\d]*$"
    ),
    requests=(r"(?:can|could|would|will) you\b|please\b"),
    pictures=(
        r"\[(?:shares?|shared|sends?|sent|attach(?:es|ed)|posts?) (?:an? |the )?(?:image|photo|picture"
        r"|pic)s?\s*[:：]\s*(?:an? )?(?:photo(?:graph(?:y)?)?|picture|image)?(?: of )?\s*([^\]]+)\]$"
    ),
    labels=(
        r"(?!(?:age|aged|weight|height|size|room|gate|seat|floor|budget|price|port|deadline)\b|.*\b(?:is|are|was"
        r"|am)\b)[^\W\d_]+(?: [^\W\d_]+){0,2} (?:no\.? |number )?#?\d{1,3}(?:\.\d{1,3})*(?: (?:of"
        r"|/) \d{1,4})?[.:：)]?|(?:question|message|note|item|line|entry|turn|test) #?\d+[.:：)]?"
    ),
    bare=(r"\b(?:it|this|that|them|these|those|why|how)\b"),
    own=(r"\b(?:i|we)\b"),
    nothing=(
        "(?:no(?:pe)?[,.]? )?(?:none|n/?a|nothing|not)(?: (?:yet|so far|for now|right now|at the moment"
        "|to report|new))*"
    ),
    nothing_reported=(
        r"\W*(?:none|n/?a|nothing(?: (?:new|else|durable|important|notable|more|worth\w*))*(?: (?:to|that|was|is"
        r"|worth)\b.{0,60})?|(?:there (?:is|are|was|were) )?(?:no|nothing)(?: (?:new|durable|further|other"
        "|lasting|relevant))*(?: (?:memories|facts|items|notes|durable|information))?(?: (?:to|that|were|worth"
        r"|found|was)\b.{0,60})?)\W*"
    ),
    nameless=(
        r"(?:i\s)?(?:\w+\s)?(?:prefer|enjoy|hate|dislike)\s(?:it|this|that|them|these|those)(?:\s(?:one|too|all"
        r"|more))*\W*"
    ),
    reasons=(r"(?i:because|since|the reason|so that|that way|reason:|due to|otherwise)\b"),
    speaker_words=("system|human|user|assistant|developer|ai|bot|model|tool|function|instructions?|gpt|claude|chatgpt"),
    turn_words=("[ _-](?:message|prompt|note|instructions?|turn|role)"),
)

ENGLISH_RECALL = Recall(
    keep=(r"remember(?![\w/.-])"),
    picks=(r"(?:the |let's go with |i'll take |go with )?(?:option|number|no\.?|choice|plan)"),
    courtesies=(
        r"(?:hi|hello|hey|hiya|ok|okay|alright|so|well|thanks|thank\ you|great|cool|nice|perfect|yes|yeah|yep|no"
        r"|nope|sure|hmm+|oh|ah|sorry)(?:\ (?:there|again|all|everyone|so\ much|a\ lot"
        r"|very\ much))?\s{0,3}[,.!:;—–-]+\s|(?:hi|hello|hey)(?:\ there)?\s|(?:(?:and|but|then"
        r"|now)\s,?\s?)?(?:please|pls)[\s,]|(?:can|could|would|will)\ you\ (?:please\ |kindly\ "
        r"|quickly\ )?(?!remember|recall)|i(?:['’]d|\ would)\ like\ you\ to\b|i\ (?:want|need)\ you\ to\b"
    ),
    thanks=(
        r"[\s,.!?。，！？]*\b(?:please|pls|thanks(?: (?:a lot|so much|in advance))?|thank you(?: (?:so"
        r"|very) much)?|thx|cheers)[.!\s]*$"
    ),
    asking=(
        "(?:who|what|when|where|which|why|how|did|does|do|is|are|can|could|would|should|please|find|show|tell"
        r"|give|list|check|fix|write|explain|remind|summari[sz]e|compare|look|help)\b"
    ),
    assistants=("assistant"),
    recalling=(
        "(?:(?:yes|right|sure|of course)[,.!] )?(?:(?:as|so|from what) (?:far as )?i (?:can )?(?:remember|recall"
        "|know|have noted)|i (?:remember|recall)(?: that)?|(?:according to|based on|from) (?:my|your|the"
        "|our) (?:notes?|memory|memories|records?)|(?:my|your|the|our) (?:notes?|memory|records?) (?:say|says"
        "|tells? me)(?: that)?|(?:as )?(?:you|we)(?:'ve| have)? (?:said|told me|mentioned|noted|decided"
        "|agreed)(?: before| earlier| once)?(?: that)?|as (?:noted|mentioned|said|decided|agreed)(?: before"
        "| earlier| once)?)[,:]? "
    ),
)

ENGLISH_SALIENCE = Salience(
    introduced=(
        r"\b(?i:my (?:full |last |first )?name(?:['’]s| is))|\b(?i:call me )[A-Z]|\b(?i:i(?:['’]m"
        r"| am) )[A-Z][a-z]+|\b(?i:this is )[A-Z][a-z]+ (?:from|here|speaking)|\b(?:is called|named) "
    ),
)

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
)

"""English set phrases, words of what is worth keeping, and of what is the same: data alone."""

from indexer.language.base import Lasting, Phrases, Recall, Salience, Sameness

_CLAUSE = r"(?:^|[,;–—-]\s|\b(?:and|but|because|since|that|fyi|btw|also|actually|well)[,:]?\s)"
_ADVERB = r"(?:(?:also|currently|now|still|mostly|mainly|usually|really|just|only|both|always|originally|absolutely)\s)"
_OBJECT = r"(?!(?:it|this|that|these|those|them|the|how|what|when|where|you|your|him|her|with|from|up|out)\b)[a-z0-9]"
_STATE = (
    r"allergic|intolerant|[a-z]{2,20}[\s-]intolerant|diabetic|asthmatic|vegan|vegetarian|coeliac|celiac|married"
    r"|engaged|divorced|widowed|single|pregnant|retired|(?:left|right)-?\s?handed|colou?r-?\s?blind|deaf|blind"
    r"|autistic|dyslexic|self-employed|unemployed|bilingual|\d{1,3}(?=\syears|\W|$)"
)
_OWNED = (
    "kids?|child|children|sons?|daughters?|twins|brothers?|sisters?|siblings?|cats?|dogs?|pets?|rabbits?"
    "|hors(?:e|es)|parrots?|allerg(?:y|ies)|asthma|diabetes|epilepsy|migraines?|dyslexia|adhd|intolerance"
    "|condition|disability|licen[cs]e|degree|phd|car|house|garden|boat"
)
_PEOPLE = (
    "mother|mom|mum|father|dad|parents|brother|sister|son|daughter|kids?|child|children|wife|husband|partner"
    "|fianc[eé]e?|girlfriend|boyfriend|uncle|aunt|cousin|nephew|niece|grand(?:ma|pa|mother|father|son|daughter)"
    "|family|neighbou?r|roommate|flatmate|boss|manager|doctor|gp|dentist|lawyer|landlord|teacher|coach|cat|dog"
    "|pet"
)
_ATTRIBUTES = (
    "birthday|anniversary|name|nickname|pronouns|age|job|profession|occupation|employer|company|school"
    r"|university|major|address|home|hometown|flat|apartment|house|phone|number|e-?mail|mailbox|time\s?zone|size"
    r"|height|weight|diet|allerg(?:y|ies)|blood\stype|passport|visa|insurance|religion|language|mother\stongue"
    "|hobby|hobbies|favou?rite|car|bike|plate|locker|office|desk|laptop|parcels?|keyboard|editor"
)
_SAID = "said|says|stated|states|mentioned|mentions|noted|notes|reported|reports|explained|wrote|pointed out|added"
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
    steps=(
        r"(?:(?:and |so )?(?:now|next|then|first|finally)[, ]\s?|let['’]s (?:first |now |also |then )?)(?:add"
        "|check|create|edit|find|fix|look|make|open|read|remove|reproduce|rerun|run|search|see|start|test|try"
        r"|update|verify|write|a|the)\b|ich (?:schaue|prüfe|werde|sehe|suche|lese|öffne|starte)\b|je vais\b"
        r"|voy a\b|vou\b|сейчас я\b"
    ),
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
    triggers=(
        r"\b(?:remember(?:ed|s|ing)?|remind(?:ed|er|s)?|recall(?:ed)?|forg[eo]t(?:ten)?|previous(?:ly)?|earlier"
        r"|last\ (?:time|week|month|year|night|session)|the\ other\ day|yesterday|(?:days?|weeks?|months?"
        r"|years?)\ ago|back\ then|used\ to|we(?:['’]ve|\ have|['’]d|\ had)?\ (?:decided|agreed|discussed|talked"
        r"|said|chose|settled|planned|did)|(?:did|do|have)\ (?:we|i|you)\ (?:ever\ |already\ )?(?:decide|agree"
        r"|discuss|talk|say|said|tell|told|mention|choose|have)|(?:you|i)(?:['’]ve|\ have|['’]d|\ had)?\ (?:said"
        r"|told|mentioned|promised|asked|suggested|recommended|already)|as\ (?:discussed|agreed|before|usual"
        r"|always|we)|like\ (?:before|last|always)|same\ as\ (?:before|last)|decision|so\ far|my\ (?:usual"
        r"|preferences?)|our\ (?:usual|convention|rules?|polic(?:y|ies)|plan|agreement))\b"
    ),
    small_talk=(
        "how are you(?: doing)?(?: today)?|how(?:'s| is) it going|what'?s up|are you (?:there|ok|ready)"
        "|have a (?:nice|good|great) (?:day|one|evening|weekend)|take care|see you(?: (?:soon|tomorrow|around))?"
        "|my bad|of course|why(?: not)?|what|who|when|where|how|which|how come|good (?:day|work)|well done"
        "|nice to meet you|stop"
    ),
    fillers=frozenset(
        """
    a ah aha all alright alrighty and anyway awesome bye cheers continue cool correct deal do done exactly excellent
    fair fine go going good goodbye goodnight got gotcha great haha hah hehe hello hey hi hiya hm hmm hmmm huh i
    i'm im is it it's its job just k keep kk later lgtm lol looks lot lots love lovely maybe morning evening afternoon
    night much my nah neat next nice no nope np of oh ok okay okey okie on one ooh ops oops please perfect pls
    problem proceed really right see seems sounds sorry sure super swell ta thank thanks thankyou that that's thats
    the then there this thx ty true understood up very wait welcome well wonderful works worries wow y ya yay yea
    yeah yep yes yess yup you your u too to be so some more again ahead away back for now me let's lets make run
    carry move resume agreed absolutely definitely certainly indeed noted roger will amazing brilliant fantastic
    gracias merci danke obrigado grazie bitte hola bonjour hallo ciao si oui ja nein non
    """.split()
    ),
    asking_commands=frozenset("context memories memory recall search".split()),
    keeping_commands=frozenset("remember".split()),
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
)

ENGLISH_LASTING = Lasting(
    remember=(
        r"(?:^|[,;.–—-]\s|\b(?:please|and|also|must|should|you\sto)\s)(?:(?:remember|(?:keep|bear)\sin\smind"
        r"|do(?:n['’]?t|\snot)\s(?:ever\s)?forget|(?:make|take)\sa?\s?note(?:\sof)?|for\s(?:the|your)\s(?:record"
        r"|information))(?:[:,]|\sthat\b[:,]?)?|note(?::|\sthat))\s(?!when\b|how\b|the\stime\b|me\b|it\b|that\b"
        r"|this\b)\S.{5}"
    ),
    address=(
        r"(?:^|[,;–—-]\s|\b(?:please|and|also|always)\s)(?:answer|reply|respond|write|talk|speak"
        r"|address)\s(?:back\s)?(?:to\s)?me\s(?:in|with|as|only)\s[a-z]|(?:^|[,;–—-]\s|\b(?:please|just|and"
        r"|can)\s)call\sme\s(?!back|later|when|if|at|on|in|by|after|before|asap|again|to(?:day|night|morrow)|now"
        r"|crazy|old)[a-z]|\bmy\sname['’]s\s[a-z]"
    ),
    oneself=(
        rf"{_CLAUSE}(?:(?:i|we)\s{_ADVERB}{{0,2}}(?:live\s(?:in|at|near|on|with|by|alone|outside|close|abroad)\b"
        r"|(?:work|teach|study|intern|volunteer)\s(?:at|for|as|in|from|nights?|part|full|remotely|shifts"
        r"|freelance)\b|(?:come\sfrom|grew\sup|was\s(?:born|raised)|go\sby)\b|(?:speak|play|wear|own|drive|ride"
        rf"|use)\s{_OBJECT}|(?:commute|cycle)\b|(?:love|like|hate|dislike|adore|prefer|enjoy"
        rf"|dread)\s(?!to\s(?:know|see|hear|think|say|ask)\b){_OBJECT})|i(?:['’]m"
        rf"|\sam)\s(?:not\s)?{_ADVERB}?(?:{_STATE})\b|i(?:['’]m|\sam)\s{_ADVERB}?(?:(?:from|based\sin"
        rf"|married\sto)\s{_OBJECT}|an?\s(?!bit|little|lot|tad|few|huge|big|while|mess|fool|idiot|bad|good|great"
        r"|second|minute|moment)[a-z])|(?:i|we)(?:['’]ve|\shave)(?:\sgot)?\s(?:[a-z0-9'’-]{1,16}\s){0,3}(?:"
        rf"{_OWNED})\b|i\s(?:can['’]?t|cannot|don['’]?t|do\snot|never|no\slonger)\s(?:eat|drink|smoke|drive|fly"
        rf"|speak|swim|tolerate|digest|stand|like|work\son)\b(?:$|[.!,;]|\s{_OBJECT})|(?:my"
        rf"|our)\s(?:[a-z]{{2,16}}\s){{0,2}}(?:{_PEOPLE}|{_ATTRIBUTES})(?:['’]s\s[a-z]{{2,16}})?\s(?:[a-z]{{2,16"
        r"}\s)?(?:is|are|was|has|have|lives?|works?|goes|go|studies|study|plays?|loves?|likes?|hates?|speaks?"
        r"|prefers?|attends)\b)"
    ),
    called=(
        "(?:^|[,;] )I(?:['’]m| am) (?!Sorry|Done|Fine|Okay|Not|Here|Back|Sure|Ready|Happy"
        "|Glad)[A-Z][a-zà-ÿ]{2,}(?: [A-Z][a-zà-ÿ]+)?(?=[.,!;]|$)"
    ),
)

"""English words of prompts that ask for something said before: data alone."""

from indexer.language.base import Recall

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

"""English set phrases: data alone."""

from indexer.language.base import Phrases

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
    references="from|see|source:?",
    reference_joints=frozenset({"and"}),
    interjections=(
        "wow|woah|whoa|hey there|hey|hi there|hi|hello|heya|yo|oh my god|oh my gosh|omg|oh no|oh wow"
        "|oh|ooh|ah|aw|aww|awww|yay|haha|hahaha|lol|hmm|hm|well|yeah|yep|yup|yes|yea|no worries"
        "|no problem|no way|nope|nah|sure thing|sure|ok|okay|alright|all right|right|cool|nice one"
        "|nice|great|awesome|amazing|sweet|perfect|totally|absolutely|definitely|exactly|for sure"
        "|of course|certainly|indeed|true|agreed|thanks a lot|thanks so much|thanks again|thanks"
        "|thank you so much|thank you very much|thank you|thx|congrats|congratulations|good morning"
        "|good evening|good question|great question|so|anyway|anyways|btw|by the way|you know|i mean"
        "|honestly|actually|gotcha|got it|understood|sounds good|sounds great|great job|good job"
        "|nice work|well done|way to go|guess what|you're right|i see|you bet|please|man|dude|bro"
    ),
)

"""English words of what lasts beyond a conversation: data alone."""

from indexer.language.base import Lasting

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

"""English words by which the author of a part of a message is known: data alone."""

from indexer.language.base import Authorship

_LEAD = (
    r"(?:^|[.!?,;:。！？，；：\n]\s*|\b(?:always|never|please|and|or|to|must|should|can|just|only|then|you|with"
    r"|not|don['’]t)\s+)"
)
_TEXT = (
    r"(?:(?:web|home)?\s?pages?|(?:web)?sites?|articles?|texts?|posts?|e?-?mails?|letters?|messages?|threads?"
    "|documents?|docs?|papers?|reports?|comments?|transcripts?|tickets?|passages?|paragraphs?|excerpts?|blogs?"
    "|newsletters?|news|readme|stor(?:y|ies)|reviews?|logs?|outputs?|html|snippets?|attachments?|files?|pdfs?"
    "|notices?|tweets?)"
)
_OTHER = (
    rf"(?:(?:the|this|that|it|its|his|her|their|an?)\s+(?:[\w-]+\s+){{0,2}}{_TEXT}|they|it|he|she|someone|somebody"
    r"|the\s+(?:[\w-]+\s+)?(?:customer|client|vendor|seller|author|sender|supplier|landlord|caller|guest|user|bot|tool))"
)
_SAYS = (
    r"(?:said|says?|wrote|writes?|reads?|states?|stated|claims?|claimed|tells?|told|demands?|demanded|adds?|added|replied"
    r"|replies|answered|answers|goes|asks|asked|posted|sent)"
)
# Speech in quotation marks, and who said it behind or in front of it.
_WHO = (
    r"(?:he|she|they|it|(?:the|my|our|his|her|their|a)\ [\w'’-]{2,20}(?:\ [\w'’-]{2,20})?|[A-Z][\w'’-]{1,20}"
    r"(?:\ [A-Z][\w'’-]{1,20})?)"
)
_TOLD = r"(?:said|says|wrote|writes|added|adds|replied|replies|answered|demanded|demands|insisted|told\ \w+|asked)"
_ASKS_FOR = (
    r"(?:generates?|create|write|suggest|provide|come\ up\ with|give|output|produce|return|determine|predict"
    r"|summari[sz]e|name|analy[sz]e|extract|reply\ with)"
)
_FOR_LISTS = (
    r"(?:titles?|headline|topic|tags?|emoji|session\ name|branch\ name|slug|follow-?up\ (?:questions|prompts)"
    r"|search\ queries|description\ of\ this\ session|commit\ message)"
)
_OF_A_TALK = (
    r"(?:chat|conversation|thread|session|coding\ task|diff|history"
    r"|user['’]s\ (?:first\ )?(?:message|prompt|request))"
)
ENGLISH_AUTHORSHIP = Authorship(
    own_quotes=(
        f"{_LEAD}(?:write|say|answer|reply|respond|call|name|use|sign|label|greet|start|begin|end|close|finish"
        "|put|add|title|replace|avoid|prefer|tell|ask|spell"
        r"|pronounce)\b(?:[^\S\n]+[\w'’-]+){0,4}[^\S\n]*[,:：]?\s*$|\b(?:called|titled|named|(?:film|movie|book"
        "|song|album|podcast|show|series|game|motto|slogan|band|play|novel)(?: is| was)?|words?|phrases?|terms?"
        r"|expression|names?|commands?|prompt)[^\S\n]*[,:：]?\s*$|\b(?:i|we)(?:['’]ve| have| just| had)? (?:said"
        r"|wrote|answered|replied|told (?:him|her|them|\w+)|asked|sent)[^\S\n]*[,:：]?\s*$"
    ),
    passed_on=(
        r"\b(?:said|says|wrote|writes|answer(?:ed|s)|repl(?:ied|ies)|asks|asked|sent|reports|reported|posted"
        r"|forwarded|told me|from)\b[^.!?\n]{0,40}[:：]$"
    ),
    own_words=(r"\b(?:i|we)(?:['’]ve| have| just| had)? (?:said|wrote|answered|replied|asked|sent|told)\b"),
    mail_heads=("On .{4,160} wrote:$|-{2,} ?(?:Original|Forwarded) [Mm]essage|Begin forwarded message:|From: .{0,80}@"),
    announcements=(
        r"\b(?:summari[sz]e|sum\ up|tl;?dr|translate|proofread|review|read|explain|analy[sz]e|rewrite|rephrase"
        r"|shorten|edit|extract|reply\ to|answer|respond\ to|here(?:['’]s|\ is|\ are)|this\ is|see|got|received"
        r"|found|check|look\ at|what(?:['’]s|\ is|\ does|\ do|\ are|\ did)?|who|think\ of|copied|pasted"
        rf"|opened)\b[^.!?\n:：]{{0,60}}\b{_TEXT}\b[^.!?\n:：]{{0,60}}[:：]"
    ),
    labels=(
        "(?:(?:the|its|my|here|page|web|tool|search|full|raw|body|site|from|on|of|quoted|pasted|scraped"
        r"|fetched)\s+){0,3}(?:(?:tool|search|query|api)\s+(?:results?|response)|contents?|body|source|clipboard"
        rf"|{_TEXT})(?:\s+(?:contents?|text|body|source|says|reads|follows))?"
    ),
    own_texts=(
        r"\b(?:my|our) (?:own )?(?:rules?|wish|requirements?|instructions?|preferences?)\b|\b(?:every|each|all"
        r"|any|my|our|your|for|in|when|before|after|if)\s+(?:[\w-]+\s+){0,2}\S{1,20}\s*[:：]\s*\Z"
    ),
    works=(
        "translat(?:e|ion of)|summari[sz]e|explain|rephrase|proofread|rewrite|shorten|improve|correct|analy[sz]e"
        "|mean(?:s|ing of)?|check|review|quote[ds]?|read|copied|found"
    ),
    questions_of_text=(
        rf"\b(?:this|that|the\ following)\s(?:[\w-]+\s){{0,2}}{_TEXT}\b[^.!?。！？\n]{{0,60}}[?？]"
        r"|\b(?:summari[sz]e|sum\ up|translate|proofread|analy[sz]e|rewrite|rephrase|shorten|explain|check"
        rf"|review)\s(?:this|that|the\ following)\s(?:[\w-]+\s){{0,2}}{_TEXT}\b[^.!?。！？\n]{{0,60}}[.!]"
    ),
    pointing=("[Tt][Hh][Ii][Ss]|[Tt][Hh][Aa][Tt]|[Ff][Oo][Ll][Ll][Oo][Ww][Ii][Nn][Gg]"),
    speaks_again=(
        r"\W{0,6}(?:please|pls|can|could|would|will|summari[sz]e|translate|explain|tell|what|which|who|why|how"
        r"|is|are|do|does|and|also|but|so|i|i['’]\w+|we|we['’]\w+|my|our|me|you|your|thanks|thank|now|then"
        "|by the way|btw|from now on|always|never|don['’]t|do not|remember|note|ignore|just|only|if|give|list"
        r"|in one|keep it|answer|reply|use|write|yes|no|ok|okay)\b"
    ),
    goes_on=(
        r"\W{0,6}(?:please|pls|can|could|would|summari[sz]e|translate|explain|tell|what|which|who|why|how|is|are"
        r"|do|does|and|also|but|so|i|we|my|our|thanks|thank|now|then|give|answer)\b"
    ),
    auxiliary=(
        rf"\b{_ASKS_FOR}\b[^.!?\n]{{0,120}}\b{_FOR_LISTS}\b(?=[\s\S]{{0,300}}?\b{_OF_A_TALK}\b)|"
        rf"\b{_ASKS_FOR}\b[^.!?\n]{{0,60}}\b(?:thread|chat|conversation|session)\ titles?\b"
        r"|\byou\ are\ a\ (?:(?:thread|chat|conversation|session)\ )?(?:title|summary|topic)\ (?:generator"
        r"|writer)\b|\banaly[sz]e\ (?:if|whether)\ this\ message\ indicates\ a\ new\ conversation\ topic"
        r"|\bsummari[sz]e\ this\ (?:coding\ )?(?:conversation|chat|session)\ in\ (?:under\ |at\ most\ )?\d+"
        r"|\byour\ task\ is\ to\ process\ (?:bash|shell)\ commands\b|\bwhat\ the\ user\ (?:might"
        r"|would)\ (?:naturally\ )?type\ next|\bwho\ should\ speak\ next\b"
    ),
    inserted_heads=(
        r"(?:conversation|context|session) (?:summary|checkpoint)\b|pre-compaction"
        r"|summary of (?:the )?(?:earlier|previous|prior|conversation)|notes from memory"
        r"|this session is being continued|the conversation (?:so far|history)"
    ),
    reports=(rf"\b{_OTHER}\s+(?:\w+\s+){{0,2}}?{_SAYS}\b(?:\s+(?:me|us|you|that))?\s*[:：,]?"),
    work_words="this|that|the|into|to|in|sentence|text|line|following",
    speech_reports=(rf"[\"”][,.!]?\s+(?:{_WHO}\s+{_TOLD}|{_TOLD}\s+{_WHO})\b|\b{_WHO}\s+{_TOLD}\s?[:,]?\s?[\"“]"),
)

"""Owns which sentences of a message must not be lost: rules, decisions, promises, questions.

Invariants: pure; linear; what is found is quoted, never reworded; Chinese has the same rules as English.
"""

from __future__ import annotations

import re

from memory_service.sentences import is_others, others_words, split_sentences

MAX_CHARS = 240

# Patterns run over lower case and begin with letters, which is what the engine skips ahead by; what has to stand
# before them is looked at afterwards.
_ORDER_START = re.compile(r"(?:^|[.!?,;:—–\n(*-]\s{0,3}|\b(?:please|you|should|must|and|but|we|so|to|can|ok|also)\s)\Z")
_RULE = re.compile(
    r"""(?x)(?:please\s[^.!?;\n]{1,60}\balways\b|only\s(?:after|once|when|if|with)\b
    | nothing\s(?:before|until|without|unless)\b
    | (?P<order>never|always|avoid|make\ssure|ensure|only|do\snot|don['’]?t
      (?!\s(?:worry|know|think|mind|care|remember|understand|see|have|get|bother|want|like|need)\b))\s[a-z`"']
    | must(?!\shave\b|\sbe\s(?:a|an|the|some)\b)(?:n['’]?t)?\b|may\snot\b|not\sallowed\b|forbidden\b|prohibited\b
    | required\sto\b|under\sno\scircumstances\b|no\smatter\swhat\b|at\sall\stimes\b|without\s(?:asking|my)\b
    | (?P<without>no\s[a-z]+,?\splease\b)
    | from\snow\son\b|in\s(?:the\s)?future\b|no\smore\sthan\b|such\san?\b|whenever\b
    | (?P<none>no\s(?!problem|worr|idea|need|one\b|doubt|way\b|longer|matter|rush|hurry|question|chance|wonder|reason)
      [a-z]+(?:\s(?!is\b|are\b|was\b|were\b)[a-z0-9]+){0,3}\s(?:before|after|until|without|on|in|at|for|during|unless)\b))"""
)
_RULE_HAN = re.compile(
    "(?<!要)不要(?!紧|緊|么)|必须|必須|一律|不得(?!不|已)|禁止|务必|務必|永远|绝不|绝对不|不许|不准"
    "|只能|只用|只允许|始终|千万|切勿|请勿"
    "|不可以(?!吗)|每次都要|一定(?:要|不)|以后都|以后请|以后.{0,12}(?:先|要|用)|今后|从现在起|从今以后|统一用"
    "|(?:^|[，。！；、\\n])(?:请)?(?:别|总是)"
)
_STANDING = re.compile(
    r"\b(?:never|always|from now on|in future|in the future|at all times|no matter what|under no circumstances|must"
    r"|(?:rule|policy)(?! is for)|whenever|such an?)\b|必须|必須|一律|不得|禁止|务必|務必|永远|绝不|绝对不|始终"
    r"|以后|今后|从现在起|严禁|规矩|规则|总是"
)
_RULE_HINTS = (
    "never", "always", "avoid", "make sure", "ensure", "only ", "do not", "don't", "don’t", "dont ", "must", "may not",
    "not allowed", "forbidden", "prohibited", "required to", "no circumstances", "no matter", "all times", "without ",
    "no ", "nothing ", "from now on", "future", "no more than", "at most", "such a", "whenever", "rule",
)  # fmt: skip
_DECISION = re.compile(
    r"""(?x)(?:decided|agreed\s+(?:to|on|that)|we(?:['’]ll|\s+will|\s+are\s+going\s+to)\s+(?:use|go|keep|stick|switch|ship
      |drop|stay|move|start|deploy|adopt|store|run)
      |let['’]?s\s+(?:use|go|keep|stick|switch|do|drop|ship|stay|take|start|move|call|make)
      |going\s+with|go\s+with|decision|settled\s+on|chose|switch(?:ed|ing)?\s+to|instead\s+of(?=\s+\D)
      |stays?\s+(?:at|as|on|with)|say\s+yes\s+to|we['’]?(?:ve|\s+have)?\s+moved\s+\w+(?:\s\w+)?\s+to)\b"""
)
_DECISION_HAN = re.compile(
    "决定|就用|改为|改成|改用|定为|定在|采用|选用|敲定|就这么|我们用|统一用|换成|说好|商定|确定用|选择了"
)
_DECISION_HINTS = (
    "decided", "agreed", "we'll", "we’ll", "we will", "going to", "let's", "let’s", "lets ", "go with", "going with",
    "decision", "settled on", " chose", "switch", "instead of", "stay", "say yes", "moved",
)  # fmt: skip
# A proposal, or the question whether, decides nothing.
_UNDECIDED = re.compile(
    r"\b(?:suggest|recommend|propose|would you|should we|could|whether|might|perhaps|maybe|i['’]d|i would)\b"
    "|建议|能不能|可不可以|要不要|是否|是不是|或者|可以考虑|也许|如果"
)
# Of a rule: what others ask is none.
_ASKED = re.compile(
    r"\b(?:asks?|asked|wonders?) (?:\w+ ){0,3}(?:whether|if)\b|[问問](?!题|題).{0,12}(?:要不要|能不能|是否|吗)"
)
_WHEN = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|tue|wed|thu|fri|sat|sun)\b|tomorrow|tonight|today|noon"
    r"|midnight|easter|christmas|new\syear|end\sof|eod|next\s(?:week|month|year)|the\s\d|[01]?\d:[0-5]\d|2[0-3]:[0-5]\d"
    r"|\d{1,2}\s?[ap]\.?m|20\d\d-"
    r"|\d{1,2}(?:st|nd|rd|th)?\.?\s(?:of\s)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"|(?:january|february|march|april|june|july|august|september|october|november|december)\b|may\s\d)"
)
_DUE = re.compile(
    rf"""(?x)\b(?:by|before|until|till|due|deadline|no\slater\sthan|expires?|ends?|remind)\b[^.;!?\n]{{0,24}}?\b{_WHEN}
    | \b(?:i|we)(?:['’]ll|\swill|\sdo|\ssend|\scall|\swrite|\sbook|\sremind)\b
      [^.;!?\n]{{0,80}}?\b(?:on|by|before|until|at|in|next|this)\s[^.;!?\n]{{0,12}}?{_WHEN}
    | \b(?:i['’]ll|i\swill|remind\sme|i\sremind)\b[^.;!?\n]{{0,80}}\b(?:tomorrow|tonight|later\stoday|next\sweek)\b"""
)
_DUE_HINTS = (
    "by ", "before", "until", "till", "due", "deadline", "no later", "expire", "ends ", "remind", "'ll ", "’ll ",
    "i will", "we will", "i do ", "we do ", "i send", "we send", "i call", "i book", "i write",
)  # fmt: skip
_WHEN_HAN = (
    r"(?:[0-9一二两三四五六七八九十]{1,3} ?[月日号號点點]|[今明后後]天"
    r"|[下这這本]?(?:[周週]|星期|礼拜)[一二三四五六日天末]|[下这本]?[周月年][底末]|中午|今晚|明早|\d{1,2}[:：]\d\d)"
)
_DUE_HAN = re.compile(
    rf"{_WHEN_HAN}[^，。！？；\n]{{0,8}}(?:之前|以前|前(?!面|天|台)|截止|到期|为止)"
    rf"|(?:截止|最迟|最晚|有效期)[^，。！？；\n]{{0,8}}{_WHEN_HAN}"
    rf"|(?:提醒我|我会|我来|我们会|会在|记得)[^。！？；\n]{{0,24}}{_WHEN_HAN}"
    rf"|{_WHEN_HAN}[^。！？；\n]{{0,12}}(?:提醒|我会|我来|交付|交给|回复您)"
)
_HAN = re.compile("[\u4e00-\u9fff]")
_QUESTION_END = ("?", "？", "吗", "呢", "吗。", "呢。")
# "Book nothing before I say so, ok?" asks nothing.
_TAG = re.compile(r"(?i)[,，]\s?(?:ok|okay|right|please|agreed|alright|好吗|好嗎|行吗|可以吗|好不好|知道吗)[?？]\Z")
_REQUEST = re.compile(
    r"(?i)^(?:\W{0,3})(?:please|can you|could you|would you|will you|i need you to|i want you to|help me"
    r"|(?:now|next|then|also|ok|so),? (?:please )?[a-z]+\b)|\bplease\b"
    r"|帮我|请|麻烦|能不能|可以.{0,12}吗|给我|我要你|我想让你"
)
_ORDER_VERBS = (
    "accept|add|analy[sz]e|answer|apply|approve|archive|ask|book|bring|build|bump|buy|call|cancel|change|check|clean"
    "|close|commit|compare|configure|confirm|continue|convert|copy|count|create|cut|debug|delete|deploy|describe|design"
    "|disable|document|draft|drop|enable|explain|export|fetch|find|finish|fix|format|forward|generate|get|give|go|hold"
    "|ignore|implement|import|install|investigate|invite|join|keep|leave|let|list|log|look|make|mark|measure|merge"
    "|migrate|move|note|offer|open|order|pay|pick|pin|plan|port|post|prepare|print|publish|push|put|read|rebase|refactor"
    "|refund|reject|remind|remove|rename|replace|reply|reproduce|reserve|reset|restart|restore|retry|return|revert|review"
    "|rewrite|run|save|say|schedule|search|send|set|ship|show|skip|sort|split|start|stop|store|suggest|summari[sz]e|switch"
    "|take|tell|test|translate|try|turn|undo|update|upgrade|upload|use|verify|wait|wire|wrap|write"
)
_IMPERATIVE = re.compile(
    r"(?i)^(?:(?:ok|okay|and|then|now|next|also|so|please|yes|good|great|right|first|thanks)\b[,.:! ]*)*"
    rf"(?:{_ORDER_VERBS})\b"
    r"(?! (?:is|was|are|were|has|will)\b|\w*[:：])"
    r"|^(?:好的?|那|请|然后|再|先|另外|现在|就)?[，,]?(?:修|改|加|删|写|创建|更新|运行|检查|查|找|看"
    r"|实现|重构|部署|测试|继续|列出|发送|比较|把|告诉|回复?(?!收)|问|订|预订|退|寄|联系|通知|取消|安排|提醒|帮)"
)
_YES = re.compile(
    r"""(?ix)(?:^|[.!。！\n,，]\s{0,3})(?:yes|yep|yeah|sure|ok|okay|confirmed?|agreed?|approved?|correct|go\s+ahead|do\s+it
      |sounds\s+good|looks\s+good|lgtm|please\s+do|fine|i\s+(?:confirm|agree|approve))\b
    | (?:^|[。！\n，,]\s{0,3})(?:是的|好的|好|可以|同意|确认|行|没问题|对|嗯|批准|就这样)(?![^，。！,.\s]{6})"""
)
_NO = re.compile(
    r"""(?ix)^\s{0,3}(?:no|nope|stop|cancel|don['’]?t|do\s+not|not\s+yet|wait|rejected?|denied)\b
    | ^\s{0,3}(?:不行|不要|不用|不可以|不同意|别|取消|先不|不是|不对|不$|不[，。！])"""
)
_NAME = re.compile(
    r"(?i)\b(?:my name is|call me|i am called|my name['’]s)\s+[^\s,.!?;]{2,40}"
    r"|(?:我叫|我的名字(?:是|叫)|叫我|我姓)[^\s，。！？,.]{1,12}"
)
_BLANKS = re.compile(r"\s+")


def one_line(text: str, limit: int = MAX_CHARS) -> str:
    """A text on one line, cut at `limit` characters with a mark."""
    line = _BLANKS.sub(" ", text[: 4 * limit]).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def rules_of(text: str) -> list[str]:
    """The sentences in which a user says what must or must not be done."""
    found = _found(text, _RULE, _RULE_HINTS, _RULE_HAN)
    return [rule for rule in found if not _ASKED.search(rule.lower())]


def decisions_of(text: str) -> list[str]:
    """The sentences that decide something."""
    found = _found(text, _DECISION, _DECISION_HINTS, _DECISION_HAN)
    return [decision for decision in found if not _UNDECIDED.search(decision.lower())]


def promises_of(text: str) -> list[str]:
    """The sentences that promise or demand something for a day or an hour."""
    return _found(text, _DUE, _DUE_HINTS, _DUE_HAN)


def is_promise(sentence: str) -> bool:
    """Whether a sentence promises or demands something for a day or an hour; a question does not."""
    lowered = sentence.lower()
    if _has_any(lowered, _DUE_HINTS) and _place(sentence, _DUE) >= 0:
        return not _asks(sentence)
    return not sentence.isascii() and _DUE_HAN.search(sentence) is not None and not _asks(sentence)


def is_standing(rule: str) -> bool:
    """Whether a rule holds for all that comes, and not only for what is being done."""
    return _STANDING.search(rule.lower()) is not None


def names_of(text: str) -> list[str]:
    """What people say they are called."""
    lowered = text.lower()
    hinted = "my name" in lowered or "call me" in lowered or "i am called" in lowered or "我" in text
    return [one_line(match[0], 80) for match in _NAME.finditer(text)] if hinted else []


def ask_of(text: str) -> str:
    """What a user's message asks for: its last question, else its request; empty if it asks for nothing."""
    sentences = _sentences(text[-4_000:])
    questions = [sentence for sentence in sentences if _asks(sentence)]
    if questions:
        return questions[-1]
    return next((sentence for sentence in sentences if _REQUEST.search(sentence) or _IMPERATIVE.match(sentence)), "")


def is_order(sentence: str) -> bool:
    """Whether a sentence tells somebody to do something, now and once."""
    return _IMPERATIVE.match(sentence) is not None


def question_of(text: str) -> str:
    """The last question of a text, near its end; empty if there is none."""
    end = text[-1_500:]
    if not any(mark in end for mark in "?？吗呢"):
        return ""
    questions = [sentence for sentence in _sentences(end)[-6:] if _asks(sentence)]
    return questions[-1] if questions else ""


def is_yes(text: str) -> bool:
    """Whether a user's message says yes to something."""
    head = text[:400]
    return bool(_YES.search(head)) and not _NO.match(head)


def is_no(text: str) -> bool:
    """Whether a user's message says no to something."""
    return bool(_NO.match(text[:400]))


def _has_any(text: str, hints: tuple[str, ...]) -> bool:
    # Not `any` of a generator: it takes half as long, and most sentences come through here.
    for hint in hints:
        if hint in text:
            return True
    return False


def _asks(sentence: str) -> bool:
    bare = sentence.rstrip("\"'”’)） ")
    return bare.endswith(_QUESTION_END) and not _TAG.search(bare[-12:])


def _sentences(text: str) -> list[str]:
    return [one_line(sentence) for line in text.splitlines() for sentence in split_sentences(line)]


def _found(text: str, latin: re.Pattern[str], hints: tuple[str, ...], han: re.Pattern[str]) -> list[str]:
    """The sentences in which a pattern is found, each once; no questions, and nothing that others say."""
    lowered = text.lower()
    english = _has_any(lowered, hints) and latin.search(lowered) is not None
    chinese = not text.isascii() and _HAN.search(text) is not None and han.search(text) is not None
    if not (english or chinese):
        return []
    others = others_words(text)
    found: dict[str, None] = {}
    for line in text.splitlines():
        for whole in split_sentences(line):
            at = _place(whole, latin) if english else -1
            at = _place(whole, han) if at < 0 and chinese else at
            if at < 0 or _asks(whole) or is_others(whole, others):
                continue
            # Of an endless line, what stands around the words.
            start = 0 if at < MAX_CHARS - 40 else _last_border(whole, at - MAX_CHARS // 2, at)
            found[one_line(whole[start:].strip(" \t-*>#•"))] = None
    return list(found)


def _place(sentence: str, pattern: re.Pattern[str]) -> int:
    """Where a pattern is found in a sentence; -1 if nowhere."""
    lowered = sentence.lower()
    lowered = lowered if len(lowered) == len(sentence) else sentence  # a few letters take more room in lower case
    return next((match.start() for match in pattern.finditer(lowered) if _stands_free(lowered, match)), -1)


def _stands_free(lowered: str, match: re.Match[str]) -> bool:
    """Whether a match begins a word, and where it is an order, a clause."""
    start = match.start()
    if start and lowered[start - 1].isascii() and lowered[start - 1].isalnum() and lowered[start].isascii():
        return False
    if not any(match.groupdict().values()):
        return True
    return bool(_ORDER_START.search(lowered, max(0, start - 12), start))


def _last_border(text: str, start: int, end: int) -> int:
    return max(text.rfind(mark, start, end) for mark in " ，；、\t") + 1 or start

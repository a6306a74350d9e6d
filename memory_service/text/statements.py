"""Sentence classifier: rules, decisions, promises, questions, outcomes, failures. Pure.

Invariants: linear; what is found is quoted, never reworded; a kind decides only where a sentence stands and how much it
is worth; what a tool prints is never a rule, a decision or an ask. English and Chinese have the same rules; in other
languages a sentence is a fact.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from indexer.common import COMMON_HAN, lazy_regex
from indexer.language import ANY, asks, has_failed, is_error_line, is_exit_only, is_reported, names_outcome, typed_text
from memory_service.text.sentences import (
    STATEMENT_CHARS,
    Sentence,
    single_line,
    split_sentences,
)

# Patterns run over lower case and begin with letters, which is what the engine skips ahead by; what has to stand
# before them is looked at afterwards.
_ORDER_START = lazy_regex(r"(?:^|[.!?,;:—–\n(*-]\s{0,3}|\b(?:please|you|should|must|and|but|we|so|to|can|ok|also)\s)\Z")
_RULE = lazy_regex(
    r"""(?x)(?:please\s[^.!?;\n]{1,60}\balways\b|only\s(?:after|once|when|if|with)\b
    | nothing\s(?:before|until|without|unless)\b
    | (?P<order>never(?!\smind)|always(?!\s(?:happy|glad|nice|good|great|fun|welcome|an?|the|been)\b)
      |avoid|make\ssure|ensure|only|do\snot|don['’]?t
      (?!\s(?:worry|know|think|mind|care|remember|understand|see|have|get|bother|want|like|need)\b))\s[a-z`"']
    | must(?!\shave\b|\sbe\s(?:a|an|the|some)\b)(?:n['’]?t)?\b|may\snot\b|not\sallowed\b|forbidden\b|prohibited\b
    | required\sto\b|under\sno\scircumstances\b|no\smatter\swhat\b|at\sall\stimes\b|without\s(?:asking|my)\b
    | (?P<without>no\s[a-z]+,?\splease\b)
    | from\snow\son\b|in\s(?:the\s)?future\b|no\smore\sthan\b|such\san?\b|whenever\b
    | (?P<none>no\s(?!problem|worr|idea|need|one\b|doubt|way\b|longer|matter|rush|hurry|question|chance|wonder|reason)
      [a-z]+(?:\s(?!is\b|are\b|was\b|were\b)[a-z0-9]+){0,3}\s(?:before|after|until|without|on|in|at|for|during|unless)\b))"""
)
_RULE_HAN = lazy_regex(
    "(?<!要)不要(?!紧|緊|么)|必须|必須|一律|不得(?!不|已)|禁止|务必|務必|永远|绝不|绝对不|不许|不准"
    "|只能|只用|只允许|始终|千万|切勿|请勿"
    "|不可以(?!吗)|一定(?:要|不)|以后都|以后请|以后.{0,12}(?:先|要|用)|今后|从现在起|從現在起|从今以后|统一用"
    "|(?:^|[，。！；、：\\n]|请|請)(?:以[后後]|往[后後]|日[后後]|今後|从今(?:天|往后)|從今)"
    "(?!再|吧|见|見|会|會|可能|也许|有|没|想|可以|加油)[^，。！？；\\n]{3}|每次[^，。！？；\\n]{1,12}(?:都|先|要)"
    "|(?:^|[，。！；、\\n])(?:请)?(?:别|总是)"
)
_STANDING = lazy_regex(ANY.statements.standing)
_RULE_HINTS = (
    "never", "always", "avoid", "make sure", "ensure", "only ", "do not", "don't", "don’t", "dont ", "must", "may not",
    "not allowed", "forbidden", "prohibited", "required to", "no circumstances", "no matter", "all times", "without ",
    "no ", "nothing ", "from now on", "future", "no more than", "at most", "such a", "whenever", "rule",
)  # fmt: skip
_DECISION = lazy_regex(
    r"""(?x)(?:decided|agreed\s+(?:to|on|that)|we(?:['’]ll|\s+will|\s+are\s+going\s+to)\s+(?:use|go|keep|stick|switch|ship
      |drop|stay|move|start|deploy|adopt|store|run)
      |let['’]?s\s+(?:use|go|keep|stick|switch|do|drop|ship|stay|take|start|move|call|make)
      |going\s+with|go\s+with|decision|settled\s+on|chose|switch(?:ed|ing)?\s+to|instead\s+of(?=\s+\D)
      |stays?\s+(?:at|as|on|with)|say\s+yes\s+to|we['’]?(?:ve|\s+have)?\s+moved\s+\w+(?:\s\w+)?\s+to)\b"""
)
_DECISION_HAN = lazy_regex(
    "决定|就用|改为|改成|改用|定为|定在|采用|选用|敲定|就这么|我们用|统一用|换成|说好|商定|确定用|选择了"
)
_DECISION_HINTS = (
    "decided", "agreed", "we'll", "we’ll", "we will", "going to", "let's", "let’s", "lets ", "go with", "going with",
    "decision", "settled on", " chose", "switch", "instead of", "stay", "say yes", "moved",
)  # fmt: skip
# A proposal, or the question whether, decides nothing.
_UNDECIDED = lazy_regex(ANY.statements.undecided)
# Of a rule: what others ask is none.
_ASKED = lazy_regex(ANY.statements.asked)
_WHEN = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|tue|wed|thu|fri|sat|sun)\b|tomorrow|tonight|today|noon"
    r"|midnight|easter|christmas|new\syear|end\sof|eod|next\s(?:week|month|year)|the\s\d|[01]?\d:[0-5]\d|2[0-3]:[0-5]\d"
    r"|\d{1,2}\s?[ap]\.?m|20\d\d-"
    r"|\d{1,2}(?:st|nd|rd|th)?\.?\s(?:of\s)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"|(?:january|february|march|april|june|july|august|september|october|november|december)\b|may\s\d)"
)
_DUE = lazy_regex(
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
_DUE_HAN = lazy_regex(
    rf"{_WHEN_HAN}[^，。！？；\n]{{0,8}}(?:之前|以前|前(?!面|天|台)|截止|到期|为止)"
    rf"|(?:截止|最迟|最晚|有效期)[^，。！？；\n]{{0,8}}{_WHEN_HAN}"
    rf"|(?:提醒我|我会|我来|我们会|会在|记得)[^。！？；\n]{{0,24}}{_WHEN_HAN}"
    rf"|{_WHEN_HAN}[^。！？；\n]{{0,12}}(?:提醒|我会|我来|交付|交给|回复您)"
)
_HAN = lazy_regex(f"[{COMMON_HAN}]")
_DECIDING = lazy_regex(f"(?i){ANY.statements.deciding}")
_QUESTION_END = ("?", "？", "吗", "呢", "吗。", "呢。")
# "Book nothing before I say so, ok?" asks nothing.
_TAG = lazy_regex(rf"(?i)[,，]\s?(?:{ANY.statements.tags})[?？]\Z")
_REQUEST = lazy_regex(f"(?i){ANY.statements.requests}")
_IMPERATIVE = lazy_regex(f"(?i){ANY.statements.imperatives}")
_YES = lazy_regex(f"(?ix){ANY.statements.yes}")
_NO = lazy_regex(f"(?ix){ANY.statements.no}")
_NAME = lazy_regex(f"(?i){ANY.statements.names}")


def rules_of(text: str) -> list[str]:
    """The sentences in which a user says what must or must not be done."""
    found = _found(text, _RULE, _RULE_HINTS, _RULE_HAN)
    return [rule for rule in found if not _ASKED.search(rule.lower())]


def decisions_of(text: str) -> list[str]:
    """The sentences that decide something."""
    found = _found(text, _DECISION, _DECISION_HINTS, _DECISION_HAN)
    return [decision for decision in found if not _UNDECIDED.search(decision.lower())]


def speaks_of_deciding(text: str) -> bool:
    """True if a text has the very word: "decided", "decision", "决定"."""
    return _DECIDING.search(text) is not None


def promises_of(text: str) -> list[str]:
    """The sentences that promise or demand something for a day or an hour."""
    return _found(text, _DUE, _DUE_HINTS, _DUE_HAN)


def is_promise(sentence: str) -> bool:
    """True if a sentence promises or demands something for a day or an hour; a question does not."""
    lowered = sentence.lower()
    if _has_any(lowered, _DUE_HINTS) and _place(sentence, _DUE) >= 0:
        return not _asks(sentence)
    return not sentence.isascii() and _DUE_HAN.search(sentence) is not None and not _asks(sentence)


def is_standing(rule: str) -> bool:
    """True if a rule holds for all that comes, and not only for what is being done."""
    return _STANDING.search(rule.lower()) is not None


def names_of(text: str) -> list[str]:
    """Names by which people introduce themselves."""
    lowered = text.lower()
    hinted = "my name" in lowered or "call me" in lowered or "i am called" in lowered or "我" in text
    return [single_line(match[0], 80) for match in _NAME.finditer(text)] if hinted else []


def ask_of(text: str) -> str:
    """Request of a user's message: its last question, else its request; empty if it asks for nothing."""
    sentences = _sentences(text[-4_000:])
    questions = [sentence for sentence in sentences if _asks(sentence)]
    if questions:
        return questions[-1]
    return next((sentence for sentence in sentences if _REQUEST.search(sentence) or _IMPERATIVE.match(sentence)), "")


def is_order(sentence: str) -> bool:
    """True if a sentence tells somebody to do something, now and once."""
    return _IMPERATIVE.match(sentence) is not None


def question_of(text: str) -> str:
    """The last question of a text, near its end; empty if there is none."""
    end = text[-1_500:]
    if not any(mark in end for mark in "?？吗呢"):
        return ""
    questions = [sentence for sentence in _sentences(end)[-6:] if _asks(sentence)]
    return questions[-1] if questions else ""


def is_yes(text: str) -> bool:
    """True if a user's message says yes to something."""
    head = text[:400]
    return bool(_YES.search(head)) and not _NO.match(head)


def is_no(text: str) -> bool:
    """True if a user's message says no to something."""
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
    return [single_line(sentence) for line in text.splitlines() for sentence in split_sentences(line)]


def _found(text: str, latin: re.Pattern[str], hints: tuple[str, ...], han: re.Pattern[str]) -> list[str]:
    """The sentences in which a pattern is found, each once; no questions, and nothing that others say."""
    lowered = text.lower()
    english = _has_any(lowered, hints) and latin.search(lowered) is not None
    chinese = not text.isascii() and _HAN.search(text) is not None and han.search(text) is not None
    if not (english or chinese):
        return []
    found: dict[str, None] = {}
    for line in typed_text(text).splitlines():
        for whole in split_sentences(line):
            at = _place(whole, latin) if english else -1
            at = _place(whole, han) if at < 0 and chinese else at
            if at < 0 or _asks(whole) or is_reported(whole):
                continue
            # Of an endless line, what stands around the words.
            start = 0 if at < STATEMENT_CHARS - 40 else _last_border(whole, at - STATEMENT_CHARS // 2, at)
            found[single_line(whole[start:].strip(" \t-*>#•"))] = None
    return list(found)


def _place(sentence: str, pattern: re.Pattern[str]) -> int:
    """Position of a pattern in a sentence; -1 if not found."""
    lowered = sentence.lower()
    lowered = lowered if len(lowered) == len(sentence) else sentence  # a few letters take more room in lower case
    return next((match.start() for match in pattern.finditer(lowered) if _stands_free(lowered, match)), -1)


def _stands_free(lowered: str, match: re.Match[str]) -> bool:
    """True if a match begins a word, and where it is an order, a clause."""
    start = match.start()
    if start and lowered[start - 1].isascii() and lowered[start - 1].isalnum() and lowered[start].isascii():
        return False
    if not any(match.groupdict().values()):
        return True
    return bool(_ORDER_START.search(lowered, max(0, start - 12), start))


def _last_border(text: str, start: int, end: int) -> int:
    return max(text.rfind(mark, start, end) for mark in " ，；、\t") + 1 or start


class Kind(Enum):
    """Kind of a sentence."""

    RULE = "rule"
    DECISION = "decision"
    DONE = "done"
    PLAN = "plan"
    FAILURE = "failure"
    ASK = "ask"
    QUESTION = "question"
    FACT = "fact"
    EMPTY = "empty"


_WORD = lazy_regex(r"[a-z]+(?:['’][a-z]+)?")

# Words that the patterns below need: most sentences have none, so that no pattern has to run.
_RULE_WORDS = frozenset(
    "never always must mustn't mustn’t don't don’t do ensure sure now circumstances only avoid prefer prefers rather "
    "preferred preference favourite favorite most least more less allowed forbidden required requirement requirements "
    "rule rules policy stick keep should shouldn't shouldn’t need needs have has limit insist want please use without "
    "cannot can't can’t hate love like no nothing future such always allergic vegetarian vegan".split()
)
_AT = r"(?:^|[,;:.—–(\"'“‘-] ?|\b(?:and|but|so|please|also|then|rule|should|must|to|we|you|i|they|will) )"
_STRONG_RULE = lazy_regex(
    rf"{_AT}(?:never|always)\b(?! (?:got?|gets?|gotten|see|saw|seen|had|have|been|tried|used|did|worked|thought|heard|"
    r"knew|know|found|felt|was|were|mind|wonder(?:ed)?)\b)"
    rf"|{_AT}(?:do not|don['’]?t)\b"
    r"(?! (?:worry|know|think|see|understand|have|need|care|mind|get|want|like|believe|remember|recall|seem|work)\b)"
    r"|\bmust(?:n['’]t| not)?\b(?! (?:have been|be (?:a|the|some)))|\b(?:make|be|making) (?:very )?sure\b"
    r"|\b(?:from now on|under no circumstances|at all times|no matter what|hard rule|not allowed|forbidden|i insist)\b"
    r"|(?<!ever )\b(?:i|we|i['’]d|we['’]d|users?|she|he|they) (?:\w+ )?prefers?\b|(?:^|\b(?:and|but|please|also"
    r"|then)[ ,]+)prefer\b"
    r"|\bmy (?:\w+ )?(?:preference|preferred|rule|policy)\b|\b(?:i|we)['’]d rather\b|\bi (?:don['’]t|do not) want\b"
    r"|(?:^|\b(?:and|but|please|also) )(?:avoid|ensure)\b|\bonly (?:ever|use|with|after|once|when|if)\b"
    r"|\bno more than\b"
    r"|\bin (?:the )?future\b|\bsuch an?\b|\bnothing (?:before|until|without|unless)\b|\bno [a-z]+,? please\b"
    r"|\bplease (?:[^\s.!?]+ ){1,9}always\b"
    r"|(?:^|please |, )no "
    r"(?!problem|worr|idea|need|one\b|doubt|way\b|longer|matter|rush|hurry|question|chance|wonder|reason)"
    r"[a-z]+(?: (?!is\b|are\b|was\b|were\b)[a-z0-9]+){0,3} (?:before|after|until|without|on|in|at|for|during|unless)\b"
    r"|(?:^|\b(?:and|please|the|our) )(?:rule|policy|requirements?|constraint)s?\b ?(?:is\b(?! for)|:|that|-)"
)
_WEAK_RULE = lazy_regex(
    r"\bshould(?:n['’]t| not)?\b|\bat (?:most|least)\b|\brequire[ds]?\b|\bstick (?:to|with)\b|\bkeep (?:it|the|all"
    r"|to)\b"
    r"|\b(?:needs?|has|have) to (?:be|stay|remain|work|support|run|fit)\b|\bplease (?:use|keep|write|answer|reply)\b"
    r"|\blimit(?:ed)? (?:to|of|is)\b|\b(?:favou?rite|preference)\b|\bwithout (?:any )?\w+ing\b"
    r"|\b(?:can(?:no|['’])t) (?:use|change|touch|exceed|be changed)\b|\bi (?:really |absolutely )?(?:hate|love)\b"
    r"(?! (?:it|this|that|these|those|them|how|what|when|you|your)\b)"
    r"|\b(?:allergic|vegetarian|vegan)\b|\b(?:i|we|she|he|they) can['’]?t (?:stand|eat|drink|walk|take|have|come|do)\b"
)
_RULE_HINT = lazy_regex("[不必务一只优总始永绝千别尽偏喜规以今统严切请应要最勿禁得过吃受]")
_STRONG_RULE_ZH = lazy_regex(
    "(?<!要)不要(?!紧|脸|么)|不准|不许|禁止|必须|务必|一定(?:要(?!.{0,8}吗)|不)|只能|只准|只用|只允许|优先(?!级)|总是(?!报|失|出)|始终"
    "|永远|绝不|绝对不|千万"
    "|不得(?!不)|(?:^|[，。；：、！ ]|请|也|就|都)别(?!人|的|处|名|墅|说|样|致)|偏好|更喜欢|规则|规矩|以后都|以后请"
    "|今后|统一用|统一使用|严禁|切勿|请勿"
    "|不可以(?!吗)|不能(?:用|改|动|超过|在|有|直接|碰)"
)
_WEAK_RULE_ZH = lazy_regex("应该|应当|尽量|最好|最多|至少|不超过|喜欢|要求|限制|过敏|吃素|不吃|受不了")
_DECISION_WORDING = lazy_regex(
    r"\b(?:decid(?:ed|ing)|(?:we|i) decide|decision|agreed|chos[ei]n?|choose|settled on|approved|signed off"
    r"|opt(?:ed)? (?:for|to)"
    r"|(?:go|going|went|stick|sticking) with|we(?:['’]ll| will| shall) (?:use|go|keep|take|switch|move|do|ship|drop)"
    r"|(?:i['’]ll|i will|let['’]s|lets) (?:use|go with|keep|switch|stick)|switch(?:ed|ing)? (?:to|from)|the plan is"
    r"|final (?:call|choice|answer)|in favou?r of|ruled out|(?:we|i|they|was|were|been) rejected)\b"
)
_DECISION_WORDS = frozenset(
    "decided deciding decide decision agreed chose chosen choose settled approved signed opt opted go going went stick "
    "sticking we we'll we’ll i'll i’ll let's let’s lets i will switch switched switching plan final favor favour ruled "
    "was were been they rejected".split()
)
_DECISION_HINT = lazy_regex("[决选定采同最改敲商拍说就弃]")
_DECISION_ZH = lazy_regex(
    "决定|决策|选定|(?<!确|一|肯|稳|固|规)定了|定为|就用|就选|采用|选用|选择了|同意|确定(?:用|采|为|下)|最终|改用"
    "|换成|敲定|商定|拍板|说好|放弃|不再用"
)
_DONE = lazy_regex(
    r"\b(?:done|fixed|implemented|completed?|finished|deployed|merged|released|shipped|resolved|solved|succeeded"
    r"|successful(?:ly)?|all tests pass|(?:\d+|tests?|checks?|suite|ci) (?:now )?pass(?:ed|es)?|passed|works now"
    r"|now works"
    r"|(?:i|we|i['’]ve|we['’]ve|have|has|is|are|was|were)(?: now| been| just| already| also)* (?:added|created"
    r"|updated|wrote"
    r"|written|renamed|removed|moved|migrated|refactored|set up|configured|replaced|booked|sent|saved|published|pushed"
    r"|committed|installed|changed|ran|rewrote|bumped|closed|verified|confirmed|generated|restored|enabled|disabled)"
    r"|^(?:added|created|updated|wrote|renamed|removed|moved|migrated|refactored|configured|replaced|booked|sent|saved"
    r"|published|pushed|committed|installed|changed|closed|verified|confirmed|enabled|disabled))\b"
)
_DONE_HINT = lazy_regex("[已完修搞通成功上合部发解创添更好了]")
_DONE_ZH = lazy_regex(
    "已经?(?!知)|完成(?!不)|修好|修复了|搞定|(?:测试|检查|评审|审核|验证|全部|都|个)(?:全部|都)?通过|成功|上线了"
    "|合并了|部署了|部署好|发布了|解决了|创建了|添加了"
    "|更新了|写好|做好|改好|改完|跑通|加好|配好|预订好|订好|发送了|删除了"
)
_NOT_DONE = lazy_regex(ANY.statements.not_done)
_PLAN = lazy_regex(
    r"\b(?:working on|in progress|currently|next(?: step| up|,|:)|i['’]ll|i will|we['’]ll|we will|let me"
    r"|i['’]m going to|"
    r"going to|remaining|still (?:need|have|to|missing|open)|left to do|wip|started|starting|to ?do|not yet|pending"
    r"|blocked)\b"
)
_PLAN_HINT = lazy_regex("[正接下准还待进开]")
_PLAN_ZH = lazy_regex("正在|接下来|下一步|准备(?!好)|还需要?|还要|还剩|待办|进行中|开始(?!时)|尚未|还没")
_ASK_START = lazy_regex(
    r"^\W*(?:(?:hi|hey|hello|ok|okay|so|now|then|and|also|next|great|thanks|good)\b[,.! ]*)*"
    r"(?:please|can you|could you|would you|will you|help|i need|i want|i['’]d like|i would like|we need|we want"
    r"|let['’]s|lets"
    r"|your task|the (?:task|goal)|add|fix|write|implement|make|create|change|update|deploy|check|look|find|show"
    r"|explain"
    r"|run|build|refactor|remove|delete|rename|test|investigate|review|set up|move|migrate|translate|summari[sz]e|plan"
    r"|prepare|book|draft|compare|give|tell|list|try|continue|debug|design|analy[sz]e|convert|generate|install|open"
    r"|read"
    r"|search|send|suggest|verify|replace|merge|reproduce|document|configure|port)\b"
)
_ASK_ZH = lazy_regex(
    "^(?:你好|您好|好的|那|然后|接着|现在|另外)?[，,。！ ]*(?:请|帮|麻烦|我想|我要|我们想|我们要|我需要|我们需要"
    "|需要你|能不能|能否|可否|可不可以|给我|把"
    "|写|加|修|改|查|看看|做|跑|部署|实现|检查|分析|生成|翻译|总结|继续|整理|重构|比较|设计|解释)|帮我|帮忙|请你|麻烦你|你(?:帮|提醒)"
)
_EMPTY = lazy_regex(rf"^\W*(?:{ANY.statements.empty})\W*$|{ANY.statements.empty_sentences}")
_HEDGE_WORDS = frozenset("know feel happy hope anything".split())
_HEDGE = lazy_regex(ANY.statements.offers)


# What only leads over to what follows.
_LEAD_CHARS, _KEPT_SENTENCES = 80, 4096


def kind_of(sentence: Sentence) -> tuple[Kind, float]:
    """Kind of a sentence, and the certainty of its wording: 1 is clear, 0.5 is a guess."""
    if sentence.voice != "tool":
        return _of_words(sentence.text, sentence.voice == "user", sentence.quoted)
    return _of_tool(sentence, sentence.text.lower(), "" if sentence.text.isascii() else sentence.text)


# A sentence is read at the flush, for the summary, and again at the next compaction.
@lru_cache(_KEPT_SENTENCES)
def _of_words(text: str, is_user: bool, quoted: bool) -> tuple[Kind, float]:
    lower = text.lower()
    words = frozenset(_WORD.findall(lower))
    chinese = "" if text.isascii() else text
    if _is_empty(text, lower, words):
        return Kind.EMPTY, 0.0
    asked = asks(text)
    if quoted:
        return (Kind.FACT, 0.6) if is_user and not asked else (Kind.EMPTY, 0.0)
    if not asked and is_error_line(lower):
        return Kind.FAILURE, 1.0
    if is_user and (rule := _rule(lower, words, chinese)) and not (asked and rule < 1):
        return Kind.RULE, rule
    if asked:
        return Kind.QUESTION, 1.0
    decided = not words.isdisjoint(_DECISION_WORDS) and _DECISION_WORDING.search(lower)
    if decided or (chinese and _DECISION_HINT.search(text) and _DECISION_ZH.search(text)):
        return Kind.DECISION, 1.0
    if is_user and (is_order(text) or _ASK_START.search(lower) or (chinese and _ASK_ZH.search(text))):
        return Kind.ASK, 1.0
    return _of_work(lower, chinese, own=not is_user)


def _is_empty(text: str, lower: str, words: frozenset[str]) -> bool:
    if (text[-1] in ":：" and len(text) <= _LEAD_CHARS) or not any(map(str.isalnum, text)):
        return True
    if len(text) < 60 and _EMPTY.search(lower):
        return True
    hinted = not text.isascii() or not words.isdisjoint(_HEDGE_WORDS)
    return hinted and _HEDGE.search(lower) is not None


def _rule(lower: str, words: frozenset[str], chinese: str) -> float:
    if not words.isdisjoint(_RULE_WORDS):
        if _STRONG_RULE.search(lower):
            return 1.0
        if _WEAK_RULE.search(lower):
            return 0.5
    if chinese and _RULE_HINT.search(chinese):
        return 1.0 if _STRONG_RULE_ZH.search(chinese) else 0.5 if _WEAK_RULE_ZH.search(chinese) else 0.0
    return 0.0


def _of_work(lower: str, chinese: str, *, own: bool) -> tuple[Kind, float]:
    failed = has_failed(lower, chinese)
    done = _is_done(lower, chinese)
    planned = bool(_PLAN.search(lower) or (chinese and _PLAN_HINT.search(chinese) and _PLAN_ZH.search(chinese)))
    # "Fixed the failing test" is done; "the fix failed again" is not.
    if done and not (failed and not _DONE.match(lower) and not lower.startswith("i ")):
        return Kind.DONE, 1.0 if own else 0.6
    if failed:
        return Kind.FAILURE, 1.0 if own else 0.8
    if planned and own:
        return Kind.PLAN, 1.0
    return Kind.FACT, 1.0


def _is_done(lower: str, chinese: str) -> bool:
    if chinese and _DONE_HINT.search(chinese) and _DONE_ZH.search(chinese):
        return not _NOT_DONE.search(lower)
    return _DONE.search(lower) is not None and not _NOT_DONE.search(lower)


def _of_tool(sentence: Sentence, lower: str, chinese: str) -> tuple[Kind, float]:
    empty = _is_empty(sentence.text, lower, frozenset(_WORD.findall(lower)))
    if empty or len(sentence.text) > 200 or is_exit_only(lower):
        return Kind.EMPTY, 0.0
    if names_outcome(lower):
        bad = sentence.failed or has_failed(lower, chinese)
        exit_zero = "exit code 0" in lower or "exit code: 0" in lower
        return (Kind.FAILURE, 0.9) if bad and not exit_zero else (Kind.DONE, 0.6)
    if sentence.failed and sentence.place < 3:
        return Kind.FAILURE, 0.7
    return Kind.EMPTY, 0.0


# --- the will of others -------------------------------------------------------------------------------------------

# An assistant that says "The user allowed everything" binds nobody: only the user's own words do.
_WHOSE_WILL = (
    r"(?:(?:the|our|my|your|this)\s+)?(?:(?:\w+\s+)?(?:users?|customers?|clients?|owners?|operators?|admins?"
    r"|administrators?|humans?|boss|bosses|managers?|principal|team|account\s+holder)|you|everyone|everybody"
    r"|both\s+of\s+us|all\s+of\s+us)"
)
_ADVERBS = (
    r"(?:(?:has|have|had|['’]ve|['’]s|already|explicitly|also|then|later|clearly|just|now|always|really|generally|fully"
    r"|all|both|never|only|would|does|do|did|not|don['’]t|doesn['’]t|didn['’]t|no\s+longer|recently|previously|expressly"
    r"|verbally|hereby|unanimously)\s+){0,4}"
)
_DECIDED = (
    r"(?:decided|agreed|chose|chosen|settled|approved|opted|concluded|determined|resolved|allowed|permitted"
    r"|established)"
)
_WILLED = (
    r"(?:allow(?:s|ed)?|permit(?:s|ted)?|authori[sz]e[sd]?|approve[sd]?|decide[sd]?|agree[sd]?|wants?|wanted|prefers?"
    r"|preferred|wish(?:es|ed)?|ask(?:s|ed)\s+(?:me|us|for|that|to|not)|requests?|requested|requires?|required|insists?"
    r"|insisted|instruct(?:s|ed)|told\s+(?:me|us)|tells\s+(?:me|us)|said|says|stated|states|confirm(?:s|ed)|accept(?:s|ed)"
    r"|consent(?:s|ed)|grant(?:s|ed)|ok['’]?(?:ed|d)|okayed|sign(?:s|ed)\s+off|(?:gave|gives?|given)\s+(?:\w+\s+){0,4}"
    r"(?:permission|approval|consent|light|go-ahead|carte\s+blanche|hand|access|authori[sz]ation|mandate|leave|blessing"
    r"|rule|instructions?|orders?|word)|waive[sd]?|expects?|expected|demand(?:s|ed)|chose|chosen|chooses|settled|opted"
    r"|(?:is|are|was|were|['’]s|['’]re)\s+(?:\w+\s+)?(?:fine|ok|okay|happy|comfortable|cool|good|aligned|on\s+board|in\s+(?:favou?r|agreement))"
    r"\s+(?:with|to|if|of|that|on)"
    r"|(?:has|have|had|raised)\s+no\s+objections?|mind|let(?:s)?\s+(?:me|us)|mandate[sd]?|order(?:s|ed)\s+(?:me|us|that|to)"
    r"|trusts?|trusted|likes?\s+(?:me|us|it)|forb(?:ids|ade|idden)|bann?ed|ruled|set\s+(?:the|a|this)\s+(?:\w+\s+)?(?:rule|policy)"
    r"|(?:has|have|had)\s+(?:a\s+|the\s+)?(?:\w+\s+)?(?:rule|preference|policy))"
)
_WILL = lazy_regex(
    rf"""(?ix)\b{_WHOSE_WILL}\s*{_ADVERBS}{_WILLED}\b
    | \b(?:they|he|she)\s*{_ADVERBS}(?:allow|permit|authori[sz]e|approve|(?:is|are|was|were|['’]re)\s+(?:fine|ok)\s+with
      |g[ai]ve\s+(?:\w+\s+)?permission|signed\s+off)
    | \b(?:we|the\s+two\s+of\s+us)\s*{_ADVERBS}{_DECIDED}\b
    | \b(?:was|were|is|are|been|it['’]s)\s+(?:\w+\s+){{0,2}}?(?:allowed|permitted|authori[sz]ed|agreed|decided|waived
      |mandated|pre-?approved|green-?lit|okayed)\b
    | (?:^\W*users?|\b(?:the|our|this)\s+(?:users?|owners?))\b(?:,[^,]{{0,30}},|,)?\s+(?:would|needs?|needed|has
      |have|had|likes?|loves?|hates?|is|was|will|must|should|can|cannot|may|also)\b
    | \bi(?:['’]m|['’]ve|\s+am|\s+was|\s+have|\s+had)(?:\s+been)?\s+(?:\w+\s+)?(?:allowed|permitted|authori[sz]ed
      |instructed|told|ordered|granted|cleared|given)\b
    | \bit(?:['’]s|\s+is|\s+was|\s+has)(?:\s+been)?\s+(?:approved|settled)\b | ^\W*confirmed:
    | \b(?:approved|confirmed|granted|cleared|accepted|signed\s+off|requested|demanded|set)\s+by\s+{_WHOSE_WILL}\b
    | \b(?:permission|approval|consent|authori[sz]ation|go-ahead|green\s+light|clearance|blanket\s+\w+|full\s+access
      |carte\s+blanche|free\s+rein|agreement)\b[^.!?]{{0,40}}\b(?:was|is|has|have|were|given|granted|received|obtained|got
      |place|applies|stands)\b
    | \b(?:have|has|had|got|received|obtained|with|per|by|under|on|at|following)\s+(?:the\s+|your\s+|a\s+|full\s+
      |explicit\s+|standing\s+|blanket\s+|user(?:['’]s)?\s+|customer(?:['’]s)?\s+){{1,4}}(?:permission|approval|consent|go-ahead
      |green\s+light|authori[sz]ation|instructions?|request|orders?|wish(?:es)?|decision|preference|mandate)\b
    | \b(?:according\s+to|as\s+per)\s+{_WHOSE_WILL}\b | \bon\s+behalf\s+of\s+{_WHOSE_WILL}\b
    | \b(?:user|customer|client|owner|your)(?:['’]s)?\s+(?:\w+\s+)?(?:decision|preference|rule|permission|wish|policy
      |instruction|approval|consent|choice)s?\b
    | ^\W*(?:user\s+|standing\s+|new\s+)?(?:decision|rule|permission|preference|policy|agreement|agreed|decided|approved
      |allowed|permitted|constraint|instruction)s?\b[^.:!?]{{0,20}}:
    | \bno\s+(?:need\s+(?:to\s+ask|for\s+(?:\w+\s+)?(?:confirmation|approval|permission))|confirmation|approval
      |permission)\b
    | \bwithout\s+(?:asking|confirmation|approval|permission|checking)\b"""
)
_WILL_HAN = lazy_regex(
    "(?:用户|用戶|客户|客戶|您|你|主人|老板|负责人|业主|管理员|我们|咱们|大家|双方)[已也都经經曾明确刚才之前在先早就还一致口头书面正式]{0,6}"
    "(?:允许|許可|许可|准许|同意|批准|授权|決定|决定|要求|希望|想要|偏好|更喜欢|确认过|认可|答应|吩咐|交代|指示|说过|表示|坚持|规定"
    "|选择|选定|接受|放行|不介意|没意见|没有意见|让我|叫我|说)"
    "|(?:^|[\\W])(?:用户|主人)(?:还|也|都|更|很|只|本人)?(?:想|喜欢|需要|要|会|可以|必须|不)"
    "|(?:他们?|她们?)[已也都]{0,3}(?:允许|许可|准许|授权|批准)"
    "|已经?(?:获得?|得到|被|取得|经)?(?:了)?(?:用户|客户|您|你)?的?(?:允许|授权|批准|许可|同意)|(?:经|获得?|得到|取得|征得)[了过]?(?:用户|客户|您|你|大家)的?"
    "(?:允许|授权|批准|许可|同意|确认)|(?:无需|不用|不必|不需要|无须)再?(?:确认|询问|请示|批准|问|征求)|一致(?:同意|决定)|(?:根据|按照|依照)(?:用户|客户|您|你)的"
    "|(?:被|获)(?:允许|授权|批准)|(?:^|[\\W])(?:决定|规则|偏好|许可|授权|约定|用户决定|用户偏好)[:：]|(?:用户|客户|您|你)的(?:决定|偏好|规则|要求|意愿|许可|授权|指示)"
)
_CONDITION = lazy_regex(f"(?i){ANY.statements.conditions}")


def reports_will(sentence: str) -> bool:
    """True if a sentence says that somebody has allowed, decided or demanded something, or lays down a rule."""
    if sentence.rstrip("\"'”’)） ").endswith(("?", "？", "吗", "呢")):
        return False
    for pattern in (_WILL,) if sentence.isascii() else (_WILL, _WILL_HAN):
        for match in pattern.finditer(sentence):
            if not _CONDITION.search(sentence, max(0, match.start() - 80), match.start()):
                return True
    return False


def lays_down(sentence: str) -> bool:
    """True if a sentence reports somebody's will, or is a rule: only a user's own words may be kept as such."""
    return reports_will(sentence) or bool(rules_of(sentence))

"""Owns what the wording of a sentence gives away: a rule, a decision, an outcome, a failure, a plan, an ask.

Invariants: pure; linear; a cue decides only where a sentence stands and how much it is worth, never what it says;
what a tool prints is never a rule, a decision or an ask. English and Chinese; in other languages a sentence is a
fact.
"""

from __future__ import annotations

import re
from enum import Enum

from indexer.documents.cues import asks
from memory_service.compaction.sentences import Sentence
from memory_service.compaction.statements import is_order


class Kind(Enum):
    """What a sentence is."""

    RULE = "rule"
    DECISION = "decision"
    DONE = "done"
    PLAN = "plan"
    FAILURE = "failure"
    ASK = "ask"
    QUESTION = "question"
    FACT = "fact"
    EMPTY = "empty"


_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?")

# Words that the patterns below need: most sentences have none, so that no pattern has to run.
_RULE_WORDS = frozenset(
    "never always must mustn't mustn’t don't don’t do ensure sure now circumstances only avoid prefer prefers rather "
    "preferred preference favourite favorite most least more less allowed forbidden required requirement requirements "
    "rule rules policy stick keep should shouldn't shouldn’t need needs have has limit insist want please use without "
    "cannot can't can’t hate love like no nothing future such always allergic vegetarian vegan".split()
)
_AT = r"(?:^|[,;:.—–(\"'“‘-] ?|\b(?:and|but|so|please|also|then|rule|should|must|to|we|you|i|they|will) )"
_STRONG_RULE = re.compile(
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
_WEAK_RULE = re.compile(
    r"\bshould(?:n['’]t| not)?\b|\bat (?:most|least)\b|\brequire[ds]?\b|\bstick (?:to|with)\b|\bkeep (?:it|the|all"
    r"|to)\b"
    r"|\b(?:needs?|has|have) to (?:be|stay|remain|work|support|run|fit)\b|\bplease (?:use|keep|write|answer|reply)\b"
    r"|\blimit(?:ed)? (?:to|of|is)\b|\b(?:favou?rite|preference)\b|\bwithout (?:any )?\w+ing\b"
    r"|\b(?:can(?:no|['’])t) (?:use|change|touch|exceed|be changed)\b|\bi (?:really |absolutely )?(?:hate|love)\b"
    r"|\b(?:allergic|vegetarian|vegan)\b|\b(?:i|we|she|he|they) can['’]?t (?:stand|eat|drink|walk|take|have|come|do)\b"
)
_RULE_HINT = re.compile("[不必务一只优总始永绝千别尽偏喜规以今统严切请应要最勿禁得过吃受]")
_STRONG_RULE_ZH = re.compile(
    "(?<!要)不要(?!紧|脸|么)|不准|不许|禁止|必须|务必|一定(?:要(?!.{0,8}吗)|不)|只能|只准|只用|只允许|优先(?!级)|总是(?!报|失|出)|始终"
    "|永远|绝不|绝对不|千万"
    "|不得(?!不)|(?:^|[，。；：、！ ]|请|也|就|都)别(?!人|的|处|名|墅|说|样|致)|偏好|更喜欢|规则|规矩|以后都|以后请"
    "|今后|统一用|统一使用|严禁|切勿|请勿"
    "|不可以(?!吗)|不能(?:用|改|动|超过|在|有|直接|碰)"
)
_WEAK_RULE_ZH = re.compile("应该|应当|尽量|最好|最多|至少|不超过|喜欢|要求|限制|过敏|吃素|不吃|受不了")
_DECISION = re.compile(
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
_DECISION_HINT = re.compile("[决选定采同最改敲商拍说就弃]")
_DECISION_ZH = re.compile(
    "决定|决策|选定|(?<!确|一|肯|稳|固|规)定了|定为|就用|就选|采用|选用|选择了|同意|确定(?:用|采|为|下)|最终|改用"
    "|换成|敲定|商定|拍板|说好|放弃|不再用"
)
_DONE = re.compile(
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
_DONE_HINT = re.compile("[已完修搞通成功上合部发解创添更好了]")
_DONE_ZH = re.compile(
    "已经?(?!知)|完成(?!不)|修好|修复了|搞定|(?:测试|检查|评审|审核|验证|全部|都|个)(?:全部|都)?通过|成功|上线了"
    "|合并了|部署了|部署好|发布了|解决了|创建了|添加了"
    "|更新了|写好|做好|改好|改完|跑通|加好|配好|预订好|订好|发送了|删除了"
)
_NOT_DONE = re.compile(
    r"\b(?:not|never|nothing|n['’]t|yet|will be|to be|should be|once|when|until|if|before|unless|almost)\b"
    r"|n['’]t\b|未|没有?(?!问题)|尚|还没|如果|等.{0,12}(?:后|再)|一旦"
)
_FAILURE = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|errors?|exceptions?|traceback|crash(?:es|ed|ing)?|tim(?:ed?|es) ?out|timeouts?|broken?"
    r"|could ?n[o'’]t|can(?:no|['’])t|unable|denied|refused|revert(?:ed)?|rolled back|not found|no such file|panic"
    r"|(?:does|did|do|is|was)(?:n['’]t| not) (?:work|help|fix|start|run|compile|working|load|connect)(?:ing)?"
    r"|no luck|dead end|segfault|unauthori[sz]ed|forbidden|aborted)\b"
)
_NO_FAILURE = re.compile(
    r"\b(?:0|no|without|zero) (?:errors?|fail(?:ures?|ed)?|exceptions?|warnings?)\b|没有(?:报错|错误|异常|失败)"
)
_FAILURE_HINT = re.compile("[失败报错异不没无崩超找拒回]")
_FAILURE_ZH = re.compile(
    "失败|报错|出错|错误|异常|不行|没用|无效|崩溃|超时|找不到|被?拒绝|回滚|没成功|没有成功|不起作用|没解决|起不来"
)
# What a program prints when it fails is no rule, whatever words it has.
_ERROR_LINE = re.compile(
    r"^(?:error|fatal|warn(?:ing)?|panic|e {2}|npm err!|err!|\[(?:error|warn|fatal)|traceback|\d{4}-\d\d-\d\d[t ]\d\d:)"
    r"|^\W*\w*(?:error|exception)\b ?[:：(]|^(?:报错|错误)[:：]"
)
_PLAN = re.compile(
    r"\b(?:working on|in progress|currently|next(?: step| up|,|:)|i['’]ll|i will|we['’]ll|we will|let me"
    r"|i['’]m going to|"
    r"going to|remaining|still (?:need|have|to|missing|open)|left to do|wip|started|starting|to ?do|not yet|pending"
    r"|blocked)\b"
)
_PLAN_HINT = re.compile("[正接下准还待进开]")
_PLAN_ZH = re.compile("正在|接下来|下一步|准备(?!好)|还需要?|还要|还剩|待办|进行中|开始(?!时)|尚未|还没")
_ASK_START = re.compile(
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
_ASK_ZH = re.compile(
    "^(?:你好|您好|好的|那|然后|接着|现在|另外)?[，,。！ ]*(?:请|帮|麻烦|我想|我要|我们想|我们要|我需要|我们需要"
    "|需要你|能不能|能否|可否|可不可以|给我|把"
    "|写|加|修|改|查|看看|做|跑|部署|实现|检查|分析|生成|翻译|总结|继续|整理|重构|比较|设计|解释)|帮我|帮忙|请你|麻烦你|你(?:帮|提醒)"
)
_EMPTY = re.compile(
    r"^\W*(?:(?:ok|okay|yes|yep|yeah|no|nope|sure|thanks?|thank you|great|perfect|cool|nice|good|fine|question|point"
    r"|idea|call|catch|job|work|hi|hello|hey|got it|"
    r"sounds good|will do|of course|you['’]re welcome|no problem|understood|noted|right|alright|awesome|done|so much|"
    r"very much|for that|morning|evening|afternoon|day|there|well|lovely|ha(?:ha)*|wow|let me know)\b\W*)+$"
    "|^\\W*(?:好的?|嗯+|是的?|对|行|可以|好问题|好主意|谢谢你?|多谢|没问题|收到|明白了?|知道了|你好|您好|不客气|当然"
    "|了解|好了|哈+|哈+谢谢|谢谢啦|ok)\\W*$"
)
_HEDGE_WORDS = frozenset("know feel happy hope anything".split())
_HEDGE = re.compile(
    r"\b(?:let me know|feel free|happy to help|hope this helps|anything else)\b|还有什么|如果还有|随时告诉"
)


# What only leads over to what follows.
_LEAD_CHARS = 40


def kind_of(sentence: Sentence) -> tuple[Kind, float]:
    """What a sentence is, and how clearly its wording says so: 1 is clear, 0.5 is a guess."""
    text, lower = sentence.text, sentence.text.lower()
    words = frozenset(_WORD.findall(lower))
    chinese = "" if text.isascii() else text
    if (text[-1] in ":：" and len(text) <= _LEAD_CHARS) or _says_nothing(text, lower, words):
        return Kind.EMPTY, 0.0
    if sentence.voice == "tool":
        return _of_tool(sentence, lower, chinese)
    asked = asks(text)
    if sentence.quoted:
        return (Kind.EMPTY, 0.0) if sentence.voice == "assistant" or asked else (Kind.FACT, 0.6)
    if not asked and _ERROR_LINE.search(lower):
        return Kind.FAILURE, 1.0
    if sentence.voice == "user" and (rule := _rule(lower, words, chinese)) and not (asked and rule < 1):
        return Kind.RULE, rule
    if asked:
        return Kind.QUESTION, 1.0
    decided = not words.isdisjoint(_DECISION_WORDS) and _DECISION.search(lower)
    if decided or (chinese and _DECISION_HINT.search(text) and _DECISION_ZH.search(text)):
        return Kind.DECISION, 1.0
    if sentence.voice == "user" and (is_order(text) or _ASK_START.search(lower) or (chinese and _ASK_ZH.search(text))):
        return Kind.ASK, 1.0
    return _of_work(lower, chinese, own=sentence.voice == "assistant")


def _says_nothing(text: str, lower: str, words: frozenset[str]) -> bool:
    if not any(map(str.isalnum, text)) or (len(text) < 60 and _EMPTY.search(lower)):
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


def has_failed(lower: str, chinese: str) -> bool:
    """Whether a text, given in lower case and as Chinese if it has any, speaks of a failure."""
    if _NO_FAILURE.search(lower):
        return False
    if "error" in lower or "exception" in lower or _FAILURE.search(lower):
        return True
    return bool(chinese) and _FAILURE_HINT.search(chinese) is not None and _FAILURE_ZH.search(chinese) is not None


def _is_done(lower: str, chinese: str) -> bool:
    if chinese and _DONE_HINT.search(chinese) and _DONE_ZH.search(chinese):
        return not _NOT_DONE.search(lower)
    return _DONE.search(lower) is not None and not _NOT_DONE.search(lower)


_OUTCOME = re.compile(
    r"\b\d+ (?:tests? )?(?:passed|failed|errors?|warnings?|failures?)\b|\bexit(?:ed)?(?: with)?(?: code"
    r"| status)?[ :=]+\d"
    r"|\bbuild (?:succe|fail)|\b(?:succeeded|successful(?:ly)?|deployed|published)\b|\w*(?:error|exception)\b ?:"
    r"|测试|成功|失败|报错|通过"
)


# What it was the exit of stands in no line; the commands of the ledger have it.
_EXIT_ONLY = re.compile(r"\W*(?:process )?(?:exit(?:ed)?(?: with)?(?: code| status)?|return code|退出码)\W*-?\d+\W*")


def _of_tool(sentence: Sentence, lower: str, chinese: str) -> tuple[Kind, float]:
    if len(sentence.text) > 200:
        return Kind.EMPTY, 0.0
    if _EXIT_ONLY.fullmatch(lower):
        return Kind.EMPTY, 0.0
    if _OUTCOME.search(lower):
        bad = sentence.failed or has_failed(lower, chinese)
        exit_zero = "exit code 0" in lower or "exit code: 0" in lower
        return (Kind.FAILURE, 0.9) if bad and not exit_zero else (Kind.DONE, 0.6)
    if sentence.failed and sentence.place < 3:
        return Kind.FAILURE, 0.7
    return Kind.EMPTY, 0.0

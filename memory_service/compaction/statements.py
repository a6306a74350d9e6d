"""Owns which sentences of a message must not be lost: rules, decisions, questions, answers to them, names.

Invariants: pure; linear; what is found is quoted, never reworded; Chinese has the same rules as English.
"""

from __future__ import annotations

import re

MAX_CHARS = 240

# Patterns run over lower case and begin with letters, which is what the engine skips ahead by; what has to stand
# before them is looked at afterwards.
_ORDER_START = re.compile(r"(?:^|[.!?,;:—–\n(*-]\s{0,3}|\b(?:please|you|should|must|and|but|we|so|to|can|ok|also)\s)\Z")
_RULE = re.compile(
    r"""(?x)(?:(?P<order>never|always|avoid|make\ssure|ensure|only|do\snot|don['’]?t
      (?!\s(?:worry|know|think|mind|care|remember|understand|see|have|get|bother|want|like|need)\b))\s[a-z`"']
    | must(?!\shave\b|\sbe\s(?:a|an|the|some)\b)(?:n['’]?t)?\b|may\snot\b|not\sallowed\b|forbidden\b|prohibited\b
    | required\sto\b|under\sno\scircumstances\b|no\smatter\swhat\b|at\sall\stimes\b|without\s(?:asking|my)\b)"""
)
_RULE_HAN = re.compile(
    "不要|必须|一律|不得|禁止|务必|永远|绝不|绝对不|不许|不准|只能|只用|只允许|始终|千万|切勿|请勿|不可以|每次都要"
    "|(?:^|[，。！；、\\n])(?:请)?(?:别|总是)"
)
_RULE_HINTS = (
    "never", "always", "avoid", "make sure", "ensure", "only ", "do not", "don't", "don’t", "dont ", "must", "may not",
    "not allowed", "forbidden", "prohibited", "required to", "no circumstances", "no matter", "all times", "without ",
)  # fmt: skip
_DECISION = re.compile(
    r"""(?x)(?:decided|agreed\s+(?:to|on|that)|we(?:['’]ll|\s+will|\s+are\s+going\s+to)\s+(?:use|go|keep|stick|switch|ship
      |drop|stay|move|start|deploy|adopt|store|run)
      |let['’]?s\s+(?:use|go|keep|stick|switch|do|drop|ship|stay|take|start|move|call|make)
      |going\s+with|go\s+with|decision|settled\s+on|chose|switch(?:ed|ing)?\s+to|instead\s+of)\b"""
)
_DECISION_HAN = re.compile(
    "决定|就用|改为|改成|改用|定为|定在|采用|选用|敲定|就这么|我们用|统一用|换成|说好|商定|确定用|选择了"
)
_DECISION_HINTS = (
    "decided", "agreed", "we'll", "we’ll", "we will", "going to", "let's", "let’s", "lets ", "go with", "going with",
    "decision", "settled on", " chose", "switch", "instead of",
)  # fmt: skip
_QUESTION_END = ("?", "？", "吗", "呢", "吗。", "呢。")
_REQUEST = re.compile(
    r"(?i)^(?:\W{0,3})(?:please|can you|could you|would you|will you|i need you to|i want you to|help me"
    r"|(?:now|next|then|also|ok|so),? (?:please )?[a-z]+\b)|\bplease\b"
    r"|帮我|请|麻烦|能不能|可以.{0,12}吗|给我|我要你|我想让你"
)
_IMPERATIVE = re.compile(
    r"(?i)^(?:fix|add|remove|delete|write|create|update|run|check|find|show|explain|implement|refactor|deploy|test|make|move"
    r"|rename|change|use|try|look|read|list|send|book|set|build|review|search|compare|continue|undo)\b"
    r"|^(?:修|改|加|删|写|创建|更新|运行|检查|查|找|看|实现|重构|部署|测试|继续|列出|发送|比较|把)"
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
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？；]|\n|$")
_BLANKS = re.compile(r"\s+")


def one_line(text: str, limit: int = MAX_CHARS) -> str:
    """A text on one line, cut at `limit` characters with a mark."""
    line = _BLANKS.sub(" ", text[: 4 * limit]).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def rules_of(text: str) -> list[str]:
    """The sentences in which a user says what must or must not be done."""
    found: list[str] = []
    if _has_any(text.lower(), _RULE_HINTS):
        found += _sentences_around(text, _RULE)
    if not text.isascii():
        found += _sentences_around(text, _RULE_HAN)
    return [rule for rule in dict.fromkeys(found) if not _asks(rule)]


def decisions_of(text: str) -> list[str]:
    """The sentences that decide something."""
    found: list[str] = []
    if _has_any(text.lower(), _DECISION_HINTS):
        found += _sentences_around(text, _DECISION)
    if not text.isascii():
        found += _sentences_around(text, _DECISION_HAN)
    return [decision for decision in dict.fromkeys(found) if not _asks(decision)]


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
    return any(hint in text for hint in hints)


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"'”’)） ").endswith(_QUESTION_END)


def _sentences(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        end = _SENTENCE_END.search(text, at)
        stop = end.end() if end and end.end() > at else at + 1
        sentence = text[at:stop].strip()
        if sentence:
            found.append(one_line(sentence))
        at = stop
    return found


def _sentences_around(text: str, pattern: re.Pattern[str]) -> list[str]:
    """The sentences in which a pattern is found, each once."""
    lowered = text.lower()
    lowered = lowered if len(lowered) == len(text) else text  # a few letters take more room in lower case
    found, end = [], -1
    for match in pattern.finditer(lowered):
        if match.start() < end or not _stands_free(lowered, match):
            continue
        # A pattern may begin with the end of the sentence before.
        inside = match.end() - 1
        window = max(0, inside - MAX_CHARS)
        stop = _SENTENCE_END.search(text, inside, inside + MAX_CHARS)
        end = stop.end() if stop else min(len(text), inside + MAX_CHARS)
        found.append(one_line(text[window + _last_border(text[window:inside]) : end].strip(" \t\n-*>#•")))
    return found


def _stands_free(lowered: str, match: re.Match[str]) -> bool:
    """Whether a match begins a word, and where it is an order, a clause."""
    start = match.start()
    if start and lowered[start - 1].isascii() and lowered[start - 1].isalnum() and lowered[start].isascii():
        return False
    if "order" not in match.re.groupindex or not match["order"]:
        return True
    return bool(_ORDER_START.search(lowered, max(0, start - 12), start))


_BORDER = re.compile(r"[.!?]\s|[。！？；\n]")


def _last_border(text: str) -> int:
    end = 0
    for match in _BORDER.finditer(text):
        end = match.end()
    return end

"""Salience: how much of a sentence is specific, and how much a statement is worth keeping.

Invariants: pure; linear; the same for a sentence and for the line of an earlier summary that quotes it. English and
Chinese are read for the same marks (decision, preference, event, id, applause); the word lists are common words of the
two languages and name no person, product or topic. The worth is a number from these marks, higher is better; the same
words get the same worth whoever says them, but for the role: what an assistant says without a name is kept only if it
brings a fact.

Source: a logistic regression on whether a turn of a long talk between two people is asked for later, each talk judged
by what was learned from the others (area under the curve .82 to .89); rounded by hand. Marks of work (decision, rule,
identifier, outcome) hardly occur there and were weighed by judgement.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from indexer.common import HAN, HANGUL, KANA, lazy_regex
from indexer.language import ANY, STOP_WORDS, has_time_words, has_unspaced

# In this order: what one has found, the next does not see. Most sentences have nothing that an expression begins
# with, so that they need not be searched for it: `0` stands for any digit, `None` for no hint.
_PARTICULARS: tuple[tuple[str, str | None, re.Pattern[str]], ...] = (
    ("code", "`", lazy_regex(r"`[^`]{2,80}`")),
    ("link", "://", lazy_regex(r"\w{2,10}://\S+")),
    ("link", "@", lazy_regex(r"[\w.+-]+@[\w-]+\.\w+")),
    ("path", "/", lazy_regex(r"(?<![\w/])(?:~|\.{1,2})?/?[\w.@-]+(?:/[\w.@-]+)++/?")),
    ("path", ".", lazy_regex(r"[\w-]+\.(?:py|tsx?|js|go|rs|java|md|json|ya?ml|toml|sql|sh|csv|txt|log)\b")),
    ("id", "_", lazy_regex(r"[a-zA-Z]+_\w+")),
    ("id", "--", lazy_regex(r"--[a-z][\w-]+")),
    ("id", "#", lazy_regex(r"#\d+")),
    ("id", None, lazy_regex(r"[A-Z]{2,}[-_]?\d[\w-]*|[a-z][A-Z]\w+")),
    ("id", "0", lazy_regex(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")),
    (
        "number",
        "0",
        lazy_regex(r"\d[\d.,:/-]*+ ?(?:%|°|[a-zA-Zµ]{1,12}\b|[年月日号点分秒元块万亿人个台件次度米天周小克])?"),
    ),
    ("name", None, lazy_regex(r"[a-z,;] ([A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)*)")),
)
_DIGIT = lazy_regex(r"\d")
_CHINESE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("count", lazy_regex("[一二两三四五六七八九十百千]{1,6}[年月日号点元块万亿人个台件次度米天周小]")),
    ("name", lazy_regex("[《「“][^》」”]{1,30}[》」”]")),
)
_IDENTIFIERS = ("link", "path", "id")
_WEIGHTS = {"link": 1.4, "path": 1.2, "code": 0.8, "id": 1.2, "number": 0.8, "count": 0.5, "name": 0.8}
# A second number in a sentence says less than the first.
_DECAY = 0.5
_LEAST = 0.4
_WORD = lazy_regex(r"[a-z]+(?:['’]m)?")
_PERSONAL = frozenset(
    "my our i'm i’m birthday deadline address phone located owner contact budget due stored live lives allergic "
    "named".split()
)
_PERSONAL_ZH = lazy_regex("我的|我们的|我是|我在|我住|生日|截止|地址|电话|邮箱|预算|负责人?|存放|部署在|过敏|位于")
_INTRODUCED = lazy_regex(ANY.salience.introduced)
_INTRODUCTIONS = ("name", "call", "i'm", "i’m", "i am", "this is", "叫", "名字", "我姓", "是")
_STRESSED = frozenset("remember fyi important importantly btw reminder".split())
_STRESSED_PHRASES = ("note that", "keep in mind", "by the way", "for the record")
_STRESSED_ZH = lazy_regex("记住|记一下|记得|注意|重要|顺便|提醒|备忘|说明一下")
_ONLY_LISTED = lazy_regex(r"[\s,;，、|/`'\"()\[\]{}:*•-]+")


def particulars(text: str) -> dict[str, int]:
    """Counts of links, paths, codes, ids, numbers, counts and names in a text, by kind."""
    return _find_specifics(text)[0]


def _find_specifics(text: str) -> tuple[dict[str, int], str]:
    """Specifics of a text by kind, and the text without its codes, links, paths and ids."""
    fields: dict[str, int] = {}
    digits = _DIGIT.search(text) is not None
    for kind, hint, pattern in _PARTICULARS:
        if hint is not None and not (digits if hint == "0" else hint in text):
            continue
        if kind in ("number", "name"):
            count = len(pattern.findall(text))
        else:
            text, count = pattern.subn(" ", text)
        if count:
            fields[kind] = fields.get(kind, 0) + count
    if not text.isascii():
        for kind, pattern in _CHINESE:
            if count := len(pattern.findall(text)):
                fields[kind] = fields.get(kind, 0) + count
    return fields, text


def worth(text: str) -> float:
    """Specificity of a sentence, from 0.4 to about 8."""
    total = _LEAST
    for kind, count in particulars(text).items():
        total += _WEIGHTS[kind] * (1 + _DECAY * (min(count, 3) - 1))
    lower = text.lower()
    if _may_introduce(lower) and _INTRODUCED.search(text):
        total += 4.0
    words = frozenset(_WORD.findall(lower))
    chinese = not lower.isascii()
    if not words.isdisjoint(_PERSONAL) or (chinese and _PERSONAL_ZH.search(lower)):
        total += 0.7
    is_stressed = not words.isdisjoint(_STRESSED) or any(phrase in lower for phrase in _STRESSED_PHRASES)
    if is_stressed or (chinese and _STRESSED_ZH.search(lower)):
        total += 1.0
    return total


def _may_introduce(lower: str) -> bool:
    # A plain loop takes half the time of `any`, and every sentence comes through here.
    for hint in _INTRODUCTIONS:
        if hint in lower:
            return True
    return False


def has_identifiers(text: str) -> bool:
    """True if a text names a link, an address, a path or an id."""
    return not set(_IDENTIFIERS).isdisjoint(particulars(text))


def is_bare_list(text: str) -> bool:
    """True if a text is nothing but paths, links or ids, which are kept elsewhere."""
    if any(map(str.isalpha, text.split())):
        return False
    fields, rest = _find_specifics(text)
    return not fields.keys().isdisjoint((*_IDENTIFIERS, "code")) and not _ONLY_LISTED.sub("", rest)


Mark = Literal[
    "time",
    "number",
    "identifier",
    "quote",
    "name",
    "decision",
    "rule",
    "preference",
    "plan",
    "event",
    "outcome",
    "open",
    "relation",
    "other",
    "applause",
    "feeling",
]

_NOTE_WORD = lazy_regex(r"[a-z0-9]+(?:['’][a-z]+)?")
_HAN_RUN = lazy_regex(f"[{HAN}{KANA}{HANGUL}]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH: dict[Mark, frozenset[str]] = {
    "number": _words(
        "two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred thousand million dozen "
        "twice half couple"
    ),
    "decision": _words(
        "decided decide decision decisions agreed chose chosen approved settled switched switching "
        "switch adopted instead picked "
        "confirmed rejected selected"
    ),
    "rule": _words(
        "always never must mustn't shouldn't cannot required requires policy rule rules forbidden ensure avoid only "
        "mandatory don't prohibited convention"
    ),
    "preference": _words(
        "prefer prefers preferred favorite favourite fave faves favorites favourites enjoy enjoys hate hates dislike "
        "dislikes allergic allergy vegetarian vegan fan rather usually"
    ),
    "plan": _words(
        "plan plans planning going gonna will i'll we'll deadline due scheduled schedule upcoming "
        "tomorrow todo remind promise "
        "promised intend aim goal goals hoping want wants budget"
    ),
    "event": _words(
        "went got bought made started joined finished visited took won lost signed moved met adopted found tried "
        "learned saw came gave had began built wrote ran sold paid broke quit left hired passed accepted applied "
        "attended organized organised volunteered participated created painted played watched cooked baked hiked "
        "travelled traveled graduated launched opened received booked ordered spent hosted completed published "
        "submitted taught grew caught drove flew planted named called been new first since ago born married engaged "
        "divorced retired works work lives live"
    ),
    "outcome": _words(
        "fixed failed fails error errors bug cause caused because deployed merged created released migrated crashed "
        "resolved upgraded installed configured enabled disabled removed renamed reverted measured "
        "limit default runs uses"
    ),
    "open": _words("blocked pending unclear unresolved waiting unknown undecided outstanding missing"),
    "relation": _words(
        "mom dad mum mother father brother sister son daughter wife husband kid kids child children friend friends "
        "boss colleague colleagues family dog dogs cat cats pet pets partner grandma grandpa grandmother grandfather "
        "aunt uncle cousin nephew niece neighbor neighbour girlfriend boyfriend fiance puppy baby parents roommate "
        "customer client manager doctor teacher coach team"
    ),
    "other": _words("you your you're you've you'll yours u ya you'd yourself"),
    "applause": _words(
        "great awesome amazing cool wow nice glad proud sounds thanks thank congrats congratulations appreciate "
        "wonderful fantastic incredible inspiring luck agree totally definitely absolutely lovely beautiful looks "
        "sweet bet happy impressive brave adorable cute gorgeous stunning yeah yay rock welcome kind wish"
    ),
    "feeling": _words(
        "support positive journey joy passion passionate dedication motivated motivating inspire "
        "inspired inspires hard "
        "difference impact strength strong keep believe together moments special important memories peace rewarding "
        "fulfilling growth meaningful life dreams bond connection experience feel feeling feels felt really makes make"
    ),
}
_CHINESE_NOTE: dict[Mark, re.Pattern[str]] = {
    "decision": lazy_regex(
        "决定|決定|定下|敲定|商定|约定|約定|定在|定为|改用|换成|換成|改成|改为|改到|选了|选用|选定|确定|確定|同意|拍板|通过了|采用"
    ),
    "rule": lazy_regex(
        "必须|必須|一定要|不要|不能|不许|不得|不准|禁止|务必|總是|总是|永远|从不|从来不|规定|规则|規則|以后都|以后别|统一|只能|只用|只要|别再|要求"
    ),
    "preference": lazy_regex(
        "喜欢|喜歡|偏好|爱吃|爱喝|爱看|爱好|讨厌|討厭|不[吃喝](?!了)|过敏|過敏|习惯|習慣|更愿意|宁愿|最爱|倾向|吃素|口味"
    ),
    "plan": lazy_regex(
        "计划|計劃|打算|准备|準備|将于|截止|截至|安排|预计|預計|预定|待办|提醒|答应|保证|目标|要去|要在|会在|之前交|前交|前完成|预算|預算"
    ),
    "event": lazy_regex(
        "[一-鿿](?:了|(?<!超)过)(?![解不程敏])|参加|參加|入职|离职|毕业|搬到|结婚|出生|生日|住在|来自|叫做|名叫|在[\u4e00-\u9fff]{2,8}(?:工作|上班|上学|读书)"
    ),
    "outcome": lazy_regex(
        "修复|修復|修好|失败|失敗|报错|報錯|错误|原因|导致|導致|因为|上线|上線|发布|發布|创建|合并|部署|解决|解決|升级|配置|迁移|回滚|超时|默认|上限"
    ),
    "open": lazy_regex("待定|还没|還沒|尚未|未解决|待确认|等待|卡在|不清楚|未知|悬而未决|缺少"),
    "relation": lazy_regex(
        "妈妈|爸爸|父亲|母亲|老婆|妻子|丈夫|老公|儿子|女儿|孩子|哥哥|姐姐|弟弟|妹妹|朋友|同事|老板|客户|奶奶|爷爷|外婆|外公|家人|宠物"
        "|[一-鿿]{1,3}(?:先生|女士|老师|经理|总监|医生|主任|阿姨|叔叔)|(?:我家|养了?)[一-鿿]{0,4}[狗猫]"
    ),
    "other": lazy_regex("[你您]"),
    "applause": lazy_regex(
        "太好|真好|真棒|好棒|厉害|羡慕|恭喜|加油|谢谢|多谢|感谢|祝你|真不错|开心|高兴|好看|漂亮|期待|同意你|说得对|有道理"
    ),
    "feeling": lazy_regex("感觉|觉得|支持|鼓励|坚持|努力|意义|幸福|温暖|感动|心情|压力|梦想|成长|快乐"),
}
_NUMBER = lazy_regex(
    "[0-9]+|[一二两兩三四五六七八九十百千万]+(?=[个個块塊元天人次台套件点點年月周岁歲本张張条條米斤倍页頁版成种])"
    "|[一-鿿]分之[一-鿿]"
)
_ENGLISH_MARKS: dict[str, tuple[Mark, ...]] = {
    word: tuple(mark for mark, listed_keys in _ENGLISH.items() if word in listed_keys)
    for word in frozenset[str]().union(*_ENGLISH.values())
}
# Each alternative of the pattern below has one of these characters.
_IDENTIFIER_HINT = lazy_regex("[0-9`/@._#-]")
_IDENTIFIER = lazy_regex(
    r"https?://|`[^`\n]{2,80}`|(?<!\w)#[0-9]{1,8}\b|\b[A-Z][A-Z0-9]{1,9}-[0-9]{1,8}\b|[\w.+-]{1,64}@[\w-]{1,64}\.\w"
    r"|(?<![\w/])(?:~|\.{1,2})?/[\w.-]{1,80}/[\w./-]|\b\w{1,64}\.(?:py|js|ts|tsx|go|rs|java|c|cpp|h|md|json|ya?ml|toml"
    r"|sql|sh|txt|csv|pdf|html|env|cfg|ini|lock)\b|\bv?\d{1,8}\.\d{1,8}\.\d|\b[0-9a-f]{8}-[0-9a-f]{4}-"
    r"|\b(?=[0-9a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{7,40}\b|[^\W_]_\w|(?<![\w-])--[a-z][\w-]"
)
_QUOTE = lazy_regex('["“「『《][^"“”「」『』《》\n]{2,80}["”」』》]')
_CAPITALISED = lazy_regex(r"(?<=[a-z0-9,;:] )[A-Z][\w'’-]+")
_CHINESE_NAME = lazy_regex("[叫姓](?!做|法|我|你|他|她)[一-鿿A-Za-z]|《|[一-鿿] ?[A-Za-z]{2,}")
_LIMITS: dict[Mark, int] = {"number": 2, "name": 3, "event": 3, "feeling": 4, "applause": 3, "other": 3, "plan": 2}


# Chinese words of grammar, as `words_of` cuts them.
_GRAMMAR_PAIRS = _words(
    "我们 你们 他们 这个 那个 什么 怎么 就是 还是 不是 可以 一个 没有 如果 所以 因为 但是 然后 已经 现在 "
    "的话 时候 知道 觉得 应该 大家 这样 那样 这些 那些 一下"
)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; of Chinese, the runs cut in pairs of characters."""
    words = _NOTE_WORD.findall(text.lower().replace("’", "'"))
    if not text.isascii():
        for run in _HAN_RUN.findall(text):
            words.extend(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return words


def content_of(words: Iterable[str]) -> set[str]:
    """The words that carry content."""
    return {word for word in words if word.partition("'")[0] not in STOP_WORDS and word not in _GRAMMAR_PAIRS}


def marks_of(text: str, words: list[str], names: tuple[str, ...]) -> Counter[Mark]:
    """Counts of each mark in a text.

    Args:
        text: One or more statements.
        words: Its words, see `words_of`.
        names: The speakers of the stretch: who is spoken to is no name that the text brings in.
    """
    counts = Counter(mark for word in words if word in _ENGLISH_MARKS for mark in _ENGLISH_MARKS[word])
    counts["time"] = int(has_time_words(text))
    counts["number"] += len(_NUMBER.findall(text))
    counts["identifier"] = int(_IDENTIFIER_HINT.search(text) is not None and _IDENTIFIER.search(text) is not None)
    counts["quote"] = int(_QUOTE.search(text) is not None)
    counts["name"] = sum(name not in names and name[:2] not in ("I'", "I’") for name in _CAPITALISED.findall(text))
    if not text.isascii() and has_unspaced(text):
        for mark, pattern in _CHINESE_NOTE.items():
            counts[mark] += len(pattern.findall(text))
        counts["name"] += len(_CHINESE_NAME.findall(text))
    return +counts


def limit_marks(*values: Mapping[Mark, int]) -> dict[Mark, int]:
    """The marks of several statements together; a mark counts a few times, not as often as it occurs."""
    total: Counter[Mark] = Counter()
    for marks in values:
        total.update(marks)
    return {mark: min(count, _LIMITS.get(mark, 2)) for mark, count in total.items()}


_BIAS = -3.2
_LENGTH = 0.9  # for the logarithm of the number of content words
_ANSWER = 2.2  # it answers a question
_ANSWER_LENGTH = -0.4  # of which long answers need less
_PICTURE = 0.6
WEIGHTS: dict[Mark, float] = {
    "time": 1.3,
    "number": 0.4,
    "identifier": 0.8,
    "quote": 0.9,
    "name": 0.35,
    "decision": 0.8,
    "rule": 0.5,
    "preference": 0.4,
    "plan": 0.1,
    "event": 0.2,
    "outcome": 0.4,
    "open": 0.4,
    "relation": 0.2,
    "other": -0.25,
    "applause": -0.25,
    "feeling": -0.2,
}
FACTS: frozenset[Mark] = frozenset(WEIGHTS) - {"other", "applause", "feeling"}


def worth_of(marks: Mapping[Mark, int], content: int, *, answers: bool = False, picture: bool = False) -> float:
    """The worth of one or more statements, as a log-odds.

    Args:
        marks: See `marks_of`.
        content: How many content words they have.
        answers: Whether they follow a question.
        picture: Whether they come with a picture.
    """
    length = math.log1p(content)
    worth = _BIAS + _LENGTH * length + sum(WEIGHTS[mark] * count for mark, count in marks.items())
    if answers:
        worth += _ANSWER + _ANSWER_LENGTH * length
    return worth + _PICTURE * picture


def chance(worth: float) -> float:
    """A worth as a number from 0 to 1."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, worth))))

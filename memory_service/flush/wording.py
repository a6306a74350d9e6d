"""Owns what the wording of a statement gives away: a decision, a preference, an event, an id, mere applause. Pure.

Invariants: linear in the length of the text; English and Chinese are read for the same marks; the word lists are
common words of the two languages and name no person, product or topic.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from indexer.analysis import STOP_WORDS, has_unspaced
from indexer.documents.cues import has_time_words

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

_WORD = re.compile(r"[a-z0-9]+(?:['’][a-z]+)?")
_HAN_RUN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7a3]+")


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
_CHINESE: dict[Mark, re.Pattern[str]] = {
    "decision": re.compile(
        "决定|決定|定下|敲定|商定|约定|約定|定在|定为|改用|换成|換成|改成|改为|改到|选了|选用|选定|确定|確定|同意|拍板|通过了|采用"
    ),
    "rule": re.compile(
        "必须|必須|一定要|不要|不能|不许|不得|不准|禁止|务必|總是|总是|永远|从不|从来不|规定|规则|規則|以后都|以后别|统一|只能|只用|只要|别再|要求"
    ),
    "preference": re.compile(
        "喜欢|喜歡|偏好|爱吃|爱喝|爱看|爱好|讨厌|討厭|不吃|不喝|过敏|過敏|习惯|習慣|更愿意|宁愿|最爱|倾向|吃素|口味"
    ),
    "plan": re.compile(
        "计划|計劃|打算|准备|準備|将于|截止|截至|安排|预计|預計|预定|待办|提醒|答应|保证|目标|要去|要在|会在|之前交|前交|前完成|预算|預算"
    ),
    "event": re.compile(
        "[一-鿿](?:了|(?<!超)过)(?![解不程敏])|参加|參加|入职|离职|毕业|搬到|结婚|出生|生日|住在|来自|叫做|名叫|在[\u4e00-\u9fff]{2,8}(?:工作|上班|上学|读书)"
    ),
    "outcome": re.compile(
        "修复|修復|修好|失败|失敗|报错|報錯|错误|原因|导致|導致|因为|上线|上線|发布|發布|创建|合并|部署|解决|解決|升级|配置|迁移|回滚|超时|默认|上限"
    ),
    "open": re.compile("待定|还没|還沒|尚未|未解决|待确认|等待|卡在|不清楚|未知|悬而未决|缺少"),
    "relation": re.compile(
        "妈妈|爸爸|父亲|母亲|老婆|妻子|丈夫|老公|儿子|女儿|孩子|哥哥|姐姐|弟弟|妹妹|朋友|同事|老板|客户|奶奶|爷爷|外婆|外公|家人|宠物"
        "|[一-鿿]{1,3}(?:先生|女士|老师|经理|总监|医生|主任|阿姨|叔叔)|(?:我家|养了?)[一-鿿]{0,4}[狗猫]"
    ),
    "other": re.compile("[你您]"),
    "applause": re.compile(
        "太好|真好|真棒|好棒|厉害|羡慕|恭喜|加油|谢谢|多谢|感谢|祝你|真不错|开心|高兴|好看|漂亮|期待|同意你|说得对|有道理"
    ),
    "feeling": re.compile("感觉|觉得|支持|鼓励|坚持|努力|意义|幸福|温暖|感动|心情|压力|梦想|成长|快乐"),
}
_NUMBER = re.compile(
    "[0-9]+|[一二两兩三四五六七八九十百千万]+(?=[个個块塊元天人次台套件点點年月周岁歲本张張条條米斤倍页頁版成种])"
    "|[一-鿿]分之[一-鿿]"
)
_ENGLISH_MARKS: dict[str, tuple[Mark, ...]] = {
    word: tuple(mark for mark, listed in _ENGLISH.items() if word in listed)
    for word in frozenset[str]().union(*_ENGLISH.values())
}
# Each alternative of the pattern below has one of these characters.
_IDENTIFIER_HINT = re.compile("[0-9`/@._#-]")
_IDENTIFIER = re.compile(
    r"https?://|`[^`\n]{2,80}`|(?<!\w)#[0-9]{1,8}\b|\b[A-Z][A-Z0-9]{1,9}-[0-9]{1,8}\b|[\w.+-]{1,64}@[\w-]{1,64}\.\w"
    r"|(?<![\w/])(?:~|\.{1,2})?/[\w.-]{1,80}/[\w./-]|\b\w{1,64}\.(?:py|js|ts|tsx|go|rs|java|c|cpp|h|md|json|ya?ml|toml"
    r"|sql|sh|txt|csv|pdf|html|env|cfg|ini|lock)\b|\bv?\d{1,8}\.\d{1,8}\.\d|\b[0-9a-f]{8}-[0-9a-f]{4}-"
    r"|\b(?=[0-9a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{7,40}\b|[^\W_]_\w|(?<![\w-])--[a-z][\w-]"
)
_QUOTE = re.compile('["“「『《][^"“”「」『』《》\n]{2,80}["”」』》]')
_CAPITALISED = re.compile(r"(?<=[a-z0-9,;:] )[A-Z][\w'’-]+")
_CHINESE_NAME = re.compile("[叫姓](?!做|法|我|你|他|她)[一-鿿A-Za-z]|《|[一-鿿] ?[A-Za-z]{2,}")
_LIMITS: dict[Mark, int] = {"number": 2, "name": 3, "event": 3, "feeling": 4, "applause": 3, "other": 3, "plan": 2}


# Chinese words of grammar, as `words_of` cuts them.
_GRAMMAR_PAIRS = _words(
    "我们 你们 他们 这个 那个 什么 怎么 就是 还是 不是 可以 一个 没有 如果 所以 因为 但是 然后 已经 现在 "
    "的话 时候 知道 觉得 应该 大家 这样 那样 这些 那些 一下"
)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; of Chinese, the runs cut in pairs of characters."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    if not text.isascii():
        for run in _HAN_RUN.findall(text):
            words.extend(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return words


def content_of(words: Iterable[str]) -> set[str]:
    """The words that carry content."""
    return {word for word in words if word.partition("'")[0] not in STOP_WORDS and word not in _GRAMMAR_PAIRS}


def marks_of(text: str, words: list[str], names: tuple[str, ...]) -> Counter[Mark]:
    """How often each mark occurs in a text.

    Args:
        text: One or more statements.
        words: Its words, see `words_of`.
        names: The speakers of the stretch: who is spoken to is no name that the text brings in.
    """
    found = Counter(mark for word in words if word in _ENGLISH_MARKS for mark in _ENGLISH_MARKS[word])
    found["time"] = int(has_time_words(text))
    found["number"] += len(_NUMBER.findall(text))
    found["identifier"] = int(_IDENTIFIER_HINT.search(text) is not None and _IDENTIFIER.search(text) is not None)
    found["quote"] = int(_QUOTE.search(text) is not None)
    found["name"] = sum(name not in names and name[:2] not in ("I'", "I’") for name in _CAPITALISED.findall(text))
    if not text.isascii() and has_unspaced(text):
        for mark, pattern in _CHINESE.items():
            found[mark] += len(pattern.findall(text))
        found["name"] += len(_CHINESE_NAME.findall(text))
    return +found


def limited(*found: Mapping[Mark, int]) -> dict[Mark, int]:
    """The marks of several statements together; a mark counts a few times, not as often as it occurs."""
    total: Counter[Mark] = Counter()
    for marks in found:
        total.update(marks)
    return {mark: min(count, _LIMITS.get(mark, 2)) for mark, count in total.items()}

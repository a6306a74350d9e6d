"""The names that people are greeted by: "Hey Kate!" from Elise in a talk of two, thrice, and Kate is the other.

Invariants: pure; only the beginning of what is said counts; where more than two speak, nobody knows who is greeted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from indexer.analysis import STOP_WORDS, fold, has_unspaced
from indexer.documents.stamps import leading_stamp

# Once or twice it may be somebody else who is greeted.
_GREETINGS = 3
_GREETED_CHARS = 160
_SAID_BY = re.compile(r"(?:\*\*|__)?[^\W\d_][^:：\n.,;!?]{0,31}(?:\*\*|__)?[:：](?:\*\*|__)?\s*")
_NAME, _HAN_NAME = r"[^\W\d_][^\W\d_'’-]+", r"[\u4e00-\u9fff]{2,4}?"
_END = r"\s*(?:[!,.?;:~…！，。？；：～—–-]|[^\w\s'’]|$)"
_GREETING = re.compile(
    rf"""(?:(?:oh|aw|aww|wow)\b[\s,]*)?
    (?:hey|hi|hello|hiya|dear|(?:good[ ])?(?:morning|afternoon|evening|night)|thanks|thank[ ]you|bye
      |welcome(?:[ ]back)?)(?:[ ](?:there|again|so[ ]much|a[ ]lot|a[ ]bunch))?(?:,\s*|\s+)(?P<name>{_NAME}){_END}""",
    re.IGNORECASE | re.VERBOSE,
)
_HAN_HELLO = "(?:嗨|嘿|哈喽|哈啰|你好|您好|早上好|早安|上午好|中午好|下午好|晚上好|晚安|再见|再見)"
_HAN_GREETING = re.compile(
    rf"(?:{_HAN_HELLO}[啊呀]?[，,\s]*|(?:早|亲爱的|親愛的|(?:谢谢|謝謝|多谢|多謝)[你您]?啦?)[，,\s]+)"
    rf"(?P<name>{_NAME}?|{_HAN_NAME})[啊呀]?{_END}"
    rf"|(?P<first>{_HAN_NAME})[，,\s]+{_HAN_HELLO}{_END}"
)
# What is said to anybody.
_ANYBODY = STOP_WORDS | frozenset(
    """
    again all alexa amigo amigos angel anyway babe baby beautiful boss bro brother bud buddy champ chef chief coach
    crew dad daddy darling dear dearest doc doctor dude everybody everyone fam fella fellas folks friend friends gang
    gentlemen girl girls google gorgeous gosh grandma grandpa guys handsome hey hi hello hon honey kids ladies lady
    love lovely madam man mate mom mommy morning mum neighbor neighbour night pal partner people professor siri sir
    sis sister son star stranger sunshine sweetheart sweetie team thanks there today tomorrow tonight user welcome
    world wow yeah yes yo assistant friday monday saturday sunday thursday tuesday wednesday
    """.split()
)
_HAN_NO_NAME = re.compile(
    "[不好请請是有在吗嗎了的你您我他她它们們见見久去到看谢謝怎什么么吃睡最很太真都就还還再又没沒]"
    "|大家|各位|世界|朋友|亲爱|親愛|欢迎|歡迎|客服|收到|明白|辛苦|关心|關心|支持|分享|提醒|夸奖|誇獎|帮|幫|理解|配合"
    "|合作|周末|週末|新年|节日|節日|生日|晚安|早安|早上|中午|下午|晚上|今天|明天|昨天|同学|同學|同事|宝贝|寶貝|先生"
    "|女士|小姐|美女|帅哥|帥哥|老板|老闆|老师|老師|师傅|師傅|医生|醫生"
)


def greeted_name(text: str) -> str:
    """The name that a passage begins by greeting, folded: "Elise: Hey Kate! …"; empty if it greets nobody by name."""
    head = text[:_GREETED_CHARS]
    stamp = leading_stamp(head)
    at = stamp.end if stamp else 0
    said_by = _SAID_BY.match(head, at)
    at = said_by.end() if said_by else at
    found = _GREETING.match(head, at) or _HAN_GREETING.match(head, at)
    name = next((name for name in found.groups() if name), "") if found else ""
    return fold(name) if _is_name(name) else ""


def _is_name(name: str) -> bool:
    if has_unspaced(name):
        return _HAN_NO_NAME.search(name) is None
    # Two letters are a cry as often ("Hey Yo!"), and of two who are called Jo one is seldom meant.
    return len(name) > 2 and name[0].isupper() and fold(name) not in _ANYBODY


def greeted_speakers(greetings: Iterable[tuple[int, int, str]]) -> dict[str, frozenset[int]]:
    """Names and the labels of those who are greeted by them often enough.

    A name that each of two greets the other by is neither's: what anybody is called, or somebody else who is there.

    Args:
        greetings: Of each the number of the speaker's label, that of the only other one's, and the name, folded.
    """
    counts = Counter(greetings)
    given = Counter[tuple[int, str]]()
    for (speaker, other, name), count in counts.items():
        if (other, speaker, name) not in counts:
            given[other, name] += count
    found = defaultdict[str, frozenset[int]](frozenset)
    for (other, name), count in given.items():
        if count >= _GREETINGS:
            found[name] |= {other}
    return dict(found)

"""Facts in Chinese clauses: what the wordings of `chinese_wordings` claim. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import cache

from indexer.common.patterns import lazy_regex
from indexer.language.chinese.chinese_wordings import CHINESE_SCRIPT, CHINESE_WORDINGS, JOBS_ZH, STATES_ZH
from indexer.language.fact_words import (
    HOLDERS,
    ME,
    WE,
    is_day,
    is_holder,
    is_time,
    leads_with_day,
    leads_with_time,
    sort_of,
    value_of,
    words_of,
)
from indexer.language.facts_clause import (
    TIMELY,
    Claim,
    Clause,
    Parts,
    Reading,
    Wording,
    Wordings,
    end_claims,
    is_nobody,
)

_TRAILING = lazy_regex(
    "(?:现在|目前|如今|已经?|刚刚?|最近|以后|今后|从今天起|从现在起|统一|都|的|也|又|已|被|今天|昨天|上周|上个?月|本周|下周起|开始"
    "|正式|就|将|改|其实|实际上|每月|每年|每天|每人|每次)+$"
)
_LEADING = lazy_regex(
    "^(?:现在|目前|如今|从?[\\d一二三四五六七八九十]+月起|我们的|咱们的|新任|新来的|最新的?|新的|新(?=.*(?:[人东长师医者员号址码价名]|经理|电话|邮箱)$))+(?=.)"
)
_NO_MORE = lazy_regex(
    "^(?P<s>[^不]*?)(?:再也不|已经不|已不|不再)(?P<rest>.+?)(?:了|啦)?$|^(?P<t>[^不]*?)不(?P<was>.+?)了$"
)
_NOT = lazy_regex("^(?P<s>[^不没]*?)(?:并不|不|没有?在?)(?P<rest>是.+|对.+|用.+|喝.+|吃.+|抽.+|在.+|(?<=[^对]不)过敏)$")
# The person of the notes, but not a word such as 「用户数」.
_USER = lazy_regex("用户(?=[的现喜希在住不叫以要想更是对从用说搬换改有没已偏习最养吃喝学开目])")
# Before a verb it says no more than that something is new: 「改为基于 Alpine」.
_ANEW = lazy_regex("(?:改为|改成|变成|改)(?=在|基于|使用|采用|存放|放|住|叫|吃|喝|学|对|每|向)")
_IS_ALSO = lazy_regex("^是(?=对|在|用|基于)")
# 「大学」「教练」: there the verb is the end of a word.
_SCHOOL = lazy_regex("[大小中文科数化同教训操排熟磨锻演医药哲美史]$")
_SCHOLAR = lazy_regex("^(?:[家者会校生院术位历期员年费派说问科界童]|.*(?:发现|[了过着]))")
# Words with 「用」 that name no use: 「调用」「启用」「用户」.
_USE_BEFORE = tuple("调启停应作费利引通专常实适信公占试滥租雇有无商家日耐重复沿运征军民不没别")
_USE_BEHIND = tuple("户途法量于来时心力品例料语者率权说明方处")
# A thing that is used, and not a sentence about it: 「curl 给请求计时」.
_NO_THING = lazy_regex(
    "[给把对来去让]|进行|[得着过]|[^\\s]的.|测量|制作|画|[改重]?[写做]|实现|生成|转换|发现|完成|解决|搭建|开发|构建|处理|管理|分析|记账|拍"
)
_ONE_OF_SEVERAL = lazy_regex("[有养买]|[一两三几]?[个台只条辆匹头位名]")
# So many words of time in a row stand in no sentence, and would be tried in every order.
_STAMMER = lazy_regex(
    "(?:现在|目前|如今|已经?|刚|最近|昨天|今天|以后|今后|后来|决定|统一|正式|全部|都|又|就|被|再|\\s){7}"
)
_KEY = lazy_regex(
    r"^(?P<n>[^，,。；;：:]{1,25}?)\s*(?:(?<!\d)[：:]|[：:](?!\d)|[=→])\s*(?P<v>[^；;！]{1,60}?)[。！!]?$"
)
_STATE = lazy_regex(
    rf"^(?P<n>[^，,。；;：:=→]{{1,25}}?)(?:的状态)?\s*(?:现在|目前|终于|刚刚?)?\s*(?P<was>(?:已经?|正在|被|处于|仍在|还在|在|又|是)+)?\s*"
    rf"(?P<not>未|还没有?|尚未|没有?|待)?(?P<v>{STATES_ZH})(?:状态|中)?(?P<le>了|的)?$"
)


def chinese_claims(clause: Clause) -> Iterator[Claim]:
    """Claims of a Chinese clause."""
    if _STAMMER.search(clause.text):
        return
    text = _USER.sub("我", clause.text)
    if (anew := _ANEW.sub("", text)) != text:
        clause = dataclasses.replace(clause, changes=True)
    clause = dataclasses.replace(clause, text=anew)
    if match := _NO_MORE.match(anew) or _NOT.match(anew):
        groupdict = match.groupdict()
        stated_text = _IS_ALSO.sub("", groupdict.get("rest") or groupdict["was"])
        text = f"{groupdict.get('s') or groupdict.get('t') or ''}{stated_text}"
        yield from end_claims(_claims_of(dataclasses.replace(clause, text=text)))
    else:
        yield from _claims_of(clause)


def ended_in_chinese(text: str) -> str:
    """The statement that a clause tells the end of, without the words that say so; empty for none."""
    if (match := _NO_MORE.match(text)) is None:
        return ""
    return f"{match['s'] or match['t'] or ''}{match['rest'] or match['was']}"


@cache
def _table() -> Wordings:
    return Wordings(CHINESE_WORDINGS, CHINESE_SCRIPT)


def _claims_of(clause: Clause) -> Iterator[Claim]:
    text, claimed_keys = clause.text, set[str]()
    if key := _KEY.match(text):
        claimed_keys.add("attribute")
        yield from _attribute_of(clause, key["n"], key["v"], is_key=True)
    for wording in _table().among(text):
        reading, _, named_text = wording.relation.partition(":")
        if reading not in claimed_keys and (match := wording.pattern.match(text)):
            parts = {name: part for name, part in match.groupdict().items() if part}
            for claim in _READINGS.get(reading, _attribute_claims)(clause, wording, named_text or reading, parts):
                claimed_keys.add(reading)
                yield claim
    yield from _state(clause)
    yield from _often(clause)


def _often(clause: Clause) -> Iterator[Claim]:
    """Habits with their days and hours, and bare amounts: 「我每天七点起床」「合同 6 月 30 日到期」「内存 16GB」."""
    match = _WHEN.match(clause.text)
    if match and match["v"] and (subject := clause.subject_of(_plain(match["s"]) or "我")):
        if match["o"] in ("到期", "截止", "结束"):
            yield from clause.holds(subject, "day", match["v"])
        else:
            yield clause.claim(subject | words_of(match["o"]), "cadence", match["v"], single=False)
            yield clause.toggle(subject | words_of(match["o"]), "cadence", match["v"], on=True)
    elif (match := _EACH_FEW.match(clause.text)) and (subject := clause.subject_of(_plain(match["s"]) or "我")):
        yield clause.claim(subject | words_of(match["o"]), "cadence", match["v"])
    elif (match := _BARE.match(clause.text)) and "了" not in match["n"]:
        # What is measured is another each time: only a word of change ends it.
        claims = _attribute_of(clause, _EVERY.sub("", match["n"]), _with_period(match["n"], match["v"]))
        yield from (claim._replace(single=False) for claim in claims)


_WHEN = lazy_regex(
    "^(?P<s>[^，,。；;：:每\\d]{0,12}?)(?:现在)?(?P<v>(?:每[周天月年日][一二三四五六日天]?|周[一二三四五六日天])?"
    "(?:早上|上午|下午|晚上|凌晨|中午)?(?:\\d{1,2}[:：]\\d\\d|[\\d一二三四五六七八九十]+点半?|\\d+月\\d+[日号]|(?<=[周天月年日一二三四五六]))[\\d一二三四五六七八九十]*次?)"
    "(?P<o>[\u4e00-\u9fff]{2,4}?|[来到走开关发飞])了?$"
)
_EACH_FEW = lazy_regex(
    "^(?P<s>[^，,。；;：:每\\d]{0,14}?)(?:现在|如今|改[为成]|调整为)?(?P<v>每\\d+(?:天|小时|周|个月|年|分钟|秒钟?))"
    "(?P<o>[\u4e00-\u9fff]{1,4}?)(?:一[次遍回])?了?$"
)
_THEN = lazy_regex("^(?P<v>.*[\\d一二三四五六七八九十天日点号半])(?P<o>[\u4e00-\u9fff]{2,4}|[来到走开关发飞])$")
_ROOM = lazy_regex(r"[\w\u4e00-\u9fff]{1,10}(?:会议室|教室|办公室|楼|层|厅)")
_BARE = lazy_regex(
    r"^(?P<n>[\u4e00-\u9fff]{2,12}?)\s*(?P<v>\d[\d.]*\s*(?:[A-Za-z]{1,4}|%|万元?|公斤|斤|千克|厘米|元|块|人|名|分钟|小时|秒|天|公里|平米|岁))$"
)


def _plain(text: str) -> str:
    return _LEADING.sub("", _TRAILING.sub("", text.strip()))


def _subject(clause: Clause, parts: Parts) -> frozenset[str] | None:
    plain = _plain(parts.get("s", ""))
    return None if is_nobody(plain) else clause.subject_of(plain)


_PLACE_ENDS = tuple("楼层区市城室郊村镇县路街")


def _attribute(clause: Clause, wording: Wording, named_text: str, parts: Parts) -> Iterator[Claim]:
    """「端口是 8080」「价格调整为 99 元」「会议改到周四」."""
    noun, text = parts["n"], parts["v"]
    if text.startswith(("不", "由", "一个", "一只", "一名", "一位")):
        return
    noun += "约" if noun.endswith("预") else ""
    if named_text == "on":
        if (leads_with_day(text) or leads_with_time(text)) and (subject := clause.subject_of(_plain(noun))):
            yield from clause.holds(subject, "day" if is_day(text) else "time", text)
        elif len(text) <= 8 and text.endswith(_PLACE_ENDS) and (subject := clause.subject_of(_plain(noun))):
            yield from clause.holds(subject, "location", text, single=False)
        return
    yield from _attribute_of(clause, noun, text, changes=wording.changes)


def _attribute_of(
    clause: Clause, noun: str, text: str, *, changes: bool = False, is_key: bool = False
) -> Iterator[Claim]:
    if is_nobody(noun) or (changes and _NO_CHANGE.search(clause.text)):
        return
    new = changes or clause.is_new(noun) or "新" in noun[:4]
    noun = noun.replace("的新", "的")
    noun = noun if noun.startswith(("我们的", "咱们的")) and is_holder(noun) else _plain(noun)
    on_day = changes and not is_key and (leads_with_day(text) or leads_with_time(text))
    if on_day and (done_match := _THEN.match(text)) and (subject := clause.subject_of(noun)):
        yield clause.claim(subject | words_of(done_match["o"]), "cadence", done_match["v"], changes=True, single=False)
        text = done_match["v"]
    if (attribute := clause.attribute_of(noun)) and (not on_day or attribute[1] in TIMELY):
        # What somebody is like, and not who it is: 「经理换成女的了」.
        if attribute[1] not in HOLDERS or not _NOT_WHO.search(text):
            yield from clause.holds(*attribute, text, changes=new)
    elif changes and _ROOM.fullmatch(text) and (subject := clause.subject_of(noun)):
        yield from clause.holds(subject, "location", text, changes=True)
    elif not is_key and (leads_with_day(text) or leads_with_time(text)) and len(text) <= 16:
        if subject := clause.subject_of(noun):
            yield from clause.holds(subject, "day" if is_day(text) else "time", text, changes=new)
    else:
        yield from clause.by_sort(noun, text.removesuffix("的"), changes=new, is_key=is_key, is_set=changes)


def _attribute_claims(clause: Clause, wording: Wording, attribute: str, parts: Parts) -> Iterator[Claim]:
    """An attribute of a subject that a verb tells, and the value that it had before."""
    text = parts["v"]
    if "o" in parts or "n" in parts:
        yield from _held_by(clause, wording, attribute, parts.get("o") or parts["n"], text)
        return
    subject = _subject(clause, parts)
    if attribute == "vehicle" and text.startswith(tuple("会门始发心放源店")):
        return
    if attribute == "learning" and (_SCHOOL.search(parts.get("s", "")) or _SCHOLAR.match(text)):
        return
    if _NO_VALUE.search(text) or ("的" in text and not (subject and subject & {ME, WE})):
        # 「住在北京的同事」 says who somebody is.
        return
    if not subject or leads_with_day(text) or is_time(text) or text.startswith(("一", "新", "个")):
        return
    if attribute == "location" and re.search(r"\d+号|[路街道巷]", text) and not subject & {ME}:
        attribute = "address"
    yield from clause.holds(subject, attribute, text, changes=wording.changes, single=wording.single)
    if "f" in parts:
        yield from _end_claims(clause, subject, attribute, parts["f"])


def _held_by(clause: Clause, wording: Wording, attribute: str, thing: str, holder: str) -> Iterator[Claim]:
    """Somebody as the holder of a role: 「项目由李雷负责」."""
    thing = thing.strip("了吧的")
    subject = clause.subject_of(_plain(thing).removesuffix("的工作"))
    if (
        thing
        and subject
        and clause.subject_of(_plain(holder))
        and not thing.startswith(("一", "两", "几", "人", "员", "者"))
    ):
        yield from clause.holds(subject, attribute, _plain(holder), changes=wording.changes)


def _holder(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    """「韩梅梅是项目负责人」."""
    noun = parts["n"].removeprefix("新的").removeprefix("新")
    attribute = clause.attribute_of(noun)
    if attribute and attribute[1] in HOLDERS and clause.attribute_of(_plain(parts["v"])) is None:
        yield from clause.holds(*attribute, _plain(parts["v"]), changes=wording.changes or "新" in parts["n"][:1])


def _end_claims(clause: Clause, subject: frozenset[str], attribute: str, text: str) -> Iterator[Claim]:
    if value := value_of(text)[0]:
        yield clause.toggle(subject, attribute, value, on=False)


def _left(clause: Clause, _wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    if subject := _subject(clause, parts):
        for attribute in ("employer", "location"):
            yield from _end_claims(clause, subject, attribute, parts["v"])


def _price_claims(clause: Clause, wording: Wording, attribute: str, parts: Parts) -> Iterator[Claim]:
    """「专业版每月 99 元」."""
    sort = sort_of(value_of(parts["v"])[0])[0]
    noun = _plain(parts["n"])
    if sort == "price" or (sort.startswith("amount") and attribute == "amount"):
        pair = clause.attribute_of(noun)
        if subject := pair[0] if pair else clause.subject_of(noun):
            named_text = pair[1] if pair else "price" if sort == "price" else sort
            text = _with_period(clause.text[: -len(parts["v"])], parts["v"])
            yield from clause.holds(subject, named_text, text, changes=wording.changes)


_EVERY = lazy_regex("每(?:小时|[月年人晚天次])(?=$|[^每]{0,3}$)")


def _deploy_claims(clause: Clause, _wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    if not is_day(parts["v"]) and not is_time(parts["v"]):
        subject = _subject(clause, parts) or frozenset()
        yield from clause.holds(subject - {ME, WE} | {"deploy"}, "target", parts["v"])


def _user(clause: Clause, text: str) -> frozenset[str] | None:
    """Whoever uses something; the person and the group are one."""
    plain = _plain(text)
    subject = clause.subject_of(plain)
    if subject is None or is_nobody(plain):
        return None
    return frozenset({WE}) if subject & {ME, WE} or not plain else subject


def _with_period(before: str, text: str) -> str:
    """An amount with what stands before it: 「每月」「10元」."""
    period = _EVERY.search(before)
    return f"{period[0] if period else ''}{text}"


# A part that was renewed, or something that was turned into something: not a tool for a purpose.
_OTHER_CHANGE = lazy_regex("[把将]|换(?![成到为用回])")


def _switch_claims(clause: Clause, _wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    """A tool that took the place of another."""
    former, before = parts.get("f", ""), _plain(parts.get("s", ""))
    subject = _user(clause, before)
    if (
        not subject
        or _NO_CHANGE.search(clause.text)
        or len(parts["v"]) < 2
        or is_day(parts["v"])
        or clause.attribute_of(before)
        or clause.attribute_of(_plain(former))
    ):
        return
    yield from clause.tastes(subject, "use", parts["v"], changes=True)
    former = former.removeprefix("用")
    if not subject & {ME, WE} and not _OTHER_CHANGE.search(clause.text) and (value := value_of(parts["v"])[0]):
        yield clause.claim(subject | {WE}, "use", value, changes=True, single=False)
        yield from _end_claims(clause, subject | {WE}, "use", former)
    yield from _end_claims(clause, subject, "use", former)


def _uses(clause: Clause, _wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    before = parts.get("s", "")
    subject = _user(clause, before)
    if not subject or before.endswith((*_USE_BEFORE, "希望", "想", "要求", "喜欢")):
        return
    if parts["v"].startswith(_USE_BEHIND) or (_NO_THING.search(parts["v"]) and not _OF_US.match(before)):
        return
    purpose, subject = _purpose(subject, before)
    yield from clause.tastes(subject, "use", parts["v"])
    if purpose:
        yield from clause.tastes(subject, "use", parts["v"], purpose)


_OF_US = lazy_regex("[我咱他她]|用户")
_NO_VALUE = lazy_regex("[:：]|发现|[了过着].|^的|真[是不的]|太(?!原|仓|湖|平)|很|挺|特别|不错|漂亮|满意|好得")
# What somebody is, and not who: 「我的上司是个医生」「是天津人」.
_NOT_WHO = lazy_regex(f"^(?:[个做某]|一[个位名])|[人]$|的|(?:{'|'.join(JOBS_ZH)}|警察|厨师)$")
# Words with a verb of change that tell of none.
_NO_CHANGE = lazy_regex("调用|套用|引用|挪用|转换|兑换|变换|交换|改名(?:工具|软件|器|卡|脚本)|更新日志|转发|转化")


def _purpose(subject: frozenset[str], text: str) -> tuple[str, frozenset[str]]:
    """Purpose of a tool, where that stands before the verb: 「缓存用 Redis」."""
    if subject <= {WE, ME} or text.startswith(("我", "用户", "他", "她")):
        return "", subject
    return _plain(text), frozenset({WE})


def _rename_claims(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    if _ONE_OF_SEVERAL.search(parts.get("f") or parts["o"]) or _NO_CHANGE.search(clause.text):
        return
    former, text = _plain(parts.get("f") or parts["o"]), parts["v"].strip('「」『』“”《》"')
    attribute = clause.attribute_of(former)
    if attribute and attribute[1] == "name":
        yield from clause.holds(*attribute, text, changes=wording.changes)
    elif "o" in parts:
        if subject := clause.subject_of(former):
            yield from clause.holds(subject, "name", text)
    elif (old := words_of(former)) and (new := value_of(text)[0]):
        yield clause.claim(old, "name", new, changes=True)
        yield clause.claim(frozenset(), f"name={' '.join(sorted(old))}", "off", changes=True)
        yield clause.claim(frozenset(), f"name={' '.join(sorted(words_of(new)))}", "on")


def _name(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    yield from clause.holds(clause.speaker, "name", parts["v"], changes=wording.changes)


def _prefers(clause: Clause, _wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    if subject := _subject(clause, parts):
        yield from clause.tastes(subject, "prefer", parts["v"], changes="喜欢上" in clause.text)


def _role(clause: Clause, wording: Wording, _: str, parts: Parts) -> Iterator[Claim]:
    subject, value = _subject(clause, parts), value_of(parts["v"].removeprefix("一名").removeprefix("一位"))[0]
    noun = _plain(parts.get("s", ""))
    if (
        subject
        and value.endswith(JOBS_ZH)
        and len(value) <= 12
        and not is_holder(noun)
        and not clause.attribute_of(noun)
    ):
        yield clause.claim(subject, "role", value, changes=wording.changes, single=False)


_LIKED = lazy_regex("(?:喜欢|爱)([喝吃])")


def _habit(clause: Clause, _wording: Wording, verb: str, parts: Parts) -> Iterator[Claim]:
    """Habits, of which there may be many; only 「不再」 ends one."""
    subject, value = _subject(clause, parts), value_of(parts["v"])[0]
    if subject and value and not parts.get("s", "").endswith(("不", "没")):
        yield clause.claim(subject, f"{verb}={value}", "on")
        if verb == "like" and (match := _LIKED.search(clause.text)):
            # 「我喜欢喝咖啡」 is over with 「我不喝咖啡了」, too.
            yield clause.claim(subject, f"{'drink' if match[1] == '喝' else 'eat'}={value}", "on")


def _is(clause: Clause, wording: Wording, named_text: str, parts: Parts) -> Iterator[Claim]:
    """A state that a wording stands for: 「小刘结婚了」."""
    attribute, _, value = named_text.partition("=")
    for name in re.split("和|与|跟", _plain(parts.get("s", "")))[:2]:
        if subject := clause.subject_of(name):
            yield clause.claim(subject, attribute, value, changes=wording.changes)
            yield clause.toggle(subject, attribute, value, on=True, changes=wording.changes)


def _state(clause: Clause) -> Iterator[Claim]:
    match = _STATE.match(clause.text)
    if not match or not (match["was"] or match["not"] or match["le"] or clause.text.endswith("中")):
        return
    noun = _plain(match["n"])
    subject = clause.subject_of(noun)
    # What somebody has done or not yet is of each thing another: 「我已经付了」.
    if subject and not subject & {ME, WE} and clause.attribute_of(noun) is None:
        yield from clause.holds(subject, "status", ("未" if match["not"] else "") + match["v"])


_READINGS: dict[str, Reading] = {
    "attribute": _attribute,
    "ended": _left,
    "price": _price_claims,
    "amount": _price_claims,
    "target": _deploy_claims,
    "switched": _switch_claims,
    "use": _uses,
    "renamed": _rename_claims,
    "called": _rename_claims,
    "name": _name,
    "prefer": _prefers,
    "role": _role,
    "holder": _holder,
    "on": _habit,
    "is": _is,
}

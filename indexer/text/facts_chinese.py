"""Facts in Chinese clauses: 「我搬到杭州了」「以后用 pnpm，不用 npm 了」「项目负责人改成李雷」. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from indexer.text import lazy_regex
from indexer.text.fact_words import ME, STATE_ZH, WE, is_day, is_time, value_of, words_of
from indexer.text.facts_clause import Claim, Clause

_TIMES = (
    "(?:现在|目前|如今|已经?|刚刚?|最近|上周|上个?月|去年|今年|昨天|今天|以后"
    "|今后|从现在起|从今天起|一直|统一|都|正式|马上|又|就|全部|全家|后来|决定"
    "|我已"
    r"|从?\d{4}年(?:\d+月)?起?|从?\d+月(?:份|\d+[日号])?起?|\s)*"
)
_SUBJECT = r"(?P<s>[^，,。；;：:]{0,20}?)"
_END = "(?P<v>[^，,。；;！!]{1,40}?)(?:了|啦|吧|呢)?[。！!]?$"
_LIVES = lazy_regex(rf"^{_SUBJECT}{_TIMES}(?:居住|定居|常住|住|常驻)(?:在|到|于|进)?{_TIMES}{_END}")
_MOVED = lazy_regex(
    rf"^{_SUBJECT}{_TIMES}(?:从(?P<f>[^，,。]{{1,15}}?))?{_TIMES}(?:搬家?|迁|迁居"
    rf"|移居|搬迁)(?:到|去|至|回到?|往)(?:了)?{_END}"
)
_WORKS = lazy_regex(rf"^{_SUBJECT}{_TIMES}(?:在|于)(?P<v>[^，,。；;]{{1,20}}?)(?:工作|上班|任职|就职|供职)(?:了|的)?$")
_JOINED = lazy_regex(
    rf"^{_SUBJECT}{_TIMES}(?:从(?P<f>[^，,。]{{1,15}}?))?(?:离职)?(?:跳槽|入职|加入|加盟|转)(?:到|去|至)?(?:了)?"
    rf"(?P<v>[^，,。；;！]{{1,20}}?)(?:工作|上班|任职)?(?:了)?$"
)
_LEFT = lazy_regex(
    rf"^{_SUBJECT}{_TIMES}(?:从(?P<v>[^，,。]{{1,15}}?)(?:离职|辞职|离开)|(?:离开"
    rf"|辞去)(?:了)?(?P<w>[^，,。]{{1,15}}?))(?:了)?$"
)
_BECOMES = (
    "(?:改成|改为|改到|改在|改由|改用|换成|换为|换到|换由|变成|变为|变更为|变更到"
    "|调整为|调整到|调整成|调到|调至|更新为|更新到|升级为|升级到|升到|涨到|涨至"
    "|上调到"
    "|上调至|降到|降至|降价到|下调到|下调至|推迟到|推迟至|提前到|提前至|延期到"
    "|延期至|延到|延至|延长到|移到|挪到|迁移到|切换到|切换为|切到|转为|转给|移交给"
    "|交给|交接给"
    "|设为|设成|定为|定在|定到|修改为|修正为|更正为|缩短到|减少到|增加到)"
)
_CHANGED = lazy_regex(
    rf"^(?:把|将)?(?P<np>[^，,。；;：:]{{1,25}}?)(?:的?(?:已经?|被|也|又|现在|最近"
    rf"|从今天起|正式|统一|全部)|\s)*(?:从|由)?"
    rf"(?P<f>(?<=[从由])[^，,。；;]{{1,20}}?)?(?:已经?|正式|\s)*{_BECOMES}(?:了)?{_END}"
)
_IS = lazy_regex(
    r"^(?P<np>[^，,。；;：:]{1,25}?)\s*(?P<now>现在|目前|如今|已经?)?\s*(?:是"
    r"|为|：|:|=|→|叫做?|定在|就是|在(?=周|星期|\d|上午|下午|每|明))\s*"
    r"(?P<v>[^，,。；;！]{1,40}?)(?:了)?[。！!]?$"
)
_BY = lazy_regex(
    rf"^(?P<np>[^，,。；;：:]{{1,25}}?){_TIMES}(?P<new>改)?由(?P<v>[^，,。；;]{{1,12}}?){_TIMES}(?P<verb>负责"
    rf"|维护|管理|主管|领导|接手|接管|带领|牵头|跟进|处理)(?:了)?$"
)
_TAKES = lazy_regex(
    rf"^(?P<v>[^，,。；;的]{{1,10}}?){_TIMES}(?P<verb>负责(?!人)|接手|接管|维护"
    rf"(?!者|人)|管理(?!者|人|员)|牵头|主管)(?:了)?"
    rf"(?P<o>[^，,。；;]{{1,20}}?)(?:了)?$"
)
_ROLES = {"维护": "maintainer", "管理": "manager", "主管": "manager", "领导": "lead", "带领": "lead"}
_HOLDS = lazy_regex(
    rf"^(?P<v>[^，,。；;的]{{1,10}}?){_TIMES}(?:是|成为|担任|当上|出任)(?:了)?(?P<np>[^，,。；;]{{2,20}}?)(?:了)?$"
)
_COSTS = lazy_regex(
    rf"^(?P<np>[^，,。；;：:]{{1,25}}?){_TIMES}(?:卖|售|要|只要|涨价到|降价到|收费"
    rf"|需要|涨到)(?:了)?(?P<v>[$¥￥]?\d[\d,.]*\s*"
    rf"(?:元|块|美元|刀|欧元|万|人民币|/月|每月)[^，,。；;]{{0,8}})$"
)
_USES = lazy_regex(
    rf"^{_SUBJECT}(?P<now>{_TIMES})(?P<new>改|换|转|只)?(?:用|使用|采用|选用)(?:的是|上|了|回)?\s*{_END}"
)
_NOT_USES = lazy_regex(
    rf"^{_SUBJECT}{_TIMES}(?:不再?(?:使)?用|弃用|停用|放弃|淘汰|别用|不要用|不要再用)"
    rf"(?:了)?\s*(?P<v>[^，,。；;]{{1,20}}?)(?P<le>了|啦)?$"
)
_FROM_TO = lazy_regex(
    rf"^{_SUBJECT}{_TIMES}(?:已经?|都)?(?:从|由|把|将)\s*(?P<f>[^，,。；;]{{1,20}}?)\s*(?:换成|换到|换为|改成|改为"
    rf"|改用|切换到|切换成|切到|迁移到|迁到|转到|转向|替换成|替换为|升级到|换)(?:了)?\s*{_END}"
)
_SWITCHED = lazy_regex(
    rf"^{_SUBJECT}{_TIMES}(?:换成|换到|改用|切换到|切换成|切到|迁移到|迁到|转用|换用|换回|改回)(?:了)?\s*{_END}"
)
_REPLACED = lazy_regex(
    rf"^{_SUBJECT}{_TIMES}用\s*(?P<v>[^，,。；;]{{1,20}}?)\s*(?:替换|取代|代替"
    rf"|替代|换掉)(?:了|掉)?\s*(?P<f>[^，,。；;]{{1,20}}?)(?:了)?$"
)
_RENAMED = lazy_regex(
    rf"^(?:把|将)?(?P<f>[^，,。；;：:]{{1,25}}?){_TIMES}(?:改名(?:为|叫|成)|更名"
    rf"(?:为|成)|重命名(?:为|成)|改叫|改称|现在叫做?"
    rf"|更名)(?:了)?\s*[「『“《\"]?(?P<v>[^，,。；;」』”》\"]{{1,25}}?)[」』”》\"]?(?:了)?$"
)
_CALLED = lazy_regex(
    r"^(?P<np>[^，,。；;：:]{1,15}?)(?:的名字)?(?:叫做?|名叫|名为)\s*[「『“《\"]?"
    r"(?P<v>[^，,。；;」』”》\"]{1,25}?)[」』”》\"]?$"
)
_PREFERS = lazy_regex(
    rf"^{_SUBJECT}(?P<now>{_TIMES})(?P<new>改|变得)?(?:更喜欢|更偏好|偏好|更爱"
    rf"|比较喜欢|更倾向于?|喜欢上)(?:用|使用|喝|吃|坐)?(?:了)?{_END}"
)
_LIKES = lazy_regex(
    rf"^{_SUBJECT}(?P<now>{_TIMES})(?:改|只)?(?P<verb>喜欢|爱|喝|吃|玩|养|抽|开"
    rf"|说|会说)(?:用|喝|吃|玩)?(?:了)?(?P<v>[^，,。；;了]{{1,15}})$"
)
_NO_LONGER = lazy_regex(
    rf"^{_SUBJECT}{_TIMES}(?:不再?|再也不|已不)(?:是)?(?P<verb>喜欢|爱|喝|吃|玩"
    rf"|养|抽|开|住在?|在|负责|偏好)(?:用|喝|吃|玩)?"
    rf"(?P<v>[^，,。；;了]{{1,15}}?)(?P<le>工作|上班)?(?:了|啦)?$"
)
_LEMMAS = {
    "喜欢": "like",
    "爱": "like",
    "偏好": "prefer",
    "住": "location",
    "住在": "location",
    "在": "employer",
    "负责": "owner",
}
_STATE = lazy_regex(
    rf"^(?P<np>[^，,。；;：:]{{1,25}}?)(?P<was>\s*(?:现在|目前|终于|刚刚?)?\s*"
    rf"(?:已经?|正在|被|处于|仍在|还在|在|又)+\s*)"
    rf"(?P<v>{STATE_ZH})(?:状态|中)?(?:了)?$"
)
_AGED = lazy_regex(rf"^{_SUBJECT}{_TIMES}(?P<v>\d{{1,3}}|[一二三四五六七八九十]{{1,3}})岁(?:了)?$")
_DEPLOYS = lazy_regex(rf"^{_SUBJECT}{_TIMES}(?:部署|托管|发布)(?:在|到|于){_END}")


def chinese_claims(clause: Clause) -> Iterator[Claim]:
    """Claims of a Chinese clause."""
    for letters, rule in _RULES:
        if not letters.isdisjoint(clause.text):
            yield from rule(clause)


def _plain(text: str) -> str:
    return re.sub(
        r"(?:现在|目前|如今|已经?|刚刚?|最近|以后|今后|从今天起|从现在起|统一|都|的"
        r"|也|又|已|今天|昨天|上周|上个?月|本周|下周起)+$",
        "",
        text.strip(),
    )


def _places(clause: Clause) -> Iterator[Claim]:
    for pattern, attribute, changes in (
        (_MOVED, "location", True), (_LIVES, "location", False), (_JOINED, "employer", True),
        (_WORKS, "employer", False),
    ):  # fmt: skip
        match = pattern.match(clause.text)
        if not match:
            continue
        subject = clause.subject_of(_plain(match["s"]))
        value = match["v"]
        if subject and not is_day(value) and not is_time(value) and not value.startswith(("一", "新", "个")):
            yield from clause.holds(subject, attribute, value, changes=changes)
            if changes and match["f"]:
                yield from _ended(clause, subject, attribute, match["f"])
        return
    if (match := _LEFT.match(clause.text)) and (subject := clause.subject_of(_plain(match["s"]))):
        for attribute in ("employer", "location"):
            yield from _ended(clause, subject, attribute, match["v"] or match["w"])


def _ended(clause: Clause, subject: frozenset[str], attribute: str, text: str) -> Iterator[Claim]:
    if value := value_of(text)[0]:
        yield clause.turned(subject, attribute, value, on=False)


def _attributes(clause: Clause) -> Iterator[Claim]:
    """「端口是 8080」「价格调整为 99 元」「会议改到周四」."""
    text = clause.text
    if match := _CHANGED.match(text):
        noun, value = _plain(match["np"]), match["v"]
        if found := clause.attribute_of(noun):
            yield from clause.holds(*found, value, changes=True)
        elif (subject := clause.subject_of(noun)) and (is_day(value) or is_time(value)):
            yield from clause.holds(subject, "day" if is_day(value) else "time", value, changes=True)
        elif subject and re.match(r"[$¥￥]?\d[\d.,]*\s*(?:元|块|美元|刀|万)", value):
            yield from clause.holds(subject, "price", value, changes=True)
        return
    if match := _IS.match(text):
        noun, value = _plain(match["np"]), match["v"]
        if value.startswith(("不", "由", "一个", "一只")):
            return
        if found := clause.attribute_of(noun):
            yield from clause.holds(*found, value, changes=bool(match["now"]) and "现" in (match["now"] or ""))
        elif (is_day(value) or is_time(value)) and len(value) <= 12 and (subject := clause.subject_of(noun)):
            yield from clause.holds(subject, "day" if is_day(value) else "time", value)


def _owners(clause: Clause) -> Iterator[Claim]:
    text = clause.text
    if match := _BY.match(text):
        attribute = _ROLES.get(match["verb"], "owner")
        found = clause.subject_of(_plain(match["np"]).removeprefix("目前").removeprefix("现在"))
        changes = bool(match["new"]) or match["verb"].startswith("接")
        if found:
            yield from clause.holds(found, attribute, match["v"], changes=changes)
    elif match := _TAKES.match(text):
        thing, holder = match["o"], _plain(match["v"])
        found = clause.subject_of(thing.removesuffix("的工作"))
        if found and clause.subject_of(holder) and not thing.startswith(("一", "两", "几")):
            yield from clause.holds(
                found, _ROLES.get(match["verb"], "owner"), holder, changes=match["verb"].startswith("接")
            )
    elif (match := _HOLDS.match(text)) and clause.attribute_of(_plain(match["v"])) is None:
        noun = match["np"].removeprefix("新的").removeprefix("新")
        found_role = clause.attribute_of(noun)
        if found_role and found_role[1] in ("owner", "lead", "manager", "maintainer", "assignee", "oncall"):
            yield from clause.holds(*found_role, _plain(match["v"]), changes="成为" in text or "新" in match["np"][:1])


def _prices(clause: Clause) -> Iterator[Claim]:
    if (match := _COSTS.match(clause.text)) and (noun := _plain(match["np"])):
        found = clause.attribute_of(noun)
        subject = found[0] if found else clause.subject_of(noun)
        if subject:
            yield from clause.holds(subject, "price", match["v"])
    if (match := _AGED.match(clause.text)) and (subject := clause.subject_of(_plain(match["s"]))):
        yield from clause.holds(subject, "age", match["v"])
    if (match := _DEPLOYS.match(clause.text)) and not is_day(match["v"]):
        subject = clause.subject_of(_plain(match["s"])) or frozenset()
        yield from clause.holds(subject - {ME, WE} | {"deploy"}, "target", match["v"])


def _user(clause: Clause, text: str) -> frozenset[str] | None:
    plain = _plain(text)
    subject = clause.subject_of(plain)
    if subject is None:
        return None
    return frozenset({WE}) if subject & {ME, WE} or not plain else subject


def _tools(clause: Clause) -> Iterator[Claim]:
    text = clause.text
    if match := _REPLACED.match(text) or _FROM_TO.match(text):
        subject = _user(clause, match["s"])
        if subject and clause.attribute_of(_plain(match["f"])) is None and not is_day(match["v"]):
            yield from clause.tastes(subject, "use", match["v"], changes=True)
            yield from _ended(clause, subject, "use", match["f"].removeprefix("用"))
    elif match := _NOT_USES.match(text):
        subject = _user(clause, match["s"])
        if subject and (match["le"] or clause.changes or "再" in text):
            yield from _ended(clause, subject, "use", match["v"])
    elif match := _SWITCHED.match(text):
        if (subject := _user(clause, match["s"])) and clause.attribute_of(_plain(match["s"])) is None:
            yield from clause.tastes(subject, "use", match["v"], changes=True)
    elif match := _USES.match(text):
        new = bool(match["new"]) or re.search("现在|如今|以后|今后|从", match["now"]) is not None
        if (subject := _user(clause, match["s"])) and not match["s"].endswith(("不", "没", "别")):
            purpose, subject = _purpose(subject, match["s"])
            yield from clause.tastes(subject, "use", match["v"], changes=new)
            if purpose:
                yield from clause.tastes(subject, "use", match["v"], purpose, changes=new)


def _purpose(subject: frozenset[str], text: str) -> tuple[str, frozenset[str]]:
    """Purpose of a tool, where that stands before the verb: 「缓存用 Redis」."""
    if subject <= {WE, ME} or text.startswith(("我", "用户", "他", "她")):
        return "", subject
    return _plain(text), frozenset({WE})


def _names(clause: Clause) -> Iterator[Claim]:
    if match := _RENAMED.match(clause.text):
        former, new = words_of(_plain(match["f"])), value_of(match["v"])[0]
        found = clause.attribute_of(_plain(match["f"]))
        if found and found[1] == "name":
            yield from clause.holds(*found, match["v"], changes=True)
        elif former and new:
            yield clause.claim(former, "name", new, changes=True)
            yield clause.claim(frozenset(), f"name={' '.join(sorted(former))}", "off", changes=True)
            yield clause.claim(frozenset(), f"name={' '.join(sorted(words_of(new)))}", "on")
    elif (match := _CALLED.match(clause.text)) and (subject := clause.subject_of(_plain(match["np"]))):
        yield from clause.holds(subject, "name", match["v"])


def _tastes(clause: Clause) -> Iterator[Claim]:
    text = clause.text
    if match := _PREFERS.match(text):
        new = bool(match["new"]) or "现在" in match["now"] or "喜欢上" in text
        if subject := clause.subject_of(_plain(match["s"])):
            yield from clause.tastes(subject, "prefer", match["v"], changes=new)
    elif match := _NO_LONGER.match(text):
        subject, verb = clause.subject_of(_plain(match["s"])), match["verb"]
        if verb == "在" and not match["le"]:
            return
        if verb == "负责":
            owned = clause.subject_of(match["v"])
            if owned:
                yield clause.turned(owned, "owner", _plain(match["s"]).casefold(), on=False)
        elif subject:
            yield from _ended(clause, subject, _LEMMAS.get(verb, verb), match["v"])
            if verb in ("喝", "吃", "玩"):
                yield from _ended(clause, subject, "like", match["v"])
    elif match := _LIKES.match(text):
        subject, value = clause.subject_of(_plain(match["s"])), value_of(match["v"])[0]
        if subject and value and not match["s"].endswith(("不", "没")):
            yield clause.claim(subject, f"{_LEMMAS.get(match['verb'], match['verb'])}={value}", "on")


def _states(clause: Clause) -> Iterator[Claim]:
    if match := _STATE.match(clause.text):
        subject = clause.subject_of(_plain(match["np"]))
        if subject and clause.attribute_of(match["np"]) is None:
            yield from clause.holds(subject, "status", match["v"])


# Each rule with the letters of which a clause that it reads has one.
_RULES: tuple[tuple[frozenset[str], Callable[[Clause], Iterator[Claim]]], ...] = (
    (frozenset("住居搬迁移驻在跳入加转离辞于"), _places),
    (frozenset("改换变调更升涨降推提延移挪迁切转交设定修缩减增是为：:=→叫在"), _attributes),
    (frozenset("由负接维管主领带牵跟处是成担当出"), _owners),
    (frozenset("岁元块刀万卖售要收部托发"), _prices),
    (frozenset("用换改切迁转弃淘从把将代替"), _tools),
    (frozenset("改名叫重称"), _names),
    (frozenset("喜爱偏倾喝吃玩养抽开说不"), _tastes),
    (frozenset("已正被处仍在又"), _states),
)

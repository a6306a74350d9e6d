"""The labels of a record under which the answer to a question stands: "Stands in" for "where is the sofa?".

People name what they note down in one word and ask for it in others. Here are the few kinds of thing that everybody
keeps of people and things, each with the wordings that ask for it and the words of its labels.

Invariants: pure; linear; English, German and Chinese; what asks for none of these kinds gives no label; of a question
that asks for several, the first kind that fits is the one.
"""

from __future__ import annotations

import re
from functools import cache

from indexer.common.patterns import lazy_regex
from indexer.language.facts_records import KEYED, label_before

_KEY_END = lazy_regex(r"\s*(?:[:：=→]|->|=>)")
_WORD = lazy_regex(r"[^\W\d_]+")
_IS = r"(?:is|are|was|were|['’]s|do|does|did|can|could)"
_HAN = lazy_regex("[一-鿿]")

# What asks for it, and the words of its labels. The more special stand first: "where did I buy" before "where".
_KINDS: tuple[tuple[str, str], ...] = (
    (
        rf"\bwhere {_IS}\b.*\b(?:buy|bought|get|got|purchase[ds]?|order(?:ed)?|come from)\b"
        r"|\b(?:which|what) (?:shop|store)|\bwho sold\b|\bwo\b.*\bgekauft\b|在哪.{0,8}买|哪家店",
        "bought purchased shop store seller vendor dealer supplier retailer source gekauft händler laden geschäft "
        "购于 购买 商店 店家",
    ),
    (
        r"\bwork(?:s|ing|ed)? (?:for|at)\b|\bemploy(?:s|ed)\b|\bwhere (?:does|do|did)\b.*\bwork\b"
        r"|\bwo arbeitet\b|\bfür wen arbeitet\b|在哪.{0,6}(?:工作|上班)|哪家公司",
        "employer company firm organisation organization workplace works employed arbeitgeber firma arbeitet "
        "公司 单位 雇主",
    ),
    (
        r"\bfor a living\b|\bprofession\b|\bwhat (?:does|do|did)\b.*\bdo\W*$|\bwhat(?: is|'s|’s)\b.*\bjob\b"
        r"|\bwas macht\b.*\bberuflich\b|做什么工作|什么职业",
        "job role position profession occupation title work beruf stelle 职业 职位 工作",
    ),
    (
        rf"\bwhere {_IS}\b.*\b(?:lives?|living|resides?)\b|\bwo wohnt\b|\bwo lebt\b|住(?:在)?哪",
        "lives home city town address residence resides based wohnt wohnort adresse 住址 住在 地址 城市",
    ),
    (
        rf"\bwhere {_IS}\b.*\bfrom\b|\bwoher kommt\b|哪里人|来自哪",
        "from origin hometown birthplace nationality country herkunft 籍贯 来自 国籍",
    ),
    (
        rf"\bwhere {_IS}\b|\b(?:in|on) (?:which|what) (?:room|place|shelf|drawer|box)\b"
        r"|\bwo (?:ist|sind|steht|stehen|liegt|liegen|hängt|befindet|finde)\b|在哪|哪里|哪儿|放哪",
        "location located place room stands stand stored kept lies hangs sits shelf drawer box position address "
        "where standort ort platz raum steht liegt hängt aufbewahrt lagerort 位置 地点 存放 放在 在 房间",
    ),
    (
        r"\bhow much\b.*\b(?:costs?|pay|paid|spend|spent|is|are|was|were)\b|\bhow expensive\b|\bwas kostet\b"
        r"|\bwie ?viel kostet\b|\bwie teuer\b|多少钱|什么价",
        "cost costs price paid rent fee rate amount preis kosten kostet miete gebühr 价格 费用 价钱 租金",
    ),
    (
        r"\bhow old\b|\bwhen (?:was|were|is)\b.*\bborn\b|\bwie alt\b|\bwann\b.*\bgeboren\b|几岁|多大|哪年出生",
        "born birthday birthdate birth age built alter geburtstag geboren baujahr 生日 出生 年龄",
    ),
    (
        r"\bwho (?:made|makes|built|produced)\b|\b(?:which|what) (?:brand|make|maker|manufacturer)\b"
        r"|\bwer hat\b.*\bhergestellt\b|\bwelche marke\b|什么牌子|哪个牌子|谁制造",
        "brand maker make manufacturer model producer builder hersteller marke fabrikat 品牌 牌子 厂家 制造商",
    ),
    (
        r"\bhow (?:can|do|could|should) (?:i|we|you) (?:reach|contact|call|phone)\b|\bwie erreiche\b|怎么联系|如何联系",
        "phone telephone tel mobile cell email mail contact telefon handy kontakt 电话 手机 邮箱 联系方式",
    ),
    (
        r"\bhow (?:big|large|tall|high|wide|long)(?: is| are|'s)\b|\bwie (?:groß|hoch|breit|lang) (?:ist|sind)\b"
        "|多大尺寸|多[高宽长]",
        "size dimensions height width length area measurements größe maße höhe breite länge fläche "
        "尺寸 高度 宽度 长度 面积",
    ),
    (
        r"\bhow heavy\b|\bhow much (?:does|do|did)\b.*\bweigh\b|\bwie schwer\b|多重",
        "weight weighs gewicht wiegt 重量 体重",
    ),
    (
        r"\bwho owns\b|\bwhose\b|\bwho (?:does|do)\b.*\bbelong\b|\bwem gehört\b|谁的|属于谁",
        "owner owned belongs besitzer eigentümer gehört 所有者 主人 归属",
    ),
    (
        r"\bwho (?:is|['’]s|are) (?:responsible|in charge)\b"
        r"|\bwho (?:looks after|takes care of|maintains|runs|leads|manages)\b"
        r"|\bwer (?:leitet|betreut)\b|\bwer ist\b.*\b(?:zuständig|verantwortlich)\b|谁负责|负责人",
        "owner responsible lead leader maintainer manager contact head zuständig verantwortlich leitung "
        "负责人 负责 联系人",
    ),
    (
        r"\bwho (?:is|['’]s|was)\b.*\bmarried to\b|\bmit wem ist\b.*\bverheiratet\b|配偶|跟谁结婚",
        "spouse wife husband partner married ehefrau ehemann partnerin 配偶 妻子 丈夫",
    ),
)


@cache
def _compile_kinds() -> tuple[tuple[re.Pattern[str], frozenset[str]], ...]:
    return tuple((re.compile(asked_text, re.IGNORECASE), frozenset(labels.split())) for asked_text, labels in _KINDS)


def asked_labels(question: str) -> frozenset[str]:
    """Words of the labels under which the answer stands; none where a question asks for nothing of these kinds."""
    for pattern, labels in _compile_kinds():
        if pattern.search(question):
            return labels
    return frozenset()


def label_of(text: str) -> tuple[str, str]:
    """Of a line of a record, what stands before its key and the key: "Sofa" and "Cost" of "Sofa: Cost: 635 €"."""
    line = text.strip(" \t*_-|>")
    if "\n" in line or KEYED.match(line) is None:
        return "", ""
    before, rest = label_before(line)
    end = _KEY_END.search(rest)
    return before, rest[: end.start()] if end else ""


def is_labelled(key: str, labels: frozenset[str]) -> bool:
    """True if the key of a line is one of some labels."""
    folded_text = key.casefold()
    if not labels.isdisjoint(_WORD.findall(folded_text)):
        return True
    return _HAN.search(folded_text) is not None and any(label in folded_text for label in labels if _HAN.search(label))

"""Owns what a sentence is worth in a summary: how much of it is particular, before and beside all cues.

Invariants: pure; linear; the same for a sentence and for the line of an earlier summary that quotes it.
"""

from __future__ import annotations

import re

# In this order: what one has found, the next does not see. Most sentences have nothing that an expression begins
# with, so that they need not be searched for it: `0` stands for any digit, `None` for no hint.
_PARTICULARS: tuple[tuple[str, str | None, re.Pattern[str]], ...] = (
    ("code", "`", re.compile(r"`[^`]{2,80}`")),
    ("link", "://", re.compile(r"\w{2,10}://\S+")),
    ("link", "@", re.compile(r"[\w.+-]+@[\w-]+\.\w+")),
    ("path", "/", re.compile(r"(?<![\w/])(?:~|\.{1,2})?/?[\w.@-]+(?:/[\w.@-]+)++/?")),
    ("path", ".", re.compile(r"[\w-]+\.(?:py|tsx?|js|go|rs|java|md|json|ya?ml|toml|sql|sh|csv|txt|log)\b")),
    ("id", "_", re.compile(r"[a-zA-Z]+_\w+")),
    ("id", "--", re.compile(r"--[a-z][\w-]+")),
    ("id", "#", re.compile(r"#\d+")),
    ("id", None, re.compile(r"[A-Z]{2,}[-_]?\d[\w-]*|[a-z][A-Z]\w+")),
    ("id", "0", re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")),
    (
        "number",
        "0",
        re.compile(r"\d[\d.,:/-]*+ ?(?:%|°|[a-zA-Zµ]{1,12}\b|[年月日号点分秒元块万亿人个台件次度米天周小克])?"),
    ),
    ("name", None, re.compile(r"[a-z,;] ([A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)*)")),
)
_DIGIT = re.compile(r"\d")
_CHINESE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("count", re.compile("[一二两三四五六七八九十百千]{1,6}[年月日号点元块万亿人个台件次度米天周小]")),
    ("name", re.compile("[《「“][^》」”]{1,30}[》」”]")),
)
_IDENTIFIERS = ("link", "path", "id")
_WEIGHTS = {"link": 1.4, "path": 1.2, "code": 0.8, "id": 1.2, "number": 0.8, "count": 0.5, "name": 0.8}
# A second number in a sentence says less than the first.
_DECAY = 0.5
_LEAST = 0.4
_WORD = re.compile(r"[a-z]+(?:['’]m)?")
_PERSONAL = frozenset(
    "my our i'm i’m birthday deadline address phone located owner contact budget due stored live lives allergic "
    "named".split()
)
_PERSONAL_ZH = re.compile("我的|我们的|我是|我在|我住|生日|截止|地址|电话|邮箱|预算|负责人?|存放|部署在|过敏|位于")
_INTRODUCED = re.compile(
    r"\b(?i:my (?:full |last |first )?name(?:['’]s| is))|\b(?i:call me )[A-Z]|\b(?i:i(?:['’]m| am) )[A-Z][a-z]+"
    r"|\b(?i:this is )[A-Z][a-z]+ (?:from|here|speaking)|\b(?:is called|named) "
    r"|我叫|叫我|名字(?:是|叫)|我姓|名叫|(?:客户|老板|经理|同事|负责人|联系人)(?:是|叫)"
)
_INTRODUCTIONS = ("name", "call", "i'm", "i’m", "i am", "this is", "叫", "名字", "我姓", "是")
_STRESSED = frozenset("remember fyi important importantly btw reminder".split())
_STRESSED_PHRASES = ("note that", "keep in mind", "by the way", "for the record")
_STRESSED_ZH = re.compile("记住|记一下|记得|注意|重要|顺便|提醒|备忘|说明一下")
_ONLY_LISTED = re.compile(r"[\s,;，、|/`'\"()\[\]{}:*•-]+")


def particulars(text: str) -> dict[str, int]:
    """How many links, paths, codes, ids, numbers, counts and names a text has, by kind."""
    return _searched(text)[0]


def _searched(text: str) -> tuple[dict[str, int], str]:
    """What is particular in a text, and the text without its codes, links, paths and ids."""
    found: dict[str, int] = {}
    digits = _DIGIT.search(text) is not None
    for kind, hint, pattern in _PARTICULARS:
        if hint is not None and not (digits if hint == "0" else hint in text):
            continue
        if kind in ("number", "name"):
            count = len(pattern.findall(text))
        else:
            text, count = pattern.subn(" ", text)
        if count:
            found[kind] = found.get(kind, 0) + count
    if not text.isascii():
        for kind, pattern in _CHINESE:
            if count := len(pattern.findall(text)):
                found[kind] = found.get(kind, 0) + count
    return found, text


def worth(text: str) -> float:
    """How much a sentence says that no other one would, from 0.4 to about 8."""
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
    stressed = not words.isdisjoint(_STRESSED) or any(phrase in lower for phrase in _STRESSED_PHRASES)
    if stressed or (chinese and _STRESSED_ZH.search(lower)):
        total += 1.0
    return total


def _may_introduce(lower: str) -> bool:
    # A plain loop takes half the time of `any`, and every sentence comes through here.
    for hint in _INTRODUCTIONS:
        if hint in lower:
            return True
    return False


def has_identifiers(text: str) -> bool:
    """Whether a text names a link, an address, a path or an id."""
    return not set(_IDENTIFIERS).isdisjoint(particulars(text))


def is_bare_list(text: str) -> bool:
    """Whether a text is nothing but paths, links or ids, which are kept elsewhere."""
    if any(map(str.isalpha, text.split())):
        return False
    found, rest = _searched(text)
    return not found.keys().isdisjoint((*_IDENTIFIERS, "code")) and not _ONLY_LISTED.sub("", rest)

"""Owns the way from a message's text to its statements: sentences without code, markup, greetings and fillers. Pure.

Invariants: linear in the length of the text; a statement is one line; its words stand in the text in this order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_service.sentences import split_sentences

_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_MARKER = re.compile(r"^[ \t>]*(?:#{1,6}[ \t]+|[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?|\d{1,3}[.)、][ \t]+)?")
_TABLE = re.compile(r"^[ \t]*\|")
_ASIDE = re.compile(r"\[(?!redacted\])[^\[\]\n]{4,400}\](?!\()")
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(([^()\s]{1,500})\)")
_EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d\U000e0020-\U000e007f]+")
_BLANKS = re.compile(r"\s+")

_INTERJECTION = (
    "wow|woah|whoa|hey there|hey|hi there|hi|hello|heya|yo|oh my god|oh my gosh|omg|oh no|oh wow|oh|ooh|ah|aw|aww"
    "|awww|yay|haha|hahaha|lol|hmm|hm|well|yeah|yep|yup|yes|yea|no worries|no problem|no way|nope|nah|sure thing"
    "|sure|ok|okay|alright|all right|right|cool|nice one|nice|great|awesome|amazing|sweet|perfect|totally"
    "|absolutely|definitely|exactly|for sure|of course|certainly|indeed|true|agreed|thanks a lot|thanks so much"
    "|thanks again|thanks|thank you so much|thank you very much|thank you|thx|congrats|congratulations"
    "|good morning|good evening|good question|great question|so|anyway|anyways|btw|by the way|you know|i mean"
    "|honestly|actually|gotcha|got it|understood|sounds good|sounds great|great job|good job|nice work|well done"
    "|way to go|guess what|you're right|i see|you bet|please|man|dude|bro"
)
_OPENING = re.compile(rf"(?:{_INTERJECTION})\b(?=[\s,.!;:–—-]|$)[\s,.!;:–—-]*", re.IGNORECASE)
_STOPS = ",.!;:–—-，。！～~、…"
_VOCATIVE = re.compile(r"([A-Z][\w'’-]{1,20})(?:\s*[,!.–—-]+\s*|\s*$)")
_CHINESE_OPENING = re.compile(
    "(?:哈+|嗯+|哦+|噢+|喔+|哇+|唉+|诶|欸|嗨|喂|好+的?(?:呀|啊|吧|嘞|哒)?|是的|是啊|是呀|对的?|对(?:啊|呀)|没错|行|可以|收到|明白了?|知道了|了解"
    "|谢谢(?:你|您|啦|大家)?|多谢|感谢|辛苦了?|不客气|没问题|没事|当然|太好了|太棒了|真棒|真好|真不错"
    "|好羡慕|是吗|哎呀|真的吗?|你好|您好|大家好|早上好|早|晚上好|那个|就是说|其实|话说|对了)"
    "[，,。.！!～~、…\\s]+"
)


def split_lines(text: str) -> list[list[str]]:
    """The statements of each line of a text: sentences, and asides in brackets; no code blocks, tables, markup."""
    lines = (
        [sentence for piece in _pieces(line) for sentence in split_sentences(piece)] for line in _prose_lines(text)
    )
    return [line for line in lines if line]


def _prose_lines(text: str) -> Iterator[str]:
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        elif not fence and not _TABLE.match(line):
            marker = _MARKER.match(line)
            yield line[marker.end() if marker else 0 :]


def _pieces(line: str) -> Iterator[str]:
    """The parts of a line between and in its asides."""
    line = _LINK.sub(r"\1 (\2)", line) if "](" in line else line
    at = 0
    for match in _ASIDE.finditer(line):
        yield line[at : match.start()]
        yield match[0]
        at = match.end()
    yield line[at:]


def is_aside(statement: str) -> bool:
    """Whether a statement is an aside in brackets, such as what a shared picture shows."""
    return statement.startswith("[") and statement.endswith("]")


def clean(statement: str, names: tuple[str, ...]) -> str:
    """A statement without what only opens it: interjections, thanks, the name of who is spoken to.

    Args:
        statement: A sentence.
        names: Whom the stretch names as speakers.

    Returns:
        One line; empty if nothing else was said.
    """
    text = _BLANKS.sub(" ", _EMOJI.sub(" ", statement).replace("**", "").replace("__", "")).strip()
    while True:
        rest = _without_opening(text, names)
        if rest == text:
            break
        text = rest
    for name in names:
        for end in (f", {name}", f"，{name}"):
            body = text.rstrip("!.?！。？ ")
            if body.endswith(end):
                text = body[: -len(end)] + text[len(body) :]
    return text[:1].upper() + text[1:]


def _without_opening(text: str, names: tuple[str, ...]) -> str:
    opening = _OPENING.match(text) or _CHINESE_OPENING.match(text)
    # "So tired" and "No problem with that" are sentences: what opens stands before a comma or a stop.
    if opening and (opening[0].rstrip()[-1] in _STOPS or opening.end() == len(text)):
        return text[opening.end() :]
    after = opening.end() if opening else 0
    vocative = _VOCATIVE.match(text, after)
    if vocative and (_is_called(vocative[1], names) or (opening and opening[0].split()[0].lower() in ("hey", "hi"))):
        return text[vocative.end() :]
    return text


def _is_called(word: str, names: tuple[str, ...]) -> bool:
    """Whether a word is a speaker's name or its short form."""
    folded = word.lower()
    return any(folded == name.lower() or (len(word) > 2 and name.lower().startswith(folded)) for name in names)

"""Cues in the wording of a text: words of time, a question, a question about time.

Invariants: pure; linear in the length of the text; the same functions judge passages when they are indexed and
questions when they are searched. English and Chinese; other languages give no cue.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from indexer.common.patterns import lazy_regex
from indexer.language.tables import ANY

# "[shares a picture: …]" or "(see below)" behind a sentence does not change what the sentence is.
_ASIDE = lazy_regex(r"(?<=[?？])[ \t]*(?:\[[^\[\]\n]*\]|\([^()\n]*\)|（[^（）\n]*）)[ \t]*\Z")
_ASKING_WHEN = lazy_regex(ANY.questions.asking_when, re.IGNORECASE)

# A text that asks and is longer says something, too. Source: the evidence of foreign data sets, at no limit, 600, 400,
# 250, 150 and without the cue: .329, .354, .360, .357, .370, .370 in long talks with an assistant, .511, .512, .508,
# .513, .523, .522 in dialogues at work; of LoCoMo's within 1,024 tokens .853, .853, .853, .854, .855, .845.
SHORT_CHARS = 150
_MARK = lazy_regex("[?\uff1f\u061f\u037e]")

_REQUEST = lazy_regex(ANY.questions.requests, re.IGNORECASE)


def asks(text: str) -> bool:
    """True if the last sentence of a text is a question.

    Quotes, emoji or an aside in brackets may follow its question mark, but no words. In Chinese a final 吗 or 呢 asks
    without one.
    """
    if text.isascii() and "?" not in text:
        return False
    text = _ASIDE.sub("", text)
    mark = max(text.rfind("?"), text.rfind("？"))
    for index in range(len(text) - 1, mark, -1):
        if text[index].isalnum():
            return text[index] in "吗嗎呢"
    return mark >= 0


def asks_shortly(text: str) -> bool:
    """True if a text asks and says little else: a longer one tells what its question is about."""
    return len(text) <= SHORT_CHARS and asks(text)


def requests(text: str) -> bool:
    """True if a text begins by asking somebody to do something: "please find …", "帮我查一下…"."""
    return _REQUEST.match(text) is not None


def asks_when(query: str) -> bool:
    """True if a question asks for a time: when, what date, how long ago, 什么时候, 多久."""
    return _ASKING_WHEN.search(query) is not None


# Who speaks of himself, in the languages that assistants are asked in most.
_OF_ASKER = lazy_regex(rf"\b(?:{ANY.questions.of_asker})\b|{ANY.questions.of_asker_within}", re.IGNORECASE)
_OF_ASSISTANT = lazy_regex(ANY.questions.of_assistant, re.IGNORECASE)
_OVERVIEW = lazy_regex(rf"\b(?:{ANY.questions.overview})\b|{ANY.questions.overview_within}", re.IGNORECASE)


def whose_word(question: str) -> Literal["user", "assistant", ""]:
    """Whose messages answer a question: those of the user, where he asks about himself, or of the assistant.

    Neither where it asks for an overview, which both have a part in, or asks nothing.
    """
    if not (_MARK.search(question) or asks(question) or requests(question)) or _OVERVIEW.search(question):
        return ""
    if _OF_ASSISTANT.search(question):
        return "assistant"
    return "user" if _OF_ASKER.search(question) else ""


def only_ask(sentences: Sequence[str], *, requesting: bool = False) -> bool:
    """True if each of some sentences asks something, or, if so, asks somebody to do something."""
    return all(asks(sentence) or (requesting and requests(sentence)) for sentence in sentences)

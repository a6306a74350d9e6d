"""Short replies: assents, refusals, choices of an option, words that only say to go on. Pure.

Invariants: linear; an assent is the whole of a first sentence, so that "good morning" is none; a refusal begins a line,
in the words of whoever refuses; what only says to go on, or chooses, is the whole of a text. All
languages have the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from indexer.common.patterns import lazy_regex
from indexer.language.tables import ANY

_ASSENTS = ANY.replies.assents
_SIGNS = "👍👌✅💯🙌👏🆗✔☑🚀🎉😀😊🙂"
_ASSENT = lazy_regex(
    rf"\W*(?:(?:{_ASSENTS})(?:[\s,.!、，。！~]+(?:{_ASSENTS}|{ANY.replies.thanks}))*|[{_SIGNS}\ufe0f\s]+)"
    rf"[\s.!。！,，~{_SIGNS}\ufe0f]*",
    re.IGNORECASE,
)
_FIRST = lazy_regex(r"[^.!?。！？\n]*[.!。！]*")
_MOST_CHARS = 300
_REFUSAL = lazy_regex(rf"\W*(?:(?:{ANY.replies.refusal_leads})[,.!]?\s+)?(?:{ANY.replies.refusals})", re.IGNORECASE)


def is_assent(text: str) -> bool:
    """True if a reply begins with a sentence that only says yes, or that something is good: "Good.", "👍", "passt"."""
    text = text.strip()
    first = _FIRST.match(text[:_MOST_CHARS])
    return (
        bool(text) and first is not None and bool(first[0].strip() or text[0] in _SIGNS) and _is_assent(text, first[0])
    )


def _is_assent(text: str, first: str) -> bool:
    return _ASSENT.fullmatch(first.strip() or text) is not None


def is_refusal(line: str) -> bool:
    """True if a line refuses, or asks for something to work on: "I'm sorry, but I can't …", "很抱歉，我无法…"."""
    return _REFUSAL.match(line[:_MOST_CHARS]) is not None


def is_bare_assent(text: str) -> bool:
    """True if a whole reply only says yes, or no: "Yes, please do.", "no", "👍"."""
    text = text.strip()
    return bool(text) and len(text) <= _BARE_CHARS and (_is_assent(text, text) or _DENIAL.fullmatch(text) is not None)


_BARE_CHARS = 80
_DENIAL = lazy_regex(rf"\W*(?:{ANY.replies.denials})[\s.!。！,，]*", re.IGNORECASE)
_GO_ON = ANY.replies.go_on
_CONTINUATION = lazy_regex(
    rf"\W*(?:(?:{ANY.replies.go_on_leads})[\s,.!，。]*)*(?:{_GO_ON})"
    rf"(?:[\s,.!，。]*(?:{ANY.replies.go_on_ends}|{_GO_ON}))*[\s.!…。！]*",
    re.IGNORECASE,
)


def is_continuation(text: str) -> bool:
    """True if a whole text only says to go on: "continue", "please keep going", "weiter", 继续."""
    text = text.strip()
    return len(text) <= 2 * _BARE_CHARS and _CONTINUATION.fullmatch(text) is not None


# --- choices -----------------------------------------------------------------------------------------------------

_ALL = ANY.replies.all_options
_ORDINAL = "|".join(f"(?:{words})" for words in ANY.replies.ordinals.values())
_LABEL = rf"(?:[#(\[]?(?:\d{{1,2}}|(?-i:[A-Z])|[a-h])(?:[)\].:]|(?![\w]))|{_ORDINAL})"
_BEFORE_LABEL = rf"(?:(?:{ANY.replies.before_label})\.?[\s,:]*)*"
_AFTER_LABEL = rf"(?:[\s,]*(?:{ANY.replies.after_label}))*[\s.!。！]*"
_CHOICE = lazy_regex(
    rf"{_BEFORE_LABEL}(?P<labels>(?:{_LABEL}|{_ALL})(?:\s*(?:,|&|\+|/|{ANY.replies.and_words})\s*(?:{_LABEL}))*)"
    rf"{_AFTER_LABEL}",
    re.IGNORECASE,
)
_LED_CHOICE = lazy_regex(
    rf"{_BEFORE_LABEL}(?P<labels>{_LABEL})"
    rf"(?:\s*[,;—–-]\s+|\s+(?=(?:{ANY.replies.but_words})\b))\S",
    re.IGNORECASE,
)
_ONE_LABEL = lazy_regex(
    rf"(?P<all>{_ALL})|(?P<ordinal>{_ORDINAL})|(?<!\w)(?P<label>\d{{1,2}}|[A-Za-z])(?![A-Za-z0-9])", re.IGNORECASE
)
_LED_CHARS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceLabel:
    """A label that a reply names.

    Attributes:
        label: As options bear it, in lower case; empty for a place.
        place: The place among the options, from 1; -1 for the last one, 0 for a label, None for all of them.
    """

    label: str
    place: int | None


def chosen_labels(reply: str) -> list[ChoiceLabel]:
    """The labels of options that a reply chooses, and nothing else, or before it says more; none for other texts.

    "2", "b)", "the second", "option 3 please", "1 and 3", "2, but with TLS", 选第二个.
    """
    reply = reply.strip()
    match = _CHOICE.fullmatch(reply) if len(reply) <= _BARE_CHARS else None
    match = match or (_LED_CHOICE.match(reply) if len(reply) <= _LED_CHARS else None)
    return list(_labels(match["labels"])) if match else []


def _labels(words: str) -> Iterator[ChoiceLabel]:
    for match in _ONE_LABEL.finditer(words):
        if match["all"]:
            yield ChoiceLabel(label="", place=None)
        elif ordinal := match["ordinal"]:
            place = next(
                place for place, text in ANY.replies.ordinals.items() if re.fullmatch(text, ordinal, re.IGNORECASE)
            )
            yield ChoiceLabel(label="", place=place)
        elif match["label"]:
            yield ChoiceLabel(label=match["label"].lower(), place=0)

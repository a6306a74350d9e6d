"""Set phrases (pleasantries, narration, pointers, nothing), headings, and the statements of a text. Pure.

Invariants: linear in the length of the text; English and Chinese; a statement is a sentence on one line, without code,
markup, greetings and fillers, whose words stand in the text in this order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from indexer.common import lazy_regex
from indexer.language import ANY, Fences
from memory_service.text.sentences import led_lines, split_sentences

_RELATIVE = lazy_regex(ANY.phrases.relative_times, re.IGNORECASE)
_POINTING = lazy_regex(ANY.phrases.pointing, re.IGNORECASE)
_JOINT = lazy_regex(ANY.phrases.joints, re.IGNORECASE)
_NARRATION = lazy_regex(ANY.phrases.narration, re.IGNORECASE)
_PLEASANTRY = lazy_regex(ANY.phrases.pleasantries, re.IGNORECASE)
_REQUEST = lazy_regex(ANY.phrases.requests, re.IGNORECASE)
_PICTURE = lazy_regex(ANY.phrases.pictures, re.IGNORECASE)
_PICTURE_CHARS = 160
# A word or three with a small number: a place in a list, and no value of anything.
_LABEL = lazy_regex(ANY.phrases.labels, re.IGNORECASE)
_BARE_WORDS, _BARE_CHARS = 7, 40
_BARE = lazy_regex(ANY.phrases.bare)
_OWN = lazy_regex(ANY.phrases.own, re.IGNORECASE)
# A line that stands for nothing, for now or at all, and a whole reply that says so in words.
_NOTHING = lazy_regex(rf"\W*(?:{ANY.phrases.nothing})?\W*", re.IGNORECASE)
_NOTHING_REPORTED = lazy_regex(f"(?:{ANY.phrases.nothing_reported})", re.IGNORECASE)
# Subjects of a summary's headings, by their words; the first that occurs decides.
_SUBJECTS = tuple((lazy_regex(words, re.IGNORECASE), subject) for subject, words in ANY.sections.headings.items())


def is_relative(text: str) -> bool:
    """True if a text has words of time that mean another day tomorrow: "yesterday", "next week", "昨天"."""
    return _RELATIVE.search(text) is not None


def points_back(text: str) -> bool:
    """True if a sentence begins with a word whose meaning stands before it: "It was …", "那个…"."""
    return _POINTING.match(text) is not None


def without_joint(text: str) -> str:
    """A sentence without the word that only joins it to the one before: "And please …", "Then …", "另外…"."""
    joint = _JOINT.match(text)
    rest = text[joint.end() :] if joint else text
    return rest


def is_narration(text: str) -> bool:
    """True if an assistant only says what it is about to do, or offers."""
    return _NARRATION.match(text.replace("’", "'") if "’" in text else text) is not None


_STEP = lazy_regex(ANY.phrases.steps, re.IGNORECASE)
_THOUGHT = lazy_regex(r"\A(?:THOUGHT|Thought|DISCUSSION|Reasoning|Action|Plan)\s?:\s*")


def is_passing(text: str) -> bool:
    """True if a sentence of an assistant's says nothing beyond its step: an opening, a lead-in, an announcement."""
    said_text = clean(_THOUGHT.sub("", text, count=1), ()).lstrip("*_` ")
    if not any(map(str.isalnum, said_text)) or is_nothing(said_text) or is_pleasantry(said_text):
        return True
    is_announced = _STEP.match(said_text) is not None or is_narration(said_text)
    return is_announced or said_text[-1] in ":：" or said_text[0] in ",;.)]}" or said_text.count(" | ") > 1


def is_label(text: str) -> bool:
    """True if a text only numbers something: "Question 0", "Part 3:", "第3题"."""
    return _LABEL.fullmatch(text) is not None


def is_pleasantry(text: str) -> bool:
    """True if a sentence greets, thanks, wishes or takes leave; one with a number says more."""
    return _PLEASANTRY.match(text) is not None


def requests_action(text: str) -> bool:
    """True if a question asks to do something, and so may state what is wanted."""
    return _REQUEST.match(text) is not None


def is_bare_ask(text: str) -> bool:
    """True if a request names nothing that it is about: "Can you find out why?"."""
    return len(text.split()) <= _BARE_WORDS and len(text) <= _BARE_CHARS and _BARE.search(text.lower()) is not None


def is_own(text: str) -> bool:
    """True if a text speaks of its writer: "I", "we", "我"."""
    return _OWN.search(text) is not None


def is_nothing(line: str) -> bool:
    """True if a line stands for nothing: "(none)", "N/A", "暂无"."""
    return _NOTHING.fullmatch(line) is not None


def reports_nothing(reply: str) -> bool:
    """True if a reply says in words of its own that there is nothing."""
    return _NOTHING_REPORTED.fullmatch(reply) is not None


def subject_of(heading: str) -> str:
    """Subject of a summary's heading, such as `RULES` or `OPEN`; empty for an unknown one."""
    return next((subject for words, subject in _SUBJECTS if words.search(heading)), "")


def picture_of(aside: str) -> str:
    """Short description of a shared picture from an aside; empty for other asides."""
    match = _PICTURE.match(aside)
    return f"image: {match[match.lastindex or 0].strip()[:_PICTURE_CHARS]}" if match else ""


_MARKER = lazy_regex(r"^[ \t>]*(?:#{1,6}[ \t]+|[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?|\d{1,3}[.)、][ \t]+)?")
_TABLE = lazy_regex(r"^[ \t]*\|")
_ASIDE = lazy_regex(r"\[(?!redacted\])[^\[\]\n]{4,400}\](?!\()")
_LINK = lazy_regex(r"\[([^\[\]\n]{1,200})\]\(([^()\s]{1,500})\)")
_BLANKS = lazy_regex(r"\s+")

_INTERJECTION = ANY.phrases.interjections
_OPENING = lazy_regex(rf"(?:{ANY.phrases.interjections})\b(?=[\s,.!;:–—-]|$)[\s,.!;:–—-]*", re.IGNORECASE)
_STOPS = ",.!;:–—-，。！～~、…"
_VOCATIVE = lazy_regex(r"([A-Z][\w'’-]{1,20})(?:\s*[,!.–—-]+\s*|\s*$)")
_OPENING_WITHIN = lazy_regex(rf"(?:{ANY.phrases.interjections_within})[，,。.！!～~、…\s]+")


def statement_lines(text: str) -> list[list[str]]:
    """The statements of each line of a text: sentences, and asides in brackets; no code blocks, tables, markup."""
    lines = (
        [sentence for piece in _pieces(line) for sentence in split_sentences(piece)] for line in _prose_lines(text)
    )
    return [line for line in lines if line]


def _prose_lines(text: str) -> Iterator[str]:
    fences = Fences()
    for line in led_lines(text):
        if fences.kind(line) == "text" and not _TABLE.match(line):
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
    """True if a statement is an aside in brackets, such as what a shared picture shows."""
    return statement.startswith("[") and statement.endswith("]")


def clean(statement: str, names: tuple[str, ...]) -> str:
    """A statement without what only opens it: interjections, thanks, the name of who is spoken to.

    Args:
        statement: A sentence.
        names: Whom the stretch names as speakers.

    Returns:
        One line; empty if nothing else was said.
    """
    text = _BLANKS.sub(" ", statement.replace("**", "").replace("__", "")).strip()
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
    return text


def _without_opening(text: str, names: tuple[str, ...]) -> str:
    opening = _OPENING.match(text) or _OPENING_WITHIN.match(text)
    # "So tired" and "No problem with that" are sentences: what opens stands before a comma or a stop.
    if opening and (opening[0].rstrip()[-1] in _STOPS or opening.end() == len(text)):
        return text[opening.end() :]
    after = opening.end() if opening else 0
    vocative = _VOCATIVE.match(text, after)
    if vocative and (_is_called(vocative[1], names) or (opening and opening[0].split()[0].lower() in ("hey", "hi"))):
        return text[vocative.end() :]
    return text


def _is_called(word: str, names: tuple[str, ...]) -> bool:
    """True if a word is a speaker's name or its short form."""
    text = word.lower()
    return any(text == name.lower() or (len(word) > 2 and name.lower().startswith(text)) for name in names)

"""Choices: the options that a message lists, and those that a short reply to it takes. Pure.

Invariants: linear in the text; options are quoted, never reworded; a reply that names no option of the message before
it chooses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from indexer.common import lazy_regex
from indexer.language import ANY, ChoiceLabel, asks, chosen_labels, has_unspaced, is_bare_assent
from memory_service.text.sentences import single_line, split_sentences
from memory_service.text.statements import is_order, question_of

_LINE = lazy_regex(
    rf"[ \t>]{{0,8}}(?:[-*+•][ \t]+)?(?:\*\*|__)?(?:(?:{ANY.replies.option_words})[ \t]?)?[(\[]?(?P<label>\d{{1,2}}"
    r"|[A-Za-z])(?:[)\]][.:]?|[.:、：](?=\s|\*\*|[^\x00-\x7f]))[ \t]*(?:\*\*|__)?[ \t]*(?P<text>\S.*)"
)
_BULLET = lazy_regex(r"[ \t>]{0,8}[-*+•][ \t]+(?P<text>\S.*)")
_INLINE = lazy_regex(
    r"(?:(?<=\s)|(?<=[(:：,，;；])|\A)(?:[(]?(?P<label>\d{1,2}|[A-Ha-h])[)]|(?P<dotted>[A-H1-9])[.:](?=\s))\s*(?P"
    rf"<text>[^\n]+?)(?=(?:[,;，；.]|{ANY.replies.or_words})?\s*[(]?(?:\d{{1,2}}|[A-Ha-h])[)]\s"
    rf"|[?？\n]|\Z|{ANY.replies.or_labels})"
)
_OPTION_CHARS = 200
_QUESTION_CHARS = 1_200
_END_CHARS = 6_000
# Up to so many words a reply is taken for an answer, where it is no order of its own.
_SHORT_WORDS, _SHORT_CHARS, _SHORT_UNSPACED = 6, 60, 8
_MARKS = "*_` \t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a list.

    Attributes:
        label: Its number or letter in lower case; empty for an item without one.
        text: What it says, on one line.
    """

    label: str
    text: str


def options_in(text: str) -> list[Option]:
    """The options that a text lists last; none if it lists fewer than two."""
    lines = text[-_END_CHARS:].splitlines()
    for pattern in (_LINE, _BULLET):
        options = _last_run([_option(pattern.match(line)) for line in lines])
        if len(options) > 1:
            return options
    found_options = [
        Option(label=(match["label"] or match["dotted"]).lower(), text=_tidy(match["text"]))
        for match in _INLINE.finditer(text[-_QUESTION_CHARS:])
    ]
    labels = [option.label for option in found_options]
    return found_options if len(found_options) > 1 and labels == sorted(set(labels)) else []


def _option(match: re.Match[str] | None) -> Option | None:
    if match is None:
        return None
    fields = match.groupdict()
    return Option(label=(fields.get("label") or "").lower(), text=_tidy(fields["text"]))


def _tidy(text: str) -> str:
    return single_line(text.replace("**", "").replace("__", "").strip(_MARKS), _OPTION_CHARS).rstrip(" ,;，；:：")


def _last_run(lines: Sequence[Option | None]) -> list[Option]:
    """The options of the last list: a label that comes again begins another one."""
    run: list[Option] = []
    for option in lines:
        if option is None:
            continue
        if option.label and any(option.label == known_option.label for known_option in run):
            run = []
        run.append(option)
    return run


def chosen_options(reply: str, options: Sequence[Option]) -> list[Option]:
    """The options that a reply takes, in its order; none if it takes none of them."""
    found_options = [option for label in chosen_labels(reply) for option in _options_of(label, options)]
    return list(dict.fromkeys(found_options))


def _options_of(label: ChoiceLabel, options: Sequence[Option]) -> Iterator[Option]:
    if label.place is None:
        yield from options
    elif label.place:
        place = label.place - 1 if label.place > 0 else label.place
        yield from options[place : place + 1 or None]
    else:
        yield from (option for option in options if option.label == label.label)


def is_bare_reply(text: str) -> bool:
    """True if a user's text means nothing without what it answers: a choice, a yes, a no."""
    return is_bare_assent(text) or bool(chosen_labels(text))


def answered_question(reply: str, before: str) -> str:
    """The question that a short reply answers, with its options as they were listed; empty if there is none.

    Args:
        reply: A user's text.
        before: The assistant's text before it.
    """
    question, options = question_of(before), options_in(before)
    if chosen_options(reply, options):
        return _question_end(before, question)
    answers = is_bare_assent(reply) or (_is_short(reply) and not is_order(reply) and not asks(reply))
    return _question_end(before, question) if question and answers else ""


def _is_short(reply: str) -> bool:
    if "\n" in reply.strip() or len(reply) > _SHORT_CHARS:
        return False
    return len(reply) <= _SHORT_UNSPACED if has_unspaced(reply) else len(reply.split()) <= _SHORT_WORDS


def _question_end(before: str, question: str) -> str:
    """The end of a text from its question on, or from its options if those stand before it."""
    end = before[-_END_CHARS:].strip()
    at = end.find(question[:80].rstrip("…")) if question else -1
    options = options_in(end)
    firsts = [position for option in options[:1] if (position := end.find(option.text[:40].rstrip("…"))) >= 0]
    if firsts:
        line = end.rfind("\n", 0, firsts[0]) + 1
        # The line above a list says what it is of.
        above = end[:line].rstrip()
        at = min(at if at >= 0 else line, above.rfind("\n") + 1)
    asked_text = end[max(at, 0) :].strip()
    return asked_text if len(asked_text) <= _QUESTION_CHARS else f"{asked_text[: _QUESTION_CHARS - 1].rstrip()}…"


def asked_in_one_line(before: str) -> str:
    """The question of a text on one line: the last one, else the line above its options."""
    if question := question_of(before):
        return question
    options = options_in(before)
    asked_text = _question_end(before, "").partition("\n")[0] if options else ""
    return next(iter(split_sentences(asked_text.strip(_MARKS + "#"))), "")

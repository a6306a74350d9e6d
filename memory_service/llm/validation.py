"""Answer validation: whether a model's answer is a summary, in what form it is taken, and what can be saved of it.

Invariants: pure; linear. Only the text of an answer that ended by itself is ever taken; an accepted text has every
heading that was asked for, once, in order, and something under each; it is never longer than its cap. Wrapping, order,
language and form of headings are mended at once; an answer without some of them is asked for again, and what can be
saved of it has them, with a line under each that says so where there is nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from indexer.common import lazy_regex
from indexer.language import Fences
from memory_service.llm.answer_shape import is_opening, sections_of, unwrapped_answer
from memory_service.llm.base import Completion
from memory_service.messages.sizes import count_tokens, quarters
from memory_service.text.frames import escape_frames, without_thoughts
from memory_service.text.phrases import is_nothing
from memory_service.text.secrets import redact
from memory_service.text.texts import ENGLISH, Texts, heading_forms, heading_in

# An answer so much over its cap is cut; beyond that, too much of it would be lost.
CLIP_SHARE = 1.5

_SENTENCE_END = lazy_regex(r"[.!?](?=\s)|[。！？\n]")
_FENCE = lazy_regex(r"[ \t]*+(`{3,}+|~{3,}+)")
_HEADING = lazy_regex(r"[ \t]{0,3}(?:(#{1,6})[ \t]*+([^\n]*+)|\*\*([^*\n]{1,100})\*\*[ \t]*+[:：]?[ \t]*+$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerValidation:
    """Validated text of an answer, or the reason to refuse it.

    Attributes:
        text: The summary; empty if the answer is refused.
        kind: Why it is refused, see `SummaryFailed`; empty if it is taken.
        reason: The same as a sentence for the model.
        is_clipped: Whether lines were left out for the length.
        too_long: The text, if its length is all that is wrong with it.
        saved_text: Of an answer that is refused for its headings, all that it says, below those that were asked for.
        mended_texts: Ways in which the text, or what is saved, differs from the answer, each a sentence.
        sparse: Whether half of the headings or more are lacking.
    """

    text: str = ""
    kind: str = ""
    reason: str = ""
    is_clipped: bool = False
    too_long: str = ""
    saved_text: str = ""
    mended_texts: tuple[str, ...] = ()
    sparse: bool = False


def validate_answer(
    completion: Completion,
    *,
    headings: Sequence[str] = (),
    cap_tokens: int | None = None,
    texts: Texts = ENGLISH,
) -> AnswerValidation:
    """Judges an answer.

    Args:
        completion: As the model gave it.
        headings: What it has to hold, see `prompts.SummarySpec`, in whatever language.
        cap_tokens: The longest text that is taken; None for any length.
        texts: Words of the language that its headings get.
    """
    if completion.tool_calls_present or completion.finish_reason in ("tool_calls", "tool_use", "function_call"):
        return AnswerValidation(kind="tool_call", reason="It called a tool. Answer with text alone.")
    if completion.finish_reason == "content_filter":
        return AnswerValidation(kind="content_filter", reason="It was withheld by a content filter.")
    if completion.finish_reason in ("length", "max_tokens"):
        return AnswerValidation(kind="truncated", reason="It was cut off before its end. Write a shorter one.")
    text = _strip_wrapping(completion.text)
    if not text:
        return AnswerValidation(kind="empty", reason="It was empty. Write the record as text.")
    strict, fault = _with_headings(text, headings, texts)
    if not fault:
        return _within_cap(strict, cap_tokens, texts)
    saved_text, mended_texts, lacking = _in_shape(text, headings, texts)
    if lacking:
        sparse = 2 * lacking >= len(headings)
        return AnswerValidation(
            kind="headings", reason=fault, saved_text=saved_text, mended_texts=mended_texts, sparse=sparse
        )
    return replace(_within_cap(saved_text, cap_tokens, texts), mended_texts=mended_texts)


def _strip_wrapping(text: str) -> str:
    """An answer without thoughts, without what is wrapped around the whole, and without secrets."""
    return escape_frames(redact(unwrapped_answer(without_thoughts(text).strip())))


def _in_shape(text: str, headings: Sequence[str], texts: Texts) -> tuple[str, tuple[str, ...], int]:
    """All that an answer says below the headings that were asked for; what was done, and how many are lacking."""
    sections = sections_of(text, headings)
    bodies: list[list[str]] = [[] for _ in headings]
    # What stands nowhere goes below the last heading, which is that of facts where a preset has one.
    rest = bodies[-1]
    for section in sections:
        lines = _trim_lines(section.lines)
        if section.heading is None and section.name and lines:
            lines = [f"**{section.name}**", *lines]
        if section.heading is None and not section.name:
            lines = [line for line in lines if not is_opening(line)] if len(sections) > 1 else lines
        (rest if section.heading is None else bodies[section.heading]).extend(lines)
    order = [section.heading for section in sections if section.heading is not None]
    written_texts = [heading_in(heading, texts) for heading in headings]
    empty = [
        written_texts[at]
        for at in range(len(headings))
        if not _trim_lines(bodies[at]) and not _is_above(written_texts, at)
    ]
    lacking = [written_texts[at] for at in range(len(headings)) if at not in order and not _is_above(written_texts, at)]
    lines = []
    for at, name in enumerate(written_texts):
        lines.append(name if name.startswith("### ") else f"## {name}")
        lines += _trim_lines(bodies[at]) or ([] if _is_above(written_texts, at) else [f"- {texts.nothing}"])
    mended_texts = ["Headings of the summary were brought into the form that was asked for."] if order else []
    if order != sorted(order):
        mended_texts.append("Sections of the summary were put into the order that was asked for.")
    if empty or lacking:
        names = ", ".join(dict.fromkeys((*lacking, *empty)))
        mended_texts.append(f"Headings that the model left out, or left empty, were filled in: {names}.")
    return "\n".join(lines), tuple(mended_texts), len({*lacking, *empty})


def _is_above(headings: Sequence[str], at: int) -> bool:
    """True if the next heading belongs to this one, which need not say anything itself."""
    return at + 1 < len(headings) and headings[at + 1].startswith("### ") > headings[at].startswith("### ")


def _trim_lines(lines: Sequence[str]) -> list[str]:
    """Lines without empty ones at the ends, and without one that says that there is nothing beside others."""
    ats = [at for at, line in enumerate(lines) if line.strip()]
    if not ats:
        return []
    kept_lines = list(lines[ats[0] : ats[-1] + 1])
    texts = [line for line in kept_lines if not is_nothing(line)]
    return texts if any(map(str.strip, texts)) else kept_lines


def clip_sections(text: str, cap_tokens: int, texts: Texts = ENGLISH) -> str:
    """A text within a size, whole lines left out from the ends of its longest sections; headings stay.

    A text of headings alone that is over the size loses its last lines.
    """
    sections, left_out = [*_sections(text.split("\n"))], texts.omitted["lines"]
    over = quarters(text) - 4 * cap_tokens
    longest = [(-sum(map(_size, section[1:])), at) for at, section in enumerate(sections)]
    heapq.heapify(longest)
    short = set[int]()
    while over > 0 and longest:
        size, at = heapq.heappop(longest)
        if len(sections[at]) < 2:
            continue
        gone_size = _size(sections[at].pop())
        if at not in short:
            short.add(at)
            over += _size(left_out)
        over -= gone_size
        heapq.heappush(longest, (size + gone_size, at))
    lines = [line for at, section in enumerate(sections) for line in (*section, *([left_out] if at in short else []))]
    while lines and over > 0:
        over -= _size(lines.pop())
    return "\n".join(lines).strip()


def clip_to_sentence(text: str, cap_tokens: int) -> str:
    """As much of a text as fits a size, to the end of a sentence if one ends in its second half."""
    if count_tokens(text) <= cap_tokens:
        return text
    low, high = 0, min(len(text), 4 * cap_tokens)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count_tokens(text[:middle]) <= cap_tokens else (low, middle - 1)
    ends = [match.end() for match in _SENTENCE_END.finditer(text, low // 2, low)]
    return text[: ends[-1]].rstrip() if ends else text[:low]


def _within_cap(text: str, cap_tokens: int | None, texts: Texts) -> AnswerValidation:
    size = count_tokens(text)
    if cap_tokens is None or size <= cap_tokens:
        return AnswerValidation(text=text)
    if size <= CLIP_SHARE * cap_tokens and (short := clip_sections(text, cap_tokens, texts)):
        return AnswerValidation(text=short, is_clipped=True)
    share = max(2, round(size / cap_tokens))
    reason = f"It was about {share} times as long as it may be. Write a shorter one."
    return AnswerValidation(kind="too_long", reason=reason, too_long=text)


def _with_headings(text: str, headings: Sequence[str], texts: Texts) -> tuple[str, str]:
    """The text with its headings spelled as they were asked for, without what came before; and what is wrong.

    A heading in another language is the same heading: models translate them, and go by those of an earlier record.
    """
    if not headings:
        return text, ""
    written_texts = [heading_in(heading, texts) for heading in headings]
    fields = {_name(form): at for at, heading in enumerate(headings) for form in heading_forms(heading)}
    lines = text.split("\n")
    parts = [(place, fields[name], is_marked) for place, name, is_marked in _heading_lines(lines) if name in fields]
    # A line in bold may be anything where real headings are used too.
    any_marked = any(is_marked for _, _, is_marked in parts)
    pairs = [(place, at) for place, at, is_marked in parts if is_marked or not any_marked]
    for place, at in pairs:
        lines[place] = written_texts[at] if written_texts[at].startswith("### ") else f"## {written_texts[at]}"
    fault = _order_fault([at for _, at in pairs], written_texts) or _empty_fault(pairs, lines, written_texts, texts)
    return ("\n".join(lines[pairs[0][0] :]).strip(), "") if not fault else ("", fault)


def _order_fault(numbers: Sequence[int], headings: Sequence[str]) -> str:
    missing = [heading for at, heading in enumerate(headings) if at not in set(numbers)]
    if missing:
        return f"These headings are missing: {', '.join(missing)}. Write every heading exactly as it was given."
    if len(numbers) > len(headings):
        return "A heading stands in it more than once."
    return "" if list(numbers) == sorted(numbers) else "The headings are not in the order that was asked for."


def _empty_fault(pairs: Sequence[tuple[int, int]], lines: Sequence[str], headings: Sequence[str], texts: Texts) -> str:
    ends = [place for place, _ in pairs[1:]] + [len(lines)]
    empty = []
    for (place, at), end in zip(pairs, ends, strict=True):
        if not _is_above(headings, at) and not any(line.strip() for line in lines[place + 1 : end]):
            empty.append(headings[at])
    if not empty:
        return ""
    return f'Nothing stands under: {", ".join(empty)}. Write "- {texts.nothing}" where there is nothing to say.'


def _heading_lines(lines: Sequence[str]) -> Iterator[tuple[int, str, bool]]:
    """Places and names of headings, and whether they are marked by `#`; a comment in a block of code is none."""
    fences = Fences(strict=True)
    for place, line in enumerate(lines):
        if fences.kind(line) == "text" and (match := _HEADING.match(line)):
            yield place, _name(match[2] if match[1] else match[3]), bool(match[1])


def _name(heading: str) -> str:
    return " ".join(heading.strip(" \t#*:：").casefold().split())


def _sections(lines: Sequence[str]) -> Iterator[list[str]]:
    """The lines by headings; the first ones may have none."""
    places = {place for place, _, is_marked in _heading_lines(lines) if is_marked}
    section: list[str] = []
    for place, line in enumerate(lines):
        if place in places and section:
            yield section
            section = []
        section.append(line)
    yield section


def _size(line: str) -> int:
    return quarters(line) + 1

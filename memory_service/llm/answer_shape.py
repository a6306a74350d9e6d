"""Shape of a model's answer: what is wrapped around it, and its sections, however their headings are written. Pure.

Invariants: linear; no line of an answer is reworded, and none is lost but what only wraps it (fences, tags, a preface,
a farewell); a heading in any language, numbered, in bold, as a label, a key, a row or a tag, is the heading; where as
many are unknown, they are those that were asked for, in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from indexer.common import lazy_regex
from indexer.language import Fences, has_unspaced, next_subjects, section_subject
from memory_service.text.phrases import is_narration, is_nothing, is_pleasantry
from memory_service.text.texts import heading_forms

_FENCE = lazy_regex(r"[ \t]{0,3}(?P<sign>`{3,}|~{3,})[ \t]*(?P<language>[\w-]{0,12})[ \t]*")
_OPENED = lazy_regex(r"(?:```|~~~)[ \t]*(?:markdown|md|text|json|yaml|xml|html)?[ \t]*\n")
_FIRST_TAG = lazy_regex(r"(?:^|(?<=\n))[ \t]*<(?P<tag>[A-Za-z][\w.-]{0,30})(?:\s[^<>\n]{0,80})?>")
_LONE_TAG = lazy_regex(r"\A\s*<[A-Za-z][\w.-]{0,30}>\s*\n|\n\s*</[A-Za-z][\w.-]{0,30}>\s*\Z")
# A tag around so much of an answer is around the whole of it; one that is named after an answer, around any part.
_WHOLE_SHARE = 0.5
_ANSWER_TAGS = frozenset("summary record answer output result response template checkpoint final report".split())
_MARKUP = lazy_regex(r"h[1-6]|[ou]l|li|p|b|i|strong|em|code|table|t[rdh]")
_NESTED = 4
_MARKED = lazy_regex(
    r"[ \t>]{0,6}(?:[-*+][ \t]+|\d{1,2}[.)][ \t]+)?#{1,6}[ \t]*(?P<name>\S[^\n]{0,99})"
    r"|[ \t]{0,3}<h[1-6][^>\n]{0,40}>(?P<html>[^<\n]{1,100})</h[1-6]>[ \t]*"
    r"|[ \t]{0,3}[=~_]{2,}[ \t]*(?P<ruled>[^=~_\n]{1,60}?)[ \t]*[=~_]{2,}[ \t]*"
)
_BOLD = lazy_regex(
    r"[ \t>]{0,6}(?:[-*+•][ \t]+|\d{1,2}[.)][ \t]*)?"
    r"(?:\*\*|__|\*)(?P<name>[^*_\n]{1,60}?)[ \t]*[:：]?[ \t]*(?:\*\*|__|\*)"
    r"[ \t]*[:：]?[ \t]*(?P<rest>[^\n]*)"
)
_LABELLED = lazy_regex(
    r"[ \t>]{0,6}(?:[-*+•][ \t]+|\(?(?:\d{1,2}|[ivx]{1,4}|[A-Za-z])[.)、][ \t]*)?"
    r"[\[【「]?(?P<name>[^\W\d_][^:：\n\[\]【】「」|]{0,50})[\]】」]?[ \t]*"
    r"(?P<sign>[:：]|[–—-](?=[ \t])|$)[ \t]*(?P<rest>[^\n]*)"
)
_ROW = lazy_regex(r"[ \t]{0,3}\|(?P<name>[^|\n]{1,60})\|(?P<rest>[^\n]*?)\|?[ \t]*")
_OPENING = lazy_regex(r"[ \t]{0,3}<(?P<name>[A-Za-z][\w .-]{0,40})>(?P<rest>[^\n]*)")
_CLOSING = lazy_regex(r"[ \t]{0,3}</[A-Za-z][\w .-]{0,40}>[ \t]*")
_UNDERLINE = lazy_regex(r"[ \t]{0,3}(?:={3,}|-{3,})[ \t]*")
_RULER = lazy_regex(r"[ \t]{0,3}(?:[-*_=]{3,}|\|?[ \t:|-]{3,}\|?)[ \t]*")
_TAG = lazy_regex(r"</?(?:ul|ol|li|p|br|div|section)[ \t]*/?>")
_BULLET = lazy_regex(r"[ \t>]{0,6}(?:[-*+•]|\d{1,3}[.)])[ \t]")
_MOST_JSON_CHARS = 200_000
# A figure, or a word in capitals behind another one.
_NAMES = lazy_regex(r"\d|(?<=[^\W\d_][ ,;:])\s?[A-ZÀ-ÞА-Я][^\W\d_]|(?<=, )[A-ZÀ-ÞА-Я][^\W\d_]")
# A line before the first heading that is shorter tells nothing.
_SHORT_WORDS, _SHORT_CHARS = 3, 6


@dataclass(slots=True, kw_only=True)
class AnswerSection:
    """A section of an answer.

    Attributes:
        heading: Place of its heading among those that were asked for; None for none of them.
        name: The heading as it was written; empty for what stands before the first.
        lines: What stands below.
    """

    heading: int | None
    name: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True if nothing stands below the heading, or only that there is nothing."""
        return all(is_nothing(line) for line in self.lines)


def unwrapped_answer(text: str) -> str:
    """An answer without what is around it: a fence, tags, a preface before them and a farewell behind."""
    text = text.strip()
    for _ in range(_NESTED):
        inner = _inner(text).strip()
        if inner == text:
            break
        text = inner
    return _without_farewell(_from_json(text)).strip()


def _inner(text: str) -> str:
    inner = _in_fence(text)
    return inner if inner is not None else _in_tag(text) or _without_lone_tag(text)


def _in_fence(text: str) -> str | None:
    """The inner of the first fence of a text, if it is most of the text; None if not."""
    if not ("```" in text or "~~~" in text):
        return None
    if (match := _OPENED.match(text)) and text.count(text[:3]) == 1:
        return text[match.end() :]
    lines = text.split("\n")
    marks = [(at, found_match["sign"]) for at, line in enumerate(lines) if (found_match := _FENCE.fullmatch(line))]
    closings = [at for at, sign in marks[1:] if sign == marks[0][1]]
    # A fence around the whole may have blocks of code within it.
    for end in dict.fromkeys((*closings[-1:], *closings[:1])):
        start = marks[0][0]
        inner, outside = "\n".join(lines[start + 1 : end]), (*lines[:start], *lines[end + 1 :])
        around = any(line.strip() for line in outside)
        if (len(inner) >= _WHOLE_SHARE * len(text) or not around) and not any(map(_MARKED.fullmatch, outside)):
            return inner
    return None


def _in_tag(text: str) -> str:
    """The inner of the first tag of a text that is around most of it, or named after an answer; empty if none is."""
    opening = _FIRST_TAG.search(text) if "</" in text else None
    if opening is None:
        return ""
    name = opening["tag"].lower()
    known_value = name not in _ANSWER_TAGS and section_subject(name.replace("_", " "), whole=True)
    if known_value or _MARKUP.fullmatch(name):
        return ""
    end = text.lower().rfind(f"</{name}", opening.end())
    inner = text[opening.end() : max(end, 0)]
    return inner if name in _ANSWER_TAGS or len(inner) >= _WHOLE_SHARE * len(text) else ""


def _without_lone_tag(text: str) -> str:
    lone = _LONE_TAG.search(text) if "<" in text else None
    if lone is None or section_subject(lone[0].strip().strip("</>").replace("_", " "), whole=True):
        return text
    return f"{text[: lone.start()]}\n{text[lone.end() :]}"


def _from_json(text: str) -> str:
    """An answer in JSON as Markdown: keys as headings, values as lines."""
    if text[:1] not in "{[" or text[-1:] not in "}]" or len(text) > _MOST_JSON_CHARS:
        return text
    try:
        said_text = json.loads(text)
        if (
            isinstance(said_text, dict)
            and len(said_text) == 1
            and isinstance(only := next(iter(said_text.values())), str | dict)
        ):
            said_text = only
        if isinstance(said_text, str):
            return said_text
        # An empty list is an answer, too.
        return "\n".join(_json_lines(said_text)) or text
    except (ValueError, RecursionError):
        return text


def _json_lines(said_value: object) -> Iterator[str]:
    if not isinstance(said_value, dict):
        yield from (f"- {json_value}" for json_value in _json_values(said_value))
        return
    for key, value in said_value.items():
        yield f"## {str(key).replace('_', ' ')}"
        yield from (f"- {json_value}" for json_value in _json_values(value))


def _json_values(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{key}: {'; '.join(_json_values(inner))}"
    elif isinstance(value, list):
        for inner in value:
            yield from ("; ".join(_json_values(inner)),) if isinstance(inner, dict | list) else _json_values(inner)
    elif isinstance(value, str):
        yield from (line.strip().removeprefix("- ") for line in value.split("\n") if line.strip())
    elif value is not None:
        yield json.dumps(value)


def _without_farewell(text: str) -> str:
    lines = text.rstrip().split("\n")
    while len(lines) > 1 and _is_farewell(lines[-1]) and (not lines[-2].strip() or _RULER.fullmatch(lines[-2])):
        lines.pop()
        while len(lines) > 1 and (not lines[-1].strip() or _RULER.fullmatch(lines[-1])):
            lines.pop()
    return "\n".join(lines)


def _is_chatter(line: str) -> bool:
    bare = line.strip()
    if not bare or _BULLET.match(line):
        return False
    return is_narration(bare) or is_pleasantry(bare)


def _is_farewell(line: str) -> bool:
    """True for talk that names nothing: "Thanks to Kim, billing moved to Tuesday." is none."""
    return _is_chatter(line) and _NAMES.search(line) is None


def is_opening(line: str) -> bool:
    """True if a line before the first heading only announces what follows: "Sure! Here is the record:"."""
    bare = line.strip()
    short = len(bare) < _SHORT_CHARS if has_unspaced(bare) else len(bare.split()) < _SHORT_WORDS
    return not _BULLET.match(line) and (
        bare.startswith("|") or bare.endswith((":", "：")) or _is_farewell(line) or short
    )


def sections_of(text: str, headings: Sequence[str]) -> list[AnswerSection]:
    """The sections of an answer, as they stand in it; the first has no heading.

    Args:
        text: The answer, see `unwrapped_answer`.
        headings: Those that were asked for, by their English names.
    """
    reader = _Reader(headings)
    lines = text.split("\n")
    fences = Fences(strict=True)
    kinds = [fences.kind(line) for line in lines]
    found_headings = [reader.heading(lines, at) if kinds[at] == "text" else None for at in range(len(lines))]
    is_marked = any(heading and heading.sure and heading.place is not None for heading in found_headings)
    # A label in the middle of a line may be anything where real headings are used too.
    found_headings = [
        each_heading if each_heading and (each_heading.sure or not is_marked) else None
        for each_heading in found_headings
    ]
    sections, number = [AnswerSection(heading=None)], -1
    for at, line in enumerate(lines):
        found_heading = found_headings[at]
        if at == number or (kinds[at] == "text" and (_CLOSING.fullmatch(line) or _RULER.fullmatch(line))):
            continue
        if found_heading is None:
            kept_text = _TAG.sub("", line) if kinds[at] == "text" and "<" in line else line
            sections[-1].lines.append(kept_text if kept_text.strip() or not line.strip() else "")
            continue
        sections.append(AnswerSection(heading=found_heading.place, name=found_heading.name))
        if found_heading.rest:
            sections[-1].lines.append(
                found_heading.rest if _BULLET.match(found_heading.rest) else f"- {found_heading.rest}"
            )
        number = at + 1 if found_heading.is_underlined else number
    _name_by_order(sections, len(headings))
    return sections


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heading:
    place: int | None
    name: str
    rest: str = ""
    sure: bool = True
    is_underlined: bool = False


class _Reader:
    """Reader of headings for those that were asked for."""

    def __init__(self, headings: Sequence[str]) -> None:
        self._by_name = {_fold_heading(form): at for at, text in enumerate(headings) for form in heading_forms(text)}
        self._by_subject: dict[str, int] = {}
        for at, each_heading in enumerate(headings):
            self._by_subject.setdefault(section_subject(each_heading), at)

    def heading(self, lines: Sequence[str], at: int) -> _Heading | None:
        """The heading that a line is; None for another line."""
        line = lines[at]
        if not line.strip() or len(line) > 4_000:
            return None
        if match := _MARKED.fullmatch(line):
            name = (match["name"] or match["html"] or match["ruled"]).strip()
            # "## Goal: fix the checkout" has its first line behind it.
            head, _, rest = name.replace("：", ":").partition(":")
            place = self.place(name)
            if place is None and rest.strip() and (place := self.place(head)) is not None:
                return _Heading(place=place, name=head, rest=rest.strip())
            return _Heading(place=place, name=name)
        if at + 1 < len(lines) and len(line) <= 60 and _UNDERLINE.fullmatch(lines[at + 1]) and not _BULLET.match(line):
            place = self.place(line)
            if place is not None:
                return _Heading(place=place, name=line.strip(), is_underlined=True)
        if (row := _ROW.fullmatch(line)) and (place := self.place(row["name"], whole=True)) is not None:
            return _Heading(place=place, name=row["name"].strip(), rest=row["rest"].strip(" |\t"), sure=False)
        if bold := _BOLD.fullmatch(line):
            place = self.place(bold["name"], whole=True)
            if place is not None or not (bold["rest"].strip() or _BULLET.match(line)):
                return _Heading(place=place, name=bold["name"].strip(), rest=bold["rest"].strip(), sure=False)
        if (tag := _OPENING.fullmatch(line)) and (
            place := self.place(tag["name"].replace("_", " "), whole=True)
        ) is not None:
            return _Heading(place=place, name=tag["name"], rest=_CLOSING_END.sub("", tag["rest"]).strip(), sure=False)
        if (label := _LABELLED.fullmatch(line)) and (place := self.place(label["name"], whole=True)) is not None:
            return _Heading(place=place, name=label["name"].strip(), rest=label["rest"].strip(), sure=False)
        return None

    def place(self, name: str, *, whole: bool = False) -> int | None:
        """Place of a heading among those asked for."""
        heading = _fold_heading(name)
        if heading in self._by_name:
            return self._by_name[heading]
        subjects = next_subjects(section_subject(name, whole=whole))
        return next((self._by_subject[subject] for subject in subjects if subject in self._by_subject), None)


_CLOSING_END = lazy_regex(r"</[A-Za-z][\w .-]{0,40}>[ \t]*\Z")
_NUMBERED = lazy_regex(r"^\W*\d{1,2}[.)、:]?\s*")


def _fold_heading(name: str) -> str:
    return " ".join(_NUMBERED.sub("", name.strip(" \t#*_:：")).strip(" \t#*_:：").casefold().split())


def _name_by_order(sections: Sequence[AnswerSection], count: int) -> None:
    """Give sections with unknown headings those that were asked for and not found, where the numbers match."""
    named_sections = [each_section for each_section in sections if each_section.name]
    places = [each_section.heading for each_section in named_sections]
    if None not in places or len(named_sections) != count:
        return
    for at, section in enumerate(named_sections):
        if section.heading is None and at not in places:
            section.heading = at

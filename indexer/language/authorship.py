"""Authorship: parts of a message that its writer typed, quoted or pasted. Pure.

Invariants: linear; the parts of a message are the message, in order and without a gap; a text is typed unless its form
or the words in front of it say otherwise; what is cut off is pasted up to its end; a short quotation, a name in
quotation marks and a tag that is only spoken of stay their writer's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from indexer.common.lru import cached_for_short_texts
from indexer.common.patterns import lazy_regex
from indexer.language.markup import Fences, is_prose, markup_spans
from indexer.language.tables import ANY

PartKind = Literal["typed", "quoted", "pasted"]
# Start, end and kind of what is not typed.
_Span: TypeAlias = tuple[int, int, PartKind]

_OUTPUT = lazy_regex(
    r"""(?x)\s{0,40}(?:
      \[?\d{4}[-/]\d\d[-/]\d\d[T\ ]\d\d:\d\d | \[?\d\d:\d\d:\d\d\b | [A-Z][a-z]{2}\ +\d{1,2}\ \d\d:\d\d:\d\d\b
    | \[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE|CRITICAL)\]?[:\s] | at\ [\w.$<>/:-]{2,120}\s?\(
    | File\ ".{1,160}",\ line\ \d | Traceback\ \(most\ recent | Caused\ by: | [\w.]{1,80}(?:Error|Exception):\s
    | (?:npm|yarn|pip|cargo|make(?:\[\d\])?):?\ (?:ERR!|error|warning|WARN|\*\*\*) | \$\ \S | >>>\  | \^[~^]{0,80}$
    | @@\ -\d | (?:\+\+\+|---)\ [ab]/ | diff\ --git\ | ={5,} | -{5,}$ | \d{1,5}\ ?[|│] | =\ \d+\ passed )"""
)
_CODE = lazy_regex(
    r"""(?x)\s{0,80}(?:
      import\ [\w.]{1,80}(?:\ as\ \w{1,40})?;?$ | from\ [\w.]{1,80}\ import\ \S | (?:async\ )?def\ \w{1,80}\(
    | class\ \w{1,80}[:({] | (?:export\ )?(?:const|let|var)\ [\w{\[,\ \]}:]{1,80}\s?=
    | (?:async\ )?function\ ?\w{0,80}\( | return\ .{0,200};$ | \#include\ [<"] | (?:if|for|while|switch)\ ?\(.{0,200}\{$
    | (?:public|private|protected|static)\ .{1,160}[({;]$ | </?[a-zA-Z][^>]{0,160}>$ | [{}()\[\]]{1,4}[;,]?$
    | .{1,200}[{;]$ )"""
)
# These are code only beside other code: "deadline = Friday" is something that people type.
_WEAK = lazy_regex(
    r"""(?x)\s{4} | \t | \s{0,80}(?: ["']?[\w-]{1,80}["']?\s?:\s?["'{\[\d].{0,200},?$ | [\w.]{1,80}\ ?(?:=|\+=|:=)\ ?\S
    | [\w.]{1,80}\(.{0,200}\)$ | return\b | (?:\#|//|/\*|\*)\s )"""
)

_QUOTES = {"「": "」", "『": "』", "“": "”", "„": "“", "«": "»", "‹": "›", "‘": "’"}
_OPENING = lazy_regex(r"[“„「『«‹]|(?<![\w\])}])[\"'‘](?=[^\s\"'])")
_STRAIGHT_END = {mark: lazy_regex(rf"(?<=\S){mark}(?=[\s.,;:!?)\]}}—–。，；：！？）]|\Z)") for mark in ('"', "'", "’")}
_QUOTE_LIMIT: Final = 4_000
_QUOTE_WORDS: Final = 5
_LED_WORDS: Final = 2
_BEFORE_CHARS: Final = 120
# The writer's own words in quotation marks: "always write “Dear Sir or Madam, …”", "the film is called “…”".
_OWN_QUOTE = lazy_regex(ANY.authorship.own_quotes, re.IGNORECASE)

# "Lee answered:" with the answer on the next lines.
_PASSED_ON = lazy_regex(ANY.authorship.passed_on)
_OWN_WORDS = lazy_regex(ANY.authorship.own_words)
_INTRO_CHARS: Final = 120
# A mail that is quoted below an answer, or passed on.
MAIL_BELOW = lazy_regex(rf"\s{{0,8}}(?:{ANY.authorship.mail_heads})")
# "Summarise this page:" with the page behind it; all that follows is the page.
_PASTED = lazy_regex(f"(?ix){ANY.authorship.announcements}")
# "page:", "Tool output:", 网页内容： at the beginning of a sentence.
_LABEL = lazy_regex(rf"(?imx)(?:^|[.?!。？！;；,，—–)(-]\s{{0,3}})\s{{0,8}}(?:{ANY.authorship.labels})\s{{0,3}}[:：]")
_REPORT = lazy_regex(ANY.authorship.reports, re.IGNORECASE)
_REPORT_WITHIN = lazy_regex(ANY.authorship.reports_within)
_REPORT_BEFORE = lazy_regex(rf"(?:{_REPORT.pattern}|{_REPORT_WITHIN.pattern})(?<=[:：])", re.IGNORECASE)
_OWN_TEXT = lazy_regex(ANY.authorship.own_texts, re.IGNORECASE)
# "Translate “…”": what is worked on is no wish.
_WORK_ON = lazy_regex(
    rf"(?:{ANY.authorship.works})(?:\s+(?:{ANY.authorship.work_words}|\w+))?\W*\Z",
    re.IGNORECASE,
)
_VALUE = lazy_regex(r"\s{0,4}[!-+\--:<-~]{0,80}(?:[@/\d]|\.(?=\w))[!-+\--:<-~]{0,80}")
# "What is on this page?" with the page behind it, on the line or below.
_ASKED_OF = lazy_regex(rf"(?ix)(?:{ANY.authorship.questions_of_text})+(?:\s|(?<=[？。！]))")
_Way = Literal["task", "label", "report", "question"]
_ANNOUNCING: Final[Mapping[_Way, re.Pattern[str]]] = MappingProxyType(
    {"task": _PASTED, "label": _LABEL, "report": _REPORT_BEFORE, "question": _ASKED_OF}
)
# What ends each announcement but a question, and how far in front of it that begins at most.
_COLON = lazy_regex("[:：]")
_ANNOUNCEMENT_CHARS: Final = 400
# A question of others' words has one of these.
_POINTING = lazy_regex(ANY.authorship.pointing)
# Where the writer speaks again.
_SPEAKS_AGAIN = lazy_regex(ANY.authorship.speaks_again, re.IGNORECASE)
# Speech in quotation marks, and who said it behind or in front of it.
_REPORTED = lazy_regex(f"(?x){ANY.authorship.speech_reports}")
_BLOCKS = lazy_regex(r"\"\"\"|'''|“““|<<<|\{\{|```|`(?=[^`\n])|[\[{](?=\s*[\"'{\[\w])|!?\[(?=[^\[\]\n]{1,400}\]\()")
_BLOCK_ENDS = {'"""': '"""', "'''": "'''", "“““": "”””", "<<<": ">>>", "{{": "}}", "```": "```", "`": "`"}
_JSON = lazy_regex(r"\{\s*(?:\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'|[A-Za-z_]\w{0,40})\s*:|\[\s*(?:[\"']|\{\s*[\"'\w])")
_JSON_TOKEN = lazy_regex(r"\"(?:[^\"\\]|\\.)*+\"|[{}\[\]]", re.DOTALL)
_LINK = lazy_regex(r"!?\[[^\[\]\n]{1,400}\]\([^()\n]{0,400}\)")
_INLINE_QUOTE = lazy_regex(r"(?<=[.?!:。？！：])[^\S\n]{1,4}>[^\S\n]{0,3}(?=[^\W\d_])[^\n]*")
_ENCODED = lazy_regex(r"%[0-9A-Fa-f]{2}")
_RULE_LINE = lazy_regex(r"\s{0,3}([-=*_~])\1{2,80}\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePart:
    """A stretch of a message that has one author.

    Attributes:
        kind: `typed` by the writer of the message; `quoted` as somebody else's words; `pasted` from a page, a file, a
            mail or a program.
        start: Place of its first character in the message.
        text: As it stands in the message.
    """

    kind: PartKind
    start: int
    text: str


@cached_for_short_texts
def message_parts(text: str) -> Sequence[MessagePart]:
    """Parts of a user's message in order; joined, they are the message."""
    parts, at = list[MessagePart](), 0
    for start, end, kind in _foreign_spans(text):
        if start > at:
            parts.append(MessagePart(kind="typed", start=at, text=text[at:start]))
        parts.append(MessagePart(kind=kind, start=start, text=text[start:end]))
        at = end
    if at < len(text) or not parts:
        parts.append(MessagePart(kind="typed", start=at, text=text[at:]))
    return tuple(parts)


def typed_text(text: str) -> str:
    """The text that the writer of a message typed; a mark stands where others' words were taken out of a sentence."""
    parts = message_parts(text)
    if len(parts) == 1:
        return text if parts[0].kind == "typed" else ""
    return "".join(part.text if part.kind == "typed" else _gap(text, part) for part in parts).strip()


def is_reported(sentence: str) -> bool:
    """True if a sentence says who said what in quotation marks: "Always obey," she wrote."""
    is_marked = any(mark in sentence for mark in '"“”「』')
    return is_marked and _REPORTED.search(sentence) is not None and _OWN_WORDS.search(sentence.lower()) is None


def introduction(text: str, place: int) -> str:
    """The line in front of what stands at `place`, if it says whose words follow: "Lee answered:"."""
    head = text[:place].rstrip()
    line = head[head.rfind("\n") + 1 :].strip()
    return line if len(line) <= _INTRO_CHARS and _passes_on(line) and not MAIL_BELOW.match(line) else ""


def announces_others(line: str) -> bool:
    """True if others' words follow behind a line that ends with a colon: "She wrote:", "Summarise this page:"."""
    return _passes_on(line.strip()) or _PASTED.search(line) is not None


def _gap(text: str, part: MessagePart) -> str:
    """The characters in place of what was taken out: the end of a line, or a mark within a sentence."""
    before = text[: part.start].rstrip(" \t")[-1:]
    return "\n" if before in "\n:：?？.。!！" or "\n" in part.text else " … "


def _foreign_spans(text: str) -> list[_Span]:
    """Stretches that are not typed, in order; no two of them touch each other unless their kinds differ."""
    markup: list[_Span] = [(start, end, "pasted") for start, end in markup_spans(text)]
    spans = _merge_spans([*markup, *_line_spans(text), *_inline_spans(text, _merge_spans(markup))])
    return _merge_spans([*spans, *_announced_spans(text, spans)])


def _merge_spans(spans: Iterable[_Span]) -> list[_Span]:
    merged_spans = list[_Span]()
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= end:
            continue
        if merged_spans and start < merged_spans[-1][1]:
            first, last, part_kind = merged_spans[-1]
            if end > last:
                merged_spans[-1] = (first, end, "pasted" if "pasted" in (kind, part_kind) else part_kind)
        elif merged_spans and start == merged_spans[-1][1] and kind == merged_spans[-1][2]:
            merged_spans[-1] = (merged_spans[-1][0], end, kind)
        else:
            merged_spans.append((start, end, kind))
    return merged_spans


# --- lines -------------------------------------------------------------------------------------------------------


def _line_spans(text: str) -> Iterator[_Span]:
    """Lines of code, output, mails and quotations, and those behind one that says who wrote them."""
    lines = text.split("\n")
    # A message on one line is what somebody typed, with what is in it.
    kinds = _line_kinds(lines) if len(lines) > 1 else ["quoted" if _QUOTE_LINE.match(text) else "typed"]
    at = 0
    for line, kind in zip(lines, kinds, strict=True):
        end = min(len(text), at + len(line) + 1)
        if kind == "quoted":
            yield at, end, "quoted"
        elif kind == "pasted":
            yield at, end, "pasted"
        at = end


_QUOTE_LINE = lazy_regex(r"\s{0,8}[>＞](?!>> )")


def _line_kinds(lines: list[str]) -> list[str]:
    """Kind of each line: `typed`, `quoted` or `pasted`."""
    kinds, fences, below, passing = list[str](), Fences(), False, False
    ruled_numbers = _ruled_lines(lines)
    for number, line in enumerate(lines):
        head = line[:300].rstrip()
        bare = head.strip()
        if fences.kind(head) != "text" or number in ruled_numbers:
            kinds.append("pasted")
        elif not below and MAIL_BELOW.match(head):
            below = True
            kinds.append("pasted")
        elif below or _QUOTE_LINE.match(head) or (passing and bare):
            kinds.append("quoted")
        else:
            kinds.append(_kind_alone(head))
        passing = bool(bare) and (
            passing
            or (bare[-1] in ":：" and len(bare) <= _INTRO_CHARS and len(bare) == len(line.strip()) and _passes_on(bare))
        )
    return _settle_kinds(kinds)


def _ruled_lines(lines: list[str]) -> set[int]:
    """Numbers of the lines between two rules below a question or an announcement: "Summarise this:", "---"."""
    rules = [number for number, line in enumerate(lines) if len(line) < 90 and _RULE_LINE.match(line)]
    inside = set[int]()
    for first, last in zip(rules[::2], rules[1::2], strict=False):
        before = next((line.strip() for line in reversed(lines[max(0, first - 3) : first]) if line.strip()), "")
        if before[-1:] in (":", "：", "?", "？") and last > first + 1:
            inside.update(range(first, last + 1))
    return inside


def _kind_alone(head: str) -> str:
    if not head.strip():
        return "blank"
    if _OUTPUT.match(head) or _CODE.match(head):
        return "pasted"
    return "weak" if _WEAK.match(head) and "?" not in head and "？" not in head else "typed"


def _settle_kinds(kinds: list[str]) -> list[str]:
    """The kinds when lines that may be code know their neighbours."""
    known_kinds = [kind for kind in kinds if kind != "blank"]
    settled_texts, at = list[str](), 0
    for kind in kinds:
        if kind == "blank":
            settled_texts.append("typed")
            continue
        if kind == "weak":
            beside = {*known_kinds[max(0, at - 1) : at], *known_kinds[at + 1 : at + 2]}
            kind = "pasted" if beside & {"pasted", "weak"} else "typed"
        settled_texts.append(kind)
        at += 1
    return settled_texts


def _passes_on(line: str) -> bool:
    lowered_text = line.lower()
    return _PASSED_ON.search(lowered_text) is not None and _OWN_WORDS.search(lowered_text) is None


# --- within a line -----------------------------------------------------------------------------------------------


def _inline_spans(text: str, markup: list[_Span]) -> Iterator[_Span]:
    """Quotations, code, JSON, links and encoded text between what is marked up."""
    edges = [0, *(edge for start, end, _ in markup for edge in (start, end)), len(text)]
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        yield from _quotations(text, start, end)
        yield from _blocks(text, start, end)
    if "%" in text:
        yield from _encoded_words(text)
    if ">" in text:
        for match in _INLINE_QUOTE.finditer(text):
            yield match.start(), match.end(), "quoted"


def _quotations(text: str, at: int, limit: int) -> Iterator[_Span]:
    missing = set[str]()
    while match := _OPENING.search(text, at, limit):
        start, at, mark = match.start(), match.end(), match[0]
        if mark in missing:
            continue
        closing = mark if mark in "\"'" else _QUOTES[mark]
        if pattern := _STRAIGHT_END.get(closing):
            found_match = pattern.search(text, at, min(limit, at + _QUOTE_LIMIT))
            end = found_match.end() if found_match else -1
        else:
            end = text.find(closing, at, min(limit, at + _QUOTE_LIMIT)) + 1 or -1
        if end < 0:
            # None within the limit: looking again from each mark would not be linear.
            missing.add(mark)
            continue
        if _is_others_quote(text, start, end):
            yield start, end, "quoted"
        at = end


def _is_others_quote(text: str, start: int, end: int) -> bool:
    """True if a quotation is no emphasis, name or wording of the writer's own."""
    inner = text[start + 1 : end - 1]
    if not is_prose(inner, 2):
        return False
    before = text[max(0, start - _BEFORE_CHARS) : start]
    # What stands alone in its lines is a copy.
    if not before.rpartition("\n")[2].strip() and not text[end:].partition("\n")[0].strip(" \t.,;!?。，；！？"):
        return True
    line = before[before.rfind("\n") + 1 :]
    if _OWN_QUOTE.search(line) or _is_title(inner):
        return False
    return is_prose(inner, _LED_WORDS if _is_led(line) else _QUOTE_WORDS)


def _is_led(line: str) -> bool:
    """True if a line says that somebody else's words follow."""
    return any(
        pattern.search(line) is not None for pattern in (_REPORT, _REPORT_WITHIN, _PASTED, _LABEL, _WORK_ON)
    ) or line.rstrip()[-1:] in ("?", "？")


def _is_title(inner: str) -> bool:
    words = inner.split()
    capitals = sum(word[:1].isupper() or word[:1].isdecimal() for word in words)
    return len(words) <= 10 and inner[-1:] not in ".!?" and capitals * 5 >= len(words) * 3


def _blocks(text: str, at: int, limit: int) -> Iterator[_Span]:
    """Triple quotes, code, JSON and links; one that is never closed goes to the end."""
    missing = set[str]()
    while match := _BLOCKS.search(text, at, limit):
        start, mark = match.start(), match[0]
        at = match.end()
        if mark in missing:
            continue
        if closing := _BLOCK_ENDS.get(mark):
            end = text.find(closing, at, limit)
            if end < 0:
                missing.add(mark)
                end = limit if len(mark) > 1 and mark != "{{" else -1
            else:
                end += len(closing)
        elif link := _LINK.match(text, start, limit):
            end = link.end()
        elif _JSON.match(text, start, limit):
            end = _json_end(text, start, limit)
        else:
            continue
        if end > 0:
            if (mark in _BLOCK_ENDS and len(mark) > 1) or is_prose(text[start:end], 3 if mark in "[{" else 4):
                yield start, end, "pasted"
            at = max(at, end)


def _json_end(text: str, start: int, limit: int) -> int:
    """End of the value that begins at a bracket; that of the text if it is never closed."""
    depth = 0
    for token in _JSON_TOKEN.finditer(text, start, limit):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if depth == 0:
                return token.end()
    return limit


def _encoded_words(text: str) -> Iterator[_Span]:
    """Words whose blanks and signs are spelled as `%20`."""
    at = 0
    while match := _ENCODED.search(text, at):
        start = match.start()
        while start > 0 and not text[start - 1].isspace():
            start -= 1
        end = match.end()
        while end < len(text) and not text[end].isspace():
            end += 1
        if len(_ENCODED.findall(text, start, end)) >= 3:
            yield max(start, at), end, "pasted"
        at = end


# --- announced ---------------------------------------------------------------------------------------------------


def _announced_spans(text: str, spans: Sequence[_Span]) -> Iterator[_Span]:
    """Text behind words that announce it: "Summarise this page:", "page:", "the mail says:", "what is on this page?".

    Args:
        text: The message.
        spans: What has a form of its own in it.
    """
    ends = {start: end for start, end, _ in spans}
    for way, pattern in _ANNOUNCING.items():
        reached_count = 0
        for end in _ends_of(text, way, pattern):
            if end >= reached_count and _announces(text, end, way):
                reached_count = _announced_end(text, end, way, ends)
                yield end, reached_count, "quoted" if way == "report" else "pasted"


def _ends_of(text: str, way: _Way, pattern: re.Pattern[str]) -> Iterator[int]:
    """Where announcements of a way end: all but questions with a colon, and there is no other within one.

    A pattern takes a millisecond for some thousand characters: it reads only what stands before a colon.
    """
    if way == "question":
        if _POINTING.search(text):
            yield from (match.end() for match in pattern.finditer(text))
        return
    before = 0
    for colon in _COLON.finditer(text):
        if pattern.search(text, max(before, colon.start() - _ANNOUNCEMENT_CHARS), colon.end()):
            yield colon.end()
        before = colon.end()


def _announces(text: str, at: int, way: _Way) -> bool:
    """True if others' words follow: "Mail: mia@example.org" tells a value, "My rules for mails:" is one's own."""
    if way == "question":
        return at < len(text)
    if _OWN_TEXT.search(text, max(0, at - _BEFORE_CHARS), at):
        return False
    value = _VALUE.match(text, at)
    return value is None or not (value.end() == len(text) or _SPEAKS_AGAIN.match(text, value.end()))


def _announced_end(text: str, at: int, way: _Way, ends: Mapping[int, int]) -> int:
    """End of what was announced: of its quotation or block if it has one and the writer speaks behind it."""
    place = at
    while place < len(text) and text[place].isspace():
        place += 1
    if end := ends.get(place, 0):
        line = text.find("\n", end)
        rest = text[end : line if line >= 0 else len(text)]
        if _SPEAKS_AGAIN.match(text, end) or not rest.strip(" .。"):
            return end
    return at if way == "question" and _SPEAKS_AGAIN.match(text, at) else len(text)


_FIRST_PERSON = ANY.nouns.first_person
# Of two that begin alike the longer one; words in letters stand alone.
_SECOND_PERSON = lazy_regex(
    "|".join(
        rf"\b{re.escape(words)}\b" if words[0].isascii() else re.escape(words)
        for words in sorted(_FIRST_PERSON, key=len, reverse=True)
    ),
    re.IGNORECASE,
)


def in_first_person(text: str) -> str:
    """The words of an agent about its user, as the user would say them: "you like tea" is "I like tea"."""
    return _SECOND_PERSON.sub(lambda match: _FIRST_PERSON.get(match[0].lower(), match[0]), text)

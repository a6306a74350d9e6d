"""Sentences: splitting of lines, texts and messages; words of others, quoted or passed on. Pure.

Invariants: linear in the length of the text; the sentences of a line stand in it as they are, in their order, and
nothing but blanks between them is left out; English, German and Chinese have the same care. Of a long
message the beginning and the end are read; its sentences occur in it but for white space where a line was wrapped;
thinking, bytes and what looks like a secret never become a sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from indexer.common import cached_for_short_texts, lazy_regex
from indexer.language import ANY, Fences, has_unspaced, says_little
from memory_service.messages.shapes import Message, is_system, is_tool_result, media_parts_of, own_text_of
from memory_service.messages.sizes import Numbered, quarters
from memory_service.text.secrets import REDACTED

if TYPE_CHECKING:
    from indexer.language import MessagePart

Voice = Literal["user", "assistant", "tool"]
STATEMENT_CHARS = 240

# A blank has to follow a stop, but not one of Chinese; marks that close belong to what they close.
_END = lazy_regex(r"(?<![.!?…])[.!?…]++[\"'”’“»)\]*`]*+(?=\s)|(?<![。！？；])[。！？；]++[\"”’」』）》]*+")
_BLANKS = lazy_regex(r"\s+")
_STOP = lazy_regex(r"\.(?!\.)")
_QUOTES = {"「": "」", "『": "』", "《": "》", "“": "”", "„": "“"}
_QUOTE = lazy_regex("[「『《“„]")
_QUOTE_CHARS = 200
# A longer speech in these has its own sentences.
_SPEECH_CHARS = 60
_SPEECH = "“„"

# Behind these a sentence goes on …
_ABBREVIATIONS = ANY.grammar.abbreviations
# … behind these unless a capital letter follows …
_MAY_END = ANY.grammar.last_abbreviations
# … and behind these only where a number follows.
_BEFORE_NUMBERS = ANY.grammar.number_abbreviations
# "plan B." ends; every other single letter is part of an abbreviation or a name.
_LETTERED = ANY.grammar.lettered
_BEFORE_ORDINALS = ANY.grammar.before_ordinals
_BEHIND_ORDINAL = lazy_regex(rf"\s+(?:{ANY.grammar.behind_ordinals})\b")
_WORD_BEFORE = lazy_regex(r"(\S{1,40})\s{1,3}\Z")
_WORD_CHARS = 16
_BEFORE_WORD = "([\"'“„‘«*_—–/-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of a message, or a clause of a long one.

    Attributes:
        text: As it stands in the message, on one line.
        voice: Whose message it is.
        name: The speaker whom the message names; empty if it names none.
        seq: The number of the message.
        place: Its place in the message, from 0.
        day: When the message was appended, as `YYYY-MM-DD`; empty if that is not known.
        media: Labels of what else the message shows, such as `[image]`.
        failed: Whether the message is the result of a tool that failed.
        quoted: Whether the message quotes it, or passes it on, as somebody else's words.
    """

    text: str
    voice: Voice
    name: str = ""
    seq: int = 0
    place: int = 0
    day: str = ""
    media: str = ""
    failed: bool = False
    quoted: bool = False


def single_line(text: str, limit: int = STATEMENT_CHARS) -> str:
    """A text on one line, cut at `limit` characters with a mark."""
    line = _BLANKS.sub(" ", text[: 4 * limit]).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def split_sentences(line: str) -> Iterator[str]:
    """The sentences of one line, without the blanks between them.

    They do not end within a name in 《》 or a short quotation, behind an abbreviation ("z. B.", "Dr. Lee", "U.S.",
    "No. 12"), nor behind the number of a day or a floor ("am 4. Dezember").
    """
    # All marks of short quotations are beyond ASCII.
    start, closed_value = 0, None if line.isascii() else _Quoted(line)
    for match in _END.finditer(line):
        end = match.end()
        if (closed_value and closed_value.covers(end)) or (
            _STOP.match(match[0]) and _goes_on(line, start, match.start())
        ):
            continue
        piece = line[start:end].strip()
        if len(piece) < 3 and piece.isascii():
            continue
        yield piece
        start = end
    if rest := line[start:].strip():
        yield rest


class _Quoted:
    """Says of rising places in a line whether they stand within a short quotation."""

    def __init__(self, line: str) -> None:
        self._spans = _short_quotes(line)
        self._start, self._end = next(self._spans, (len(line), len(line)))
        self._none = len(line) + 1

    def covers(self, at: int) -> bool:
        while self._end <= at:
            span = next(self._spans, None)
            self._start, self._end = span or (self._none, self._none)
        return self._start < at < self._end


def _short_quotes(line: str) -> Iterator[tuple[int, int]]:
    at = 0
    while match := _QUOTE.search(line, at):
        at, mark = match.end(), match[0]
        limit = _SPEECH_CHARS if mark in _SPEECH else _QUOTE_CHARS
        close = line.find(_QUOTES[mark], at, at + limit)
        if close >= 0:
            yield match.start(), close + 1
            at = close + 1


def _goes_on(line: str, start: int, stop: int) -> bool:
    """True if the full stop at `stop` does not end the sentence that begins at `start`."""
    after = line[stop + 1 : stop + 24]
    following = after.lstrip("\"'”’“»)]*` \t\u00a0")[:1]
    if "a" <= following <= "z":
        return True
    head = line[max(start, stop - _WORD_CHARS) : stop]
    word = head[head.rfind(" ") + 1 :].lstrip(_BEFORE_WORD).lower()
    if not word:
        return False
    at = stop - len(word)
    if word.isdecimal():
        return len(word) <= 2 and _is_ordinal(line, start, at, after)
    bare = word.rpartition(".")[2]
    if len(bare) == 1 and bare.isalpha() and bare.isascii():
        before = _WORD_BEFORE.search(line, max(start, at - 44), at)
        return not (before and len(word) == 1 and before[1].lower() in _LETTERED)
    if word in _MAY_END:
        return not following.isupper()
    return word in _ABBREVIATIONS or (word in _BEFORE_NUMBERS and following.isdecimal())


def _is_ordinal(line: str, start: int, at: int, after: str) -> bool:
    if not line[start:at].strip(" \t(\"'“„"):
        return True
    before = _WORD_BEFORE.search(line, max(start, at - 44), at)
    if before is not None and before[1].lower() in _BEFORE_ORDINALS:
        return True
    return _BEHIND_ORDINAL.match(after) is not None


# --- sentences of a message --------------------------------------------------------------------------------------

# Roles with the names that say who speaks at the start of their messages.
Speakers: TypeAlias = frozenset[tuple[str, str]]

_HEAD_CHARS = 8_000
_MESSAGE_TAIL_CHARS = 4_000
_TOOL_CHARS = 2_000
_SENTENCE_CHARS = 240
_UNSPACED_CHARS = 90
_CODE_LINES = 2
_NAME_CHARS = 64

_MARKS = lazy_regex(r"(?:[#>*+•|=~-]++|\d{1,3}[.)]|\[[ xX]\])(?:\s++|$)")
_BORDER = lazy_regex(r"[,;:](?=\s)|[，；：、]|\s(?=[-–(])|——")
_REASON = lazy_regex(ANY.phrases.reasons)
# When it was said, as a channel puts it in front.
_DATED = lazy_regex(r"\s*[\[【]\d{4}-\d\d-\d\d[^\]】\n]{0,30}[\]】]\s*")
_SPEAKER_HEAD = lazy_regex(r"(?:\*\*)?([^\W\d_][\w .'’-]{0,30}?)(?:\*\*)?(?:：|:(?:\*\*)?\s)")
_NO_SPEAKERS = ANY.labels.notes | ANY.labels.remarks
_MEDIA = {"image_url": "[image]", "image": "[image]", "input_audio": "[audio]"}


def media_labels(message: Message) -> list[str]:
    """Labels of what a message shows beside its text: `[image]`, `[audio]`, `[file]`."""
    return [_MEDIA.get(part["type"], "[file]") for part in media_parts_of(message)]


def speakers_of(messages: Sequence[Numbered]) -> Speakers:
    """The names, by role, that at least two messages begin with, as in "Maria: I moved".

    A message of the assistant's speaks as somebody only in a talk in which everybody is named.
    """
    spoken_messages = [
        item.message for item in messages if not is_tool_result(item.message) and not is_system(item.message)
    ]
    heads = [(message["role"], _SPEAKER_HEAD.match(own_text_of(message)[:60])) for message in spoken_messages]
    users = Counter(head[1] for role, head in heads if head and role == "user" and _is_name(head[1]))
    names = Counter(head[1] for role, head in heads if head and role != "user" and _is_name(head[1]))
    everybody = bool(users) and sum(users.values()) + sum(names.values()) == len(spoken_messages)
    pairs = {("user", name) for name, count in users.items() if count > 1}
    if everybody:
        pairs |= {("assistant", name) for name, count in names.items() if count > 1 and name not in users}
    return frozenset(pairs)


def _name_of(message: Message) -> str:
    """The name that a message bears, on one line."""
    return " ".join((message.get("name") or "").split())[:_NAME_CHARS]


def _is_name(text: str) -> bool:
    words = text.split()
    plain = len(words) <= 3 and text.casefold() not in _NO_SPEAKERS
    return plain and all(word[0].isupper() or has_unspaced(word[0]) for word in words)


def sentences_of(item: Numbered, speakers: Speakers = frozenset()) -> list[Sentence]:
    """The sentences of a message in their order.

    Args:
        item: The message.
        speakers: See `speakers_of`.
    """
    # The chain of imports is long: what reads single sentences has no use for this.
    from indexer.language import MessagePart, is_reported, is_tool_output, message_parts

    message = item.message
    if is_system(message):
        return []
    own, name = own_text_of(message), ""
    is_printed = is_tool_result(message) or (message["role"] == "user" and is_tool_output(own))
    text = _within(own, tool=is_printed)
    match = _DATED.match(text)
    text = text[match.end() :] if match else text
    head = _SPEAKER_HEAD.match(text)
    if head is not None and (message["role"], head[1]) in speakers:
        name, text = head[1], text[head.end() :]
    voice: Voice = "tool" if is_printed else "assistant" if message["role"] == "assistant" else "user"
    whole = [MessagePart(kind="typed", start=0, text=text)]
    # A page that the assistant shows, it has chosen to show; what it quotes are others' words all the same.
    foreign = {"user": ("quoted", "pasted"), "assistant": ("quoted",), "tool": ()}[voice]
    parts = message_parts(text) if foreign else whole
    split = [
        (sentence, part.kind in foreign or (voice != "tool" and is_reported(sentence)))
        for part in (_own_together(parts) if voice == "assistant" else parts)
        for sentence in split_text(
            part.text, is_wrapped=voice != "tool", code_lines=0 if voice == "assistant" else _CODE_LINES
        )
    ]
    labels = "" if isinstance(message.get("content"), str) else " ".join(dict.fromkeys(media_labels(message)))
    return [
        Sentence(
            text=sentence,
            voice=voice,
            name=name or (_name_of(message) if voice == "user" else ""),
            seq=item.seq,
            place=place,
            day=item.at[:10],
            media=labels,
            failed=message.get("is_error") is True,
            quoted=is_quoted,
        )
        for place, (sentence, is_quoted) in enumerate(split)
        # What is left of "my password is" tells nothing, and bytes do not either.
        if REDACTED not in sentence and ";base64," not in sentence
    ]


def _own_together(parts: Sequence[MessagePart]) -> Iterator[MessagePart]:
    """The parts of an assistant's message, of which its own, code in a sentence among them, are one."""
    waiting: MessagePart | None = None
    for part in parts:
        if part.kind == "quoted":
            if waiting:
                yield waiting
            yield part
            waiting = None
        elif waiting:
            waiting = replace(waiting, text=waiting.text + part.text)
        else:
            waiting = replace(part, kind="typed")
    if waiting:
        yield waiting


def split_text(text: str, *, is_wrapped: bool = True, code_lines: int = _CODE_LINES) -> list[str]:
    """The sentences of a text.

    Args:
        text: Prose, Markdown or the output of a program.
        is_wrapped: Whether a long line that the next one goes on with is one line with it.
        code_lines: So many lines a block of code may have to be read.
    """
    return list(_clauses_of_text(text, is_wrapped, code_lines))


@cached_for_short_texts
def _clauses_of_text(text: str, is_wrapped: bool, code_lines: int) -> tuple[str, ...]:
    text = _within(text, tool=False)
    lines = _lines("\n".join(led_lines(text)) if is_wrapped else text, code_lines)
    whole = (sentence for line in (_unwrap_lines(lines) if is_wrapped else lines) for sentence in _with_reasons(line))
    return tuple(clause for sentence in whole for clause in _clauses(sentence))


def clip(text: str, room: int) -> str:
    """The beginning of a text that takes at most `room` quarters of a token, cut at a border; empty if none fits."""
    if quarters(text) <= room:
        return text
    end = min(len(text), max(room, 0))
    while end and quarters(text[:end]) > room:
        end = end * 3 // 4
    border = _last_border(text, end)
    short = text[:border].rstrip(" ,;:，；：、-–(").strip()
    return short if any(map(str.isalnum, short)) else ""


def _within(text: str, *, tool: bool) -> str:
    head, tail = (_TOOL_CHARS, _TOOL_CHARS) if tool else (_HEAD_CHARS, _MESSAGE_TAIL_CHARS)
    if len(text) <= head + tail:
        return text
    first, last = text[:head], text[-tail:]
    # Half a word, and half a key, are nobody's words.
    return f"{first[: _last_space(first)]}\n{last[_first_space(last) :]}"


def _last_space(text: str) -> int:
    return max(text.rfind(" "), text.rfind("\n"), text.rfind("。") + 1, 0)


def _first_space(text: str) -> int:
    ats = [at for at in (text.find(" "), text.find("\n"), text.find("。") + 1 or -1) if at >= 0]
    return min(ats, default=len(text))


def _lines(text: str, code_lines: int) -> list[str]:
    """The lines of a text without marks of Markdown; of code blocks only the short ones; a gap is an empty line."""
    kept_texts: list[str] = []
    code: list[str] = []
    fences = Fences()
    for raw in text.splitlines():
        line = raw.strip()
        kind = fences.kind(line)
        if kind == "code":
            code.append(line)
        elif kind == "text":
            kept_texts.append(_bare(line))
        else:
            kept_texts += [*(code if len(code) <= code_lines else ()), ""]
            code = []
    return kept_texts


_HEADING = lazy_regex(
    r"[ \t]{0,3}(?:#{1,6}[ \t]+(?P<marked>\S.*?)|(?:\*\*|__)(?P<bold>[^*_\n]{1,80})(?:\*\*|__):?)[ \t]*"
)
_ITEM = lazy_regex(r"(?P<mark>[ \t>]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)(?P<text>\S.*)")
_LEAD_CHARS, _LED_CHARS = 60, 80


def led_lines(text: str) -> Iterator[str]:
    """The lines of a text; items that say too little alone have the line above their list, headings are gone.

    A text that is nothing but headings stays as it is.
    """
    lines = text.splitlines()
    headings = [_HEADING.fullmatch(line) if line.lstrip()[:1] in ("#", "*", "_") else None for line in lines]
    if all(match or not line.strip() for match, line in zip(headings, lines, strict=True)):
        yield from lines
        return
    fences, lead, is_listed = Fences(), "", False
    for line, heading in zip(lines, headings, strict=True):
        if fences.kind(line.strip()) != "text":
            yield line
            continue
        item = _ITEM.fullmatch(line)
        bare = line.strip()
        if heading:
            lead, is_listed = (heading["marked"] or heading["bold"]).strip(" :：#*"), False
            yield ""
        elif item and lead and len(item["text"]) <= _LED_CHARS and says_little(item["text"]):
            is_listed = True
            yield f"{item['mark']}{lead}: {item['text']}"
        else:
            if bare.endswith((":", "：")) and len(bare) <= _LEAD_CHARS:
                lead, is_listed = (item["text"] if item else bare).strip(" :：*"), False
            elif bare and not item and (is_listed or not line[:1].isspace()):
                lead = ""
            is_listed = is_listed or item is not None
            yield line


def _bare(line: str) -> str:
    for _ in range(4):
        mark = _MARKS.match(line)
        if mark is None:
            break
        line = line[mark.end() :]
    return line.strip("| ").rstrip("= ")


def _unwrap_lines(lines: Sequence[str]) -> Iterator[str]:
    waiting: list[str] = []
    for line in lines:
        goes_on = (
            waiting and len(waiting[-1]) >= 60 and waiting[-1][-1] not in ".!?:;…。！？：；" and line[:1].islower()
        )
        if waiting and not goes_on:
            yield " ".join(waiting)
            waiting = []
        if line:
            waiting.append(line)
    if waiting:
        yield " ".join(waiting)


def _with_reasons(line: str) -> Iterator[str]:
    """The sentences of a line; a reason stays with what it is the reason of."""
    waiting = ""
    for piece in split_sentences(line):
        if not waiting:
            waiting = piece
        elif len(waiting) <= _UNSPACED_CHARS and _REASON.match(piece):
            waiting += piece if waiting[-1] in "。！？；" else f" {piece}"
        else:
            yield waiting
            waiting = piece
    if waiting:
        yield waiting


def _clauses(sentence: str) -> Iterator[str]:
    if len(sentence) <= _UNSPACED_CHARS:
        yield sentence
        return
    limit = _UNSPACED_CHARS if has_unspaced(sentence) else _SENTENCE_CHARS
    while len(sentence) > limit:
        border = _last_border(sentence, limit) or limit
        yield sentence[:border].strip()
        sentence = sentence[border:].strip()
    if sentence:
        yield sentence


def _last_border(text: str, end: int) -> int:
    borders = [match.end() for match in _BORDER.finditer(text, end // 2, end)]
    if borders:
        return borders[-1]
    space = text.rfind(" ", 0, end + 1)
    return space if space > 0 else end if has_unspaced(text[:end]) else 0 if end < _SENTENCE_CHARS else end

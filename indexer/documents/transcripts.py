"""Passages of a session log: what was said, by whom, on which day. Pure.

Invariants: linear in the length of the log; the lines of a passage are the `seq` of its message, which is the number
of its line as long as nobody has trimmed the log; only whole batches count, so an unfinished write is not there; a
line that cannot be read is skipped; reading on from an earlier end gives the same as reading all at once, or says
that it cannot.

A log is JSON Lines. Each line begins with its place, `{"seq":7,"ts":"…",`. Lines written at once have one `ts`, and
the first says in `batch` how many they are, `{"seq":6,"batch":2,"ts":"…",`, if there is more than one. Records of
other kinds continue with `"kind":"…"`; a message, in the shape of OpenAI or Anthropic, follows in `message`, or as a
string of JSON in `text`.

Of a tool's answer the beginning and the end become passages, JSON with one record a line; nothing is rewritten but
escaped characters. An answer that only confirms a success becomes none.

A log of OpenClaw's is read as well: `{"type":"session",…}` first, then lines
`{"type":"message","timestamp":"…","message":{…}}` and other types. A message has the number of its line; its content
is text or a list of parts (`text`, `thinking`, `toolCall`), and the answer of a tool has the role `toolResult`.
Source: pi-mono:packages/coding-agent/docs/session.md, which OpenClaw's logs follow.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.documents.markdown import CUES, MAX_CHARS
from indexer.language.authorship import message_parts
from indexer.language.dates import STATED_HOLDS, has_time_words, leading_stamp
from indexer.language.inserted import is_own_tool, is_recalled, without_inserted, without_reminders
from indexer.language.names import speaker_of
from indexer.language.ornaments import ornament
from indexer.language.outcomes import is_acknowledgement
from indexer.language.questions import SHORT_CHARS, asks_shortly, only_ask
from indexer.language.sentences import end_of_part, parts_of, sentences_of
from indexer.language.terms import has_unspaced, is_unlatin
from indexer.types import Cue, Passage, Role

# Of a longer answer little is kept, and to read its records takes a second for each megabyte.
_MAX_CHARS = 200_000
# Each level is read once more, so that there has to be an end.
_LEVELS = 5
# Python refuses to read longer ones.
_MAX_DIGITS = 400
_SPACE = lazy_regex(r"[ \t\n\r]*")


def _json_by_lines(text: str, max_chars: int) -> str:
    """An answer laid out for cutting: a JSON value with each record of up to half a passage on its own line.

    A string that is longer than a line keeps its own line ends, and scripts other than Latin are not escaped. An answer
    that is short, very long or no JSON stays as it is.
    """
    stripped_text = text.strip()
    if (
        not stripped_text.startswith(("{", "["))
        or len(text) > _MAX_CHARS
        or (len(text) <= max_chars and "\\u" not in text)
    ):
        return text
    try:
        value = _PARSER.decode(stripped_text)
        if len(text) <= max_chars:
            return json.dumps(value, ensure_ascii=False)
        return "\n".join(_lines("", stripped_text, value, max_chars // 2, _LEVELS))
    except (ValueError, RecursionError):
        return text


def _lines(lead: str, written_text: str, value: object, line_chars: int, levels: int) -> Iterator[str]:
    """Lines of a value, as it was written after its key."""
    if isinstance(value, str) and len(written_text) > line_chars:
        yield f"{lead}{value}"
    elif len(lead) + len(written_text) <= line_chars or not levels or not isinstance(value, dict | list):
        # As models and tools write them, other scripts may be escaped, and nobody would find them.
        yield lead + (json.dumps(value, ensure_ascii=False) if "\\u" in written_text else written_text)
    else:
        if lead:
            yield lead.rstrip()
        for part in _parts(written_text):
            yield from _lines(*part, line_chars, levels - 1)


def _parts(written_text: str) -> Iterator[tuple[str, str, object]]:
    """The readable parts of an object or a list: key with its colon, value as written, value."""
    at = _behind_space(written_text, 1)
    while written_text[at] not in "]}":
        lead = ""
        if written_text[0] == "{":
            key, end = _PARSER.raw_decode(written_text, at)
            lead, at = f"{key}: ", _behind_space(written_text, _behind_space(written_text, end) + 1)
        value, end = _PARSER.raw_decode(written_text, at)
        yield lead, written_text[at:end], value
        at = _behind_space(written_text, end)
        if written_text[at] == ",":
            at = _behind_space(written_text, at + 1)


def _behind_space(written_text: str, at: int) -> int:
    space = _SPACE.match(written_text, at)
    return space.end() if space else at


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _MAX_DIGITS else 0


_PARSER = json.JSONDecoder(parse_int=_integer)


_FIRST = re.compile(rb'\s*\{\s*"type"\s*:\s*"session"')


class ParsedLine(NamedTuple):
    """A message of OpenClaw's: line number, time (ISO, or empty), message as given."""

    line: int
    ts: str
    message: dict[str, Any]


def is_openclaw(raw: bytes) -> bool:
    """True if a log begins as OpenClaw's do."""
    return _FIRST.match(raw) is not None


def openclaw_messages(raw: bytes) -> Iterator[ParsedLine]:
    """The messages of a log, in order; unfinished and unreadable lines are skipped."""
    for number, line in enumerate(raw.split(b"\n")[:-1], 1):
        fields = _parse_line(line) if b'"message"' in line else None
        if fields is None or fields.get("type") != "message" or not isinstance(fields.get("message"), dict):
            continue
        ts = fields.get("timestamp")
        yield ParsedLine(line=number, ts=ts if isinstance(ts, str) else _moment(ts), message=fields["message"])


def _usual_shape(message: dict[str, Any]) -> dict[str, Any]:
    """A message of OpenClaw's with the roles and parts of other providers."""
    role = "tool" if message.get("role") == "toolResult" else message.get("role")
    content = message.get("content")
    return {**message, "role": role, "content": [*map(_part, content)] if isinstance(content, list) else content}


def _part(part: object) -> object:
    if isinstance(part, dict) and part.get("type") == "toolCall":
        return {"type": "tool_use", "id": part.get("id"), "name": part.get("name"), "input": part.get("arguments")}
    return part


def _moment(milliseconds: object) -> str:
    if not isinstance(milliseconds, int | float):
        return ""
    try:
        return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


# Part of an index's fingerprint: it changes whenever the same log could give other passages.
TRANSCRIPT_RULES = "transcripts-10"

# Of what a tool answers, the beginning and the end are kept: what it found, and how it ended.
RESULT_HEAD_CHARS = 5_000
RESULT_TAIL_CHARS = 3_000
CALL_CHARS = 400
_NAME_CHARS = 64

_STAMP = re.compile(
    rb'\{"seq":([1-9]\d{0,17})(?:,"batch":([1-9]\d{0,17}))?,"ts":"([^"\\]*)"'
    rb'(?:,"kind":"([a-z][a-z0-9_.-]*)"|(?=,"(?:usage|media|message|text)":))'
)
_UNFIT = lazy_regex("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_HALVES = lazy_regex("[\ud800-\udfff]")
# Parts with words; the field that holds them has the name of the type.
_SPEECH = ("text", "refusal")
_SPEAKERS = ("user", "assistant")
_WORD = lazy_regex(r"\w+")
_FEW_WORDS, _CODE_CHARS = 2, 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """State of a reading of a log, as far as later lines depend on it.

    Attributes:
        size_bytes: End of the last whole batch.
        last_seq: Number of the last record.
        passages: Number of passages so far.
        day: Day of the last passage.
        stated_pair: Date that a message last began with, and the time of that message.
        is_asked: True if the last passage asks a question.
        speakers: Number of messages of each name, in the field `name` or at their beginning.
    """

    size_bytes: int = 0
    last_seq: int = 0
    passages: int = 0
    day: dt.date | None = None
    stated_pair: tuple[dt.date, dt.datetime | None] | None = None
    is_asked: bool = False
    speakers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """Passages of a log in the order of their messages, and the state to read on with."""

    passages: list[Passage]
    carried_state: Carried


def go_on() -> None:
    """Lets a reading go on."""


def split_transcript(raw: bytes) -> list[Passage]:
    """The passages of a log."""
    return whole_transcript(raw).passages


def whole_transcript(raw: bytes, check: Callable[[], None] = go_on) -> Transcript:
    """The passages of a log, and the state to read on with when it has grown; `check` ends it by raising."""
    return (_read_openclaw(raw, check) if is_openclaw(raw) else _read(raw, Carried(), check)).transcript()


def grown_transcript(raw: bytes, carried_value: Carried, check: Callable[[], None] = go_on) -> Transcript | None:
    """The passages that a log has beyond those of an earlier reading.

    Args:
        raw: The whole log, unchanged up to `carried.size_bytes`.
        carried_value: The state that the earlier reading left.
        check: Called for every passage; it ends the reading by raising.

    Returns:
        None for a log of OpenClaw's, and if earlier passages change too because a name turns out to be a speaker's.
    """
    if is_openclaw(raw):
        return None
    reading = _read(raw, carried_value, check)
    if any(carried_value.speakers.get(name) == 1 and count > 1 for name, count in reading.speakers.items()):
        return None
    return reading.transcript()


class _Said(NamedTuple):
    """A part of a message that has one author, as its line holds it.

    Attributes:
        speaks: Whether it is more than calls of tools and what they answer.
        role: Whose word it is.
        name: Who speaks, as the message's `name` says; empty if it has none.
    """

    seq: int
    ts: str
    text: str
    speaks: bool
    role: Role = "tool"
    name: str = ""


def _read(raw: bytes, carried_value: Carried, check: Callable[[], None]) -> _Reading:
    reading, waiting, seen_seq = _Reading(carried_value, check), list[_Said](), carried_value.last_seq
    # The batch at hand: its last number and its time. A count may be damaged; the time shows where it ends then.
    last, at = 0, b""
    for line, end in _log_lines(raw, carried_value.size_bytes):
        place = _STAMP.match(line)
        if place is None or not line.endswith(b"}") or b"\0" in line:
            continue
        number, batch, ts, kind = place.groups()
        seq = int(number)
        if seq <= seen_seq:
            continue
        if batch or seq > last or ts != at:
            if waiting:
                # They were whole once: what ended their batch has been damaged since.
                reading.take(waiting, seen_seq, end - len(line) - 1)
                waiting.clear()
            last, at = seq + int(batch or 1) - 1, ts
        seen_seq = seq
        is_message = kind in (None, b"message")
        # Records of other kinds need not be understood, but the line that ends a batch has to be whole.
        fields = _parse_line(line) if is_message or seq == last else None
        if fields is None:
            continue
        if is_message:
            waiting.extend(_parts_of(seq, ts.decode("utf-8", "replace"), fields))
        if seq == last:
            reading.take(waiting, seq, end)
            waiting.clear()
    return reading


def _read_openclaw(raw: bytes, check: Callable[[], None]) -> _Reading:
    reading = _Reading(Carried(), check)
    for line in openclaw_messages(raw):
        reading.take(_parts_of(line.line, line.ts, {"message": _usual_shape(line.message)}), line.line, len(raw))
    return reading


def is_known_log(raw: bytes) -> bool:
    """True for a log in a known format, and for an empty one."""
    return not raw.strip() or is_openclaw(raw) or any(_STAMP.match(line) for line, _ in _log_lines(raw, 0))


def _log_lines(raw: bytes, at: int) -> Iterator[tuple[bytes, int]]:
    while (end := raw.find(b"\n", at)) >= 0:
        yield raw[at:end], end + 1
        at = end + 1


class _Reading:
    def __init__(self, earlier: Carried, check: Callable[[], None]) -> None:
        self._check = check
        self._before = earlier.passages
        self.speakers = Counter(earlier.speakers)
        self._passages = list[Passage]()
        self._size_bytes, self._last_seq = earlier.size_bytes, earlier.last_seq
        self._day, self._stated_pair, self._is_asked = earlier.day, earlier.stated_pair, earlier.is_asked

    def take(self, messages: list[_Said], seq: int, size_bytes: int) -> None:
        """Add the messages of a batch that ends with record `seq` at `size_bytes`, in their parts."""
        for part in messages:
            self._take(part)
        self._last_seq, self._size_bytes = seq, size_bytes

    def transcript(self) -> Transcript:
        """The passages, with those speakers that begin several messages, and the state to read on with."""
        single = {name for name, count in self.speakers.items() if count < 2}
        passages = [replace(p, label=None) if p.label in single else p for p in self._passages]
        carried_value = Carried(
            size_bytes=self._size_bytes,
            last_seq=self._last_seq,
            passages=self._before + len(passages),
            day=self._day,
            stated_pair=self._stated_pair,
            is_asked=self._is_asked,
            speakers=dict(self.speakers),
        )
        return Transcript(passages=passages, carried_state=carried_value)

    def _take(self, part: _Said) -> None:
        stamp = ornament("days", None, leading_stamp, part.text) if part.speaks else None
        behind = stamp.end if stamp else 0
        named_text = part.text[behind : behind + _NAME_CHARS]
        label = (part.name or ornament("names", None, speaker_of, named_text)) if part.speaks else None
        if label is not None:
            self.speakers[label] += 1
        moment = _moment_of(part.ts)
        day = self._date_of(moment, stamp.day if stamp else None)
        opens = day is not None and day != self._day
        self._day = day
        heading = _titles(day) if day else ()
        for words in parts_of(part.text, MAX_CHARS):
            self._check()
            # What a tool is asked and answers stands between a question and its answer.
            is_asked = part.speaks and ornament("questions", False, asks_shortly, words)
            # A stamp says when it was said, not that it speaks of a time.
            timely, behind = ornament("days", False, has_time_words, words[behind:]), 0
            unlatin = ornament("scripts", False, is_unlatin, words)
            answers = part.speaks and self._is_asked and not opens and len(words) <= SHORT_CHARS
            self._passages.append(
                Passage(
                    start_line=part.seq,
                    end_line=part.seq,
                    text=words,
                    heading=heading,
                    opens_section=opens,
                    date=day,
                    label=label,
                    cues=CUES[timely, is_asked, answers, unlatin] | _asking(part, words),
                    role=part.role,
                    written=moment,
                )
            )
            opens = False
            self._is_asked = is_asked if part.speaks else self._is_asked

    def _date_of(self, moment: dt.datetime | None, stated_day: dt.date | None) -> dt.date | None:
        """The day of a message: the date that it begins with, one stated lately, or the time of writing."""
        if stated_day is not None:
            self._stated_pair = stated_day, moment
        if self._stated_pair is not None:
            day, since = self._stated_pair
            if moment is None or since is None or moment - since < STATED_HOLDS:
                return day
        return moment.date() if moment else self._day


def _only_asks(words: str) -> bool:
    return only_ask(sentences_of(words), requesting=True)


def _asking(part: _Said, words: str) -> Cue:
    """The cue of a message that does nothing but ask."""
    is_typed = part.speaks and part.role == "user" and len(words) <= SHORT_CHARS
    return Cue.ASKING if is_typed and ornament("questions", False, _only_asks, words) else Cue.NONE


@lru_cache(maxsize=256)
def _titles(day: dt.date) -> tuple[str, ...]:
    return (day.isoformat(),)


def _moment_of(ts: str) -> dt.datetime | None:
    try:
        moment = dt.datetime.fromisoformat(ts)
        moment = moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)
        return moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        return None


def _parse_line(line: bytes | str) -> dict[str, Any] | None:
    try:
        fields = _LINE_PARSER.decode(line if isinstance(line, str) else line.decode())
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


_LINE_PARSER = json.JSONDecoder(parse_int=_integer, parse_constant=_refuse)


def _parts_of(seq: int, ts: str, fields: dict[str, object]) -> list[_Said]:
    """The parts of a message, each with its author."""
    text = fields.get("text")
    message = _parse_line(text) if isinstance(text, str) else fields.get("message")
    if not isinstance(message, dict):
        return []
    content, name = message.get("content"), _name(message.get("name"))
    match message.get("role"):
        case "user":
            # What a host put there is nobody's word.
            own = (without_inserted(words) for words in _speech_texts(content))
            typed_text = "\n".join(filter(None, (*own, *_calls(message))))
            parts: list[tuple[Role, str]] = [("tool", "\n".join(_results(content))), *_authors(typed_text)]
        case "assistant":
            parts = [("assistant", "\n".join((*_results(content), *_speech_texts(content), *_calls(message))))]
        case "tool":
            parts = [("tool", _answer(content))]
        case _:
            parts = []
    speaks = bool(_speech_texts(content))
    cleaned_pairs = ((role, _clean(words)) for role, words in parts)
    return [
        _Said(seq, ts, words, speaks and role in _SPEAKERS, role, name if role in _SPEAKERS else "")
        for role, words in cleaned_pairs
        if words
    ]


def _authors(text: str) -> Iterator[tuple[Role, str]]:
    """The parts of a user's message: what was typed, and what was pasted or quoted."""
    found_message_parts = ornament("authors", None, message_parts, text)
    if found_message_parts is None:
        # Nobody can tell: then it is at least not the user's word.
        yield "pasted", text
        return
    if len(found_message_parts) == 1:
        yield "user" if found_message_parts[0].kind == "typed" else "pasted", text
        return
    for is_typed, parts in groupby(found_message_parts, key=lambda part: _is_own(part.kind, part.text)):
        yield "user" if is_typed else "pasted", "".join(part.text for part in parts)


def _is_own(kind: str, text: str) -> bool:
    """True for what somebody typed; names in backticks and links stay in their sentence, "she wrote" by its quote."""
    if kind == "typed":
        return not text.strip() or len(_WORD.findall(text)) > _FEW_WORDS or has_unspaced(text)
    return len(text) <= _CODE_CHARS and text.startswith(("`", "[", "!")) and not text.startswith("```")


def _name(value: object) -> str:
    """The field `name` of a message; empty if it has none."""
    return " ".join(_clean(value).split()) if isinstance(value, str) and len(value) <= _NAME_CHARS else ""


def _content_parts(content: object) -> list[Mapping[str, object]]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _speech_texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content] if content.strip() else []
    texts = [part.get(str(part["type"])) for part in _content_parts(content) if part.get("type") in _SPEECH]
    return [text for text in texts if isinstance(text, str) and text.strip()]


def _results(content: object) -> list[str]:
    answers = [_answer(part.get("content")) for part in _content_parts(content) if part.get("type") == "tool_result"]
    return [answer for answer in answers if answer]


def _text_of(content: object) -> str:
    return "\n".join(_speech_texts(content))


def _calls(message: dict[str, object]) -> list[str]:
    """The calls of a message: name and arguments, so that a path or a command in them can be found."""
    calls = [
        (part.get("name"), part.get("input"))
        for part in _content_parts(message.get("content"))
        if part.get("type") == "tool_use"
    ]
    for call in _content_parts(message.get("tool_calls")):
        function = call.get("function")
        if isinstance(function, dict):
            calls.append((function.get("name"), function.get("arguments")))
    # To ask the memory is to do nothing that could be asked for later.
    named_pairs = ((name, arguments) for name, arguments in calls if isinstance(name, str) and not is_own_tool(name))
    return [f"{name} {_arguments(arguments)}"[:CALL_CHARS] for name, arguments in named_pairs]


def _arguments(arguments: object) -> str:
    if isinstance(arguments, str):
        # As models write them, other scripts than Latin may be escaped, and nobody would find them.
        arguments = (_parse_line(arguments) or arguments) if "\\u" in arguments else arguments
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _answer(content: object) -> str:
    """Text of a tool's answer for passages; empty if it only confirms a success."""
    text = without_reminders(_text_of(content))
    if is_recalled(text):
        return ""
    confirms = ornament("acknowledgements", False, is_acknowledgement, text)
    return "" if confirms else _shorten_result(_json_by_lines(text, MAX_CHARS))


def _shorten_result(text: str) -> str:
    """Beginning and end of a tool's answer, cut at a line end if one is near."""
    if len(text) <= RESULT_HEAD_CHARS + RESULT_TAIL_CHARS:
        return text
    head = ornament("sentences", RESULT_HEAD_CHARS, end_of_part, text, 0, RESULT_HEAD_CHARS)
    tail = len(text) - RESULT_TAIL_CHARS
    line = text.find("\n", tail, tail + RESULT_TAIL_CHARS // 2)
    return f"{text[:head].rstrip()}\n…\n{text[max(line, tail) :].lstrip()}"


def _clean(text: str) -> str:
    """A text without characters that no editor shows and no store takes."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HALVES.sub("\ufffd", _UNFIT.sub("", text)).strip()

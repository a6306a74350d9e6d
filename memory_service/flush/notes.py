"""Notes: lines that a flush may keep, and what they are made of. Pure.

Invariants: a note is one line of less than 400 characters that holds no secret and opens no comment; a day stands in it
where its words would come to mean another one later.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from indexer.common import lazy_regex
from indexer.language import MessagePart, PartKind, introduction, message_parts
from memory_service.schemas.roles import NotedOrigin
from memory_service.text.phrases import is_relative, statement_lines
from memory_service.text.secrets import REDACTED, announces_secret, without_public_blocks
from memory_service.text.speech import Utterance
from memory_service.text.talk_language import written_in
from memory_service.text.texts import texts_in

MAX_NOTE_CHARS = 396
# Of a note's body; neighbouring statements share a note up to that.
BODY_CHARS = 300
# Of a statement, so much is read.
READ_CHARS = 600
# Of a message with more lines, which is a paste, only its first and last ones are read.
_MAX_LINES = 40
_FIRST_LINES, _LAST_LINES = 10, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One fact, before it is known whether there is room for it.

    Attributes:
        order: Its place among all notes.
        text: The line, with who said it.
        body: What was said, without the speaker.
        content: Its content words.
        seqs: The messages it comes from.
        day: The day it was said.
        score: Its worth, from 0 to 1.
        binding: Whether it holds what must not be forgotten: a rule, a decision, a promise for a day.
        origin: Whose words they are.
    """

    order: int
    text: str
    body: str
    content: frozenset[str]
    seqs: tuple[int, ...]
    day: dt.date | None
    score: float
    binding: bool = False
    origin: NotedOrigin = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One fact worth keeping.

    Attributes:
        text: One line of Markdown that reads as a fact to someone who was not there.
        seqs: The messages it comes from.
        date: The day it was said; None if that is not known.
        score: How much it is worth, from 0 to 1.
        origin: Whose words they are; the agent's if a model wrote them.
    """

    text: str
    seqs: tuple[int, ...]
    date: dt.date | None
    score: float
    origin: NotedOrigin = "agent"


# Lines of statements, and whether the writer of the message typed them.
Line: TypeAlias = tuple[list[str], PartKind]
_ORIGINS: Mapping[str, NotedOrigin] = MappingProxyType({"user": "user", "assistant": "assistant"})


def lines_of(item: Utterance) -> list[Line]:
    """The statements of each line of a message, without secrets; of an assistant's all are its own.

    Of a message with many lines, which is a paste, only the first and last ones are read.
    """
    text = without_public_blocks(item.text)
    parts = message_parts(text) if item.role == "user" else [MessagePart(kind="typed", start=0, text=text)]
    lines = [(line, part.kind) for part in parts if _is_read(part, item) for line in statement_lines(part.text)]
    clear = _without_secrets([line for line, _ in lines])
    kept_pairs = [(line, kind) for line, (_, kind) in zip(clear, lines, strict=True)]
    return kept_pairs if len(kept_pairs) <= _MAX_LINES else [*kept_pairs[:_FIRST_LINES], *kept_pairs[-_LAST_LINES:]]


def _is_read(part: MessagePart, item: Utterance) -> bool:
    """True for all but pasted text; in a talk of named people a quotation is part of the talk."""
    return part.kind != "pasted" or bool(introduction(item.text, part.start))


def join_sentences(texts: Iterable[str]) -> str:
    """Sentences as one text; after a Chinese full stop stands no blank."""
    return re.sub("(?<=[。！？；：]) ", "", " ".join(_after_lead(list(texts))))


_LED = lazy_regex(r"([^:：\n]{2,60}[:：]) (?=\S)")


def _after_lead(texts: list[str]) -> Iterator[str]:
    """Sentences of which those that follow one with the same words before a colon go on behind a semicolon."""
    lead = ""
    for at, text in enumerate(texts):
        match = _LED.match(text)
        again = match is not None and match[1] == lead
        lead = match[1] if match else ""
        following = _LED.match(texts[at + 1]) if at + 1 < len(texts) else None
        goes_on = following is not None and following[1] == lead
        yield (text[len(lead) :].strip() if again else text) + (";" if goes_on else "")


def _without_secrets(lines: list[list[str]]) -> list[list[str]]:
    """The statements that hold no secret; what follows "the password is:" is one, on the next line too."""
    is_announced = False
    kept_texts: list[list[str]] = []
    for line in lines:
        clear = []
        for statement in line:
            is_hidden, is_announced = is_announced, announces_secret(statement)
            if not (is_hidden or is_announced or REDACTED in statement or ";base64," in statement):
                clear.append(statement)
        kept_texts.append(clear)
    return kept_texts


def _head(item: Utterance, question: str, body: str, language: str) -> str:
    """Opening of a note: the speaker, the day where it matters, the question where the answer needs it."""
    # What was said in a language has its words in front of it; a sentence of another one in a talk has the talk's.
    texts = texts_in(written_in(body if item.name else item.text[:READ_CHARS]) or language)
    name = "" if item.role == "tool" else item.name or texts.noted.get(item.role, texts.noted["assistant"])
    day = str(item.day) if item.day and is_relative(f"{question} {body}") else ""
    head = name + (texts.noted_day.format(day=day) if day else "")
    head += texts.noted_question.format(question=question) if question else ""
    return f"{head}{texts.noted_end}" if head.strip() else ""


def _one_line(text: str) -> str:
    return " ".join(text.replace("<!--", "<! --").split())


def note_of(
    item: Utterance,
    body: str,
    *,
    order: int,
    language: str,
    content: frozenset[str],
    score: float,
    question: str = "",
    asked_in: int | None = None,
    binding: bool = False,
) -> Note:
    """A note of what somebody said.

    Args:
        item: The message that it comes from.
        body: What was said.
        order: Its place among all notes.
        language: Of the talk.
        content: Its content words.
        score: Its worth, from 0 to 1.
        question: What it answers, where the answer needs that.
        asked_in: The message of that.
        binding: See `Note`.
    """
    text = _one_line(_head(item, question, body, language) + body)
    return Note(
        order=order,
        text=text if len(text) <= MAX_NOTE_CHARS else text[: MAX_NOTE_CHARS - 1].rstrip() + "…",
        body=body,
        content=content,
        seqs=(item.seq,) if asked_in is None else (asked_in, item.seq),
        day=item.day,
        score=score,
        binding=binding,
        origin=_ORIGINS.get(item.role, "tool"),
    )

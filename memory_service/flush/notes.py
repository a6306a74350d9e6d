"""Owns the way from what was said to notes: one line for each fact, with who said it and on which day. Pure.

Invariants: linear in the number of messages; a note is one line of less than 400 characters that holds no secret and
opens no comment; a day stands in it where its words would come to mean another one later.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from indexer.analysis import has_unspaced
from indexer.cues import asks
from memory_service.flush.outcomes import outcome_of, tool_names
from memory_service.flush.phrases import (
    is_narration,
    is_pleasantry,
    is_relative,
    is_request,
    picture_of,
    points_back,
)
from memory_service.secrets import announces_secret, has_secret, may_hold_secret, without_key_blocks
from memory_service.flush.speech import Said
from memory_service.flush.statements import clean, is_aside, split_lines
from memory_service.flush.wording import Mark, content_of, limited, marks_of, words_of
from memory_service.flush.worth import FACTS, chance, worth_of
from memory_service.messages import Numbered

MAX_NOTE_CHARS = 396
_BODY_CHARS = 300
_STATEMENT_CHARS = 600
# Of a message with more lines, which is a paste, only its first and last ones are read.
_MAX_LINES = 40
_FIRST_LINES, _LAST_LINES = 10, 5
_MAX_NAMES = 32
_QUESTION_CHARS = 70
# What a message mostly says stays: shortened, it keeps so much of its content words.
_KEPT = 0.6
_SHORT_ANSWER = 6  # content words
_MIN_WORTH = -1.5
_MIN_WORK_WORTH = -2.5  # where no speaker has a name, every statement has the mark of a fact
_OUTCOME_WORTH = -1.2
_MAX_OUTCOMES = 8

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")


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
    """

    order: int
    text: str
    body: str
    content: frozenset[str]
    seqs: tuple[int, ...]
    day: dt.date | None
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    text: str
    content: frozenset[str]
    marks: Counter[Mark]
    worth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    seq: int
    name: str
    role: str
    text: str


def find_notes(said: Sequence[Said], messages: Sequence[Numbered]) -> list[Note]:
    """Every fact that a stretch holds, in order.

    Args:
        said: What was said in it.
        messages: The stretch, for the names of the tools that were called.
    """
    return list(_Reader(said, messages).notes())


class _Reader:
    """Reads a stretch message by message; what was asked last waits for its answer."""

    def __init__(self, said: Sequence[Said], messages: Sequence[Numbered]) -> None:
        self._said = said
        count = Counter(item.name for item in said if item.name)
        self._names = tuple(name for name, _ in count.most_common(_MAX_NAMES))
        self._tools = tool_names(messages)
        self._calls = {item.seq: item.message.get("tool_call_id") or "" for item in messages}
        self._question: _Question | None = None
        self._order = 0
        self._outcomes: set[str] = set()

    def notes(self) -> Iterator[Note]:
        for item in self._said:
            if item.role == "tool":
                yield from self._outcome(item)
            else:
                yield from self._message(item)

    def _outcome(self, item: Said) -> Iterator[Note]:
        line = outcome_of(self._tools.get(self._calls.get(item.seq, ""), ""), item.text, failed=item.failed)
        if not line or line in self._outcomes or len(self._outcomes) >= _MAX_OUTCOMES or has_secret(line):
            return
        self._outcomes.add(line)
        yield self._note(item, "", line, frozenset(content_of(words_of(line))), chance(_OUTCOME_WORTH))

    def _message(self, item: Said) -> Iterator[Note]:
        asked, question = self._answered(item), ""
        lines = split_lines(without_key_blocks(item.text))
        if may_hold_secret(item.text):
            lines = _without_secrets(lines)
        for line in _without_bulk(lines):
            facts, picture, last = self._statements(line, item, asked)
            question = last or question
            for group in _groups(facts):
                note = self._fact(item, group, picture, asked)
                if note is not None:
                    yield note
                # Only what comes first answers.
                asked, picture = None, ""
            if picture and (note := self._fact(item, [], picture, asked)):
                yield note
        self._question = _Question(seq=item.seq, name=item.name, role=item.role, text=question) if question else None

    def _answered(self, item: Said) -> _Question | None:
        asked = self._question
        return asked if asked and (asked.name, asked.role) != (item.name, item.role) else None

    def _statements(self, line: list[str], item: Said, asked: _Question | None) -> tuple[list[_Statement], str, str]:
        """The facts of a line, the picture that comes with it, and what it asks last."""
        facts: list[_Statement] = []
        picture = question = ""
        for whole in line:
            raw = whole[:_STATEMENT_CHARS]
            if is_aside(raw):
                picture = picture_of(raw) or picture
                continue
            text = clean(raw, self._names)
            if asks(raw):
                question = text
                if not (item.role == "user" and not item.name and is_request(text)):
                    continue
            statement = self._statement(text, item, answers=asked is not None and not facts)
            if statement is not None:
                facts.append(statement)
        return facts, picture, question

    def _statement(self, text: str, item: Said, *, answers: bool) -> _Statement | None:
        words = words_of(text)
        content = content_of(words)
        if not content or is_pleasantry(text):
            return None
        marks = marks_of(text, words, self._names)
        if not item.name:
            # Work, not a talk: instructions and narration pass, what they establish stays.
            short_answer = answers and _size(content) <= _SHORT_ANSWER
            if (FACTS.isdisjoint(marks) and not short_answer) or (item.role == "assistant" and is_narration(text)):
                return None
        worth = worth_of(limited(marks), _size(content))
        return _Statement(text=text, content=frozenset(content), marks=marks, worth=worth)

    def _fact(self, item: Said, group: list[_Statement], picture: str, asked: _Question | None) -> Note | None:
        kept = _shortened(group)
        body = _joined(statement.text for statement in kept)
        content = frozenset[str]().union(*(statement.content for statement in kept))
        marks = limited(*(statement.marks for statement in kept))
        worth = worth_of(marks, _size(content), answers=asked is not None, picture=bool(picture))
        solid = _size(content) - marks.get("applause", 0) - marks.get("feeling", 0)
        dangles = not kept or points_back(body)
        question = ""
        if asked and (dangles or _size(content) < 4):
            question = asked.text if len(asked.text) <= _QUESTION_CHARS else ""
        if dangles and not question and not picture and solid < 4:
            return None
        if solid < 2 and not picture and not (question and solid >= 1):
            return None
        if worth < (_MIN_WORTH if item.name else _MIN_WORK_WORTH):
            return None
        if picture:
            body = f"{body} [{picture}]".strip()
            content |= content_of(words_of(picture))
        return self._note(item, question, body, content, chance(worth))

    def _note(self, item: Said, question: str, body: str, content: frozenset[str], score: float) -> Note:
        self._order += 1
        asked = self._question if question else None
        head = _head(item, question, body)
        text = _one_line(head + body)
        return Note(
            order=self._order,
            text=text if len(text) <= MAX_NOTE_CHARS else text[: MAX_NOTE_CHARS - 1].rstrip() + "…",
            body=body,
            content=content,
            seqs=(asked.seq, item.seq) if asked else (item.seq,),
            day=item.day,
            score=score,
        )


def _without_bulk(lines: list[list[str]]) -> list[list[str]]:
    return lines if len(lines) <= _MAX_LINES else [*lines[:_FIRST_LINES], *lines[-_LAST_LINES:]]


def _joined(texts: Iterable[str]) -> str:
    """Sentences as one text; after a Chinese full stop stands no blank."""
    return re.sub("(?<=[。！？；]) ", "", " ".join(texts))


def _without_secrets(lines: list[list[str]]) -> list[list[str]]:
    """The statements that hold no secret; what follows "the password is:" is one, on the next line too."""
    announced = False
    kept: list[list[str]] = []
    for line in lines:
        clear = []
        for statement in line:
            hidden, announced = announced, announces_secret(statement)
            if not (hidden or announced or has_secret(statement)):
                clear.append(statement)
        kept.append(clear)
    return kept


def _head(item: Said, question: str, body: str) -> str:
    """Who said it, on which day where that matters, and what was asked where the answer needs it."""
    chinese = has_unspaced(body) and _HAN.search(body) is not None
    if item.role == "tool":
        name = ""
    elif item.name:
        name = item.name
    elif item.role == "user":
        name = "用户" if chinese else "User"
    else:
        name = "助手" if chinese else "Assistant"
    day = str(item.day) if item.day and is_relative(f"{question} {body}") else ""
    if chinese:
        return (
            name + (f"（{day}）" if day else "") + (f"（问：{question}）" if question else "") + ("：" if name else "")
        )
    head = name + (f" ({day})" if day else "") + (f', asked "{question}"' if question else "")
    return f"{head}: " if head.strip() else ""


def _one_line(text: str) -> str:
    return " ".join(text.replace("<!--", "<! --").split())


def _size(content: frozenset[str] | set[str]) -> int:
    """How many words that is: two pairs of characters make about one."""
    pairs = sum(not word.isascii() for word in content)
    return len(content) - pairs + (pairs + 1) // 2


def _groups(facts: list[_Statement]) -> Iterator[list[_Statement]]:
    """Neighbouring statements that go into one line."""
    group: list[_Statement] = []
    size = 0
    for fact in facts:
        if group and size + len(fact.text) > _BODY_CHARS:
            yield group
            group, size = [], 0
        group.append(fact)
        size += len(fact.text) + 1
    if group:
        yield group


def _shortened(group: list[_Statement]) -> list[_Statement]:
    """The statements that carry most of what a group says, in order."""
    everything = frozenset[str]().union(*(statement.content for statement in group))
    got: set[str] = set()
    kept: set[int] = set()
    # Per character, so that what says the same in less words comes first.
    by_density = sorted(
        range(len(group)),
        key=lambda at: (-(chance(group[at].worth) ** 0.5) * len(group[at].content) / (len(group[at].text) + 8), at),
    )
    for at in by_density:
        if len(got) >= _KEPT * len(everything):
            break
        kept.add(at)
        got |= group[at].content
    first = min(kept, default=0)
    # What "it" and "they" mean stands before.
    while first > 0 and points_back(group[first].text):
        first -= 1
        kept.add(first)
    return [group[at] for at in sorted(kept)]

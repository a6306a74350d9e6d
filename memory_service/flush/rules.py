"""Notes by rules: every fact that a stretch holds, in order, each with its worth. Pure.

```
speech, statements, wording, outcomes  ->  worth  ->  notes
```
Invariants: linear in the number of messages. A tool's result gives one note at most: an error's message, or the id or
address of what the call made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from indexer.common import THROTTLE, lazy_regex
from indexer.language import asks, introduction, is_reported, ornament
from memory_service.flush.notes import BODY_CHARS, READ_CHARS, Note, join_sentences, lines_of, note_of
from memory_service.flush.tool_outcomes import outcome_line, tool_names
from memory_service.messages.shapes import tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.text.grounding import names_user
from memory_service.text.lasting import asks_to_remember, is_about_self, names_nothing, tells_value, wishes_address
from memory_service.text.phrases import (
    clean,
    is_aside,
    is_label,
    is_narration,
    is_nothing,
    is_own,
    is_pleasantry,
    picture_of,
    points_back,
    requests_action,
    without_joint,
)
from memory_service.text.salience import FACTS, Mark, chance, content_of, limit_marks, marks_of, words_of, worth_of
from memory_service.text.secrets import REDACTED
from memory_service.text.speech import Utterance
from memory_service.text.statements import decisions_of, is_order, is_promise, lays_down, reports_will, rules_of
from memory_service.text.texts import texts_in

_MAX_NAMES = 32
_QUESTION_CHARS = 70
# What a message mostly says stays: shortened, it keeps so much of its content words.
_KEPT = 0.6
_SHORT_ANSWER = 6  # content words
_MIN_WORTH = -1.5
_MIN_WORK_WORTH = -2.2  # where no speaker has a name, every statement has the mark of a fact
_OUTCOME_WORTH = -1.2
_MAX_OUTCOMES = 8

# Of work: so many words with one of these marks alone say nothing that stands by itself.
_WEAK: tuple[Mark, ...] = ("event", "name", "plan", "outcome", "relation", "open")
_WEAK_SIZE = 6
_ON_THE_WAY = 1.0
_OTHER_VOICE = 0.5
_TOO_SMALL = 3

_VALUE = lazy_regex(r"[\w:/#.-]{3,}(?<![.:-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    text: str
    binding: bool
    content: frozenset[str]
    marks: Counter[Mark]
    worth: float
    lasting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    seq: int
    name: str
    role: str
    text: str


def notes_by_rules(utterances: Sequence[Utterance], messages: Sequence[Numbered], language: str) -> list[Note]:
    """Every fact that a stretch holds, in order.

    Args:
        utterances: What was said in it.
        messages: The stretch, for the names of the tools that were called.
        language: Of the talk.
    """
    return list(_Reader(utterances, messages, language).notes())


class _Reader:
    """Reads a stretch message by message; what was asked last waits for its answer."""

    def __init__(self, utterances: Sequence[Utterance], messages: Sequence[Numbered], language: str) -> None:
        self._utterances = utterances
        self._language = language
        count = Counter(item.name for item in utterances if item.name)
        self._names = tuple(name for name, _ in count.most_common(_MAX_NAMES))
        self._tools = tool_names(messages)
        self._calls = {item.seq: item.message.get("tool_call_id") or "" for item in messages}
        self._working = frozenset(item.seq for item in messages if tool_calls_of(item.message))
        self._told_terms = frozenset(
            _VALUE.findall("\n".join(item.text for item in utterances if item.role == "assistant"))
        )
        self._question: _Question | None = None
        self._order = 0
        self._outcomes: set[str] = set()

    def notes(self) -> Iterator[Note]:
        for item in THROTTLE.pace(self._utterances):
            notes = self._outcome(item) if item.role == "tool" else self._message(item)
            yield from ornament("statements", (), list, notes)

    def _outcome(self, item: Utterance) -> Iterator[Note]:
        tool, texts = self._tools.get(self._calls.get(item.seq, ""), ""), texts_in(self._language)
        line = outcome_line(tool, item.text, has_failed=item.failed, texts=texts)
        if not self._told_terms.isdisjoint(_VALUE.findall(line.partition(texts.tool_made)[2])):
            # Whoever made it has told of it in words.
            return
        if not line or line in self._outcomes or len(self._outcomes) >= _MAX_OUTCOMES or REDACTED in line:
            return
        self._outcomes.add(line)
        yield self._note(item, "", line, frozenset(content_of(words_of(line))), chance(_OUTCOME_WORTH))

    def _message(self, item: Utterance) -> Iterator[Note]:
        asked_question, question = self._answered_question(item), ""
        for line, kind in lines_of(item):
            if kind != "typed":
                yield from self._passed_on(line, item)
                continue
            facts, picture, last = self._statements(line, item, asked_question)
            question = last or question
            for group in _groups(facts):
                note = self._fact(item, group, picture, asked_question)
                if note is not None:
                    yield note
                # Only what comes first answers.
                asked_question, picture = None, ""
            if picture and (note := self._fact(item, [], picture, asked_question)):
                yield note
        self._question = _Question(seq=item.seq, name=item.name, role=item.role, text=question) if question else None

    def _answered_question(self, item: Utterance) -> _Question | None:
        question = self._question
        return question if question and (question.name, question.role) != (item.name, item.role) else None

    def _statements(
        self, line: list[str], item: Utterance, asked_question: _Question | None
    ) -> tuple[list[_Statement], str, str]:
        """The facts of a line, the picture that comes with it, and what it asks last."""
        facts: list[_Statement] = []
        picture = question = before = ""
        for whole in line:
            raw = whole[:READ_CHARS]
            if is_aside(raw):
                picture = picture_of(raw) or picture
                continue
            text = clean(raw, self._names)
            if (not item.name and is_reported(raw)) or (item.role == "assistant" and self._speaks_for(raw, item)):
                continue
            if asks(raw) and not (item.role == "user" and not item.name and (_binds(text, "user") or _tells(text))):
                question = text
                if not (item.role == "user" and not item.name and requests_action(text)):
                    continue
            statement = self._statement(text, item, before, answers=asked_question is not None and not facts)
            before = text
            if statement is not None:
                if facts and statement.text != text and statement.text.startswith(facts[-1].text):
                    facts.pop()
                facts.append(statement)
        return facts, picture, question

    def _statement(self, text: str, item: Utterance, before: str, *, answers: bool) -> _Statement | None:
        words = words_of(text)
        content = content_of(words)
        work = not item.name
        if not content or is_pleasantry(text) or is_nothing(text) or (work and names_nothing(text)):
            return None
        tells = work and item.role == "user" and not is_order(text) and tells_value(text)
        if is_label(text) and not answers and not tells:
            return None
        marks = marks_of(text, words, self._names)
        lasting = work and item.role == "user" and _lasts(text)
        binding = lasting or (work and (_binds(text, item.role) or ("preference" in marks and item.role == "user")))
        if work and not binding and not tells:
            # Work, not a talk: instructions and narration pass, what they establish stays.
            short_answer = answers and _size(content) <= _SHORT_ANSWER
            if FACTS.isdisjoint(marks) and not short_answer:
                return None
            if self._is_passing(text, marks, _size(content), item) and not short_answer:
                return None
        if binding:
            text = without_joint(text)
            if points_back(text) and before and len(before) + len(text) < BODY_CHARS:
                text = f"{before} {text}"
                content |= content_of(words_of(before))
        worth = worth_of(limit_marks(marks), _size(content))
        return _Statement(
            text=text, content=frozenset(content), marks=marks, worth=worth, binding=binding, lasting=lasting or tells
        )

    def _is_passing(self, text: str, marks: Counter[Mark], size: int, item: Utterance) -> bool:
        """True if a statement of work is only about this step of it, or says nothing by itself."""
        if size < _TOO_SMALL and not (marks["identifier"] or marks["time"]):
            # "8 trays." counts something that only who was there can name.
            return not marks["number"] or text[0].isdecimal()
        if size < _WEAK_SIZE and sum(marks[mark] for mark in FACTS) <= sum(marks[mark] for mark in _WEAK) <= 1:
            return True
        if item.role == "user":
            return is_order(text) and not marks["identifier"] and not marks["time"] and marks["number"] < 2
        return is_narration(text) or text.count('"') % 2 == 1 or text.count("“") > text.count("”") or text[-1] in ":："

    def _speaks_for(self, text: str, item: Utterance) -> bool:
        """True if an assistant says what somebody else allowed, decided or demands: nobody but they can."""
        return names_user(text) and reports_will(text) if item.name else lays_down(text)

    def _passed_on(self, line: list[str], item: Utterance) -> Iterator[Note]:
        """Statements of others that a user passes on with their name: "Lee answered:"; no rule and no decision."""
        for raw in line:
            text = clean(raw[:READ_CHARS], self._names)
            intro = introduction(item.text, item.text.find(raw)) if item.role == "user" and not item.name else ""
            if not intro or asks(raw) or _binds(text, "user") or lays_down(text):
                continue
            if statement := self._statement(text, item, "", answers=False):
                passed_statement = replace(
                    statement, text=join_sentences((intro, statement.text)), binding=False, lasting=False
                )
                if note := self._fact(replace(item, role="quoted"), [passed_statement], "", None):
                    yield note

    def _fact(
        self, item: Utterance, group: list[_Statement], picture: str, asked_question: _Question | None
    ) -> Note | None:
        statements = group if group and group[0].binding else _shorten_group(group)
        body = join_sentences(statement.text for statement in statements)
        content = frozenset[str]().union(*(statement.content for statement in statements))
        marks = limit_marks(*(statement.marks for statement in statements))
        worth = worth_of(marks, _size(content), answers=asked_question is not None, picture=bool(picture))
        solid = _size(content) - marks.get("applause", 0) - marks.get("feeling", 0)
        binding = any(statement.binding for statement in statements)
        dangles = not statements or points_back(body)
        question = ""
        if asked_question and (dangles or _size(content) < 4):
            question = asked_question.text if len(asked_question.text) <= _QUESTION_CHARS else ""
        if dangles and not question and not picture and solid < (4 if item.name else _WEAK_SIZE) and not binding:
            return None
        lasting = any(statement.lasting for statement in statements)
        if solid < (1 if lasting or question else 2) and not picture:
            return None
        if not binding and not lasting and worth < (_MIN_WORTH if item.name else _MIN_WORK_WORTH):
            return None
        if picture:
            body = f"{body} [{picture}]".strip()
            content |= content_of(words_of(picture))
        # What is said on the way is said again at the end of it.
        worth -= _ON_THE_WAY if item.seq in self._working and not item.name else 0.0
        worth -= _OTHER_VOICE if item.role == "assistant" and not item.name and not binding else 0.0
        return self._note(item, question, body, content, chance(worth), binding=binding)

    def _note(
        self, item: Utterance, question: str, body: str, content: frozenset[str], score: float, *, binding: bool = False
    ) -> Note:
        self._order += 1
        asked_question = self._question if question else None
        return note_of(
            item,
            body,
            order=self._order,
            language=self._language,
            content=content,
            score=score,
            question=question,
            asked_in=asked_question.seq if asked_question else None,
            binding=binding,
        )


def _binds(text: str, role: str) -> bool:
    if role == "user":
        return bool(rules_of(text) or decisions_of(text) or is_promise(text))
    return is_own(text) and is_promise(text)


def _lasts(text: str) -> bool:
    """True if a user's statement holds beyond the talk, however short it is."""
    return asks_to_remember(text) or wishes_address(text) or is_about_self(text)


def _tells(question: str) -> bool:
    """True if a question tells a fact of its writer in front of its last clause: "I'm vegan, what can I eat?"."""
    parts = re.split("[,，;；]", question)[:-1]
    return bool(parts) and is_about_self(", ".join(parts))


def _size(content: frozenset[str] | set[str]) -> int:
    """Size of a text in words; two pairs of Chinese characters count as one."""
    pairs = sum(not word.isascii() for word in content)
    return len(content) - pairs + (pairs + 1) // 2


def _groups(facts: list[_Statement]) -> Iterator[list[_Statement]]:
    """Neighbouring statements that go into one line."""
    group: list[_Statement] = []
    size = 0
    for fact in facts:
        # What is short goes on with what stands before it.
        is_other = bool(group) and fact.binding != group[0].binding
        apart = is_other and (fact.binding or _size(fact.content) >= _WEAK_SIZE)
        if group and (size + len(fact.text) > BODY_CHARS or apart):
            yield group
            group, size = [], 0
        group.append(fact)
        size += len(fact.text) + 1
    if group:
        yield group


def _shorten_group(group: list[_Statement]) -> list[_Statement]:
    """The statements that carry most of what a group says, in order."""
    contents = frozenset[str]().union(*(statement.content for statement in group))
    keys: set[str] = set()
    kept_numbers: set[int] = set()
    # Per character, so that what says the same in less words comes first.
    by_density = sorted(
        range(len(group)),
        key=lambda at: (-(chance(group[at].worth) ** 0.5) * len(group[at].content) / (len(group[at].text) + 8), at),
    )
    for at in by_density:
        if len(keys) >= _KEPT * len(contents):
            break
        kept_numbers.add(at)
        keys |= group[at].content
    kept_numbers |= {at for at, statement in enumerate(group) if statement.lasting}
    first = min(kept_numbers, default=0)
    # What "it" and "they" mean stands before.
    while first > 0 and points_back(group[first].text):
        first -= 1
        kept_numbers.add(first)
    return [group[at] for at in sorted(kept_numbers)]

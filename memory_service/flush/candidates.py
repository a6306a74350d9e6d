"""Candidates of a flush: the notes of a stretch that are worth keeping. Pure.

```
messages -> speech -> notes, by the judge or by rules -> candidates (the best of them)
```
Invariants: linear in the number of messages; no two candidates say the same thing; together they stay within a share of
what was said, except in a short stretch, and always within `MAX_ENTRIES` and `_MAX_NOTES_TOKENS`; what a judge lets
through all stays, within `_MAX_JUDGED`; the same messages and judge give the same candidates.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from indexer.language import ornament
from memory_service.compaction.tool_answers import QuestionAnswered, given_answers
from memory_service.flush.judged import notes_by_judge
from memory_service.flush.notes import Candidate, Note, note_of
from memory_service.flush.rules import notes_by_rules
from memory_service.messages.shapes import user_message
from memory_service.messages.sizes import Numbered, count_tokens, quarters
from memory_service.text.correction_judge import TalkJudge
from memory_service.text.salience import content_of, words_of
from memory_service.text.secrets import without_secrets
from memory_service.text.similarity import groups_of
from memory_service.text.speech import read_speech
from memory_service.text.talk_language import language_of

_SHARE = 0.34
MAX_ENTRIES = 40
_MAX_NOTES_TOKENS = 4_000
# What the judge lets through lasts: of it, more than a long stretch holds may stay.
_MAX_JUDGED = 400
# What an entry takes in its file beside its text, at most: list marker, time heading, blank line.
ENTRY_CHARS = 14
# Up to so many messages, or quarters of a token, nothing is left out for its size; from so many on the share holds.
_SHORT_MESSAGES = 6, 12
_SHORT_QUARTERS = 800, 1_600
# Source: evidence kept per character on LoCoMo (our measurement); 0 takes the best notes, 1 the densest.
_DENSITY = 0.8


def find_candidates(
    messages: Sequence[Numbered],
    *,
    share: float = _SHARE,
    zone: dt.tzinfo = dt.UTC,
    before: Sequence[Numbered] = (),
    judge: TalkJudge | None = None,
) -> list[Candidate]:
    """The facts of a stretch of conversation, in the order in which they were said.

    Args:
        messages: A stretch of a session: a talk, or an agent's work with calls and results.
        share: How long the candidates may be together, as a share of what was said.
        zone: Whose days count where only the moment of a message is known.
        before: What was said before the stretch: a day that was stated there still holds.
        judge: The judge of sentences; None if there is none. Talks of named people are read by rules.
    """
    # Of a message whose secrets cannot be told nothing is noted.
    messages = [clear for message in messages for clear in ornament("secrets", (), without_secrets, (message,))]
    answers, messages = ornament("statements", ([], messages), given_answers, messages)
    utterances = ornament("speech", [], read_speech, messages, zone, before=before)
    sizes = [quarters(item.text) for item in utterances if item.role != "tool"]
    language = language_of((*before, *messages))
    if judge is None or any(item.name for item in utterances):
        notes = _choose(notes_by_rules(utterances, messages, language), _budget(len(sizes), sum(sizes), share))
    else:
        notes = _each_once(notes_by_judge(utterances, judge, language))[:_MAX_JUDGED]
    told_notes = [
        note for question in answers for note in ornament("statements", (), _answer_notes, question, zone, language)
    ]
    notes = sorted([*told_notes, *notes], key=lambda note: (note.seqs[-1], note.order))
    return [_candidate(note) for note in notes]


def _answer_notes(given_question: QuestionAnswered, zone: dt.tzinfo, language: str) -> Iterator[Note]:
    """The note of an answer, as the user's words."""
    message = replace(given_question.reply, message=user_message(given_question.words))
    for item in read_speech([message], zone):
        yield note_of(
            item,
            given_question.words,
            order=0,
            language=language,
            content=frozenset(content_of(words_of(given_question.words))),
            score=1.0,
            question=given_question.question,
            asked_in=given_question.question_seq,
            binding=True,
        )


def _candidate(note: Note) -> Candidate:
    return Candidate(text=note.text, seqs=note.seqs, date=note.day, score=round(note.score, 4), origin=note.origin)


def _budget(count: int, size: int, share: float) -> float:
    """Budget for the notes of a stretch, in quarters of a token.

    A short stretch may be kept whole, with what each entry adds; the share holds for a long one.
    """
    longer = min(_between(count, *_SHORT_MESSAGES), _between(size, *_SHORT_QUARTERS))
    return size * share * longer + _MAX_NOTES_TOKENS * 4 * (1 - longer)


def _between(value: float, low: float, high: float) -> float:
    """Relative position of a value between two others, from 0 to 1."""
    return min(1.0, max(0.0, (value - low) / (high - low)))


def deduplicate(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates without those that say the same as a later one, which has the messages of both.

    What was said once more after its opposite has to stand behind it.
    """
    listed_candidates = list(candidates)
    groups = sorted(groups_of([candidate.text for candidate in listed_candidates]), key=lambda group: group[-1])
    return [
        replace(listed_candidates[group[-1]], seqs=_union(listed_candidates[at].seqs for at in group))
        if len(group) > 1
        else listed_candidates[group[0]]
        for group in groups
    ]


def _union(seqs: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted({seq for numbers in seqs for seq in numbers}))


def _choose(notes: list[Note], budget: float) -> list[Note]:
    """Select notes by score per character within the budget; binding notes first, near-duplicates skipped."""
    chosen_notes: list[Note] = []
    used_count = tokens = 0
    notes = _each_once(notes)
    sizes = {note.order: quarters(note.text) + ENTRY_CHARS for note in notes}
    for note in sorted(notes, key=lambda note: _rank(note, sizes[note.order])):
        size, cost = sizes[note.order], count_tokens(note.text)
        if used_count + size > budget or tokens + cost > _MAX_NOTES_TOKENS:
            continue
        chosen_notes.append(note)
        used_count, tokens = used_count + size, tokens + cost
        if len(chosen_notes) == MAX_ENTRIES:
            break
    return chosen_notes


def _rank(note: Note, size: int) -> tuple[bool, float, int]:
    return not note.binding, -note.score / size**_DENSITY, note.order


def _each_once(notes: list[Note]) -> list[Note]:
    """Of notes that say the same the best, at the place of the last: so a fact stands behind what it corrects."""
    return [_merge_notes([notes[at] for at in group]) for group in groups_of([note.text for note in notes])]


def _merge_notes(notes: list[Note]) -> Note:
    best = min(notes, key=lambda note: _rank(note, quarters(note.text) + ENTRY_CHARS))
    return replace(best, order=notes[-1].order, seqs=_union(note.seqs for note in notes))

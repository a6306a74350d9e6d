"""Candidates of a flush: the notes of a stretch that are worth keeping, by the judge of sentences or by rules. Pure.

```
messages -> speech -> notes, by the judge or by rules -> candidates (the best of them)
speech -> sentences -> judge -> those that last -> notes (neighbours of one message share a note)
```
Invariants: linear in the number of messages; no two candidates say the same thing; together they stay within a share of
what was said, except in a short stretch, and always within `MAX_ENTRIES` and `_MAX_NOTES_TOKENS`; what a judge lets
through all stays, within `_MAX_JUDGED`; the same messages and judge give the same candidates. By the judge, a tool's
output gives no note; a sentence of an assistant's lays down no rule and decides nothing for a user; a line can be read
alone, so what points back takes its sentence before it along, and a bare answer its question.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from indexer.common import THROTTLE
from indexer.language import asks, is_reported, ornament
from memory_service.compaction.tool_answers import QuestionAnswered, given_answers
from memory_service.flush.notes import BODY_CHARS, READ_CHARS, Candidate, Note, join_sentences, lines_of, note_of
from memory_service.flush.rules import notes_by_rules
from memory_service.messages.shapes import user_message
from memory_service.messages.sizes import Numbered, count_tokens, quarters
from memory_service.text.correction_judge import TalkJudge, Told
from memory_service.text.lasting import asks_to_remember, names_nothing
from memory_service.text.phrases import (
    clean,
    is_aside,
    is_label,
    is_nothing,
    is_pleasantry,
    picture_of,
    points_back,
    without_joint,
)
from memory_service.text.salience import content_of, words_of
from memory_service.text.secrets import without_secrets
from memory_service.text.sentence_judge import LASTING, Judgement, Spoken, answering
from memory_service.text.sentences import Voice
from memory_service.text.similarity import groups_of
from memory_service.text.speech import Utterance, read_speech
from memory_service.text.statements import lays_down
from memory_service.text.talk_language import language_of, written_in
from memory_service.text.texts import texts_in

# Source: our measurement on labelled talks that took no part; most of what lasts, a few lines of the moment.
USER_LASTS = 0.5
ASSISTANT_LASTS = 0.6
# Of a user's sentence, so much is enough where it surely corrects one that lasts.
_NEARLY_LASTS = 0.3
# A fact that a model wrote is dropped below both: that it lasts, and that it is of a kind that does.
# Source: our measurement; nothing that lasts was dropped, nine of ten that do not were.
_MODEL_LASTS, _MODEL_KINDS = 0.4, 0.5
_BINDING = frozenset({"rule", "decision", "preference", "plan"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A sentence of a message.

    Attributes:
        item: The message.
        text: The sentence, cleaned.
        spoken_sentence: What is judged.
        is_noted: False for what is never noted, whatever the judge says.
        question: The question that it answers, where it is too short to stand alone.
        asked_in: The message of that.
        picture: What the picture shows that comes behind it; empty for none.
    """

    item: Utterance
    text: str
    spoken_sentence: Spoken
    is_noted: bool
    question: str = ""
    asked_in: int | None = None
    picture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A sentence with its judgement.

    Attributes:
        before: What it corrects.
        later: What may correct it.
        is_corrected: Whether a later sentence corrects it, which then has it as `before`.
    """

    part: _Said
    judgement: Judgement
    lasts: bool
    before: str = ""
    later: str = ""
    is_corrected: bool = False


def _notes_by_judge(utterances: Sequence[Utterance], judge: TalkJudge, language: str) -> list[Note]:
    """Notes of what lasts of a stretch, in order.

    Args:
        utterances: What was said in it.
        judge: The judge of sentences.
        language: Of the talk.
    """
    sentences = list(_sentences(utterances))
    judgements = judge.judgements([sentence.spoken_sentence for sentence in sentences])
    judged = [
        _Judged(part=part, judgement=judgement, lasts=_lasts(part, judgement))
        for part, judgement in zip(sentences, judgements, strict=True)
    ]
    judged = _with_corrections(judged, judge)
    groups = enumerate(_groups(judged))
    notes = [ornament("statements", None, _note, group, order, language) for order, group in groups]
    return [note for note in notes if note is not None]


def without_momentary(facts: Sequence[Candidate], judge: TalkJudge) -> list[Candidate]:
    """The facts that a model found, without those that are of the moment.

    Args:
        facts: The facts; each is judged by itself.
        judge: The judge of sentences.

    Raises:
        IndexerError: Its model cannot be loaded.
        DamagedWeights: There are no weights for that model.
    """
    return [candidate for candidate in facts if not _is_momentary(candidate.text, judge)]


def _is_momentary(fact: str, judge: TalkJudge) -> bool:
    if ornament("statements", False, asks_to_remember, fact):
        return False
    (judgement,) = judge.judgements([Spoken(text=fact, voice="user", message=0)])
    return judgement.durable < _MODEL_LASTS and sum(judgement.kinds[kind] for kind in LASTING) < _MODEL_KINDS


def _sentences(utterances: Sequence[Utterance]) -> Iterator[_Said]:
    question: tuple[str, Utterance] | None = None
    for item in THROTTLE.pace(utterances):
        asked_question = question if question and question[1].role != item.role else None
        parts = ornament("statements", [], _of_message, item, asked_question)
        yield from parts
        asking = [sentence for sentence in parts if ornament("statements", False, asks, sentence.text)]
        question = (asking[-1].text, item) if asking else None


def _of_message(item: Utterance, asked_pair: tuple[str, Utterance] | None) -> list[_Said]:
    if item.role == "tool":
        # Only that there was one counts.
        sentence = Spoken(text=item.text[:READ_CHARS], voice="tool", message=item.seq)
        return [_Said(item=item, text="", spoken_sentence=sentence, is_noted=False)]
    parts: list[_Said] = []
    for line, kind in lines_of(item):
        for raw in line:
            if is_aside(raw):
                if parts:
                    parts[-1] = replace(parts[-1], picture=picture_of(raw) or parts[-1].picture)
                continue
            text = clean(raw[:READ_CHARS], ())
            question = asked_pair[0] if asked_pair and not parts else ""
            whole = answering(text, question)
            voice: Voice = "assistant" if item.role == "assistant" else "user"
            parts.append(
                _Said(
                    item=item,
                    text=text,
                    spoken_sentence=Spoken(text=whole or text, voice=voice, message=item.seq),
                    is_noted=kind == "typed" and _is_own(raw, text, voice),
                    question=question if whole else "",
                    asked_in=asked_pair[1].seq if asked_pair and whole else None,
                )
            )
    return parts


def _is_own(raw: str, text: str, voice: Voice) -> bool:
    """True if a sentence says something that is its writer's: no words of others, no will that an assistant reports."""
    if not any(map(str.isalnum, text)) or is_nothing(text) or is_pleasantry(text) or is_reported(raw):
        return False
    if is_label(text) or names_nothing(text) or text[-1] in ":：" or text[0] in ",;.)]":
        return False
    return not (voice == "assistant" and lays_down(raw))


def _lasts(part: _Said, judgement: Judgement) -> bool:
    if not part.is_noted:
        return False
    if part.spoken_sentence.voice == "assistant":
        return judgement.durable >= ASSISTANT_LASTS
    return judgement.durable >= USER_LASTS or ornament("statements", False, asks_to_remember, part.text)


def _nearly_lasts(judgement: _Judged) -> bool:
    part = judgement.part
    return part.is_noted and part.spoken_sentence.voice == "user" and judgement.judgement.durable >= _NEARLY_LASTS


def _with_corrections(judgements: list[_Judged], judge: TalkJudge) -> list[_Judged]:
    """The sentences, of which those that a later one surely corrects go on in that one alone.

    What corrects a sentence that lasts does so itself, though by its words alone it might be of the moment.
    """
    places = [at for at, judgement in enumerate(judgements) if judgement.lasts or _nearly_lasts(judgement)]
    messages = {
        seq: place
        for place, seq in enumerate(dict.fromkeys(each_judgement.part.item.seq for each_judgement in judgements))
    }
    items = [
        Told(
            spoken=judgements[at].part.spoken_sentence,
            judgement=judgements[at].judgement,
            place=messages[judgements[at].part.item.seq],
        )
        for at in places
    ]
    changed_judgements = list(judgements)
    for old, correction in judge.find_corrections(items).items():
        before, at = places[old], places[correction.new]
        is_said_again = words_of(judgements[before].part.text) == words_of(judgements[at].part.text)
        if is_said_again or not judgements[before].lasts or not (judgements[at].lasts or correction.is_sure):
            continue
        if correction.is_sure:
            changed_judgements[before] = replace(changed_judgements[before], lasts=False, is_corrected=True)
            changed_judgements[at] = replace(changed_judgements[at], lasts=True, before=judgements[before].part.text)
        else:
            # It may tell of something else: both stand, and the earlier one says what came later.
            changed_judgements[before] = replace(changed_judgements[before], later=judgements[at].part.text)
    return changed_judgements


def _groups(judgements: Sequence[_Judged]) -> Iterator[list[_Judged]]:
    """Neighbours that last, of one message each; what points back has its sentence before it in front."""
    group: list[_Judged] = []
    before: _Judged | None = None
    for judgement in judgements:
        begins = before is None or before.part.item is not judgement.part.item
        if group and (begins or not judgement.lasts or _size(group) + len(judgement.part.text) > BODY_CHARS):
            yield group
            group = []
        if judgement.lasts:
            if (
                not group
                and before is not None
                and not begins
                and not before.is_corrected
                and ornament("statements", False, _needs, judgement.part, before.part)
            ):
                group.append(before)
            group.append(judgement)
        before = judgement
    if group:
        yield group


def _needs(part: _Said, before: _Said) -> bool:
    """True if a sentence means nothing without the one before it."""
    if not before.is_noted or asks(before.text) or len(before.text) + len(part.text) >= BODY_CHARS:
        return False
    return points_back(without_joint(part.text))


def _size(group: Sequence[_Judged]) -> int:
    return sum(len(judgement.part.text) + 1 for judgement in group)


def _with_later(text: str, judgement: _Judged, language: str) -> str:
    """A sentence with what was said later in its place, where something may have been."""
    if not judgement.later:
        return text
    return text.rstrip(".。 ") + texts_in(written_in(text) or language).noted_later.format(
        later=judgement.later.rstrip(".。 ")
    )


def _note(group: Sequence[_Judged], order: int, language: str) -> Note:
    first = group[0].part
    body = join_sentences(
        [
            _with_later(without_joint(first.text), group[0], language),
            *(_with_later(judgement.part.text, judgement, language) for judgement in group[1:]),
        ]
    )
    body += "".join(f" [{judgement.part.picture}]" for judgement in group if judgement.part.picture)
    befores = [judgement.before.rstrip(".。 ") for judgement in group if judgement.before]
    if befores:
        body += texts_in(written_in(body) or language).noted_before.format(before="; ".join(befores))
    return note_of(
        first.item,
        body,
        order=order,
        language=language,
        content=frozenset(content_of(words_of(body))),
        score=max(judgement.judgement.durable for judgement in group),
        question=first.question,
        asked_in=first.asked_in,
        binding=any(judgement.judgement.lasting_kind in _BINDING for judgement in group),
    )


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
        notes = _each_once(_notes_by_judge(utterances, judge, language))[:_MAX_JUDGED]
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

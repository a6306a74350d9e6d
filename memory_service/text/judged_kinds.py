"""The kinds of the sentences of messages, as the learned judge tells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from indexer.language import ornament
from memory_service.messages.sizes import Numbered
from memory_service.text.sentences import Sentence, Speakers, Voice, sentences_of, speakers_of
from memory_service.text.statements import Kind, kind_of

if TYPE_CHECKING:
    from memory_service.text.correction_judge import TalkJudge
    from memory_service.text.sentence_judge import Judgement, Spoken
from memory_service.text.sentence_kinds import BY_PATTERNS, SentenceKinds

# So many sentences of a stretch are judged, those of users first, the newest first; and so many characters of them in
# vectors. Source: our measurement; two seconds of one core at most.
_MOST_SENTENCES, _MOST_CHARS = 1_500, 15_000
_LASTS = {"user": 0.5, "assistant": 0.6, "tool": 1.1}
# What patterns found and the judge holds for one of these, and for short-lived, is none of theirs.
_NO_STATEMENTS = frozenset({"chatter", "question", "joke", "quoted", "knowledge", "belief", "report", "state"})
_SHORT_LIVED = 0.3
_BINDING = {"rule": Kind.RULE, "preference": Kind.RULE, "decision": Kind.DECISION}
# What lasts is worth up to three times as much as what does not.
_LEAST_WEIGHT = 0.5
# Of a text of more words than these, each stands there less often than this.
_MANY_WORDS = 8


def _may_be(kind: Kind, by_pattern: Kind, voice: Voice) -> bool:
    """True if a sentence may be a rule or a decision: what is asked for now is the goal, and no assistant rules."""
    if kind is Kind.RULE:
        return voice == "user" and by_pattern is not Kind.QUESTION
    return by_pattern not in (Kind.QUESTION, Kind.ASK, Kind.RULE)


def _is_none(judgement: Judgement) -> bool:
    return judgement.durable < _SHORT_LIVED and judgement.kind in _NO_STATEMENTS


def judge_kinds(messages: Sequence[Numbered], judge: TalkJudge) -> SentenceKinds:
    """The kinds of the sentences of a stretch.

    Args:
        messages: The stretch, without secrets.
        judge: The judge of sentences.

    Raises:
        IndexerError: Its model cannot be loaded.
        DamagedWeights: There are no weights for that model.
    """
    speakers = ornament("statements", frozenset[tuple[str, str]](), speakers_of, messages)
    sentences = [] if speakers else ornament("statements", list[Sentence](), _choose_sentences, messages, speakers)
    if not sentences:
        return BY_PATTERNS
    judgements = judge.judgements(_judge_inputs(sentences), most_chars=_MOST_CHARS)
    by_message: dict[int, list[Sentence]] = {}
    kinds: dict[tuple[int, int], tuple[Kind, float]] = {}
    weights: dict[tuple[int, int], float] = {}
    refused_pairs: set[tuple[int, int]] = set()
    for sentence, judgement in zip(sentences, judgements, strict=True):
        if sentence.voice != "tool":
            place = sentence.seq, sentence.place
            by_message.setdefault(sentence.seq, []).append(sentence)
            kinds[place], weights[place] = _judged_kind(sentence, judgement), _LEAST_WEIGHT + judgement.durable
            if _is_none(judgement):
                refused_pairs.add(place)
    return SentenceKinds(sentences=by_message, kinds=kinds, weights=weights, refused=frozenset(refused_pairs))


def _judged_kind(sentence: Sentence, judgement: Judgement) -> tuple[Kind, float]:
    by_pattern = ornament("statements", (Kind.FACT, 1.0), kind_of, sentence)
    if by_pattern[0] in (Kind.EMPTY, Kind.FAILURE) or sentence.quoted or _repeats_itself(sentence.text):
        return by_pattern
    binding = _BINDING.get(judgement.lasting_kind)
    if binding and judgement.durable >= _LASTS[sentence.voice] and _may_be(binding, by_pattern[0], sentence.voice):
        return binding, judgement.durable if binding is Kind.RULE else 1.0
    if by_pattern[0] in (Kind.RULE, Kind.DECISION) and _is_none(judgement):
        return Kind.FACT, 1.0
    return by_pattern


def _repeats_itself(text: str) -> bool:
    """True for a text of the same few words again and again, to which the judge was never used."""
    words = text.split()
    return len(words) > _MANY_WORDS and len(set(words)) * _MANY_WORDS < len(words)


def _choose_sentences(messages: Sequence[Numbered], speakers: Speakers) -> list[Sentence]:
    """The sentences that are judged, in order; of a tool's output one without text tells that there was some."""
    sentences: dict[int, list[Sentence]] = {}
    left = _MOST_SENTENCES
    for role in ("user", "assistant", "tool"):
        for at in range(len(messages) - 1, -1, -1):
            item = messages[at]
            if left > 0 and item.message["role"] == role:
                sentences[at] = _sentences(item, speakers)
                left -= len(sentences[at])
    return [sentence for at in sorted(sentences) for sentence in sentences[at]]


def _sentences(item: Numbered, speakers: Speakers) -> list[Sentence]:
    if item.message["role"] == "tool":
        return [Sentence(text="", voice="tool", seq=item.seq)]
    return ornament("statements", [], sentences_of, item, speakers)


def _judge_inputs(sentences: Sequence[Sentence]) -> list[Spoken]:
    """Texts to be judged: short answers with the question that they answer."""
    from indexer.language import asks
    from memory_service.text.sentence_judge import Spoken, answering

    spoken_sentences: list[Spoken] = []
    question: tuple[str, Voice, int] | None = None
    for sentence in sentences:
        text = question[0] if question and question[1] != sentence.voice and sentence.place == 0 else ""
        spoken_sentences.append(
            Spoken(text=answering(sentence.text, text) or sentence.text, voice=sentence.voice, message=sentence.seq)
        )
        if ornament("statements", False, asks, sentence.text):
            question = (sentence.text, sentence.voice, sentence.seq)
        elif question and question[2] != sentence.seq:
            question = None
    return spoken_sentences

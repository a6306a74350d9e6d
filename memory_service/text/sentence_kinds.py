"""Kinds of the sentences of a stretch, as the judge of sentences finds them; by patterns where it has not judged.

```
messages -> sentences -> judge of sentences (those that fit its bounds) -> SentenceKinds -> summary, ledger, audit
```
Invariants: a sentence has the same kind for all who ask; patterns are a cue of the judge, hold for what it has not
judged, and stand against it where it only says that something will be over soon: a rule for today binds today. Talks
of named people are read by patterns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from indexer.language import ornament
from memory_service.messages.sizes import Numbered
from memory_service.text.sentences import Sentence, Speakers, Voice, sentences_of, speakers_of
from memory_service.text.statements import Kind, decisions_of, kind_of, reports_will, rules_of

if TYPE_CHECKING:
    from memory_service.text.correction_judge import TalkJudge
    from memory_service.text.sentence_judge import Judgement, Spoken

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceKinds:
    """Kinds of the sentences that were judged.

    Attributes:
        sentences: Their sentences, by the number of the message.
        kinds: Kind and certainty by the number of a message and the place of a sentence in it.
        weights: Factors of what sentences are worth, from 0.5 to 1.5, likewise.
        refused: Places of those that are neither a rule nor a decision, whatever patterns say.
    """

    sentences: Mapping[int, Sequence[Sentence]] = field(default_factory=dict)
    kinds: Mapping[tuple[int, int], tuple[Kind, float]] = field(default_factory=dict)
    weights: Mapping[tuple[int, int], float] = field(default_factory=dict)
    refused: frozenset[tuple[int, int]] = frozenset()

    def kind_of(self, sentence: Sentence) -> tuple[Kind, float]:
        """Kind of a sentence, and its certainty: 1 is clear, 0.5 is a guess."""
        judged_kind = self.kinds.get((sentence.seq, sentence.place)) if sentence.voice != "tool" else None
        return judged_kind or kind_of(sentence)

    def weight_of(self, sentence: Sentence) -> float:
        """Factor of what a sentence is worth; 1 for what was not judged."""
        return self.weights.get((sentence.seq, sentence.place), 1.0) if sentence.voice != "tool" else 1.0

    def statements_of(self, message: Numbered) -> tuple[list[str], list[str]] | None:
        """Rules and decisions of a message; None if it was not judged.

        An assistant lays down no rule, and cannot say what others have decided.
        """
        sentences = self.sentences.get(message.seq)
        if sentences is None:
            return None
        typed_sentences = [sentence for sentence in sentences if not sentence.quoted]
        rules = [
            each_sentence.text
            for each_sentence in typed_sentences
            if each_sentence.voice == "user" and self._binds(each_sentence, Kind.RULE)
        ]
        decisions = [
            sentence.text
            for sentence in typed_sentences
            if self._binds(sentence, Kind.DECISION) and (sentence.voice == "user" or not reports_will(sentence.text))
        ]
        return rules, decisions

    def _binds(self, sentence: Sentence, kind: Kind) -> bool:
        if self.kind_of(sentence)[0] is kind:
            return True
        # The patterns of the two readers differ: what either finds is one, unless the judge knows better.
        found_by = rules_of if kind is Kind.RULE else decisions_of
        return (sentence.seq, sentence.place) not in self.refused and bool(found_by(sentence.text))


BY_PATTERNS = SentenceKinds()


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

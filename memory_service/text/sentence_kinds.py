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

from memory_service.messages.sizes import Numbered
from memory_service.text.sentences import Sentence
from memory_service.text.statements import Kind, decisions_of, kind_of, reports_will, rules_of

if TYPE_CHECKING:
    pass


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

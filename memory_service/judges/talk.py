"""Judge of a talk: its sentences and its corrections, by the vectors of one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.judges.corrections import Told, corrected
from memory_service.judges.sentences import Embed, Heard, Labels, classify

# Source: our measurement on talks that took no part (`python -m tests.evals.corrections`).
CORRECTS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkJudge:
    """Judge of a talk.

    Attributes:
        embed: Gives the vectors of texts.
        embedder: Fingerprint of its model.
    """

    embed: Embed
    embedder: str

    def labels(self, heard: Sequence[Heard]) -> list[Labels]:
        """Judgements of the sentences of a stretch, in order.

        Raises:
            DamagedWeights: See `classify`.
        """
        return classify(heard, self.embed, embedder=self.embedder)

    def corrected(self, told: Sequence[Told]) -> dict[int, int]:
        """The places of sentences that a later one corrects, each with the place of that one.

        Raises:
            DamagedWeights: See `corrected`.
        """
        return corrected(told, embedder=self.embedder, threshold=CORRECTS)

"""The measure of a second look: what a reranker of known quality does to blocks and to their relevance.

`python -m tests.evals.second_look PATH/locomo10.json [--apart 0 1 2 4 100] [--every 1]`

The scores of the reranker are made: noise, and for a line that answers so many standard deviations more. With 0 it
knows nothing, with 100 all. Printed are the evidence within 1,024 tokens, the expected calibration error of the hits'
relevance, and how many of the answers among the hits it has been given to read.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from indexer import CachedEmbedder, Hit, Index, MiniLM
from indexer.embeddings.reranking import Scores
from memory_service.memories.block import build_context, candidates_for
from tests.evals.locomo import Conversation, Question, load, share_found, squashed
from tests.evals.relevance import calibration_error

_BUDGET = 1_024
_NOW = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)


class Told:
    """A reranker that was told the answers, more or less clearly.

    Args:
        apart: How many standard deviations the scores of answers and of other texts lie apart.
    """

    name = "told"
    at_once = 50

    def __init__(self, apart: float) -> None:
        self._apart = apart
        self._noise = np.random.default_rng(1)
        self.answers: tuple[str, ...] = ()
        self.read = 0

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        right = np.array([is_answer(text, self.answers) for text in texts], bool)
        self.read += int(right.sum())
        return self._apart * right + self._noise.normal(size=len(texts))


def is_answer(text: str, answers: Sequence[str]) -> bool:
    """True if a line is one of those that answer, or a long part of it."""
    said = squashed(text)
    return any(answer and (answer in said or (len(answer) > 240 and answer[:200] in said)) for answer in answers)


def measure(conversations: Sequence[Conversation], apart: float | None, every: int) -> dict[str, float | None]:
    """The figures with a reranker, or without one."""
    embedder, found = CachedEmbedder(MiniLM()), list[tuple[float, tuple[Hit, ...], tuple[str, ...]]]()
    reranker = Told(apart) if apart is not None else None
    for conversation in conversations:
        with tempfile.TemporaryDirectory(prefix="second-look-") as folder:
            for path, text in conversation.files.items():
                (Path(folder) / path).parent.mkdir(exist_ok=True)
                (Path(folder) / path).write_text(text, "utf-8")
            index = Index(Path(folder), embedder, today=_NOW.date, reranker=reranker)
            index.sync()
            found += [_asked(index, reranker, question) for question in conversation.questions[::every]]
            index.close()
    hits = [(hit, answers) for _, shown, answers in found for hit in shown]
    said = np.array([hit.relevance for hit, _ in hits], float)
    true = np.array([is_answer(hit.passage.text, answers) for hit, answers in hits], bool)
    return {
        "apart": apart,
        "questions": len(found),
        "evidence": round(statistics.mean(share for share, _, _ in found), 4),
        "calibration_error": round(calibration_error(said, true)[0], 4),
        "answers": int(true.sum()),
        "answers_read": reranker.read if reranker else 0,
    }


def _asked(index: Index, reranker: Told | None, question: Question) -> tuple[float, tuple[Hit, ...], tuple[str, ...]]:
    answers = tuple(map(squashed, question.evidence))
    if reranker:
        reranker.answers = answers
    hits = index.search(question.text, limit=candidates_for(_BUDGET), snippets=False).hits
    block = build_context(hits, query=question.text, budget_tokens=_BUDGET, receipt_id="r", created_at=_NOW).block
    return share_found(question, block), hits, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="locomo10.json, or another file of that form")
    parser.add_argument("--apart", type=float, nargs="+", default=[0, 1, 2, 4, 100])
    parser.add_argument("--every", type=int, default=1, help="only each so manieth question")
    arguments = parser.parse_args()
    conversations = list(load(arguments.data))
    for apart in (None, *arguments.apart):
        print(json.dumps(measure(conversations, apart, arguments.every)), flush=True)


if __name__ == "__main__":
    main()

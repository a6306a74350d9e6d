"""The Chinese measure: is the one line that answers a question among the first hits?

`python -m tests.evals.chinese [--group natural|paraphrased] [--half dev|held] [--missed 5]`

Two workspaces, each with the notes of one agent: diaries, decisions, preferences, meetings, work, family, travel,
cooking, health, code. All of it was written for this measure. In `chinese_pairs.json` each line of a note stands with
the questions that it answers.

natural: 592 lines, 575 questions. How they were made, fixed before anything was measured: as in SQuAD and XQuAD, the
writer has the line in front of him and asks for a fact in it, as a person asks an assistant who keeps these notes:
naming what it is about, so usually with some of its words, moved, shortened or with other words of grammar, in
Simplified or Traditional, whichever the line is in. Many lines are about the same subject with other facts, other
people or other dates (bills of several months, releases, ports, fevers, cakes); a question names enough to have one
answer. No question was changed, added or dropped after the first measurement.

paraphrased: 608 lines, 552 questions in other words than their lines; one in five shares no word and no pair of
characters with its line (of the natural ones, one in a hundred). They say how far words reach and are reported, not
promised. An earlier ranking was tuned on a part of them, in both halves of today.

Both are split by a hash of the question, before measuring. Ranking is tuned on "dev"; "held" says what that is worth.
References in the same run: rank-bm25 over pairs of characters and over single ones.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from rank_bm25 import BM25Okapi

from indexer import Embedder, Index, MiniLM, multilingual_embedder
from indexer.language.terms import index_terms

Group = Literal["natural", "paraphrased"]
GROUPS: tuple[Group, ...] = ("natural", "paraphrased")
Half = Literal["dev", "held"]
HALVES: tuple[Half, ...] = ("dev", "held")
# The day after the last file, from which "yesterday" and "last week" count.
TODAY = dt.date(2026, 11, 21)
FIRST = (1, 5)

_SET = Path(__file__).parent / "chinese_pairs.json"
_RUN = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A question and the line that answers it, without its bullet."""

    question: str
    path: str
    answer: str

    @property
    def half(self) -> Half:
        """The half that it belongs to, whatever else is in the set."""
        return HALVES[hashlib.sha256(self.question.encode()).digest()[0] % 2]

    @property
    def shared(self) -> float:
        """Share of the question's terms, characters and pairs of them, that stand in the answer."""
        asked = set(index_terms(self.question))
        return len(asked & set(index_terms(self.answer))) / len(asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """The memory files of a workspace by path, as lines, and what is asked of them."""

    files: dict[str, tuple[str, ...]]
    pairs: tuple[Pair, ...]

    def half(self, half: Half) -> tuple[Pair, ...]:
        """What is asked in one half."""
        return tuple(pair for pair in self.pairs if pair.half == half)

    @property
    def lines(self) -> Iterator[tuple[str, str]]:
        """Path and text of every line that can answer."""
        for path, lines in self.files.items():
            yield from ((path, line.removeprefix("- ")) for line in lines if line and not line.startswith("#"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How many questions find their answer.

    Attributes:
        hit1: Share whose answer is first.
        hit5: Share whose answer is among the first five.
        missed: Those whose answer is not among the first five.
    """

    hit1: float
    hit5: float
    missed: tuple[Pair, ...]


def load(group: Group) -> Collection:
    """Read one of the two workspaces."""
    files: dict[str, list[list[str]]] = json.loads(_SET.read_text("utf-8"))[group]
    return Collection(
        files={path: tuple(line for line, *_ in entries) for path, entries in files.items()},
        pairs=tuple(
            Pair(question=question, path=path, answer=line.removeprefix("- "))
            for path, entries in files.items()
            for line, *questions in entries
            for question in questions
        ),
    )


def write_workspace(collection: Collection, folder: Path) -> None:
    """Write the memory files as a workspace has them."""
    for path, lines in collection.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("\n".join(lines) + "\n", "utf-8")


def open_index(folder: Path, embedder: Embedder | None) -> Index:
    """An index of a workspace, up to date."""
    index = Index(folder, embedder, today=lambda: TODAY)
    index.sync()
    return index


def score(index: Index, pairs: Sequence[Pair]) -> Score:
    """Ask an index."""

    def found(question: str) -> list[tuple[str, str]]:
        return [(hit.path, hit.passage.text) for hit in index.search(question, limit=max(FIRST)).hits]

    return _score(found, pairs)


def reference(collection: Collection, pairs: Sequence[Pair], size: int) -> Score:
    """Ask rank-bm25 over runs of so many characters; Latin words and numbers stay whole."""
    lines = list(collection.lines)
    bm25 = BM25Okapi([_grams(text, size) for _, text in lines])

    def found(question: str) -> list[tuple[str, str]]:
        scores = bm25.get_scores(_grams(question, size))
        return [lines[at] for at in sorted(range(len(lines)), key=lambda at: -scores[at])[: max(FIRST)]]

    return _score(found, pairs)


def _score(found: Callable[[str], list[tuple[str, str]]], pairs: Sequence[Pair]) -> Score:
    places = [_place(found(pair.question), pair) for pair in pairs]
    hit1, hit5 = (sum(place < first for place in places) / len(pairs) for first in FIRST)
    missed = tuple(pair for pair, place in zip(pairs, places, strict=True) if place >= max(FIRST))
    return Score(hit1=hit1, hit5=hit5, missed=missed)


def _place(found: list[tuple[str, str]], pair: Pair) -> int:
    answer = (pair.path, pair.answer)
    return found.index(answer) if answer in found else max(FIRST)


def _grams(text: str, size: int) -> list[str]:
    grams = list[str]()
    for run in _RUN.findall(text.lower()):
        whole = run.isascii() or len(run) < size
        grams += [run] if whole else run if size == 1 else [a + b for a, b in pairwise(run)]
    return grams


def main() -> None:
    """Run the measure and print one line of JSON per group, half and system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=GROUPS, nargs="+", default=list(GROUPS))
    parser.add_argument("--half", choices=HALVES, nargs="+", default=list(HALVES))
    parser.add_argument("--missed", type=int, default=0, help="show so many of the questions that a text search missed")
    arguments = parser.parse_args()
    embedders: dict[str, Embedder | None] = {
        "text": None,
        "hybrid, minilm": MiniLM(),
        "hybrid, multilingual-e5-small": multilingual_embedder(),
    }
    for group in arguments.group:
        collection = load(group)
        asked = {f"{group}, {half}": collection.half(half) for half in arguments.half}
        for system, embedder in embedders.items():
            with tempfile.TemporaryDirectory() as folder:
                write_workspace(collection, Path(folder))
                index = open_index(Path(folder), embedder)
                for part, pairs in asked.items():
                    scored = score(index, pairs)
                    _report(system, part, pairs, scored)
                    for pair in scored.missed[: arguments.missed] if embedder is None else ():
                        print(f"  {pair.question} -> {pair.answer}", file=sys.stderr)
                index.close()
        for size, name in ((2, "pairs of characters"), (1, "single characters")):
            for part, pairs in asked.items():
                _report(f"rank-bm25 over {name}", part, pairs, reference(collection, pairs, size))


def _report(system: str, part: str, pairs: Sequence[Pair], scored: Score) -> None:
    shares = {"hit@1": round(scored.hit1, 4), "hit@5": round(scored.hit5, 4)}
    print(json.dumps({"system": system, "asked": part, "questions": len(pairs), **shares}))


if __name__ == "__main__":
    main()

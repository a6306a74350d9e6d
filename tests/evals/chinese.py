"""Owns the Chinese measure: is the one line that answers a question among the first hits?

`python -m tests.evals.chinese [--half dev|held|all] [--missed 5]`

About six hundred lines of an agent's memory, in 30 dated files and MEMORY.md, and more than 500 questions in other
words than the line that answers each: Simplified for the most part, Traditional for a tenth, with names, numbers,
identifiers, dialogue and near doubles. All of it was written for this measure. One question in five has no word of
its answer (`Pair.common`): the rest, those that words can find, are counted apart as "hit@5 with a common word".
Ranking is tuned on the half "dev" alone; "held" says what that is worth. References in the same run: rank-bm25 over
bigrams and over single characters.
"""

from __future__ import annotations

import argparse
import datetime as dt
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

from indexer import Embedder, Index, MiniLM

Half = Literal["dev", "held", "all"]
HALVES: tuple[Half, ...] = ("dev", "held", "all")
# The day after the last file, from which "yesterday" and "last week" count.
TODAY = dt.date(2026, 11, 21)
FIRST = (1, 5)

_SET = Path(__file__).parent / "chinese_pairs.json"
_RUN = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A question and the line that answers it.

    Attributes:
        common: How many words they share: names, numbers, pairs of characters; none that only ask, such as 什么.
    """

    question: str
    path: str
    answer: str
    common: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """The memory files by path, as lines, and what is asked of them."""

    files: dict[str, list[str]]
    pairs: tuple[Pair, ...]

    def part(self, prefix: str) -> Collection:
        """The files whose paths begin so, and what is asked of them."""
        return Collection(
            files={path: lines for path, lines in self.files.items() if path.startswith(prefix)},
            pairs=tuple(pair for pair in self.pairs if pair.path.startswith(prefix)),
        )

    def half(self, half: Half) -> tuple[Pair, ...]:
        """Every other pair, or all; they stand in an order that knows nothing of what they say."""
        return {"dev": self.pairs[::2], "held": self.pairs[1::2], "all": self.pairs}[half]

    @property
    def lines(self) -> Iterator[tuple[str, str]]:
        """Path and text of every line that can answer."""
        for path, lines in self.files.items():
            yield from ((path, line[2:]) for line in lines if line.startswith("- "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How many questions find their answer.

    Attributes:
        hit1: Share whose answer is first.
        hit5: Share whose answer is among the first five.
        worded: The same of those that have a word in common with their answer.
        missed: Those whose answer is not among the first five.
    """

    hit1: float
    hit5: float
    worded: float
    missed: tuple[Pair, ...]


def load() -> Collection:
    """Read the set."""
    stored = json.loads(_SET.read_text("utf-8"))
    return Collection(files=stored["files"], pairs=tuple(Pair(**pair) for pair in stored["pairs"]))


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
    worded = 1 - sum(pair.common > 0 for pair in missed) / max(1, sum(pair.common > 0 for pair in pairs))
    return Score(hit1=hit1, hit5=hit5, worded=worded, missed=missed)


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
    """Run the measure and print one line of JSON per system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=HALVES, nargs="+", default=list(HALVES))
    parser.add_argument("--missed", type=int, default=0, help="show so many of the questions that a text search missed")
    arguments = parser.parse_args()
    collection = load()
    embedders: dict[str, Embedder | None] = {"text": None, "hybrid, minilm": MiniLM()}
    for system, embedder in embedders.items():
        with tempfile.TemporaryDirectory() as folder:
            write_workspace(collection, Path(folder))
            index = open_index(Path(folder), embedder)
            for half in arguments.half:
                scored = score(index, collection.half(half))
                _report(system, half, scored)
                for pair in scored.missed[: arguments.missed] if embedder is None else ():
                    print(f"  {pair.question} -> {pair.answer}", file=sys.stderr)
            index.close()
    for size, name in ((2, "bigrams"), (1, "single characters")):
        for half in arguments.half:
            _report(f"rank-bm25 over {name}", half, reference(collection, collection.half(half), size))


def _report(system: str, half: Half, scored: Score) -> None:
    shares = {"hit@1": scored.hit1, "hit@5": scored.hit5, "hit@5 with a common word": scored.worded}
    print(json.dumps({"system": system, "half": half, **{name: round(share, 4) for name, share in shares.items()}}))


if __name__ == "__main__":
    main()

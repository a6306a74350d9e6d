"""Random corpora for properties, with the terms of every passage beside them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from indexer.corpus import COLUMNS, Corpus, CorpusFile, Floats, Ints
from indexer.engine.bm25 import Posting, _scores

TERMS = "abcde"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One passage: what a naive implementation reads instead of columns."""

    file: int = 0
    chars: int = 10
    terms: str = ""
    opens: bool = False
    date: dt.date | None = None
    cues: int = 0
    label: int = 0


def corpus_of(rows: list[Row], *, paths: list[str] | None = None, names: dict[int, str] | None = None) -> Corpus:
    """A corpus of rows, whose files must be in order; keys are distinct and in no order."""
    keys = np.random.default_rng(len(rows)).permutation(len(rows) * 3)[: len(rows)] + 1
    columns: dict[str, list[int]] = {
        "key": keys.tolist(),
        "chars": [row.chars for row in rows],
        "length": [len(row.terms) for row in rows],
        "day": [row.date.toordinal() if row.date else 0 for row in rows],
        "marks": [row.cues for row in rows],
        "label": [row.label for row in rows],
        "greeted": [0] * len(rows),
        "opens_section": [int(row.opens) for row in rows],
        "start_line": list(range(1, len(rows) + 1)),
        "end_line": list(range(1, len(rows) + 1)),
    }
    table = np.array([columns[name] for name in COLUMNS], np.int64).T.reshape(len(rows), len(COLUMNS))
    numbers = np.array([row.file for row in rows], np.int64)
    files = tuple(
        CorpusFile(
            path=paths[number] if paths else f"memory/{number:03}.md", source="memory", table=table[numbers == number]
        )
        for number in sorted(set(numbers.tolist()))
    )
    return Corpus(revision=1, files=files, label_names=names or {})


def postings_of(rows: list[Row], question: str) -> list[Posting]:
    found = []
    for term in question:
        counts = np.array([row.terms.count(term) for row in rows], np.int64)
        if counts.any():
            at = np.flatnonzero(counts)
            found.append(Posting(term=term, rows=at, counts=counts[at]))
    return found


@st.composite
def rows(draw: st.DrawFn, *, max_size: int = 30) -> list[Row]:
    """Passages of a few files, in reading order."""
    made, file = list[Row](), 0
    for _ in range(draw(st.integers(1, max_size))):
        file += draw(st.sampled_from([0, 0, 0, 1]))
        made.append(
            Row(
                file=file,
                chars=draw(st.sampled_from([1, 60, 200, 324, 325, 326, 500, 649, 650, 651, 1000, 1200])),
                terms=draw(st.text(alphabet=TERMS + "xyz", min_size=1, max_size=12)),
                opens=draw(st.sampled_from([False, False, False, True])),
            )
        )
    first = made[0].file
    return [Row(file=row.file - first, chars=row.chars, terms=row.terms, opens=row.opens) for row in made]


def bm25(postings: list[Posting], corpus: Corpus, ranges: tuple[Ints, Ints]) -> Floats:
    """Scores of every row's range of rows, taken as one text."""
    return _scores(postings, corpus, (ranges, None))[0]

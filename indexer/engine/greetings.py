"""Who greets whom by which name, from the columns of passages: only in files in which exactly two speak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Greetings:
    """Passages that greet somebody, as columns of shape (m,).

    Attributes:
        rows: Their rows.
        speakers: Numbers of the labels of who greets.
        others: Those of the only other speaker of the file.
        names: Numbers of the names.
    """

    rows: Ints
    speakers: Ints
    others: Ints
    names: Ints

    def named(
        self, names: Mapping[int, str], standing: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[int, int, str]]:
        """Speaker, other and name of each, of the rows that stand."""
        chosen = slice(None) if standing is None else standing[self.rows]
        columns = self.speakers[chosen].tolist(), self.others[chosen].tolist(), self.names[chosen].tolist()
        for speaker, other, name in zip(*columns, strict=True):
            if name in names:
                yield speaker, other, names[name]


def find_greetings(starts: Ints, labels: NDArray[np.integer], greeted: NDArray[np.integer]) -> Greetings:
    """The greetings among some rows.

    Args:
        starts: First row of each file, and the number of rows.
        labels: Number of the label of each row; 0 for none.
        greeted: Number of the name that each row greets; 0 for none.
    """
    rows = np.flatnonzero((greeted > 0) & (labels > 0))
    others = _others(starts, labels, rows) if len(rows) else rows
    known = others > 0
    rows = rows[known]
    return Greetings(
        rows=rows,
        speakers=labels[rows].astype(np.int64),
        others=others[known],
        names=greeted[rows].astype(np.int64),
    )


def _others(starts: Ints, labels: NDArray[np.integer], rows: Ints) -> Ints:
    """The label of the only other speaker of the file of each row; 0 where there are more, or none."""
    spoken = np.flatnonzero(labels > 0)
    files = np.searchsorted(starts, spoken, "right") - 1
    base = int(labels.max()) + 1
    speakers = np.unique(files * base + labels[spoken])
    count = np.bincount(speakers // base, minlength=len(starts))
    total = np.bincount(speakers // base, weights=speakers % base, minlength=len(starts)).astype(np.int64)
    here = np.searchsorted(starts, rows, "right") - 1
    others: Ints = np.where(count[here] == 2, total[here] - labels[rows], 0)
    return others

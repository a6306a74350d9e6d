"""The values that pass between the parts of the scale benchmark: frozen, plain, written as JSON and read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from indexer.types import Vectors

Kind = Literal["3 words", "8 words", "8 with stop words", "common words"]
KINDS: tuple[Kind, ...] = ("3 words", "8 words", "8 with stop words", "common words")
Made = Literal["clustered", "minilm"]
Rows = NDArray[np.int64]
FIRST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, with its vector; `row` is the passage it was made from."""

    text: str
    kind: Kind
    row: int
    vector: Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A passage that was found: its row in the corpus, and its text as the system gave it."""

    row: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What it took to index a corpus.

    Attributes:
        disk_bytes: What lies on disk afterwards beyond what was there before; 0 for what lives in memory.
        peak_bytes: Most memory that was resident at once.
    """

    seconds: float
    disk_bytes: int
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a fresh process answered.

    Attributes:
        start_seconds: From the start of the process to its first answer, imports included.
        milliseconds: Of every search that was timed, in the order asked, one list for each kind of question.
        cpu_milliseconds: Processor time of one search, the mean of all.
        base_bytes: Resident memory before anything was opened, packages imported.
        resident_bytes: Resident memory after the timed searches.
        found: Rows found for each question, best first; those that were not asked for want of time are missing.
        nearest: Rows that the vectors alone find for each; empty where the system has none.
        filtered: Share of the ten nearest that are found among what a filter leaves, by how much that is.
        first_text: The text of the best answer to the first question.
    """

    start_seconds: float
    milliseconds: dict[Kind, list[float]]
    cpu_milliseconds: float
    base_bytes: int
    resident_bytes: int
    found: list[list[int]]
    nearest: list[list[int]]
    filtered: dict[str, float]
    first_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table: a system at a size. What could not be measured is None, and `note` says why.

    Attributes:
        does: "hybrid", "vectors" or "words".
        searches: How many were timed.
        kind_p50_ms: The median of each kind of question.
        recall: Share of the ten nearest passages among the ten that the vectors alone found.
        filtered: The same among what a filter leaves, by how much that is; against the exact search of the same index.
        found: Share of the questions whose own passage is among the ten that were found.
    """

    system: str
    title: str
    does: str
    passages: int
    vectors: Made
    build_seconds: float | None = None
    passages_per_second: float | None = None
    disk_bytes: int | None = None
    build_peak_bytes: int | None = None
    start_seconds: float | None = None
    searches: int | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    kind_p50_ms: dict[Kind, float] | None = None
    cpu_ms: float | None = None
    base_bytes: int | None = None
    resident_bytes: int | None = None
    recall: float | None = None
    filtered: dict[str, float] | None = None
    found: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole run: where it ran, with which versions, and its lines."""

    machine: str
    versions: dict[str, str]
    lines: tuple[Line, ...]

"""The tiers of the tests, and the record of their costs from which the tiers are made.

- smoke: files whose tests are all quick, and a round trip through each door. For every save.
- usual: everything but the heavy tests, and these too if hypothesis draws their inputs: with a quarter of the inputs.
- heavy: the heavy tests, with all inputs.
- all: every test, with all inputs.

`pytest` alone runs the usual tier; what is named by a file, a folder below `tests`, `-k` or `-m` is run whole.

`durations.json` has the costs in seconds of processor time, that of child processes included: they are much the same
on a machine that does other things besides. They are recorded again, for all tests or for the files that are named, by

    pytest -n auto --tier all --record-durations
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parent.parent
DURATIONS = ROOT / "tests" / "durations.json"
TIERS = ("smoke", "usual", "heavy", "all")
HEAVY_SECONDS = 1.5
SMOKE_SECONDS = 0.02
"""The most that a test of a file takes on average, for the file to be one of the smoke."""
SHARE_OF_INPUTS = 4
"""The usual tier draws one in so many inputs of a heavy test."""
ROUND_TRIPS = frozenset(
    {
        "tests/memory_service/api/test_routes.py::test_remember_search_and_context",
    }
)


def processor_seconds() -> float:
    """What this process and its children that have ended have used so far."""
    return time.process_time() + sum(os.times()[2:4])


def file_of(test: str) -> str:
    """The path of a test's file, from the root."""
    return test.partition("::")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Costs of tests: of each heavy one; of each file the number of its other tests, and their seconds together."""

    heavy: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path = DURATIONS) -> Self:
        """The recorded costs; no costs where none were recorded."""
        if not path.exists():
            return cls()
        tables = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            heavy=tables["heavy"], files={file: (tests, cost) for file, (tests, cost) in tables["files"].items()}
        )

    def write(self, path: Path = DURATIONS) -> None:
        """Write the costs, each on a line of its own, so that the difference of two records can be read."""
        tables = (f' "{name}": {{{_rows(table)}\n }}' for name, table in (("heavy", self.heavy), ("files", self.files)))
        path.write_text("{\n" + ",\n".join(tables) + "\n}\n", encoding="utf-8")

    def with_measured(self, seconds: Mapping[str, float]) -> Durations:
        """These costs, with those of the measured files in place of former ones and without files that are gone."""
        measured = {file_of(test) for test in seconds}
        light = defaultdict[str, list[float]](list)
        heavy = {test: cost for test, cost in self.heavy.items() if file_of(test) not in measured}
        for test, cost in seconds.items():
            if cost > HEAVY_SECONDS:
                heavy[test] = round(cost, 1)
            else:
                light[file_of(test)].append(cost)
        files = {**self.files, **{file: (len(light[file]), round(sum(light[file]), 2)) for file in measured}}
        return Durations(
            heavy={test: cost for test, cost in sorted(heavy.items()) if (ROOT / file_of(test)).exists()},
            files={file: costs for file, costs in sorted(files.items()) if (ROOT / file).exists()},
        )

    def files_of(self, tier: str) -> frozenset[str] | None:
        """The files in which a tier has tests; None where that may be any file."""
        if tier == "smoke":
            quick = {file for file, (tests, cost) in self.files.items() if tests and cost / tests <= SMOKE_SECONDS}
            return frozenset(quick | {file_of(test) for test in ROUND_TRIPS})
        return frozenset(map(file_of, self.heavy)) if tier == "heavy" else None

    def holds(self, tier: str, test: str, *, heavy: bool, drawn: bool) -> bool:
        """True if a tier has a test of its files; `drawn` is true if hypothesis draws the inputs."""
        if tier == "smoke":
            tests, cost = self.files.get(file_of(test), (0, 0.0))
            return test in ROUND_TRIPS or (not heavy and 0 < tests and cost <= SMOKE_SECONDS * tests)
        return {"usual": drawn or not heavy, "heavy": heavy}.get(tier, True)

    def expected(self, files: Iterable[str]) -> dict[str, float]:
        """Seconds that the tests of each file take together; an hour for a file that is new, which so comes first."""
        seconds = {file: self.files[file][1] if file in self.files else 3600.0 for file in files}
        for test, cost in self.heavy.items():
            if file_of(test) in seconds:
                seconds[file_of(test)] += cost
        return seconds


def _rows(table: Mapping[str, object]) -> str:
    return ",".join(f"\n  {json.dumps(key, ensure_ascii=False)}: {json.dumps(cost)}" for key, cost in table.items())

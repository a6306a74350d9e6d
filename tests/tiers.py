"""The tiers of the tests, and the record of their costs from which the tiers are made.

- smoke: files whose tests are all quick, and a round trip through each door. For every save.
- usual: everything but the heavy tests, and these too if hypothesis draws their inputs: with an eighth of the inputs.
- heavy: the heavy tests, with a third of the inputs where hypothesis draws them.
- all: every test, with all inputs. Before a release, and after a change of what a property is about.

`pytest` alone runs the usual tier; what is named by a file, a folder below `tests`, `-k` or `-m` is run whole.

`durations.json` has the costs in seconds of processor time, that of child processes included: they are much the same
on a machine that does other things besides. They are recorded again, for all tests or for the files that are named, by

    pytest -n auto --tier all --record-durations
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parent.parent
DURATIONS = ROOT / "tests" / "durations.json"
TIERS = ("smoke", "usual", "heavy", "all")
# Five minutes of two processors that are slower by half or more than those of the record, less what it takes to collect
# the tests in three workers and to draw a part of the inputs of heavy ones; and one minute of them for the smoke.
USUAL_SECONDS = 250.0
SMOKE_SECONDS = 14.0
SHARES_OF_INPUTS = {"usual": 8, "heavy": 3}
"""A tier draws one in so many inputs of a heavy test; the others draw all."""
ROUND_TRIPS = frozenset(
    f"tests/memory_service/{name}"
    for name in (
        "api/test_routes.py::test_a_memory_is_on_disk_and_found_when_it_is_answered",
        "cli/test_memories.py::test_an_entry_stands_in_the_file_of_today_and_is_found",
        "client/test_round_trip.py::test_a_memory_goes_all_the_way_round",
        "gateway/test_chat.py::test_a_talk_is_one_session_and_goes_on_as_it_came",
        "mcp/test_hosts.py::test_a_memory_lives_over_http",
    )
)
"""One through each door, whatever its parameters."""


def processor_seconds() -> float:
    """What this process and its children that have ended have used so far."""
    return time.process_time() + sum(os.times()[2:4])


def function_of(test: str) -> str:
    """The name of a test without its parameters."""
    return test.partition("[")[0]


def file_of(test: str) -> str:
    """The path of a test's file, from the root."""
    return test.partition("::")[0]


@dataclass(frozen=True, kw_only=True)
class Durations:
    """Costs of tests: of each heavy one; of each file the number of its other tests, and their seconds together.

    Heavy is what costs more than the limit; without the heavy tests all others fit into the usual tier. A function that
    is heavy with all of its parameters stands for them, with the seconds that they cost together.
    """

    limit: float = math.inf
    heavy: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path = DURATIONS) -> Self:
        """The recorded costs; no costs where none were recorded."""
        if not path.exists():
            return cls()
        tables = json.loads(path.read_text(encoding="utf-8"))
        files = {file: (tests, cost) for file, (tests, cost) in tables["files"].items()}
        return cls(limit=tables["limit"], heavy=tables["heavy"], files=files)

    def write(self, path: Path = DURATIONS) -> None:
        """Write the costs, each on a line of its own, so that the difference of two records can be read."""
        tables = (f' "{name}": {{{_rows(table)}\n }}' for name, table in (("heavy", self.heavy), ("files", self.files)))
        path.write_text(f'{{\n "limit": {self.limit},\n' + ",\n".join(tables) + "\n}\n", encoding="utf-8")

    def with_measured(self, seconds: Mapping[str, float], *, all_of_them: bool) -> Durations:
        """These costs, with those of the measured files in place of former ones and without files that are gone.

        Args:
            seconds: What tests cost, by their names.
            all_of_them: True if these are all tests that there are: the limit is found anew.
        """
        limit = _limit(seconds.values()) if all_of_them else self.limit
        measured = {file_of(test) for test in seconds}
        light = defaultdict[str, list[float]](list)
        quick = {function_of(test) for test, cost in seconds.items() if cost <= limit}
        heavy = {test: cost for test, cost in self.heavy.items() if file_of(test) not in measured}
        for test, cost in seconds.items():
            if cost > limit:
                name = test if function_of(test) in quick else function_of(test)
                heavy[name] = round(heavy.get(name, 0.0) + cost, 2)
            else:
                light[file_of(test)].append(cost)
        files = {**self.files, **{file: (len(light[file]), round(sum(light[file]), 2)) for file in measured}}
        return Durations(
            limit=limit,
            heavy={test: cost for test, cost in sorted(heavy.items()) if (ROOT / file_of(test)).exists()},
            files={file: costs for file, costs in sorted(files.items()) if (ROOT / file).exists()},
        )

    def is_heavy(self, test: str) -> bool:
        """True if a test stands among the heavy ones, by itself or with all of its function."""
        return test in self.heavy or function_of(test) in self.heavy

    def files_of(self, tier: str) -> frozenset[str] | None:
        """The files in which a tier has tests; None where that may be any file."""
        if tier == "smoke":
            return self.quick | frozenset(map(file_of, ROUND_TRIPS))
        return frozenset(map(file_of, self.heavy)) if tier == "heavy" else None

    def holds(self, tier: str, test: str, *, heavy: bool, drawn: bool) -> bool:
        """True if a tier has a test of its files; `drawn` is true if hypothesis draws the inputs."""
        if tier == "smoke":
            return function_of(test) in ROUND_TRIPS or (file_of(test) in self.quick and not heavy)
        return {"usual": drawn or not heavy, "heavy": heavy}.get(tier, True)

    @cached_property
    def quick(self) -> frozenset[str]:
        """The files with the quickest tests, as many as fit into the smoke."""
        quick = sorted((file for file, (tests, _) in self.files.items() if tests), key=self._mean)
        together = accumulate(self.files[file][1] for file in quick)
        return frozenset(file for file, cost in zip(quick, together, strict=True) if cost <= SMOKE_SECONDS)

    def _mean(self, file: str) -> float:
        tests, cost = self.files[file]
        return cost / tests

    def expected(self, files: Iterable[str]) -> dict[str, float]:
        """Seconds that the tests of each file take together; an hour for a file that is new, which so comes first."""
        seconds = {file: self.files[file][1] if file in self.files else 3600.0 for file in files}
        for test, cost in self.heavy.items():
            if file_of(test) in seconds:
                seconds[file_of(test)] += cost
        return seconds


def _limit(seconds: Iterable[float]) -> float:
    """The cost above which a test is heavy, so that the others fit into the usual tier."""
    costs = sorted(seconds)
    light = [cost for cost, together in zip(costs, accumulate(costs), strict=True) if together <= USUAL_SECONDS]
    return math.inf if len(light) == len(costs) else round(max(light, default=0.0), 2)


def _rows(table: Mapping[str, object]) -> str:
    return ",".join(f"\n  {json.dumps(key, ensure_ascii=False)}: {json.dumps(cost)}" for key, cost in table.items())

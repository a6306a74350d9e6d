"""Every test is in a tier that `.ci/run` runs, and the usual tier fits into its time."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.tiers import ROOT, ROUND_TRIPS, SMOKE_SECONDS, TIERS, USUAL_SECONDS, Durations, file_of

MOST_NEW_FILES = 15
HERE, OTHER = "tests/test_tiers.py", "tests/test_house.py"


def test_the_costliest_tests_are_heavy_so_that_the_others_fit() -> None:
    costs = {f"{HERE}::test_{number}": 1.0 + number for number in range(100)}
    durations = Durations().with_measured(costs, all_of_them=True)
    (tests, together) = durations.files[HERE]
    assert together <= USUAL_SECONDS and tests + len(durations.heavy) == 100
    assert min(durations.heavy.values()) > durations.limit and together + min(durations.heavy.values()) > USUAL_SECONDS


def test_a_function_that_is_heavy_with_all_parameters_stands_for_them() -> None:
    costs = {f"{HERE}::test_a[1]": 3.0, f"{HERE}::test_a[2]": 4.0, f"{HERE}::test_b[1]": 3.0, f"{HERE}::test_b[2]": 1.0}
    durations = Durations(limit=2.0).with_measured(costs, all_of_them=False)
    assert durations.heavy == {f"{HERE}::test_a": 7.0, f"{HERE}::test_b[1]": 3.0}
    assert [test for test in costs if durations.is_heavy(test)] == [*costs][:3]


def test_where_all_fit_none_is_heavy() -> None:
    durations = Durations().with_measured({f"{HERE}::test_a": 9.0, f"{OTHER}::test_b": 0.1}, all_of_them=True)
    assert durations.heavy == {}


def test_a_record_of_a_few_files_replaces_theirs_alone(tmp_path: Path) -> None:
    before = Durations(
        limit=2.0,
        heavy={f"{HERE}::test_gone": 9.0, f"{OTHER}::test_b[部署]": 4.0, "tests/test_gone.py::test_c": 5.0},
        files={HERE: (3, 1.0), OTHER: (7, 2.5), "tests/test_gone.py": (1, 1.0)},
    )
    after = before.with_measured({f"{HERE}::test_a": 3.0, f"{HERE}::test_b": 0.25}, all_of_them=False)
    assert after == Durations(
        limit=2.0,
        heavy={f"{HERE}::test_a": 3.0, f"{OTHER}::test_b[部署]": 4.0},
        files={HERE: (1, 0.25), OTHER: (7, 2.5)},
    )
    after.write(tmp_path / "durations.json")
    assert Durations.read(tmp_path / "durations.json") == after


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("drawn", [False, True])
def test_each_test_runs_in_one_tier_of_the_two_and_in_both_if_its_inputs_are_drawn(heavy: bool, drawn: bool) -> None:
    usual, rest = (
        Durations().holds(tier, f"{HERE}::test_a", heavy=heavy, drawn=heavy and drawn) for tier in ("usual", "heavy")
    )
    # Inputs are drawn in part in the usual tier: then the other, which draws more of them, has the test too.
    assert (usual, rest) == (not heavy or drawn, heavy)


def test_the_smoke_is_the_quickest_files_that_fit() -> None:
    recorded = Durations.read()
    quick = recorded.quick
    assert quick and sum(recorded.files[file][1] for file in quick) <= SMOKE_SECONDS
    assert recorded.files_of("smoke") == quick | {file_of(test) for test in ROUND_TRIPS}


@pytest.mark.parametrize("test", sorted(ROUND_TRIPS))
def test_a_round_trip_of_the_smoke_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_worker_knows_the_tier(request: pytest.FixtureRequest) -> None:
    assert request.config.option.tier in TIERS, "a worker that does not know it runs all tests"


def test_what_new_tests_cost_is_recorded() -> None:
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    # Evaluations are in no tier; an adapter's tests are skipped where its framework is not installed.
    new = {file for file in there - {*Durations.read().files} if file.split("/")[1] not in ("evals", "integrations")}
    assert len(new) <= MOST_NEW_FILES, (
        f"What {len(new)} files cost is not known, so that all of their tests run in the usual tier. Record it: "
        f"pytest -n auto --record-durations {' '.join(sorted(new))}"
    )


def test_no_test_limits_seconds() -> None:
    clock = r"time\.(monotonic|perf_counter|process_time|thread_time|time)\(\)"
    limited = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if not {"benchmarks", "evals"} & set(path.parts)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(rf"assert .*{clock} - \w+ <=? [\d.]+", line)
    ]
    assert not limited, (
        f"A machine that others use takes longer, see tests/growth.py for ratios: {limited}. To show that a call does "
        "not wait, let what it would wait for take longer than a test may."
    )

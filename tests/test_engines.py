"""The record of the tests that a run on databases leaves out: it is made right, and names tests that are there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.engine_run import CHANGES, EXCUSED, READS, EngineRecord, Measured, excuse
from tests.engines import HOMES, OPENINGS
from tests.tiers import ROOT, file_of, function_of

HERE, OTHER = "tests/test_engines.py", "tests/test_tiers.py"
RECORD = EngineRecord.read()


def test_a_record_is_that_of_the_last_run_of_each_file(tmp_path: Path) -> None:
    before = EngineRecord(
        {READS: frozenset({f"{HERE}::test_a", f"{OTHER}::test_b", "tests/test_gone.py::test_c"})},
        frozenset({OTHER, "tests/test_gone.py"}),
    )
    after = before.with_measured(
        {
            f"{HERE}::test_a": Measured(has_storage=True),
            f"{HERE}::test_d": Measured(has_storage=True, about_files=CHANGES),
            f"{HERE}::test_e[部署]": Measured(about_files=READS),
            f"{HERE}::test_e[b]": Measured(),
            f"{HERE}::test_f[a]": Measured(about_files=CHANGES),
            f"{HERE}::test_f[b]": Measured(about_files=READS),
        }
    )
    assert after == EngineRecord(
        {
            READS: frozenset({f"{OTHER}::test_b", f"{HERE}::test_e[部署]"}),
            CHANGES: frozenset({f"{HERE}::test_d", f"{HERE}::test_f"}),
        },
        frozenset({OTHER}),
    )
    assert [after.kind(f"{HERE}::{name}") for name in ("test_a", "test_d", "test_e[b]", "test_f[x]")] == [
        "", CHANGES, "", CHANGES,
    ]  # fmt: skip
    left_out = after.with_measured({f"{HERE}::test_g": Measured()}, partial=[HERE])
    assert left_out == after, "what was not run is recorded as before, and may open a storage"
    after.write(tmp_path / "engines.json")
    assert EngineRecord.read(tmp_path / "engines.json") == after


def test_what_is_left_out_is_there_and_is_left_out_once() -> None:
    recorded = frozenset[str]().union(*RECORD.about_files.values())
    assert recorded and sum(map(len, RECORD.about_files.values())) == len(recorded)
    assert [name for name in recorded | RECORD.no_storage if excuse(name)] == []
    assert {file_of(name) for name in recorded} & RECORD.no_storage == set()
    names = {*map(function_of, recorded), *(name for names in EXCUSED.values() for name in names)}
    missing = {name for name in names if not _is_test(name)}
    assert missing | {file for file in RECORD.no_storage if not (ROOT / file).is_file()} == set()


def _is_test(name: str) -> bool:
    """True for a function, a file or a folder of tests."""
    file, _, function = name.partition("::")
    if not function:
        return (ROOT / file).exists()
    nodes = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    return function in {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_a_home_is_a_database_where_homes_are(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    from memory_service.storage.engines import open_storage
    from tests.serving import settings

    before = OPENINGS[0]
    storage = open_storage(settings(tmp_path / "home"))
    storage.close()
    is_database = request.config.option.engine == "postgres"
    assert OPENINGS[0] == before + 1
    assert (str(tmp_path / "home") in HOMES) == is_database
    assert storage.place.startswith("postgresql://") == is_database or not is_database

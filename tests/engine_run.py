"""What a run of `pytest --engine postgres` leaves out, and the record of that, `tests/engines.json`.

- `EXCUSED`: what cannot run on a database, by its reason: beginnings of names.
- about files: tests that fail on a database, and that themselves read or change files of their home. Each is recorded;
  what fails and is not recorded is a failure, whatever it looks at.
- no storage: files of tests that open no storage, for which one run is enough. If one comes to open a storage, a run on
  files says that it has to be recorded.

It is recorded for all tests, or for the files that are named, by

    pytest -n 0 --engine postgres --record-engine

which runs what is recorded as about files, too, prints what of it passes now, and takes it out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pytest

from tests.engines import HOMES, OPENINGS, drop_homes_below, homes_below, homes_in_databases, install
from tests.postgres import NO_SERVER, is_installed
from tests.tiers import ROOT, file_of, function_of

ENGINES = ROOT / "tests" / "engines.json"
READS, CHANGES = "reads files of its home", "changes files of its home"
KINDS = (CHANGES, READS)
_PROPERTY = "engine"
_TESTS = str(Path(__file__).parent) + os.sep

_SERVICE, _DOCTOR = "tests/memory_service/service/", "tests/memory_service/health/test_doctor.py::"
EXCUSED: dict[str, tuple[str, ...]] = {
    "the contract suites have both engines, or are about the files of one": (
        "tests/indexer/",
        "tests/memory_service/storage/",
    ),
    "it chooses its storage itself, see tests/storages.py": ("tests/campaigns/", "tests/properties/"),
    "it is about the folder of a home, or folders beside it, which a database has not": (
        "tests/memory_service/sync/",
        "tests/memory_service/test_extra_paths.py",
        "tests/memory_service/test_faults.py::test_a_full_disk_takes_no_prompt_and_no_block_away",
        "tests/memory_service/test_faults.py::test_a_home_that_takes_nothing_is_not_ready",
        "tests/memory_service/test_home.py",
        "tests/memory_service/test_old_home.py",
        "tests/memory_service/test_path_forms.py",
        "tests/memory_service/test_privacy.py",
        "tests/memory_service/memories/test_file_history.py::test_a_home_in_files_keeps_no_history",
        "tests/memory_service/web/test_history.py::test_the_page_of_a_home_in_files_says_that_there_is_no_history",
        "tests/memory_service/cli/test_workspaces.py::test_a_second_home_is_told_with_the_command_that_joins_them",
        f"{_DOCTOR}test_a_home_that_cannot_even_be_looked_at",
        f"{_SERVICE}test_facade.py::test_a_home_that_is_a_file_is_told",
        f"{_SERVICE}test_facade.py::test_closing_gives_back_all_files",
    ),
    "it tells changes of files, or kills at each call of the file system": (
        "tests/memory_service/runtime/test_watching.py",
        f"{_SERVICE}test_remembering_once.py",
    ),
    "it opens a file of the index or of records": (
        "tests/memory_service/cli/test_index.py::test_an_index_of_a_newer_version_is_refused_by_name",
        "tests/memory_service/cli/test_index.py::test_an_index_of_an_older_version_is_made_anew_by_a_search",
        "tests/memory_service/cli/test_index.py::test_status_tells_an_index_of_another_version_from_none",
        "tests/memory_service/api/test_just_said.py::test_what_stays_somewhere_is_not_called_gone",
        f"{_DOCTOR}test_a_rebuild_that_runs_is_no_fault",
        f"{_DOCTOR}test_a_rebuild_that_was_interrupted",
        f"{_DOCTOR}test_the_doctor_asks_sqlite_vec",
        f"{_SERVICE}test_memory_use_cases.py::test_what_is_forgotten_stands_in_no_answer_that_is_kept",
    ),
}


def excuse(name: str) -> str:
    """The reason why a test cannot run on a database; empty if it can."""
    return next((reason for reason, beginnings in EXCUSED.items() if name.startswith(beginnings)), "")


@dataclass(frozen=True)
class Measured:
    """What one run of a test on a database showed.

    Attributes:
        has_storage: True if it opened a storage, or started a program that may have.
        about_files: How it is about files, if it failed.
    """

    has_storage: bool = False
    about_files: str = ""


@dataclass(frozen=True)
class EngineRecord:
    """The recorded tests about files by kind, a function for all of its parameters; and the files without a storage."""

    about_files: Mapping[str, frozenset[str]] = field(default_factory=dict)
    no_storage: frozenset[str] = frozenset()

    @classmethod
    def read(cls, path: Path = ENGINES) -> Self:
        """The record; an empty one where there is none."""
        if not path.exists():
            return cls()
        tables = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            {kind: _names(files) for kind, files in tables["about files"].items()}, frozenset(tables["no storage"])
        )

    def write(self, path: Path = ENGINES) -> None:
        """Write it, each file of tests on lines of its own, so that the difference of two records can be read."""
        tables = {
            "about files": {kind: _by_file(names) for kind, names in sorted(self.about_files.items()) if names},
            "no storage": sorted(self.no_storage),
        }
        path.write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def kind(self, test: str) -> str:
        """How a test is about files; empty if it is not recorded."""
        return self._kinds.get(test) or self._kinds.get(function_of(test), "")

    def with_measured(self, measured: Mapping[str, Measured], partial: Collection[str] = ()) -> EngineRecord:
        """This record, with what was measured in place of the former of the same files, and without what is gone.

        Args:
            measured: What each test showed.
            partial: The files of which other tests were left out: what is recorded of those stays.
        """
        files, functions = {file_of(test) for test in measured}, set(map(function_of, measured))
        others = {function_of(test) for test, seen in measured.items() if not seen.about_files}
        kinds = {
            test: kind
            for test, kind in self._kinds.items()
            if file_of(test) not in files or (file_of(test) in partial and function_of(test) not in functions)
        }
        for test, seen in measured.items():
            if seen.about_files:
                name = test if function_of(test) in others else function_of(test)
                kinds[name] = CHANGES if kinds.get(name) == CHANGES else seen.about_files
        with_storage = {file_of(test) for test, seen in measured.items() if seen.has_storage}
        return EngineRecord(
            {kind: frozenset(test for test in kinds if kinds[test] == kind and _is_there(test)) for kind in KINDS},
            frozenset(filter(_is_there, (self.no_storage - with_storage) | files.difference(partial, with_storage))),
        )

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return {test: kind for kind, tests in self.about_files.items() for test in tests}


def _names(files: Mapping[str, Iterable[str]]) -> frozenset[str]:
    return frozenset(f"{file}::{name}" for file, names in files.items() for name in names)


def _by_file(names: Iterable[str]) -> dict[str, list[str]]:
    files = dict[str, list[str]]()
    for name in sorted(names):
        files.setdefault(file_of(name), []).append(name.partition("::")[2])
    return files


def _is_there(test: str) -> bool:
    return (ROOT / file_of(test)).exists() and not excuse(test)


class FilesOfHomes:
    """Files of homes that a test itself opens, lists or changes, not what it tests."""

    _READS = frozenset({"open", "os.listdir", "os.scandir", "os.walk", "pathlib.Path.glob", "pathlib.Path.rglob"})
    _CHANGES = frozenset(
        {
            "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.chmod", "os.truncate", "os.utime",
            "shutil.rmtree", "shutil.copyfile", "shutil.copytree",
        }
    )  # fmt: skip
    _EVENTS = _READS | _CHANGES
    _OURS = (os.sep + "memory_service" + os.sep, os.sep + "indexer" + os.sep)
    _WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

    def __init__(self) -> None:
        self.programs = 0
        self._paths = set[tuple[str, str]]()
        sys.addaudithook(self._audit)

    def begin(self) -> None:
        """Forget those of the test before."""
        self._paths.clear()
        self.programs = 0

    def kind(self, folder: Path | None) -> str:
        """How the test has used the folder of a home; empty if it has not. `folder` is its temporary one."""
        homes = {*HOMES, *(homes_below(folder).values() if folder else ())}
        homes.update([os.path.realpath(folder / "home")] if folder else [])
        kinds = {
            kind
            for path, kind in self._paths
            if any(f"{os.path.realpath(path)}{os.sep}".startswith(home + os.sep) for home in homes)
        }
        return CHANGES if CHANGES in kinds else min(kinds, default="")

    def _audit(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            self.programs += 1
        if event not in self._EVENTS:
            return
        paths = [
            each
            for each in (given[:1] if event == "open" else given[:2])
            if isinstance(each, str | bytes | os.PathLike)
        ]
        frame = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(_TESTS):
                is_change = event in self._CHANGES or (event == "open" and given[2] & self._WRITES)
                self._paths.update((os.fsdecode(path), CHANGES if is_change else READS) for path in paths)
                return
            if any(part in name for part in self._OURS):
                return
            frame = frame.f_back  # type: ignore[assignment]


class EngineRun:
    """The plugin of a run on databases."""

    def __init__(self, config: pytest.Config) -> None:
        self.is_recorded: bool = config.option.record_engine
        self.record = EngineRecord.read()
        self.measured, self.partial = dict[str, Measured](), set[str]()
        self.files = FilesOfHomes()
        if self.is_recorded and config.getoption("numprocesses", None):
            raise pytest.UsageError("--record-engine runs in one process: -n 0")
        self._begun, self._fixtures = 0, set[str]()
        if not hasattr(config, "workerinput"):
            if not is_installed():
                raise pytest.UsageError(NO_SERVER)
            homes = ExitStack()
            homes.enter_context(homes_in_databases())
            config.add_cleanup(homes.close)
        install()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """A file of which no test runs is not even read."""
        name = collection_path.relative_to(ROOT).as_posix()
        if collection_path.is_dir():
            return bool(excuse(f"{name}/")) or None
        return bool(excuse(name)) or (name in self.record.no_storage and not self.is_recorded) or None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if reason := excuse(item.nodeid) or ("" if self.is_recorded else self.record.kind(item.nodeid)):
                item.add_marker(pytest.mark.skip(reason=reason))

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.partial.update(file_of(item.nodeid) for item in items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._begun = OPENINGS[0]
        self.files.begin()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """A storage that a fixture opens for many tests is one of all of them."""
        before = OPENINGS[0]
        result = yield
        if OPENINGS[0] > before and fixturedef.scope != "function":
            self._fixtures.add(f"{fixturedef.baseid}::{fixturedef.argname}")
        return result

    @pytest.fixture(autouse=True)
    def no_home_stays(self, request: pytest.FixtureRequest) -> Iterator[None]:
        """The databases of a test's homes go with it."""
        yield
        if self._may_have_storage and (folder := _folder_of(request.node)):
            drop_homes_below(folder)

    def _shares_storage(self, item: pytest.Item) -> bool:
        definitions: Any = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009
        return any(f"{each.baseid}::{each.argname}" in self._fixtures for found in definitions for each in found)

    @property
    def _may_have_storage(self) -> bool:
        return OPENINGS[0] > self._begun or self.files.programs > 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        if report.failed and (kind := self.files.kind(_folder_of(item))):
            if self.is_recorded:
                report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1], kind)
                report.user_properties.append((_PROPERTY, kind))
            else:
                report.sections.append(("engine", f"This test {kind}: see tests/engine_run.py."))
        if call.when == "teardown" and (self._may_have_storage or self._shares_storage(item)):
            report.user_properties.append((_PROPERTY, ""))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seen = self.measured.get(report.nodeid, Measured())
        for name, kind in report.user_properties:
            if name == _PROPERTY:
                seen = Measured(seen.has_storage or not kind, seen.about_files or str(kind))
        self.measured[report.nodeid] = seen

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        # What was broken off says nothing of the tests that were to follow.
        if self.is_recorded and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            EngineRecord.read().with_measured(self.measured, self.partial).write()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.is_recorded:
            now = self.record.with_measured(self.measured, self.partial)
            before = {test for test in self.measured if self.record.kind(test)}
            for name in sorted({function_of(test) for test in before if not now.kind(test)}):
                terminalreporter.write_line(f"not about files any more: {name}")
            terminalreporter.write_line(f"{sum(map(len, now.about_files.values()))} tests are recorded as about files")


class StorageCheck:
    """The plugin of a run on files, which fails a test that opens a storage where its file is recorded to open none."""

    def __init__(self) -> None:
        self.record = EngineRecord.read()
        self._begun = 0
        install()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._begun = OPENINGS[0]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        if call.when == "teardown" and OPENINGS[0] > self._begun and file_of(item.nodeid) in self.record.no_storage:
            report.outcome = "failed"
            report.longrepr = f"It opens a storage: pytest --engine postgres --record-engine {file_of(item.nodeid)}"
        return report


def _folder_of(item: pytest.Item) -> Path | None:
    """The temporary folder of a test."""
    folder: Path | None = getattr(item, "funcargs", {}).get("tmp_path")
    return folder

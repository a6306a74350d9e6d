"""One way for all tests: which of them run, how hypothesis drives them, and what is measured of them."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from indexer.language.ornaments import FAILURES, ReaderFailures
from tests.engine_run import EngineRun, StorageCheck
from tests.postgres import empty_database as empty_database
from tests.postgres import migrated_database as migrated_database
from tests.postgres import postgres_databases as postgres_databases
from tests.postgres import shared_database as shared_database
from tests.tiers import ROOT, SHARES_OF_INPUTS, TIERS, Durations, file_of, processor_seconds

# How long an input takes says nothing on a machine that others use.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


@pytest.fixture(autouse=True)
def no_reader_fails(request: pytest.FixtureRequest) -> Iterator[None]:
    """What reads meaning into texts may fail in silence for users, not in a test that is not about it."""
    before = FAILURES.counts()
    yield
    if request.node.get_closest_marker("failing_readers") is None:
        assert FAILURES.counts() == before, "a reader of meaning failed: see the log of this test"
    else:
        # For the process, as for those who ask it next, nothing has failed.
        ReaderFailures.__init__(FAILURES)


NO_LITELLM = pytest.mark.skip(reason='litellm is not there: pip install "memory-service[llm]"')
DURATIONS = Durations.read()
BEGUN = pytest.StashKey[float]()
COST = "processor_seconds"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers", "which tests run, see tests/tiers.py")
    group.addoption("--tier", choices=TIERS, help="usual, if no test is named; else all of those that are named")
    group.addoption(
        "--engine", choices=("files", "postgres"), default="files", help="what homes are, see tests/engine_run.py"
    )
    group.addoption("--record-engine", action="store_true", help="write what is about files to tests/engines.json")
    group.addoption("--record-durations", action="store_true", help="write what the tests cost to tests/durations.json")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(EngineRun(config) if config.option.engine == "postgres" else StorageCheck())
    if importlib.util.find_spec("litellm") is not None:
        # It leaves sockets of refused calls to the collector; where it is not installed, one that is left is ours.
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    if hasattr(config, "workerinput"):
        config.option.tier = config.workerinput["tier"]
    else:
        paths = {Path(config.invocation_params.dir, name.partition("::")[0]).resolve() for name in config.args}
        named = config.option.keyword or config.option.markexpr or paths - {ROOT, ROOT / "tests"}
        config.option.tier = config.option.tier or ("all" if named else "usual")
        if config.option.record_durations:
            config.pluginmanager.register(Recorder(all_of_them=config.option.tier == "all" and not named))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker is given the arguments of the command alone: which tier they mean is found out once."""
    node.workerinput["tier"] = node.config.option.tier


def pytest_xdist_auto_num_workers() -> int | None:
    """Three workers for two processors: half of the time a test waits for a disk, a timer or a server."""
    return None if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else ((os.cpu_count() or 1) * 3 + 1) // 2


def pytest_collection(session: pytest.Session) -> None:
    """Compile, in a fresh checkout, each file in one worker: each begins with other files than the others do."""
    # Nothing of what is collected goes before the end.
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    new = [file for file in sorted(Path(ROOT, "tests").rglob("test_*.py")) if not _is_compiled(file)]
    begin = int(worker["workerid"].removeprefix("gw")) * len(new) // worker["workercount"]
    for file in new[begin:] + new[:begin]:
        if not _is_compiled(file) and not pytest_ignore_collect(file, session.config):
            # What is wrong with one, and what it warns of, the collection says.
            with suppress(Exception, pytest.skip.Exception), warnings.catch_warnings(action="error"):
                importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Let the collector look at what tests make alone."""
    gc.freeze()
    gc.enable()


def _is_compiled(file: Path) -> bool:
    return any((file.parent / "__pycache__").glob(f"{file.stem}.{sys.implementation.cache_tag}-pytest-*.pyc"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file in which the tier has no test is not even read."""
    files = DURATIONS.files_of(config.option.tier)
    if files is None or not collection_path.name.startswith("test_"):
        return None
    return collection_path.relative_to(ROOT).as_posix() not in files or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("litellm") is None:
        for item in items:
            if item.get_closest_marker("litellm"):
                item.add_marker(NO_LITELLM)
    choose(config, items)
    if hasattr(config, "workerinput"):
        # What takes longest begins first: no worker is left with a long file at the end.
        expected = DURATIONS.expected({file_of(item.nodeid) for item in items})
        items.sort(key=lambda item: -expected[file_of(item.nodeid)])


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of the tier, with as many inputs as it draws."""
    tier = config.option.tier
    heavy = {
        _function(item) for item in items if DURATIONS.is_heavy(item.nodeid) and is_hypothesis_test(_function(item))
    }
    left = list[pytest.Item]()
    for item in items:
        function = _function(item)
        is_heavy = DURATIONS.is_heavy(item.nodeid) or function in heavy
        if not DURATIONS.holds(tier, item.nodeid, heavy=is_heavy, drawn=function in heavy):
            left.append(item)
    config.hook.pytest_deselected(items=left)
    left_out = set(left)
    items[:] = [item for item in items if item not in left_out]
    # What hypothesis draws is drawn whole on files: on a database it is as many as in the usual tier.
    if (share := SHARES_OF_INPUTS.get("usual" if config.option.engine == "postgres" else tier)) is not None:
        for function in heavy:
            drawn = function._hypothesis_internal_use_settings
            fewer = max(drawn.max_examples // share, 1)
            function._hypothesis_internal_use_settings = settings(drawn, max_examples=fewer)


def _function(item: pytest.Item) -> Any:
    """The function of a test, the same for all its parameters."""
    function = getattr(item, "obj", item)
    return getattr(function, "__func__", function)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[BEGUN] = processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if call.when == "teardown" and BEGUN in item.stash:
        report.user_properties.append((COST, processor_seconds() - item.stash[BEGUN]))
    return report


class Recorder:
    """What all workers report of the costs, written when they have ended."""

    def __init__(self, *, all_of_them: bool) -> None:
        self.all_of_them = all_of_them
        self.seconds = dict[str, float]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, cost in report.user_properties:
            if name == COST and isinstance(cost, float):
                self.seconds[report.nodeid] = cost

    def pytest_sessionfinish(self) -> None:
        DURATIONS.with_measured(self.seconds, all_of_them=self.all_of_them).write()

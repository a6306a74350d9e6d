"""Engines are found by name, on demand; an unknown name and one that cannot be loaded are told apart."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_service import engines
from memory_service.engines import (
    EngineInfo,
    EnginePlace,
    GuardedEngine,
    check_engine,
    engine_names,
    load_engine,
    register,
    unregister,
)
from memory_service.errors import InvalidRequest, UpstreamFailed
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import number_message


@pytest.fixture
def place(tmp_path: Path) -> EnginePlace:
    return EnginePlace(workspace="default", folder=tmp_path / "engines")


@pytest.fixture
def registered(place: EnginePlace) -> Iterator[str]:
    register("自制", lambda given: load_engine("full", given))
    yield "自制"
    unregister("自制")


def test_an_engine_comes_from_an_entry_point(place: EnginePlace) -> None:
    engine = load_engine("sliding-window", place)
    assert (engine.info.id, engine.info.version, engine.info.owns_compaction) == ("sliding-window", "1.0", True)
    assert not place.folder.exists()


def test_a_name_is_checked_without_loading_anything() -> None:
    check_engine("default")
    check_engine("gone")
    check_engine("sliding-window")
    assert "window_engines" not in sys.modules


def test_an_engine_may_be_registered_in_process(place: EnginePlace, registered: str) -> None:
    check_engine(registered)
    assert load_engine(registered, place).info.owns_compaction is False
    assert registered in engine_names() and engine_names()[0] == "default"
    unregister(registered)
    with pytest.raises(InvalidRequest):
        check_engine(registered)


def test_what_is_registered_comes_before_what_is_installed(place: EnginePlace) -> None:
    register("sliding-window", lambda given: load_engine("full", given))
    try:
        assert hasattr(load_engine("sliding-window", place), "bootstrap")
    finally:
        unregister("sliding-window")


def test_engines_that_inherit_from_the_former_protocols_go_on_working() -> None:
    ingested: list[tuple[str, Message]] = []
    bases = (engines.Bootstrapping, engines.TurnEnding, engines.BatchIngesting)
    own: dict[str, Any] = {
        "info": EngineInfo(id="inheriting", name="Inheriting"),
        "ingest": lambda self, session_id, message: ingested.append((session_id, message)),
    }
    engine: Any = type("Inheriting", bases, own)()
    history = [
        number_message({"role": "user", "content": "浇水"}, 4),
        number_message({"role": "assistant", "content": "好"}, 5),
    ]
    GuardedEngine("inheriting", lambda: engine).hear("support-42", history)
    assert ingested == [("support-42", each.message) for each in history]
    assert not hasattr(engines, "Nothing")


@pytest.mark.parametrize("name", ["", "default"])
def test_the_services_own_name_is_taken(name: str) -> None:
    with pytest.raises(InvalidRequest, match="another name"):
        register(name, lambda place: load_engine("full", place))


@pytest.mark.parametrize("name", ["windwo", "窗口", ""])
def test_an_unknown_name_says_which_are_known(place: EnginePlace, name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is unknown.*default.*sliding-window"):
        load_engine(name, place)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gone", "ModuleNotFoundError"),
        ("unmakable", "PermissionError"),
        ("no-engine", "it has no ingest"),
    ],
)
def test_one_that_cannot_be_loaded_is_installed_and_says_why(place: EnginePlace, name: str, why: str) -> None:
    with pytest.raises(UpstreamFailed, match=f"is installed and cannot be used.*{why}") as failed:
        load_engine(name, place)
    assert "消息的正文" not in str(failed.value)


def test_an_engine_has_to_say_who_it_is(place: EnginePlace) -> None:
    class Nameless:
        info = "me"

        def ingest(self) -> None: ...

        assemble = compact = ingest

    register("nameless", lambda place: Nameless())  # type: ignore[arg-type, return-value]  # as it may be written
    try:
        with pytest.raises(UpstreamFailed, match="no EngineInfo"):
            load_engine("nameless", place)
    finally:
        unregister("nameless")


def test_importing_the_seam_loads_no_engine(tmp_path: Path) -> None:
    code = "import sys, memory_service.engines; print([n for n in sys.modules if 'window' in n or 'readme' in n])"
    path = str(tmp_path / "site-packages")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['memory_service.llm.windows']" or done.stdout.strip() == "[]"

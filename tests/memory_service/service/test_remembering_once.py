"""A request with a key whose process was killed, at each of its steps, and that is sent again."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path

import pytest

from memory_service.config import Settings
from memory_service.schemas.entries import StoredMemory
from memory_service.service import MemoryService
from tests.kills import killed_at
from tests.properties.erased import W, opened

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")

TEXT, KEY = "Ferns need shade. 蕨类喜阴。", "once"


def _remember(service: MemoryService) -> StoredMemory:
    return service.remember(W, TEXT, idempotency_key=KEY)


def _attempt(home: Path) -> None:
    _remember(opened(home).__enter__())


def _noted_days(home: Path) -> list[str]:
    """The days that the text is noted on, once for each time."""
    files = sorted((home / W / "memory").glob("*.md"))
    return [file.stem for file in files for _ in range(file.read_text("utf-8").count(TEXT))]


@pytest.mark.parametrize("midnight", [False, True], ids=["at once", "after midnight"])
def test_it_is_noted_once_and_recognised_wherever_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, midnight: bool
) -> None:
    template = tmp_path / "template"
    with opened(template) as service:
        service.remember(W, "Cacti need sun.", idempotency_key="other")
        today = service.settings.now().date()
    shutil.copytree(template, whole := tmp_path / "whole")
    is_done, steps = killed_at(whole, 0, lambda: _attempt(whole))
    assert is_done and steps > 10
    outcomes, now = set[tuple[bool, bool]](), Settings.now
    for last in range(1, steps + 1):
        shutil.copytree(template, home := tmp_path / f"home{last}")
        is_done, _ = killed_at(home, last, lambda home=home: _attempt(home))  # type: ignore[misc]
        was_noted = bool(_noted_days(home))
        with monkeypatch.context() as patch, opened(home) as service:
            if midnight:
                patch.setattr(Settings, "now", lambda settings: now(settings) + dt.timedelta(days=1))
            again = _remember(service)
            assert (again.replayed, again.duplicate) == (was_noted or is_done, False), f"step {last} of {steps}"
            days = _noted_days(home)
            assert len(days) == 1 and again.path == f"memory/{days[0]}.md"
            assert not was_noted or days == [str(today)]
            assert _remember(service).replayed and len(_noted_days(home)) == 1
            assert service.entry(W, again.memory_id).text == TEXT
        outcomes.add((was_noted, is_done))
        shutil.rmtree(home)
    assert {(False, False), (True, False)} <= outcomes


def test_what_stood_there_before_is_a_duplicate_to_the_second_attempt_too(tmp_path: Path) -> None:
    with opened(tmp_path) as service:
        first = service.remember(W, TEXT)
    _, steps = killed_at(tmp_path / "elsewhere", 0, lambda: _attempt(tmp_path / "elsewhere"))
    killed_at(tmp_path, steps // 2, lambda: _attempt(tmp_path))
    with opened(tmp_path) as service:
        again = _remember(service)
        assert again.duplicate and again.memory_id == first.memory_id
    assert len(_noted_days(tmp_path)) == 1


def test_a_second_attempt_tells_that_the_index_lacks_what_the_first_one_noted(tmp_path: Path) -> None:
    with opened(tmp_path) as service:
        service.remember(W, "Cacti need sun.")
    shutil.copytree(tmp_path, whole := tmp_path.with_name("whole"))
    _, steps = killed_at(whole, 0, lambda: _attempt(whole))
    is_done, _ = killed_at(tmp_path, steps - 1, lambda: _attempt(tmp_path))
    assert _noted_days(tmp_path) and not is_done
    for path in (tmp_path / W).glob("index.sqlite*"):
        path.unlink()
    (tmp_path / W / "index.sqlite").write_bytes(os.urandom(50_000))
    with opened(tmp_path) as service:
        again = _remember(service)
        assert again.replayed and again.degraded[0].startswith("index: ")
    assert len(_noted_days(tmp_path)) == 1

"""What is answered is on the disk, in an order that no crash and no editor can turn into a loss."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.disk import NotDurable, check_durable, recorded
from tests.properties.durable import CHECKS, OPERATIONS, check_operation

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders are synced by POSIX alone")


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_answered_is_on_the_disk(name: str, tmp_path: Path) -> None:
    check_operation(name, tmp_path)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_no_crash_and_no_editor_loses_anything(check: Callable[[Path], None], tmp_path: Path) -> None:
    check(tmp_path)


def _unsynced(file: Path) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"x")
    os.close(descriptor)


def _shown_before_it_is_synced(file: Path) -> None:
    _unsynced(file.with_suffix(".tmp"))
    os.replace(file.with_suffix(".tmp"), file)
    _folder_synced(file)


def _folder_synced(file: Path) -> None:
    descriptor = os.open(file.parent, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize(
    "act",
    [
        _unsynced,
        _shown_before_it_is_synced,
        lambda file: file.mkdir(),
        lambda file: file.write_text("x"),
        lambda file: (file.parent / "there.md").unlink(),
    ],
)
def test_the_rules_can_be_broken(act: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("x")
    with recorded(tmp_path) as tape:
        act(tmp_path / "a.md")
    with pytest.raises(NotDurable):
        check_durable(tape)

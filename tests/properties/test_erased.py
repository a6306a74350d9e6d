"""What was erased is not found again, whoever was at work on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.properties.erased import ON_EVERY_STORAGE, ON_FILES
from tests.storages import STORAGES, StorageCase


def _name(check: Callable[..., None]) -> str:
    return check.__name__.removeprefix("check_")


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("check", ON_EVERY_STORAGE, ids=_name)
def test_erased(check: Callable[[Path, StorageCase], None], storage: str, tmp_path: Path) -> None:
    check(tmp_path, STORAGES[storage])


@pytest.mark.parametrize("check", ON_FILES, ids=_name)
def test_erased_from_files(check: Callable[[Path], None], tmp_path: Path) -> None:
    check(tmp_path)

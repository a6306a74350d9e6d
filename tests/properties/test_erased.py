"""What was erased is not found again, whoever was at work on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.properties.erased import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_erased(check: Callable[[Path], None], tmp_path: Path) -> None:
    check(tmp_path)

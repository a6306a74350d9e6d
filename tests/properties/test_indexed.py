"""The properties of `indexed` hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.properties.indexed import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_indexed(check: Callable[[Path], None], tmp_path: Path) -> None:
    check(tmp_path)

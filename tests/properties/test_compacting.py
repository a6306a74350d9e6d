"""The properties of `compacting` hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.properties import compacting


@pytest.mark.parametrize("check", compacting.CHECKS)
def test_it_holds(check: Callable[[], None]) -> None:
    check()

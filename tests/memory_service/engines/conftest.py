from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory_service.engines.plugins import installed


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path) -> Iterator[None]:
    """Engines of somebody else, installed as a package is."""
    with installed(tmp_path / "site-packages"):
        yield

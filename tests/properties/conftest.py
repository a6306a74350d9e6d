from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.properties.homes import Homes


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homes]:
    """Where sessions under test live."""
    made = Homes(tmp_path_factory.mktemp("properties"))
    yield made
    made.close()

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.properties.homes import Homes
from tests.storages import LOGS


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homes]:
    """Where sessions under test live."""
    made = Homes(tmp_path_factory.mktemp("properties"), LOGS["files"]())
    yield made
    made.close()


@pytest.fixture(scope="session", params=LOGS)
def homes_of_each(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homes]:
    """Where sessions under test live, in each store of logs."""
    made = Homes(tmp_path_factory.mktemp("properties"), LOGS[request.param]())
    yield made
    made.close()

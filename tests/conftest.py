"""One way for all tests: how hypothesis drives them, and which of them want a package that may not be there."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import HealthCheck, settings

# How long an input takes says nothing on a machine that others use.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

NO_LITELLM = pytest.mark.skip(reason='litellm is not there: pip install "memory-service[llm]"')


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("litellm") is None:
        for item in items:
            if item.get_closest_marker("litellm"):
                item.add_marker(NO_LITELLM)

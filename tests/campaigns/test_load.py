"""The campaign in small: enough to see a heap for each thread, or a client that costs what it does not read."""

from __future__ import annotations

import sys

import pytest

from tests.campaigns import load, unread

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


def test_mixed_load_stays_small() -> None:
    found = load.measure(240, 8, {"MEMORY_SERVICE_EMBEDDING_MODEL": "none"})
    assert found["refused"] == []
    assert int(str(found["after_mb"])) - int(str(found["before_mb"])) < 60, found


def test_who_never_reads_costs_little() -> None:
    found = unread.measure(12, 8)
    assert int(str(found["each_kb"])) <= 4096, found

"""The campaign in small: each kind of request is taken, and none needs many times its size."""

from __future__ import annotations

import sys

import pytest

from tests.campaigns import largest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


@pytest.mark.parametrize("kind", ["append 5 long messages", "stateless, 5 long messages"])
def test_the_largest_of_a_kind_is_taken(kind: str) -> None:
    found = largest.measure(kind, 256 << 10, {"MEMORY_SERVICE_EMBEDDING_MODEL": "none"})
    assert found["status"] == 200, found
    assert int(str(found["peak_mb"])) - int(str(found["before_mb"])) < 150, found

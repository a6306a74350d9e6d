"""The campaign in small: every answer is a good one or a refusal that says when to come back, and no kind starves."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.campaigns import overload

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processor time is read from /proc")


def test_a_burst_is_answered_or_refused_and_the_health_is_seen_meanwhile() -> None:
    with overload.server({"MEMORY_SERVICE_EMBEDDING_MODEL": "none"}) as (url, pid):
        tally = asyncio.run(overload.burst(url, 80))
        found = tally.summary(pid, 0.0, 0.0)
        assert found["odd"] == 0, found
        answers = found["answers"]
        assert answers["context 200"] + answers.get("context 503", 0) == 80
        assert answers["ready 200"] == answers["live 200"] == answers["metrics 200"] == answers["status 200"] > 0
        # A look at the health waits for nobody: it takes a part of what most of the burst takes.
        times = found["seconds_of"]
        assert times["live"]["p50"] < times["context"]["max"], times
        mixed = asyncio.run(overload.mixed(url, 12, 1.0)).summary(pid, 0.0, 0.0)
    assert mixed["odd"] == 0, mixed
    assert {kind for kind in ("search", "append", "context", "gateway") if mixed["answers"].get(f"{kind} 200")} == {
        "search", "append", "context", "gateway",
    }, mixed  # fmt: skip

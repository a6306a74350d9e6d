"""Many streams at once, and one that is much longer than what is kept of it, through a server of its own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from memory_service.testing import ScriptedServer
from tests.benchmarks.gateway import gateway_process, script, streamed_at_once, streamed_through

_STREAMS, _MEGABYTES = 50, 12


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_fifty_streams_are_whole_and_kept_and_a_long_one_takes_no_memory(tmp_path: Path) -> None:
    with (
        ScriptedServer(*script(_STREAMS, _MEGABYTES)) as upstream,
        gateway_process(tmp_path, upstream.url, {"MEMORY_SERVICE_EMBEDDING_MODEL": "none"}) as (url, pid),
    ):
        found = asyncio.run(streamed_at_once(url, _STREAMS))
        assert (found["broken"], found["not_kept"]) == (0, 0), found
        through = streamed_through(url, pid, _MEGABYTES)
        assert through["streamed_mb"] >= _MEGABYTES and through["grown_mb"] < _MEGABYTES, through

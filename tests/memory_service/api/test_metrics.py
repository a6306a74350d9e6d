"""What `/metrics` tells of compactions, flushes and the models that they call, over a real socket."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service.errors import UpstreamFailed
from memory_service.service import MemoryService
from memory_service.service.models import Models
from memory_service.testing import ScriptedModel
from tests.memory_service.api.talking import begin, ok, say, talk
from tests.memory_service.service.rooms import summary
from tests.serving import RunningServer, W, serving, settings

PLACE = f"{W}/sessions/counted"


def number(server: RunningServer, name: str) -> float:
    """The number behind a name with its labels; 0 where it is not told."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", server.http.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_requests_to_models_are_counted_by_purpose_and_outcome(tmp_path: Path) -> None:
    limit = UpstreamFailed("Try later.", kind="auth")
    summaries = ScriptedModel(*[summary("We decided to deploy on Tuesday. 服务正常。")] * 9)
    models = Models(summaries=summaries, memories=ScriptedModel(*[limit] * 9))
    service = MemoryService(settings(tmp_path, context_window=64_000), embedder=HashEmbedder(), models=models)
    with serving(service) as server:
        begin(server, "counted")
        say(server, talk(40), PLACE)
        made = ok(server.http.post(f"{PLACE}/compact", json={"force": True}))
        flushed = ok(server.http.post(f"{PLACE}/flush", json={}))
        assert made["applied"] and made["calls"] > 0 and flushed["method"] != "model"
        calls = "memory_service_model_calls_total"
        assert number(server, f'{calls}{{outcome="answered",purpose="summary"}}') == made["calls"]
        assert number(server, f'{calls}{{outcome="failed",purpose="summary"}}') == 0
        assert number(server, f'{calls}{{outcome="answered",purpose="memories"}}') == 0
        assert number(server, f'{calls}{{outcome="failed",purpose="memories"}}') >= 1
        ratio = made["tokens_after"] / made["tokens_before"]
        assert number(server, "memory_service_compaction_ratio_sum") == pytest.approx(ratio, abs=0.01)
        assert number(server, "memory_service_compaction_ratio_count") == 1

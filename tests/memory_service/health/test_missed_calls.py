"""What the gateway could not do is told once for each conversation, in every process."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from indexer.testing import HashEmbedder
from memory_service.health.missed_calls import GATEWAY_LOG, MissedCalls
from memory_service.service import MemoryService
from tests.memory_service.gateway.talking import gateway, user
from tests.serving import settings


def test_a_conversation_has_one_line_for_each_part(tmp_path: Path) -> None:
    missed = MissedCalls(tmp_path)
    now = dt.datetime.now(dt.UTC)
    assert missed.note("shop", "chat-1", ["session: it is too long", "vector: no model"]) == ["session: it is too long"]
    assert missed.note("shop", "chat-1", ["session: it is too long still"]) == []
    assert missed.note("shop", "chat-1", ["answer: no JSON"]) == ["answer: no JSON"]
    missed.note("shop", "chat-2", ["session: a\nb"])
    lines = (tmp_path / GATEWAY_LOG).read_text().splitlines()
    assert len(lines) == 3 and lines[-1].endswith("shop chat-2 session: a b")
    assert (tmp_path / GATEWAY_LOG).stat().st_mode & 0o777 == 0o600
    assert [each.conversation for each in MissedCalls(tmp_path).recent("shop", now)] == ["chat-1", "chat-1", "chat-2"]
    assert MissedCalls(tmp_path).recent("garden", now) == []
    assert MissedCalls(tmp_path).recent("shop", now + dt.timedelta(days=2)) == []


def test_a_damaged_log_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / GATEWAY_LOG).write_bytes(b"\xff\xfe nothing\n\n2026 x\n")
    assert MissedCalls(tmp_path).recent("shop", dt.datetime.now(dt.UTC)) == []


def test_status_and_doctor_tell_of_it(tmp_path: Path) -> None:
    with gateway(tmp_path, "Yes.", "Yes.", "Yes.") as gate:
        gate.remember("The hedge is cut on Mondays.")
        body = {"model": "m", "input": [user("Hi")], "background": True}
        for _ in range(2):
            answer = gate.server.http.post("/v1/responses", json=body)
            assert "background" in answer.headers["x-memory-degraded"]
        [told] = [each for each in gate.server.http.get("/v1/workspaces/default/status").json()["degraded"]
                  if each.startswith("gateway:")]  # fmt: skip
        assert "1 conversation went on in part without memory" in told
        metrics = gate.server.http.get("/metrics").text
        assert 'memory_service_degraded_answers_total{part="session"} 2.0' in metrics
    service = MemoryService(settings(tmp_path), embedder=HashEmbedder())
    try:
        [check] = [each for each in service.examine("default") if each.name == "gateway"]
        assert not check.ok and "background" in str(check)
    finally:
        service.close()

"""What `/metrics` tells of prompts, compactions, flushes and the models that they call, over a real socket."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.errors import UpstreamFailed
from memory_service.runtime.models import Models
from memory_service.service import MemoryService
from memory_service.testing import ScriptedModel
from tests.memory_service.api.talking import begin, ok, say, talk
from tests.memory_service.gateway.talking import gateway, said, user
from tests.memory_service.rooms import summary
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


PROMPT_TOKENS, CACHED_TOKENS = "memory_service_prompt_tokens_total", "memory_service_prompt_cached_tokens_total"


def test_tokens_of_prompts_and_of_their_cached_beginnings_add_up(tmp_path: Path) -> None:
    service = MemoryService(settings(tmp_path, context_window=16_000), embedder=HashEmbedder())
    with serving(service) as server:
        begin(server, "counted")
        asked, made = {"system_prompt": "You help. 你来帮忙。"}, list[dict[str, Any]]()
        for turn in range(3):
            say(server, talk(1), PLACE)
            key = {"Idempotency-Key": f"prompt-{turn}"}
            made.append(ok(server.http.post(f"{PLACE}/context", json=asked, headers=key)))
            # The same answer once more is no other prompt.
            ok(server.http.post(f"{PLACE}/context", json=asked, headers=key))
        own = {"messages": talk(2), "system_prompt": "You help."}
        made.append(ok(server.http.post(f"{W}/sessions/own/conversation", json=own)))
        assert made[0]["cached_prefix_tokens"] == 0 < made[1]["cached_prefix_tokens"] < made[2]["cached_prefix_tokens"]
        assert number(server, PROMPT_TOKENS) == sum(each["tokens"]["total"] for each in made)
        assert number(server, CACHED_TOKENS) == sum(each["cached_prefix_tokens"] for each in made)


def test_prompts_of_the_gateway_are_counted(tmp_path: Path) -> None:
    with gateway(tmp_path, "Hello.", "On Tuesdays.") as gate:
        client, total = gate.openai(), 0
        for messages in ([user("Hi. 你好。")], [user("Hi. 你好。"), said("Hello."), user("When do we deploy?")]):
            given = client.chat.completions.with_raw_response.create(model="m", messages=messages)
            total += int(given.headers["x-memory-tokens"].partition("total=")[2].partition(";")[0])
        assert number(gate.server, PROMPT_TOKENS) == total
        assert 0 < number(gate.server, CACHED_TOKENS) < total

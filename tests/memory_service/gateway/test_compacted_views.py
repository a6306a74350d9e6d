"""Views that were compacted, as they go to a model that sees nothing but its prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.memory_service.gateway.talking import gateway, said, user

WORK = "Shelf {} holds pots of clay, and the label of each is printed in ink. " * 40


def talk_of(turns: int) -> list[dict[str, Any]]:
    return [
        each for n in range(turns) for each in (user(WORK.replace("{}", str(n))), said(f"Noted for shelf {n}. " * 40))
    ]


def test_a_system_message_in_the_middle_keeps_its_fields(tmp_path: Path) -> None:
    effort = {"role": "system", "content": "Be brief from here on.", "output_config": {"effort": "low"}}
    with gateway(tmp_path, "Yes.", protocol="anthropic", context_window=16_000) as gate:
        talk = [*talk_of(20), user("Go on."), effort, said("I do."), user("Now print the label.")]
        body = {"model": "m", "max_tokens": 9, "messages": talk}
        answer = gate.server.http.post("/v1/messages", json=body)
        assert answer.headers["x-memory-compaction"], answer.headers
        assert effort in gate.sent()["messages"]
        assert "[System message]" not in json.dumps(gate.sent()["messages"])

"""Streamed tool loops through litellm with memory: what a strict provider refuses, and which sessions are nobody's.

`python -m tests.campaigns.tool_loops [--turns 500] [--talks 4] [--provider openai] [--json]`

Clients talk at the same time, each in a session of its own. A turn is a question, one or two calls of tools, at times
two at once, and an answer; all is streamed, and what comes next is sent at once, or a little later: litellm tells of a
stream's answer by a worker, before or after that. The window is small, so that views are compacted on the way. The
provider refuses each list that OpenAI or Anthropic would. In the end each log has what its client has, each once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from indexer.testing import HashEmbedder, Request
from memory_service.service import MemoryService
from memory_service.testing import Failure, Reply, ScriptedServer, ScriptedStep
from tests.serving import settings
from tests.wire import Provider, problems

WORKSPACE = "loops"
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("order", "stock")
]
# Of litellm, by what it calls the provider's protocol.
MODELS: Mapping[Provider, str] = {"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-sonnet-4-5"}
_WINDOW_TOKENS = 8_000
_PAUSES = (0, 0, 0, 0.002, 0.02)
_LAST_WAIT_SECONDS = 20.0


class StrictProvider(ScriptedServer):
    """A provider that refuses what it should, and else calls tools or answers as the last message of a list asks.

    Attributes:
        refused: What was wrong with each list that was refused.
    """

    def __init__(self, provider: Provider) -> None:
        super().__init__()
        self.refused: list[str] = []
        self._provider = provider
        self._calls = 0
        self._counting = threading.Lock()

    def step(self, request: Request) -> ScriptedStep:
        """The answer to a list."""
        messages = request.body["messages"]
        if found := problems(messages, self._provider, ready=True):
            self.refused.append(found[0])
            return Failure(status=400, body={"error": {"type": "invalid_request_error", "message": found[0]}})
        with self._counting:
            self._calls += 1
            number = self._calls
        wanted = _calls_wanted(messages)
        if not wanted:
            return f"All of it is on its way, says call {number}."
        first, *more = (
            (str(TOOLS[at % 2]["function"]["name"]), json.dumps({"at": number, "part": at}))  # type: ignore[index]
            for at in range(wanted)
        )
        return Reply(text="Let me see.", tool_call=first[0], arguments=first[1], more_calls=tuple(more))


def _calls_wanted(messages: list[Any]) -> int:
    """How many tools the model calls next: as the last result says, or the last question; none once that is done."""
    text = json.dumps(messages[-1], ensure_ascii=False)
    return next((count for count in (2, 1) if f"[calls {count}]" in text), 0)


@dataclass(slots=True)
class Findings:
    """What became of all talks."""

    calls: int = 0
    errors: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    compactions: int = 0
    lost: list[str] = field(default_factory=list)


async def _streamed(litellm: Any, server: ScriptedServer, provider: Provider, said: list[Any], talk: str) -> Any:
    """The answer to a list, put together from its chunks as clients do."""
    address = server.url if provider == "openai" else server.url.removesuffix("/v1")
    stream = await litellm.acompletion(
        MODELS[provider], messages=said, tools=TOOLS, stream=True, api_base=address, api_key="any", max_retries=0,
        litellm_session_id=talk,
    )  # fmt: skip
    chunks = [chunk async for chunk in stream]
    answer = litellm.stream_chunk_builder(chunks).choices[0].message.model_dump(exclude_none=True)
    return {key: answer[key] for key in ("role", "content", "tool_calls") if key in answer}


async def _talk(
    litellm: Any, server: ScriptedServer, provider: Provider, talk: str, turns: int, found: Findings
) -> list[Any]:
    """One client from its first turn to its last; gives all that it said and heard."""
    dice = random.Random(talk)
    said: list[Any] = []
    for turn in range(turns):
        rounds = dice.choice((1, 1, 2))
        said.append({"role": "user", "content": f"Where is part {turn} of {talk}? [calls {dice.choice((1, 1, 2))}]"})
        for _ in range(rounds + 2):
            found.calls += 1
            try:
                answer = await _streamed(litellm, server, provider, said, talk)
            except Exception as error:  # whatever litellm makes of a refusal
                found.errors.append(f"{type(error).__name__}: {str(error)[:200]}")
                return said
            said.append(answer)
            if not answer.get("tool_calls"):
                break
            rounds -= 1
            more = "[calls 1] " if rounds > 0 else ""
            for call in answer["tool_calls"]:
                content = f"{more}{talk} {turn}: " + "on its way, signed and sealed; " * dice.choice((2, 20, 80))
                said.append({"role": "tool", "tool_call_id": call["id"], "content": content})
            await asyncio.sleep(dice.choice(_PAUSES))
    return said


async def _talks(litellm: Any, service: MemoryService, server: ScriptedServer, provider: Provider, talks: int,
                 turns: int) -> Findings:  # fmt: skip
    found = Findings()
    names = [f"talk-{number}" for number in range(talks)]
    said = await asyncio.gather(*(_talk(litellm, server, provider, name, turns, found) for name in names))
    for name, messages in zip(names, said, strict=True):
        if (missing := await _missing(service, name, messages)) is not None:
            found.lost.append(f"{name}: {missing}")
    found.sessions = [each.session_id for each in service.list_sessions(WORKSPACE).sessions]
    found.compactions = sum(len(service.compactions(WORKSPACE, name).compactions) for name in names)
    return found


async def _missing(service: MemoryService, talk: str, said: list[Any]) -> str | None:
    """Where a log differs from what its client has; None if it does not, once litellm's worker has told all."""
    wanted = [_told(each) for each in said]
    end = asyncio.get_running_loop().time() + _LAST_WAIT_SECONDS
    while True:
        log = [_told(each) for each in service.messages(WORKSPACE, talk, "log").messages]
        if log == wanted:
            return None
        if asyncio.get_running_loop().time() > end:
            at = next((at for at, (one, other) in enumerate(zip(log, wanted, strict=False)) if one != other), -1)
            return f"{len(log)} messages of {len(wanted)}, different from {at} on"
        await asyncio.sleep(0.05)


def _told(message: Mapping[str, Any]) -> tuple[object, ...]:
    calls = tuple(call["id"] for call in message.get("tool_calls") or ())
    return message["role"], message.get("content") or "", calls, message.get("tool_call_id")


def measure(home: Path, turns: int, talks: int, provider: Provider) -> Findings:
    """Play so many turns, shared by so many talks."""
    from indexer.providers.litellm_package import litellm_package

    litellm = litellm_package()
    from memory_service.integrations.litellm import MemoryLogger  # it imports litellm too

    litellm.logging_callback_manager._reset_all_callbacks()
    with MemoryService(settings(home), embedder=HashEmbedder()) as service, StrictProvider(provider) as server:
        litellm.callbacks.append(MemoryLogger(service, WORKSPACE, context_window=_WINDOW_TOKENS))

        async def played() -> Findings:
            try:
                return await _talks(litellm, service, server, provider, talks, turns // talks)
            finally:
                await litellm.close_litellm_async_clients()
                litellm.in_memory_llm_clients_cache.flush_cache()

        found = asyncio.run(played())
        found.errors += server.refused[len(found.errors) :]
        return found


def main() -> None:
    """Play all and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--talks", type=int, default=4)
    parser.add_argument("--provider", choices=sorted(MODELS), default="openai")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        found = measure(Path(home), given.turns, given.talks, given.provider)
    figures = {
        "turns": given.turns, "calls": found.calls, "provider errors": len(found.errors),
        "stray branches": len(found.sessions) - given.talks, "logs that differ": len(found.lost),
        "compactions": found.compactions,
    }  # fmt: skip
    if given.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:18} {value}")
        for line in (*found.errors[:5], *found.lost):
            print(line)


if __name__ == "__main__":
    main()

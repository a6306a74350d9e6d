"""Conversations of agents replayed through the gateway, with the providers' own clients, under a small window.

`python -m tests.campaigns.replay [--compactions 1000] [--locomo locomo10.json] [--window 5000] [--protocols chat]
[--storage files]`

Each talk goes through each protocol, every third answer as a stream, until so many compactions were made. The upstream
refuses a call without its result, or a result without its call, as providers do. A talk must be one session with all
its answers in order. Then each compaction is undone, in a copy of the session that ends with it: the view has to be
the one of a copy that ends before it, byte for byte. One line of JSON for each protocol; it fails if anything did.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import anthropic
import openai

from indexer.testing import Request
from memory_service.service import MemoryService
from memory_service.testing import Failure, ScriptedServer, ScriptedStep
from tests import wire
from tests.benchmarks.gateway import gateway_process
from tests.campaigns import talks
from tests.campaigns.talks import Message, Talk
from tests.serving import settings
from tests.storages import FILES, STORAGES, StorageCase

_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
_TOOLS = ("read_file", "run_shell")
_SESSION = "talk"
_ROUNDS = 14
_STREAMED = 3


@dataclass(slots=True)
class Found:
    """What came of the talks of one protocol."""

    talks: int = 0
    turns: int = 0
    failed: list[str] = field(default_factory=list)
    degraded: Counter[str] = field(default_factory=Counter)
    compactions: int = 0
    undone: int = 0
    differ: list[str] = field(default_factory=list)


class StrictServer(ScriptedServer):
    """A provider that knows the answers of all talks, and refuses orphans.

    Attributes:
        talks: By name.
        orphans: What it refused.
    """

    def __init__(self) -> None:
        super().__init__()
        self.talks: dict[str, Talk] = {}
        self.orphans: list[str] = []

    def step(self, request: Request) -> ScriptedStep:
        """The recorded answer; or the error of what is wrong with the prompt."""
        self.requests.clear()
        name, _, number = request.headers["x-replay"].rpartition("/")
        if wrong := _problems(request):
            self.orphans += [f"{name}/{number}: {problem}" for problem in wrong]
            return Failure(status=400, body={"error": {"message": wrong[0], "type": "invalid_request_error"}})
        return self.talks[name].steps[int(number)].answer


def _problems(request: Request) -> list[str]:
    if request.path.endswith("/responses"):
        return item_problems(request.body["input"])
    provider: wire.Provider = "anthropic" if request.path.endswith("/messages") else "openai"
    return wire.problems(request.body["messages"], provider, ready=True)


def item_problems(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Source: OpenAI API, errors "No tool output found for function call" and "No tool call found for …"."""
    wrong, waiting = list[str](), dict[str, int]()
    for at, item in enumerate(items):
        if item.get("type") == "function_call":
            waiting[item["call_id"]] = at
        elif item.get("type") == "function_call_output" and waiting.pop(item["call_id"], None) is None:
            wrong.append(f"{at}: no tool call found for {item['call_id']}")
    return [*wrong, *(f"{at}: no tool output found for {call_id}" for call_id, at in waiting.items())]


class Player(ABC):
    """A client of one protocol with its own history.

    Attributes:
        compactions: Ids that the gateway told.
        degraded: What it told to be missing.
    """

    def __init__(self, stack: ExitStack, url: str, workspace: str) -> None:
        self.compactions = set[str]()
        self.degraded = list[str]()
        self._history: list[Any] = []
        self._headers = {"X-Memory-Workspace": workspace, "X-Memory-Session": _SESSION}
        self._begin(stack, url)

    @abstractmethod
    def _begin(self, stack: ExitStack, url: str) -> None: ...

    @abstractmethod
    def said(self, said: Sequence[Message]) -> None:
        """Take what is said next into the history."""

    @abstractmethod
    def answer(self, mark: str, *, stream: bool) -> str:
        """Ask the model, take its answer into the history, and give its text."""

    def _asking(self, mark: str) -> dict[str, Any]:
        return {"model": "scripted", "extra_headers": {"X-Replay": mark}}

    def _note(self, response: Any) -> None:
        if compaction := response.headers.get("x-memory-compaction"):
            self.compactions.add(compaction)
        if degraded := response.headers.get("x-memory-degraded"):
            self.degraded.append(degraded)

    def _http(self) -> dict[str, Any]:
        # To read the machine's certificates takes longer than most talks.
        return {"verify": False, "event_hooks": {"response": [self._note]}, "timeout": 120, "trust_env": False}


class ChatPlayer(Player):
    """OpenAI's chat completions."""

    def _begin(self, stack: ExitStack, url: str) -> None:
        self._ids = list[str]()
        self._openai = _openai(stack, url, self._headers, self._http())

    def said(self, said: Sequence[Message]) -> None:
        """See `Player`."""
        self._history += _with_ids(said, self._ids)

    def answer(self, mark: str, *, stream: bool) -> str:
        """See `Player`."""
        tools: Any = [{"type": "function", "function": {"name": name, "parameters": _SCHEMA}} for name in _TOOLS]
        asking = {**self._asking(mark), "messages": self._history, "tools": tools}
        if stream:
            with self._openai.chat.completions.stream(**asking) as events:
                message: Any = events.get_final_completion().choices[0].message
        else:
            message = self._openai.chat.completions.create(**asking).choices[0].message
        calls = [call.to_dict() for call in message.tool_calls or ()]
        for call in calls:
            call["function"].pop("parsed_arguments", None)
            call.pop("index", None)
        self._ids = [call["id"] for call in calls]
        self._history.append(
            {"role": "assistant", "content": message.content, **({"tool_calls": calls} if calls else {})}
        )
        return message.content or ""


class MessagesPlayer(Player):
    """Anthropic's messages."""

    def _begin(self, stack: ExitStack, url: str) -> None:
        self._ids = list[str]()
        http = stack.enter_context(anthropic.DefaultHttpxClient(**self._http()))
        self._anthropic = anthropic.Anthropic(
            base_url=url, api_key="any", max_retries=0, default_headers=self._headers, http_client=http
        )

    def said(self, said: Sequence[Message]) -> None:
        """See `Player`."""
        content = list(chain.from_iterable(map(_anthropic_blocks, _with_ids(said, self._ids))))
        self._history.append({"role": "user", "content": content})

    def answer(self, mark: str, *, stream: bool) -> str:
        """See `Player`."""
        tools: Any = [{"name": name, "input_schema": _SCHEMA} for name in _TOOLS]
        asking = {**self._asking(mark), "messages": self._history, "tools": tools, "max_tokens": 1000}
        if stream:
            with self._anthropic.messages.stream(**asking) as events:
                content: Any = events.get_final_message().content
        else:
            content = self._anthropic.messages.create(**asking).content
        blocks = [block.to_dict() for block in content]
        for block in blocks:
            block.pop("parsed_output", None)
        self._ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        self._history.append({"role": "assistant", "content": blocks})
        return "".join(block["text"] for block in blocks if block["type"] == "text")


class ResponsesPlayer(Player):
    """OpenAI's Responses, with all that was said before in every call."""

    def _begin(self, stack: ExitStack, url: str) -> None:
        self._ids = list[str]()
        self._openai = _openai(stack, url, self._headers, self._http())

    def said(self, said: Sequence[Message]) -> None:
        """See `Player`."""
        self._history += map(_item, _with_ids(said, self._ids))

    def answer(self, mark: str, *, stream: bool) -> str:
        """See `Player`."""
        tools: Any = [{"type": "function", "name": name, "strict": False, "parameters": _SCHEMA} for name in _TOOLS]
        asking = {**self._asking(mark), "input": self._history, "tools": tools, **self._before()}
        if stream:
            with self._openai.responses.stream(**asking) as events:
                response: Any = events.get_final_response()
        else:
            response = self._openai.responses.create(**asking)
        items = [item.to_dict() for item in response.output]
        self._ids = [item["call_id"] for item in items if item["type"] == "function_call"]
        self._answered(items, response.id)
        return str(response.output_text)

    def _before(self) -> dict[str, Any]:
        return {}

    def _answered(self, items: list[dict[str, Any]], response_id: str) -> None:
        self._history += [{k: v for k, v in item.items() if k != "parsed_arguments"} for item in items]


class FollowingPlayer(ResponsesPlayer):
    """OpenAI's Responses, with what is new alone and the id of the answer before."""

    _last = ""

    def _before(self) -> dict[str, Any]:
        return {"previous_response_id": self._last} if self._last else {}

    def _answered(self, items: list[dict[str, Any]], response_id: str) -> None:
        self._history, self._last = [], response_id


PLAYERS: Mapping[str, type[Player]] = {
    "chat": ChatPlayer, "messages": MessagesPlayer, "responses": ResponsesPlayer, "following": FollowingPlayer,
}  # fmt: skip


def _openai(stack: ExitStack, url: str, headers: dict[str, str], options: dict[str, Any]) -> openai.OpenAI:
    http = stack.enter_context(openai.DefaultHttpxClient(**options))
    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, default_headers=headers, http_client=http)


def _with_ids(said: Sequence[Message], ids: Sequence[str]) -> list[Message]:
    """What is said, with the ids of the calls that the model made this time."""
    left = iter(ids)
    return [{**each, "tool_call_id": next(left)} if each["role"] == "tool" else each for each in said]


def _anthropic_blocks(message: Message) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}]
    blocks = list[dict[str, Any]]()
    for part in _parts(message):
        if part["type"] == "text":
            blocks.append(part)
            continue
        kind, _, encoded = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
        blocks.append({"type": "image", "source": {"type": "base64", "media_type": kind, "data": encoded}})
    return blocks


def _item(message: Message) -> dict[str, Any]:
    if message["role"] == "tool":
        return {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
    content = [
        {"type": "input_text", "text": part["text"]} if part["type"] == "text"
        else {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
        for part in _parts(message)
    ]  # fmt: skip
    return {"type": "message", "role": message["role"], "content": content}


def _parts(message: Message) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def replayed(url: str, protocol: str, talk: Talk, workspace: str, found: Found) -> None:
    """Play a talk; notes what failed."""
    found.talks += 1
    with ExitStack() as stack:
        player = PLAYERS[protocol](stack, url, workspace)
        for number, step in enumerate(talk.steps):
            found.turns += 1
            player.said(step.said)
            try:
                text = player.answer(f"{talk.name}/{number}", stream=number % _STREAMED == 2)
            except (openai.OpenAIError, anthropic.AnthropicError) as error:
                found.failed.append(f"{protocol} {talk.name}/{number}: {error}")
                break
            if text != step.answer.text:
                found.failed.append(f"{protocol} {talk.name}/{number}: answered {text[:80]!r}")
        found.compactions += len(player.compactions)
        found.degraded.update(player.degraded)


def checked(service: MemoryService, workspace: str, talk: Talk, found: Found) -> None:
    """Look at the session that a talk has become: all of it in one, and each compaction undone."""
    names = [session.session_id for session in service.list_sessions(workspace).sessions]
    log = service.messages(workspace, _SESSION, view="log").messages
    answers = [message for message in log if message["role"] == "assistant"]
    if names != [_SESSION] or len(answers) != len(talk.steps):
        found.failed.append(f"{workspace}: sessions {names}, {len(answers)} of {len(talk.steps)} answers")
    log_outline = service.storage.workspace(workspace).logs.open(_SESSION).outline()
    for seq in [seq for seq, kind in log_outline if kind == "compaction"]:
        found.undone += 1
        if not _is_undone(service, workspace, seq):
            found.differ.append(f"{workspace} {seq}")


def _is_undone(service: MemoryService, workspace: str, seq: int) -> bool:
    store = service.sessions(workspace).store
    before, after = f"before-{seq}", f"after-{seq}"
    store.fork(_SESSION, before, before_seq=seq)
    store.fork(_SESSION, after, before_seq=seq + 1)
    compacted = _view(service, workspace, after)
    service.undo(workspace, after)
    return _view(service, workspace, before) == _view(service, workspace, after) != compacted


def _view(service: MemoryService, workspace: str, session_id: str) -> bytes:
    return service.messages(workspace, session_id).model_dump_json().encode()


def measure(
    compactions: int,
    protocols: Sequence[str],
    given: Iterator[Talk],
    *,
    window: int,
    embedding_model: str = "none",
    storage: StorageCase = FILES,
) -> dict[str, Found]:
    """Replay talks until there are so many compactions; gives what was found, by protocol."""
    found = {protocol: Found() for protocol in protocols}
    played = list[tuple[str, Talk]]()
    environment = {"MEMORY_SERVICE_CONTEXT_WINDOW": f"{window}", "MEMORY_SERVICE_EMBEDDING_MODEL": embedding_model}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        environment |= storage.environment(home)
        with (
            StrictServer() as upstream,
            gateway_process(home, upstream.url, environment) as (url, _),
            ThreadPoolExecutor(len(protocols)) as pool,
        ):
            while sum(each.compactions for each in found.values()) < compactions:
                talk = next(given)
                upstream.talks[talk.name] = talk
                played += [(protocol, talk) for protocol in protocols]
                turns = [
                    pool.submit(replayed, url, protocol, talk, _workspace(protocol, talk), found[protocol])
                    for protocol in protocols
                ]
                for turn in turns:
                    turn.result()
        for orphan in upstream.orphans:
            found[protocols[0]].failed.append(f"orphan {orphan}")
        values = storage.settings(home)
        with MemoryService(settings(home, context_window=window, embedding_model="none", **values)) as service:
            for protocol, talk in played:
                checked(service, _workspace(protocol, talk), talk, found[protocol])
    return found


def _workspace(protocol: str, talk: Talk) -> str:
    return f"{protocol}-{talk.name}"


def all_talks(path: Path | None, conversations: int) -> Iterator[Talk]:
    """The sample's, LoCoMo's if there is a file of them, and made-up ones without end."""
    yield talks.recorded()
    if path is not None:
        yield from islice(talks.locomo(path), conversations)
    yield from (talks.made_up(seed, _ROUNDS) for seed in count())


def main() -> None:
    """Run it and print a line for each protocol."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compactions", type=int, default=1000)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--conversations", type=int, default=10, help="of LoCoMo, only the first so many")
    parser.add_argument("--window", type=int, default=5000)
    parser.add_argument("--protocols", default=",".join(PLAYERS))
    parser.add_argument("--storage", choices=STORAGES, default="files")
    given = parser.parse_args()
    begun = time.monotonic()
    played = all_talks(given.locomo, given.conversations)
    storage = STORAGES[given.storage]
    found = measure(given.compactions, given.protocols.split(","), played, window=given.window, storage=storage)
    for protocol, each in found.items():
        shown = {"failed": len(each.failed), "degraded": dict(each.degraded.most_common(3)), "undone": each.undone}
        print(
            json.dumps({"protocol": protocol, "talks": each.talks, "turns": each.turns, **shown, "differ": each.differ})
        )
    wrong = [problem for each in found.values() for problem in (*each.failed, *each.differ)]
    total = sum(each.undone for each in found.values())
    print(json.dumps({"compactions": total, "wrong": wrong[:20], "seconds": round(time.monotonic() - begun)}))
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()

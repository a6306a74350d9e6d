"""A service on a temporary home with one session in it, and what is said there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from indexer import Embedder
from indexer.testing import HashEmbedder
from memory_service.compaction.prompts import ANCHORED_HEADINGS
from memory_service.llm.base import ChatModel
from memory_service.messages.shapes import Message, text_of
from memory_service.messages.writing import to_openai
from memory_service.prompts.build import BuiltContext
from memory_service.runtime.base import CompactionCall
from memory_service.runtime.models import Models
from memory_service.schemas import make_request
from memory_service.schemas.compaction import CompactionReceipt, CompactRequest, SessionContextRequest
from memory_service.service import MemoryService
from memory_service.service.short_term import WorkspaceSessions
from tests.serving import settings
from tests.wire import problems

S, W = "support-42", "default"
Wire = dict[str, Any]


def tools(tokens: int) -> list[Wire]:
    """The schema of a tool that takes so many tokens."""
    return [{"t": "x" * (4 * tokens - 9)}]


class Room:
    """A service, its sessions, and the session that tests talk in."""

    def __init__(
        self,
        home: Path,
        *,
        model: ChatModel | None = None,
        models: Models | None = None,
        embedder: Embedder | None = None,
        **given: object,
    ):
        self.home = home
        made = models or Models(summaries=model, memories=model)
        self.service = MemoryService(settings(home, **given), embedder=embedder or HashEmbedder(), models=made)
        self.sessions: WorkspaceSessions = self.service.sessions(W, make=True)

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *_: object) -> None:
        self.service.close()

    @property
    def log(self) -> Path:
        return self.home / W / "sessions" / f"{S}.jsonl"

    @property
    def days(self) -> str:
        """All that stands in the dated memory files."""
        documents = self.service.storage.workspace(W).documents
        paths = sorted(path for path in documents.scan().documents if path.startswith("memory/"))
        return "\n".join(documents.read(path).raw.decode() for path in paths)

    def say(self, *messages: Wire, **more: Any) -> None:
        self.sessions.append(S, messages, **more)

    def talk(self, turns: int, tokens: int = 100, *, first: int = 0, chinese: bool = False) -> None:
        """Turns of a question and an answer, each message about so long."""
        numbers = range(first, first + turns)
        self.say(*(message for number in numbers for message in turn(number, tokens, chinese=chinese)))

    def work(self, rounds: int, tokens: int = 200, *, first: int = 0) -> None:
        """Turns of a question, a call, its result and an answer."""
        self.say(*(message for number in range(first, first + rounds) for message in tool_turn(number, tokens)))

    def compact(self, **call: Any) -> CompactionReceipt:
        return self.sessions.compactions.compact(S, CompactionCall(request=CompactRequest(**call)))

    def undo(self, compaction_id: str | None) -> CompactionReceipt:
        return self.sessions.compactions.undo(S, compaction_id or "")

    def context(self, **call: Any) -> BuiltContext:
        return self.sessions.context(S, make_request(SessionContextRequest, **{"recall": "never", **call}))

    def view(self) -> tuple[Message, ...]:
        return self.sessions.snapshot(S).view().messages

    def view_text(self) -> str:
        return texts(self.view())

    def view_tokens(self) -> int:
        return self.sessions.snapshot(S).view().tokens

    def raw_log(self) -> list[Wire]:
        return [dict(message) for message in self.sessions.store.log_view(S).messages]

    def bytes(self) -> bytes:
        return self.service.storage.workspace(W).logs.open(S).tail()[0]

    def events(self) -> list[str]:
        with self.sessions.events(S, after_id=0) as news:
            return [event.kind for event in news.take()]


def texts(messages: Sequence[Message]) -> str:
    return "\n".join(map(text_of, messages))


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


def says(text: str) -> Wire:
    return {"role": "assistant", "content": text}


def system(text: str) -> Wire:
    return {"role": "system", "content": text}


def calls(*ids: str, name: str = "read_file", arguments: Mapping[str, object] | None = None) -> Wire:
    function = {"name": name, "arguments": json.dumps(arguments or {"path": "src/app.py"}, ensure_ascii=False)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": each, "type": "function", "function": function} for each in ids],
    }


def result(call_id: str, text: str) -> Wire:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def image(text: str, payload: str = "aGVsbG8gd29ybGQ=") -> Wire:
    url = {"url": f"data:image/png;base64,{payload}"}
    return {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": url}]}


def words(tokens: int, *, chinese: bool = False) -> str:
    """A text of so many tokens."""
    fill = "部署之前先备份数据库。" if chinese else "The backup runs before the deploy does. "
    chars = tokens if chinese else 4 * tokens
    return (fill * (chars // len(fill) + 1))[:chars].strip()


def turn(number: int, tokens: int = 100, *, chinese: bool = False) -> list[Wire]:
    asked = f"第 {number} 个问题：" if chinese else f"Question {number}: "
    told = f"第 {number} 个回答：" if chinese else f"Answer {number}: "
    return [user(asked + words(tokens, chinese=chinese)), says(told + words(tokens, chinese=chinese))]


def tool_turn(number: int, tokens: int = 200) -> list[Wire]:
    return [
        user(f"Question {number}: what is in module {number}?"),
        calls(f"call_{number}", arguments={"path": f"src/module_{number}.py"}),
        result(f"call_{number}", f"module {number}\n" + words(tokens)),
        says(f"Answer {number}: module {number} holds the backup."),
    ]


def summary(text: str = "The backup runs before the deploy.", headings: Sequence[str] = ANCHORED_HEADINGS) -> str:
    """What a model answers that keeps to the headings."""
    lines = list[str]()
    for heading in headings:
        lines += [heading if heading.startswith("###") else f"## {heading}", f"- {text}"]
    return "\n".join(lines)


def refused_by_providers(messages: Sequence[Message]) -> list[str]:
    """What a provider of OpenAI's shape would refuse of a list."""
    return problems(to_openai(messages), "openai")

"""What a world remembers of its session by itself: each message as it was said, and what came of an operation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory_service.compaction.summary import SummaryRequest
from memory_service.llm.base import ChatMessage
from memory_service.schemas.compaction import CompactionReceipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message as the world put it into the log.

    Attributes:
        text: All that it says.
        pieces: What has to stand in a view that shows it: its text, the arguments of its calls.
        thought: What it thought; nobody else says that.
        payloads: The base64 of its media.
        call_id: Of a result, the call that it answers.
        loose: Whether a view may leave it out: it says nothing, or another result of the same call stands beside it.
    """

    seq: int
    role: str
    text: str
    pieces: tuple[str, ...]
    thought: str = ""
    blocks: tuple[Mapping[str, Any], ...] = ()
    payloads: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    call_id: str = ""
    interim: bool = False
    loose: bool = False

    @property
    def system(self) -> bool:
        return self.role == "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an operation.

    Attributes:
        requests: What summaries were asked with.
        prompts: What the model was sent.
        added: What was said while a compaction was made.
        rival: Whether another process changed the head meanwhile.
    """

    receipt: CompactionReceipt | None = None
    error: Exception | None = None
    requests: tuple[SummaryRequest, ...] = ()
    prompts: tuple[Sequence[ChatMessage], ...] = ()
    added: tuple[Said, ...] = ()
    rival: bool = False


def as_said(role: str, text: str, *arguments: str, payloads: tuple[str, ...] = (), loose: bool = False) -> Said:
    return Said(seq=0, role=role, text=text, pieces=(text, *arguments), payloads=payloads, loose=loose)


def with_loose(said: Sequence[Said], running: Collection[str]) -> list[Said]:
    """The same, with the results that another one of the same call takes the place of.

    That is one which stands right beside another, and of a tool that said it still runs, each but the last.
    """
    running = {each.call_id for each in said if each.interim} | {*running}
    last = {each.call_id: at for at, each in enumerate(said) if each.call_id}
    beside = set[str]()
    marked = list[Said]()
    for at, each in enumerate(said):
        overtaken = each.call_id in beside or (each.call_id in running and last[each.call_id] > at)
        marked.append(replace(each, loose=True) if each.role == "tool" and overtaken else each)
        beside = {*beside, each.call_id} if each.role == "tool" else set()
    return marked

"""Owns the order in which the demo does things, on a copy of the sample, without a language model.

Invariants: numbers are what was measured; whoever tells the story learns of each step when it is done.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memory_service.cli.demo.replay import PIN, PROMPT, WORKSPACE, replayed
from memory_service.cli.demo.story import Moment, Notes, Recall, Reindexed, Replay, Source, Story
from memory_service.sample import SESSION_ID, copy_sample

if TYPE_CHECKING:
    from memory_service.service import MemoryService

BUDGET_TOKENS = 250
# Each with words that answer it.
QUESTIONS = (
    ("How far off is the packing scale, and which one is used instead?", "the packing scale reads 40 g off"),
    ("岳母生日的那张卡片上写什么？", "祝妈妈身体健康，天天开心"),
)


class Teller(Protocol):
    """Whoever hears of each step."""

    def notes(self, notes: Notes) -> None:
        """The Markdown is there and indexed."""

    def moment(self, moment: Moment) -> None:
        """A prompt was made."""

    def replay(self, replay: Replay, reindexed: Reindexed) -> None:
        """The conversation is over."""

    def recall(self, recall: Recall, pin: str) -> None:
        """A question was asked."""


def played(home: Path, teller: Teller, *, kept: bool) -> Story:
    """Do all of it.

    Args:
        home: An empty folder.
        teller: Hears of each step.
        kept: Whether the folder will be left there.

    Raises:
        Conflict: There is a workspace in that folder.
    """
    from memory_service.service import MemoryService

    begun = time.perf_counter()
    folder = copy_sample(home, with_session=False)
    # Whatever is configured where it runs: no model is called, and the story is the same.
    rules = {"flush": {"mode": "extractive"}, "compaction": {"preset": "default"}, "pruning": {"mode": "preset"}}
    with MemoryService.open(home, llm_model="", **rules) as service:
        notes = _notes(service, folder)
        teller.notes(notes)
        replay = replayed(service, folder, teller.moment)
        reindexed = _reindexed(service)
        teller.replay(replay, reindexed)
        recalls = []
        for question, answer in QUESTIONS:
            recalls.append(_recall(service, question, answer))
            teller.recall(recalls[-1], PIN)
    return Story(
        notes=notes,
        replay=replay,
        reindexed=reindexed,
        pin=PIN,
        recalls=tuple(recalls),
        seconds=round(time.perf_counter() - begun, 2),
        home=str(home) if kept else "",
    )


def _notes(service: MemoryService, folder: Path) -> Notes:
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    first, again = service.reindex(WORKSPACE), service.reindex(WORKSPACE)
    return Notes(
        files=tuple(files),
        excerpt=tuple((folder / files[-1]).read_text("utf-8").splitlines()[2:5]),
        passages=_passages(service),
        index_ms=round(first.seconds * 1000),
        again_ms=round(again.seconds * 1000),
    )


def _reindexed(service: MemoryService) -> Reindexed:
    report = service.reindex(WORKSPACE)
    return Reindexed(
        passages=_passages(service),
        changed=report.added + report.changed,
        embedded=report.embedded,
        took_ms=round(report.seconds * 1000),
    )


def _passages(service: MemoryService) -> int:
    counts = service.status(WORKSPACE).counts
    return counts.passages if counts else 0


def _recall(service: MemoryService, question: str, answer: str) -> Recall:
    from memory_service.block import is_block
    from memory_service.messages import text_of
    from memory_service.shortterm.contexts import ContextCall

    sessions = service.sessions(WORKSPACE)
    made = sessions.context(
        SESSION_ID, ContextCall(query=question, system_prompt=PROMPT, memory_budget_tokens=BUDGET_TOKENS)
    )
    texts = [text_of(message) for message in made.prompt.messages]
    block = next((text for text in texts if is_block(text)), "")
    view = [text for text in texts if text != block]
    receipt = made.receipt
    return Recall(
        question=question,
        answer=answer,
        is_in_view=any(answer in text for text in view),
        is_in_block=answer in block,
        block=block,
        tokens=receipt.tokens if receipt else 0,
        budget_tokens=BUDGET_TOKENS,
        prompt_tokens=made.prompt.tokens.total,
        window=made.prompt.tokens.window,
        receipt_id=receipt.receipt_id if receipt else "",
        sources=tuple(
            Source(path=item.path, start_line=item.start_line, end_line=item.end_line, tokens=item.tokens)
            for item in (receipt.included if receipt else ())
        ),
        omitted=receipt.omitted_count if receipt else 0,
        has_pin=any(PIN in text for text in view),
    )

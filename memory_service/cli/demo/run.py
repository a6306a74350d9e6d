"""The demo on a copy of the sample, without a language model: the recorded session, replayed in a small window.

Invariants: only the steps of an agent are done here: append, context; a message keeps its recorded time; each
compaction is undone once, to check that the view comes back, and made again.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memory_service.cli.demo.text.stories import Story
from memory_service.service import SAMPLES, Recording, copy_sample

if TYPE_CHECKING:
    from memory_service.schemas.compaction import CompactionReceipt, Flush, SessionContext
    from memory_service.service import MemoryService


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """The sample's Markdown, and its index.

    Attributes:
        files: Paths within the workspace.
        excerpt: Some lines of the last file.
        again_ms: Time of a second reindex, which finds nothing changed.
    """

    files: tuple[str, ...]
    excerpt: tuple[str, ...]
    passages: int
    index_ms: int
    again_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The prompt at one point of the conversation.

    Attributes:
        message: Number of messages so far.
        messages: Number of all messages.
        tokens: Size of the prompt.
        window: The model's window.
        event: Compaction or flush before the prompt; empty for none.
    """

    message: int
    messages: int
    tokens: int
    window: int
    event: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """A flush.

    Attributes:
        message: Number of messages so far.
        path: The file of the memories.
        entries: Some of them, as they are in the file.
        found: Place where the next search found the first of them; empty if it did not.
    """

    message: int
    path: str
    written: int
    duplicates: int
    entries: tuple[str, ...]
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneCompaction:
    """A compaction that was made, undone, and made again.

    Attributes:
        message: Number of messages so far.
        covered_messages: Number of messages that a summary stands for; 0 where old results gave way to stubs.
        view_bytes: Size of the view before it, as JSON.
        undo_is_equal: True if the undo gave the same bytes.
    """

    compaction_id: str
    message: int
    tokens_before: int
    tokens_after: int
    covered_messages: int
    view_bytes: int
    undo_is_equal: bool
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The recorded conversation, said again in a small window.

    Attributes:
        tokens: What all messages take.
        contexts: How many prompts were made.
        peak_tokens: The largest of them.
        slowest_ms: The one that took longest, with what was done before it.
        logged_messages: How many the log has afterwards.
        log_is_equal: Whether each is there byte for byte.
        kept: Some lines of the checkpoint that stands in the view in the end.
    """

    session_id: str
    first_day: str
    last_day: str
    messages: int
    tokens: int
    window: int
    contexts: int
    peak_tokens: int
    slowest_ms: int
    seconds: float
    flushes: tuple[Flushed, ...]
    compactions: tuple[UndoneCompaction, ...]
    logged_messages: int
    log_is_equal: bool
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """The index after the conversation.

    Attributes:
        passages: Number of passages now.
        changed: Files that were new or had changed.
        embedded: Number of passages embedded for them.
    """

    passages: int
    changed: int
    embedded: int
    took_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPart:
    """A part of a block, by its receipt."""

    path: str
    start_line: int
    end_line: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion:
    """A question, and the prompt that it got.

    Attributes:
        answer: Words that answer it.
        is_in_view: Whether they stand in the view, so that nothing had to be recalled.
        is_in_block: Whether they stand in the block.
        tokens: Of the block, with its wrapper.
        prompt_tokens: Of the whole prompt.
        omitted: How many candidates stayed out of the block.
        has_pin: Whether the pinned rule stands in the prompt.
    """

    question: str
    answer: str
    is_in_view: bool
    is_in_block: bool
    block: str
    tokens: int
    budget_tokens: int
    prompt_tokens: int
    window: int
    receipt_id: str
    sources: tuple[BlockPart, ...]
    omitted: int
    has_pin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRun:
    """Result of the demo.

    Attributes:
        home: Folder to look at; empty if nothing was left.
    """

    notes: Notes
    replay: Replay
    reindexed: Reindexed
    pin: str
    recalls: tuple[AnsweredQuestion, ...]
    seconds: float
    home: str = ""


WORKSPACE = "default"
_MEMORY_TOKENS = 400
_ENTRIES = 4
# What a reader of the story wants to see of a checkpoint: so many lines of its sections, the newest of the last two.
_RULES, _DECISIONS, _GOALS = slice(0, 3), slice(-1, None), slice(-1, None)


def replayed(service: MemoryService, folder: Path, story: Story, watch: Callable[[Moment], None]) -> Replay:
    """Replay the recorded conversation.

    Args:
        service: A service on a copy of the sample.
        folder: The workspace of that copy.
        story: Whose conversation it is.
        watch: Called with every prompt.
    """
    return _Player(service, folder, story, watch).play()


class _Player:
    """One conversation while it is replayed."""

    def __init__(self, service: MemoryService, folder: Path, story: Story, watch: Callable[[Moment], None]) -> None:
        self._service = service
        self._folder = folder
        self._story = story
        self._session_id = SAMPLES[story.language].session_id
        self._recording = Recording(folder, story.language)
        self._watch = watch
        self._flushes: list[Flushed] = []
        self._compactions: list[UndoneCompaction] = []
        self._contexts = self._peak = 0
        self._slowest = 0.0

    def play(self) -> Replay:
        from memory_service.schemas import NewSession

        begun = time.perf_counter()
        service = self._service
        window = self._story.window_tokens
        service.create_session(WORKSPACE, NewSession(session_id=self._session_id, context_window=window))
        for at, message in enumerate(self._recording.messages):
            if message.role == "assistant":
                self._prompt(at)
            self._recording.say(message)
            is_said = self._story.said_pin in message.text.lower()
            if is_said and not service.pins(WORKSPACE, self._session_id).pins:
                service.pin(WORKSPACE, self._session_id, self._story.pin)
        return self._told(time.perf_counter() - begun)

    def _prompt(self, said: int) -> None:
        """The prompt before an answer of the model, as an agent gets it."""
        before = self._view()
        made = self._context()
        events = list[str]()
        if made.flush is not None and made.flush.path:
            self._flushes.append(self._flushed(made.flush, said))
            events.append(self._story.flush_event.format(count=len(made.flush.written)))
        if made.compaction is not None:
            done, made = self._undone_and_again(made.compaction, before, said)
            self._compactions.append(done)
            told = self._story.compaction_event
            events.append(told.format(before=done.tokens_before, after=done.tokens_after))
        tokens = made.tokens
        self._peak = max(self._peak, tokens.total)
        self._watch(
            Moment(
                message=said,
                messages=len(self._recording.messages),
                tokens=tokens.total,
                window=tokens.window,
                event=", ".join(events),
            )
        )

    def _context(self) -> SessionContext:
        from memory_service.schemas import SessionContextRequest

        request = SessionContextRequest(system_prompt=self._story.prompt, memory_budget_tokens=_MEMORY_TOKENS)
        begun = time.perf_counter()
        made = self._service.session_context(WORKSPACE, self._session_id, request)
        self._contexts += 1
        self._slowest = max(self._slowest, time.perf_counter() - begun)
        return made

    def _undone_and_again(
        self, receipt: CompactionReceipt, before: bytes, said: int
    ) -> tuple[UndoneCompaction, SessionContext]:
        self._service.undo(WORKSPACE, self._session_id, receipt.compaction_id)
        is_equal = self._view() == before
        again = self._context()
        kept = again.compaction or receipt
        done = UndoneCompaction(
            compaction_id=kept.compaction_id or "",
            message=said,
            tokens_before=kept.tokens_before,
            tokens_after=kept.tokens_after,
            covered_messages=kept.covered_messages,
            view_bytes=len(before),
            undo_is_equal=is_equal,
            duration_ms=kept.duration_ms,
        )
        return done, again

    def _flushed(self, report: Flush, said: int) -> Flushed:
        # Memories stand in the files of their days: that of the day of most of them is shown.
        path = Counter(memory.path for memory in report.written).most_common(1)[0][0]
        text = (self._folder / path).read_text("utf-8")
        shown = [memory for memory in report.written if memory.path == path]
        first = shown[0].text
        results = self._service.search(WORKSPACE, first, limit=5, sources=["memory"]).results
        found = next((each for each in results if each.path == path and first in each.text), None)
        return Flushed(
            message=said,
            path=path,
            written=len(report.written),
            duplicates=report.duplicates,
            entries=tuple(_entries(text, [memory.memory_id for memory in shown[:_ENTRIES]])),
            found=f"{path}:{found.start_line}" if found else "",
        )

    def _view(self) -> bytes:
        view = self._service.messages(WORKSPACE, self._session_id)
        return json.dumps(view.messages, ensure_ascii=False).encode()

    def _told(self, seconds: float) -> Replay:
        recorded = self._recording.messages
        texts = [message.text for message in recorded]
        said = self._service.messages(WORKSPACE, self._session_id, "log").messages
        logged = [json.dumps(each, ensure_ascii=False) for each in said]
        view = self._service.messages(WORKSPACE, self._session_id).messages
        return Replay(
            session_id=self._session_id,
            first_day=str(recorded[0].at.date()),
            last_day=str(recorded[-1].at.date()),
            messages=len(texts),
            tokens=self._recording.tokens,
            window=self._story.window_tokens,
            contexts=self._contexts,
            peak_tokens=self._peak,
            slowest_ms=round(self._slowest * 1000),
            seconds=round(seconds, 2),
            flushes=tuple(self._flushes),
            compactions=tuple(self._compactions),
            logged_messages=len(logged),
            log_is_equal=logged == [json.dumps(json.loads(text), ensure_ascii=False) for text in texts],
            kept=tuple(_kept(str(view[0].get("content", "")), self._story)),
        )


def _entries(text: str, memory_ids: Sequence[str]) -> Iterator[str]:
    """Memories as they stand in their file: the comment of each, and its lines."""
    lines = text.splitlines()
    for memory_id in memory_ids:
        at = next((at for at, line in enumerate(lines) if f"memory id={memory_id} " in line), None)
        if at is not None:
            yield "\n".join(lines[at : at + 2])


def _kept(checkpoint: str, story: Story) -> Iterator[str]:
    """Lines of a checkpoint that show its content."""
    summary, _, ledger = checkpoint.partition("<ledger>")
    for (label, heading), text, lines in zip(
        story.kept, (ledger, ledger, summary), (_RULES, _DECISIONS, _GOALS), strict=True
    ):
        yield from (f"{label}{line}" for line in _section(text, heading)[lines])


def _section(text: str, heading: str) -> list[str]:
    """The list items below a heading."""
    below = text.partition(f"## {heading}\n")[2].partition("\n#")[0]
    return [line[2:] for line in below.splitlines() if line.startswith("- ")]


BUDGET_TOKENS = 250
# Notes that are this unlikely to bear on a question are beside the point, in notes as short as these.
_LEAST_RELEVANCE = 0.01


class DemoOutput:
    """Receiver of each step, which does nothing with it."""

    def notes(self, notes: Notes) -> None:
        """The Markdown is there and indexed."""

    def moment(self, moment: Moment) -> None:
        """A prompt was made."""

    def replay(self, replay: Replay, reindexed: Reindexed) -> None:
        """The conversation is over."""

    def recall(self, recall: AnsweredQuestion, pin: str) -> None:
        """A question was asked."""


def run_demo(home: Path, teller: DemoOutput, story: Story, *, kept: bool) -> DemoRun:
    """Run the demo.

    Args:
        home: An empty folder.
        teller: Receiver of each step.
        story: What is told, on a sample of its own.
        kept: Leave the folder there afterwards.

    Raises:
        Conflict: There is a workspace in that folder.
    """
    from memory_service.service import MemoryService

    begun = time.perf_counter()
    folder = copy_sample(home, with_session=False, language=story.language)
    # Whatever is configured where it runs: no model is called, and the story is the same.
    rules = {"flush": {"mode": "extractive"}, "compaction": {"preset": "default"}, "pruning": {"mode": "preset"}}
    with MemoryService.open(home, llm_model="", **rules) as service:
        notes = _notes(service, folder)
        teller.notes(notes)
        replay = replayed(service, folder, story, teller.moment)
        reindexed = _reindexed(service)
        teller.replay(replay, reindexed)
        recalls = []
        for question, answer in story.questions:
            recalls.append(_recall(service, story, question, answer))
            teller.recall(recalls[-1], story.pin)
    return DemoRun(
        notes=notes,
        replay=replay,
        reindexed=reindexed,
        pin=story.pin,
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
        passages=service.status(WORKSPACE).passages,
        index_ms=round(first.seconds * 1000),
        again_ms=round(again.seconds * 1000),
    )


def _reindexed(service: MemoryService) -> Reindexed:
    report = service.reindex(WORKSPACE)
    return Reindexed(
        passages=service.status(WORKSPACE).passages,
        changed=report.added + report.changed,
        embedded=report.embedded,
        took_ms=round(report.seconds * 1000),
    )


def _recall(service: MemoryService, story: Story, question: str, answer: str) -> AnsweredQuestion:
    from memory_service.schemas import SessionContextRequest

    session_id = SAMPLES[story.language].session_id
    request = SessionContextRequest(
        query=question, system_prompt=story.prompt, memory_budget_tokens=BUDGET_TOKENS, min_relevance=_LEAST_RELEVANCE
    )
    made = service.session_context(WORKSPACE, session_id, request)
    view = [str(message.get("content")) for message in service.messages(WORKSPACE, session_id).messages]
    texts = [str(message.get("content")) for message in made.messages]
    # Blocks of earlier turns stand before that of this one.
    block = next((text for text in texts[::-1] if text not in (story.prompt, *view)), "")
    others = [text for text in texts if text != block]
    receipt = made.receipt
    return AnsweredQuestion(
        question=question,
        answer=answer,
        is_in_view=any(answer in text for text in others),
        is_in_block=answer in block,
        block=block,
        tokens=receipt.tokens if receipt else 0,
        budget_tokens=BUDGET_TOKENS,
        prompt_tokens=made.tokens.total,
        window=made.tokens.window,
        receipt_id=receipt.receipt_id if receipt else "",
        sources=tuple(
            BlockPart(path=item.path, start_line=item.start_line, end_line=item.end_line, tokens=item.tokens)
            for item in (receipt.included if receipt else ())
        ),
        omitted=receipt.omitted_count if receipt else 0,
        has_pin=any(story.pin in text for text in others),
    )

"""The demo on a copy of the sample, without a language model: the recorded session, replayed in a small window.

Invariants: only the steps of an agent are done here: append, context; a message keeps its recorded time; each
compaction is undone once, to check that the view comes back, and made again.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_service.cli.demo.story import Story, Telling
from memory_service.service import SAMPLES, Recording, copy_sample

if TYPE_CHECKING:
    from memory_service.schemas.compaction import CompactionReceipt, Flush, SessionContext
    from memory_service.service import MemoryService

WORKSPACE = "default"
BUDGET_TOKENS = 250
_MEMORY_TOKENS = 400
# Notes that are this unlikely to bear on a question are beside the point, in notes as short as these.
_LEAST_RELEVANCE = 0.01
_ENTRIES, _SOURCES = 4, 3
# A prompt is shown for so many messages, and for every event.
_EVERY = 10
_BAR = 32
_WIDE = 150
# What a reader of the story wants to see of a checkpoint: so many lines of its sections, the newest of the last two.
_RULES, _DECISIONS, _GOALS = slice(0, 3), slice(-1, None), slice(-1, None)


def run_demo(home: Path, telling: Telling) -> None:
    """Run the demo.

    Args:
        home: An empty folder.
        telling: How its story is told, on a sample of its own.

    Raises:
        Conflict: There is a workspace in that folder.
    """
    from memory_service.service import MemoryService

    # Whatever is configured where it runs: no model is called, and the story is the same.
    rules = {"flush": {"mode": "extractive"}, "compaction": {"preset": "default"}, "pruning": {"mode": "preset"}}
    with MemoryService.open(home, llm_model="", **rules) as service:
        copy_sample(service.storage, with_session=False, language=telling.story.language)
        demo = _Demo(service, telling)
        demo.notes()
        demo.conversation()
        demo.flushes()
        demo.reindex()
        demo.checkpoint()
        for number, (question, answer) in enumerate(telling.story.questions):
            demo.question(question, answer, asks_for_pin=number > 0)


class _Demo:
    """One run of the demo; its methods are the steps of the story, in their order."""

    def __init__(self, service: MemoryService, telling: Telling) -> None:
        self._service = service
        self._telling = telling
        self._story = telling.story
        self._session_id = SAMPLES[self._story.language].session_id
        self._recording = Recording(service.storage, self._story.language)
        self._flushes = list[dict[str, Any]]()
        self._compactions = list[dict[str, Any]]()
        self._shown = self._contexts = self._peak = self._passages = 0
        self._slowest = 0.0

    def notes(self) -> None:
        """The Markdown is there, and is indexed."""
        telling = self._telling
        telling.step()
        files = [file.path for file in self._service.files(WORKSPACE)]
        first, again = self._service.reindex(WORKSPACE), self._service.reindex(WORKSPACE)
        self._passages = self._service.status(WORKSPACE).passages
        telling.line("files", first="  ".join(files[:3]), last=files[-1], count=len(files))
        telling.quote("\n".join(self._service.get(WORKSPACE, files[-1], 3, 3).text.splitlines()))
        telling.line("reindex", passages=self._passages, seconds=first.seconds)
        telling.line("again", ms=round(again.seconds * 1000))

    def conversation(self) -> None:
        """The recorded conversation is said again."""
        from memory_service.schemas import NewSession

        self._telling.step()
        begun_time, service, messages = time.perf_counter(), self._service, self._recording.messages
        window = self._story.window_tokens
        service.create_session(WORKSPACE, NewSession(session_id=self._session_id, context_window=window))
        for at, message in enumerate(messages):
            if message.role == "assistant":
                self._prompt(at)
            self._recording.say(message)
            self._telling.progress(at + 1, len(messages))
            is_said = self._story.said_pin in message.text.lower()
            if is_said and not service.pins(WORKSPACE, self._session_id).pins:
                service.pin(WORKSPACE, self._session_id, self._story.pin)
        self._telling.line(
            "summary",
            messages=len(messages),
            tokens=self._recording.tokens,
            first=str(messages[0].at.date()),
            last=str(messages[-1].at.date()),
            peak=self._peak,
            window=window,
            contexts=self._contexts,
            slowest_ms=round(self._slowest * 1000),
            seconds=round(time.perf_counter() - begun_time, 2),
        )

    def flushes(self) -> None:
        """Memories that were written down, and how the first of them stand in their file."""
        telling = self._telling
        telling.step()
        telling.line("flushed", written=sum(flush["written"] for flush in self._flushes), count=len(self._flushes))
        for flush in self._flushes[:1]:
            telling.text(flush["path"], colour="cyan")
            for entry in flush["entries"]:
                telling.quote(entry)
            if flush["place"]:
                telling.line("found", place=flush["place"])

    def reindex(self) -> None:
        """The index after the conversation."""
        telling, words = self._telling, self._story.lines
        telling.step()
        report = self._service.reindex(WORKSPACE)
        changed_count, passages = report.added + report.changed, self._service.status(WORKSPACE).passages
        files, ms = words["file" if changed_count == 1 else "files_word"], round(report.seconds * 1000)
        telling.line("before_after", before=self._passages, after=passages)
        telling.line("caught_up", files=files, count=changed_count, embedded=report.embedded, ms=ms)

    def checkpoint(self) -> None:
        """The compactions, what the checkpoint keeps, and the log, which has everything."""
        telling, words = self._telling, self._story.lines
        telling.step()
        for figures in self._compactions:
            telling.line("compacted", **figures)
        telling.line("keeps")
        for text in _checkpoint_lines(str(self._messages()[0].get("content", "")), self._story):
            telling.quote(text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…")
        items = [json.loads(message.text) for message in self._recording.messages]
        fields = [dict(message) for message in self._service.messages(WORKSPACE, self._session_id, "log").messages]
        equal = words["byte_for_byte" if json.dumps(fields) == json.dumps(items) else "not_equal"]
        telling.line("log", logged=len(fields), messages=len(items), equal=equal)

    def question(self, question: str, answer: str, *, asks_for_pin: bool) -> None:
        """A later question, and the prompt that it gets."""
        telling, story = self._telling, self._story
        telling.step()
        context = self._context(query=question, memory_budget_tokens=BUDGET_TOKENS, min_relevance=_LEAST_RELEVANCE)
        view = [str(message.get("content")) for message in self._messages()]
        texts = [str(message.get("content")) for message in context.messages]
        # Blocks of earlier turns stand before that of this one.
        block = next((text for text in texts[::-1] if text not in (story.prompt, *view)), "")
        other_texts = [text for text in texts if text != block]
        if asks_for_pin:
            telling.line("in_view" if any(story.pin in text for text in other_texts) else "not_in_view", pin=story.pin)
        telling.text(question, colour="green")
        telling.quote(block)
        assert context.receipt is not None, "a memory budget was given"
        receipt, sources = context.receipt, context.receipt.included
        telling.note("prompt", question=question, block=block, is_in_block=answer in block)
        telling.line("block", tokens=receipt.tokens, budget=BUDGET_TOKENS, receipt=receipt.receipt_id)
        for source in sources[:_SOURCES]:
            first, last = source.start_line, source.end_line
            telling.line("source", by="     ", path=source.path, first=first, last=last, tokens=source.tokens)
        telling.line("sources", by="     ", included=len(sources), omitted=receipt.omitted_count)
        where = "answer_in_view" if any(answer in text for text in other_texts) else "answer_in_block"
        telling.line("whole", where=story.lines[where], tokens=context.tokens.total, window=context.tokens.window)

    def _prompt(self, said: int) -> None:
        """The prompt before an answer of the model, as an agent gets it."""
        before, words = self._view(), self._story.lines
        context = self._context()
        events = list[str]()
        if context.flush is not None and context.flush.path:
            self._flushes.append(self._flush_figures(context.flush))
            self._telling.note("flush", message=said, **self._flushes[-1])
            events.append(words["flush_event"].format(count=len(context.flush.written)))
        if context.compaction is not None:
            done_fields, context = self._compacted_again(context.compaction, before)
            self._compactions.append(done_fields)
            events.append(words["compaction_event"].format(**done_fields))
        tokens = context.tokens
        self._peak = max(self._peak, tokens.total)
        if events or said >= self._shown + _EVERY:
            self._shown = said - said % _EVERY
            filled_values = round(_BAR * tokens.total / tokens.window)
            bar = "█" * filled_values + "░" * (_BAR - filled_values)
            self._telling.line("message", event=", ".join(events), at=said, bar=bar, tokens=tokens.total)

    def _context(self, *, memory_budget_tokens: int = _MEMORY_TOKENS, **options: Any) -> SessionContext:
        from memory_service.schemas import SessionContextRequest

        request = SessionContextRequest(
            system_prompt=self._story.prompt, memory_budget_tokens=memory_budget_tokens, **options
        )
        begun_time = time.perf_counter()
        session_context = self._service.session_context(WORKSPACE, self._session_id, request)
        self._contexts += 1
        self._slowest = max(self._slowest, time.perf_counter() - begun_time)
        return session_context

    def _compacted_again(self, receipt: CompactionReceipt, before: bytes) -> tuple[dict[str, Any], SessionContext]:
        """A compaction undone and made once more: figures of both, and the prompt after it."""
        self._service.undo(WORKSPACE, self._session_id, receipt.compaction_id)
        words, is_equal = self._story.lines, self._view() == before
        again = self._context()
        kept_receipt = again.compaction or receipt
        covered_messages = kept_receipt.covered_messages
        figures = {
            "id": kept_receipt.compaction_id or "",
            "before": kept_receipt.tokens_before,
            "after": kept_receipt.tokens_after,
            "covered_messages": covered_messages,
            "covered": words["covered"].format(count=covered_messages) if covered_messages else words["cleared"],
            "ms": kept_receipt.duration_ms,
            "bytes": len(before),
            "equal": words["equal" if is_equal else "not_equal"],
        }
        return figures, again

    def _flush_figures(self, report: Flush) -> dict[str, Any]:
        """Figures of a flush, with some of its memories as they stand in the file, and where a search finds the first.

        Memories stand in the files of their days: that of the day of most of them is shown.
        """
        path = Counter(memory.path for memory in report.written).most_common(1)[0][0]
        memories = [memory for memory in report.written if memory.path == path]
        entries = _entries(
            self._service.get(WORKSPACE, path).text, [each_memory.memory_id for each_memory in memories[:_ENTRIES]]
        )
        results = self._service.search(WORKSPACE, memories[0].text, limit=5, sources=["memory"]).results
        places = (
            f"{path}:{result.start_line}"
            for result in results
            if result.path == path and memories[0].text in result.text
        )
        counts = {"written": len(report.written), "duplicates": report.duplicates}
        return {"path": path, **counts, "entries": list(entries), "place": next(places, "")}

    def _messages(self) -> Sequence[Any]:
        return self._service.messages(WORKSPACE, self._session_id).messages

    def _view(self) -> bytes:
        return json.dumps(self._messages(), ensure_ascii=False).encode()


def _entries(text: str, memory_ids: Sequence[str]) -> Iterator[str]:
    """Memories as they stand in their file: the comment of each, and its lines."""
    lines = text.splitlines()
    for memory_id in memory_ids:
        at = next((at for at, line in enumerate(lines) if f"memory id={memory_id} " in line), None)
        if at is not None:
            yield "\n".join(lines[at : at + 2])


def _checkpoint_lines(checkpoint: str, story: Story) -> Iterator[str]:
    """Lines of a checkpoint that show its content."""
    summary, _, ledger = checkpoint.partition("<ledger>")
    for (label, heading), text, lines in zip(
        story.kept, (ledger, ledger, summary), (_RULES, _DECISIONS, _GOALS), strict=True
    ):
        below = text.partition(f"## {heading}\n")[2].partition("\n#")[0]
        items = [line[2:] for line in below.splitlines() if line.startswith("- ")]
        yield from (f"{label}{item}" for item in items[lines])

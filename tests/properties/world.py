"""A session under test: real logs, real benches, real compactors; it remembers by itself what was said.

What it remembers is never read from the code under test, so that the invariants have something to hold against.
"""

from __future__ import annotations

import base64
import datetime as dt
import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memory_service.compaction.audit import Audit
from memory_service.compaction.compactor import Compactor, _Job
from memory_service.compaction.presets import PRESETS
from memory_service.compaction.record import PinRecord
from memory_service.compaction.summary import Summary, SummaryRequest
from memory_service.compaction.view import View
from memory_service.config import CompactionTable, FlushTable, Settings
from memory_service.errors import MemoryServiceError
from memory_service.hooks import Hooks, Intent
from memory_service.memories.long_term import LongTermMemory
from memory_service.messages.sizes import Usage
from memory_service.prompts.prompt_records import PromptRecords
from memory_service.runtime.base import CompactionCall
from memory_service.runtime.compactions import SessionCompactions
from memory_service.runtime.engine_adapter import EngineAdapter
from memory_service.runtime.flushes import Flushes
from memory_service.runtime.locks import SessionLocks
from memory_service.runtime.session import SessionState
from memory_service.runtime.session_services import ServiceParts, SessionRuntime, SessionSnapshot
from memory_service.schemas.compaction import CompactRequest
from memory_service.sessions.records import Body, MessageRecord, Pending, Unpin
from memory_service.storage.logs import LogStore
from tests.memory_service.storage.in_memory_records import MemoryRecords, event_hub
from tests.properties.said import Outcome, Said, as_said, with_loose
from tests.properties.sessions import Compact, Count, Line, Operation, Pin, Restart, Say, Undo, Wait
from tests.properties.summarisers import model_of
from tests.storages import LogCase

SESSION = "s1"
MAX_PIN_CHARS = 8_000
_ENGLISH = "The deploy of the service runs on Tuesday at ten and nobody has to wait for it. "
_CHINESE = "部署在周二上午进行，大家都不用等待，数据先备份好。"
START = dt.datetime(2026, 11, 20, 9, 0, tzinfo=dt.UTC)


class Recording(Compactor):
    """A compactor that remembers what summaries were asked for."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.requests: list[SummaryRequest] = []

    def _summary(self, request: SummaryRequest, terms: _Job) -> tuple[Summary, Audit]:
        self.requests.append(request)
        return super()._summary(request, terms)


@dataclass(slots=True)
class _Draft:
    """Messages of one batch, and what the world knows of them; numbers are given when they are appended."""

    raw: list[dict[str, Any]] = field(default_factory=list)
    said: list[tuple[int, Said]] = field(default_factory=list)

    def add(self, raw: dict[str, Any], *said: Said) -> None:
        self.said += [(len(self.raw), each) for each in said]
        self.raw.append(raw)


class World:
    """One session, and what is known of it beside the code under test.

    Args:
        home: An empty folder.
        window: The context window, in tokens.
        memory: A long-term memory, which no compaction touches.
        logs: Where the session is kept.
    """

    def __init__(self, home: Path, window: int, memory: LongTermMemory, logs: LogCase) -> None:
        self.home, self.window, self._memory, self._logs = home, window, memory, logs
        self._prompts = PromptRecords(MemoryRecords(), memory.still_in_file)
        self.said: list[Said] = []
        self.raw: dict[int, str] = {}
        self.pins: dict[str, tuple[str, int | None]] = {}
        self.folded = SessionState()
        self._numbers = itertools.count(1)
        self._minutes = itertools.count()
        self._late: list[str] = []
        self._running: set[str] = set()
        self._hook: Callable[[], None] = lambda: None
        self.settings = Settings(
            home=home,
            timezone="UTC",
            compaction=CompactionTable(refuse_below_tokens=0),
            flush=FlushTable(mode="off"),
        )
        self._open()
        self.services.create(SESSION, model=None, context_window=window, settings={})

    # -- what there is ----------------------------------------------------------------------------------------------

    @property
    def log_bytes(self) -> bytes:
        return self.reopened_logs().open(SESSION).tail()[0]

    def reopened_logs(self) -> LogStore:
        """The logs as another process would open them."""
        return self._logs.open(self.home, self._now)

    def snapshot(self, preset: str | None = None) -> SessionSnapshot:
        return self.services.snapshot(SESSION, preset=preset)

    def view(self, preset: str | None = None) -> View:
        return self.snapshot(preset).view()

    # -- what is done -----------------------------------------------------------------------------------------------

    def do(self, operation: Operation) -> Outcome:
        """Does one thing to the session."""
        match operation:
            case Say():
                self.say(operation.lines)
            case Compact():
                return self.compact(operation)
            case Undo():
                return self._undo(operation.which)
            case Pin():
                self._pin(operation)
            case Wait():
                if waiting := self.unanswered():
                    self._running |= {*waiting}
                    self._append(Pending(call_ids=tuple(waiting)))
            case Restart():
                self._open()
            case Count():
                tokens = self.view().tokens
                counted = max(1, int(tokens * operation.scale))
                self._append(Usage(input_tokens=counted, estimated_tokens=max(tokens, 1)))
            case _:
                self._unpin()
        return Outcome()

    def say(self, lines: Iterable[Line]) -> tuple[Said, ...]:
        """Appends lines as one batch."""
        batch = _Draft()
        for line in lines:
            self._write(line, batch)
        if not batch.raw:
            return ()
        texts = [json.dumps(raw, ensure_ascii=False) for raw in batch.raw]
        first = self._append(*(MessageRecord(text=text) for text in texts))
        self.raw |= {first + at: text for at, text in enumerate(texts)}
        added = tuple(replace(each, seq=first + at) for at, each in batch.said)
        self.said = with_loose([*self.said, *added], self._running)
        return added

    def compact(self, wanted: Compact) -> Outcome:
        """Asks for a compaction; other things happen between its plan and its commit."""
        model = model_of(wanted.summariser, PRESETS[wanted.preset].summary.headings)
        self.compactor.model = model
        self.compactor._timeout_seconds = 0.02 if wanted.summariser == "hangs" else 300.0
        self.compactor.requests.clear()
        added = list[Said]()
        heads = list[int | None]()

        def meanwhile() -> None:
            self._hook = lambda: None
            added.extend(self.say(wanted.meanwhile))
            heads.append(self.snapshot().state.head.seq)
            if wanted.rival:
                self._rival(wanted)
            heads.append(self.snapshot().state.head.seq)

        self._hook = meanwhile
        target = int(self.view(wanted.preset).tokens * wanted.target_share) or None
        request = CompactRequest(preset=wanted.preset, force=wanted.force, target_tokens=target)
        call = CompactionCall(request=request, cause=wanted.trigger)
        receipt, error = None, None
        try:
            receipt = self.compactions.compact(SESSION, call)
        except MemoryServiceError as failure:
            error = failure
        finally:
            self._hook = lambda: None
        return Outcome(
            receipt=receipt,
            error=error,
            requests=tuple(self.compactor.requests),
            prompts=tuple(model.requests) if model else (),
            added=tuple(added),
            rival=len(set(heads)) > 1,
        )

    def unanswered(self) -> list[str]:
        """The calls that have no result yet."""
        answered = {each.call_id for each in self.said if each.call_id and not each.interim}
        return [call for each in self.said for call in each.calls if call not in answered]

    # -- inside -----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Begins anew on the same files, as another process would."""
        hooks = Hooks()
        hooks.before_compaction(self._between)
        shared = ServiceParts(settings=self.settings, session_locks=SessionLocks(), events=event_hub(), hooks=hooks)
        self.services = SessionRuntime("w", self.reopened_logs(), self._memory, self._prompts, shared)
        self.compactor = Recording()
        adapter, flushes = EngineAdapter(self.services), Flushes(self.services)
        self.compactions = SessionCompactions(self.services, self.compactor, adapter, flushes)

    def _between(self, intent: Intent) -> None:
        self._hook()

    def _now(self) -> dt.datetime:
        return START + dt.timedelta(minutes=next(self._minutes))

    def _append(self, *bodies: Body) -> int:
        return self.services.session(SESSION).append(list(bodies)).first_seq

    def _rival(self, wanted: Compact) -> None:
        shared = ServiceParts(settings=self.settings, session_locks=SessionLocks(), events=event_hub(), hooks=Hooks())
        services = SessionRuntime("w", self.reopened_logs(), self._memory, self._prompts, shared)
        other = SessionCompactions(services, Compactor(), EngineAdapter(services), Flushes(services))
        state = services.snapshot(SESSION).state
        try:
            if wanted.rival == "compact":
                other.compact(
                    SESSION,
                    CompactionCall(request=CompactRequest(preset=wanted.preset, force=True), cause=wanted.trigger),
                )
            elif state.head.seq is not None:
                other.undo(SESSION, f"c{state.head.seq}")
        except MemoryServiceError:
            pass

    def _undo(self, which: int) -> Outcome:
        active = [receipt for receipt in self.compactions.past(SESSION) if receipt.active]
        if not active:
            return Outcome()
        chosen = active[min(which, len(active) - 1)]
        return Outcome(receipt=self.compactions.undo(SESSION, str(chosen.compaction_id)))

    def _pin(self, pin: Pin) -> None:
        pin_id = f"p{next(self._numbers)}"
        if pin.tokens:
            text, target = f"pin{pin_id}x " + _filler(pin.tokens, chinese=False), None
        else:
            told = [each for each in self.said if each.text.strip() and not each.system and not each.loose]
            if not told:
                return
            chosen = told[int(pin.at * (len(told) - 1))]
            text, target = "\n".join(each.text for each in self.said if each.seq == chosen.seq), chosen.seq
            if len(text) > MAX_PIN_CHARS:
                return
        self._append(PinRecord(pin_id=pin_id, text=None if target else text, target=target))
        self.pins[pin_id] = (text, target)

    def _unpin(self) -> None:
        if self.pins:
            pin_id = next(iter(self.pins))
            self._append(Unpin(pin_id=pin_id))
            del self.pins[pin_id]

    # -- what is said -----------------------------------------------------------------------------------------------

    def _write(self, line: Line, batch: _Draft) -> None:
        match line.kind:
            case "round":
                self._round(line, batch)
            case "anthropic":
                self._anthropic(line, batch)
            case "late":
                if self._late:
                    self._result(line, batch, self._late.pop(0))
            case "orphan":
                self._result(line, batch, f"gone{next(self._numbers)}")
            case "empty":
                batch.add({"role": "user", "content": " "}, as_said("user", " ", loose=True))
            case _:
                self._words(line, batch)

    def _words(self, line: Line, batch: _Draft) -> None:
        text, role = self._text(line.size, line), line.kind
        raw: dict[str, Any] = {"role": role, "content": text}
        payloads: list[str] = []
        if role == "user" and line.media:
            payloads = [self._payload() for _ in range(line.media)]
            images = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{each}"}} for each in payloads]
            raw["content"] = [{"type": "text", "text": text}, *images]
        said = as_said(role, text, payloads=tuple(payloads))
        if role == "assistant":
            raw, said = self._thinking(line, raw, said)
        batch.add(raw, said)

    def _thinking(self, line: Line, raw: dict[str, Any], said: Said) -> tuple[dict[str, Any], Said]:
        thought = f"think{next(self._numbers)}x"
        if line.thinks == "blocks":
            blocks = ({"type": "thinking", "thinking": thought, "signature": "c2ln"},)
            return {**raw, "thinking_blocks": list(blocks)}, replace(said, thought=thought, blocks=blocks)
        if line.thinks == "reasoning":
            return {**raw, "reasoning_content": thought}, replace(said, thought=thought)
        return raw, said

    def _call_ids(self, line: Line) -> list[str]:
        return ["again" if line.reused else f"call{next(self._numbers)}" for _ in line.calls]

    def _round(self, line: Line, batch: _Draft) -> None:
        ids, text = self._call_ids(line), self._text(min(line.size, 0.005), line)
        calls = [self._call(line, call_id, at) for at, call_id in enumerate(ids)]
        raw = {"role": "assistant", "content": text, "tool_calls": calls}
        arguments = tuple(call["function"]["arguments"] for call in calls)
        said = replace(as_said("assistant", text, *arguments), calls=tuple(ids))
        batch.add(*self._thinking(line, raw, said))
        same = self._text(line.size, line)
        for call_id, fate in zip(ids, line.calls, strict=True):
            if fate == "later":
                self._late.append(call_id)
            elif fate != "missing":
                self._result(line, batch, call_id, fate, same if fate == "same" else "")
            if fate == "twice":
                self._result(line, batch, call_id)
            if fate in ("interim", "more"):
                self._late.append(call_id)

    def _call(self, line: Line, call_id: str, at: int) -> dict[str, Any]:
        arguments = json.dumps({"path": f"src/part{next(self._numbers)}x.py", "note": "周二" if line.chinese else "go"})
        # What was cut off is no JSON, and stays as it came.
        arguments = arguments[:-3] if line.size == 0.0 and at else arguments
        function = {"name": "read" if at == 0 else "bash", "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}

    def _result(self, line: Line, batch: _Draft, call_id: str, fate: str = "ok", text: str = "") -> None:
        text = text or self._text(line.size, line)
        raw: dict[str, Any] = {"role": "tool", "tool_call_id": call_id, "content": text}
        payloads = (self._payload(),) if fate == "image" else ()
        if payloads:
            image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{payloads[0]}"}}
            raw["content"] = [{"type": "text", "text": text}, image]
        if fate in ("error", "interim"):
            raw["is_error" if fate == "error" else "interim"] = True
        batch.add(raw, replace(as_said("tool", text, payloads=payloads), call_id=call_id, interim=fate == "interim"))

    def _anthropic(self, line: Line, batch: _Draft) -> None:
        ids, text = self._call_ids(replace(line, reused=False)), self._text(min(line.size, 0.005), line)
        inputs = [{"path": f"src/part{next(self._numbers)}x.py"} for _ in ids]
        uses = [
            {"type": "tool_use", "id": call_id, "name": "read", "input": each}
            for call_id, each in zip(ids, inputs, strict=True)
        ]
        blocks: list[dict[str, Any]] = []
        thought = f"think{next(self._numbers)}x" if line.thinks else ""
        if thought:
            blocks.append({"type": "thinking", "thinking": thought, "signature": "c2ln"})
        said = as_said("assistant", text, *(each["path"] for each in inputs))
        said = replace(said, thought=thought, blocks=tuple(blocks), calls=tuple(ids))
        batch.add({"role": "assistant", "content": [*blocks, {"type": "text", "text": text}, *uses]}, said)
        results, told = [], list[Said]()
        for call_id, fate in zip(ids, line.calls, strict=True):
            if fate in ("missing", "later"):
                self._late += [call_id] if fate == "later" else []
                continue
            words = self._text(line.size, line)
            content: list[dict[str, Any]] = [{"type": "text", "text": words}]
            payloads = (self._payload(),) if fate == "image" else ()
            content += [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": each}}
                for each in payloads
            ]
            results.append({"type": "tool_result", "tool_use_id": call_id, "content": content})
            told.append(replace(as_said("tool", words, payloads=payloads), call_id=call_id))
        if results and line.told:
            words = self._text(line.size, line)
            results.append({"type": "text", "text": words})
            told.append(as_said("user", words))
        if results:
            batch.add({"role": "user", "content": results}, *told)

    def _text(self, size: float, line: Line) -> str:
        tokens = max(int(size * self.window), 3)
        return f"mark{next(self._numbers)}x " + _filler(tokens, chinese=line.chinese)

    def _payload(self) -> str:
        return base64.b64encode(f"picture {next(self._numbers):06} ".encode() * 8).decode()


def _filler(tokens: int, *, chinese: bool) -> str:
    words = _CHINESE if chinese else _ENGLISH
    chars = tokens if chinese else 4 * tokens
    return (words * (chars // len(words) + 1))[:chars].strip()

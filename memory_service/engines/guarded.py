"""The guard between the service and an engine that somebody else wrote: time limits, checks, quarantine.

Invariants: nothing an engine does reaches the caller but what was checked; an engine that fails in a session is not
asked for it again as long as the process lives, and for no session at all if it cannot be loaded, ran out of time or
failed in three of them; a failure is told by its kind, never with its text, which may hold that of a message.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import getattr_static
from itertools import takewhile
from typing import TypeGuard, TypeVar

from memory_service.engines.base import (
    AssembleCall,
    Assembled,
    CompactCall,
    Compacted,
    ContextEngine,
    EngineInfo,
    OptionalMethods,
)
from memory_service.errors import MemoryServiceError
from memory_service.messages.reading import MAX_MESSAGES, read_messages
from memory_service.messages.repair import repair_messages
from memory_service.messages.shapes import Message, is_system, tool_calls_of
from memory_service.messages.sizes import Numbered, message_tokens

_T = TypeVar("_T")

# Source: our own. An agent may wait for each of these calls; what takes longer belongs into a thread of the engine.
CALL_SECONDS = 10.0
# Loading may read a model from the disk, and a compaction may ask one.
LOAD_SECONDS = 60.0
COMPACT_SECONDS = 300.0
# So many messages are ingested by one call.
_BATCH = 256
# An engine that fails in so many sessions fails by itself, not by what was said in them.
_MOST_SESSIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """How long an engine may take for one call, in seconds."""

    call: float = CALL_SECONDS
    load: float = LOAD_SECONDS
    compact: float = COMPACT_SECONDS


class EngineFault(Exception):
    """A fault in what an engine gave; its only argument names the fault: `OverBudget`, `NotWireValid`, ...

    It never leaves this module.
    """


class _TimedOut(EngineFault):
    """It may hang: no session asks it again."""


@dataclass(slots=True)
class _Heard:
    """The part of a session that an engine was told; `seq` is None before its first message."""

    seq: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class GuardedEngine:
    """An engine of one workspace that nothing depends on.

    Args:
        name: As it is named in the settings.
        load: Makes it; called when it is needed first.
        limits: How long it may take.

    Safe to use from several threads.
    """

    def __init__(self, name: str, load: Callable[[], ContextEngine], *, limits: TimeLimits | None = None) -> None:
        self.name = name
        self._load = load
        self._limits = limits or TimeLimits()
        self._engine: ContextEngine | None = None
        self._info: EngineInfo | None = None
        self._loading = threading.Lock()
        self._changing = threading.Lock()
        self._down = ""
        self._failures: dict[str, str] = {}
        self._sessions: dict[str, _Heard] = {}

    @property
    def info(self) -> EngineInfo | None:
        """Who it is; None if it could not be loaded."""
        self._loaded_engine()
        return self._info

    def usable(self, session_id: str) -> bool:
        """True if it is asked for a session."""
        return self._loaded_engine() is not None and session_id not in self._failures and not self._down

    def failures(self, session_id: str) -> tuple[str, ...]:
        """The parts of it that are missing in a session, for `degraded`."""
        down = self._down or self._failures.get(session_id)
        return (self._failure_note(down),) if down else ()

    def problems(self) -> tuple[str, ...]:
        """The parts of it that are missing anywhere, for `status` and `doctor`; it is loaded for that."""
        if self._loaded_engine() is None or self._down:
            return (self._failure_note(self._down),)
        with self._changing:
            fields = dict(self._failures)
        return (self._failure_note(f"{next(iter(fields.values()))} in {len(fields)} sessions"),) if fields else ()

    # What is asked of it

    def hear(self, session_id: str, history: Sequence[Numbered]) -> None:
        """Tell it what it does not know yet of what was said.

        Args:
            session_id: The session.
            history: All messages of its log.
        """
        if self.usable(session_id):
            heard_history = self._history_of(session_id)
            with heard_history.lock:
                self._hear(session_id, heard_history, history)

    def assemble(
        self, session_id: str, history: Sequence[Numbered], *, token_budget: int, call: AssembleCall
    ) -> tuple[Message, ...] | None:
        """The messages for the model, checked; None if the default engine has to answer."""
        if not self.usable(session_id):
            return None
        heard_history = self._history_of(session_id)
        with heard_history.lock:
            if not self._hear(session_id, heard_history, history):
                return None
            own = copy.deepcopy(call)
            # Checked within its time: what it gives may be of its own making, too.
            return self._ask(
                session_id,
                lambda engine: _check_messages(
                    engine.assemble(session_id, token_budget=token_budget, call=own), token_budget, call
                ),
            )

    def compact(self, session_id: str, *, token_budget: int, call: CompactCall) -> Compacted | None:
        """Have it compact a session; None if it cannot."""
        if not self.usable(session_id):
            return None
        with self._history_of(session_id).lock:
            return self._ask(
                session_id,
                lambda engine: _check_compaction(engine.compact(session_id, token_budget=token_budget, call=call)),
                seconds=self._limits.compact,
            )

    def begin_subagent(self, parent: str, child: str, ttl_seconds: float | None) -> None:
        """Tell it that a subagent begins."""
        engine = self._loaded_engine()
        if _has(engine, "prepare_subagent_spawn") and self.usable(child):
            self._ask(child, lambda _: engine.prepare_subagent_spawn(parent, child, ttl_seconds))

    def end_subagent(self, child: str, reason: str) -> None:
        """Tell it that a subagent is over."""
        engine = self._loaded_engine()
        if _has(engine, "on_subagent_ended") and self.usable(child):
            self._ask(child, lambda _: engine.on_subagent_ended(child, reason))

    def forget(self, session_id: str) -> tuple[str, ...]:
        """Tell it that a session was erased, even if it failed before: what it keeps of it has to go.

        Returns:
            What may be left of the session, for `degraded`.
        """
        engine = self._loaded_engine()
        with self._changing:
            self._sessions.pop(session_id, None)
            self._failures.pop(session_id, None)
        if _has(engine, "forget"):
            self._ask(session_id, lambda _: engine.forget(session_id))
        left = self.failures(session_id)
        return tuple(f"{text} What it kept of the session may still be there." for text in left)

    def dispose(self) -> None:
        """Tell it that the service closes; it is not loaded for that."""
        engine = self._engine
        if _has(engine, "dispose") and not self._down:
            self._ask("", lambda _: engine.dispose())

    # How it is asked

    def _hear(self, session_id: str, heard_history: _Heard, history: Sequence[Numbered]) -> bool:
        """Tells it what is new, while its session is locked; gives whether it is well after that."""
        engine = self._loaded_engine()
        if heard_history.seq is None:
            known_count = 0
            if _has(engine, "bootstrap"):
                given_number = self._ask(session_id, lambda _: engine.bootstrap(session_id))
                known_count = given_number if isinstance(given_number, int) else 0
            heard_history.seq = history[min(known_count, len(history)) - 1].seq if known_count > 0 and history else 0
        # From the end: what is new is little, and the history may be long.
        fresh = list(takewhile(lambda message: message.seq > (heard_history.seq or 0), reversed(history)))[::-1]
        for at in range(0, len(fresh), _BATCH):
            batch = fresh[at : at + _BATCH]
            if not self.usable(session_id):
                return False
            self._ingest(session_id, [copy.deepcopy(message.message) for message in batch])
            heard_history.seq = batch[-1].seq
        if fresh and _ends_turn(fresh[-1].message) and _has(engine, "after_turn") and self.usable(session_id):
            self._ask(session_id, lambda _: engine.after_turn(session_id))
        return self.usable(session_id)

    def _ingest(self, session_id: str, messages: Sequence[Message]) -> None:
        def tell(engine: ContextEngine) -> None:
            if _has(engine, "ingest_batch"):
                engine.ingest_batch(session_id, messages)
                return
            for message in messages:
                engine.ingest(session_id, message)

        self._ask(session_id, tell)

    def _ask(self, session_id: str, ask: Callable[[ContextEngine], _T], *, seconds: float | None = None) -> _T | None:
        """Its answer within its time; None, and quarantine, if it fails."""
        engine = self._loaded_engine()
        if engine is None:
            return None
        try:
            return _run_within(seconds or self._limits.call, lambda: ask(engine), name=self.name)
        except Exception as error:
            self._quarantine(session_id, error)
            return None

    def _loaded_engine(self) -> ContextEngine | None:
        with self._loading:
            if self._engine is None and not self._down:
                self._try_to_load()
            return self._engine

    def _try_to_load(self) -> None:
        try:
            engine = _run_within(self._limits.load, self._load, name=self.name)
            # It is asked once: a property may fail, and may not change its mind.
            self._info, self._engine = engine.info, engine
        except Exception as error:
            cause = error.__cause__ if isinstance(error, MemoryServiceError) and error.__cause__ else error
            self._down = f"{_kind(cause)} while it was loaded"

    def _quarantine(self, session_id: str, error: BaseException) -> None:
        with self._changing:
            self._failures[session_id] = _kind(error)
            if isinstance(error, _TimedOut) or len(self._failures) >= _MOST_SESSIONS:
                self._down = _kind(error)

    def _history_of(self, session_id: str) -> _Heard:
        with self._changing:
            return self._sessions.setdefault(session_id, _Heard())

    def _failure_note(self, text: str) -> str:
        kind, _, rest = text.partition(" ")
        return (
            f"engine: {self.name} failed ({kind}){f' {rest}' if rest else ''}; the default engine answers. "
            "Restart or change context_engine."
        )


def _has(engine: ContextEngine | None, method: str) -> TypeGuard[OptionalMethods]:
    """True if an engine has an optional method; asked without running anything of the engine's own."""
    return callable(getattr_static(engine, method, None))


def _run_within(seconds: float, work: Callable[[], _T], *, name: str) -> _T:
    """The result of some work, if it takes no longer than a limit; a thread that does goes on alone, unheard.

    Raises:
        EngineFault: It takes longer, or tries to end the process.
        Exception: Whatever it raises.
    """
    done_items: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            done_items.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name=f"context-engine-{name}", daemon=True)
    thread.start()
    thread.join(seconds)
    # It may have ended between the two looks: what is there counts.
    if errors:
        raise errors[0] if isinstance(errors[0], Exception) else EngineFault(type(errors[0]).__name__)
    if not done_items:
        raise _TimedOut("TimedOut")
    return done_items[0]


def _check_messages(value: object, token_budget: int, call: AssembleCall) -> tuple[Message, ...]:
    """The messages of an answer.

    Raises:
        EngineFault: They are none, cannot be sent, or do not fit.
    """
    if not isinstance(value, Assembled):
        raise EngineFault("NotAssembled")
    try:
        given_wholes = [_whole(message) for message in value.messages]
        messages = [
            message
            for at in range(0, len(given_wholes), MAX_MESSAGES)
            for message in read_messages(given_wholes[at : at + MAX_MESSAGES])
        ]
        sound = not repair_messages(messages).repairs
        tokens = sum(map(message_tokens, messages))
    except Exception as error:
        # Their author may have put anything into them.
        raise EngineFault("NotWireValid") from error
    if not sound:
        raise EngineFault("NotWireValid")
    if all(map(is_system, messages)) and not all(map(is_system, call.messages)):
        raise EngineFault("NoMessages")
    if tokens > token_budget:
        raise EngineFault("OverBudget")
    return tuple(messages)


def _check_compaction(value: object) -> Compacted:
    """The result of a compaction, checked.

    Raises:
        EngineFault: It is none, or one of its fields is not what it should be: engines may be written without types.
    """
    if not isinstance(value, Compacted):
        raise EngineFault("NotCompacted")
    sizes: tuple[object, ...] = (value.tokens_before, value.tokens_after)
    texts: tuple[object, ...] = (value.reason, value.summary)
    if not all(isinstance(size, int) and size >= 0 for size in sizes) or not all(isinstance(t, str) for t in texts):
        raise EngineFault("NotCompacted")
    return value


def _whole(message: object) -> object:
    # What the engine still holds must not change under the prompt.
    return copy.deepcopy(dict(message)) if isinstance(message, Mapping) else message


def _ends_turn(message: Message) -> bool:
    return message["role"] == "assistant" and not tool_calls_of(message)


def _kind(error: BaseException) -> str:
    return str(error.args[0]) if isinstance(error, EngineFault) and error.args else type(error).__name__

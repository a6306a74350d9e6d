"""The interface of a context engine, the values that go in and out, and the engines that there are, by name.

Invariants: values are frozen; messages are copies in OpenAI's shape, so that an engine may change what it gets; the
calls for one session never overlap, those for several may; an optional method is called where an engine has it. A
name is looked up among what a program registered, then among what packages offer as entry points of the group
`memory_service.context_engines`; nothing is loaded before it is asked for by name; an unknown name and an engine that
cannot be loaded are two errors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol

from memory_service.errors import InvalidRequest, UpstreamFailed
from memory_service.messages.shapes import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """Who an engine is.

    Attributes:
        id: As it is named in the settings.
        name: For people.
        owns_compaction: Whether it keeps sessions within their windows by itself; the service then compacts none of
            its own accord, and an overflow is recovered from all the same.
    """

    id: str
    name: str
    version: str = ""
    owns_compaction: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePlace:
    """Where an engine works: one is made for each workspace.

    Attributes:
        folder: For files of its own. It is not made before the engine makes it, and may be deleted at any time.
    """

    workspace: str
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembleCall:
    """The purpose and the limits of a prompt.

    Attributes:
        messages: What the service itself would send: system messages, checkpoint, and what was said since.
        query: The question at hand; empty if there is none.
        system_prompt: Put before what the engine gives, as memories and missing pins are, by the service. All of
            them are off the budget already.
        model: The agent's model; None if it is not known.
        window_tokens: What that takes.
    """

    messages: tuple[Message, ...]
    query: str = ""
    system_prompt: str = ""
    model: str | None = None
    window_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The messages for the model: wire-valid (`memory_service.messages.repair` finds nothing to do), in budget."""

    messages: Sequence[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactCall:
    """Why something is compacted: by a person, at a threshold, or because a provider refused the prompt.

    Attributes:
        trigger: `manual`, `threshold` or `overflow`.
        instructions: What a person asked of the summary; empty for nothing.
        force: Whether to do it even if there is room.
    """

    trigger: str = "manual"
    instructions: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The part of a compaction that an engine did; tokens are of the session's part of the prompt."""

    compacted: bool
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    summary: str = ""


class ContextEngine(Protocol):
    """Decides what of a session goes to the model."""

    @property
    def info(self) -> EngineInfo:
        """Who it is."""

    def ingest(self, session_id: str, message: Message) -> object:
        """Take note of a message; each comes once, in order, when it is in the log."""

    def assemble(self, session_id: str, *, token_budget: int, call: AssembleCall) -> Assembled:
        """The messages for the model, of at most `token_budget` tokens as `messages.message_tokens` counts them."""

    def compact(self, session_id: str, *, token_budget: int, call: CompactCall) -> Compacted:
        """Make what is assembled from now on fit a budget."""


class OptionalMethods:
    """Methods that an engine may have beside those of `ContextEngine`; inherited or not, what is there is called.

    As they are here they do nothing more than an engine without them.
    """

    def bootstrap(self, session_id: str) -> int:
        """Number of messages that the engine remembers of a session, from the first on; ingested are those after it."""
        return 0

    def ingest(self, session_id: str, message: Message) -> object:
        """See `ContextEngine`: the one method here that is not optional."""

    def ingest_batch(self, session_id: str, messages: Sequence[Message]) -> object:
        """Take note of several messages, in place of `ingest`."""
        for message in messages:
            self.ingest(session_id, message)
        return None

    def after_turn(self, session_id: str) -> object:
        """The agent answered, without a tool call."""

    def prepare_subagent_spawn(self, parent: str, child: str, ttl: float | None) -> object:
        """The session `child` begins, on behalf of `parent`, for at most `ttl` seconds."""

    def on_subagent_ended(self, child: str, reason: str) -> object:
        """The session `child` is over: take over what the subagent found."""

    def forget(self, session_id: str) -> object:
        """The session was erased: erase the messages that are kept of it."""

    def dispose(self) -> object:
        """The service closes: close what is open."""


GROUP = "memory_service.context_engines"
DEFAULT = "default"

EngineFactory = Callable[[EnginePlace], ContextEngine]

_registered: dict[str, EngineFactory] = {}
_registering = threading.Lock()


def register(name: str, factory: EngineFactory) -> None:
    """Offer an engine to services that this process opens from now on; the same name again takes the place.

    Raises:
        InvalidRequest: The name is empty, or the service's own.
    """
    if not name or name == DEFAULT:
        raise InvalidRequest(f"A context engine cannot be named {name!r}. Choose another name.")
    with _registering:
        _registered[name] = factory


def unregister(name: str) -> None:
    """Offer it no longer; nothing happens if it was not registered."""
    with _registering:
        _registered.pop(name, None)


def engine_names() -> list[str]:
    """All engines that may be chosen, the default one first."""
    return [DEFAULT, *sorted({*_registered, *(point.name for point in entry_points(group=GROUP))} - {DEFAULT})]


def check_engine(name: str) -> None:
    """Make sure that there is an engine of a name; it is not loaded.

    Raises:
        InvalidRequest: There is none.
    """
    if name != DEFAULT and name not in _registered and _entry_point(name) is None:
        raise InvalidRequest(
            f"The context engine {name[:80]!r} is unknown. Install the package that offers it, or set context_engine "
            f"to one of {', '.join(engine_names())}."
        )


def load_engine(name: str, place: EnginePlace) -> ContextEngine:
    """Make an engine for a workspace.

    Raises:
        InvalidRequest: There is none of that name.
        UpstreamFailed: It is known, and cannot be loaded or made, or is no engine.
    """
    check_engine(name)
    try:
        engine = _factory(name)(place)
    except Exception as error:
        raise _unloadable(name, f"loading it raised {type(error).__name__}") from error
    missing = [part for part in ("ingest", "assemble", "compact") if not callable(getattr(engine, part, None))]
    if missing or not isinstance(getattr(engine, "info", None), EngineInfo):
        raise _unloadable(name, f"it has no {missing[0] if missing else 'EngineInfo as its info'}") from TypeError(name)
    return engine


def _factory(name: str) -> EngineFactory:
    if name in _registered:
        return _registered[name]
    point = _entry_point(name)
    if point is None:
        raise LookupError(name)
    factory: EngineFactory = point.load()
    return factory


def _entry_point(name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=GROUP, name=name)), None)


def _unloadable(name: str, why: str) -> UpstreamFailed:
    return UpstreamFailed(
        f"The context engine {name[:80]!r} is installed and cannot be used: {why}. Mend or reinstall its package, or "
        "set context_engine to default.",
        kind="engine",
    )

"""Owns what a context engine is: the protocol, its optional parts, and the values that go in and out.

Invariants: values are frozen; messages are copies in OpenAI's shape, so that an engine may change what it gets; the
calls for one session never overlap, those for several may; what is optional is told by whether the method is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from memory_service.messages import Message


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
    """What a prompt is wanted for.

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
    """What goes to the model: valid on the wire (`memory_service.sessions.repair` finds nothing to do), in budget."""

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
    """What an engine did of a compaction; tokens are of the session's part of the prompt."""

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
        """What goes to the model, of at most `token_budget` tokens as `messages.message_tokens` counts them."""

    def compact(self, session_id: str, *, token_budget: int, call: CompactCall) -> Compacted:
        """Make what is assembled from now on fit a budget."""


@runtime_checkable
class Bootstrapping(Protocol):
    """An engine that remembers beyond its process."""

    def bootstrap(self, session_id: str) -> int:
        """How many messages of the session it has, from the first on; ingested are those after them."""


@runtime_checkable
class BatchIngesting(Protocol):
    """An engine that takes several messages at once."""

    def ingest_batch(self, session_id: str, messages: Sequence[Message]) -> object:
        """Take note of messages, in place of `ingest`."""


@runtime_checkable
class TurnEnding(Protocol):
    """An engine that works after a turn of the agent."""

    def after_turn(self, session_id: str) -> object:
        """The agent answered, without a tool call."""


@runtime_checkable
class SubagentSpawning(Protocol):
    """An engine that gives a subagent's session something to start with."""

    def prepare_subagent_spawn(self, parent: str, child: str, ttl: float | None) -> object:
        """The session `child` begins, on behalf of `parent`, for at most `ttl` seconds."""


@runtime_checkable
class SubagentEnding(Protocol):
    """An engine that takes over what a subagent found."""

    def on_subagent_ended(self, child: str, reason: str) -> object:
        """The session `child` is over."""


@runtime_checkable
class Forgetting(Protocol):
    """An engine that keeps messages, and so has to erase them."""

    def forget(self, session_id: str) -> object:
        """The session was erased."""


@runtime_checkable
class Disposing(Protocol):
    """An engine that holds something open."""

    def dispose(self) -> object:
        """The service closes."""

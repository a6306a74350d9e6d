"""What the invariants look at: a session at one moment, and one operation with the session before and after it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from memory_service.compaction.checkpoint import is_checkpoint
from memory_service.compaction.record import Head
from memory_service.compaction.view import View
from memory_service.messages.repair import MISTRAL, repair_messages
from memory_service.messages.shapes import Message, is_system, text_of
from memory_service.messages.writing import to_mistral, to_openai
from memory_service.messages.writing_anthropic import to_anthropic
from memory_service.runtime.session import SessionState
from memory_service.runtime.session_services import SessionSnapshot
from tests.properties.said import Outcome
from tests.properties.sessions import Compact, Operation
from tests.properties.world import World
from tests.wire import Provider, Wire, to_litellm

_HANDLE = re.compile(r"log:(\d+)")


class Broken(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant


@dataclass(frozen=True)
class Shot:
    """A session at one moment."""

    log_bytes: bytes
    snapshot: SessionSnapshot
    view: View
    unanswered: tuple[str, ...]

    @property
    def state(self) -> SessionState:
        return self.snapshot.state

    @property
    def head(self) -> Head:
        return self.snapshot.state.head

    @cached_property
    def bytes(self) -> str:
        return as_bytes(self.view)

    @cached_property
    def checkpoint(self) -> str:
        """The text of the view's checkpoint; empty if it has none."""
        return next((text_of(each) for each in self.view.messages if is_checkpoint(text_of(each))), "")

    @cached_property
    def tail(self) -> str:
        """All that is said below the checkpoint."""
        shown = [each for each in self.view.messages if not is_checkpoint(text_of(each)) and not is_system(each)]
        return "\0".join(text for each in shown for text in words_of(each))

    @cached_property
    def all(self) -> str:
        """All that is said in the view."""
        return "\0".join(text for each in self.view.messages for text in words_of(each))

    @cached_property
    def handles(self) -> frozenset[int]:
        """The messages that the tail has stubs of."""
        return frozenset(int(found) for found in _HANDLE.findall(self.tail))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One operation, with the session before and after it."""

    world: World
    operation: Operation
    before: Shot
    outcome: Outcome
    after: Shot

    @property
    def committed(self) -> bool:
        """Whether it made a compaction."""
        return isinstance(self.operation, Compact) and bool(self.outcome.receipt and self.outcome.receipt.applied)


def shot_of(world: World) -> Shot:
    snapshot = world.snapshot()
    return Shot(world.log_bytes, snapshot, snapshot.view(), tuple(world.unanswered()))


def as_bytes(view: View) -> str:
    return json.dumps(view.messages, ensure_ascii=False)


def hold(holds: bool, invariant: str, what: object) -> None:
    if not holds:
        raise Broken(invariant, str(what)[:2_000])


def words_of(message: Message) -> list[str]:
    return [text_of(message), *(call["function"]["arguments"] for call in message.get("tool_calls") or [])]


def on_wire(messages: Sequence[Message], provider: Provider, pending: frozenset[str]) -> Sequence[Wire]:
    """A list of messages as a provider gets it."""
    if provider == "anthropic":
        return to_anthropic(messages)[1]
    if provider == "mistral":
        return to_mistral(repair_messages(messages, pending=pending, rules=MISTRAL).messages)
    return to_openai(messages) if provider == "openai" else to_litellm(messages)

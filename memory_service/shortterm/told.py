"""Owns what a caller is told of sessions and what is said in them. Plain values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from indexer.types import ErasedPassages
from memory_service.budget import ContextWindow, Pressure
from memory_service.compaction.overrides import Value
from memory_service.sessions.records import (
    Json,
)

Wire = Literal["openai", "anthropic", "mistral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedSession:
    """A session that was erased.

    Attributes:
        erased: What a look for it shows afterwards; None where the index could not be read.
        degraded: What is still to be done.
    """

    session_id: str
    erased: ErasedPassages | None
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """A session as it stands.

    Attributes:
        messages: How many were ever said.
        tokens: What its view takes.
        window: The context window, and where that is from.
        numbers: Those of the preset as they hold, by name.
        compactions: How many count.
        flushed_to: The last message that was searched for memories; 0 for none.
        repairs: What was wrong with its log and was mended.
    """

    session_id: str
    model: str | None
    settings: Mapping[str, Json]
    messages: int
    last_seq: int
    tokens: int
    pressure: Pressure
    window: ContextWindow
    preset: str
    numbers: Mapping[str, Value]
    compactions: int
    flushed_to: int
    pins: int
    size_bytes: int
    last_activity: str
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedMessages:
    """Where messages stand in the log, and what the view takes now.

    Attributes:
        tokens: Of the whole view, as its model would count them.
        source: What `tokens` rests on: `usage`, `tokenizer` or `estimate`.
        pressure: `soft` from where memories should be flushed on, `hard` from where it has to be compacted.
        replayed: Whether they stood there already, by the same key.
    """

    first_seq: int
    last_seq: int
    tokens: int
    source: str
    pressure: Pressure
    replayed: bool = False
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSession:
    """A session in a list."""

    session_id: str
    last_activity: dt.datetime
    last_seq: int | None
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedItem:
    """A pin: a text, or a message of the log."""

    pin_id: str
    text: str
    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """Messages of a session, as they go over a wire.

    Attributes:
        messages: As many objects as the wire needs.
        seqs: Of the log: the number of each message.
        system: Anthropic's system prompt, which stands beside the messages there; empty elsewhere.
    """

    messages: tuple[Mapping[str, object], ...]
    seqs: tuple[int, ...] = ()
    system: object = ""
    degraded: tuple[str, ...] = field(default_factory=tuple)

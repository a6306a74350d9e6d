"""Owns compaction without a session: a list of messages in, a shorter one out, and nothing is kept.

Invariants: the same planner, summaries and audits as for sessions; nothing touches the disk.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memory_service.compaction.plan import CompactionTrigger
from memory_service.compaction.summary import IdentifierPolicy
from memory_service.config import Settings
from memory_service.errors import InvalidRequest
from memory_service.llm.base import never
from memory_service.messages import Message, read_sent
from memory_service.sessions.records import Body, Json, Pin, Record, SessionHeader
from memory_service.sessions.records import Message as LoggedMessage
from memory_service.sessions.state import PastCompaction, SessionState, extended
from memory_service.sessions.view import project
from memory_service.shortterm.compactor import CompactionWish, Compactor
from memory_service.shortterm.options import budget_of, options_of, shape_of
from memory_service.shortterm.readings import scale_of
from memory_service.shortterm.receipts import CompactionReceipt, receipt_of_made, receipt_of_plan

MAX_MESSAGES = 20_000
# Source: 15 million took 60 s, and clients wait 30 (our measurement).
MAX_CHARS = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StatelessCall:
    """What is to be compacted.

    Attributes:
        messages: In OpenAI's or Anthropic's shape.
        context_window: What the model takes, in tokens; None for what is known of `model`.
        pins: Texts that stay word for word.
        overhead_tokens: What is sent beside the messages: schemas of tools.
    """

    messages: Sequence[object]
    context_window: int | None = None
    model: str | None = None
    preset: str | None = None
    overrides: Mapping[str, Json] | None = None
    trigger: CompactionTrigger = "threshold"
    target_tokens: int | None = None
    force: bool = False
    instructions: str = ""
    identifier_policy: IdentifierPolicy | None = None
    pins: Sequence[str] = ()
    overhead_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stateless:
    """A list of messages that fits, and how it came about."""

    messages: tuple[Message, ...]
    receipt: CompactionReceipt


def compacted(
    call: StatelessCall,
    settings: Settings,
    compactor: Compactor,
    *,
    now: dt.datetime,
    cancelled: Callable[[], bool] = never,
) -> Stateless:
    """Compact a list of messages, if it has to be or is asked for.

    Raises:
        InvalidRequest: There are no messages, or one is in neither shape.
        Incompressible: What cannot be compacted is larger than the window.
        UpstreamFailed: The model failed and nothing may stand in for it.
    """
    if not 0 < len(call.messages) <= MAX_MESSAGES:
        raise InvalidRequest(f"{len(call.messages)} messages cannot be compacted. Send 1 to {MAX_MESSAGES:,}.")
    state = _state(call)
    options = options_of(settings, state, preset=call.preset, overrides=call.overrides)
    shape = shape_of(options)
    view = project(state, shape)
    scale, _ = scale_of(state, lambda: view, options.model_name)
    budget = budget_of(options, scale=scale, overhead_tokens=call.overhead_tokens)
    wish = CompactionWish(
        trigger="manual" if call.force and call.trigger == "threshold" else call.trigger,
        instructions="\n".join(filter(None, (options.instructions, call.instructions))),
        identifier_policy=call.identifier_policy or options.identifier_policy,
        target_tokens=call.target_tokens,
        overrides=options.overrides,
        force=call.force,
        fallback=options.fallback,
    )
    draft = compactor.draft(state, view, shape, options.preset, budget, wish, now=now, cancelled=cancelled)
    if draft.made is None:
        receipt = receipt_of_plan(draft.plan, options, wish.trigger, summary=draft.summary)
        return Stateless(messages=view.messages, receipt=receipt)
    past = PastCompaction(seq=0, at=now.isoformat(), compaction=draft.made, head=draft.head)
    receipt = receipt_of_made(past, draft.plan, options, applied=True)
    return Stateless(messages=draft.view.messages, receipt=receipt)


def _state(call: StatelessCall) -> SessionState:
    bodies: list[Body] = [
        SessionHeader(session_id="stateless", model=call.model, context_window=call.context_window),
        *(Pin(pin_id=f"p{at}", text=text) for at, text in enumerate(call.pins, start=1)),
    ]
    # Messages are numbered from 1, as whoever sent them counts.
    said: list[Body] = [LoggedMessage(text=_json(message)) for message in call.messages]
    read_sent(call.messages, most_chars=MAX_CHARS)
    state = extended(SessionState(), [_record(0, body) for body in bodies])
    return extended(state, [_record(seq, body) for seq, body in enumerate(said, start=1)])


def _record(seq: int, body: Body) -> Record:
    return Record(seq=seq, ts="", kind="", body=body)


def _json(message: object) -> str:
    return json.dumps(message, ensure_ascii=False)

"""The compaction of a bare list of messages: a list in, a shorter one out, and nothing is kept.

```python
from memory_service.compaction import compact

result = compact(messages, context_window=16_000)
reply = call_the_model(result.messages)
print(result.receipt.tokens_before, result.receipt.tokens_after, result.receipt.reason)
```

Invariants: the planner, summaries and audits are those of sessions; nothing is read from the disk, written to it or
taken from settings; what comes out is valid for every provider and fits the window, or the call fails.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memory_service.compaction.budget import resolve_window
from memory_service.compaction.compactor import Compactor
from memory_service.compaction.draft import CompactionDraft, CompactionOptions
from memory_service.compaction.presets import (
    CompactionSettings,
    Fallback,
    budget_of,
    counted_scale,
    preset_named,
    preset_with,
)
from memory_service.compaction.receipt import receipt_of_made, receipt_of_plan
from memory_service.compaction.record import LoggedCompaction, PinRecord
from memory_service.compaction.view import Conversation, project, shape_of, view_language, with_head
from memory_service.errors import InvalidRequest
from memory_service.llm.base import SAFETY_TIMEOUT_SECONDS, ChatModel, not_cancelled
from memory_service.llm.windows import model_limits
from memory_service.messages.reading import read_messages, read_sent
from memory_service.messages.repair import to_wire
from memory_service.messages.shapes import ANTHROPIC_ALONE, Json, Message, compact_command
from memory_service.messages.sizes import MESSAGE_TOKENS, estimate_tokens, number_message, tools_tokens
from memory_service.schemas.base import fault_in
from memory_service.schemas.compaction import (
    CompactedMessages,
    CompactionReceipt,
    IdentifierPolicy,
    StatelessRequest,
    Trigger,
)
from memory_service.schemas.messages import Wire

if TYPE_CHECKING:
    from indexer import Embedder
    from memory_service.text.correction_judge import TalkJudge

# Source: 15 million took 60 s, and clients wait 30 (our measurement).
_MAX_CHARS = 4_000_000


def compact(
    messages: Iterable[Mapping[str, Any]], *, context_window: int | None = None, preset: str = "default",
    model: ChatModel | None = None, model_name: str | None = None, overrides: Mapping[str, Json] | None = None,
    trigger: Trigger = "threshold", target_tokens: int | None = None, force: bool = False, instructions: str = "",
    identifier_policy: IdentifierPolicy = "preserve", pins: Iterable[str] = (), system_prompt: str = "",
    tools: Iterable[Mapping[str, Any]] = (), format: Wire | None = None, fallback: Fallback | None = None,
    embedder: Embedder | None = None, timeout_seconds: float = SAFETY_TIMEOUT_SECONDS,
    cancelled: Callable[[], bool] = not_cancelled,
) -> CompactedMessages:  # fmt: skip
    """Compact a list of messages, if it has to be or is asked for.

    What fits comes back as it is, and `receipt.reason` says why nothing was done. Messages are numbered from 1 in the
    receipt, as the caller counts them.

    Args:
        messages: In OpenAI's or Anthropic's shape; they are not changed.
        context_window: What the model takes, in tokens; None for what is known of `model_name`.
        preset: How to compact: default, openclaw, turns, ponybunny or opencode.
        model: Writes the summary; None for rules.
        model_name: The model that the messages go to, by its litellm name.
        overrides: Numbers of the preset, by name.
        trigger: Why; `overflow` cuts deeper.
        target_tokens: What the messages should come to, if not the preset's target.
        force: Compact although there is room.
        instructions: What the summary should look at.
        identifier_policy: What the summary does with ids and paths; `custom` is as `instructions` say.
        pins: Texts that stay word for word.
        system_prompt: Sent beside the messages: counted, and not sent back.
        tools: Schemas of the agent's tools: counted, and not sent back.
        format: The shape of the messages in the result; None for the one that they came in.
        fallback: What stands in for the model when it fails: extractive, note, last_turns or none; None for the
            preset's.
        embedder: Helps the rules to choose; None for words alone. With `multilingual_embedder()` a judge tells rules,
            decisions and what lasts; patterns do with others.
        timeout_seconds: For all calls of the model.
        cancelled: Asked during the work; once true, it ends.

    Returns:
        The messages and the receipt, as `POST /v1/compact` answers them.

    Raises:
        InvalidRequest: There are no messages, one is in neither shape, or an argument cannot be used.
        TooLarge: There is too much in them.
        Incompressible: What cannot be compacted is larger than the window.
        UpstreamFailed: The model failed and nothing may stand in for it.
        CallCancelled: `cancelled` became true.
    """
    fields = [*messages]
    request = _request(
        messages=fields, context_window=context_window, model=model_name, preset=preset, trigger=trigger, force=force,
        target_tokens=target_tokens, instructions=instructions, identifier_policy=identifier_policy, pins=[*pins],
        overrides=None if overrides is None else dict(overrides), system_prompt=system_prompt,
        tools=[*map(dict, tools)], format=format or _wire_of(fields),
    )  # fmt: skip
    judge = _judge_by(embedder)
    compactor = Compactor(model=model, embedder=embedder, judge=judge, timeout_seconds=timeout_seconds)
    now = dt.datetime.now(dt.UTC)
    new_messages = compact_messages(request, _options(request, fallback), compactor, now=now, cancelled=cancelled)
    return new_messages if format or new_messages.receipt.applied else _as_they_came(new_messages, request)


def _judge_by(embedder: Embedder | None) -> TalkJudge | None:
    """The judge of sentences that reads the vectors of a model; None where it was trained on those of another."""
    if embedder is None:
        return None
    from indexer import multilingual_embedder
    from memory_service.text.correction_judge import TalkJudge

    if embedder.fingerprint != multilingual_embedder().fingerprint:
        return None
    return TalkJudge(embed=embedder.embed_documents, embedder=embedder.fingerprint)


def compact_messages(
    request: StatelessRequest,
    options: CompactionSettings,
    compactor: Compactor,
    *,
    now: dt.datetime,
    model: ChatModel | None = None,
    cancelled: Callable[[], bool] = not_cancelled,
) -> CompactedMessages:
    """Compact the messages of a request; see `compact`. A model given here writes instead of the compactor's."""
    conversation = _conversation(request.messages, request.pins)
    shape = shape_of(options)
    view = project(conversation, shape)
    scale = counted_scale(lambda: view.messages, options.model_name)
    budget = budget_of(options, scale=1.0 if scale is None else scale, overhead_tokens=_overhead_tokens(request))
    call = replace(_compaction_options(request, options), model=model)
    draft = compactor.draft(conversation, view, shape, options, budget, call, now=now, cancelled=cancelled)
    receipt = _receipt(draft, options, call, now)
    language = view_language(with_head(conversation, draft.head))
    sent_fields, system = to_wire(draft.view.messages, request.format, language=language, model=request.model)
    return CompactedMessages.model_validate(
        {"messages": sent_fields, "system": system, "receipt": receipt, "degraded": receipt.degraded}
    )


def _request(**fields: object) -> StatelessRequest:
    try:
        return StatelessRequest.model_validate(fields)
    except ValueError as error:
        # Of pydantic, which names the argument; never its value.
        name, reason = fault_in(error.errors(include_input=False)[0])  # type: ignore[attr-defined]
        raise InvalidRequest(f"The argument {name[:80]!r} cannot be used: {reason}. Give another value.") from None


def _options(request: StatelessRequest, fallback: Fallback | None) -> CompactionSettings:
    overrides = request.overrides or {}
    preset = preset_with(preset_named(request.preset or "default"), overrides)
    limits = model_limits(request.model) if request.model else None
    window = resolve_window(
        session=request.context_window,
        model=limits.window_tokens if limits else None,
        preset=preset.thresholds.window_tokens,
        refuse_below=preset.thresholds.refuse_below,
        warn_below=preset.thresholds.warn_below,
    )
    return CompactionSettings(
        preset=preset,
        overrides=overrides,
        window=window,
        instructions="",
        identifier_policy="preserve",
        fallback=fallback or preset.fallback,
        model_name=request.model,
        max_output_tokens=limits.max_output_tokens if limits else None,
    )


def _conversation(messages: Sequence[Mapping[str, Any]], pins: Sequence[str]) -> Conversation:
    """The messages, numbered as whoever sent them counts: several of ours may be one of Anthropic's."""
    read_sent(messages, most_chars=_MAX_CHARS)
    pairs = [(seq, message) for seq, given_message in enumerate(messages, 1) for message in _messages_of(given_message)]
    return Conversation(
        messages=tuple(number_message(message, seq) for seq, message in pairs),
        pins=tuple(PinRecord(pin_id=f"p{at}", text=text) for at, text in enumerate(pins, 1)),
        last_seq=len(messages),
    )


def _messages_of(given_fields: Mapping[str, Any]) -> list[Message]:
    """A message as the view has it; a command to the service is none."""
    read = read_messages([given_fields])
    return [] if len(read) == 1 and compact_command(read[0]) is not None else read


def _overhead_tokens(request: StatelessRequest) -> int:
    """Size of what is sent beside the messages, in tokens by estimate."""
    system = estimate_tokens(request.system_prompt) + MESSAGE_TOKENS if request.system_prompt else 0
    return system + tools_tokens(request.tools)


def _compaction_options(request: StatelessRequest, options: CompactionSettings) -> CompactionOptions:
    return CompactionOptions(
        trigger="manual" if request.force and request.trigger == "threshold" else request.trigger,
        instructions="\n".join(filter(None, (options.instructions, request.instructions))),
        identifier_policy=request.identifier_policy or options.identifier_policy,
        target_tokens=request.target_tokens,
        force=request.force,
    )


def _receipt(
    draft: CompactionDraft, options: CompactionSettings, call: CompactionOptions, now: dt.datetime
) -> CompactionReceipt:
    if draft.made is None:
        return receipt_of_plan(draft.plan, options, call.trigger, summary=draft.summary)
    past = LoggedCompaction(seq=0, at=now.isoformat(), compaction=draft.made, head=draft.head)
    return receipt_of_made(past, draft.plan, options, is_applied=True)


def _as_they_came(messages: CompactedMessages, request: StatelessRequest) -> CompactedMessages:
    """Messages that nothing was done to, as the caller has them; those that had to be made valid stay so."""
    if messages.messages != to_wire(read_messages(request.messages), request.format, model=request.model)[0]:
        return messages
    return messages.model_copy(update={"messages": request.messages, "system": None})


def _wire_of(messages: Sequence[object]) -> Wire:
    """The shape that messages came in; OpenAI's where both have it."""
    contents = [message.get("content") for message in messages if isinstance(message, Mapping)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    anthropic = any(isinstance(part, Mapping) and part.get("type") in ANTHROPIC_ALONE for part in parts)
    return "anthropic" if anthropic else "openai"

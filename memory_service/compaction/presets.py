"""The presets: the same machine set to work as each of five systems does, as plain values.

| preset      | begins                  | keeps                        | summary                        |
|-------------|-------------------------|------------------------------|--------------------------------|
| default     | 90 % of what is usable  | a quarter, 2,000 to 20,000   | updated section by section     |
| openclaw    | window less reserve     | 20,000 tokens                | rolling over chunks, two parts |
| turns       | 75 % of the window      | the last 6 turns             | plain text, by the assistant   |
| ponybunny   | 80 % of the window      | 5 to 100 messages            | parts at once, merged          |
| opencode    | all that is usable      | 2 turns, 2,000 to 8,000      | updated section by section     |

Invariants: pure; a preset is a value and does nothing; `default` is what measures best, the others are what their
systems do. What can be overridden is what has a type of `budget.Bounds`; its name is made from the preset's own fields:
those of `thresholds` and of the preset itself as they are, those of its other parts with the part before them, such as
`keep_turns` and `pruning_soft_trim_chars`. `CompactionSettings` is a preset at work: with its window, for one
conversation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from memory_service.compaction.budget import (
    DEFAULT_THRESHOLDS,
    OPENCLAW,
    OPENCODE,
    PONYBUNNY,
    TURNS,
    Chars,
    ContextBudget,
    Count,
    CountFromZero,
    Factor,
    Seconds,
    Share,
    Switch,
    Thresholds,
    Tokens,
    budget_for,
)
from memory_service.compaction.cut import KeepRules
from memory_service.compaction.prompts import ANCHORED_HEADINGS, OPENCODE_HEADINGS
from memory_service.compaction.prune_steps import GuardRules, PruningMode, PruningRules
from memory_service.errors import InvalidRequest
from memory_service.home import nearest
from memory_service.llm.calls import BACKOFF_SECONDS, CALL_ATTEMPTS
from memory_service.llm.chunks import CHUNK_RATIO, MIN_CHUNK_RATIO, OVERHEAD_TOKENS, SAFETY
from memory_service.llm.token_counter import LEAST_SCALE, MOST_SCALE, exact_counter
from memory_service.llm.transcript import TOOL_OUTPUT_CHARS
from memory_service.messages.shapes import Json, text_of, tool_calls_of
from memory_service.messages.sizes import estimate_tokens, message_tokens
from memory_service.schemas.memories import Order
from memory_service.text.placeholders import OLD_CLEARED, TRUNCATED

if TYPE_CHECKING:
    from memory_service.messages.shapes import Message
    from memory_service.schemas.compaction import IdentifierPolicy
    from memory_service.schemas.sessions import ContextWindow

Style = Literal["anchored", "rolling", "parts", "sections", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRules:
    """How a preset summarises.

    Attributes:
        style: `anchored`: chunk after chunk, each bringing the summary up to date. `rolling`: the same, but what
            takes several chunks is first divided into parts, whose summaries are merged. `parts`: as many parts as
            the window asks for, at once, merged. `sections` and `plain`: one call, which fails if all does not fit.
        headings: What a summary has to hold, in order, see `prompts.Brief`; empty for free text.
        tool_output_chars: The longest tool result shown; a CJK character counts for four.
        chunk_ratio: The share of the window that a chunk takes, where messages are small.
        min_chunk_ratio: The same where they are large.
        safety: By what estimates are multiplied.
        overhead_tokens: Taken off a chunk for prompt and answer.
        single_pass: Whether one call reads everything if it fits, however large a share it takes.
        parts: Into how many parts `rolling` divides.
        min_messages_for_parts: With fewer messages, nothing is divided.
        concurrent: Whether parts are summarised at once.
        merge_by_model: Whether the model merges the parts' summaries; else they are put together while they fit.
        without_oversized: Whether a message that is too large gives way to a note; else it is a failure.
        condense: Whether a summary over its target is summarised again, instead of being cut or refused.
        retries: Further answers asked for after one that was refused, with the reasons.
        attempts: Tries for an answer whose provider failed in a way that may pass.
        backoff_seconds: The wait before the second of them; it doubles each time.
        max_calls: The most requests for one summary.
        keep_partial: Whether the summary of the first chunks is kept, marked, when a later one fails.
        keep_unverified: Whether a line that its source does not hold stays, marked, after the last try; else it is
            left out.
    """

    style: Style = "anchored"
    headings: tuple[str, ...] = ANCHORED_HEADINGS
    tool_output_chars: Chars = TOOL_OUTPUT_CHARS
    chunk_ratio: Share = CHUNK_RATIO
    min_chunk_ratio: Share = MIN_CHUNK_RATIO
    safety: Factor = SAFETY
    overhead_tokens: Tokens = OVERHEAD_TOKENS
    single_pass: bool = False
    parts: Count = 2
    min_messages_for_parts: Count = 4
    concurrent: bool = False
    merge_by_model: bool = True
    without_oversized: bool = True
    condense: bool = False
    retries: CountFromZero = 1
    attempts: Count = CALL_ATTEMPTS
    backoff_seconds: Seconds = BACKOFF_SECONDS
    max_calls: Count = 24
    keep_partial: bool = True
    keep_unverified: Switch = False

    @property
    def one_call(self) -> bool:
        """True if everything has to be read by one call."""
        return self.style in ("sections", "plain")


Fallback = Literal["extractive", "note", "last_turns", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRules:
    """Steps of a preset when a provider refuses a prompt for its size.

    Attributes:
        attempts: Compactions in a row, before anything else is tried.
        truncates: Whether oversized results are cut after that, once.
        on_length: Whether an answer that was cut at its end is a reason to compact before the next prompt.
        replays: Whether the last request is put again behind the summary, its media as labels, with a note to go on.
    """

    attempts: CountFromZero = 3
    truncates: Switch = True
    on_length: bool = False
    replays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRules:
    """How memories are put into a prompt.

    Attributes:
        most_tokens: The most that they may take, whatever is asked for; None for no limit.
        order: Whether memories go before what was said in sessions, where a request does not say.
    """

    most_tokens: Tokens | None = None
    order: Order = "score"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """How sessions are compacted.

    Attributes:
        thresholds: When, and how small it gets.
        keep: What stays word for word.
        summary: How a model writes the summary.
        fallback: What stands in for it when the model fails: a summary by rules, a note on how much there was, the
            last turns alone, or nothing: the session stays as it was, and the caller gets the error.
        pruning_mode: What is pruned before anything is summarised.
        role: Whose message the summary is shown as.
        auto: Whether a context compacts by itself where that is due; else only who asks for it does. Source: seed 004,
            `compaction.auto`.
        checkpoint_share: Of the target, what summary and ledger may take together.
        least_summary_tokens: A summary may be so long, however little it stands for.
        most_summary_tokens: And no longer than this, where no share of the window is set.
        summary_share: Of the window, the longest summary. Source: seed 003, 4.1.
        emergency_summary_share: The same after an overflow; None for the same as else. Source: seed 003, 4.3.
        max_history_share: Of the window, what is summarised at once: the oldest half of more than that is summarised
            before the rest, again and again. None for everything. Source: seed 000, 2.4 and 4.2.
        safeguard: Whether summaries have the five sections of OpenClaw's safeguard, and what a context compacts by
            itself has `safeguard` for its trigger. Source: seed 000, 1 and 6, `mode`.
        ledger_share: Of the summary's size, what the ledger may take beside it.
        request_share: Of what is usable, what a request of the user may take in a checkpoint.
        summariser_window_tokens: The window of a model of which nothing is known.
    """

    name: str
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    keep: KeepRules = field(default_factory=KeepRules)
    summary: SummaryRules = field(default_factory=SummaryRules)
    fallback: Fallback = "extractive"
    pruning: PruningRules = field(default_factory=PruningRules)
    pruning_mode: PruningMode = "to_target"
    guard: GuardRules = field(default_factory=GuardRules)
    recovery: RecoveryRules = field(default_factory=RecoveryRules)
    recall: RecallRules = field(default_factory=RecallRules)
    role: Literal["user", "assistant"] = "user"
    auto: Switch = True
    checkpoint_share: Share = 0.35
    least_summary_tokens: Tokens = 200
    most_summary_tokens: Tokens = 4_000
    summary_share: Share | None = None
    emergency_summary_share: Share | None = None
    max_history_share: Share | None = None
    safeguard: Switch = False
    ledger_share: Share = 0.6
    request_share: Share = 0.25
    summariser_window_tokens: Tokens = 32_000

    def longest_summary(self, window_tokens: int, *, emergency: bool = False) -> int:
        """The longest summary for a window, in tokens."""
        share = self.emergency_summary_share if emergency else None
        share = share or self.summary_share
        return self.most_summary_tokens if share is None else max(self.least_summary_tokens, int(share * window_tokens))

    def ledger_tokens(self, summary_tokens: int) -> int:
        """The longest ledger beside a summary of a size."""
        return int(summary_tokens * self.ledger_share)

    def request_tokens(self, usable_tokens: int) -> int:
        """The longest request that a checkpoint carries word for word."""
        return int(usable_tokens * self.request_share)


# Source: seeds 000 and 002: the 20,000 newest tokens stay; two parts merged; a text note when all else fails.
_OPENCLAW = Preset(
    name="openclaw",
    thresholds=OPENCLAW,
    keep=KeepRules(share=0.5, least_tokens=0, most_tokens=20_000),
    summary=SummaryRules(style="rolling", headings=()),
    fallback="note",
    max_history_share=0.5,
    # Source: seed 002, 13.4: cut with a notice, or taken out whole; it names no number for the second.
    guard=GuardRules(clear_share=0.5, notice=TRUNCATED),
    pruning_mode="cache_ttl",
    recovery=RecoveryRules(attempts=3, truncates=True),
)

# Source: seed 001: the last 6 turns stay, the summary is the assistant's, what else is missing are the last turns.
_TURNS = Preset(
    name="turns",
    thresholds=TURNS,
    keep=KeepRules(share=1.0, least_tokens=0, most_tokens=None, turns=6),
    summary=SummaryRules(style="plain", headings=()),
    fallback="last_turns",
    pruning_mode="off",
    recovery=RecoveryRules(attempts=2, truncates=False, on_length=True),
    role="assistant",
)

# Source: seed 003: messages kept by the size of the window, two after an error; parts at once, summarised again.
_PONYBUNNY = Preset(
    name="ponybunny",
    thresholds=PONYBUNNY,
    keep=KeepRules(
        share=1.0,
        least_tokens=0,
        most_tokens=None,
        messages_by_window=((16_000, 5), (32_000, 10), (64_000, 20), (128_000, 50), (200_000, 100)),
        emergency_messages=2,
    ),
    summary=SummaryRules(
        style="parts",
        headings=(),
        concurrent=True,
        merge_by_model=False,
        condense=True,
        attempts=3,
    ),
    fallback="note",
    summary_share=0.30,
    emergency_summary_share=0.20,
    pruning_mode="off",
    recovery=RecoveryRules(attempts=3, truncates=False),
    recall=RecallRules(most_tokens=10_000, order="memory_first"),
)

# Source: seed 004: two turns within 2,000 to 8,000 tokens stay, tools say 2,000 characters; no fallback: an error.
_OPENCODE = Preset(
    name="opencode",
    thresholds=OPENCODE,
    keep=KeepRules(share=0.25, least_tokens=2_000, most_tokens=8_000, turns=2),
    # No margin: the model of the session reads all that it was just sent, and says so itself if that is too much.
    summary=SummaryRules(style="sections", headings=OPENCODE_HEADINGS, safety=1.0),
    fallback="none",
    guard=GuardRules(max_chars=2_000),
    pruning=PruningRules(placeholder=OLD_CLEARED),
    pruning_mode="budget",
    recovery=RecoveryRules(attempts=1, truncates=False, replays=True),
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {preset.name: preset for preset in (Preset(name="default"), _OPENCLAW, _TURNS, _PONYBUNNY, _OPENCODE)}
)


Value: TypeAlias = bool | int | float | None

_KINDS = {bool: "true or false", int: "a whole number", float: "a number"}

# What must not be above what, by the names of both; a target that is the trigger would never be reached.
_ORDERED = (
    ("target_share", "trigger_share"),
    ("flush_share", "trigger_share"),
    ("emergency_target_share", "target_share"),
    ("least_summary_tokens", "most_summary_tokens"),
    ("emergency_summary_share", "summary_share"),
    ("keep_least_tokens", "keep_most_tokens"),
    ("summary_min_chunk_ratio", "summary_chunk_ratio"),
    ("guard_share", "guard_clear_share"),
    ("pruning_head_chars", "pruning_soft_trim_chars"),
    ("pruning_tail_chars", "pruning_soft_trim_chars"),
)
_STRICT = frozenset({"target_share"})


def numbers_of(preset: Preset) -> dict[str, Value]:
    """All that can be overridden, as the preset has it."""
    return {name: _read(preset, place) for name, (place, _) in _FIELDS.items()}


def with_overrides(preset: Preset, overrides: Mapping[str, object]) -> Preset:
    """The preset with numbers of one's own.

    Args:
        preset: As it is.
        overrides: Values by name, see `numbers_of`; null where the preset's own may be none.

    Raises:
        ValueError: A name is unknown, a value is of another type or out of its bounds, or the numbers contradict each
            other; the message names the field.
    """
    if not overrides:
        return preset
    values = _check_overrides(overrides)
    for name, value in values.items():
        preset = _with(preset, _FIELDS[name][0], value)
    return _order_numbers(preset, values)


def _fields() -> Iterator[tuple[str, tuple[tuple[str, ...], Any]]]:
    """The name of each number, where it stands in a preset, and its type."""
    for name, hint in get_type_hints(Preset, include_extras=True).items():
        if dataclasses.is_dataclass(hint):
            prefix = "" if name == "thresholds" else f"{name}_"
            for inner, kind in get_type_hints(hint, include_extras=True).items():
                if _is_open(kind):
                    yield f"{prefix}{inner}", ((name, inner), kind)
        elif _is_open(hint):
            yield name, ((name,), hint)


def _is_open(hint: Any) -> bool:
    return any(get_origin(value) is Annotated for value in (hint, *get_args(hint)))


_FIELDS = dict(sorted(_fields()))


def _check_overrides(overrides: Mapping[str, object]) -> dict[str, Value]:
    unknown_name = next((name for name in overrides if name not in _FIELDS), None)
    if unknown_name is not None:
        near = nearest(str(unknown_name), _FIELDS) or f" There are {', '.join(_FIELDS)}."
        raise ValueError(f"{str(unknown_name)[:80]!r} is no number of a preset.{near}")
    return {name: _value(name, value, _FIELDS[name][1]) for name, value in overrides.items()}


def _value(name: str, value: object, hint: Any) -> Value:
    """A value, if it is of the type of its field and within its bounds."""
    kinds = (hint,) if get_origin(hint) is Annotated else get_args(hint)
    if value is None and type(None) in kinds:
        return None
    kind, bounds = next(get_args(each_kind) for each_kind in kinds if get_origin(each_kind) is Annotated)
    # To Python, true is a whole number, and a whole number is no float.
    fits = isinstance(value, bool) if kind is bool else type(value) is int or (kind is float and type(value) is float)
    if not fits:
        raise ValueError(f"{name} is {repr(value)[:80]} and has to be {_KINDS[kind]}.")
    # NaN is within no bounds.
    if not isinstance(value, int | float) or not bounds.least <= value <= bounds.most:
        raise ValueError(f"{name} is {value} and has to be from {bounds.least:,} to {bounds.most:,}.")
    return value


def _order_numbers(preset: Preset, values: Mapping[str, Value]) -> Preset:
    """The preset with the numbers that nobody named within those that somebody did."""
    numbers = numbers_of(preset)
    for low, high in _ORDERED:
        # Without a share of its own, compaction begins where all that can be used is full.
        least, most = numbers[low], 1.0 if high == "trigger_share" and numbers[high] is None else numbers[high]
        if not {low, high} & values.keys() or least is None or most is None:
            continue
        if least < most or (least == most and low not in _STRICT):
            continue
        if low not in values and low not in _STRICT:
            preset = _with(preset, _FIELDS[low][0], most)
            continue
        named_low, wanted_kind = low if low in values else high, "less than" if low in _STRICT else "at most"
        raise ValueError(f"{named_low}: {low} is {least:g} and has to be {wanted_kind} {high}, which is {most:g}.")
    return preset


def _read(preset: Preset, place: tuple[str, ...]) -> Any:
    value: Any = preset
    for name in place:
        value = getattr(value, name)
    return value


def _with(preset: Preset, place: tuple[str, ...], value: Any) -> Preset:
    if len(place) == 1:
        return dataclasses.replace(preset, **{place[0]: value})
    part = getattr(preset, place[0])
    return dataclasses.replace(preset, **{place[0]: dataclasses.replace(part, **{place[1]: value})})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """How a conversation is compacted.

    Attributes:
        preset: The preset, what was overridden included.
        overrides: What of its numbers was overridden.
        fallback: What stands in for a model's summary when the model fails.
        model_name: The model that the messages go to; None if it is not known.
        max_output_tokens: The longest answer of that model; None if it is not known.
    """

    preset: Preset
    overrides: Mapping[str, Json]
    window: ContextWindow
    instructions: str
    identifier_policy: IdentifierPolicy
    fallback: Fallback
    model_name: str | None
    max_output_tokens: int | None

    @property
    def thresholds(self) -> Thresholds:
        """Where compaction begins."""
        return self.preset.thresholds


def preset_named(name: str) -> Preset:
    """A preset by its name.

    Raises:
        InvalidRequest: There is none of that name.
    """
    if name not in PRESETS:
        raise InvalidRequest(f"There is no preset {name[:80]!r}. Use one of {', '.join(PRESETS)}.")
    return PRESETS[name]


def preset_with(preset: Preset, overrides: Mapping[str, Json]) -> Preset:
    """A preset with numbers of one's own.

    Raises:
        InvalidRequest: There is no such number, or it cannot be used.
    """
    try:
        return with_overrides(preset, overrides)
    except ValueError as error:
        raise InvalidRequest(f"The preset {preset.name} cannot be overridden so: overrides.{error}") from None


def budget_of(
    options: CompactionSettings,
    *,
    scale: float = 1.0,
    overhead_tokens: int = 0,
    tools_tokens: int = 0,
    most_tokens: int | None = None,
) -> ContextBudget:
    """Budget of a conversation.

    Args:
        options: How it is treated.
        scale: Tokens as its model counts them for each one estimated.
        overhead_tokens: What is sent beside its view, by estimate.
        tools_tokens: Of that, the schemas of tools.
        most_tokens: The longest prompt wanted, if that is less than the window allows.

    Raises:
        InvalidRequest: The window is below what the preset can work with.
        Incompressible: The overhead leaves nothing.
    """
    window, thresholds = options.window, options.thresholds
    if window.problem == "refuse":
        raise InvalidRequest(window.message)
    if most_tokens is not None and most_tokens < window.tokens:
        # The reserve is for an answer, which the longest prompt does not include.
        window = window.model_copy(update={"tokens": most_tokens})
        thresholds = replace(thresholds, reserve_tokens=0)
    return budget_for(
        window,
        thresholds,
        max_output_tokens=options.max_output_tokens,
        overhead_tokens=int(overhead_tokens * scale),
        tools_tokens=int(tools_tokens * scale),
        scale=scale,
    )


def counted_scale(seen: Callable[[], Sequence[Message]], model: str | None) -> float | None:
    """Tokens as a model's tokenizer counts them for each one estimated; None where no tokenizer is at hand.

    Args:
        seen: Gives the messages of the view that is counted; asked for only if there is a tokenizer.
        model: The model that the view is for.
    """
    counter = exact_counter(model) if model else None
    return _scale_of(seen(), counter) if counter is not None else None


def _scale_of(messages: Sequence[Message], counter: Callable[[str], int]) -> float:
    """Frames of messages and media are taken as estimated."""
    estimated_count = exact = 0
    for message in messages:
        texts = [text_of(message), *(call["function"]["arguments"] for call in tool_calls_of(message))]
        size = message_tokens(message)
        estimated_count += size
        exact += size + sum(counter(text) - estimate_tokens(text) for text in texts if text)
    return min(max(exact / estimated_count, LEAST_SCALE), MOST_SCALE) if estimated_count else 1.0

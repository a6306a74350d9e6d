"""The one budget that guard, pruning, flush and compaction share, and the window it starts from. Pure.

Invariants: `0 <= emergency target <= target < soft <= hard <= usable <= window`, for every window, overhead and
thresholds that leave something; else `Incompressible`. All five numbers count the messages of a view alone: what
system prompt and tool schemas take, the overhead, has been taken off, and must not be in what is compared with them.
A flush begins at `soft`, a compaction at `hard`, and both are of one value, so the flush always comes first. A field of
a preset that has one of the types of numbers here, such as `Share`, can be overridden by users, within its bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from memory_service.errors import Incompressible
from memory_service.schemas.base import Pressure
from memory_service.schemas.sessions import ContextWindow, WindowSource


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that a number may be."""

    least: float
    most: float


Share: TypeAlias = Annotated[float, Bounds(0.001, 1)]
Factor: TypeAlias = Annotated[float, Bounds(1, 10)]
Seconds: TypeAlias = Annotated[float, Bounds(0, 3_600)]
Tokens: TypeAlias = Annotated[int, Bounds(0, 1_000_000_000)]
Chars: TypeAlias = Annotated[int, Bounds(0, 1_000_000_000)]
Count: TypeAlias = Annotated[int, Bounds(1, 100_000)]
CountFromZero: TypeAlias = Annotated[int, Bounds(0, 100_000)]
Switch: TypeAlias = Annotated[bool, Bounds(0, 1)]


WindowProblem = Literal["", "warn", "refuse"]

# Source: what most models of 2024 and later take at least.
DEFAULT_WINDOW_TOKENS = 128_000
# A compaction ends at least this share of the usable tokens below the next flush, or the two would take turns.
MIN_GAP_SHARE = 0.15

# Source: litellm's table, November 2026.
_FAMILIES = (
    ("GPT-4o", 128_000),
    ("DeepSeek", 131_072),
    ("Claude", 200_000),
    ("GPT-5", 272_000),
    ("GPT-4.1", 1_047_576),
    ("Gemini", 1_048_576),
)
_NAMED = 4
_ORIGINS: dict[WindowSource, str] = {
    "session": "as the session sets it",
    "learned": "as the provider's own error told",
    "settings": "as the settings have it",
    "model": "as is known of the model",
    "preset": "as the preset has it",
    "default": "as nothing is known of the model",
}


def resolve_window(
    *,
    session: int | None = None,
    learned_count: int | None = None,
    settings: int | None = None,
    model: int | None = None,
    preset: int | None = None,
    default: int = DEFAULT_WINDOW_TOKENS,
    refuse_below: int = 0,
    warn_below: int = 0,
) -> ContextWindow:
    """Decide the context window: the first source that says something, but never more than was learned.

    A window that was learned is never refused, however small: a session that worked goes on as well as it can.

    Args:
        session: What the session sets, in tokens like all of these; what is not positive says nothing.
        learned_count: What an error of the provider told: it lowers whichever else won.
        settings: What the settings have for the model, or for all.
        model: What is known of the model.
        preset: The window that a preset assumes.
        default: Where nothing else says anything.
        refuse_below: See `Thresholds`.
        warn_below: See `Thresholds`.
    """
    considered_parts: tuple[tuple[WindowSource, int | None], ...] = (
        ("session", _positive_or_none(session)),
        ("settings", _positive_or_none(settings)),
        ("model", _positive_or_none(model)),
        ("preset", _positive_or_none(preset)),
        ("default", max(default, 1)),
    )
    source, tokens = next((source, number) for source, number in considered_parts if number is not None)
    limit = _positive_or_none(learned_count)
    if limit is not None and limit < tokens:
        source, tokens = "learned", limit
    problem: WindowProblem = "refuse" if tokens < refuse_below else "warn" if tokens < warn_below else ""
    if source == "learned" and problem == "refuse":
        problem = "warn"
    return ContextWindow(
        tokens=tokens,
        source=source,
        considered=dict((considered_parts[0], ("learned", limit), *considered_parts[1:])),
        problem=problem,
        message=_complaint(tokens, source, problem, refuse_below, warn_below),
    )


def _positive_or_none(tokens: int | None) -> int | None:
    return tokens if tokens is not None and tokens > 0 else None


def _complaint(tokens: int, source: WindowSource, problem: WindowProblem, refuse_below: int, warn_below: int) -> str:
    if not problem:
        return ""
    number, setting = (
        (refuse_below, "refuse_below_tokens") if problem == "refuse" else (warn_below, "warn_below_tokens")
    )
    if source == "learned" and refuse_below > number:
        number, setting = refuse_below, "refuse_below_tokens"
    kind = "needed" if problem == "refuse" else "advised"
    wanted_count = max(number, warn_below)
    names = [f"{name} ({_short(size)})" for name, size in _FAMILIES if size >= wanted_count][:_NAMED]
    models = f"Use a model with a larger window, such as {', '.join(names)}" if names else "Use a larger model"
    also = "set context_window of the session" if source == "learned" else "set context_window"
    return (
        f"The context window of {tokens:,} tokens ({_ORIGINS[source]}) is below the {number:,} that are {kind}. "
        f"{models}, {also} if the model takes more, or lower compaction.{setting}."
    )


def _short(tokens: int) -> str:
    return f"{tokens / 1_000_000:.0f}M" if tokens >= 1_000_000 else f"{tokens // 1000}k"


# --- thresholds ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When a session is flushed and compacted, and how small it gets: part of a preset.

    Attributes:
        reserve_tokens: What is kept free for the answer and what comes with it, at most.
        reserve_share: The same as a share of the window; the smaller counts.
        reserve_follows_output: Whether a model with shorter answers needs no more than their length.
        base: What the other shares are of: the whole window, or what can be used of it. Where a share of the
            window would not leave the reserve and the overhead, all of them shrink together.
        trigger_share: Compaction begins here; None is the whole of what can be used.
        flush_share: Flush begins here.
        flush_margin_tokens: In place of `flush_share`: so far below what can be used, or half of it, if that is less.
        target_share: A compaction ends below this.
        emergency_target_share: The same for one after the provider refused the prompt.
        flush_most_tokens: Flush begins here at the latest, and the targets come down with it.
        window_tokens: The window that the preset assumes where nothing is known of the model.
        refuse_below: A smaller window, in tokens, is refused.
        warn_below: One smaller than this is warned of.
    """

    reserve_tokens: Tokens = 20_000
    reserve_share: Share = 0.25
    reserve_follows_output: Switch = True
    base: Literal["window", "usable"] = "usable"
    trigger_share: Share | None = 0.90
    flush_share: Share | None = 0.75
    flush_margin_tokens: int | None = None
    target_share: Share = 0.50
    emergency_target_share: Share = 0.35
    flush_most_tokens: Tokens | None = 150_000
    window_tokens: int | None = None
    refuse_below: int = 1_024
    warn_below: int = 8_000


# Source: our own. 20,000 is what the systems below keep free; three quarters leave a turn of some length between
# flush and compaction; half is low enough for the next one to be far off. Answers get worse in prompts over 150,000
# tokens long before a window of a million ends. A window of 4,096 is what local servers set unasked, and is worth a
# warning; one of 8,192 is not. Below 1,024 nothing is left beside a memory block.
DEFAULT_THRESHOLDS = Thresholds()

# Source: seeds 000 (1.3, 6) and 002 (13.3): reserve 20,000, flush 4,000 before, 16,000 and 32,000 for the guard,
# history at most half. A quarter of the window at most, and half of what is left: its later releases, where 200,000
# gives 176,000 / 180,000 and 32,768 gives 20,576 / 24,576. The emergency target is ours.
OPENCLAW = Thresholds(
    reserve_follows_output=False,
    trigger_share=None,
    flush_share=None,
    flush_margin_tokens=4_000,
    flush_most_tokens=None,
    refuse_below=16_000,
    warn_below=32_000,
)

# Source: seed 001 (2): a window of 64,000, from 75 % down to 50 %. The flush, the emergency target and the guard are
# ours: it has none.
TURNS = Thresholds(
    reserve_follows_output=False,
    base="window",
    trigger_share=0.75,
    flush_share=0.65,
    flush_most_tokens=None,
    window_tokens=64_000,
)

# Source: seed 003 (3.1, 4.1, 4.3, 6.3): from 80 % down to 30 %, to 20 % after an error; guard 16,000 and 32,000. The
# reserve is what 80 % leave. The flush is ours: it has none.
PONYBUNNY = Thresholds(
    reserve_share=0.20,
    reserve_follows_output=False,
    base="window",
    trigger_share=0.80,
    flush_share=0.70,
    target_share=0.30,
    emergency_target_share=0.20,
    flush_most_tokens=None,
    refuse_below=16_000,
    warn_below=32_000,
)

# Source: seed 004 (overflow.ts): the input limit less min(20,000, longest answer), with nothing above it. Flush,
# targets and guard are ours, and so is the half of the window: below 40,000 tokens the seed leaves nothing to use
# where a model's longest answer is not known.
OPENCODE = Thresholds(
    reserve_share=0.50,
    trigger_share=None,
    flush_share=0.85,
    emergency_target_share=0.25,
    flush_most_tokens=None,
)


# --- the budget ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBudget:
    """Room of a session, in tokens as the model counts them.

    Attributes:
        window: Everything: overhead, messages, answer.
        reserve_tokens: Kept free for the answer.
        overhead_tokens: What system prompt and tool schemas take.
        usable_tokens: What is left for messages; all below is within it.
        soft_tokens: A flush begins here.
        hard_tokens: A compaction begins here.
        target_tokens: A compaction ends below this.
        emergency_target_tokens: The same for one after the provider refused the prompt.
        scale: Tokens as the model counts them for each one estimated.
    """

    window: ContextWindow
    reserve_tokens: int
    overhead_tokens: int
    usable_tokens: int
    soft_tokens: int
    hard_tokens: int
    target_tokens: int
    emergency_target_tokens: int
    scale: float = 1.0

    def pressure(self, tokens: int) -> Pressure:
        """How full it is, by what the messages take: `Reading.tokens` of `memory_service.llm.token_counter`."""
        return "hard" if tokens >= self.hard_tokens else "soft" if tokens >= self.soft_tokens else "ok"

    def to_estimate(self, tokens: int) -> int:
        """Estimate that stays within these tokens of the model: for plans, which only estimate."""
        return int(tokens / self.scale)


def budget_for(
    window: ContextWindow,
    thresholds: Thresholds,
    *,
    max_output_tokens: int | None = None,
    overhead_tokens: int = 0,
    tools_tokens: int = 0,
    scale: float = 1.0,
) -> ContextBudget:
    """Budget of a session.

    Args:
        window: See `resolve_window`.
        thresholds: Of the preset.
        max_output_tokens: The longest answer, if that is known.
        overhead_tokens: What system prompt and tool schemas take together.
        tools_tokens: Of these, the tool schemas; only for what an error says.
        scale: See `memory_service.llm.token_counter.learned_scale`.

    Raises:
        Incompressible: Reserve and overhead leave nothing of the window.
    """
    overhead = max(overhead_tokens, 0)
    reserve = _reserve(window.tokens, thresholds, max_output_tokens)
    usable = window.tokens - reserve - overhead
    if usable < 1:
        raise _nothing_left(window.tokens, reserve, overhead, min(max(tools_tokens, 0), overhead))
    base = _base(window.tokens, usable, thresholds)
    hard = _within(usable if thresholds.trigger_share is None else _part(thresholds.trigger_share, base), 1, usable)
    within = _within(_soft(base, usable, thresholds), 1, hard)
    soft = _within(within, 1, thresholds.flush_most_tokens or within)
    # What a cap takes from the flush, it takes from the targets too.
    lowered_value = soft / within
    highest = soft - 1 - _part(MIN_GAP_SHARE * lowered_value, usable)
    target = _within(_part(thresholds.target_share * lowered_value, base), 0, max(highest, 0))
    return ContextBudget(
        window=window,
        reserve_tokens=reserve,
        overhead_tokens=overhead,
        usable_tokens=usable,
        soft_tokens=soft,
        hard_tokens=hard,
        target_tokens=target,
        emergency_target_tokens=_within(_part(thresholds.emergency_target_share * lowered_value, base), 0, target),
        scale=scale,
    )


def _reserve(window: int, thresholds: Thresholds, max_output_tokens: int | None) -> int:
    reserve = min(thresholds.reserve_tokens, _part(thresholds.reserve_share, window))
    output = _positive_or_none(max_output_tokens)
    return min(reserve, output) if output is not None and thresholds.reserve_follows_output else reserve


def _base(window: int, usable: int, thresholds: Thresholds) -> float:
    if thresholds.base == "usable":
        return usable
    return min(window, usable / (thresholds.trigger_share or 1.0))


def _soft(base: float, usable: int, thresholds: Thresholds) -> int:
    if thresholds.flush_margin_tokens is not None:
        return usable - min(thresholds.flush_margin_tokens, usable // 2)
    return usable if thresholds.flush_share is None else _part(thresholds.flush_share, base)


def _part(share: float, whole: float) -> int:
    # 0.29 * 100 is 28.999999999999996.
    return int(round(share * whole, 6))


def _within(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _nothing_left(window: int, reserve: int, overhead: int, tools: int) -> Incompressible:
    parts = sorted({"system": overhead - tools, "tools": tools}.items(), key=lambda part: -part[1])
    takes = " and ".join(f"{name} {tokens:,}" for name, tokens in parts if tokens) or "nothing"
    return Incompressible(
        f"No room is left for messages: of a window of {window:,} tokens, {reserve:,} are kept for the answer, and the "
        f"rest takes {takes}. Shorten the system prompt, offer fewer tools, or use a model with a larger window.",
        parts=dict(parts),
    )

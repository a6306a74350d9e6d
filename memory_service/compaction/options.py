"""How a conversation is compacted: its preset, its window, and what both leave of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from memory_service.compaction.budget import ContextBudget, Thresholds, budget_for
from memory_service.compaction.presets import PRESETS, Fallback, Preset, with_overrides
from memory_service.compaction.view import View, ViewShape
from memory_service.errors import InvalidRequest
from memory_service.llm.token_counter import LEAST_SCALE, MOST_SCALE, exact_counter
from memory_service.messages import message_tokens, text_of, tool_calls_of
from memory_service.messages.shapes import Json
from memory_service.messages.sizes import count_tokens
from memory_service.schemas.compaction import IdentifierPolicy
from memory_service.schemas.sessions import ContextWindow


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
        raise InvalidRequest(f"There is no preset {name[:80]!a}. Use one of {', '.join(PRESETS)}.")
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


def shape_of(options: CompactionSettings) -> ViewShape:
    """Limits on the parts of a view."""
    preset, window = options.preset, options.window.tokens
    usable = int(window * 0.75)
    summary = min(preset.most_summary_tokens, max(preset.least_summary_tokens, int(usable * 0.1)))
    return ViewShape(
        window_tokens=window,
        ledger_tokens=preset.ledger_tokens(summary),
        request_chars=4 * preset.request_tokens(usable),
        guard=preset.guard,
    )


def counted_scale(seen: Callable[[], View], model: str | None) -> float | None:
    """Tokens as a model's tokenizer counts them for each one estimated; None where no tokenizer is at hand.

    Args:
        seen: Gives the view that is counted; asked for only if there is a tokenizer.
        model: The model that the view is for.
    """
    counter = exact_counter(model) if model else None
    return _counted(seen(), counter) if counter is not None else None


def _counted(view: View, counter: Callable[[str], int]) -> float:
    """Frames of messages and media are taken as estimated."""
    estimated = exact = 0
    for message in view.messages:
        texts = [text_of(message), *(call["function"]["arguments"] for call in tool_calls_of(message))]
        size = message_tokens(message)
        estimated += size
        exact += size + sum(counter(text) - count_tokens(text) for text in texts if text)
    return min(max(exact / estimated, LEAST_SCALE), MOST_SCALE) if estimated else 1.0

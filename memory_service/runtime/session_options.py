"""Effective options of a session (settings, own tables, preset), and its size in the model's tokens.

Invariants: pure but for what a tokenizer remembers; a session sets only what the tables `compaction`, `pruning` and
`flush` have, and an unknown name is an error when it is set, not when it is used; a count of the provider that was made
before the view changed, or of another model, is not used; plans work with estimates and one factor, so that all parts
agree on what fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from memory_service.compaction.budget import Thresholds, resolve_window
from memory_service.compaction.presets import (
    CompactionSettings,
    Preset,
    budget_of,
    counted_scale,
    preset_named,
    preset_with,
)
from memory_service.compaction.prune_steps import PruningMode
from memory_service.config import CompactionTable, FlushTable, PruningTable, Settings
from memory_service.errors import InvalidRequest
from memory_service.llm.token_anchor import Reading, anchor_of, measure_view
from memory_service.llm.token_counter import learned_scale, pairs_of, same_model
from memory_service.llm.windows import model_limits
from memory_service.messages.shapes import Json
from memory_service.schemas.base import Pressure, fault_in
from memory_service.schemas.messages import ReadingSource
from memory_service.sessions.records import Learned, SessionHeader

if TYPE_CHECKING:
    from memory_service.compaction.view import View, ViewSizes
    from memory_service.runtime.session import SessionState

Table = TypeVar("Table", bound=BaseModel)

TABLES = ("compaction", "pruning", "flush")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions(CompactionSettings):
    """How a session is treated: compacted, and flushed before that.

    Attributes:
        summary_model: Name of the model that writes its summaries; empty for the one of the service.
    """

    flush: FlushTable
    summary_model: str = ""

    @property
    def thresholds(self) -> Thresholds:
        """Where compaction and flush begin."""
        thresholds = self.preset.thresholds
        if self.flush.soft_tokens is not None:
            return replace(thresholds, flush_margin_tokens=self.flush.soft_tokens)
        return thresholds


def check_settings(settings: Settings, header: SessionHeader | None, lesson: Learned | None = None) -> None:
    """Make sure that a session can be used with its own settings, before they are written.

    Raises:
        InvalidRequest: A name is unknown, or a value cannot be used.
        Incompressible: The numbers leave nothing of the window.
    """
    session_options = options_of(settings, header, lesson)
    pressure_of(session_options, 0)
    check_summary_model(settings, session_options.summary_model)


def check_summary_model(settings: Settings, name: str) -> None:
    """Make sure that a model may be asked, if one is named.

    Raises:
        InvalidRequest: The service calls none.
    """
    if name and not settings.llm_model:
        raise InvalidRequest(
            f"The model {name[:80]!r} cannot write summaries: no llm_model is set, and so no model is called. Set it, "
            "or leave compaction.model out."
        )


def check_new(
    settings: Settings, given_jsons: Mapping[str, Json], *, model: str | None = None, context_window: int | None = None
) -> None:
    """Make sure that a session can be begun so; see `check_settings`."""
    header = SessionHeader(session_id="", model=model, context_window=context_window, settings=given_jsons)
    check_settings(settings, header)


def preset_settings(name: str | None) -> dict[str, Json]:
    """A session's own settings for a preset; empty without a name.

    Raises:
        InvalidRequest: There is no such preset.
    """
    return {"compaction": {"preset": preset_named(name).name}} if name else {}


def pressure_of(options: SessionOptions, tokens: int, *, scale: float = 1.0) -> Pressure:
    """Pressure of a session; a window that is too small counts as full."""
    return "hard" if options.window.problem == "refuse" else budget_of(options, scale=scale).pressure(tokens)


def options_of(
    settings: Settings,
    header: SessionHeader | None,
    lesson: Learned | None = None,
    *,
    preset: str | None = None,
    overrides: Mapping[str, Json] | None = None,
) -> SessionOptions:
    """Effective options of a session.

    Args:
        settings: Those of the service.
        header: The head of its log, with its own settings; None before its first record.
        lesson: The window that an error told.
        preset: Another preset than these have; it comes with its own numbers.
        overrides: Numbers of it, above those of the settings.

    Raises:
        InvalidRequest: There is no such preset or number, or the session's settings cannot be used.
    """
    compaction, pruning, flush = _tables(settings, header.settings if header else {})
    named_preset = preset_named(preset or compaction.preset)
    wanted_fields = {**(compaction.overrides if named_preset.name == compaction.preset else {}), **(overrides or {})}
    chosen_preset = _pruning(preset_with(named_preset, wanted_fields), pruning)
    model = header.model if header else None
    limits = model_limits(model) if model else None
    window = resolve_window(
        session=header.context_window if header else None,
        learned_count=lesson.context_window if lesson and _is_of(lesson, model) else None,
        settings=settings.context_windows.get(model or "") or settings.context_window,
        model=limits.window_tokens if limits else None,
        preset=chosen_preset.thresholds.window_tokens,
        refuse_below=_or_default(compaction.refuse_below_tokens, chosen_preset.thresholds.refuse_below),
        warn_below=_or_default(compaction.warn_below_tokens, chosen_preset.thresholds.warn_below),
    )
    return SessionOptions(
        preset=chosen_preset,
        overrides=wanted_fields,
        flush=flush,
        summary_model=compaction.model if compaction.model != settings.compaction.model else "",
        window=window,
        instructions=compaction.instructions,
        identifier_policy=compaction.identifier_policy,
        fallback=chosen_preset.fallback if compaction.fallback == "preset" else compaction.fallback,
        model_name=model,
        max_output_tokens=limits.max_output_tokens if limits else None,
    )


def _is_of(lesson: Learned, model: str | None) -> bool:
    """True if a window was learned of the model; of one that was not named, while none is."""
    return bool(lesson.model) == bool(model) and same_model(lesson.model, model)


def _tables(settings: Settings, given_jsons: Mapping[str, Json]) -> tuple[CompactionTable, PruningTable, FlushTable]:
    unknown_names = [name for name in given_jsons if name not in TABLES]
    if unknown_names:
        raise InvalidRequest(f"A session has no setting {unknown_names[0][:80]!r}. It may set {', '.join(TABLES)}.")
    return (
        _merge_settings(settings.compaction, "compaction", given_jsons),
        _merge_settings(settings.pruning, "pruning", given_jsons),
        _merge_settings(settings.flush, "flush", given_jsons),
    )


def _merge_settings(table: Table, name: str, given_jsons: Mapping[str, Json]) -> Table:
    own = given_jsons.get(name)
    if own is None:
        return table
    if not isinstance(own, dict):
        raise InvalidRequest(f"The setting {name} of a session is no object. Send its settings by name.")
    values = table.model_dump()
    # Numbers belong to the preset beside which they stand.
    if own.get("preset", values.get("preset")) != values.get("preset"):
        values["overrides"] = {}
    for key, value in own.items():
        below = values.get(key)
        values[key] = {**below, **value} if isinstance(below, dict) and isinstance(value, dict) else value
    try:
        return type(table)(**values)
    except ValidationError as error:
        place, reason = fault_in(error.errors()[0])
        raise InvalidRequest(f"The session's setting {f'{name}.{place}'[:120]} cannot be used: {reason}.") from None


def _pruning(preset: Preset, table: PruningTable) -> Preset:
    modes: dict[str, PruningMode] = {"off": "off", "cache_ttl": "cache_ttl", "budget": "budget"}
    rules = replace(
        preset.pruning,
        ttl_seconds=table.ttl_seconds,
        allow_tools=table.allow or preset.pruning.allow_tools,
        deny_tools=(*preset.pruning.deny_tools, *table.deny),
    )
    return replace(preset, pruning=rules, pruning_mode=modes.get(table.mode, preset.pruning_mode))


def _or_default(own: int | None, otherwise: int) -> int:
    return otherwise if own is None else own


def scale_of(state: SessionState, seen: Callable[[], View], model: str | None) -> tuple[float, ReadingSource]:
    """Tokens as the model counts them for each one estimated, and what that rests on.

    Args:
        state: The session.
        seen: Gives a view of it; asked for only if there is a tokenizer to count it.
        model: The model that the view is for.
    """
    pairs = pairs_of([(usage.seq, usage.usage) for usage in state.usages], model)
    if pairs:
        return learned_scale(pairs), "usage"
    scale = counted_scale(lambda: seen().messages, model)
    return (scale, "tokenizer") if scale is not None else (1.0, "estimate")


def reading_of(
    state: SessionState,
    view_sizes: ViewSizes,
    scale: tuple[float, ReadingSource],
    model: str | None,
    *,
    is_anchored: bool = False,
) -> Reading:
    """Size of a view in tokens, with its source.

    Args:
        state: The session.
        view_sizes: What its view takes by estimate.
        scale: See `scale_of`.
        model: The model that the view is for.
        is_anchored: Whether the provider's last count stands for what it counted, system prompt and memories included.
    """
    factor, source = scale
    anchor = None
    if is_anchored:
        anchor = anchor_of(
            [(usage.seq, usage.usage) for usage in state.usages],
            seqs=[0, *view_sizes.seqs],
            changed_seq=state.changed_seq,
            model=model,
        )
    reading = measure_view([view_sizes.lead_tokens, *view_sizes.sizes], anchor=anchor, scale=factor)
    return reading if anchor is not None else replace(reading, source=source)

"""The numbers of a preset that users can override, by name, and the preset that comes of it. Pure.

A name is made from the preset's own fields: those of `thresholds` and of the preset itself as they are, those of its
other parts with the part before them, such as `keep_turns` and `pruning_soft_trim_chars`. What can be overridden is
what has a type of `bounds`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

from memory_service.compaction.presets import Preset

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


def overridden(preset: Preset, overrides: Mapping[str, object]) -> Preset:
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
    values = _checked(overrides)
    for name, value in values.items():
        preset = _with(preset, _FIELDS[name][0], value)
    return _ordered(preset, values)


def _fields() -> Iterator[tuple[str, tuple[tuple[str, ...], Any]]]:
    """The name of each number, where it stands in a preset, and its type."""
    for field, hint in get_type_hints(Preset, include_extras=True).items():
        if dataclasses.is_dataclass(hint):
            prefix = "" if field == "thresholds" else f"{field}_"
            for inner, kind in get_type_hints(hint, include_extras=True).items():
                if _is_open(kind):
                    yield f"{prefix}{inner}", ((field, inner), kind)
        elif _is_open(hint):
            yield field, ((field,), hint)


def _is_open(hint: Any) -> bool:
    return any(get_origin(each) is Annotated for each in (hint, *get_args(hint)))


_FIELDS = dict(sorted(_fields()))


def _checked(overrides: Mapping[str, object]) -> dict[str, Value]:
    unknown = next((name for name in overrides if name not in _FIELDS), None)
    if unknown is not None:
        raise ValueError(f"{str(unknown)[:80]!a} is no number of a preset. There are {', '.join(_FIELDS)}.")
    return {name: _value(name, value, _FIELDS[name][1]) for name, value in overrides.items()}


def _value(name: str, value: object, hint: Any) -> Value:
    """A value, if it is of the type of its field and within its bounds."""
    kinds = (hint,) if get_origin(hint) is Annotated else get_args(hint)
    if value is None and type(None) in kinds:
        return None
    kind, bounds = next(get_args(each) for each in kinds if get_origin(each) is Annotated)
    # To Python, true is a whole number, and a whole number is no float.
    fits = isinstance(value, bool) if kind is bool else type(value) is int or (kind is float and type(value) is float)
    if not fits:
        raise ValueError(f"{name} is {repr(value)[:80]} and has to be {_KINDS[kind]}.")
    # NaN is within no bounds.
    if not isinstance(value, int | float) or not bounds.least <= value <= bounds.most:
        raise ValueError(f"{name} is {value} and has to be from {bounds.least:,} to {bounds.most:,}.")
    return value


def _ordered(preset: Preset, values: Mapping[str, Value]) -> Preset:
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
        named, wanted = low if low in values else high, "less than" if low in _STRICT else "at most"
        raise ValueError(f"{named}: {low} is {least:g} and has to be {wanted} {high}, which is {most:g}.")
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

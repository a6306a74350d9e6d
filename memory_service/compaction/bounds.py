"""Kinds of numbers in a preset: a field of one of these types can be overridden by users, within its bounds.

A field of any other type belongs to how the preset works, and stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias


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

"""Typed reader of the fields of a JSON object.

Invariants: a field of another type than is asked for is a `ValueError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memory_service.messages.shapes import Json

if TYPE_CHECKING:
    pass


class Fields:
    """The fields of an object, each asked for by its type; `ValueError` if it has another."""

    def __init__(self, fields: Json) -> None:
        if not isinstance(fields, dict):
            raise ValueError("no object")
        self._fields = fields

    def integer(self, name: str) -> int:
        """A whole number."""
        value = self._fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{name} is no integer")
        return value

    def integer_or_none(self, name: str) -> int | None:
        """The same, if it is there."""
        return None if self._fields.get(name) is None else self.integer(name)

    def number_or_none(self, name: str) -> float | None:
        """A number, if it is there."""
        value = self._fields.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def count(self, name: str) -> int:
        """A whole number, or of a list how many it has; 0 where there is neither."""
        value = self._fields.get(name)
        return len(value) if isinstance(value, list) else self.integer_or_none(name) or 0

    def text(self, name: str) -> str:
        """A text."""
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise ValueError(f"{name} is no text")
        return value

    def text_or_none(self, name: str) -> str | None:
        """The same, if it is there."""
        return None if self._fields.get(name) is None else self.text(name)

    def text_or(self, name: str, otherwise: str) -> str:
        """The same, or another where it is not there."""
        return self.text(name) if self.has(name) else otherwise

    def items(self, name: str) -> list[Json]:
        """A list; an empty one where there is none."""
        value = self._fields.get(name, [])
        if not isinstance(value, list):
            raise ValueError(f"{name} is no list")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """The same, each entry as text."""
        return tuple(str(item) for item in self.items(name))

    def mapping(self, name: str) -> Mapping[str, Json]:
        """An object; an empty one where there is none."""
        value = self._fields.get(name, {})
        if not isinstance(value, dict):
            raise ValueError(f"{name} is no object")
        return value

    def has(self, name: str) -> bool:
        """True if it is there and not null."""
        return self._fields.get(name) is not None

    def truth(self, name: str) -> bool:
        """True if it is true."""
        return self._fields.get(name) is True

"""Owns how a text is kept as what it changes of another: whole lines of that one by their numbers, the rest as text.

Invariants: pure; `applied(base, delta(base, text)) == text`, always. Summaries of one session share most of their
lines: kept whole, twenty of them would take as much as a fifth of the messages that they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

# The lines from one number to another of the base, counted from 0, both included; or some lines of text.
Part: TypeAlias = "str | tuple[int, int]"


def delta(base: str, text: str) -> tuple[Part, ...]:
    """A text as parts; without a base, the text itself."""
    known = {line: number for number, line in reversed(list(enumerate(base.split("\n"))))} if base else {}
    parts = list[Part]()
    for line in text.split("\n"):
        number = known.get(line)
        last = parts[-1] if parts else None
        if number is None:
            if isinstance(last, str):
                parts[-1] = f"{last}\n{line}"
            else:
                parts.append(line)
        elif isinstance(last, tuple) and last[1] + 1 == number:
            parts[-1] = (last[0], number)
        else:
            parts.append((number, number))
    return tuple(parts)


def applied(base: str, parts: Sequence[Part]) -> str:
    """The text that parts stand for; lines that the base does not have are left out."""
    lines = base.split("\n")
    return "\n".join(part if isinstance(part, str) else "\n".join(lines[part[0] : part[1] + 1]) for part in parts)

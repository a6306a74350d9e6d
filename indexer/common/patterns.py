"""Patterns that are compiled when they are first used: hundreds of them cost nothing at import.

Invariant: a lazy pattern answers as the compiled one.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _LazyRegex:
    """Stand-in for a pattern; each method is looked up once."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._given_flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._given_flags), name)
        self.__dict__[name] = value
        return value


def lazy_regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Pattern for `pattern` as `re.compile` makes it, compiled when a method of it is first asked for.

    The functions of `re` that take a pattern do not take this one: call its methods.
    """
    return cast("re.Pattern[str]", _LazyRegex(pattern, flags))

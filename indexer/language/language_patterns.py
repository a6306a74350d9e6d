"""Patterns of several languages, of which each is tried only on texts that may have its words. Pure.

Invariants: what is found is what one pattern of all languages would find in the texts that have a word of theirs; a
language without spaces has no words in ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set

from indexer.common.patterns import lazy_regex
from indexer.language.base import Language
from indexer.language.tables import LANGUAGES

_NO_WORDS = frozenset[str]()


class LanguagePattern:
    """A pattern in each of several languages.

    Args:
        alternatives: Gives the table of a language.
        words: Gives the words of a language of which a text has one that its pattern is found in; None if the pattern
            itself is the only way to know.
    """

    def __init__(
        self, alternatives: Callable[[Language], str], words: Callable[[Language], Set[str]] | None = None
    ) -> None:
        spaced = [language for language in LANGUAGES if language.is_spaced and alternatives(language)]
        unspaced = [alternatives(language) for language in LANGUAGES if not language.is_spaced]
        self._needed: list[tuple[Set[str], re.Pattern[str]]] = []
        if words is not None:
            self._needed = [(words(language), lazy_regex(alternatives(language))) for language in spaced]
        self._always = lazy_regex("|".join(map(alternatives, spaced)) or "(?!)") if words is None else None
        self._unspaced = lazy_regex("|".join(filter(None, unspaced)) or "(?!)")

    def is_in(self, text: str, words: Set[str] = _NO_WORDS) -> bool:
        """True if a text, whose words are given, has the pattern of a language."""
        if self._always is not None and self._always.search(text):
            return True
        for needed, pattern in self._needed:
            if not needed.isdisjoint(words) and pattern.search(text):
                return True
        return not text.isascii() and self._unspaced.search(text) is not None

    def begins(self, text: str) -> bool:
        """True if a text begins with the pattern of a language, or has that of a language without spaces."""
        if self._always is not None and self._always.match(text):
            return True
        return not text.isascii() and self._unspaced.search(text) is not None

"""Language that a text is written in, as far as an embedding model is chosen by it: by its script, and by small words.

Invariants: pure; a text that tells nothing, such as a number, a name or code, is in no language; in doubt a text in
Latin letters is English, so that an English model is left for a reason alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import ALL_HAN, HANGUL, KANA
from indexer.language.tables import LANGUAGES

# The first language is that of a text in Latin letters, where nothing tells otherwise.
_FIRST = LANGUAGES[0]
ENGLISH_NAME: Final = _FIRST.name
_FIRST_WORDS = frozenset(_FIRST.grammar.grammar_words.split())

# The script of a language that alone, or more than others, is written in it.
_SCRIPTS: tuple[tuple[str, str], ...] = (
    ("Japanese", KANA),
    ("Korean", HANGUL + "\u1100-\u11ff\u3130-\u318f"),
    ("Chinese", ALL_HAN),
    ("Cyrillic", "\u0400-\u052f"),
    ("Greek", "\u0370-\u03ff\u1f00-\u1fff"),
    ("Arabic script", "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff"),
    ("Hebrew", "\u0590-\u05ff"),
    ("Devanagari", "\u0900-\u097f"),
    ("Thai", "\u0e00-\u0e7f"),
    ("another script", "\u0530-\u058f\u0700-\u074f\u0780-\u08ff\u0980-\u0dff\u0e80-\u10ff\u1200-\u1cff\ua000-\uabff"),
)
_OF_SCRIPT = tuple((name, lazy_regex(f"[{ranges}]")) for name, ranges in _SCRIPTS)
_LATIN_WORD = lazy_regex("[a-z\u00df-\u024f\u1e00-\u1eff]+(?:['’][a-z\u00df-\u024f]+)?")
# An address, a path, code in a line: what is written in it is no language.
_NO_PROSE = lazy_regex(r"`[^`\n]*`|https?://\S+|\S+[/\\@_=]\S+|<[^>\n]*>")
# Letters of scripts without spaces count as the third of a word of two, and more, as English words have five.
_LETTERS_PER_WORD = 2.5

# Words of those lists that an English text has, too.
_SHARED = _FIRST.grammar.shared_words


def _by_word() -> dict[str, tuple[str, ...]]:
    """The languages of each word of grammar but the first."""
    fields: dict[str, tuple[str, ...]] = {}
    for language in LANGUAGES[1:]:
        for word in set(language.grammar.grammar_words.split()) - _SHARED:
            fields[word] = (*fields.get(word, ()), language.name)
    return fields


_WORDS = _by_word()
_GRAMMAR = _FIRST_WORDS.union(_WORDS)
# So much more of another language is needed than of English: quotations and names stand in English texts.
_CLEARLY = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Languages of a collection of texts.

    Attributes:
        shares: Share of the texts in each language, of those that tell one, the largest first; empty where none does.
    """

    shares: Mapping[str, float]

    @property
    def foreign(self) -> float:
        """Share of the texts that are not in English; 0 where nothing is written."""
        return sum(share for name, share in self.shares.items() if name != ENGLISH_NAME)


def writing_of(pairs: Iterable[tuple[str, float]]) -> Writing:
    """The languages of texts, each by the name of its language and the weight that it has."""
    weights = Counter[str]()
    for name, weight in pairs:
        if name:
            weights[name] += weight  # type: ignore[assignment]  # a Counter adds up any numbers
    whole = sum(weights.values())
    return Writing(shares={name: weight / whole for name, weight in weights.most_common()})


def language_of(text: str) -> str:
    """The language of a text, "English" or the name of another or of its script; empty where it does not tell."""
    lowered_text = _NO_PROSE.sub(" ", text[:4_000]).lower()
    words = _LATIN_WORD.findall(lowered_text)
    script, letters = ("", 0) if lowered_text.isascii() else _script(lowered_text)
    if letters and letters / _LETTERS_PER_WORD >= len(words):
        return script
    return _latin(words)


def _script(text: str) -> tuple[str, int]:
    """The script that most letters other than Latin ones are in, and their number."""
    counts = {name: len(pattern.findall(text)) for name, pattern in _OF_SCRIPT}
    if counts["Japanese"]:
        # Its nouns are written in Chinese characters.
        counts["Japanese"] += counts["Chinese"] if 5 * counts["Japanese"] >= counts["Chinese"] else 0
    most = max(counts, key=lambda name: counts[name])
    return (most, sum(counts.values()) - (counts["Chinese"] if most == "Japanese" else 0)) if counts[most] else ("", 0)


def _latin(words: list[str]) -> str:
    """The language of words in Latin letters."""
    counts = Counter(name for word in words if word in _WORDS for name in _WORDS[word])
    english = sum(word in _FIRST_WORDS for word in words)
    if counts:
        name, most = counts.most_common(1)[0]
        if most > _CLEARLY * english:
            return name
    return ENGLISH_NAME if english else ""


@cache
def stop_words_of(language: str) -> frozenset[str]:
    """Words of a language, by its name, that tell nothing in a question."""
    return frozenset[str]().union(
        *(each_language.grammar.stop_words for each_language in LANGUAGES if each_language.name == language)
    )


def has_words_of(text: str, language: str) -> bool:
    """True if a text has a word of grammar of a language, by its name, or none of any."""
    words = _LATIN_WORD.findall(text.lower())
    return any(language in _WORDS.get(word, ()) for word in words) or _GRAMMAR.isdisjoint(words)

"""The generated texts: passages of words in the proportions of real text, and the questions made from them.

Invariants: pure and seeded; file i always holds the same passages, so a small corpus is the beginning of a
large one; one passage in twenty is Chinese, written without spaces.

The words are those of the bundled tokenizer, which stand in the order of how often English uses them, and
made-up ones behind them, as names and identifiers are; the nth has a share of 1/n (Zipf).
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from indexer.embeddings.bundled import MINILM_FOLDER
from indexer.language.terms import STOP_WORDS
from tests.benchmarks.scale.values import KINDS, Kind

SEED = 20261121
FILE_PASSAGES = 100
WORDS = 50_000
SHORTEST, LONGEST = 8, 40
_CHINESE_SHARE = 0.05
_COMMON_RANKS = 400
_COMMON_ASKED = 5
_FIRST_DAY = dt.date(2024, 11, 21)
_DAYS = 730
_CHINESE_STOPS = "的 是 了 在 和 有 我们 这 也 就 都 不 与 他 它 对 从 把 被 很".split()
_SYLLABLES = [onset + vowel for onset in "b d f g k l m n p r s t v z".split() for vowel in "a e i o u".split()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The words of a language, the most frequent first, and what stands between two of them."""

    words: tuple[str, ...]
    stops: frozenset[str]
    space: str

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of the words up to each one."""
        return _shares(len(self.words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The words of a question, and the row of the passage they come from."""

    text: str
    kind: Kind
    row: int


@cache
def english() -> Vocabulary:
    """50,000 words: the bundled tokenizer's whole ones, then made-up ones."""
    tokenizer = MINILM_FOLDER / "tokenizer.json"
    ids: dict[str, int] = json.loads(tokenizer.read_text("utf-8"))["model"]["vocab"]
    real = [word for word in sorted(ids, key=ids.__getitem__) if word.isascii() and word.isalpha() and len(word) > 1]
    words = dict.fromkeys(real)
    chance = np.random.default_rng([SEED, 1])
    while len(words) < WORDS:
        words["".join(_SYLLABLES[i] for i in chance.integers(len(_SYLLABLES), size=chance.integers(3, 6)))] = None
    return Vocabulary(words=tuple(words), stops=STOP_WORDS, space=" ")


@cache
def chinese() -> Vocabulary:
    """8,000 words of one and two characters, from the most common 3,666."""
    characters = [bytes((high, low)).decode("gb2312") for high in range(0xB0, 0xD7) for low in range(0xA1, 0xFF)]
    chance = np.random.default_rng([SEED, 2])
    words = dict.fromkeys(_CHINESE_STOPS)
    while len(words) < 8000:
        words["".join(characters[i] for i in chance.integers(len(characters), size=chance.integers(1, 3)))] = None
    return Vocabulary(words=tuple(words), stops=frozenset(_CHINESE_STOPS), space="")


@cache
def _shares(count: int) -> NDArray[np.float64]:
    shares = np.cumsum(1.0 / np.arange(1, count + 1))
    total: NDArray[np.float64] = shares / shares[-1]
    return total


def words_of_file(number: int) -> list[list[str]]:
    """The words of each passage of a file."""
    chance = np.random.default_rng([SEED, 3, number])
    foreign = chance.random(FILE_PASSAGES) < _CHINESE_SHARE
    lengths = chance.integers(SHORTEST, LONGEST + 1, size=FILE_PASSAGES)
    passages = []
    for is_foreign, length in zip(foreign.tolist(), lengths.tolist(), strict=True):
        language = chinese() if is_foreign else english()
        ranks = np.searchsorted(language.shares, chance.random(length), side="right")
        passages.append([language.words[rank] for rank in ranks.tolist()])
    return passages


def language_of(words: Sequence[str]) -> Vocabulary:
    """The language of a passage."""
    return english() if words[0].isascii() else chinese()


def joined(words: Sequence[str]) -> str:
    """Words as their language writes them."""
    return language_of(words).space.join(words)


def passages(count: int) -> Iterator[str]:
    """The texts of a corpus, by row."""
    for number in range(-(-count // FILE_PASSAGES)):
        yield from (joined(words) for words in words_of_file(number)[: count - number * FILE_PASSAGES])


def day_of_file(number: int) -> dt.date:
    """The day that a file's notes belong to; two years of them, over and over."""
    return _FIRST_DAY + dt.timedelta(days=number % _DAYS)


def path_of_file(number: int) -> str:
    """A file's path in a workspace."""
    return f"memory/{day_of_file(number)}-{number:05}.md"


def row_of(path: str, start_line: int) -> int:
    """The row of a passage that begins in some line of a file."""
    return int(path[-8:-3]) * FILE_PASSAGES + start_line - FIRST_LINE


# Above the passages stand a title and an empty line.
TITLE = "Notes"
FIRST_LINE = 3


def file_text(lines: Sequence[str]) -> str:
    """A file of passages, one list item each."""
    return f"# {TITLE}\n\n" + "".join(f"- {line}\n" for line in lines)


def questions(count: int, size: int) -> list[Asking]:
    """Questions about a corpus, one kind after another in turn, so that the first few are of all kinds."""
    chance = np.random.default_rng([SEED, 4, size])
    made: list[Asking] = []
    while len(made) < count:
        kind = KINDS[len(made) % len(KINDS)]
        row = int(chance.integers(size))
        words = words_of_file(row // FILE_PASSAGES)[row % FILE_PASSAGES]
        asked = asked_words(words, kind, chance)
        if asked:
            made.append(Asking(text=joined(asked), kind=kind, row=row))
    return made


def asked_words(words: Sequence[str], kind: Kind, chance: np.random.Generator) -> list[str]:
    """Words of a passage for a question of some kind, in their order; none where it has not enough of them."""
    language = language_of(words)
    distinct = list(dict.fromkeys(words))
    content = [word for word in distinct if word not in language.stops]
    stops = [word for word in distinct if word in language.stops]
    if kind == "3 words":
        chosen = _some(content, 3, chance)
    elif kind == "8 words":
        chosen = _some(content, 8, chance)
    elif kind == "8 with stop words":
        chosen = [*_some(content, 5, chance), *_some(stops, 3, chance)] if len(stops) >= 3 and len(content) >= 5 else []
    else:
        common = _common(language)
        chosen = _some([word for word in content if word in common], _COMMON_ASKED, chance)
    return [word for word in distinct if word in chosen]


@cache
def _common_of(space: str) -> frozenset[str]:
    language = english() if space else chinese()
    return frozenset(language.words[:_COMMON_RANKS]) - language.stops


def _common(language: Vocabulary) -> frozenset[str]:
    return _common_of(language.space)


def _some(words: Sequence[str], count: int, chance: np.random.Generator) -> list[str]:
    if len(words) < count:
        return []
    return [words[place] for place in chance.choice(len(words), size=count, replace=False).tolist()]

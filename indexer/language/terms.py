"""Search terms of a text: case, accents, Traditional characters, stems by script, stop words, CJK bigrams.

Invariants: pure, and the same for every engine; a term holds letters and digits only, so that any engine can store
terms joined by spaces; the result of `index_terms` depends on the text and `TERM_RULES` alone, because an engine
deletes a text's terms by computing them again.

Source: Thai, Lao, Khmer and Burmese are taken by syllables in the place of characters. By characters every passage of
tests/evals/scripts.py had a letter of any word: twelve words that stand nowhere found all passages of their script; by
syllables 56 %, and what is asked for stands first for .993 of the questions of all scripts, by characters for .989.

Source: character bigrams for scripts written without spaces found 93 % of Chinese paragraphs within the first five,
words 12 %, trigrams 93 % but no word of two characters (XQuAD, our measurement).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import ALL_HAN, INDIC, SYLLABIC, UNSPACED
from indexer.language.tables import ANY, LANGUAGES
from indexer.types import Fingerprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Hashes: TypeAlias = "NDArray[np.uint64]"

TERM_RULES = "terms-9"
MAX_TERM_CHARS = 40

_HAN_PAIR = lazy_regex(f"[{ALL_HAN}]{{2}}")
# What a pair of characters says more than the two, which count alone as well. Source: tests/evals/chinese.py, dev half,
# at 1, .7, .5, .3, 0: hit@1 of paraphrased questions .570, .593, .607, .607, .619, hit@5 .841, .848, .856, .852, .856;
# hit@1 of natural ones .930, .930, .930, .927, .923.
_PAIR_WEIGHT = 0.5
_RUN = lazy_regex(f"[{UNSPACED}]+|(?:[^\\W_{UNSPACED}]|[{INDIC}])+")
# A letter with the signs that are written around it: in Thai and Lao the vowels before and behind it too, in Khmer and
# Burmese the letters stacked below it. No word begins or ends within one.
_SYLLABLE = lazy_regex(
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?[\u0e01-\u0e2e\u0e81-\u0eae\u0edc-\u0edf]"
    "[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ece]{0,8}"
    "|[\u1780-\u17b3](?:\u17d2[\u1780-\u17b3]|[\u17b4-\u17d1\u17d3\u17dd]){0,8}"
    "|[\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081]"
    "(?:\u1039[\u1000-\u102a]|[\u102b-\u1038\u103a-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064]){0,8}"
    "|."
)
_SYLLABIC = lazy_regex(f"[{SYLLABIC}]")
# Between their words some writers put a mark that nobody sees; most do not.
_UNSEEN_SPACE = lazy_regex(f"(?<=[{SYLLABIC}])\u200b+(?=[{SYLLABIC}])")
_CJK = lazy_regex(f"[{UNSPACED}]")
_CHUNK = lazy_regex(f"[{UNSPACED}]+|[^\\s{UNSPACED}]+")
_SPACED = lazy_regex(f"[\\w{INDIC}]+(?:[^\\w\\s]+\\w+)*")
_LATIN = lazy_regex(
    "[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a]"
)
LETTER = lazy_regex(r"[^\W\d_]")
_ASCII_WORD = lazy_regex("[a-z0-9]+")
# Snowball's stemmer for the words of a script, by its first and last character. Latin is taken for English. For Hebrew
# Snowball has none (it has one for Yiddish): the commonest endings, and what is written together with a word, go off.
_STEMMERS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_HEBREW = lazy_regex("[\u05d0-\u05ea]+")
_HEBREW_PREFIXES = "והבלכמש"
_HEBREW_ENDINGS = ("יות", "ות", "ים", "ית", "ה")
_HEBREW_FINALS = str.maketrans("ךםןףץ", "כמנפצ")
_HEBREW_CHARS = 3  # of a word are left
# Letters that are written for one another: Arabic alef, yeh and kaf, the Devanagari nasal signs, Cyrillic io.
_ALIKE = str.maketrans("أإآٱىیکँёѐѝ", "ااااييكंееи")
# Forms of characters in names, and the form that `traditional.txt` has for them.
_ALIKE |= str.maketrans(
    "髙﨑嵜碕邉辺嶋嶌濵浜斎斉冨徳桒栁舘峯沢瀬広桜塚恵𠮷", "高崎崎崎边边岛岛滨滨斋齐富德桑柳馆峰泽濑广樱塚惠吉"
)
# Letters that are none with an accent, and are written without by whoever has no key for them.
_PLAIN_LETTERS = dict(zip("łøđðıħŧŋɓɗƙ", "loddihtnbdk", strict=True)) | {"œ": "oe", "æ": "ae", "þ": "th"}
# Katakana for the same syllables in hiragana.
_KATAKANA = range(0x30A1, 0x30F7)
_TO_HIRAGANA = 0x60
# Marks and joiners that a word may go without: Hebrew and Arabic vowel signs, tatweel, soft hyphen, (non-)joiners.
_DROPPED = lazy_regex(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\xad\u200c\u200d]"
)
_NAME = lazy_regex("[A-Za-z0-9]+")
# Not the plural of an abbreviation, as in "APIs".
_INNER_CAPITAL = lazy_regex("[A-Z](?:(?<=[a-z].)|(?<=[a-z][0-9].)|(?<=[A-Z].)(?=[a-z]{2}))")
_NAME_PART = lazy_regex("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_NAME = 80
_NUKTA = 7  # Unicode's combining class
# A model reads a text of which it reads so much.
MOSTLY = 0.5
# Fewer on average have names that nobody made up, such as keys and hashes.
_CHARS_PER_PART = 2.3
_MOST_LETTERS = 16_384
# Each ASCII character as it stands in a word, or a space: a third of the time that finding words by a pattern takes.
_ASCII_WORDS = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))

# Of the language that a text in Latin letters is in, where nothing tells otherwise.
STOP_WORDS = LANGUAGES[0].grammar.stop_words
# A question is cut at words of grammar and of asking, so that no bigram spans them.
_GRAMMAR = lazy_regex(ANY.grammar.borders)


def has_unspaced(text: str) -> bool:
    """True if a text has characters of a script that is written without spaces, such as Chinese."""
    return not text.isascii() and _CJK.search(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart:
    """Part of a text that a model can read.

    Attributes:
        text: The text itself where the model reads all of it, else the words that it reads.
        share: Share of the words; 1.0 for a text without letters.
    """

    text: str
    share: float


def read_part(text: str, reads: Callable[[str], bool]) -> ReadPart:
    """The part of a text that a model reads: of "Redis 的端口是 6380" and "порт Redis" an English one reads "Redis".

    Args:
        text: Any text.
        reads: Tells if the model reads a text without Latin letters; Latin ones are read by all.
    """
    words = [word for chunk in _CHUNK.findall(text) for word in _SPACED.findall(chunk) if LETTER.search(word)]
    items = [word for word in words if not _LATIN.search(word)]
    if not items or reads(" ".join(items)):
        return ReadPart(text=text, share=1.0)
    known_words = [word for word in words if _LATIN.search(word)]
    return ReadPart(
        text=" ".join(known_words), share=len(known_words) / (len(known_words) + sum(map(_word_count, items)))
    )


def _word_count(word: str) -> float:
    # Words of scripts without spaces have two characters on average.
    return max(1.0, len(word) / 2) if has_unspaced(word) else 1.0


def is_unlatin(text: str) -> bool:
    """True if a text has letters, and no Latin ones."""
    return not text.isascii() and LETTER.search(text) is not None and _LATIN.search(text) is None


def is_spaced(text: str) -> bool:
    """True if a text is all in scripts that are written with spaces between words."""
    return not has_unspaced(text)


def weight(term: str) -> float:
    """Share of its rarity that a term counts with: half for a pair of Han characters."""
    return _PAIR_WEIGHT if len(term) == 2 and _HAN_PAIR.match(term) else 1.0


def index_terms(text: str) -> list[str]:
    """Terms of a text that is stored, in reading order, repeats included.

    Runs of an unspaced script give their bigrams and their single characters, so that a question of one character finds
    its text too; those of a script that spells its words without spaces give syllables in the place of characters.
    """
    if text.isascii():
        return list(map(stem, _runs(text)))
    terms: list[str] = []
    for run in _runs(text):
        if has_unspaced(run[0]):
            units = _units(run)
            terms.extend(_lone(units))
            terms.extend(a + b for a, b in pairwise(units))
        else:
            terms.append(stem(run))
    return terms


def query_terms(text: str, *, telling: bool = False, without: frozenset[str] = frozenset()) -> list[str]:
    """Distinct terms of a question, in its order, without stop words.

    A question of stop words alone keeps them, unless only `telling` ones are wanted: it has nothing else to look for.

    Args:
        text: The question.
        telling: See above.
        without: Stop words of its language, besides those that no question is searched by.
    """
    fields: dict[str, None] = {}
    if text.isascii():
        fields.update(dict.fromkeys(stem(run) for run in _runs(text) if run not in STOP_WORDS and run not in without))
    else:
        for run in _runs(text):
            if run in (STOP_WORDS if run.isascii() else _stop_words()) or run in without:
                continue
            fields.update(dict.fromkeys(_question_terms(run) if has_unspaced(run[0]) else (stem(run),)))
    # A name such as parseHttpHeader may stand there as parse_http_header. One that begins with a capital is a word.
    fields.update(dict.fromkeys(identifier_parts(text, initial=str.islower)))
    return list(fields if fields or telling else dict.fromkeys(index_terms(text)))


def identifier_parts(text: str, *, initial: Callable[[str], bool] = str.isalpha) -> list[str]:
    """Terms of the words inside a name: of `parseHTTPHeader` parse, http and header.

    They are stored beside those of `index_terms`, which have the whole name. Random names such as keys have none.

    Args:
        text: Any text.
        initial: Tells which first letters count.
    """
    if _INNER_CAPITAL.search(text) is None:
        return []
    return [
        stem(part.lower())
        for name in _NAME.findall(text)
        if len(name) <= _LONGEST_NAME and initial(name[0]) and _INNER_CAPITAL.search(name)
        for part in _parts(name)
    ]


def _parts(name: str) -> list[str]:
    parts = _NAME_PART.findall(name)
    plain = len(name) >= _CHARS_PER_PART * len(parts) and len(parts[0]) > 1
    return [part for part in parts if len(part) > 1 and part.lower() not in STOP_WORDS] if plain else []


def _question_terms(run: str) -> list[str]:
    parts = [part for part in _GRAMMAR.split(run) if part] or [run]
    # Single characters find what a question says with another compound: 产品 and 商品 share 品.
    # Source: hit@5 of Chinese questions about notes .73 with bigrams alone, .97 with both (our measurement).
    units = map(_units, parts)
    return [term for part in units for term in (*(a + b for a, b in pairwise(part)), *_lone(part))]


def _lone(units: Sequence[str]) -> Sequence[str]:
    """The units that say something alone: all characters, but no bare letter or sign of a spelled script."""
    if isinstance(units, str) or len(units) == 1:
        return units
    return [unit for unit in units if len(unit) > 1 or not _SYLLABIC.match(unit)]


def _units(run: str) -> Sequence[str]:
    """The characters of a run, or what stands for one in a script that spells its words: a letter with its signs."""
    return _SYLLABLE.findall(run) if _SYLLABIC.search(run) else run


def _runs(text: str) -> list[str]:
    if text.isascii():
        words = text.translate(_ASCII_WORDS).split()
        return words if max(map(len, words), default=0) <= MAX_TERM_CHARS else [word[:MAX_TERM_CHARS] for word in words]
    return [
        run if len(run) <= MAX_TERM_CHARS or has_unspaced(run[0]) else run[:MAX_TERM_CHARS]
        for run in _RUN.findall(_unify(_UNSEEN_SPACE.sub("", text) if "\u200b" in text else text, _letters()))
    ]


def fold(text: str) -> str:
    """Lower case, compatibility forms and digits unified, accents and optional vowel signs taken off."""
    return text.lower() if text.isascii() else _unify(text, _accent_letters())


def simplify(text: str) -> str:
    """A text as `fold` gives it, with Traditional characters as Simplified ones."""
    return text.lower() if text.isascii() else _unify(text, _letters())


def _unify(text: str, letters: _Letters) -> str:
    folded_text = unicodedata.normalize("NFKC", text).casefold()
    return folded_text if folded_text.isascii() else "".join(map(letters.__getitem__, folded_text))


class _Letters(dict[str, str]):
    """Folded form of each character, learned as characters occur, up to a limit."""

    def __missing__(self, character: str) -> str:
        bare = _bare(character)
        if len(self) < _MOST_LETTERS:
            self[character] = bare
        return bare


@cache
def _accent_letters() -> _Letters:
    return _Letters()


@cache
def _letters() -> _Letters:
    """Folded forms, with Traditional characters as Simplified ones. Source: OpenCC; see the head of the file."""
    text = files("indexer").joinpath("traditional.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return _Letters(zip("".join(lines[::2]), "".join(lines[1::2]), strict=True))


def _bare(character: str) -> str:
    combining = unicodedata.combining(character)
    if (combining and character < "\u0370") or combining == _NUKTA or _DROPPED.match(character):
        return ""
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    if character in _PLAIN_LETTERS:
        return _PLAIN_LETTERS[character]
    if ord(character) in _KATAKANA:
        return chr(ord(character) - _TO_HIRAGANA)
    # Of Cyrillic й the accent makes another letter, which its stemmer wants to see.
    is_accented = character < "\u0400" or "\u1e00" <= character < "\u2000"
    return unicodedata.normalize("NFKD", character)[0] if is_accented else character.translate(_ALIKE)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem of a word, by its script."""
    if _HEBREW.fullmatch(word):
        return _hebrew_stem(word)
    language = "porter" if _ASCII_WORD.fullmatch(word) else _language(word)
    # Of the letter "s" alone the stemmer leaves nothing.
    return (_stemmer(language)(word) or word) if language else word


def _hebrew_stem(word: str) -> str:
    endings = (ending for ending in _HEBREW_ENDINGS if len(word) - len(ending) >= _HEBREW_CHARS)
    word = word.removesuffix(next((ending for ending in endings if word.endswith(ending)), ""))
    while word[0] in _HEBREW_PREFIXES and len(word) > _HEBREW_CHARS:
        word = word[1:]
    return word.translate(_HEBREW_FINALS)


def _language(word: str) -> str:
    return next((language for first, last, language in _STEMMERS if first <= word[0] <= last), "")


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer(language, 0).stemWord
    return stem


@cache
def _stop_words() -> frozenset[str]:
    text = files("indexer").joinpath("stop_words.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return STOP_WORDS | {_unify(word, _letters()) for line in lines for word in line.split()}


def term_hashes(terms: Sequence[str]) -> Hashes:
    """Hashes of terms: 8 bytes of BLAKE2b, little-endian, the same on every machine."""
    # Here, for those who use words alone.
    import numpy as np

    digests = b"".join([blake2b(term.encode(), digest_size=8).digest() for term in terms])
    return np.frombuffer(digests, "<u8").astype(np.uint64, copy=False)


def has_term_rules(fingerprint: Fingerprint | None) -> bool:
    """True if the terms of an index were made by the rules of today."""
    return fingerprint is not None and fingerprint.rules.rpartition("/")[2] == TERM_RULES

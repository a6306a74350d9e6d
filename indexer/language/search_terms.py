"""Terms that passages are found by and questions are searched by: words, identifiers, days and other spellings. Pure.

Invariants: those of `terms`; the words of a text stand for it where its terms cannot be read.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from indexer.common.patterns import lazy_regex
from indexer.language import asked_days, dates, identifiers
from indexer.language.breadcrumbs import searched_text
from indexer.language.languages import language_of, stop_words_of
from indexer.language.ornaments import ornament
from indexer.language.terms import (
    LETTER,
    MAX_TERM_CHARS,
    fold,
    identifier_parts,
    index_terms,
    query_terms,
    simplify,
    stem,
)
from indexer.types import Passage

# Umlauts and their like have another spelling in two letters.
_SPELLED_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_UMLAUT = lazy_regex("[äöüøåÄÖÜØÅ]|[aouAOU]\u0308|[aA]\u030a")
_WORD_WITH_UMLAUT = lazy_regex(r"[^\W\d_]*[äöüøå][^\W\d_]*")
_EMOJI_MARK = "emoji"
_EMOJI = lazy_regex("[\u2600-\u27bf\U0001f000-\U0001f3fa\U0001f400-\U0001faff]")


def passage_terms(passage: Passage, path: str) -> tuple[str, ...]:
    """Terms that find a passage of a file: its own, those of where it stands, and the parts of names."""
    lexical = searched_text(passage, path)
    texts = ornament("words", None, _terms_of, lexical)
    return _plain_terms(lexical) if texts is None else texts


def asked_terms(question: str) -> list[str]:
    """Terms that a question is searched by; its words as they stand where they cannot be read.

    Of a question that only asks what there was on a day there are none but the day.
    """
    texts = ornament("words", None, _asked_terms, question)
    return list(dict.fromkeys(_plain_terms(question))) if texts is None else texts


def stored_terms(text: str) -> list[str]:
    """Terms that a text is found by; its words as they stand where they cannot be read."""
    texts = ornament("words", None, _terms_of, text)
    return list(_plain_terms(text) if texts is None else texts)


def _asked_terms(question: str) -> list[str]:
    words = _without_days(question)
    own = frozenset(map(simplify, stop_words_of(language_of(question))))
    terms = dict.fromkeys([*query_terms(words.text, telling=True, without=own), *_other_spellings(words.text)])
    terms.update(dict.fromkeys(stem(key) for keys in _identifiers_in(words) for key in keys[:2]))
    terms.update(dict.fromkeys(words.keys))
    return list(terms if terms or words.dated else dict.fromkeys(index_terms(question)))


def strip_days(question: str) -> str:
    """A question without the days that it names; all of it where it says nothing else."""
    words = _without_days(question)
    return " ".join(words.text.split()) if words.dated and LETTER.search(words.text) else question


def asked_names(question: str) -> list[tuple[str, ...]]:
    """The identifiers that a question names, each by the terms that a passage with it has one of."""
    words = _without_days(question)
    signs = [(spelling,) for spelling in _other_spellings(words.text) if spelling.startswith(_EMOJI_MARK)]
    return [*(tuple(map(stem, keys)) for keys in _identifiers_in(words)), *signs]


def _without_days(question: str) -> asked_days.AskedWords:
    return ornament("days", asked_days.AskedWords(question, (), False), asked_days.without_days, question)


def _identifiers_in(words: asked_days.AskedWords) -> Sequence[tuple[str, ...]]:
    return ornament("identifiers", (), identifiers.asked_identifiers, words.text)


def _terms_of(lexical: str) -> tuple[str, ...]:
    return (
        *index_terms(lexical),
        *identifier_parts(lexical),
        *_other_spellings(lexical),
        *map(stem, ornament("identifiers", (), identifiers.identifier_keys, lexical)),
        *ornament("days", (), dates.day_keys, lexical),
    )


def _other_spellings(text: str) -> list[str]:
    """Terms of words with an umlaut as they are written without, and of emoji."""
    if text.isascii():
        return []
    words = _WORD_WITH_UMLAUT.findall(unicodedata.normalize("NFC", text).lower()) if _UMLAUT.search(text) else ()
    stems = [stem(fold(word.translate(_SPELLED_OUT))[:MAX_TERM_CHARS]) for word in words]
    return stems + [f"{_EMOJI_MARK}{ord(sign):x}" for sign in _EMOJI.findall(text)]


def _plain_terms(text: str) -> tuple[str, ...]:
    """Words without a rule of any language, for a text whose terms cannot be read: it is found by these."""
    return tuple(word[:MAX_TERM_CHARS] for word in text.encode("utf-8", "replace").decode().lower().split())

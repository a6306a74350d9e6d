"""The labels of a record under which the answer to a question stands: "Stands in" for "where is the sofa?".

People name what they note down in one word and ask for it in others. Here are the few kinds of thing that everybody
keeps of people and things, each with the wordings that ask for it and the words of its labels.

Invariants: pure; linear; English, German and Chinese; what asks for none of these kinds gives no label; of a question
that asks for several, the first kind that fits is the one.
"""

from __future__ import annotations

import re

from indexer.common.patterns import lazy_regex
from indexer.language.facts import KEYED, label_before
from indexer.language.tables import ANY

_KEY_END = lazy_regex(r"\s*(?:[:：=→]|->|=>)")
_WORD = lazy_regex(r"[^\W\d_]+")
_HAN = lazy_regex("[一-鿿]")
_ANSWERS = ANY.labels.answers
_KINDS = tuple((lazy_regex(asking, re.IGNORECASE), _ANSWERS[kind]) for kind, asking in ANY.labels.asking.items())


def asked_labels(question: str) -> frozenset[str]:
    """Words of the labels under which the answer stands; none where a question asks for nothing of these kinds."""
    for pattern, labels in _KINDS:
        if pattern.search(question):
            return labels
    return frozenset()


def label_of(text: str) -> tuple[str, str]:
    """Of a line of a record, what stands before its key and the key: "Sofa" and "Cost" of "Sofa: Cost: 635 €"."""
    line = text.strip(" \t*_-|>")
    if "\n" in line or KEYED.match(line) is None:
        return "", ""
    before, rest = label_before(line)
    end = _KEY_END.search(rest)
    return before, rest[: end.start()] if end else ""


def is_labelled(key: str, labels: frozenset[str]) -> bool:
    """True if the key of a line is one of some labels."""
    folded_text = key.casefold()
    if not labels.isdisjoint(_WORD.findall(folded_text)):
        return True
    return _HAN.search(folded_text) is not None and any(label in folded_text for label in labels if _HAN.search(label))

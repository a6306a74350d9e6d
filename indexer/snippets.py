"""Owns what of a passage is shown with a hit: all of a short one, of a long one what the question is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from indexer import analysis

SNIPPET_CHARS = 700
_BREAK = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？；])|\n")


def snippet(text: str, terms: Iterable[str], *, max_chars: int = SNIPPET_CHARS) -> str:
    """The stretch of whole sentences with most of the terms, marked with … where it was cut."""
    if len(text) <= max_chars:
        return text
    wanted = set(terms)
    sentences = _sentences(text)
    weights = [len(wanted.intersection(analysis.index_terms(text[start:end]))) for start, end in sentences]
    best = max(range(len(sentences)), key=lambda i: weights[i])
    start, end = sentences[best]
    low = high = best
    while True:
        before = sentences[low - 1][0] if low else None
        after = sentences[high + 1][1] if high + 1 < len(sentences) else None
        if after is not None and after - start <= max_chars:
            high, end = high + 1, after
        elif before is not None and end - before <= max_chars:
            low, start = low - 1, before
        else:
            break
    end = min(end, start + max_chars)
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"


def _sentences(text: str) -> list[tuple[int, int]]:
    starts = [0, *(match.end() for match in _BREAK.finditer(text))]
    ends = [*starts[1:], len(text)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if text[start:end].strip()] or [
        (0, len(text))
    ]

"""Owns how many texts go into one request: `Limits`, which learns from the provider what it takes.

Invariants: what was learned holds as long as the process; a limit only ever goes down; places keep their order, and
each is in exactly one batch; a text that was cut begins as the whole one did. Sizes are estimates, so a provider's
number is taken in the proportion in which the estimate was wrong.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence

from indexer.embeddings.provider_errors import EmbeddingFailure

# What every provider takes that we know of, but for a few, which say so. Four requests of a sync's 256 texts run at
# once, so more in one would not be faster.
_ITEMS = 64
_REQUEST_TOKENS = 32_000
# A text that is too long even at this length is refused for another reason.
_SHORTEST_CHARACTERS = 32
# Left free, as another text may have more tokens to the character.
_MARGIN = 0.9

# Han, kana, Hangul, their punctuation and full-width forms: tokenizers spend about one token on each.
_DENSE = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


def estimated_tokens(text: str) -> int:
    """Size of a text: characters / 4, CJK characters one token each; at least 1."""
    quarters = len(text) if text.isascii() else len(text) + 3 * len(_DENSE.findall(text))
    return max(1, -(-quarters // 4))


class Limits:
    """What a provider takes in one request. Safe to use from several threads."""

    def __init__(self) -> None:
        self._items = _ITEMS
        self._request_tokens = _REQUEST_TOKENS
        self._text_tokens: int | None = None
        self._learning = threading.Lock()

    def batches(self, texts: Sequence[str]) -> Iterator[range]:
        """Places 0..n-1 in batches that keep the limits; a text that is over them alone has one of its own."""
        start = tokens = 0
        for place, text in enumerate(texts):
            size = estimated_tokens(text)
            if place > start and (place - start >= self._items or tokens + size > self._request_tokens):
                yield range(start, place)
                start, tokens = place, 0
            tokens += size
        if texts:
            yield range(start, len(texts))

    def cut(self, text: str) -> str:
        """The beginning of a text that the model takes, as far as that is known."""
        limit = self._text_tokens
        while limit is not None and len(text) > _SHORTEST_CHARACTERS and (size := estimated_tokens(text)) > limit:
            text = text[: max(_SHORTEST_CHARACTERS, min(len(text) * limit // size, len(text) - 1))]
        return text

    def learn(self, failure: EmbeddingFailure, texts: Sequence[str]) -> bool:
        """Take note of a size that was refused; whether these texts will be sent in another way now.

        Args:
            failure: What the provider said: `items`, `request`, or `text` for a single text.
            texts: What it was sent.
        """
        tokens = sum(map(estimated_tokens, texts))
        with self._learning:
            if len(texts) == 1:
                return self._learn_text(failure, texts[0], tokens)
            if failure.kind == "items":
                self._items = min(self._items, failure.limit or len(texts) // 2, len(texts) - 1)
            elif failure.kind == "request":
                self._request_tokens = min(self._request_tokens, _estimate_of_limit(failure, tokens))
            else:
                return False
        return True

    def _learn_text(self, failure: EmbeddingFailure, text: str, tokens: int) -> bool:
        if failure.kind == "items" or len(text) <= _SHORTEST_CHARACTERS:
            return False
        limit = _estimate_of_limit(failure, tokens)
        self._text_tokens = limit if self._text_tokens is None else min(self._text_tokens, limit)
        return True


def _estimate_of_limit(failure: EmbeddingFailure, tokens: int) -> int:
    """A provider's limit in our estimate, given what we took the refused texts for; always less than that."""
    if failure.limit and failure.given and failure.given > failure.limit:
        return max(1, int(tokens * failure.limit / failure.given * _MARGIN))
    if failure.limit and failure.limit < tokens:
        return max(1, int(failure.limit * _MARGIN))
    return max(1, tokens // 2)

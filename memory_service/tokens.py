"""Owns the estimate of tokens where no tokenizer is at hand: characters / 4, CJK characters one token each.

Invariants: pure; quarters add up exactly over pieces of a text, tokens only round them up at the end.
"""

from __future__ import annotations

import re

# Han, kana, Hangul, their punctuation and full-width forms: tokenizers spend about one token on each.
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)


def quarters(text: str) -> int:
    """Size of a text in quarters of a token."""
    return len(text) if text.isascii() else len(text) + 3 * len(_CJK.findall(text))


def count_tokens(text: str) -> int:
    """Size of a text in tokens, rounded up."""
    return -(-quarters(text) // 4)

"""Vocabulary of a tokenizer, and whether a text stands in it in pieces longer than letters.

Invariants: pure; safe to call from several threads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Characters of a text for each piece of it. BERT's English vocabulary cuts English into pieces of 4 characters,
# accented Latin into 1.5 to 2.7; of Cyrillic, Greek, Arabic, Hebrew, Devanagari and Chinese it has the letters: 1.0 to
# 1.15.
# Source: our measurement, tests/indexer/embeddings/test_vocabulary.py.
_LEAST_PIECE = 1.5


class Vocabulary:
    """Pieces that a model was trained on.

    Args:
        tokenizer: A `tokenizers.Tokenizer` that pads nothing.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._unknown = getattr(tokenizer.model, "unk_token", None)

    def reads(self, text: str) -> bool:
        """Whether the pieces of a text say more than its letters do."""
        # Lone surrogates, which JSON can bring in, are refused.
        made = self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"), add_special_tokens=False)
        pieces = zip(made.tokens, made.offsets, strict=True)
        sizes = [end - start if token != self._unknown else 0 for token, (start, end) in pieces]
        return sum(sizes) >= _LEAST_PIECE * len(sizes)


def read_vocabulary(path: Path) -> Vocabulary | None:
    """The vocabulary in a file such as tokenizer.json; None where it cannot be read."""
    try:
        return Vocabulary(load_tokenizer(path))
    except Exception:  # a package that is not there, and tokenizers' plain subclasses of Exception
        return None


def load_tokenizer(path: Path) -> Any:
    """The tokenizer in a file such as tokenizer.json, without padding."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    return tokenizer

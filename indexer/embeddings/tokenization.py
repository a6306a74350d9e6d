"""Texts cut into the pieces of a model: tokenizers of two packages, and what their vocabularies read.

Invariants: importing this module imports neither package; a text of any characters is cut, surrogates and all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from indexer.common.lru import LRU
from indexer.embeddings.base import without_surrogates

# Characters of a text for each piece of it. BERT's English vocabulary cuts English into pieces of 4 characters,
# accented Latin into 1.5 to 2.7; of Cyrillic, Greek, Arabic, Hebrew, Devanagari and Chinese it has the letters: 1.0 to
# 1.15.
# Source: our measurement, tests/indexer/embeddings/test_vocabulary.py.
LEAST_PIECE = 1.5
_KEPT_ANSWERS = 64
# sentencepiece writes the beginning of a word so.
_SPACE = "▁"


class TokenizerFile:
    """A tokenizer.json, read by the package tokenizers. Thread-safe.

    Args:
        tokenizer: A `tokenizers.Tokenizer` that pads nothing; what it cuts off stays cut off.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._unknown_token = tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or "<unk>")

    def ids(self, text: str) -> Sequence[int]:
        """Token ids of a text, from the first special one to the last; at most those that the model reads."""
        ids: list[int] = self._tokenizer.encode(without_surrogates(text)).ids
        return ids

    def sizes(self, text: str) -> Sequence[int]:
        """Characters of each piece of a text, special ones aside; 0 for one that is not known."""
        value = self._tokenizer.encode(without_surrogates(text), add_special_tokens=False)
        pieces = zip(value.ids, value.offsets, strict=True)
        return [end - start if piece != self._unknown_token else 0 for piece, (start, end) in pieces]


class SentencePieces:
    """A tokenizer.model, read by the package sentencepiece. Thread-safe.

    Of a vocabulary of 250,000 pieces it takes 48 MB of memory where tokenizers takes 240, and a third of the time for a
    text. Source: our measurement, e5_model/README.md.

    Args:
        path: Its file.
        most: So many ids of a text, special ones included.

    Raises:
        ImportError: The package is not there.
        RuntimeError: The file cannot be read.
    """

    def __init__(self, path: Path, *, most: int) -> None:
        from sentencepiece import SentencePieceProcessor

        # Its own reader takes the beginning of a file for the whole.
        self._processor = SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(path.read_bytes())
        self._most = most
        self._first, self._last = [self._processor.bos_id()], [self._processor.eos_id()]
        self._unknown_id = self._processor.unk_id()

    def ids(self, text: str) -> Sequence[int]:
        """See `TokenizerFile`."""
        ids: list[int] = self._processor.EncodeAsIds(without_surrogates(text))
        return self._first + ids[: self._most - 2] + self._last

    def sizes(self, text: str) -> Sequence[int]:
        """See `TokenizerFile`."""
        ids: list[int] = self._processor.EncodeAsIds(without_surrogates(text))
        pieces: list[str] = self._processor.IdToPiece(ids)
        return [
            len(piece.removeprefix(_SPACE)) if number != self._unknown_id else 0
            for number, piece in zip(ids, pieces, strict=True)
        ]


Tokenizer = TokenizerFile | SentencePieces


class Vocabulary:
    """Pieces of text that a model was trained on. Thread-safe.

    Args:
        tokenizer: What cuts texts.
        least_piece: Known characters for each piece of a text that is read. Below 1, a vocabulary may have the letters
            of a script alone: one that was trained on many has pieces of one character for what it knows well, too.
    """

    def __init__(self, tokenizer: Tokenizer, *, least_piece: float = LEAST_PIECE) -> None:
        self._tokenizer = tokenizer
        self._least_piece = least_piece
        # Each search asks again, about the same samples of other scripts.
        self._cache: LRU[str, bool] = LRU(_KEPT_ANSWERS)

    def reads(self, text: str) -> bool:
        """True if the pieces of a text are long enough, by default longer than single letters."""
        is_known = self._cache.get(text)
        if is_known is None:
            sizes = self._tokenizer.sizes(text)
            is_known = self._cache[text] = sum(sizes) >= self._least_piece * len(sizes)
        return is_known


def read_vocabulary(path: Path) -> Vocabulary | None:
    """The vocabulary in a file such as tokenizer.json; None if it cannot be read."""
    try:
        return Vocabulary(TokenizerFile(load_tokenizer(path)))
    except Exception:  # a package that is not there, and tokenizers' plain subclasses of Exception
        return None


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """A panic of a package that is written in Rust, which is no Exception, becomes a RuntimeError within the block."""
    try:
        yield
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise RuntimeError(str(error)) from error


def load_tokenizer(path: Path) -> Any:
    """The tokenizer in a file such as tokenizer.json, without padding."""
    from tokenizers import Tokenizer as Tokenizers

    with panics_as_errors():
        tokenizer = Tokenizers.from_file(str(path))
        tokenizer.no_padding()
        # Some that cannot be used are read all the same.
        tokenizer.encode("a", "b")
        tokenizer.encode("a")
    return tokenizer

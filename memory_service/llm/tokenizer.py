"""Owns exact counts of tokens for OpenAI's models, by tiktoken and the vocabularies that litellm brings along.

Invariants: nothing is fetched: a vocabulary that is not on the disk, or not the one it should be, is as good as none;
nothing is loaded before the first count is asked for; texts are remembered by their digest, not themselves.

Source: litellm 1.106 has the vocabularies of cl100k_base and o200k_base in its package (since 2023 and 2024), and
points tiktoken at them for that it need not fetch them; so does this file, without the seconds that importing litellm
takes. Other makers' tokenizers are fetched at the first use, if they are public at all: for their models there is no
exact count here, and the estimate is corrected by what the provider counts.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol

# tiktoken names a file by the SHA-1 of its address, and holds it against a SHA-256 of its own: a file that fails that
# would be fetched again, so it is looked at before.
_VOCABULARIES = {
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
_VOCABULARIES["o200k_harmony"] = _VOCABULARIES["o200k_base"]
_FOLDER = "TIKTOKEN_CACHE_DIR"
_REMEMBERED = 8_192
# Its regular expressions give up, and panic, at about a million blanks in a row, so long texts are cut: a cut adds a
# token or two at most.
_PIECE_CHARS = 50_000


class _Encoding(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...


def exact_counter(model: str) -> Callable[[str], int] | None:
    """How to count the tokens of a text exactly.

    What a provider adds around messages is not in it, and neither are pictures. Texts of more than 50,000 characters
    come out up to two tokens too large for each 50,000.

    Args:
        model: A litellm name, such as "openai/gpt-4o".

    Returns:
        A function that is safe to call from several threads; None where no tokenizer of the model is on the disk.
    """
    name = _encoding_name(model.rpartition("/")[2])
    return _counter(name) if name in _VOCABULARIES else None


def _encoding_name(model: str) -> str:
    try:
        from tiktoken.model import encoding_name_for_model

        name: str = encoding_name_for_model(model)
    except (ImportError, KeyError):
        return ""
    return name


@cache
def _counter(name: str) -> Callable[[str], int] | None:
    encoding = _loaded(name)
    return _Remembered(encoding).count if encoding else None


def _loaded(name: str) -> _Encoding | None:
    folder = os.environ.get(_FOLDER) or _bundled()
    if not folder or not _is(Path(folder) / _VOCABULARIES[name][0], _VOCABULARIES[name][1]):
        return None
    # Stays set, as litellm leaves it: taking it back could undo litellm's own setting, and then tiktoken would fetch.
    os.environ[_FOLDER] = folder
    import tiktoken

    try:
        encoding: _Encoding = tiktoken.get_encoding(name)
    except (OSError, ValueError):
        return None
    return encoding


def _bundled() -> str | None:
    """The folder of vocabularies in litellm's package."""
    spec = importlib.util.find_spec("litellm")
    return str(Path(spec.origin).parent / "litellm_core_utils" / "tokenizers") if spec and spec.origin else None


def _is(file: Path, digest: str) -> bool:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest() == digest
    except OSError:
        return False


class _Remembered:
    """Counts of the texts that were asked for last: a view is measured again with each message."""

    def __init__(self, encoding: _Encoding) -> None:
        self._encoding = encoding
        self._counts = OrderedDict[bytes, int]()
        self._turn = threading.Lock()

    def count(self, text: str) -> int:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._turn:
            if key in self._counts:
                self._counts.move_to_end(key)
                return self._counts[key]
        pieces = (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))
        count = sum(len(self._encoding.encode_ordinary(piece)) for piece in pieces)
        with self._turn:
            self._counts[key] = count
            if len(self._counts) > _REMEMBERED:
                self._counts.popitem(last=False)
        return count

"""Token counter: exact counts by tiktoken where possible.

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
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.common import LRU, lazy_regex
from memory_service.messages.sizes import Usage

if TYPE_CHECKING:
    pass

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
_MODELS = 64
# Its regular expressions give up, and panic, at about a million blanks in a row, so long texts are cut: a cut adds a
# token or two at most.
_PIECE_CHARS = 50_000


def exact_counter(model: str) -> Callable[[str], int] | None:
    """Exact token counter of a model.

    What a provider adds around messages is not in it, and neither are pictures. Texts of more than 50,000 characters
    come out up to two tokens too large for each 50,000.

    Args:
        model: A litellm name, such as "openai/gpt-4o".

    Returns:
        A function that is safe to call from several threads; None where no tokenizer of the model is on the disk.
    """
    name = _encoding_name(model.rpartition("/")[2])
    return _counter(name) if name in _VOCABULARIES else None


@lru_cache(_MODELS)
def _encoding_name(model: str) -> str:
    # Remembered: an import that fails looks through all folders again each time.
    try:
        from tiktoken.model import encoding_name_for_model

        name: str = encoding_name_for_model(model)
    except (ImportError, KeyError):
        return ""
    return name


@cache
def _counter(name: str) -> Callable[[str], int] | None:
    encode = _encoder(name)
    return _Remembered(encode).count if encode else None


def _encoder(name: str) -> Callable[[str], list[int]] | None:
    folder = os.environ.get(_FOLDER) or _bundled_folder()
    if not folder or not _is(Path(folder) / _VOCABULARIES[name][0], _VOCABULARIES[name][1]):
        return None
    # Stays set, as litellm leaves it: taking it back could undo litellm's own setting, and then tiktoken would fetch.
    os.environ[_FOLDER] = folder
    import tiktoken

    try:
        encode: Callable[[str], list[int]] = tiktoken.get_encoding(name).encode_ordinary
    except (OSError, ValueError):
        return None
    return encode


def _bundled_folder() -> str | None:
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

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        self._encode = encode
        self._counts: LRU[bytes, int] = LRU(_REMEMBERED)

    def count(self, text: str) -> int:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if (known_count := self._counts.get(key)) is not None:
            return known_count
        pieces = (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))
        count = sum(len(self._encode(piece)) for piece in pieces)
        self._counts[key] = count
        return count


# Source: measured with the tokenizers of GPT-4 and GPT-4o against our estimate: English 0.9 to 1.0, code 1.0, Chinese
# 0.8 to 1.1, Russian 1.2 to 1.9, short JSON 2.1, digests 2.6. Only GPT-4 itself goes beyond, to 3.8 in Hindi and Thai.
LEAST_SCALE, MOST_SCALE = 0.6, 2.5
# What a call weighs against the one after it.
_FADING = 0.7

# "gpt-4o" is asked for and "gpt-4o-2024-08-06" answers.
_RELEASE = lazy_regex(r"[-@:](?:latest|\d{8}|\d{4}-\d{2}-\d{2})\Z")


# --- what providers counted ----------------------------------------------------------------------------------------


def _usage_tokens(usage: Usage) -> int:
    """The whole prompt of a call; 0 if it failed before anything was counted."""
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens


def pairs_of(counted_pairs: Iterable[tuple[int, Usage]], model: str | None = None) -> list[tuple[int, int]]:
    """Pairs of estimated and counted tokens of a model's prompts; calls where either is unknown are left out."""
    return [
        (usage.estimated_tokens, _usage_tokens(usage))
        for _, usage in counted_pairs
        if usage.estimated_tokens and _usage_tokens(usage) > 0 and same_model(usage.model, model)
    ]


def same_model(text: str | None, other_text: str | None) -> bool:
    """True if two names may be of one model: provider and date of release aside; no name may be any."""
    return not text or not other_text or _plain(text) == _plain(other_text)


def _plain(model: str) -> str:
    return _RELEASE.sub("", model.rpartition("/")[2].lower())


# --- what is learned from it ---------------------------------------------------------------------------------------


def learned_scale(pairs: Iterable[tuple[int, int]]) -> float:
    """Calibration factor: tokens counted by a model per estimated token.

    A mean over calls, weighted by size, in which older ones fade.

    Args:
        pairs: What each prompt was taken for, and what it was; see `pairs_of`.

    Returns:
        1.0 where the pairs tell nothing.
    """
    taken_value, counted_value = 0.0, 0.0
    for estimate, real in pairs:
        # One that counted something else, such as a prompt without its cached part, must not decide.
        sane = min(max(real, LEAST_SCALE * estimate), MOST_SCALE * estimate)
        taken_value, counted_value = _FADING * taken_value + estimate, _FADING * counted_value + sane
    return min(max(counted_value / taken_value, LEAST_SCALE), MOST_SCALE) if taken_value else 1.0

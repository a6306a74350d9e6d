"""Size of texts and messages, in tokens. Pure.

```
count_tokens    a budget that somebody was given: blocks of memories, summaries, ledgers
message_tokens  what goes into a window: an estimate, near to what a tokenizer counts
```
Invariants: of a budget, characters / 4, CJK characters one token each, so that anybody can count it; quarters add up
exactly over pieces of a text, tokens only round them up at the end; both are the same for every provider, since the
real count corrects the estimate where a provider reports one.

A tokenizer of today splits a text into words with the space before them, runs of up to three digits, and runs of
signs, and common words are one token each. So a text is read as classes of characters, and what it takes is a sum over
the classes and their borders: a digit behind a letter begins a token, and base64 is all borders. Characters of other
scripts have weights of their own, by the byte that their UTF-8 begins with. English prose is never taken for less than
characters / 4, since who pays for a wrong guess is the one whose prompt is refused; weights are whole numbers, so that
the same text comes to the same everywhere; of a text over 64,000 characters, sixteen slices stand for the whole.

Source: `python -m tests.evals.token_weights` fits the weights to o200k_base on real text of some sixty kinds and judges
them on other text. Providers frame a message in 3 to 4 tokens and a tool call in about 50 with its schema's names; an
image is 1,105 tokens at OpenAI (1024 x 1024, high detail) and up to 1,600 at Anthropic, whose number stands here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from memory_service.messages.opaque import unwrap_part
from memory_service.messages.shapes import MEDIA, Message, is_known, parts_of, text_of, tool_calls_of

_LONGEST = 65_536
_SLICES = 16
# The view is measured with each prompt: what texts take is remembered, of longer ones by their digest.
_SHORT = 256
_REMEMBERED = 16_384
_KNOWN: dict[bytes, int] = {}


def _class_of(byte: int) -> str:
    """Class of a character by the first byte of its UTF-8."""
    if byte < 0x80:
        char = chr(byte)
        if char.isalpha():
            return "L" if char.islower() else "U"
        if char.isdigit():
            return "D"
        return "N" if char in "\r\n" else "S" if char in " \t" else "P"
    return next(name for last, name in _LEADS if byte <= last)


# The last first byte of a block, and its class: general signs are P, like those of ASCII.
_LEADS = (
    (0xC2, "P"), (0xC3, "l"), (0xC9, "m"), (0xCD, "x"), (0xCF, "g"), (0xD3, "c"), (0xD5, "y"), (0xD7, "h"),
    (0xDB, "r"), (0xDF, "x"), (0xE0, "i"), (0xE1, "w"), (0xE2, "q"), (0xE3, "k"), (0xE9, "H"), (0xED, "K"),
    (0xEE, "x"), (0xEF, "f"), (0xFF, "e"),
)  # fmt: skip
_TABLE = bytes(ord(_class_of(byte)) for byte in range(256))
_FOLLOWING = bytes(range(0x80, 0xC0))
_STRANGE = bytes({ord(name) for _, name in _LEADS} - {ord("P")})
# Blocks that share a first byte: the second ones of each.
BLOCKS: dict[int, dict[str, tuple[int, ...]]] = {
    0xE0: {
        "devanagari": (0xA4, 0xA5), "bengali": (0xA6, 0xA7), "gurmukhi": (0xA8, 0xA9), "gujarati": (0xAA, 0xAB),
        "tamil": (0xAE, 0xAF), "telugu": (0xB0, 0xB1), "kannada": (0xB2, 0xB3), "malayalam": (0xB4, 0xB5),
        "sinhala": (0xB6, 0xB7), "thai": (0xB8, 0xB9),
    },
    0xE1: {"burmese": (0x80, 0x81), "georgian": (0x83,), "vietnamese": (0xBA, 0xBB), "khmer": (0x9E, 0x9F)},
}  # fmt: skip

# What the script prints: thousandths of a token for each character, or each border of two.
ASCII_WEIGHTS = {
    b"L": 203, b"U": 248, b"D": 343, b"N": 1237, b"SL": 103, b"PL": 786, b"DL": 1444, b"SU": 269, b"PU": 575,
    b"NU": 323, b"DU": 2370, b"UD": 2368, b"SD": 1459, b"PD": 983, b"SP": 687, b"PP": 315, b"PS": 495, b"SS": 364,
    b"SSSS": -500, b"LUL": -146, b"NN": -500,
}  # fmt: skip
SCRIPT_WEIGHTS = {
    b"l": 1310, b"m": 1717, b"x": 2305, b"g": 408, b"c": 358, b"y": 363, b"h": 516, b"r": 383, b"i": 2171, b"w": 2642,
    b"q": 1669, b"k": 651, b"H": 901, b"K": 745, b"f": 1659, b"e": 2473,
}  # fmt: skip
# Beside what the first byte of these comes to.
BLOCK_WEIGHTS = {
    "devanagari": -1752, "bengali": -1748, "gurmukhi": -1509, "gujarati": -1714, "tamil": -1743, "telugu": -1669,
    "kannada": -1703, "malayalam": -1811, "sinhala": -1538, "thai": -1760, "burmese": -2061, "georgian": -2270,
    "vietnamese": -2653, "khmer": -2278,
}  # fmt: skip
_INDENT = b"SSSS"


def estimate_tokens(text: str) -> int:
    """Size of a text in tokens, rounded up."""
    return -(-_milli_tokens(text) // 1000)


def _milli_tokens(text: str) -> int:
    """Size of a text in thousandths of a token, so that the parts of a message are rounded once."""
    if len(text) <= _SHORT:
        return _of_short(text)
    key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    size = _KNOWN.get(key)
    if size is None:
        if len(_KNOWN) >= _REMEMBERED:
            _KNOWN.clear()
        size = _KNOWN[key] = _count_text(text) if len(text) <= _LONGEST else _counted_by_slices(text)
    return size


@lru_cache(_REMEMBERED)
def _of_short(text: str) -> int:
    return _count_text(text)


def _counted_by_slices(text: str) -> int:
    step, size = len(text) / _SLICES, _LONGEST // _SLICES
    slices = (text[int(step * at) : int(step * at) + size] for at in range(_SLICES))
    return sum(map(_count_text, slices)) * len(text) // (size * _SLICES)


def _count_text(text: str) -> int:
    if not text:
        return 0
    read = _classes_of(text)
    fitted_count = sum(weight * read.count(border) for border, weight in ASCII_WEIGHTS.items())
    if text.isascii():
        return max(fitted_count, _floor(len(text), read))
    raw = text.encode("utf-8", "surrogatepass")
    strange = sum(weight * read.count(name) for name, weight in SCRIPT_WEIGHTS.items())
    strange += sum(
        BLOCK_WEIGHTS[name] * sum(raw.count(bytes((lead, second))) for second in seconds)
        for lead, blocks in BLOCKS.items()
        if raw.find(lead) >= 0
        for name, seconds in blocks.items()
    )
    return max(fitted_count, _floor(len(read.translate(None, _STRANGE)), read)) + strange


def _classes_of(text: str) -> bytes:
    """Class of each character of a text."""
    return text.encode("utf-8", "surrogatepass").translate(_TABLE, _FOLLOWING)


def _floor(chars: int, read: bytes) -> int:
    """Characters / 4; of an indentation, most of it is one token."""
    return 250 * (chars - 4 * read.count(_INDENT))


# Han, kana, Hangul, their punctuation and full-width forms: tokenizers spend about one token on each.
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token usage of one call as the provider counted it; `input_tokens` excludes cached ones.

    Attributes:
        estimated_tokens: What the prompt was taken for before the call; None if that is not known.
        finish_reason: The provider's word for why the answer ended; None if that is not known.
    """

    input_tokens: int
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    model: str | None = None
    estimated_tokens: int | None = None
    finish_reason: str | None = None


def quarters(text: str) -> int:
    """Size of a text in quarters of a token."""
    return len(text) if text.isascii() else len(text) + 3 * len(_CJK.findall(text))


def count_tokens(text: str) -> int:
    """Size of a text in tokens, rounded up."""
    return -(-quarters(text) // 4)


MESSAGE_TOKENS = 4
CALL_TOKENS = 50
MEDIA_TOKENS = 1_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A message with its number in the log.

    Attributes:
        seq: Its number; in a list that has no log, its place from 1.
        tokens: See `message_tokens`.
        at: When it was appended: UTC, ISO 8601; empty if that is not known.
        redacted: Whether it went through `without_secrets`.
    """

    seq: int
    message: Message
    tokens: int
    at: str = ""
    redacted: bool = field(default=False, compare=False, repr=False)


def number_message(message: Message, seq: int, at: str = "") -> Numbered:
    """A message with its number and size."""
    return Numbered(seq=seq, message=message, tokens=message_tokens(message), at=at)


def message_tokens(message: Message) -> int:
    """Size of a message in tokens: text, thinking, calls with their arguments, media and the frame around it."""
    calls = tool_calls_of(message)
    size = _milli_tokens(text_of(message)) + sum(
        _milli_tokens(call["function"]["name"]) + _milli_tokens(call["function"]["arguments"]) for call in calls
    )
    if "thinking_blocks" in message:
        size += sum(
            _milli_tokens(str(block.get("thinking") or block.get("data") or "")) for block in message["thinking_blocks"]
        )
    if "reasoning_content" in message:
        size += _milli_tokens(message["reasoning_content"] or "")
    parts = [] if isinstance(message.get("content"), str) else parts_of(message)
    media = sum(part["type"] in MEDIA for part in parts)
    opaque = sum(_unknown_tokens(part) for part in parts if not is_known(part["type"]))
    return -(-size // 1000) + opaque + MESSAGE_TOKENS + CALL_TOKENS * len(calls) + MEDIA_TOKENS * media


def _unknown_tokens(part: Mapping[str, Any]) -> int:
    """Size of a part of an unknown type in tokens; none counts for more than a picture."""
    try:
        return min(estimate_tokens(json.dumps(unwrap_part(part), ensure_ascii=False)), MEDIA_TOKENS)
    except (RecursionError, TypeError, ValueError):
        return MEDIA_TOKENS


def tools_tokens(tools: Sequence[object]) -> int:
    """Size of the schemas of tools, as they go over the wire, in tokens."""
    return sum(estimate_tokens(json.dumps(tool, ensure_ascii=False)) for tool in tools)

"""Secrets in texts and messages: finding and redacting them before a file or a model gets them.

Invariants: pure; linear in the length of the text; what is no secret stays byte for byte; doing it twice changes
nothing more; a text is judged as a whole, before it is cut into lines; the log and the view of recent messages keep
what was said. The table of kinds is in `secret_kinds`; there is no other.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from indexer.common import lazy_regex
from indexer.language import ANY, ornament
from memory_service.messages.shapes import with_texts
from memory_service.text.secret_kinds import KINDS, NAMES, SecretKind
from memory_service.text.secret_proofs import REDACTED, place_of

if TYPE_CHECKING:
    from memory_service.messages.sizes import Numbered

__all__ = [
    "REDACTED",
    "announces_secret",
    "has_secret",
    "names_secret",
    "redact",
    "without_public_blocks",
]

_MOST_PASSES = 8
# How far before a hint what holds it begins, and how far behind it what is looked for does.
_BACK, _AHEAD = 64, 400
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
# What a key goes on with behind a blank, or on the next line, where it was broken: a piece as no word looks.
_MORE = lazy_regex(r"(?:[ \t]|\r?\n[ \t]{0,8})(?=[A-Za-z_-]{0,40}\d|[A-Za-z0-9]{0,40}[a-z][A-Z])[A-Za-z0-9_-]{3,}+")
_MIXED = lazy_regex("[0-9]|[a-z][A-Z]|[A-Z]{12}")
# Signs that are not seen, letters and digits of full width or of mathematics, and what JSON writes for a character.
_ODD = lazy_regex(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
    "|[\uff0b\uff0d-\uff19\uff1d\uff20-\uff3a\uff3f\uff41-\uff5a\u2460-\u24ff\U0001d400-\U0001d7ff]"
    r"|\\{1,4}(?:u[0-9a-fA-F]{4}|[nrt\"/])"
)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "/": "/"}
# A number that is the value of a field of JSON becomes a text, or the whole would be no JSON.
_FIELD = lazy_regex(r"\"\s{0,8}:\s{0,8}\Z")
_PUBLIC_BLOCK = lazy_regex(r"-----BEGIN [A-Z0-9 ]{0,40}(?:CERTIFICATE|PUBLIC KEY|MESSAGE|SIGNATURE)[A-Z ]{0,20}-----")
_BLOCK_END = lazy_regex(r"-----END [A-Z0-9 ]{0,60}-----")
_UNHINTED = tuple(kind for kind in KINDS if kind.near is not None)
# The places of kinds in the table, by each hint.
_HINTED = {
    word: tuple(at for at, kind in enumerate(KINDS) if kind.near is None and word in map(str.lstrip, kind.hints))
    for word in {hint.lstrip(): None for kind in KINDS for hint in kind.hints}
}
_CHANCE = frozenset({"AWS secret access key", "random token", "secret in base64"})
_ANNOUNCED = lazy_regex(
    rf"(?:{NAMES.pattern})[^\n.。]{{0,40}}(?:[:：]|{ANY.secrets.announcements})\s{{0,4}}[.。]?\s{{0,4}}\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Secret:
    """A secret in a text.

    Attributes:
        kind: Its name in the table of kinds.
        start: Where it begins, from 0.
        end: Where it is over.
    """

    kind: str
    start: int
    end: int


def redact(text: str) -> str:
    """A text with `[redacted]` in the place of each secret: keys, tokens, passwords, numbers of cards and accounts.

    What names the secret stays, such as `password:` or the user of a URL. A text whose secrets cannot be told is one.
    """
    return ornament("secrets", REDACTED, _redact, text)


def _redact(text: str) -> str:
    # What one secret hid may be seen once that is gone.
    for _ in range(_MOST_PASSES):
        secrets = sorted(_find_secrets(text), key=lambda secret: (secret.start, -secret.end))
        if not secrets:
            break
        text = _replace_secrets(text, secrets)
    return text


def has_secret(text: str) -> bool:
    """True if a text holds a secret: whether `redact` would change it."""
    return ornament("secrets", True, lambda: next(_find_secrets(text), None) is not None)


def announces_secret(text: str) -> bool:
    """True if the next words of who says this are a secret: "The password is:"."""
    return _ANNOUNCED.search(text[-160:]) is not None


def names_secret(text: str) -> bool:
    """True if a text has a word for a secret, such as "passcode"."""
    return NAMES.search(text) is not None


def _find_secrets(text: str) -> Iterator[_Secret]:
    """The secrets of a text, in no order; they may overlap."""
    plain = _Plain(text)
    places = _Places(plain.text)
    public = [*_public_blocks(plain.text)] if "-----begin" in places.lowered else []
    for kind in _near(places):
        for start, end in _spans(kind, places):
            hidden_public = public if kind.name in _CHANCE else ()
            if not any(first <= start < last for first, last in hidden_public):
                first, last = plain.span(start, end)
                # What is redacted already is secret no more.
                if REDACTED not in text[first:last]:
                    yield _Secret(kind=kind.name, start=first, end=last)


def _near(places: _Places) -> Iterator[SecretKind]:
    """The kinds that a text may have: most texts hold no hint, and there are many hints."""
    lowered_text = places.lowered
    present = {at: None for word, kinds in _HINTED.items() if word in lowered_text for at in kinds}
    return filter(places.of, (*_UNHINTED, *(KINDS[at] for at in present)))


def _spans(kind: SecretKind, places: _Places) -> Iterator[tuple[int, int]]:
    text = places.text
    for match in _find_matches(kind, places):
        start, end = place_of(match)
        if kind.length:
            while end - start < kind.length and (more := _MORE.match(text, end)):
                end = more.end()
            if end - start < kind.least or not _MIXED.search(text, start + 3, end):
                continue
        elif not kind.is_one(match) or (kind.within is not None and not has_secret(kind.within(match))):
            continue
        yield start, end


def _find_matches(kind: SecretKind, places: _Places) -> Iterator[re.Match[str]]:
    """Matches of a pattern, searched near its hints only: most texts are long and hold few."""
    text = places.text
    if kind.wide:
        yield from kind.pattern.finditer(text)
        return
    at = 0
    for first, last in _stretches(places.of(kind)):
        at = max(at, first)
        while at < last and (near := kind.pattern.search(text, at, last)):
            match = kind.pattern.match(text, near.start())
            if match:
                yield match
            at = max(match.end() if match else 0, near.start() + 1)


class _Places:
    """Positions of hints in a text; several kinds share one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lowered = _lower(text)
        self._known: dict[str | re.Pattern[str], list[int]] = {}

    def of(self, kind: SecretKind) -> list[int]:
        """The places near which a secret of a kind may stand, in order."""
        if kind.near is not None and not kind.hints:
            return self._matches(kind.near)
        places = [place for hint in kind.hints for place in self._hints(hint)]
        if kind.near is not None:
            places += self._matches(kind.near)
        return sorted(places) if len(kind.hints) > 1 else places

    def _hints(self, hint: str) -> list[int]:
        if hint not in self._known:
            self._known[hint] = list(_occurrences(self.lowered, hint))
        return self._known[hint]

    def _matches(self, near: re.Pattern[str]) -> list[int]:
        if near not in self._known:
            self._known[near] = [match.start() for match in near.finditer(self.text)]
        return self._known[near]


def _occurrences(text: str, hint: str) -> Iterator[int]:
    word = hint.lstrip()
    at = text.find(word)
    while at >= 0:
        if word is hint or not (at and text[at - 1].isascii() and text[at - 1].isalpha()):
            yield at
        at = text.find(word, at + len(word))


def _stretches(places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The stretches of a text around places, each once."""
    start = end = -1
    for place in places:
        if place - _BACK > end:
            if end >= 0:
                yield start, end
            start = max(place - _BACK, 0)
        end = place + _AHEAD
    if end >= 0:
        yield start, end


def _lower(text: str) -> str:
    """A text in lower case with every character at its place."""
    lowered_text = text.lower()
    return lowered_text if len(lowered_text) == len(text) else text.translate(_LOWER)


def without_public_blocks(text: str) -> str:
    """A text without certificates and public keys, which are no secrets and tell nothing; without private ones too."""
    if "-----BEGIN" not in text:
        return text
    kept_texts, at = list[str](), 0
    for start, end in _public_blocks(text):
        kept_texts.append(text[at:start])
        at = end
    return "".join([*kept_texts, text[at:]])


def _public_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Spans of certificates and public keys, which look like secrets and are public."""
    at = 0
    while begin := _PUBLIC_BLOCK.search(text, at):
        end = _BLOCK_END.search(text, begin.end())
        at = end.end() if end else len(text)
        yield begin.start(), at


def _replace_secrets(text: str, secrets: Iterable[_Secret]) -> str:
    kept_texts, at = list[str](), 0
    for secret in secrets:
        if secret.start >= at:
            kept_texts += (text[at : secret.start], _mark(text, secret))
        at = max(at, secret.end)
    kept_texts.append(text[at:])
    return "".join(kept_texts)


def _mark(text: str, secret: _Secret) -> str:
    bare = _FIELD.search(text, max(secret.start - 20, 0), secret.start)
    return f'"{REDACTED}"' if bare and text[secret.start].isalnum() else REDACTED


class _Plain:
    """A text in the characters that secrets are written in, with the way back to the original."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] = []
        self._pieces: list[tuple[int, int, bool]] = []
        if not text.isascii() or "\\" in text:
            self._read(text)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original of a place in the plain text."""
        if not self._starts:
            return start, end
        return self._original(start)[0], self._original(end - 1)[1]

    def _original(self, at: int) -> tuple[int, int]:
        piece = bisect_right(self._starts, at) - 1
        start, end, same = self._pieces[piece]
        place = start + at - self._starts[piece]
        return (place, place + 1) if same else (start, end)

    def _read(self, text: str) -> None:
        written_texts, at, size = list[str](), 0, 0
        for odd in _ODD.finditer(text):
            for piece, start, end, same in (
                (text[at : odd.start()], at, odd.start(), True),
                (_plain_of(odd[0]), odd.start(), odd.end(), False),
            ):
                if piece:
                    written_texts.append(piece)
                    self._starts.append(size)
                    self._pieces.append((start, end, same))
                    size += len(piece)
            at = odd.end()
        if at:
            self._starts.append(size)
            self._pieces.append((at, len(text), True))
            self.text = "".join([*written_texts, text[at:]])


def _plain_of(odd: str) -> str:
    mark = odd.lstrip("\\")
    if odd[0] == "\\" and len(mark) == 1:
        return _ESCAPED[mark]
    char = chr(int(mark[1:], 16)) if odd[0] == "\\" else odd
    # Halves of a character beyond the first plane are of tags and pictures: no key is written in those.
    return "" if unicodedata.category(char) in ("Cf", "Mn", "Cs") else unicodedata.normalize("NFKC", char)


def without_secrets(messages: Iterable[Numbered]) -> tuple[Numbered, ...]:
    """The messages with `[redacted]` in the place of each secret; what went through before is not read again."""
    return tuple(
        message if message.redacted else replace(message, message=with_texts(message.message, redact), redacted=True)
        for message in messages
    )

"""Identifiers in a text: paths, addresses, ids, versions, hashes, numbers; and the words that each is found by. Pure.

Invariants: linear in the text, whatever it holds; words are told apart by ASCII alone, so that Chinese text may stand
right beside an identifier; an identifier has one key, however its parts are joined: PLAT-1042 and plat1042, 0664 322 85
and 066432285 are one; no part of an identifier has its key, so that 1.2 is not 1.2.3, but for the first letters of a
hash, by which people name commits.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, TypeAlias

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import EAST_ASIAN
from indexer.language.tables import ANY

IdentifierKind: TypeAlias = Literal[
    "path", "url", "email", "uuid", "hash", "id", "version", "date", "time", "address", "variable", "number", "quote",
    "command", "code",
]  # fmt: skip

_URL = lazy_regex(
    r"(?<![A-Za-z0-9])(?:https?|ftps?|wss?|s3|gs|ssh|git|file|postgres(?:ql)?|redis|mysql|mongodb|amqp)://"
    rf"[^\s<>\"'`|\\{{}}()\[\]\u3000-\u303f{EAST_ASIAN}]{{1,2000}}"
)
# A run of characters that identifiers are made of, if it has one that plain words have not.
_RUN = lazy_regex(
    r"(?<![A-Za-z0-9_.+@~%/\\:#-])(?=(?:[A-Za-z:+~%-]|\.(?![A-Za-z0-9]))*+[0-9_/\\@#.])[A-Za-z0-9_.+@~%/\\:#-]++"
)
_MAX_RUN = 4_096  # what is longer is no identifier but a blob, base64 or the like
_EXTENSIONS = (
    "py|pyi|ipynb|js|jsx|mjs|cjs|ts|tsx|vue|svelte|html?|css|scss|less|json|jsonl|json5|ya?ml|toml|ini|cfg|conf|env|lock|"
    "md|mdx|rst|txt|log|csv|tsv|xml|sql|sqlite3?|db|sh|bash|zsh|ps1|bat|go|rs|rb|php|java|kt|kts|swift|scala|c|cc|cpp|cxx|h|hpp|"
    "cs|lua|r|jl|pl|ex|exs|erl|hs|clj|dart|proto|graphql|tf|gradle|makefile|dockerfile|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|"
    "svg|webp|mp[34]|wav|zip|tar|gz|tgz|bz2|xz|7z|whl|jar|so|dll|exe|bin|onnx|pt|safetensors|parquet|pem|crt|diff|"
    "patch|bak|tmp|out"
)
_DIRECTORIES = frozenset({
    "src", "tests", "test", "lib", "docs", "doc", "app", "apps", "packages", "bin", "config", "scripts", "data",
    "public", "build", "dist", "node_modules", "migrations", "api", "server", "client", "components", "internal",
    "cmd", "pkg", "assets", "static", "templates", "examples", "tools", "infra", "deploy", ".github",
    "etc", "var", "tmp", "home",
})  # fmt: skip
_FILE = lazy_regex(rf"(?i)(?:[\w.+@-]*[\w])?\.(?:{_EXTENSIONS})|\.?(?:env|gitignore|dockerignore)|makefile|dockerfile")
# Names of products, not of files.
_NO_FILES = frozenset(
    {"node.js", "next.js", "vue.js", "nuxt.js", "react.js", "three.js", "express.js", "d3.js", "asp.net"}
)
_HOST = lazy_regex(
    r"(?i)(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|cn|ai|app|edu|gov|de|uk|eu|jp|co|me|cloud|internal|local)"
)
_NO_IDS = ANY.grammar.numbered_words | frozenset("utf sha iso rfc covid python aes md ipv http h x l".split())
_SHAPES: tuple[tuple[IdentifierKind, re.Pattern[str]], ...] = (
    ("uuid", lazy_regex(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")),
    ("email", lazy_regex(r"[A-Za-z0-9_.+%-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")),
    ("address", lazy_regex(
        r"(?:(?:\d{1,3}\.){3}\d{1,3}|localhost|[A-Za-z][A-Za-z0-9.-]*):\d{2,5}"
        r"|(?:\d{1,3}\.){3}\d{1,3}(?:/\d\d?)?")),
    ("date", lazy_regex(r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?")),
    ("version", lazy_regex(
        r"v\d{1,6}(?:\.\d{1,6}){0,3}(?:[-.+][A-Za-z0-9.]{1,20})?"
        r"|\d{1,6}(?:\.\d{1,6}){2,3}(?:[-+]?[A-Za-z][A-Za-z0-9.]{0,20})?")),
    ("hash", lazy_regex(r"(?i)(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,128}|sha256:[0-9a-f]{8,64}")),
    ("variable", lazy_regex(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")),
    ("id", lazy_regex(
        r"#\d{1,12}|[A-Za-z]{1,12}[-_]\d{1,20}(?:-[A-Za-z0-9]{1,12})*"
        r"|[A-Z]{1,5}(?:-[A-Z]{1,5})?-?\d{3,20}(?:-\d{1,12})*")),
    ("id", lazy_regex(
        r"(?:[A-Za-z]{2,12}[-_])+(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{3,64}"
        r"|(?=[A-Za-z]{1,40}\d)(?=[^a-z]{0,40}[a-z])[A-Za-z0-9]{16,64}")),
)  # fmt: skip


SpanOfKind: TypeAlias = tuple[int, int, IdentifierKind]  # start, minus the end, so that the longest comes first, kind


def identifier_spans(text: str) -> Iterator[SpanOfKind]:
    """Spans of the identifiers of a text that are written in one run of characters; they may overlap."""
    if "://" in text:
        for match in _URL.finditer(text):
            yield match.start(), -match.start() - len(match[0].rstrip(".,;:!?*_~")), "url"
    for match in _RUN.finditer(text):
        run, at = match[0], match.start()
        if len(run) > _MAX_RUN:
            continue
        for kind, start, end in _shapes_of(run) if len(run) <= 200 else _split_shapes(run):
            yield at + start, -at - end, kind


_Shape = tuple[IdentifierKind, int, int]


@lru_cache(maxsize=8_192)
def _shapes_of(run: str) -> tuple[_Shape, ...]:
    """The identifiers of one run of characters; the same runs come again and again."""
    return tuple(_split_shapes(run))


def _split_shapes(run: str) -> Iterator[_Shape]:
    """A run as one identifier, or else each of its pieces."""
    start, end = _trim(run, 0, len(run))
    kind = _kind_of(run[start:end])
    if kind:
        yield kind, start, end
        return
    for piece in _PIECE.finditer(run, start, end):
        first, last = _trim(run, piece.start(), piece.end())
        kind = _kind_of(run[first:last])
        if kind:
            yield kind, first, last
            continue
        for word in _SLASHED.finditer(run, first, last):
            kind = _kind_of(word[0])
            if kind:
                yield kind, word.start(), word.end()


_PIECE = lazy_regex("#?[^:#]+")
_SLASHED = lazy_regex(r"[^/\\]+")


def _trim(run: str, start: int, end: int) -> tuple[int, int]:
    while end > start and run[end - 1] in ".:+~%-@#":
        end -= 1
    while start < end and (run[start] in "+%:@" or (run[start] in "-." and not _is_path_start(run, start))):
        start += 1
    return start, end


def _is_path_start(run: str, at: int) -> bool:
    """True if a dot belongs to a path: `./a`, `../a`, `.env`."""
    return (run[at] == "." and run[at + 1 : at + 2] not in ("", ".")) or run[at : at + 3] in ("../", "..\\")


def _kind_of(word: str) -> IdentifierKind | None:
    if len(word) < 2:
        return None
    if ("/" in word or "\\" in word) and len(word) <= 1_000:
        return "path" if _is_path(word) else "address" if _SHAPES[2][1].fullmatch(word) else None
    if len(word) > 200:
        return None
    for kind, shape in _SHAPES:
        match = shape.fullmatch(word)
        if match and not (kind == "id" and _is_no_id(word)):
            return kind
    if _FILE.fullmatch(word) and word.lower() not in _NO_FILES:
        return "path"
    return "url" if _HOST.fullmatch(word) else None


def _is_no_id(word: str) -> bool:
    return re.split("[-_]", word, maxsplit=1)[0].lower() in _NO_IDS


def _is_path(word: str) -> bool:
    """True if a word with slashes is a path; "and/or", "24/7", "T-318/T-319" and "./" are none."""
    if re.match(r"(?:[A-Za-z]:[/\\]|\\\\(?=[A-Za-z0-9])|~[/\\]|\.{1,2}[/\\]).*\w", word):
        return True
    if ":" in word or "#" in word:
        return False
    parts = [part for part in re.split(r"[/\\]+", word) if part]
    if not parts or not any(char.isalpha() for char in word):
        return False
    if word[0] == "/":
        return len(parts) > 1 or len(parts[0]) > 1
    return bool(_FILE.fullmatch(parts[-1])) or parts[0] in _DIRECTORIES or (len(parts) > 1 and word[-1] in "/\\")


# --- keys --------------------------------------------------------------------------------------------------------

# Hyphens that are no minus, and blanks that do not break a line.
_PLAIN = str.maketrans({"\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2212": "-", "\u00a0": " ", "\u202f": " "})
# Nothing else has a key.
_KEY_HINT = lazy_regex(r"[0-9/\\@]|\.[A-Za-z]")
_GROUPED_HINT = lazy_regex(r"[0-9][ ./)(,'’-]{1,3}[0-9]")
_SEPARATOR = lazy_regex(r"[/\\:#@]+")
_DATE_OR_TIME = lazy_regex(
    r"(?:19|20)\d\d[-/._]\d{1,2}[-/._]\d{1,2}(?:[T_-]\d{1,2}[:.]?\d{2}(?:[:.]?\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.](?:19|20)\d\d|(?:19|20)\d\d[-/](?:0?[1-9]|1[0-2])"
    r"|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:[AaPp][Mm])?(?:-\d{1,2}:\d{2})?"
)
_INNER_DOT = lazy_regex(r"(?<=[0-9])\.(?=[0-9])")
_VERSION_MARK = lazy_regex(r"v(?=[0-9]+\.[0-9])")
_NO_LETTER = lazy_regex(r"[^a-z0-9]+")
_HEX = lazy_regex(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}")
# Letters of a hash that people write for all of it; git shows seven of a commit, more where seven are not enough.
_HASH_CHARS = (12, 10, 8, 7)
_LONGEST_KEY = 40
_FEWEST_DIGITS = 5
# Digits in groups: telephone, account and card numbers, ISBN; and letters with digits in groups of four, as of an IBAN.
_GROUPED = lazy_regex(
    r"(?<![\w.,:/+-])(?:\+ ?)?\(?[0-9]{1,10}\)?(?:[ ./-]{1,2}\(?[0-9]{1,10}\)?){1,8}(?:[ -]X)?(?![\w@]|[:.,/-][0-9])"
)
_GROUPS_OF_FOUR = lazy_regex(
    r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
)
_THOUSANDS = lazy_regex(r"(?<![\w.,'’-])[0-9]{1,3}(?:([,.'’ ])[0-9]{3})(?:\1[0-9]{3}){0,4}(?![\w'’]|[.,' ][0-9])")
_GROUPED_DIGITS = range(7, 25)
_BLANK = lazy_regex("[ ()/]")
_DATED = lazy_regex(r"(?:19|20)\d\d ?[-/.] ?\d{1,2} ?[-/.] ?\d{1,2}|\d{1,2}[./-] ?\d{1,2}[./-] ?(?:19|20)\d\d")
# "10km", "2nd" and "3-day" measure; they name nothing.
_MEASURE = lazy_regex(r"[0-9]{1,4}[a-z]{1,4}|[0-9]{1,4}(?:[-_][A-Za-z]+)+")
_YEAR = lazy_regex(r"(?:19|20)[0-9]{2}")
_NAMED_DIGITS = 4


def identifier_keys(text: str) -> list[str]:
    """Words that the identifiers of a text are found by, beside its own words."""
    plain = _plain(text)
    if _KEY_HINT.search(plain) is None:
        return []
    return [*(key for run in _runs(plain) for key in _keys_of(run)), *(key for key, _, _ in _grouped_numbers(plain))]


def asked_identifiers(question: str) -> list[tuple[str, ...]]:
    """The identifiers that a question names, each by the words that a passage with it has one of."""
    plain = _plain(question)
    if _KEY_HINT.search(plain) is None:
        return []
    values = dict[tuple[str, ...], None]()
    for key, start, end in _grouped_numbers(plain):
        values[(key,)] = None
        plain = plain[:start] + " " * (end - start) + plain[end:]
    for run in _runs(plain):
        values.update(dict.fromkeys(_asked_in(run)))
    return list(values)


def _runs(text: str) -> Iterator[str]:
    """Runs of characters that may be identifiers. To look at single words takes a tenth of looking at the whole."""
    for word in text.split():
        if not word.isalpha() and _KEY_HINT.search(word):
            yield from (match[0][:_MAX_RUN] for match in _RUN.finditer(word))


def _plain(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_PLAIN)


def _grouped_numbers(text: str) -> Iterator[tuple[str, int, int]]:
    """Keys and spans of the numbers whose digits stand in groups."""
    if _GROUPED_HINT.search(text) is None:
        return
    end = 0
    spans = (match.span() for pattern in (_GROUPS_OF_FOUR, _GROUPED, _THOUSANDS) for match in pattern.finditer(text))
    for start, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        word = text[start:stop].strip()
        key = _NO_LETTER.sub("", word.lower())
        if start < end or len(key) == len(word) or _DATED.match(word) or len(key) > _LONGEST_KEY:
            continue
        digits = sum(map(str.isdigit, key))
        if _THOUSANDS.fullmatch(word) or (digits in _GROUPED_DIGITS and _BLANK.search(word)):
            yield key, start, stop
            end = stop


@lru_cache(maxsize=8_192)
def _keys_of(run: str) -> tuple[str, ...]:
    """Keys of the identifiers in a run of characters."""
    fields = dict[str, None]()
    for part in _parts_of(run):
        lowered_text = part.lower()
        if _HEX.fullmatch(lowered_text):
            fields.update(dict.fromkeys(lowered_text[:chars] for chars in _HASH_CHARS if chars < len(lowered_text)))
        elif part[0] == "#":
            fields[f"nr{part[1:]}"] = None
        elif not part.isalnum() and not _MEASURE.fullmatch(part):
            fields[_identifier_key(part)] = None
    return tuple(fields)


@lru_cache(maxsize=1_024)
def _asked_in(run: str) -> tuple[tuple[str, ...], ...]:
    """The identifiers that a run of characters of a question names."""
    parts = [part for at, part in enumerate(_parts_of(run)) if not at or not part.isalnum()]
    return tuple(asked_texts for part in parts if (asked_texts := _asked_as(part)))


def _asked_as(part: str) -> tuple[str, ...]:
    lowered_text = part.lower()
    if _HEX.fullmatch(lowered_text):
        return (lowered_text, *(lowered_text[:chars] for chars in _HASH_CHARS if chars < len(lowered_text)))
    if part[0] == "#":
        return (f"nr{part[1:]}",)
    if _MEASURE.fullmatch(part):
        return ()
    if not part.isalnum():
        return (_identifier_key(part),)
    names = len(part) >= _NAMED_DIGITS and not _YEAR.fullmatch(part) if part.isdigit() else len(part) > 1
    return (lowered_text,) if names else ()


def _parts_of(run: str) -> Iterator[str]:
    """Identifiers in a run of characters: all of it, and those between slashes and the like."""
    start, end = _trim(run, 0, len(run))
    word = run[start:end]
    if _DATE_OR_TIME.fullmatch(word):
        return
    if len(word) <= 1_000 and _is_identifier(word):
        yield word
    for match in _NUMBERED.finditer(word):
        yield match[0]
    for part in dict.fromkeys(_SEPARATOR.split(word)):
        part = part.strip("._+~%-")
        if part != word and part and not _DATE_OR_TIME.fullmatch(part) and _is_identifier(part):
            yield part


_NUMBERED = lazy_regex(r"(?<![\w#])#[0-9]{1,12}(?![\w.-])")


def _is_identifier(word: str) -> bool:
    digits = sum(map(str.isdigit, word))
    if not digits:
        return len(word) > 1 and not word.isalnum() and _kind_of(word) in ("path", "url", "email")
    if word[0] == "#" or digits == len(word):
        return "#" not in word
    if any(map(str.isalpha, word)):
        return True
    return "." in word or digits >= _FEWEST_DIGITS


def _identifier_key(word: str) -> str:
    """Key of an identifier: its letters and digits, with a sign between the numbers of a version."""
    key = _NO_LETTER.sub("", _INNER_DOT.sub("v", _VERSION_MARK.sub("", word.lower())))
    return key if len(key) <= _LONGEST_KEY else f"k{blake2b(key.encode(), digest_size=16).hexdigest()}"

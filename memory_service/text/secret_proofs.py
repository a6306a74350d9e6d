"""The proofs of secrets: whether what looks like one is one, by check digits, by chance, by the words around it.

Invariants: pure; linear in what was found; nothing is asked of the world.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
from collections.abc import Iterator
from itertools import pairwise

from indexer.common import lazy_regex
from indexer.language import ANY

REDACTED = "[redacted]"
VALUES = ("secret", "other", "third", "q1", "q2", "q3", "q4", "q5", "bare")

_MOST_DECODED = 4_096
_WORDS = ANY.secrets
_NO_VALUES = _WORDS.no_values
_NO_VALUE_WITHIN = lazy_regex(f"(?:{_WORDS.no_values_within})")
_FILE = r"\w+\.(?:py|md|txt|json|ya?ml|toml|env)\W*\Z"
# Two words with a dot between them are a place in code (`settings.password`), but a password if one has a digit
# (`hunter22.A`); a file or a field for secrets (`db1.password`) is still a place.
_DOTTED_PASSWORD = rf"(?!{_FILE})(?=\D*\d)\w+\.(?!\w*(?:pass|pwd|secret|token|key))\w+[^\w(]*\Z"
_PLACEHOLDER = re.compile(
    r"<[^<>]*>?|\$\{?[A-Za-z_{(]|%[A-Za-z_(]|\{[\w{ .$]|\[\w[\w -]*\]?|\*{2,}|[xX•·.…_-]{3,}\W*\Z|"
    rf"{_WORDS.placeholders}|(?!{_DOTTED_PASSWORD})(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*(?:\(|\W*\Z)|[A-Za-z_.]+[(\[{{]|\W+\Z"
    r"|/|~/|\./|https?:",
    re.IGNORECASE,
)
_AGAIN = lazy_regex(rf"(?:{_WORDS.labels})s?[\"'`*]{{0,3}}[:=：]", re.IGNORECASE)
_ENDED = re.compile(rf"(?:{_WORDS.word_ends})\Z")
_MEASURE = lazy_regex(rf"[ -]{{0,2}}(?:{_WORDS.measures}|[kmg]b|%)", re.IGNORECASE)
_MEASURED = re.compile(rf"\d[\d.,-]*(?:[kKmM]|h|d|s|ms|min|{_WORDS.measured}|x)?\Z")
_NAMED_THINGS = re.compile(
    r"(?:sha-?\d+|md5|oauth-?\d?|argon2\w*|pbkdf2|base64|utf-?8|[bs]crypt\d*|aes-?\d*|v\d[\d.]*|gpt-?\d.*|p?256|rs256"
    rf"|hs256|es256|ed25519|rsa-?\d*|1password|keepass\w*|web3|ipv[46]|tls1.*|\d{{4}}-\d\d-\d\d.*)\W*\Z|{_FILE}",
    re.IGNORECASE,
)
_IDENTIFIED = lazy_regex(
    rf"(?:\b(?:{_WORDS.identified})"
    rf"(?: (?:{_WORDS.id_words}))?[\"'.]?\s{{0,2}}(?:[:=#]|{_WORDS.plain_gives})?\s{{0,2}}[\"'#]?"
    rf"|base64,|sha\d{{3}}-|ssh-[a-z0-9-]{{3,20}} |{_WORDS.identified_within})(?:{_WORDS.id_signs}|[:： ]){{0,3}}\Z",
    re.IGNORECASE,
)
_PUBLIC = re.compile(r"AAAA[A-Z]3NzaC1|AAAAE2VjZHNh|sha\d{3}-|MII[A-Za-z]")
_COUNTED = re.compile(r"\d[\d,.]*[kKmM]? \Z")
_PLACES = frozenset(("KEY", "TOKEN", "SECRET", "PASSWORD", "VALUE", "PASS"))
_NO_KEY = re.compile(rf"(?:{_WORDS.no_keys})[ _-]\Z", re.IGNORECASE)
_NO_SEED = ANY.secrets.no_seeds
_IBAN_LENGTHS = {
    country: int(length)
    for country, length in (
        pair.split(":")
        for pair in (
            "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BR:29 CH:21 CR:22 CY:28 CZ:24 DE:22 DK:18 DO:28"
            " EE:20 EG:29 ES:24 FI:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HR:21 HU:28 IE:22 IL:23 IS:26"
            " IT:27 JO:30 KW:30 KZ:20 LB:28 LI:21 LT:20 LU:20 LV:21 MC:27 MD:24 ME:22 MK:19 MR:27 MT:31 MU:30"
            " NL:18 NO:15 PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 SA:24 SE:24 SI:19 SK:24 SM:27 TN:24 TR:26"
            " UA:29 VA:22 XK:20"
        ).split()
    )
}
_CARDS = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|(?:6011|65\d\d|64[4-9]\d)\d{12}|62\d{14,17}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}"
)

_Match = re.Match[str]


def place_of(match: _Match) -> tuple[int, int]:
    """Span of the secret itself: a group of the pattern, or the whole match."""
    for name in VALUES:
        if name in match.re.groupindex and match[name] is not None:
            # What ends the sentence does not belong to it.
            return match.start(name), match.start(name) + len(match[name].rstrip("."))
    return match.span()


def _value(match: _Match) -> str:
    start, end = place_of(match)
    return match.string[start:end]


def _before(match: _Match, chars: int = 40) -> str:
    start = place_of(match)[0]
    return match.string[max(start - chars, 0) : start]


def _after(match: _Match) -> str:
    end = place_of(match)[1]
    return match.string[end : end + 16]


def _before_name(match: _Match) -> str:
    return match.string[max(match.start() - 16, 0) : match.start()]


def _name(match: _Match) -> str:
    return str(match["name"]).lower()


def is_no_placeholder(match: _Match) -> bool:
    """True if a value is more than what stands for one, such as `<password>` or `${TOKEN}`."""
    value = _value(match)
    return REDACTED not in value and not _PLACEHOLDER.match(value) and value.strip("\"'`.,;)") not in _PLACES


def is_given(match: _Match) -> bool:
    """True if what stands behind "password:" is given there, and not spoken of."""
    value = _value(match)
    word = value.strip("\"'`.,;:!?()*_").lower()
    if not is_no_placeholder(match) or _AGAIN.match(value) or word in _NO_VALUES or len(word) < 2:
        return False
    # Prose without blanks is long and begins as such: a foreign character far behind makes no password a sentence.
    if not value.isascii() and (_NO_VALUE_WITHIN.match(value) or (len(value) > 40 and not value[:8].isascii())):
        return False
    if _MEASURE.match(_after(match)) and _MEASURED.match(word):
        return False
    return "\n" not in match["gap"] or _looks_coded(value)


def is_code_like(match: _Match) -> bool:
    """The same behind "token:": what goes on as a sentence, or counts, is none."""
    value = _value(match)
    if not is_given(match):
        return False
    if "token" in _name(match) and (re.match(r"\d{1,7}(?!\w)", value) or _COUNTED.search(_before_name(match))):
        return False
    if match["bare"] is None or not value.strip(".!?").isalpha():
        return True
    # "Secret: knead the dough" is a sentence, and "The secret of bread: patience"; a word by itself was agreed on.
    if match.start("gap") - match.end("name") > 3:
        return False
    return value.isascii() and not value.istitle() and not re.match(r"[.!?]?[ \t]{1,3}\w", _after(match))


def is_coded(match: _Match) -> bool:
    """True if what stands behind "is" is quoted, or has a digit or a sign as no word has it."""
    value = _value(match)
    if not is_no_placeholder(match) or _AGAIN.match(value) or _NAMED_THINGS.match(value):
        return False
    if match["bare"] is None:
        return value.lower() not in _NO_VALUES and value.count(" ") <= 6 and (value.isascii() or len(value) <= 12)
    if _MEASURED.match(value.rstrip(".")) and (
        _MEASURE.match(_after(match)) or "token" in _name(match) or len(value.rstrip(".")) < 3
    ):
        return False
    return _looks_coded(value.rstrip(".!?")) and len(value) >= (4 if value.isdecimal() else 5)


def is_said_plainly(match: _Match) -> bool:
    """True if "my password is tulips." names a word: one that does not say how passwords are."""
    word = match["secret"].lower()
    return word not in _NO_VALUES and not _ENDED.search(word)


def is_unsigned_password(match: _Match) -> bool:
    """True if "password hunter2" gives one: letters with digits or signs."""
    value = match["secret"].rstrip(".!?)")
    if not is_no_placeholder(match) or _NAMED_THINGS.match(value) or (_MEASURED.match(value) and value.isascii()):
        return value.isdecimal() and len(value) >= 6 and not match[0][0].isascii()
    is_coded = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return is_coded and len(value) >= 5 and not _AGAIN.search(value)


def is_prose_free(match: _Match) -> bool:
    """True if what stands behind "passphrase:" is one: words alone that begin with none of those that speak of it."""
    words = match["secret"].split()
    if not words or REDACTED in match["secret"] or _PLACEHOLDER.match(words[0]):
        return False
    if not words[0].isascii():
        return not _NO_VALUE_WITHIN.match(words[0]) and len(words[0]) <= 24
    return words[0].strip("\"'.,!").lower() not in _NO_VALUES and not (len(words) == 1 and _ENDED.search(words[0]))


def is_unsigned_key(match: _Match) -> bool:
    """True if "the api token a3f5…" gives one: digits and letters as no word mixes them."""
    value = match["secret"]
    if _NO_KEY.search(match["before"] or "") or _PLACEHOLDER.match(value):
        return False
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and _changes(value) >= 0.2


def is_number_code(match: _Match) -> bool:
    """True if a value is what a keypad takes."""
    value = _value(match).strip("\"'`.,;!?)")
    digits = sum(map(str.isdigit, value))
    if not is_no_placeholder(match) or digits < 3 or len(value) > 16 or _NAMED_THINGS.match(value):
        return False
    return not (_MEASURE.match(_after(match)) and _MEASURED.match(value))


def is_bearer(match: _Match) -> bool:
    """True if a word behind "bearer" is a token: it has a digit, or stands in a header."""
    value = match["secret"]
    return bool(match["before"]) or any(map(str.isdigit, value))


def is_basic(match: _Match) -> bool:
    """True if a word behind "basic" is a name and a password in base64."""
    decoded_text = _decode_base64(match["secret"])
    return ":" in decoded_text and decoded_text.isprintable()


def writing_of(match: _Match) -> str:
    """The writing that a word is base64 of; empty if it is none."""
    word = match["secret"]
    if word.islower() or word.isupper() or word.isdecimal():
        return ""
    decoded_text = _decode_base64(word)
    return decoded_text if len(decoded_text) >= 8 and _is_writing(decoded_text) else ""


def _is_writing(text: str) -> bool:
    return all(char.isprintable() or char in "\r\n\t" for char in text)


def _decode_base64(word: str) -> str:
    """The text that a word is base64 of; empty if there is none."""
    plain = word[:_MOST_DECODED].rstrip("=").replace("-", "+").replace("_", "/")
    plain = plain[: len(plain) - 1] if len(plain) % 4 == 1 else plain
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4)).decode()
    except (binascii.Error, ValueError):
        return ""


def is_random(match: _Match) -> bool:
    """True if a long word looks drawn at random: cases and digits mixed. Hashes are ids, and what says so is one."""
    word = match[0].strip("=-_")
    if len(set(word)) < 14 or sum(map(str.isdigit, word)) < 2 or _PUBLIC.match(word):
        return False
    if not (any(map(str.islower, word)) and any(map(str.isupper, word))):
        return False
    return _changes(word) >= 0.38 and not _IDENTIFIED.search(_before(match))


def is_aws_secret(match: _Match) -> bool:
    """True if forty characters are drawn at random, and no path."""
    word = match[0]
    if len(set(word)) < 18 or not any(map(str.isdigit, word)) or _PUBLIC.match(word):
        return False
    is_mixed = any(map(str.islower, word)) and any(map(str.isupper, word))
    return is_mixed and _changes(re.sub("[/+]", "", word)) >= 0.3 and not _IDENTIFIED.search(_before(match))


def _changes(word: str) -> float:
    """Rate of changes between character classes within a word, from 0 to 1."""
    classes = [0 if char.isdigit() else 1 if char.islower() else 2 for char in word]
    return sum(number != other_number for number, other_number in pairwise(classes)) / max(len(word) - 1, 1)


def _looks_coded(value: str) -> bool:
    return any(char.isdigit() or char in "!@#$%^&*_" for char in value)


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


def is_card(match: _Match) -> bool:
    """True if a number is that of a card: an issuer's first digits, the right last one, groups as on a card."""
    text = match["secret"]
    groups = re.split("[ -]", text)
    if len(groups) > 1 and not all(2 <= len(group) <= 7 for group in groups):
        return False
    number = _digits(text)
    return bool(_CARDS.fullmatch(number)) and _luhn(number) and not _IDENTIFIED.search(_before(match))


def _luhn(number: str) -> bool:
    counts = (sum(divmod(2 * int(digit), 10)) for digit in number[-2::-2])
    return (sum(map(int, number[-1::-2])) + sum(counts)) % 10 == 0


def is_bank_account(match: _Match) -> bool:
    """True if a number that is called an account's has the digits of one."""
    return 8 <= len(_digits(match["secret"])) <= 24


def is_iban(match: _Match) -> bool:
    """True if a number has the length of its country's, and the remainder that all have."""
    text = re.sub("[ -]", "", match[0])
    number = text[: _IBAN_LENGTHS.get(text[:2], 0)]
    if not number or len(text) < _IBAN_LENGTHS[text[:2]]:
        return False
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 == 1


def is_ssn(match: _Match) -> bool:
    """True if a number is one that is given out. Source: SSA, POMS RM 10201.035."""
    area, group, serial = match[0].split("-")
    valid = area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"
    return valid and not _IDENTIFIED.search(_before(match))


def is_chinese_id(match: _Match) -> bool:
    """True if a number has a day of birth and the check digit of its first seventeen."""
    number = match[0].upper()
    try:
        dt.date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    return "10X98765432"[sum(int(digit) * 2 ** (17 - at) for at, digit in enumerate(number[:17])) % 11] == number[17]


def is_seed(match: _Match) -> bool:
    """True if words in a row are those of a wallet: no sentence has so many without any of its small ones."""
    return _NO_SEED.isdisjoint(_words(match[0][-(place_of(match)[1] - place_of(match)[0]) :]))


def _words(text: str) -> Iterator[str]:
    return (word[0].lower() for word in re.finditer(r"[A-Za-z]+", text))

"""Owns knowing a secret when it stands in a text: keys, tokens, passwords. Pure.

Invariants: linear in the length of the text; when in doubt it is a secret, for a fact that is lost costs less.
"""

from __future__ import annotations

import re

_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]{0,40}(?:PRIVATE KEY|CERTIFICATE)[A-Z ]{0,10}-----")
_KEY_BLOCK_END = re.compile(r"-----END [A-Z ]{0,60}-----")
# Sources: the prefixes that the providers' own documentation and secret scanners list.
_TOKEN = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9_-]{2,20}[-_])?[A-Za-z0-9_-]{8,}|\bgh[pousr]_[A-Za-z0-9]{10,}|\bgithub_pat_\w{10,}"
    r"|\bglpat-[\w-]{8,}|\b(?:AKIA|ASIA)[A-Z0-9]{8,}|\bAIza[\w-]{16,}|\bxox[abeoprs]-[\w-]{8,}|\bya29\.[\w-]{8,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{4,}|\bnpm_[A-Za-z0-9]{16,}|\bpypi-[\w-]{16,}|\bhf_[A-Za-z0-9]{12,}"
    r"|\bwhsec_\w{8,}|\bdop_v1_\w{8,}|\bSG\.[\w-]{8,}|://[^\s/:@]{1,64}:[^\s/@]{1,128}@"
)
_SECRET_WORD = (
    r"(?:pass(?:word|wd|phrase|code)|passwort|(?<![a-z])pwd|(?:api|access|secret|private|auth|encryption|signing"
    r"|license)[ _-]?keys?|(?:access|auth|api|bearer|refresh|session|secret|bot|id)[ _-]?tokens?|tokens?|secrets?"
    r"|credentials?|(?<![a-z])pin(?: code)?(?![a-z])|(?<![a-z])otp(?![a-z])|2fa code|cvv|client[ _-]secret"
    r"|密码|密碼|口令|密钥|密鑰|令牌|验证码|驗證碼)"
)
_FOR = r"(?:\s{1,3}(?:for|of|to|on)\s{1,3}[^\n:=：]{1,60}?)?"
# Behind a sign whatever stands is the secret, but for "max_tokens: 4000".
_ASSIGNED = re.compile(
    rf"{_SECRET_WORD}(?:(?<!tokens)|(?=\W{{1,8}}+(?!\d{{1,7}}\b)))[\"'`]?{_FOR}\s{{0,3}}"
    r"(?:[=：:]{1,2}|->|=>)\s{0,3}[\"'`]?[^\s\"'`,;，；]{3,}",
    re.IGNORECASE,
)
# "The password is rotated every 90 days" says none: behind "is" it needs the look of one.
_STATED = re.compile(
    rf"{_SECRET_WORD}{_FOR}\s{{0,3}}"
    r"(?:is|was|are|now|是|为|為|改成了?|换成了?|设为|設為)(?:\s{1,3}(?:now|still|set to|called))?\s{0,3}"
    r"(?:[\"'`“「][^\s\"'`”」]{3,}|(?=[^\s，。,]{0,64}[0-9!@#$%^&*])[A-Za-z0-9!@#$%^&*._+-]{3,})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(?:Bearer|Basic)\s{1,3}[A-Za-z0-9._~+/=-]{8,}")
_ANNOUNCED = re.compile(
    rf"{_SECRET_WORD}[^\n.。]{{0,40}}(?:[:：]|below|following|here it is|如下|是)\s*[.。]?\s*$", re.IGNORECASE
)
_BLOB = re.compile(r"(?<![\w/.+-])[A-Za-z0-9_+=-]{28,}")
_PATTERNS = (_TOKEN, _ASSIGNED, _STATED, _BEARER, _KEY_BLOCK)
# Each pattern needs one of these; most texts have none.
_HINTS = tuple(
    "pass pwd key token secret credential pin otp 2fa cvv bearer basic ----- :// sk- sk_ pk- pk_ rk- rk_ "
    "ghp_ gho_ ghu_ ghs_ ghr_ github_pat glpat akia asia aiza xox ya29 eyj npm_ pypi- hf_ whsec dop_v1 sg. "
    "密码 密碼 口令 密钥 密鑰 令牌 验证码 驗證碼".split()
)


def may_hold_secret(text: str) -> bool:
    """Whether it is worth looking for secrets in a text: quick, and never False where there is one."""
    lowered = text.lower()
    return any(hint in lowered for hint in _HINTS) or _BLOB.search(text) is not None


def has_secret(text: str) -> bool:
    """Whether a secret stands in a text."""
    found = any(pattern.search(text) is not None for pattern in _PATTERNS)
    return found or any(map(_is_random, _BLOB.findall(text)))


def announces_secret(text: str) -> bool:
    """Whether the next words of who says this are a secret: "The password is:"."""
    return _ANNOUNCED.search(text[-160:]) is not None


def without_key_blocks(text: str) -> str:
    """A text without private keys and certificates; what is never closed goes to the end."""
    kept, at = [], 0
    while match := _KEY_BLOCK.search(text, at):
        kept.append(text[at : match.start()])
        end = _KEY_BLOCK_END.search(text, match.end())
        at = end.end() if end else len(text)
    kept.append(text[at:])
    return "".join(kept)


def _is_random(word: str) -> bool:
    """Whether a long word looks drawn at random: upper case, lower case and digits mixed. Hashes are ids."""
    return (
        any(char.isdigit() for char in word)
        and any(char.islower() for char in word)
        and any(char.isupper() for char in word)
    )

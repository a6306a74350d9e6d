"""Owns what a secret looks like: knowing one, and taking it out of a text. Pure.

Invariants: linear in the length of the text. `redacted` takes out what is surely a secret and leaves the rest byte
for byte; doing it twice changes nothing more. `has_secret` also knows what only may be one, since a fact that is
lost costs less: whatever `redacted` takes out, it finds.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"

# Sources: the prefixes that providers document for their keys, and the lists of secret scanners.
_KNOWN = re.compile(
    r"""(?<![A-Za-z0-9])(?:
      sk-[A-Za-z0-9_-]{12,}+
    | [prs]k_(?:live|test)_[A-Za-z0-9]{8,}+
    | gh[opusr]_[A-Za-z0-9]{16,}+
    | github_pat_[A-Za-z0-9_]{16,}+
    | glpat-[A-Za-z0-9_-]{12,}+
    | xox[abeoprs]-[A-Za-z0-9-]{8,}+
    | (?:AKIA|ASIA)[0-9A-Z]{12,}+
    | AIza[0-9A-Za-z_-]{30,}+
    | (?:hf|npm)_[A-Za-z0-9]{16,}+
    | SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+
    | eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+)?
    )""",
    re.VERBOSE,
)
# One of these has to be there before the pattern is tried: most texts hold none.
_KNOWN_HINTS = (
    "sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA",
    "AIza", "hf_", "npm_", "SG.", "eyJ",
)  # fmt: skip
# The beginning of a key is enough for doubt.
_LIKE_KNOWN = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9_-]{2,20}[-_])?[A-Za-z0-9_-]{8,}|\bgh[pousr]_[A-Za-z0-9]{10,}|\bgithub_pat_\w{10,}"
    r"|\bglpat-[\w-]{8,}|\b(?:AKIA|ASIA)[A-Z0-9]{8,}|\bAIza[\w-]{16,}|\bxox[abeoprs]-[\w-]{8,}|\bya29\.[\w-]{8,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{4,}|\bnpm_[A-Za-z0-9]{16,}|\bpypi-[\w-]{16,}|\bhf_[A-Za-z0-9]{12,}"
    r"|\bwhsec_\w{8,}|\bdop_v1_\w{8,}|\bSG\.[\w-]{8,}|://[^\s/:@]{0,64}:[^\s/@]{1,128}@|;base64,"
)
_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|CERTIFICATE)[A-Z ]{0,10}-----")
_PRIVATE = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_HEADER = re.compile(r"(?i)(?<![a-z])((?:bearer|basic) {1,4})([A-Za-z0-9._~+/=-]{12,}+)")
_LIKE_HEADER = re.compile(r"\b(?:Bearer|Basic)\s{1,3}[A-Za-z0-9._~+/=-]{8,}")
_USER_IN_URL = re.compile(r"(://[^\s/:@]{0,100}:)([^\s/@]{1,200})(?=@)")

_NAMES = ("pass", "pwd", "secret", "token", "key", "密码", "口令", "密钥", "令牌")
_NAME_HINT = re.compile(
    r"(?:pass[a-z]{0,6}|pwd|secret|token|key|密码|口令|密钥|令牌)[\"']?[ \t]{0,4}(?:[=:：是为]|is|was)"
)
_NAME = (
    r"(?:pass(?:word|wd|phrase|code)|passwd|pwd|api[ _-]?key|(?:access|secret|private|auth|client)[ _-]?(?:key|token"
    r"|secret)|secret|token|密码|口令|密钥|令牌)"
)
# A value behind a sign counts whatever it is; behind "is" only when no plain word could be meant.
_ASSIGNED = re.compile(
    rf"""(?ix)({_NAME}["']?[ \t]{{0,4}}(?:=>|[:=：])[ \t]{{0,4}})
    ("[^"\n]{{3,}}+" | '[^'\n]{{3,}}+' | (?!\[redacted\])[^\s"',;，。；]{{4,}}+)"""
)
_SPOKEN = re.compile(
    rf"""(?ix)({_NAME}[ \t]{{0,4}}(?:(?:is|was)[ \t]{{1,4}}|是|为)[ \t]{{0,4}}["'“「]?)
    ((?=[^\s"',，。；”」]{{0,60}}[0-9!@\#$%^&*_])[^\s"',，。；”」]{{5,}}+)"""
)
_LIKE_NAME = (
    r"(?:pass(?:word|wd|phrase|code)|passwort|(?<![a-z])pwd|(?:api|access|secret|private|auth|encryption|signing"
    r"|license)[ _-]?keys?|(?:access|auth|api|bearer|refresh|session|secret|bot|id)[ _-]?tokens?|tokens?|secrets?"
    r"|credentials?|(?<![a-z])pin(?: code)?(?![a-z])|(?<![a-z])otp(?![a-z])|2fa code|cvv|client[ _-]secret"
    r"|密码|密碼|口令|密钥|密鑰|私钥|私鑰|令牌|验证码|驗證碼)"
)
_FOR = r"(?:\s{1,3}(?:for|of|to|on)\s{1,3}[^\n:=：]{1,60}?)?"
# Behind a sign whatever stands is the secret, but for "max_tokens: 4000".
_LIKE_ASSIGNED = re.compile(
    rf"{_LIKE_NAME}(?:(?<!tokens)|(?=\W{{1,8}}+(?!\d{{1,7}}\b)))[\"'`]?{_FOR}\s{{0,3}}"
    r"(?:[=：:]{1,2}|->|=>)\s{0,3}[\"'`]?[^\s\"'`,;，；]{3,}",
    re.IGNORECASE,
)
# "The password is rotated every 90 days" says none: behind "is" it needs the look of one.
_LIKE_SPOKEN = re.compile(
    rf"{_LIKE_NAME}{_FOR}\s{{0,3}}"
    r"(?:is|was|are|now|是|为|為|改成了?|换成了?|设为|設為)(?:\s{1,3}(?:now|still|set to|called))?\s{0,3}"
    r"(?:[\"'`“「][^\s\"'`”」]{3,}|(?=[^\s，。,]{0,64}[0-9!@#$%^&*])[A-Za-z0-9!@#$%^&*._+-]{3,})",
    re.IGNORECASE,
)
_ANNOUNCED = re.compile(
    rf"{_LIKE_NAME}[^\n.。]{{0,40}}(?:[:：]|below|following|here it is|如下|是)\s*[.。]?\s*$", re.IGNORECASE
)
_BLOB = re.compile(r"(?<![\w/.+-])[A-Za-z0-9_+=-]{28,}")
# What is redacted already is secret no more.
_LEFT = re.compile(r"[\"'“「]?\[redacted\][\"'”」]?")
_LIKE = (_LIKE_KNOWN, _LIKE_ASSIGNED, _LIKE_SPOKEN, _LIKE_HEADER, _BLOCK)
# Each of these patterns needs a hint; most texts have none.
_HINTS = tuple(
    "pass pwd key token secret credential pin otp 2fa cvv bearer basic ----- ;base64 sk- sk_ pk- pk_ rk- rk_ "
    "ghp_ gho_ ghu_ ghs_ ghr_ github_pat glpat akia asia aiza xox ya29 eyj npm_ pypi- hf_ whsec dop_v1 sg. "
    "密码 密碼 口令 密钥 密鑰 私钥 私鑰 令牌 验证码 驗證碼".split()
)


def redacted(text: str) -> str:
    """A text with `[redacted]` in the place of each key, token, password and private key.

    What names the secret stays, such as `password:` or the user of a URL.
    """
    if any(hint in text for hint in _KNOWN_HINTS):
        text = _KNOWN.sub(REDACTED, text)
    if "-----BEGIN" in text:
        text = _without_blocks(text, _PRIVATE, REDACTED)
    if "://" in text and "@" in text:
        text = _USER_IN_URL.sub(_keep_name, text)
    lowered = text.lower()
    if "bearer " in lowered or "basic " in lowered:
        text = _HEADER.sub(_keep_name, text)
    if any(name in lowered for name in _NAMES) and _NAME_HINT.search(lowered):
        text = _SPOKEN.sub(_keep_name, _ASSIGNED.sub(_keep_name, text))
    return text


def may_hold_secret(text: str) -> bool:
    """Whether it is worth looking for secrets in a text: quick, and never False where there is one."""
    lowered = text.lower()
    for hint in _HINTS:
        if hint in lowered:
            return True
    if "://" in text and "@" in text:
        return True
    return _BLOB.search(text) is not None


def has_secret(text: str) -> bool:
    """Whether a text holds what is, or may be, a secret."""
    if not may_hold_secret(text):
        return False
    if REDACTED in text:
        text = _LEFT.sub("", text)
    return any(pattern.search(text) for pattern in _LIKE) or any(map(_is_random, _BLOB.findall(text)))


def announces_secret(text: str) -> bool:
    """Whether the next words of who says this are a secret: "The password is:"."""
    return _ANNOUNCED.search(text[-160:]) is not None


def without_key_blocks(text: str) -> str:
    """A text without private keys and certificates; what is never closed goes to the end."""
    return _without_blocks(text, _BLOCK, "") if "-----BEGIN" in text else text


def _without_blocks(text: str, begin: re.Pattern[str], instead: str) -> str:
    kept, at = list[str](), 0
    while match := begin.search(text, at):
        kept += (text[at : match.start()], instead)
        end = _BLOCK_END.search(text, match.end())
        at = end.end() if end else len(text)
    kept.append(text[at:])
    return "".join(kept)


def _keep_name(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    # How many tokens a model may use is no secret: `token: 4096`.
    if value.isdecimal() and "token" in name.lower():
        return found[0]
    quote = value[0] if value[0] in "\"'" and value[-1] == value[0] else ""
    return f"{name}{quote}{REDACTED}{quote}"


def _is_random(word: str) -> bool:
    """Whether a long word looks drawn at random: upper case, lower case and digits mixed. Hashes are ids."""
    return (
        any(char.isdigit() for char in word)
        and any(char.islower() for char in word)
        and any(char.isupper() for char in word)
    )

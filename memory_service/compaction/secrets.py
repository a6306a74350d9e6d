"""Owns what a secret looks like, and takes it out of a text.

Invariants: pure; linear; what is left of a text stays byte for byte; a text without secrets is returned as it is;
doing it twice changes nothing more.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"

# One of these has to be there before the pattern is tried: most texts hold none.
_KNOWN_HINTS = (
    "sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA",
    "AIza", "hf_", "npm_", "SG.", "eyJ",
)  # fmt: skip
_NAMES = ("pass", "pwd", "secret", "token", "key", "密码", "口令", "密钥", "令牌")
_NAME_HINT = re.compile(
    r"(?:pass[a-z]{0,6}|pwd|secret|token|key|密码|口令|密钥|令牌)[\"']?[ \t]{0,4}(?:[=:：是为]|is|was)"
)

# Source: the prefixes that providers document for their keys, and GitHub's list of secret scanning patterns.
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
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)", re.S)
_HEADER = re.compile(r"(?i)(?<![a-z])((?:bearer|basic) {1,4})([A-Za-z0-9._~+/=-]{12,}+)")
_USER_IN_URL = re.compile(r"(://[^\s/:@]{0,100}:)([^\s/@]{1,200})(?=@)")
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


def redacted(text: str) -> str:
    """A text with `[redacted]` in the place of each key, token, password and private key.

    What names the secret stays, such as `password:` or the user of a URL.
    """
    if any(hint in text for hint in _KNOWN_HINTS):
        text = _KNOWN.sub(REDACTED, text)
    if "-----BEGIN" in text:
        text = _PEM.sub(REDACTED, text)
    if "://" in text and "@" in text:
        text = _USER_IN_URL.sub(_keep_name, text)
    lowered = text.lower()
    if "bearer " in lowered or "basic " in lowered:
        text = _HEADER.sub(_keep_name, text)
    if any(name in lowered for name in _NAMES) and _NAME_HINT.search(lowered):
        text = _SPOKEN.sub(_keep_name, _ASSIGNED.sub(_keep_name, text))
    return text


def _keep_name(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    # How many tokens a model may use is no secret: `token: 4096`.
    if value.isdecimal() and "token" in name.lower():
        return found[0]
    quote = value[0] if value[0] in "\"'" and value[-1] == value[0] else ""
    return f"{name}{quote}{REDACTED}{quote}"

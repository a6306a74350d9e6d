"""The kinds of secret: one table with the name, the look and the proof of each.

Invariants: pure; linear in the length of a text, whatever stands in it; a pattern names what is taken out by its group
`secret`, or takes out all that it finds, so that what announces a secret (`password:`, the user of a URL) stays.

Sources: the prefixes that providers document for their keys, the lists of secret scanners (gitleaks, detect-secrets),
ISO/IEC 7812 (cards), ISO 13616 (IBAN), GB 11643 (Chinese identity numbers), BIP-39 (seed phrases).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from indexer.common import lazy_regex
from indexer.language import ANY
from memory_service.text.secret_proofs import (
    is_aws_secret,
    is_bank_account,
    is_basic,
    is_bearer,
    is_card,
    is_chinese_id,
    is_code_like,
    is_coded,
    is_given,
    is_iban,
    is_no_placeholder,
    is_number_code,
    is_prose_free,
    is_random,
    is_said_plainly,
    is_seed,
    is_ssn,
    is_unsigned_key,
    is_unsigned_password,
    writing_of,
)

_Match = re.Match[str]


def _true(match: _Match) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretKind:
    """A kind of secret.

    Attributes:
        name: What it is called.
        pattern: How it looks in a text in plain characters.
        hints: In lower case; one of these stands in every text that holds such a secret. Empty where none does; one
            that begins with a blank begins a word.
        near: Where there are no hints, what every such secret holds.
        is_one: The proof for what the pattern finds.
        length: How long such a key is as a whole: a shorter one that is found may go on behind a blank.
        wide: What it finds may begin far before its hint.
        within: The text that it stands for, which has to hold a secret itself.
        least: The shortest that counts, with what it goes on with.
    """

    name: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()
    near: re.Pattern[str] | None = None
    is_one: Callable[[_Match], bool] = _true
    wide: bool = False
    within: Callable[[_Match], str] | None = None
    length: int = 0
    least: int = 0


def _key(name: str, prefix: str, *hints: str, least: int, length: int, chars: str = "A-Za-z0-9_-") -> SecretKind:
    """A kind of key that begins with what its provider puts in front."""
    pattern = lazy_regex(rf"(?<![A-Za-z0-9])(?:{prefix})[{chars}]{{2,}}+")
    near = None if hints else _LONG_WORD
    return SecretKind(name=name, pattern=pattern, hints=hints, near=near, length=length, least=least)


_LONG_WORD = lazy_regex(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{14}")
_LONG_NUMBER = lazy_regex(r"\d[\d -]{8}")
_PLAIN = "A-Za-z0-9"
_KEYS = (
    _key("Anthropic key", "sk-ant-", "sk-ant-", least=15, length=100),
    _key("OpenAI project key", "sk-(?:proj|svcacct|admin|or|None)-", "sk-", least=15, length=56),
    _key("OpenAI key", "sk-", "sk-", least=15, length=51),
    _key("Stripe key", "[prs]k_(?:live|test)_", "k_live_", "k_test_", least=16, length=32, chars=_PLAIN),
    _key("webhook secret", "whsec_", "whsec_", least=14, length=38),
    _key("GitHub token", "gh[opusr]_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", least=14, length=40, chars=_PLAIN),
    _key("GitHub fine-grained token", "github_pat_", "github_pat_", least=21, length=93),
    _key("GitLab token", "gl(?:pat|dt|rt|cbt|ptt|ft|imt|soat)-", "glpat-", "gldt-", "glrt-", "glcbt-",
         "glptt-", "glft-", "glimt-", "glsoat-",
         least=14, length=26),
    _key("Slack token", "xox[abeoprs]-|xapp-", "xox", "xapp-", least=13, length=56),
    _key("AWS access key id", "(?:AKIA|ASIA|AROA|AIDA)(?=[A-Z0-9]{2})", "akia", "asia", "aroa", "aida", least=12,
         length=20, chars="A-Z0-9"),
    _key("Google API key", "AIza", "aiza", least=20, length=39),
    _key("Google OAuth token", r"ya29\.|GOCSPX-", "ya29.", "gocspx-", least=13, length=40),
    _key("Hugging Face token", "hf_", "hf_", least=15, length=37, chars=_PLAIN),
    _key("npm token", "npm_", "npm_", least=20, length=40, chars=_PLAIN),
    _key("PyPI token", "pypi-", "pypi-", least=21, length=180),
    _key("SendGrid key", r"SG\.", "sg.", least=11, length=69, chars="A-Za-z0-9_.-"),
    _key("Twilio key", "(?:SK|AC)(?=[0-9a-f]{8})", least=34, length=34, chars="0-9a-f"),
    _key("DigitalOcean token", "do[opr]_v1_", "_v1_", least=15, length=71),
    _key("Shopify token", "shp(?:at|ca|pa|ss)_", "shpat_", "shpca_", "shppa_", "shpss_", least=20, length=38),
    _key("Groq, xAI or Perplexity key", "(?:gsk_|xai-|pplx-)", "gsk_", "xai-", "pplx-", least=20, length=52),
    _key("body of an OpenSSH key", "b3BlbnNzaC1rZXktdjE", "b3blbnnzac1rzxktdje", least=24, length=70,
         chars="A-Za-z0-9+/="),
    _key("Age key", "AGE-SECRET-KEY-1", "age-secret-key-1", least=20, length=74, chars="A-Z0-9"),
)  # fmt: skip

_WORDS = ANY.secrets
# "The password for the NAS", "the PIN (alarm)".
_FOR = (
    rf"(?:[ \t]{{1,3}}(?:{_WORDS.purposes})[ \t]{{1,3}}[^\n:=：]{{1,60}}?|[ ]?[(\[（][^()\[\]（）\n]{{1,40}}[)\]）])?"
)
_SIGN = r"[\"'`*_]{0,3}(?P<gap>\s{0,3}(?:=>|->|→|:=|[:：](?![:/])|=(?!=))[ \t*_`]{0,6}(?:\n[ \t]{0,8})?)"
# "is", and what may stand behind it before the thing itself.
_IS = (
    rf"(?P<gap>[ \t]{{0,3}}(?:(?<=[ \t])(?:{_WORDS.gives})(?=[ \t\"'`“])|{_WORDS.gives_within})"
    rf"[ \t]{{0,3}}(?:(?:{_WORDS.fillers}|:)[ \t]{{1,3}})?)"
)
_QUOTED = (
    r"\"(?P<q1>[^\"\n]{3,}+)\"|'(?P<q2>[^'\n]{3,}+)'"
    r"|“(?P<q3>[^”\n]{3,}+)”|「(?P<q4>[^」\n]{2,}+)」|`(?P<q5>[^`\n]{3,}+)`"
)
# Up to the next argument of a URL, too.
_BARE = r"[\"'`“「]?(?P<bare>(?:[^\s\"'`“”「」,;，。；、&]|&(?!\w{1,40}=)|[,;](?=[^\s\"'`])){3,}+)"
_ASCII = r"(?P<bare>[!#-&(-+\--:<-_a-~]{3,}+)"


def _field(name: str, between: str, value: str) -> re.Pattern[str]:
    return lazy_regex(rf"(?P<name>{name}){_FOR}{between}(?:{_QUOTED}|{value})", re.IGNORECASE)


_ANNOUNCED = (
    SecretKind(name="password", pattern=_field(_WORDS.passwords, _SIGN, _BARE), hints=_WORDS.password_hints,
         is_one=is_given),
    SecretKind(name="password in a sentence", pattern=_field(_WORDS.passwords, _IS, _ASCII), is_one=is_coded,
         hints=_WORDS.password_hints),
    SecretKind(name="password that is a word", hints=_WORDS.password_hints, is_one=is_said_plainly, pattern=lazy_regex(
        rf"(?:{_WORDS.passwords}){_FOR}[ \t]{{1,3}}(?:{_WORDS.plain_gives})[ \t]{{1,3}}"
        rf"(?:(?:{_WORDS.plain_fillers})[ \t])?(?P<secret>[a-z]{{5,24}}+)(?=[.,;!\n]|\Z)",
        re.IGNORECASE)),
    SecretKind(name="password without a sign", is_one=is_unsigned_password, hints=_WORDS.password_hints,
         pattern=lazy_regex(
        rf"(?:(?:{_WORDS.unsigned_passwords})[ \t]{{1,2}}|(?:{_WORDS.unsigned_passwords_within})[ \t]{{0,2}})[\"'`“「]?"
        r"(?P<secret>[!#-&(-+\--:<-_a-~]{4,}+)", re.IGNORECASE)),
    SecretKind(name="passphrase", hints=_WORDS.phrase_hints, is_one=is_prose_free, pattern=lazy_regex(
        rf"(?:{_WORDS.phrases}){_FOR}(?:{_SIGN}|[ \t]{{1,3}}(?:{_WORDS.plain_gives})[ \t]{{1,3}}"
        rf"|{_WORDS.plain_gives_within})[\"'“「]?(?P<secret>[^\n.。;；\"”」]{{4,120}})", re.IGNORECASE)),
    SecretKind(name="token or key", pattern=_field(_WORDS.tokens, _SIGN, _BARE), hints=_WORDS.token_hints,
         is_one=is_code_like),
    SecretKind(name="token in a sentence", pattern=_field(_WORDS.tokens, _IS, _ASCII), hints=_WORDS.token_hints,
         is_one=is_coded),
    SecretKind(name="token without a sign", hints=_WORDS.token_hints, is_one=is_unsigned_key, pattern=lazy_regex(
        rf"(?P<before>\w{{0,12}}[ _-])?(?:{_WORDS.unsigned_tokens})[ \t]{{1,2}}[\"'`“]?"
        r"(?P<secret>[A-Za-z0-9_+/=.-]{16,}+)", re.IGNORECASE)),
    SecretKind(name="environment variable", is_one=is_given, hints=(
        "secret", "token", "pass", "pwd", "_key", "apikey", "credentials", "_dsn", "salt"), pattern=lazy_regex(
        r"(?P<name>(?<![A-Z0-9_$])[A-Z0-9_]{0,60}(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|_KEY|APIKEY"
        r"|CREDENTIALS|_DSN|SALT)(?:_BASE|_\d)?)(?P<gap>[ ]?=[ ]?)(?!=)"
        r"(?:\"(?P<q1>[^\"\n]{3,}+)\"|'(?P<q2>[^'\n]{3,}+)'|[\"']?(?P<bare>[^\s\"';,&]{3,}+))")),
    SecretKind(name="PIN or door code", pattern=_field(_WORDS.codes, _SIGN, _BARE), hints=_WORDS.code_hints,
         is_one=is_number_code),
    SecretKind(name="PIN in a sentence", pattern=_field(_WORDS.codes, _IS, _ASCII), hints=_WORDS.code_hints,
         is_one=is_number_code),
    SecretKind(name="PIN without a sign", hints=_WORDS.code_hints, pattern=lazy_regex(
        rf"(?:{_WORDS.unsigned_codes})[ \t]{{1,2}}(?P<secret>\d{{4,8}}+[#*]?)(?![\w-])"
        rf"|(?:{_WORDS.unsigned_codes_within})[ \t]{{0,2}}(?P<other>\d{{4,8}}+)(?!\d)"
        rf"|(?:{_WORDS.bare_codes})[ ](?P<third>\d{{4,8}}+[#*]?)(?=[^\n.]{{0,40}}\b(?:{_WORDS.code_places})\b)")),
    SecretKind(name="bank account number", is_one=is_bank_account, hints=_WORDS.account_hints, pattern=lazy_regex(
        rf"(?:{_WORDS.accounts})[^\d\n]{{0,24}}(?P<secret>\d(?:[ -]?\d){{7,23}}+)", re.IGNORECASE)),
    SecretKind(name="social security number, announced", hints=("ssn", "social security"), pattern=lazy_regex(
        r"(?:\bssn\b|social security)[^\d\n]{0,24}(?P<secret>\d{3}[ -]?\d\d[ -]?\d{4})(?!\d)", re.IGNORECASE)),
    SecretKind(name="identity number, announced", hints=_WORDS.identity_hints, pattern=lazy_regex(
        rf"(?:{_WORDS.identities})[^\d\n]{{0,10}}(?P<secret>\d(?:[ -]?[\dXx]){{14,17}}+)")),
    SecretKind(name="seed phrase", hints=_WORDS.seed_hints, is_one=is_seed, pattern=lazy_regex(
        rf"(?:{_WORDS.seeds})[^\n]{{0,60}}?(?:\n\s{{0,4}})?"
        r"(?:(?P<secret>(?<![A-Za-z])(?:\d{1,2}[.):][ ]?)?[a-z]{3,8}"
        r"(?:[\s,，、]{1,4}(?:\d{1,2}[.):][ ]?)?[a-z]{3,8}(?![A-Za-z])){11,23}+)"
        r"|(?P<other>[\u4e00-\u9fff](?:[ 　][\u4e00-\u9fff]){11,23}+))", re.IGNORECASE)),
)  # fmt: skip

_TRANSPORT = (
    SecretKind(name="private key", hints=("-----begin",), pattern=lazy_regex(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?!-----END )[\s\S])*+(?:-----END [A-Z0-9 ]{0,60}-----)?")),
    SecretKind(name="end of a private key", hints=("-----end",), wide=True, pattern=lazy_regex(
        r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]{1,100}+[ \t\r]{0,4}\n){1,60}+"
        r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")),
    SecretKind(name="line of a private key", near=_LONG_WORD, is_one=is_aws_secret, pattern=lazy_regex(
        r"(?:^|(?<=\n))[A-Za-z0-9+/]{60,76}={0,2}(?=[ \t\r]{0,4}(?:\n|\Z))")),
    SecretKind(name="PuTTY key", hints=("private-lines",), pattern=lazy_regex(
        r"Private-Lines: \d{1,4}\s{1,4}(?P<secret>(?:[A-Za-z0-9+/=]{8,}+\s{0,4})++)")),
    SecretKind(name="JSON web token", hints=("eyj",), pattern=lazy_regex(
        r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+)?")),
    SecretKind(name="bearer token", hints=("bearer",), is_one=is_bearer, pattern=lazy_regex(
        r"(?<![a-z])(?P<before>authorization[\"']?[:=][ \"']{0,4})?bearer[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{8,}+)",
        re.IGNORECASE)),
    SecretKind(name="basic authentication", hints=("basic",), is_one=is_basic, pattern=lazy_regex(
        r"(?<![a-z])basic[ \t]{1,4}(?P<secret>[A-Za-z0-9+/_-]{6,}+={0,2})", re.IGNORECASE)),
    SecretKind(name="password in a URL", hints=("://",), is_one=is_no_placeholder, pattern=lazy_regex(
        r"://[^\s/:@]{0,100}:(?P<secret>[^\s/\"'<>]{1,200})@")),
    SecretKind(name="webhook URL", hints=("hooks.", "/webhooks/"), pattern=lazy_regex(
        r"(?:hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/\d{1,24}/)(?P<secret>[A-Za-z0-9/_-]{12,}+)")),
    SecretKind(name="Telegram bot token", hints=(":aa",), pattern=lazy_regex(
        r"(?<![\w:])\d{8,10}:AA[A-Za-z0-9_-]{30,}+")),
    SecretKind(name="cookie", hints=("cookie:", "cookie\":"), pattern=lazy_regex(
        r"(?<![a-z])cookie[\"']?:[ \"']{1,4}(?P<secret>[\w.%-]{1,80}=[^\n\"']{3,}+)", re.IGNORECASE)),
    SecretKind(name="session cookie", hints=("sess", "sid"), pattern=lazy_regex(
        r"(?<![a-z])(?:(?:php|j|asp\.net_)?sess(?:ion)?[_-]?id|connect\.sid|sid)=(?P<secret>(?=[^\s;&]{0,64}\d)[^\s;&\"',]{12,}+)",
        re.IGNORECASE)),
    SecretKind(name="payment card", near=_LONG_NUMBER, is_one=is_card, pattern=lazy_regex(
        r"(?<![\w.,/#+-])(?P<secret>[2-6]\d{3}(?:[ -]?\d){9,15}+)(?![\w-]|[.,]\d)", re.ASCII)),
    SecretKind(name="IBAN", near=_LONG_NUMBER, is_one=is_iban, pattern=lazy_regex(
        r"(?<![A-Za-z0-9])[A-Z]{2}\d\d(?:[ -]?[A-Z0-9]){11,30}+", re.ASCII)),
    SecretKind(name="social security number", near=_LONG_NUMBER, is_one=is_ssn, pattern=lazy_regex(
        r"(?<![\w.-])\d{3}-\d\d-\d{4}(?![\w-]|\.\d)", re.ASCII)),
    SecretKind(name="Chinese identity number", near=_LONG_NUMBER, is_one=is_chinese_id, pattern=lazy_regex(
        r"(?<![A-Za-z0-9])[1-9]\d{5}(?:19|20)\d{9}[\dXx](?![A-Za-z0-9])", re.ASCII)),
    SecretKind(name="AWS secret access key", near=_LONG_WORD, is_one=is_aws_secret, pattern=lazy_regex(
        r"(?<![A-Za-z0-9/+=_.-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])")),
    SecretKind(name="random token", near=_LONG_WORD, is_one=is_random, pattern=lazy_regex(
        r"(?<![A-Za-z0-9/+=_.-])[A-Za-z0-9_+=-]{28,}+(?!/)")),
    SecretKind(name="secret in base64", near=_LONG_WORD, within=writing_of, pattern=lazy_regex(
        r"(?<![A-Za-z0-9+/_=-])(?P<secret>[A-Za-z0-9+/]{14,}+={0,2})(?![A-Za-z0-9+/_-])")),
)  # fmt: skip

KINDS: tuple[SecretKind, ...] = (*_KEYS, *_TRANSPORT, *_ANNOUNCED)
NAMES = lazy_regex(f"{_WORDS.passwords}|{_WORDS.tokens}|{_WORDS.codes}|{_WORDS.phrases}", re.IGNORECASE)

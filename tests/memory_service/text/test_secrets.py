"""Secrets are known and go, all else stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.text.secret_kinds import KINDS
from memory_service.text.secrets import announces_secret, has_secret, redact, without_public_blocks
from tests.growth import assert_grows_at_most, at_most_readings
from tests.memory_service.text import secret_samples as samples

TAIL = "a1B2c3D4e5F6g7H8i9"
SECRETS = (
    f"sk-{TAIL}",
    f"sk-ant-api03-{TAIL}",
    f"pk_live_{TAIL}",
    f"ghp_{TAIL}",
    f"github_pat_{TAIL}",
    f"glpat-{TAIL}",
    "AKIAIOSFODNN7EXAMPLE",
    f"AIza{TAIL}",
    f"xoxb-{TAIL}",
    f"npm_{TAIL}",
    f"hf_{TAIL}",
    f"whsec_{TAIL}",
    "eyJhbGciOiJI.eyJzdWIi.x",
    "Bearer abcdefgh1234",
    "redis://app:geheim@host:6379",
    "password: tulip",
    "DB_PASSWORD=tulip",
    "the API key = tulip-7",
    'my password is "tulip"',
    "the PIN is 4711",
    "密码：郁金香",
    "口令是 tulip77",
    "验证码为 471199",
    "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE",
)
HARMLESS = (
    "the password is rotated every 90 days",
    "max_tokens: 4096",
    "a shopping list: milk",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "https://example.com/a/very/long/path/that/goes/on/and/on/2026",
    "密码每90天换一次",
    "they asked for the key to the shed",
)


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_are_known(text: str) -> None:
    assert has_secret(f"We use {text} here")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_none(text: str) -> None:
    assert not has_secret(text)


@pytest.mark.parametrize("text", ["The password is:", "Here is the token below.", "密码如下：", "密码是"])
def test_a_secret_is_announced(text: str) -> None:
    assert announces_secret(text)


def test_key_blocks_go() -> None:
    block = "-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----"
    assert redact(f"before {block} between {block}after") == "before [redacted] between [redacted]after"
    assert redact("before -----BEGIN PRIVATE KEY-----\nabc") == "before [redacted]"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("key sk-" + "a1B2" * 8 + " ok", "key [redacted] ok"),
        ("令牌ghp_" + "a1B2" * 8 + "不要外传", "令牌[redacted]不要外传"),
        ("AKIA" + "A1B2C3D4" * 2, "[redacted]"),
        ("Authorization: Bearer abcdef.ghijkl-mnop", "Authorization: Bearer [redacted]"),
        ("password: hunter2", "password: [redacted]"),
        ("密码：abc123!，谢谢", "密码：[redacted]，谢谢"),
        ("密码是abc123", "密码是[redacted]"),
        ("my password is hunter2 now", "my password is [redacted] now"),
        ('{"api_key": "a b c d", "x": 1}', '{"api_key": "[redacted]", "x": 1}'),
        ("postgres://joe:pa55@db/x", "postgres://joe:[redacted]@db/x"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2ln x", "[redacted] x"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b", "a [redacted] b"),
        ("-----BEGIN PRIVATE KEY-----\nMII", "[redacted]"),
    ],
)
def test_secrets_go(text: str, left: str) -> None:
    assert redact(text) == left
    assert redact(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "token: 4096",
        "max_tokens=4096",
        "the password is wrong",
        "task-1234567890123",
        "密码是错的",
        "key idea",
        "https://ex.org/a@b",
    ],
)
def test_all_else_stays(text: str) -> None:
    assert redact(text) == text


@given(st.text() | st.text("password:=\"' sk-密码是1a", max_size=60))
def test_twice_is_once(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "piece", ["sk-", "password=", "key is", "://a", "-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaa.", "bearer ", "密码"]
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    with at_most_readings(70):
        redact(text)
        has_secret(text)


@pytest.mark.parametrize("text", [text for text in SECRETS if redact(text) != text])
def test_what_is_taken_out_is_known_before_and_not_after(text: str) -> None:
    assert has_secret(text)
    assert not has_secret(redact(text))


@given(st.text() | st.text("password:=\"' sk-密码是1a", max_size=60))
def test_nothing_is_taken_out_that_is_no_secret(text: str) -> None:
    assert has_secret(text) or redact(text) == text


def test_a_certificate_is_no_secret() -> None:
    block = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----"
    assert redact(block) == block
    assert without_public_blocks(f"a {block}") == "a "


@pytest.mark.parametrize(("name", "text", "parts"), samples.SECRETS, ids=[name for name, *_ in samples.SECRETS])
def test_every_kind_goes(name: str, text: str, parts: tuple[str, ...]) -> None:
    left = redact(text)
    assert all(part in text and part not in left for part in parts)
    assert redact(left) == left and not has_secret(left)


def test_there_are_enough_kinds_and_look_alikes() -> None:
    assert len(KINDS) >= 30 and len({kind.name for kind in KINDS}) == len(KINDS)
    assert len(samples.SECRETS) >= 30 and len(samples.INNOCENT) >= 60


@pytest.mark.parametrize("text", samples.INNOCENT)
def test_what_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_arguments_stay_json() -> None:
    arguments = '{"user": "lena", "password": "hunter2tulip", "pin": 471199, "path": "a.md"}'
    left = json.loads(redact(arguments))
    assert left == {"user": "lena", "password": "[redacted]", "pin": "[redacted]", "path": "a.md"}


HOSTILE = (
    "sk-", "sk-a1 ", "password for the ", "password: ", "password=\"", "pin (", "the token is ", "://a:",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----\n", "abcd\n", "seed phrase abandon ", "mnemonic ", "\\u6211", "4111 ", "DE89 ",
    "A1b/",
    "密码 for ",
    "Cookie: a=", "sess=", "eyJaaaaaaaa.", "bearer ", "Private-Lines: 1 ", "SECRET_", "code for the ",
    "\u200b", "aB3dE5gH7",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_time_grows_with_the_length_alone(piece: str) -> None:
    assert_grows_at_most(10, lambda chars: redact(piece * (chars // len(piece))), 20_000, 80_000)

from __future__ import annotations

import pytest

from memory_service.flush.secrets import announces_secret, has_secret, may_hold_secret, without_key_blocks

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
    assert may_hold_secret(f"We use {text} here")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_none(text: str) -> None:
    assert not has_secret(text)


@pytest.mark.parametrize("text", ["The password is:", "Here is the token below.", "密码如下：", "密码是"])
def test_a_secret_is_announced(text: str) -> None:
    assert announces_secret(text)


def test_key_blocks_go() -> None:
    block = "-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----"
    assert without_key_blocks(f"before {block} between {block}after") == "before  between after"
    assert without_key_blocks("before -----BEGIN PRIVATE KEY-----\nabc") == "before "

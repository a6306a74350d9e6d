"""Secrets go, all else stays."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.compaction.secrets import redacted


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
    assert redacted(text) == left
    assert redacted(left) == left


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
    assert redacted(text) == text


@given(st.text() | st.text("password:=\"' sk-密码是1a", max_size=60))
def test_twice_is_once(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize(
    "piece", ["sk-", "password=", "key is", "://a", "-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaa.", "bearer ", "密码"]
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    start = time.process_time()
    redacted(text)

    assert time.process_time() - start < 1.5

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.messages.sizes import count_tokens, quarters

ASCII = st.text(st.characters(codec="ascii"))
CJK = st.text(st.sampled_from("浇水每周二站会かなカナ한국어，。「」！𠀀豈"), min_size=1)


@given(ASCII)
def test_ascii_is_characters_by_four_rounded_up(text: str) -> None:
    assert count_tokens(text) == (len(text) + 3) // 4


@given(CJK)
def test_a_cjk_character_is_one_token(text: str) -> None:
    assert count_tokens(text) == len(text)


@given(st.text(), st.text())
def test_quarters_add_up_and_tokens_round_them_up(one: str, other: str) -> None:
    assert quarters(one + other) == quarters(one) + quarters(other)
    assert 4 * count_tokens(one) - quarters(one) in range(4)
    assert len(one) <= quarters(one) <= 4 * len(one)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("浇水", 2),
        ("浇水a", 3),
        ("Ünïcödé", 2),
        ("🪴🪴🪴🪴", 1),
        ("\ud800", 1),
    ],
)
def test_examples(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens

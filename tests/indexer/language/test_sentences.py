from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.language.markup import Fences
from indexer.language.sentences import pieces
from tests.growth import at_most_readings


def test_a_text_that_fits_is_one_piece() -> None:
    assert list(pieces("one\n\ntwo", 8)) == ["one\n\ntwo"]
    assert list(pieces(" \n ", 8)) == []


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("a" * 60 + ".\n" + "b" * 10 + "\n\n" + "c" * 60, "a" * 60 + ".\n" + "b" * 10),
        ("a" * 60 + ". B\n" + "c" * 80, "a" * 60 + ". B"),
        ("ab\n" + "c" * 60 + ". " + "d" * 60, "ab\n" + "c" * 60 + "."),
        ("a " * 80, ("a " * 50).strip()),
        ("a" * 150, "a" * 100),
        ("部署在周二。" * 30, "部署在周二。" * 16),
        ("“部署在周二。”" * 30, "“部署在周二。”" * 12),
        ("部署" * 80, "部署" * 50),
        ("部署" * 30 + "\n\n" + "回滚" * 40, "部署" * 30),
    ],
)
def test_where_a_long_text_is_cut(text: str, first: str) -> None:
    assert next(pieces(text, 100)) == first


@settings(max_examples=100)
@given(st.text(alphabet="ab .。!？\n\t部署”", max_size=400), st.integers(1, 60))
def test_nothing_is_lost_but_white_space(text: str, limit: int) -> None:
    made = list(pieces(text, limit))
    assert all(part and part == part.strip() and len(part) <= limit for part in made)
    assert "".join("".join(made).split()) == "".join(text.split())


@pytest.mark.parametrize("part", ["a", "\n", " ", "\n \n", "。", ".\n", "部", "\t\n"])
def test_hostile_texts_take_linear_time(part: str) -> None:
    with at_most_readings(200):
        list(pieces(part * (1_000_000 // len(part)), 1200))


@pytest.mark.parametrize(
    ("text", "strict", "kinds"),
    [
        ("a|```python|b|```|c", False, "tfcft"),
        ("```|b|``` and what does it do?|c", False, "fcft"),
        ("```|b|``` not yet|c|```|d", True, "fcccft"),
        ("````|```|````|d", True, "fcft"),
        ("```|~~~~^^^|```|d", False, "fcft"),
        ("```one line```|d", True, "tt"),
        ("  ~~~|never closed", False, "fc"),
        ("代码：|```|打印|```|好", True, "tfcft"),
    ],
)
def test_fenced_code_is_told_from_text(text: str, strict: bool, kinds: str) -> None:
    fences = Fences(strict=strict)
    assert "".join(fences.kind(line)[0] for line in text.split("|")) == kinds

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.language.identifiers import asked_identifiers, identifier_keys
from tests.growth import assert_grows_at_most

# As they are asked for, and as they may be written.
SAME = [
    ("PLAT-1042", "see PLAT-1042: rewrite"),
    ("plat-1042", "| PLAT-1042 | rewrite |"),
    ("PLAT-1042是谁的？", "PLAT-1042由仓库负责"),
    ("B204", "room B-204"),
    ("B-204", "room B-204,"),
    ("v1.2", "Version 1.2"),
    ("1.2.3", "since v1.2.3."),
    ("06643228565", "0664 322 8565"),
    ("0664 3228565", "0664/322 85 65"),
    ("0664 322 8565", "(0664) 322-8565: office"),
    ("+436643228565", "+43 664 322 8565"),
    ("AT611904300234573201", "AT61 1904 3002 3457 3201"),
    ("AT61 1904 3002 3457 3201", "IBAN: AT61 1904 3002 3457 3201"),
    ("001a2b3c4d5e", "00:1A:2B:3C:4D:5E"),
    ("00-1a-2b-3c-4d-5e", "00:1A:2B:3C:4D:5E"),
    ("550e8400e29b41d4a716446655440000", "550E8400-E29B-41D4-A716-446655440000"),
    ("9783161484100", "ISBN 978-3-16-148410-0"),
    ("9783161484100", "ISBN 978 3 16 148410 0"),
    ("12500", "12,500 bricks"),
    ("12,500", "12.500 bricks"),
    ("1000000", "1,000,000"),
    ("12'500", "12 500"),
    ("3f2a9bc", "3f2a9bc1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7"),
    ("3f2a9bc1d", "3f2a9bc1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7"),
    ("3f2a9bc1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7", "reverts 3F2A9BC1D2"),
    ("C:\\Users\\mia", "in C:\\Users\\mia."),
    ("src/app/main.py", "edit src/app/main.py"),
    ("main.py", "edit src/app/main.py"),
    ("example.org", "https://example.org/a/b"),
    ("example.org", "desk@example.org"),
    ("10.0.0.12", "10.0.0.12:8080"),
    ("#1042", "fixes #1042"),
    ("INV/2026/001", "INV-2026-001"),
    ("4711-0815", "order 4711 0815"),
    ("\uff30\uff2c\uff21\uff34\uff0d\uff11\uff10\uff14\uff12", "PLAT-1042"),
]
OTHERS = [
    ("PLAT-1042", "PLAT-10421"),
    ("PLAT-1042", "PLAT-104"),
    ("PLAT-1042", "XPLAT-1042"),
    ("1.2", "1.2.3"),
    ("1.2.3", "1.2"),
    ("1.2", "12"),
    ("06643228565", "0664 322 8566"),
    ("src/app/main.py", "main.py"),
    ("C:\\Users\\mia", "C:\\Users\\mia\\notes"),
    ("example.org", "example.org.uk"),
    ("3f2a9bc1d", "3f2a9bd1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7"),
]


def _is_held(question: str, text: str) -> bool:
    words = {*identifier_keys(text), *text.lower().replace(",", " ").split()}
    asked = asked_identifiers(question)
    assert asked
    return all(not words.isdisjoint(terms) for terms in asked)


@pytest.mark.parametrize(("question", "text"), SAME)
def test_an_identifier_is_one_however_it_is_written(question: str, text: str) -> None:
    assert _is_held(question, text)


@pytest.mark.parametrize(("question", "text"), OTHERS)
def test_a_part_of_an_identifier_is_another(question: str, text: str) -> None:
    assert not _is_held(question, text)


@pytest.mark.parametrize(
    "text",
    [
        "and/or",
        "2026-11-25",
        "at 18:00",
        "25.11.2026 14:30",
        "10-15",
        "24/7",
        "a 3-day trip",
        "10km",
        "in 2026",
        "e.g.",
    ],
)
def test_what_names_nothing(text: str) -> None:
    assert asked_identifiers(text) == []
    assert identifier_keys(text) == []


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert all(key.isalnum() and key.isascii() and len(key) <= 40 for key in identifier_keys(text))
    assert all(terms and all(terms) for terms in asked_identifiers(text))


@pytest.mark.parametrize("part", ["1 ", "a-", "A1B2 ", "1.", "/a", "#1", "(1) ", "0664 322 "])
def test_time_grows_with_the_length_of_the_text(part: str) -> None:
    assert_grows_at_most(
        30, lambda repeats: (identifier_keys(part * repeats), asked_identifiers(part * repeats)), 200, 2000
    )

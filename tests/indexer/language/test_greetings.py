from __future__ import annotations

import pytest

from indexer.language.names import greeted_name, greeted_speakers
from tests.growth import at_most_readings


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Elise: Hey Kate! How was it?", "kate"),
        ("Hey, Kate, how was it?", "kate"),
        ("**Elise**: Hello Kate.", "kate"),
        ("[8 May 2023, 13:56] Anna: Hi Bob 😊", "bob"),
        ("Good morning Liza", "liza"),
        ("Thanks so much, Mel! I owe you", "mel"),
        ("Dear José,\nhow are you?", "jose"),
        ("小红：嗨，小明！今天忙吗？", "小明"),
        ("早上好，凯特！", "凯特"),
        ("小明：王芳，你好！", "王芳"),
        ("小红：谢谢，小明。", "小明"),
        ("小红：嗨，Kate！", "kate"),
        ("Elise: I told Kate to come. Hey Kate!", ""),
        ("Elise: hey kate!", ""),
        ("Hey Kate's here!", ""),
        ("Hey Kate how are you", ""),
        ("Hey Jo!", ""),
        ("Hey man!", ""),
        ("Hey Man!", ""),
        ("Hi there", ""),
        ("HI THERE!", ""),
        ("Hello World!", ""),
        ("Thanks Everyone!", ""),
        ("Hey What? No!", ""),
        ("Hey Siri, what time is it?", ""),
        ("你好，世界！", ""),
        ("嗨，好久不见！", ""),
        ("你好，请问，在哪里", ""),
        ("谢谢提醒！", ""),
        ("大家，早上好！", ""),
        ("", ""),
    ],
)
def test_the_name_that_a_greeting_has(text: str, name: str) -> None:
    assert greeted_name(text) == name


def test_three_greetings_make_a_name() -> None:
    assert greeted_speakers([(1, 2, "kate")] * 2) == {}
    assert greeted_speakers([(1, 2, "kate")] * 3) == {"kate": {2}}
    assert greeted_speakers([(1, 2, "kate")] * 2 + [(3, 2, "kate")]) == {"kate": {2}}


def test_one_nickname_of_two_is_both() -> None:
    assert greeted_speakers([(1, 2, "kate"), (3, 4, "kate")] * 3) == {"kate": {2, 4}}


def test_what_each_calls_the_other_is_no_name() -> None:
    assert greeted_speakers([(1, 2, "bear")] * 5 + [(2, 1, "bear")]) == {}


@pytest.mark.parametrize("part", ["Hey ", "嗨", "A", "[2026-11-20] ", "thanks, ", "a: "])
def test_a_hostile_text_costs_no_more_than_a_short_one(part: str) -> None:
    with at_most_readings(500):
        for _ in range(100):
            greeted_name(part * 100_000)

from __future__ import annotations

import pytest

from indexer.language.spoken_values import is_estimate, names_relative_day, ordinal_days, spelled_numbers, spoken_times
from tests.growth import at_most_readings

TIMES = {
    "at quarter past nine": 555, "half past ten, as ever": 630, "ten to five": 290, "nine thirty": 570,
    "seven o'clock": 420, "half nine": 570, "at noon": 0, "halb zehn": 570, "Viertel nach neun": 555,
    "um 9 Uhr 15": 555, "à 9h15": 555, "neuf heures et quart": 555, "las nueve y media": 570, "alle nove e mezza": 570,
    "九点一刻": 555, "下午三点半": 210, "差一刻九点": 525, "at 9.15.": 555, "0915 hours": 555,
}  # fmt: skip


@pytest.mark.parametrize("text", TIMES)
def test_times_as_they_are_spoken(text: str) -> None:
    assert TIMES[text] in set(spoken_times(text))


@pytest.mark.parametrize("text", ["past two weeks", "1.25 EUR", "version 3.10.2", "it took half", "before you go"])
def test_what_is_no_time(text: str) -> None:
    assert not list(spoken_times(text))


def test_spelled_numbers() -> None:
    found = set(spelled_numbers("twenty-five apples, three hundred and five, two dozen, half a million, zwölf Eier"))
    assert {25.0, 305.0, 24.0, 500_000.0, 12.0} <= found


def test_estimates() -> None:
    for text in ("~3 s", "about 3 s", "rund 3", "约3", "3 左右", "3 or so"):
        at = text.index("3")
        assert is_estimate(text, at, at + 1)
    assert not is_estimate("it took 3 s", 8, 9)


def test_days_without_a_date() -> None:
    assert (
        names_relative_day("Das machen wir morgen.") and names_relative_day("明日") and not names_relative_day("Gut.")
    )
    assert list(ordinal_days("on the 25th, and am 3. too; the 99 of them")) == [25, 3]


@pytest.mark.parametrize("sign", ["half ", "nine ", "差", "twenty ", "9h", "the 1"])
def test_hostile_text_takes_no_time(sign: str) -> None:
    text = sign * (100_000 // len(sign))
    with at_most_readings(140):
        list(spoken_times(text))
        list(spelled_numbers(text))
        list(ordinal_days(text))

"""Sentences that were made again with another value, as a search of an index shows them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer import Index
from tests.indexer.engine.test_authority import entry, say, shown, write
from tests.indexer.workspace import STORE_NAMES, NamedStores

_TODAY = dt.date(2026, 11, 25)
_BUS, _BIKE = "I commute to work by bus.", "I commute to work by bike now."


@pytest.fixture(params=STORE_NAMES)
def index(tmp_path: Path, request: pytest.FixtureRequest, stores: NamedStores) -> Iterator[Index]:
    made = Index(tmp_path, None, store=stores.open(request.param, tmp_path), today=lambda: _TODAY, zone=dt.UTC)
    yield made
    made.close()


def note(index: Index, day: str, *texts: str, origin: str = "user") -> None:
    write(index, f"memory/2026-{day}.md", "".join(entry(text, origin) for text in texts))


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        (_BUS, _BIKE, "how do I commute to work?"),
        ("Bugs are triaged by Mei on Mondays.", "Bugs are triaged by Jonas on Mondays.", "who triages bugs?"),
        ("备用轮胎放在地下室。", "备用轮胎现在放在车库。", "备用轮胎放在哪里？"),
        ("日志保留 30 天。", "日志保留 90 天。", "日志保留多少天？"),
    ],
)
@pytest.mark.parametrize("limit", [1, 8])
def test_the_later_one_stands_first_and_marks_the_earlier(
    index: Index, old: str, new: str, question: str, limit: int
) -> None:
    note(index, "03-01", old)
    note(index, "03-02", "The garden needs water.", "院子里的花要浇水。")
    note(index, "09-01", new)
    hits = index.search(question, limit=limit).hits
    assert hits[0].passage.text == new
    if limit > 1:
        assert [each.text for each in hits[0].replaces] == [old]
    assert all(hit.replaced_by and hit.replaced_by.text == new for hit in hits if hit.passage.text == old)


def test_all_that_it_was_is_told_in_order(index: Index) -> None:
    for day, by in (("03-01", "bus."), ("06-01", "tram now."), ("09-01", "bike now.")):
        note(index, day, f"I commute to work by {by}")
    hits = index.search("how do I commute to work?", history=True).hits
    assert (hits[0].passage.text, hits[0].replaced_by) == ("I commute to work by bike now.", None)
    assert all(hit.replaced_by and hit.replaced_by.text == hits[0].passage.text for hit in hits[1:])
    assert [(each.text, each.current) for each in hits[0].history] == [
        ("I commute to work by bus.", False),
        ("I commute to work by tram now.", False),
        ("I commute to work by bike now.", True),
    ]


def test_of_one_day_the_hour_or_a_word_of_change_tells_which_is_later(index: Index) -> None:
    before, after = "Bugs are triaged by Mei on Mondays.", "Bugs are triaged by Jonas on Mondays."
    note(index, "03-01", before, after)
    assert not any(marked for _, _, marked in shown(index, "who triages bugs?"))
    write(index, "memory/2026-03-01.md", f"## 09:00\n\n{entry(before, 'user')}\n## 11:00\n\n{entry(after, 'user')}")
    assert shown(index, "who triages bugs?")[0] == (after, "user", False)


def test_an_agent_replaces_what_an_agent_noted_and_nothing_above(index: Index) -> None:
    note(index, "03-01", _BUS)
    note(index, "09-01", _BIKE, origin="agent")
    assert shown(index, "how do I commute to work?") == [(_BUS, "user", False), (_BIKE, "agent", False)]
    note(index, "03-01", _BUS, origin="agent")
    assert shown(index, "how do I commute to work?") == [(_BIKE, "agent", False), (_BUS, "agent", True)]


def test_a_message_replaces_a_note_and_the_other_way_round(index: Index) -> None:
    note(index, "03-01", _BUS)
    say(index, "talk", "2026-09-01T10:00:00", {"role": "user", "content": _BIKE})
    assert shown(index, "how do I commute to work?")[0] == (_BIKE, "user", False)
    note(index, "10-01", "I commute to work by train now.")
    assert shown(index, "how do I commute to work?")[0] == ("I commute to work by train now.", "user", False)


def test_what_a_person_says_is_not_the_same_stays(index: Index) -> None:
    note(index, "03-01", _BUS)
    note(index, "09-01", _BIKE)
    note(index, "10-01", "Not the same: memory/2026-03-01.md#L2 and memory/2026-09-01.md#L2")
    assert not any(marked for _, _, marked in shown(index, "how do I commute to work?"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I have a dog called Rex.", "I have a cat called Tom now."),
        ("Milk is in the fridge.", "Milk is on the shopping list."),
        ("The pass costs $70 a month.", "The pass costs $7 a day."),
        ("The tour lasts 5 hours for adults.", "The tour lasts 3 hours for children."),
        ("My sister Ana works as a nurse at Mercy Hospital.", "My sister Eva works as a nurse at Mercy Hospital."),
        ("The staging server listens on port 8443.", "The staging server listens to events now."),
        ("The shop opens at 9 on Mondays.", "The shop opens at 9 on Sundays."),
        ("I met Petra at the café near the station.", "I met Simone at the café near the station."),
        ("我的护照2029年到期。", "我的驾照2027年到期。"),
        ("王芳在南京开会。", "王芳在北京开会。"),
        ("厨房很小。", "厨房现在很白。"),
    ],
)
def test_what_holds_beside_the_other_is_not_marked(index: Index, old: str, new: str) -> None:
    note(index, "03-01", old)
    note(index, "09-01", new)
    assert not any(marked for _, _, marked in shown(index, old))


def test_other_titles_tell_of_other_things(index: Index) -> None:
    card, phone = "Parking is paid by card at the gate.", "Parking is paid by phone at the gate now."
    write(index, "memory/2026-03-01.md", f"# 2026-03-01\n\n## Hvar\n\n- {card}\n")
    write(index, "memory/2026-10-01.md", f"# 2026-10-01\n\n## Rovinj\n\n- {phone}\n")
    assert not any(marked for _, _, marked in shown(index, "how is parking paid at the gate?"))
    write(index, "memory/2026-03-01.md", f"# 2026-03-01\n\n## Rovinj\n\n- {card}\n")
    assert shown(index, "how is parking paid at the gate?") == [(phone, "user", False), (card, "user", True)]

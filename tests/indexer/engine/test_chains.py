"""Facts that change, as a search of an index shows them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from indexer import Hit, Index, Mode, SearchFilter
from indexer.language.facts import UNREAD_FACTS
from indexer.stores.base import OfRanges, StoredPassage, Which
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from tests.growth import assert_costs_at_most
from tests.indexer.workspace import STORE_NAMES, NamedStores, Workspace, watched_statements

Search = Callable[..., tuple[Hit, ...]]


@pytest.fixture(params=STORE_NAMES)
def index(tmp_path: Path, request: pytest.FixtureRequest, stores: NamedStores) -> Iterator[Index]:
    made = Index(tmp_path, None, store=stores.open(request.param, tmp_path))
    yield made
    made.close()


def notes(index: Index, **texts: str) -> None:
    """Write files, by name, and index them."""
    (index.source.folders[0] / "memory").mkdir(exist_ok=True)
    for name, text in texts.items():
        stem = name.removeprefix("d").replace("_", "-")
        (index.source.folders[0] / "memory" / f"{stem}.md").write_text(text, encoding="utf-8")
    index.sync()


def marks(index: Index, question: str, **options: object) -> dict[str, str]:
    """Text of each hit, best first, and of the one that replaced it; empty for none."""
    hits = index.search(question, **options).hits  # type: ignore[arg-type]
    return {hit.passage.text: hit.replaced_by.text if hit.replaced_by else "" for hit in hits}


def test_what_holds_now_stands_first_and_both_cite_each_other(index: Index) -> None:
    notes(index, d2026_01_02="- Ana lives in Lisbon, where Ana lives well\n", d2026_03_01="- x\n- Ana moved to Porto\n")
    new, old = index.search("where does Ana live").hits[:2]
    assert (new.passage.text, new.score) == ("Ana moved to Porto", old.score)
    assert old.replaced_by is not None
    assert (old.replaced_by.path, old.replaced_by.start_line) == ("memory/2026-03-01.md", 2)
    assert [each.date for each in new.replaces] == [dt.date(2026, 1, 2)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The Pro plan costs $10 a month", "The Pro plan costs $100 a year"),
        ("停车每小时5元", "停车每天40元"),
    ],
)
def test_amounts_of_two_periods_hold_beside_each_other(index: Index, old: str, new: str) -> None:
    notes(index, d2026_01_02=f"- {old}\n", d2026_03_01=f"- {new}\n")
    assert marks(index, old) == {old: "", new: ""}
    notes(index, d2026_04_01="- The Pro plan now costs $12 a month\n- 停车每小时6元\n")
    assert marks(index, old)[old]


def test_what_holds_now_is_brought_in_where_the_filter_lets_it(index: Index) -> None:
    notes(index, d2026_01_02="- We use npm for builds\n", d2026_03_01="- 以后用 pnpm，不用 npm 了\n")
    assert [*marks(index, "builds")] == ["以后用 pnpm，不用 npm 了", "We use npm for builds"]
    until = SearchFilter(until=dt.date(2026, 2, 1))
    assert marks(index, "builds", filter=until) == {"We use npm for builds": "以后用 pnpm，不用 npm 了"}


def test_a_history_goes_from_the_oldest_to_the_newest(index: Index) -> None:
    prices = {f"d2026_0{month}_01": f"- The price of the Pro plan is ${month}0\n" for month in (1, 2, 3)}
    notes(index, **prices)
    first = index.search("price of the Pro plan", limit=1, history=True).hits[0]
    assert [each.text[-3:] for each in first.history] == ["$10", "$20", "$30"]
    assert [each.current for each in first.history] == [False, False, True]


@pytest.mark.parametrize(
    "line",
    [
        'Not the same: "Ana lives in Lisbon" and "Ana lives in Porto"',
        "不是同一件事：memory/2026-01-02.md#L1 和 memory/2026-03-01.md#L1",
    ],
)
def test_a_person_can_say_that_two_are_not_the_same(index: Index, line: str) -> None:
    notes(index, d2026_01_02="- Ana lives in Lisbon\n", d2026_03_01="- Ana lives in Porto\n")
    assert marks(index, "where does Ana live")["Ana lives in Lisbon"]
    notes(index, d2026_03_02=f"- {line}\n")
    assert not any(marks(index, "where does Ana live").values())


def test_two_notes_that_replace_each_other_are_left_alone(index: Index) -> None:
    notes(
        index,
        left="- Correction: the staging port is 80, not 90\n",
        right="- Correction: the staging port is 90, not 80\n",
    )
    assert marks(index, "staging port") == dict.fromkeys(marks(index, "staging port"), "")


def test_without_days_only_a_word_of_change_tells_which_is_newer(index: Index) -> None:
    notes(index, left="- Kim owns billing\n", right="- Lee owns billing\n")
    assert not any(marks(index, "who owns billing").values())
    notes(index, right="- Lee now owns billing\n")
    assert marks(index, "who owns billing") == {"Lee now owns billing": "", "Kim owns billing": "Lee now owns billing"}


def test_thousands_of_values_take_no_quadratic_time(index: Index) -> None:
    lines = "".join(f"- Build status: run {number}\n" for number in range(1500))
    notes(index, log=lines)
    index.search("build status")
    hits = index.search("build status run 17", limit=50).hits
    assert hits[0].passage.text.endswith("run 1499")
    assert all(hit.replaced_by for hit in hits[1:])
    whole = index.search("build status run 17", limit=50, history=True).hits
    assert len(whole[0].history) == 1500
    assert_costs_at_most(
        20,
        lambda: index.search("build status run 17", limit=50, history=True),
        lambda: index.search("build status run 17", limit=50),
    )


def test_what_is_removed_replaces_nothing_any_more(index: Index) -> None:
    notes(index, d2026_01_02="- Ana lives in Lisbon\n", d2026_03_01="- Ana moved to Porto\n")
    notes(index, d2026_03_01="- nothing\n")
    assert marks(index, "where does Ana live") == {"Ana lives in Lisbon": ""}


def test_a_title_that_changes_changes_what_its_lines_are_about(index: Index) -> None:
    notes(index, d2026_01_02="# Billing\n\ntext\n\n- Owner: Kim\n", d2026_03_01="# Search\n\ntext\n\n- Owner: Lee\n")
    assert not any(marks(index, "owner").values())
    notes(index, d2026_03_01="# Billing\n\ntext\n\n- Owner: Lee\n")
    assert marks(index, "owner")["Owner: Kim"] == "Owner: Lee"


def test_an_index_of_an_earlier_version_gets_its_facts_without_being_made_anew(tmp_path: Path) -> None:
    index = Index(tmp_path, None)
    notes(index, d2026_01_02="- Ana lives in Lisbon\n", d2026_03_01="- Ana moved to Porto\n")
    index.close()
    generation = Path(tmp_path / "index.sqlite").resolve()
    database = apsw.Connection(str(generation))
    database.execute("DROP TABLE facts; DELETE FROM meta WHERE name = 'fact_rules'")
    database.close()
    index = Index(tmp_path, None)
    assert not any(marks(index, "where does Ana live").values())
    assert index.search("where does Ana live").degraded == (UNREAD_FACTS,)
    assert index.status().unread == UNREAD_FACTS
    report = index.sync()
    assert (report.added, report.changed, report.unchanged) == (0, 0, 2)
    assert marks(index, "where does Ana live")["Ana lives in Lisbon"] == "Ana moved to Porto"
    assert not index.search("where does Ana live").degraded
    assert not index.status().unread
    index.close()


def test_clauses_as_they_stand_are_marked_and_told_in_words(index: Index) -> None:
    old, new = "The API allows 60 requests a minute", "The API now allows 100 requests a minute"
    notes(index, d2026_01_02=f"- {old}\n- We meet in the blue room\n", d2026_03_01=f"- {new}\n")
    assert marks(index, "how many requests a minute does the API allow", limit=2) == {new: "", old: new}
    notes(
        index, d2026_04_01="- We no longer meet in the blue room\n- 备份保留30天\n", d2026_05_01="- 备份现在保留90天\n"
    )
    assert marks(index, "where do we meet")["We meet in the blue room"] == "We no longer meet in the blue room"
    hit = index.search("备份保留多久", history=True).hits[0]
    assert hit.passage.text == "备份现在保留90天"
    assert [(each.text, each.about) for each in hit.history] == [
        ("备份保留30天", "its amount, day or hour"),
        ("备份现在保留90天", "its amount, day or hour"),
    ]


def test_lines_that_come_again_and_again_are_replaced_by_a_change_alone(index: Index) -> None:
    notes(index, d2026_01_02="".join(f"- Deploy took {number} minutes\n" for number in range(400)))
    found = marks(index, "how many minutes did the deploy take", limit=50)
    assert len(found) == 50
    assert not any(found.values())
    notes(index, d2026_03_01="- Deploy took 5000 minutes now\n")
    found = marks(index, "how many minutes did the deploy take", limit=50)
    assert found.pop("Deploy took 5000 minutes now") == ""
    assert set(found.values()) == {"Deploy took 5000 minutes now"}


@pytest.mark.parametrize(
    "lines",
    [
        ("一季度的目标：签约承运商 320 家，准点率 96.5%。", "半年总结：承运商 431 家，准点率 96.9%，毛利率 21.4%。"),
        ("河坊街的铺面 38 平米，月租 1.9 万，人多但小。", "城西的铺面 75 平米，月租 1.4 万，离新办公室近。"),
        ("游泳 800 米，用时 27 分钟，水有点冷。", "游了 1,000 米，用时 32 分钟，教练说换气太急。"),
        ("雅婷想学游泳，教练姓丁。", "雅婷学会了蛙泳换气，教练丁说下周学自由泳。"),
        ("读书和电影", "读书会"),
        ("Tim: I'm learning how to play the violin now.", "Tim: I'm learning German now, tough but fun."),
    ],
)
def test_what_is_measured_learned_or_done_each_time_holds_beside_the_other(
    index: Index, lines: tuple[str, str]
) -> None:
    one, other = lines
    notes(index, d2026_01_02=f"- {one}\n", d2026_03_01=f"- {other}\n")
    assert not any(marks(index, one).values())


def test_a_word_of_change_ends_what_was_measured(index: Index) -> None:
    notes(index, d2026_01_02="- 司机流失每月 6.8%，目标 T+3\n", d2026_03_01="- 八月准点率 97.4%，司机流失降到 5.1%\n")
    assert marks(index, "司机流失多少")["司机流失每月 6.8%，目标 T+3"].startswith("八月准点率")


@pytest.mark.parametrize(
    "text",
    [
        "# People\n\nMia\n\n- City: Graz\n- Phone: 1\n\nBo\n\n- City: Linz\n- Phone: 2\n",
        "## Garage door\n\nWarranty until: 9.3.2028\n\n## Drill\n\nWarranty until: 7.4.2033\n",
        "# Offers\n\n1. Fridge\n   - Price: 499 €\n2. Oven\n   - Price: 899 €\n",
    ],
)
def test_lines_of_records_replace_nothing(index: Index, text: str) -> None:
    notes(index, **{"2026-01-04": text})
    hits = index.search("city phone price warranty", limit=20).hits
    assert hits
    assert not any(hit.replaced_by for hit in hits)


def test_records_of_two_files_are_told_apart_by_the_line_above(index: Index) -> None:
    one, other = "# People\n\nMia\n\n- Birthday: {}\n", "# People\n\nBo\n\n- Birthday: July 1\n"
    notes(index, **{"2026-01-04": one.format("March 3"), "2026-01-05": other, "2026-01-06": one.format("March 4")})
    marked = {hit.passage.text: hit.replaced_by for hit in index.search("birthday", limit=9).hits}
    assert marked["Birthday: July 1"] is None
    assert marked["Birthday: March 4"] is None


class CountedStore(SqliteStore):
    """A store in a file that notes the ranges of files that are asked for, read by read."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.reads = list[tuple[tuple[str, int, int], ...]]()

    def passages(self, value: Which) -> dict[int, StoredPassage]:
        if isinstance(value, OfRanges):
            self.reads.append(value.ranges)
        return super().passages(value)


def test_captions_of_many_lines_are_read_at_once(tmp_path: Path) -> None:
    store = CountedStore(tmp_path / "index.sqlite")
    index = Index(tmp_path, None, store=store)
    lines = "".join(f"- Shoe {number}\n" for number in range(9))
    names = {f"d2026_01_{day:02}": "Mia" if day % 2 else "Bo" for day in range(1, 25)}
    notes(index, **{day: f"# People\n\n{name}\n\n{lines}- Birthday: March {day[-2:]}\n" for day, name in names.items()})
    hits = index.search("birthday", limit=20).hits
    assert len(hits) > 10
    assert 1 <= len(store.reads) <= 2 and max(len(ranges) for ranges in store.reads) > 10
    assert index.search("birthday", limit=20).hits == hits and len(store.reads) <= 2
    index.close()


def test_a_search_by_words_between_two_by_vectors_reads_no_facts_again(workspace: Workspace) -> None:
    workspace.write_items("memory/2026-01-01.md", ["Ana lives in Lisbon, where Ana lives well", "x"])
    workspace.write_items("memory/2026-03-01.md", ["x", "Ana moved to Porto"])
    workspace.synced(HashEmbedder()).close()
    modes: tuple[Mode, ...] = ("vector", "text", "vector", "text")
    with watched_statements() as statements:
        index = Index(workspace.root, HashEmbedder(), store=SqliteStore(workspace.root / "index.sqlite"))
        hits, counts = list[tuple[Hit, ...]](), list[int]()
        for mode in modes:
            hits.append(index.search("where does Ana live", mode=mode).hits)
            counts.append(sum("FROM facts" in statement for statement in statements))
        index.close()
    assert hits[:2] == hits[2:] and hits[0][0].replaces
    assert counts[0] and counts == counts[:1] * len(counts)
